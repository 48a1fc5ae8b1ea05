"""Checks of the values in annotations of a tool; see `objects`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from shardwright.errors import AnnotationError, UsageError
from shardwright.formats.image_names import is_text
from shardwright.storage import limits, open_table
from shardwright.untrusted.budget import OverBudget
from shardwright.untrusted.json_text import parse_untrusted_json

# The member of the area of an object, as most tools call it.
AREA = "area"
_SHOWN = 60
_LARGEST, _NUMBERS = 2.0**31, frozenset((int, float))
_UNKNOWN = frozenset(("", "None", "nan", "NaN", "0", "0.0", "-1", "-1.0"))
# Whether the first coordinate of an outline may be in the first pixel: cheaper than to read all outlines again.
may_be_fractions = re.compile(r"\[\[-?(?:[01]?\.\d+(?:e-\d+)?|[01]|\d(?:\.\d+)?e-\d+),").match
# Rounding of six digits leaves the image by less than this.
_BEYOND = 0.01


class ObjectError(AnnotationError):
    """An entry is not what the tool writes; the message states what is wrong and where in the entry."""

    code = "bad_object"


def read_number(value: object, what: str) -> float:
    """Returns a coordinate or a length.

    Raises:
        ObjectError: it is not a finite number.
    """
    # True and false are integers to Python; NaN is not below anything.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= _LARGEST:
        raise ObjectError(f"{what} is {ascii(value)[:_SHOWN]}, not a number")
    return float(value)


def read_text_number(value: object, what: str) -> float:
    """Returns the number that a text is; see `read_number`."""
    try:
        return read_number(float(str(value)), what)
    except ValueError:
        raise ObjectError(f"{what} is {ascii(value)[:_SHOWN]}, not a number") from None


def check_fraction(number: float, where: str) -> None:
    """Checks that a number is a fraction of the image. Rounding may carry it over the border, where boxes are cut off.

    Raises:
        ObjectError: it is not.
    """
    if not _is_fraction(number):
        raise ObjectError(f"{where}: {number:g} is not a fraction of the image, from 0 to 1")


def _is_fraction(number: float) -> bool:
    return -_BEYOND <= number <= 1 + _BEYOND


@dataclass
class BoxUnit:
    """The unit of the boxes of a set, by the numbers of most of them.

    Attributes:
        fractional: how many boxes can be nothing but fractions of the image: in pixels, they are in one pixel.
        larger: how many boxes have a number that is not a fraction.
    """

    fractional: int = 0
    larger: int = 0

    def add(self, numbers: Sequence[float]) -> None:
        """Counts a box. One of 0 and 1 alone may be either."""
        if not all(map(_is_fraction, numbers)):
            self.larger += 1
        elif not all(number.is_integer() for number in numbers):
            self.fractional += 1

    @property
    def fractions(self) -> bool:
        """Returns whether the numbers are fractions of the image, not pixels."""
        return self.fractional > self.larger


def check_pixels(outline: str | None, box: Sequence[float] | None = None) -> None:
    """Checks that an object in pixels is not within the first one: nobody draws there, and fractions are there.

    Args:
        outline: polygons as JSON that `may_be_fractions`, or `None`.
        box: edges of a box in pixels, or `None`.

    Raises:
        ObjectError: it is.
    """
    numbers = [*(box or ())]
    if outline is not None:
        numbers = [number for ring in json.loads(outline) for number in ring]
    if numbers and all(map(_is_fraction, numbers)) and not all(float(number).is_integer() for number in numbers):
        shown = ", ".join(f"{number:g}" for number in numbers[:4])
        raise ObjectError(f"its coordinates are {shown}, all below 1: they are fractions of the image, not pixels")


def read_points(value: object, what: str, least: int = 3) -> list[tuple[float, float]]:
    """Returns a list of [x, y] pairs.

    Raises:
        ObjectError: it is something else, or has fewer points than `least`.
    """
    if not isinstance(value, list) or len(value) < least:
        count = f"has {len(value)} points" if isinstance(value, list) else f"is {ascii(value)[:_SHOWN]}"
        raise ObjectError(f"{what} {count}; it needs at least {least}")
    if {*map(type, value)} <= {list, tuple} and {*map(len, value)} <= {2}:
        numbers = [*chain.from_iterable(value)]
        # All at once, which takes a third of the time of a call for each. A sum with NaN is not below anything.
        if {*map(type, numbers)} <= _NUMBERS and sum(map(abs, numbers)) <= _LARGEST:
            return list(zip(map(float, numbers[::2]), map(float, numbers[1::2]), strict=True))
    points = []
    for point in value:
        if not isinstance(point, (list, tuple)) or len(point) != 2:
            raise ObjectError(f"{what} has the point {ascii(point)[:_SHOWN]}, not [x, y]")
        points.append((read_number(point[0], what), read_number(point[1], what)))
    return points


def read_side(value: object, what: str) -> int:
    """Returns a height or a width.

    Raises:
        ObjectError: it is not a whole number from 1.
    """
    if type(value) is not int or not 1 <= value <= _LARGEST:
        raise ObjectError(f"{what} is {ascii(value)[:_SHOWN]}, not a number of pixels")
    return value


def read_size(height: object, width: object, what: str) -> tuple[int, int] | None:
    """Returns the height and width that an entry states for its image; `None` where they are unknown.

    Tools leave them out, or write 0 (labelImg) or -1 (VIA) for an image that they have not opened.

    Raises:
        ObjectError: one is not a whole number.
    """
    if any(str(side).strip() in _UNKNOWN for side in (height, width)):
        return None
    return read_side(height, f"{what}height"), read_side(width, f"{what}width")


def read_text_size(height: str, width: str, what: str) -> tuple[int, int] | None:
    """Returns the size that two texts state, such as `350` or `350.0`; see `read_size`."""
    texts = (height.strip().removesuffix(".0"), width.strip().removesuffix(".0"))
    rows, columns = (int(text) if text.isdecimal() else text for text in texts)
    return read_size(rows, columns, what)


def read_mapping(value: object, what: str) -> Mapping[str, Any]:
    """Returns a JSON object.

    Raises:
        ObjectError: it is something else.
    """
    if not isinstance(value, dict):
        raise ObjectError(f"{what} is {ascii(value)[:_SHOWN]}, not an object")
    return value


def read_list(value: object, what: str) -> list[Any]:
    """Returns a JSON list; see `read_mapping`."""
    if not isinstance(value, list):
        raise ObjectError(f"{what} is {ascii(value)[:_SHOWN]}, not a list")
    return value


def read_name(value: object, what: str) -> str:
    """Returns a text that is not blank; see `read_mapping`."""
    if not isinstance(value, str) or not value.strip() or not is_text(value):
        raise ObjectError(f"{what} is {ascii(value)[:_SHOWN]}, not a name")
    return value


def read_id(value: object) -> str:
    """Returns an id as text; empty where it is not an id.

    Some exporters write numbers in quotes, and tables of numbers that may be missing write whole floats.
    """
    if type(value) is int:
        return str(value)
    if isinstance(value, float):
        value = int(value) if value.is_integer() else None
    return str(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else ""


class Fields:
    """The members of an entry. Each is read with its place, for messages: `shape 3: label is 7, not a name`.

    Args:
        value: a JSON object, or the texts of an element or a row.
        where: its place; empty for a whole file.
        texts: whether numbers are texts.

    Raises:
        ObjectError: it is no object. So do all that read a member, where that is something else.
    """

    __slots__ = ("_number", "get", "members", "where")

    def __init__(self, value: object, where: str = "", *, texts: bool = False) -> None:
        self.members, self.where = read_mapping(value, where or "the file"), where
        self.get = self.members.get
        self._number = read_text_number if texts else read_number

    def place(self, name: str) -> str:
        """Returns the place of a member."""
        return f"{self.where}: {name}" if self.where else name

    def number(self, name: str, default: object = None) -> float:
        """Returns a coordinate or a length; see `read_number`."""
        value = self._value(name, default)
        # The place is for messages: to write it takes longer than to read a number.
        if type(value) in _NUMBERS and -_LARGEST <= value <= _LARGEST:
            return float(value)
        return self._number(value, self.place(name))

    def numbers(self, *names: str) -> list[float]:
        """Returns several of them."""
        return [self.number(name) for name in names]

    def name(self, name: str, default: object = None) -> str:
        """Returns a text that is not blank."""
        return read_name(self._value(name, default), self.place(name))

    def listed(self, name: str, default: object = None) -> list[Any]:
        """Returns a list."""
        value = self._value(name, default)
        return value if isinstance(value, list) else read_list(value, self.place(name))

    def points(self, name: str, least: int = 3) -> list[tuple[float, float]]:
        """Returns points; see `read_points`."""
        return read_points(self.get(name), self.place(name), least)

    def size(self, height: str = "height", width: str = "width") -> tuple[int, int] | None:
        """Returns the height and width of an image; see `read_size`."""
        rows, columns = self.get(height), self.get(width)
        if self._number is read_text_number:
            return read_text_size(rows or "", columns or "", self.place(""))
        return read_size(rows, columns, self.place(""))

    def inside(self, name: str, default: object = None) -> Fields:
        """Returns the members of an object."""
        return Fields(self._value(name, default), self.place(name))

    def each(self, name: str, one: str = "", default: object = None) -> Iterator[Fields]:
        """Yields the members of each object of a list, whose place is `name[0]`, or `one 1`."""
        for i, entry in enumerate(self.listed(name, default)):
            yield Fields(entry, self.place(f"{one} {i + 1}" if one else f"{name}[{i}]"))

    def _value(self, name: str, default: object) -> Any:
        """Returns a member; what is empty, or not there, is the default where there is one."""
        value = self.get(name)
        return value if value or default is None else default


def whole_row(line: int, fields: Mapping[str, str]) -> Fields:
    """Returns a row of a table, whose fields are none where their number is another than that of the header.

    Raises:
        ObjectError: they are none.
    """
    if not fields:
        raise ObjectError(f"row {line}: has not as many fields as the header")
    return Fields(fields, f"row {line}", texts=True)


def one_size(sizes: Iterable[tuple[int, int] | None], what: str) -> tuple[int, int] | None:
    """Returns the height and width that the parts of an entry state; `None` where none does.

    Args:
        sizes: of each part, `None` where it states none.
        what: the parts, for messages.

    Raises:
        ObjectError: they differ.
    """
    stated = {size for size in sizes if size is not None}
    if len(stated) > 1:
        raise ObjectError(f"its {what} state several sizes of the image: {' and '.join(map(str, sorted(stated)))}")
    return stated.pop() if stated else None


def load_json(
    path: str, tool: str, data: bytes | None, object_hook: Callable[[dict[str, Any]], Any] | None = None
) -> Any:
    """Reads a file of a tool whole.

    Args:
        path: the file.
        tool: what wrote it.
        data: its bytes, where they were read already.
        object_hook: see `json.loads`.

    Raises:
        UsageError: it is too large, or not JSON.
    """
    try:
        if data is not None:
            return parse_untrusted_json(data.decode("utf-8-sig"), object_hook=object_hook)
        with open_table(path, limits.MOST_JSON_BYTES) as file:
            return parse_untrusted_json(file.read(), object_hook=object_hook)
    except ValueError as error:
        problem = str(error) if isinstance(error, OverBudget) else f"is not JSON in UTF-8 ({error})"
        raise UsageError(f"{path}: {problem}. Export it from {tool} again.") from None


def parse_json(data: bytes) -> Any:
    """Reads the JSON of one image.

    Raises:
        ObjectError: it is not JSON.
    """
    try:
        return parse_untrusted_json(data.decode("utf-8-sig"))
    except OverBudget as error:
        raise ObjectError(str(error)) from None
    except ValueError as error:
        raise ObjectError(f"it is not JSON in UTF-8 ({str(error)[:_SHOWN]})") from None
