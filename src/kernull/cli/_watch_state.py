"""What ``kernull watch`` remembers from one call to the next: a small JSON file."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernull._whole import write_whole
from kernull.cli._errors import DataError, UsageError
from kernull.cli._output import check_writable

if TYPE_CHECKING:
    from kernull.cli._following import Follower
    from kernull.cli._watching import Watcher

__all__ = ["WatchState"]

#: Seconds between two times that the file is written while rows come.
EVERY = 5.0
LARGEST = 2**26


class WatchState:
    """The file of ``--state``: how far the rows were read, counts, and the drift test.

    It is written every few seconds while rows come, and at the end; whatever stops the command,
    place, counts and test are those of one moment, so no row is counted twice.

    Parameters
    ----------
    path : str
    model : str
        The model file; another one needs another state.
    watcher : Watcher
    follower : Follower
    """

    def __init__(self, path: str, model: str, watcher: Watcher, follower: Follower) -> None:
        check_writable(path, inputs=[model, follower.path])
        self.path, self.watcher, self.follower = Path(path), watcher, follower
        self.model = hashlib.sha256(Path(model).read_bytes()).hexdigest()
        self.saved = time.monotonic()

    def resume(self) -> bool:
        """Take up what an earlier call left; False where there is nothing."""
        if not self.path.exists():
            return False
        try:
            if self.path.stat().st_size > LARGEST:
                raise ValueError
            found = json.loads(self.path.read_text(encoding="utf-8"))
            if not isinstance(found, dict) or found["kernull-watch"] != 1:
                raise ValueError
            same = found["model"] == self.model
            if same:
                self._restore(found)
        except (ValueError, KeyError, TypeError, UnicodeDecodeError):
            raise DataError(f"--state: {self.path}: is no state that watch wrote.") from None
        if not same:
            raise UsageError(
                f"--state: {self.path} was written with another model; name another file, or "
                "remove this one to start anew."
            )
        return True

    def rows_seen(self) -> None:
        """Write the file, if the last time was a while ago."""
        if time.monotonic() - self.saved > EVERY:
            self.save()

    def save(self) -> None:
        """Write the file."""
        watcher, follower = self.watcher, self.follower
        state: dict[str, Any] = {
            "kernull-watch": 1,
            "model": self.model,
            "data": follower.path,
            "header": base64.b64encode(follower.header).decode(),
            "place": follower.place,
            "rows": watcher.rows,
            "flagged": watcher.flagged,
            "alarms": watcher.alarms,
            "drift": watcher.test.state(),
        }
        write_whole(json.dumps(state).encode(), self.path)
        self.saved = time.monotonic()

    def _restore(self, found: dict[str, Any]) -> None:
        watcher, follower = self.watcher, self.follower
        watcher.rows, watcher.flagged = int(found["rows"]), int(found["flagged"])
        watcher.alarms = int(found["alarms"])
        watcher.test.restore(found["drift"])
        header = base64.b64decode(found["header"], validate=True)
        if follower.path == "-" or found["data"] != follower.path or not header:
            return  # other rows, of the same kind
        with open(follower.path, "rb") as file:
            if file.read(len(header)) == header:
                follower.header, follower.place = header, int(found["place"])
