"""What people get: the wheel, the README and the notebook."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from real_server import ROOT, Server

PACKAGE = ROOT / "clients" / "python"
PINNED = ROOT / "clients" / "requirements.txt"


def test_the_wheel_installs_anywhere_and_runs_the_lines_of_the_readme(one_server: Server, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(PACKAGE)]
    subprocess.run(build, check=True, capture_output=True)
    fresh = tmp_path / "fresh"
    venv.create(fresh, with_pip=False)
    wheel = next(tmp_path.glob("*.whl"))
    install = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(fresh),
        "install",
        "--quiet",
        "--no-input",
        "--no-compile",
        "--constraint",
        str(PINNED),
        str(wheel),
    ]
    subprocess.run(install, check=True)
    lines = re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), re.S)[0]
    assert len(lines.split("\n")) <= 11
    Path("a.txt").write_text("1\n2\n")
    Path("b.txt").write_text("1\n")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "MILLRACE_SERVER": one_server.url}
    environment["MILLRACE_TOKEN"] = one_server.sign_up()["token"]
    done = subprocess.run([fresh / "bin" / "python", "-c", lines], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "a.txt,2\nb.txt,1\n\n"), done.stderr


def test_the_notebook_runs(one_server: Server, tmp_path: Path) -> None:
    notebook = nbformat.read(ROOT / "docs" / "python.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    environment = {**os.environ, "MILLRACE_SERVER": one_server.url, "MILLRACE_TOKEN": one_server.sign_up()["token"]}
    environment |= {"PYTHONPATH": str(PACKAGE / "src"), "IPYTHONDIR": str(tmp_path / "ipython")}
    NotebookClient(notebook, timeout=120).execute(cwd=str(tmp_path), env=environment)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    html = "\n".join(output.get("data", {}).get("text/html", "") for output in outputs)
    assert "100 %" in html and "<svg" in html and "<table" in html
