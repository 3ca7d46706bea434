"""The version, read by the build and by ``kernull.__version__``."""

__version__ = "0.3.0"
