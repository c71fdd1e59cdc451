"""Shows Snakemake workflows live on a Millrace server: `snakemake --logger millrace`."""

import contextlib
import logging
import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Optional

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

from .events_file import EventsFile
from .translate import Translator

if TYPE_CHECKING:
    from .sender import Sender
    from .spool import Spool

__all__ = ["LogHandler", "LogHandlerSettings"]


def _no_client(server: str | None) -> str:
    """Where the command is that installs what is missing. A package of that name elsewhere is somebody else's."""
    server = (server or os.environ.get("MILLRACE_SERVER") or "").rstrip("/")
    page = f"{server}/clients/" if server else "the page /clients/ of your Millrace server"
    return f"the Millrace client is not installed. Run the command for Snakemake that you find on {page}"


# Snakemake reads the types to make options of them, and knows Optional, not `| None`.
# ruff: noqa: UP045
@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    server: Optional[str] = field(default=None, metadata={"help": "The Millrace server.", "env_var": False})
    token: Optional[str] = field(default=None, metadata={"help": "An API token, scope report.", "env_var": True})
    team: Optional[str] = field(default=None, metadata={"help": "The team, by id or name."})
    project: Optional[str] = field(default=None, metadata={"help": "What the runs are listed under (default: folder)."})
    run_name: Optional[str] = field(default=None, metadata={"help": "What to call this run."})
    events_file: Optional[str] = field(
        default=None, metadata={"help": "Where events are written in place of sending them.", "env_var": False}
    )
    exit_wait: int = field(
        default=10, metadata={"help": "Seconds that the end may wait for what is not sent yet.", "type": int}
    )


class LogHandler(LogHandlerBase):
    """Writes down what happens; a thread of its own sends it. Nothing in here raises, or waits for the server."""

    def __post_init__(self) -> None:
        settings = self.settings if isinstance(self.settings, LogHandlerSettings) else LogHandlerSettings()
        self._exit_wait = settings.exit_wait
        self._complained = False
        self._sender: Sender | None = None
        self._events: Spool | EventsFile | None = None
        if self.common_settings.dryrun:
            return
        try:
            self._translator = Translator(settings.project, settings.run_name, secrets=[settings.token or ""])
            self._events = EventsFile(settings.events_file) if settings.events_file else self._send(settings)
        except Exception as error:
            self._complain(error)

    def _send(self, settings: LogHandlerSettings) -> "Spool":
        # Where events go into a file, the client of the server need not be installed.
        try:
            from .sender import Account, Sender
        except ImportError as error:
            raise RuntimeError(_no_client(settings.server)) from error
        from .spool import Spool

        spool = Spool.create(self._translator.header)
        self._sender = Sender(Account(settings.server, settings.token, settings.team), spool)
        self._sender.start()
        return spool

    def emit(self, record: logging.LogRecord) -> None:
        if self._events is None:
            return
        try:
            for event in self._translator.events(record, self.format):
                self._events.append(event)
        except Exception as error:
            self._complain(error)

    def close(self) -> None:
        events, self._events = self._events, None
        if events is not None:
            try:
                events.append(self._translator.finish())
                if self._sender is not None:
                    self._sender.finish(self._exit_wait)
            except Exception as error:
                self._complain(error)
        super().close()

    def _complain(self, error: Exception) -> None:
        """Says it once, and leaves the workflow alone."""
        if not self._complained:
            self._complained = True
            with contextlib.suppress(OSError):
                print(f"millrace: this run is not reported: {error}", file=sys.stderr)

    @property
    def writes_to_stream(self) -> bool:
        return False

    @property
    def writes_to_file(self) -> bool:
        return False

    @property
    def has_filter(self) -> bool:
        return True  # --quiet is for the terminal

    @property
    def has_formatter(self) -> bool:
        return False

    @property
    def needs_rulegraph(self) -> bool:
        return True
