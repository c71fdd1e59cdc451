"""What may be given as an input of a run, and the tables among it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from typing_extensions import TypeIs

from .errors import MillraceError, NotFound

if TYPE_CHECKING:
    import pandas
    import polars


class Stored(Protocol):
    """A file that the server has: a row of files or outputs, or what a run made."""

    @property
    def key(self) -> str:
        """The file's key on the server."""
        ...


DataFrame: TypeAlias = "pandas.DataFrame | polars.DataFrame"
InputValue: TypeAlias = "str | os.PathLike[str] | Stored | Mapping[str, Any] | DataFrame"
Given: TypeAlias = "tuple[Mapping[str, Any] | None, Inputs | None]"  # the parameters and inputs of a run
Inputs: TypeAlias = "Mapping[str, InputValue | Sequence[InputValue]]"


def local_path(value: str | os.PathLike[str]) -> Path | None:
    """The file or folder on this machine that is meant, or None for an address or a key of the server."""
    if isinstance(value, str) and "://" in value:
        return None
    path = Path(value)
    if path.is_file() or path.is_dir():
        return path
    if isinstance(value, str) and value.startswith("teams/"):
        return None
    raise FileNotFoundError(f"{value} is no file or folder here, no address, and no key of the server")


def local_paths(values: Sequence[InputValue]) -> set[Path]:
    """The files and folders of this machine among the values."""
    found = (local_path(value) for value in values if isinstance(value, str | os.PathLike))
    return {path for path in found if path is not None}


def is_folder(value: object) -> bool:
    """Whether this is the path of a folder on this machine."""
    return isinstance(value, str | os.PathLike) and (path := local_path(value)) is not None and path.is_dir()


def folders_among(values: Sequence[InputValue]) -> list[InputValue]:
    """The values that are paths of folders on this machine."""
    return [value for value in values if is_folder(value)]


def with_files(values: Sequence[InputValue]) -> list[InputValue]:
    """The values with the files of each folder in its place."""
    whole: list[InputValue] = []
    for value in values:
        whole += _files_below(Path(cast(str, value))) if is_folder(value) else [value]
    return whole


def _files_below(folder: Path) -> list[Path]:
    """All files of a folder in the order of their paths, without hidden ones."""
    found = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    if not found:
        raise FileNotFoundError(f"the folder {folder} has no files")
    return found


def is_frame(value: object) -> TypeIs[DataFrame]:
    """Whether this is a table of pandas or polars. What was not imported cannot have made it."""
    kinds = (getattr(sys.modules.get(library), "DataFrame", None) for library in ("pandas", "polars"))
    return any(isinstance(kind, type) and isinstance(value, kind) for kind in kinds)


def write_frame(frame: DataFrame, path: Path) -> None:
    """Writes a table as CSV, or as Parquet where the name ends in .parquet."""
    parquet = path.suffix.lower() == ".parquet"
    if not parquet and path.suffix.lower() != ".csv":
        raise ValueError(f"a table is uploaded as CSV or Parquet: {path.name!r} must end in .csv or .parquet")
    table: Any = frame
    if hasattr(table, "write_csv"):  # polars
        table.write_parquet(path) if parquet else table.write_csv(path)
        return
    labels = _has_labels(table)
    if not parquet:
        table.to_csv(path, index=labels)
        return
    try:
        table.to_parquet(path, index=labels)
    except ImportError:
        raise MillraceError("pandas writes Parquet with pyarrow: pip install pyarrow") from None


def _has_labels(frame: Any) -> bool:
    """Whether the rows of a pandas table have names, and not only numbers."""
    index = frame.index
    return any(name is not None for name in index.names) or "int" not in str(index.dtype)


def input_type(definition: Mapping[str, Any], name: str) -> str:
    """The type of an input in a definition: file, files or directory."""
    inputs: Mapping[str, Any] = definition.get("inputs") or {}
    if name not in inputs:
        raise NotFound(f"the workflow has no input {name!r}; its inputs are {', '.join(inputs) or 'none'}")
    return str(inputs[name]["type"])


def plain(value: Any) -> Any:
    """A value as JSON has it: numbers and arrays of numpy become those of Python."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple | range) else value


def each_set(
    parameters: Mapping[str, Any] | Iterable[Mapping[str, Any]] | None, inputs: Inputs | Iterable[Inputs] | None
) -> list[Given]:
    """The parameters and inputs of each run. What is not a list is repeated."""
    lists = [None if given is None or isinstance(given, Mapping) else list(given) for given in (parameters, inputs)]
    counts = [len(sets) for sets in lists if sets is not None]
    if not counts:
        raise ValueError('nothing varies: give a list, such as parameters=[{"n": 1}, {"n": 2}] or inputs=[…]')
    if len(set(counts)) > 1:
        raise ValueError(f"there are {counts[0]} sets of parameters and {counts[1]} sets of inputs")
    values, files = (
        [given] * counts[0] if sets is None else sets for given, sets in zip((parameters, inputs), lists, strict=True)
    )
    return cast("list[Given]", list(zip(values, files, strict=True)))
