"""Texts about images, several an image: `image/caption/text`, in the order of the rows.

A CSV has a column of images and one or more of captions (`caption`, or `caption_1`, `caption_2`, …). A file of JSON
lines has an object a line with the same names, `{"file_name": "a.jpg", "text": "A cat."}`; its text may be a list. COCO
captions are a JSON object with the lists `images` (`id`, `file_name`) and `annotations` (`image_id`, `caption`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shardwright.dataset.manifest import NONE
from shardwright.errors import UsageError
from shardwright.formats.base import FormatInput
from shardwright.formats.classes import ClassMap
from shardwright.formats.head import Head
from shardwright.formats.image_names import NameIndex, is_text
from shardwright.formats.object_values import json_problem, read_id
from shardwright.formats.rows import CAPTION_FEATURE, CsvFormat, RawAnnotation, RowFormat
from shardwright.formats.tables import CAPTION, IMAGE, TableRow, choose_role
from shardwright.storage import limits, open_table
from shardwright.untrusted.json_text import parse_untrusted_json

# No caption is that long; a file without line ends is not read whole.
_LONGEST_LINE = 1 << 24
_SHOWN = 40


class CaptionCsv(CsvFormat):
    """See `CsvFormat`."""

    format, kind = "captions", NONE

    @staticmethod
    def sniff(head: Head) -> str:
        """See `AnnotationFormat.sniff`."""
        return "COCO captions JSON" if head.has_annotations_with("caption") else ""

    def _take_apart(self, row: TableRow) -> RawAnnotation:
        name = row.fields[self._columns[IMAGE]]
        problem = "" if name.strip() else "names no image"
        return RawAnnotation(row.line, name, self._names.find(name), problem=problem)

    def _map_classes(self, values: Mapping[str, str]) -> ClassMap:
        return ClassMap((), {})


class CaptionJsonl(RowFormat):
    """See `RowFormat`.

    Args:
        given: see `FormatInput`.
        path: the file.
        names: how lines name images.
        columns: `input.labels.columns`: names of the members for `image` and `caption`, where they are unusual.
    """

    format, kind = "captions", NONE

    def __init__(self, given: FormatInput, path: str, names: NameIndex, columns: Mapping[str, str]) -> None:
        super().__init__(given, path, names)
        self._members = columns

    def _map_classes(self, values: Mapping[str, str]) -> ClassMap:
        return ClassMap((), {})

    def _features(self) -> tuple[dict[str, str], list[str]]:
        return {CAPTION_FEATURE: "bytes"}, []

    def _raw_annotations(self) -> Iterator[RawAnnotation]:
        with open_table(self._path) as file:
            number = 0
            try:
                while line := file.readline(_LONGEST_LINE):
                    number += 1
                    whole = line.endswith(("\n", "\r")) or len(line) < _LONGEST_LINE
                    while not whole:
                        rest = file.readline(_LONGEST_LINE)
                        whole = rest.endswith(("\n", "\r")) or len(rest) < _LONGEST_LINE
                        line = ""
                    if line.strip() or not line:
                        yield self._read(number, line)
            except UnicodeDecodeError:
                raise UsageError(
                    f"{self._path}: line {number + 1} or one of the next is not UTF-8 text. Save the file in UTF-8."
                ) from None

    def _read(self, number: int, line: str) -> RawAnnotation:
        try:
            entry = parse_untrusted_json(line)
        except ValueError:
            return RawAnnotation(number, "", None, problem="is not JSON" if line else "is longer than 16 MiB")
        if not isinstance(entry, dict):
            return RawAnnotation(number, "", None, problem="is not a JSON object")
        image, caption = (choose_role(role, list(entry), self._members) for role in (IMAGE, CAPTION))
        name = entry.get(image)
        if not isinstance(name, str) or not name.strip() or not is_text(name):
            return RawAnnotation(number, "", None, problem="names no image")
        value = entry.get(caption)
        texts = value if isinstance(value, list) else [value]
        captions = tuple(text.strip() for text in texts if isinstance(text, str) and is_text(text))
        problem = ""
        if value is None:
            problem = f"contains no caption, only {', '.join(map(ascii, list(entry)[:5]))[:_SHOWN]}"
        elif len(captions) < len(texts):
            problem = "its caption is neither text nor a list of texts"
        return RawAnnotation(
            number, name, self._names.find(name), problem=problem, captions=tuple(filter(None, captions))
        )


class CaptionCoco(RowFormat):
    """COCO captions; see `RowFormat`. An image without a caption is listed. A row is a position in `annotations`.

    Args:
        given: see `FormatInput`.
        path: the file.
        names: how `file_name` names images.
    """

    format, kind = "captions", NONE

    def __init__(self, given: FormatInput, path: str, names: NameIndex) -> None:
        super().__init__(given, path, names)
        self._document: tuple[list[Any], list[Any]] | None = None

    def _place(self, line: int) -> str:
        # Images without a caption count backward from -1.
        return f"annotations[{line}]" if line >= 0 else f"images[{-1 - line}]"

    def _map_classes(self, values: Mapping[str, str]) -> ClassMap:
        return ClassMap((), {})

    def _features(self) -> tuple[dict[str, str], list[str]]:
        return {CAPTION_FEATURE: "bytes"}, []

    def _raw_annotations(self) -> Iterator[RawAnnotation]:
        self._document = self._document or _read_coco(self._path)
        images, annotations = self._document
        names: dict[str, str] = {}
        for i, image in enumerate(images):
            number, name = (read_id(image.get("id")), image.get("file_name")) if isinstance(image, dict) else ("", None)
            if not number or not isinstance(name, str) or not name.strip() or not is_text(name):
                yield RawAnnotation(-1 - i, "", None, problem="has no id, or no file_name that a file can have")
            else:
                names[number] = name
                yield RawAnnotation(-1 - i, name, self._names.find(name))
        for i, entry in enumerate(annotations):
            given, caption = (entry.get("image_id"), entry.get("caption")) if isinstance(entry, dict) else (None, None)
            name = names.get(read_id(given), "")
            problem = "" if name else f"names the image id {ascii(given)[:_SHOWN]}, which is not in images"
            text = caption.strip() if isinstance(caption, str) and is_text(caption) else None
            if text is None:
                problem = problem or f"its caption is {ascii(caption)[:_SHOWN]}, not a text"
            captions = (text,) if text and not problem else ()
            yield RawAnnotation(i, name, self._names.find(name) if name else None, problem=problem, captions=captions)


def _read_coco(path: str) -> tuple[list[Any], list[Any]]:
    """Returns the images and the annotations of a file.

    Raises:
        UsageError: it is not JSON with these lists.
    """
    try:
        with open_table(path, limits.MOST_JSON_BYTES) as file:
            document = parse_untrusted_json(file.read())
    except ValueError as error:
        raise UsageError(f"{path}: {json_problem(error)}. Fix the file, or give a CSV.") from None
    images, annotations = (document.get(part) for part in ("images", "annotations"))
    if not isinstance(images, list) or not isinstance(annotations, list):
        raise UsageError(f"{path}: has no list 'images' or no list 'annotations'. Give COCO captions.")
    return images, annotations
