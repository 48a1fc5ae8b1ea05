"""Training and export in their worker processes, on small images that are easy to distinguish."""

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from recipes import changed, train_recipe

from shardwright.components.image_trainer import run_fn
from shardwright.components.image_trainer.run_fn import train_and_export
from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.components.image_trainer.training.history import read_history
from shardwright.components.image_trainer.worker import run_worker
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ShardwrightError
from shardwright.evaluation.metrics import KAGGLE_UNITS, LabelCounts, MaskSums
from shardwright.evaluation.thresholds import read_thresholds, threshold_masks
from shardwright.lineage.record import read_lineage
from shardwright.staging.staged import is_in_use
from shardwright.tfrecords.records import read_records

pytestmark = pytest.mark.slow

MASKS = train_recipe("unet", 8, 8, 4, 1e-2, 3, "eval", normalize="imagenet_torch", augment=("flip_left_right",))
TUNED = changed(MASKS, threshold="tuned", min_area="tuned")
SMALL = changed(MASKS, model="own_models:normed")
LABELS = changed(MASKS, model="own_models:label", epochs=12, learning_rate=0.1, normalize="unit")


@pytest.fixture(scope="module")
def trained(tmp_path_factory, write_shapes):
    """A trained and exported segmenter: folder with data (24x40), raw (48x60), run, export and its output."""
    root = tmp_path_factory.mktemp("trained")
    write_shapes(root / "data")
    write_shapes(root / "raw", kind="ingest", size=(48, 60))
    with open(root / "shown.txt", "w", encoding="utf-8") as shown, contextlib.redirect_stderr(shown):
        train_and_export(TUNED, dataset=root / "data", run_folder=root / "run", export_folder=root / "export")
    return root


def test_training_learns_and_keeps_the_best_epoch(trained):
    history = read_history(trained / "run")
    assert len(history.loss) == len(history.evaluation) == MASKS.trainer.epochs
    assert history.loss[-1] < history.loss[0] * 0.7
    dice = [metrics["mean_dice"] for metrics in history.evaluation]
    assert dice[history.best_epoch - 1] == max(dice)
    assert {"dice/Disc", "dice/Bar", "iou/Bar", "kaggle_dice", "loss"} <= set(history.evaluation[-1])
    assert history.steps_per_epoch == 3


def test_a_line_per_epoch_is_shown(trained):
    lines = (trained / "shown.txt").read_text(encoding="utf-8").splitlines()
    assert [line.split(":")[0] for line in lines] == [
        f"  epoch {n + 1}/{MASKS.trainer.epochs}" for n in range(MASKS.trainer.epochs)
    ]
    assert "mean_dice" in lines[0]


def test_raw_bytes_of_a_size_never_seen_are_answered_in_a_clean_process(trained, tmp_path):
    from PIL import Image

    jpeg = io.BytesIO()
    Image.fromarray(np.full((77, 131, 3), 90, np.uint8)).save(jpeg, "jpeg")
    (tmp_path / "strange.jpg").write_bytes(jpeg.getvalue())
    program = (
        "import sys, json\n"
        "import tensorflow as tf\n"
        "assert not {'shardwright', 'tfx'} & set(sys.modules)\n"
        "model = tf.saved_model.load(sys.argv[1])\n"
        "image = open(sys.argv[2], 'rb').read()\n"
        "answer = model.signatures['serving_default'](image_bytes=tf.constant([image, image]))\n"
        "p = answer['probabilities'].numpy()\n"
        "print(json.dumps([list(p.shape), str(p.dtype), float(p.min()), float(p.max())]))\n"
    )
    command = [sys.executable, "-I", "-c", program, str(trained / "export"), str(tmp_path / "strange.jpg")]
    shape, dtype, low, high = json.loads(subprocess.check_output(command, cwd=tmp_path, text=True))
    assert shape == [2, 24, 40, 2]
    assert dtype == "float32"
    assert 0 <= low < high <= 1


def test_the_warm_up_requests_are_answered_by_a_model_server(trained, tmp_path):
    import shutil

    import grpc
    from model_server import ModelServer
    from tensorflow_serving.apis import prediction_log_pb2, prediction_service_pb2_grpc

    shutil.copytree(trained / "export", tmp_path / "default" / "1")
    file = trained / "export/assets.extra/tf_serving_warmup_requests"
    records = [bytes(record) for _, record in read_records(file)]
    logs = [prediction_log_pb2.PredictionLog.FromString(record) for record in records]
    # They are written without this package: byte by byte what it would write.
    assert [log.SerializeToString(deterministic=True) for log in logs] == records
    requests = [log.predict_log.request for log in logs]
    assert [request.model_spec.signature_name for request in requests] == ["partial", "png", "rle", "serving_default"]
    with ModelServer("default", tmp_path / "default") as server, grpc.insecure_channel(server.endpoint) as channel:
        service = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        answers = [service.Predict(request, timeout=60) for request in requests]
    outputs = ["masks", "probabilities"]
    assert [sorted(answer.outputs) for answer in answers] == [[*outputs, "readable"], ["png_bytes"], ["rle"], outputs]
    # An image of 40 x 24 pixels and two classes.
    assert answers[1].ByteSize() + answers[2].ByteSize() < answers[3].ByteSize() / 10


def test_the_model_answers_where_it_is_loaded_as_a_graph_as_tf_serving_and_bulk_inferrer_do(trained):
    import tensorflow as tf

    folder = str(trained / "export")
    records = [record for _, record in ImageDataset.open(trained / "raw").records("test")]
    expected = tf.saved_model.load(folder).signatures["examples"](examples=tf.constant(records))
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        loaded = tf.compat.v1.saved_model.loader.load(session, ["serve"], folder)
        signature = loaded.signature_def["examples"]
        fetched = {name: tensor.name for name, tensor in signature.outputs.items()}
        found = session.run(fetched, {signature.inputs["examples"].name: records})
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value.numpy(), rtol=1e-5)


def test_the_examples_signature_returns_the_sums_of_the_served_masks_and_the_sampled_truth(trained):
    import tensorflow as tf

    from shardwright.images.geometry import plan_geometry
    from shardwright.masks import rle
    from shardwright.tfrecords.records import decode_example

    model = tf.saved_model.load(str(trained / "export"))
    records = [record for _, record in ImageDataset.open(trained / "raw").records("test")]
    found = {k: v.numpy() for k, v in model.signatures["examples"](examples=tf.constant(records)).items()}
    assert set(found) == {"intersection", "prediction", "truth", "kaggle_dice"}
    plan = plan_geometry("stretch", 48, 60, 24, 40)
    examples = [decode_example(record) for record in records]
    truth = np.stack(
        [
            np.stack(
                [
                    rle.draw(rle.resample(rle.from_flat(e[f"image/segmentation/{name}/rle"]), plan), 24, 40)
                    for name in ("Disc", "Bar")
                ],
                -1,
            )
            for e in examples
        ]
    ).astype(bool)
    images = tf.constant([e["image/encoded"][0] for e in examples])
    served = {k: v.numpy() for k, v in model.signatures["serving_default"](image_bytes=images).items()}
    chosen = read_thresholds(trained / "export/assets/thresholds.json", ["Disc", "Bar"])
    predicted = threshold_masks(served["probabilities"], chosen).astype(bool)
    np.testing.assert_array_equal(served["masks"], predicted)
    assert served["masks"].dtype == np.uint8
    wanted = MaskSums.of_masks(predicted, truth)
    np.testing.assert_array_equal(found["truth"], truth.sum((1, 2)))
    np.testing.assert_allclose(found["prediction"].sum(0), wanted.prediction, atol=2)
    np.testing.assert_allclose(found["intersection"].sum(0), wanted.intersection, atol=2)
    np.testing.assert_allclose(found["kaggle_dice"].sum(0), [one / KAGGLE_UNITS for one in wanted.kaggle], atol=0.05)
    # It has learned: images of another size than those it was trained on are distinguished.
    assert (
        MaskSums.of_images(found["intersection"], found["prediction"], found["truth"]).report("ab")["mean_dice"] > 0.5
    )


def test_the_export_holds_plain_ops_and_its_assets(trained):
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel.FromString((trained / "export/saved_model.pb").read_bytes())
    graph = saved.meta_graphs[0].graph_def
    ops = {node.op for function in graph.library.function for node in function.node_def} | {n.op for n in graph.node}
    assert "Conv2D" in ops
    assert not [op for op in ops if op.startswith("Xla")]
    assets = {file.name: json.loads(file.read_text()) for file in (trained / "export/assets").iterdir()}
    assert assets["classes.json"] == ["Disc", "Bar"]
    assert assets["preparation.json"]["height"] == 24
    assert assets["preparation.json"]["normalize"] == "imagenet_torch"
    tuned = assets["thresholds.json"]
    assert set(tuned) == {"Disc", "Bar"}
    assert all(0 < row["threshold"] < 1 and row["min_area"] >= 0 for row in tuned.values())
    lineage = read_lineage(trained / "export")
    assert lineage["fingerprint"] == assets["training.json"]["fingerprint"] == read_history(trained / "run").fingerprint
    assert lineage["parents"] == {"dataset": ImageDataset.open(trained / "data").manifest.digest}


def test_tuning_makes_the_figures_of_its_split_no_worse(trained):
    tuning = json.loads((trained / "run/tuning.json").read_text())
    before, after = tuning["before"], tuning["after"]
    assert tuning["split"] == "eval"
    best = read_history(trained / "run").evaluation[read_history(trained / "run").best_epoch - 1]
    assert before["mean_dice"] == pytest.approx(best["mean_dice"], abs=1e-3)
    for name in ("Disc", "Bar"):
        assert after[f"dice/{name}"] + after["kaggle_dice"] >= before[f"dice/{name}"] + before["kaggle_dice"] - 0.02
    assert after["mean_dice"] + after["kaggle_dice"] >= before["mean_dice"] + before["kaggle_dice"]


def test_tensorboard_can_read_the_curves(trained):
    import tensorflow as tf

    found: dict[str, dict[str, list[float]]] = {}
    for run in ("train", "eval"):
        (file,) = (trained / "run/logs" / run).iterdir()
        values = found.setdefault(run, {})
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            for value in event.summary.value:
                values.setdefault(value.tag, []).append(value.simple_value)
    history = read_history(trained / "run")
    assert found["train"]["loss"] == pytest.approx(history.loss)
    rows = json.loads((trained / "run" / "training.json").read_text(encoding="utf-8"))["epochs"]
    for name in ("images_per_second", "input_bound"):
        assert found["train"][name] == pytest.approx([row[name] for row in rows], rel=1e-5)
    assert found["eval"]["mean_dice"] == pytest.approx([m["mean_dice"] for m in history.evaluation])


def test_tensorboard_shows_predictions_next_to_the_truth(trained):
    import tensorflow as tf
    from PIL import Image

    (file,) = (trained / "run/logs/pictures").iterdir()
    values = [v for event in tf.compat.v1.train.summary_iterator(str(file)) for v in event.summary.value]
    assert [v.tag for v in values] == [f"truth_and_prediction/{i}" for i in range(4)]
    for value in values:
        with Image.open(io.BytesIO(value.image.encoded_image_string)) as picture:
            assert picture.size == (2 * 40 + 4, 24) == (value.image.width, value.image.height)


def test_labels_are_learned_without_an_eval_split(tmp_path, write_shapes, monkeypatch):
    import tensorflow as tf

    held = []

    def run_and_look(module, spec_file, log_file, **how):
        held.append(is_in_use(Path(TrainSpec.read(spec_file).checkpoints)))
        run_worker(module, spec_file, log_file, **how)

    monkeypatch.setattr(run_fn, "run_worker", run_and_look)
    counts = {"train": 24, "test": 12}
    write_shapes(tmp_path / "data", task="classification", counts=counts)
    recipe = changed(LABELS, eval_split="")
    train_and_export(recipe, dataset=tmp_path / "data", run_folder=tmp_path / "run", export_folder=tmp_path / "export")
    # Until the model is written the checkpoints are locked: by the worker, and during the export by the trainer.
    assert held == [False, True]
    history = read_history(tmp_path / "run")
    assert history.best_epoch == LABELS.trainer.epochs
    assert history.evaluation == []
    model = tf.saved_model.load(str(tmp_path / "export"))
    records = [record for _, record in ImageDataset.open(tmp_path / "data").records("test")]
    found = {k: v.numpy() for k, v in model.signatures["examples"](examples=tf.constant(records)).items()}
    report = LabelCounts.of_labels(found["probabilities"].argmax(-1), found["label"], 3).report(("r", "g", "b"))
    assert report["accuracy"] > 0.6
    images = [tf.train.Example.FromString(r).features.feature["image/encoded"].bytes_list.value[0] for r in records]
    served = model.signatures["serving_default"](image_bytes=tf.constant(images))
    assert served["probabilities"].shape == (12, 3)
    assert set(served["labels"].numpy()) <= {b"red", b"green", b"blue"}


def test_a_loss_that_is_not_finite_stops_the_training_with_a_message(trained, tmp_path):
    recipe = changed(SMALL, learning_rate=10, weight_decay=1, schedule="constant", warm_up=0, epochs=30)
    with pytest.raises(ShardwrightError, match=r"(the loss|a weight) became .*nan.* Lower trainer.learning_rate"):
        train_and_export(
            recipe, dataset=trained / "data", run_folder=tmp_path / "run", export_folder=tmp_path / "export"
        )


def test_an_empty_train_split_is_reported(tmp_path, write_shapes):
    write_shapes(tmp_path / "data", counts={"train": 0, "test": 2})
    with pytest.raises(ShardwrightError, match="split train is empty"):
        train_and_export(
            SMALL, dataset=tmp_path / "data", run_folder=tmp_path / "run", export_folder=tmp_path / "export"
        )
