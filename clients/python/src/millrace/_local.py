"""Files and folders on this machine: their bytes and hashes, their names, and how one arrives whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .errors import TransferFailed

PIECE = 1 << 20


def sha256_of(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Content:
    """What is sent: the bytes of a file, or of the files of a folder one after the other."""

    def __init__(self, path: Path, files: Sequence[Path] | None = None) -> None:
        self.path = path
        self._files = [(file, file.stat().st_size) for file in ([path] if files is None else files)]
        self.size = sum(size for _, size in self._files)

    def pieces(self, offset: int, size: int) -> Iterator[bytes]:
        """The bytes from offset on, in pieces; fewer than size if a file became shorter."""
        for path, length in self._files:
            here = min(size, length - offset)
            if here > 0:
                yield from _read(path, offset, here)
                size -= here
            offset = max(0, offset - length)

    def sha256(self) -> str:
        digest = hashlib.sha256()
        for piece in self.pieces(0, self.size):
            digest.update(piece)
        return digest.hexdigest()

    def md5(self, offset: int, size: int) -> str:
        """The MD5 of a part, as Content-MD5 has it. It finds damage; it is no seal."""
        digest = hashlib.md5(usedforsecurity=False)
        for piece in self.pieces(offset, size):
            digest.update(piece)
        return base64.b64encode(digest.digest()).decode()


def _read(path: Path, offset: int, size: int) -> Iterator[bytes]:
    with open(path, "rb") as file:
        file.seek(offset)
        while size > 0 and (piece := file.read(min(PIECE, size))):
            size -= len(piece)
            yield piece


def entries_of(folder: Path) -> tuple[list[dict[str, Any]], list[Path]]:
    """All that is in a folder in the order of the paths, as the server takes it, and the files among it."""
    found = sorted(
        ((path.relative_to(folder).as_posix(), path) for path in _walk(folder)), key=lambda one: one[0].encode()
    )
    entries: list[dict[str, Any]] = []
    files: list[Path] = []
    for name, path in found:
        if path.is_symlink():
            entries.append({"path": name, "link": os.readlink(path)})
        elif path.is_dir():
            entries.append({"path": name, "folder": True})
        elif path.is_file():
            entries.append({"path": name, "size": path.stat().st_size})
            files.append(path)
        else:
            raise ValueError(f"{path} is no file, folder or link: a folder with it cannot be uploaded")
    return entries, files


def _walk(folder: Path) -> Iterator[Path]:
    """Files, links and empty folders. Links are not followed."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink() and any(path.iterdir()):
            yield from _walk(path)
        else:
            yield path


def safe_name(name: str) -> str:
    """Refuses a name that is more than a name: whoever made the file chose it."""
    if name in ("", ".", "..") or any(c in "/\\" or ord(c) < 32 or ord(c) == 127 for c in name):
        raise ValueError(f"{name!r} is no name for a file here: say under which to keep it")
    return name


class Fetching:
    """A file that arrives beside its place, and takes it once it is whole and its hash is right."""

    def __init__(self, target: Path, size: int, sha256: str | None) -> None:
        self.target, self.size, self.sha256 = target, size, sha256
        self.have = 0
        self._digest = hashlib.sha256()

    @property
    def whole(self) -> bool:
        return self.have >= self.size

    def __enter__(self) -> Self:
        self._name = self.target.with_name(f".{self.target.name[:100]}.{secrets.token_hex(6)}.part")
        self._file = open(self._name, "xb")
        return self

    def add(self, piece: bytes) -> None:
        if self.have + len(piece) > self.size:
            raise TransferFailed(f"{self.target.name} is longer than the server said")
        self._file.write(piece)
        self._digest.update(piece)
        self.have += len(piece)

    def restart(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self._digest, self.have = hashlib.sha256(), 0

    def keep(self) -> None:
        found = self._digest.hexdigest()
        if self.sha256 and found != self.sha256:
            raise TransferFailed(
                f"{self.target.name} arrived damaged: its SHA-256 is {found}, and should be {self.sha256}"
            )
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        os.replace(self._name, self.target)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._name.unlink(missing_ok=True)
