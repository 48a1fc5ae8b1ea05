"""What every input format is turned into.

A source is read twice: `survey` finds the classes, the images that are annotated and everything that is wrong;
`annotations` then streams what is said about the images, in the order of the table. Masks stay the text they are
until a shard's writer, who knows the image's true size, parses them, so a table of a million rows never sits in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from shardwright.rle import Runs
from shardwright.storage import Refusal


class Mask(NamedTuple):
    """One row's mask of one image.

    Attributes:
        label: index of the class.
        text: the mask as the source has it, not empty.
        row: line of the table, from 1; in a COCO file, place in `annotations`, from 0.
    """

    label: int
    text: str
    row: int


class Annotation(NamedTuple):
    """What one row says about one image.

    Attributes:
        image: position of the image's key in the listing.
        label: index of the class.
        text: the mask as the source has it, or `None` where the whole image is of the class.
        row: line of the table, from 1; in a COCO file, place in `annotations`, from 0; 0 where the image's key says it.
    """

    image: int
    label: int
    text: str | None
    row: int


@dataclass(frozen=True)
class Sample:
    """One image and all that is said about it.

    Attributes:
        key: its key.
        path: absolute path.
        size: bytes, at listing.
        labels: indices of the classes of the whole image; `None` for segmentation.
        masks: masks in the order of the table; empty for classification.
    """

    key: str
    path: str
    size: int
    labels: tuple[int, ...] | None
    masks: tuple[Mask, ...] = ()


@dataclass
class Survey:
    """What reading a source once tells.

    Attributes:
        classes: names in the order of their indices.
        listed: one byte per key, 1 where the source says something about the image, if only that it has no masks.
        rejected: position of a key -> why the image cannot be used as the source has it.
        refused: what the source names and is no image of the listing.
        names: first few names of images that the source uses, for messages.
        notes: what was told from the data, for the user.
    """

    classes: tuple[str, ...]
    listed: bytearray
    rejected: dict[int, Refusal] = field(default_factory=dict)
    refused: list[Refusal] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    notes: tuple[str, ...] = ()


class MaskCode(Protocol):
    """How the text of a mask is written. Picklable."""

    def parse(self, text: str, *, height: int, width: int) -> Runs:
        """Reads the mask of an image of `height` x `width`; column by column, int64 (n, 2).

        Raises:
            RleError: it is no such text, or does not fit the image; `code` is what the ledger calls it.
        """


class Source(Protocol):
    """An input format.

    Attributes:
        unlisted: what `input.unlisted: auto` means here: `empty` or `fail`.
        name: what errors call it: the table's file name, or empty.
        mask_column: header of the column of masks, or empty.
    """

    unlisted: str
    name: str
    mask_column: str

    @property
    def dialect(self) -> MaskCode:
        """How masks are written, where there are any."""

    def survey(self) -> Survey:
        """Reads everything once.

        Raises:
            UsageError: an unknown class, an ambiguous name, a broken table.
        """

    def annotations(self) -> Iterator[Annotation]:
        """Streams what is said about images of the listing. Called after `survey`."""
