"""A real server, started from bin/millrace."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import uuid
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = Path(os.environ.get("MILLRACE_TEST_PROGRAM", ROOT / "bin" / "millrace"))


class Server:
    """A server that can be stopped and started again at the same address."""

    def __init__(self, folder: Path, database: str, *options: str) -> None:
        self.folder, self.database, self.listen = folder, database, "127.0.0.1:0"
        self.options = options
        self.start()

    def start(self) -> None:
        command = [str(PROGRAM), "serve", "--listen", self.listen, "--data", str(self.folder / "data")]
        command += ["--runs-per-minute", "100000", "--drain", "1s", "--log-level", "warn", "--sign-up", "open"]
        command += ["--min-free-disk", "1MB"]  # these need little
        if self.database:
            command += ["--database-url", self.database]
        command += self.options
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        with open(self.folder / "log", "a") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
            )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := re.search(r"listening on (.*)\)", line):
                self.listen = found[1]
                return
        raise AssertionError("the server did not start: " + (self.folder / "log").read_text())

    @property
    def url(self) -> str:
        return "http://" + self.listen

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def sign_up(self) -> dict[str, str]:
        """Somebody new, with a token that lasts."""
        email = f"{uuid.uuid4().hex}@example.org"
        person = {"email": email, "password": "correct horse", "name": "Ada"}
        answer = httpx.post(self.url + "/auth/sign-up", json=person).raise_for_status()
        session = {"Authorization": "Bearer " + answer.json()["data"]["token"]}
        tokens = {}
        for name, scopes in {"token": {}, "report": {"scopes": ["report"]}}.items():
            made = httpx.post(self.url + "/auth/api-tokens", json={"name": name, **scopes}, headers=session)
            tokens[name] = made.raise_for_status().json()["data"]["token"]
        return {"email": email, "password": "correct horse", **tokens}
