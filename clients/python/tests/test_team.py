"""The team of a client that names it: every request says which, whatever came before."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from test_parts import ME, failure

from millrace import AsyncClient, Client, MillraceError, errors, models

ONE_LOOKUP = [("/auth/teams", None), ("/api/me", "team_2"), ("/api/me", "team_2")]


class Teams:
    """A server that notes the team of each request. Its first lookups of teams give these answers."""

    def __init__(self, *lookups: httpx.Response | Exception) -> None:
        self.lookups = list(lookups)
        self.named: list[tuple[str, str | None]] = []
        self.to_cancel: list[asyncio.Task[models.Me]] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.named.append((request.url.path, request.headers.get("X-Team-Id")))
        if request.url.path != "/auth/teams":
            return httpx.Response(200, json={"success": True, "data": ME})
        if not self.lookups:
            return httpx.Response(200, json={"success": True, "data": [{"id": "team_2", "name": "Okoye Lab"}]})
        found = self.lookups.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    async def later(self, request: httpx.Request) -> httpx.Response:
        while self.to_cancel:
            self.to_cancel.pop().cancel()
        await asyncio.sleep(0)  # other tasks go on here
        return self.answer(request)

    def client(self) -> Client:
        http = httpx.Client(transport=httpx.MockTransport(self.answer))
        return Client("http://localhost:1", "token", "okoye lab", http=http)

    def async_client(self) -> AsyncClient:
        http = httpx.AsyncClient(transport=httpx.MockTransport(self.later))
        return AsyncClient("http://localhost:1", "token", "okoye lab", http=http)


def test_calls_that_begin_together_name_the_team() -> None:
    server = Teams()

    async def main() -> None:
        client = server.async_client()
        await asyncio.gather(client.me(), client.me())

    asyncio.run(main())
    assert server.named == ONE_LOOKUP


def test_threads_that_begin_together_name_the_team() -> None:
    server = Teams()
    client = server.client()
    with ThreadPoolExecutor(2) as pool:
        assert [me.name for me in pool.map(lambda _: client.me(), range(2))] == ["Ada", "Ada"]
    assert server.named == ONE_LOOKUP


@pytest.mark.parametrize(
    ("failures", "error"),
    [
        ([failure(429, "rate_limited", **{"Retry-After": "3600"})], errors.RateLimited),
        ([failure(401, "token_expired")], errors.NotSignedIn),
        ([httpx.Response(200, json={"success": True, "data": []})], errors.NotFound),
        ([httpx.ReadError("cut off")] * 6, errors.ConnectionLost),
    ],
)
def test_a_lookup_that_failed_is_made_again(
    monkeypatch: pytest.MonkeyPatch, failures: list[httpx.Response | Exception], error: type[MillraceError]
) -> None:
    monkeypatch.setattr("millrace._sync.transport.sleep", lambda seconds: None)
    server = Teams(*failures)
    client = server.client()
    with pytest.raises(error):
        client.me()
    server.named.clear()
    client.me()
    client.me()
    assert server.named == ONE_LOOKUP


def test_a_lookup_that_was_cancelled_is_made_again() -> None:
    server = Teams()

    async def main() -> None:
        client = server.async_client()
        first = asyncio.create_task(client.me())
        server.to_cancel.append(first)
        with pytest.raises(asyncio.CancelledError):
            await first
        await client.me()
        await client.me()

    asyncio.run(main())
    assert server.named == ONE_LOOKUP
