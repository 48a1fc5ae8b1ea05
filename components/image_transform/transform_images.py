"""The transform of a dataset without TFX and Beam: ImageTransform's shards, statistics and manifest, to the last byte.

A training needs nothing else. TensorFlow Transform's graph and TFDV's statistics are for pipelines: `shardwright
transform` and ImageTransform write them, too.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from shardwright.components.image_transform.train_figures import (
    check_train,
    exact_sums,
    graph_plan_of,
    statistics_text,
)
from shardwright.components.image_transform.transform_plan import (
    TransformPlan,
    TransformWork,
    open_staging,
    plan_transform,
    write_numbered,
)
from shardwright.components.image_transform.transform_recipe import read_recipe
from shardwright.dataset.manifest import Manifest
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.train_statistics import STATISTICS_FILE
from shardwright.errors import UsageError
from shardwright.running.processes import map_processes, usable_cores
from shardwright.running.progress import print_note
from shardwright.staging.commit import commit, open_if_committed, remove_staged
from shardwright.staging.staged import shard_progress
from shardwright.storage.own_names import staging_next_to
from shardwright.storage.paths import check_not_inside
from shardwright.storage.whole_files import write_text


def transform_images(
    source: ImageDataset,
    recipe: str,
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    quiet: bool = False,
) -> Manifest:
    """Writes the images of a dataset in one size, in processes. An interrupted transform continues.

    Args:
        source: the dataset.
        recipe: the result of `transform_recipe` for a configuration.
        out: folder of the transformed dataset, on this machine. If it contains the same one, nothing is done.
        workers: processes; by default one for each core.
        quiet: show no progress.

    Returns:
        The manifest of the transformed dataset.

    Raises:
        CheckFailed: too many images were rejected, or all of the train split.
        ConfigError: the recipe does not fit the dataset.
        DatasetError: the dataset is stored in a foreign form.
        UsageError: `out` contains something else, or columns of texts are to be transformed, which needs TFX.
    """
    out = Path(os.path.realpath(out))
    check_not_inside(out, source.root)
    plan = plan_transform(source, *read_recipe(recipe))
    if plan.texts:
        raise UsageError(
            "transform.text: vocabularies are made by TensorFlow Transform. Install it, pip install "
            "'shardwright[tfx]', and give the dataset that `shardwright transform` writes; or leave transform.text out."
        )
    if out.exists():
        finished = open_if_committed(out, plan.dataset.fingerprint)
        if finished is None:
            raise UsageError(f"{out}: exists already, and is no dataset. Name another folder, or remove this one.")
        return finished
    if plan.note and not quiet:
        print_note(plan.note)
    own = staging_next_to(out)
    manifest = _write(source, plan, out, str(own), workers, quiet=quiet)
    remove_staged(str(own), out)
    return manifest


def _write(
    source: ImageDataset, plan: TransformPlan, out: Path, own: str, workers: int | None, *, quiet: bool
) -> Manifest:
    staging = open_staging(own, plan.dataset)
    with staging.locked():
        work = TransformWork.of(source, plan, staging, {})
        shards = [planned for planned, *_ in work.shards]
        count = min(workers or usable_cores(), len(shards))
        lost = "a process of the transform died; too little memory? Give fewer workers. Finished shards are used again"
        done = map_processes(partial(write_numbered, work=work), range(len(shards)), count, lost)
        with nullcontext() if quiet else shard_progress(staging, shards, "transforming shards"):
            for _ in done:
                pass
        check_train(staging, plan)
        graph_plan = graph_plan_of(source, plan, staging)
        text = statistics_text(exact_sums(plan, staging, graph_plan.widths), plan, graph_plan)
        write_text(staging.path(STATISTICS_FILE), text)
        kept = replace(plan.dataset, kept=(STATISTICS_FILE,))
        return commit(staging, kept, str(out), {"runner": "local", **({"notes": [plan.note]} if plan.note else {})})
