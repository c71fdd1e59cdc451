"""Events in a file that somebody else follows: a line of JSON each, with its number."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any


class EventsFile:
    def __init__(self, path: str) -> None:
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115
        self._seq = 0
        self._lock = threading.Lock()

    def append(self, event: Mapping[str, Any]) -> None:
        if "log" in event:  # what Snakemake prints is in the log already
            return
        with self._lock:
            self._seq += 1
            line = json.dumps({"seq": self._seq, **event}, ensure_ascii=False, separators=(",", ":"), default=str)
            self._file.write(line.encode("utf-8", "replace") + b"\n")
