"""Evaluator, BaselineResolver and Pusher by their executors, with models whose quality is known."""

import dataclasses
import io
import json
import os
from pathlib import Path
from types import SimpleNamespace

import build
import numpy as np
import pytest
from object_stores import running_stores
from PIL import Image

from shardwright.components.evaluator.result_files import read_evaluation
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed, DatasetError
from shardwright.evaluation.metrics import ClassSums, LabelCounts, MaskSums
from shardwright.lineage.blessing import BLESSING_FILE, baseline_digest, read_blessing
from shardwright.lineage.record import read_lineage, write_lineage
from shardwright.tfrecords.encode import encode_example, ints

pytestmark = pytest.mark.slow

SHAPES, COLORS = ["Disc", "Bar"], ["red", "green", "blue"]


def artifact(kind: str, uri: Path):
    from tfx.types import standard_artifacts

    made = getattr(standard_artifacts, kind)()
    made.uri = str(uri)
    uri.mkdir(parents=True, exist_ok=True)
    return made


class Line:
    """The end of a pipeline, for one dataset: evaluates models, pushes them, resolves the baseline."""

    def __init__(self, root: Path, data: Path, task: str = "segmentation", **evaluator) -> None:
        self.root, self.data, self.runs = root, data, 0
        self.place = str(data)
        self.push = root / "pushed"
        # The splits of these tests are tiny; `tests/shardwright/evaluation/test_verdict.py` has the conditions.
        evaluator = {"min_images": 1, "min_per_class": 0, "allow_missing_classes": True, **evaluator}
        self.config = build.config(task=task, evaluator=evaluator)

    def run(self, model):
        """One run over a model; returns the evaluation's summary."""
        self.runs += 1
        home = self.root / f"run-{self.runs}"
        baseline = artifact("Model", home / "baseline")
        self.resolve(baseline)
        evaluation, blessing = self.evaluate(model, baseline, home)
        self.pushed = artifact("PushedModel", home / "pushed")
        from shardwright.components.pusher import component, executor

        destination = json.dumps({"filesystem": {"base_directory": str(self.push)}})
        inputs = {"model": [model], "model_blessing": [blessing], "evaluation": [evaluation]}
        assert set(inputs) | {"infra_blessing"} == set(component.PusherSpec.INPUTS)
        executor.Executor().Do(inputs, {"pushed_model": [self.pushed]}, {"push_destination": destination})
        return read_evaluation(evaluation.uri)

    def resolve(self, baseline, digest: str | None = None) -> None:
        from shardwright.components.baseline_resolver import executor

        properties = {
            "push_directory": str(self.push),
            "baseline_digest": baseline_digest(self.push) if digest is None else digest,
        }
        executor.Executor().Do({}, {"model": [baseline]}, properties)

    def evaluate(self, model, baseline, home: Path, *options: str):
        from shardwright.components.evaluator.component import limits_of
        from shardwright.components.evaluator.executor import LIMITS, Executor

        examples = artifact("Examples", self.data)
        examples.split_names = json.dumps(list(ImageDataset.open(self.data).splits))
        examples.uri = self.place
        evaluation, blessing = artifact("ModelEvaluation", home / "evaluation"), artifact("ModelBlessing", home / "b")
        context = Executor.Context(
            beam_pipeline_args=["--runner=DirectRunner", *options], tmp_dir=str(home / "tmp"), unique_id=str(self.runs)
        )
        properties = {
            LIMITS: limits_of(self.config.evaluator),
            "example_splits": json.dumps([self.config.evaluator.split]),
            "fairness_indicator_thresholds": "null",
        }
        inputs = {"examples": [examples], "model": [model], "baseline_model": [baseline]}
        Executor(context).Do(inputs, {"evaluation": [evaluation], "blessing": [blessing]}, properties)
        return evaluation, blessing


@pytest.fixture(scope="module")
def masks(tmp_path_factory, write_shapes):
    return write_shapes(tmp_path_factory.mktemp("masks") / "raw", kind="ingest")


@pytest.fixture(scope="module")
def segmenter(tmp_path_factory):
    """Makes a model that answers with the truth's area, of which a given share is hit."""

    def make(share: float, classes=SHAPES, served=None):
        import tensorflow as tf

        areas = {f"image/segmentation/{name}/area": tf.io.FixedLenFeature([], tf.int64) for name in SHAPES}

        def examples(examples):
            parsed = tf.io.parse_example(examples, areas)
            truth = tf.cast(tf.stack([parsed[name] for name in areas], 1), tf.float32)
            return {"intersection": truth * share, "prediction": truth, "truth": truth}

        return _saved(tmp_path_factory.mktemp("model"), examples, classes, f"share {share}", served=served)

    return make


def _saved(root: Path, function, classes, fingerprint: str, task="segmentation", multi=False, served=None):
    """A model that answers evaluation with `function`, and serving with the brightness of a pixel for every class.

    `served`: how many classes it serves, if that is to be wrong.
    """
    import tensorflow as tf

    channels_served = served or len(classes)

    def serve(image_bytes):
        def channels(encoded):
            image = tf.cast(tf.io.decode_image(encoded, 3, expand_animations=False), tf.float32) / 255
            return tf.image.resize(image, [24, 40])[..., :channels_served]

        probabilities = tf.map_fn(channels, image_bytes, fn_output_signature=tf.float32)
        probabilities = tf.ensure_shape(probabilities, [None, 24, 40, channels_served])
        if task == "segmentation":
            return {"probabilities": probabilities, "masks": tf.cast(probabilities >= 0.5, tf.uint8)}
        shares = tf.reduce_mean(probabilities, axis=(1, 2))
        if multi:
            return {"probabilities": shares, "classes": tf.cast(shares >= 0.5, tf.uint8)}
        return {"probabilities": shares, "labels": tf.gather(tf.constant(list(classes)), tf.argmax(shares, -1))}

    module = tf.Module()
    module.examples = tf.function(function, input_signature=[tf.TensorSpec([None], tf.string, "examples")])
    module.serve = tf.function(serve, input_signature=[tf.TensorSpec([None], tf.string, "image_bytes")])
    serving = root / "Format-Serving"
    signatures = {"examples": module.examples, "serving_default": module.serve}
    tf.saved_model.save(module, str(serving), signatures=signatures)
    (serving / "assets").mkdir(exist_ok=True)
    assets = {
        "classes": list(classes),
        "preparation": {"height": 24, "width": 40, "resize": "stretch"},
        "training": {"task": task, "multi": multi, "fingerprint": fingerprint},
    }
    for name, value in assets.items():
        (serving / "assets" / f"{name}.json").write_text(json.dumps(value))
    for folder in (root, serving):
        write_lineage(folder, kind="model", fingerprint=fingerprint, parents={"dataset": "d"}, recipe={})
    return artifact("Model", root)


def test_a_line_of_models_is_blessed_refused_and_compared(tmp_path, masks, segmenter):
    """A model too bad, a good one, a worse one that would pass alone, the good one twice, one of other classes."""
    line = Line(tmp_path, masks, min_dice=0.5, min_improvement=0.0)
    digest = ImageDataset.open(masks).manifest.digest

    bad = line.run(segmenter(0.25))
    assert not bad.blessed
    assert bad.baseline == {}
    assert bad.reasons == ["mean_dice 0.2500 is less than min_dice 0.5000"]
    assert bad.keys == ["evaluator.min_dice"]
    assert not line.push.exists()
    assert line.pushed.get_int_custom_property("pushed") == 0
    lineage = read_lineage(tmp_path / "run-1/evaluation")
    assert lineage["parents"] == {"model": "share 0.25", "examples": digest}

    good_model = segmenter(0.75)
    good = line.run(good_model)
    assert (good.blessed, good.reasons, good.baseline) == (True, [], {})
    assert good.metrics["mean_dice"] == pytest.approx(0.75)
    in_force = read_blessing(line.push)
    assert in_force.metrics == good.metrics
    assert in_force.fingerprints == {"training": "share 0.75", "dataset": "d"}
    assert (line.push / in_force.model / "saved_model.pb").exists()

    before = (line.push / BLESSING_FILE).read_bytes()
    worse = line.run(segmenter(0.625))
    assert not worse.blessed
    assert worse.baseline["mean_dice"] == pytest.approx(0.75)
    assert "0.6250 against 0.7500 of the last blessed model" in worse.reasons[0]
    compared = read_lineage(tmp_path / "run-3/evaluation")["parents"]
    assert (compared["model"], compared["baseline"]) == ("share 0.625", "share 0.75")
    assert (line.push / BLESSING_FILE).read_bytes() == before
    assert sorted(os.listdir(line.push)) == sorted([in_force.model, BLESSING_FILE])

    again = line.run(good_model)
    assert (again.blessed, again.metrics) == (True, good.metrics)
    assert again.reasons == ["not compared with the last blessed model, which is this model"]
    assert read_blessing(line.push) == in_force
    assert sorted(os.listdir(line.push)) == sorted([in_force.model, BLESSING_FILE])

    # With a minimum change it is not good enough.
    evaluator = dataclasses.replace(line.config.evaluator, min_improvement=0.2)
    line.config = dataclasses.replace(line.config, evaluator=evaluator)
    refused = line.run(segmenter(0.875))
    assert not refused.blessed
    assert refused.baseline["mean_dice"] == pytest.approx(0.75)
    assert "a change of +0.1250" in refused.reasons[0]
    assert "is not above min_improvement +0.2000" in refused.reasons[0]

    # Other classes cannot be compared: there is no baseline, and the summary has the reason.
    other = line.run(segmenter(0.625, classes=["Disc", "Ring"]))
    assert other.blessed
    assert "has other classes: Disc, Bar instead of Disc, Ring" in other.reasons[0]


@pytest.fixture(scope="module")
def half(tmp_path_factory, masks, segmenter):
    """A model that hits half of everything, evaluated on images on a bucket: its line, what was found, the folder."""
    root = tmp_path_factory.mktemp("half")
    line = Line(root, masks, min_dice=0.1)
    with running_stores() as stores:
        line.place = f"{stores.bucket('gs')}/runs/examples"
        stores.copy_of(masks, line.place)
        found = line.run(segmenter(0.5))
    return line, found, root / "run-1/evaluation"


def test_figures_are_those_of_the_core_also_of_images_on_a_bucket(masks, half):
    import numpy as np

    from shardwright.tfrecords.records import decode_example

    line, found, _ = half
    # The next run finds them there.
    digest = ImageDataset.open(masks).manifest.digest
    assert read_blessing(line.push).examples == {"place": line.place, "digest": digest}
    examples = [decode_example(record) for _, record in ImageDataset.open(masks).records("test")]
    truth = np.array([[float(e[f"image/segmentation/{n}/area"][0]) for n in SHAPES] for e in examples])
    assert found.metrics == pytest.approx(MaskSums.of_images(truth / 2, truth, truth).report(SHAPES))


def test_workers_change_no_figure_and_nothing_is_copied(tmp_path, write_shapes, segmenter):
    data = write_shapes(tmp_path / "raw", kind="ingest", counts={"train": 2, "test": 41})
    line, model, found = Line(tmp_path, data, min_dice=0.1), segmenter(1 / 3), []
    for workers in (1, 3):
        home = tmp_path / f"{workers}"
        options = [f"--direct_num_workers={workers}", "--direct_running_mode=multi_threading"]
        evaluation, _ = line.evaluate(model, artifact("Model", home / "baseline"), home, *options)
        found.append((Path(evaluation.uri) / "evaluation.json").read_bytes())
        assert sorted(path.name for path in (home / "tmp").rglob("*") if path.is_file()) == [
            "answers.json",
            "left_out.json",
        ]
    assert found[0] == found[1]
    assert json.loads(found[0])["metrics"]["mean_dice"] == pytest.approx(1 / 3)


def test_slices_and_pictures_are_there_to_be_looked_at(masks, half):
    from PIL import Image

    from shardwright.tfrecords.records import decode_example

    _, found, folder = half
    details = json.loads((folder / "evaluation.json").read_text())
    assert details["metrics"] == found.metrics
    assert (details["classes"], details["confusion"], details["splits"]) == (SHAPES, None, ["test"])
    slices = {(row["by"], row["value"]): row for row in details["slices"]}
    examples = {key: decode_example(record) for key, record in ImageDataset.open(masks).records("test")}
    shown = {n: [k for k, e in examples.items() if e[f"image/segmentation/{n}/area"][0]] for n in SHAPES}
    for name, keys in shown.items():
        assert slices["class", name]["images"] == len(keys)
        areas = [float(examples[key][f"image/segmentation/{name}/area"][0]) for key in keys]
        assert slices["class", name]["metrics"][f"dice/{name}"] == pytest.approx(0.5)
        assert sum(areas) > 0
    assert slices["folder", "test"]["images"] == len(examples)
    assert sum(row["images"] for row in details["slices"] if row["by"] == "brightness") == len(examples)
    assert [row["kind"] for row in details["pictures"]] == ["worst"] * 6
    scores = [row["score"] for row in details["pictures"]]
    assert scores == sorted(scores)
    assert {row["key"] for row in details["pictures"]} == set(examples)
    for row in details["pictures"]:
        with Image.open(folder / row["file"]) as picture:
            assert picture.size == (3 * 40 + 8, 24)


def test_a_model_that_does_not_answer_alone_is_not_pushed_and_a_changed_one_not_taken(tmp_path, masks, segmenter):
    line = Line(tmp_path, masks, min_dice=0.1)
    with pytest.raises(CheckFailed, match="another model was blessed since"):
        line.resolve(artifact("Model", tmp_path / "b"), "d" * 64)
    line.run(segmenter(0.5))
    before = sorted((p.relative_to(line.push), p.read_bytes()) for p in line.push.rglob("*") if p.is_file())
    # Evaluated as it should be, but it does not serve all of its classes.
    broken = segmenter(0.75, served=1)
    with pytest.raises(CheckFailed, match=r"does not answer in a clean process: .*2 images and 2 classes.*Not pushed"):
        line.run(broken)
    after = sorted((p.relative_to(line.push), p.read_bytes()) for p in line.push.rglob("*") if p.is_file())
    assert before == after
    (line.push / read_blessing(line.push).model / "assets/classes.json").write_text("[]")
    with pytest.raises(CheckFailed, match="not the ones that were blessed"):
        line.resolve(artifact("Model", tmp_path / "c"))


def test_labels_are_evaluated_by_accuracy(tmp_path, write_shapes):
    import numpy as np
    import tensorflow as tf

    from shardwright.tfrecords.records import decode_example

    data = write_shapes(tmp_path / "raw", task="classification", kind="ingest")
    label = {"image/class/label": tf.io.FixedLenFeature([], tf.int64)}

    def always_right(examples):
        true = tf.io.parse_example(examples, label)["image/class/label"]
        return {"probabilities": tf.one_hot(true, 3), "label": true}

    def always_red(examples):
        true = tf.io.parse_example(examples, label)["image/class/label"]
        return {"probabilities": tf.one_hot(tf.zeros_like(true), 3), "label": true}

    line = Line(tmp_path, data, task="classification", min_accuracy=0.9)
    right = line.run(_saved(tmp_path / "right", always_right, COLORS, "right", "classification"))
    assert right.blessed
    assert right.metrics["accuracy"] == 1.0
    details = json.loads((tmp_path / "run-1/evaluation/evaluation.json").read_text())
    true = [decode_example(record)["image/class/label"][0] for _, record in ImageDataset.open(data).records("test")]
    assert details["confusion"] == np.diag(np.bincount(true, minlength=3)).tolist()
    assert [row["file"] for row in details["pictures"] if row["kind"] == "confusion"] == ["pictures/confusion.png"]
    assert all(row["score"] == 1.0 and len(row["truth"]) == 1 for row in details["pictures"] if row["kind"] == "best")
    red = line.run(_saved(tmp_path / "red", always_red, COLORS, "red", "classification"))
    assert not red.blessed
    # Too few right, worse than the last model, and the answers of a constant.
    shown = [name for label, name in enumerate(COLORS) if label in true]
    begins = ["accuracy", *(f"f1/{name}" for name in shown), "accuracy"]
    assert [reason.split(" ")[0] for reason in red.reasons][: len(begins)] == begins
    true = [tf.io.parse_example([r], label)["image/class/label"][0] for _, r in ImageDataset.open(data).records("test")]
    wanted = LabelCounts.of_labels([0] * len(true), true, 3).report(COLORS)
    assert red.metrics == pytest.approx(wanted)


def test_several_classes_are_evaluated_by_f1(tmp_path, write_shapes):
    import numpy as np
    import tensorflow as tf

    from shardwright.tfrecords.records import decode_example

    data = write_shapes(tmp_path / "raw", task="classification", kind="ingest")
    label = {"image/class/label": tf.io.FixedLenFeature([], tf.int64)}

    def always_red_too(examples):
        truth = tf.one_hot(tf.io.parse_example(examples, label)["image/class/label"], 3)
        return {"prediction": tf.maximum(truth, tf.constant([[1.0, 0.0, 0.0]])), "truth": truth}

    line = Line(tmp_path, data, task="classification", min_f1=0.9)
    found = line.run(_saved(tmp_path / "model", always_red_too, COLORS, "always red, too", "classification", True))
    assert not found.blessed
    true = [decode_example(record)["image/class/label"][0] for _, record in ImageDataset.open(data).records("test")]
    truth = np.eye(3)[true]
    wanted = ClassSums.of_labels(np.maximum(truth, [1, 0, 0]), truth).report(COLORS)
    assert found.metrics == pytest.approx(wanted)


def test_an_empty_split_cannot_be_evaluated(tmp_path, write_shapes, segmenter):
    data = write_shapes(tmp_path / "raw", kind="ingest", counts={"train": 2, "test": 0})
    with pytest.raises(CheckFailed, match=r"split test of .* has no image.*evaluator\.split"):
        Line(tmp_path, data).run(segmenter(0.5))


def test_a_folder_without_an_evaluation_is_reported(tmp_path):
    with pytest.raises(DatasetError, match="Run the Evaluator again"):
        read_evaluation(tmp_path)


def test_a_picture_is_predicted_from_the_stored_image_as_it_is():
    from shardwright.components.evaluator.prediction_pictures import Scored, _picture

    file = io.BytesIO()
    Image.new("RGB", (8, 6), "red").save(file, "png")
    asked = []

    def answer(images, texts, *, stored=False):
        asked.append((images, stored))
        return {"labels": np.array([b"a"], object)}

    model = SimpleNamespace(
        task="classification", multi=False, texts=(), classes=("a", "b"), height=6, width=8, resize="stretch",
        answer=answer,
    )  # fmt: skip
    record = encode_example({"image/encoded": file.getvalue(), "image/class/label": ints([1])})
    picture, facts = _picture(model, None, Scored(0.1, "x.png", record))
    assert asked == [([file.getvalue()], True)]
    assert (picture.shape, facts) == ((6, 8, 3), {"truth": ["b"], "prediction": ["a"]})
