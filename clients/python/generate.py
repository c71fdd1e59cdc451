"""Generates what is generated: the models from the API's description, and the sync clients from the async ones."""

import contextlib
import subprocess
import sys
from pathlib import Path

import unasync

HERE = Path(__file__).resolve().parent
PACKAGE = HERE / "src" / "millrace"
DESCRIPTION = HERE.parents[1] / "api" / "openapi.yaml"

MODELS = f"""
--input {DESCRIPTION} --input-file-type openapi --output {PACKAGE / "models.py"}
--output-model-type pydantic_v2.BaseModel --base-class millrace._base.Model --target-python-version 3.11
--snake-case-field --use-annotated --use-standard-collections --use-union-operator --collapse-root-models
--enum-field-as-literal all --extra-fields allow --output-datetime-class AwareDatetime
--type-mappings uri=string email=string password=string
--use-schema-description --use-field-description --disable-timestamp --formatters builtin
"""

WORDS = {
    "AsyncClient": "Client",
    "AsyncTransport": "Transport",
    "AsyncTransfer": "Transfer",
    "AsyncDetails": "Details",
    "AsyncUploads": "Uploads",
    "AsyncRun": "Run",
    "AsyncRunNotCompleted": "RunNotCompleted",
    "AsyncRuns": "Runs",
    "AsyncSavedWorkflow": "SavedWorkflow",
    "AsyncSweep": "Sweep",
    "AsyncOutput": "Output",
    "AsyncOutputFile": "OutputFile",
    "AsyncIterator": "Iterator",
    "AsyncLock": "Lock",
    "AsyncStream": "Stream",
    "asynccontextmanager": "contextmanager",
    "aclosing": "closing",
    "aclose": "close",
    "aread": "read",
    "aiter_text": "iter_text",
    "aiter_bytes": "iter_bytes",
    "async_sleep": "sleep",
    "async_blocking": "blocking",
    "async_each": "each",
    "async_finally": "always",
}


def main() -> None:
    command = [sys.executable, "-m", "datamodel_code_generator", *MODELS.split()]
    subprocess.run(command, check=True, cwd=PACKAGE.parent, stdin=subprocess.DEVNULL)
    sources = sorted((PACKAGE / "_async").glob("*.py"))
    rule = unasync.Rule(fromdir="/_async/", todir="/_sync/", additional_replacements=WORDS)
    unasync.unasync_files([str(path) for path in sources], [rule])
    names = {path.name for path in sources}
    for path in (PACKAGE / "_sync").glob("*.py"):
        if path.name not in names:
            path.unlink()
            continue
        text = path.read_text(encoding="utf-8")
        path.write_text(
            f"# Generated from _async/{path.name}; run make gen after changing that.\n" + text, encoding="utf-8"
        )


with contextlib.suppress(KeyboardInterrupt):
    main()
