"""`report` on the command line, and a trained model in it."""

import json

import numpy as np
import pytest
from evaluations import evaluated, trained
from PIL import Image

from shardwright.components.evaluator.result_files import write_evaluation
from shardwright.components.image_trainer.training.history import HISTORY_FILE
from shardwright.components.runtime.artifacts import write_record
from shardwright.pipelines.cli import main
from shardwright.pipelines.runs.summary import write_run_report
from shardwright.report.anomaly_chapter import Anomaly, write_verdict


@pytest.fixture(scope="module")
def dataset(small_dataset, tmp_path_factory):
    return small_dataset(tmp_path_factory.mktemp("reported"))


@pytest.fixture
def evaluation(tmp_path):
    folder = tmp_path / "evaluation"
    (folder / "pictures").mkdir(parents=True)
    for name in ("best-00", "worst-00"):
        Image.fromarray(np.zeros((20, 60, 3), np.uint8)).save(folder / "pictures" / f"{name}.png")
    Image.fromarray(np.zeros((9, 9, 3), np.uint8)).save(tmp_path / "secret.png")
    metrics = {"mean_dice": 0.8, "dice/<b>Fish": 0.7, "iou/<b>Fish": 0.6}
    baseline = {"mean_dice": 0.9, "dice/<b>Fish": 0.65}
    summary = evaluated(metrics, baseline=baseline, blessed=False, reasons=["mean_dice 0.8 < 0.9"])
    write_evaluation(folder, summary)
    pictures = [
        {"file": "pictures/best-00.png", "kind": "best", "key": "<script>a", "score": 0.99},
        {"file": "pictures/worst-00.png", "kind": "worst", "key": "b", "score": 0.1},
        {"file": "../secret.png", "kind": "worst", "key": "outside", "score": 0.1},
    ]
    slices = [{"by": "class", "value": "Fish", "images": 3, "metrics": {"mean_dice": 0.5}}]
    matrix = {"classes": ["<b>Fish", "Sugar"], "confusion": [[3, 1], [0, 4]]}
    (folder / "evaluation.json").write_text(json.dumps({"pictures": pictures, "slices": slices, **matrix}))
    return folder


def test_it_is_next_to_the_dataset_by_default(dataset, capsys):
    assert main(["report", str(dataset), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    file = dataset.with_name("dataset.html")
    assert found == {"report": str(file), "bytes": file.stat().st_size}


def test_a_trained_model(dataset, evaluation, tmp_path, capsys):
    rows = [{"mean_dice": 0.5, "dice/Fish": 0.4, "loss": 1.4}, {"mean_dice": 0.8, "loss": 0.9}]
    write_record(tmp_path / HISTORY_FILE, trained([1.5, 0.5], rows, 2))
    out = tmp_path / "r.html"
    call = ["report", str(dataset), "--out", str(out), "--evaluation", str(evaluation), "--training", str(tmp_path)]
    assert main(call) == 0
    text = out.read_text(encoding="utf-8")
    for words in (
        "not blessed",
        "mean_dice 0.8 &lt; 0.9",
        "−0.1000",
        "The best predictions",
        "Loss by epoch in 2 epochs: training from 1.5 to 0.5, kept 0.5; evaluation from 1.4 to 0.9, kept 0.9",
        "0.7000 <small>(+0.0500)</small>",
        '<td class="n">0.6000</td>',
        "3 <small>(75 %)</small>",
        "the image, the truth, the prediction",
    ):
        assert words in text
    assert "<script" not in text
    assert "outside" not in text
    assert "<bdi>&lt;b&gt;Fish</bdi>" in text


def test_what_a_run_let_pass_is_in_its_report(dataset, evaluation, tmp_path):
    write_record(tmp_path / HISTORY_FILE, trained([1.5], [{"mean_dice": 0.5, "loss": 1.4}]))
    allowed = [Anomaly("DRIFT", "images", "brightness 0.5 -> 0.3"), Anomaly("SKEW", "split <eval>", "size")]
    write_verdict(tmp_path, allowed)
    write_run_report(str(dataset), str(tmp_path), str(evaluation), str(tmp_path), tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "allowed (DRIFT and SKEW)" in text
    assert "brightness 0.5 -&gt; 0.3" in text
    assert "split &lt;eval&gt;" in text


def test_what_is_no_evaluation(dataset, tmp_path, capsys):
    assert main(["report", str(dataset), "--out", str(tmp_path / "r"), "--evaluation", str(tmp_path)]) == 1
    assert "no readable evaluation" in capsys.readouterr().err
    assert main(["report", str(dataset), "--out", str(tmp_path / "r"), "--training", str(tmp_path)]) == 2
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    "command",
    [["report", "{ds}", "--out", "{tmp}/r.html"], ["drift", "{ds}"], ["stats", "{ds}"], ["schema", "infer", "{ds}"]],
    ids=" ".join,
)
def test_a_damaged_dataset_is_named_without_a_traceback(command, small_dataset, tmp_path, capsys):
    folder = small_dataset(tmp_path / "in")
    shard = folder / "Split-train" / "data-00001-of-00002.tfrecord"
    data = bytearray(shard.read_bytes())
    data[len(data) // 3] ^= 1
    shard.write_bytes(data)
    assert main([part.format(ds=folder, tmp=tmp_path) for part in command]) == 1
    output = capsys.readouterr().err
    assert f"{shard} at offset 0" in output
    assert "Run `shardwright verify` for a list of all damage" in output
    assert not (tmp_path / "r.html").exists()
