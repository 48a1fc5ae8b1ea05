"""Tasks on a bucket that nothing mounts: small artifacts are copied, examples are read on the bucket."""

import json
from pathlib import Path
from typing import Any

import pytest
from object_stores import SCHEMES, Stores, running_stores
from tensorflow_metadata.proto.v0 import anomalies_pb2

from shardwright.components.runtime import artifacts, container
from shardwright.components.runtime.mounts import MOUNTS_VARIABLE
from shardwright.dataset.dataset_schema import render_schema
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError

ANOMALY = "ENUM_TYPE_UNEXPECTED_STRING_VALUES"


@pytest.fixture(scope="module")
def stores() -> Any:
    with running_stores() as running:
        yield running


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task's process ends with it; here there are several in one."""
    monkeypatch.setenv(MOUNTS_VARIABLE, "/")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_inputs_are_brought_and_outputs_taken(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    bucket = stores.bucket(scheme)
    stores.fill(bucket, {"in/deep/file": b"before", "in/empty": b"", "examples/x": b"x", "in/folder/": b""})
    output_file = tmp_path / "output.json"

    def work(flags: list[str]) -> None:
        invocation = json.loads(flags[flags.index("--json_serialized_invocation_args") + 1])
        inputs, outputs = (
            {key: one["artifacts"][0]["uri"] for key, one in invocation[side]["artifacts"].items()}
            for side in ("inputs", "outputs")
        )
        assert inputs["examples"] == f"{bucket}/examples"
        source, target = Path(inputs["source"]), Path(outputs["made"])
        assert (source / "empty").read_bytes() == b""
        (target / "below").mkdir()
        (target / "below" / "file").write_text((source / "deep" / "file").read_text() + " and after")
        # TFX's temporary folder of the component is next to it.
        written = Path(invocation["outputs"]["outputFile"])
        assert written != output_file
        written.parent.mkdir()
        written.write_text(json.dumps({"artifacts": {"made": {"artifacts": [{"uri": str(target)}]}}}))

    monkeypatch.setattr(container, "run_task", work)
    examples = {"uri": f"{bucket}/examples", "type": {"instanceSchema": "title: tfx.Examples\ntype: object\n"}}
    task = {
        "inputs": {
            "artifacts": {
                "source": {"artifacts": [{"uri": f"{bucket}/in"}]},
                "examples": {"artifacts": [examples]},
            }
        },
        "outputs": {"artifacts": {"made": {"artifacts": [{"uri": f"{bucket}/out"}]}}, "outputFile": str(output_file)},
    }
    assert container.main(["--artifacts", "streamed", "--json_serialized_invocation_args", json.dumps(task)]) == 0
    assert stores.tree(f"{bucket}/out") == {"below/file": b"before and after"}
    assert json.loads(output_file.read_text())["artifacts"]["made"]["artifacts"] == [{"uri": f"{bucket}/out"}]


def test_no_object_leads_out_of_its_artifact(stores: Stores, tmp_path: Path) -> None:
    bucket = stores.bucket("s3")
    stores.fill(bucket, {"in/../../outside": b"evil"})
    with pytest.raises(DatasetError, match="its name leads out of the artifact"):
        artifacts.fetch_folder(f"{bucket}/in", tmp_path / "a" / "b")
    assert not (tmp_path / "outside").exists()


class Task:
    """One that Vertex AI runs, with all its artifacts on a bucket."""

    def __init__(self, bucket: str, folder: Path) -> None:
        self.bucket, self.folder = bucket, folder

    def run(self, executor: str, inputs: dict[str, tuple[str, str]], output: str, **parameters: str) -> int:
        def artifact(kind: str, place: str) -> dict[str, Any]:
            made = {"name": place, "uri": f"{self.bucket}/{place}", "type": {"instanceSchema": f"title: tfx.{kind}\n"}}
            splits = json.dumps(["eval", "test", "train"])
            return {**made, "metadata": {"split_names": splits}} if kind.startswith("Example") else made

        invocation = {
            "inputs": {
                "artifacts": {key: {"artifacts": [artifact(*one)]} for key, one in inputs.items()},
                "parameterValues": parameters,
            },
            "outputs": {
                "artifacts": {output: {"artifacts": [artifact("File", output)]}},
                "outputFile": str(self.folder / output / "output.json"),
            },
        }
        types = json.dumps({"parameters": {name: {"parameterType": "STRING"} for name in parameters}})
        arguments = ["--artifacts", "streamed", "--executor_class_path", executor]
        arguments += ["--json_serialized_inputs_spec_args", types]
        return container.main([*arguments, "--json_serialized_invocation_args", json.dumps(invocation)])


def test_report_and_gate_read_images_where_they_lie(
    small_dataset: Any,
    stores: Stores,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset = small_dataset(tmp_path / "in", counts={"train": [4, 3], "eval": [2], "test": [2]})
    manifest = ImageDataset.open(dataset).manifest
    bucket = stores.bucket("gs")
    found = anomalies_pb2.Anomalies()
    reason = found.anomaly_info["image/format"].reason.add()
    reason.type, reason.description = anomalies_pb2.AnomalyInfo.Type.Value(ANOMALY), "odd"
    schema = render_schema(manifest.task, manifest.classes, manifest.labels, manifest.features)
    stores.copy_of(dataset, f"{bucket}/examples")
    stores.fill(f"{bucket}/schema", {"schema.pbtxt": schema.encode()})
    odd = {f"Split-{split}/SchemaDiff.pb": found.SerializeToString() for split in manifest.splits}
    stores.fill(f"{bucket}/anomalies", odd)
    fetched = []
    fetch = artifacts.fetch_folder
    monkeypatch.setattr(container, "fetch_folder", lambda url, folder: (fetched.append(url), fetch(url, folder))[1])
    task = Task(bucket, tmp_path)
    inputs = {name.lower(): (kind, name.lower()) for name, kind in (("Examples", "Examples"), ("Schema", "Schema"))}
    inputs["anomalies"] = ("ExampleAnomalies", "anomalies")

    code = task.run("shardwright.components.report.executor.Executor", inputs, "report", drift="")
    assert code == 0, capsys.readouterr().err
    made = stores.tree(f"{bucket}/report")
    assert set(made) == {"report.html", "verdict.json", "lineage.json"}
    assert len(json.loads(made["verdict.json"])) == len(manifest.splits)
    assert json.loads(made["lineage.json"])["parents"] == {"dataset": manifest.digest}

    gate = "shardwright.components.data_gate.executor.Executor"
    inputs["report"] = ("File", "report")
    capsys.readouterr()
    assert task.run(gate, inputs, "decision", allow="[]") == 1
    message = capsys.readouterr().err
    assert "The data gate is shut: 3 anomalies" in message
    assert message.rstrip().endswith(f"See it: {bucket}/report/report.html")
    assert task.run(gate, inputs, "decision", allow=json.dumps([ANOMALY])) == 0
    assert json.loads(stores.tree(f"{bucket}/decision")["decision.json"])["anomalies"] == len(manifest.splits)
    assert f"{bucket}/examples" not in fetched
    assert f"{bucket}/schema" in fetched
