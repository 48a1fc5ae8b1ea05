"""Texts about images, several an image: `image/caption/text`, in the order of the rows.

A CSV has a column of images and one or more of captions (`caption`, or `caption_1`, `caption_2`, …). A file of JSON
lines has an object a line with the same names, `{"file_name": "a.jpg", "text": "A cat."}`; its text may be a list. COCO
captions are a JSON object with the lists `images` (`id`, `file_name`) and `annotations` (`image_id`, `caption`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

from shardwright.dataset.manifest import NONE
from shardwright.errors import UsageError
from shardwright.formats.base import Request
from shardwright.formats.image_names import is_text
from shardwright.formats.object_values import load_json, read_id
from shardwright.formats.rows import CsvFormat, RawAnnotation, RowFormat
from shardwright.formats.tables import CAPTION, IMAGE, choose_role, json_lines

_SHOWN = 40


class CaptionCsv(CsvFormat):
    """A table of captions."""

    format, kind = "captions", NONE


class CaptionJsonl(RowFormat):
    """JSON lines of captions; `input.labels.columns` names the members for image and caption."""

    format, kind = "captions", NONE

    def __init__(self, given: Request) -> None:
        super().__init__(given)
        self._members = given.options.columns

    def _raw_annotations(self) -> Iterator[RawAnnotation]:
        for number, entry in json_lines(self._path, self._bytes):
            if not isinstance(entry, dict):
                problem = "is not JSON" if entry is None else "is not a JSON object"
                yield RawAnnotation(number, "", None, problem=problem)
                continue
            image, caption = (choose_role(role, list(entry), self._members) for role in (IMAGE, CAPTION))
            name, value = entry.get(image), entry.get(caption)
            if not _is_name(name):
                yield RawAnnotation(number, "", None, problem="names no image")
                continue
            texts = value if isinstance(value, list) else [value]
            captions = [text.strip() for text in texts if isinstance(text, str) and is_text(text)]
            problem = ""
            if value is None:
                problem = f"contains no caption, only {', '.join(map(ascii, list(entry)[:5]))[:_SHOWN]}"
            elif len(captions) < len(texts):
                problem = "its caption is neither text nor a list of texts"
            given = tuple(filter(None, captions))
            yield RawAnnotation(number, name, self._names.find(name), problem=problem, captions=given)


class CaptionCoco(RowFormat):
    """COCO captions. An image without a caption is listed. A row is a position in `annotations`.

    Raises:
        UsageError: the file is not JSON with these lists.
    """

    format, kind = "captions", NONE

    def __init__(self, given: Request) -> None:
        super().__init__(given)
        document = load_json(given.path, "the tool that wrote it", given.content)
        lists = [document.get(part) if isinstance(document, dict) else None for part in ("images", "annotations")]
        self._listed, self._annotated = (part if isinstance(part, list) else [] for part in lists)
        if not all(isinstance(part, list) for part in lists):
            raise UsageError(f"{given.path}: has no list 'images' or no list 'annotations'. Give COCO captions.")

    def _place(self, line: int) -> str:
        # Images without a caption count backward from -1.
        return f"annotations[{line}]" if line >= 0 else f"images[{-1 - line}]"

    def _raw_annotations(self) -> Iterator[RawAnnotation]:
        names: dict[str, str] = {}
        for i, image in enumerate(self._listed):
            number, name = (read_id(image.get("id")), image.get("file_name")) if isinstance(image, dict) else ("", None)
            if not number or not _is_name(name):
                yield RawAnnotation(-1 - i, "", None, problem="has no id, or no file_name that a file can have")
            else:
                names[number] = name
                yield RawAnnotation(-1 - i, name, self._names.find(name))
        for i, entry in enumerate(self._annotated):
            given, caption = (entry.get("image_id"), entry.get("caption")) if isinstance(entry, dict) else (None, None)
            name = names.get(read_id(given), "")
            problem = "" if name else f"names the image id {ascii(given)[:_SHOWN]}, which is not in images"
            text = caption.strip() if isinstance(caption, str) and is_text(caption) else None
            if text is None:
                problem = problem or f"its caption is {ascii(caption)[:_SHOWN]}, not a text"
            captions = (text,) if text and not problem else ()
            yield RawAnnotation(i, name, self._names.find(name) if name else None, problem=problem, captions=captions)


def _is_name(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value.strip()) and is_text(value)
