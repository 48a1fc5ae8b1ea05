"""`shardwright verify`: lists damage in a dataset, as a table or as JSON."""

from __future__ import annotations

import dataclasses
from argparse import Namespace

from shardwright.pipelines.commands.results import finish, table
from shardwright.running.progress import counted
from shardwright.verify import verify


def run(options: Namespace) -> int:
    """Reads all bytes of a dataset; returns 1 if anything is damaged."""
    report = verify(options.dataset, workers=options.workers, deep=options.deep, quiet=options.json)
    rows = [("file", "where", "what is wrong")]
    rows += [(finding.file, finding.place, finding.problem) for finding in report.findings]
    read = f"{counted(report.shards, 'shard')}, {counted(report.records, 'record')}, {report.bytes / 1e6:.1f} MB read"
    lines = [f"{report.dataset}: whole; {read}"]
    if report.findings:
        lines = [table(rows), f"{report.dataset}: {counted(len(report.findings), 'finding')}; {read}"]
    row = {"whole": not report.findings, **dataclasses.asdict(report)}
    return finish(options, row, *lines, failed=bool(report.findings))
