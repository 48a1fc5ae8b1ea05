"""Parquet files: tables of annotations, and the images inside, as Hugging Face's `datasets` writes them.

A file is read in batches of bounded memory. The sizes that it states are compared with its pages first, see
`shardwright.formats.parquet_pages`. Fields become the text that `pandas` writes into a CSV, so a table is the same in
both formats. A column that `datasets` describes as `ClassLabel` has the names of its classes instead of their numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import IO, Any, NamedTuple

import numpy as np

from shardwright.errors import UsageError
from shardwright.formats import parquet_pages as pages
from shardwright.running.extras import missing_extra
from shardwright.storage import limits, open_file
from shardwright.storage.scratch import local_copy
from shardwright.tfrecords.scan import is_image
from shardwright.untrusted.budget import Budget
from shardwright.untrusted.json_text import parse_untrusted_json

# Rows that are read at once, fewer where pages are large, and bytes of a batch.
_MOST_ROWS, _BATCH = 1024, 256 << 20
# Rows that are looked at to find columns of images.
_PEEKED = 8
# The largest page, unpacked. One of images is as large as a record may be where the file is: images do not shrink.
_MOST_PAGE, _MOST_IMAGE_PAGE = 128 << 20, 1 << 30
BUDGET = Budget("columns in all row groups", objects=1 << 16, bytes_each=256, unpacked=_MOST_PAGE, ratio=16)
# Values within lists, for each byte of the file.
_VALUES_A_BYTE = 8
_MOST_STRINGS, _MOST_LISTED = 64 << 20, 1 << 20
# The index that pandas writes next to the columns; in a CSV it has no name.
_INDEX = re.compile(r"__index_level_\d+__")
# Older ones run code from a file's description of its types, unless this package is imported.
_SAFE, _FIX = (14, 0, 1), "pyarrow_hotfix"
_LISTS = ("Sequence", "List", "LargeList")


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file that can be read.

    Attributes:
        path: its path.
        columns: its columns.
        pin: see `shardwright.storage.read_bytes`.
    """

    path: str
    columns: tuple[Column, ...]
    pin: str = ""

    @staticmethod
    def open(path: str, pin: str = "") -> ParquetFile:
        """Reads the description of the columns.

        Raises:
            UsageError: it cannot be read, or pyarrow is not installed.
        """
        with _opened(path, pin) as (_, file):
            schema = file.schema_arrow
            features = _features(schema.metadata)
            fields = [(field.name.strip(), field.type, features.get(field.name)) for field in schema]
            columns = tuple(Column(name, _is_nested(kind), _is_image(kind), about) for name, kind, about in fields)
            if not columns:
                raise UsageError(f"{path}: has no columns. Give another file.")
            if not file.metadata.num_rows:
                raise UsageError(f"{path}: has 0 rows. Give a table with rows.")
            binary = {name for name, kind, _ in fields if _is_bytes(kind)}
        return ParquetFile(path, columns, pin)._with_images(binary)

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the columns, as the header of a CSV has them."""
        return tuple("" if _INDEX.fullmatch(column.name) else column.name for column in self.columns)

    @property
    def has_images(self) -> bool:
        """Whether a column has images."""
        return any(column.image for column in self.columns)

    def texts(self) -> Iterator[list[str]]:
        """Yields the fields of each row as a CSV has them.

        Raises:
            UsageError: a column is nested or has another type than text, numbers and times; the file is damaged.
        """
        nested = [column.name for column in self.columns if column.nested]
        if nested:
            raise UsageError(
                f"{self.path}: the {'columns' if len(nested) > 1 else 'column'} {', '.join(map(repr, nested))} "
                "contain lists or structures, and a table of annotations has one value a field. Write the table "
                f"without them, e.g. pandas.read_parquet(FILE).drop(columns={nested!r})."
            )
        row = 0
        for batch in self._batches(self.columns, _MOST_PAGE):
            arrays = zip(batch.columns, self.columns, strict=True)
            fields = [self._texts(array, column, row) for array, column in arrays]
            row += batch.num_rows
            yield from map(list, zip(*fields, strict=True))

    def rows(self, names: Collection[str]) -> Iterator[dict[str, Any]]:
        """Yields the chosen columns of each row as Python values; classes have their names."""
        chosen = [column for column in self.columns if column.name in names]
        most = _MOST_IMAGE_PAGE if any(column.image for column in chosen) else _MOST_PAGE
        for batch in self._batches(chosen, most):
            fields = [array.to_pylist() for array in batch.columns]
            for values in zip(*fields, strict=True):
                yield {
                    column.name: value if column.image else named(value, column.feature)
                    for column, value in zip(chosen, values, strict=True)
                }

    def _with_images(self, binary: Collection[str]) -> ParquetFile:
        """Returns the file with those columns of bytes described as images whose first values begin as images do.

        Args:
            binary: the columns of bytes; some programs write texts as bytes, too.
        """
        marked = tuple(one._replace(image=one.image or one.name in binary) for one in self.columns)
        chosen = [column for column in marked if column.name in binary]
        batches = replace(self, columns=marked)._batches(chosen, _MOST_IMAGE_PAGE, _PEEKED)
        found: dict[str, bool] = {}
        for batch in islice(batches if chosen else (), 1):
            for column, array in zip(chosen, batch.columns, strict=True):
                values = [value for value in array.to_pylist() if value]
                found[column.name] = bool(values) and all(map(is_image, values))
        return replace(self, columns=tuple(one._replace(image=found.get(one.name, one.image)) for one in self.columns))

    def _batches(self, chosen: Sequence[Column], most: int, at_once: int = _MOST_ROWS) -> Iterator[Any]:
        """Yields record batches of bounded memory, with the chosen columns in their order."""
        picked = {column.name for column in chosen}
        numbers = [i for i, column in enumerate(self.columns) if column.name in picked]
        flat = [i for i in numbers if not self.columns[i].nested and not self.columns[i].image]
        with _opened(self.path, self.pin, flat) as (stream, file):
            rows = min(at_once, self._check_pages(stream, file, numbers, most))
            stored = file.schema_arrow.names  # Made anew at each call.
            names = [stored[i] for i in numbers]
            whole = len(numbers) == len(self.columns)
            yield from file.iter_batches(rows, columns=None if whole else names, use_threads=False)

    def _check_pages(self, stream: IO[bytes], file: Any, numbers: Collection[int], most: int) -> int:
        """Returns how many rows fit into a batch.

        Raises:
            PageError: the file states more than it contains, or more than is read at once.
        """
        size = pages.check_footer(stream)
        metadata = file.metadata
        if metadata.num_rows > size or metadata.num_rows != sum(
            metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)
        ):
            raise pages.PageError(f"it states {metadata.num_rows:,} rows in {size:,} bytes")
        BUDGET.check_objects(metadata.num_row_groups * metadata.num_columns, size)
        most = min(most, BUDGET.most_unpacked(size))
        names = file.schema_arrow.names
        wanted = {names[i] for i in numbers}
        largest: dict[str, int] = {}
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            for chunk in map(group.column, range(group.num_columns)):
                if chunk.path_in_schema.split(".")[0] not in wanted and chunk.path_in_schema not in wanted:
                    continue
                if chunk.file_path:
                    raise pages.PageError(f"its column {chunk.path_in_schema!r} is in another file")
                start = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
                stop = start + chunk.total_compressed_size
                column = f"its column {chunk.path_in_schema!r}"
                if not 0 < start <= stop <= size:
                    raise pages.PageError(f"{column} would be outside of the file")
                found = pages.scan_pages(stream, start, stop)
                if found.largest > most:
                    raise pages.PageError(
                        f"a page of {column} unpacks to {found.largest:,} bytes, and at most {most:,} are read; write "
                        "it with smaller row groups"
                    )
                if found.values > _VALUES_A_BYTE * size:
                    raise pages.PageError(f"{column} states {found.values:,} values in {size:,} bytes")
                name = chunk.path_in_schema
                largest[name] = max(found.largest, largest.get(name, 0))
        return max(1, min(_MOST_ROWS, _BATCH // max(1, sum(largest.values()))))

    def _texts(self, array: Any, column: Column, row: int) -> list[str]:
        """Returns the fields of a column of a batch whose first row is the given one."""
        import pyarrow

        kind = array.type
        if pyarrow.types.is_dictionary(kind):
            numbers = array.indices.to_pylist()
            used = sorted({number for number in numbers if number is not None})
            # A dictionary may be far larger than what a batch has of it.
            taken = self._texts(array.dictionary.take(pyarrow.array(used, pyarrow.int64())), column, row)
            known = dict(zip(used, taken, strict=True))
            return ["" if number is None else known[number] for number in numbers]
        try:
            if _is_bytes(kind):
                values = [None if value is None else value.decode("utf-8") for value in array.to_pylist()]
            else:
                values = _plain(array).to_pylist()
        except (UnicodeDecodeError, pyarrow.ArrowException, TypeError) as error:
            raise UsageError(
                f"{self.path}: the column {column.name!r} ({kind}) contains no text ({_first_line(error)}), in rows "
                f"{row + 1} to {row + len(array)}. Write it as text or numbers."
            ) from None
        fields = [_csv_text(named(value, column.feature)) for value in values]
        if max(map(len, fields), default=0) > limits.LONGEST_LINE:
            raise UsageError(
                f"{self.path}: the column {column.name!r} has a field of more than {limits.LONGEST_LINE:,} characters, "
                "so it is not a table."
            )
        return fields


class Column(NamedTuple):
    """A column of a file.

    Attributes:
        name: its name, without spaces around it.
        nested: whether it contains lists or structures.
        image: whether it contains images: a structure of `bytes` and `path`, or bytes that begin as an image does.
        feature: the description by `datasets`, or `None`.
    """

    name: str
    nested: bool
    image: bool
    feature: Any


def named(value: Any, feature: Any) -> Any:
    """Returns a value with the names of classes instead of their numbers, where `datasets` describes them.

    Args:
        value: as Arrow returns it.
        feature: its description, or `None`.
    """
    if isinstance(feature, dict) and feature.get("_type") in _LISTS:
        feature = feature.get("feature") if isinstance(value, dict) else [feature.get("feature")]
    if isinstance(value, dict):
        inner = feature if isinstance(feature, dict) else {}
        # `datasets` describes a list of structures as its values.
        lists = {name: not isinstance(one, list) and class_names(one) for name, one in inner.items()}
        inner = {name: [one] if lists[name] else one for name, one in inner.items()}
        return {name: named(one, inner.get(name)) for name, one in value.items()}
    if isinstance(value, list):
        one = feature[0] if isinstance(feature, list) and feature else feature
        return [named(part, one) for part in value]
    names = class_names(feature)
    if names and isinstance(value, int) and not isinstance(value, bool):
        # -1 is an image without a class.
        return None if value == -1 else names[value] if 0 <= value < len(names) else value
    return value


def class_names(feature: Any) -> tuple[str, ...]:
    """Returns the names of the classes that a description has; none where it is of something else."""
    if isinstance(feature, list) and feature:
        return class_names(feature[0])
    if not isinstance(feature, dict):
        return ()
    if feature.get("_type") in _LISTS:
        return class_names(feature.get("feature"))
    names = feature.get("names") if feature.get("_type") == "ClassLabel" else None
    return tuple(names) if isinstance(names, list) and all(isinstance(name, str) for name in names) else ()


def _csv_text(value: Any) -> str:
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)


def _plain(array: Any) -> Any:
    """Returns an array whose values have the text that pandas writes."""
    import pyarrow

    kind = array.type
    if pyarrow.types.is_floating(kind) and not pyarrow.types.is_float64(kind):
        # The shortest text of a number depends on how many bits it has.
        numbers = array.to_numpy(zero_copy_only=False)
        return pyarrow.array([None if np.isnan(number) else str(number) for number in numbers], pyarrow.string())
    if pyarrow.types.is_temporal(kind):
        return array.cast(pyarrow.string())
    return array


def _is_nested(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_nested(kind)) or hasattr(kind, "storage_type")


def _is_image(kind: Any) -> bool:
    import pyarrow

    members = range(kind.num_fields) if pyarrow.types.is_struct(kind) else ()
    return any(kind[i].name == "bytes" and _is_bytes(kind[i].type) for i in members)


def _is_bytes(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_binary(kind) or pyarrow.types.is_large_binary(kind))


def _features(metadata: Mapping[bytes, bytes] | None) -> Mapping[str, Any]:
    """Returns the description of the columns by `datasets`; nothing where there is none that can be read."""
    try:
        found = parse_untrusted_json((metadata or {}).get(b"huggingface", b"{}"))
    except ValueError:
        return {}
    for name in ("info", "features"):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


@contextmanager
def _opened(path: str, pin: str, flat: Sequence[int] = ()) -> Iterator[tuple[IO[bytes], Any]]:
    """Yields the bytes and pyarrow's reader of a file.

    Args:
        path: the file.
        pin: see `read_bytes`.
        flat: numbers of columns without lists and structures. Their texts stay dictionaries, so that a text that is
            stored once is in memory once.
    """
    with ExitStack() as stack:
        try:
            stream: IO[bytes] = stack.enter_context(open_file(stack.enter_context(local_copy(path, pin))))
        except OSError as error:
            raise UsageError(f"{path}: cannot be read ({error.strerror or error}).") from None
        try:
            pages.check_footer(stream)
            parquet = _import_pyarrow()
        except pages.PageError as error:
            raise _unreadable(path, error) from None
        import pyarrow

        options: dict[str, Any] = {
            "buffer_size": _MOST_LISTED,
            "thrift_string_size_limit": _MOST_STRINGS,
            "thrift_container_size_limit": _MOST_LISTED,
        }
        try:
            file = parquet.ParquetFile(stream, **options)
            schema = file.schema_arrow
            names, kinds = schema.names, pyarrow.types
            plain = [i for i in flat if kinds.is_string(schema.field(i).type) or kinds.is_binary(schema.field(i).type)]
            texts = [names[i] for i in plain if names.count(names[i]) == 1]
            if texts:
                file = parquet.ParquetFile(stream, read_dictionary=texts, **options)
            yield stream, file
        except (ValueError, pyarrow.ArrowException, OSError) as error:
            raise _unreadable(path, error) from None


def _import_pyarrow() -> Any:
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise missing_extra(error) or error from None
    if tuple(map(int, re.findall(r"\d+", pyarrow.__version__)[:3])) < _SAFE:
        try:
            __import__(_FIX)
        except ModuleNotFoundError:
            raise UsageError(
                f"pyarrow {pyarrow.__version__} runs code from files (CVE-2023-47248). Install a newer one, or its "
                "fix: pip install pyarrow-hotfix."
            ) from None
    return parquet


def _unreadable(path: str, error: Exception) -> UsageError:
    return UsageError(f"{path}: cannot be read as Parquet: {_first_line(error)}. Write the file again.")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
