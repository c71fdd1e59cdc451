"""What sync and async code do differently, side by side: the first of each pair is what the second becomes."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeAlias, TypeVar, cast

import anyio
import anyio.to_thread

from . import models
from .errors import MillraceError

if TYPE_CHECKING:
    from ._sync.run import Run

P = ParamSpec("P")
T = TypeVar("T")

AsyncStream: TypeAlias = AsyncGenerator[T, None]
Stream: TypeAlias = Generator[T, None, None]

AsyncLock = anyio.Lock
Lock = threading.Lock


async def async_sleep(seconds: float) -> None:
    await anyio.sleep(seconds)


def sleep(seconds: float) -> None:
    time.sleep(seconds)


async def async_blocking(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Calls what would hold up the event loop in a thread."""
    return await anyio.to_thread.run_sync(partial(function, *args, **kwargs))


def blocking(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return function(*args, **kwargs)


async def async_finally(function: Callable[P, Awaitable[None]], *args: P.args, **kwargs: P.kwargs) -> None:
    """Calls what has to be done even after the caller was cancelled."""
    with anyio.CancelScope(shield=True):
        await function(*args, **kwargs)


def always(function: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
    function(*args, **kwargs)


async def async_each(limit: int, function: Callable[[T], Awaitable[None]], items: Iterable[T]) -> None:
    """Calls function for all items, at most limit at once; the first failure ends it."""
    room = anyio.Semaphore(limit)
    failures: list[Exception] = []

    async def one(item: T) -> None:
        async with room:
            if failures:
                return
            try:
                await function(item)
            except Exception as error:
                failures.append(error)

    async with anyio.create_task_group() as group:
        for item in items:
            group.start_soon(one, item)
    if failures:
        raise failures[0]


def each(limit: int, function: Callable[[T], None], items: Iterable[T]) -> None:
    with ThreadPoolExecutor(limit) as pool:
        futures = [pool.submit(copy_context().run, function, item) for item in items]  # with the view that is open
        try:
            for future in futures:
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class _Details:
    _row: models.RunRow

    @property
    def _details(self) -> models.Run | None:
        """All about the run, if it was read; a list has less."""
        return self._row if isinstance(self._row, models.Run) else None


class AsyncDetails(_Details):
    """`info` of a run that comes from a list has to be read first: a property cannot be awaited and be plain."""

    @property
    def info(self) -> models.Run:
        """Everything about the run as of the last `refresh`."""
        if self._details is None:
            raise MillraceError("a list has only a part of this run: call `await run.refresh()` before run.info")
        return self._details


class Details(_Details):
    """`info` of a run that comes from a list is read when it is needed."""

    @property
    def info(self) -> models.Run:
        """Everything about the run as of the last `refresh`."""
        if self._details is None:
            cast("Run", self).refresh()
        assert self._details is not None
        return self._details
