"""When a request is sent again, and after how long. Nothing in here waits or sends."""

from __future__ import annotations

import random

import httpx

ATTEMPTS = 6
LONGEST_ASKED = 90.0  # a server that asks to wait longer is not waited for
SETTLING = 90.0  # how long a server may take until it lists what has arrived in its bucket


def repeatable(method: str, keyed: bool) -> bool:
    """Whether the request has the same effect when it arrives twice."""
    return keyed or method in ("GET", "HEAD", "PUT", "DELETE")


def backoff(attempt: int) -> float:
    """About 0.25, 0.5, 1, 2, 4 seconds: long enough for a server to be started again."""
    return min(8.0, 0.25 * float(2 ** (attempt - 1))) * random.uniform(1.0, 1.5)


def retry_after(response: httpx.Response) -> float | None:
    try:
        return max(0.0, float(response.headers["Retry-After"]))
    except (KeyError, ValueError):
        return None


def after_error(error: httpx.HTTPError, attempt: int, again: bool) -> float | None:
    """The pause after a connection that was not made or broke; None: do not try again."""
    if attempt >= ATTEMPTS:
        return None
    never_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
    return backoff(attempt) if again or never_sent else None


def after_answer(response: httpx.Response, code: str, attempt: int, again: bool) -> float | None:
    """The pause after an answer that may be better next time; None: it is the answer."""
    asked = retry_after(response)
    if attempt >= ATTEMPTS or (asked or 0.0) > LONGEST_ASKED:
        return None
    pause = max(asked or 0.0, backoff(attempt))
    match response.status_code:
        case 429:  # nothing was carried out
            return pause
        case 503 if asked is not None or not code:
            return pause if again else None
        case 502 | 504:
            return pause if again else None
        case 409 if code == "idempotency_in_progress":  # the first is still being carried out
            return pause
        case _:
            return None
