"""The first sections of the page: key figures, findings, from inputs to examples, splits and classes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from shardwright.dataset.ledger import UNLISTED
from shardwright.dataset.manifest import MULTI, NONE, SINGLE
from shardwright.display.charts import BAR, bar, split_class
from shardwright.display.histograms import number, number_of, percent, size_text
from shardwright.display.html import (
    card,
    dot,
    finding_list,
    grid,
    isolate,
    join,
    link,
    more,
    paragraph,
    plain,
    section,
    stats,
    table,
    with_share,
)
from shardwright.evaluation.verdict import LEAST_PER_CLASS
from shardwright.report.collect import Collected
from shardwright.report.duplicates import Duplicates
from shardwright.running.progress import counted

# A longer table of classes is not readable.
_CLASSES_SHOWN = 60
_IMBALANCE = 20
_KINDS = {SINGLE: "one class an image", MULTI: "any number of classes an image", NONE: "no labels"}


def evenness(counts: Sequence[int]) -> float:
    """Returns how evenly items are distributed among classes (Pielou, 1966: entropy relative to its maximum).

    Args:
        counts: items of each class.

    Returns:
        0 if all are of one class, 1 if all classes are equally frequent; NaN without items or with one class only.
    """
    total = sum(counts)
    if len(counts) < 2 or not total:
        return math.nan
    shares = [count / total for count in counts if count]
    # The entropy of a single class is -0.
    return abs(sum(share * math.log(share) for share in shares)) / math.log(len(counts))


def split_order(collected: Collected) -> list[str]:
    """Returns the names of the splits, the largest first."""
    return sorted(collected.images, key=lambda split: (-collected.images[split], split))


def _split_name(split: str, longest: int = 160) -> Markup:
    """Returns the name of a split in the color of its lines in the charts."""
    return Markup('<span class="{}">{}</span>').format(split_class(split), isolate(split, longest))


def split_table(collected: Collected) -> Markup:
    """Returns the table of the splits, each in the color of its lines in the charts."""
    labels = range(len(collected.dataset.manifest.classes))
    rows = []
    for split in split_order(collected):
        images = collected.images[split]
        counts = [collected.class_count(label, split) for label in labels]
        shards = [shard for shard in collected.shards if shard.split == split]
        cells = [
            _split_name(split, 40),
            number(images),
            percent(images / max(1, collected.total)),
            size_text(sum(shard.bytes for shard in shards)),
            number(len(shards)),
        ]
        if labels:
            rate = f"{sum(counts) / max(1, images):.2f}"
            cells += [rate, number(collected.unlabeled[split]), number(round(evenness(counts), 3))]
        rows.append(cells)
    head = [
        "Split",
        "Images",
        "Share",
        "Size",
        "Shards",
        *(("Classes an image", "No class", "Balance") if labels else ()),
    ]
    note = "Balance: 1 where all classes are equally frequent, 0 where there is one only." if len(labels) > 1 else ""
    body = table(head, rows, caption="Images of each split", numbers=range(1, len(head)))
    return card("Splits", body, note=note, wide=True)


def statistics(collected: Collected, duplicates: Duplicates) -> Markup:
    """Returns the key figures."""
    totals = collected.dataset.manifest.totals
    size = sum(shard.bytes for shard in collected.shards)
    rejected = totals.get("rejected", 0) - totals.get(f"rejected/{UNLISTED}", 0)
    alike = (duplicates.exact or 0) + (duplicates.near or 0)
    rows = [
        ("Images", number(collected.total), f"of {number_of(totals.get('inputs', collected.total), 'input')}"),
        ("Rejected", number(rejected), percent(rejected / max(1, totals.get("inputs", 1)))),
        (
            "Classes",
            number(len(collected.dataset.manifest.classes)),
            _KINDS.get(collected.dataset.manifest.labels, "with masks"),
        ),
        ("Splits", number(len(collected.images)), " / ".join(plain(s, 20) for s in sorted(collected.images))),
        ("Same or alike", number(alike), groups(alike).split()[-1] if duplicates.exact is not None else "not known"),
        ("Size", size_text(size), f"in {number_of(len(collected.shards), 'shard')}"),
    ]
    return stats(rows)


def findings(collected: Collected, duplicates: Duplicates, further: Sequence[tuple[str, str]]) -> Markup:
    """Returns the list of findings, the most serious first; `further` are those of other chapters."""
    rows = [*further, *_findings(collected, duplicates)]
    if not any(kind != "good" for kind, _ in rows):
        classes = len(collected.dataset.manifest.classes)
        fine: list[str | Markup] = ["no rejects"]
        if duplicates.exact is not None or duplicates.near is not None:
            fine.append("no equal files in two splits" if duplicates.near is None else "no leak between splits")
        if collected.dataset.manifest.labels != NONE:
            every = ((collected.class_count(k, split), split, k) for split in collected.images for k in range(classes))
            least, split, label = min(every, default=(0, "", 0))
            name = isolate(collected.dataset.manifest.classes[label], 40) if least else ""
            rarest = Markup(" ({} or more: {} of {})").format(least, isolate(split), name) if least else ""
            fine.append(join(["every class in every split", rarest], ""))
        rows.insert(0, ("good", Markup("Nothing stands out: {}.").format(join(fine, ", "))))
    return finding_list(rows)


def _findings(collected: Collected, duplicates: Duplicates) -> Iterator[tuple[str, str]]:
    manifest = collected.dataset.manifest
    if duplicates.leaks:
        yield (
            "bad",
            Markup("{} of images that are the same or look alike {} in more than one split: {}.").format(
                groups(duplicates.leaks), ("is" if duplicates.leaks == 1 else "are"), link("duplicates", "leakage")
            ),
        )
    if duplicates.conflicts:
        yield (
            "warn",
            Markup("{} of images that are the same or look alike {} {}.").format(
                groups(duplicates.conflicts),
                "has" if duplicates.conflicts == 1 else "have",
                link("duplicates", "different labels or masks"),
            ),
        )
    rejected = manifest.totals.get("rejected", 0) - manifest.totals.get(f"rejected/{UNLISTED}", 0)
    if rejected:
        reasons = link("rejected", "rejected")
        yield (
            "warn",
            Markup("{} {}, {} its reason.").format(
                counted(rejected, "input was", "inputs were"), reasons, "with" if rejected == 1 else "each with"
            ),
        )
    for split in sorted(collected.images):
        missing = [name for label, name in enumerate(manifest.classes) if not collected.class_count(label, split)]
        if missing and manifest.labels != NONE:
            names = join([*(isolate(name, 40) for name in missing[:8]), *(["…"] if len(missing) > 8 else [])], ", ")
            yield "warn", Markup("Split {} has no image of {}.").format(isolate(split), names)
        shown = [(name, collected.class_count(label, split)) for label, name in enumerate(manifest.classes)]
        few = [(name, count) for name, count in shown if 0 < count < LEAST_PER_CLASS and manifest.labels != NONE]
        if few:
            told = [Markup("{} of {}").format(counted(count, "image"), isolate(name, 40)) for name, count in few[:8]]
            yield (
                "warn",
                Markup("Split {} has {}: of fewer than {}, as many as a blessing asks for, figures say little.").format(
                    isolate(split), join([*told, *(["…"] if len(few) > 8 else [])], ", "), LEAST_PER_CLASS
                ),
            )
    counts = [collected.class_count(label) for label in range(len(manifest.classes))]
    least, most = min(counts, default=0), max(counts, default=0)
    if least and most >= _IMBALANCE * least:
        rare = isolate(manifest.classes[counts.index(least)], 40)
        text = Markup("The rarest class, {}, has one image for {} of the most frequent.")
        yield "warn", text.format(rare, most // least)
    turned = sum(count for orientation, count in collected.orientations.items() if orientation != 1)
    if turned:
        yield (
            "warn",
            (
                f"{counted(turned, 'image is', 'images are')} rotated by Exif: decoders that ignore it show "
                f"{'it' if turned == 1 else 'them'} rotated."
            ),
        )


def groups(count: int) -> str:
    """Returns a number of groups in words."""
    return counted(count, "group")


def funnel(collected: Collected) -> Markup:
    """Returns the table from inputs to examples, by the totals of the ledger."""
    totals = collected.dataset.manifest.totals
    inputs = max(1, totals.get("inputs", collected.total))
    rows: list[tuple[str, int, str]] = [("Inputs", totals.get("inputs", collected.total), "")]
    for status, style in (("rejected", "bad"), ("duplicate", "warn")):
        codes = {name.split("/", 1)[1]: n for name, n in totals.items() if name.startswith(f"{status}/") and n}
        rows += [(f"{status}: {code}", n, style) for code, n in sorted(codes.items(), key=lambda c: (-c[1], c[0]))]
    rows.append(("Written", totals.get("written", collected.total), "good"))
    rows += [(join(["in split ", isolate(split)]), collected.images[split], "good") for split in split_order(collected)]
    body = [(name, number(n), percent(n / inputs), bar(n / inputs, kind=style)) for name, n, style in rows]
    return card(
        "From inputs to examples",
        table(("Step", "Images", "Share", BAR), body, caption="Inputs by outcome", numbers=(1, 2)),
    )


def classes(collected: Collected) -> Markup:
    """Returns the table of the images of every class by split."""
    manifest = collected.dataset.manifest
    if not manifest.classes:
        return card("Classes", paragraph("The images have no classes."))
    splits = split_order(collected)
    counts = {label: collected.class_count(label) for label in range(len(manifest.classes))}
    order = sorted(counts, key=lambda label: (-counts[label], label))
    most = max(1, *counts.values())
    rows = []
    for label in order[:_CLASSES_SHOWN]:
        name = join([dot(label), isolate(manifest.classes[label], 60)])
        of_splits = [(collected.class_count(label, split), max(1, collected.images[split])) for split in splits]
        cells = [with_share(number(count), percent(count / images)) for count, images in of_splits]
        rows.append((name, number(counts[label]), bar(counts[label] / most), *cells))
    if collected.unlabeled:
        total = sum(collected.unlabeled.values())
        unlabeled = [number(collected.unlabeled[split]) for split in splits]
        rows.append((Markup("<i>no class</i>"), number(total), bar(total / most, kind="warn"), *unlabeled))
    left = len(order) - _CLASSES_SHOWN
    return card(
        "Classes",
        table(
            ("Class", "Images", BAR, *(_split_name(split) for split in splits)),
            rows,
            caption="Images of each class; in brackets the part of the split that has it",
            numbers=(1, *range(3, 3 + len(splits))),
        ),
        note=f"{number(left)} rarer classes are left out of the table." if left > 0 else "",
        wide=True,
    )


def sources(collected: Collected) -> Markup:
    """Returns the table of images by the first folder of their keys; empty if there is only one."""
    if len(collected.folders) < 2:
        return Markup("")
    order = sorted(collected.folders.items(), key=lambda item: (-item[1], item[0]))
    most = order[0][1]
    rows = [(isolate(name, 60) if name else Markup("<i>no folder</i>"), number(n), bar(n / most)) for name, n in order]
    head = ("Folder", "Images", BAR)
    first = table(head, rows[:12], caption="Images by the first folder of the key", numbers=(1,))
    rest = table(head, rows[12:200], caption="Further folders", numbers=(1,)) if len(rows) > 12 else ""
    return card("Sources", first, more(f"{number(len(rows) - 12)} more", rest) if rest else "")


def overview(collected: Collected, duplicates: Duplicates, further: Sequence[tuple[str, str]]) -> Markup:
    """Returns the first sections of the page."""
    return (
        section("look", "Findings", findings(collected, duplicates, further))
        + section("funnel", "Inputs", grid(funnel(collected), sources(collected), kind="fit"))
        + section("classes", "Splits and classes", split_table(collected), classes(collected))
    )
