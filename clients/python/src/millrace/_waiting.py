"""What sync and async code do differently, side by side: the first of each pair is what the second becomes."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeAlias, TypeVar

import anyio
import anyio.to_thread

P = ParamSpec("P")
T = TypeVar("T")

AsyncStream: TypeAlias = AsyncGenerator[T, None]
Stream: TypeAlias = Generator[T, None, None]


async def async_sleep(seconds: float) -> None:
    await anyio.sleep(seconds)


def sleep(seconds: float) -> None:
    time.sleep(seconds)


async def async_blocking(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Calls what would hold up the event loop in a thread."""
    return await anyio.to_thread.run_sync(partial(function, *args, **kwargs))


def blocking(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return function(*args, **kwargs)


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
        futures = [pool.submit(function, item) for item in items]
        try:
            for future in futures:
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
