"""The table and the report at the end of a run.

The table has images in and out, anomalies, loss, metrics, the verdict and the paths of all outputs. The report shows
the dataset, the anomalies that were allowed, and the model.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup

from shardwright.components.data_gate.executor import DECISION_FILE
from shardwright.components.evaluator.result_files import EvaluationSummary, read_details, read_evaluation
from shardwright.components.image_trainer.training.history import read_history, read_summary
from shardwright.config import EvaluatorConfig
from shardwright.dataset.manifest import BUILD_FILE, DISPLAYED, LOCATED, MANIFEST_FILE, MULTI, Manifest
from shardwright.dataset.reader import ImageDataset
from shardwright.display.html import card, isolate, link, paragraph, section
from shardwright.evaluation.figures import KAGGLE, TITLES
from shardwright.evaluation.metrics import headline
from shardwright.evaluation.verdict import AUTO, LEAST_IMAGES, UNJUDGED
from shardwright.lineage.blessing import read_blessing
from shardwright.pipelines.commands.results import dataset_facts
from shardwright.pipelines.runs.corrections import Corrections
from shardwright.pipelines.runs.runner import RunRecord
from shardwright.report.anomaly_chapter import DRIFT, SKEW, Anomaly, anomaly_chapter, read_verdict
from shardwright.report.contact_sheets import CHAPTER_BUDGET, Sheets
from shardwright.report.model_chapter import model_chapter
from shardwright.report.page import REPORT_FILE, Chapter, collect_page, render, write_page
from shardwright.running.progress import counted
from shardwright.text.escaping import escape

# How the ingest's note on the classes that a split lacks begins.
LACKS = "split: no image of "
# Labels of paths in the table -> their keys for `run.on_finish`.
_KEYS = {"TensorBoard": "model_run", "pushed model": "pushed_model"}


@dataclass(frozen=True)
class RunSummary:
    """The result of a run.

    Attributes:
        rows: label and value of each line, in order; a line without a label continues the one above.
        blessed: the model was blessed, and so pushed.
        reasons: why it was not.
        facts: the values for `run.on_finish` that come from the run's artifacts.
    """

    rows: tuple[tuple[str, str], ...]
    blessed: bool
    reasons: tuple[str, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Returns the result for programs: all facts, and the table, where lines that continue one are with it."""
        rows: dict[str, list[str]] = {}
        label = ""
        for row, value in self.rows:
            label = row or label
            rows.setdefault(label, []).append(value)
        return {"blessed": self.blessed, "reasons": list(self.reasons), **self.facts, "summary": rows}

    def table(self) -> str:
        """Returns the rows as aligned lines."""
        width = max(len(label) for label, _ in self.rows) + 2
        return "\n".join(f"{escape(label):<{width}}{escape(value)}".rstrip() for label, value in self.rows)


def summarize(
    record: RunRecord,
    run_root: Path,
    push_directory: str,
    shown: Sequence[str],
    corrections: Corrections | None = None,
) -> RunSummary:
    """Reads the figures of a finished run from its artifacts.

    Args:
        record: the reports of the components; URIs are relative to the current folder.
        run_root: that folder, absolute.
        push_directory: where blessed models are pushed, relative to it.
        shown: notes on the input that the user has seen already.
        corrections: annotations that differ from those of an earlier dataset.
    """
    examples = record.output("ImageExampleGen", "examples")
    manifest = Manifest.from_json(Path(examples, MANIFEST_FILE).read_text(encoding="utf-8"))
    decision = json.loads(Path(record.output("DataGate", "decision"), DECISION_FILE).read_text(encoding="utf-8"))
    evaluation = read_evaluation(record.output("Evaluator", "evaluation"))
    model_run = record.output("Trainer", "model_run")
    history, training = read_history(model_run), read_summary(model_run)
    rows = _ingest_rows(manifest, run_root / examples)
    rows.extend(_further_notes(Path(examples, BUILD_FILE), shown))
    if corrections is not None:
        rows.append(("corrections", corrections.words()))
    kinds = ", ".join(sorted({str(row["kind"]) for row in decision["allowed"]}))
    count = decision["anomalies"]
    rows.append(("anomalies", f"{count} allowed by gate.allow_anomalies: {kinds}" if count else "none"))
    best = f", the best on {history.eval_split}" if history.eval_split else ""
    course = f"{history.loss[0]:.4f} -> {history.loss[-1]:.4f} in {len(history.loss)} epochs"
    rows.append(("loss on train", f"{course} (kept: epoch {history.best_epoch}{best})"))
    rows.extend(_metric_rows(evaluation, first=headline(manifest.task, multi=manifest.labels == MULTI)))
    rows.extend(_verdict_rows(evaluation))
    paths = _places(record, push_directory, pushed=evaluation.blessed)
    rows.extend((label, str(run_root / uri)) for label, uri in paths.items())
    if not evaluation.blessed:
        rows.extend(_way_on(evaluation, run_root))
    facts = {
        "metrics": evaluation.metrics,
        "measured": evaluation.measured,
        "interval": evaluation.interval,
        "baseline": evaluation.baseline,
        "change": evaluation.change,
        "keys": evaluation.keys,
        "epochs": training.epochs,
        "best_epoch": training.best_epoch,
        **({} if corrections is None else {"corrections": corrections.facts()}),
        "dataset": {"digest": manifest.digest, "classes": list(manifest.classes), "records": _records(manifest)},
        "paths": {_KEYS.get(label, label): str(run_root / uri) for label, uri in paths.items()},
    }
    return RunSummary(tuple(rows), evaluation.blessed, tuple(evaluation.reasons), facts)


def hopeless(examples: str, section: EvaluatorConfig) -> Iterator[str]:
    """Yields why no model of a run can be blessed, as far as its dataset shows it.

    Args:
        examples: folder of the dataset.
        section: the conditions of a blessing.
    """
    manifest = Manifest.from_json(Path(examples, MANIFEST_FILE).read_text(encoding="utf-8"))
    least = LEAST_IMAGES if section.min_images == AUTO else int(section.min_images)
    count = _records(manifest).get(section.split, 0)
    why = (
        [f"{section.split} has {counted(count, 'image')}, fewer than {least}: evaluator.min_images"]
        if count < least
        else []
    )
    notes = json.loads(Path(examples, BUILD_FILE).read_text(encoding="utf-8")).get("notes", [])
    if not section.allow_missing_classes:
        lacking = (note for note in notes if note.startswith(LACKS))
        why += [f"{note.removeprefix('split: ')}: evaluator.allow_missing_classes" for note in lacking]
    return (f"no model of this run will be blessed ({reason})" for reason in why)


def _further_notes(build: Path, shown: Sequence[str]) -> list[tuple[str, str]]:
    """Returns ImageExampleGen's notes that were not shown yet: duplicates, shares of the splits.

    The verdict says which classes splits lack.
    """
    notes = json.loads(build.read_text(encoding="utf-8")).get("notes", [])
    further = [note for note in notes if note not in shown and not note.startswith(LACKS)]
    return [("notes" if i == 0 else "", note) for i, note in enumerate(further)]


def _ingest_rows(manifest: Manifest, dataset: Path) -> list[tuple[str, str]]:
    totals, facts = manifest.totals, dataset_facts(manifest)
    rows = [("images", facts.pop("images"))]
    if totals["rejected"]:
        rows.append(("", f"each with its reason in {dataset / 'ledger'}"))
    if totals.get(LOCATED):
        rows.append(("", f"{totals[LOCATED]} contain the place where they were taken (GPS); see images.strip_metadata"))
    if totals.get(DISPLAYED):
        rows.append(("", f"{totals[DISPLAYED]} turned by Exif, annotated as displayed; see input.labels.orientation"))
    return [*rows, *facts.items()]


def _metric_rows(evaluation: EvaluationSummary, first: str) -> list[tuple[str, str]]:
    figures = evaluation.figures
    rows = [("figures", f"of {figures.measured.words()}")]
    by_class = sorted(item for item in figures.values.items() if "/" in item[0])
    for name, value in (*figures.means(first), *by_class):
        known = [f"{value:.4f}"]
        if name == first and evaluation.interval:
            known.append("with 95 % confidence {low:.4f} to {high:.4f}".format(**evaluation.interval))
        if name in evaluation.baseline:
            known.append(f"last blessed {evaluation.baseline[name]:.4f}")
        if name == KAGGLE:
            known.append(TITLES[KAGGLE][1])
        rows.append((name, "   ".join(known)))
    if evaluation.change:
        spread = "{value:+.4f}, and with 95 % confidence {low:+.4f} to {high:+.4f}".format(**evaluation.change)
        rows.append((f"{first} change", f"{spread}, on the same images"))
    return rows


def _verdict_rows(evaluation: EvaluationSummary) -> list[tuple[str, str]]:
    if not evaluation.blessed:
        return [("model", "NOT BLESSED, not pushed")]
    unjudged = next((reason for reason in evaluation.reasons if reason.startswith(UNJUDGED)), "")
    verdict = f"BLESSED, though {unjudged}; pushed" if unjudged else "BLESSED and pushed"
    return [("model", verdict), *(("", reason) for reason in evaluation.reasons if reason != unjudged)]


def _way_on(evaluation: EvaluationSummary, run_root: Path) -> list[tuple[str, str]]:
    """Returns why a model was not blessed, how to predict with it all the same, and what decides."""
    run = shlex.quote(str(run_root))
    return [
        *(("not blessed" if place == 0 else "", reason) for place, reason in enumerate(evaluation.reasons)),
        ("predict with it", f"shardwright predict {run} IMAGES --unblessed --out predictions.csv"),
        ("keys that decide", ", ".join(evaluation.keys)),
    ]


def _records(manifest: Manifest) -> dict[str, int]:
    """Returns split -> number of records."""
    return {name.split("/", 1)[1]: n for name, n in manifest.totals.items() if name.startswith("records/")}


def _places(record: RunRecord, push_directory: str, *, pushed: bool) -> dict[str, str]:
    """Returns label -> path of an output, relative to the folder of the run."""
    places = {
        "dataset": record.output("ImageExampleGen", "examples"),
        "report": REPORT_FILE,
        "transformed": record.output("ImageTransform", "transformed_examples"),
        "TensorBoard": record.output("Trainer", "model_run"),
        "evaluation": record.output("Evaluator", "evaluation"),
    }
    if not pushed:
        places["model"] = record.output("Trainer", "model")
    blessing = read_blessing(push_directory)
    if pushed and blessing is not None:
        places["pushed model"] = str(Path(push_directory, blessing.model))
    return places


def write_run_report(
    dataset: str,
    verdict: str,
    evaluation: str,
    training: str,
    target: Path,
    corrections: Corrections | None = None,
) -> None:
    """Writes the report of a run; replaces an earlier one.

    Args:
        dataset: folder of the ingested dataset.
        verdict: folder of the Report component, whose `verdict.json` has the allowed anomalies.
        evaluation: folder of the evaluation.
        training: folder of the training (`model_run`).
        target: the file.
        corrections: annotations that differ from those of an earlier dataset.

    Raises:
        DatasetError: one of them is missing or damaged.
        UsageError: the file cannot be written.
    """
    opened = ImageDataset.open(dataset)
    seen = collect_page(opened)
    troubles = read_verdict(Path(verdict))
    chapters = [
        anomaly_chapter(troubles, opened, Sheets(seen.collected, CHAPTER_BUDGET)),
        _drift_chapter([trouble for trouble in troubles if trouble.kind in (DRIFT, SKEW)]),
        None if corrections is None else corrections.chapter(evaluation),
        model_chapter_of(evaluation, training),
    ]
    write_page(target, render(seen, [chapter for chapter in chapters if chapter is not None]))


def model_chapter_of(evaluation: str | os.PathLike[str], training: str | os.PathLike[str] | None) -> Chapter:
    """Returns the chapter of a model.

    Args:
        evaluation: folder of the Evaluator's output.
        training: folder of the Trainer's `model_run`, for the curves.

    Raises:
        DatasetError: there is no evaluation or no history.
    """
    folder = Path(evaluation)
    details = read_details(folder)
    history = None if training is None else vars(read_history(training))
    return model_chapter(vars(read_evaluation(folder)), details, history, folder)


def _drift_chapter(troubles: list[Anomaly]) -> Chapter | None:
    """Returns a chapter on allowed drift and skew as text; the Report component's page has the pictures."""
    if not troubles:
        return None
    body = section("drift", "Drift", *(card(isolate(t.where), paragraph(isolate(t.what, 600))) for t in troubles))
    kinds = " and ".join(sorted({trouble.kind for trouble in troubles}))
    unlike = link("drift", "differ from those they were compared with")
    finding = Markup("The images {}: allowed ({}).").format(unlike, kinds)
    return Chapter("drift", "Drift", body, (("warn", finding),))
