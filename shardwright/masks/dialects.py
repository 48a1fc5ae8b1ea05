"""Run-length codes as published sets write them, read into the runs of `shardwright.masks.rle` and written again.

| `runs` | text | order | used by |
|---|---|---|---|
| `absolute` | start length start length ..., from 1 | column | Clouds, Severstal, Airbus, TGS, Data Science Bowl 2018 |
| `absolute` | the same | row | Carvana, Sartorius, UW-Madison |
| `relative` | offset length ..., each from the end of the run before; `-1`: no mask | column | SIIM-ACR |
| `counts` | pixels outside, inside, outside, ...: a JSON list, or compressed to a string | column | COCO |

Sources: the mask functions that came with SIIM-ACR's data (Kaggle, siim-acr-pneumothorax-segmentation: positions are
measured from the end of the previous run); the COCO API (cocodataset/cocoapi, common/maskApi.c, `rleToString`: "similar
to LEB128 but using 6 bits/char and ascii chars 48-111"). The code here is our own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shardwright.masks.rle import (
    RleError,
    Runs,
    name_frame,
    name_numbers,
    normalize,
    parse_pairs,
    read_numbers,
    to_pairs,
    transpose,
)

ABSOLUTE, RELATIVE, COUNTS = "absolute", "relative", "counts"
COLUMN, ROW = "column", "row"

_FIRST_CHARACTER = 48
_BITS = 5
_SIGN, _MORE = 16, 32
# Twelve characters have 60 bits: far more than the pixels of any image, and no overflow.
_MOST_CHARACTERS = 12
_LARGEST_COUNT = 2**31
# Characters that are decompressed at a time.
_PIECE = 1 << 20
_HEADER = re.compile(r"rle_(absolute|relative|counts)_(column|row)_([01])")
_COUNTS_LIST = re.compile(r"\[\s*(?:\d+(?:\s*,\s*\d+)*\s*)?\]", re.ASCII)


@dataclass(frozen=True)
class Dialect:
    """How a run-length code is written.

    Attributes:
        runs: `absolute`, `relative` or `counts`.
        order: whether positions go down the `column`s or along the `row`s.
        base: number of the first pixel where starts are absolute.
        empty: texts that mean no mask.
    """

    runs: str = ABSOLUTE
    order: str = COLUMN
    base: int = 1
    empty: tuple[str, ...] = ("",)

    def __str__(self) -> str:
        """Returns a description for messages: 'absolute starts from 1, column by column'."""
        forms = {ABSOLUTE: f"absolute starts from {self.base}", RELATIVE: "relative offsets", COUNTS: "COCO counts"}
        return f"{forms[self.runs]}, {self.order} by {self.order}"

    def size(self, text: str) -> None:
        """Returns nothing: run-length codes contain no image size."""

    def masks(self, label: int, text: str, *, height: int, width: int) -> list[tuple[int, Runs]]:
        """Returns the one mask of a code; see `parse`."""
        return [(label, self.parse(text, height=height, width=width))]

    def parse(self, text: str, *, height: int, width: int) -> Runs:
        """Reads a code.

        Args:
            text: the code.
            height: rows of the mask, at least 1.
            width: columns of the mask, at least 1.

        Returns:
            The runs, column by column, int64 (n, 2).

        Raises:
            RleError: it is not such a code, or does not fit; names the number, its value and the limit.
        """
        runs = self.parse_in_order(text, height=height, width=width)
        return transpose(runs, width, height) if self.order == ROW else runs

    def is_empty(self, text: str) -> bool:
        """Returns whether a text means no mask; a list may have white space between its brackets."""
        text = text.strip()
        if text[:1] == "[" and text[-1:] == "]" and not text[1:-1].strip():
            text = "[]"
        return text in self.empty

    def parse_in_order(self, text: str, *, height: int, width: int) -> Runs:
        """Reads a code as `parse` does, but leaves positions in the order of the code."""
        if self.is_empty(text):
            return np.empty((0, 2), np.int64)
        if self.runs == RELATIVE:
            return _parse_relative(text, height, width)
        if self.runs == COUNTS:
            return _parse_counts(text, height, width)
        return parse_pairs(text, height=height, width=width, base=self.base)

    def format(self, runs: Runs, *, height: int, width: int) -> str:
        """Writes runs of a mask of `height` x `width` as `parse` reads them; COCO counts as a JSON list."""
        if not len(runs):
            return self.empty[-1]
        if self.order == ROW:
            runs = transpose(runs, height, width)
        if self.runs == RELATIVE:
            ends = runs.sum(axis=1)
            offsets = runs[:, 0] - np.concatenate([[0], ends[:-1]])
            return to_pairs(np.stack([offsets, runs[:, 1]], axis=1), base=0)
        if self.runs == COUNTS:
            return str(to_counts(runs, height * width))
        return to_pairs(runs, self.base)


def dialect_of(runs: str, order: str, base: int) -> Dialect:
    """Returns the dialect that `export` writes: its starts count from `base` where they are absolute."""
    empty = {RELATIVE: ("", "-1"), COUNTS: ("", "[]")}.get(runs, ("",))
    return Dialect(runs, order, base if runs == ABSOLUTE else 0, empty)


def dialect_header(dialect: Dialect) -> str:
    """Returns the header of a column of masks that names their dialect; see `dialect_of_header`."""
    return f"rle_{dialect.runs}_{dialect.order}_{dialect.base}"


def dialect_of_header(header: str) -> Dialect | None:
    """Returns the dialect that a header names, for example `rle_absolute_row_0`, or `None`."""
    match = _HEADER.fullmatch(header)
    return dialect_of(match[1], match[2], int(match[3])) if match else None


COLUMN_PAIRS = Dialect()
ROW_PAIRS = Dialect(order=ROW)
SIIM = Dialect(RELATIVE, base=0, empty=("", "-1"))
COCO = Dialect(COUNTS, base=0, empty=("", "[]"))


def to_counts(runs: Runs, size: int) -> list[int]:
    """Returns COCO's uncompressed counts of a mask of `size` pixels: outside, inside, ..., column by column."""
    borders = np.concatenate([[0], np.stack([runs[:, 0], runs.sum(axis=1)], axis=1).reshape(-1), [size]])
    counts: list[int] = np.diff(borders).tolist()
    return counts if counts[-1] else counts[:-1]


def compress_counts(counts: Sequence[int]) -> str:
    """Returns COCO's compressed form of counts.

    From the fourth on, a count is written as its difference to the last but one, which is small where a mask changes
    little from column to column. Numbers are cut into groups of five bits, low ones first, two's complement; the sixth
    bit of a character is set if more follow.
    """
    characters = []
    for i, count in enumerate(counts):
        rest = count - counts[i - 2] if i > 2 else count
        while True:
            bits, rest = rest & 31, rest >> _BITS
            if rest == (-1 if bits & _SIGN else 0):
                characters.append(chr(_FIRST_CHARACTER + bits))
                break
            characters.append(chr(_FIRST_CHARACTER + bits + _MORE))
    return "".join(characters)


def _parse_relative(text: str, height: int, width: int) -> Runs:
    numbers = read_numbers(text)
    if numbers is None or len(numbers) % 2:
        raise _wrong_relative(text, height, width)
    if not len(numbers):
        return np.empty((0, 2), np.int64)
    # The sum cannot overflow once no number is larger than the mask.
    if numbers.max() > height * width or numbers.sum() > height * width or numbers[1::2].min() < 1:
        raise _wrong_relative(text, height, width)
    ends, lengths = numbers.cumsum()[1::2], numbers[1::2]
    return normalize(np.stack([ends - lengths, lengths], axis=1))


def _wrong_relative(text: str, height: int, width: int) -> RleError:
    frame = name_frame(height, width)
    end, count = 0, 0
    for where, number in name_numbers(text, ("offset", "length"), frame):
        count += 1
        if number < (0 if count % 2 else 1):
            return RleError(f"{where} is {number}; offsets count from 0, lengths from 1")
        end += number
        if end > height * width:
            return RleError(f"{where} is {number} and leads to {end}, past {frame}; are the runs relative?")
    return RleError(f"an odd count of {count} numbers: the last offset has no length")


def _parse_counts(text: str, height: int, width: int) -> Runs:
    frame = name_frame(height, width)
    text = text.strip()
    # A compressed string may begin with a bracket, but cannot end with one, which means that another character follows.
    if text[:1] == "[" and text[-1:] == "]":
        plain = text[1:-1].replace(",", " ")
        numbers = read_numbers(plain) if _COUNTS_LIST.fullmatch(text) else None
        if numbers is None:
            for where, number in name_numbers(plain, ("count",), frame):
                if number < 0:
                    raise RleError(f"{where} is {number}; counts are from 0 on")
            raise RleError(f"not a JSON list of whole numbers: {text[:40]!r}")
        counts = numbers
    else:
        counts = _decompress(text, frame)
    if len(counts) and (counts.max() > height * width or counts.sum() != height * width):
        # A sum of two halves cannot overflow.
        total = (int((counts >> 32).sum()) << 32) + int((counts & 0xFFFFFFFF).sum())
        raise RleError(f"the counts add up to {total}, but must fill {frame}; is the image's size right?")
    ends = counts.cumsum()
    pairs = len(counts) // 2
    return normalize(np.stack([ends[0 : 2 * pairs : 2], counts[1::2]], axis=1))


def _decompress(text: str, frame: str) -> npt.NDArray[np.int64]:
    """Reads the output of `compress_counts`."""
    numbers = np.concatenate(list(_differences(text, frame)))
    # Sums of numbers of 60 bits could overflow; those of a sound code are far smaller.
    if np.abs(numbers).max() > _LARGEST_COUNT:
        raise RleError(f"the string holds {numbers[np.abs(numbers).argmax()]}; the limit is {frame}")
    numbers[1::2] = numbers[1::2].cumsum()
    numbers[2::2] = numbers[2::2].cumsum()
    negative = np.flatnonzero(numbers < 0)
    if len(negative):
        raise RleError(f"count {negative[0] + 1} of {len(numbers)} is {numbers[negative[0]]}; counts are from 0 on")
    return numbers


def _differences(text: str, frame: str) -> Iterator[npt.NDArray[np.int64]]:
    """Yields the numbers of a compressed string, piece by piece: their arrays take fifty times the bytes of a piece."""
    at = 0
    while at < len(text) or not text:
        piece = text[at : at + _PIECE].encode("utf-32-le", "surrogatepass")
        bits = np.frombuffer(piece, "<u4").astype(np.int64) - _FIRST_CHARACTER
        wrong = np.flatnonzero((bits < 0) | (bits >= 2 * _MORE))
        if len(wrong):
            raise RleError(
                f"character {at + wrong[0] + 1} of {len(text)} is {text[at + wrong[0]]!r}; COCO counts are a list "
                "[3, 2, ...] or a string of the characters '0' to 'o'"
            )
        last = np.flatnonzero(bits < _MORE)
        end = int(last[-1]) + 1 if len(last) else 0
        if (end < len(bits) and at + len(bits) == len(text)) or not text:
            raise RleError(f"the string of {len(text)} characters ends within a number; it has been cut off")
        first = np.concatenate([[0], last[:-1] + 1])
        lengths = last - first + 1 if end else np.array([len(bits)])
        if lengths.max() > _MOST_CHARACTERS:
            place = at + int(first[lengths.argmax()])
            raise RleError(
                f"the number at character {place + 1} of {len(text)} is beyond 60 bits; the limit is {frame}"
            )
        bits = bits[:end]
        places = np.arange(end) - np.repeat(first, lengths)
        numbers: npt.NDArray[np.int64] = np.add.reduceat((bits & 31) << (_BITS * places), first)
        yield numbers - np.where(bits[last] & _SIGN, np.int64(1) << (_BITS * lengths), 0)
        at += end
