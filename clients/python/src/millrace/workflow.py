"""Workflows as Python code. What is built here is a definition (/help/definition of a server); the server checks it.

with Workflow("word count") as wf:
    texts = wf.files("texts")
    counts = wf.task("count", 'wc -w < "$ITEM" > n.txt', outputs={"n": "n.txt"}, scatter=texts)
    total = add(numbers=counts["n"])          # add is a function with @task
    wf.output("total", total["sum"])
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, Unpack

from ._fields import RunOptions, SweepOptions
from ._graph import svg
from ._inputs import Inputs

if TYPE_CHECKING:
    from ._sync.client import Client
    from ._sync.run import Run
    from ._sync.runs import Runs, Sweep

_current: ContextVar[Workflow] = ContextVar("workflow")
_NONE: Any = object()


@dataclass(frozen=True)
class Input:
    """A file, or files, that a run is given."""

    name: str
    many: bool

    @property
    def expression(self) -> str:
        return f"inputs.{self.name}"


@dataclass(frozen=True)
class Param:
    """A value that a run is given; a command finds it as `$PARAM_<name>`."""

    name: str
    type: str | None

    @property
    def expression(self) -> str:
        return f"params.{self.name}"


@dataclass(frozen=True)
class Port:
    """What a task makes under one name."""

    task: str
    name: str
    many: bool

    @property
    def expression(self) -> str:
        return f"nodes.{self.task}.outputs.{self.name}"


@dataclass(frozen=True)
class Task:
    """A task of a workflow; `task["name"]` is one of its outputs."""

    id: str
    ports: Mapping[str, Port]

    def __getitem__(self, name: str) -> Port:
        try:
            return self.ports[name]
        except KeyError:
            raise KeyError(f"task {self.id} has no output {name!r}, only {', '.join(self.ports) or 'none'}") from None


Source: TypeAlias = Input | Port | Sequence[Port]


class Workflow:
    """Collects inputs, parameters, tasks and outputs, and makes a definition of them."""

    def __init__(self, name: str, description: str | None = None) -> None:
        self.name = name
        self.description = description
        self._parameters: dict[str, dict[str, Any]] = {}
        self._inputs: dict[str, dict[str, Any]] = {}
        self._nodes: dict[str, dict[str, Any]] = {}
        self._edges: list[dict[str, str]] = []
        self._outputs: dict[str, dict[str, str]] = {}
        self._entered: list[Token[Workflow]] = []

    def __enter__(self) -> Self:
        self._entered.append(_current.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.reset(self._entered.pop())

    @staticmethod
    def current() -> Workflow:
        """The workflow whose `with` block this is."""
        try:
            return _current.get()
        except LookupError:
            raise RuntimeError("a task is called inside of `with Workflow(…):`") from None

    def file(self, name: str, *, required: bool = True, description: str | None = None) -> Input:
        """Declares an input of one file."""
        return self._input(name, "file", required, description)

    def files(self, name: str, *, required: bool = True, description: str | None = None) -> Input:
        """Declares an input of any number of files."""
        return self._input(name, "files", required, description)

    def folder(self, name: str, *, required: bool = True, description: str | None = None) -> Input:
        """Declares an input of one folder, which a task finds with everything in it."""
        return self._input(name, "directory", required, description)

    def _input(self, name: str, kind: str, required: bool, description: str | None) -> Input:
        _once(self._inputs, name, "input")
        spec: dict[str, Any] = {"type": kind, "required": required}
        self._inputs[name] = spec | ({"description": description} if description else {})
        return Input(name, kind == "files")

    def param(self, name: str, default: Any = _NONE, *, type: str | None = None, **schema: Any) -> Param:
        """A parameter, with what JSON Schema says of it: minimum, maximum, enum, title, description.

        Without a default it is required; the type is that of the default unless it is said.
        """
        _once(self._parameters, name, "parameter")
        kind = type or (None if default is _NONE else _json_type(default))
        spec = {"type": kind} if kind else {}
        self._parameters[name] = spec | ({} if default is _NONE else {"default": default}) | schema
        return Param(name, kind)

    def task(
        self,
        id: str,
        command: str,
        *,
        inputs: Mapping[str, Source] | None = None,
        outputs: Mapping[str, str | Mapping[str, Any]] | None = None,
        scatter: Input | Param | Port | str | None = None,
        max_parallel: int | None = None,
        vcpu: float | None = None,
        ram_gb: float | None = None,
        gpu: int | None = None,
        retries: int | Mapping[str, Any] | None = None,
        after: Iterable[Task] = (),
        **fields: Any,
    ) -> Task:
        """A task: a command that finds its inputs as `$INPUT_<port>` and leaves files at the paths of its outputs.

        With scatter it runs once for each item of an input, a parameter, an output or a CEL expression, and finds the
        item as `$ITEM`. `fields` are the others of a node, as the definition calls them: name, image, interpreter, env,
        timeoutSeconds, when, cache, allowFailure, secrets, …
        """
        _once(self._nodes, id, "task")
        node: dict[str, Any] = {"id": id, "command": command, **fields}
        ports = {name: _output_port(spec) for name, spec in (outputs or {}).items()}
        if ports:
            node["outputs"] = ports
        resources = {"vcpu": vcpu, "ramGb": ram_gb, "gpu": gpu}
        if any(value is not None for value in resources.values()):
            node["resources"] = {key: value for key, value in resources.items() if value is not None}
        if retries is not None:
            node["retries"] = {"max": retries} if isinstance(retries, int) else dict(retries)
        if scatter is not None:
            limit = {} if max_parallel is None else {"maxParallel": max_parallel}
            node["scatter"] = {"over": scatter if isinstance(scatter, str) else scatter.expression, **limit}
        self._nodes[id] = node
        for port, source in (inputs or {}).items():
            self._connect(node, port, source)
        for earlier in after:
            self._edge(earlier.id, None, id, None)
        if isinstance(scatter, Port) and not any(
            e["source"] == scatter.task and e["target"] == id for e in self._edges
        ):
            self._edge(scatter.task, None, id, None)
        many = scatter is not None
        return Task(id, {name: Port(id, name, many or bool(spec.get("many"))) for name, spec in ports.items()})

    def _connect(self, node: dict[str, Any], port: str, source: Source) -> None:
        if isinstance(source, Input):
            optional = not self._inputs[source.name]["required"]
            node.setdefault("inputs", {})[port] = {"from": source.expression} | ({"optional": True} if optional else {})
            return
        for each in [source] if isinstance(source, Port) else source:
            self._edge(each.task, each.name, node["id"], port)

    def _edge(self, source: str, output: str | None, target: str, port: str | None) -> None:
        edge = {"id": f"e{len(self._edges) + 1}", "source": source, "target": target}
        self._edges.append(
            edge | ({"sourceHandle": output} if output else {}) | ({"targetHandle": port} if port else {})
        )

    def output(self, name: str, port: Port) -> None:
        """What the run hands over. Where none are declared, it is every task's outputs."""
        _once(self._outputs, name, "output")
        self._outputs[name] = {"from": f"{port.task}.{port.name}"}

    def definition(self) -> dict[str, Any]:
        """The definition, as /help/definition of a server describes it."""
        whole: dict[str, Any] = {
            "version": 1,
            "parameters": self._parameters,
            "inputs": self._inputs,
            "nodes": list(self._nodes.values()),
            "edges": self._edges,
            "outputs": self._outputs,
        }
        copied: dict[str, Any] = json.loads(json.dumps({key: value for key, value in whole.items() if value}))
        return copied

    def run(
        self,
        parameters: Mapping[str, Any] | None = None,
        inputs: Inputs | None = None,
        *,
        client: Client | None = None,
        **options: Unpack[RunOptions],
    ) -> Run:
        """Saves the workflow and starts a run, as `Client.run` does. Without a client it uses `Client()`."""
        return _client(client).run(self, parameters, inputs, **options)

    def map(
        self,
        parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        inputs: Inputs | Sequence[Inputs] | None = None,
        *,
        client: Client | None = None,
        progress: bool | None = None,
        **options: Unpack[RunOptions],
    ) -> Runs:
        """Saves the workflow and starts a run for each set of parameters or inputs, as `Client.map` does."""
        return _client(client).map(self, parameters, inputs, progress=progress, **options)

    def sweep(
        self,
        vary: Mapping[str, Iterable[Any]],
        parameters: Mapping[str, Any] | None = None,
        inputs: Inputs | None = None,
        *,
        client: Client | None = None,
        **options: Unpack[SweepOptions],
    ) -> Sweep:
        """Saves the workflow and starts a run for each combination of values, as `Client.sweep` does."""
        return _client(client).sweep(self, vary, parameters, inputs, **options)

    def save(self, path: str | Path) -> None:
        """Writes the definition as JSON, such as `millrace workflows apply` takes."""
        Path(path).write_text(json.dumps(self.definition(), indent=2) + "\n", encoding="utf-8")

    def __repr__(self) -> str:
        return f"<Workflow {self.name!r}: {len(self._nodes)} tasks>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": svg(self.definition())}

    def _repr_html_(self) -> str:
        return svg(self.definition())


def _client(given: Client | None) -> Client:
    from ._sync.client import Client  # which imports this module

    return given or Client()


def _once(there: Mapping[str, Any], name: str, what: str) -> None:
    if name in there:
        raise ValueError(f"there is {what} {name!r} already")


def _output_port(spec: str | Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(spec, str):
        return dict(spec)
    return {"path": spec} | ({"many": True} if any(c in spec for c in "*?[") else {})


def _json_type(value: Any) -> str | None:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return kinds.get(type(value))
