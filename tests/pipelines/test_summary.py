"""The table at the end of a run: notes that reading the annotations could not give, and what a verdict leaves out."""

from shardwright.components.evaluator.summary import EvaluationSummary
from shardwright.fingerprint import checksummed_json
from shardwright.pipelines.runs.summary import _further_notes, _verdict_rows


def test_notes_that_were_not_shown_yet_are_shown(tmp_path):
    build = tmp_path / "build.json"
    build.write_text(checksummed_json({"notes": ["labels: csv", "split: train 0.8 (8)", "split: 3 groups"]}))
    rows = [("notes", "split: train 0.8 (8)"), ("", "split: 3 groups")]
    assert _further_notes(build, ("labels: csv",)) == rows
    build.write_text(checksummed_json({"runner": "ingest"}))
    assert _further_notes(build, ()) == []


def test_classes_that_a_model_never_finds_are_named():
    metrics = {"mean_dice": 0.4, "f1/daisy": 0.9, "f1/rose": 0.0, "dice/rose": 0.0, "f1/tulip": 0.0}
    assert _verdict_rows(EvaluationSummary(metrics, {}, blessed=True, reasons=[])) == [
        ("model", "BLESSED and pushed"),
        ("", "it finds these classes in no image that shows them: rose, tulip"),
    ]
    found = EvaluationSummary({"f1/daisy": 0.9}, {}, blessed=False, reasons=["too bad"])
    assert _verdict_rows(found) == [("model", "NOT BLESSED, not pushed"), ("", "too bad")]
