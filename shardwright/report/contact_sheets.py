"""Contact sheets: thumbnails with masks, for random images, classes, extremes and duplicates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from markupsafe import Markup

from shardwright.dataset.example_view import ExampleReader, ExampleView
from shardwright.dataset.random_access import RecordLocation, read_record
from shardwright.dataset.reader import ImageDataset
from shardwright.display.histograms import number, percent
from shardwright.display.html import (
    badge,
    card,
    dot,
    figure,
    isolate,
    join,
    left_out,
    note,
    paragraph,
    section,
    sheet,
    switch,
    tag,
    thumbnail,
)
from shardwright.display.html import group as tile_group
from shardwright.display.thumbnails import picture_of
from shardwright.report.collect import MOST_CLASSES, Collected
from shardwright.report.duplicates import Duplicates, Group
from shardwright.report.image_stats import color_legend
from shardwright.report.overview import groups
from shardwright.report.samples import Candidate
from shardwright.running.progress import counted

# Bytes of the page's 5 MB that pictures may take, and those that pictures of added chapters may take.
BUDGET = 3_900_000
CHAPTER_BUDGET = 900_000
_NAMED = 4


class Sheets:
    """Makes tiles until the byte budget is spent; later tiles state that their picture is left out.

    Args:
        collected: the result of the pass over the dataset.
        budget: bytes that all pictures may take.
    """

    def __init__(self, collected: Collected, budget: int = BUDGET) -> None:
        self._collected = collected
        self._reader = ExampleReader(collected.dataset.manifest)
        self._left = budget
        self.left_out = 0

    def tile(self, place: RecordLocation, *, labels: Sequence[int] | None = None, note: str = "") -> Markup:
        """Returns the tile of one image.

        Args:
            place: location of its record.
            labels: classes whose masks are shown; by default all classes of the image.
            note: a line below the picture.
        """
        view = self.view(place)
        own = view.labels if labels is None else labels
        picture = picture_of(view, own)
        split = self._collected.shards[place.shard].split
        classes = self._collected.dataset.manifest.classes
        names = [classes[label] for label in view.labels]
        words = f"{view.key}, split {split}, " + (f"classes {', '.join(names[:_NAMED])}" if names else "no class")
        if picture.bytes > self._left:
            self.left_out += 1
            inner = left_out()
        else:
            self._left -= picture.bytes
            inner = thumbnail(picture, words)
        shown = zip(view.labels[:_NAMED], names, strict=False)
        tags = [tag(isolate(split, 30)), *(tag(join([dot(label), isolate(name, 30)])) for label, name in shown)]
        if len(view.labels) > _NAMED:
            tags.append(tag(f"+{len(view.labels) - _NAMED}"))
        return figure(inner, view.key, join([*tags, note]))

    def view(self, place: RecordLocation) -> ExampleView:
        """Reads the record at a location."""
        payload = read_record(self._collected.shards, place)
        view = self._reader.read("", payload)
        keys = view.example.texts(self._collected.dataset.manifest.stored("image/key"))
        return self._reader.read(keys[0] if keys else "(no key)", payload)

    def sheet(
        self, picks: Iterable[Candidate], note: Callable[[Candidate], str] = lambda pick: "", *, own: bool = False
    ) -> Markup:
        """Returns a sheet of tiles; with `own` a tile shows only the mask for which the image was chosen."""
        return sheet(
            self.tile(p.place, labels=[p.label] if own and p.label >= 0 else None, note=note(p)) for p in picks
        )


def sheets_of(directory: str) -> Sheets:
    """Returns sheets of a dataset that was not collected.

    Raises:
        DatasetError: there is no dataset.
    """
    dataset = ImageDataset.open(directory)
    return Sheets(Collected(dataset, dataset.all_shards()))


def contact_sheets(collected: Collected, sheets: Sheets) -> Markup:
    """Returns the sections with random images, some images of every class, the smallest and the largest masks."""
    names = collected.dataset.manifest.classes
    masked = collected.shapes is not None
    parts = [
        card(f"{len(collected.random.candidates())} at random", sheets.sheet(collected.random.candidates()), wide=True),
    ]

    def part(pick: Candidate) -> Markup:
        return Markup("<div>{} of the image</div>").format(percent(abs(pick.score)))

    extremes = [
        card(title, sheets.sheet(lowest.candidates(), part, own=True), wide=True)
        for title, lowest in (("The smallest masks", collected.smallest), ("The largest masks", collected.largest))
        if lowest.candidates()
    ]
    by_class = []
    for label in sorted(collected.by_class, key=lambda label: (-collected.class_count(label), label))[:MOST_CLASSES]:
        title = join([dot(label), isolate(names[label], 60)])
        count = f"{counted(collected.class_count(label), 'image has', 'images have')} it."
        by_class.append(card(title, sheets.sheet(collected.by_class[label].candidates()), note=count, wide=True))
    left = len(collected.by_class) - len(by_class)
    rest = note(f"{counted(left, 'rarer class is', 'rarer classes are')} left out here.") if left > 0 else ""
    legend = color_legend(names) if masked else ""
    show = switch("show-masks", "show masks") if masked else ""
    samples = section("samples", "Samples", legend, show, *parts, *extremes)
    return join([samples, section("each-class", "Each class", *by_class, rest) if by_class else ""])


def duplicate_sheets(collected: Collected, duplicates: Duplicates, sheets: Sheets) -> Markup:
    """Returns the section with groups of images that are equal or look alike."""
    if duplicates.exact is None and duplicates.near is None:
        return section(
            "duplicates", "Same and alike", paragraph("The records contain no hashes, so duplicates cannot be found.")
        )
    summary = [f"{groups(duplicates.exact or 0)} of equal files"]
    if duplicates.near is None:
        summary.append("images that look alike are not known (images.verify: full writes the hashes)")
    else:
        summary.append(f"{groups(duplicates.near)} of images that look alike")
    if duplicates.leaks:
        summary.append(f"{number(duplicates.leaks)} across splits")
    if duplicates.conflicts:
        summary.append(f"{number(duplicates.conflicts)} with different labels or masks")
    body = join(_group(group, sheets) for group in duplicates.shown)
    every = (duplicates.exact or 0) + (duplicates.near or 0)
    first = f"The first {len(duplicates.shown)} of {number(every)} groups." if every > len(duplicates.shown) else ""
    content = card("Groups", body, note=first, wide=True) if body else ""
    return section("duplicates", "Same and alike", content, lead="; ".join(summary) + ".")


def _group(group: Group, sheets: Sheets) -> Markup:
    badges = [f"{group.size} images, " + ("equal files" if group.kind == "exact" else "alike")]
    if group.leaks:
        badges.append(badge("bad", "in more than one split"))
    if group.conflicts:
        badges.append(badge("warn", f"different {group.conflicts}"))
    tiles = []
    for place in group.places:
        below = ""
        if group.conflicts == "masks":  # Masks that differ may look the same, but not their areas.
            view = sheets.view(place)
            areas = zip(view.reader.classes, view.areas or (), strict=False)
            pixels = join([join([isolate(name, 30), number(count)], " ") for name, count in areas if count], ", ")
            below = Markup("<div>pixels: {}</div>").format(pixels or "none")
        tiles.append(sheets.tile(place, note=below))
    return tile_group(badges, tiles)
