"""What a person sees while the client waits: a line that is rewritten on a terminal, a bar in a notebook, and lines
elsewhere. All of it goes to standard error, except the logs of a run."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass
from html import escape
from types import TracebackType
from typing import Any, Self

from . import models

ENDED = ("completed", "failed", "cancelled", "interrupted")

_current: ContextVar[View] = ContextVar("view")


@dataclass(frozen=True)
class State:
    """How far something is: what a line says, and how much is done."""

    text: str
    percent: float
    phase: str = ""  # a new one is worth a line of its own

    @property
    def line(self) -> str:
        return f"{self.percent:3.0f} %  {self.text}"


class View:
    """Shows nothing but logs; the others add to it. While it is entered, the client's messages go through it."""

    def show(self, state: State) -> None:
        """Takes the newest state."""

    def say(self, text: str) -> None:
        """Takes a message, such as why the client waits."""

    def log(self, text: str) -> None:
        """Prints what a run wrote."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def __enter__(self) -> Self:
        self._token: Token[View] = _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.reset(self._token)


class LineView(View):
    """Prints a line for each phase and each tenth that is done."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._shown: tuple[str, int] | None = None

    def show(self, state: State) -> None:
        news = (state.phase, int(state.percent // 10))
        if news != self._shown:
            self._shown = news
            self.say(f"{self.title}: {state.line}")

    def say(self, text: str) -> None:
        print(clean(text), file=sys.stderr, flush=True)


class TerminalView(View):
    """Rewrites one line, which stays with its last text."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._line = ""
        self._last = ""  # what to show again below a log

    def show(self, state: State) -> None:
        self.say(f"{self.title}: {state.line}")

    def say(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        line = clean(text).replace("\n", " ")
        line = line if len(line) <= width else line[: max(0, width - 1)] + "…"
        if line != self._line:
            print("\r" + line.ljust(len(self._line)), end="", file=sys.stderr, flush=True)
            self._line = self._last = line

    def log(self, text: str) -> None:
        print("\r" + " " * len(self._line) + "\r", end="", file=sys.stderr, flush=True)
        self._line = ""
        super().log(clean(text))
        if text.endswith("\n"):
            self.say(self._last)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._line:
            print(file=sys.stderr, flush=True)
        super().__exit__(kind, error, trace)


class NotebookView(View):
    """Updates one bar below the cell."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._handle: Any = None
        self._state = State("", 0)

    def show(self, state: State) -> None:
        self._state = state
        self._draw(state)

    def say(self, text: str) -> None:
        self._draw(State(text, self._state.percent))

    def _draw(self, state: State) -> None:
        from IPython.display import HTML, display

        shown = HTML(progress_html(self.title, state))  # type: ignore[no-untyped-call]
        if self._handle is None:
            self._handle = display(shown, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(shown)


def view_for(title: str, progress: bool) -> View:
    """The view that fits where the output goes."""
    if not progress:
        return View()
    if in_notebook():
        return NotebookView(title)
    return TerminalView(title) if sys.stderr.isatty() else LineView(title)


def say(text: str, progress: bool) -> None:
    """Shows a message in the view that is open, else on a line of its own."""
    view = _current.get(None)
    if view is not None:
        view.say(text)
    elif progress:
        print(clean(text), file=sys.stderr, flush=True)


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    with contextlib.suppress(AttributeError):
        return ipython is not None and type(ipython.get_ipython()).__name__ == "ZMQInteractiveShell"
    return False


def run_state(message: models.RunMessage, before: State) -> State:
    """How far a run is, by a message with its status. What else it does not say is as before."""
    step = ""
    if message.waiting is not None:
        step = message.waiting.message
    elif message.total_nodes:
        step = f"{message.completed_nodes or 0} of {message.total_nodes} steps"
        if message.status == "running" and message.current_step:
            step += f"  {message.current_step}"
    percent = message.progress_percent
    if percent is None:  # the last message says only how it ended
        percent = 100 if message.status == "completed" else before.percent
    status = str(message.status)
    return State(f"{status}  {step}".strip(), percent, status)


def runs_state(statuses: Sequence[str]) -> State:
    """How far several runs are, as in `2 of 6 runs ended: 1 completed, 1 failed, 4 running`."""
    counts = Counter(statuses)
    ended = sum(counts[status] for status in ENDED)
    kinds = [f"{counts[status]} {status}" for status in (*ENDED, "running", "queued") if counts[status]]
    return State(f"{ended} of {len(statuses)} runs ended: {', '.join(kinds)}", 100 * ended / max(1, len(statuses)))


def clean(text: str) -> str:
    """Text of strangers without what moves a cursor or changes a title."""
    return "".join(c for c in text if c in "\n\t" or (ord(c) >= 32 and not 127 <= ord(c) < 160))


def progress_html(title: str, state: State) -> str:
    """A bar with its title and text."""
    percent = min(100.0, max(0.0, state.percent))
    return (
        '<div style="font-family:sans-serif;max-width:40em">'
        f"<div><b>{escape(title)}</b> {percent:.0f} %</div>"
        '<div style="background:#8883;border-radius:4px;height:8px;margin:4px 0">'
        f'<div style="background:#2f7d5d;border-radius:4px;height:8px;width:{percent:.1f}%"></div></div>'
        f'<div style="opacity:.7;font-size:90%">{escape(state.text)}</div></div>'
    )
