"""The version, read by the build and by ``kernull.__version__``."""

__version__ = "0.2.0"
