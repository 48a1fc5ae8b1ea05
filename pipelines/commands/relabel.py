"""`shardwright relabel`: new annotations for stored images."""

from __future__ import annotations

import argparse
import json
from typing import TypeAlias

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add(commands: _Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    relabel = commands.add_parser("relabel", help="the same images with new annotations; no image is read again")
    relabel.add_argument("dataset", metavar="DIR", help="a dataset")
    relabel.add_argument("labels", metavar="FILE", help="a table or COCO JSON, as `input.labels.path` takes it")
    relabel.add_argument("--out", required=True, metavar="DIR", help="folder to make")
    relabel.add_argument("--unlisted", default="auto", metavar="WAY", help="auto (default), empty, reject or fail")
    relabel.add_argument("--json", action="store_true", help="print what was made as JSON")
    relabel.set_defaults(command=_relabel)


def _relabel(options: argparse.Namespace) -> int:
    from shardwright.commit import is_committed
    from shardwright.dataset import Dataset
    from shardwright.relabel import relabel

    existed = is_committed(options.out)
    dataset = Dataset.open(options.dataset)
    manifest, notes = relabel(dataset, options.labels, options.out, unlisted=options.unlisted, quiet=options.json)
    if options.json:
        row = {"dataset": options.out, "existed": existed, "fingerprint": manifest.fingerprint}
        row |= {"totals": dict(manifest.totals), "notes": list(notes)}
        print(json.dumps(row, indent=1, sort_keys=True, ensure_ascii=False))
        return 0
    for note in notes:
        print(f"  {note}")
    totals = manifest.totals
    again = "; it was there already" if existed else ""
    print(f"{options.out}: {totals['written']} images relabelled, {totals['rejected']} rejected{again}")
    return 0
