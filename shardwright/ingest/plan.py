"""From a surveyed input to a plan: reuse, rejects, duplicates, splits, shards, and the task files of the writers.

`plan_ingest` is a pipeline of values: each step returns what the next one takes. `PreparedIngest.stage` then writes
what the workers need into staging.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import PIL

from shardwright.config.images import FULL
from shardwright.config.input import NO_OBJECTS
from shardwright.config.split import PREDEFINED
from shardwright.dataset.ledger import DUPLICATE, REJECTED, LedgerRow
from shardwright.dataset.manifest import dataset_fingerprint
from shardwright.duplicates.find import DuplicateDecision, find_duplicates
from shardwright.errors import CheckFailed
from shardwright.formats.base import NO_ROW, Annotation
from shardwright.formats.mask_values import pin_mask
from shardwright.ingest.copying import INPUTS_FILE, CopySource, input_lines
from shardwright.ingest.example import ExampleSpec, further_features, labels_kind, stored_features
from shardwright.ingest.identify import identify_input
from shardwright.ingest.input_records import INPUTS_OF_PLAN, REST_OF_INPUT, rest_lines, rows_of_plan
from shardwright.ingest.known_files import FileHashes
from shardwright.ingest.probe import UNREADABLE, Spread, read_input
from shardwright.ingest.recipe import IngestRecipe, InputLocation
from shardwright.ingest.split_inputs import moved_notes, resolve_method
from shardwright.ingest.splitting import Positions, class_sets, cut_shards, split_images
from shardwright.ingest.survey import IngestInput, survey_input
from shardwright.ingest.tasks import (
    Tasks,
    cost_of,
    keep_tasks,
    new_tasks,
    share_tasks,
    write_images,
    write_labels,
)
from shardwright.running.processes import trim_heap
from shardwright.staging.commit import DatasetPlan, check_known_rejects
from shardwright.staging.ranges import Cut
from shardwright.staging.staged import PROBED
from shardwright.staging.staging import PlannedShard, Staging
from shardwright.storage import Listing, Refusal
from shardwright.storage.fingerprint import checksummed_lines, fingerprint
from shardwright.storage.mirror import local_folder

if TYPE_CHECKING:
    from shardwright.ingest.previous_dataset import PreviousLocations

_KIND = "ingest"
_PLAN_ROWS = "plan"
_UNPACKED = "unpacked"
# Version of the task files: a run does not go on with those of an older one.
_TASK_FORMAT = 2


@dataclass(frozen=True)
class IngestPlan:
    """Everything that a worker needs to write a shard, and the commit to publish them. Small and picklable.

    Attributes:
        dataset: the dataset to write.
        root: folder that file names start from, absolute.
        recipe: the options.
        examples: how an image and its annotations become an example.
        notes: what was detected, for the user.
        cut: the ranges of the shards; writers do not need them.
        tasks: name of the folder of its task files. Ranges of other bounds, and images that are copied from another
            dataset, have another folder.
        recorded: whether the writers record the files that they read; see `shardwright.ingest.input_records`.
        source: the previous dataset that images are copied from.
    """

    dataset: DatasetPlan
    root: str
    recipe: IngestRecipe
    examples: ExampleSpec
    notes: tuple[str, ...]
    cut: Cut
    tasks: str
    recorded: bool
    source: CopySource | None = None

    @property
    def tools(self) -> str:
        """Returns what the bytes depend on besides the plan: the encoder of this machine, where one may be used."""
        return _tools(self.recipe)

    def for_writers(self) -> IngestPlan:
        """Returns the plan without what writers do not need: each range is sent with it."""
        return replace(self, cut=Cut())


@dataclass
class PreparedIngest:
    """A plan with what it was made from; `stage` passes that on to the writers.

    Attributes:
        plan: the plan.
        surveyed: the input; what writers have then is no longer in it.
        positions: shard -> positions in the listing, in the order of the records.
        rejected: ledger rows of images that are rejected before any shard is written.
        same: the decision about duplicates.
        locations: where the images are in the previous dataset, if there is one, until writers have it.
    """

    plan: IngestPlan
    surveyed: IngestInput
    positions: dict[PlannedShard, Positions]
    rejected: list[LedgerRow]
    same: DuplicateDecision
    locations: PreviousLocations | None = None

    def check_rejects(self) -> None:
        """Ends a run that could publish nothing before it writes anything.

        Raises:
            CheckFailed: more is rejected already than may be.
        """
        check_known_rejects(self.plan.dataset, self.rejected)

    def stage(self, staging: Staging, *, elsewhere: bool = False, inherited: bool = False) -> None:
        """Gives writers their tasks, and staging the early ledger rows, unless a previous attempt has.

        Args:
            staging: the staging folder of the plan.
            elsewhere: whether writers may be on other machines, which reach only what is on a bucket.
            inherited: whether all writers are this process or forks of it: then tasks need not be files, where the
                annotations of some images can be read without all others.

        Raises:
            CheckFailed: a file of annotations has changed since the input was surveyed.
        """
        plan, surveyed = self.plan, self.surveyed
        listing = surveyed.listing
        if plan.recorded and not staging.path(INPUTS_OF_PLAN).exists():
            # The rows of the files that no writer reads.
            planned = np.zeros(len(listing.keys), np.bool_)
            for images in self.positions.values():
                planned[images] = True
            staging.write_lines(REST_OF_INPUT, rest_lines(surveyed))
            rows = rows_of_plan(surveyed, planned, self.same)
            staging.write_lines(INPUTS_OF_PLAN, (f"{row.to_json()}\n" for row in rows))
        elif not plan.recorded and INPUTS_FILE in plan.dataset.kept:
            # Also where a file is there, which need not be ours: it becomes part of the dataset.
            lines = input_lines(listing, surveyed.contents, surveyed.probed)
            staging.write_lines(INPUTS_FILE, checksummed_lines(lines))
        tasks = Tasks(
            listing, surveyed.contents, surveyed.probed, None if self.locations is None else self.locations.at
        )
        reader = surveyed.source.reader() if inherited and surveyed.source.attachments() is None else None
        if reader is not None or not staging.path(plan.tasks).is_dir():
            staging.write_rows(_PLAN_ROWS, self.rejected)
        if reader is None and not staging.path(plan.tasks).is_dir():
            with new_tasks(staging.root, plan.tasks) as folder:
                if surveyed.records is not None:
                    tasks.listing = surveyed.records.move_to(folder.parent / _UNPACKED)
                self._write_tasks(folder, tasks)
                # Images need no such check: their hashes are compared with each record.
                surveyed.guard.check_unchanged()
        else:
            if reader is not None:
                keep_tasks(staging, plan.tasks, tasks, self.positions, reader)
            surveyed.guard.check_unchanged()
        if elsewhere:
            share_tasks(staging, self.positions, plan.cut.bounds, plan.tasks)

    def _write_tasks(self, folder: Path, tasks: Tasks) -> None:
        surveyed, bounds = self.surveyed, self.plan.cut.bounds
        annotations, attached = surveyed.source.annotations(), surveyed.source.attachments()
        if attached is not None and surveyed.attached is not None:
            annotations = _pinned(annotations, attached, surveyed.attached, surveyed.attached_later)
        write_images(folder, self.positions, bounds, tasks)
        # The hashes of a million images are large, and not needed while their annotations fill the memory.
        tasks.contents, tasks.probed, tasks.copied = FileHashes(), None, None
        surveyed.contents, surveyed.probed, self.locations = FileHashes(), None, None
        trim_heap()
        write_labels(folder, self.positions, bounds, len(tasks.listing.keys), annotations)


def _pinned(
    annotations: Iterator[Annotation], files: Listing, hashes: FileHashes, later: npt.NDArray[np.bool_]
) -> Iterator[Annotation]:
    """Adds to texts that name a file the checksum of that file when it was hashed or listed."""
    positions = {name: i for i, name in enumerate(files.names)}
    for annotation in annotations:
        # The text before the name chooses a part of the file.
        part, mark, name = (annotation.text or "").rpartition("\0")
        position = positions.get(name) if annotation.row == NO_ROW else None
        if position is None:
            yield annotation
        else:
            listed = files.checksum(position) if later[position] else ""
            yield annotation._replace(text=part + mark + pin_mask(name, int(hashes.crc32c[position]), listed))


def planned_fingerprint(surveyed: IngestInput) -> str:
    """Returns the fingerprint of the dataset that `plan_ingest` would plan, without decoding any image."""
    options = surveyed.recipe.with_classes(surveyed.survey.classes).options()
    return dataset_fingerprint(_KIND, options, identify_input(surveyed).fingerprint)


def plan_ingest(
    recipe: IngestRecipe,
    location: InputLocation,
    *,
    surveyed: IngestInput | None = None,
    expected_fingerprint: str | None = None,
    quiet: bool = True,
    staging_root: str | None = None,
    workers: int | None = None,
    spread: Spread | None = None,
) -> PreparedIngest:
    """Lists, surveys, hashes and probes an input and plans its splits and shards. Writes nothing but the cache.

    Args:
        recipe: the options.
        location: where the input is.
        surveyed: the input, where it was surveyed already.
        expected_fingerprint: content fingerprint the input must have.
        quiet: show no progress.
        staging_root: folder of staging folders, where probe rows are kept for all of them; `None` to keep none.
        workers: processes that probe; by default one per processor.
        spread: has images probed elsewhere; by default in these processes.

    Raises:
        UsageError: see `survey_input`.
        CheckFailed: see `survey_input`, `find_duplicates` and `split_images`; or the input is not the expected one.
    """
    surveyed = survey_input(recipe, location) if surveyed is None else surveyed
    cache = None if staging_root is None else os.path.join(local_folder(staging_root), PROBED)
    read_input(surveyed, cache=cache, workers=workers, spread=spread, quiet=quiet)
    if expected_fingerprint not in (None, surveyed.fingerprint):
        raise CheckFailed(
            f"{location.images}: the input has changed since the run began (content {surveyed.fingerprint[:12]}, "
            f"expected {str(expected_fingerprint)[:12]}). Run it again."
        )
    source, locations, reused = _match_previous(surveyed)
    listing, rejected = surveyed.listing, _rejected(surveyed)
    alive = np.ones(len(listing.keys), dtype=np.bool_)
    alive[list(rejected)] = False
    options = resolve_method(recipe.split, surveyed, alive)
    compared = listing.keys, surveyed.same, surveyed.probed, alive, surveyed.labels_of
    same = find_duplicates(recipe.duplicates, *compared, predefined=options.method == PREDEFINED)
    alive[list(same.rows)] = False
    classes = None
    if recipe.shards.balance == "class" or recipe.split.method == "stratified" or recipe.split.stratify:
        classes = class_sets(surveyed.source.annotations(), len(listing.keys), surveyed.source.dialect)
    accepted = np.flatnonzero(alive)
    split = split_images(options, location.previous, surveyed, surveyed.contents, accepted, classes, same)
    sizes, stored = np.array(listing.sizes, dtype=np.int64), recipe.images.stored_bytes
    sizes = sizes if stored is None else np.full_like(sizes, stored)
    positions = cut_shards(split.orders, sizes, recipe.shards, classes)
    moved = moved_notes(recipe.split, surveyed, split.orders)
    notes = (*surveyed.survey.notes, *surveyed.notes, *same.notes, *split.notes, *moved, *reused)
    plan = _ingest_plan(surveyed, positions, source, notes)
    rows = _early_rows(surveyed, {**rejected, **split.refused}, same, split.orders)
    return PreparedIngest(plan, surveyed, positions, rows, same, locations)


def _match_previous(surveyed: IngestInput) -> tuple[CopySource | None, PreviousLocations | None, list[str]]:
    """Returns the previous dataset that records are copied from, where they are in it, and notes."""
    recipe, previous, known = surveyed.recipe, surveyed.previous, surveyed.known
    if previous is None or known is None:
        return None, None, []
    options = recipe.options()["images"]
    if not previous.may_reuse(options):
        note = f"reuse_from: {previous.dataset.root} stores other pixels (images), so every image is read"
        return None, None, [*known.notes, note]
    locations, damaged = previous.locations(surveyed.listing, known)
    notes = [*known.notes, *damaged, *previous.check_origins()]
    return previous.source(options, _tools(recipe)), locations, notes


def _tools(recipe: IngestRecipe) -> str:
    return f"pillow {PIL.__version__}" if recipe.images.may_encode else ""


def _rejected(surveyed: IngestInput) -> dict[int, Refusal]:
    """Returns why images are rejected so far, by position. The first reason that was found counts."""
    unread = np.flatnonzero(~surveyed.identified).tolist()
    unreadable = {i: Refusal(surveyed.listing.keys[i], *UNREADABLE) for i in unread}
    return {**(surveyed.probed.rejected if surveyed.probed is not None else {}), **unreadable, **surveyed.rejected}


def _early_rows(
    surveyed: IngestInput,
    rejected: Mapping[int, Refusal],
    same: DuplicateDecision,
    orders: Mapping[str, Positions],
) -> list[LedgerRow]:
    """Returns the ledger rows of everything that is in no shard.

    That of a duplicate has the split of the image that is kept: another dataset may keep another.
    """
    refused = (*rejected.values(), *surveyed.listing.refused, *surveyed.survey.refused)
    rows = [LedgerRow(refusal.key, REJECTED, refusal.code, refusal.reason) for refusal in refused]
    standing = {same.kept_image(i) for i in same.kept}
    split_of = {i: split for split, images in orders.items() for i in images.tolist() if i in standing}
    for i, row in same.rows.items():
        status, split = REJECTED if row.rejected else DUPLICATE, split_of.get(same.kept_image(i), "")
        rows.append(LedgerRow(row.key, status, row.code, row.reason, split=split))
    return [*rows, *surveyed.spans.passed_over]


def _ingest_plan(
    surveyed: IngestInput, shards: Mapping[PlannedShard, Positions], source: CopySource | None, notes: tuple[str, ...]
) -> IngestPlan:
    """Describes the dataset and its writing.

    Args:
        surveyed: the input.
        shards: shard -> positions of its images.
        source: the previous dataset that images are copied from.
        notes: what was detected.
    """
    recipe, listing, survey = surveyed.recipe, surveyed.listing, surveyed.survey
    examples = example_spec(recipe, surveyed)
    measured = recipe.images.verify == FULL and not recipe.duplicates.looks_at_pixels
    # Kept where it can spare the next dataset any work.
    keep_inputs = surveyed.probed is not None or measured or (surveyed.read_later and not surveyed.pinned)
    keep_inputs = keep_inputs or bool(listing.checksums)
    sizes = np.array(listing.sizes, dtype=np.int64)
    cut = Cut.of(shards.values(), sizes, cost_of(recipe.images, sizes), listing.root)
    ranges = fingerprint([_TASK_FORMAT, cut.bounds, "" if source is None else source.digest])
    dataset = DatasetPlan(
        kind=_KIND,
        task=examples.task,
        classes=examples.classes,
        # With the classes that were detected, so that stating them in the configuration makes no difference.
        recipe=recipe.with_classes(survey.classes).options(),
        parent=surveyed.fingerprint,
        labels=labels_kind(recipe.task, survey),
        features=examples.stored.kinds,
        names=examples.stored.names,
        inputs=len(listing.keys) + len(listing.refused) + len(survey.refused) + len(surveyed.spans.passed_over),
        shards=tuple(shards),
        rows=(_PLAN_ROWS,),
        max_rejects=recipe.rejects.max_fraction,
        further_parents={} if recipe.split.keep_from is None else {"previous": recipe.split.keep_from},
        kept=(INPUTS_FILE,) if keep_inputs else (),
        content=surveyed.content,
        listed=not surveyed.pinned,
        annotations="" if NO_OBJECTS in recipe.input.labels.confirmed else examples.table or "the annotations",
    )
    return IngestPlan(
        dataset=dataset,
        root=listing.root,
        recipe=recipe,
        examples=examples,
        notes=notes,
        cut=cut,
        tasks=f"tasks-{ranges[:16]}",
        recorded=surveyed.read_later or measured,
        source=source,
    )


def example_spec(recipe: IngestRecipe, surveyed: IngestInput) -> ExampleSpec:
    """Returns how the images of an input and their annotations become examples."""
    source, survey = surveyed.source, surveyed.survey
    return ExampleSpec(
        task=recipe.task,
        classes=survey.classes,
        table="" if surveyed.labels is None else os.path.basename(surveyed.labels),
        mask_column=source.mask_column,
        dialect=source.dialect,
        stored=stored_features(recipe, survey),
        preset=recipe.features.preset,
        ignore=survey.ignore,
        extra=further_features(survey, recipe.images.verify),
        frame=survey.frame if recipe.input.labels.orientation == "auto" else recipe.input.labels.orientation,
        ordered=survey.ordered,
        checksum=recipe.images.checksum,
    )
