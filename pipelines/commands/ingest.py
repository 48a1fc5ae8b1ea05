"""`shardwright ingest`: makes a dataset of images and annotations."""

from __future__ import annotations

import argparse
import os

from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import dataset_row, print_json, print_rejects
from shardwright.progress import counted, print_note


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    ingest = commands.add("ingest")
    ingest.add_argument("config", metavar="CONFIG", help="YAML file")
    ingest.add_argument("--out", required=True, metavar="DIR", help="folder to make")
    ingest.add_argument("--workers", type=int, metavar="N", help="processes (default: one for each core)")
    ingest.add_argument("--json", action="store_true", help="print fingerprint, totals and notes as JSON")
    ingest.set_defaults(command=_ingest)


def _ingest(options: argparse.Namespace) -> int:
    from shardwright.config import load_config
    from shardwright.errors import ShardwrightError
    from shardwright.ingest import ingest
    from shardwright.ingest.baseline import resolve_baseline
    from shardwright.storage.mirror import local_folder
    from shardwright.storage.own_names import staging_next_to

    notes: list[str] = []

    def log(note: str) -> None:
        notes.append(note)
        print_note(note)

    config = resolve_baseline(load_config(options.config))
    try:
        manifest = ingest(config, options.out, workers=options.workers, log=log)
    except ShardwrightError:
        left = local_folder(staging_next_to(options.out))
        if config.run.staging is None and os.path.isdir(left):
            log(f"{left} keeps what was done. The next call with this --out uses it, and deletes it in the end")
        raise
    if options.json:
        print_json({**dataset_row(options.out, manifest), "classes": list(manifest.classes), "notes": notes})
        return 0
    totals = ", ".join(f"{name} {count}" for name, count in sorted(manifest.totals.items()))
    print(f"{options.out}: {counted(len(manifest.shards), 'shard')}; {totals}; fingerprint {manifest.fingerprint}")
    print_rejects(options.out, manifest)
    return 0
