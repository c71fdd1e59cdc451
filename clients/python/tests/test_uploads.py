"""Uploads that meet a connection that breaks, a server that takes its time, and people who change their mind."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import httpx
import pytest
from test_parts import failure

from millrace import AsyncClient, Client, errors

SENT = b"0123456789"
LATER = {"expiresAt": "2026-01-01T00:00:00Z"}
ROW = {
    "key": "k",
    "name": "f.txt",
    "source": "upload",
    "size": len(SENT),
    "contentType": "text/plain",
    "sha256": hashlib.sha256(SENT).hexdigest(),
    "runId": None,
    "createdAt": "2026-01-01T00:00:00Z",
    "url": "https://b/k",
    **LATER,
}


class Uploads:
    """A server that takes uploads, in parts of five bytes. The first requests of a kind get these answers instead."""

    def __init__(self, **instead: list[httpx.Response | Exception]) -> None:
        self.instead = instead
        self.seen: list[str] = []
        self.going: asyncio.Task[Any] | None = None  # is cancelled while it sends

    def answer(self, request: httpx.Request) -> httpx.Response:
        kind = request.url.path.rpartition("/")[2] if request.method == "POST" else request.method.lower()
        self.seen.append(kind)
        if self.instead.get(kind):
            answer = self.instead[kind].pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        data: Any = ROW
        if kind == "presign":
            data = {"url": "https://b/k", "key": "k", "method": "PUT", **LATER}
        elif kind == "uploads":
            data = {"uploadId": "u", "key": "k", "partSize": 5, "partCount": 2, **LATER}
        elif kind == "parts":
            data = [{"number": 1, "url": "https://b/1", "size": 5, **LATER}]
        elif kind == "get":
            data = [ROW]
        elif kind == "delete":
            assert request.url.path == "/api/files/uploads/u"
            data = {"aborted": True, "uploadId": "u"}
        return httpx.Response(200, json={"success": True, "data": data, "page": {"nextCursor": None}})

    async def later(self, request: httpx.Request) -> httpx.Response:
        if request.method == "PUT" and self.going:
            self.going.cancel()
        await asyncio.sleep(0)  # a task that was cancelled ends here
        return self.answer(request)

    @property
    def client(self) -> Client:
        return Client("http://localhost:1", "token", http=httpx.Client(transport=httpx.MockTransport(self.answer)))

    @property
    def async_client(self) -> AsyncClient:
        http = httpx.AsyncClient(transport=httpx.MockTransport(self.later))
        return AsyncClient("http://localhost:1", "token", http=http)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    pauses: list[float] = []
    for module in ("transfer", "transport"):
        monkeypatch.setattr(f"millrace._sync.{module}.sleep", pauses.append)
    return pauses


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "f.txt"
    path.write_bytes(SENT)
    return path


def lost(times: int) -> list[httpx.Response | Exception]:
    return [httpx.ReadTimeout("nothing came")] * times


@pytest.mark.parametrize(
    "instead",
    [
        {"parts": [httpx.ReadError("cut off")]},
        {"parts": [failure(500, "internal")]},
        {"complete": lost(1)},
        {"complete": lost(7)},
        {"complete": [failure(500, "internal")]},
    ],
)
def test_an_upload_in_parts_goes_on(file: Path, instead: dict[str, list[httpx.Response | Exception]]) -> None:
    server = Uploads(**instead)
    assert server.client.upload(file, large_from=1).key == "k"
    assert "delete" not in server.seen


def test_a_small_upload_goes_on(file: Path) -> None:
    server = Uploads(presign=lost(1), put=[httpx.ReadError("cut off")])
    assert server.client.upload(file).key == "k"


def test_a_refusal_of_the_server_is_no_reason_to_ask_again(file: Path) -> None:
    server = Uploads(parts=[failure(403, "forbidden")] * 9)
    with pytest.raises(errors.Forbidden):
        server.client.upload(file, large_from=1)
    assert server.seen.count("parts") <= 2  # of each part


def test_an_upload_that_failed_is_called_off(file: Path) -> None:
    server = Uploads(put=[httpx.Response(400)] * 9, delete=[failure(500, "internal")])
    with pytest.raises(errors.TransferFailed, match="could not be sent"):
        server.client.upload(file, large_from=1)
    assert server.seen[-1] == "delete" and server.seen.count("delete") == 1
    server = Uploads(complete=[failure(400, "sha256_mismatch")], delete=lost(1))
    with pytest.raises(errors.InvalidRequest):
        server.client.upload(file, large_from=1)
    assert server.seen[-1] == "delete"


def test_an_upload_that_was_interrupted_is_called_off(file: Path) -> None:
    server = Uploads()

    async def main() -> None:
        server.going = asyncio.create_task(server.async_client.upload(file, large_from=1))
        with pytest.raises(asyncio.CancelledError):
            await server.going

    asyncio.run(main())
    assert server.seen[-1] == "delete"


def nothing(times: int) -> list[httpx.Response | Exception]:
    return [httpx.Response(200, json={"success": True, "data": [], "page": {}}) for _ in range(times)]


def test_a_file_that_the_server_is_still_settling_is_waited_for(file: Path, pauses: list[float]) -> None:
    server = Uploads(get=nothing(9))
    assert server.client.upload(file).key == "k"
    assert server.seen.count("get") == 10 and 20 < sum(pauses) < 90
    pauses.clear()
    with pytest.raises(errors.TransferFailed, match="did not arrive"):
        Uploads(get=nothing(99)).client.upload(file)
    assert 90 <= sum(pauses) < 120
