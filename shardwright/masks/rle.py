"""Masks as runs: parsing, drawing, merging and resampling run-length codes without ever drawing a mask.

Runs are an int64 array of shape (n, 2) of (start, length). Positions count down the columns from 0 (`column * height +
row`), the order of most published run-length sets. Runs are sorted, disjoint, do not touch (touching ones are merged)
and are within height * width. The text form "start length start length ..." counts from 1, as in the Kaggle sets
Understanding Clouds, Severstal and Airbus; `shardwright.masks.dialects` reads the other forms.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from shardwright.errors import AnnotationError
from shardwright.images.geometry import Geometry, IntArray, output_columns, output_rows, source_columns, source_rows

Runs = npt.NDArray[np.int64]

_DIGITS_AND_SPACE = b"0123456789 \t\r\n"
# A text of so few characters is read number by number.
_SHORT = 256
_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INT64_MAX = 2**63 - 1
_SHOWN = 40


class RleError(AnnotationError):
    """A run-length code is not one; the message gives the position, the value and the limit."""

    code = "bad_rle"


def check_stated_size(what: str, stated: tuple[object, ...], height: int, width: int) -> None:
    """Refuses an annotation that states another size than the image has."""
    if stated != (height, width):
        shown = "x".join(repr(side)[:_SHOWN] for side in stated)
        turned = "; were the annotations drawn on the turned image?" if stated == (width, height) else ""
        problem = f"{what} has {shown} (height x width) there, but the file has {height}x{width}{turned}"
        raise RleError(problem, "size_mismatch")


def parse_pairs(text: str, *, height: int, width: int, base: int = 1) -> Runs:
    """Parses "start length start length ...", column by column.

    Overlapping, touching and unsorted runs are common in published sets and mean their union.

    Args:
        text: whole numbers separated by spaces, tabs or line ends; no numbers at all means an empty mask.
        height: rows of the mask, at least 1.
        width: columns of the mask, at least 1.
        base: number of the first pixel, 0 or 1.

    Returns:
        The runs, int64 (n, 2).

    Raises:
        RleError: an odd count, something that is not a whole number from 1 on (a start: from `base` on), or a run past
            the last pixel.
    """
    size = _pixels(height, width)
    runs = _read_few(text, size, base) if len(text) <= _SHORT else None
    apart = runs is not None
    if runs is None:
        numbers = read_numbers(text)
        if numbers is None or len(numbers) % 2:
            raise _wrong_pairs(text, height, width, base)
        if not len(numbers):
            return np.empty((0, 2), np.int64)
        runs = numbers.reshape(-1, 2)
        if numbers.min() < base or numbers.max() > size or runs[:, 1].min() < 1:
            raise _wrong_pairs(text, height, width, base)
    runs[:, 0] -= base
    if apart:
        return runs
    ends = runs[:, 0] + runs[:, 1]
    if ends.max() > size:
        raise _wrong_pairs(text, height, width, base)
    return _merge(runs, ends)


def _read_few(text: str, size: int, base: int) -> Runs | None:
    """Returns the numbers of runs that are sorted and apart, faster than arrays; `None` for other texts."""
    if not text.isascii() or text.encode("ascii").translate(None, _DIGITS_AND_SPACE):
        return None
    numbers = list(map(int, text.split()))
    end = base - 1
    for start, length in zip(numbers[::2], numbers[1::2], strict=False):
        if start <= end or length < 1:
            return None
        end = start + length
    if len(numbers) % 2 or end > size + base:
        return None
    return np.array(numbers, np.int64).reshape(-1, 2)


def to_pairs(runs: Runs, base: int = 1) -> str:
    """Writes runs as text, starts from `base`; `parse_pairs` reads it."""
    flat = (runs + np.array([base, 0], np.int64)).reshape(-1)
    return " ".join(map(str, flat.tolist()))


def read_numbers(text: str) -> npt.NDArray[np.int64] | None:
    """Reads whole numbers separated by white space, or returns `None` where there are other characters.

    One pass in C finds bytes other than digits and spaces. The text reader of numpy is exact for the rest, except that
    it clips numbers beyond int64 to the largest one. Callers check the range.
    """
    if not text.isascii() or text.encode("ascii").translate(None, _DIGITS_AND_SPACE):
        return None
    if not text or text.isspace():
        return np.empty(0, np.int64)
    return np.fromstring(text, dtype=np.int64, sep=" ")


def name_numbers(text: str, kinds: Sequence[str], frame: str) -> Iterator[tuple[str, int]]:
    """Reads numbers one by one, slowly, to find the first that is wrong.

    Args:
        text: a text that is known to be wrong somewhere.
        kinds: meanings of the numbers, in turn, e.g. ("start", "length").
        frame: the limit, for the message.

    Yields:
        The position of a number, e.g. "number 3 of 8 (a start)", and the number.

    Raises:
        RleError: something that is not a whole number, or is beyond 64 bits.
    """
    tokens = text.split()
    for i, token in enumerate(tokens):
        kind = kinds[i % len(kinds)]
        where = f"number {i + 1} of {len(tokens)} ({'an' if kind[0] in 'aeiou' else 'a'} {kind})"
        shown = repr(token if len(token) <= 40 else token[:40] + "...")
        if _WHOLE.fullmatch(token) is None or token.startswith("+"):
            what = "is not a whole number" if _DECIMAL.fullmatch(token) else "is not a number"
            wanted = " ".join([*kinds, *kinds, "..."])
            raise RleError(f"{where} {what}: {shown}; write '{wanted}' in whole numbers")
        if len(token.lstrip("-0")) > 19 or abs(int(token)) > _INT64_MAX:
            raise RleError(f"{where} is beyond 64 bits: {shown}; the limit is {frame}")
        yield where, int(token)


def name_frame(height: int, width: int) -> str:
    """Returns the limit of positions, for messages."""
    return f"the {height * width} pixels of {height}x{width} (height x width)"


def from_flat(values: Sequence[int] | npt.NDArray[Any]) -> Runs:
    """Reads runs from their stored form [start, length, start, length, ...] and checks them.

    Args:
        values: whole numbers, starts from 0.

    Returns:
        The runs, int64 (n, 2).

    Raises:
        RleError: an odd count, other than whole numbers, a negative start, a length below 1, or runs that are not
            sorted, that overlap or that touch.
    """
    array = np.asarray(values)
    if array.size == 0:
        return np.empty((0, 2), np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise RleError(f"stored runs must be a flat list of whole numbers, not {array.dtype} of shape {array.shape}")
    if len(array) % 2:
        raise RleError(f"stored runs hold {len(array)} numbers: an odd count, every start needs its length")
    if array.dtype.kind == "u" and int(array.max()) > _INT64_MAX:
        raise RleError(f"stored runs hold {int(array.max())}, which is beyond int64")
    runs: Runs = array.astype(np.int64).reshape(-1, 2)
    bad = np.flatnonzero((runs[:, 0] < 0) | (runs[:, 1] < 1) | (runs[:, 0] > _INT64_MAX - runs[:, 1]))
    if len(bad):
        raise RleError(f"stored run {bad[0]} is start {runs[bad[0], 0]}, length {runs[bad[0], 1]}: out of range")
    disordered = np.flatnonzero(runs[1:, 0] <= runs[:-1].sum(axis=1))
    if len(disordered):
        first = int(disordered[0]) + 1
        raise RleError(
            f"stored run {first} starts at {runs[first, 0]}, but the one before it ends at {runs[first - 1].sum()}: "
            "stored runs must be sorted, disjoint and merged"
        )
    return runs


def encode(mask: npt.NDArray[Any]) -> Runs:
    """Encodes a drawn mask.

    Args:
        mask: (height, width), bool or numbers; the mask is where it is not 0.

    Returns:
        The runs, int64 (n, 2).
    """
    if mask.ndim != 2:
        raise RleError(f"a mask has two dimensions (height, width), not shape {mask.shape}")
    inside = np.zeros(mask.size + 2, bool)
    inside[1:-1] = (mask != 0).reshape(-1, order="F")
    borders = np.flatnonzero(inside[1:] != inside[:-1]).astype(np.int64).reshape(-1, 2)
    borders[:, 1] -= borders[:, 0]
    return borders


def draw(runs: Runs, height: int, width: int) -> npt.NDArray[np.uint8]:
    """Draws runs.

    Args:
        runs: int64 (n, 2).
        height: rows, at least 1.
        width: columns, at least 1.

    Returns:
        uint8 (height, width), 1 inside the mask and 0 outside; stored column by column (Fortran order).

    Raises:
        RleError: a run ends after the last pixel.
    """
    size = _pixels(height, width)
    borders = np.empty(2 * len(runs) + 2, np.int64)
    borders[0], borders[-1] = 0, size
    borders[1:-1:2] = runs[:, 0]
    borders[2:-1:2] = runs[:, 0] + runs[:, 1]
    if len(runs) and int(borders[-2]) > size:
        raise RleError(f"the last run ends at {borders[-2]}, past the {size} pixels of {height}x{width}")
    values = np.zeros(len(borders) - 1, np.uint8)
    values[1::2] = 1
    return np.repeat(values, np.diff(borders)).reshape(width, height).T


def normalize(runs: Runs) -> Runs:
    """Sorts runs, drops those of length 0 and merges those that overlap or touch."""
    if len(runs) and (runs[:, 0].min() < 0 or runs[:, 1].min() < 0):
        raise RleError("runs hold a negative start or length")
    kept = runs[runs[:, 1] > 0]
    return _merge(kept, kept[:, 0] + kept[:, 1])


def union(parts: Sequence[Runs]) -> Runs:
    """Merges several masks of the same frame into one."""
    if not parts:
        return np.empty((0, 2), np.int64)
    return normalize(np.concatenate(parts))


def subtract(runs: Runs, cut: Runs) -> Runs:
    """Returns the pixels of a mask that are not in another one; both int64 (n, 2), sorted and apart."""
    if not len(runs) or not len(cut):
        return runs
    ends, cut_ends = runs.sum(axis=1), cut.sum(axis=1)
    edges = np.unique(np.concatenate([runs[:, 0], ends, cut[:, 0], cut_ends]))
    begins = edges[:-1]
    inside = np.searchsorted(runs[:, 0], begins, "right") > np.searchsorted(ends, begins, "right")
    covered = np.searchsorted(cut[:, 0], begins, "right") > np.searchsorted(cut_ends, begins, "right")
    kept = inside & ~covered
    return normalize(np.stack([begins[kept], np.diff(edges)[kept]], axis=1))


def transpose(runs: Runs, height: int, width: int) -> Runs:
    """Swaps rows and columns: `encode(draw(runs, height, width).T)`.

    Applied to runs that were counted row by row, as if they were of a mask of `width` x `height`, it gives them column
    by column. Only the columns that the runs touch are drawn.

    Args:
        runs: int64 (n, 2).
        height: rows of the mask, at least 1.
        width: columns of the mask, at least 1.

    Returns:
        The runs of the mask of `width` x `height`, int64 (m, 2).
    """
    if not len(runs):
        return runs
    first, last = int(runs[0, 0]) // height, int(runs[-1].sum() - 1) // height
    columns = last - first + 1
    # The band has one empty column more, so that no run of the transposed band continues into the next column;
    # where the band is the whole mask it may.
    drawn = draw(runs - np.array([first * height, 0]), height, columns + (columns < width)).T
    turned = encode(drawn)
    column, row = np.divmod(turned[:, 0], len(drawn))
    turned[:, 0] = column * width + first + row
    return turned


def perimeter(runs: Runs, height: int, width: int) -> int:
    """Counts the pairs of vertical or horizontal neighbors of which exactly one belongs to the mask."""
    borders = np.stack([runs[:, 0], runs[:, 0] + runs[:, 1]], axis=1).reshape(-1)
    within_columns = int(np.count_nonzero(borders % height))
    # A mask and itself one column on differ between every other one of their borders.
    both = np.sort(np.concatenate([borders, borders + height]).clip(height, height * width))
    return within_columns + int((both[1::2] - both[::2]).sum())


def area(runs: Runs) -> int:
    """Counts the pixels of a mask."""
    return int(runs[:, 1].sum()) if len(runs) else 0


def resample(runs: Runs, geometry: Geometry) -> Runs:
    """Crops, resizes and pads a mask in run space: nearest neighbor, half-pixel centers.

    The same as `encode(draw(runs)[rows][:, columns])` with the positions of `geometry`, and nothing in the border. A
    position of the source is looked up among the sampled columns, then among the sampled rows. As long as the sampled
    columns strictly increase, the order of positions is kept and a run becomes a run. If columns repeat (enlarging) or
    the output has a border above or below, runs are split at the columns first.

    Args:
        runs: int64 (n, 2), in the frame of `geometry.source_height` x `geometry.source_width`.
        geometry: the plan.

    Returns:
        The runs, int64 (m, 2), in the frame of `geometry.height` x `geometry.width`.

    Raises:
        RleError: a run ends after the last pixel of the source.
    """
    return resample_all([runs], geometry)[0]


def resample_all(masks: Sequence[Runs], geometry: Geometry) -> list[Runs]:
    """Resamples several masks of one image, in one pass.

    Args:
        masks: int64 (n, 2) each, in the frame of `geometry.source_height` x `geometry.source_width`.
        geometry: the plan.

    Returns:
        A mask for each.

    Raises:
        RleError: a run ends after the last pixel of the source.
    """
    source_size, size = geometry.source_height * geometry.source_width, geometry.height * geometry.width
    runs = np.concatenate([*masks, np.empty((0, 2), np.int64)])
    count = len(runs)
    # Starts and, after them, ends.
    both = np.concatenate([runs[:, 0], runs.sum(axis=1)])
    if count and int(both[count:].max()) > source_size:
        raise RleError(
            f"the last run ends at {both[count:].max()}, past the {source_size} pixels of the source, "
            f"{geometry.source_height}x{geometry.source_width}"
        )
    if geometry.resized_width > geometry.crop_width or geometry.resized_height < geometry.height:
        return [_resample_by_columns(mask, geometry) for mask in masks]
    columns, rows = output_columns(geometry), output_rows(geometry)
    source_column = both // geometry.source_height
    position = rows.first[both - source_column * geometry.source_height] * columns.is_shown[source_column]
    position += columns.first[source_column] * geometry.resized_height
    # The masks follow each other, with a pixel between them, so that no run continues into the next mask.
    offsets = np.arange(len(masks) + 1) * (size + 1)
    position.reshape(2, count)[:] += np.repeat(offsets[:-1], np.array([len(mask) for mask in masks], np.int64))
    begin, end = position[:count], position[count:]
    left = np.flatnonzero(end > begin)
    begin, end = begin[left], end[left]
    merged = _merge(np.stack([begin, end - begin], axis=1), end)
    bounds = np.searchsorted(merged[:, 0], offsets)
    merged[:, 0] += np.repeat(geometry.pad_left * geometry.height - offsets[:-1], np.diff(bounds))
    return [merged[first:last] for first, last in itertools.pairwise(bounds.tolist())]


def _resample_by_columns(runs: Runs, geometry: Geometry) -> Runs:
    """Resamples runs piece by piece (a piece is in one column), each into every output column that shows its column."""
    rows = source_rows(geometry)[geometry.pad_top : geometry.pad_top + geometry.resized_height]
    columns = source_columns(geometry)[geometry.pad_left : geometry.pad_left + geometry.resized_width]
    piece_column, begin_row, end_row = column_pieces(runs, geometry.source_height)
    begin, end = np.searchsorted(rows, begin_row), np.searchsorted(rows, end_row)
    first_output = np.searchsorted(columns, piece_column)
    copies = np.where(end > begin, np.searchsorted(columns, piece_column, side="right") - first_output, 0)
    piece = np.repeat(np.arange(len(copies)), copies)
    output_column = geometry.pad_left + first_output[piece] + run_positions(copies)
    starts: IntArray = output_column * geometry.height + geometry.pad_top + begin[piece]
    lengths: IntArray = end[piece] - begin[piece]
    return _merge(np.stack([starts, lengths], axis=1), starts + lengths)


def column_pieces(runs: Runs, height: int) -> tuple[IntArray, IntArray, IntArray]:
    """Splits runs where one column ends and the next begins.

    Args:
        runs: int64 (n, 2).
        height: rows of the mask, at least 1.

    Returns:
        Column, first row and row after the last of every piece, in the order of the runs; int64 (m,) each.
    """
    first = runs[:, 0] // height
    counts = (runs[:, 0] + runs[:, 1] - 1) // height - first + 1
    owner = np.repeat(np.arange(len(runs)), counts)
    column = first[owner] + run_positions(counts)
    begin = np.maximum(runs[owner, 0] - column * height, 0)
    end = np.minimum(runs[owner, 0] + runs[owner, 1] - column * height, height)
    return column, begin, end


def run_positions(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Numbers the members of groups of the given sizes: [2, 3] gives [0, 1, 0, 1, 2]."""
    return np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)


def _merge(runs: Runs, ends: Runs) -> Runs:
    """Sorts and merges runs of positive length; runs that are already in order are returned unchanged."""
    if len(runs) < 2 or (runs[1:, 0] > ends[:-1]).all():
        return runs
    order = np.argsort(runs[:, 0], kind="stable")
    starts = runs[order, 0]
    reach = np.maximum.accumulate(ends[order])
    opens = np.flatnonzero(np.concatenate([[True], starts[1:] > reach[:-1]]))
    closes = np.concatenate([opens[1:] - 1, [len(starts) - 1]])
    return np.stack([starts[opens], reach[closes] - starts[opens]], axis=1)


def _pixels(height: int, width: int) -> int:
    if height < 1 or width < 1:
        raise RleError(f"a mask of {height}x{width} pixels cannot be: both sides must be at least 1")
    return height * width


def _wrong_pairs(text: str, height: int, width: int, base: int) -> RleError:
    """Returns the error for the first mistake in a code that is known to be wrong."""
    size, frame = height * width, name_frame(height, width)
    counting = "starts and lengths count from 1" if base else "starts count from 0, lengths from 1"
    start, count = 0, 0
    for where, number in name_numbers(text, ("start", "length"), frame):
        count += 1
        if number < (base if count % 2 else 1):
            return RleError(f"{where} is {number}; {counting}")
        if count % 2:
            start = number
            if start - base >= size:
                return RleError(f"{where} is {start}, past {frame}")
        elif start - base + number > size:
            return RleError(
                f"{where} is {number}: the run from {start} ends at {start + number - 1}, past {frame}; is the image's "
                "size right?"
            )
    return RleError(f"an odd count of {count} numbers: the last start, {start}, has no length")
