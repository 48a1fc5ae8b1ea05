"""`shardwright clean`: removes old runs from a run's folder."""

from __future__ import annotations

import argparse
import dataclasses
import os
from typing import TYPE_CHECKING

from shardwright.pipelines.commands.parsers import Commands, refuse_unused
from shardwright.pipelines.commands.results import print_json

if TYPE_CHECKING:
    from shardwright.pipelines.runs.clean_folder import CleanResult

_ENDINGS = (".yaml", ".yml")


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    clean = commands.add("clean")
    clean.add_argument("root", metavar="DIR", help="folder of `shardwright run`, or the configuration that names it")
    clean.add_argument("--keep", type=int, metavar="N", help="how many runs to keep, the last ones")
    clean.add_argument(
        "--superseded", action="store_true", help="also pushed models other than the baseline model, and their data"
    )
    clean.add_argument("--dry-run", action="store_true", help="only list what would be removed, with sizes")
    clean.add_argument(
        "--target", choices=("vertex", "kubeflow"), help="clean the bucket of a compiled pipeline; DIR is its YAML file"
    )
    clean.add_argument("--pushed", metavar="DIR", help="with --target: where pushed models are, if not as configured")
    clean.add_argument("--lifecycle", action="store_true", help="with --target: print lifecycle rules of the buckets")
    clean.add_argument("--json", action="store_true", help="print what was removed as JSON")
    clean.set_defaults(command=_clean)


def _clean(options: argparse.Namespace) -> int:
    from shardwright.errors import UsageError
    from shardwright.pipelines.runs.clean_folder import clean

    if options.target is not None:
        return _clean_bucket(options)
    if options.pushed is not None or options.lifecycle:
        raise UsageError("--pushed and --lifecycle need --target.")
    if "://" in options.root:
        fix = "Give the pipeline's YAML file with --target vertex or --target kubeflow."
        raise UsageError(f"{options.root}: is on a bucket. {fix}")
    root = os.path.abspath(options.root)
    if options.root.endswith(_ENDINGS):
        from shardwright.config import load_config
        from shardwright.ingest.baseline import run_root

        root = run_root(load_config(options.root))
    _print(options, root, clean(root, _keep(options), superseded=options.superseded, dry_run=options.dry_run))
    return 0


def _clean_bucket(options: argparse.Namespace) -> int:
    from shardwright.config import load_config
    from shardwright.pipelines.cloud.clean_bucket import bucket_places, clean_bucket, lifecycle_text

    if options.lifecycle:
        refuse_unused(options, "--lifecycle", "--keep", "--superseded")
    places = bucket_places(load_config(options.root), options.target, options.pushed)
    if options.lifecycle:
        print(lifecycle_text(places))
        return 0
    done = clean_bucket(places, _keep(options), superseded=options.superseded, dry_run=options.dry_run)
    _print(options, places.root, done)
    if done.old and not options.json:
        print(
            "The service may answer from its cache with what was removed: submit with --no-cache if a task misses it."
        )
    return 0


def _keep(options: argparse.Namespace) -> int:
    from shardwright.errors import UsageError

    if options.keep is None:
        raise UsageError("--keep: missing. Give how many runs to keep, e.g. --keep 3.")
    return int(options.keep)


def _print(options: argparse.Namespace, root: str, done: CleanResult) -> None:
    from shardwright.display.html import plain

    if options.json:
        print_json({**dataclasses.asdict(done), "bytes": done.bytes})
        return
    for one in done.old:
        print(f"  {one.bytes / 1e6:>10,.1f} MB  {plain(one.place)}")
    what = "would be removed" if options.dry_run else "removed"
    print(
        f"{root}: {done.kept} of {done.runs} runs kept; {len(done.old)} places, {done.bytes / 1e6:,.1f} MB {what}; "
        f"{len(done.protected)} older ones stay, since a blessed model descends from them"
    )
