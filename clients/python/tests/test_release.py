"""What people get: the wheels that the server offers, the README and the notebook."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import httpx
import nbformat
import pytest
from nbclient import NotebookClient
from real_server import ROOT, Server

from millrace import Client, Workflow

PACKAGE = ROOT / "clients" / "python"
PINNED = ROOT / "clients" / "requirements.txt"


def pip(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pip",
        *map(str, arguments),
        "--quiet",
        "--no-input",
        "--disable-pip-version-check",
    ]
    return subprocess.run(command, capture_output=True, text=True)


def offered(server: Server) -> dict[str, dict[str, Any]]:
    """What the server offers, by kind."""
    files = httpx.get(server.url + "/clients/index.json").raise_for_status().json()["data"]
    return {file["kind"]: file for file in files}


def test_what_the_server_offers_installs_anywhere_and_runs_the_lines_of_the_readme(
    one_server: Server, tmp_path: Path
) -> None:
    fresh = tmp_path / "fresh"
    venv.create(fresh, with_pip=False)
    command = shlex.split(offered(one_server)["snakemake"]["install"])
    assert command[:2] == ["pip", "install"] and all("#sha256=" in each for each in command[2:]) and len(command) == 4
    done = pip("--python", fresh, "install", "--no-compile", "--constraint", PINNED, *command[2:])
    assert done.returncode == 0, done.stderr
    python = fresh / "bin" / "python"
    lines = re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), re.S)[0]
    assert len(lines.split("\n")) <= 11
    Path("a.txt").write_text("1\n2\n")
    Path("b.txt").write_text("1\n")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "MILLRACE_SERVER": one_server.url}
    environment["MILLRACE_TOKEN"] = one_server.sign_up()["token"]
    ran = subprocess.run([python, "-c", lines], env=environment, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "a.txt,2\nb.txt,1\n\n"), ran.stderr
    plugins = "from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry as Registry"
    plugins += "; assert Registry().is_installed('millrace')"
    subprocess.run([python, "-c", plugins], env=environment, check=True)
    # The client says which version it is.
    agent = "from importlib.metadata import version; from millrace._sync.transport import USER_AGENT as agent"
    agent += "; assert version('millrace-python') in agent, agent"
    subprocess.run([python, "-c", agent], env=environment, check=True)


def test_a_wheel_with_another_hash_is_refused(one_server: Server, tmp_path: Path) -> None:
    wheel = offered(one_server)["python"]
    other = f"millrace-python @ {wheel['url']}#sha256={'0' * 64}"
    done = pip("download", "--no-deps", "--dest", tmp_path, other)
    assert done.returncode != 0 and "DO NOT MATCH THE HASHES" in done.stderr, done.stderr


@pytest.mark.parametrize("option", [["--no-index", "--find-links"], ["--index-url"]])
def test_the_server_is_a_package_index(one_server: Server, tmp_path: Path, option: list[str]) -> None:
    files = offered(one_server)
    names = [files["python"]["project"], files["snakemake"]["project"]]
    done = pip("download", "--no-deps", "--dest", tmp_path, *option, one_server.url + "/clients/", *names)
    assert done.returncode == 0, done.stderr
    assert {each.name for each in tmp_path.glob("*.whl")} == {files["python"]["name"], files["snakemake"]["name"]}


def test_the_programs_of_the_page_run(one_server: Server) -> None:
    counts = Workflow("rna counts")
    counts.param("minQuality", 20)
    reads = counts.files("reads")
    command = "echo quality,lines > table.csv; echo $PARAM_minQuality,$(cat $INPUT_reads | wc -l) >> table.csv"
    counted = counts.task("count", command, inputs={"reads": reads}, outputs={"table": "table.csv"})
    counts.output("table", counted["table"])
    token = one_server.sign_up()["token"]
    with Client(one_server.url, token) as client:
        client.apply(counts)
    for name, text in {"a.fq": "1\n2\n", "b.fq": "3\n", "a.txt": "one two\n" * 6, "b.txt": "one two three\n"}.items():
        Path(name).write_text(text)
    programs = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.S)
    # A notebook shows what the last line of the first program is.
    programs.insert(1, "print(run.outputs['table'].to_pandas().to_csv(index=False))\n")
    Path("page.py").write_text("\n".join(programs))
    environment = {**os.environ, "MILLRACE_SERVER": one_server.url, "MILLRACE_TOKEN": token}
    environment["PYTHONPATH"] = str(PACKAGE / "src")
    ran = subprocess.run([sys.executable, "page.py"], env=environment, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "quality,lines\n25,3\n\n15\n\n"), ran.stderr


def test_the_notebook_runs(one_server: Server, tmp_path: Path) -> None:
    notebook = nbformat.read(ROOT / "docs" / "python.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    environment = {**os.environ, "MILLRACE_SERVER": one_server.url, "MILLRACE_TOKEN": one_server.sign_up()["token"]}
    environment |= {"PYTHONPATH": str(PACKAGE / "src"), "IPYTHONDIR": str(tmp_path / "ipython")}
    NotebookClient(notebook, timeout=120).execute(cwd=str(tmp_path), env=environment)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    html = "\n".join(output.get("data", {}).get("text/html", "") for output in outputs)
    assert "100 %" in html and "<svg" in html and "<table" in html
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
