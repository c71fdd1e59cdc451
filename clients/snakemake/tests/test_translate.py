"""What Snakemake says, without Snakemake."""

from __future__ import annotations

from logging import ERROR, INFO, LogRecord
from pathlib import Path
from typing import Any

import pytest

from snakemake_logger_plugin_millrace.translate import Translator


def says(translator: Translator, message: str, level: int = INFO, **more: Any) -> list[dict[str, Any]]:
    record = LogRecord("snakemake", level, __file__, 1, message, None, None)
    vars(record).update(more)
    return list(translator.events(record, lambda each: each.getMessage()))


def states(events: list[dict[str, Any]]) -> list[str]:
    return [event["task"]["status"] for event in events if "task" in event]


@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        ("Terminating processes on user request, this might take some time.", {"status": "cancelled"}),
        (
            "Will exit after finishing currently running jobs (scheduler).",
            {"status": "failed", "message": "Snakemake was told to end before all jobs were done."},
        ),
    ],
)
def test_jobs_that_end_with_the_workflow_are_cancelled(stop: str, finish: dict[str, str]) -> None:
    snakemake = Translator(None, None, [])
    for job in (1, 2):
        says(snakemake, "", event="job_info", jobid=job, rule_name="align")
    said = says(snakemake, stop)
    said += says(snakemake, "Error in rule align", ERROR, event="job_error", jobid=1, rule_name="align")
    said += says(snakemake, "Trying to restart job 1.")
    said += says(snakemake, "", event="job_finished", job_id=2)
    said += says(snakemake, "At least one job did not complete.", ERROR, event="error", exception="WorkflowError")
    assert states(said) == ["cancelled", "succeeded"]
    assert snakemake.finish()["finish"] == finish


def test_a_job_that_failed_before_the_workflow_was_told_to_end_has_failed() -> None:
    snakemake = Translator(None, None, [])
    says(snakemake, "", event="job_info", jobid=1, rule_name="align")
    failed = says(snakemake, "Error in rule align", ERROR, event="job_error", jobid=1, rule_name="align")
    says(snakemake, "Will exit after finishing currently running jobs (scheduler).")
    assert states(failed) == ["failed"]
    assert snakemake.finish()["finish"] == {"status": "failed", "message": "Error in align"}


def test_a_job_has_the_ends_of_its_logs(tmp_path: Path) -> None:
    snakemake = Translator(None, None, [])
    log = tmp_path / "a.log"
    log.write_text("many\n" * 20_000 + "the last\n")
    for job in (1, 2):
        says(snakemake, "", event="job_info", jobid=job, rule_name="align", log=[str(log), "none.log"])
    [done] = says(snakemake, "", event="job_finished", job_id=1)
    failed, _ = says(snakemake, "", ERROR, event="job_error", jobid=2, rule_name="align", log=[str(log), "none.log"])
    for event, most in ((done, 4096), (failed, 48_000)):
        message = event["task"]["message"]
        assert most // 2 < len(message) < most and message.endswith("many\nthe last\n") and f"{log}:\n" in message
