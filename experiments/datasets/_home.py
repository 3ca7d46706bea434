"""Where data sets lie on disk, and what is said when they do not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from experiments.datasets._download import REMOTE, DownloadError, download, offline

__all__ = ["DatasetNotFound", "data_home", "find_file"]


# Named without "Error", as it reads in an except clause next to FileNotFoundError.
class DatasetNotFound(FileNotFoundError):  # noqa: N818
    """A data set's file is not where it was looked for.

    The message says what was looked for, where, and how to get it.
    """


def data_home() -> Path:
    r"""Folder in which data sets are looked for.

    The first of these that is set: the environment variable ``KERNULL_DATA``, the environment
    variable ``KERNULL_CACHE``, the ``kernull`` folder of the platform's cache
    (``~/.cache/kernull``, ``~/Library/Caches/kernull``, ``%LOCALAPPDATA%\kernull``). The folder
    need not exist. The environment is read at each call.

    Returns
    -------
    pathlib.Path
        The folder.

    Examples
    --------
    >>> import os
    >>> from unittest import mock
    >>> from experiments.datasets import data_home
    >>> with mock.patch.dict(os.environ, {"KERNULL_DATA": "my-data"}):
    ...     data_home().name
    'my-data'
    """
    # A variable set to nothing counts as unset: Path("") would silently mean the current folder.
    chosen = os.environ.get("KERNULL_DATA") or os.environ.get("KERNULL_CACHE")
    return Path(chosen).expanduser() if chosen else _platform_cache() / "kernull"


def find_file(
    relative: str, *, what: str, source: str, home: str | os.PathLike[str] | None = None
) -> Path:
    """Path of a data file that exists: in the data folder, in the cache, or just downloaded.

    Where no folder is given by name, the cache (``KERNULL_CACHE``, or the platform's) is looked
    into after the data folder; a file that has an address is then downloaded into it and checked,
    unless ``KERNULL_OFFLINE=1`` forbids it.

    Parameters
    ----------
    relative : str
        Path below the data folder, with forward slashes.
    what : str
        What the file is, for the error message.
    source : str
        Where it is published, for the error message.
    home : path-like, optional
        The data folder; by default :func:`data_home`.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    DatasetNotFound
        If there is no such file.
    """
    folder = data_home() if home is None else Path(home).expanduser()
    path = folder / relative
    if path.is_file():
        return path
    tried = ""
    if home is None:
        # Next the cache, and a download into it; a folder given by name is taken at its word.
        cached, tried = _from_cache(relative)
        if cached is not None:
            return cached
    if home is not None:
        origin = "the argument home"
    elif os.environ.get("KERNULL_DATA"):
        origin = "the environment variable KERNULL_DATA"
    elif os.environ.get("KERNULL_CACHE"):
        origin = "the environment variable KERNULL_CACHE; KERNULL_DATA is not set"
    else:
        origin = "the default cache; neither KERNULL_DATA nor KERNULL_CACHE is set"
    raise DatasetNotFound(
        f"{what} not found: looked for {relative!r} in {str(folder)!r} ({origin}). {tried}"
        f"Get it from {source}, save it as {str(path)!r}, or set KERNULL_DATA to the folder "
        f"that holds {relative!r}."
    )


def _from_cache(relative: str) -> tuple[Path | None, str]:
    """A file of the cache, downloaded if need be; or None and a sentence that says why not."""
    chosen = os.environ.get("KERNULL_CACHE")
    folder = Path(chosen).expanduser() if chosen else _platform_cache() / "kernull"
    path = folder / relative
    if path.is_file():
        return path, ""
    if relative not in REMOTE:
        return None, ""
    if offline():
        return None, "Downloads are off (KERNULL_OFFLINE). "
    try:
        return download(relative, folder), ""
    except DownloadError as error:
        return None, f"Downloading it failed ({error}). "


def _platform_cache() -> Path:
    """Return the user's cache folder by the platform's own custom."""
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    xdg = os.environ.get("XDG_CACHE_HOME")
    return Path(xdg) if xdg else Path.home() / ".cache"
