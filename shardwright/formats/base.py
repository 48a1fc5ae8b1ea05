"""The interface of annotation formats, and the data that they return.

A format is read twice: `survey` finds the classes, the annotated images and everything that is wrong; `annotations`
then streams the annotations in the order of the table. Masks stay text until the writer of a shard, which knows the
image's true size, parses them. So a table of a million rows is never in memory.

`Unlabeled` is the format of images without annotations.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from shardwright.config.input import ABSENT_IMAGES, NO_OBJECTS, LabelsConfig
from shardwright.dataset.manifest import NONE, SINGLE
from shardwright.errors import ConfigError, UsageError
from shardwright.formats.export_record import ExportRecord
from shardwright.formats.image_names import NameIndex, base_stem
from shardwright.formats.tables import ONE_FILE, Spans
from shardwright.label_formats import AUTO, LabelFormat
from shardwright.masks.dialects import Dialect
from shardwright.masks.rle import Runs
from shardwright.storage import Listing, Refusal

SEGMENTATION, CLASSIFICATION = "segmentation", "classification"
# Indices that are not a class: a region that neither loss nor metric counts; a row without a class.
IGNORE: Final = -1
NO_LABEL: Final = -2
# A region that belongs to none of the objects that come before it, such as a hole.
BACKGROUND: Final = -3
# The row of an annotation that is not in a table.
NO_ROW: Final = -1
# Names of images in a survey, and names in a message.
SHOWN_NAMES: Final = 3
# One of so many names may be of no image.
_HANDFUL: Final = 100
_MANY: Final = 6

# Further features of a row: name -> numbers or texts.
Values: TypeAlias = Mapping[str, "list[int] | list[float] | list[str]"]
_NO_VALUES: Values = MappingProxyType({})


@dataclass(frozen=True)
class Images:
    """The images that annotations are sought for.

    Attributes:
        keys: sorted keys of the listing.
        skip: positions that are not images.
        size_of: height and width of the image at a position, `None` where it cannot be read.
        max_pixels: the most pixels an image, or a mask of one, may have.
        root: the folder that the keys are below.
        paths: absolute paths of the images where the folder of the masks holds some of them, and of what
            `input.exclude` leaves out; these are no annotations.
        first: folders below `root` in which names are sought first.
    """

    keys: Sequence[str]
    skip: frozenset[int]
    size_of: Callable[[int], tuple[int, int] | None]
    max_pixels: int
    root: str = ""
    paths: frozenset[str] = frozenset()
    first: tuple[str, ...] = ()


class Annotation(NamedTuple):
    """The annotation of one image in one row.

    Attributes:
        image: position of the image's key in the listing.
        label: index of the class, `IGNORE`, `BACKGROUND` or `NO_LABEL`.
        text: the mask as the source has it, or `None` where the whole image is of the class.
        row: line of the table, from 1; in a COCO file, position in `annotations`, from 0; 0 where the key states it;
            `NO_ROW` where the text is the name of a file.
        values: further features; the lists of an image's rows are joined in the order of the rows.
        stated_size: height and width of the image that the annotations state, where boxes without a mask depend on it.
    """

    image: int
    label: int
    text: str | None
    row: int
    values: Values = _NO_VALUES
    stated_size: tuple[int, int] | None = None


@dataclass
class Survey:
    """The result of reading the annotations once.

    Attributes:
        classes: names in the order of their indices.
        listed: one byte per key, 1 where the image is annotated, if only as an image without masks.
        rejected: position of a key -> why the image cannot be used as the source has it.
        refused: what the annotations name and the listing does not contain.
        names: first few names of images that the source uses, for messages.
        notes: what was detected in the data, for the user.
        labels: `manifest.SINGLE`, `MULTI` or `NONE`: how many classes a whole image has.
        ignore: whether masks may mark regions that are not to be counted (`IGNORE`).
        features: name -> kind (`int64`, `float32`, `bytes`) of the features in `Annotation.values`.
        splits: position of a key -> name of the split that the annotations state.
        frame: what `input.labels.orientation: auto` means here; see `shardwright.masks.coordinate_frame`.
        hint: what may help where nothing matches an image, a whole line without its end.
        ordered: whether the classes of an image are a list, whose order and repeats count, and not a set.
        values: class -> the value that mask images have for it, where the values were detected.
        empty: whether the annotations hold no object and no class of an image, as far as their text says.
    """

    classes: tuple[str, ...]
    listed: bytearray
    rejected: dict[int, Refusal] = field(default_factory=dict)
    refused: list[Refusal] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    labels: str = SINGLE
    ignore: bool = False
    features: Mapping[str, str] = field(default_factory=dict)
    splits: dict[int, str] = field(default_factory=dict)
    frame: str = "auto"
    hint: str = ""
    ordered: bool = False
    values: Mapping[str, int] = field(default_factory=dict)
    empty: bool = False


class MaskCode(Protocol):
    """How the text of a mask is written. Picklable."""

    def size(self, text: str) -> tuple[int, int] | None:
        """Returns the height and width that the mask itself states, or `None`."""

    def masks(self, label: int, text: str, *, height: int, width: int) -> Iterable[tuple[int, Runs]]:
        """Reads what a text draws on an image of `height` x `width`.

        Args:
            label: index of the class the row names, or `NO_LABEL`.
            text: the mask as the source has it.
            height: rows of the image in the frame the masks are in.
            width: columns.

        Returns:
            Index of a class (or `IGNORE`) and its runs, column by column, int64 (n, 2). Most codes hold one class.

        Raises:
            RleError: the text is not a mask, or does not fit the image; `code` is what the ledger calls it.
        """


@runtime_checkable
class ClassesInText(Protocol):
    """A code of masks whose rows may have no label, since the text itself contains the classes."""

    def classes(self, text: str) -> Iterable[int]:
        """Returns the indices of the classes that occur in a text."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked of the annotations of an input: the arguments of every format.

    Attributes:
        images: what is listed.
        classes: `input.classes`.
        task: `segmentation` or `classification`.
        options: `input.labels`; the path is in `path`.
        path: absolute path of the file or the folder; empty where the images themselves state classes.
        content: the bytes of the file, where they were read already.
        spans: the tables of several spans, of which `path` is the newest.
        record: of the export of ours that the annotations are.
        notes: what was detected so far, for the user.
    """

    images: Images
    classes: Mapping[str, int | None] | None
    task: str = CLASSIFICATION
    options: LabelsConfig = field(default_factory=LabelsConfig)
    path: str = ""
    content: bytes | None = field(default=None, repr=False, compare=False)
    spans: Spans = ONE_FILE
    record: ExportRecord | None = None
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the file or the folder, for messages."""
        return os.path.basename(self.path.rstrip("/"))

    def names(self, *, exact: bool = False) -> NameIndex:
        """Returns how annotations name the images."""
        images = self.images
        return NameIndex(
            images.keys, images.skip, self.options.key_regex, exact=exact, root=images.root, first=images.first
        )

    def note(self, label_format: str, reason: str) -> tuple[str, ...]:
        """Returns a note of a format, where it was detected."""
        return (f"labels: {label_format}, since {reason}",) if self.options.format == AUTO else ()

    def check_options(self, row: LabelFormat, reason: str, without: tuple[str, ...] = ()) -> None:
        """Checks that the format uses all options that are given.

        Args:
            row: the format.
            reason: why it is that one.
            without: options that it uses only in files of another kind.

        Raises:
            ConfigError: it does not.
        """
        for option in self.options.given:
            if not row.takes(option) or option in without:
                why = f" ({reason})" if reason else ""
                raise ConfigError(
                    f"input.labels.{option}", f"not used by {row.name}{why}", f"Remove input.labels.{option}."
                )

    def check_one_file(self, row: LabelFormat) -> None:
        """Checks that the annotations are not those of several spans, of which only tables are joined.

        Raises:
            UsageError: they are.
        """
        if self.spans.parts:
            raise UsageError(
                f"input.labels.path: {self.path} is read as {row.name}, and of several spans, or with on_conflict: "
                "with_span, only CSV tables are joined. Read one span, or write one file for all."
            )


class AnnotationFormat(ABC):
    """An input format.

    Attributes:
        format: its name in `input.labels.format`.
        unlisted: what `input.unlisted_images: auto` means here: `empty` or `fail`.
        name: what errors call it: the table's file name, or empty.
        mask_column: header of the column of masks, or empty.
        dialect: how masks are written, where there are any; final after `survey`.
    """

    format = ""
    unlisted = "fail"
    name = ""
    mask_column = ""
    dialect: MaskCode = Dialect()

    def __init__(self, given: Request) -> None:
        self._images = given.images
        self._classes = given.classes
        self._notes = given.notes
        # Stems of the names of images that `input.exclude` leaves out.
        self._left_out = frozenset(map(base_stem, given.images.paths))

    def excludes(self, names: Iterable[str]) -> bool:
        """Returns whether a name of an image that is not listed is one that `input.exclude` leaves out."""
        return bool(self._left_out) and any(base_stem(name) in self._left_out for name in names)

    def _reject(self, survey: Survey, position: int | None, refused: str, code: str, reason: str) -> None:
        """Rejects the image at a position, or refuses what names none, by the name that the ledger has for it."""
        if position is None:
            survey.refused.append(Refusal(refused, code, reason))
        else:
            survey.rejected.setdefault(position, Refusal(self._images.keys[position], code, reason))

    @abstractmethod
    def survey(self) -> Survey:
        """Reads everything once.

        Raises:
            UsageError: an unknown class, an ambiguous name, a broken table.
        """

    @abstractmethod
    def annotations(self) -> Iterator[Annotation]:
        """Streams the annotations of images of the listing. Called after `survey`."""

    def reader(self) -> Callable[[Sequence[int]], Iterator[Annotation]] | None:
        """Returns what reads the annotations of some images, by position, without those of all others.

        They come in the order of `annotations`. `None` where that is the only way to read them. Called after `survey`.
        """
        return None

    def resolved(self, options: LabelsConfig) -> LabelsConfig:
        """Returns `input.labels` with all that was detected. Called after `survey`.

        Args:
            options: the options that the annotations were opened with.
        """
        return replace(options, format=self.format)

    def attachments(self) -> Listing | None:
        """Returns further files of the annotations, such as mask images; their content counts like the input's."""
        return None


class Unlabeled(AnnotationFormat):
    """Every image of the listing belongs to the dataset, without a class."""

    format = "none"

    def survey(self) -> Survey:
        keys = self._images.keys
        return Survey(classes=(), listed=bytearray(b"\1") * len(keys), names=list(keys[:SHOWN_NAMES]), labels=NONE)

    def annotations(self) -> Iterator[Annotation]:
        return iter(())


def check_some(survey: Survey, where: str, options: LabelsConfig) -> None:
    """Checks that annotations of several images hold something; of a few, all may be empty by chance.

    Raises:
        UsageError: they hold nothing, and `input.labels.confirmed` does not have it.
    """
    images = sum(survey.listed)
    if survey.empty and survey.classes and images >= _MANY and NO_OBJECTS not in options.confirmed:
        raise UsageError(
            f"{where}: none of {images:,} images has a class: all annotations are empty. Is it the right file, and do "
            f"input.classes and input.labels fit it? If it is right, set input.labels.confirmed: [{NO_OBJECTS}]."
        ).with_readings(options.confirming(NO_OBJECTS, "the images have no objects"))


def check_absent(names: Sequence[str], total: int, where: str, options: LabelsConfig) -> None:
    """Checks that hardly any image is named that is not there: by a list, or by annotations of images that are stored.

    Args:
        names: the names of these images.
        total: how many images are named.
        where: what names them, for the message.
        options: `input.labels`.

    Raises:
        UsageError: there are more than a handful, which `input.labels.confirmed` does not have.
    """
    few = max(SHOWN_NAMES, total // _HANDFUL)
    if len(names) > few and ABSENT_IMAGES not in options.confirmed:
        raise UsageError(
            f"{where}: {len(names):,} of {total:,} names are of no image: {shorten(names)}. Add these images, or "
            f"correct the names. If the images are meant to be left out, set input.labels.confirmed: [{ABSENT_IMAGES}]."
        ).with_readings(options.confirming(ABSENT_IMAGES, "the other images are left out on purpose"))


def shorten(names: Collection[str], most: int = SHOWN_NAMES) -> str:
    """Returns names for a message: the first ones, with an ellipsis where there are more."""
    return ", ".join(islice(names, most)) + (", …" if len(names) > most else "")


def counted_endings(keys: Iterable[str]) -> str:
    """Returns how many files have each ending, for messages: `.npy 12, .txt 1`."""
    endings = Counter(os.path.splitext(key)[1].lower() or "no ending" for key in keys)
    return ", ".join(f"{ending} {count}" for ending, count in sorted(endings.items()))
