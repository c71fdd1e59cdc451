# Generated from _async/uploads.py; run make gen after changing that.
"""The inputs of runs: what is on this machine is uploaded, once for all runs that are started together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from .. import _calls as calls
from .. import models
from .._inputs import (
    Inputs,
    InputValue,
    folders_among,
    input_type,
    is_folder,
    is_frame,
    local_path,
    local_paths,
    with_files,
)
from .._waiting import blocking, each
from ..errors import MillraceError
from .run import Output
from .transfer import AT_ONCE, LARGE_FROM, Transfer


class Uploads:
    """Uploads the inputs of runs of one workflow."""

    def __init__(self, transfer: Transfer, workflow: str) -> None:
        self._transfer = transfer
        self.workflow = workflow
        self._uploaded: dict[object, str] = {}  # the keys of what has been sent, by path or id
        self._definition: dict[str, Any] | None = None

    def ready(self, inputs: Inputs) -> dict[str, Any]:
        """Uploads what is local, and gives the inputs as a request has them."""
        return {name: self._input(name, value) for name, value in inputs.items()}

    def _input(self, name: str, value: InputValue | Sequence[InputValue]) -> Any:
        if isinstance(value, Output) and len(value) != 1:
            value = value.files
        several = isinstance(value, Sequence) and not isinstance(value, str)
        if not several and not blocking(is_folder, value):
            return self._one(name, cast(InputValue, value))
        values: list[InputValue] = list(cast(Sequence[InputValue], value)) if several else [cast(InputValue, value)]
        if folders := blocking(folders_among, values):
            kind = self._type(name)
            if kind == "file":
                raise MillraceError(f"input {name!r} takes one file, and {folders[0]} is a folder: name a file in it")
            if kind == "files":
                several, values = True, blocking(with_files, values)
        paths = blocking(local_paths, values)
        each(AT_ONCE, self._send, paths - self._uploaded.keys())
        ready = [self._one(name, one) for one in values]
        return ready if several else ready[0]

    def _type(self, name: str) -> str:
        """The type of an input: file, files or directory."""
        if self._definition is None:
            workflow = self._transfer.transport.call(calls.workflow(self.workflow, models.Workflow))
            self._definition = workflow.definition.model_dump(mode="json", by_alias=True)
        return input_type(self._definition, name)

    def _one(self, name: str, value: InputValue) -> Any:
        if is_frame(value):
            if id(value) not in self._uploaded:
                file = self._transfer.upload_frame(value, f"{name}.csv", LARGE_FROM)
                self._uploaded[id(value)] = file.key
            return self._uploaded[id(value)]
        if isinstance(value, str | os.PathLike):
            path = blocking(local_path, value)
            if path is not None and path not in self._uploaded:
                self._send(path)
            return value if path is None else self._uploaded[path]
        return dict(value) if isinstance(value, Mapping) else value.key

    def _send(self, path: Path) -> None:
        if blocking(path.is_dir):
            file = self._transfer.upload_folder(path)
        else:
            file = self._transfer.upload(path, path.name, None, LARGE_FROM)
        self._uploaded[path] = file.key
