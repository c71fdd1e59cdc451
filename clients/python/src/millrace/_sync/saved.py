# Generated from _async/saved.py; run make gen after changing that.
"""A workflow as the server has it, with methods that start its runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from pydantic import PrivateAttr

from .. import models
from .._fields import RunOptions, SweepOptions
from .._inputs import Inputs
from .run import Run
from .runs import Runs, Sweep

if TYPE_CHECKING:
    from .client import Client


class SavedWorkflow(models.Workflow):
    """A workflow on the server. Its methods start runs as those of the client do."""

    _client: Client = PrivateAttr()

    def run(
        self, parameters: Mapping[str, Any] | None = None, inputs: Inputs | None = None, **options: Unpack[RunOptions]
    ) -> Run:
        """Starts a run, as `Client.run` does."""
        return self._client.run(self, parameters, inputs, **options)

    def map(
        self,
        parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        inputs: Inputs | Sequence[Inputs] | None = None,
        *,
        progress: bool | None = None,
        **options: Unpack[RunOptions],
    ) -> Runs:
        """Starts a run for each set of parameters or inputs, as `Client.map` does."""
        return self._client.map(self, parameters, inputs, progress=progress, **options)

    def sweep(
        self,
        vary: Mapping[str, Iterable[Any]],
        parameters: Mapping[str, Any] | None = None,
        inputs: Inputs | None = None,
        **options: Unpack[SweepOptions],
    ) -> Sweep:
        """Starts a run for each combination of values, as `Client.sweep` does."""
        return self._client.sweep(self, vary, parameters, inputs, **options)
