"""The table at the end of a run: notes that reading the annotations could not give, and what a verdict leaves out."""

from evaluations import evaluated

from shardwright.pipelines.runs.summary import _further_notes, _verdict_rows, _way_on
from shardwright.storage.fingerprint import checksummed_json


def test_notes_that_were_not_shown_yet_are_shown(tmp_path):
    build = tmp_path / "build.json"
    build.write_text(checksummed_json({"notes": ["labels: csv", "split: train 0.8 (8)", "split: 3 groups"]}))
    rows = [("notes", "split: train 0.8 (8)"), ("", "split: 3 groups")]
    assert _further_notes(build, ("labels: csv",)) == rows
    build.write_text(checksummed_json({"runner": "ingest"}))
    assert _further_notes(build, ()) == []


def test_a_class_that_a_split_lacks_is_said_by_the_verdict_alone(tmp_path):
    build = tmp_path / "build.json"
    notes = ["split: no image of test has owl", "split: no image of eval has owl"]
    build.write_text(checksummed_json({"notes": notes}))
    assert _further_notes(build, ()) == []
    allowed = evaluated(
        {"f1/daisy": 0.9}, reasons=["1 image was left out", "not judged on owl, of which test has no image"]
    )
    assert _verdict_rows(allowed) == [
        ("model", "BLESSED, though not judged on owl, of which test has no image; pushed"),
        ("", "1 image was left out"),
    ]
    assert _verdict_rows(evaluated({"f1/daisy": 0.9})) == [("model", "BLESSED and pushed")]


def test_the_way_on_from_a_model_that_is_not_blessed(tmp_path):
    found = evaluated({"f1/daisy": 0.9}, blessed=False, reasons=["too few", "too bad"], keys=["evaluator.min_images"])
    assert _verdict_rows(found) == [("model", "NOT BLESSED, not pushed")]
    assert _way_on(found, tmp_path / "my run") == [
        ("not blessed", "too few"),
        ("", "too bad"),
        ("predict with it", f"shardwright predict '{tmp_path}/my run' IMAGES --unblessed --out predictions.csv"),
        ("keys that decide", "evaluator.min_images"),
    ]
