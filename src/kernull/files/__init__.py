"""Models and tables in files."""

from kernull.files.models import load, save
from kernull.files.tables import attach_views, load_views

__all__ = ["attach_views", "load", "load_views", "save"]
