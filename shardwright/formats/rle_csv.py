"""Masks as run lengths in a table.

| set | columns |
|---|---|
| Understanding Clouds from Satellite Images | `Image_Label` = `file_Class`, `EncodedPixels` |
| Severstal Steel Defect Detection, first | `ImageId_ClassId` = `file_id`, `EncodedPixels` |
| Severstal Steel Defect Detection, later | `ImageId`, `ClassId`, `EncodedPixels`; images without defects have no row |
| Airbus ships, Data Science Bowl 2018, SIIM-ACR | `ImageId`, `EncodedPixels`; often many rows an image |
| TGS salt, Carvana | `id` or `img`, `rle_mask` |
| Sartorius | `id`, `annotation`, and columns that describe the image; a row a cell |
| UW-Madison | `id`, `class`, `segmentation` |

Other names work too. An empty field is an empty mask, and so is `-1` where the header is not that of a known set.
`NaN`, `None`, `null`, `[]`, `0`, `-1` and the like are no code in any dialect: where all other fields are codes, they
mean no mask, too. Several rows of one class about one image mean their union.

The run-length dialect is detected from the header, from the values and from the outlines of the masks. The same numbers
draw a mask column by column as well as row by row, and what runs past the end does so in both. But objects are
connected, while in the wrong order each of their runs is separate, and the outline is several times longer. (A run that
crosses the end of a line adds to the outline, too: its pieces are apart.) If images are square, one order shows the
other's mask transposed, and only the header or the user can decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shardwright.config.input import SAME_MASKS, THIS_FRAME, LabelsConfig, RleConfig
from shardwright.dataset.manifest import IGNORED
from shardwright.errors import Reading, UsageError
from shardwright.formats.base import IGNORE, Survey
from shardwright.formats.classes import ClassMap, as_integer
from shardwright.formats.export_record import RECORD_FILE
from shardwright.formats.object_values import ObjectError, read_text_size
from shardwright.formats.rows import CsvFormat, RawAnnotation, TableInput
from shardwright.formats.table_values import only_class
from shardwright.formats.tables import IMAGE, IMAGE_LABEL, LABEL, MASK, TableRow, reduce_header, size_columns
from shardwright.masks.dialects import ABSOLUTE, COCO, COLUMN, COUNTS, RELATIVE, ROW, SIIM, Dialect, dialect_of_header
from shardwright.masks.rle import RleError, Runs, area, perimeter, read_numbers
from shardwright.running.progress import counted

if TYPE_CHECKING:
    from shardwright.formats.rle_beside import RowAgreement

# An outline counts as longer from this ratio on, and from the larger one where the header is contrary; so that a
# handful of pixels decides nothing, it must be longer by some edges as well.
_CLEAR, _CONTRARY, _EDGES = 1.3, 2.0, 100
# Codes of images with sides at most so long, as a share of those that are there, are drawn on them, too.
_SMALLER = 0.8
# Codes that fit one meaning only must be that many, and that many times as many as those that fit the other only.
_SEVERAL, _MAJORITY = 3, 10
# So many images with the same mask, one run of at most two pixels, are no chance.
_MANY, _PAIR = 10, 2
_NO_MASK = "-1"
# What programs write for a missing value, and people for no pixels, in small letters without white space.
_WORDS = frozenset(
    ("nan", "none", "null", "nil", "na", "n/a", "<na>", "-", "[]", "{}", "()", '""', "''", "0", "-1", "00", "-1-1")
)
_LONGEST_WORD = 8
_ENCODED_PIXELS = "encodedpixels"
# Published sets by the headers of image, class and mask, reduced to letters and digits, and those in row order.
_SETS = {
    ("id", "", "rlemask"): "TGS salt",
    ("img", "", "rlemask"): "Carvana",
    ("id", "", "annotation"): "Sartorius",
    ("id", "class", "segmentation"): "UW-Madison",
}
_BY_ROW = ("Carvana", "Sartorius", "UW-Madison")
# What a row may state beside its mask.
_BESIDE = ("bbox", "area")
# Enough rows to detect a dialect, and read in a moment.
_MOST_SAMPLES, _IMAGES, _TRIED_IMAGES = 256, 32, 256


class RleCsv(CsvFormat):
    """Run lengths: image and class are in one column (`image_label`), in two, or the only class is not named.

    Attributes:
        one_class: the class of all masks, where the table names none; else empty.
    """

    format = "rle_csv"
    dialect: Dialect
    _beside: RowAgreement | None = None

    def __init__(self, given: TableInput) -> None:
        super().__init__(given)
        code, record = given.options.rle.given, given.record
        self._record = record
        # Codes of ours have no such words; `-1` tells relative codes from others.
        self._words = _WORDS - {_NO_MASK} if record is None else frozenset[str]()
        self._lines_of_words: dict[str, int] = {}
        self._other_texts = 0
        self._starts_at_0: list[int] = []
        self._rows_without_mask = 0
        self._masks: set[str] = set()
        self._surveys = False
        self._ignores = record is not None and record.ignored
        self._known_classes = {*(given.classes or ()), *([IGNORED] if self._ignores else [])}
        table, columns = given.table, given.found.roles
        self.mask_column = table.header[columns[MASK]]
        self._options = given.options
        reduced = [reduce_header(name) for name in table.header]
        beside = [reduced.index(name) if name in reduced else None for name in _BESIDE]
        if any(column is not None for column in beside):
            # Most tables have neither.
            from shardwright.formats.rle_beside import RowAgreement

            self._beside = RowAgreement(box=beside[0], area=beside[1])
        self._sizes = tuple(map(table.header.index, size_columns(table.header)))
        self.one_class = ""
        if LABEL not in columns and IMAGE_LABEL not in columns:
            # A column that is named as a caption or a feature is not a class.
            known = [table.header[i] for i in (*columns.values(), *given.found.captions)] + given.further.named
            self.one_class = only_class(table, [*known, *size_columns(table.header)], given.classes)
        headers = {role: table.header[column] for role, column in columns.items()}
        if record is not None and not code:
            layout = Layout(record.dialect, record.unlisted, f"{RECORD_FILE} states it")
        else:
            layout = detect_layout(table.path, headers, self._sample_cells(given.images.size_of), code, given.options)
        self.dialect, self.unlisted = layout.dialect, layout.unlisted
        self._words |= {_NO_MASK} if record is None else set()
        self._set_name = layout.set_name
        self._base_is_stated = "start" in code or record is not None
        if code.keys() >= {"encoding", "order", "start"}:
            how = ", as input.labels.rle has it"
        else:
            reason = f", since {layout.reason}" if layout.reason else ""
            how = f"{reason} (input.labels.rle.encoding, order and start override this)"
        self._notes += (f"run lengths: {self.dialect}{how}",)

    def survey(self) -> Survey:
        self._lines_of_words.clear()  # Those of the samples, before the dialect was known.
        self._surveys = True
        survey = super().survey()
        self._surveys = False
        if self._lines_of_words and self._other_texts:
            # Further fields are no codes, so nothing says what a word means.
            self._words, self._lines_of_words, self._starts_at_0 = frozenset(), {}, []
            self._rows_without_mask = 0
            survey = super().survey()
        if self._beside is not None:
            self._beside.check(self._path, self._options, masks=True)
        self._check_placeholder(sum(survey.listed))
        if self._rows_without_mask >= _SEVERAL and self._record is None:
            # A table that states which images have no mask says nothing of those that it does not name.
            self.unlisted = "fail"
        survey.ignore = self._ignores
        for word, line in self._lines_of_words.items():
            note = f"run lengths: {word!r} means no mask, since all other fields are codes (the first is row {line})"
            survey.notes = (*survey.notes, note)
        if self._starts_at_0 and self.dialect.base == 1 and not self._base_is_stated:
            self._count_from_0(survey)
        return survey

    def _look(self, image: int, annotation: RawAnnotation) -> str:
        text = annotation.text
        self._rows_without_mask += not text
        if text and len(self._masks) < _SEVERAL:
            self._masks.add(text)
        if not text or self.dialect.runs == COUNTS:
            return ""
        # All but a few texts have no 0 at all: no need to read their numbers.
        zero = " 0 " in text or text[:2] == "0 "
        if zero and self.dialect.runs == ABSOLUTE and _starts_at_0(text):
            self._starts_at_0.append(annotation.line)
        # Pairs of numbers, as they are nearly always written, need not be read.
        if not (text.count(" ") % 2 and text[0].isdecimal() and text[-1].isdecimal()):
            numbers = read_numbers(text)
            self._other_texts += numbers is None or len(numbers) % 2
        return ""

    def _check_placeholder(self, images: int) -> None:
        """Raises `UsageError` where all images have the same one or two pixels, as in a sample submission."""
        mask = next(iter(self._masks), "")
        numbers = read_numbers(mask) if len(self._masks) == 1 else None
        alike = numbers is not None and len(numbers) == _PAIR and int(numbers[1]) <= _PAIR
        if alike and images >= _MANY and SAME_MASKS not in self._options.confirmed:
            raise UsageError(
                f"{self._path}, column {self.mask_column!r}: all masks of {images:,} images are {mask!r}, as in a "
                "sample submission. Give the file with the annotations. If the masks are right, set "
                f"input.labels.confirmed: [{SAME_MASKS}]."
            ).with_readings(self._options.confirming(SAME_MASKS, "all images have this mask"))

    def _count_from_0(self, survey: Survey) -> None:
        """Takes starts of 0, anywhere in the table, as evidence that they count from 0.

        Raises:
            UsageError: the header is that of a set whose starts count from 1.
        """
        rows = counted(len(self._starts_at_0), "row has a start of 0", "rows have a start of 0")
        first = f"the first is row {self._starts_at_0[0]}"
        if self._set_name:
            raise UsageError(
                f"{self._path}, column {self.mask_column!r}: the header is that of {self._set_name}, whose starts "
                f"count from 1, but {rows} ({first}). Set input.labels.rle.start: 0 or 1."
            ).with_readings(
                Reading("starts count from 0", {"input.labels.rle.start": 0}),
                Reading(f"starts count from 1, and {rows} by mistake", {"input.labels.rle.start": 1}),
            )
        self.dialect = replace(self.dialect, base=0)
        survey.notes = (*survey.notes, f"run lengths: starts count from 0, since {rows} ({first})")

    def resolved(self, options: LabelsConfig) -> LabelsConfig:
        resolved, dialect = super().resolved(options), self.dialect
        if self._record is not None:
            return resolved
        start = dialect.base if dialect.runs == ABSOLUTE else None
        return replace(resolved, rle=RleConfig(dialect.runs, dialect.order, start))

    def _map_classes(self, values: Mapping[str, str]) -> ClassMap:
        if not self._ignores:
            return super()._map_classes(values)
        mapped = super()._map_classes({value: where for value, where in values.items() if value != IGNORED})
        return ClassMap(mapped.names, {**mapped.index, IGNORED: IGNORE}, mapped.notes)

    def _take_apart(self, row: TableRow) -> RawAnnotation:
        text = row.fields[self._columns[MASK]].strip()
        # Nearly all texts are longer than any word.
        if len(text) > _LONGEST_WORD and text[0] != "[":
            pass
        elif self.dialect.is_empty(text):
            text = ""
        elif len(text) <= _LONGEST_WORD and "".join(text.lower().split()) in self._words:
            self._lines_of_words.setdefault(text, row.line)
            text = ""
        columns = self._columns
        if IMAGE_LABEL in columns:
            name, label = self._split(row.fields[columns[IMAGE_LABEL]].strip())
        else:
            name = row.fields[columns[IMAGE]].strip()
            label = self.one_class or row.fields[columns[LABEL]].strip()
        problem = "has a mask but names no class" if text and not label else ""
        image = self._names.find(name)
        if text and image is not None and self._surveys and self._beside is not None:
            self._beside.compare(text, row.fields, self.dialect, self._images.size_of(image))
        if not self._sizes:
            return RawAnnotation(row.line, name, image, (label,) if label else (), text, problem)
        size = None
        try:
            size = read_text_size(row.fields[self._sizes[0]], row.fields[self._sizes[1]], "image ")
        except ObjectError as error:
            problem = problem or str(error)
        return RawAnnotation(row.line, name, image, (label,) if label else (), text, problem, stated_size=size)

    def _sample_cells(self, size_of: Callable[[int], tuple[int, int] | None]) -> list[SampleCell]:
        """Returns the first rows with a mask, of so many images that can be read."""
        sizes: dict[int, tuple[int, int] | None] = {}
        found: list[SampleCell] = []
        for annotation in self._raw_annotations():
            name, image, text = annotation.name, annotation.image, annotation.text
            if image is None or not text or annotation.problem:
                continue
            if image not in sizes:
                if len(sizes) == _TRIED_IMAGES or sum(size is not None for size in sizes.values()) == _IMAGES:
                    break
                sizes[image] = size_of(image)
            size = sizes[image]
            if size is not None:
                found.append(SampleCell(text, self._images.keys[image].endswith(name), *size))
            if len(found) == _MOST_SAMPLES:
                break
        return found

    def _split(self, value: str) -> tuple[str, str]:
        """Splits `file_Class`, where both may hold underscores: at the one place where the file exists.

        Raises:
            UsageError: it exists for two classes, `scan_1` with `left_lung` and `scan_1_left` with `lung`.
        """
        likely: tuple[str, str] | None = None
        possible: tuple[str, str] | None = None
        existing: list[tuple[int, tuple[str, str]]] = []
        cut = value.rfind("_")
        while cut >= 0:
            pair = value[:cut], value[cut + 1 :]
            if pair[1] and (self._classes is None or pair[1] in self._known_classes or as_integer(pair[1]) is not None):
                image = self._names.find(pair[0])
                if image is not None:
                    existing.append((image, pair))
                    if self._images.keys[image].endswith(pair[0]):
                        break  # With its extension: a shorter name would make that part of the class.
                likely = likely or pair
            elif pair[1]:
                possible = possible or pair
            cut = value.rfind("_", 0, cut)
        if len({image for image, _ in existing}) > 1:
            meant = [f"{self._images.keys[image]} with the class {label!r}" for image, (_, label) in existing[:2]]
            raise UsageError(
                f"{self._path}: {value!r} may be {' or '.join(meant)}. Write image and class into two columns, or name "
                "the classes in input.classes."
            )
        return existing[0][1] if existing else likely or possible or (value, "")


class SampleCell(NamedTuple):
    """A row looked at beforehand.

    Attributes:
        text: its code, not empty.
        extension: whether the table names the image with its extension.
        height: rows of the image.
        width: columns of the image.
    """

    text: str
    extension: bool
    height: int
    width: int


@dataclass(frozen=True)
class Layout:
    """How a table of run lengths is read.

    Attributes:
        dialect: how its codes are written.
        unlisted: what an image without a row is, unless it is configured: `empty` or `fail`.
        reason: how that was detected, for the user.
        set_name: the published set that the header is of, or empty.
    """

    dialect: Dialect
    unlisted: str
    reason: str
    set_name: str = ""


def detect_layout(
    path: str,
    headers: Mapping[str, str],
    samples: Sequence[SampleCell],
    code: Mapping[str, str | int],
    options: LabelsConfig | None = None,
) -> Layout:
    """Detects the layout of a table.

    Args:
        path: the table, for messages.
        headers: role -> header of the columns that are used.
        samples: some of its rows.
        code: `encoding`, `order` and `start` where they are configured; they win.
        options: `input.labels`.

    Raises:
        UsageError: two dialects fit equally, or the masks contradict the header. Names the option that decides.
    """
    named = dialect_of_header(headers[MASK])
    if named is not None and not code:
        return Layout(named, "empty" if LABEL in headers else "fail", "the header states it")
    return _Codes(f"{path}, column {headers[MASK]!r}", headers, samples, code, options or LabelsConfig()).layout()


@dataclass(frozen=True)
class _Codes:
    """Codes of a table, from which its layout is detected; the attributes are the arguments of `detect_layout`."""

    where: str
    headers: Mapping[str, str]
    samples: Sequence[SampleCell]
    code: Mapping[str, str | int]
    options: LabelsConfig

    def layout(self) -> Layout:
        image, label, mask = (reduce_header(self.headers.get(role, "")) for role in (IMAGE, LABEL, MASK))
        names = (image, label, mask)
        classed = LABEL in self.headers
        # The header is that of a set with absolute starts only; two of these share SIIM-ACR's.
        encoded = mask == _ENCODED_PIXELS
        is_absolute = IMAGE_LABEL in self.headers or names in _SETS or (classed and encoded)
        runs, why_runs = self._runs(is_absolute)
        known = self._known_set(names, runs)
        # Sets in which an image without objects has no row.
        without_row = classed and (not known or known == "Severstal")
        unlisted = "empty" if without_row or known == "Airbus ships" else "fail"
        if runs == COUNTS:
            return Layout(COCO, unlisted, why_runs)
        base, why_base = 1, ""
        if "start" in self.code:
            base, why_base = int(self.code["start"]), "input.labels.rle.start is set"
        elif runs == RELATIVE:
            base = SIIM.base
        elif not known and any(_starts_at_0(sample.text) for sample in self.samples):
            base, why_base = 0, "a start is 0"
        # This holds for any first rows: a marker may come late.
        dialect = Dialect(runs, COLUMN, base, ("",) if runs == ABSOLUTE and is_absolute else SIIM.empty)
        order, why_order = self._order(known, dialect)
        dialect = replace(dialect, order=order)
        if THIS_FRAME not in self.options.confirmed:
            self._check_scale(dialect)
        why_set = f"the header is that of {known}" if known else ""
        reasons = [why for why in (why_set, why_runs, why_base, why_order) if why]
        return Layout(dialect, unlisted, "; ".join(reasons), known)

    def _known_set(self, names: tuple[str, str, str], runs: str) -> str:
        """Returns the published set that the header is of, or nothing."""
        one_class = LABEL not in self.headers and IMAGE_LABEL not in self.headers
        encoded = names[2] == _ENCODED_PIXELS
        if runs == RELATIVE:
            return "SIIM-ACR" if one_class and encoded else ""
        if runs == COUNTS:
            return ""
        if IMAGE_LABEL in self.headers:
            with_ids = "classid" in reduce_header(self.headers[IMAGE_LABEL])
            return "Severstal" if with_ids else "Understanding Clouds"
        if not encoded:
            return _SETS.get(names, "")
        if not one_class:
            return "Severstal"
        without_ending = self.samples and not any(sample.extension for sample in self.samples)
        return "Data Science Bowl 2018" if without_ending else "Airbus ships"

    def _runs(self, is_absolute: bool) -> tuple[str, str]:
        """Returns the meaning of the numbers, and why."""
        if "encoding" in self.code:
            return str(self.code["encoding"]), "input.labels.rle.encoding is set"
        if "start" in self.code:
            return ABSOLUTE, ""
        counts = 0
        for text, _, height, width in self.samples:
            with suppress(RleError):
                COCO.parse(text, height=height, width=width)
                counts += 1
        # No other code can be read as counts, so a few damaged ones are not a contradiction.
        if 2 * counts > sum(sample.text != _NO_MASK for sample in self.samples):
            if self.code.get("order") == ROW:
                raise UsageError(
                    f"{self.where}: holds COCO counts, which go column by column. Remove input.labels.rle.order."
                )
            return COUNTS, f"the numbers of {counts} rows are counts that fill their images"
        # If all numbers of codes ascend, which lengths do not, they are positions, too.
        codes = [numbers for sample in self.samples if (numbers := read_numbers(sample.text)) is not None]
        ascending = [bool((numbers[1:] >= numbers[:-1]).all()) for numbers in codes if len(numbers) > 4]
        if len(ascending) >= _SEVERAL and all(ascending):
            raise UsageError(
                f"{self.where}: all numbers of each of the first {len(ascending)} codes ascend, so the second of a "
                "pair is the last pixel of a run, and not its length. Write starts and lengths."
            )
        return (ABSOLUTE, "") if is_absolute else self._relative_or_absolute()

    def _relative_or_absolute(self) -> tuple[str, str]:
        """Decides by codes of several runs, and by the outlines of their masks where both meanings fit the image.

        Absolute starts ascend in most sets, though not in all. Offsets seldom do. As the wrong ones, runs are apart.
        """
        absolute = relative = either = ascending = 0
        for sample in self.samples:
            numbers = read_numbers(sample.text)
            if numbers is None or len(numbers) < 4 or len(numbers) % 2:
                continue
            starts, lengths = numbers[::2].astype(np.float64), numbers[1::2].astype(np.float64)
            ends = starts + lengths
            size = sample.height * sample.width
            if ends.max() > size + 1 or ends.sum() > size:
                relative += bool(ends.max() > size + 1)
                absolute += bool(ends.sum() > size)
                continue
            as_starts = _outline(Dialect(ABSOLUTE, base=int(starts.min() > 0)), sample, lengths.sum())
            as_offsets = _outline(SIIM, sample, lengths.sum())
            if as_offsets >= _CLEAR * as_starts:
                absolute += 1
            elif not (starts[1:] < ends[:-1]).any():
                ascending += 1
            elif as_starts >= _CLEAR * as_offsets:
                relative += 1
            else:
                either += 1
        if relative >= max(_SEVERAL, _MAJORITY * absolute):
            return RELATIVE, f"starts do not ascend in {relative} rows, and as offsets they draw shorter outlines"
        if absolute >= max(1, _MAJORITY * (relative + either)):
            return ABSOLUTE, ""
        marked = any(sample.text == _NO_MASK for sample in self.samples)
        contrary = relative or either > ascending or (marked and absolute)
        if contrary and (not marked or absolute + relative + either >= _SEVERAL):
            raise UsageError(
                f"{self.where}: starts may be absolute, or relative to the run before. {absolute} of the first rows "
                f"fit absolute starts alone, or better, {relative} relative ones, and {either} fit both but do not "
                "ascend. Set input.labels.rle.encoding: absolute or relative."
            ).with_readings(
                Reading("starts are positions in the image", {"input.labels.rle.encoding": ABSOLUTE}),
                Reading("starts count from the end of the run before", {"input.labels.rle.encoding": RELATIVE}),
            )
        return (RELATIVE, f"{_NO_MASK} means no mask, as in SIIM-ACR") if marked else (ABSOLUTE, "")

    def _order(self, known: str, dialect: Dialect) -> tuple[str, str]:
        """Returns whether positions go down the columns or along the rows, and why."""
        by_column = by_row = masks = 0
        for text, _, height, width in self.samples:
            with suppress(RleError):  # It is reported again, with its row, when the image is written.
                runs = dialect.parse_in_order(text, height=height, width=width)
                by_column += perimeter(runs, height, width)
                by_row += perimeter(runs, width, height)
                masks += bool(len(runs))
        shorter, longer = sorted((by_column, by_row))
        smooth = COLUMN if by_column <= by_row else ROW
        ratio = longer / max(shorter, 1)
        stated = str(self.code.get("order", ""))
        order = stated or (ROW if known in _BY_ROW else COLUMN)
        if stated:
            doubt = ""
            if order != smooth and ratio >= _CONTRARY and longer - shorter >= _EDGES:
                doubt = f", though the outlines of {masks} masks are {ratio:.1f} times as long as {smooth} by {smooth}"
            return order, f"input.labels.rle.order is set{doubt}"
        if known:
            if order == smooth or ratio < _CONTRARY or longer - shorter < _EDGES:
                return order, ""
            problem = (
                f"the header is that of {known}, whose runs go {order} by {order}, but drawn so, the outlines of "
                f"{masks} masks are {ratio:.1f} times as long as {smooth} by {smooth}"
            )
        elif ratio >= _CLEAR and longer - shorter >= _EDGES:
            return smooth, f"the other way the outlines of {masks} masks are {ratio:.1f} times as long"
        elif not masks:
            return COLUMN, ""
        else:
            problem = (
                "whether runs go column by column or row by row cannot be detected. The header is not that of a known "
                f"set, and the outlines of {masks} masks are about as long both ways (as always in square images)"
            )
        raise UsageError(f"{self.where}: {problem}. Set input.labels.rle.order: column or row.").with_readings(
            Reading("positions go down the columns", {"input.labels.rle.order": COLUMN}),
            Reading("positions go along the rows", {"input.labels.rle.order": ROW}),
        )

    def _check_scale(self, dialect: Dialect) -> None:
        """Checks that the codes are not those of smaller images, on which all would be as valid.

        From line to line of a connected mask, starts are about a line apart. Drawn in too long lines, a mask is several
        narrow ones, with a longer outline.

        Raises:
            UsageError: they are; names the size.
        """
        read = []
        for text, _, height, width in self.samples:
            with suppress(RleError):
                runs = dialect.parse_in_order(text, height=height, width=width)
                read.append((runs, height, width) if dialect.order == COLUMN else (runs, width, height))
        steps = [float(np.median(np.diff(runs[:, 0]))) / line for runs, line, _ in read if len(runs) > _SEVERAL]
        share = float(np.median(steps)) if len(steps) >= _SEVERAL else 1.0
        if share > _SMALLER:
            return
        _, line, lines = read[0]
        # The median is a little off where outlines are slanted.
        near = {max(1, round(share * line) + by) for by in range(-3, 4)}
        shorter, least = min((_outlines_at(number / line, read), number) for number in near)
        longer = _outlines_at(1.0, read)
        if longer < _CLEAR * shorter or longer - shorter < _EDGES:
            return
        of_codes, of_image = ((at, round(at * lines / line)) for at in (least, line))
        if dialect.order == ROW:
            of_codes, of_image = of_codes[::-1], of_image[::-1]
        raise UsageError(
            f"{self.where}: the codes are those of images of {of_codes[0]} x {of_codes[1]} (height x width), where the "
            f"first here has {of_image[0]} x {of_image[1]}: so the outlines of {len(read)} masks are "
            f"{longer / shorter:.1f} times as short. Give the images that were annotated, or codes for "
            f"these. If they are of these images, set input.labels.confirmed: [{THIS_FRAME}]."
        ).with_readings(self.options.confirming(THIS_FRAME, "the codes are of these images"))


def _outlines_at(share: float, read: Sequence[tuple[Runs, int, int]]) -> float:
    """Returns the length of all outlines on images of that share of the sides; infinite where a mask does not fit.

    Args:
        share: of each side.
        read: runs, the length of a line and the number of lines.
    """
    total = 0
    for runs, line, lines in read:
        small = max(1, round(share * line)), max(1, round(share * lines))
        if len(runs) and runs[-1].sum() > small[0] * small[1]:
            return math.inf
        total += perimeter(runs, *small)
    return total


def _outline(dialect: Dialect, sample: SampleCell, pixels: float) -> float:
    """Returns the length of the outline of a mask, in the order that has the shorter one.

    Args:
        dialect: the meaning of the numbers.
        sample: a code that fits its image.
        pixels: the sum of the lengths of its runs. Hidden sides count, too, if runs overlap.
    """
    height, width = sample.height, sample.width
    try:
        runs = dialect.parse_in_order(sample.text, height=height, width=width)
    except RleError:
        return math.nan  # It is neither longer nor shorter than another.
    return min(perimeter(runs, height, width), perimeter(runs, width, height)) + 2 * (pixels - area(runs))


def _starts_at_0(text: str) -> bool:
    numbers = read_numbers(text)
    return numbers is not None and not numbers[::2].all()
