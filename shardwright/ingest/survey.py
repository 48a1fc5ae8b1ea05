"""An input as one record: lists it and reads its annotations once. Nothing is written here.

A run reads the files of annotations several times: to detect their format, to hash them, to cut shards. The staged
files match the fingerprint only if the bytes were the same each time. So `SourceGuard` hashes them before the first
read and compares them after the last.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shardwright.config.images import FULL
from shardwright.config.input import TFRECORD
from shardwright.config.shards import RLE_TEXT
from shardwright.dataset.ledger import MISSING_IMAGE, UNLISTED
from shardwright.dataset.manifest import SINGLE
from shardwright.dataset.outputs import without_outputs
from shardwright.errors import CheckFailed, ConfigError, Reading, UsageError
from shardwright.formats.base import (
    AnnotationFormat,
    ClassesInText,
    Images,
    Request,
    Survey,
    check_some,
    counted_endings,
)
from shardwright.formats.classes import check_detected, check_spellings
from shardwright.formats.detect import open_source
from shardwright.formats.export_record import FoundExport, find_export
from shardwright.formats.exported import Exported
from shardwright.formats.head import Head
from shardwright.formats.mask_values import ReadsFiles
from shardwright.formats.rows import CsvFormat
from shardwright.formats.split_files import SplitFile, SplitFiles, find_files
from shardwright.formats.tables import Spans
from shardwright.images.decode import header_of, other_header
from shardwright.images.header import EMPTY_FILE, NOT_AN_IMAGE, ImageError, has_image_ending, is_sidecar
from shardwright.images.read_header import read_header
from shardwright.ingest.known_files import FileHashes, KnownFiles
from shardwright.ingest.recipe import IngestRecipe, InputLocation
from shardwright.ingest.select_spans import MergedSpans, read_spans
from shardwright.ingest.split_lists import files_of_lists
from shardwright.masks.coordinate_frame import CoordinateFrame
from shardwright.running.progress import counted
from shardwright.storage import (
    FileHash,
    Listing,
    Refusal,
    check_table,
    file_states,
    hash_file,
    is_folder,
    map_threads,
    read_bytes,
    read_hashed,
    read_start,
    readers,
)
from shardwright.storage.checksum import DIGEST_BYTES, checksum_of
from shardwright.storage.limits import MOST_KEPT_BYTES
from shardwright.storage.paths import overlap

if TYPE_CHECKING:
    from shardwright.formats.tfrecords import TFRecordFormat
    from shardwright.ingest.previous_dataset import PreviousDataset

_UNLISTED_MEANS = {
    "empty": "an image without a row has no annotations, and is written",
    "reject": "an image without a row is left out",
    "unlabeled": "an image without a row is written without a class",
}
# How the note begins; `init` has one of its own.
IGNORED_FILES = "images: other files are ignored: "
_LOOK_INTO = 1 << 20
_SHOWN = 3
_MASK_DIGITS = 8


@dataclass
class IngestInput:
    """An input on its way to a plan: each step fills in what it finds out.

    Attributes:
        recipe: the options.
        listing: files, by key.
        source: their annotations, ready to be read.
        spans: what was listed, and from which spans.
        guard: the files of annotations, as they were before they were read.
        labels: absolute path of the annotations, or `None`; of several spans' the newest.
        further: absolute paths of files with more annotations, or on how to read them.
        lists: split -> absolute path of the file that lists its images.
        records: the source, where images are parts of TFRecord files.
        previous: the dataset that images may be copied from.
        notes: what was detected, for the user, and is not in `survey.notes`.
        rejected: position -> why that file is not going to be written.
        survey: the result of reading the annotations once (`read_annotations`).
        pinned: whether states identify files of this machine; see `shardwright.ingest.identify.pin_input`.
        contents: hashes of the files that were read, or are known from a previous dataset. This and all that follows
            is of `shardwright.ingest.identify.identify_input`.
        identified: whether a file is identified, bool (n,): those that can be read, as far as is known.
        same: equal for files of the same bytes, uint8 (n, 32).
        attached: hashes of the files of `AnnotationFormat.attachments`, if it has any.
        attached_later: which of these are read by the writers, and are identified by what the store lists.
        fingerprint: of all of it.
        content: fingerprint by the checksums of the files; empty where some are read later.
        probed: the results of probing the images, where they are known (`shardwright.ingest.probe.read_input`).
    """

    recipe: IngestRecipe
    listing: Listing
    source: AnnotationFormat
    spans: MergedSpans
    guard: SourceGuard
    labels: str | None = None
    further: tuple[str, ...] = ()
    lists: Mapping[str, str] = field(default_factory=dict)
    records: TFRecordFormat | None = None
    previous: PreviousDataset | None = None
    notes: tuple[str, ...] = ()
    rejected: dict[int, Refusal] = field(default_factory=dict)
    survey: Survey = field(default_factory=lambda: Survey((), bytearray()))
    pinned: bool = False
    contents: FileHashes = field(default_factory=FileHashes)
    identified: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    same: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros((0, DIGEST_BYTES), np.uint8))
    attached: FileHashes | None = None
    attached_later: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    fingerprint: str = ""
    content: str = ""
    probed: KnownFiles | None = None

    @property
    def read_later(self) -> bool:
        """True if the content ID of some file is what the store lists, and its checksum is not known yet."""
        return bool((self.identified & ~self.contents.known).any() or self.attached_later.any())

    @cached_property
    def known(self) -> KnownFiles | None:
        """Returns the files that are known from the previous dataset; `None` where there is none."""
        if self.previous is None:
            return None
        probed, pixels = self.recipe.images.verify == FULL, self.recipe.duplicates.pixels is not None
        algorithm = self.recipe.images.checksum
        return self.previous.known(self.listing, algorithm=algorithm, probed=probed, pixels=pixels)

    def labels_of(self, images: Iterable[int]) -> dict[int, tuple[str, str]]:
        """Returns the classes of each image, and a word for its masks: for people to read, and to compare."""
        rows: dict[int, set[tuple[int, str]]] = {i: set() for i in images}
        # Names of masks differ for equal masks, too.
        texts_count = self.source.attachments() is None or not isinstance(self.source.dialect, ReadsFiles)
        for annotation in self.source.annotations():
            if annotation.image in rows:
                rows[annotation.image].add((annotation.label, annotation.text or "" if texts_count else ""))
        labels = {}
        for i, pairs in rows.items():
            names = [self.survey.classes[label] for label in sorted({label for label, _ in pairs}) if label >= 0]
            masks = "\n".join(f"{label} {text}" for label, text in sorted(pairs) if text)
            word = checksum_of(masks.encode())[:_MASK_DIGITS]
            labels[i] = (", ".join(names) or "none", f" (masks {word})" if masks else "")
        return labels


def survey_input(recipe: IngestRecipe, location: InputLocation) -> IngestInput:
    """Lists an input and reads its annotations once: `list_input` and `read_annotations`."""
    return read_annotations(list_input(recipe, location))


def list_input(recipe: IngestRecipe, location: InputLocation) -> IngestInput:
    """Lists the files of an input, and finds out how its annotations are written.

    Raises:
        UsageError: the folder, the table, or a column is wrong.
        CheckFailed: an image has several contents, and `input.on_conflict` is `fail`.
    """
    previous = None if location.earlier is None else _previous_dataset(location.earlier)
    files = recipe.input.labels.files
    # The folder of several files may be that of the images, too: it is not left out of these.
    place = dataclasses.replace(location, labels=None) if files else location
    merged = read_spans(place, recipe.input.on_conflict, recipe.input.exclude)
    labels = location.labels if files else merged.labels[-1].path if merged.labels else None
    listing, notes = merged.listing, merged.notes
    spans = merged.spans(recipe.input.on_conflict)
    export = None if spans.parts or files else find_export(labels, listing.root, recipe.task)
    several = find_files(labels, files) if labels and files else []
    further = (*(export.files if export is not None else ()), *(file.path for file in several))
    tables = [part.path for part in merged.labels if not is_folder(part.path)]
    guard, contents = SourceGuard.reading([*tables, *further], files_of_lists(location.lists.values()))
    masks: frozenset[str] = frozenset()
    head = None
    if labels is not None and not several:
        head = Head.read(labels, listing.root, listing.keys, contents.get(labels))
    if head is not None and recipe.task == "segmentation" and overlap(listing.root, head.path):
        from shardwright.formats.image_or_mask import without_masks

        listing, masks, note = without_masks(listing, recipe.input.labels, head, merged.excluded)
        notes = (*notes, note) if note else notes
    record = partial(
        IngestInput, recipe, spans=merged, labels=labels, further=further, lists=location.lists, previous=previous
    )
    evidence = _detect_records(recipe, location, listing)
    if evidence is not None:
        records = _open_records(recipe, listing, evidence)
        guard = guard.with_files(listing)
        return record(listing=records.listing, source=records, guard=guard, records=records, notes=notes)
    if len(listing.keys) == 1 and listing.path(0) == location.images:
        raise UsageError(
            f"input.images: {location.images} is a file, and not one of records. Give the folder of the images."
        )
    listing = _within(listing, recipe.images.max_bytes)
    listing, not_images, sidecars = _without_sidecars(listing, _not_images(listing))
    images = Images(
        keys=listing.keys,
        skip=frozenset(not_images),
        size_of=lambda position: _size(listing.path(position), recipe),
        max_pixels=recipe.images.max_pixels,
        root=listing.root,
        paths=masks | merged.excluded,
    )
    source = _open_annotations(recipe, labels, images, several, spans, export, head)
    attached = source.attachments()
    read = {labels, *further, *(map(attached.path, range(len(attached.keys))) if attached is not None else ())}
    notes = (*notes, *_ignored_note(path for path in sidecars if path not in read))
    guard = guard.with_files(attached)
    return record(listing=listing, source=source, guard=guard, rejected=not_images, notes=notes)


def _previous_dataset(folder: str) -> PreviousDataset:
    from shardwright.ingest.previous_dataset import PreviousDataset

    return PreviousDataset.open(folder)


def read_annotations(listed: IngestInput) -> IngestInput:
    """Reads the annotations of an input once; returns the same record.

    Raises:
        UsageError: a table, a column or a class is wrong.
        CheckFailed: nothing matched, or images without annotations where `input.unlisted_images` is `fail`.
    """
    recipe, listing, source, not_images = listed.recipe, listed.listing, listed.source, listed.rejected
    if recipe.features.preset == RLE_TEXT and isinstance(source.dialect, ClassesInText):
        raise ConfigError("features.preset", "rle_text keeps masks as text, and these are images", "Use another one.")
    if listed.records is None and len(not_images) == len(listing.keys):
        raise _no_images(listing, not_images)
    survey = source.survey()
    survey.notes, listed.notes = (*listed.notes, *survey.notes), ()
    unlisted = source.unlisted if recipe.input.unlisted_images == "auto" else recipe.input.unlisted_images
    may_be_empty = recipe.task == "segmentation" or survey.labels != SINGLE
    _check_unlisted_option(recipe.task, unlisted, may_be_empty)
    # Files that were refused or replaced by another span are in the ledger already, with the right reason.
    known = {refusal.key for refusal in listing.refused} | {row.key for row in listed.spans.passed_over}
    survey.refused = [refusal for refusal in survey.refused if refusal.key not in known]
    if not any(survey.listed):
        raise _nothing_matched(listing, not_images, survey, source)
    check_some(survey, source.name or listing.root, recipe.input.labels)
    if recipe.input.classes is None and not isinstance(source, Exported):
        where = source.name or listing.root
        check_spellings(survey.classes, where)
        if recipe.task == "classification" and survey.labels == SINGLE:
            check_detected(survey.classes, sum(survey.listed), where)
    listed.survey, listed.rejected = survey, {**not_images, **survey.rejected}
    rest = _unlisted_images(listing, survey, listed.rejected, source.name, unlisted, may_be_empty)
    if unlisted == "reject":
        listed.rejected |= {i: Refusal(listing.keys[i], UNLISTED, f"{source.name} has no row for it") for i in rest}
    elif rest:
        taken = f"{len(rest):,} of {counted(len(listing.keys), 'image')} have no row in {source.name}"
        survey.notes = (*survey.notes, f"{taken}, and are taken as {unlisted} (input.unlisted_images)")
    return listed


def _open_annotations(
    recipe: IngestRecipe,
    labels: str | None,
    images: Images,
    several: Sequence[SplitFile],
    spans: Spans,
    export: FoundExport | None,
    head: Head | None,
) -> AnnotationFormat:
    def opened(request: Request) -> AnnotationFormat:
        return open_source(request, export=export, head=head)

    request = Request(
        task=recipe.task,
        options=recipe.input.labels,
        classes=recipe.input.classes,
        path=labels or "",
        images=images,
        spans=spans,
    )
    return SplitFiles(request, several, opened) if several else opened(request)


def _detect_records(recipe: IngestRecipe, location: InputLocation, files: Listing) -> str | None:
    """Returns the evidence that the input is TFRecord files, empty where the configuration states it; else `None`."""
    if recipe.input.labels.format == TFRECORD:
        return ""
    if recipe.input.labels.format != "auto" or location.labels is not None:
        return None
    if any(map(has_image_ending, files.keys)):
        return None
    from shardwright.formats.record_listing import holds_records

    return holds_records(files) or None


def _open_records(recipe: IngestRecipe, files: Listing, evidence: str) -> TFRecordFormat:
    from shardwright.formats.tfrecords import TFRecordFormat

    return TFRecordFormat(
        files,
        task=recipe.task,
        options=recipe.input.labels,
        classes=recipe.input.classes,
        max_pixels=recipe.images.max_pixels,
        notes=(f"labels: {TFRECORD}, since {evidence}",) if evidence else (),
    )


def _unlisted_images(
    listing: Listing, survey: Survey, rejected: Container[int], table: str, unlisted: str, may_be_empty: bool
) -> list[int]:
    """Returns the positions of the images without a row.

    Raises:
        CheckFailed: there are any, and `input.unlisted_images` is `fail`.
    """
    rest = [i for i, listed in enumerate(survey.listed) if not listed and i not in rejected]
    if rest and unlisted == "fail":
        shown = ", ".join(listing.keys[i] for i in rest[:_SHOWN]) + (", …" if len(rest) > _SHOWN else "")
        missing = next((f"{one.key}: {one.reason}. " for one in survey.refused if one.code == MISSING_IMAGE), "")
        names = ("empty", "reject") if may_be_empty else ("reject", "unlabeled")
        raise CheckFailed(
            f"{len(rest)} of {len(listing.keys)} images have no row in {table}: {shown}. {missing}"
            f"Set input.unlisted_images to {' or '.join(names)}, or add rows."
        ).with_readings(*(Reading(_UNLISTED_MEANS[name], {"input.unlisted_images": name}) for name in names))
    return rest


def _within(listing: Listing, most: int) -> Listing:
    """Refuses the files that are too large, so that none of them is hashed or read."""
    small = [i for i, size in enumerate(listing.sizes) if size <= most]
    if len(small) == len(listing.keys):
        return listing
    if not small:
        raise UsageError(
            f"input.images: each of the {len(listing.keys)} files has more bytes than images.max_bytes ({most}). "
            "Check the path, or raise images.max_bytes."
        )
    refused = [
        Refusal(listing.keys[i], "too_many_bytes", f"the file has {size:,} bytes, images.max_bytes is {most:,}")
        for i, size in enumerate(listing.sizes)
        if size > most
    ]
    return dataclasses.replace(listing.part(small), refused=[*listing.refused, *refused])


def _not_images(listing: Listing) -> dict[int, Refusal]:
    unsure = [i for i, key in enumerate(listing.keys) if not has_image_ending(key)]
    reasons = map_threads(
        lambda i: _why_no_image(listing.path(i), listing.pin(i)), unsure, readers(listing.root), lambda _: _LOOK_INTO
    )
    return {
        i: Refusal(listing.keys[i], NOT_AN_IMAGE, reason)
        for i, reason in zip(unsure, reasons, strict=True)
        if reason is not None
    }


def without_other_files(listing: Listing) -> tuple[Listing, tuple[str, ...]]:
    """Leaves out what an ingest does not take for images: datasets, runs, and files that are kept next to images.

    Returns:
        The listing, and notes for the user.
    """
    listing, outputs = without_outputs(listing)
    listing, _, sidecars = _without_sidecars(listing, _not_images(listing))
    return listing, (*([outputs] if outputs else []), *_ignored_note(sidecars))


def _without_sidecars(
    listing: Listing, not_images: dict[int, Refusal]
) -> tuple[Listing, dict[int, Refusal], list[str]]:
    """Takes files that people and tools keep next to images out of the listing: they are neither images nor rejects.

    Returns:
        The listing, the files that are left and are not images, and the paths of the others.
    """
    sidecars = {i for i in not_images if is_sidecar(listing.keys[i])}
    if not sidecars or len(sidecars) == len(listing.keys):
        return listing, not_images, []
    kept = [i for i in range(len(listing.keys)) if i not in sidecars]
    part = dataclasses.replace(listing.part(kept), refused=listing.refused)
    rest = {new: not_images[old] for new, old in enumerate(kept) if old in not_images}
    return part, rest, [listing.path(i) for i in sorted(sidecars)]


def _ignored_note(paths: Iterable[str]) -> tuple[str, ...]:
    """Returns the note with the count of each ending; none where the annotations are all there is."""
    counts = counted_endings(paths)
    return (f"{IGNORED_FILES}{counts}",) if counts else ()


def _why_no_image(path: str, pin: str) -> str | None:
    try:
        read_header(read_start(path, _LOOK_INTO, pin), max_pixels=1)
    except ImageError as error:
        return error.reason if error.code in (NOT_AN_IMAGE, EMPTY_FILE) else None
    except OSError:
        return None  # Hashing fails too, which the ledger records.
    return None


def _size(path: str, recipe: IngestRecipe) -> tuple[int, int] | None:
    """Returns the size that annotations without a size are compared with."""
    options = recipe.images
    try:
        data = read_bytes(path)
        header = header_of(data, max_pixels=options.max_pixels, convert=options.unsupported_formats != "reject")
        header = header or other_header(data, max_pixels=options.max_pixels)
    except (ImageError, OSError):
        return None  # The ledger records the reason when the image is written.
    frames = CoordinateFrame(header.height, header.width, header.orientation)
    return frames.size(frames.is_displayed(recipe.input.labels.orientation, None))


def _check_unlisted_option(task: str, unlisted: str, may_be_empty: bool) -> None:
    if unlisted == "unlabeled" and may_be_empty:
        # In a record such an image would look like one that is known to have no masks or no class.
        none = "masks" if task == "segmentation" else "classes"
        what = f"'unlabeled' is for images of one class; here an image without {none} is labeled too"
        raise ConfigError("input.unlisted_images", what, "Use empty, reject or fail.")
    if unlisted == "empty" and not may_be_empty:
        raise ConfigError(
            "input.unlisted_images",
            "'empty' means no masks and no classes; an image needs one",
            "Use reject or fail.",
        )


def _no_images(listing: Listing, no_images: Mapping[int, Refusal]) -> UsageError:
    refused = [*no_images.values(), *listing.refused][:_SHOWN]
    shown = ", ".join(f"{refusal.key} ({refusal.code})" for refusal in refused)
    if not refused:
        return UsageError(
            f"input.images: no images below {listing.root}, since all files there are taken for annotations "
            "(input.labels.path). Name another folder."
        )
    fix = "Check the path."
    if any(refusal.key.lower().endswith(".parquet") for refusal in refused):
        fix = (
            "A Parquet file of images has a column of structures with `bytes` and `path`, as Hugging Face's have, or a "
            "column of bytes."
        )
    return UsageError(f"input.images: no images below {listing.root}, only {shown}. {fix}")


def _nothing_matched(
    listing: Listing, no_images: dict[int, Refusal], survey: Survey, source: AnnotationFormat
) -> CheckFailed | UsageError:
    images = [key for i, key in enumerate(listing.keys) if i not in no_images][:_SHOWN]
    if not survey.names:
        if survey.refused:
            first = survey.refused[0]
            problem = first.reason if first.reason.startswith(source.name) else f"{first.key}: {first.reason}"
            return CheckFailed(f"{source.name}: names no image. Fix the file. The first problem: {problem}.")
        if isinstance(source, CsvFormat):
            return CheckFailed(f"{source.name}: 0 rows below the header. Give a table with annotations.")
        return CheckFailed(f"{source.name}: contains no annotations of images. Give a file with annotations.")
    from shardwright.masks.coco_segmentation import CocoMasks

    option = "key_regex define which parts of the path make the name"
    if source.attachments() is not None and not isinstance(source.dialect, CocoMasks):
        option = (
            "regex find the image's name in that of its mask, e.g. '(?P<image>.+)_mask', and input.labels.key_regex "
            "that of the image, e.g. '(.+)_photo'"
        )
    # A reason that names the image which may be meant is the best hint.
    near = next((f" {one.reason}." for one in survey.refused if one.reason.endswith("upper and lower case")), "")
    return CheckFailed(
        f"0 rows of {source.name} matched an image. It names {', '.join(survey.names)}; "
        f"the images are {', '.join(images)}. Names must equal the path below {listing.root}, or the bare file name; "
        f"or let input.labels.{option}." + (f" {survey.hint}" if survey.hint else near)
    )


@dataclass(frozen=True)
class SourceGuard:
    """Files, and their content before they were read.

    Attributes:
        tables: path -> hashes of its bytes; `None` of a file that could not be read.
        further: files that are too many or too large to be hashed twice, such as XML files and TFRecords.
        states: of these, see `file_states`.
    """

    tables: Mapping[str, FileHash | None]
    further: Listing | None = None
    states: bytes = b""

    @staticmethod
    def before(tables: Iterable[str]) -> SourceGuard:
        """Hashes tables that are about to be read."""
        return SourceGuard({path: hash_file(path) for path in tables})

    @staticmethod
    def reading(tables: Iterable[str], others: Iterable[str]) -> tuple[SourceGuard, dict[str, bytes]]:
        """Reads tables, so that what is read is what was hashed, and nobody has to open them again.

        Args:
            tables: absolute paths of files of annotations.
            others: of files that are only hashed.

        Returns:
            The guard, and the bytes of tables that are not too large to be kept.

        Raises:
            UsageError: one is not a regular file, or larger than a table may be.
        """
        guard = SourceGuard.before(others)
        hashes, contents = dict(guard.tables), {}
        for path in tables:
            try:
                contents[path], hashes[path] = read_hashed(path, MOST_KEPT_BYTES)
            except OSError:
                check_table(path)
                hashes[path] = hash_file(path)
        return SourceGuard(hashes), contents

    def with_files(self, further: Listing | None) -> SourceGuard:
        """Adds further files that are about to be read."""
        if further is None or further is self.further:
            return self
        return dataclasses.replace(self, further=further, states=file_states(further))

    def checksum(self, path: str) -> str | None:
        """Returns the BLAKE3 of a table, hex; `None` where it could not be read, or is a folder."""
        known = self.tables.get(path)
        return None if known is None else known.content_id.hex()

    def check_unchanged(self) -> None:
        """Ends a run that may have read other bytes than it hashed.

        Raises:
            CheckFailed: one of the files is not what it was.
        """
        for path, known in self.tables.items():
            if hash_file(path) != known:
                raise _changed(path)
        now = b"" if self.further is None else file_states(self.further)
        if self.further is not None and now != self.states:
            size = len(now) // len(self.further.keys)
            same = (now[i : i + size] == self.states[i : i + size] for i in range(0, len(now), size))
            raise _changed(self.further.path(list(same).index(False)))


def _changed(path: str) -> CheckFailed:
    return CheckFailed(f"{path}: the file has changed while the run was reading the input. Run it again.")
