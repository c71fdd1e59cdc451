"""Whom the server is told that it speaks with: arguments first, then the environment, then the credentials that
`millrace login` keeps. They are read and renewed exactly as the command line does, under the same lock."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx

from .errors import ConnectionLost, MillraceError

DEFAULT_SERVER = "http://127.0.0.1:8080"
MARGIN = timedelta(seconds=30)  # a token must live through the call


class TokenSource(Protocol):
    def token(self) -> str: ...

    def renewed(self, refused: str) -> str: ...


@dataclass(frozen=True)
class GivenToken:
    """A token from an argument or the environment; nothing renews it."""

    value: str

    def token(self) -> str:
        return self.value

    def renewed(self, refused: str) -> str:
        return self.value


@dataclass
class KeptToken:
    """The token of the credentials file, renewed before it ends."""

    folder: Path
    server: str
    grant: dict[str, Any]

    def token(self) -> str:
        expires = self.grant.get("expires")
        ends = datetime.fromisoformat(expires) if expires else None
        if ends and _renewable(self.grant) and datetime.now(UTC) + MARGIN > ends:
            return self.renewed(self.grant["token"])
        return str(self.grant["token"])

    def renewed(self, refused: str) -> str:
        with _locked(self.folder):
            ring = read_ring(self.folder)
            kept: dict[str, Any] | None = ring["servers"].get(self.server)
            if kept is None:
                raise MillraceError(f"not signed in to {self.server}: run millrace login")
            if kept["token"] == refused and _renewable(kept):  # else another process was first
                _renew(self.server, kept)
                _write_ring(self.folder, ring)
            self.grant = kept
        return str(kept["token"])


@dataclass(frozen=True)
class Account:
    server: str
    team: str  # an id or a name; empty: the server's choice
    source: TokenSource | None


def find_account(server: str | None, token: str | None, team: str | None) -> Account:
    folder = config_folder()
    ring = read_ring(folder)
    address = server_url(server or os.environ.get("MILLRACE_SERVER") or ring.get("current") or DEFAULT_SERVER)
    chosen = team or os.environ.get("MILLRACE_TEAM") or ""
    if given := token or os.environ.get("MILLRACE_TOKEN"):
        return Account(address, chosen, GivenToken(given))
    grant = ring["servers"].get(address)
    if grant is None:
        return Account(address, chosen, None)
    return Account(address, chosen or grant.get("team", ""), KeptToken(folder, address, grant))


def config_folder() -> Path:
    """The same folder as Go's os.UserConfigDir gives the command line."""
    if sys.platform == "win32":
        base = os.environ.get("APPDATA", "")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Application Support")
    else:
        base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "millrace"


def server_url(text: str) -> str:
    if "://" not in text:
        local = text.partition(":")[0] in ("localhost", "127.0.0.1")
        text = ("http://" if local else "https://") + text
    parts = urlsplit(text)
    whole = parts.netloc and parts.scheme in ("http", "https") and not parts.path.strip("/")
    if not whole or "@" in parts.netloc or parts.query:
        raise ValueError(f"{text!r} is not a server address such as https://millrace.example.org")
    return f"{parts.scheme}://{parts.netloc.lower()}"


def read_ring(folder: Path) -> dict[str, Any]:
    path = folder / "credentials.json"
    try:
        ring = json.loads(path.read_text(encoding="utf-8"))
        return {**ring, "servers": ring.get("servers") or {}}
    except FileNotFoundError:
        return {"current": "", "servers": {}}
    except (ValueError, AttributeError, TypeError) as error:
        raise MillraceError(f"{path} is damaged ({error}): delete it and run millrace login") from error


def _write_ring(folder: Path, ring: dict[str, Any]) -> None:
    # A new file takes the place of the old one: a crash loses nothing.
    descriptor, name = tempfile.mkstemp(prefix=".credentials-", dir=folder)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(ring, file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, folder / "credentials.json")
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds the command line's own lock: a refresh token works once."""
    with open(folder / "lock", "a+") as lock:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _renewable(grant: dict[str, Any]) -> bool:
    return bool(grant.get("refreshToken") or grant.get("cookie"))


def _renew(server: str, grant: dict[str, Any]) -> None:
    """Puts a fresh token into grant."""
    with httpx.Client(base_url=server, timeout=30) as http:
        try:
            if cookie := grant.get("cookie"):
                answer = http.post("/auth/token", headers={"Cookie": cookie})
            else:
                form = {
                    "grant_type": "refresh_token",
                    "client_id": "millrace-cli",
                    "refresh_token": grant["refreshToken"],
                }
                answer = http.post("/oauth/token", data=form)
        except httpx.HTTPError as error:
            raise ConnectionLost(f"cannot reach {server} to renew the sign-in: {error}") from error
    if 400 <= answer.status_code < 500 and answer.status_code != 429:
        raise MillraceError("your session has expired: run millrace login")
    if answer.status_code != 200:
        raise ConnectionLost(f"{server} could not renew the sign-in (status {answer.status_code}): try again")
    body = answer.json()
    if cookie:
        grant["token"], grant["expires"] = body["data"]["token"], body["data"]["expiresAt"]
        return
    ends = datetime.now(UTC) + timedelta(seconds=body["expires_in"])
    grant["token"], grant["expires"] = body["access_token"], ends.isoformat().replace("+00:00", "Z")
    grant["refreshToken"] = body.get("refresh_token") or grant["refreshToken"]
