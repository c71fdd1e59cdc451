"""Outputs by their names, and tables in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import models
from .errors import MillraceError

if TYPE_CHECKING:
    import pandas

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


def read_table(path: Path, options: Mapping[str, Any]) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError:
        raise MillraceError("to_pandas needs pandas: pip install pandas") from None
    endings = [e.lower() for e in path.suffixes]
    while endings and endings[-1] in _COMPRESSED:
        endings.pop()
    kind = endings[-1] if endings else ""
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
    if kind not in readers:
        raise MillraceError(f"{path.name} is no table that its ending tells of: download it and read it as what it is")
    table: pandas.DataFrame = readers[kind](path, **options)
    return table
