"""Functions as tasks: the text of the function travels in the definition, and Python runs it where the task runs."""

from __future__ import annotations

import ast
import builtins
import inspect
import symtable
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .workflow import Input, Param, Port, Source, Task, Workflow

_READ = """\
import json, os, pathlib
def _files(port):
    names = os.environ.get("INPUT_" + port + "_LIST")
    return [pathlib.Path(name) for name in open(names).read().split("\\n") if name] if names else []
"""

_FROM_TEXT = {
    "integer": "int({})",
    "number": "float({})",
    "boolean": "{} == 'true'",
    "string": "{}",
    "array": "json.loads({})",
    "object": "json.loads({})",
}


@dataclass(frozen=True)
class each:
    """Marks the argument of a task over whose items it runs, once for each."""

    over: Input | Param | Port


class FunctionTask:
    """A function that becomes a task when it is called inside of `with Workflow(…):`."""

    def __init__(
        self, function: Callable[..., Any], outputs: Mapping[str, str | Mapping[str, Any]], options: dict[str, Any]
    ) -> None:
        self.function = function
        self.name = function.__name__
        self._outputs = outputs
        self._options = options
        self._source = _source_of(function)
        self._signature = inspect.signature(function)

    def __call__(self, *args: Any, task_id: str | None = None, **kwargs: Any) -> Task:
        """Adds the task to the workflow. Inputs and outputs of tasks arrive as paths, parameters as values, and what
        else is given as it is, as far as Python can write it down."""
        bound = self._signature.bind(*args, **kwargs)
        inputs: dict[str, Source] = {}
        scatter: Input | Param | Port | None = None
        arguments: list[str] = []
        for name, value in bound.arguments.items():
            if isinstance(value, each):
                if scatter is not None:
                    raise ValueError(f"{self.name}: only one argument can be each(…)")
                scatter = value.over
                text = "os.environ['ITEM']"
                arguments.append(f"{name}={text if isinstance(scatter, Param) else f'pathlib.Path({text})'}")
                continue
            if _is_source(value):
                inputs[name] = value
            arguments.append(f"{name}={_argument(self.name, name, value)}")
        command = f"{_READ}\n{self._source}\n{self.name}({', '.join(arguments)})\n"
        options: dict[str, Any] = {"interpreter": "python3", "name": self.name.replace("_", " "), **self._options}
        return Workflow.current().task(
            task_id or self.name, command, inputs=inputs, outputs=self._outputs, scatter=scatter, **options
        )


def task(
    *, outputs: Mapping[str, str | Mapping[str, Any]], **options: Any
) -> Callable[[Callable[..., Any]], FunctionTask]:
    """Makes a task of a function, which leaves files at the paths of outputs. Options are those of Workflow.task.

    The function runs elsewhere, so it imports what it needs inside of itself and uses nothing around it.
    """

    def decorate(function: Callable[..., Any]) -> FunctionTask:
        return FunctionTask(function, outputs, options)

    return decorate


def _is_source(value: Any) -> bool:
    several = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
    return isinstance(value, Input | Port) or (several and all(isinstance(one, Port) for one in value))


def _argument(function: str, name: str, value: Any) -> str:
    """The Python expression that gives the value where the task runs."""
    if isinstance(value, Param):
        text = f"os.environ['PARAM_{value.name}']"
        return _FROM_TEXT.get(value.type or "", "{}").format(text)
    if _is_source(value):
        many = value.many if isinstance(value, Input | Port) else True
        return f"_files({name!r})" if many else f"(_files({name!r}) or [None])[0]"
    text = repr(value)
    try:
        if ast.literal_eval(text) == value:
            return text
    except (ValueError, SyntaxError):
        pass
    raise TypeError(
        f"{function}: {name} is {text[:80]}, which cannot be written into a task; make it a parameter or a file"
    )


def _source_of(function: Callable[..., Any]) -> str:
    """The text of the function without its decorators."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise TypeError(f"{function.__name__} must be a plain function")
    tree.decorator_list = []
    tree.returns = None
    for argument in [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]:
        argument.annotation = None  # names of types may not be there
    text = ast.unparse(tree) + "\n"
    around = _names_around(symtable.symtable(text, "task", "exec")) - {function.__name__} - set(dir(builtins))
    if around:
        raise ValueError(
            f"{function.__name__} uses {', '.join(sorted(around))} from around it, and will not find that where it runs: "
            "import or define it inside of the function, or hand it over as an argument"
        )
    return text


def _names_around(table: symtable.SymbolTable) -> set[str]:
    """The names that are read in the text and nowhere defined in it."""
    names = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() and symbol.is_referenced()}
    return names.union(*(_names_around(child) for child in table.get_children()))
