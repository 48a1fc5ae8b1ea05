"""`shardwright weights`: downloads the published weights of an encoder."""

from __future__ import annotations

from argparse import Namespace

from shardwright.pipelines.commands.results import finish


def fetch(options: Namespace) -> int:
    """Downloads weights and compares their checksum."""
    from shardwright.components.image_trainer.models.published_weights import WEIGHTS, fetch_weights

    file, existed = fetch_weights(options.name, options.out, mirror=options.mirror, force=options.force)
    md5 = WEIGHTS[options.name].md5
    return finish(
        options,
        {"file": str(file), "md5": md5, "existed": existed},
        f"{file}: {'was there already, with' if existed else 'has'} the published MD5 {md5}",
        f"trainer: {{encoder: {options.name}, weights: {file}}}",
    )
