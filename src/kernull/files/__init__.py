"""Models and tables in files."""

from kernull.files.container import read_about
from kernull.files.models import load, load_parts, load_views, save

__all__ = ["load", "load_parts", "load_views", "read_about", "save"]
