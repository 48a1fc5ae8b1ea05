"""`shardwright retry-rejects`: reads the images that an ingest rejected again, and copies the rest."""

from __future__ import annotations

import argparse
from collections import Counter

from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import dataset_row, print_json
from shardwright.running.progress import print_note
from shardwright.text.escaping import escape

_SHOWN = 5


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    retry = commands.add("retry-rejects")
    retry.add_argument("config", metavar="CONFIG", help="YAML file, fixed or unchanged")
    retry.add_argument("dataset", metavar="DIR", help="the dataset that the ingest made")
    retry.add_argument("--out", required=True, metavar="DIR", help="folder to make")
    retry.add_argument("--workers", type=int, metavar="N", help="processes (default: one for each core)")
    retry.add_argument("--json", action="store_true", help="print what was made as JSON")
    retry.set_defaults(command=_retry)


def _retry(options: argparse.Namespace) -> int:
    from shardwright.config import load_config
    from shardwright.dataset.ledger import REJECTED, WRITTEN
    from shardwright.ingest.baseline import resolve_baseline
    from shardwright.ingest.retry import retry_rejects

    notes: list[str] = []
    manifest, retried = retry_rejects(
        options.dataset,
        resolve_baseline(load_config(options.config)),
        options.out,
        workers=options.workers,
        quiet=options.json,
        log=notes.append,
    )
    if options.json:
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
        print_json({**dataset_row(options.out, manifest), "notes": notes, "retried": rows})
        return 0
    for note in notes:
        print_note(note)
    counts = Counter(one.status for one in retried)
    shown = [one for one in retried if one.after is not None and one.status == REJECTED]
    for one in shown[:_SHOWN]:
        assert one.after is not None
        print(f"  still rejected: {escape(one.after.key)}: {one.after.code}: {escape(one.after.reason)}")
    if len(shown) > _SHOWN:
        print(f"  and {len(shown) - _SHOWN} more; the ledger names them")
    others = ", ".join(f"{status} {count}" for status, count in sorted(counts.items()) if status != WRITTEN)
    print(
        f"{options.out}: {counts[WRITTEN]} of {len(retried)} rejected inputs are written now"
        f"{f' ({others})' if others else ''}; fingerprint {manifest.fingerprint}"
    )
    return 0
