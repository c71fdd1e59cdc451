"""Holds a server against its own OpenAPI document with schemathesis, as somebody of each role.

  check.py path/to/millrace [role...]

Each role has a server of its own with an empty data folder, so that nobody finds what another left, and the same requests
are sent every time.
"""

import email
import email.policy
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import httpx
from httpx_sse import connect_sse

HERE = pathlib.Path(__file__).parent

# The owner is let into everything, so it is with the owner that every field of a request is bent. The others are mostly
# turned away, which takes fewer requests to see. `make test-all` has more of both.
def fuzzing(examples):
    return ["--phases", "examples,fuzzing", "--max-examples", str(examples)]


ALL = os.environ.get("MILLRACE_TEST_ALL")
PHASES = {
    "owner": ["--phases", "examples,coverage"] if ALL else fuzzing(3),
    "member": fuzzing(3 if ALL else 1),
    "viewer": fuzzing(3 if ALL else 1),
    "anonymous": fuzzing(3 if ALL else 1),
}


class Server:
    """A real one, that talks to nobody outside."""

    def __init__(self, program, data):
        self.data = pathlib.Path(data)
        self.log = open(self.data / "log", "w+")
        nowhere = "http://127.0.0.1:9"
        self.process = subprocess.Popen(
            [program, "serve", "--listen", "127.0.0.1:0", "--data", self.data / "data", "--runs-per-minute", "1000000", "--drain", "1s", "--log-level", "warn",
             "--image-registries", "nowhere.invalid", "--crossref-url", nowhere, "--openalex-url", nowhere, "--unpaywall-url", nowhere],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True, env={"PATH": os.environ["PATH"], "HOME": data},
        )
        for line in self.process.stdout:
            if found := re.search(r"listening on (.*)\)", line):
                self.base = "http://" + found[1]
                return
        sys.exit("the server did not start: " + self.said())

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def stop(self):
        """Ends the server, and reports whether it was still there and ended well."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60) == 0

    def call(self, method, path, body=None, token=None):
        request = urllib.request.Request(self.base + path, method=method, data=None if body is None else json.dumps(body).encode())
        request.add_header("Content-Type", "application/json")
        if token:
            request.add_header("Authorization", "Bearer " + token)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["data"]

    def sign_up(self, name):
        return self.call("POST", "/auth/sign-up", {"email": f"{name}@example.org", "password": "correct horse", "name": name})

    def mailed(self, name, kind):
        """The token in the link of this kind that was sent to somebody."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            for file in (self.data / "data" / "mail").glob("*.eml"):
                message = email.message_from_bytes(file.read_bytes(), policy=email.policy.default)
                found = re.search(f"/{kind}/([A-Za-z0-9_-]+)", message.get_body(("plain",)).get_content())
                if f"{name}@example.org" in message["to"] and found:
                    return found[1]
            time.sleep(0.05)
        sys.exit(f"no {kind} mail for {name}: {self.said()}")

    def team(self):
        """A team with an owner and somebody else, a workflow and a run of it."""
        ada, bob = self.sign_up("ada"), self.sign_up("bob")
        self.call("POST", "/auth/verify", {"token": self.mailed("ada", "verify")})
        self.call("POST", "/api/team/invite", {"email": "bob@example.org", "role": "member"}, ada["token"])
        self.call("POST", f"/auth/invitations/{self.mailed('bob', 'invitations')}/accept", token=bob["token"])
        definition = {"nodes": [{"id": "a", "command": "echo done > out.txt", "outputs": {"out": {"path": "out.txt"}}}]}
        workflow = self.call("POST", "/api/workflows", {"name": "a", "definition": definition}, ada["token"])
        run = self.call("POST", "/api/runs", {"workflowId": workflow["id"]}, ada["token"])
        self.follow(run["runId"], ada["token"])
        return ada, bob, {"TEAM": ada["team"]["id"], "WORKFLOW": workflow["id"], "RUN": run["runId"]}

    def follow(self, run, token):
        """Reads a run's stream as other people's library does: each of its events has a message, up to the end."""
        with httpx.Client(timeout=60) as client:
            with connect_sse(client, "GET", f"{self.base}/api/runs/{run}/stream", headers={"Authorization": "Bearer " + token}) as events:
                types = [event.json()["type"] for event in events.iter_sse()]
        if types[0] != "connected" or types[-1] != "done":
            sys.exit(f"the stream of a run: {types}")


def check(program, role):
    with tempfile.TemporaryDirectory(prefix="millrace-contract.") as data:
        server = Server(program, data)
        try:
            ada, bob, names = server.team()
            headers = {"X-Request-Id": "contract-" + role}
            if role == "owner":
                headers["Authorization"] = "Bearer " + ada["token"]
            elif role != "anonymous":
                server.call("PATCH", f"/auth/teams/{names['TEAM']}/members/{bob['user']['id']}", {"role": role}, ada["token"])
                headers |= {"Authorization": "Bearer " + bob["token"], "X-Team-Id": names["TEAM"]}
            started = time.monotonic()
            command = [pathlib.Path(sys.executable).with_name("schemathesis"), "--config-file", HERE / "schemathesis.toml",
                       "run", server.base + "/api/openapi.json", "--no-color", *PHASES[role]]
            for name, value in headers.items():
                command += ["--header", f"{name}: {value}"]
            result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=data, env=os.environ | names)
            # Who was signed out on the way, or lost the team, was let into nothing.
            if role != "anonymous" and httpx.get(server.base + "/api/me", headers=headers).json()["data"]["team"]["role"] != role:
                sys.exit(f"contract: the {role} is no {role} any more")
        finally:
            well = server.stop()
        holds = result.returncode == 0 and well
        if not holds:
            print(result.stdout, server.said(), sep="\n")
        print(f"contract: {role}: {'holds' if holds else 'broken'} after {time.monotonic() - started:.0f} s", flush=True)
        return holds


program, roles = sys.argv[1], sys.argv[2:] or list(PHASES)
with ThreadPoolExecutor(2) as two:
    if not all(list(two.map(lambda role: check(program, role), roles))):
        sys.exit(1)
