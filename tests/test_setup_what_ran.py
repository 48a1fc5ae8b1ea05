"""What ran where: docs/trust/limits.md has the rows of tools/patches/guarantees.toml, NOTES.md the emulator's rules."""

import os
import sys
from pathlib import Path

from kubeflow_driver import RULES
from reference_pages import table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools" / "patches"))
from tables import read  # noqa: E402

sys.path.remove(str(ROOT / "tools" / "patches"))
PAGE, NOTES = ROOT / "docs/trust/limits.md", ROOT / "benchmarks/NOTES.md"
HOW = ("real", "recorded", "emulated", "read")
# The columns of the table that opens the page.
SEEN = {"ran": ("real", "recorded"), "emulated": ("emulated",), "untried": ("read",)}
BY_HAND = "by hand"
TARGETS = read(ROOT / "tools" / "patches" / "guarantees.toml")["target"]


def pages() -> dict[Path, str]:
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
        "summary": table(", ran, emulated only, untried", short),
        "targets": table("target, version, how, what, test", rows),
        "rules": (
            "# Rules of the emulator of Kubeflow Pipelines\n\n"
            "Recorded rules were compared with what Kubeflow's own driver and launcher wrote.\n\n"
            f"{table('rule, how, versions', rules)}"
        ),
    }
    made = {file: file.read_text(encoding="utf-8") for file in (PAGE, NOTES)}
    for name, part in parts.items():
        file = NOTES if name == "rules" else PAGE
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, _, rest = made[file].partition(begin)
        made[file] = f"{before}{begin}\n{part.strip()}\n\n{end}{rest.partition(end)[2]}"
    return made


def test_the_pages_are_those_of_the_list() -> None:
    for file, made in pages().items():
        if os.environ.get("SHARDWRIGHT_RENEW_GOLDEN"):
            file.write_text(made, encoding="utf-8")
        assert file.read_text(encoding="utf-8") == made, "renew it with SHARDWRIGHT_RENEW_GOLDEN=1"


def test_every_row_says_how_and_names_a_test_that_exists() -> None:
    assert len(TARGETS) > 15
    for one in TARGETS:
        assert one["how"] in HOW, one
        assert all(one[key] for key in ("name", "version", "what")), one
        assert one["test"] == BY_HAND or (ROOT / one["test"]).is_file(), one
        # Nothing counts as shown that no test shows and that did not run.
        assert one["test"] != BY_HAND or one["how"] == "real", one
