"""A run: waiting for it, reading what it writes, and fetching what it made."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _calls as calls
from .. import models
from .._fields import RunFields
from .._graph import run_html
from .._inputs import plain
from .._outputs import Outputs, by_name, to_image, to_pandas, to_polars
from .._views import State, run_state, view_for
from .._waiting import AsyncDetails, AsyncStream, async_blocking
from ..errors import AsyncRunNotCompleted, MillraceError, NotFound
from .transfer import AsyncTransfer
from .transport import AsyncTransport

if TYPE_CHECKING:
    import numpy
    import pandas
    import polars


class AsyncRun(RunFields, AsyncDetails):
    """A run as it was when it was last looked at: `refresh` looks again."""

    def __init__(self, transport: AsyncTransport, row: models.RunRow) -> None:
        super().__init__(row)
        self._transport = transport

    async def refresh(self) -> AsyncRun:
        """Looks at the run again."""
        self._row = await self._transport.call(calls.run(self.id))
        return self

    async def wait(
        self, *, timeout: float | None = None, progress: bool | None = None, logs: bool = False, check: bool = True
    ) -> AsyncRun:
        """Waits until the run has ended, and shows how far it is (progress=False: never).

        With logs=True it prints what the tasks write. A run that does not complete raises RunNotCompleted, unless
        check=False. After timeout seconds it raises TimeoutError, and the run goes on.
        """
        shown = self._transport.progress if progress is None else progress
        state = State(self.status, 0)
        with view_for(f"{self.workflow_name} #{self.number}", shown) as view:
            async for message, text in self._watch(timeout, logs):
                if text:
                    view.log(text)
                if message.status is not None:
                    state = run_state(message, state)
                    view.show(state)
        await self.refresh()
        if check and self.status != "completed":
            raise AsyncRunNotCompleted([self])
        return self

    async def follow(self, *, timeout: float | None = None) -> AsyncStream[models.RunMessage]:
        """Gives the messages of the run's stream until it has ended, over as many connections as it takes."""
        async for message, _ in self._watch(timeout, logs=False):
            yield message

    async def follow_logs(self, *, timeout: float | None = None) -> AsyncStream[str]:
        """Gives what the run writes, from the beginning and as it comes, without gaps."""
        async for _, text in self._watch(timeout, logs=True):
            if text:
                yield text

    async def _watch(self, timeout: float | None, logs: bool) -> AsyncStream[tuple[models.RunMessage, str]]:
        end = None if timeout is None else time.monotonic() + timeout
        offset = 0
        async with contextlib.aclosing(self._transport.frames(calls.stream(self.id), end)) as frames:
            async for frame in frames:
                message, text = models.RunMessage.model_validate_json(frame.data), ""
                log_end = int(frame.id.partition(":")[2] or 0)
                if logs and log_end > offset:
                    text, offset = await self._new_text(message, offset, log_end)
                yield message, text
                if message.type == "done":
                    return

    async def _new_text(self, message: models.RunMessage, offset: int, log_end: int) -> tuple[str, int]:
        """What was written since offset: the text of the message if it begins there, else what the server has."""
        if message.type == "progress" and message.logs is not None and message.log_offset == offset:
            return message.logs, log_end
        return await self._read_logs({"offset": offset})

    async def _read_logs(self, query: dict[str, str | int | bool | None]) -> tuple[str, int]:
        parts: list[str] = []
        while True:
            page = await self._transport.call(calls.logs(self.id, query))
            parts.append(page.text)
            if page.next_offset >= page.size or page.next_offset == page.offset:
                return "".join(parts), page.next_offset
            query = {**query, "offset": page.next_offset}

    async def logs(self, node: str | None = None, shard: int | None = None) -> str:
        """All that the run has written, or one node or one of its items."""
        text, _ = await self._read_logs({"nodeId": node, "shard": shard, "offset": 0})
        return text

    async def events(self, after: int = 0) -> list[models.RunEvent]:
        """What has happened, in order; `after` is the seq of the last event that is known already."""
        events: list[models.RunEvent] = []
        while True:
            page = await self._transport.call(calls.events(self.id, after))
            events += page.events
            if not page.has_more or not page.events:
                return events
            after = page.events[-1].seq

    async def cancel(self) -> AsyncRun:
        """Cancels the run."""
        await self._transport.call(calls.cancel_run(self.id))
        return await self.refresh()

    async def retry(self, parameters: dict[str, Any] | None = None, **more: Any) -> AsyncRun:
        """Starts a new run that reuses what has succeeded in this one."""
        body = more if parameters is None else {**more, "parameters": plain(parameters)}
        started = await self._transport.call(calls.retry_run(self.id, body))
        return AsyncRun(self._transport, await self._transport.call(calls.run(started.run_id)))

    @property
    async def outputs(self) -> Outputs[AsyncOutput]:
        """The run's verified outputs by their names in the definition."""
        if self._details is None:
            await self.refresh()
        rows = [row async for row in self._transport.pages(calls.outputs(self.id, every_node=False))]
        definition = self.info.definition.model_dump(mode="json", by_alias=True)
        found = {
            name: AsyncOutput(name, [AsyncOutputFile(self, row) for row in files])
            for name, files in by_name(definition, rows).items()
        }
        return Outputs(f"run {self.number} of {self.workflow_name}, which is {self.status},", found)

    def __repr__(self) -> str:
        return f"<Run {self.id} of {self.workflow_name!r}: {self.status}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": run_html(self._row)}

    def _repr_html_(self) -> str:
        return run_html(self._row)


class AsyncOutputFile:
    """One file that a run made. It is checked by its SHA-256 whenever it is fetched."""

    def __init__(self, run: AsyncRun, info: models.Output) -> None:
        self._run = run
        self.info = info

    @property
    def name(self) -> str:
        """The file's name."""
        return self.info.name

    @property
    def key(self) -> str:
        """The file's key on the server, which an input of another run takes."""
        return self.info.key

    async def download(self, to: str | os.PathLike[str] = ".", *, overwrite: bool = False) -> Path:
        """Fetches the file or folder into a folder, or under a name, and gives where it is."""
        if self.info.expires_at - datetime.now(UTC) < timedelta(seconds=60):
            await self._renew()
        return await AsyncTransfer(self._run._transport).download(self.info, to, overwrite)

    async def _renew(self) -> None:
        """Asks for another address: one works for a quarter of an hour."""
        async for row in self._run._transport.pages(calls.outputs(self._run.id, every_node=False)):
            if row.key == self.info.key:
                self.info = row
                return
        raise NotFound(f"{self.name} is no output of run {self._run.id} any more")

    async def _download_file(self, to: str | Path) -> Path:
        if self.info.directory is not None:
            raise MillraceError(f"{self.name} is a folder: download it, and read the files in it")
        return await self.download(to)

    async def read_bytes(self) -> bytes:
        """Fetches the file and returns its bytes."""
        with tempfile.TemporaryDirectory(prefix="millrace-") as folder:
            path = await self._download_file(Path(folder) / "file")
            return await async_blocking(path.read_bytes)

    async def read_text(self, encoding: str = "utf-8") -> str:
        """Fetches the file and returns its text."""
        return (await self.read_bytes()).decode(encoding)

    async def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """Reads a table with pandas, by the ending of the name: CSV, TSV, JSON, Parquet, Feather or Excel.

        The options are those of the function of pandas that reads it.
        """
        with tempfile.TemporaryDirectory(prefix="millrace-") as folder:
            return await async_blocking(to_pandas, await self._download_file(folder), options)

    async def to_polars(self, **options: Any) -> polars.DataFrame:
        """Reads a table with polars, by the ending of the name as `to_pandas` does."""
        with tempfile.TemporaryDirectory(prefix="millrace-") as folder:
            return await async_blocking(to_polars, await self._download_file(folder), options)

    async def image(self) -> numpy.ndarray[Any, Any]:
        """Reads a picture such as a PNG with matplotlib, as an array for `plt.imshow`."""
        with tempfile.TemporaryDirectory(prefix="millrace-") as folder:
            return await async_blocking(to_image, await self._download_file(folder))

    def __repr__(self) -> str:
        size = self.info.size if self.info.directory is None else self.info.directory.bytes
        return f"<OutputFile {self.name!r}, {size} bytes>"


class AsyncOutput:
    """What a run made under one name: one file, or several of a pattern or of a node that ran for each item."""

    def __init__(self, name: str, files: Sequence[AsyncOutputFile]) -> None:
        self.name = name
        self.files = list(files)

    @property
    def file(self) -> AsyncOutputFile:
        """The file, if there is one only."""
        if len(self.files) != 1:
            raise MillraceError(f"output {self.name!r} has {len(self.files)} files: choose one, as in output.files[0]")
        return self.files[0]

    @property
    def key(self) -> str:
        """The key of the file on the server, if there is one only."""
        return self.file.key

    async def download(self, to: str | os.PathLike[str] = ".", *, overwrite: bool = False) -> list[Path]:
        """Fetches all files into a folder; where there are several of an item each, below its number."""
        several = len({file.name for file in self.files}) < len(self.files)
        paths: list[Path] = []
        for file in self.files:
            folder = Path(to) / str(file.info.index) if several else Path(to)
            await async_blocking(folder.mkdir, parents=True, exist_ok=True)
            paths.append(await file.download(folder, overwrite=overwrite))
        return paths

    async def read_bytes(self) -> bytes:
        """Returns the bytes of the file."""
        return await self.file.read_bytes()

    async def read_text(self, encoding: str = "utf-8") -> str:
        """Returns the text of the file."""
        return await self.file.read_text(encoding)

    async def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """Reads the table in the file with pandas."""
        return await self.file.to_pandas(**options)

    async def to_polars(self, **options: Any) -> polars.DataFrame:
        """Reads the table in the file with polars."""
        return await self.file.to_polars(**options)

    async def image(self) -> numpy.ndarray[Any, Any]:
        """Reads the picture in the file with matplotlib, as an array for `plt.imshow`."""
        return await self.file.image()

    def __len__(self) -> int:
        return len(self.files)

    def __repr__(self) -> str:
        return f"<Output {self.name!r}: {', '.join(file.name for file in self.files[:5])}{'…' if len(self.files) > 5 else ''}>"
