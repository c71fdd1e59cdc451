# Generated from _async/transport.py; run make gen after changing that.
"""Sends calls: as somebody, again where that may help, and with the server's own words when it refuses."""

from __future__ import annotations

import contextlib
import json
import platform
import time
import uuid
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

import httpx

from .. import _calls as calls
from .. import _retry as retry
from .._calls import Call
from .._credentials import Account
from .._sse import Frame, Frames
from .._views import say
from .._waiting import Lock, Stream, blocking, sleep
from ..errors import APIError, ConnectionLost, MillraceError, NotFound, duration, error_type
from ..models import Detail

T = TypeVar("T")

# A stream says something every 25 seconds.
SILENCE = 80.0
STREAM_ATTEMPTS = 40
ATTEMPT = 10.0  # seconds, for a call that is sent once


class Transport:
    def __init__(self, account: Account, timeout: float, http: httpx.Client | None, progress: bool) -> None:
        self.account = account
        self.progress = progress  # whether people see what the client waits for
        self.http = http or httpx.Client(timeout=httpx.Timeout(timeout, connect=15))
        self._team_id: str | None = account.team if account.team.startswith("team_") else None
        self._team_lock = Lock()

    def close(self) -> None:
        self.http.close()

    def call(self, call: Call[T], key: str | None = None) -> T:
        answer, _ = self._answer(call, key)
        return answer

    def pages(self, call: Call[list[T]], most: int | None = None) -> Iterator[T]:
        """Gives the rows of a list, page by page."""
        given, query = 0, dict(call.query)
        while True:
            page = Call(call.method, call.path, call.answer, query=query)
            rows, body = self._answer(page, None)
            for row in rows:
                if given == most:
                    return
                given += 1
                yield row
            cursor = (body.get("page") or {}).get("nextCursor")
            if not cursor:
                return
            query["cursor"] = cursor

    def _answer(self, call: Call[T], key: str | None) -> tuple[T, Any]:
        headers = {"Idempotency-Key": key or str(uuid.uuid4())} if call.keyed else {}
        again = retry.repeatable(call.method, call.keyed or call.again)
        attempt = 0
        while True:
            attempt += 1
            try:
                response = self._send(call, headers)
            except httpx.HTTPError as error:
                pause = retry.after_error(error, attempt, again)
                if pause is None:
                    raise ConnectionLost(
                        f"cannot reach {self.account.server}: {error or type(error).__name__}"
                    ) from error
                sleep(pause)
                continue
            if response.is_success:
                return self._parse(call, response)
            failure = refusal(response)
            pause = retry.after_answer(response, failure.code, attempt, again)
            if pause is None:
                raise failure
            if response.status_code == 429:
                say(f"The client waits for {duration(pause)} and then goes on: {failure.message}", self.progress)
            sleep(pause)

    def _parse(self, call: Call[T], response: httpx.Response) -> tuple[T, Any]:
        try:
            body = response.json()
            return call.parse(body), body
        except (ValueError, KeyError, TypeError) as error:  # pydantic's are ValueErrors
            what = f"{self.account.server} does not answer {call.method} {call.path} as this version expects"
            raise MillraceError(f"{what}: is it a Millrace server of about the same age?") from error

    def _send(self, call: Call[Any], headers: dict[str, str]) -> httpx.Response:
        """Sends once; a token that was refused is renewed."""
        sent = (self._identity() if call.any_team else self._headers())
        arguments: dict[str, Any] = {"params": call.params(), "json": call.json()}
        url = self.account.server + call.path
        response = self.http.request(call.method, url, headers={**sent, **headers}, **arguments)
        if response.status_code == 401 and self.account.source:
            refused = sent["Authorization"].removeprefix("Bearer ")
            fresh = blocking(self.account.source.renewed, refused)
            if fresh != refused:
                sent["Authorization"] = "Bearer " + fresh
                response = self.http.request(call.method, url, headers={**sent, **headers}, **arguments)
        return response

    def attempt(self, call: Call[Any]) -> None:
        """Sends once, and says nothing of a failure: for what the server would do by itself, only later."""
        with contextlib.suppress(Exception):
            url = self.account.server + call.path
            self.http.request(call.method, url, headers=self._headers(), timeout=ATTEMPT)

    def _headers(self) -> dict[str, str]:
        headers = self._identity()
        if self.account.team:
            headers["X-Team-Id"] = self._team()
        return headers

    def _identity(self) -> dict[str, str]:
        headers = {"User-Agent": USER_AGENT}
        if self.account.source:
            headers["Authorization"] = "Bearer " + blocking(self.account.source.token)
        return headers

    def _team(self) -> str:
        """The id of the account's team, looked up once."""
        with self._team_lock:
            if self._team_id is None:
                self._team_id = self._find_team(self.account.team)
            return self._team_id

    def _find_team(self, name: str) -> str:
        found = [team.id for team in self.call(calls.teams()) if team.name.casefold() == name.casefold()]
        if len(found) != 1:
            count = f"{len(found)} of your teams are" if found else "none of your teams is"
            raise (MillraceError if found else NotFound)(f"{count} called {name!r}: name one by its id")
        return found[0]

    def frames(self, path: str, end: float | None = None) -> Stream[Frame]:
        """Gives what a stream says, over as many connections as it takes, until the caller has enough or the clock is
        past end."""
        frames, lost = Frames(), 0
        while True:
            try:
                with self._stream(path, frames.last_id, end) as response:
                    for text in response.iter_text():
                        for frame in frames.feed(text):
                            lost = 0
                            yield frame
                        remaining(end)
            except (httpx.HTTPError, APIError) as error:
                if isinstance(error, APIError) and error.status < 500:
                    raise
                lost += 1
                if lost >= STREAM_ATTEMPTS:
                    raise ConnectionLost(f"lost contact with {self.account.server}; the run goes on there") from error
            frames.reconnect()
            sleep(min(frames.retry, remaining(end)))

    @contextlib.contextmanager
    def _stream(self, path: str, last_id: str, end: float | None) -> Iterator[httpx.Response]:
        headers = {**self._headers(), "Accept": "text/event-stream"}
        if last_id:
            headers["Last-Event-ID"] = last_id
        timeout = httpx.Timeout(min(SILENCE, remaining(end) + 0.1), connect=15)
        with self.http.stream("GET", self.account.server + path, headers=headers, timeout=timeout) as response:
            if not response.is_success:
                response.read()
                raise refusal(response)
            yield response


def remaining(end: float | None) -> float:
    """The seconds until end."""
    left = float("inf") if end is None else end - time.monotonic()
    if left <= 0:
        raise TimeoutError("the time is over; the run goes on")
    return left


def refusal(response: httpx.Response) -> APIError:
    """The failure that an answer tells of, in the server's words where they are ours."""
    status = response.status_code
    body: Any = None
    with contextlib.suppress(ValueError):
        body = json.loads(response.content)
    if not isinstance(body, dict) or not isinstance(body.get("error"), str):  # a proxy, or a bucket
        return error_type(status)(f"the answer was {status} {response.reason_phrase}".strip(), status=status)
    return error_type(status)(
        body["error"],
        status=status,
        code=body.get("code", ""),
        request_id=body.get("requestId", ""),
        details=[Detail.model_validate(each) for each in body.get("details") or []],
        retry_after=retry.retry_after(response),
    )


def _user_agent() -> str:
    try:
        own = version("millrace-python")
    except PackageNotFoundError:
        own = "0"
    return f"millrace-python/{own} Python/{platform.python_version()}"


USER_AGENT = _user_agent()
