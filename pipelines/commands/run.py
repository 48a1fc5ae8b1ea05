"""`shardwright run`: the whole pipeline on this machine."""

from __future__ import annotations

import argparse

from shardwright.pipelines.commands.parsers import Commands


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    run = commands.add("run")
    run.add_argument("config", metavar="CONFIG", help="YAML file")
    run.add_argument("--root", metavar="DIR", help="folder of the run (default: run.root of the configuration)")
    run.add_argument(
        "--json", action="store_true", help="print the verdict and the figures as JSON, also if a check fails"
    )
    run.add_argument("-v", "--verbose", action="store_true", help="show all messages of TFX, Beam and TensorFlow")
    run.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    from shardwright.pipelines.run_local import run_local

    return run_local(options.config, root=options.root, verbose=options.verbose, as_json=options.json)
