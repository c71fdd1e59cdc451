"""A workflow as the server has it, with methods that start its runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from pydantic import PrivateAttr

from .. import models
from .._fields import RunOptions, SweepOptions
from .._inputs import Inputs
from .run import AsyncRun
from .runs import AsyncRuns, AsyncSweep

if TYPE_CHECKING:
    from .client import AsyncClient


class AsyncSavedWorkflow(models.Workflow):
    """A workflow on the server. Its methods start runs as those of the client do."""

    _client: AsyncClient = PrivateAttr()

    async def run(
        self, parameters: Mapping[str, Any] | None = None, inputs: Inputs | None = None, **options: Unpack[RunOptions]
    ) -> AsyncRun:
        """Starts a run, as `Client.run` does."""
        return await self._client.run(self, parameters, inputs, **options)

    async def map(
        self,
        parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        inputs: Inputs | Sequence[Inputs] | None = None,
        *,
        progress: bool | None = None,
        **options: Unpack[RunOptions],
    ) -> AsyncRuns:
        """Starts a run for each set of parameters or inputs, as `Client.map` does."""
        return await self._client.map(self, parameters, inputs, progress=progress, **options)

    async def sweep(
        self,
        vary: Mapping[str, Iterable[Any]],
        parameters: Mapping[str, Any] | None = None,
        inputs: Inputs | None = None,
        **options: Unpack[SweepOptions],
    ) -> AsyncSweep:
        """Starts a run for each combination of values, as `Client.sweep` does."""
        return await self._client.sweep(self, vary, parameters, inputs, **options)
