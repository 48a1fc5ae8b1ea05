"""The table at the end of a run has the notes that reading the annotations could not give."""

from shardwright.fingerprint import checksummed_json
from shardwright.pipelines.runs.summary import _further_notes


def test_notes_that_were_not_shown_yet_are_shown(tmp_path):
    build = tmp_path / "build.json"
    build.write_text(checksummed_json({"notes": ["labels: csv", "split: train 0.8 (8)", "split: 3 groups"]}))
    rows = [("notes", "split: train 0.8 (8)"), ("", "split: 3 groups")]
    assert _further_notes(build, ("labels: csv",)) == rows
    build.write_text(checksummed_json({"runner": "ingest"}))
    assert _further_notes(build, ()) == []
