"""What the formats without a file of labels share: the key of an image says its class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

from shardwright.masks.rle_dialects import Dialect
from shardwright.sources.base import Annotation, Survey
from shardwright.sources.classes import map_classes
from shardwright.storage import Listing, Refusal

_SHOWN_NAMES = 3


class KeySource(ABC):
    """A source without a table; see `shardwright.sources.base.Source`.

    Args:
        keys: sorted keys of the listing.
        skip: positions that are no images; they make no class.
        classes: `input.classes`.
        notes: what was told so far.
    """

    unlisted = "fail"
    name = ""
    mask_column = ""
    dialect = Dialect()

    def __init__(
        self,
        keys: Sequence[str],
        skip: frozenset[int],
        classes: Mapping[str, int | None] | None,
        notes: tuple[str, ...],
    ) -> None:
        self._keys = keys
        self._skip = skip
        self._classes = classes
        self._notes = notes
        self._index: Mapping[str, int] = {}

    @abstractmethod
    def _label(self, key: str) -> str:
        """The class that a key says, or an empty text."""

    @abstractmethod
    def _place(self, key: str, label: str) -> str:
        """Where that stands, for messages."""

    @abstractmethod
    def _unlabelled(self) -> tuple[str, str]:
        """Code and reason of an image whose key says no class."""

    def survey(self) -> Survey:
        """See `Source.survey`."""
        survey = Survey(classes=(), listed=bytearray(len(self._keys)), names=list(self._keys[:_SHOWN_NAMES]))
        values: dict[str, str] = {}
        for i, label in self._labels():
            survey.listed[i] = 1
            if not label:
                survey.rejected[i] = Refusal(self._keys[i], *self._unlabelled())
            elif label not in values:
                values[label] = self._place(self._keys[i], label)
        mapped = map_classes(values, self._classes)
        self._index = mapped.index
        survey.classes = mapped.names
        survey.notes = (*self._notes, *mapped.notes)
        return survey

    def annotations(self) -> Iterator[Annotation]:
        """See `Source.annotations`."""
        for i, label in self._labels():
            if label:
                yield Annotation(i, self._index[label], None, 0)

    def attachments(self) -> Listing | None:
        """See `Source.attachments`."""
        return None

    def _labels(self) -> Iterator[tuple[int, str]]:
        for i, key in enumerate(self._keys):
            if i not in self._skip:
                yield i, self._label(key)
