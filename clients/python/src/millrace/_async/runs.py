"""Several runs: waiting for all of them, and those of a sweep as a table."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .. import _calls as calls
from .. import models
from .._graph import runs_html
from .._outputs import sweep_table
from .._views import runs_state, view_for
from .._waiting import async_sleep
from ..errors import AsyncRunNotCompleted, NotFound
from .run import AsyncRun
from .transport import AsyncTransport, remaining

if TYPE_CHECKING:
    import pandas


class AsyncRuns(list[AsyncRun]):
    """A list of runs that can be waited for and cancelled together."""

    def __init__(self, transport: AsyncTransport, runs: Iterable[AsyncRun] = ()) -> None:
        super().__init__(runs)
        self._transport = transport

    async def wait(
        self, *, timeout: float | None = None, progress: bool | None = None, check: bool = True
    ) -> AsyncRuns:
        """Waits until all runs have ended, and shows how many have (progress=False: never).

        Runs that do not complete raise RunNotCompleted when all have ended, unless check=False. After timeout seconds
        it raises TimeoutError, and the runs go on.
        """
        end = None if timeout is None else time.monotonic() + timeout
        shown = self._transport.progress if progress is None else progress
        pause = 0.25
        with view_for(self._title(), shown) as view:
            while True:
                await self.refresh()
                view.show(runs_state([run.status for run in self]))
                if all(run.ended for run in self):
                    break
                await async_sleep(min(pause, remaining(end)))
                pause = min(5.0, 1.5 * pause)
        if check and (missed := [run for run in self if run.status != "completed"]):
            for run in missed:
                await run.refresh()  # with all that tells why
            raise AsyncRunNotCompleted(missed, of=len(self))
        return self

    async def refresh(self) -> AsyncRuns:
        """Looks again at all runs that have not ended."""
        going = {run.id: run for run in self if not run.ended}
        if not going:
            return self
        workflows = {run.workflow_id for run in going.values()}
        since = min(run.created_at for run in going.values()) - timedelta(seconds=1)
        query: dict[str, str | int | bool | None] = {"since": since.isoformat()}
        if len(workflows) == 1:
            query["workflowId"] = workflows.pop()
        async for row in self._transport.pages(calls.runs(query)):
            if run := going.pop(row.id, None):
                run._row = row
            if not going:
                return self
        for run in going.values():
            await run.refresh()  # which says that it was deleted
        return self

    async def cancel(self) -> AsyncRuns:
        """Cancels all runs that have not ended."""
        for run in self:
            if not run.ended:
                await run.cancel()
        return self

    def _title(self) -> str:
        return ", ".join(dict.fromkeys(run.workflow_name for run in self)) or "runs"

    def __repr__(self) -> str:
        return f"<{len(self)} runs of {self._title()!r}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _repr_html_(self) -> str:
        return runs_html([run._row for run in self])


class AsyncSweep(AsyncRuns):
    """The runs of a sweep, one for each combination of the values that vary."""

    def __init__(self, transport: AsyncTransport, info: models.Sweep) -> None:
        super().__init__(transport, [AsyncRun(transport, row.run) for row in info.runs])
        self.info = info

    @property
    def id(self) -> str:
        """The id of the sweep."""
        return self.info.id

    async def wait(
        self, *, timeout: float | None = None, progress: bool | None = None, check: bool = True
    ) -> AsyncSweep:
        """Waits until all runs of the sweep have ended, as `Runs.wait` does."""
        await super().wait(timeout=timeout, progress=progress, check=check)
        return self

    async def to_pandas(self, outputs: Sequence[str] = ()) -> pandas.DataFrame:
        """The sweep as a table of pandas: a row for each run, with its values, status, seconds and credits.

        Up to five outputs add a column each, with the text of small files: their names in the definition, else
        `node.port`.
        """
        ports = await self._ports(outputs)
        return sweep_table(await self._transport.call(calls.sweep(self.id, list(ports.values()))), ports)

    async def _ports(self, names: Sequence[str]) -> dict[str, str]:
        """Where the definition takes each output from."""
        if not names:
            return {}
        run = await self._transport.call(calls.run(self[0].id))
        declared: dict[str, Any] = run.definition.model_dump(mode="json", by_alias=True).get("outputs") or {}
        ports = {name: str(declared[name]["from"]) if name in declared else name for name in names}
        if unknown := [name for name, port in ports.items() if port not in self.info.ports]:
            known = ", ".join([*declared, *self.info.ports]) or "none"
            raise NotFound(f"{self.info.workflow_name} has no output {unknown[0]!r}; its outputs are {known}")
        return ports
