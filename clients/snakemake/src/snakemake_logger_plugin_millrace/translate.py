"""What Snakemake says, as events of a reported run. Nothing in here talks to anybody."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from logging import WARNING, LogRecord
from pathlib import Path
from typing import Any

LOG_FILES = 3  # of a job, whose ends go along
FAILED_LOG, OTHER_LOG = 48_000, 4096  # bytes of them together
RESTART = re.compile(r"Trying to restart job (\d+)\.")
STOPPED = ("Terminating processes on user request", "Cancelling snakemake on user request")
TOLD_TO_END = "Will exit after finishing currently running jobs"  # by SIGTERM
OF_JOBS = ("RuleException", "CalledProcessError")
LONGEST_TEXT = 60_000

Event = dict[str, Any]


class Translator:
    def __init__(self, project: str | None, run_name: str | None, secrets: Iterable[str]) -> None:
        self._secrets = [s for s in [*secrets, os.environ.get("MILLRACE_TOKEN", "")] if s]
        self._rules: dict[int, str] = {}
        self._attempts: dict[int, int] = {}
        self._logs: dict[int, list[str]] = {}  # the files that jobs write their logs to
        self._open: dict[int, str] = {}  # jobs that run, have failed for good, or were cancelled
        self._said = ""  # the last error
        self._broken = False
        self._stopped = False
        self._told_to_end = False
        self.header = self._begin(project, run_name)

    def _begin(self, project: str | None, run_name: str | None) -> dict[str, Any]:
        folder = Path.cwd()
        details = {"commandLine": self._masked(" ".join(sys.argv)), "workDir": str(folder), "host": platform.node()}
        header: dict[str, Any] = {"engine": "snakemake", "project": (project or folder.name or "snakemake")[:200]}
        header |= {"startedAt": _time(datetime.now(UTC).timestamp()), "details": details}
        with contextlib.suppress(PackageNotFoundError):
            header["engineVersion"] = version("snakemake")
        return header | ({"name": run_name[:200]} if run_name else {})

    def _masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text[:LONGEST_TEXT]

    def events(self, record: LogRecord, text_of: Callable[[LogRecord], str]) -> Iterator[Event]:
        """The events that a record means; text_of is what the terminal would show of it."""
        at = {"at": _time(record.created)}
        for event in self._translated(record):
            yield at | event
        said = record.getMessage() if record.msg else ""
        if (found := RESTART.match(said)) and not self._ending():
            yield at | self._task(int(found[1]), "failed", willRetry=True)
            self._open.pop(int(found[1]), None)
        if said.startswith(STOPPED):
            self._stopped = True
        self._told_to_end |= said.startswith(TOLD_TO_END)
        if record.levelno >= WARNING or (getattr(record, "event", None) is None and said):
            text = (text_of(record) if record.levelno >= WARNING else said) or said
            yield at | {"log": {"text": self._masked(text.rstrip("\n")) + "\n"}}

    def _translated(self, record: LogRecord) -> Iterator[Event]:
        match str(getattr(record, "event", None) or ""):
            case "job_info":
                yield self._job_began(record)
            case "job_finished":
                yield self._job_ended(_number(record, "job_id", "jobid"))
            case "job_error":
                yield self._job_failed(vars(record))
            case "group_error":
                for each in getattr(record, "job_error_info", []):
                    yield self._job_failed(each)
            case "rulegraph":
                yield {"graph": _graph(getattr(record, "rulegraph", {}))}
            case "run_info":
                stats = getattr(record, "stats", {})
                nodes = [{"name": str(k), "expected": int(v)} for k, v in stats.items() if k != "total"]
                yield {"graph": {"nodes": nodes, "edges": []}}
            case "progress":
                yield {"progress": {"done": int(getattr(record, "done", 0)), "total": int(getattr(record, "total", 0))}}
            case "error":
                self._said = record.getMessage()
                # What a job raised is said of jobs that are tried again, too: their state tells.
                self._broken |= getattr(record, "exception", "") not in OF_JOBS
            case _:
                pass

    def _job_began(self, record: LogRecord) -> Event:
        job = _number(record, "jobid", "job_id")
        self._rules[job] = str(getattr(record, "rule_name", None) or "job")
        self._attempts[job] = self._attempts.get(job, 0) + 1
        self._open[job] = "running"
        self._logs[job] = [str(path) for path in getattr(record, "log", None) or []]
        wildcards = getattr(record, "wildcards", None) or {}
        more: Event = {"startedAt": _time(record.created), "workDir": os.getcwd()}
        if wildcards:
            more["name"] = ", ".join(f"{k}={v}" for k, v in dict(wildcards).items())[:500]
        if command := getattr(record, "shellcmd", None):
            more["script"] = self._masked(str(command))
        if threads := getattr(record, "threads", None):
            more["cpus"] = float(threads)
        resources = getattr(record, "resources", None)
        memory = getattr(resources, "mem_mb", None)
        if isinstance(memory, int) and not isinstance(memory, bool):
            more["memoryBytes"] = memory * 1_000_000
        return self._task(job, "running", **more)

    def _job_ended(self, job: int) -> Event:
        self._open.pop(job, None)
        log = _tails(self._logs.pop(job, []), OTHER_LOG)
        return self._task(job, "succeeded", **({"message": self._masked(log.lstrip("\n"))} if log else {}))

    def _ending(self) -> bool:
        return self._stopped or self._told_to_end

    def _job_failed(self, info: dict[str, Any]) -> Event:
        job = int(info.get("jobid", 0))
        self._rules.setdefault(job, str(info.get("rule_name") or "job"))
        status = "cancelled" if self._ending() else "failed"  # who ends Snakemake ends its jobs, too
        self._open[job] = status
        message = str(info.get("rule_msg") or f"Error in rule {self._rules[job]}, jobid {job}")
        message += _tails([str(path) for path in info.get("log") or []], FAILED_LOG)
        return self._task(job, status, message=self._masked(message))

    def _task(self, job: int, status: str, **more: Any) -> Event:
        task = {"task": job, "node": self._rules.get(job, "job")[:500], "attempt": self._attempts.get(job, 1)}
        return {"task": task | {"status": status} | more}

    def finish(self) -> Event:
        """How it ended, as far as was said: Snakemake has no word for success."""
        failed = [self._rules[job] for job, state in self._open.items() if state == "failed"]
        finish: Event = {"status": "completed"}
        if self._stopped or isinstance(sys.exc_info()[1], KeyboardInterrupt):
            finish = {"status": "cancelled"}
        elif self._told_to_end and not failed:
            finish = {"status": "failed", "message": "Snakemake was told to end before all jobs were done."}
        elif self._broken or failed:
            message = self._said or f"Error in {', '.join(sorted(set(failed)))}"
            finish = {"status": "failed", "message": self._masked(message)}
        elif self._open:
            finish = {"status": "failed", "message": "Snakemake ended while jobs were running."}
        return {"at": _time(datetime.now(UTC).timestamp()), "finish": finish}


def _graph(rulegraph: dict[str, Any]) -> Event:
    nodes = [{"name": str(node["rule"])} for node in rulegraph.get("nodes", [])]
    edges = [
        {"from": str(link["sourcerule"]), "to": str(link["targetrule"])}
        for link in rulegraph.get("links", [])
        if link["sourcerule"] != link["targetrule"]
    ]
    return {"nodes": nodes, "edges": edges}


def _number(record: LogRecord, *names: str) -> int:
    return next(int(getattr(record, name)) for name in names if getattr(record, name, None) is not None)


def _tails(paths: list[str], most: int) -> str:
    """The ends of log files, with their names."""
    text, paths = "", paths[:LOG_FILES]
    for path in paths:
        length = most // len(paths)
        with contextlib.suppress(OSError), open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - length))
            text += f"\n{path}:\n{file.read(length).decode('utf-8', 'replace')}"
    return text


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
