"""docs/trust/limits.md is made of the rows of tools/patches/guarantees.toml, and of the emulator's rules."""

import os
import sys
from pathlib import Path

from kubeflow_driver import RULES
from reference_pages import table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools" / "patches"))
from tables import read  # noqa: E402

sys.path.remove(str(ROOT / "tools" / "patches"))
PAGE = ROOT / "docs" / "trust" / "limits.md"
HOW = ("real", "recorded", "emulated", "read")
# The columns of the table that opens the page.
SEEN = {"works": ("real", "recorded"), "emulated": ("emulated",), "untried": ("read",)}
BY_HAND = "by hand"
TARGETS = read(ROOT / "tools" / "patches" / "guarantees.toml")["target"]


def page() -> str:
    rows = [
        (
            row["name"],
            row["version"],
            row["how"],
            row["what"],
            row["test"] if row["test"] == BY_HAND else f"`{row['test']}`",
        )
        for row in TARGETS
    ]
    summary: dict[str, dict[str, list[str]]] = {}
    for row in TARGETS:
        area, _, part = row["name"].partition(": ")
        cells = summary.setdefault(area, {name: [] for name in SEEN})
        (column,) = (name for name, kinds in SEEN.items() if row["how"] in kinds)
        version = row["version"] if row["version"] != "–" else ""
        cells[column].append(f"{part} ({version})" if part and version else part or version)
    rules = [(rule, how, versions or "–") for rule, (how, versions) in RULES.items()]
    short = [(area, *("; ".join(cells[name]) for name in SEEN)) for area, cells in summary.items()]
    parts = {
        "summary": table(", works, emulated only, untried", short),
        "targets": table("target, version, how, what, test", rows),
        "rules": (
            "## Rules of the emulator of Kubeflow Pipelines\n\n"
            "Recorded rules were compared with what Kubeflow's own driver and launcher wrote.\n\n"
            f"{table('rule, how, versions', rules)}"
        ),
    }
    text = PAGE.read_text(encoding="utf-8")
    for name, part in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n{part.strip()}\n\n{end}{rest.partition(end)[2]}"
    return text


def test_the_page_is_that_of_the_list() -> None:
    made = page()
    if os.environ.get("SHARDWRIGHT_RENEW_GOLDEN"):
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made, "renew it with SHARDWRIGHT_RENEW_GOLDEN=1"


def test_every_row_says_how_and_names_a_test_that_exists() -> None:
    assert len(TARGETS) > 15
    for one in TARGETS:
        assert one["how"] in HOW, one
        assert all(one[key] for key in ("name", "version", "what")), one
        assert one["test"] == BY_HAND or (ROOT / one["test"]).is_file(), one
        # Nothing counts as shown that no test shows and that did not run.
        assert one["test"] != BY_HAND or one["how"] == "real", one
