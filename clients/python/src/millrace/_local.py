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

from . import models
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
    bad = name in ("", ".", "..") or any(c in "/\\" or ord(c) < 32 or ord(c) == 127 for c in name)
    if bad or Path(name).name != name:  # on Windows, C:name as well
        raise ValueError(f"{name!r} is no name for a file here: say under which to keep it")
    return name


def target_of(to: str | os.PathLike[str], name: str) -> Path:
    """The place of a download: in a folder, or under another name."""
    target = Path(to)
    return target / safe_name(name) if target.is_dir() or str(to).endswith(("/", os.sep)) else target


def is_there(target: Path, sha256: str | None, overwrite: bool) -> bool:
    """Whether a file is at its place already. Another one there is refused, or may be replaced."""
    there = target.exists()
    if there and sha256 and sha256_of(target) == sha256:
        return True
    if there and not overwrite:
        raise FileExistsError(f"{target} is there already and differs: pass overwrite=True, or another place")
    target.parent.mkdir(parents=True, exist_ok=True)
    return False


def part_of(target: Path) -> Path:
    """A name beside a file for what is on its way there. Names have up to 255 bytes."""
    begin = target.name.encode(errors="replace")[:100].decode(errors="ignore")
    return target.with_name(f".{begin}.{secrets.token_hex(6)}.part")


class Fetching:
    """A file that arrives beside its place, and takes it once it is whole and its hash is right."""

    def __init__(self, target: Path, size: int, sha256: str | None, executable: bool = False) -> None:
        self.target, self.size, self.sha256, self.executable = target, size, sha256, executable
        self.have = 0
        self._digest = hashlib.sha256()

    @property
    def whole(self) -> bool:
        return self.have >= self.size

    @property
    def range(self) -> str | None:
        """What is missing, as a Range header has it; None: all of it."""
        return f"bytes={self.have}-" if self.have else None

    def address(self, row: models.File | models.Output) -> str:
        """Where the bytes are."""
        return row.url

    def __enter__(self) -> Self:
        self._part = part_of(self.target)
        self._file = open(self._part, "xb")
        return self

    def add(self, piece: bytes | memoryview) -> None:
        if self.have + len(piece) > self.size:
            raise TransferFailed(f"{self.target.name} is longer than the server said")
        self._file.write(piece)
        self._digest.update(piece)
        self.have += len(piece)

    def restart(self) -> None:
        """Begins again, where the answer does."""
        self._file.seek(0)
        self._file.truncate()
        self._digest, self.have = hashlib.sha256(), 0

    def sync(self) -> None:
        """Waits until what has arrived is on disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def keep(self) -> None:
        found = self._digest.hexdigest()
        if self.sha256 and found != self.sha256:
            raise TransferFailed(
                f"{self.target.name} arrived damaged: its SHA-256 is {found}, and should be {self.sha256}"
            )
        self._file.close()
        if self.executable:
            mode = self._part.stat().st_mode
            self._part.chmod(mode | (mode & 0o444) >> 2)  # whoever may read it may execute it
        self._part.replace(self.target)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._part.unlink(missing_ok=True)
