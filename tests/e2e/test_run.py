"""`shardwright run` as a user calls it: real components, small data, one root that goes through a month's events."""

import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import own_models
import pytest
import yaml
from any_model import BLESSES_ANY
from PIL import Image
from running import Run, run

from shardwright.sample import write_sample

pytestmark = pytest.mark.slow
CACHED_WITHOUT_CHANGES = {
    "ImageExampleGen",
    "StatisticsGen",
    "ImportSchemaGen",
    "SchemaGen",
    "ExampleValidator",
    "Report",
    "DataGate",
    "ImageTransform",
    "Trainer",
}
ALLOWED: dict[str, Any] = {"gate": {"allow_anomalies": ["INT_TYPE_SMALL_INT"]}}
MOVED: dict[str, Any] = {
    "input": {"images": "elsewhere/train_images", "labels": {"path": "elsewhere/train.csv"}},
    "run": {"root": "moved/small"},
}
ALL_COMPONENTS = CACHED_WITHOUT_CHANGES | {"BaselineResolver", "Evaluator", "Pusher"}


def write_config(folder: Path, **changes: Any) -> None:
    config = {
        "name": "small",
        "task": "segmentation",
        "input": {"images": "data/train_images", "labels": {"path": "data/train.csv"}},
        "split": {"ratios": {"train": 0.6, "eval": 0.2, "test": 0.2}},
        "transform": {"size": [32, 48]},
        # The caching and the messages are those of any model, and this one is traced in no time.
        "trainer": {"model": "own_models:normed", "epochs": 1, "batch_size": 4},
        "evaluator": BLESSES_ANY,
        "run": {"root": "runs/small", "on_finish": "finish:log"},
    }
    (folder / "small.yaml").write_text(yaml.safe_dump({**config, **changes}))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project folder with 40 small images, run once; the tests below go on from there, in order.

    Its schema is curated: images are to be higher than they are, which the configuration allows.
    """
    folder = tmp_path_factory.mktemp("project")
    write_sample(str(folder / "data"), images=40, height=64, width=96, seed=3, quiet=True)
    shutil.copy(own_models.__file__, folder)
    (folder / "finish.py").write_text("import json\ndef log(run): json.dump(run, open('finished.json', 'w'))\n")
    write_config(folder, **ALLOWED)
    assert run(folder, "schema", "render", "small.yaml").code == 0
    schema = folder / "small.schema.pbtxt"
    curated = re.sub(r'(name: "image/height".*?)min: 1\n', r"\1min: 65\n", schema.read_text(), count=1, flags=re.DOTALL)
    assert curated != schema.read_text()
    schema.write_text(curated)
    first = run(folder, "run", "small.yaml")
    assert first.code == 0, first.err
    (folder / "first.txt").write_text(first.out)
    return folder


def blessed(root: Path) -> dict[str, Any]:
    return json.loads((root / "pushed" / "BLESSED.json").read_text())


def test_the_first_run_ends_in_a_blessed_model_and_a_table(project: Path) -> None:
    out = (project / "first.txt").read_text()
    outcomes = Run(0, out, "").nodes
    assert set(outcomes) == ALL_COMPONENTS
    assert "cached" not in outcomes.values()
    assert re.search(r"^images +40 in, 40 written, 0 rejected$", out, re.MULTILINE)
    assert re.search(r"^anomalies +3 allowed by gate\.allow_anomalies: [A-Z_, ]+$", out, re.MULTILINE)
    assert re.search(r"^mean_dice +0\.\d{4}", out, re.MULTILINE)
    assert re.search(r"^model +BLESSED and pushed$", out, re.MULTILINE)
    for place in re.findall(r"^(?:dataset|transformed|TensorBoard|evaluation|pushed model) +(\S+)$", out, re.MULTILINE):
        assert Path(place).is_dir(), place
    finished = json.loads((project / "finished.json").read_text())
    assert (finished["state"], finished["reasons"], finished["root"]) == ("blessed", [], str(project / "runs/small"))
    assert finished["dataset"]["records"].keys() == {"train", "eval", "test"}
    assert all(math.isfinite(value) for value in finished["metrics"].values())
    # What the epochs took is a part of what the run took.
    assert 0 < sum(epoch["seconds"] for epoch in finished["epochs"]) < finished["seconds"]
    assert finished["measured"]["split"] == "test"
    assert finished["measured"]["images"] == finished["dataset"]["records"]["test"]
    (epoch,) = finished["epochs"]
    assert math.isfinite(epoch["loss"] + epoch["metrics"]["mean_dice"])
    assert finished["paths"].keys() == {"dataset", "report", "transformed", "evaluation", "model_run", "pushed_model"}
    assert all(Path(path).exists() for path in finished["paths"].values())
    page = Path(re.search(r"^report +(\S+)$", out, re.MULTILINE)[1]).read_text(encoding="utf-8")
    assert all(words in page for words in ('id="model"', "By class", "The worst predictions", "Position of each class"))


def test_the_last_model_predicts_though_no_model_is_blessed(project: Path) -> None:
    root = project / "runs/small"
    (root / "pushed").rename(project / "pushed-before")
    refused = run(project, "predict", "runs/small", "data/train_images", "--out", "refused.csv")
    (project / "pushed-before").rename(root / "pushed")
    assert refused.code == 2
    assert "no model of this run was blessed" in refused.err
    assert "add --unblessed" in refused.err
    done = run(project, "predict", "runs/small", "data/train_images", "--unblessed", "--out", "p.csv")
    assert done.code == 0, done.err
    assert re.search(r"--unblessed: \S+/runs/small/artifacts/Trainer/model/\d+$", done.out, re.MULTILINE)
    assert "p.csv: 40 images" in done.out


def test_tfx_and_beam_are_quiet(project: Path) -> None:
    out = (project / "first.txt").read_text()
    for noise in ("WARNING", "INFO:", "absl", "apache_beam", "Deprecat"):
        assert noise not in out
    (log,) = (project / "runs/small/logs").glob("*.log")
    assert "StatisticsGen" in log.read_text()


def test_no_absolute_path_is_in_the_metadata(project: Path) -> None:
    assert str(project).encode() not in (project / "runs/small/metadata.sqlite").read_bytes()


def test_the_pushed_model_answers_alone_in_a_fresh_process(project: Path, tmp_path: Path) -> None:
    import io

    buffer = io.BytesIO()
    Image.radial_gradient("L").resize((333, 77)).convert("RGB").save(buffer, "JPEG")
    (tmp_path / "odd.jpg").write_bytes(buffer.getvalue())
    model = project / "runs/small/pushed" / blessed(project / "runs/small")["model"]
    script = (
        "import sys\n"
        "import tensorflow as tf\n"
        "model = tf.saved_model.load(sys.argv[1])\n"
        "assert not {'shardwright', 'shardwright.components', 'tfx'} & set(sys.modules), 'TensorFlow alone must do'\n"
        "image = tf.constant([open(sys.argv[2], 'rb').read()])\n"
        "answer = model.signatures['serving_default'](image_bytes=image)['probabilities'].numpy()\n"
        "assert answer.shape == (1, 32, 48, 4), answer.shape\n"
        "assert ((answer >= 0) & (answer <= 1)).all() and answer.std() > 0\n"
    )
    command = [sys.executable, "-I", "-c", script, str(model), str(tmp_path / "odd.jpg")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_second_run_is_cached_up_to_the_evaluator_though_files_were_touched(project: Path) -> None:
    for file in (project / "data").rglob("*"):
        os.utime(file)
    second = run(project, "run", "small.yaml")
    assert second.code == 0, second.err
    assert second.cached == CACHED_WITHOUT_CHANGES


def test_it_is_cached_after_the_root_and_the_data_moved(project: Path) -> None:
    shutil.move(project / "runs", project / "moved")
    shutil.move(project / "data", project / "elsewhere")
    write_config(project, **MOVED, **ALLOWED)
    third = run(project, "run", "small.yaml")
    assert third.code == 0, third.err
    # Now the last blessed model is the same as before, too.
    assert third.cached == ALL_COMPONENTS


def test_the_gate_stops_the_run_with_a_table_and_one_changed_byte_in_an_image_is_seen(project: Path) -> None:
    before = blessed(project / "moved/small")
    image = min((project / "elsewhere/train_images").iterdir())
    data = bytearray(image.read_bytes())
    data[-20] ^= 1
    image.write_bytes(bytes(data))
    write_config(project, **MOVED)
    stopped = run(project, "run", "small.yaml")
    assert stopped.code == 1
    assert stopped.nodes["DataGate"] == "failed"
    assert not stopped.cached & {"ImageExampleGen", "StatisticsGen", "ExampleValidator"}
    assert not {"ImageTransform", "Trainer", "Pusher"} & set(stopped.nodes)
    assert "image/height in train: INT_TYPE_SMALL_INT, " in stopped.err
    assert ".jpg" in stopped.err
    assert "Traceback" not in stopped.err
    page = Path(re.search(r"^ *See it: (\S+)", stopped.err, re.MULTILINE)[1])
    assert "The data does not fit the schema" in page.read_text(encoding="utf-8")
    assert blessed(project / "moved/small") == before


def test_one_changed_byte_in_the_csv_is_not_served_from_the_cache(project: Path) -> None:
    csv = project / "elsewhere/train.csv"
    text = csv.read_text()
    row = re.search(r"_\w+,(\d+) (\d+)", text)
    assert row
    # One pixel less in the first run of the first mask: the digit count stays, one byte differs.
    length = str(int(row[2]) - 1).rjust(len(row[2]), "0")
    csv.write_text(text[: row.start(2)] + length + text[row.end(2) :])
    # The gate stops this run as it stopped the last one: what follows it would run for the new examples.
    changed = run(project, "run", "small.yaml")
    assert changed.code == 1
    assert changed.nodes["DataGate"] == "failed"
    assert not changed.cached & {"ImageExampleGen", "StatisticsGen"}
