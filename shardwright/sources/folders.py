"""Class folders: the first folder of an image's key is its class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shardwright.rle_dialects import Dialect
from shardwright.sources.base import Annotation, Survey
from shardwright.sources.classes import map_classes
from shardwright.storage import Refusal

_SHOWN_NAMES = 3


class ClassFolders:
    """A source without a table; see `shardwright.sources.base.Source`.

    Args:
        keys: sorted keys of the listing.
        skip: positions that are no images; their folders make no class.
        classes: `input.classes`.
        notes: what was told so far.
    """

    unlisted = "fail"
    name = ""
    mask_column = ""
    dialect = Dialect()

    def __init__(
        self,
        keys: list[str],
        skip: frozenset[int],
        classes: Mapping[str, int | None] | None,
        notes: tuple[str, ...],
    ) -> None:
        self._keys = keys
        self._skip = skip
        self._classes = classes
        self._notes = notes
        self._index: Mapping[str, int] = {}

    def survey(self) -> Survey:
        """See `Source.survey`."""
        survey = Survey(classes=(), listed=bytearray(len(self._keys)), names=self._keys[:_SHOWN_NAMES])
        values: dict[str, str] = {}
        for i, folder in self._folders():
            survey.listed[i] = 1
            if folder:
                values.setdefault(folder, f"{self._keys[i]}, folder {folder}")
            else:
                reason = "the image lies in no class folder; move it into one"
                survey.rejected[i] = Refusal(self._keys[i], "no_class_folder", reason)
        mapped = map_classes(values, self._classes)
        self._index = mapped.index
        survey.classes = mapped.names
        survey.notes = (*self._notes, *mapped.notes)
        return survey

    def annotations(self) -> Iterator[Annotation]:
        """See `Source.annotations`."""
        for i, folder in self._folders():
            if folder:
                yield Annotation(i, self._index[folder], None, 0)

    def _folders(self) -> Iterator[tuple[int, str]]:
        for i, key in enumerate(self._keys):
            if i not in self._skip:
                folder, slash, _ = key.partition("/")
                yield i, folder if slash else ""
