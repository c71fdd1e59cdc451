"""Folders that are downloaded: what arrives, and what is refused."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from millrace import Client, MillraceError, errors, models
from millrace._folders import Entry, FetchingFiles
from millrace._sync.run import OutputFile, Run

LATER = {"expiresAt": "2099-01-01T00:00:00Z"}
OUT = "folder"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def entry(path: str, content: bytes, **more: Any) -> dict[str, Any]:
    return {"path": path, "size": len(content), "sha256": sha256(content), **more}


LONG = "長" * 85  # 255 bytes
FILES = {".hidden": b"h", "b/deep/x.sh": b"echo x", "b/empty.txt": b"", f"b/{LONG}": b"long", "c.txt": b"sea"}
TREE = [
    entry(".hidden", b"h"),
    entry("b/deep/x.sh", b"echo x", executable=True),
    entry("b/empty.txt", b""),
    {"path": "b/link", "size": 0, "link": "../c.txt"},
    entry(f"b/{LONG}", b"long"),
    entry("c.txt", b"sea"),
    {"path": "d", "size": 0, "folder": True},
    {"path": "e", "size": 0, "link": "b/../b/deep"},
]


class Folder:
    """A server with one folder. Addresses work as long as `generation` stays."""

    def __init__(self, entries: list[dict[str, Any]] = TREE, data: bytes = b"".join(FILES.values())) -> None:
        self.manifest = json.dumps({"version": 1, "entries": entries}).encode()
        self.data = data
        self.generation = 1
        self.ends: list[int] = []  # after so many bytes the next answers break off
        self.ranged = True
        self.ranges: list[str] = []

    @property
    def row(self) -> dict[str, Any]:
        there = f"https://bucket/{self.generation}"
        folder = {"files": 5, "bytes": len(self.data), "archiveUrl": f"{there}/zip", "dataUrl": f"{there}/data"}
        row: dict[str, Any] = {"key": "k", "name": OUT, "source": "upload", "contentType": "inode/directory"}
        row |= {"size": len(self.manifest), "sha256": sha256(self.manifest), "url": f"{there}/manifest"}
        return {**row, "directory": folder, "runId": None, "createdAt": "2026-01-01T00:00:00Z", **LATER}

    @property
    def file(self) -> models.File:
        return models.File.model_validate(self.row)

    def answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.host == "localhost":
            return httpx.Response(200, json={"success": True, "data": [self.row], "page": {}})
        assert "Authorization" not in request.headers
        _, generation, what = request.url.path.split("/")
        if int(generation) != self.generation:
            return httpx.Response(403)
        if what == "manifest":
            return httpx.Response(200, content=self.manifest)
        if not self.ranged:
            return httpx.Response(200, content=self.data)
        self.ranges.append(request.headers["Range"])
        first, _, last = request.headers["Range"].removeprefix("bytes=").partition("-")
        content = self.data[int(first) : int(last) + 1]
        return httpx.Response(206, stream=Broken(content, self.ends.pop(0)) if self.ends else httpx.ByteStream(content))

    @property
    def client(self) -> Client:
        return Client("http://localhost:1", "token", http=httpx.Client(transport=httpx.MockTransport(self.answer)))

    def download(self, to: str = ".", overwrite: bool = False) -> Path:
        return self.client.download(self.file, to, overwrite=overwrite)


class Broken(httpx.SyncByteStream):
    def __init__(self, content: bytes, end: int) -> None:
        self.content, self.end = content, end

    def __iter__(self) -> Any:
        yield self.content[: self.end]
        raise httpx.ReadError("cut off")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millrace._sync.transfer.sleep", lambda seconds: None)


def tree(folder: Path) -> dict[str, str | bytes | None]:
    """What is in a folder: the bytes of files, where links lead, and None for a folder."""
    found: dict[str, str | bytes | None] = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        found[name] = os.readlink(path) if path.is_symlink() else None if path.is_dir() else path.read_bytes()
    return found


WHOLE = {**FILES, "b": None, "b/deep": None, "b/link": "../c.txt", "d": None, "e": "b/../b/deep"}


def test_a_folder_arrives_as_it_is() -> None:
    server = Folder()
    folder = server.download()
    assert folder == Path(OUT) and tree(folder) == WHOLE
    assert os.access(folder / "b/deep/x.sh", os.X_OK)
    assert not (folder / "c.txt").stat().st_mode & 0o111
    assert server.ranges == ["bytes=0-13"]
    assert tree(server.download("other/name")) == WHOLE


def test_only_files_that_are_not_there_are_fetched() -> None:
    server = Folder()
    folder = server.download()
    server.ranges.clear()
    server.download()
    assert server.ranges == []
    (folder / "b/deep/x.sh").unlink()
    (folder / "c.txt").unlink()
    (folder / "e").unlink()
    server.download()
    assert server.ranges == ["bytes=1-6", "bytes=11-13"] and tree(folder) == WHOLE


def test_what_differs_stays_unless_it_may_be_replaced() -> None:
    server = Folder()
    folder = server.download()
    for name in ("c.txt", "b/empty.txt"):
        (folder / name).write_text("changed")
        (folder / ".hidden").unlink(missing_ok=True)
        with pytest.raises(FileExistsError, match=f"{name} is there already"):
            server.download()
        assert not (folder / ".hidden").exists()
        assert tree(server.download(overwrite=True)) == WHOLE
    (folder / "e").unlink()
    (folder / "e").symlink_to("c.txt")
    with pytest.raises(FileExistsError, match="e is there already"):
        server.download()
    assert tree(server.download(overwrite=True)) == WHOLE


def test_a_download_goes_on_where_it_broke_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millrace._sync.transfer.PIECE", 1)
    server = Folder()
    server.ends = [3, 0, 5]
    assert tree(server.download()) == WHOLE
    assert server.ranges == ["bytes=0-13", "bytes=3-13", "bytes=3-13", "bytes=8-13"]
    server.ends = [0] * 99
    with pytest.raises(errors.TransferFailed, match="could not be fetched: ReadError"):
        server.download("again")
    assert not [path for path in Path("again").rglob("*") if path.is_file()]


def test_what_comes_after_a_download_was_cancelled_is_dropped() -> None:
    part = FetchingFiles(Path(OUT), 0)
    for one in TREE[:2]:
        part.append(Entry.model_validate(one))
    with part:
        part.add(b"h")
    part.add(b"echo")  # by a thread that nobody waits for any more
    assert tree(Path(OUT)) == {".hidden": b"h"}


def test_an_address_that_has_expired_is_renewed() -> None:
    server = Folder()
    row = server.file
    server.generation = 2
    assert tree(server.client.download(row)) == WHOLE


def test_what_is_damaged_is_refused() -> None:
    server = Folder(data=b"hecho xlongSEA")
    with pytest.raises(errors.TransferFailed, match=r"c\.txt arrived damaged"):
        server.download()
    assert sorted(os.listdir(OUT)) == [".hidden", "b"]
    server = Folder()
    with pytest.raises(errors.TransferFailed, match="damaged"):
        server.client.download(server.file.model_copy(update={"sha256": sha256(b"another")}), "other")
    assert os.listdir() == [OUT]


@pytest.mark.parametrize(
    "entries",
    [
        {"version": 1},
        [{"path": "a", "size": 1}],
        [{"path": "a", "size": 0}],
        [entry("a", b"1", folder=True)],
        [entry("a", b"1", link="b")],
        [{"path": "a", "size": 1, "link": "b"}],
        [{"path": "a", "size": 0, "link": "b", "folder": True}],
        [{**entry("a", b"1"), "size": -1}],
    ],
)
def test_what_cannot_be_checked_is_refused(entries: Any) -> None:
    with pytest.raises(errors.TransferFailed, match="no list of the folder's files"):
        Folder(entries, b"1").download()
    assert os.listdir() == []


def test_a_store_without_ranges_can_send_a_whole_folder() -> None:
    server = Folder()
    server.ranged = False
    assert tree(server.download()) == WHOLE
    Path(OUT, "c.txt").unlink()
    with pytest.raises(errors.TransferFailed, match="ranges"):
        server.download()
    server.data += b"more"
    with pytest.raises(errors.TransferFailed, match="longer than the server said"):
        server.download("other")


@pytest.mark.parametrize(
    "path", ["", ".", "../x", "a/../../x", "/tmp/x", "a//b", "a/", "a\\..\\x", "a\x00", "a\nb", ".."]
)
def test_paths_stay_in_the_folder(path: str) -> None:
    with pytest.raises(errors.TransferFailed, match="is refused"):
        Folder([entry("a first file", b"1"), entry(path, b"x")], b"1x").download("in/folder")
    assert os.listdir() == []


@pytest.mark.parametrize(
    "links",
    [
        {"a": "/etc"},
        {"a": ".."},
        {"a/b": "../../x"},
        {"a/b": "..", "c": "a/b/.."},
        {"a": "b/..", "b": "c/d", "c/d": "../.."},
        {"a": "b\\..\\.."},
        {"a": "x\x00"},
    ],
)
def test_links_stay_in_the_folder(links: dict[str, str]) -> None:
    with pytest.raises(errors.TransferFailed, match="is refused"):
        Folder([{"path": path, "size": 0, "link": link} for path, link in links.items()], b"").download()
    assert os.listdir() == []


def test_links_that_lead_to_one_another_are_made() -> None:
    links = {"a": "b", "b": "a", "c/d": "../e/f/.", "e": "c", "none": "nowhere/at/all"}
    folder = Folder([{"path": path, "size": 0, "link": link} for path, link in links.items()], b"").download()
    assert {name: link for name, link in tree(folder).items() if link is not None} == links


def test_links_on_this_machine_are_not_followed() -> None:
    Path("outside/deep").mkdir(parents=True)
    Path("outside/c.txt").write_text("mine")
    Path(OUT).mkdir()
    Path(OUT, "b").symlink_to("../outside")
    with pytest.raises(FileExistsError, match="b is a link"):
        Folder().download(overwrite=True)
    Path(OUT, "b").unlink()
    Path(OUT, "c.txt").symlink_to("../outside/c.txt")
    with pytest.raises(FileExistsError, match=r"c\.txt is there already"):
        Folder().download()
    assert tree(Folder().download(overwrite=True)) == WHOLE
    assert tree(Path("outside")) == {"deep": None, "c.txt": b"mine"}
    shadowed = [{"path": "l", "size": 0, "link": "d"}, entry("l/x", b""), {"path": "d", "size": 0, "folder": True}]
    with pytest.raises(FileExistsError, match="l is a link"):
        Folder(shadowed, b"").download("shadowed")


def test_a_folder_is_no_file_to_read() -> None:
    row = {**Folder().row, "nodeId": "n", "nodeName": "n", "port": "p", "index": None, "reportUrl": None}
    output = OutputFile(cast(Run, None), models.Output.model_validate(row))
    assert repr(output) == "<OutputFile 'folder', 14 bytes>"
    for read in (output.read_bytes, output.read_text, output.to_pandas, output.to_polars, output.image):
        with pytest.raises(MillraceError, match="folder is a folder: download it"):
            read()


def test_an_older_server_gives_no_folders() -> None:
    server = Folder()
    row = server.row
    del row["directory"]["dataUrl"]
    with pytest.raises(MillraceError, match="only as archives"):
        server.client.download(models.File.model_validate(row))
