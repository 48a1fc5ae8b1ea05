"""`shardwright review`: shows doubtful annotations, or which new images to label next."""

from __future__ import annotations

import os
import sys
from argparse import Namespace

from shardwright.pipelines.commands.predict import stated_of
from shardwright.pipelines.commands.results import finish
from shardwright.running.progress import counted
from shardwright.text.escaping import escape


def run(options: Namespace) -> int:
    """Writes the page, the ranking and the annotations; returns 1 if an image could not be read."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from shardwright.pipelines.reviewing.write_review import ReviewOptions, write_review
    from shardwright.pipelines.runs.logs import quiet_libraries

    chosen = ReviewOptions(
        stated_of(options),
        tuple(options.split),
        options.folds,
        options.config,
        options.images,
        options.count,
        options.export_format,
        options.trust_model,
    )
    with quiet_libraries():
        made = write_review(options.model, options.out, chosen, quiet=options.json)
    for failure in made["failures"]:
        print(f"shardwright: {escape(failure['key'])}: {escape(failure['reason'])}", file=sys.stderr)
    suspected = "" if made["suspected"] is None else f", {made['suspected']:,} suspected"
    lines = [f"{made['page']}: {made['shown']:,} of {counted(made['images'], 'image')}{suspected}"]
    lines += [made["told"]] if made["told"] else []
    if made["annotations"]:
        lines.append(f"{made['annotations']}: the same images with the predictions, for an annotation tool")
    following = f"open {made['page']}, mark, save the corrections" + (f", then {made['next']}" if made["next"] else "")
    return finish(options, made, *lines, failed=bool(made["failures"]), following=following)
