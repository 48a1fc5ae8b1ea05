"""The last sections of the page: rejected inputs with their reasons, the shards, and how the dataset was made."""

from __future__ import annotations

import json
import os
from collections import Counter
from contextlib import suppress

from markupsafe import Markup

from shardwright.dataset.ledger import REJECTED, WRITTEN, LedgerRow
from shardwright.dataset.manifest import BUILD_FILE
from shardwright.dataset.reader import ImageDataset
from shardwright.display.histograms import number, number_of, size_text
from shardwright.display.html import badge, card, code, isolate, more, paragraph, properties, section, table
from shardwright.storage import read_bytes
from shardwright.untrusted.json_text import parse_untrusted_json

# Most rows on the page; the ledger has all.
_ROWS_SHOWN = 1500
_OPEN_ROWS = 40
_REASON = 300
_SHARDS_SHOWN = 400


def rejected(dataset: ImageDataset) -> Markup:
    """Returns the section with the inputs that were not written, by reason."""
    rows: dict[tuple[str, str], list[LedgerRow]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    kept = 0
    if dataset.manifest.totals.get("written", 0) < dataset.manifest.totals.get("inputs", 0):
        for row in dataset.ledger():
            if row.status == WRITTEN:
                continue
            counts[row.status, row.code] += 1
            # Some inputs of every reason are shown, however frequent the other reasons are.
            if kept < _ROWS_SHOWN or counts[row.status, row.code] <= _OPEN_ROWS:
                rows.setdefault((row.status, row.code), []).append(row)
                kept += 1
    if not counts:
        return section("rejected", "Not written", paragraph("Every input was written."))
    order = sorted(counts, key=lambda kind: (kind[0] != REJECTED, -counts[kind], kind))
    cards = [_reason(kind, counts[kind], rows[kind]) for kind in order]
    return section("rejected", "Not written", *cards, lead=f"{number_of(sum(counts.values()), 'input')}, by reason.")


def _reason(kind: tuple[str, str], count: int, rows: list[LedgerRow]) -> Markup:
    status, reason = kind
    style = "bad" if status == REJECTED else "warn"
    cells = [(isolate(row.key, 120), isolate(row.reason, _REASON)) for row in rows]
    head = ("Input", "Why")
    caption = "Inputs and reasons"
    body = table(head, cells[:_OPEN_ROWS], caption=caption)
    if len(cells) > _OPEN_ROWS:
        body += more(
            f"{number(len(cells) - _OPEN_ROWS)} more",
            table(head, cells[_OPEN_ROWS:], caption="Further inputs and reasons"),
        )
    note = f"{number(count - len(cells))} more are in the ledger." if count > len(cells) else ""
    title = Markup("{} {} · {}").format(badge(style, isolate(status)), isolate(reason), number(count))
    return card(title, body, note=note, wide=True)


def shards(dataset: ImageDataset) -> Markup:
    """Returns the section with the table of shards."""
    rows = [
        (
            code(isolate(shard.path)),
            number(shard.records),
            size_text(shard.bytes),
            isolate(shard.first_key or "–", 60),
            code(isolate(shard.checksum[:12])),
        )
        for shard in dataset.manifest.shards
    ]
    head = ("Shard", "Images", "Size", "First key", "BLAKE3")
    body = table(head, rows[:_SHARDS_SHOWN], caption="Files of the dataset", numbers=(1, 2))
    left = len(rows) - _SHARDS_SHOWN
    note = f"{number(left)} more are in the manifest." if left > 0 else ""
    return section("shards", "Shards", card("Files", body, note=note, wide=True))


def reproducibility(dataset: ImageDataset) -> Markup:
    """Returns the section with fingerprints, recipe and versions, from which the same bytes can be made again."""
    manifest = dataset.manifest
    values = [
        ("Dataset fingerprint", manifest.fingerprint),
        ("Digest of the manifest", manifest.digest),
        ("Recipe", manifest.recipe_fingerprint),
        ("Made from", manifest.parent or "–"),
        ("Kind", f"{manifest.kind}, {manifest.task}, {manifest.labels}, layout {manifest.format_version}"),
    ]
    with suppress(OSError, ValueError, AttributeError):  # Not every writer has recorded the versions of its packages.
        build = parse_untrusted_json(read_bytes(os.path.join(dataset.root, BUILD_FILE)).decode("utf-8"))
        versions = {str(name): str(version) for name, version in build.get("versions", {}).items()}
        values += [(f"Version of {name}", version) for name, version in sorted(versions.items())]
    recipe = isolate(json.dumps(manifest.recipe, sort_keys=True, ensure_ascii=False), 20_000)
    features = [(code(isolate(name)), kind) for name, kind in sorted(manifest.features.items())]
    return section(
        "made",
        "How it was made",
        card(
            "Fingerprints",
            properties(values),
            more("The whole recipe", Markup("<pre>{}</pre>").format(recipe)),
            wide=True,
        ),
        card(
            "Features",
            more(
                f"{number(len(features))} features of every record",
                table(("Feature", "Kind"), features, caption="Features by their stored names"),
            ),
            wide=True,
        ),
        lead="The same images and the same recipe give the same bytes.",
    )
