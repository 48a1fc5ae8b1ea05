"""Classes of images in one JSON document, in the forms that programs write, as rows of `label_jsonl`.

| document | a row |
|---|---|
| `[{"image": "a.jpg", "label": "cat"}]` | an entry |
| `{"image": {"0": "a.jpg"}, "label": {"0": "cat"}}`, also with lists (pandas) | the values of one place |
| `{"columns": ["image", "label"], "data": [["a.jpg", "cat"]]}` (pandas) | a list |
| `{"a.jpg": "cat"}`, also a number or a list of classes | a member |
| `{"cat": ["a.jpg", "b.jpg"]}` | an image, with the members that name it |
| `{"labels": [["a.jpg", 0]]}` (StyleGAN) | a pair |
| `{"classes": ["cat"], "labels": {"a": 0}}` (FiftyOne) | a member: a number, or boxes in fractions of the image |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from shardwright.config.split import split_word
from shardwright.errors import UsageError
from shardwright.formats.head import Head
from shardwright.formats.listed_boxes import BOXES, CATEGORIES, OBJECTS
from shardwright.formats.tables import IMAGE, LABEL, choose_role
from shardwright.images.header import has_image_ending
from shardwright.untrusted.json_text import parse_untrusted_json

_CLASSES, _LABELS = "classes", "labels"
# The first member of a document that is cut off, and the first entry of a list.
_MEMBER = re.compile(r'\{\s*("(?:[^"\\]|\\.)*"\s*:\s*(?:"(?:[^"\\]|\\.)*"|-?\d+|\[\s*"(?:[^"\\]|\\.)*"))')
_ENTRY = re.compile(r"\[\s*(\{[^{}]*\})")

Row = Mapping[str, Any]


class Document(NamedTuple):
    """A document as rows.

    Attributes:
        rows: each with the members that `label_jsonl` reads.
        fractions: whether boxes are in fractions of the image.
    """

    rows: Iterable[Row]
    fractions: bool = False


def is_document(head: Head) -> bool:
    """Returns whether a file begins as such a document."""
    if head.ending != ".json" or '"images"' in head.text:
        return False
    found: Any = None
    try:
        if head.whole:
            found = parse_untrusted_json(head.text)
        elif entry := _ENTRY.match(head.text):
            found = [parse_untrusted_json(entry[1])]
        elif '"classes"' in head.text and '"labels"' in head.text:
            found = {_CLASSES: [], _LABELS: {}}
        elif member := _MEMBER.match(head.text):
            found = parse_untrusted_json("{" + member[1] + ("]}" if "[" in member[1].rpartition(":")[2] else "}"))
    except ValueError:
        return False
    return read_document(found) is not None


def read_document(document: Any) -> Document | None:
    """Returns the rows of a document; `None` where it has none of the forms above, and so may be anything."""
    if isinstance(document, list):
        return Document(document) if document and all(map(_is_row, document[:1])) else None
    if not isinstance(document, dict) or not document:
        return None
    classes, labels = document.get(_CLASSES), document.get(_LABELS)
    if isinstance(classes, list) and isinstance(labels, dict):
        listed = any(isinstance(value, list) for value in labels.values())
        return Document(_fiftyone(classes, labels), fractions=listed)
    if isinstance(labels, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in labels[:1]):
        return Document({IMAGE: pair[0], LABEL: pair[1]} for pair in labels if isinstance(pair, list))
    columns, data = document.get("columns"), document.get("data")
    if isinstance(columns, list) and isinstance(data, list) and _is_row(dict.fromkeys(map(str, columns), "")):
        return Document(dict(zip(map(str, columns), one, strict=False)) for one in data if isinstance(one, list))
    if _is_row(document):
        return Document(_by_columns(document))
    names = list(document)
    if has_image_ending(names[0]):
        return Document({IMAGE: name, LABEL: value} for name, value in document.items())
    first = document[names[0]]
    path = first[0] if isinstance(first, list) and first and isinstance(first[0], str) else ""
    if not (has_image_ending(path) or "/" in path) or all(map(split_word, names)):
        return None
    images: dict[str, list[str]] = {}
    for label, paths in document.items():
        for path in paths if isinstance(paths, list) else ():
            images.setdefault(str(path), []).append(label)
    return Document({IMAGE: path, LABEL: labels} for path, labels in images.items())


def is_flat(document: Any) -> bool:
    """Returns whether a document may have a class for each name, although nothing shows that the names are images'.

    Classes repeat; in a file of classes, each number or name is there once.
    """
    values = list(document.values()) if isinstance(document, dict) else []
    return {type(value) for value in values} in ({str}, {int}) and 2 * len({*values}) <= len(values)


def flat_rows(document: Any, path: str) -> Document:
    """Returns the rows of such a document, which the configuration states to be one.

    Raises:
        UsageError: it is none.
    """
    if not isinstance(document, dict) or not all(type(value) in (str, int) for value in document.values()):
        raise UsageError(
            f"{path}: is JSON, but neither a list of objects that name an image and its class, nor an object of names "
            'and classes. Write it as {"a.jpg": "cat"}.'
        )
    return Document({IMAGE: name, LABEL: value} for name, value in document.items())


def _is_row(entry: Any) -> bool:
    """Returns whether an entry names an image and its classes, or a document has columns of both."""
    names = list(entry) if isinstance(entry, dict) else []
    image, label = choose_role(IMAGE, names, {}), choose_role(LABEL, names, {})
    if not image or not label:
        return False
    if not isinstance(entry[image], str):
        return isinstance(entry[image], dict | list) and type(entry[image]) is type(entry[label])
    listed = entry[label] if isinstance(entry[label], list) else [entry[label]]
    return not any(isinstance(one, dict) for one in listed)


def _by_columns(document: Mapping[str, Any]) -> Iterator[Row]:
    """Yields the rows of a document of columns; one of a single image has its values in place of them."""
    columns = {name: value for name, value in document.items() if isinstance(value, dict | list)}
    if not columns:
        yield document
        return
    lists = [list(value.values()) if isinstance(value, dict) else value for value in columns.values()]
    yield from (dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=False))


def _fiftyone(classes: list[Any], labels: Mapping[str, Any]) -> Iterator[Row]:
    def name(label: Any) -> Any:
        number = label.get("label") if isinstance(label, dict) else label
        return classes[number] if type(number) is int and 0 <= number < len(classes) else number

    for image, value in labels.items():
        if isinstance(value, list):
            boxes = [one if isinstance(one, dict) else {} for one in value]
            yield {IMAGE: image, OBJECTS: [{BOXES: box.get("bounding_box"), CATEGORIES[0]: name(box)} for box in boxes]}
        else:
            yield {IMAGE: image, LABEL: name(value)}
