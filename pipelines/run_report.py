"""The report of a finished run: its dataset, what was odd about it and let pass, and the model that came of it."""

from __future__ import annotations

import os
from pathlib import Path

from shardwright.components.evaluator.summary import read_details, read_evaluation
from shardwright.components.image_trainer.history import read_history
from shardwright.dataset import Dataset
from shardwright.report.contacts import CHAPTER_BUDGET, Sheets
from shardwright.report.markup import card, section, shown
from shardwright.report.model import model_chapter
from shardwright.report.page import Chapter, render, see
from shardwright.report.troubles import DRIFT, SKEW, Trouble, read_verdict, trouble_chapter
from shardwright.report.write import write_whole


def write_run_report(dataset: str, verdict: str, evaluation: str, training: str, target: Path) -> None:
    """Writes the report of a run; replaces an earlier one.

    Args:
        dataset: folder of the ingested dataset.
        verdict: folder of the Report component, whose `verdict.json` says what was let pass.
        evaluation: folder of the evaluation.
        training: folder of the training (`model_run`).
        target: the file.

    Raises:
        DatasetError: one of them is missing or damaged.
        UsageError: the file cannot be written.
    """
    opened = Dataset.open(dataset)
    seen = see(opened)
    troubles = read_verdict(Path(verdict))
    chapters = [
        trouble_chapter(troubles, opened, Sheets(seen.found, CHAPTER_BUDGET)),
        _changed([trouble for trouble in troubles if trouble.kind in (DRIFT, SKEW)]),
        evaluated(evaluation, training),
    ]
    write_whole(target, render(seen, [chapter for chapter in chapters if chapter is not None]))


def evaluated(evaluation: str | os.PathLike[str], training: str | os.PathLike[str] | None) -> Chapter:
    """A model as a chapter of a report.

    Args:
        evaluation: what the Evaluator wrote.
        training: what the Trainer wrote (`model_run`), for the curves.

    Raises:
        DatasetError: there is no evaluation or no history.
    """
    folder = Path(evaluation)
    told = read_details(folder)
    history = None if training is None else vars(read_history(training))
    return model_chapter(vars(read_evaluation(folder)), told, history, folder)


def _changed(troubles: list[Trouble]) -> Chapter | None:
    """Drift and skew that were let pass, in words; the pictures are in the Report component's page."""
    if not troubles:
        return None
    body = section("drift", "Drift", *(card(shown(t.where), f"<p>{shown(t.what, 600)}</p>") for t in troubles))
    kinds = " and ".join(sorted({trouble.kind for trouble in troubles}))
    finding = f'The images <a href="#drift">are unlike those they were compared with</a>: allowed ({kinds}).'
    return Chapter("drift", "Drift", body, (("warn", finding),))
