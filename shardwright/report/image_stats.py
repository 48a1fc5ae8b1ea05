"""The sections on images and masks: sizes, formats, brightness and sharpness; areas, regions and overlap of masks."""

from __future__ import annotations

from collections.abc import Iterator

from shardwright.display.charts import BAR, ENOUGH, bar, histogram, split_legend
from shardwright.display.html import card, dot, escape, escape_attribute, more, section, table
from shardwright.display.numbers import Show, number, percent, size_text
from shardwright.display.pictures import heat_picture
from shardwright.images.colours import class_colour
from shardwright.report.collect import MOST_CLASSES, Collected
from shardwright.report.mask_shapes import MaskShapes

_SIZES_SHOWN = 10


def _megapixels(value: float) -> str:
    return f"{number(value / 1e6)} MP" if value >= 1e5 else f"{number(round(value))} px"


def _aspect(value: float) -> str:
    return f"{value:.2f}"


_MEASURES: tuple[tuple[str, str, Show], ...] = (
    ("pixels", "Pixels", _megapixels),
    ("aspect", "Width by height", _aspect),
    ("bytes", "Bytes of a stored image", size_text),
    ("brightness", "Brightness", number),
    ("contrast", "Contrast", number),
    ("sharpness", "Sharpness", number),
    ("colorfulness", "Colourfulness", number),
)


def images(found: Collected) -> str:
    """Returns the section with sizes, formats and measures of quality."""
    splits = [split for split in sorted(found.images) if found.images[split] >= ENOUGH]
    cards = "".join(
        card(title, histogram(f"c-{name}", title, found.histograms[name], show)) for name, title, show in _MEASURES
    )
    lead = ""
    if found.measured is not None:
        lead = (
            f"The dataset contains no measures (images.verify: full writes them), so brightness, contrast, sharpness "
            f"and colour are those of a sample of {number(found.measured)} images, chosen by a hash of their keys."
        )
    legend = split_legend(splits) if len(found.images) > 1 and splits else ""
    return section(
        "images", "Images", legend, f'<div class="grid">{cards}{_sizes(found)}{_kinds(found)}</div>', lead=lead
    )


def _sizes(found: Collected) -> str:
    order = sorted(
        ((size, n) for size, n in found.sizes.items() if size is not None), key=lambda item: (-item[1], item[0])
    )
    rows = [(f"{h} × {w}", number(n), percent(n / max(1, found.total)), bar(n / order[0][1])) for (h, w), n in order]
    others = len(rows) - _SIZES_SHOWN
    rest = sum(n for _, n in order[_SIZES_SHOWN:]) + found.sizes.get(None, 0)
    note = f"{number(others)} further sizes of {number(rest)} images." if others > 0 else ""
    head = ("Height × width", "Images", "Share", BAR)
    return card("Sizes", table(head, rows[:_SIZES_SHOWN], caption="The most frequent sizes", numbers=(1, 2)), note=note)


def _kinds(found: Collected) -> str:
    rows = [
        *((f"format {escape(name or 'unknown')}", n) for name, n in sorted(found.formats.items())),
        *(
            (f"{n_channels} channel{'' if n_channels == 1 else 's'}", n)
            for n_channels, n in sorted(found.channels.items())
            if n_channels
        ),
        *((f"Exif orientation {o}", n) for o, n in sorted(found.orientations.items()) if o != 1),
    ]
    body = [(name, number(n), percent(n / max(1, found.total)), bar(n / max(1, found.total))) for name, n in rows]
    return card("Formats", table(("Kind", "Images", "Share", BAR), body, caption="Kinds of files", numbers=(1, 2)))


def masks(found: Collected) -> str:
    """Returns the section with area, regions, overlap and position of the masks; empty if there are none."""
    if "coverage/0" not in found.histograms:
        return ""
    names = found.dataset.manifest.classes[:MOST_CLASSES]
    cards = "".join(
        card(
            f"{dot(label)}{escape(name, 60)}",
            histogram(f"c-cover-{label}", f"Part of the image: {name}", found.histograms[f"coverage/{label}"], percent),
            note="Part of the image that the mask covers, for images that have one.",
        )
        for label, name in enumerate(names)
    )
    shapes = found.shapes
    lead, tables = "", _areas(found, names)
    if shapes is not None and shapes.images:
        lead = (
            f"Regions, overlap and positions are those of {number(shapes.images)} images, "
            f"{'all of them' if shapes.images == found.total else 'chosen by a hash of their keys'}."
        )
        tables += _shapes(shapes, names)
    left = len(found.dataset.manifest.classes) - len(names)
    note = f'<p class="note">{number(left)} further classes are left out here.</p>' if left else ""
    return section("masks", "Masks", tables, f'<div class="grid">{cards}</div>', note, lead=lead)


def _areas(found: Collected, names: tuple[str, ...]) -> str:
    """Returns the areas of the masks of each class, from which class weights of a pixel loss follow."""
    rows = []
    for label, name in enumerate(names):
        part = found.histograms[f"coverage/{label}"]
        mean = found.areas[label] / part.total if part.total else float("nan")
        every = percent(found.areas[label] / max(1, found.pixels))
        rows.append(
            (
                f"{dot(label)}{escape(name, 60)}",
                number(part.total),
                f"{number(round(mean) if part.total else mean)}",
                percent(part.mean()),
                every,
            )
        )
    head = ("Class", "Masks", "Mean area in pixels", "Mean part of the image", "Part of all pixels")
    body = table(head, rows, caption="Masks that are not empty, and what they cover", numbers=range(1, 5))
    return card("Area", body, wide=True)


def _shapes(shapes: MaskShapes, names: tuple[str, ...]) -> str:
    heats = "".join(_heat(shapes, label, name) for label, name in enumerate(names) if shapes.masks[label])
    return (
        card(
            "Position of each class",
            f'<div class="heats">{heats}</div>',
            note="Every image is stretched to one frame. Dark areas are in most masks of the class.",
            wide=True,
        )
        + f'<div class="grid fit">{"".join(_tables(shapes, names))}</div>'
    )


def _heat(shapes: MaskShapes, label: int, name: str) -> str:
    heat = shapes.heat[label]
    rows, columns = heat.shape
    total = max(1, int(heat.sum()))
    down = sum((row + 0.5) * int(heat[row].sum()) for row in range(rows)) / total / rows
    right = sum((column + 0.5) * int(heat[:, column].sum()) for column in range(columns)) / total / columns
    most = int(heat.max()) / max(1, shapes.masks[label])
    words = (
        f"Heat map of {name}: centre {100 * down:.0f} % from the top and {100 * right:.0f} % from the left; "
        f"at its densest place {100 * most:.0f} % of its masks"
    )
    return (
        f'<figure><img class="heat" src="{heat_picture(heat)}" alt="{escape_attribute(words, 300)}" width="{columns}" '
        f'height="{rows}"><figcaption><span class="k">{escape(name, 60)}</span>centre {100 * down:.0f} % down, '
        f"{100 * right:.0f} % right; densest {100 * most:.0f} %</figcaption></figure>"
    )


def _tables(shapes: MaskShapes, names: tuple[str, ...]) -> Iterator[str]:
    limit = shapes.MOST_REGIONS
    rows = []
    for label, name in enumerate(names):
        counts = shapes.regions[label]
        total = max(1, shapes.masks[label])
        one, few, many = int(counts[0]), int(counts[1:5].sum()), int(counts[5:].sum())
        cells = [f"{number(n)} <small>({percent(n / total)})</small>" for n in (one, few, many)]
        rows.append((escape(name, 60), number(shapes.masks[label]), *cells))
    fine = [(escape(name, 60), *(number(int(n)) for n in shapes.regions[label])) for label, name in enumerate(names)]
    head = ("Class", *(str(i + 1) for i in range(limit)), f"{limit + 1}+")
    yield card(
        "Regions of a mask",
        table(
            ("Class", "Masks", "1 region", "2 – 5", "6 and more"),
            rows,
            caption="Connected regions",
            numbers=(1, 2, 3, 4),
        ),
        more("By number", table(head, fine, caption="Masks by number of regions", numbers=range(1, limit + 2))),
    )
    if len(names) > 1:
        rows = []
        for label, name in enumerate(names):
            own = int(shapes.shared[label, label])
            cells = []
            for other in range(len(names)):
                part = int(shapes.shared[label, other]) / own if own else 0.0
                cells.append("–" if other == label or not own else percent(part))
            rows.append((escape(name, 60), *cells))
        yield card(
            "Overlap",
            table(
                ("Of the pixels of", *(f"also {escape(name, 40)}" for name in names)),
                rows,
                caption="Part of the pixels of a class (row) that also belong to another one (column)",
                numbers=range(1, len(names) + 1),
            ),
        )


def colour_legend(names: tuple[str, ...]) -> str:
    """Returns the legend of the classes' colours."""
    items = "".join(
        f'<li><span class="swatch" style="color:{class_colour(label).css}"></span>{escape(name, 60)}</li>'
        for label, name in enumerate(names[:MOST_CLASSES])
    )
    return f'<ul class="legend" aria-label="Colours of the classes">{items}</ul>'
