"""`shardwright weights`: downloads the published weights of an encoder."""

from __future__ import annotations

import argparse

from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json

# Those of `published_weights`, which the help of all commands does not import.
ENCODERS = ("efficientnetv2-b0", "efficientnetv2-b1", "efficientnetv2-b2", "efficientnetv2-b3")


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    fetch = commands.add_group("weights").add("fetch")
    fetch.add_argument("name", metavar="NAME", choices=ENCODERS, help=f"encoder: {', '.join(ENCODERS)}")
    fetch.add_argument("--out", required=True, metavar="DIR", help="folder for the file, which keeps its name")
    fetch.add_argument(
        "--mirror", default="", metavar="URL", help="folder with the same files (default: that of Keras)"
    )
    fetch.add_argument("--force", action="store_true", help="replace a file that has another checksum")
    fetch.add_argument("--json", action="store_true", help="print the file and its checksum as JSON")
    fetch.set_defaults(command=_fetch)


def _fetch(options: argparse.Namespace) -> int:
    from shardwright.components.image_trainer.models.published_weights import WEIGHTS, fetch_weights

    file, existed = fetch_weights(options.name, options.out, mirror=options.mirror, force=options.force)
    if options.json:
        print_json({"file": str(file), "md5": WEIGHTS[options.name].md5, "existed": existed})
        return 0
    print(f"{file}: {'was there already, with' if existed else 'has'} the published MD5 {WEIGHTS[options.name].md5}")
    print(f"trainer: {{encoder: {options.name}, weights: {file}}}")
    return 0
