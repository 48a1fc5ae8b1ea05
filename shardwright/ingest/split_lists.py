"""Files that say which images are in a split: a list of them, a table of images and splits, or CUB's two files of ids.

| file | the images of `train` |
|---|---|
| `train.txt`: `a.jpg`, or `a.jpg 3` with more behind the name | all of its lines |
| `splits.csv`: `image,split` and rows such as `a.jpg,train` | those of the rows with `train` or another word for it |
| `partition.csv`: rows such as `a.jpg,0` (CelebA) | those with 0; 1 is `eval` and 2 is `test` |
| `train_test_split.txt`: `1 0`, next to `images.txt`: `1 a.jpg` (CUB) | those with 1; 0 is `test` |
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from shardwright.config.split import EVAL, TEST, split_word
from shardwright.errors import UsageError
from shardwright.formats.image_names import NameIndex
from shardwright.formats.tables import reduce_header
from shardwright.storage import is_remote, read_bytes
from shardwright.storage.limits import MOST_LIST_BYTES
from shardwright.storage.listing import name_lines

# Headers of a column that may state the split of an image.
SPLIT_HEADERS = frozenset(
    ("split", "splits", "set", "subset", "partition", "usage", "phase", "stage", "part", "fold", "dataset", "datasplit")
)
# Headers of a column of yes and no -> the splits of a no and of a yes.
_YES_NO_HEADERS = {
    "isvalid": ("train", EVAL),
    "isval": ("train", EVAL),
    "isvalidation": ("train", EVAL),
    "istest": ("train", TEST),
    "istrain": (TEST, "train"),
    "istraining": (TEST, "train"),
}
_YES_NO = {"false": 0, "no": 0, "0": 0, "0.0": 0, "true": 1, "yes": 1, "1": 1, "1.0": 1}
_TABLES = {".csv": ",", ".tsv": "\t"}
SPLITS_BY_ID, _IDS = "train_test_split.txt", "images.txt"
_NUMBERS = {"0": "train", "1": EVAL, "2": TEST}
_NUMBERS_OF_IDS = {"1": "train", "0": TEST}


def may_state_splits(header: str) -> bool:
    """Returns whether a column may state the split of an image, by its header."""
    reduced = reduce_header(header)
    return reduced in SPLIT_HEADERS or reduced in _YES_NO_HEADERS


def field_split(header: str, text: str) -> str | None:
    """Returns which of `train`, `eval` and `test` a field means: `val`, or `True` below `is_valid`; or `None`."""
    meant, answer = _YES_NO_HEADERS.get(reduce_header(header)), _YES_NO.get(text.strip().lower())
    return split_word(text) if meant is None or answer is None else meant[answer]


class StatedSplits(NamedTuple):
    """What a file says of several splits.

    Attributes:
        rows: a name of an image and its split, in the order of the file.
        by_number: whether the file has numbers for the splits.
    """

    rows: Sequence[tuple[str, str]]
    by_number: bool


def listed_names(option: str, split: str, path: str) -> list[str]:
    """Returns the lines, or the fields of a table, that name the images of a split.

    Args:
        option: YAML path, for messages.
        split: the split.
        path: of the file.

    Raises:
        UsageError: the file cannot be read, or names none.
    """
    stated = stated_splits(option, path)
    if stated is None:
        if not (lines := name_lines(_text(option, path))):
            raise UsageError(f"{option}: {path} is empty. Name images there, one in each line, or leave {option} out.")
        return lines
    names = [name for name, word in stated.rows if word == split]
    if not names:
        there = ", ".join(sorted({word for _, word in stated.rows}))
        raise UsageError(f"{option}: {path} has no row of {split}, but of {there}. Leave {option} out.")
    return names


def files_of_lists(paths: Iterable[str]) -> list[str]:
    """Returns the files of lists: those themselves, and CUB's list of ids next to its splits."""
    found = list(paths)
    beside = (os.path.join(os.path.dirname(path), _IDS) for path in found if os.path.basename(path) == SPLITS_BY_ID)
    return [*found, *(path for path in beside if is_remote(path) or os.path.isfile(path))]


def listed_image(line: str, names: NameIndex) -> int | None:
    """Returns the image that a line of a list names: `a b.jpg`, or `a.jpg 3` with further columns; or `None`."""
    found = names.find(line)
    first = re.split(r"[\s,;]", line.strip(), maxsplit=1)[0]
    return names.find(first) if found is None and first != line.strip() else found


def stated_splits(option: str, path: str) -> StatedSplits | None:
    """Returns what a file says of several splits; `None` where it is a plain list.

    Raises:
        UsageError: it cannot be read.
    """
    if os.path.basename(path) == SPLITS_BY_ID:
        ids = (line.split(maxsplit=1) for line in name_lines(_text(option, os.path.join(os.path.dirname(path), _IDS))))
        names = {row[0]: row[1] for row in ids if len(row) == 2}
        pairs = [line.split() for line in name_lines(_text(option, path))]
        if all(len(pair) == 2 and pair[0] in names and pair[1] in _NUMBERS_OF_IDS for pair in pairs):
            return StatedSplits([(names[number], _NUMBERS_OF_IDS[flag]) for number, flag in pairs], False)
        return None
    delimiter = _TABLES.get(os.path.splitext(path)[1].lower())
    table = list(csv.reader(_text(option, path).splitlines(), delimiter=delimiter)) if delimiter else []
    header, *rows = table or [[]]
    of_split = [i for i, name in enumerate(header) if may_state_splits(name)]
    if len(of_split) != 1 or len(header) < 2:
        return None
    rows = [row for row in rows if len(row) == len(header)]
    texts = [row[of_split[0]].strip() for row in rows]
    named = header[of_split[0]]
    by_number = set(texts) <= set(_NUMBERS) and reduce_header(named) in SPLIT_HEADERS
    words = [_NUMBERS[text] if by_number else field_split(named, text) for text in texts]
    known = [word for word in words if word is not None]
    if not known or len(known) < len(words):
        return None
    # The image is what differs in most rows.
    others = [i for i in range(len(header)) if i != of_split[0]]
    of_name = max(others, key=lambda i: (len({row[i] for row in rows}), -i))
    return StatedSplits([(row[of_name], word) for row, word in zip(rows, known, strict=True)], by_number)


def _text(option: str, path: str) -> str:
    try:
        return read_bytes(path, most=MOST_LIST_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{option}: {path} cannot be read ({error.strerror or error}). Check the path.") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{option}: {path} is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from None
