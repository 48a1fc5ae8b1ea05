"""`shardwright verify`: lists damage in a dataset, as a table or as JSON."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING

from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json
from shardwright.running.progress import counted
from shardwright.text.escaping import escape

if TYPE_CHECKING:
    from shardwright.verify import VerifyReport

_GAP = "  "


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    verify = commands.add("verify")
    verify.add_argument(
        "dataset", metavar="DIR", help="folder that `shardwright ingest` wrote, or any file of TFRecords; or its URL"
    )
    verify.add_argument("--deep", action="store_true", help="also hash every image and compare it with its record")
    verify.add_argument("--workers", type=int, metavar="N", help="processes (default: one for each core)")
    verify.add_argument("--json", action="store_true", help="print the findings as JSON")
    verify.set_defaults(command=_verify)


def _verify(options: argparse.Namespace) -> int:
    from shardwright.verify import verify

    report = verify(options.dataset, workers=options.workers, deep=options.deep, quiet=options.json)
    if options.json:
        print_json({"whole": not report.findings, **dataclasses.asdict(report)})
    else:
        print(_text(report))
    return 1 if report.findings else 0


def _text(report: VerifyReport) -> str:
    rows = [("file", "where", "what is wrong")]
    rows += [(escape(finding.file), finding.place, escape(finding.problem)) for finding in report.findings]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = [f"{file:{widths[0]}}{_GAP}{place:{widths[1]}}{_GAP}{problem}" for file, place, problem in rows]
    read = f"{counted(report.shards, 'shard')}, {counted(report.records, 'record')}, {report.bytes / 1e6:.1f} MB read"
    if not report.findings:
        return f"{report.dataset}: whole; {read}"
    return "\n".join([*lines, f"{report.dataset}: {counted(len(report.findings), 'finding')}; {read}"])
