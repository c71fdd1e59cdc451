# Generated from _async/client.py; run make gen after changing that.
"""A client of one server, as somebody, in one team."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar, Unpack

import httpx

from .. import _calls as calls
from .. import models
from .._calls import Call
from .._credentials import find_account
from .._fields import RunOptions, RunStatus, SweepOptions, start_body
from .._inputs import DataFrame, Given, Inputs, each_set, is_frame, plain
from .._views import State, view_for
from .._waiting import blocking
from ..errors import MillraceError, NotFound
from ..workflow import Workflow
from .run import Run
from .runs import Runs, Sweep
from .saved import SavedWorkflow
from .transfer import LARGE_FROM, Transfer
from .transport import Transport
from .uploads import Uploads

T = TypeVar("T")
AnyWorkflow: TypeAlias = str | Workflow | models.WorkflowRow


class Client:
    """Speaks with a Millrace server.

    Server, token and team come from the arguments, else from MILLRACE_SERVER, MILLRACE_TOKEN and MILLRACE_TEAM, else
    from what `millrace login` keeps. With progress=False the client never shows how far it is or why it waits.
    """

    def __init__(
        self,
        server: str | None = None,
        token: str | None = None,
        team: str | None = None,
        *,
        timeout: float = 60,
        progress: bool = True,
        http: httpx.Client | None = None,
    ) -> None:
        self._transport = Transport(find_account(server, token, team), timeout, http, progress)
        self._transfer = Transfer(self._transport)

    @property
    def server(self) -> str:
        """The address of the server."""
        return self._transport.account.server

    def close(self) -> None:
        """Closes the connections to the server."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def me(self) -> models.Me:
        """Who the server takes the caller for, and the team."""
        return self._transport.call(calls.me())

    def request(
        self,
        method: str,
        path: str,
        answer: type[T],
        *,
        body: Any = None,
        query: calls.Query | None = None,
        bare: bool = False,
    ) -> T:
        """Makes any other call of the API. `answer` is the type of its data, such as `list[millrace.models.Webhook]`.

        bare=True is for the few answers that are the data itself, without `success` beside it.
        """
        return self._transport.call(Call(method, path, answer, body, query or {}, bare=bare))

    # Workflows

    def workflows(self) -> list[models.WorkflowRow]:
        """Lists the team's workflows."""
        return [row for row in self._transport.pages(calls.workflows())]

    def workflow(self, workflow: str) -> SavedWorkflow:
        """Finds one workflow by its id or name."""
        return self._saved(calls.workflow(self._workflow_id(workflow), SavedWorkflow))

    def validate(self, definition: Workflow | Mapping[str, Any]) -> list[models.Problem]:
        """Lists what the server finds wrong with a definition. It keeps nothing."""
        return (self._transport.call(calls.validate(_definition(definition)))).problems

    def apply(
        self, workflow: Workflow | Mapping[str, Any], name: str | None = None, description: str | None = None
    ) -> SavedWorkflow:
        """Makes the workflow of this name, or changes it to this definition."""
        if isinstance(workflow, Workflow):
            name, description = name or workflow.name, description or workflow.description
        if not name:
            raise ValueError("a workflow needs a name")
        body: dict[str, Any] = {"definition": _definition(workflow)}
        if description is not None:
            body["description"] = description
        ids = self._ids_of(name)
        if not ids:
            return self._saved(calls.create_workflow({"name": name, **body}, SavedWorkflow))
        if len(ids) > 1:
            raise MillraceError(f"{len(ids)} workflows are called {name!r}: rename or delete all but one")
        return self._saved(calls.update_workflow(ids[0], body, SavedWorkflow))

    def _saved(self, call: Call[SavedWorkflow]) -> SavedWorkflow:
        workflow = self._transport.call(call)
        workflow._client = self
        return workflow

    def delete_workflow(self, workflow: str) -> None:
        """Deletes a workflow, by its id or name."""
        self._transport.call(calls.delete_workflow(self._workflow_id(workflow)))

    def _ids_of(self, name: str) -> list[str]:
        return [row.id for row in self.workflows() if row.name == name]

    def _workflow_id(self, workflow: str) -> str:
        if workflow.startswith("wf_"):
            return workflow
        ids = self._ids_of(workflow)
        if not ids:
            raise NotFound(f"the team has no workflow {workflow!r}: client.workflows() lists those that it has")
        if len(ids) > 1:
            raise MillraceError(f"{len(ids)} workflows are called {workflow!r}: name one by its id")
        return ids[0]

    # Runs

    def run(
        self,
        workflow: AnyWorkflow,
        parameters: Mapping[str, Any] | None = None,
        inputs: Inputs | None = None,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[RunOptions],
    ) -> Run:
        """Starts a run of a workflow: its name or id, or one made here, which is saved first.

        An input is a local file, folder or table, which is uploaded; a file or output that the server has; an address
        (`s3://…`, `https://…`); or a list of these.
        """
        uploads = Uploads(self._transfer, self._id_of(workflow))
        return self.get_run(self._start(uploads, (parameters, inputs), options, idempotency_key))

    def map(
        self,
        workflow: AnyWorkflow,
        parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        inputs: Inputs | Sequence[Inputs] | None = None,
        *,
        progress: bool | None = None,
        **options: Unpack[RunOptions],
    ) -> Runs:
        """Starts a run for each set of parameters or inputs in a list. What is not a list is the same for all runs.

        A file of several runs is uploaded once. The client waits where the server limits how many runs start a minute.
        """
        sets = each_set(parameters, inputs)
        uploads = Uploads(self._transfer, self._id_of(workflow))
        started: list[str] = []
        shown = self._transport.progress if progress is None else progress
        with view_for(workflow if isinstance(workflow, str) else workflow.name, shown) as view:
            try:
                for given in sets:
                    started.append(self._start(uploads, given, options))
                    view.show(State(f"{len(started)} of {len(sets)} runs started", 100 * len(started) / len(sets)))
            except BaseException as error:
                if started:
                    go_on = "was started and goes on" if len(started) == 1 else "were started and go on"
                    error.add_note(f"{len(started)} of {len(sets)} runs {go_on}: {', '.join(started)}")
                raise
        return self._found(uploads.workflow, started)

    def sweep(
        self,
        workflow: AnyWorkflow,
        vary: Mapping[str, Iterable[Any]],
        parameters: Mapping[str, Any] | None = None,
        inputs: Inputs | None = None,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[SweepOptions],
    ) -> Sweep:
        """Starts a run for each combination of the values that vary, up to 100: all of them or none.

        The server counts a sweep as one start. The other parameters and the inputs are the same for all runs.
        """
        uploads = Uploads(self._transfer, self._id_of(workflow))
        body = self._body(uploads, (parameters, inputs), options)
        body["vary"] = {name: plain(list(values)) for name, values in vary.items()}
        started = self._transport.call(calls.start_sweep(body), idempotency_key)
        return self.get_sweep(started.sweep_id)

    def _start(self, uploads: Uploads, given: Given, options: RunOptions, key: str | None = None) -> str:
        """Starts a run and gives its id."""
        body = self._body(uploads, given, options)
        return (self._transport.call(calls.start_run(body), key)).run_id

    def _body(self, uploads: Uploads, given: Given, options: SweepOptions | RunOptions) -> dict[str, Any]:
        body = start_body(uploads.workflow, options)
        parameters, inputs = given
        if parameters:
            body["parameters"] = plain(parameters)
        if inputs:
            body["inputs"] = uploads.ready(inputs)
        return body

    def _id_of(self, workflow: AnyWorkflow) -> str:
        if isinstance(workflow, Workflow):
            workflow = self.apply(workflow)
        return self._workflow_id(workflow) if isinstance(workflow, str) else workflow.id

    def _found(self, workflow: str, ids: Sequence[str]) -> Runs:
        """The runs of a workflow that have just been started."""
        rows: dict[str, models.RunRow] = {}
        for row in self._transport.pages(calls.runs({"workflowId": workflow})):
            if row.id in ids:
                rows[row.id] = row
            if len(rows) == len(ids):
                break
        return Runs(self._transport, [Run(self._transport, rows[id]) for id in ids])

    def get_run(self, id: str) -> Run:
        """Finds a run by its id."""
        return Run(self._transport, self._transport.call(calls.run(id)))

    def get_sweep(self, id: str) -> Sweep:
        """Finds a sweep by its id."""
        return Sweep(self._transport, self._transport.call(calls.sweep(id)))

    def runs(
        self,
        *,
        workflow: str | None = None,
        status: RunStatus | None = None,
        tag: str | None = None,
        q: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        limit: int | None = 50,
        **filters: str,
    ) -> Runs:
        """Lists the team's runs, newest first. `q` are words to search for, and limit=None gives all.

        Other filters are those of the API, such as startedBy.
        """
        query: dict[str, str | int | bool | None] = {**filters, "status": status, "tag": tag, "q": q}
        query |= {"since": _instant(since), "until": _instant(until)}
        if workflow is not None:
            query["workflowId"] = self._workflow_id(workflow)
        rows = [row for row in self._transport.pages(calls.runs(query), limit)]
        return Runs(self._transport, [Run(self._transport, row) for row in rows])

    # Files

    def files(self) -> list[models.File]:
        """Lists the team's files, uploads first."""
        return [file for file in self._transport.pages(calls.files())]

    def upload(
        self,
        file: str | os.PathLike[str] | DataFrame,
        content_type: str | None = None,
        *,
        name: str | None = None,
        large_from: int = LARGE_FROM,
    ) -> models.File:
        """Uploads a file, from 64 MB in parts, or a folder, and compares its hash with what has arrived.

        A table of pandas or polars needs a name that ends in .csv or .parquet, which says how it is written.
        """
        if is_frame(file):
            if name is None:
                raise ValueError("a table needs a name such as counts.csv or counts.parquet")
            return self._transfer.upload_frame(file, name, large_from)
        path = Path(file)
        if blocking(path.is_dir):
            return self._transfer.upload_folder(path)
        return self._transfer.upload(path, name or path.name, content_type, large_from)

    def download(
        self, file: models.File | models.Output, to: str | os.PathLike[str] = ".", *, overwrite: bool = False
    ) -> Path:
        """Fetches a file or folder into a folder, or under a name, and checks the hash of each file.

        Files that are there already are not fetched again.
        """
        return self._transfer.download(file, to, overwrite)

    def delete_file(self, file: models.File) -> None:
        """Deletes a file."""
        self._transport.call(calls.delete_file(file.key, file.source))


def _definition(workflow: Workflow | Mapping[str, Any]) -> Mapping[str, Any]:
    return workflow.definition() if isinstance(workflow, Workflow) else workflow


def _instant(when: datetime | str | None) -> str | None:
    """A time as the API takes it; one without a zone is local."""
    return when.astimezone().isoformat() if isinstance(when, datetime) else when
