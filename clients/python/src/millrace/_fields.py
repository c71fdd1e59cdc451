"""What a run says of itself, and the options that starting one takes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from . import models

RunStatus = Literal["queued", "running", "completed", "failed", "cancelled", "interrupted"]


class SweepOptions(TypedDict, total=False):
    """The options of the runs of a sweep. Without a size each has 2 vCPUs and 8 GB."""

    vcpu: int
    ram_gb: int
    profile: str
    executor: str
    name: str
    note: str
    tags: Sequence[str]


class RunOptions(SweepOptions, total=False):
    """The options of a run: those of a sweep, a limit of its cost and where its outputs are copied."""

    max_credits: float
    output_to: dict[str, Any]


_API_NAMES = {"profile": "resourceProfile", "max_credits": "maxCredits", "output_to": "outputTo"}


def start_body(workflow_id: str, options: SweepOptions | RunOptions) -> dict[str, Any]:
    """The body of a request that starts a run with these options."""
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    vcpu, ram_gb = given.pop("vcpu", None), given.pop("ram_gb", None)
    body = {_API_NAMES.get(name, name): value for name, value in given.items()}
    if vcpu is not None or ram_gb is not None:
        body["compute"] = {"vcpu": vcpu or 2, "ramGb": ram_gb or 4 * (vcpu or 2)}
    return {**body, "workflowId": workflow_id}


class RunFields:
    """The fields of a run as they were when it was last looked at."""

    if TYPE_CHECKING:
        id: str
        number: int
        name: str | None
        note: str | None
        tags: list[str]
        status: RunStatus
        progress_percent: float
        error_code: str | None
        error_message: str | None
        workflow_id: str
        workflow_name: str
        workflow_revision: int
        sweep_id: str | None
        compute: models.Compute
        executor: str | None
        started_by: models.StartedBy
        created_at: datetime
        started_at: datetime | None
        finished_at: datetime | None
        duration_ms: int | None
        credits_used: float
        waiting: models.Waiting | None
        kind: str | None
        engine: str | None
        commit: str | None
        last_heard_at: datetime | None
    else:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            return getattr(self._row, name)

    def __init__(self, row: models.RunRow) -> None:
        self._row = row

    @property
    def ended(self) -> bool:
        """Whether the run has ended, however it went."""
        return self._row.status in ("completed", "failed", "cancelled", "interrupted")
