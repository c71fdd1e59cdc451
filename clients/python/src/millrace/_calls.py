"""The calls of the API: method, path, what goes and what comes. Both clients send these."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar, cast
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter

from . import models

T_co = TypeVar("T_co", covariant=True)
W = TypeVar("W", bound=models.Workflow)
Query = Mapping[str, str | int | bool | None]


@dataclass(frozen=True)
class Call(Generic[T_co]):
    """A request, and the type of its answer."""

    method: str
    path: str
    answer: type[T_co]
    body: Any = None
    query: Query = field(default_factory=dict[str, str | int | bool | None])
    bare: bool = False  # the answer is the data itself
    keyed: bool = False  # the route takes an Idempotency-Key
    again: bool = False  # a POST that has the same effect when it arrives twice
    any_team: bool = False  # the answer is the same in every team, and the request names none

    def json(self) -> Any:
        return (
            self.body.model_dump(mode="json", by_alias=True, exclude_unset=True)
            if isinstance(self.body, BaseModel)
            else self.body
        )

    def params(self) -> dict[str, str]:
        return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in self.query.items() if v is not None}

    def parse(self, body: Any) -> T_co:
        answer: T_co = _adapter(cast(Hashable, self.answer)).validate_python(body if self.bare else body["data"])
        return answer


@cache
def _adapter(kind: Hashable) -> TypeAdapter[Any]:
    return TypeAdapter(cast(Any, kind))


def path(template: str, *names: str | int) -> str:
    """Fills in names, which may be anything."""
    return template.format(*(quote(str(name), safe="") for name in names))


def me() -> Call[models.Me]:
    return Call("GET", "/api/me", models.Me)


def teams() -> Call[list[models.TeamRow]]:
    return Call("GET", "/auth/teams", list[models.TeamRow], any_team=True)


def workflows() -> Call[list[models.WorkflowRow]]:
    return Call("GET", "/api/workflows", list[models.WorkflowRow])


def workflow(id: str, answer: type[W]) -> Call[W]:
    return Call("GET", path("/api/workflows/{}", id), answer)


def create_workflow(body: Mapping[str, Any], answer: type[W]) -> Call[W]:
    return Call("POST", "/api/workflows", answer, body, keyed=True)


def update_workflow(id: str, body: Mapping[str, Any], answer: type[W]) -> Call[W]:
    return Call("PUT", path("/api/workflows/{}", id), answer, body)


def delete_workflow(id: str) -> Call[models.Deleted]:
    return Call("DELETE", path("/api/workflows/{}", id), models.Deleted)


def validate(definition: Mapping[str, Any]) -> Call[models.Problems]:
    return Call("POST", "/api/workflows/validate", models.Problems, {"definition": definition})


def start_run(body: Mapping[str, Any]) -> Call[models.StartedRun]:
    return Call("POST", "/api/runs", models.StartedRun, body, keyed=True)


def start_sweep(body: Mapping[str, Any]) -> Call[models.StartedSweep]:
    return Call("POST", "/api/sweeps", models.StartedSweep, body, keyed=True)


def sweep(id: str, outputs: Sequence[str] = ()) -> Call[models.Sweep]:
    return Call("GET", path("/api/sweeps/{}", id), models.Sweep, query={"outputs": ",".join(outputs) or None})


def runs(query: Query) -> Call[list[models.RunRow]]:
    return Call("GET", "/api/runs", list[models.RunRow], query=query)


def run(id: str) -> Call[models.Run]:
    return Call("GET", path("/api/runs/{}", id), models.Run, bare=True)


def cancel_run(id: str) -> Call[models.CancelledRun]:
    return Call("POST", path("/api/runs/{}/cancel", id), models.CancelledRun)


def retry_run(id: str, body: Mapping[str, Any]) -> Call[models.StartedRun]:
    return Call("POST", path("/api/runs/{}/retry", id), models.StartedRun, body, keyed=True)


def events(id: str, after: int) -> Call[models.RunEvents]:
    return Call("GET", path("/api/runs/{}/events", id), models.RunEvents, query={"after_seq": after, "limit": 500})


def logs(id: str, query: Query) -> Call[models.RunLogs]:
    return Call("GET", path("/api/runs/{}/logs", id), models.RunLogs, query=query)


def stream(id: str) -> str:
    return path("/api/runs/{}/stream", id)


def outputs(id: str, every_node: bool) -> Call[list[models.Output]]:
    query: Query = {"all": every_node, "limit": 1000}
    return Call("GET", path("/api/runs/{}/outputs", id), list[models.Output], query=query)


def files(key: str | None = None) -> Call[list[models.File]]:
    return Call("GET", "/api/files", list[models.File], query={"limit": 500, "key": key})


def delete_file(key: str, source: str) -> Call[models.FileDeleted]:
    return Call("POST", "/api/files/delete", models.FileDeleted, {"key": key, "source": source})


def presign(body: models.Presign) -> Call[models.PresignedUpload]:
    return Call("POST", "/api/files/presign", models.PresignedUpload, body, again=True)


def begin_upload(body: Mapping[str, Any]) -> Call[models.LargeUpload]:
    return Call("POST", "/api/files/uploads", models.LargeUpload, body)


def sign_parts(id: str, numbers: list[int]) -> Call[list[models.SignedPart]]:
    body = {"numbers": numbers}
    return Call("POST", path("/api/files/uploads/{}/parts", id), list[models.SignedPart], body, again=True)


def complete_upload(id: str, body: Mapping[str, Any]) -> Call[models.File]:
    return Call("POST", path("/api/files/uploads/{}/complete", id), models.File, body, again=True)


def abort_upload(id: str) -> Call[models.UploadAborted]:
    return Call("DELETE", path("/api/files/uploads/{}", id), models.UploadAborted)
