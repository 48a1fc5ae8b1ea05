"""Compares two datasets image by image, with all features of their records, and renders a page of the differences.

Images are new, gone, renamed, changed, moved to another split, or labeled or masked otherwise. Ignored pixels are a
mask, too. Images may also differ in a further feature, such as boxes and captions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from shardwright.dataset.example_view import ExampleReader, ExampleView
from shardwright.dataset.feature_presets import ONE_HOT, SIZE
from shardwright.dataset.ledger import WRITTEN
from shardwright.dataset.manifest import AREA, IGNORED, RLE, Manifest, mask_feature
from shardwright.dataset.random_access import SameDataset, records_at
from shardwright.dataset.reader import ImageDataset, LocatedShard
from shardwright.display.histograms import number, number_of
from shardwright.display.html import card, code, document, isolate, join, more, paragraph, section, stats, table
from shardwright.edit.derive import every, selected_frames
from shardwright.errors import DatasetError
from shardwright.images.boxes import LABEL, TEXT
from shardwright.masks.rle import Runs, area, union
from shardwright.running.progress import SILENT, Progress
from shardwright.storage.checksum import ALGORITHMS, image_feature
from shardwright.tfrecords.records import FOOTER_BYTES, HEADER_BYTES, DecodedFeature

ADDED, REMOVED, CHANGED, MOVED, RELABELED, MASKS = "added", "removed", "changed", "moved", "relabeled", "masks"
FEATURES, RENAMED = "features", "renamed"
CHANGE_KINDS = (ADDED, REMOVED, RENAMED, CHANGED, MOVED, RELABELED, MASKS, FEATURES)
# Features that follow from the key.
_OF_KEY = ("image/filename",)
# Rows of each kind that are kept to be shown; all are counted.
_SHOWN = 200
_OPEN = 30
_WORDS = {
    "added": "New images",
    "removed": "Images that are gone",
    "renamed": "Images with another name",
    "changed": "Images whose bytes differ",
    "moved": "Images in another split",
    "relabeled": "Images of other classes",
    "masks": "Images whose masks differ",
    "features": "Images whose further features differ",
}
# Compared as the image and as its classes.
_COMPARED = frozenset(("image/encoded", "image/key", "image/class/label", "image/class/text"))
# Features that follow from the image differ if the image does.
_OF_IMAGE = (
    *("image/format", "image/height", "image/width", "image/channels", "image/orientation", SIZE),
    *map(image_feature, ALGORITHMS),
    *("image/quality/", "image/hash/"),
)
# Numbers of classes, which mean the same only where both datasets have the same classes.
_OF_CLASSES = frozenset((ONE_HOT, "image/class/one_hot", "image/class/multi_hot"))
_LONGEST = 80


class Difference(NamedTuple):
    """One image that differs.

    Attributes:
        key: its key.
        way: one of `CHANGE_KINDS`.
        before: the former value: its split, its key, its classes, a feature; of a new image, why it was not written.
        after: the present value; of an image that is gone, why it was not written; of masks, the classes whose masks
            differ. Empty where there is none.
        iou: for masks, the smallest intersection over union of all classes; else `None`.
    """

    key: str
    way: str
    before: str
    after: str
    iou: float | None = None


@dataclass
class Differences:
    """All differences of two datasets.

    Attributes:
        images: number of images in both, in the one, and in the other.
        counts: way -> images.
        labels: (class before, class after) -> images, of those that are labeled otherwise.
        annotated: number of images with other labels or masks.
        masks: class -> images whose mask of it differs; ignored pixels are `ignore`.
        iou: mean of the smallest intersection over union, over the images whose masks differ; `None` if none do.
        rows: the first of every way, by key.
        features: name of a further feature -> images in which it differs.
        only: features that the one stores and the other does not, and the reverse.
        classes: the classes of both in their order, if these differ: the order gives a class its number in a model.
    """

    images: tuple[int, int, int]
    counts: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    annotated: int = 0
    masks: Counter[str] = field(default_factory=Counter)
    iou: float | None = None
    rows: list[Difference] = field(default_factory=list)
    features: Counter[str] = field(default_factory=Counter)
    only: tuple[list[str], list[str]] = ([], [])
    classes: tuple[list[str], list[str]] = ([], [])

    @property
    def any(self) -> bool:
        """True if there is a difference."""
        return bool(self.counts) or any(self.only) or any(self.classes)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values."""
        both, one, other = self.images
        return {
            "images": {"both": both, "first": one, "second": other},
            "counts": dict(self.counts),
            "labels": dict(self.labels),
            "masks": dict(self.masks),
            "iou": self.iou,
            "features": dict(self.features),
            "only": {"first": self.only[0], "second": self.only[1]},
            "classes": {"first": self.classes[0], "second": self.classes[1]},
            "rows": [row._asdict() for row in self.rows],
        }


class _Location(NamedTuple):
    """The location of an image in a dataset: its split; number of the shard, offset and length of the record."""

    split: str
    frame: tuple[int, int, int]


class _Comparison:
    """Compares records, and collects the differences.

    Args:
        one: the earlier dataset.
        other: the later.
    """

    def __init__(self, one: ImageDataset, other: ImageDataset) -> None:
        self._features = ComparedFeatures(one.manifest, other.manifest)
        classes = [*one.manifest.classes], [*other.manifest.classes]
        self.found = Differences((0, 0, 0), only=self._features.only)
        if classes[0] != classes[1]:
            self.found.classes = classes
        self._kept: Counter[str] = Counter()
        self._overlaps: list[float] = []

    def note(self, row: Difference) -> None:
        """Adds a difference."""
        self.found.counts[row.way] += 1
        self._kept[row.way] += 1
        if self._kept[row.way] <= _SHOWN:
            self.found.rows.append(row)

    def compare(self, one: ExampleView, other: ExampleView, splits: tuple[str, str]) -> None:
        """Adds the differences of two records of an image, which may have another key in the later dataset."""
        if one.key != other.key:
            self.note(Difference(other.key, RENAMED, one.key, ""))
        if splits[0] != splits[1]:
            self.note(Difference(other.key, MOVED, *splits))
        differing = [
            row
            for row in self._features.differing(one, other, same_image=one.encoded == other.encoded)
            if one.key == other.key or row[0] not in _OF_KEY
        ]
        self.found.features.update(name for name, _, _ in differing)
        overlaps = _overlaps(one, other)
        self.found.masks.update(list(overlaps))
        rows = list(_compared(other.key, one, other, overlaps, differing))
        self.found.annotated += any(row.way in (RELABELED, MASKS) for row in rows)
        for row in rows:
            self.note(row)
            if row.iou is not None:
                self._overlaps.append(row.iou)
            if row.way == RELABELED:
                self.found.labels[f"{row.before} -> {row.after}"] += 1

    def end(self, images: tuple[int, int, int]) -> Differences:
        """Returns all differences."""
        overlaps, found = self._overlaps, self.found
        found.images = images
        found.iou = round(sum(overlaps) / len(overlaps), 6) if overlaps else None
        found.rows.sort(key=lambda row: (CHANGE_KINDS.index(row.way), row.key))
        return found


def find_differences(one: ImageDataset, other: ImageDataset, shown: Progress = SILENT) -> Differences:
    """Compares two datasets by key, and an image whose key is in one of them only by the bytes of its file.

    Keys and locations of the one are kept in memory. Records of the other are read in their order, and those of the one
    by location, where they mostly have the same order.

    Args:
        one: the earlier.
        other: the later; classes are compared by name, so it may have others.
        shown: counts the records of the other.

    Raises:
        DatasetError: one of them is damaged, or is replaced meanwhile.
    """
    shards = [[shard for split in dataset.splits for shard in dataset.shards(split)] for dataset in (one, other)]
    held = {
        key: _Location(shard.split, (position, offset, length))
        for position, shard in enumerate(shards[0])
        for key, offset, length in selected_frames(one, shard, every)
    }
    counts = len(held), sum(shard.records for shard in shards[1])
    readers = ExampleReader(one.manifest), ExampleReader(other.manifest)
    comparison, same = _Comparison(one, other), SameDataset(shards[0])
    # This runs ahead of the comparison below, which removes keys.
    wanted = (key for shard in shards[1] for key, _ in other.entries(shard) if key in held)
    earlier = records_at([shard.file for shard in shards[0]], ((held[key].frame, key) for key in wanted))
    both, contents, new = 0, dict[str, int](), dict[str, _Location]()
    # Then equal records are equal images, whatever is in them.
    alike = all(getattr(one.manifest, n) == getattr(other.manifest, n) for n in ("classes", "features", "names"))
    for position, shard in enumerate(shards[1]):
        for key, offset, payload in other.placed_records(shard, proven=True):
            shown.advance()
            before = held.get(key)
            if before is None:
                contents[key] = readers[1].read(key, payload).content
                new[key] = _Location(shard.split, (position, offset, HEADER_BYTES + len(payload) + FOOTER_BYTES))
                continue
            both += 1
            former = _record(earlier, key, shards[0], before)
            del held[key]
            if former == payload and alike:
                if before.split != shard.split:
                    comparison.note(Difference(key, MOVED, before.split, shard.split))
                continue
            views = readers[0].read(key, former), readers[1].read(key, payload)
            comparison.compare(*views, (before.split, shard.split))
    renamed = _renamed(one, shards[0], held, contents)
    pairs = (
        _views(own, reader, places, keys)
        for own, reader, places, keys in zip(shards, readers, (held, new), (renamed.values(), renamed), strict=True)
    )
    for first, second in zip(*pairs, strict=True):
        comparison.compare(first, second, (held.pop(first.key).split, new.pop(second.key).split))
    same.check()
    reasons = _not_written(one, new), _not_written(other, held)
    for key, place in new.items():
        comparison.note(Difference(key, ADDED, reasons[0].get(key, ""), place.split))
    for key, place in held.items():
        comparison.note(Difference(key, REMOVED, place.split, reasons[1].get(key, "")))
    return comparison.end((both + len(renamed), *counts))


def _views(
    shards: Sequence[LocatedShard], reader: ExampleReader, places: Mapping[str, _Location], keys: Iterable[str]
) -> Iterator[ExampleView]:
    """Yields the records of keys, in their order."""
    frames = [(places[key].frame, key) for key in keys]
    records = records_at([shard.file for shard in shards], frames)
    for _, key in frames:
        yield reader.read(key, _record(records, key, shards, places[key]))


def _not_written(dataset: ImageDataset, keys: Collection[str]) -> dict[str, str]:
    """Returns why a dataset has no record of some keys that its ledger has: `rejected (truncated)`."""
    totals = dataset.manifest.totals
    if not keys or totals.get(WRITTEN) == totals.get("inputs"):
        return {}
    rows = (row for row in dataset.ledger() if row.status != WRITTEN and row.key in keys)
    return {row.key: f"{row.status} ({row.code})" for row in rows}


def _renamed(
    one: ImageDataset, shards: Sequence[LocatedShard], gone: Container[str], new: Mapping[str, int]
) -> dict[str, str]:
    """Returns the new key of images -> their former key, for images of the same bytes.

    Args:
        one: the earlier dataset.
        shards: its shards.
        gone: its keys that are not in the later one.
        new: keys that are only in the later one -> 64 bits of the content ID; 0 where it is not stored.
    """
    wanted = set(new.values()) - {0}
    former: dict[int, list[str]] = {}
    for shard in shards if wanted else ():
        contents = one.facts(shard).content.tolist()
        for (key, _), content in zip(one.entries(shard), contents, strict=True):
            if content in wanted and key in gone:
                former.setdefault(content, []).append(key)
    # Each of several images with the same bytes has another former key.
    waiting = {content: iter(sorted(keys)) for content, keys in former.items()}
    pairs = ((key, next(waiting.get(new[key], iter(())), None)) for key in sorted(new))
    return {key: former_key for key, former_key in pairs if former_key is not None}


def _record(
    earlier: Iterator[tuple[str, bytes | None]], key: str, shards: Sequence[LocatedShard], location: _Location
) -> bytes:
    """Returns the next record of the earlier dataset, which is that of a key.

    Raises:
        DatasetError: it is damaged, or the indexes name a key twice.
    """
    found, payload = next(earlier, ("", None))
    number, offset, _ = location.frame
    if found != key or payload is None:
        problem = "cannot be read, or is damaged" if found == key else "is named twice by an index"
        raise DatasetError(
            f"{shards[number].file} at offset {offset}: the record of {key!a} {problem}. Run `shardwright verify` for "
            "a list of all damage."
        )
    return payload


def _compared(
    key: str,
    one: ExampleView,
    other: ExampleView,
    overlaps: Mapping[str, float],
    differing: Sequence[tuple[str, str, str]],
) -> Iterator[Difference]:
    if one.encoded != other.encoded:
        sizes = [f"{view.size[0]}x{view.size[1]}, {view.bytes} bytes" for view in (one, other)]
        yield Difference(key, CHANGED, sizes[0], sizes[1])
    names = [[view.reader.classes[label] for label in view.labels] for view in (one, other)]
    if one.reader.classes != other.reader.classes:
        # The names are in the order of the classes, which is another one here.
        names = [sorted(listed) for listed in names]
    if names[0] != names[1]:
        yield Difference(key, RELABELED, ", ".join(names[0]) or "none", ", ".join(names[1]) or "none")
    if overlaps:
        yield Difference(key, MASKS, "", ", ".join(overlaps), round(min(overlaps.values()), 6))
    if differing:
        name, before, after = differing[0]
        more = f" (and {len(differing) - 1} more)" if len(differing) > 1 else ""
        yield Difference(key, FEATURES, f"{name}: {before}", f"{name}: {after}{more}")


def _overlaps(one: ExampleView, other: ExampleView) -> dict[str, float]:
    """Returns class -> intersection over union, of the masks that differ; ignored pixels are a mask, too."""
    if not (one.reader.runs and other.reader.runs and one.size == other.size):
        return {}
    pairs = {
        name: (_mask(one, name), _mask(other, name)) for name in sorted({*one.reader.classes, *other.reader.classes})
    }
    if not (one.reader.ignored is None and other.reader.ignored is None):
        pairs[IGNORED] = (one.ignored, other.ignored)
    found = {}
    for name, masks in pairs.items():
        together = area(union(masks))
        shared = area(masks[0]) + area(masks[1]) - together
        if shared < together:
            found[name] = shared / together
    return found


def _mask(view: ExampleView, name: str) -> Runs:
    """Returns the mask of a class, empty if the dataset does not have the class."""
    classes = view.reader.classes
    return view.runs(classes.index(name)) if name in classes else view.runs(0)[:0]


def render_differences(found: Differences, one: ImageDataset, other: ImageDataset) -> str:
    """Renders the differences of two datasets as a page."""
    both, before, after = found.images
    tiles = [("In both", both), ("In the first", before), ("In the second", after)]
    tiles += [(_WORDS[way], found.counts[way]) for way in CHANGE_KINDS]
    head = stats((name, number(count), "") for name, count in tiles)
    body = join(_way(way, found) for way in CHANGE_KINDS if found.counts[way])
    if found.labels:
        rows = [(isolate(what), number(count)) for what, count in found.labels.most_common(40)]
        body += section(
            "labels",
            "Classes",
            card("Changes of classes", table(("Change", "Images"), rows, caption="Classes", numbers=(1,))),
        )
    if any(found.only):
        lists = [
            (which, isolate(", ".join(names)))
            for which, names in zip(("First", "Second"), found.only, strict=True)
            if names
        ]
        stored = table(("Dataset", "Features"), lists, caption="Features that only one dataset stores")
        body += section("only", "Features", card("Features that only one dataset stores", stored, wide=True))
    if not body:
        body = section("none", "No difference", paragraph("All records are equal."))
    names = join([code(dataset.manifest.fingerprint[:12]) for dataset in (one, other)], " to ")
    return document("Differences of two datasets", "Dataset differences", names, head, body)


def _way(way: str, found: Differences) -> Markup:
    rows = [
        (
            isolate(row.key),
            isolate(row.before) if row.iou is None else "",
            isolate(row.after) if row.iou is None else f"IoU {row.iou:.4f}",
        )
        for row in found.rows
        if row.way == way
    ]
    head = ("Image", "Before", "After")
    parts = [table(head, rows[:_OPEN], caption=_WORDS[way])]
    if len(rows) > _OPEN:
        parts.append(
            more(f"{number(len(rows) - _OPEN)} more", table(head, rows[_OPEN:], caption=f"{_WORDS[way]}, more"))
        )
    left = found.counts[way] - len(rows)
    note = f"{number(left)} more; --json has the counts." if left else ""
    return section(way, _WORDS[way], card(number_of(found.counts[way], "image"), *parts, note=note, wide=True))


class ComparedFeatures:
    """Compares the features of two datasets by our own names.

    Args:
        one: the earlier.
        other: the later.

    Attributes:
        only: names of those that the one stores and the other does not, or in another form, and the reverse.
    """

    def __init__(self, one: Manifest, other: Manifest) -> None:
        runs = all(ExampleReader(manifest).runs is not None for manifest in (one, other))
        names = []
        for manifest in (one, other):
            ours = {theirs: name for name, theirs in manifest.names.items()}
            kinds = {ours.get(name, name): kind for name, kind in manifest.features.items()}
            masks = {mask_feature(name, what) for name in (*manifest.classes, IGNORED) for what in (RLE, AREA)}
            names.append({name: kind for name, kind in kinds.items() if not (runs and name in masks)})
        both = names[0].items() & names[1].items()
        self.only = _missing(names[0], names[1]), _missing(names[1], names[0])
        skipped = set(_COMPARED)
        if one.classes != other.classes:
            skipped |= _OF_CLASSES | ({LABEL} if (TEXT, "bytes") in both else set())
        self._names = sorted(name for name, _ in both if name not in skipped)
        self._stored = [(name, one.stored(name), other.stored(name)) for name in self._names]

    def differing(self, one: ExampleView, other: ExampleView, *, same_image: bool) -> Iterator[tuple[str, str, str]]:
        """Yields name and both values, for messages, of each feature that differs."""
        for name, first, second in self._stored:
            if not same_image and name.startswith(_OF_IMAGE):
                continue
            values = one.example.get(first), other.example.get(second)
            if not _equal(*values):
                yield name, _shown(values[0]), _shown(values[1])


def _missing(own: dict[str, str], other: dict[str, str]) -> list[str]:
    """Returns the features that the other dataset lacks, with their kind where the other has them in another form."""
    lacked = sorted(own.items() - other.items())
    return [f"{name} ({kind})" if name in other else name for name, kind in lacked]


def _equal(one: DecodedFeature | None, other: DecodedFeature | None) -> bool:
    if one is None or other is None or not len(one) or not len(other):
        return all(values is None or not len(values) for values in (one, other))
    if isinstance(one, list) or isinstance(other, list):
        return isinstance(one, list) and isinstance(other, list) and one == other
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def _shown(values: DecodedFeature | None) -> str:
    if values is None or not len(values):
        return "none"
    if isinstance(values, list):
        text = ", ".join(value[:_LONGEST].decode("utf-8", "replace") for value in values[:_LONGEST])
    else:
        listed = values[:_LONGEST].tolist()
        text = ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in listed)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
