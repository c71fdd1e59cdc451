"""Where events wait: a file for each execution, which outlives the server's absence and this process."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

FOLDER = Path(".snakemake") / "millrace"
MOST_LEFT = 20
MOST_BYTES = 256 << 20  # beyond it texts are left out


class Spool:
    """The first line is how the run began, each other an event with its number. Whoever sends it holds its lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open(path, "ab")  # noqa: SIM115
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with open(path, "rb") as lines:
            self._seq = sum(1 for _ in lines) - 1
        self._size = path.stat().st_size
        self._lock = threading.Lock()
        self.grown = threading.Event()

    @classmethod
    def create(cls, header: Mapping[str, Any]) -> Self:
        FOLDER.mkdir(parents=True, exist_ok=True)
        key = uuid.uuid4().hex
        spool = cls((FOLDER / f"{key}.jsonl").absolute())
        spool._write({"key": key, **header})
        spool._seq = 0
        return spool

    @classmethod
    def left_over(cls, folder: Path) -> Iterator[Self]:
        """Those of earlier executions that nobody sends, the oldest first; only the newest are kept."""
        paths = sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
        for number, path in enumerate(reversed(paths)):
            if number >= MOST_LEFT:
                path.unlink(missing_ok=True)
        for path in paths[-MOST_LEFT:]:
            with contextlib.suppress(OSError):
                yield cls(path)

    def end(self, finish: Mapping[str, Any]) -> None:
        """Says how it ended, where the process that knew has not: it was killed."""
        with open(self.path, "rb") as file:
            said = any(b'"finish":' in line for line in file)
        if not said:
            self.append({"finish": finish})

    def append(self, event: Mapping[str, Any]) -> None:
        with self._lock:
            if self._file.closed or (self._size > MOST_BYTES and "log" in event):
                return
            self._seq += 1
            self._write({"seq": self._seq, **event})
        self.grown.set()

    def _write(self, value: Mapping[str, Any]) -> None:
        line = (
            json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "replace") + b"\n"
        )
        self._file.write(line)
        self._file.flush()
        self._size += len(line)

    def header(self) -> dict[str, Any]:
        with open(self.path, "rb") as file:
            header: dict[str, Any] = json.loads(file.readline())
            return header

    def read(self, offset: int, most_events: int, most_bytes: int) -> tuple[list[dict[str, Any]], int]:
        """The events behind offset, and where they end. Offset 0 is before the header."""
        events: list[dict[str, Any]] = []
        with open(self.path, "rb") as file:
            file.seek(offset)
            start = offset
            while len(events) < most_events and offset - start < most_bytes:
                line = file.readline()
                if not line.endswith(b"\n"):  # nothing, or what was cut off
                    break
                if offset > 0:
                    with contextlib.suppress(ValueError):
                        events.append(json.loads(line))
                offset += len(line)
        return events, offset

    def remove(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self.close()

    def close(self) -> None:
        """Lets go of the file, and takes no more."""
        with self._lock:
            self._file.close()
