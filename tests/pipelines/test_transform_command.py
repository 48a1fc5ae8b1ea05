"""`shardwright transform`: the component's outputs in one folder, whole or not at all, with and without TFX."""

import filecmp
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

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


OWN = {"transformed_examples", "transform_graph"}
BLOCKED = """
import sys
for name in ("tfx", "tfx_bsl", "apache_beam", "tensorflow_transform", "tensorflow_model_analysis", "ml_metadata",
             "tensorflow_data_validation", "tensorflow_metadata", "pyarrow", "jax", "keras"):
    sys.modules[name] = None
"""


@pytest.mark.slow
@pytest.mark.two_stacks
def test_without_tfx_the_files_are_those_of_the_component(home, tmp_path):
    """In the workers, too: each finds `sitecustomize` where this process does."""
    (tmp_path / "sitecustomize.py").write_text(BLOCKED)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)]),
        "SHARDWRIGHT_TEST_PREFORK": "0",
    }
    out = tmp_path / "without"
    command = ["transform", "c.yaml", "ds", "--out", str(out), "--workers", "2", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from shardwright.pipelines.cli import main; sys.exit(main())", *command],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert {path.name for path in out.iterdir()} == OWN
    assert main(["transform", "c.yaml", "ds", "--out", str(tmp_path / "tfx"), "--tfx"]) == 0
    files = {path.relative_to(out) for path in out.rglob("*") if path.is_file()}
    assert files == {
        path.relative_to(tmp_path / "tfx")
        for name in OWN
        for path in (tmp_path / "tfx" / name).rglob("*")
        if path.is_file()
    }
    # TensorFlow numbers the functions of a SavedModel by what the process traced before.
    compared = [file for file in files if "transform_fn" not in file.parts or "assets" in file.parts]
    compared.remove(Path("transformed_examples/build.json"))
    assert len(compared) > 15
    assert [file for file in compared if not filecmp.cmp(out / file, tmp_path / "tfx" / file, shallow=False)] == []

    import tensorflow as tf

    encoded = tf.constant([example.encoded for example in ImageDataset.open(home / "ds").examples(count=3)])
    modules = [tf.saved_model.load(str(root / "transform_graph/transform_fn")) for root in (out, tmp_path / "tfx")]
    first, second = (dict(module.transform_fn.structured_input_signature[0][0]) for module in modules)
    assert first == second
    classes = tf.sparse.from_dense([["Fish", ""], ["Sugar", "Fish"], ["none", ""]])
    first, second = (module.transform_fn({"image/encoded": encoded, "image/class/text": classes}) for module in modules)
    assert first.keys() == second.keys() >= {"image", "labels", "statistics/mean"}
    assert [name for name in first if not (first[name].numpy() == second[name].numpy()).all()] == []


@pytest.mark.slow
def test_four_outputs_and_nothing_else(home, capsys):
    assert main(["transform", "c.yaml", "ds", "--out", "tr", "--tfx", "--json"]) == 0
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
    for further in ([], ["--tfx"]):
        assert main(["transform", "c.yaml", "ds", "--out", "tr", *further]) == 0
        assert "8 images" in capsys.readouterr().out
        assert (home / "tr").stat().st_mtime_ns == stamp


def test_what_lacks_the_outputs_for_tfx_is_no_transform_with_them(home, tmp_path, capsys):
    out = str(tmp_path / "out")
    assert main(["transform", "c.yaml", "ds", "--out", out]) == 0
    assert {path.name for path in Path(out).iterdir()} == OWN
    assert main(["transform", "c.yaml", "ds", "--out", out, "--tfx"]) == 2
    assert "exists already without what --tfx adds" in capsys.readouterr().err


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
    assert main(["transform", "c.yaml", "ds", "--out", str(tmp_path / "out"), "--tfx"]) == 1
    message = capsys.readouterr().err
    assert message == (
        "shardwright: the transform failed with RuntimeError: OSError: [Errno 28] No space left on device "
        "(shardwright docs how-to/transform)\n"
    )
    assert not list(tmp_path.iterdir())
