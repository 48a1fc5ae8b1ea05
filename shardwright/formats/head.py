"""The beginning of a file of annotations, which is read once and handed to the `sniff` of every format."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shardwright.formats.parquet_pages import is_parquet
from shardwright.storage import EmptyListing, is_folder, list_inputs, read_start
from shardwright.untrusted.json_text import parse_untrusted_json

if TYPE_CHECKING:
    from shardwright.formats.parquet import ParquetFile

HEAD_BYTES = 1 << 16
# So many files of a folder are looked into.
_LOOKED_INTO = 20
_TEXTS = (".txt", ".json", ".xml", ".yaml", ".yml")
# A number in a text, as a part of a pattern.
NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_LINES = (".jsonl", ".ndjson", ".jsonlines")


@dataclass(frozen=True)
class Head:
    """What is known of a file or a folder before it is read.

    Attributes:
        path: absolute path.
        folder: whether it is a folder.
        start: the first `HEAD_BYTES` of a file; empty of one that cannot be read, and of a folder.
        root: folder of the images, which may be in the folder of the annotations.
        keys: the images; in a folder these do not count.
        content: all bytes of a file, where they were read already.
    """

    path: str
    folder: bool
    start: bytes = b""
    root: str = ""
    keys: Sequence[str] = ()
    content: bytes | None = field(default=None, repr=False, compare=False)

    @staticmethod
    def read(path: str, root: str = "", keys: Sequence[str] = (), content: bytes | None = None) -> Head:
        """Reads the beginning of a file; see the attributes for the arguments."""
        if content is not None:
            return Head(path, False, content[:HEAD_BYTES], content=content)
        if is_folder(path):
            return Head(path, True, root=root, keys=keys)
        try:
            return Head(path, False, read_start(path, HEAD_BYTES))
        except OSError:
            return Head(path, False)  # Who reads the file reports what is wrong.

    @property
    def name(self) -> str:
        """The name of the file or the folder, for messages."""
        return os.path.basename(self.path.rstrip("/"))

    @property
    def ending(self) -> str:
        """How the name ends, lower case, with the dot."""
        return os.path.splitext(self.path)[1].lower()

    @property
    def whole(self) -> bool:
        """Whether the head is the whole file."""
        return len(self.start) < HEAD_BYTES

    @cached_property
    def text(self) -> str:
        """The text, from the first character on that is no space."""
        return self.start.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text, the last of which may be cut off."""
        return self.text.split("\n")

    @property
    def line(self) -> str:
        """The first line, without spaces around it."""
        return self.lines[0].strip()

    @property
    def xml_root(self) -> str:
        """The first element of XML that is called `annotation` or `annotations`; empty where there is none."""
        found = re.search(r"<(annotations?)\b", self.text) if self.text.startswith("<") else None
        return "" if found is None else found[1]

    @cached_property
    def members(self) -> dict[str, Any] | None:
        """The JSON object, the first of a list or of JSON lines; `None` where there is none or it is cut off."""
        if self.text[:1] not in ("{", "["):
            return None
        texts = [self.text] if self.whole or "\n" in self.text else []
        return next(filter(None, map(_object, [*texts, *self.lines[: len(texts)]])), None)

    def has(self, *names: str) -> bool:
        """Returns whether the JSON object has members; one that is cut off must name them, and not be COCO's."""
        if self.members is not None:
            return all(name in self.members for name in names)
        json = self.text[:1] in ("{", "[") and '"images"' not in self.text and '"segments_info"' not in self.text
        return json and all(f'"{name}"' in self.text for name in names)

    def has_annotations_with(self, name: str) -> bool:
        """Returns whether it is of COCO's kind, and its annotations have a member other than the instances'."""
        if self.members is None:
            text = self.text if self.text[:1] == "{" else ""
            return '"images"' in text and f'"{name}"' in text and '"segmentation"' not in text
        rows = self.members.get("annotations")
        row = rows[0] if isinstance(rows, list) and rows else None
        return "images" in self.members and isinstance(row, dict) and name in row and "segmentation" not in row

    @cached_property
    def parquet(self) -> ParquetFile | None:
        """The file, if it is Parquet."""
        if not is_parquet(self.start):
            return None
        from shardwright.formats.parquet import ParquetFile

        return ParquetFile.open(self.path)

    @cached_property
    def header(self) -> Sequence[str]:
        """The columns of a CSV, or of Parquet without images and lists; none of another file."""
        if self.parquet is not None:
            flat = not any(column.nested or column.image for column in self.parquet.columns)
            return self.parquet.header if flat else ()
        return self.line.split(",") if self.ending == ".csv" else ()

    def why_lines(self, *, several: bool) -> str:
        """Returns why it is JSON lines, or an empty text.

        Args:
            several: whether the second line must be an object, too: a document of one line may be COCO's.
        """
        if self.ending in _LINES:
            return f"{self.name} ends with {self.ending}"
        objects = [isinstance(_json(line), dict) for line in self.lines[: 1 + several]]
        return f"each line of {self.name} is a JSON object" if objects == [True] * (1 + several) else ""

    @property
    def first_line(self) -> dict[str, Any] | None:
        """The object of the first line of a file that is called JSON lines."""
        return _object(self.lines[0]) if self.ending in _LINES else None

    def holds(self, folder: str) -> bool:
        """Returns whether it is a folder that holds another one."""
        return self.folder and is_folder(os.path.join(self.path, folder))

    @cached_property
    def inside(self) -> Sequence[Head]:
        """The heads of some files of a folder, if most of its files are texts; images among them do not count."""
        try:
            listing = list_inputs(self.path)
        except EmptyListing:
            return ()
        chosen = [i for i, key in enumerate(listing.keys) if key.lower().endswith(_TEXTS)]
        others = len(listing.keys)
        if f"{self.root}/".startswith(f"{self.path.rstrip('/')}/"):
            # Keys are NFC, whatever the names on the disk are.
            below = unicodedata.normalize("NFC", self.root[len(self.path.rstrip("/")) + 1 :])
            others -= len({os.path.join(below, key) for key in self.keys} & set(listing.keys))
        return [] if 2 * len(chosen) <= others else [Head.read(listing.path(i)) for i in chosen[:_LOOKED_INTO]]


def _object(text: str) -> dict[str, Any] | None:
    """Returns the object of a JSON text, or the first of a list; `None` where there is none."""
    document = _json(text)
    if isinstance(document, list):
        document = document[0] if document else None
    return document if isinstance(document, dict) else None


def _json(text: str) -> Any:
    try:
        return parse_untrusted_json(text)
    except ValueError:
        return None
