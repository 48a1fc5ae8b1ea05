"""The published figures: a run replaces those of its subject, and the documentation shows what the file has."""

import os
import re
import runpy
from pathlib import Path

import pytest

from benchmarks import loaders, record
from benchmarks.figures import AT_LEAST, AT_MOST, Figure

ROOT = Path(__file__).parents[2]
# Page -> a sentence on it, with the figures that it quotes.
QUOTES = {
    "docs/how-to/report.md": (
        "A report of 100,000 images took {0} and {1}",
        (("report", "report"), ("report", "report: memory")),
    ),
}


def test_the_page_of_results_has_the_recorded_figures() -> None:
    text = record.PAGE.read_text(encoding="utf-8")
    if os.environ.get("SHARDWRIGHT_RENEW_GOLDEN"):
        record.PAGE.write_text(record.page(text), encoding="utf-8")
    assert record.PAGE.read_text(encoding="utf-8") == record.page(text), "renew it with SHARDWRIGHT_RENEW_GOLDEN=1"
    assert set(re.findall("<!-- generated: (.*) -->", text)) == record.load().keys()


@pytest.mark.parametrize("page", QUOTES)
def test_a_page_quotes_the_recorded_figures(page: str) -> None:
    sentence, quoted = QUOTES[page]
    known = record.load()
    values = [
        record.shown(next(Figure(**row) for row in known[subject].rows if row["name"] == name))
        for subject, name in quoted
    ]
    assert sentence.format(*values) in " ".join((ROOT / page).read_text(encoding="utf-8").split())


def test_the_page_names_the_settings_of_the_comparison_of_trainings() -> None:
    compared = runpy.run_path(str(ROOT / "tools/compare_training.py"))
    lines = record.PAGE.read_text(encoding="utf-8").splitlines()
    rows = {data: next(line for line in lines if line.startswith(f"| {data}")) for data in compared["TARGETS"]}
    for data, row in rows.items():
        augment = compared["AUGMENT"][data]
        assert (f"`augment: [{', '.join(augment)}]`" if augment else "the defaults") in row, data
        assert f"+{compared['TARGETS'][data]:.2f}" in row, data


def test_a_run_replaces_the_figures_of_its_subject(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    file.write_text("{}")
    figures = [
        Figure("ingest, header: notebook", 7, "x", AT_LEAST, 8),
        Figure("verify, one core", 1234.5, "MB/s", AT_LEAST, 300),
        Figure("new", None, "s", AT_MOST, 5),
    ]
    for _ in range(2):
        record.record("ingest", [vars(figure) for figure in figures], file)
    subjects = record.load(file)
    assert list(subjects) == ["ingest", "parts"]
    assert record.table(subjects["ingest"]).splitlines()[4:] == [
        "| ingest, compared with the notebook | 7x | 8x, **below the target** |"
    ]
    assert "| verify, on one core | 1,234 MB/s | 300 MB/s |" in record.table(subjects["parts"])
    assert re.match(r"Measured on 20\d\d-\d\d-\d\d: \d+ cores of .+, .+\.", record.table(subjects["parts"]))


def test_every_loader_has_a_name_and_a_row() -> None:
    assert {*loaders._OURS, *loaders._THEIRS} == record.LOADERS.keys()
    batch = {"dtype": "uint8", "shape": [1]}
    measured = {
        "rates": {"ours": [10.0, 20.0], "grain_threads": [5.0, 40.0]},
        "work": {"ours": [1.0, 1.0], "grain_threads": [2.0, 4.0]},
        "batches": {"ours": batch, "grain_threads": batch},
    }
    assert loaders.rows(measured) == [
        {"name": "grain_threads", "rate": 22.5, "share": 1.25, "processor": 3.0, "dtype": "uint8"},
        {"name": "ours", "rate": 15.0, "share": 1.0, "processor": 1.0, "dtype": "uint8"},
    ]
