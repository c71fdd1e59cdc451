"""Outputs by their names, and what can be read from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from . import models
from .errors import MillraceError, OutputNotFound

if TYPE_CHECKING:
    import numpy
    import pandas
    import polars

T = TypeVar("T")

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")


def by_name(definition: Mapping[str, Any], rows: list[models.Output]) -> dict[str, list[models.Output]]:
    """The files under the names that the definition gives them, else under `node.port`."""
    declared: Mapping[str, Any] = definition.get("outputs") or {}
    found: dict[str, list[models.Output]] = {}
    for row in sorted(rows, key=lambda row: (row.index or 0, row.key)):
        place = f"{row.node_id}.{row.port}"
        names = [name for name, output in declared.items() if output["from"] == place] or [place]
        for name in names:
            found.setdefault(name, []).append(row)
    return found


class Outputs(dict[str, T]):
    """The outputs of a run by their names. A name that is not there says which are."""

    def __init__(self, run: str, outputs: Mapping[str, T]) -> None:
        super().__init__(outputs)
        self._run = run

    def __missing__(self, name: str) -> T:
        there = f"it has {', '.join(self)}" if self else "it has none"
        raise OutputNotFound(f"{self._run} has no output {name!r}: {there}")


def to_pandas(path: Path, options: Mapping[str, Any]) -> pandas.DataFrame:
    """Reads a table with pandas, by the ending of its name."""
    try:
        import pandas
    except ImportError:
        raise MillraceError("to_pandas needs pandas: pip install pandas") from None
    readers: dict[str, Any] = {
        ".csv": pandas.read_csv,
        ".tsv": pandas.read_table,
        ".tab": pandas.read_table,
        ".txt": pandas.read_table,
        ".json": pandas.read_json,
        ".jsonl": lambda p, **o: pandas.read_json(p, lines=True, **o),
        ".parquet": pandas.read_parquet,
        ".feather": pandas.read_feather,
        ".xlsx": pandas.read_excel,
    }
    table: pandas.DataFrame = _read(readers, path, options)
    return table


def to_polars(path: Path, options: Mapping[str, Any]) -> polars.DataFrame:
    """Reads a table with polars, by the ending of its name."""
    try:
        import polars
    except ImportError:
        raise MillraceError("to_polars needs polars: pip install polars") from None

    def tabs(path: Path, **options: Any) -> polars.DataFrame:
        return polars.read_csv(path, **{"separator": "\t", **options})

    readers: dict[str, Any] = {
        ".csv": polars.read_csv,
        ".tsv": tabs,
        ".tab": tabs,
        ".txt": tabs,
        ".json": polars.read_json,
        ".jsonl": polars.read_ndjson,
        ".parquet": polars.read_parquet,
        ".feather": polars.read_ipc,
        ".xlsx": polars.read_excel,
    }
    table: polars.DataFrame = _read(readers, path, options)
    return table


def sweep_table(sweep: models.Sweep, ports: Mapping[str, str]) -> pandas.DataFrame:
    """A row for each run of a sweep; numbers among the texts of its outputs are numbers."""
    try:
        import pandas
    except ImportError:
        raise MillraceError("to_pandas needs pandas: pip install pandas") from None
    rows: list[dict[str, Any]] = []
    for row in sweep.runs:
        values = row.parameters.model_dump(mode="json")
        texts = {output.port: output.value for output in row.outputs}
        seconds = None if row.run.duration_ms is None else row.run.duration_ms / 1000
        rows.append(
            {"run": row.run.id}
            | {name: values.get(name) for name in sweep.varied}
            | {"status": row.run.status, "seconds": seconds, "credits": row.run.credits_used}
            | {name: _value(texts.get(port)) for name, port in ports.items()}
        )
    return pandas.DataFrame(rows)


def _value(text: str | None) -> str | float | None:
    """What a small file says: a number if it is one."""
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text.strip()


def _read(readers: Mapping[str, Any], path: Path, options: Mapping[str, Any]) -> Any:
    endings = [e.lower() for e in path.suffixes]
    while endings and endings[-1] in _COMPRESSED:
        endings.pop()
    reader = readers.get(endings[-1] if endings else "")
    if reader is None:
        raise MillraceError(f"{path.name} is no table that its ending tells of: download it and read it as what it is")
    try:
        return reader(path, **options)
    except ImportError as error:  # what pandas and polars read some kinds with
        raise MillraceError(f"{path.name} cannot be read: {error}") from error


def to_image(path: Path) -> numpy.ndarray[Any, Any]:
    """Reads a picture with matplotlib, as an array of its pixels."""
    try:
        from matplotlib import image
    except ImportError:
        raise MillraceError("image needs matplotlib: pip install matplotlib") from None
    try:
        pixels: numpy.ndarray[Any, Any] = image.imread(path)
    except (OSError, SyntaxError, ValueError) as error:
        raise MillraceError(
            f"{path.name} is no picture such as a PNG: download it and open it as what it is"
        ) from error
    return pixels
