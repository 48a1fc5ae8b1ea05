"""From a surveyed input to a plan: reuse, rejects, duplicates, splits, shards, and the task files of the writers.

`plan_ingest` is a pipeline of values: each step returns what the next one takes. `PreparedIngest.stage` then writes
what the workers need into staging.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import PIL

from shardwright.config.images import FULL
from shardwright.config.split import PREDEFINED
from shardwright.dataset.ledger import DUPLICATE, REJECTED, LedgerRow
from shardwright.dataset.manifest import dataset_fingerprint
from shardwright.duplicates.decision import DuplicateDecision
from shardwright.duplicates.find import find_duplicates
from shardwright.errors import CheckFailed
from shardwright.formats.base import NO_ROW, Annotation
from shardwright.formats.mask_values import pin_mask
from shardwright.ingest.copying import INPUTS_FILE, CopySource, input_lines
from shardwright.ingest.example import ExampleSpec
from shardwright.ingest.identify import HashedInput, hash_input
from shardwright.ingest.ingested_features import further_features, labels_kind, stored_features
from shardwright.ingest.input_records import INPUTS_OF_PLAN, REST_OF_INPUT, rest_lines, rows_of_plan
from shardwright.ingest.known_files import FileHashes, KnownFiles
from shardwright.ingest.previous_dataset import PreviousLocations
from shardwright.ingest.probe import Spread
from shardwright.ingest.ranges import Bounds, Range, cost_of, cut_ranges, missing_ranges
from shardwright.ingest.read import UNREADABLE, probe_values, read_input
from shardwright.ingest.recipe import IngestRecipe, InputLocation
from shardwright.ingest.split_inputs import moved_notes, resolve_method
from shardwright.ingest.splitting import ClassSets, Positions, class_sets, cut_shards, split_images
from shardwright.ingest.survey import SurveyedInput, survey_input
from shardwright.ingest.tasks import (
    new_tasks,
    publish_tasks,
    share_tasks,
    tasks_are_written,
    tasks_folder,
    write_images,
    write_labels,
)
from shardwright.running.processes import trim_heap
from shardwright.staging.commit import DatasetPlan, check_known_rejects
from shardwright.staging.staged import PROBED
from shardwright.staging.staging import PlannedShard, Staging
from shardwright.storage import Listing, Refusal
from shardwright.storage.fingerprint import checksummed_lines
from shardwright.storage.mirror import local_folder

_KIND = "ingest"
_PLAN_ROWS = "plan"
_UNPACKED = "unpacked"


@dataclass(frozen=True)
class IngestPlan:
    """Everything that a worker needs to write a shard, and the commit to publish them. Small and picklable.

    Attributes:
        dataset: the dataset to write.
        root: folder that file names start from, absolute.
        recipe: the options.
        examples: how an image and its annotations become an example.
        notes: what was detected, for the user.
        shard_bytes: size of the images of each shard.
        shard_costs: nanoseconds of one processor that each takes, roughly.
        bounds: of the ranges of each shard; writers do not need them.
        source: the previous dataset that images are copied from.
        tasks: name of the folder of its task files.
        recorded: whether the writers record the files that they read; see `shardwright.ingest.input_records`.
    """

    dataset: DatasetPlan
    root: str
    recipe: IngestRecipe
    examples: ExampleSpec
    notes: tuple[str, ...]
    shard_bytes: tuple[int, ...]
    shard_costs: tuple[int, ...]
    bounds: tuple[Bounds, ...]
    source: CopySource | None = None
    tasks: str = "tasks"
    recorded: bool = False

    def missing_ranges(self, staging: Staging, processes: int) -> list[Range]:
        """Returns the ranges that are still to be written; see `ranges.missing_ranges`."""
        shards = self.dataset.shards
        return missing_ranges(shards, self.bounds, self.shard_bytes, self.shard_costs, staging, processes)

    def for_writers(self) -> IngestPlan:
        """Returns the plan without what writers do not need: each range is sent with it."""
        return replace(self, shard_bytes=(), shard_costs=(), bounds=())

    @property
    def tools(self) -> str:
        """Returns what the bytes depend on besides the plan: the version of the encoder, where one may be used."""
        return _tools(self.recipe)


def _tools(recipe: IngestRecipe) -> str:
    return f"pillow {PIL.__version__}" if recipe.images.may_encode else ""


@dataclass
class PreparedIngest:
    """A plan with what it was made from; `stage` writes its task files.

    Attributes:
        plan: the plan.
        surveyed: the input.
        hashed: its content, until its task files are written.
        probed: the results of probing, where the recipe asks for it, likewise.
        positions: shard -> positions in the listing, in the order of the records.
        rejected: ledger rows of images that are rejected before any shard is written.
        same: the decision about duplicates.
        locations: where the images are in the previous dataset, if there is one, likewise.
    """

    plan: IngestPlan
    surveyed: SurveyedInput
    hashed: HashedInput
    probed: KnownFiles | None
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

    def stage(self, staging: Staging, elsewhere: bool = False) -> None:
        """Writes task files and early ledger rows, unless a previous attempt has.

        Args:
            staging: the staging folder of the plan.
            elsewhere: whether writers may be on other machines, which reach only what is on a bucket.

        Raises:
            CheckFailed: a file of annotations has changed since the input was surveyed.
        """
        if self.plan.recorded:
            if not staging.path(INPUTS_OF_PLAN).exists():
                self._write_inputs(staging)
        elif INPUTS_FILE in self.plan.dataset.kept and not staging.path(INPUTS_FILE).exists():
            lines = input_lines(self.surveyed.listing, self.hashed.contents, self.probed)
            staging.write_lines(INPUTS_FILE, checksummed_lines(lines))
        if tasks_are_written(staging.root, self.plan.tasks):
            self.surveyed.guard.check_unchanged()
        else:
            self._write(staging)
        if elsewhere:
            share_tasks(staging, self.positions, self.plan.bounds, self.plan.tasks)

    def _write_inputs(self, staging: Staging) -> None:
        """Writes the rows of the files that no writer reads."""
        planned = np.zeros(len(self.surveyed.listing.keys), np.bool_)
        for images in self.positions.values():
            planned[images] = True
        staging.write_lines(REST_OF_INPUT, rest_lines(self.surveyed, self.hashed))
        rows = rows_of_plan(self.surveyed, self.hashed, planned, self.same)
        staging.write_lines(INPUTS_OF_PLAN, (f"{row.to_json()}\n" for row in rows))

    def _write(self, staging: Staging) -> None:
        staging.write_rows(_PLAN_ROWS, self.rejected)
        surveyed = self.surveyed
        listing = surveyed.listing
        if surveyed.records is not None:
            listing = surveyed.records.move_to(Path(staging.root, _UNPACKED))
        annotations = surveyed.source.annotations()
        attached = surveyed.source.attachments()
        if attached is not None and self.hashed.attached is not None:
            annotations = _pinned(annotations, attached, self.hashed)
        folder = new_tasks(staging.root, self.plan.tasks)
        probed, copied = partial(probe_values, self.probed), None if self.locations is None else self.locations.at
        write_images(folder, self.positions, self.plan.bounds, listing, self.hashed.contents, probed, copied)
        # The hashes of a million images are large, and not needed while their annotations fill the memory.
        self.hashed, self.probed, self.locations = replace(self.hashed, contents=FileHashes()), None, None
        trim_heap()
        write_labels(folder, self.positions, self.plan.bounds, len(listing.keys), annotations)
        # Images need no such check: their hashes are compared with each record.
        surveyed.guard.check_unchanged()
        publish_tasks(staging.root, folder)


def _pinned(annotations: Iterator[Annotation], files: Listing, hashed: HashedInput) -> Iterator[Annotation]:
    """Adds to texts that name a file the checksum of that file when it was hashed or listed."""
    assert hashed.attached is not None
    crc32c, later = hashed.attached.crc32c, hashed.attached_later
    positions = {name: i for i, name in enumerate(files.names)}
    for annotation in annotations:
        # The text before the name chooses a part of the file.
        part, mark, name = (annotation.text or "").rpartition("\0")
        position = positions.get(name) if annotation.row == NO_ROW else None
        if position is None:
            yield annotation
        else:
            listed = files.checksum(position) if later[position] else ""
            yield annotation._replace(text=part + mark + pin_mask(name, int(crc32c[position]), listed))


def planned_fingerprint(recipe: IngestRecipe, surveyed: SurveyedInput) -> str:
    """Returns the fingerprint of the dataset that `plan_ingest` would plan, without decoding any image."""
    options = recipe.with_classes(surveyed.survey.classes).options()
    return dataset_fingerprint(_KIND, options, hash_input(surveyed).fingerprint)


def plan_ingest(
    recipe: IngestRecipe,
    location: InputLocation,
    *,
    surveyed: SurveyedInput | None = None,
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
    hashed, probed = read_input(recipe, surveyed, cache=cache, workers=workers, spread=spread, quiet=quiet)
    if expected_fingerprint is not None:
        _check_content(location.images, hashed.fingerprint, expected_fingerprint)
    reuse = _match_previous(recipe, surveyed)
    rejected = _unreadable(surveyed, hashed, probed)
    alive = np.ones(len(surveyed.listing.keys), dtype=np.bool_)
    alive[list(rejected)] = False
    options = resolve_method(recipe.split, surveyed, alive)
    same = find_duplicates(
        recipe.duplicates,
        surveyed.listing.keys,
        hashed.same,
        probed,
        alive,
        surveyed.labels_of,
        predefined=options.method == PREDEFINED,
    )
    alive[list(same.rows)] = False
    classes = _classes(recipe, surveyed)
    accepted = np.flatnonzero(alive)
    split = split_images(options, location.previous, surveyed, hashed.contents, accepted, classes, same)
    sizes = _stored_sizes(recipe, surveyed.listing)
    positions = cut_shards(split.orders, sizes, recipe.shards, classes)
    moved = moved_notes(recipe.split, surveyed, split.orders)
    notes = (*surveyed.survey.notes, *hashed.notes, *same.notes, *split.notes, *moved, *reuse.notes)
    plan = _ingest_plan(recipe, surveyed, hashed, probed is not None, positions, reuse.source, notes)
    rows = _early_rows(surveyed, {**rejected, **split.refused}, _duplicate_rows(same, split.orders))
    return PreparedIngest(plan, surveyed, hashed, probed, positions, rows, same, reuse.locations)


def _check_content(images: str, found: str, expected: str) -> None:
    if found != expected:
        raise CheckFailed(
            f"{images}: the input has changed since the run began (content {found[:12]}, expected {expected[:12]}). "
            "Run it again."
        )


class _Reuse(NamedTuple):
    """The records that are copied from the previous dataset, and where they are."""

    source: CopySource | None
    locations: PreviousLocations | None
    notes: list[str]


def _match_previous(recipe: IngestRecipe, surveyed: SurveyedInput) -> _Reuse:
    previous, known = surveyed.previous, surveyed.known
    if previous is None or known is None:
        return _Reuse(None, None, [])
    options = recipe.options()["images"]
    if not previous.may_reuse(options):
        note = f"reuse_from: {previous.dataset.root} stores other pixels (images), so every image is read"
        return _Reuse(None, None, [*known.notes, note])
    locations, damaged = previous.locations(surveyed.listing, known)
    notes = [*known.notes, *damaged, *previous.check_origins()]
    return _Reuse(previous.source(options, _tools(recipe)), locations, notes)


def _unreadable(surveyed: SurveyedInput, hashed: HashedInput, probed: KnownFiles | None) -> dict[int, Refusal]:
    """Returns why images are rejected so far, by position. The first reason that was found counts."""
    rejected = dict(surveyed.rejected)
    for i in np.flatnonzero(~hashed.identified).tolist():
        if i not in rejected:
            rejected[i] = Refusal(surveyed.listing.keys[i], *UNREADABLE)
    return rejected if probed is None else {**probed.rejected, **rejected}


def _classes(recipe: IngestRecipe, surveyed: SurveyedInput) -> ClassSets | None:
    """Returns the classes of every image, where the splits or the shards depend on them."""
    if recipe.shards.balance == "class" or recipe.split.method == "stratified" or recipe.split.stratify:
        return class_sets(surveyed.source.annotations(), len(surveyed.listing.keys), surveyed.source.dialect)
    return None


def _stored_sizes(recipe: IngestRecipe, listing: Listing) -> npt.NDArray[np.int64]:
    """Returns the bytes that each image is expected to take in a shard."""
    if recipe.images.stored_bytes is not None:
        return np.full(len(listing.sizes), recipe.images.stored_bytes, np.int64)
    return np.array(listing.sizes, dtype=np.int64)


def _early_rows(
    surveyed: SurveyedInput, rejected: Mapping[int, Refusal], duplicates: list[LedgerRow]
) -> list[LedgerRow]:
    """Returns the ledger rows of everything that is in no shard."""
    refused = (*rejected.values(), *surveyed.listing.refused, *surveyed.survey.refused)
    rows = [LedgerRow(refusal.key, REJECTED, refusal.code, refusal.reason) for refusal in refused]
    return [*rows, *duplicates, *surveyed.spans.passed_over]


def _duplicate_rows(same: DuplicateDecision, orders: Mapping[str, Positions]) -> list[LedgerRow]:
    """Returns ledger rows of duplicates, with the split of the image that is kept: another dataset may keep another."""
    standing = {same.kept_image(i) for i in same.kept}
    split_of = {i: split for split, images in orders.items() for i in images.tolist() if i in standing}
    return [
        LedgerRow(
            row.key,
            REJECTED if row.rejected else DUPLICATE,
            row.code,
            row.reason,
            split=split_of.get(same.kept_image(i), ""),
        )
        for i, row in same.rows.items()
    ]


def _ingest_plan(
    recipe: IngestRecipe,
    surveyed: SurveyedInput,
    hashed: HashedInput,
    probed: bool,
    shards: Mapping[PlannedShard, Positions],
    source: CopySource | None,
    notes: tuple[str, ...],
) -> IngestPlan:
    """Describes the dataset and its writing.

    Args:
        recipe: the options.
        surveyed: the input.
        hashed: its content.
        probed: whether the images were probed.
        shards: shard -> positions of its images.
        source: the previous dataset that images are copied from.
        notes: what was detected.
    """
    examples = example_spec(recipe, surveyed)
    measured = recipe.images.verify == FULL and not recipe.duplicates.looks_at_pixels
    recorded = hashed.read_later or measured
    # Kept where it can spare the next dataset any work.
    keep_inputs = probed or measured or (hashed.read_later and not surveyed.pinned) or bool(surveyed.listing.checksums)
    sizes = np.array(surveyed.listing.sizes, dtype=np.int64)
    cost = cost_of(recipe.images, sizes)
    dataset = _dataset_plan(recipe, surveyed, examples, hashed, tuple(shards), keep_inputs)
    bounds = tuple(cut_ranges(shards, cost, surveyed.listing.root))
    return IngestPlan(
        dataset=dataset,
        root=surveyed.listing.root,
        recipe=recipe,
        examples=examples,
        notes=notes,
        shard_bytes=tuple(int(sizes[images].sum()) for images in shards.values()),
        shard_costs=tuple(int(cost[images].sum()) for images in shards.values()),
        bounds=bounds,
        source=source,
        tasks=tasks_folder(bounds, "" if source is None else source.digest),
        recorded=recorded,
    )


def _dataset_plan(
    recipe: IngestRecipe,
    surveyed: SurveyedInput,
    examples: ExampleSpec,
    hashed: HashedInput,
    shards: tuple[PlannedShard, ...],
    keep_inputs: bool,
) -> DatasetPlan:
    listing, survey = surveyed.listing, surveyed.survey
    return DatasetPlan(
        kind=_KIND,
        task=examples.task,
        classes=examples.classes,
        # With the classes that were detected, so that stating them in the configuration makes no difference.
        recipe=recipe.with_classes(survey.classes).options(),
        parent=hashed.fingerprint,
        labels=labels_kind(recipe.task, survey),
        features=examples.stored.kinds,
        names=examples.stored.names,
        inputs=len(listing.keys) + len(listing.refused) + len(survey.refused) + len(surveyed.spans.passed_over),
        shards=shards,
        rows=(_PLAN_ROWS,),
        max_rejects=recipe.rejects.max_fraction,
        further_parents={} if recipe.split.keep_from is None else {"previous": recipe.split.keep_from},
        kept=(INPUTS_FILE,) if keep_inputs else (),
        content="" if hashed.read_later else hashed.content,
        listed=not surveyed.pinned,
    )


def example_spec(recipe: IngestRecipe, surveyed: SurveyedInput) -> ExampleSpec:
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
