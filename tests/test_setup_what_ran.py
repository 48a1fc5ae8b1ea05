"""docs/trust/what-ran.md is made of the rows of tools/patches/guarantees.toml, and of the emulator's rules."""

import os
import sys
from pathlib import Path

from kubeflow_driver import RULES
from reference_pages import table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools" / "patches"))
from tables import read  # noqa: E402

sys.path.remove(str(ROOT / "tools" / "patches"))
PAGE = ROOT / "docs" / "trust" / "what-ran.md"
HOW = ("real", "recorded", "emulated", "read")
BY_HAND = "by hand"
TARGETS = read(ROOT / "tools" / "patches" / "guarantees.toml")["target"]


def page() -> str:
    begin = PAGE.read_text(encoding="utf-8").partition("<!-- generated -->\n")[0]
    rows = [
        (
            one["name"],
            one["version"],
            one["how"],
            one["what"],
            one["test"] if one["test"] == BY_HAND else f"`{one['test']}`",
        )
        for one in TARGETS
    ]
    rules = [(rule, how, versions or "–") for rule, (how, versions) in RULES.items()]
    return (
        f"{begin}<!-- generated -->\n\n{table('target, version, how, what, test', rows)}\n"
        "## Rules of the emulator of Kubeflow Pipelines\n\n"
        "Recorded rules were compared with what Kubeflow's own driver and launcher wrote.\n\n"
        f"{table('rule, how, versions', rules)}"
    )


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
