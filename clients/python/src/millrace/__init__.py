"""Build, run and watch computational workflows on a Millrace server.

from millrace import Client

run = Client().run("word count", {"minLength": 3}, inputs={"texts": ["a.txt", "b.txt"]}).wait()
run.outputs["table"].to_pandas()
"""

from . import errors, models
from ._async.client import AsyncClient
from ._async.run import AsyncOutput, AsyncOutputFile, AsyncRun
from ._async.runs import AsyncRuns, AsyncSweep
from ._async.saved import AsyncSavedWorkflow
from ._sync.client import Client
from ._sync.run import Output, OutputFile, Run
from ._sync.runs import Runs, Sweep
from ._sync.saved import SavedWorkflow
from .errors import APIError, AsyncRunNotCompleted, MillraceError, NotFound, RunNotCompleted
from .tasks import each, task
from .workflow import Workflow

__all__ = [
    "APIError",
    "AsyncClient",
    "AsyncOutput",
    "AsyncOutputFile",
    "AsyncRun",
    "AsyncRunNotCompleted",
    "AsyncRuns",
    "AsyncSavedWorkflow",
    "AsyncSweep",
    "Client",
    "MillraceError",
    "NotFound",
    "Output",
    "OutputFile",
    "Run",
    "RunNotCompleted",
    "Runs",
    "SavedWorkflow",
    "Sweep",
    "Workflow",
    "each",
    "errors",
    "models",
    "task",
]
