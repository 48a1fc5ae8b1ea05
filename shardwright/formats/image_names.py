"""Which image a table means: by its whole key, or by file name, by either without extension where one image fits.

One rule for all formats: a name is compared in NFC, with `/` and without `./`, and decoded where it is percent-encoded.
A path of another machine, `/home/ann/photos/cats/1.jpg`, means the image whose whole key is its end, `cats/1.jpg`;
else the only one whose key has the longest end in common with it, such as the file name. Part of a path, `cats/1.jpg`,
means the only image whose key ends so. In the annotations of tools, of which an image has one, it may also be the image
whose whole key is its end, `1.jpg`. An extension may differ in upper and lower case, where one image fits then. A
number may lack the zeros before it, or have `.0` behind it, as spreadsheets and tables of floats write it.

If the table names no image by path or file name, its names are parts of paths, and the pattern is detected.
UW-Madison's `case123_day20_slice_0001` is `case123/case123_day20/scans/slice_0001_266_266_1.50_1.50.png`. A name is cut
at its underscores, and the pieces are searched for in a path, one after the other. The text around and between them,
with any digits in place of its digits, is the pattern. It counts only where it finds no name twice.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import combinations, islice
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from shardwright.config.limited_pattern import LimitedPattern
from shardwright.config.split import split_word, stated_split
from shardwright.errors import UsageError
from shardwright.storage import is_remote, list_names
from shardwright.storage.listing import KeyIndex

AMBIGUOUS = -1
_MOST_PIECES = 3
# Names that patterns are made of, and paths that the pieces of each are looked for in.
_TRIED_NAMES, _TRIED_PATHS = 3, 1000
# Longer ones are cut in too many ways.
_MOST_UNDERSCORES = 12
# The last folders above the images, which are of the set, and the names of those that are wherever they are.
_NEAR = 2
_FAR = re.compile(r"train|val|(?:train|val|test)(?:20)?\d\d")
_ABSOLUTE = re.compile(r"/|~|\.\./|[A-Za-z]:/|[a-z][a-z0-9+.-]*://")
# Label Studio's name of a file that was uploaded.
_UPLOADED = re.compile(r"(?:^|/)upload/(?:[^/]+/)*[0-9a-f]{8}-([^/]+)$")
_WHOLE_FLOAT = re.compile(r"([0-9]+)\.0+")
_DIGITS = re.compile(r"[0-9]+")
# No piece begins or ends within a word of the path: case12 is not in case123.
_BEGIN, _END = r"(?<![^\W_])", r"(?![^\W_])"


class NameIndex:
    """Finds keys by the names that tables use.

    Args:
        keys: sorted keys of the listing.
        skip: positions that are not images: found by their whole key, since a table may name them, never by file name.
        pattern: `input.labels.key_regex`: images are named by what the groups of this regular expression find in
            their keys, joined by `_`, and in no other way.
        exact: whether images are named by their whole keys and in no other way, as in an export of ours.
        root: the folder that the keys are below; names may begin with the last parts of its path.
        first: folders in which names are sought first.

    Attributes:
        pattern: the same.

    Raises:
        UsageError: the pattern finds the same name in two keys, or none in any.
    """

    def __init__(
        self,
        keys: Sequence[str],
        skip: frozenset[int] = frozenset(),
        pattern: str | None = None,
        *,
        exact: bool = False,
        root: str = "",
        first: Sequence[str] = (),
    ) -> None:
        self._keys, self._skip = keys, skip
        self._first, self._root, self._exact = first, root, exact
        self.pattern = pattern
        self._by_pattern = None if pattern is None else _by_pattern(keys, skip, pattern)
        self._last: tuple[str, int | None] = ("", None)
        self._next = 0
        self._index: KeyIndex | None = None
        self._lower: dict[str, str] | None = None
        self._by_form: dict[Callable[[str], str], dict[str, int]] = {}
        self._named_by_end: dict[int, str] = {}
        self._by_base: dict[str, list[int]] | None = None

    def find(self, name: str) -> int | None:
        """Returns the position of the key that `name` means, or `None`.

        Raises:
            UsageError: a bare file name, or a name without extension, that several images have.
        """
        if self._by_pattern is not None:
            return self._by_pattern.get(unicodedata.normalize("NFC", name.strip()))
        if self._last[0] != name:  # Rows about an image are mostly consecutive.
            found = None if self._first else self._at(name)
            self._last = (name, self._find(name) if found is None else found)
        return self._last[1]

    def _find(self, name: str) -> int | None:
        found = None
        if self._first:
            found = next((at for folder in self._first if (at := self._at(f"{folder}/{name}")) is not None), None)
        found = self._at(name) if found is None else found
        if found is not None or self._exact:
            return found
        return next((at for one in _spellings(name) if (at := self._find_spelling(one)) is not None), None)

    def _find_spelling(self, name: str) -> int | None:
        found = self._at(name)
        if found is None and "/" in name:
            below = below_root(name, self._root)
            found = self._at(below) if below else None
        if found is None and _ABSOLUTE.match(name):
            found = self._by_end(name)
        if found is not None or not name:
            return found
        if whole := _WHOLE_FLOAT.fullmatch(name):
            return self._find(whole[1])
        forms = (key_stem, _with_lower_ending) if "/" in name else (_base, key_stem, base_stem, _base_with_lower_ending)
        # Spreadsheets take zeros off.
        for form in (*forms, _number) if name.isdecimal() else forms:
            sought = form(name) if form in (_with_lower_ending, _base_with_lower_ending, _number) else name
            if form not in self._by_form:
                self._by_form[form] = index_keys(self._keys, self._skip, form)
            found = self._by_form[form].get(sought)
            if found == AMBIGUOUS:
                raise self._ambiguous(name, [i for i, key in enumerate(self._keys) if form(key) == sought])
            if found is not None:
                return found
        return self._by_part(name) if "/" in name and not _ABSOLUTE.match(name) else None

    def find_end(self, name: str) -> int | None:
        """Returns the position of the key that is the end of a path from an unknown folder: `1.jpg` of `cats/1.jpg`.

        Only who notices that two names mean one image may take it for that.

        Raises:
            UsageError: see `find`.
        """
        path = next(_spellings(name))
        return self._by_end(path) if "/" in path and self._by_pattern is None and not self._exact else None

    def _ambiguous(self, name: str, fitting: Sequence[int]) -> UsageError:
        one, other = [self._keys[i] for i in fitting if i not in self._skip][:2]
        return UsageError(
            f"The annotations name {name!r}, which could be {one} or {other}. Write the whole relative path."
        )

    def _by_part(self, path: str) -> int | None:
        """Returns the position of the only key that ends with a relative path, with its extension or without.

        Raises:
            UsageError: several keys do.
        """
        for form in (_with_lower_ending, key_stem):
            sought = "/" + (_with_lower_ending(path) if form is _with_lower_ending else path)
            fitting = [i for i in self._alike_base(path) if f"/{form(self._keys[i])}".endswith(sought)]
            if len(fitting) > 1:
                raise self._ambiguous(path, fitting)
            if fitting:
                return fitting[0]
        return None

    def _by_end(self, path: str) -> int | None:
        """Returns the position of the key that a path from another folder means.

        That is the longest end of the path that is a whole key; else, of another machine, the only key that has most
        parts in common with its end. A path of the `val` images is none of those in a folder `train`, however far
        above them that is.

        Raises:
            UsageError: another path was found to mean the same image.
        """
        cuts = (i for i, character in enumerate(path) if character == "/")
        ends = ((i, at) for i in cuts if (at := self._at(path[i + 1 :])) is not None and at not in self._skip)
        cut, found = next(ends, (0, None))
        if found is None and _ABSOLUTE.match(path):
            parts = _with_lower_ending(path).split("/")[::-1]
            alike = {
                i: _same_start(parts, _with_lower_ending(self._keys[i]).split("/")[::-1])
                for i in self._alike_base(path)
            }
            fitting = [i for i, length in alike.items() if length == max(alike.values())]
            found = fitting[0] if len(fitting) == 1 and alike[fitting[0]] else None
            cut = len("/".join(path.split("/")[: -alike[found]])) if found is not None else 0
        if found is None:
            return None
        below = "/".join(self._keys[found].split("/")[: -path[cut:].count("/") or None])
        if len({stated_split(below) or self._split_above, stated_split(path[:cut])} - {None}) > 1:
            return None
        if self._named_by_end.setdefault(found, path) != path:
            raise UsageError(
                f"The annotations name {self._named_by_end[found]!r} and {path!r}, and both could be "
                f"{self._keys[found]}. Write paths relative to the folder of the images."
            )
        return found

    @cached_property
    def _split_above(self) -> str | None:
        """Returns the split that the folders above all images state, the nearest first.

        Far above, folders belong to projects and people: one called `train`, `val` or `test2017` is of the set there,
        one called `test` or `training` is not. The name `test_set` is where a `training_set` is next to it.
        """
        folders = self._root.rstrip("/").split("/")
        for depth in range(len(folders) - 1, 2 if is_remote(self._root) else 0, -1):
            near = depth >= len(folders) - _NEAR
            if (near or _FAR.fullmatch(folders[depth])) and (split := split_word(folders[depth])):
                return split
            if near and (split := stated_split(folders[depth])):
                beside = set(map(stated_split, list_names("/".join(folders[:depth]))))
                if beside - {None, split}:
                    return split
        return None

    def _alike_base(self, path: str) -> Sequence[int]:
        """Returns the positions of the images whose file names are that of a path, whatever their extensions."""
        if self._by_base is None:
            self._by_base = {}
            for i, key in enumerate(self._keys):
                if i not in self._skip:
                    self._by_base.setdefault(base_stem(key), []).append(i)
        return [
            *self._by_base.get(base_stem(path), ()),
            *(self._by_base.get(_base(path), ()) if "." in _base(path) else ()),
        ]

    def alike(self, name: str) -> str:
        """Returns what may help about a name that means no image: one like it in case or file name; or nothing."""
        if self._lower is None:
            self._lower = {}
            for i, key in enumerate(self._keys):
                if i not in self._skip:
                    self._lower.setdefault(_base(key).lower(), key)
        base = _base(name.strip().replace("\\", "/"))
        found = self._lower.get(base.lower())
        same = "has the same file name in another folder" if found and _base(found) == base else ""
        return f"; {found} {same or 'differs in upper and lower case'}" if found else ""

    def _at(self, key: str) -> int | None:
        """Returns the position of a whole key. Most tables are sorted: the key after the last one comes first."""
        place = self._next
        if place >= len(self._keys) or self._keys[place] != key:
            self._index = self._index or KeyIndex(self._keys)
            place = self._index.find(key)
            if place < 0:
                return None
        self._next = place + 1
        return place


class FileEnds:
    """Finds files by the paths that annotations name, by the longest end of the path that only one file has.

    Args:
        names: the files, below one folder.
        place: what errors call that folder.
    """

    def __init__(self, names: Sequence[str], place: str) -> None:
        self._place = place
        self._by_base: dict[str, list[str]] = {}
        for name in names:
            self._by_base.setdefault(_base(name), []).append(name)
        self._named: dict[str, str] = {}

    def find(self, name: str) -> str | None:
        """Returns the file that a path means, `None` where none has its file name.

        Raises:
            UsageError: two files fit, or two different paths mean one file.
        """
        for path in _spellings(name):
            parts = path.split("/")[::-1]
            ends = {one: _same_start(parts, one.split("/")[::-1]) for one in self._by_base.get(parts[0], ())}
            fitting = [one for one, length in ends.items() if length == max(ends.values())]
            if len(fitting) > 1:
                raise UsageError(
                    f"The annotations name the file {ascii(name)[:80]}, which could be {fitting[0]} or {fitting[1]} "
                    f"below {self._place}. Write the relative path."
                )
            for file in fitting:
                other = self._named.setdefault(file, path)
                if other != path:
                    raise UsageError(
                        f"The annotations name the files {ascii(other)[:80]} and {ascii(name)[:80]}, and below "
                        f"{self._place} only {file} fits both. Add the missing file, or write the relative path."
                    )
                return file
        return None


def _spellings(name: str) -> Iterator[str]:
    """Yields a name in NFC, with `/` and without `./`; then without percent encoding, and before an upload."""
    plain = unicodedata.normalize("NFC", name.strip().replace("\\", "/"))
    while plain.startswith("./"):
        plain = plain[2:]
    yield plain
    if "%" in plain and (decoded := unicodedata.normalize("NFC", unquote(plain))) != plain:
        yield decoded
    if uploaded := _UPLOADED.search(plain):
        yield uploaded[1]


def _same_start(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def below_root(name: str, root: str) -> str:
    """Returns a name without the last parts of a folder: `x.jpg` of `JPEGImages/x.jpg`, which is below `JPEGImages`.

    Returns:
        An empty text if the name does not begin with them.
    """
    folder = f"/{root.strip('/')}"
    cuts = (i for i, character in enumerate(name) if character == "/")
    return next((name[cut + 1 :] for cut in cuts if folder.endswith(f"/{name[:cut]}")), "")


def index_keys(keys: Sequence[str], skip: frozenset[int], form: Callable[[str], str]) -> dict[str, int]:
    """Returns the shorter form of a key -> its position, `AMBIGUOUS` where several keys have it."""
    named: dict[str, int] = {}
    for i, key in enumerate(keys):
        if i not in skip:
            short = form(key)
            named[short] = AMBIGUOUS if short in named else i
    return named


def address_path(address: object) -> str:
    """Returns the path of an address, on a server or of a file; empty where it is no text."""
    return unquote(urlsplit(address.replace("\\", "/")).path) if isinstance(address, str) else ""


def is_text(name: str) -> bool:
    """Returns whether UTF-8 can encode a name: JSON can escape halves of characters."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _by_pattern(keys: Sequence[str], skip: frozenset[int], regex: str) -> dict[str, int]:
    pattern, named = LimitedPattern(regex, "input.labels.key_regex"), dict[str, int]()
    for i, key in enumerate(keys):
        match = pattern.search(key) if i not in skip else None
        if match is None:
            continue
        name = "_".join(filter(None, match.groups()))
        if named.setdefault(name, i) != i:
            raise UsageError(
                f"input.labels.key_regex: {regex!r} finds {name!r} in both {keys[named[name]]} and {key}. "
                "Add a group for the part that differs."
            )
    if not named:
        shown = ", ".join([key for i, key in enumerate(keys) if i not in skip][:3])
        raise UsageError(f"input.labels.key_regex: {regex!r} finds nothing in any image: {shown}. Change the pattern.")
    return named


def _base(key: str) -> str:
    return key.rpartition("/")[2]


def key_stem(key: str) -> str:
    """Returns a key without its extension."""
    return os.path.splitext(key)[0]


def base_stem(key: str) -> str:
    """Returns the file name of a key without its extension."""
    return key_stem(_base(key))


def _with_lower_ending(key: str) -> str:
    """Returns a key whose extension is in lower case: programs on Windows write `a.jpg` for a file `a.JPG`."""
    stem, ending = os.path.splitext(key)
    return stem + ending.lower()


def _base_with_lower_ending(key: str) -> str:
    return _with_lower_ending(_base(key))


def _number(key: str) -> str:
    """Returns the number that a file name is, without zeros before it; empty where it is none."""
    stem = base_stem(key)
    return stem.lstrip("0") or "0" if stem.isdecimal() else ""


class KeyPattern(NamedTuple):
    """A pattern for `input.labels.key_regex`.

    Attributes:
        pattern: the regular expression.
        pieces: how many groups it has.
        found: how many of the names it finds an image for.
    """

    pattern: str
    pieces: int
    found: int


def detect_key_pattern(names: Sequence[str], keys: Sequence[str], skip: frozenset[int]) -> KeyPattern | None:
    """Finds the pattern by which a table names images.

    Args:
        names: different names of the table, none of which is a path or a file name.
        keys: sorted keys of the listing.
        skip: positions that are not images.

    Returns:
        The pattern that finds most of the names; `None` where none finds any, or two find other images for a name.
    """
    candidates = dict.fromkeys(pattern for name in names[:_TRIED_NAMES] for pattern in _patterns(name, keys, skip))
    best = KeyPattern("", 0, 0)
    meant: list[int | None] = []
    unsure = False
    for pattern in candidates:
        try:
            index = NameIndex(keys, skip, pattern)
        except UsageError:
            continue  # Two images of one name, or none of any.
        places = [index.find(name) for name in names]
        found = len(places) - places.count(None)
        if found > best.found:
            best, meant, unsure = KeyPattern(pattern, re.compile(pattern).groups, found), places, False
        elif found == best.found > 0:
            unsure = unsure or places != meant
    return None if unsure or not best.found else best


def _patterns(name: str, keys: Sequence[str], skip: frozenset[int]) -> Iterator[str]:
    """Yields a pattern for each way to cut a name whose pieces are in a path, few pieces first."""
    cuts = [place for place, character in enumerate(name) if character == "_"]
    if len(cuts) > _MOST_UNDERSCORES:
        return
    words = name.split("_")
    holding = (key for i, key in enumerate(keys) if i not in skip and all(word in key for word in words))
    paths = list(islice(holding, _TRIED_PATHS))
    for pieces in range(1, _MOST_PIECES + 1):
        for chosen in combinations(cuts, pieces - 1):
            begins = [0, *(place + 1 for place in chosen)]
            parts = [name[begin:end] for begin, end in zip(begins, [*chosen, len(name)], strict=True)]
            if not all(parts):
                continue
            sought = re.compile(rf"{_BEGIN}{rf'{_END}(.+?){_BEGIN}'.join(map(re.escape, parts))}{_END}")
            match = next(filter(None, map(sought.search, paths)), None)
            if match is not None:
                groups = [f"({_any_digits(part)})" for part in parts]
                between = [*map(_any_digits, match.groups()), ""]
                yield "".join(group + gap for group, gap in zip(groups, between, strict=True))


def _any_digits(text: str) -> str:
    """Returns a regular expression for a text, with any digits in the places of its digits."""
    return r"\d+".join(map(re.escape, _DIGITS.split(text)))


def quoted(pattern: str) -> str:
    """Returns a pattern as YAML takes it."""
    return "'" + pattern.replace("'", "''") + "'"
