"""`shardwright clean`: removes old runs from a run's folder."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os

from shardwright.pipelines.commands.parsers import Commands

_ENDINGS = (".yaml", ".yml")


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    clean = commands.add("clean")
    clean.add_argument("root", metavar="DIR", help="folder of `shardwright run`, or the configuration that names it")
    clean.add_argument("--keep", type=int, required=True, metavar="N", help="how many runs to keep, the last ones")
    clean.add_argument(
        "--superseded", action="store_true", help="also pushed models other than the baseline model, and their data"
    )
    clean.add_argument("--dry-run", action="store_true", help="only list what would be removed, with sizes")
    clean.add_argument("--json", action="store_true", help="print what was removed as JSON")
    clean.set_defaults(command=_clean)


def _clean(options: argparse.Namespace) -> int:
    from shardwright.display.html import plain
    from shardwright.pipelines.runs.clean import clean

    root = os.path.abspath(options.root)
    if options.root.endswith(_ENDINGS):
        from shardwright.config import load_config
        from shardwright.ingest.baseline import run_root

        root = run_root(load_config(options.root))
    done = clean(root, options.keep, superseded=options.superseded, dry_run=options.dry_run)
    if options.json:
        print(json.dumps({**dataclasses.asdict(done), "bytes": done.bytes}, indent=1, sort_keys=True))
        return 0
    for one in done.old:
        print(f"  {one.bytes / 1e6:>10,.1f} MB  {plain(one.place)}")
    what = "would be removed" if options.dry_run else "removed"
    print(
        f"{root}: {done.kept} of {done.runs} runs kept; {len(done.old)} places, {done.bytes / 1e6:,.1f} MB {what}; "
        f"{len(done.protected)} older ones stay, since a blessed model descends from them"
    )
    return 0
