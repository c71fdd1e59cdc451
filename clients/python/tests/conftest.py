"""A real server, started from bin/millrace, for each database that there is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_server import PROGRAM, Server

from millrace import Client


def databases() -> list[str]:
    return ["sqlite", *(["postgres"] if os.environ.get("MILLRACE_TEST_POSTGRES") else [])]


def started(folder: Path, database: str) -> Iterator[Server]:
    if not PROGRAM.exists():
        raise AssertionError(f"{PROGRAM} is not there: run make build")
    server = Server(folder, database)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def one_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server with its embedded database, for what no database changes."""
    yield from started(tmp_path_factory.mktemp("sqlite"), "")


@pytest.fixture(scope="session", params=databases())
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on each database that there is."""
    if request.param == "sqlite":
        yield request.getfixturevalue("one_server")
    else:
        yield from started(tmp_path_factory.mktemp("postgres"), os.environ["MILLRACE_TEST_POSTGRES"])


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody's credentials, and an empty folder to work in."""
    for name in ("MILLRACE_SERVER", "MILLRACE_TOKEN", "MILLRACE_TEAM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url, server.sign_up()["token"]) as signed_in:
        yield signed_in


@pytest.fixture
def one_client(one_server: Server) -> Iterator[Client]:
    with Client(one_server.url, one_server.sign_up()["token"]) as signed_in:
        yield signed_in
