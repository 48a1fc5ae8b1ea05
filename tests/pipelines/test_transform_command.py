"""`shardwright transform`: the component's outputs in one folder, whole or not at all."""

import json
import shutil

import pytest
import yaml

from shardwright.dataset.reader import ImageDataset
from shardwright.pipelines.cli import main
from shardwright.sample import write_sample
from shardwright.tfrecords.records import frame, read_records

CONFIG = {
    "task": "segmentation",
    "input": {"images": "data/train_images", "labels": {"path": "data/train.csv"}},
    "split": {"ratios": {"train": 0.8, "eval": 0.2}},
    "transform": {"size": [32, 48]},
    "evaluator": {"split": "eval"},
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("transform")
    write_sample(str(folder / "data"), images=8, height=64, width=96, seed=3)
    (folder / "c.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    patch = pytest.MonkeyPatch()
    patch.chdir(folder)
    assert main(["ingest", "c.yaml", "--out", "ds", "--workers", "1"]) == 0
    yield folder
    patch.undo()


@pytest.mark.slow
def test_four_outputs_and_nothing_else(home, capsys):
    assert main(["transform", "c.yaml", "ds", "--out", "tr", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    made = ImageDataset.open(home / "tr" / "transformed_examples")
    assert (found["fingerprint"], found["totals"]["written"]) == (made.manifest.fingerprint, 8)
    names = {"transformed_examples", "transform_graph", "post_transform_stats", "post_transform_schema"}
    assert {path.name for path in (home / "tr").iterdir()} == names
    assert {path.name for path in home.iterdir()} == {"c.yaml", "data", "ds", "tr"}
    lineage = json.loads((home / "tr" / "transform_graph" / "lineage.json").read_text(encoding="utf-8"))
    # Nothing has checked the examples against a schema here.
    assert lineage["parents"] == {"examples": ImageDataset.open(home / "ds").manifest.digest}

    stamp = (home / "tr").stat().st_mtime_ns
    assert main(["transform", "c.yaml", "ds", "--out", "tr"]) == 0
    assert "8 images" in capsys.readouterr().out
    assert (home / "tr").stat().st_mtime_ns == stamp


def test_a_shard_of_other_records_ends_it_in_a_line(home, tmp_path, capsys):
    shutil.copytree(home / "ds", tmp_path / "ds")
    shard = min(tmp_path.glob("ds/Split-train/*"))
    payloads = [payload for _, payload in read_records(shard)]
    shard.write_bytes(b"".join(map(frame, reversed(payloads))))
    assert main(["transform", "c.yaml", str(tmp_path / "ds"), "--out", str(tmp_path / "out")]) == 1
    found = "differs from the manifest: damaged, or changed since. Run `shardwright verify` for a list of all damage."
    assert f"{shard}: {found}" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("dataset", "out", "message"),
    [
        ("ds", "data", "exists already with other content"),
        ("ds", "ds/below", "is inside the dataset"),
        ("ds", "gs://bucket/x", "gs://bucket/x: a transform writes to this machine only"),
        ("data", "x", "data"),
    ],
)
def test_calls_that_are_wrong(home, capsys, dataset, out, message):
    assert main(["transform", "c.yaml", dataset, "--out", out]) != 0
    output = capsys.readouterr().err
    assert message in output
    assert "Traceback" not in output
    assert not (home / "x").exists()
    assert not (home / "gs:").exists()


def test_an_error_of_a_worker_is_reported_in_a_line(home, tmp_path, capsys, monkeypatch):
    """Beam makes the whole traceback of a worker's error its message."""
    from shardwright.components.image_transform import executor

    def full(*given):
        raise RuntimeError(
            "Traceback\n  File x\nOSError: [Errno 28] No space left on device\n[while running 'WriteShard']"
        )

    monkeypatch.setattr(executor.Executor, "Do", full)
    assert main(["transform", "c.yaml", "ds", "--out", str(tmp_path / "out")]) == 1
    message = capsys.readouterr().err
    assert message == (
        "shardwright: the transform failed with RuntimeError: OSError: [Errno 28] No space left on device "
        "(shardwright docs how-to/transform)\n"
    )
    assert not list(tmp_path.iterdir())
