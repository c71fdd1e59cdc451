"""The event loop goes on while the async client works with files and tables."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import httpx
import pandas
import polars
import pytest
from test_folders import Folder
from test_uploads import SENT, Uploads

from millrace import AsyncClient, models
from millrace._async.run import AsyncOutput, AsyncOutputFile, AsyncRun
from millrace._async.uploads import AsyncUploads
from millrace._local import Fetching

SLOW: list[tuple[Any, str]] = [(Path, name) for name in ("stat", "iterdir", "rglob", "mkdir", "replace", "read_bytes")]
SLOW += [(Fetching, "add"), (Fetching, "sync"), (pandas, "read_csv"), (polars, "read_csv")]


Slowly = Callable[[Callable[[], Awaitable[None]]], set[str]]


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> Slowly:
    """Runs a function while each of the SLOW ones ends only after the event loop went on; gives the names of those called."""
    called: set[str] = set()

    def slow(loop: asyncio.AbstractEventLoop, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wait_for_loop(*arguments: Any, **options: Any) -> Any:
            called.add(name)
            went_on = threading.Event()
            loop.call_soon_threadsafe(went_on.set)
            assert went_on.wait(10), f"{name} holds up the event loop"
            return function(*arguments, **options)

        return wait_for_loop

    async def patched(main: Callable[[], Awaitable[None]]) -> None:
        with monkeypatch.context() as patches:
            for owner, name in SLOW:
                patches.setattr(owner, name, slow(asyncio.get_running_loop(), name, getattr(owner, name)))
            await main()

    def run(main: Callable[[], Awaitable[None]]) -> set[str]:
        asyncio.run(patched(main))
        return called

    return run


def test_while_files_and_folders_are_uploaded(slowly: Slowly) -> None:
    Path("texts/below").mkdir(parents=True)
    for name in ("texts/a.txt", "texts/below/b.txt", "c.txt"):
        Path(name).write_bytes(SENT)

    async def main() -> None:
        client = Uploads().async_client
        await client.upload("c.txt")
        await client.upload("c.txt", large_from=1)
        await client.upload("texts")
        uploads = AsyncUploads(client._transfer, "wf_1")
        uploads._definition = {"inputs": {"texts": {"type": "files"}, "folder": {"type": "directory"}}}
        ready = await uploads.ready({"texts": ["texts", Path("c.txt")], "folder": "texts"})
        assert ready == {"texts": ["k", "k", "k"], "folder": "k"}

    assert slowly(main) >= {"stat", "iterdir", "rglob"}


def test_while_files_and_folders_are_downloaded_and_read(slowly: Slowly) -> None:
    server = Folder()

    async def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=b"n\n1\n") if request.url.path == "/csv" else server.answer(request)

    async def main() -> None:
        http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
        client = AsyncClient("http://localhost:1", "token", http=http)
        await client.download(server.file, "folder")
        node = {"nodeId": "n", "nodeName": "n", "port": "p", "index": None, "reportUrl": None}
        row = models.Output.model_validate({**server.row, **node})
        update = {"name": "t.csv", "url": "https://bucket/csv", "size": 4, "directory": None, "sha256": ""}
        run = cast(AsyncRun, type("Run", (), {"_transport": client._transport}))
        output = AsyncOutput("table", [AsyncOutputFile(run, row.model_copy(update=update))])
        assert await output.read_bytes() == b"n\n1\n"
        assert len(await output.to_pandas()) == len(await output.to_polars()) == 1
        assert [path.name for path in await output.download("out/below")] == ["t.csv"]

    assert slowly(main) >= {"stat", "mkdir", "replace", "read_bytes", "add", "sync", "read_csv"}
