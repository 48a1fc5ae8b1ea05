"""`shardwright retry-rejects`: reads the images that an ingest rejected again, and copies the rest."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections import Counter

from shardwright.config import load_config
from shardwright.dataset.ledger import REJECTED, WRITTEN
from shardwright.ingest.baseline import resolve_baseline
from shardwright.ingest.retry import retry_rejects
from shardwright.pipelines.commands.results import dataset_row, finish
from shardwright.running.progress import print_note
from shardwright.text.escaping import escape

_SHOWN = 5


def run(options: Namespace) -> int:
    """Makes a dataset in which the rejected inputs are read again."""
    notes: list[str] = []
    manifest, retried = retry_rejects(
        options.dataset,
        resolve_baseline(load_config(options.config)),
        options.out,
        workers=options.workers,
        quiet=options.json,
        log=notes.append,
    )
    for note in notes:
        print_note(note)
    rows = [
        {
            "key": one.before.key,
            "was": one.before.code,
            "status": one.status,
            "code": one.after.code if one.after else "",
            "reason": one.after.reason if one.after else "",
        }
        for one in retried
    ]
    still = [one.after for one in retried if one.after is not None and one.status == REJECTED]
    lines = [f"  still rejected: {escape(row.key)}: {row.code}: {escape(row.reason)}" for row in still[:_SHOWN]]
    if len(still) > _SHOWN:
        lines.append(f"  and {len(still) - _SHOWN} more; the ledger names them")
    counts = Counter(one.status for one in retried)
    others = ", ".join(f"{status} {count}" for status, count in sorted(counts.items()) if status != WRITTEN)
    written = f"{counts[WRITTEN]} of {len(retried)} rejected inputs are written now{f' ({others})' if others else ''}"
    return finish(
        options,
        {**dataset_row(options.out, manifest), "notes": notes, "retried": rows},
        *lines,
        f"{options.out}: {written}; fingerprint {manifest.fingerprint}",
        following=f"shardwright report {shlex.quote(options.out)}",
    )
