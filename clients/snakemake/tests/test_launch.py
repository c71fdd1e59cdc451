"""A real server launches a real Snakemake workflow from a Git repository."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from millrace import Client
from real_server import Server

SNAKEFILE = """
configfile: "config/config.yaml"
rule all:
    input: "results/sum.txt"
rule part:
    output: "parts/{n}.txt"
    shell: "echo {wildcards.n} > {output}"
rule sum:
    input: expand("parts/{n}.txt", n=range(config["parts"]))
    output: "results/sum.txt"
    params: label=config["label"]
    shell: "echo {params.label:q} > {output}; cat {input} >> {output}"
"""

# It would be words, were it part of a command.
LABEL = "it's $(false) --config a=b"

GIT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "git" / "sums"
    for name, text in {"workflow/Snakefile": SNAKEFILE, "config/config.yaml": "parts: 2\nlabel: none\n"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for command in ["init -q -b main", "config uploadpack.allowAnySHA1InWant true", "add -A", "commit -q -m first"]:
        subprocess.run(["git", *command.split()], cwd=folder, env=GIT, check=True)
    return folder


@pytest.fixture
def address(repository: Path) -> Iterator[str]:
    """Git's own program serves the repository."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            length = self.headers.get("Content-Length", "")
            variables = {
                "GIT_PROJECT_ROOT": str(repository.parent),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": length,
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            body = self.rfile.read(int(length or 0))
            done = subprocess.run(["git", "http-backend"], input=body, stdout=subprocess.PIPE, env=GIT | variables)
            head, _, rest = done.stdout.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
            self.send_response(int(fields.pop("Status", "200 OK").split()[0]))
            for name, value in (fields | {"Content-Length": str(len(rest))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(rest)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{served.server_port}/{repository.name}"
    served.shutdown()


def shows_its_rules(client: Client, run: str) -> None:
    """Rules are processes of the step that launches them, their jobs items with what they ran."""
    shown = client.request("GET", f"/api/runs/{run}", dict[str, Any], bare=True)
    nodes = {node["name"]: node for node in shown["nodes"] if node.get("launchedBy") == "pipeline"}
    states = {name: (node["status"], node["shards"]) for name, node in nodes.items()}
    assert states == {
        "all": ("succeeded", {"total": 1, "done": 1, "failed": 0}),
        "part": ("succeeded", {"total": 3, "done": 3, "failed": 0}),
        "sum": ("succeeded", {"total": 1, "done": 1, "failed": 0}),
    }
    assert nodes["sum"]["follows"] == [nodes["part"]["id"]]
    assert (shown["engine"], shown["kind"]) == ("snakemake", None)
    items = client.request("GET", f"/api/runs/{run}/nodes/{nodes['part']['id']}/shards", list[dict[str, Any]])
    assert sorted(item["item"] for item in items) == ["n=0", "n=1", "n=2"]
    scripts = [
        client.request("GET", f"/api/reported-runs/{run}/tasks/{item['index']}", dict[str, Any])["script"]
        for item in items
    ]
    assert sorted(scripts) == [f"echo {n} > parts/{n}.txt" for n in range(3)]


def test_a_workflow_is_launched_with_the_values_of_its_form(tmp_path: Path, address: str) -> None:
    # The Python of the tests may lie where a sandbox does not show it.
    engine = Path(sys.executable).parents[1]
    server = Server(tmp_path, "", "--fetch-allow-private", "--sandbox", "none", "--snakemake", str(engine))
    try:
        with Client(server.url, server.sign_up()["token"]) as client:
            made = client.request("POST", "/api/workflows", dict[str, Any], body={"git": {"git": address}})
            assert (made["kind"], made["problems"], made["warnings"]) == ("snakemake", [], [])
            assert made["definition"]["parameters"]["parts"] == {"type": "integer", "default": 2}
            run = client.run(made["id"], {"parts": 3, "label": LABEL}).wait()
            assert run.status == "completed", run.logs()
            [output] = run.outputs.values()
            folder = output.file.info.directory
            assert folder is not None
            archive = httpx.get(folder.archive_url).raise_for_status().content
            with zipfile.ZipFile(io.BytesIO(archive)) as files:
                [table] = [name for name in files.namelist() if name.endswith("sum.txt")]
                assert files.read(table).decode() == LABEL + "\n0\n1\n2\n"
            shows_its_rules(client, run.id)
    finally:
        server.stop()
