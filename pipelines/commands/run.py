"""`shardwright run`: the whole pipeline on this machine."""

from __future__ import annotations

from argparse import Namespace

from shardwright.pipelines.commands.settings import settings_of


def run(options: Namespace) -> int:
    """Runs the pipeline; returns 1 if a check stops it, or if the model is not blessed."""
    from shardwright.pipelines.run_local import run_local

    return run_local(
        options.config,
        root=options.root,
        verbose=options.verbose,
        as_json=options.json,
        settings=settings_of(options),
    )
