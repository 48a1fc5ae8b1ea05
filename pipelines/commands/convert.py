"""`shardwright convert`: converts a model to LiteRT or ONNX."""

from __future__ import annotations

import argparse
import os

from shardwright.pipelines.commands.files import add_trust
from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    convert = commands.add("convert")
    convert.add_argument(
        "model", metavar="MODEL", help="folder of a run, folder that models are pushed to, or SavedModel"
    )
    convert.add_argument("images", metavar="IMAGES", help="folder or glob of images, or a dataset: compares answers")
    convert.add_argument("--to", required=True, choices=("litert", "onnx"), help="format")
    convert.add_argument("--out", required=True, metavar="DIR", help="folder to make")
    convert.add_argument("--count", type=int, default=16, metavar="N", help="images to compare (default 16)")
    add_trust(convert)
    convert.add_argument("--json", action="store_true", help="print the comparison as JSON")
    convert.set_defaults(command=_convert)


def _convert(options: argparse.Namespace) -> int:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from shardwright.components.predictor.convert_model import convert
    from shardwright.pipelines.runs.logs import quiet_libraries

    with quiet_libraries():
        found = convert(
            options.model, options.images, options.out, options.to, count=options.count, trusted=options.trust_model
        )
    if options.json:
        print_json(found)
        return 0
    print(f"{os.path.join(options.out, found['file'])}: {found['bytes'] / 1e6:.2f} MB, answers in a clean process")
    print(
        f"Compared with the SavedModel for {found['images']} images: probabilities differ by at most "
        f"{found['largest_difference']:.1e}; {found['other_decisions']} of {found['decisions']:,} decisions differ"
    )
    return 0
