"""`shardwright retry-rejects`: reads the images that an ingest rejected again, and copies the rest."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections import Counter

from shardwright.dataset.ledger import REJECTED, WRITTEN
from shardwright.ingest.baseline import resolve_baseline
from shardwright.ingest.retry import retry_rejects
from shardwright.pipelines.commands.results import dataset_row, finish
from shardwright.pipelines.commands.settings import configuration
from shardwright.running.progress import print_note
from shardwright.text.escaping import escape

_SHOWN = 5


def run(options: Namespace) -> int:
    """Makes a dataset in which the rejected inputs are read again."""
    notes: list[str] = []
    manifest, retried = retry_rejects(
        options.dataset,
        resolve_baseline(configuration(options)),
        options.out,
        workers=options.workers,
        quiet=options.json,
        log=notes.append,
    )
    for note in notes:
        print_note(note)
    rows = [
        {
            "key": retry.before.key,
            "was": retry.before.code,
            "status": retry.status,
            "code": retry.after.code if retry.after else "",
            "reason": retry.after.reason if retry.after else "",
        }
        for retry in retried
    ]
    still = [retry.after for retry in retried if retry.after is not None and retry.status == REJECTED]
    lines = [f"  still rejected: {escape(row.key)}: {row.code}: {escape(row.reason)}" for row in still[:_SHOWN]]
    if len(still) > _SHOWN:
        lines.append(f"  and {len(still) - _SHOWN} more; the ledger names them")
    counts = Counter(retry.status for retry in retried)
    others = ", ".join(f"{status} {count}" for status, count in sorted(counts.items()) if status != WRITTEN)
    written = f"{counts[WRITTEN]} of {len(retried)} rejected inputs are written now{f' ({others})' if others else ''}"
    return finish(
        options,
        {**dataset_row(options.out, manifest), "notes": notes, "retried": rows},
        *lines,
        f"{options.out}: {written}; fingerprint {manifest.fingerprint}",
        following=f"shardwright report {shlex.quote(options.out)}",
    )
