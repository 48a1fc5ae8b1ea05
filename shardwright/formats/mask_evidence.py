"""The meaning of the values of masks, detected in every mask of a set, and what contradicts it, as a question.

| evidence | meaning |
|---|---|
| palettes show one number in different colors, or some files have colors | colors, not the numbers of the palette |
| palettes of grays | gray values |
| 0 is not black, but another number is; a TIFF stores white as 0 | a question: stored, or displayed |
| edges are ramps; many values that cover no area; lossy compression | a question: a threshold |
| 255 next to other values, not drawn around them | a question: a class, ignored, or the same class |
| values of a few single pixels | a question: a class, or the background |
| 255 covers the frame of nearly all masks, and is most of them | a question: which of both is the object |

Nothing is asked where `input.classes`, `input.labels.values` and `input.labels.threshold` state it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shardwright.config.input import AUTO, DISPLAYED, REFUSE, STORED
from shardwright.dataset.manifest import IGNORED
from shardwright.errors import ConfigError, Reading, UsageError
from shardwright.formats.base import IGNORE, shorten
from shardwright.formats.mask_values import (
    ONE_CLASS,
    WHITE,
    WHITE_16,
    MaskFiles,
    ValueMap,
    black_is_not_0,
    have_ids,
    listed_ids,
    map_ids,
    map_values,
)
from shardwright.images.colors import COLOR, show_value
from shardwright.masks.mask_pixels import MaskFileError, MaskImage, gray_of
from shardwright.masks.mask_statistics import MaskPixels, MaskTotals, measure, measure_palette
from shardwright.running.progress import counted
from shardwright.storage import map_threads, readers

_CLASSES, _VALUES = "input.classes", "input.labels.values"
_UNLISTED, _THRESHOLD = "input.labels.unlisted_values", "input.labels.threshold"
_GRAY, _PALETTE, _COLORS, _OPACITY = "gray", "palette", "colors", "opacity"
_SHOWN_COLORS = 5
# More colors are not classes: masks were smoothed, or compressed with loss. And fewer different ones are not counted.
_MOST_COLORS, _COUNTED_COLORS = 256, 4096
# Gray levels begin here; numbers of classes are smaller. That far from black and from white is still an edge.
_LEVELS, _NOISE = 32, 16
# A question names fewer classes than these; more values than these that cover no area are edges.
_MOST_NAMED, _MOST_EDGES, _MOST_LEVELS = 12, 8, 4
_NEARLY_ALL = 0.9
# So many masks are looked at before all of them.
_TRIED = 32
# Less than that part of the pixels of 255 is not a class next to it.
_RARE = 0.01


def detect_values(files: MaskFiles, names: list[str], where: str, classes: Mapping[str, int | None] | None) -> ValueMap:
    """Detects the meaning of the values of masks, from `input.classes` and all of the masks.

    Args:
        files: reads them.
        names: the masks.
        where: what errors call their folder; empty where the names of masks are enough.
        classes: `input.classes`.

    Raises:
        UsageError: a value is not a class, or the masks contradict what they would be taken for; with the readings.
            Or everything in them would be background or ignored, though not by `input.classes`.
    """
    evidence = MaskEvidence(files, where, classes)
    if classes is not None and have_ids(classes):
        colors = any(number is not None and number >= COLOR for number in classes.values())
        if colors or (files.values != AUTO and not files.thresholds and WHITE in classes.values()):
            mapped = map_ids(classes)
            check_some_class(files.meaning(mapped), names, where, classes)
            return mapped
    evidence.look(names)
    mapped = evidence.value_map()
    evidence.check_some(mapped.labels, mapped.threshold)
    return mapped


def check_some_class(
    files: MaskFiles, names: Sequence[str], where: str, classes: Mapping[str, int | None] | None
) -> None:
    """Checks that masks which hold anything hold a class: a few first, of which an early one mostly does.

    Args:
        files: reads them, with the meaning of their values.
        names: the masks.
        where: as in `detect_values`.
        classes: `input.classes`.

    Raises:
        UsageError: everything in them would be background or ignored, though not by `input.classes`; with readings.
    """
    if any(map(files.classes, names[:: max(1, len(names) // _TRIED)])):
        return
    evidence = MaskEvidence(files, where, classes)
    evidence.look(names)
    evidence.check_some(files.labels, next(iter(files.thresholds.values()), 0))


@dataclass
class MaskEvidence:
    """All masks of a set.

    Attributes:
        files: reads them.
        where: their folder, for messages.
        classes: `input.classes`.
        stored: their pixels as the numbers in the files.
        displayed: their pixels as a viewer shows them.
    """

    files: MaskFiles
    where: str
    classes: Mapping[str, int | None] | None
    stored: MaskTotals = field(default_factory=MaskTotals)
    displayed: MaskTotals = field(default_factory=MaskTotals)
    _broken: list[str] = field(default_factory=list)
    _lossy: list[str] = field(default_factory=list)
    _unsure: list[str] = field(default_factory=list)
    _kinds: Counter[str] = field(default_factory=Counter)
    _first: dict[str, str] = field(default_factory=dict)
    _shown_as: dict[int, set[int]] = field(default_factory=dict)
    _opacities: set[int] = field(default_factory=set)
    _wide: set[int] = field(default_factory=set)
    _numbers: set[int] = field(default_factory=set)
    _inverted: bool = False

    def look(self, names: Sequence[str]) -> None:
        """Reads the masks, and counts.

        Raises:
            UsageError: none can be read, or they have thousands of colors.
        """
        looked = map_threads(self._look, names, readers(self.files.root))
        for name, (mask, pixels, found) in zip(names, looked, strict=True):
            place = os.path.join(self.where, self.files.shown(name))
            if mask is None:
                self._broken.append(f"{place}: {found}")
                continue
            self._add(place, mask, *pixels)
            if found or mask.inverted:
                self._unsure.append(place)
            if len(self.displayed.pixels) > _COUNTED_COLORS and self._kinds[_COLORS]:
                raise self._soft_colors()
        if names and len(self._broken) == len(names):
            raise UsageError(
                f"input.labels.path: {counted(len(names), 'mask')}, of which none can be read. {self._broken[0]}."
            )
        ids = set(self._ids().values())
        if self._wide - {0} == {WHITE} or (not self._wide - {0} and WHITE in ids and 1 not in ids):
            # White of files of 1 bit, as `MaskFiles.read` has it.
            self.stored.rename(1, WHITE)
            self.displayed.rename(1, WHITE)

    def _look(self, name: str) -> tuple[MaskImage | None, tuple[MaskPixels, ...], bool | str]:
        """Returns a mask without its pixels, these as stored and as displayed, and whether 0 is not black.

        Of a mask that cannot be read it returns why.
        """
        try:
            mask = self.files.decode(name)
        except MaskFileError as error:
            return None, (), str(error)  # The ledger has the reason, too, when the image is due.
        if mask.colored:
            mask = gray_of(mask) or mask
        stored = displayed = measure(mask.stored())
        if mask.inverted:
            displayed = measure(mask)
        elif mask.palette:
            shown = mask.displayed()
            displayed = measure_palette(stored, mask) if shown.colored else measure(shown)
        return mask._replace(values=mask.values[:0]), (stored, displayed), black_is_not_0(mask)

    def _add(self, place: str, mask: MaskImage, stored: MaskPixels, displayed: MaskPixels) -> None:
        self.stored.add(place, stored)
        self.displayed.add(place, displayed)
        kind = _COLORS if mask.colored else _PALETTE if mask.palette else _GRAY if mask.opacity is None else _OPACITY
        if stored.values.any():  # A mask of the background alone may be of any kind.
            self._kinds[kind] += 1
            self._first.setdefault(kind, place)
        if mask.opacity is not None:
            self._opacities.add(mask.opacity)
        if mask.lossy:
            self._lossy.append(place)
        self._inverted |= mask.inverted
        if kind == _GRAY:
            self._numbers.update(value for value in stored.values.tolist() if value)
        if mask.bits > 1:
            self._wide.update(stored.values.tolist())
        for value in stored.values.tolist() if mask.palette else ():
            self._shown_as.setdefault(value, set()).add(mask.palette[value] if value < len(mask.palette) else COLOR)

    def value_map(self) -> ValueMap:
        """Returns what the values mean.

        Raises:
            UsageError: several meanings fit, or none; with the readings.
        """
        self._check_kinds()
        if self.files.thresholds:
            return self._above(next(iter(self.files.thresholds.values())))
        displayed = self._is_displayed()
        totals = self.displayed if displayed else self.stored
        if any(value >= COLOR for value in totals.values):
            raise self._colors()
        if self._lossy:
            raise self._soft(totals, f"{self._lossy[0]} was compressed with loss")
        if not have_ids(self.classes):
            self._check_edges(totals)
        mapped = self._map(totals)
        return mapped._replace(displayed=displayed and any(colors != {v} for v, colors in self._shown_as.items()))

    # --- what a pixel is

    def _check_kinds(self) -> None:
        """Raises `UsageError` where some files have their mask in the opacity of their pixels, and others do not."""
        others = [kind for kind in self._kinds if kind != _OPACITY]
        if self._kinds[_OPACITY] and (others or len(self._opacities) > 1):
            other = f"{self._first[others[0]]} has {others[0]}" if others else "colors differ between the files"
            raise UsageError(
                f"input.labels.path: {self._first[_OPACITY]} has its mask in the opacity of its pixels, and {other}. "
                "Save all masks in one way, e.g. as gray PNG."
            )

    def _is_displayed(self) -> bool:
        """Returns whether pixels are what a viewer shows, and not what is stored."""
        if self.files.values != AUTO:
            return self.files.values == DISPLAYED
        if self._kinds[_COLORS]:
            return True
        if not self._kinds[_PALETTE] and not self._inverted:
            return False
        ids = {} if self.classes is None else self._ids()
        fits = [set(totals.values) <= {*ids.values(), WHITE} for totals in (self.stored, self.displayed)]
        if fits == [False, True] or (fits == [True, False] and self._inverted):
            return fits[1]
        different = [value for value, colors in self._shown_as.items() if len(colors) > 1]
        # No more colors than numbers: a program orders each palette anew.
        reordered = len(set().union(*self._shown_as.values())) <= len(self._shown_as) + 1
        if different and (ids or not reordered):
            several = counted(len(self._shown_as[different[0]]), "color")
            raise self._either(
                f"their palettes show {different[0]} in {several}, so the numbers in the files may not be the classes"
            )
        if different:
            return True
        if self._numbers and not self._inverted:
            among = [set(totals.values) <= self._numbers for totals in (self.stored, self.displayed)]
            if among[0] != among[1]:
                return among[1]
        if self._unsure:
            raise self._either(
                f"{counted(len(self._unsure), 'file stores', 'files store')} black as another number than 0 "
                f"({self._unsure[0]}), so either may be the background"
            )
        if any(value >= COLOR for value in self.displayed.values) or self.displayed.pixels == self.stored.pixels:
            return False
        if ids and fits == [True, True]:
            raise self._either("their palettes are gray, and input.classes has the numbers and the gray values")
        return not fits[0]

    def _either(self, problem: str) -> UsageError:
        """Returns the error for numbers in the files that a viewer shows as something else."""
        readings = []
        for meaning, totals in ((STORED, self.stored), (DISPLAYED, self.displayed)):
            options: dict[str, Any] = {_VALUES: meaning}
            if any(value >= COLOR for value in totals.values):
                options[_CLASSES] = _named_colors(totals.values)
            parts = ", ".join(f"{show_value(value)} {totals.share([value])}" for value in totals.values[:_SHOWN_COLORS])
            word = "the numbers in the files" if meaning == STORED else "what a viewer shows"
            readings.append(Reading(f"{word}: {parts}", options))
        return UsageError(f"masks: {problem}. Set {_VALUES}: {STORED} or {DISPLAYED}.").with_readings(*readings)

    def _colors(self) -> UsageError:
        """Returns the error for colors that are not explained; names those that cover most pixels."""
        totals = self.displayed
        numbers = [value for value in totals.values if 0 < value < COLOR]
        if totals.soft or len(totals.pixels) > _MOST_COLORS:
            return self._soft_colors()
        values = [value for value, _ in totals.pixels.most_common() if value % COLOR]
        most = list(dict.fromkeys(_color(value) for value, _ in totals.pixels.most_common()))
        place = next(totals.first[value] for value in values if value >= COLOR)
        error = colors_error(place, most[:_SHOWN_COLORS])
        if [value for value in numbers if value != WHITE]:
            number = f"{totals.first[numbers[0]]} holds numbers such as {numbers[0]}"
            return UsageError(f"input.labels.path: {number}, and {place} colors. Save all masks in one way.")
        readings = [Reading("every color but black is a class", {_CLASSES: _named_colors(list(map(_color, values)))})]
        if numbers and self._name():
            readings.append(_one_class(totals, values, "all pixels that are not black", 1))
        return error.with_readings(*readings)

    def _soft_colors(self) -> UsageError:
        """Returns the error for colors of edges: only those that cover areas can be classes."""
        totals = self.displayed
        areas = sorted(totals.solid(), key=totals.pixels.__getitem__, reverse=True)
        solid = [value for value in areas if totals.pixels[value] >= _RARE * totals.pixels[areas[0]]]
        place = totals.soft[0] if totals.soft else self._first[_COLORS]
        error = UsageError(
            f"masks: {len(totals.pixels)} colors, as edges have them that were smoothed or compressed with loss "
            f"({place}). Name those of the classes in input.classes, and set {_UNLISTED} for the others."
        )
        if not solid or len(solid) > _MOST_NAMED:
            return error
        named = _named_colors(solid)
        rest = totals.share(set(totals.values) - set(solid))
        ignored = f"{len(solid)} classes, and other colors are ignored ({rest})"
        return error.with_readings(
            Reading(ignored, {_CLASSES: named, _UNLISTED: "ignore"}),
            Reading("the same, and other colors are background", {_CLASSES: named, _UNLISTED: "background"}),
        )

    # --- what a number is

    def _above(self, threshold: int) -> ValueMap:
        """Returns the only class: all pixels from a threshold on."""
        if self._unsure and self.files.values == AUTO:
            self._is_displayed()
        totals = self.stored if self.files.values == STORED else self.displayed
        names = tuple(name for name in self.classes or {ONE_CLASS: None} if name != IGNORED)
        if len(names) != 1:
            problem = f"{threshold}, but each mask holds {len(names)} classes: {shorten(names)}"
            raise ConfigError(_THRESHOLD, problem, "Remove it, or name one class.")
        share = totals.share(value for value in totals.values if _level(value, threshold) >= threshold)
        note = f"masks: {names[0]} are the pixels from {threshold} on, {share}"
        return ValueMap(names, {0: None}, (note,), threshold=threshold)

    def _check_edges(self, totals: MaskTotals) -> None:
        """Raises `UsageError` where values are those of edges, or one of a class may be something else."""
        values = totals.values
        edges = [value for value in values if value not in set(totals.solid())]
        if totals.soft:
            raise self._soft(
                totals, f"{counted(len(totals.soft), 'mask has', 'masks have')} soft edges ({totals.soft[0]})"
            )
        if len(edges) >= _MOST_EDGES:
            raise self._soft(totals, f"{len(edges)} of {len(values)} values cover no area ({totals.first[edges[0]]})")
        if WHITE_16 in values and len(values) > 1:
            raise self._white(totals, WHITE_16)
        border = totals.white_is_border and min(values) < _LEVELS
        if len(values) > 1 and values[-1] == WHITE and not border and WHITE not in self._ids().values():
            raise self._white(totals, WHITE)
        if self.classes is None and (stray := totals.stray()):
            raise self._stray(totals, stray)
        if self.classes is None or len(self.classes) == 1:
            self._check_frame(totals)

    def _soft(self, totals: MaskTotals, problem: str) -> UsageError:
        """Returns the error for values of edges."""
        values, top, name = totals.values, max(totals.values, default=0), self._name()
        solid = [value for value in totals.solid() if totals.pixels[value] >= _RARE * totals.pixels[top]]
        # Some gray levels are classes, and what lies between them is their edges alone.
        areas = sum(totals.pixels[value] for value in solid)
        edges = sum(totals.pixels[value] for value in values) - areas
        far = all(upper - lower >= _LEVELS for lower, upper in zip([0, *solid], solid, strict=False))
        apart = far and 1 < len(solid) <= _MOST_NAMED and edges <= areas
        readings = []
        if name and top >= _LEVELS and set(solid) <= {top, *([WHITE] if top == WHITE_16 else [])}:
            half = (top + 1) // 2 if {WHITE, WHITE_16} - set(values) else 128
            for least in (half, 1) if min(values) > _NOISE and not self._lossy else (half,):
                above = [value for value in values if _level(value, least) >= least]
                readings.append(_one_class(totals, above, f"the pixels from {least} on", least))
            between = totals.share(value for value in values if value != top)
            options = {_CLASSES: {name: top}, _UNLISTED: "ignore"}
            if not self._lossy:
                readings.insert(1, Reading(f"one class of {top}; what lies between is ignored: {between}", options))
        elif self.classes is None and apart and not self._lossy:
            readings += _with_others(f"{len(solid)} classes", _named(solid), "what lies between")
        if readings and len(values) <= _MOST_LEVELS:
            readings.append(Reading("every value is a class", {_CLASSES: _named(values)}))
        found = shorten([str(value) for value in [0, *values]], _MOST_NAMED)
        fix = "Save the masks as PNG, without smoothing"
        if any(_THRESHOLD in reading.options for reading in readings):
            fix = f"Set {_THRESHOLD}: {(top + 1) // 2} for one class"
        if not self._lossy:
            fix += ", or write input.classes as {name: value} of the values that are classes"
        message = f"masks: the values {found} are not numbers of classes: {problem}. {fix}."
        return UsageError(message).with_readings(*readings)

    def _white(self, totals: MaskTotals, white: int) -> UsageError:
        """Returns the error for 255, which may be a class, the same class in other files, or ignored."""
        lower = [value for value in totals.values if value < white] or [0]
        rare = sum(totals.pixels[value] for value in lower) < _RARE * totals.pixels[white]
        levels, framed = min(lower) >= _LEVELS, self._is_framed(totals)
        # What surrounds the objects of nearly all masks is not a part of them.
        name = None if framed else self._name()
        readings = []
        if name and (not totals.mixed or white == WHITE_16):
            readings.append(_one_class(totals, totals.values, "all pixels that are not 0", 1))
        if name and (rare or levels) and white == WHITE:
            above = [value for value in totals.values if value >= 128]
            readings.append(_one_class(totals, above, "the pixels from 128 on", 128))
        if len(totals.values) <= _MOST_NAMED:
            ids: dict[str, int | None] = dict(self._ids())
            further = [value for value in totals.values if value not in ids.values()] if ids else totals.values
            share = f"{further[-1]} {{}}: {totals.share(further[-1:])}"
            readings.append(Reading(share.format("is a class"), {_CLASSES: {**ids, **_named(further)}}))
            if not rare:
                classes: dict[str, int | None] = {**ids, **_named(further[:-1]), IGNORED: further[-1]}
                readings.append(Reading(share.format("is ignored"), {_CLASSES: classes}))
            if framed:
                classes = {**_named([0]), **(ids or _named(lower))}
                around = f"{white} is the background, and 0 is a class: {totals.share([0])}"
                readings.insert(0, Reading(around, {_CLASSES: classes, _UNLISTED: "background"}))
        place = totals.first[lower[0]]
        how = "never in the same mask" if not totals.mixed else "not drawn around them"
        shown = shorten([str(value) for value in lower], _SHOWN_COLORS)
        return UsageError(
            f"masks: {white} is next to {shown} ({place}), {how}, so it may be a class, the same class, or pixels to "
            f"ignore. Write input.classes as {{name: value}} with {white}, called {IGNORED} if it is ignored, or set "
            f"{_THRESHOLD} for one class."
        ).with_readings(*readings)

    def _stray(self, totals: MaskTotals, stray: list[int]) -> UsageError:
        """Returns the error for values of a few single pixels."""
        kept = _named([value for value in totals.values if value not in stray and value != WHITE])
        kept = kept or _named([value for value in totals.values if value not in stray])
        border = {IGNORED: WHITE} if WHITE in totals.values and WHITE not in kept.values() else {}
        pixels = counted(sum(totals.pixels[value] for value in stray), "pixel")
        shown = shorten([str(value) for value in stray], _SHOWN_COLORS)
        readings = _with_others(f"without {shown}", {**kept, **border}, pixels)
        if len(kept) == 1 and not border:
            readings.append(_one_class(totals, totals.values, "all pixels that are not 0", 1))
        every = {**kept, **_named(stray), **border}
        readings.append(Reading("every value is a class", {_CLASSES: every}))
        return UsageError(
            f"masks: the value {shown} has only {pixels} ({totals.first[stray[0]]}), "
            f"which cover no area. Write input.classes as {{name: value}}, and {_UNLISTED} for the others."
        ).with_readings(*readings)

    def _check_frame(self, totals: MaskTotals) -> None:
        """Raises `UsageError` where what is not 0 looks like the background of nearly all masks."""
        values, whole = totals.values, totals.pixels.total()
        if len(values) != 1 or not self._is_framed(totals):
            return
        (value,), name = values, self._name()
        if 2 * totals.pixels[value] > whole:
            inverted = {_CLASSES: {name: 0}, _UNLISTED: "background"}
            raise UsageError(
                f"masks: {value} covers the border of nearly all masks, and {totals.share([value])}, as a background "
                f"does. Write input.classes as {{{name}: {value}}}, or as {{{name}: 0}} with {_UNLISTED}: background."
            ).with_readings(
                Reading(f"{value} is the object: {totals.share([value])}", {_CLASSES: {name: value}}),
                Reading(f"0 is the object: {totals.share([0])}", inverted),
            )

    def _is_framed(self, totals: MaskTotals) -> bool:
        """Returns whether what is not 0 surrounds what is 0 in nearly all masks."""
        most = _NEARLY_ALL * totals.files
        return totals.files > 1 and totals.framed >= most and totals.holding[0] >= most

    def _map(self, totals: MaskTotals) -> ValueMap:
        stated, values = self.classes, totals.values
        if stated is None or not have_ids(stated):
            self._check_first(totals)
            return map_values(totals.first, stated, refuse=self.files.others == REFUSE)
        mapped = map_ids(stated)
        one_in_each = len(values) > 1 and set(values) <= {1, WHITE, WHITE_16} and not totals.mixed
        if one_in_each and IGNORED not in stated and not set(values) <= set(stated.values()):
            raise self._white(totals, values[-1])
        if mapped.labels.get(WHITE) != IGNORE or WHITE in stated.values() or WHITE not in values:
            return mapped
        if totals.white_is_border or self.files.others == IGNORED:
            return mapped
        if self.files.others == REFUSE:
            raise self._white(totals, WHITE)
        note = f"masks: 255 is background, as {_UNLISTED} says"
        return mapped._replace(labels={**mapped.labels, WHITE: None}, notes=(*mapped.notes, note))

    def _check_first(self, totals: MaskTotals) -> None:
        """Raises `UsageError` where there are as many values as names of classes, and 0 is one of them."""
        names = tuple(self._ids())
        values = [value for value in totals.values if value != WHITE]
        if len(names) < 2 or names != tuple(self.classes or ()) or self._ids()[names[0]] != 1 or 0 not in totals.pixels:
            return
        if values == list(range(1, len(names))):
            border = {IGNORED: WHITE} if WHITE in totals.values else {}
            from_0, from_1 = ({name: base + i for i, name in enumerate(names)} | border for base in (0, 1))
            raise UsageError(
                f"masks: input.classes has {len(names)} names, and the values are 0 to {values[-1]}. Either 0 is the "
                f"background and no mask has {names[-1]}, or 0 is {names[0]}. Write input.classes as {{name: value}}."
            ).with_readings(
                Reading(f"0 is {names[0]}: {totals.share([0])}", {_CLASSES: from_0}),
                Reading(f"0 is the background, and no mask has {names[-1]}", {_CLASSES: from_1}),
            )

    def check_some(self, labels: Mapping[int, int | None], threshold: int) -> None:
        """Raises `UsageError` where masks hold values of which none is a class, and some are not even named.

        Args:
            labels: value -> label.
            threshold: the least value of the only class, or 0.
        """
        there = {*self.stored.pixels, *self.displayed.pixels}
        if threshold and any(_level(value, threshold) >= threshold for value in there):
            return
        meant = {labels.get(one) for value in there for one in (value, _color(value))}
        if not threshold and any(label is not None and label >= 0 for label in meant):
            return
        stated, name = self._ids(), self._name()
        totals = self.stored if self.files.values == STORED else self.displayed
        values = totals.values
        if values and threshold:
            lower = [_one_class(totals, values, "the pixels from 1 on", 1)] if name else []
            raise UsageError(
                f"masks: no pixel reaches {_THRESHOLD}, {threshold}; the largest value is {show_value(values[-1])} "
                f"({totals.first[values[-1]]}). Set it to at most that."
            ).with_readings(*lower)
        if all({value, _color(value)} & set(stated.values()) for value in values):
            return
        known = ", ".join(f"{name} ({show_value(number)})" for name, number in stated.items() if number is not None)
        found = shorten(list(map(show_value, values)), _SHOWN_COLORS)
        error = UsageError(
            f"masks: no mask has a class of input.classes, {known}; their values are {found}. Write input.classes as "
            "{name: value} with values that occur."
        )
        if len(values) > 1 or len(stated) > 1 or values[0] >= COLOR:
            raise error
        share = totals.share(values)
        raise error.with_readings(
            Reading(f"{name} is {values[0]}: {share}", {_CLASSES: {name: values[0]}}),
            Reading(f"{values[0]} is ignored: {share}", {_CLASSES: {**stated, IGNORED: values[0]}}),
        )

    def _name(self) -> str:
        """Returns the name of the only class, empty where several are given."""
        names = [name for name in self.classes or {ONE_CLASS: None} if name != IGNORED]
        return names[0] if len(names) == 1 else ""

    def _ids(self) -> Mapping[str, int | None]:
        """Returns the classes with their numbers, as far as they are given."""
        stated = self.classes or {}
        return stated if have_ids(stated) or not stated else listed_ids(tuple(stated))[0]


def _level(value: int, threshold: int) -> int:
    """Returns what a threshold is compared with, see `mask_values.is_above`."""
    if value >= COLOR:
        return max(value >> 16 & 0xFF, value >> 8 & 0xFF, value & 0xFF)
    return value * WHITE // WHITE_16 if value > WHITE >= threshold else value


def _one_class(totals: MaskTotals, values: Sequence[int], pixels: str, threshold: int) -> Reading:
    """Returns the reading that pixels are of the only class: those of some values, from a threshold on."""
    return Reading(f"one class, {pixels}: {totals.share(values)}", {_THRESHOLD: threshold})


def _color(value: int) -> int:
    """Returns a gray value as a color."""
    return value if value >= COLOR else COLOR + value * 0x010101


def _named(values: Sequence[int]) -> dict[str, int]:
    return {str(value): value for value in values}


def _with_others(classes: str, options: Mapping[str, int | str], others: str) -> list[Reading]:
    """Returns the readings with some classes, where other values are ignored or background."""
    return [
        Reading(f"{classes}; {others} ignored", {_CLASSES: dict(options), _UNLISTED: "ignore"}),
        Reading(f"{classes}; {others} background", {_CLASSES: dict(options), _UNLISTED: "background"}),
    ]


def _named_colors(values: Sequence[int]) -> dict[str, str]:
    """Returns a name for each color but black."""
    return {f"color_{value - COLOR:06x}": show_value(value) for value in values if value > COLOR}


def colors_error(mask: str, colors: list[int]) -> ConfigError:
    """Returns the error for masks of colors that are not explained; names those that cover most pixels."""
    shown = ", ".join(map(show_value, colors))
    return ConfigError(
        _CLASSES,
        f"the mask {mask} holds colors ({shown})",
        'Give each a class, e.g. classes: {road: "#804080", car: "#00008e"}; black is the background, and a class '
        "called ignore is not counted",
    )
