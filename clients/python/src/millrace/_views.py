"""How a run looks while one waits for it: a bar in a terminal, a small table in a notebook, nothing elsewhere."""

from __future__ import annotations

import contextlib
import sys
from html import escape
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape as escape_markup
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

from . import models


class View:
    """Shows nothing but logs; the others add to it."""

    def show(self, message: models.RunMessage) -> None:
        pass

    def log(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class TerminalView(View):
    def __init__(self, title: str, console: Console) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[step]}"),
        )
        self._title = title
        self._progress = Progress(*columns, console=console)
        self._task: TaskID = self._progress.add_task(escape_markup(clean(title)), total=100, step="")

    def show(self, message: models.RunMessage) -> None:
        if message.status is not None:
            self._progress.update(
                self._task, completed=message.progress_percent or 0, step=escape_markup(clean(step_of(message)))
            )

    def log(self, text: str) -> None:
        self._progress.console.print(clean(text), end="", markup=False, highlight=False, soft_wrap=True)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()


class NotebookView(View):
    def __init__(self, title: str) -> None:
        self._title = title
        self._handle: Any = None

    def show(self, message: models.RunMessage) -> None:
        if message.status is None:
            return
        from IPython.display import HTML, display

        shown = HTML(progress_html(self._title, message))  # type: ignore[no-untyped-call]
        if self._handle is None:
            self._handle = display(shown, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(shown)


def view_for(title: str, progress: bool | None) -> View:
    """The view that fits where the output goes; progress=False: only logs."""
    if progress is False:
        return View()
    if in_notebook():
        return NotebookView(title)
    console = Console(stderr=True)
    return TerminalView(title, console) if progress or console.is_terminal else View()


def in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    with contextlib.suppress(AttributeError):
        return ipython is not None and type(ipython.get_ipython()).__name__ == "ZMQInteractiveShell"
    return False


def step_of(message: models.RunMessage) -> str:
    if message.waiting is not None:
        return message.waiting.message
    if message.total_nodes:
        return f"{message.completed_nodes or 0} of {message.total_nodes} nodes  {message.current_step or ''}".strip()
    return str(message.status)


def clean(text: str) -> str:
    """Text of strangers without what moves a cursor or changes a title."""
    return "".join(c for c in text if c in "\n\t" or (ord(c) >= 32 and not 127 <= ord(c) < 160))


def progress_html(title: str, message: models.RunMessage) -> str:
    percent = min(100.0, max(0.0, message.progress_percent or 0.0))
    return (
        '<div style="font-family:sans-serif;max-width:40em">'
        f"<div><b>{escape(title)}</b> {escape(str(message.status))} {percent:.0f} %</div>"
        '<div style="background:#8883;border-radius:4px;height:8px;margin:4px 0">'
        f'<div style="background:#2f7d5d;border-radius:4px;height:8px;width:{percent:.1f}%"></div></div>'
        f'<div style="opacity:.7;font-size:90%">{escape(step_of(message))}</div></div>'
    )
