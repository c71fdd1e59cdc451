"""What may be given as an input of a run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias


class Stored(Protocol):
    """A file that the server has: a row of files or outputs, or what a run made."""

    @property
    def key(self) -> str: ...


InputValue: TypeAlias = str | os.PathLike[str] | Stored | Mapping[str, Any]


def local_path(value: str | os.PathLike[str]) -> Path | None:
    """The file on this machine that is meant, or None for an address or a key of the server."""
    if isinstance(value, str) and "://" in value:
        return None
    path = Path(value)
    if path.is_file():
        return path
    if isinstance(value, str) and value.startswith("teams/"):
        return None
    raise FileNotFoundError(f"{value} is no file here, no address, and no key of the server")
