"""`shardwright clean`: removes old runs from a run's folder."""

from __future__ import annotations

import dataclasses
import os
from argparse import Namespace

from shardwright.config import load_config
from shardwright.display.html import plain
from shardwright.errors import UsageError
from shardwright.ingest.baseline import run_root
from shardwright.pipelines.commands.parsers import refuse_unused
from shardwright.pipelines.commands.results import finish
from shardwright.pipelines.commands.settings import settings_of


def run(options: Namespace) -> int:
    """Removes what the last runs do not need; with `--target` from the bucket of a compiled pipeline."""
    from shardwright.pipelines.cloud.clean_bucket import bucket_places, clean_bucket, lifecycle_text
    from shardwright.pipelines.runs.clean_folder import clean

    how = {"superseded": options.superseded, "dry_run": options.dry_run}
    further = []
    if options.target is not None:
        if options.lifecycle:
            refuse_unused(options, "--lifecycle", "--keep", "--superseded")
        places = bucket_places(load_config(options.root, settings=settings_of(options)), options.target, options.pushed)
        if options.lifecycle:
            print(lifecycle_text(places))
            return 0
        root, done = places.root, clean_bucket(places, _keep(options), **how)
        cached = "The service may answer from its cache with what was removed"
        further = [f"{cached}: submit with --no-cache if a task misses it."] if done.old else []
    else:
        if options.pushed is not None or options.lifecycle:
            raise UsageError("--pushed and --lifecycle need --target.")
        if "://" in options.root:
            fix = "Give the pipeline's YAML file with --target vertex or --target kubeflow."
            raise UsageError(f"{options.root}: is on a bucket. {fix}")
        root = os.path.abspath(options.root)
        if options.root.endswith((".yaml", ".yml")):
            root = run_root(load_config(options.root, settings=settings_of(options)))
        done = clean(root, _keep(options), **how)
    what = "would be removed" if options.dry_run else "removed"
    return finish(
        options,
        {**dataclasses.asdict(done), "bytes": done.bytes},
        *(f"  {removable.bytes / 1e6:>10,.1f} MB  {plain(removable.place)}" for removable in done.old),
        f"{root}: {done.kept} of {done.runs} runs kept; {len(done.old)} places, {done.bytes / 1e6:,.1f} MB {what}; "
        f"{len(done.protected)} older ones stay, since a blessed model descends from them",
        *further,
        following="the same call without --dry-run" if options.dry_run and done.old else "",
    )


def _keep(options: Namespace) -> int:
    if options.keep is None:
        raise UsageError("--keep: missing. Give how many runs to keep, e.g. --keep 3.")
    return int(options.keep)
