"""Folders that are downloaded. Whoever made a folder chose the names in it, so nothing outside it is touched."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Annotated, Self

from pydantic import BaseModel, Field, ValidationError, model_validator

from . import models
from ._local import Fetching, part_of, safe_name, sha256_of
from .errors import MillraceError, TransferFailed

MOST_LINKS = 40  # that are followed one after the other, as on Linux


class Entry(BaseModel):
    """A file, a link, or a folder with nothing in it."""

    path: str
    size: Annotated[int, Field(ge=0)] = 0
    sha256: str = ""
    executable: bool = False
    link: str = ""
    folder: bool = False

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        """A file has a hash, and nothing else has bytes."""
        if bool(self.sha256) + bool(self.link) + self.folder != 1 or (self.size and not self.sha256):
            raise ValueError("it is not one thing")
        return self


class Manifest(BaseModel):
    """What is in a folder, in the order of its bytes."""

    entries: list[Entry]


def read_manifest(path: Path) -> list[Entry]:
    """Reads the entries of a manifest, none of which leaves the folder."""
    try:
        entries = Manifest.model_validate_json(path.read_bytes()).entries
    except ValidationError:
        raise TransferFailed("the server sent no list of the folder's files") from None
    links = {entry.path: entry.link for entry in entries if entry.link}
    for entry in entries:
        try:
            for name in entry.path.split("/"):
                safe_name(name)
            if entry.link:
                _check_link(entry.path, links)
        except ValueError:
            raise TransferFailed(f"the folder is refused: {entry.path!r} in it could lead out of it") from None
    return entries


def _check_link(path: str, links: Mapping[str, str]) -> None:
    """Refuses a link that leads out of the folder, also by way of other links. Nothing has to be where it leads."""
    *at, name = path.split("/")
    ahead, followed = [name], 0
    while ahead and followed <= MOST_LINKS:
        name = ahead.pop()
        if name in ("", "."):
            continue
        if name == "..":
            if not at:
                raise ValueError("above the folder")
            at.pop()
            continue
        link = links.get("/".join([*at, safe_name(name)]))
        if link is None:
            at.append(name)
            continue
        if link.startswith("/"):
            raise ValueError("an absolute path")
        ahead += reversed(link.split("/"))
        followed += 1


class FetchingFiles:
    """Files that follow one another in the bytes of a folder, and arrive so. Each is fetched as a file alone is."""

    def __init__(self, folder: Path, offset: int) -> None:
        self.folder, self.offset = folder, offset
        self.size = self.have = 0
        self._entries: list[Entry] = []
        self._begun = 0
        self._file: Fetching | None = None
        self._open = ExitStack()
        self._lock, self._ended = Lock(), False  # a thread may still add when its task was cancelled

    def append(self, entry: Entry) -> None:
        self._entries.append(entry)
        self.size += entry.size

    @property
    def end(self) -> int:
        return self.offset + self.size

    @property
    def whole(self) -> bool:
        return self.have >= self.size

    @property
    def range(self) -> str:
        return f"bytes={self.offset + self.have}-{self.end - 1}"

    def address(self, row: models.File | models.Output) -> str:
        if row.directory is None or row.directory.data_url is None:
            raise MillraceError("this server gives folders only as archives: download the folder in the app")
        return row.directory.data_url

    def __enter__(self) -> Self:
        return self

    def add(self, piece: bytes) -> None:
        rest = memoryview(piece)
        with self._lock:
            while rest and not self._ended:
                file = self._file or self._begin()
                some = rest[: file.size - file.have]
                file.add(some)
                self.have += len(some)
                rest = rest[len(some) :]
                if file.whole:
                    file.keep()
                    self._file = None
                    self._open.close()

    def _begin(self) -> Fetching:
        if self.whole:
            raise TransferFailed(f"{self.folder.name} is longer than the server said")
        self._file = self._open.enter_context(_fetching(self.folder, self._entries[self._begun]))
        self._begun += 1
        return self._file

    def restart(self) -> None:
        if self.offset + self.have > 0:
            raise TransferFailed(f"{self.folder.name} could not be fetched: its storage sends no ranges")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._ended = True
            self._open.close()


def missing_files(folder: Path, entries: Sequence[Entry], overwrite: bool) -> list[FetchingFiles]:
    """Finds the files with bytes that are not in the folder yet. What differs from an entry is refused or replaced."""
    found: list[FetchingFiles] = []
    offset = 0
    for entry in entries:
        place = _place(folder, entry)
        if not _matches(entry, place):
            if os.path.lexists(place) and not overwrite:
                raise FileExistsError(f"{place} is there already and differs: pass overwrite=True, or another place")
            if entry.size:
                if not found or found[-1].end != offset:
                    found.append(FetchingFiles(folder, offset))
                found[-1].append(entry)
        offset += entry.size
    return found


def make_rest(folder: Path, entries: Sequence[Entry]) -> None:
    """Makes what has no bytes: links, empty files and empty folders."""
    folder.mkdir(parents=True, exist_ok=True)
    for entry in entries:
        place = _place(folder, entry)
        if entry.size or _matches(entry, place):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if entry.folder:
            place.mkdir()
        elif entry.link:
            _link(place, entry.link)
        else:
            with _fetching(folder, entry) as file:
                file.keep()


def _place(folder: Path, entry: Entry) -> Path:
    """Where an entry belongs. No link on this machine is followed on the way."""
    *above, name = entry.path.split("/")
    place = folder
    for one in above:
        place /= one
        if place.is_symlink():
            raise FileExistsError(f"{place} is a link, and would lead elsewhere: remove it, or choose another place")
    return place / name


def _matches(entry: Entry, place: Path) -> bool:
    if entry.link or place.is_symlink():
        return place.is_symlink() and os.readlink(place) == entry.link
    if entry.folder:
        return place.is_dir()
    return place.is_file() and place.stat().st_size == entry.size and sha256_of(place) == entry.sha256


def _fetching(folder: Path, entry: Entry) -> Fetching:
    place = _place(folder, entry)
    place.parent.mkdir(parents=True, exist_ok=True)
    return Fetching(place, entry.size, entry.sha256, entry.executable)


def _link(place: Path, to: str) -> None:
    part = part_of(place)
    part.symlink_to(to)
    try:
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)
