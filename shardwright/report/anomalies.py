"""What stops a run, as a chapter of the report and as `verdict.json`: anomalies, leaks between splits, drift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from shardwright.dataset.random_access import RecordLocation
from shardwright.dataset.reader import ImageDataset
from shardwright.display.html import card, escape, section
from shardwright.display.numbers import number
from shardwright.errors import DatasetError
from shardwright.fingerprint import canonical_json
from shardwright.report.contact_sheets import Sheets
from shardwright.report.duplicates import Duplicates
from shardwright.report.overview import groups
from shardwright.report.page import Chapter
from shardwright.untrusted import listed, parse_untrusted_json, record, text

VERDICT_FILE = "verdict.json"
_VERDICT = listed(record({"kind": text, "where": text, "what": text, "keys": listed(text)}))
DRIFT, SKEW, LEAKAGE, NEAR_LEAKAGE = "DRIFT", "SKEW", "LEAKAGE", "NEAR_LEAKAGE"
# Kinds of troubles that are found here, beside those that TFDV knows.
KINDS = (DRIFT, SKEW, LEAKAGE, NEAR_LEAKAGE)


@dataclass(frozen=True)
class Anomaly:
    """One thing that is wrong.

    Attributes:
        kind: as a word: one of `KINDS`, or a name of TFDV's `AnomalyInfo.Type`.
        where: feature and split, or the measure.
        what: as a sentence.
        keys: of the first images concerned.
    """

    kind: str
    where: str
    what: str
    keys: tuple[str, ...] = ()


def leaks(duplicates: Duplicates, sheets: Sheets) -> list[Anomaly]:
    """Copies that lie in more than one split, each kind with the keys of a group.

    Args:
        duplicates: what was found.
        sheets: of the same dataset.
    """
    found = []
    for kind, name, group_kind, count, words in (
        (LEAKAGE, "equal files", "exact", duplicates.exact_leaks, "the same bytes"),
        (
            NEAR_LEAKAGE,
            "images that look alike",
            "near",
            duplicates.leaks - duplicates.exact_leaks,
            "nearly the same hashes",
        ),
    ):
        if count:
            verb = "lies" if count == 1 else "lie"
            what = f"{groups(count)} of images with {words} {verb} in more than one split (see split and duplicates)"
            group = next((group for group in duplicates.shown if group.leaks and group.kind == group_kind), None)
            keys = tuple(sheets.facts(place).key for place in group.places) if group else ()
            found.append(Anomaly(kind, name, what, keys))
    return found


def trouble_chapter(troubles: Sequence[Anomaly], dataset: ImageDataset, sheets: Sheets) -> Chapter | None:
    """Renders anomalies against the schema, with the images that they name; `None` where there are none."""
    rows = [trouble for trouble in troubles if trouble.kind not in KINDS]
    if not rows:
        return None
    places = _places(dataset, {key for trouble in rows for key in trouble.keys})
    cards = []
    for trouble in rows:
        tiles = "".join(sheets.tile(places[key]) for key in trouble.keys if key in places)
        sheet = f'<div class="sheet">{tiles}</div>' if tiles else ""
        title = f'<span class="badge bad">{escape(trouble.kind)}</span> {escape(trouble.where)}'
        cards.append(card(title, f"<p>{escape(trouble.what, 600)}</p>", sheet, wide=True))
    words = f"{number(len(rows))} anomal{'y' if len(rows) == 1 else 'ies'}"
    finding = ("bad", f'The data do not fit the schema: <a href="#anomalies">{words}</a>.')
    body = section("anomalies", "Anomalies", *cards, lead="What does not fit the schema.")
    return Chapter("anomalies", "Anomalies", body, (finding,))


def _places(dataset: ImageDataset, keys: set[str]) -> dict[str, RecordLocation]:
    shards = [shard for split in dataset.splits for shard in dataset.shards(split)]
    return {
        key: RecordLocation(position, offset)
        for position, shard in enumerate(shards)
        for key, offset in (dataset.entries(shard) if keys else ())
        if key in keys
    }


def write_verdict(folder: Path, troubles: Sequence[Anomaly]) -> None:
    """Writes `verdict.json`, what a gate reads."""
    rows = [asdict(trouble) for trouble in troubles]
    Path(folder, VERDICT_FILE).write_text(canonical_json(rows) + "\n", encoding="utf-8")


def read_verdict(folder: Path) -> list[Anomaly]:
    """Reads `verdict.json`.

    Raises:
        DatasetError: it is missing or damaged.
    """
    file = Path(folder, VERDICT_FILE)
    try:
        rows = parse_untrusted_json(file.read_text(encoding="utf-8"))
        return [Anomaly(**{**row, "keys": tuple(row["keys"])}) for row in _VERDICT(rows, "verdict")]
    except (OSError, ValueError) as error:
        raise DatasetError(f"{file}: no readable verdict ({error}). Run the pipeline again.") from None
