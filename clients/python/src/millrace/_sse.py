"""Server-Sent Events, as far as a run's stream uses them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Frame:
    id: str
    data: str


@dataclass
class Frames:
    """Puts lines together; `retry` is the pause before connecting again that the server asked for."""

    last_id: str = ""
    retry: float = 3.0
    _data: list[str] = field(default_factory=list[str])
    _rest: str = ""

    def feed(self, text: str) -> Iterator[Frame]:
        """Takes text as it comes, and gives the frames that it completes. Only line feeds end lines: what Python takes
        for others may be inside of a log."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            if frame := self._line(line.removesuffix("\r")):
                yield frame

    def _line(self, line: str) -> Frame | None:
        if not line:
            data, self._data = self._data, []
            return Frame(self.last_id, "\n".join(data)) if data else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "data":
                self._data.append(value)
            case "id":
                self.last_id = value
            case "retry" if value.isascii() and value.isdigit():
                self.retry = int(value) / 1000
            case _:
                pass  # a comment, or a field of tomorrow
        return None

    def reconnect(self) -> None:
        """Forgets what was cut off."""
        self._data, self._rest = [], ""
