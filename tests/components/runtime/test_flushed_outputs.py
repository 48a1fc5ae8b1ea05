"""The outputs of an executor are on stable storage when its `Do` returns."""

from pathlib import Path

from power_cuts import LOST, simulated_disk
from tfx.types import standard_artifacts

from shardwright.components.runtime.artifacts import flushed_outputs


class Executor:
    @flushed_outputs
    def Do(self, input_dict, output_dict, exec_properties):
        """Writes a folder, a file and nothing at all."""
        assert (input_dict, exec_properties) == ({"a": []}, {"b": 1})
        folder, value, _ = (output_dict[name][0] for name in ("model", "text", "missing"))
        deep = Path(folder.uri, "deep")
        deep.mkdir(parents=True)
        (deep / "file").write_text("data")
        value.write("text")


def artifact(kind, uri):
    made = kind()
    made.uri = str(uri)
    return [made]


def test_outputs_survive_a_power_cut(tmp_path):
    outputs = {
        "model": artifact(standard_artifacts.Model, tmp_path / "artifacts" / "model" / "1"),
        "text": artifact(standard_artifacts.String, tmp_path / "artifacts" / "text" / "2"),
        "missing": artifact(standard_artifacts.Model, tmp_path / "artifacts" / "missing"),
        "bucket": artifact(standard_artifacts.Model, "gs://bucket/model"),
    }
    with simulated_disk(tmp_path) as disk:
        (tmp_path / "artifacts" / "text").mkdir(parents=True)
        Executor().Do({"a": []}, outputs, {"b": 1})
        after = disk.after_cut(LOST)
    assert {path: data for path, data in after.items() if data is not None} == {
        "artifacts/model/1/deep/file": b"data",
        "artifacts/text/2": b"text",
    }
