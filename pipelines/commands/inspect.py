"""`shardwright inspect`: shows a dataset, a TFRecord file or a record, as a table or as JSON."""

from __future__ import annotations

import shlex
import shutil
import sys
from argparse import Namespace
from typing import Any

from shardwright.errors import UsageError
from shardwright.pipelines.commands.results import finish, table
from shardwright.running.progress import counted
from shardwright.storage import is_folder
from shardwright.text.escaping import escape, unescaped
from shardwright.tfrecords.records import find_feature
from shardwright.verify.describe import (
    DatasetView,
    FileView,
    RecordView,
    draw,
    record_of_file,
    view_dataset,
    view_file,
    view_record,
)

_SHOWN = 60
# Used if the terminal does not report its size.
_COLUMNS, _LINES = 80, 12


def run(options: Namespace) -> int:
    """Shows a dataset, a file or a record; returns 1 if a file has records that cannot be read."""
    if options.record is not None and options.record < 0:
        raise UsageError(f"--record: {options.record} is not a record number. Count from 0.")
    if is_folder(options.path):
        if options.record is not None:
            raise UsageError(f"{options.path}: --record is for a file. Give a shard, or use `shardwright get`.")
        dataset = view_dataset(options.path)
        following = f"shardwright report {shlex.quote(options.path)}"
        return finish(options, dataset, dataset_text(dataset), following=following)
    if options.record is not None:
        payload = record_of_file(options.path, options.record)
        view = view_record(payload, f"{options.path}, record {options.record}")
        return finish_record(options, view, view, payload)
    file = view_file(options.path)
    return finish(options, file, file_text(file), failed=bool(file.others))


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
    return "\n\n".join([table(facts), table(splits), table(features)])


def file_text(view: FileView) -> str:
    """Returns a file of TFRecords as text."""
    packed = ", compressed" if view.compressed else ""
    lines = [f"{escape(view.path)}: {counted(view.records, 'record')}, {view.bytes / 1e6:,.2f} MB{packed}"]
    if view.features:
        rows = [("feature", "type", "records", "values", "bytes at most", "first")]
        for _, feature in sorted(view.features.items()):
            values = _format_range(feature.least, feature.most)
            largest = str(feature.largest or "")
            rows.append(
                (feature.name, "|".join(feature.kinds), str(feature.records), values, largest, _cut(feature.shown))
            )
        lines += ["", table(rows)]
    if view.looked_into < view.records:
        lines.append(f"(features of the first {counted(view.looked_into, 'record')})")
    lines += [f"! {escape(problem)}" for problem in view.others]
    if view.damaged:
        lines.append(f"{counted(view.damaged, 'record')} cannot be read")
    return "\n".join(lines)


def finish_record(options: Namespace, value: Any, view: RecordView, payload: bytes) -> int:
    """Prints a record as JSON, or as text with its picture where the terminal can show one."""
    rows = [("feature", "type", "values", "bytes", "begins with")]
    rows += [
        (feature.name, feature.kind, str(feature.values), str(feature.bytes or ""), _cut(feature.shown))
        for feature in view.features
    ]
    finish(options, value, f"{escape(view.where)}: {view.bytes:,} bytes\n\n{table(rows)}")
    image = find_feature(payload, view.image) if view.image else None
    if image and sys.stdout.isatty() and not options.json:
        columns, lines = shutil.get_terminal_size()
        picture = draw(bytes(image[0]), columns or _COLUMNS, max(_LINES, lines // 2))
        # The colors are control sequences of ours.
        unescaped(sys.stdout).write(f"\n{picture}\n" if picture else "")
    return 0


def _format_range(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
