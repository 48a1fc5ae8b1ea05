"""From an input to a plan: splits, shards, task files in staging, and what is rejected before any image is read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import PIL

from shardwright.config import ShardsConfig
from shardwright.dataset.features import StoredFeatures
from shardwright.dataset.ledger import DUPLICATE, REJECTED, LedgerRow
from shardwright.dataset.manifest import dataset_fingerprint
from shardwright.duplicates.decide import DuplicateDecision
from shardwright.duplicates.find import find_duplicates
from shardwright.errors import CheckFailed
from shardwright.formats.base import NO_ROW, Annotation, MaskCode
from shardwright.formats.mask_values import pin_mask
from shardwright.ingest.copying import INPUTS_FILE, CopySource, input_lines
from shardwright.ingest.features import further_features, labels_kind, stored_features
from shardwright.ingest.known_files import FileHashes, KnownFiles
from shardwright.ingest.previous_dataset import PreviousLocations
from shardwright.ingest.read import probe_values, read_input, wanted_of
from shardwright.ingest.recipe import IngestRecipe, InputLocation
from shardwright.ingest.splitting import ClassSets, class_sets, cut_split, split_images
from shardwright.ingest.survey import HashedInput, SurveyedInput, hash_input, survey_input
from shardwright.ingest.tasks import (
    new_tasks,
    publish_tasks,
    share_tasks,
    tasks_are_written,
    tasks_folder,
    write_images,
    write_labels,
)
from shardwright.processes import trim_heap
from shardwright.staging.commit import DatasetPlan, check_known_rejects
from shardwright.staging.staged import PROBED
from shardwright.staging.staging import PlannedShard, Staging
from shardwright.storage import Listing, Refusal
from shardwright.storage.mirror import local_folder

_KIND = "ingest"
_PLAN_ROWS = "plan"
_UNPACKED = "unpacked"


@dataclass(frozen=True)
class IngestPlan:
    """Everything a worker needs to write a shard, and the commit to publish them. Small and picklable.

    Attributes:
        dataset: what will be written.
        root: folder that file names start from, absolute.
        table: file name of the table of annotations, or empty.
        mask_column: header of its column of masks, or empty.
        dialect: how masks are written there.
        recipe: the options.
        stored: names and forms of the features.
        ignore: whether examples have a mask of what is not to be counted.
        extra: kinds of the further features that the annotations give.
        frame: which frame annotations are in, `auto`, `stored` or `displayed`.
        notes: what was told from the data, for the user.
        total_bytes: size of all images that are going to be read.
        source: the earlier dataset that images are copied from.
        tasks: name of the folder of its task files.
        ordered: whether order and repeats of an image's classes count.
    """

    dataset: DatasetPlan
    root: str
    table: str
    mask_column: str
    dialect: MaskCode
    recipe: IngestRecipe
    stored: StoredFeatures
    ignore: bool
    extra: Mapping[str, str]
    frame: str
    notes: tuple[str, ...]
    total_bytes: int
    source: CopySource | None = None
    tasks: str = tasks_folder()
    ordered: bool = False

    @property
    def tools(self) -> str:
        """What the bytes depend on besides the plan; see `_tools`."""
        return _tools(self.recipe)


def _tools(recipe: IngestRecipe) -> str:
    """What the bytes depend on besides the plan: the encoder, where one may be used."""
    return f"pillow {PIL.__version__}" if recipe.images.may_encode else ""


@dataclass
class PreparedIngest:
    """A plan with what it was made from; `stage` writes its task files.

    Attributes:
        plan: the plan.
        surveyed: the input.
        hashed: its content, until its task files are written.
        probed: what its pixels tell, where the recipe has them looked at, likewise.
        positions: shard -> positions in the listing, in the order of the records.
        rejected: ledger rows of what is rejected before any shard.
        places: where the earlier dataset holds the images, if there is one, likewise.
    """

    plan: IngestPlan
    surveyed: SurveyedInput
    hashed: HashedInput
    probed: KnownFiles | None
    positions: dict[PlannedShard, npt.NDArray[np.int64]]
    rejected: list[LedgerRow]
    places: PreviousLocations | None = None

    def check_rejects(self) -> None:
        """Ends a run that could publish nothing before it writes anything.

        Raises:
            CheckFailed: more is rejected already than may be.
        """
        check_known_rejects(self.plan.dataset, self.rejected)

    def stage(self, staging: Staging, elsewhere: bool = False) -> None:
        """Writes task files and early ledger rows, unless an earlier attempt has.

        Args:
            staging: the staging folder of the plan.
            elsewhere: whether writers may be on other machines, which reach no more of it than lies on a bucket.

        Raises:
            CheckFailed: a file of annotations has changed since the input was surveyed.
        """
        if INPUTS_FILE in self.plan.dataset.kept and not staging.path(INPUTS_FILE).exists():
            staging.write_lines(INPUTS_FILE, input_lines(self.surveyed.listing, self.hashed.contents, self.probed))
        if tasks_are_written(staging.root, self.plan.tasks):
            self.surveyed.read.refuse_changed()
        else:
            self._write(staging)
        if elsewhere:
            share_tasks(staging, self.positions, self.plan.tasks)

    def _write(self, staging: Staging) -> None:
        staging.write_rows(_PLAN_ROWS, self.rejected)
        surveyed = self.surveyed
        listing = surveyed.listing
        if surveyed.records is not None:
            listing = surveyed.records.move_to(Path(staging.root, _UNPACKED))
        annotations = surveyed.source.annotations()
        attached = surveyed.source.attachments()
        if attached is not None and self.hashed.attached is not None:
            annotations = _pinned(annotations, attached, self.hashed.attached)
        folder = new_tasks(staging.root, self.plan.tasks)
        copied = [] if self.places is None else [self.places.at]
        write_images(folder, self.positions, listing, self.hashed.contents, partial(probe_values, self.probed), *copied)
        # Most of what is known of a million images, and not needed while their annotations fill the memory.
        self.hashed, self.probed, self.places = replace(self.hashed, contents=FileHashes()), None, None
        trim_heap()
        write_labels(folder, self.positions, len(listing.keys), annotations)
        # As images are, whose hashes are compared with each record.
        surveyed.read.refuse_changed()
        publish_tasks(staging.root, folder)


def _pinned(annotations: Iterator[Annotation], files: Listing, contents: FileHashes) -> Iterator[Annotation]:
    """The same annotations; where the text is the name of a file, with what the file held when it was hashed."""
    places = {name: i for i, name in enumerate(files.names)}
    for annotation in annotations:
        place = None if annotation.text is None else places.get(annotation.text)
        if place is None or annotation.row != NO_ROW:
            yield annotation
        else:
            yield annotation._replace(text=pin_mask(files.names[place], contents.crc32c(place)))


def planned_fingerprint(recipe: IngestRecipe, surveyed: SurveyedInput) -> str:
    """Fingerprint of the dataset that `plan_ingest` would plan of an input; no pixels are looked at for it."""
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
) -> PreparedIngest:
    """Lists, surveys, hashes and probes an input and plans its splits and shards. Writes nothing but the cache.

    Args:
        recipe: the options.
        location: where the input lies.
        surveyed: the input, where it was surveyed already.
        expected_fingerprint: content fingerprint the input must have.
        quiet: show no progress.
        staging_root: folder of staging folders, where probe rows are kept for all of them; `None` to keep none.
        workers: processes that probe; by default one per processor.

    Raises:
        UsageError: see `survey_input`.
        CheckFailed: see `survey_input`, `find_duplicates` and `split_images`; or the input is not the expected one.
    """
    surveyed = survey_input(recipe, location) if surveyed is None else surveyed
    listing, survey = surveyed.listing, surveyed.survey
    cache = None if staging_root is None else os.path.join(local_folder(staging_root), PROBED)
    hashed, probed = read_input(recipe, surveyed, cache=cache, workers=workers, quiet=quiet)
    if expected_fingerprint not in (None, hashed.fingerprint):
        raise CheckFailed(
            f"{location.images}: the input has changed since the run began (content {hashed.fingerprint[:12]}, "
            f"expected {str(expected_fingerprint)[:12]}). Run it again."
        )
    options = recipe.options()["images"]
    earlier, places, known = surveyed.earlier, None, surveyed.known(**wanted_of(recipe))
    notes: list[str] = []
    if earlier is not None and known is not None:
        notes += known.notes
        if earlier.is_of_use(options):
            places, damaged = earlier.places(listing, known)
            notes += [*damaged, *earlier.unproven()]
        else:
            notes.append(f"previous: {earlier.dataset.root} stores other pixels (images), so every image is read")
    rejected = dict(surveyed.rejected)
    for i in hashed.contents.unreadable():
        if i not in rejected:
            rejected[i] = Refusal(listing.keys[i], "unreadable", "the file cannot be read; check its permissions")
    if probed is not None:
        rejected = {**probed.rejected, **rejected}
    alive = np.ones(len(listing.keys), dtype=np.bool_)
    alive[list(rejected)] = False
    same = find_duplicates(
        recipe.duplicates, listing.keys, hashed.contents.digests(), probed, alive, surveyed.labels_of
    )
    alive[list(same.rows)] = False
    accepted = np.flatnonzero(alive)
    classes = None
    if recipe.shards.balance == "class" or recipe.split.by == "stratified" or recipe.split.stratify:
        classes = class_sets(surveyed.source.annotations(), len(listing.keys), surveyed.source.dialect)
    split = split_images(recipe.split, location, surveyed, accepted, classes, same)
    rejected.update(split.refused)
    sizes = np.array(listing.sizes, dtype=np.int64)
    if recipe.images.stored_bytes is not None:
        sizes = np.full(len(sizes), recipe.images.stored_bytes, np.int64)
    positions = _shards(split.orders, sizes, recipe.shards, classes if recipe.shards.balance == "class" else None)
    rows = [
        LedgerRow(refusal.key, REJECTED, refusal.code, refusal.reason)
        for refusal in (*rejected.values(), *listing.refused, *survey.refused)
    ]
    rows += [*_duplicates(same, split.orders), *surveyed.delivered.passed_over]
    stored = stored_features(recipe, survey)
    dataset = DatasetPlan(
        kind=_KIND,
        task=recipe.task,
        classes=survey.classes,
        # With the classes that were told, so that telling them beforehand makes no difference.
        recipe=recipe.with_classes(survey.classes).options(),
        parent=hashed.fingerprint,
        labels=labels_kind(recipe.task, survey),
        features=stored.kinds,
        names=stored.names,
        inputs=len(listing.keys) + len(listing.refused) + len(survey.refused) + len(surveyed.delivered.passed_over),
        shards=tuple(positions),
        rows=(_PLAN_ROWS,),
        max_rejects=recipe.rejects.max,
        further_parents={} if recipe.split.previous is None else {"previous": recipe.split.previous},
        # Where it can spare the next one anything.
        kept=(INPUTS_FILE,) if probed is not None or len(listing.checksums) else (),
    )
    plan = IngestPlan(
        dataset=dataset,
        root=listing.root,
        table="" if surveyed.labels is None else os.path.basename(surveyed.labels),
        mask_column=surveyed.source.mask_column,
        dialect=surveyed.source.dialect,
        recipe=recipe,
        stored=stored,
        ignore=survey.ignore,
        extra=further_features(survey, recipe.images.verify),
        frame=survey.frame if recipe.input.labels.frame == "auto" else recipe.input.labels.frame,
        notes=(*survey.notes, *same.notes, *split.notes, *notes),
        total_bytes=sum(int(sizes[images].sum()) for images in positions.values()),
        source=None if earlier is None or places is None else earlier.source(options, _tools(recipe)),
        tasks=tasks_folder("" if earlier is None or places is None else earlier.digest),
        ordered=survey.ordered,
    )
    return PreparedIngest(plan, surveyed, hashed, probed, positions, rows, places)


def _duplicates(same: DuplicateDecision, orders: Mapping[str, npt.NDArray[np.int64]]) -> list[LedgerRow]:
    """Ledger rows of duplicates, with the split of the image that is kept: another dataset may keep another."""
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


def _shards(
    orders: Mapping[str, npt.NDArray[np.int64]],
    sizes: npt.NDArray[np.int64],
    options: ShardsConfig,
    classes: ClassSets | None,
) -> dict[PlannedShard, npt.NDArray[np.int64]]:
    shards: dict[PlannedShard, npt.NDArray[np.int64]] = {}
    for split, images in orders.items():
        cut = cut_split(images, sizes, options, classes)
        for number, held in enumerate(cut):
            shards[PlannedShard(split, number, len(cut))] = held
    return shards
