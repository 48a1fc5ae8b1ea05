"""`shardwright convert`: converts a model to LiteRT or ONNX."""

from __future__ import annotations

import os
from argparse import Namespace

from shardwright.pipelines.commands.results import finish


def run(options: Namespace) -> int:
    """Converts a model, and compares its answers."""
    from shardwright.components.predictor.convert_model import convert
    from shardwright.pipelines.runs.logs import quiet_libraries

    with quiet_libraries():
        row = convert(
            options.model, options.images, options.out, options.to, count=options.count, trusted=options.trust_model
        )
    return finish(
        options,
        row,
        f"{os.path.join(options.out, row['file'])}: {row['bytes'] / 1e6:.2f} MB, answers in a clean process",
        f"Compared with the SavedModel for {row['images']} images: probabilities differ by at most "
        f"{row['largest_difference']:.1e}; {row['other_decisions']} of {row['decisions']:,} decisions differ",
    )
