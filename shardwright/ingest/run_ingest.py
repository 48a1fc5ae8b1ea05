"""The whole ingest on this machine: survey, plan, write shards in processes, commit.

`make_dataset` is what `import shardwright` offers: a dataset of a configuration, in one call.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from shardwright.config import Config, load_config, parse_config
from shardwright.config.check_arguments import check_whole
from shardwright.config.parse_values import plain_value
from shardwright.dataset.manifest import DISPLAYED, IMAGE_FOLDER, LOCATED, Manifest
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError
from shardwright.ingest.identify import look_at_input, pin_input
from shardwright.ingest.plan import IngestPlan, PreparedIngest, plan_ingest, planned_fingerprint
from shardwright.ingest.recipe import IngestRecipe, InputLocation, locate
from shardwright.ingest.select_spans import becomes_input
from shardwright.ingest.survey import IngestInput, list_input, read_annotations
from shardwright.ingest.tasks import cost_of, forget_tasks
from shardwright.ingest.write_shards import commit_ingest, write_range
from shardwright.running.processes import can_fork, map_processes, usable_cores, warm_up
from shardwright.running.progress import counted, progress
from shardwright.staging.commit import check_output, discard_assembly, is_committed, open_if_committed, remove_staged
from shardwright.staging.output import damage
from shardwright.staging.ranges import Range, processes_for
from shardwright.staging.staging import ShardResult, Staging
from shardwright.storage import is_remote
from shardwright.storage.locks import locked_folder
from shardwright.storage.mirror import local_folder
from shardwright.storage.own_names import remove_tree, staging_next_to
from shardwright.storage.paths import check_not_inside
from shardwright.text.redaction import published

# Classes that a note names.
_SHOWN_CLASSES = 8
_LOST = (
    "A process that was writing a shard has died; out of memory? Finished work is kept: run it again, perhaps with "
    "fewer --workers."
)


def ingest(
    config: Config,
    out: str | os.PathLike[str],
    workers: int | None = None,
    quiet: bool = False,
    log: Callable[[str], None] = lambda note: None,
) -> Manifest:
    """Makes a dataset of a configuration's input: lists it, identifies it, plans, writes and commits.

    Args:
        config: the configuration.
        out: folder to write; it appears whole, when all is done. When it contains this dataset already, nothing is
            done.
        workers: processes that probe images and write shards; by default one per processor, and none for small
            inputs. The result is the same.
        quiet: show no progress.
        log: is called with each note on what was detected.

    Returns:
        The manifest of the dataset.

    Raises:
        UsageError: the input, the annotations or `out` are not what they should be.
        CheckFailed: too many rejects, nothing matched, nothing written.
    """
    recipe, location = _check_call(config, out, workers)
    staging_root = staging_next_to(out) if config.run.staging is None else config.resolve(config.run.staging)
    surveyed, processes = _read_input(config, recipe, location, out, workers)
    manifest = None
    if recipe.duplicates.looks_at_pixels and is_committed(out):
        # The plan decodes images: whether the output is this dataset already is known before.
        fingerprint = planned_fingerprint(surveyed)
        manifest = open_if_committed(out, fingerprint, grows=True)
    if manifest is None:
        if processes > 1:
            warm_up(write_range)  # Their imports take as long as hashing a thousand photographs, which comes first.
        prepared = plan_ingest(
            recipe, location, surveyed=surveyed, quiet=quiet, staging_root=staging_root, workers=workers
        )
        del surveyed
        plan, fingerprint = prepared.plan, prepared.plan.dataset.fingerprint
        _log_all(log, (*config.notes, *plan.notes))
        manifest = open_if_committed(out, fingerprint, grows=True)
    if manifest is None:
        prepared.check_rejects()
        if damaged := damage(out, fingerprint):
            log(f"{damaged} It is replaced now, since what remains of it belongs to this dataset.")
        staging = _open_staging(staging_root, plan)
        with staging.locked():
            forks = _stage(prepared, staging, workers)
            del prepared  # What writers do not need of it is not needed any more.
            try:
                manifest, notes = _write(plan, staging, config, out, workers, quiet, fork=forks)
            finally:
                forget_tasks(staging, plan.tasks)
        # Now that the folder is not locked, a log that cannot be written is not taken for staging.
        _log_all(log, notes)
    _remove_leftovers(staging_root, config, out, fingerprint)
    _log_all(log, _mark_notes(manifest, config))
    return manifest


def _check_call(config: Config, out: str | os.PathLike[str], workers: int | None) -> tuple[IngestRecipe, InputLocation]:
    """Checks the arguments of `ingest`; returns the options that change bytes, and where the input is."""
    if workers is not None:
        check_whole("workers", workers)
        if workers < 1:
            raise UsageError(f"--workers: {workers} is too few. Give 1 or more.")
    check_output(out)
    for previous in (config.reuse_from, config.split.keep_from):
        if previous is not None:
            check_not_inside(out, previous)
    recipe, location = IngestRecipe.of(config), locate(config)
    if becomes_input(str(out), location.images):
        raise UsageError(
            f"{out}: is inside the input folder {location.images} and would become input. Name another --out."
        )
    return recipe, location


def _read_input(
    config: Config, recipe: IngestRecipe, location: InputLocation, out: str | os.PathLike[str], workers: int | None
) -> tuple[IngestInput, int]:
    """Lists the input and reads its annotations, while other processes look at its files.

    Returns:
        The input, and the number of processes that it is worth.
    """
    surveyed, looks = list_input(recipe, location), None
    processes = processes_for(int(cost_of(recipe.images, np.array(surveyed.listing.sizes, np.int64)).sum()), workers)
    # Times of files may name a staging folder that is next to the output, and for this run alone. If a dataset is at
    # the output already, the content of all files decides whether it is this one.
    if config.run.staging is None and not is_remote(str(out)) and not is_committed(out):
        if processes > 1:
            warm_up(write_range)  # The server that workers are forked from is one for all of them.
        looks = look_at_input(surveyed, processes)
    # After an error or a question nobody waits for the looks.
    with nullcontext() if looks is None else closing(looks):
        read_annotations(surveyed)
        if looks is not None:
            pin_input(surveyed, looks)
    return surveyed, processes


def _log_all(log: Callable[[str], None], notes: Iterable[str]) -> None:
    for note in notes:
        log(note)


def _open_staging(staging_root: str, plan: IngestPlan) -> Staging:
    try:
        return Staging.open(staging_root, plan.dataset.fingerprint, plan.tools)
    except OSError as error:
        raise UsageError(
            f"{staging_root}: cannot be created ({error.strerror}). Set run.staging or another --out."
        ) from None


def _stage(prepared: PreparedIngest, staging: Staging, workers: int | None) -> bool:
    """Stages a plan; returns whether its writers are forks, decided once: others look for their tasks in files."""
    forks = can_fork()
    alone = processes_for(sum(prepared.plan.cut.costs), workers) == 1
    prepared.stage(staging, inherited=forks or alone)
    return forks


def _write(
    plan: IngestPlan,
    staging: Staging,
    config: Config,
    out: str | os.PathLike[str],
    workers: int | None,
    quiet: bool,
    *,
    fork: bool,
) -> tuple[Manifest, list[str]]:
    """Writes what is missing of a staged plan, and commits the dataset; returns notes on what was written, too."""
    ranges, written = write_ranges(
        plan, staging, workers, lambda part: shown.advance(part.images, part.size), fork=fork
    )
    images, size = sum(part.images for part in ranges), sum(part.size for part in ranges)
    with progress(images, "writing images", quiet=quiet, size=size) as shown:
        deque(written, maxlen=0)
    notes = written_notes(plan, staging.results(plan.dataset.shards))
    build = {"config": config.to_dict(), "runner": "ingest", IMAGE_FOLDER: published(plan.root, config.base)}
    return commit_ingest(plan, staging, out, build), notes


def write_ranges(
    plan: IngestPlan,
    staging: Staging,
    workers: int | None = None,
    report: Callable[[Range], object] = lambda part: None,
    *,
    fork: bool = False,
) -> tuple[list[Range], Iterator[object]]:
    """Writes the ranges of a staged plan that are not written yet, and their shards, in processes of this machine.

    Args:
        plan: the plan.
        staging: its staging folder, locked by the caller.
        workers: processes; by default one per processor, and none for small inputs.
        report: is called with some images when they are written.
        fork: see `map_processes`.

    Returns:
        These ranges, and an iterator that has to be taken to its end.
    """
    processes = processes_for(sum(plan.cut.costs), workers)
    ranges = plan.cut.missing(plan.dataset.shards, staging, processes)
    processes = min(processes, len(ranges))
    threads = max(1, (workers or usable_cores()) // max(1, processes))
    write = partial(write_range, plan=plan.for_writers(), staging=staging, threads=threads)
    if processes <= 1:
        # A shard may be all there is, so its images are reported while it is written.
        return ranges, map_processes(partial(write, report=report), ranges, 1, _LOST)
    return ranges, map(report, map_processes(write, ranges, processes, _LOST, fork=fork))


def written_notes(plan: IngestPlan, results: Sequence[ShardResult | None]) -> list[str]:
    """Returns the notes on what was written, for the user: classes that splits lack, and what was copied."""
    there, notes = [result for result in results if result is not None], []
    found = {shard.split: set[int]() for shard in plan.dataset.shards}
    for result in there:
        found[result.split].update(result.classes)
    everywhere = set[int]().union(*found.values())
    for split, labels in {"any split": everywhere, **found}.items():
        # What no image has is said once.
        known = range(len(plan.dataset.classes)) if split not in found else everywhere
        missing = [plan.dataset.classes[label] for label in known if label not in labels] if labels else []
        if missing:
            more = f" and {len(missing) - _SHOWN_CLASSES:,} more" if len(missing) > _SHOWN_CLASSES else ""
            notes.append(f"split: no image of {split} has {', '.join(missing[:_SHOWN_CLASSES])}{more}")
    if plan.dataset.classes and not everywhere:
        notes.append("labels: no image has any class: all annotations are empty")
    if plan.source is not None:
        copied, damaged = sum(result.copied for result in there), sum(result.damaged for result in there)
        total, root = sum(result.inputs for result in there), plan.source.root
        notes.append(f"{copied:,} of {total:,} images copied from {root}, {total - copied:,} read")
        if damaged:
            records = f"their records in {root} are damaged; `shardwright verify` names them"
            notes.append(f"{damaged:,} of these because {records}")
    return notes


def _mark_notes(manifest: Manifest, config: Config) -> list[str]:
    """Returns notes on images with a GPS position and on images that Exif rotates."""
    notes = []
    if located := manifest.totals.get(LOCATED, 0):
        kept = config.images.strip_metadata == "none"
        what = "stored, too; images.strip_metadata: private leaves it out" if kept else "not stored"
        notes.append(f"{counted(located, 'image contains', 'images contain')} a GPS position, which is {what}")
    if displayed := manifest.totals.get(DISPLAYED, 0):
        notes.append(
            f"{counted(displayed, 'image is', 'images are')} turned by Exif: masks and boxes are taken as drawn on the "
            "displayed picture (input.labels.orientation changes that)"
        )
    return notes


def _remove_leftovers(staging_root: str, config: Config, out: str | os.PathLike[str], fingerprint: str) -> None:
    """Deletes what finished and killed runs have left in staging; the folder of a running ingest stays.

    In the staging folder next to an output that is everything, also of other configurations: they can no longer be
    published there. In a folder that the configuration names, other runs may keep their shards, so only this dataset's
    are deleted.
    """
    # After a power failure it may be there although its staging folder is gone.
    discard_assembly(out, fingerprint)
    if is_remote(staging_root):
        staging = Staging.open(staging_root, fingerprint)
        # Another run of this machine may be making the same dataset for another output.
        with suppress(UsageError), locked_folder(Path(staging.root)):
            staging.remove()
        if config.run.staging is None:
            remove_tree(local_folder(staging_root))
        return
    remove_staged(staging_root, out, "*" if config.run.staging is None else f"*{fingerprint}")


def make_dataset(
    config: Config | Mapping[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    quiet: bool = True,
) -> ImageDataset:
    """Makes a dataset, as `shardwright ingest` does.

    Args:
        config: a YAML file, or the same as a mapping: `{"input": {"images": "photos"}}`; relative paths start from the
            current folder. Values may be those of Python, too: a `Path`, and a tuple for a list.
        out: folder to write, or a URL; when it contains this dataset already, nothing is done.
        workers: processes; the result is the same.
        quiet: show no progress.

    Returns:
        The dataset.

    Raises:
        UsageError: the configuration, the input or `out` are not what they should be.
        CheckFailed: too many rejects, nothing matched, nothing written.
    """
    if isinstance(config, Mapping):
        config = parse_config(plain_value(config), base=os.getcwd())
    elif isinstance(config, (str, os.PathLike)):
        config = load_config(config)
    elif not isinstance(config, Config):
        raise UsageError(f"config: {config!r} is not a configuration. Give a mapping, a Config, or a YAML file.")
    ingest(config, out, workers=workers, quiet=quiet)
    return ImageDataset.open(out)
