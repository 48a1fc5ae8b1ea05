"""The sections on images and masks: sizes, formats, brightness and sharpness; areas, regions and overlap of masks."""

from __future__ import annotations

from markupsafe import Markup

from shardwright.display.charts import BAR, ENOUGH, bar, histogram, split_legend
from shardwright.display.histograms import Show, number, number_of, percent, size_text
from shardwright.display.html import (
    card,
    dot,
    figure,
    grid,
    heat_map,
    isolate,
    join,
    legend,
    more,
    note,
    section,
    table,
    with_share,
)
from shardwright.display.thumbnails import heat_picture
from shardwright.images.colors import class_color
from shardwright.report.collect import MOST_CLASSES, Collected
from shardwright.report.mask_shapes import MaskShapes

_SIZES_SHOWN = 10


_MEASURES: tuple[tuple[str, str, Show], ...] = (
    ("pixels", "Pixels", lambda value: f"{number(value / 1e6)} MP" if value >= 1e5 else f"{number(round(value))} px"),
    ("aspect", "Width by height", "{:.2f}".format),
    ("bytes", "Bytes of a stored image", size_text),
    ("brightness", "Brightness", number),
    ("contrast", "Contrast", number),
    ("sharpness", "Sharpness", number),
    ("colorfulness", "Colorfulness", number),
)


def images(collected: Collected) -> Markup:
    """Returns the section with sizes, formats and measures of quality."""
    splits = [split for split in sorted(collected.images) if collected.images[split] >= ENOUGH]
    cards = [
        card(
            title,
            histogram(f"c-{name}", title, data, show),
            note="" if data.total == collected.total else of_images(collected),
        )
        for name, title, show in _MEASURES
        for data in [collected.histograms[name]]
    ]
    lines = split_legend(splits) if len(collected.images) > 1 and splits else ""
    return section("images", "Images", lines, grid(*cards, _sizes(collected), _kinds(collected)))


def of_images(collected: Collected) -> str:
    """Returns of which images the measures of pixels are."""
    return f"Of {number(collected.measured)} of {number_of(collected.total, 'image')}, chosen by a hash of their keys."


def _sizes(collected: Collected) -> Markup:
    order = sorted(
        ((size, n) for size, n in collected.sizes.items() if size is not None), key=lambda item: (-item[1], item[0])
    )
    rows = [
        (f"{h} × {w}", number(n), percent(n / max(1, collected.total)), bar(n / order[0][1])) for (h, w), n in order
    ]
    others = len(rows) - _SIZES_SHOWN
    rest = sum(n for _, n in order[_SIZES_SHOWN:]) + collected.sizes.get(None, 0)
    left = f"{number_of(others, 'further size')} of {number_of(rest, 'image')}." if others > 0 else ""
    head = ("Height × width", "Images", "Share", BAR)
    return card("Sizes", table(head, rows[:_SIZES_SHOWN], caption="The most frequent sizes", numbers=(1, 2)), note=left)


def _kinds(collected: Collected) -> Markup:
    rows = [
        *((join(["format ", isolate(name or "unknown")]), n) for name, n in sorted(collected.formats.items())),
        *((number_of(n_channels, "channel"), n) for n_channels, n in sorted(collected.channels.items()) if n_channels),
        *((f"Exif orientation {o}", n) for o, n in sorted(collected.orientations.items()) if o != 1),
    ]
    body = [
        (name, number(n), percent(n / max(1, collected.total)), bar(n / max(1, collected.total))) for name, n in rows
    ]
    return card("Formats", table(("Kind", "Images", "Share", BAR), body, caption="Kinds of files", numbers=(1, 2)))


def masks(collected: Collected) -> Markup:
    """Returns the section with area, regions, overlap and position of the masks; empty if there are none."""
    if "coverage/0" not in collected.histograms:
        return Markup("")
    names = collected.dataset.manifest.classes[:MOST_CLASSES]
    cards = [
        card(
            join([dot(label), isolate(name, 60)]),
            histogram(
                f"c-cover-{label}", f"Part of the image: {name}", collected.histograms[f"coverage/{label}"], percent
            ),
            note="Part of the image that the mask covers, for images that have one.",
        )
        for label, name in enumerate(names)
    ]
    shapes = collected.shapes
    lead, tables = "", _areas(collected, names)
    if shapes is not None and shapes.images:
        lead = (
            f"Regions, overlap and positions are those of {number_of(shapes.images, 'image')}, "
            f"{'all of them' if shapes.images == collected.total else 'chosen by a hash of their keys'}."
        )
        tables += card(
            "Position of each class",
            Markup('<div class="heats">{}</div>').format(
                join(_heat(shapes, label, name) for label, name in enumerate(names) if shapes.masks[label])
            ),
            note="Every image is stretched to one frame. Dark areas are in most masks of the class.",
            wide=True,
        )
        overlap = [_overlap_card(shapes, names)] if len(names) > 1 else []
        tables += grid(_region_card(shapes, names), *overlap, kind="fit")
    left = len(collected.dataset.manifest.classes) - len(names)
    rest = note(f"Left out here: {number_of(left, 'further class', 'further classes')}.") if left else ""
    return section("masks", "Masks", tables, grid(*cards), rest, lead=lead)


def _areas(collected: Collected, names: tuple[str, ...]) -> Markup:
    """Returns the areas of the masks of each class, from which class weights of a pixel loss follow."""
    rows = []
    for label, name in enumerate(names):
        part = collected.histograms[f"coverage/{label}"]
        mean = collected.areas[label] / part.total if part.total else float("nan")
        every = percent(collected.areas[label] / max(1, collected.pixels))
        rows.append(
            (
                join([dot(label), isolate(name, 60)]),
                number(part.total),
                f"{number(round(mean) if part.total else mean)}",
                percent(part.mean()),
                every,
            )
        )
    head = ("Class", "Masks", "Mean area in pixels", "Mean part of the image", "Part of all pixels")
    body = table(head, rows, caption="Masks that are not empty, and what they cover", numbers=range(1, 5))
    return card("Area", body, wide=True)


def _heat(shapes: MaskShapes, label: int, name: str) -> Markup:
    heat = shapes.heat[label]
    rows, columns = heat.shape
    total = max(1, int(heat.sum()))
    down = sum((row + 0.5) * int(heat[row].sum()) for row in range(rows)) / total / rows
    right = sum((column + 0.5) * int(heat[:, column].sum()) for column in range(columns)) / total / columns
    most = int(heat.max()) / max(1, shapes.masks[label])
    words = (
        f"Heat map of {name}: center {100 * down:.0f} % from the top and {100 * right:.0f} % from the left; "
        f"at its densest place {100 * most:.0f} % of its masks"
    )
    below = f"center {100 * down:.0f} % down, {100 * right:.0f} % right; densest {100 * most:.0f} %"
    return figure(heat_map(heat_picture(heat), words, columns, rows), name, below)


def _region_card(shapes: MaskShapes, names: tuple[str, ...]) -> Markup:
    limit = shapes.MOST_REGIONS
    rows = []
    for label, name in enumerate(names):
        counts = shapes.regions[label]
        total = max(1, shapes.masks[label])
        one, few, many = int(counts[0]), int(counts[1:5].sum()), int(counts[5:].sum())
        cells = [with_share(number(n), percent(n / total)) for n in (one, few, many)]
        rows.append((isolate(name, 60), number(shapes.masks[label]), *cells))
    head = ("Class", "Masks", "1 region", "2 – 5", "6 and more")
    fine = [(isolate(name, 60), *(number(int(n)) for n in shapes.regions[label])) for label, name in enumerate(names)]
    fine_head = ("Class", *(str(i + 1) for i in range(limit)), f"{limit + 1}+")
    by_number = table(fine_head, fine, caption="Masks by number of regions", numbers=range(1, limit + 2))
    return card(
        "Regions of a mask",
        table(head, rows, caption="Connected regions", numbers=(1, 2, 3, 4)),
        more("By number", by_number),
    )


def _overlap_card(shapes: MaskShapes, names: tuple[str, ...]) -> Markup:
    rows = []
    for label, name in enumerate(names):
        own = int(shapes.shared[label, label])
        parts = [int(shared) / own if own else 0.0 for shared in shapes.shared[label, : len(names)]]
        cells = ["–" if other == label or not own else percent(part) for other, part in enumerate(parts)]
        rows.append((isolate(name, 60), *cells))
    head = ("Pixels of", *(join(["also ", isolate(name, 40)]) for name in names))
    caption = "Part of the pixels of a class (row) that also belong to another one (column)"
    return card("Overlap", table(head, rows, caption=caption, numbers=range(1, len(names) + 1)))


def color_legend(names: tuple[str, ...]) -> Markup:
    """Returns the legend of the classes' colors."""
    return legend(
        "Colors of the classes",
        [("", class_color(label).css, isolate(name, 60)) for label, name in enumerate(names[:MOST_CLASSES])],
    )
