"""`shardwright inspect`: shows a dataset, a TFRecord file or a record, as a table or as JSON."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json
from shardwright.running.progress import counted
from shardwright.text.escaping import escape, unescaped

if TYPE_CHECKING:
    from shardwright.verify.describe import DatasetView, FileView, RecordView

_GAP = "  "
_SHOWN = 60
# Used if the terminal does not report its size.
_COLUMNS, _LINES = 80, 12


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    inspect = commands.add("inspect")
    inspect.add_argument("path", metavar="PATH", help="a dataset's folder, or any TFRecord file, plain or compressed")
    inspect.add_argument("--record", type=int, metavar="N", help="one record of a file, from 0")
    inspect.add_argument("--json", action="store_true", help="print it as JSON")
    inspect.set_defaults(command=_inspect)


def _inspect(options: argparse.Namespace) -> int:
    from shardwright.errors import UsageError
    from shardwright.storage import is_folder
    from shardwright.verify.describe import record_of_file, view_dataset, view_file, view_record

    if options.record is not None and options.record < 0:
        raise UsageError(f"--record: {options.record} is not a record number. Count from 0.")
    if is_folder(options.path):
        if options.record is not None:
            raise UsageError(f"{options.path}: --record is for a file. Give a shard, or use `shardwright get`.")
        dataset = view_dataset(options.path)
        if options.json:
            print_json(dataset)
        else:
            print(dataset_text(dataset))
        return 0
    if options.record is not None:
        payload = record_of_file(options.path, options.record)
        record = view_record(payload, f"{options.path}, record {options.record}")
        if options.json:
            print_json(record)
        else:
            print_record(record, payload)
        return 0
    file = view_file(options.path)
    if options.json:
        print_json(file)
    else:
        print(file_text(file))
    return 1 if file.others else 0


def dataset_text(view: DatasetView) -> str:
    """Returns a dataset as text."""
    facts = [
        ("dataset", f"{view.root} ({view.kind}, {view.task})"),
        ("classes", f"{len(view.classes)}: {', '.join(view.classes)}" if view.classes else "none"),
        ("labels", view.labels),
        ("inputs", ", ".join(f"{name} {count}" for name, count in view.totals.items() if "/" not in name)),
        ("fingerprint", view.fingerprint),
    ]
    splits = [("split", "records", "shards", "MB", "records a shard")]
    splits += [
        (s.name, f"{s.records:,}", str(s.shards), f"{s.bytes / 1e6:,.1f}", _format_range(s.least, s.most))
        for s in view.splits
    ]
    here = {stored: ours for ours, stored in view.stored_as.items()}
    features = [("feature", "type", "")]
    features += [(name, kind, f"our {here[name]}" if name in here else "") for name, kind in view.features.items()]
    return "\n\n".join([_table(facts), _table(splits), _table(features)])


def file_text(view: FileView) -> str:
    """Returns a file of TFRecords as text."""
    packed = ", compressed" if view.compressed else ""
    lines = [f"{escape(view.path)}: {counted(view.records, 'record')}, {view.bytes / 1e6:,.2f} MB{packed}"]
    if view.features:
        rows = [("feature", "type", "records", "values", "bytes at most", "first")]
        rows += [
            (
                one.name,
                "|".join(one.kinds),
                str(one.records),
                _format_range(one.least, one.most),
                str(one.largest or ""),
                _cut(one.shown),
            )
            for _, one in sorted(view.features.items())
        ]
        lines += ["", _table(rows)]
    if view.looked_into < view.records:
        lines.append(f"(features of the first {counted(view.looked_into, 'record')})")
    lines += [f"! {escape(problem)}" for problem in view.others]
    if view.damaged:
        lines.append(f"{counted(view.damaged, 'record')} cannot be read")
    return "\n".join(lines)


def record_text(view: RecordView) -> str:
    """Returns a record as text."""
    rows = [("feature", "type", "values", "bytes", "begins with")]
    rows += [(one.name, one.kind, str(one.values), str(one.bytes or ""), _cut(one.shown)) for one in view.features]
    return f"{escape(view.where)}: {view.bytes:,} bytes\n\n{_table(rows)}"


def print_record(view: RecordView, payload: bytes) -> None:
    """Prints a record as text, with its picture where the terminal can show one."""
    print(record_text(view))
    picture = _picture(view, payload) if sys.stdout.isatty() else ""
    if picture:
        # The colors are control sequences of ours.
        unescaped(sys.stdout).write(f"\n{picture}\n")


def _picture(view: RecordView, payload: bytes) -> str:
    from shardwright.tfrecords.records import find_feature
    from shardwright.verify.describe import draw

    columns, lines = shutil.get_terminal_size()
    found = find_feature(payload, view.image) if view.image else None
    return draw(bytes(found[0]), columns or _COLUMNS, max(_LINES, lines // 2)) if found else ""


def _format_range(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    shown = [[escape(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in shown) for column in range(len(shown[0]) - 1)]
    lines = ([*(f"{cell:{width}}" for cell, width in zip(row, widths, strict=False)), row[-1]] for row in shown)
    return "\n".join(_GAP.join(line).rstrip() for line in lines)
