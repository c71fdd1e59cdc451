"""A client of one server, as somebody, in one team."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from .. import _calls as calls
from .. import models
from .._calls import Call
from .._credentials import find_account
from .._inputs import InputValue, local_path
from ..errors import MillraceError
from ..workflow import Workflow
from .run import AsyncRun
from .transfer import LARGE_FROM, AsyncTransfer
from .transport import AsyncTransport

T = TypeVar("T")


class AsyncClient:
    """Speaks with a Millrace server.

    Server, token and team come from the arguments, else from MILLRACE_SERVER, MILLRACE_TOKEN and MILLRACE_TEAM, else
    from what `millrace login` keeps. Requests are sent again when the connection breaks or the server is busy, and
    what must happen once carries an idempotency key.
    """

    def __init__(
        self,
        server: str | None = None,
        token: str | None = None,
        team: str | None = None,
        *,
        timeout: float = 60,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._transport = AsyncTransport(find_account(server, token, team), timeout, http)
        self._transfer = AsyncTransfer(self._transport)

    @property
    def server(self) -> str:
        return self._transport.account.server

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def me(self) -> models.Me:
        return await self._transport.call(calls.me())

    async def request(
        self,
        method: str,
        path: str,
        answer: type[T],
        *,
        body: Any = None,
        query: calls.Query | None = None,
        bare: bool = False,
    ) -> T:
        """Any other call of the API; answer is the type of its data, such as `list[millrace.models.Webhook]`.

        bare=True is for the few answers that are their data; they have no `success` beside it.
        """
        return await self._transport.call(Call(method, path, answer, body, query or {}, bare=bare))

    # Workflows

    async def workflows(self) -> list[models.WorkflowRow]:
        return [row async for row in self._transport.pages(calls.workflows())]

    async def workflow(self, workflow: str) -> models.Workflow:
        """One workflow, by its id or name."""
        return await self._transport.call(calls.workflow(await self._workflow_id(workflow)))

    async def validate(self, definition: Workflow | Mapping[str, Any]) -> list[models.Problem]:
        """What the server finds wrong with a definition; nothing is kept."""
        return (await self._transport.call(calls.validate(_definition(definition)))).problems

    async def apply(
        self, workflow: Workflow | Mapping[str, Any], name: str | None = None, description: str | None = None
    ) -> models.Workflow:
        """Makes the workflow of this name, or changes it to this definition."""
        if isinstance(workflow, Workflow):
            name, description = name or workflow.name, description or workflow.description
        if not name:
            raise ValueError("a workflow needs a name")
        body: dict[str, Any] = {"definition": _definition(workflow)}
        if description is not None:
            body["description"] = description
        ids = await self._ids_of(name)
        if not ids:
            return await self._transport.call(calls.create_workflow({"name": name, **body}))
        if len(ids) > 1:
            raise MillraceError(f"{len(ids)} workflows are called {name!r}: rename or delete all but one")
        return await self._transport.call(calls.update_workflow(ids[0], body))

    async def delete_workflow(self, workflow: str) -> None:
        await self._transport.call(calls.delete_workflow(await self._workflow_id(workflow)))

    async def _ids_of(self, name: str) -> list[str]:
        return [row.id for row in await self.workflows() if row.name == name]

    async def _workflow_id(self, workflow: str) -> str:
        if workflow.startswith("wf_"):
            return workflow
        ids = await self._ids_of(workflow)
        if len(ids) != 1:
            found = (
                f"{len(ids)} workflows are called {workflow!r}: name one by its id"
                if ids
                else f"the team has no workflow {workflow!r}"
            )
            raise MillraceError(found)
        return ids[0]

    # Runs

    async def run(
        self,
        workflow: str | Workflow | models.WorkflowRow,
        parameters: Mapping[str, Any] | None = None,
        inputs: Mapping[str, InputValue | Sequence[InputValue]] | None = None,
        *,
        vcpu: int | None = None,
        ram_gb: int | None = None,
        profile: str | None = None,
        idempotency_key: str | None = None,
        **more: Any,
    ) -> AsyncRun:
        """Starts a run of a workflow: its name or id, or one made here, which is applied first.

        An input is a local file, which is uploaded, the key or row of a file or output that the server has, or an
        address (`s3://…`, `https://…`); several of them for an input of type `files`. Without a size the run has 2 vCPUs
        and 8 GB. `more` are the other fields of a start, such as name, note and tags.
        """
        if isinstance(workflow, Workflow):
            workflow = await self.apply(workflow)
        id = await self._workflow_id(workflow) if isinstance(workflow, str) else workflow.id
        body: dict[str, Any] = {**more, "workflowId": id}
        if parameters:
            body["parameters"] = dict(parameters)
        if inputs:
            body["inputs"] = {name: await self._input(value) for name, value in inputs.items()}
        if vcpu is not None or ram_gb is not None:
            body["compute"] = {"vcpu": vcpu or 2, "ramGb": ram_gb or 4 * (vcpu or 2)}
        if profile is not None:
            body["resourceProfile"] = profile
        started = await self._transport.call(calls.start_run(body), idempotency_key)
        return await self.get_run(started.run_id)

    async def _input(self, value: InputValue | Sequence[InputValue]) -> Any:
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [await self._one_input(each) for each in value]
        return await self._one_input(value)

    async def _one_input(self, value: InputValue) -> Any:
        if isinstance(value, str | os.PathLike):
            path = local_path(value)
            return value if path is None else (await self.upload(path)).key
        return dict(value) if isinstance(value, Mapping) else value.key

    async def get_run(self, id: str) -> AsyncRun:
        return AsyncRun(self._transport, await self._transport.call(calls.run(id)))

    async def runs(self, *, workflow: str | None = None, limit: int | None = 50, **filters: str) -> list[models.RunRow]:
        """The team's runs, newest first; filters are those of the API: status, since, until, tag, startedBy, q."""
        query: dict[str, str | int | bool | None] = {**filters}
        if workflow is not None:
            query["workflowId"] = await self._workflow_id(workflow)
        return [row async for row in self._transport.pages(calls.runs(query), limit)]

    # Files

    async def files(self) -> list[models.File]:
        return [file async for file in self._transport.pages(calls.files())]

    async def upload(
        self, path: str | os.PathLike[str], content_type: str | None = None, *, large_from: int = LARGE_FROM
    ) -> models.File:
        """Uploads a file, from 64 MB in parts, and compares its hash with what has arrived."""
        return await self._transfer.upload(Path(path), content_type, large_from)

    async def download(
        self, file: models.File | models.Output, to: str | os.PathLike[str] = ".", *, overwrite: bool = False
    ) -> Path:
        """Fetches a file into a folder, or under a name, and checks its hash."""
        return await self._transfer.download(file, to, overwrite)

    async def delete_file(self, file: models.File) -> None:
        await self._transport.call(calls.delete_file(file.key, file.source))


def _definition(workflow: Workflow | Mapping[str, Any]) -> Mapping[str, Any]:
    return workflow.definition() if isinstance(workflow, Workflow) else workflow
