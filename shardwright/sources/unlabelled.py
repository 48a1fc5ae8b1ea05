"""Images and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from shardwright.manifest import NONE
from shardwright.masks.rle_dialects import Dialect
from shardwright.sources.base import Annotation, Images, Survey
from shardwright.storage import Listing


class Unlabelled:
    """See `shardwright.sources.base.Source`: every image of the listing belongs to the dataset, without a class."""

    unlisted = "fail"
    name = ""
    mask_column = ""
    dialect = Dialect()

    def __init__(self, images: Images) -> None:
        self._images = images

    def survey(self) -> Survey:
        """See `Source.survey`."""
        count = len(self._images.keys)
        return Survey(classes=(), listed=bytearray(b"\1") * count, names=list(self._images.keys[:3]), labels=NONE)

    def annotations(self) -> Iterator[Annotation]:
        """See `Source.annotations`."""
        return iter(())

    def attachments(self) -> Listing | None:
        """See `Source.attachments`."""
        return None
