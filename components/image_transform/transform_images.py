"""The transform of a dataset: ImageTransform's work on any kind of workers, and in processes of this machine.

`write_transformed` and `write_graph` are the transform. ImageTransform calls them with Beam's workers.
`transform_images` calls them with processes, for `shardwright transform` and `shardwright.train`, which need neither
TFX nor Beam. The bytes are the same.
"""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from shardwright.components.image_transform.shard_figures import sums_file
from shardwright.components.image_transform.text import Spread, write_vocabularies
from shardwright.components.image_transform.train_figures import (
    GraphPlan,
    check_train,
    exact_sums,
    graph_plan_of,
    statistics_text,
)
from shardwright.components.image_transform.transform_plan import (
    TRAIN,
    TransformPlan,
    TransformWork,
    open_staging,
    write_numbered,
)
from shardwright.dataset.manifest import Manifest
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.train_statistics import STATISTICS_FILE
from shardwright.errors import UsageError
from shardwright.lineage.record import write_lineage
from shardwright.running.processes import map_processes, usable_cores
from shardwright.running.progress import print_note
from shardwright.staging.commit import commit, open_if_committed, remove_staged
from shardwright.staging.staged import shard_progress
from shardwright.staging.staging import Staging
from shardwright.storage.fingerprint import fingerprint
from shardwright.storage.mirror import put_folder
from shardwright.storage.own_names import staging_next_to
from shardwright.storage.paths import check_not_inside
from shardwright.storage.whole_files import write_text

_LOST = "a process of the transform died; too little memory? Give fewer workers. Finished shards are used again"
_GRAPH = "transform_graph"
# For fewer images, processes take longer to import TensorFlow than they save: threads work on the pixels in any case.
_WORTH_PROCESSES = 5_000


def write_transformed(
    source: ImageDataset,
    plan: TransformPlan,
    staging: Staging,
    spread: Spread,
    *,
    threads: int | None = None,
    quiet: bool = False,
) -> GraphPlan:
    """Writes the shards of a transformed dataset and its `statistics.json` into staging.

    Args:
        source: the dataset.
        plan: its transform.
        staging: destination, locked by the caller. Shards of an earlier attempt are used again.
        spread: calls a function on workers.
        threads: those of a worker that work on pixels; by default one for each of its cores.
        quiet: show no progress.

    Returns:
        The content of its TransformGraph.

    Raises:
        CheckFailed: all images of the train split were rejected, or a shard was not written.
    """
    texts = {}
    if plan.texts:
        pairs = zip(plan.train, source.shards(TRAIN), strict=True)
        train = [(planned, shard.file, shard.checksum) for planned, shard in pairs]
        texts = write_vocabularies(spread, staging, train, plan.texts)
    work = TransformWork.of(source, plan, staging, texts)
    shards = [planned for planned, *_ in work.shards]
    with nullcontext() if quiet else shard_progress(staging, shards, "transforming shards"):
        spread(partial(write_numbered, work=work, threads=threads), len(shards))
    check_train(staging, plan)
    graph_plan = graph_plan_of(source, plan, staging, texts)
    sums = exact_sums(plan, staging, graph_plan.widths)
    write_text(staging.path(STATISTICS_FILE), statistics_text(sums, plan, graph_plan))
    return graph_plan


def write_graph(
    plan: TransformPlan, staging: Staging, graph_plan: GraphPlan, parents: Mapping[str, str], folder: Path
) -> None:
    """Writes the TransformGraph of shards that `write_transformed` has written.

    Args:
        plan: the transform.
        staging: where the shards are.
        graph_plan: the content of the graph.
        parents: digests of what it was made of, for its lineage.
        folder: its folder, on this machine.
    """
    from shardwright.components.image_transform.transform_graph import write_transform_graph

    files = [staging.location(sums_file(planned)) for planned in plan.train]
    write_transform_graph(files, exact_sums(plan, staging, graph_plan.widths), folder, graph_plan)
    lineage = {"kind": _GRAPH, "recipe": plan.dataset.recipe, "parent": plan.dataset.parent}
    write_lineage(
        folder, kind=_GRAPH, fingerprint=fingerprint(lineage), parents=dict(parents), recipe=plan.dataset.recipe
    )
    write_text(folder / STATISTICS_FILE, staging.path(STATISTICS_FILE).read_text(encoding="utf-8"))


def commit_transformed(plan: TransformPlan, staging: Staging, out: str | os.PathLike[str], runner: str) -> Manifest:
    """Publishes the shards that `write_transformed` has written."""
    notes = {"notes": [plan.note]} if plan.note else {}
    return commit(staging, replace(plan.dataset, kept=(STATISTICS_FILE,)), out, {"runner": runner, **notes})


def transform_images(
    source: ImageDataset,
    plan: TransformPlan,
    out: str | os.PathLike[str],
    *,
    graph: str | os.PathLike[str] | None = None,
    staging: str | None = None,
    workers: int | None = None,
    quiet: bool = False,
) -> Manifest:
    """Writes the images of a dataset in one size, in processes. An interrupted transform continues.

    Args:
        source: the dataset.
        plan: its transform.
        out: folder of the transformed dataset, on this machine. If it contains the same one, nothing is done.
        graph: folder to write the TransformGraph to; by default none is written.
        staging: folder or bucket of finished shards, which the next attempt uses again; by default next to `out`.
        workers: processes; by default one for each core, and none besides this one for a few thousand images.
        quiet: show no progress.

    Returns:
        The manifest of the transformed dataset.

    Raises:
        CheckFailed: too many images were rejected, or all of the train split.
        UsageError: `out` contains something else.
    """
    out = Path(os.path.realpath(out))
    check_not_inside(out, source.root)
    if out.exists():
        finished = open_if_committed(out, plan.dataset.fingerprint)
        if finished is None:
            raise UsageError(f"{out}: exists already, and is no dataset. Name another folder, or remove this one.")
        return finished
    if plan.note and not quiet:
        print_note(plan.note)
    own = str(staging_next_to(out))
    place = open_staging(staging or own, plan.dataset)

    wanted = usable_cores() if plan.dataset.inputs > _WORTH_PROCESSES else 1
    processes = min(workers or wanted, len(plan.dataset.shards))

    def spread(function: Callable[[int], object], count: int) -> None:
        deque(map_processes(function, range(count), min(processes, count), _LOST), maxlen=0)

    with place.locked():
        threads = max(1, (workers or usable_cores()) // processes)
        graph_plan = write_transformed(source, plan, place, spread, threads=threads, quiet=quiet)
        if graph is not None:
            with tempfile.TemporaryDirectory(prefix="shardwright-") as made:
                write_graph(plan, place, graph_plan, {"examples": source.manifest.digest}, Path(made))
                put_folder(Path(made), os.fspath(graph))
        manifest = commit_transformed(plan, place, out, "local")
    remove_staged(own, out)
    return manifest
