"""Anomalies, leaks between splits and drift: as a chapter of the report, and as `verdict.json`, which a gate reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from shardwright.dataset.random_access import RecordLocation
from shardwright.dataset.reader import ImageDataset
from shardwright.display.histograms import number
from shardwright.display.html import badge, card, isolate, join, link, paragraph, section, sheet
from shardwright.errors import DatasetError
from shardwright.report.contact_sheets import Sheets
from shardwright.report.duplicates import Duplicates
from shardwright.report.overview import groups
from shardwright.report.page import Chapter
from shardwright.storage.fingerprint import canonical_json
from shardwright.untrusted.json_text import listed, parse_untrusted_json, record, text

VERDICT_FILE = "verdict.json"
_VERDICT = listed(record({"kind": text, "where": text, "what": text, "keys": listed(text)}))
DRIFT, SKEW, LEAKAGE, NEAR_LEAKAGE = "DRIFT", "SKEW", "LEAKAGE", "NEAR_LEAKAGE"
# Kinds of anomalies that are found here, in addition to those of TFDV.
KINDS = (DRIFT, SKEW, LEAKAGE, NEAR_LEAKAGE)


@dataclass(frozen=True)
class Anomaly:
    """One anomaly.

    Attributes:
        kind: one of `KINDS`, or a name of TFDV's `AnomalyInfo.Type`.
        where: feature and split, or the measure.
        what: a sentence that describes it.
        keys: keys of the first images that have it.
    """

    kind: str
    where: str
    what: str
    keys: tuple[str, ...] = ()


def leaks(duplicates: Duplicates, sheets: Sheets) -> list[Anomaly]:
    """Returns an anomaly for each kind of duplicates that are in more than one split, with the keys of a group.

    Args:
        duplicates: the duplicates of the dataset.
        sheets: the contact sheets of the same dataset.
    """
    anomalies = []
    for kind, name, group_kind, count, words, fix in (
        (
            LEAKAGE,
            "equal files",
            "exact",
            duplicates.exact_leaks,
            "the same bytes",
            "duplicates.exact: first keeps one of each",
        ),
        (
            NEAR_LEAKAGE,
            "images that look alike",
            "near",
            duplicates.leaks - duplicates.exact_leaks,
            "nearly the same hashes",
            "duplicates: {near: {max_distance: 4}} puts a group into one split, unless the splits are predefined",
        ),
    ):
        if count:
            verb = "is" if count == 1 else "are"
            what = f"{groups(count)} of images with {words} {verb} in more than one split ({fix})"
            group = next((group for group in duplicates.shown if group.leaks and group.kind == group_kind), None)
            keys = tuple(sheets.view(place).key for place in group.places) if group else ()
            anomalies.append(Anomaly(kind, name, what, keys))
    return anomalies


def anomaly_chapter(anomalies: Sequence[Anomaly], dataset: ImageDataset, sheets: Sheets) -> Chapter | None:
    """Renders the anomalies against the schema, with the images that have them; `None` if there are none."""
    rows = [anomaly for anomaly in anomalies if anomaly.kind not in KINDS]
    if not rows:
        return None
    places = _places(dataset, {key for anomaly in rows for key in anomaly.keys})
    cards = []
    for anomaly in rows:
        tiles = [sheets.tile(places[key]) for key in anomaly.keys if key in places]
        title = join([badge("bad", isolate(anomaly.kind)), isolate(anomaly.where)], " ")
        what = paragraph(isolate(anomaly.what, 600))
        cards.append(card(title, what, sheet(tiles) if tiles else "", wide=True))
    words = f"{number(len(rows))} anomal{'y' if len(rows) == 1 else 'ies'}"
    finding = ("bad", join(["The data does not fit the schema: ", link("anomalies", words), "."]))
    body = section("anomalies", "Anomalies", *cards, lead="Values that do not fit the schema.")
    return Chapter("anomalies", "Anomalies", body, (finding,))


def _places(dataset: ImageDataset, keys: set[str]) -> dict[str, RecordLocation]:
    shards = dataset.all_shards()
    return {
        key: RecordLocation(position, offset)
        for position, shard in enumerate(shards)
        for key, offset in (dataset.entries(shard) if keys else ())
        if key in keys
    }


def write_verdict(folder: Path, anomalies: Sequence[Anomaly]) -> None:
    """Writes `verdict.json`."""
    rows = [asdict(anomaly) for anomaly in anomalies]
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
        raise DatasetError(f"{file}: the verdict cannot be read ({error}). Run the pipeline again.") from None
