"""Snakemake itself, with the plugin, against a real server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from millrace import Client, models
from real_server import ROOT, Server

PARTS = 296  # and four others
AWAY = 20.0  # seconds

SNAKEFILE = """
rule all:
    input: "sum.txt", "boom.txt"
rule gate:
    output: "gate.txt"
    shell: "until [ -e opened ]; do sleep 0.1; done; touch {output}"
rule part:
    input: lambda wildcards: ["gate.txt"] if int(wildcards.n) >= 100 else []
    output: "parts/{n}.txt"
    shell: "echo {wildcards.n} > {output}"
rule flaky:
    input: "parts/1.txt"
    output: "flaky.txt"
    retries: 2
    shell: "echo once more >> tries; test $(wc -l < tries) -ge 2 && cp {input} {output}"
rule boom:
    input: "parts/2.txt"
    output: "boom.txt"
    log: "boom.log"
    shell: "echo '<b>no luck</b>' > {log}; exit 3"
rule sum:
    input: expand("parts/{n}.txt", n=range(%d)), "flaky.txt"
    output: "sum.txt"
    shell: "cat parts/*.txt > {output}"
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    folder = tmp_path / "server"
    folder.mkdir()
    started = Server(folder, "")
    yield started
    started.stop()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "Snakefile").write_text(SNAKEFILE % PARTS)
    return folder


PLUGIN = ROOT / "clients" / "snakemake" / "src"
CLIENT = ROOT / "clients" / "python" / "src"


def snakemake(work: Path, server: Server, token: str, *arguments: str) -> subprocess.Popen[bytes]:
    return begin(work, server.url, token, [PLUGIN, CLIENT], *arguments)


def begin(work: Path, url: str, token: str, packages: list[Path], *arguments: str) -> subprocess.Popen[bytes]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(work),
        "MILLRACE_SERVER": url,
        "MILLRACE_TOKEN": token,
    }
    environment["PYTHONPATH"] = os.pathsep.join(map(str, packages))
    program = str(Path(sys.executable).with_name("snakemake"))
    command = [program, "--cores", "4", "--logger", "millrace", "--logger-millrace-project", "sums", *arguments]
    with open(work / "said", "w") as said:
        return subprocess.Popen(command, cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said)


def until(true: Callable[[], Any]) -> None:
    end = time.monotonic() + 120
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def made(work: Path) -> int:
    return len(list(work.glob("parts/*.txt")))


def picture(run: models.Run) -> dict[str, Any]:
    """What is left of a run when times are left out."""
    nodes = {
        n.name: (n.status, (n.shards.total, n.shards.done, n.shards.failed) if n.shards else None) for n in run.nodes
    }
    edges = {(e.source, e.target) for e in run.definition.edges or []}
    return {"status": run.status, "nodes": nodes, "edges": len(edges)}


def test_a_server_that_is_away_changes_nothing(server: Server, work: Path) -> None:
    person = server.sign_up()
    token, client = person["report"], Client(server.url, person["token"])
    running = snakemake(work, server, token, "--keep-going", "--logger-millrace-exit-wait", "120")
    until(lambda: any(node.name == "gate" and node.status == "running" for node in nodes(client)))
    server.stop()
    back = time.monotonic() + AWAY
    (work / "opened").touch()
    until(lambda: made(work) > 200)  # it goes on
    until(lambda: time.monotonic() >= back)
    server.start()
    assert running.wait(180) == 1, (work / "said").read_text()

    [row] = client.runs()
    run = client.get_run(row.id)
    assert (run.info.workflow_name, run.status) == ("sums", "failed"), run.info
    assert picture(run.info) == {
        "status": "failed",
        "nodes": {
            "all": ("skipped", (1, 0, 0)),
            "gate": ("succeeded", (1, 1, 0)),
            "part": ("succeeded", (PARTS, PARTS, 0)),
            "flaky": ("succeeded", (1, 1, 0)),
            "boom": ("failed", (1, 1, 1)),
            "sum": ("succeeded", (1, 1, 0)),
        },
        "edges": 7,
    }
    [boom] = shards(client, row.id, "boom")
    assert [(a.attempt, a.exit_code) for a in boom.attempts] == [(1, None)]
    assert [a.attempt for a in shards(client, row.id, "flaky")[0].attempts] == [1, 2]
    told = client.request("GET", f"/api/reported-runs/{row.id}/tasks/{boom.index}", dict[str, Any])
    assert "<b>no luck</b>" in told["message"] and "exit 3" in told["script"]
    assert not list((work / ".snakemake" / "millrace").iterdir())


def nodes(client: Client) -> list[models.RunNode]:
    return [node for row in client.runs() for node in client.get_run(row.id).info.nodes]


def shards(client: Client, run: str, node: str) -> list[models.Shard]:
    id = next(n.id for n in client.get_run(run).info.nodes if n.name == node)
    return client.request("GET", f"/api/runs/{run}/nodes/{id}/shards", list[models.Shard])


def test_what_could_not_be_sent_is_sent_by_the_next_execution(server: Server, work: Path) -> None:
    person = server.sign_up()
    token, client = person["report"], Client(server.url, person["token"])
    server.stop()
    first = snakemake(work, server, token, "--logger-millrace-exit-wait", "0", "parts/1.txt")
    assert first.wait(120) == 0 and len(list((work / ".snakemake" / "millrace").iterdir())) == 1
    server.start()
    second = snakemake(work, server, token, "--logger-millrace-exit-wait", "120", "parts/2.txt")
    assert second.wait(120) == 0
    runs = client.runs()
    assert [row.status for row in runs] == ["completed", "completed"]
    assert not list((work / ".snakemake" / "millrace").iterdir())


def test_an_execution_that_was_killed_is_ended_by_the_next(server: Server, work: Path) -> None:
    person = server.sign_up()
    token, client = person["report"], Client(server.url, person["token"])
    killed = snakemake(work, server, token, "gate.txt")
    until(lambda: any(node.status == "running" for node in nodes(client)))
    killed.kill()
    killed.wait()
    (work / "opened").touch()
    assert (
        snakemake(work, server, token, "--nolock", "--logger-millrace-exit-wait", "120", "parts/1.txt").wait(120) == 0
    )
    assert [row.status for row in client.runs()] == ["completed", "failed"]
    assert "without saying how" in str(client.runs()[1].error_message)


def test_a_token_that_is_refused_is_said_once_and_the_workflow_goes_on(server: Server, work: Path) -> None:
    assert snakemake(work, server, "mrt_wrong", "parts/1.txt", "parts/2.txt").wait(120) == 0
    said = (work / "said").read_text()
    assert said.count("millrace: ") == 1 and made(work) == 2 and "mrt_wrong" not in said
    assert not list((work / ".snakemake" / "millrace").iterdir())
    assert snakemake(work, server, "mrt_wrong", "--dry-run").wait(120) == 0
    assert "millrace: " not in (work / "said").read_text()


@pytest.mark.parametrize("stranger", [False, True])
def test_without_the_client_it_is_said_how_to_install_it_and_the_workflow_goes_on(
    tmp_path: Path, work: Path, stranger: bool
) -> None:
    packages = [PLUGIN]
    if stranger:  # a package of this name from an index
        (tmp_path / "index" / "millrace").mkdir(parents=True)
        (tmp_path / "index" / "millrace" / "__init__.py").write_text("")
        packages.append(tmp_path / "index")
    process = begin(work, "http://127.0.0.1:1", "none", packages, "parts/3.txt")
    (work / "opened").touch()
    assert process.wait() == 0, (work / "said").read_text()
    said = (work / "said").read_text()
    assert said.count("the command for Snakemake that you find on http://127.0.0.1:1/clients/") == 1, said


def example(page: str, begins: str) -> str:
    """The example of a page that begins so."""
    found = re.search(rf"```[a-z]+\n({re.escape(begins)}.*?)```", (ROOT / "docs" / page).read_text(), re.S)
    assert found, f"{page} has no example that begins with {begins}"
    return found[1]


def test_the_lines_of_the_pages_report_the_workflow_of_the_pages(server: Server, tmp_path: Path) -> None:
    person = server.sign_up()
    folder = tmp_path / "lines"
    (folder / "reads").mkdir(parents=True)
    (folder / "reads" / "a.fq").write_text("a\nb\n")
    (folder / "reads" / "b.fq").write_text("c\nd\ne\n")
    (folder / "config.yaml").write_text("samples: [a, b]\n")
    (folder / "Snakefile").write_text('configfile: "config.yaml"\n' + example("coming-from.md", "rule total"))
    lines = example("snakemake.md", "export").replace("https://millrace.example.org", server.url)
    lines = lines.replace("MILLRACE_TOKEN=…", "MILLRACE_TOKEN=" + person["report"])
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {"PATH": programs, "HOME": str(folder), "PYTHONPATH": f"{PLUGIN}{os.pathsep}{CLIENT}"}
    subprocess.run(["bash", "-euc", lines], cwd=folder, env=environment, check=True)
    assert (folder / "total.txt").read_text() == "5\n"
    [row] = Client(server.url, person["token"]).runs()
    run = Client(server.url, person["token"]).get_run(row.id)
    assert (run.info.workflow_name, run.status) == ("lines", "completed")
    assert {node.name: node.status for node in run.info.nodes} == {"total": "succeeded", "count": "succeeded"}
