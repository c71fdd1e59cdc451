"""Sends what the spool holds, from a thread of its own, for as long as it takes."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

from millrace import Client
from millrace.errors import APIError, ConnectionLost

from .spool import Spool

BATCH_EVENTS, BATCH_BYTES = 500, 2 << 20
GATHER = 0.3  # seconds, so that events travel together
HEARTBEAT = 60.0
LONGEST_PAUSE = 15.0


@dataclass(frozen=True)
class Account:
    server: str | None
    token: str | None
    team: str | None


class Refused(Exception):
    """The server will never take it."""

    def __init__(self, error: APIError) -> None:
        self.of_the_body = error.status in (400, 413)
        super().__init__(str(error))


class Sender:
    def __init__(self, account: Account, spool: Spool) -> None:
        self._account = account
        self._spool = spool
        self._ending = threading.Event()
        self._deadline = float("inf")
        # A daemon: where the process must end, it ends. The spool is on disk.
        self._thread = threading.Thread(target=self._run, name="millrace", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self, wait: float) -> None:
        """Lets what is left be sent, for that many seconds at most."""
        self._deadline = time.monotonic() + wait
        self._ending.set()
        self._spool.grown.set()
        self._thread.join(wait)

    def _run(self) -> None:
        try:
            with Client(self._account.server, self._account.token, self._account.team, timeout=20) as client:
                if self._send_all(client, self._spool, live=True):
                    self._spool.remove()
                    self._send_left_over(client)
        except Exception as error:
            self._say(f"this run is not reported: {error}")
            self._spool.remove()

    def _send_left_over(self, client: Client) -> None:
        """Sends what earlier executions could not."""
        for old in Spool.left_over(self._spool.path.parent):
            old.end({"status": "failed", "message": "Snakemake ended without saying how."})
            try:
                sent = self._send_all(client, old, live=False)
            except Refused:
                sent = True  # nobody will ever take it
            old.remove() if sent else old.close()

    def _send_all(self, client: Client, spool: Spool, live: bool) -> bool:
        """Sends a spool to its end; False: the time was over before."""
        run = self._until_taken(client, "/api/reported-runs", spool.header())
        if run is None:
            return False
        path, offset, heard = f"/api/reported-runs/{run['runId']}/events", 0, time.monotonic()
        while True:
            ending = self._ending.is_set() or not live
            spool.grown.clear()
            events, offset_after = spool.read(offset, BATCH_EVENTS, BATCH_BYTES)
            if events:
                answer = self._send(client, path, events)
                if answer is None:
                    return False
                offset, heard = offset_after, time.monotonic()
                if answer.get("dropped"):
                    return True
                continue
            offset = offset_after
            if ending:
                return True
            if time.monotonic() - heard > HEARTBEAT:
                spool.append({})
                continue
            if spool.grown.wait(HEARTBEAT):
                self._ending.wait(GATHER)

    def _send(self, client: Client, path: str, events: list[dict[str, Any]]) -> dict[str, Any] | None:
        try:
            return self._until_taken(client, path, {"events": events})
        except Refused as error:
            if not error.of_the_body:
                raise
            if len(events) == 1:  # that one is at fault; the others are not
                return {}
        middle = len(events) // 2
        first = self._send(client, path, events[:middle])
        return None if first is None else self._send(client, path, events[middle:])

    def _until_taken(self, client: Client, path: str, body: Any) -> dict[str, Any] | None:
        """Sends until there is an answer; None: the time is over."""
        pause = 0.5
        while True:
            try:
                return client.request("POST", path, dict[str, Any], body=body)
            except APIError as error:
                if error.status < 500 and error.status not in (408, 429):
                    raise Refused(error) from error
            except ConnectionLost:
                pass
            left = self._deadline - time.monotonic()
            if left <= 0:
                return None
            if self._ending.is_set():  # the last chance: no long pauses
                time.sleep(min(0.5, left))
            else:
                self._ending.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def _say(self, text: str) -> None:
        with contextlib.suppress(OSError):
            print(f"millrace: {text}", file=sys.stderr)
