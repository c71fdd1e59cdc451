"""What can go wrong, each with the sentence that says what to do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._async.run import AsyncRun
    from ._sync.run import Run
    from .models import Detail


class MillraceError(Exception):
    """Everything that this package raises on purpose."""


class ConnectionLost(MillraceError):
    """The server could not be reached, or did not answer to the end, however often it was tried."""


class TransferFailed(MillraceError):
    """A file did not arrive, or not as it was sent."""


class RunNotCompleted(MillraceError):
    """A run that was waited for failed, was cancelled or was interrupted.

    `run` is that run, with its logs and outputs. After waiting for several runs, `runs` are all that did not complete
    and `run` is the first of them.
    """

    run: Run
    runs: list[Run]

    def __init__(self, runs: Sequence[Any], of: int = 1) -> None:
        self.run, self.runs = runs[0], list(runs)
        super().__init__(_not_completed(runs, of))


class AsyncRunNotCompleted(RunNotCompleted):
    """What an `AsyncClient` raises: a RunNotCompleted whose runs have methods to await."""

    run: AsyncRun  # type: ignore[assignment]  # pyright: ignore[reportIncompatibleVariableOverride]
    runs: list[AsyncRun]  # type: ignore[assignment]  # pyright: ignore[reportIncompatibleVariableOverride]


def _not_completed(runs: Sequence[Run], of: int) -> str:
    """One line for a single run, else one for each of the first five."""
    lines: list[str] = []
    for run in runs[:5]:
        why = f": {run.error_message}" if run.error_message else ""
        lines.append(f"run {run.number} of {run.workflow_name} ({run.id}) is {run.status}{why}")
    if of == 1:
        return lines[0]
    if len(runs) > 5:
        lines.append(f"and {len(runs) - 5} more")
    return "\n  ".join([f"{len(runs)} of {of} runs did not complete:", *lines])


class APIError(MillraceError):
    """The server refused. The text is the server's own sentence; `code` is for programs."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str = "",
        request_id: str = "",
        details: list[Detail] | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.message = message
        self.status = status
        self.code = code
        self.request_id = request_id
        self.details = details or []
        self.retry_after = retry_after
        super().__init__(message)

    def __str__(self) -> str:
        lines = [f"{self.message} ({self.code})" if self.code else self.message]
        lines += ["  " + _detail(d) for d in self.details]
        return "\n".join(lines)


def _detail(d: Detail) -> str:
    """A problem of a definition names its step itself; what is added is the field, not the path, which counts steps."""
    if d.code:
        return f"{d.message} ({d.field})" if d.field and not d.edge else d.message
    return f"{d.path}: {d.message}" if d.path else d.message


class InvalidRequest(APIError):
    """400: `details` say what is wrong, all at once."""


class NotSignedIn(APIError):
    """401: there is no token, or it is not valid any more."""


class PaymentRequired(APIError):
    """402: not enough credits or storage, or more than the plan has."""


class Forbidden(APIError):
    """403: the role, or the token's scope, does not allow it."""


class NotFound(APIError):
    """404: the team has no such thing. The client raises it as well where it looks up a name."""

    def __init__(self, message: str, *, status: int = 404, code: str = "not_found", **more: Any) -> None:
        super().__init__(message, status=status, code=code, **more)


class OutputNotFound(NotFound, KeyError):
    """A run has no output of this name. It is a KeyError as well."""


class Conflict(APIError):
    """409 and 412: it is not in a state that allows it, or was changed meanwhile."""


class TooLarge(APIError):
    """413: more than the server takes."""


class UnsupportedType(APIError):
    """415: a kind of file that the server does not take."""


class RateLimited(APIError):
    """429: too many requests, although the client waited. `retry_after` says in how many seconds to try again."""

    def __str__(self) -> str:
        again = f"\n  Try again in {duration(self.retry_after)}." if self.retry_after else ""
        return super().__str__() + again


def duration(seconds: float) -> str:
    """A time in the words of a sentence, such as `42 seconds`."""
    for name, size in (("hour", 3600), ("minute", 60)):
        if seconds >= 2 * size:
            return f"{math.ceil(seconds / size)} {name}s"
    whole = max(1, math.ceil(seconds))
    return "1 second" if whole == 1 else f"{whole} seconds"


class ServerError(APIError):
    """5xx: not the caller's doing. `request_id` is what the operator asks for."""


_BY_STATUS: dict[int, type[APIError]] = {
    400: InvalidRequest,
    401: NotSignedIn,
    402: PaymentRequired,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    413: TooLarge,
    415: UnsupportedType,
    429: RateLimited,
}


def error_type(status: int) -> type[APIError]:
    """The class for a status."""
    return _BY_STATUS.get(status, ServerError if status >= 500 else APIError)
