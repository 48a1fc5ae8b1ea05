"""`convert`: a model in another format answers in a clean process as the SavedModel does, or it is not written."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from recipes import train_recipe

from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.components.predictor import convert_model as conversion
from shardwright.evaluation.thresholds import Thresholds
from shardwright.pipelines.cli import main

pytestmark = pytest.mark.slow

RECIPE = train_recipe("unet", 8, 2, 4, 1e-3, 1, "eval", normalize="imagenet_torch")
SPEC = TrainSpec(RECIPE, "d", "d", "segmentation", ("Fish", "Sugar"), 12, 16, "letterbox", None, None, "run", "export")


class Convolution:
    """A model with weights, an upsampling and a border; its variables are saved as those of a Keras model."""

    def __init__(self, outputs):
        import tensorflow as tf

        kernel = np.random.default_rng(3).normal(size=(3, 3, 3, outputs))
        self._kernel = tf.Variable(kernel, dtype=tf.float32)
        self.variables = [SimpleNamespace(value=self._kernel)]

    def __call__(self, images, training=False):
        import tensorflow as tf

        small = tf.nn.max_pool2d(tf.nn.conv2d(images, self._kernel, 1, "SAME"), 2, 2, "SAME")
        maps = tf.image.resize(small, images.shape[1:3])
        return tf.sigmoid(maps) if maps.shape[-1] == 2 else tf.nn.softmax(tf.reduce_mean(maps, [1, 2]))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Name -> folder of a model: of masks, of labels, and two that cannot be converted."""
    from shardwright.components.image_trainer.export.export_model import save_model
    from shardwright.components.image_trainer.export.signatures import FlippedMean

    labels = dataclasses.replace(SPEC, task="classification", classes=("a", "b", "c"))
    found = {}
    for name, spec in (("masks", SPEC), ("labels", labels)):
        found[name] = tmp_path_factory.mktemp("model") / name
        count = len(spec.classes)
        chosen = Thresholds((0.5,) * count, (0,) * count)
        save_model(FlippedMean(Convolution(count), spec), dataclasses.replace(spec, export=str(found[name])), chosen)
    return found


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    for number, size in enumerate([(16, 12), (31, 9), (40, 50)]):
        pixels = np.random.default_rng(number).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.{'png' if number else 'jpg'}")
    (folder / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    return folder


@pytest.mark.parametrize("to", conversion.FORMATS)
@pytest.mark.parametrize("name", ["masks", "labels"])
def test_a_model_answers_the_same(models, pictures, tmp_path, capsys, to, name):
    if to == "onnx":
        pytest.importorskip("tf2onnx")
        pytest.importorskip("onnxruntime")
    out = tmp_path / "out"
    call = ["convert", str(models[name]), str(pictures), "--to", to, "--out", str(out), "--count", "9"]
    assert main([*call, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads((out / "check.json").read_text())
    assert (found["images"], found["other_decisions"]) == (3, 0)
    assert found["largest_difference"] < 1e-5
    assert found["decisions"] == (3 * 12 * 16 * 2 if name == "masks" else 3)
    assert json.loads((out / "classes.json").read_text()) == (["Fish", "Sugar"] if name == "masks" else ["a", "b", "c"])
    assert json.loads((out / "preparation.json").read_text())["resize"] == "letterbox"
    assert found["bytes"] == (out / found["file"]).stat().st_size
    assert main(call) == 2
    assert "exists already" in capsys.readouterr().err


def test_what_does_not_agree_is_not_written(models, pictures, tmp_path, capsys, monkeypatch):
    call = ["convert", str(models["masks"]), str(pictures), "--to", "litert", "--out", str(tmp_path / "out")]
    # Opening, converting and answering take seconds, and only what the converted model answers differs below.
    opened = conversion.open_model(str(models["masks"]))
    expected = opened.answer([file.read_bytes() for file in sorted(pictures.glob("[0-9]*"))])["probabilities"]
    right = conversion.answers_of
    monkeypatch.setattr(conversion, "open_model", lambda place, **options: opened)
    monkeypatch.setattr(conversion, "_converted", lambda model, to: b"not a model")
    for answer, message in (
        (lambda found: found + np.float32(0.01), "probabilities differ by up to 0.01 from those of the SavedModel"),
        (lambda found: found * np.nan, "probabilities differ by up to nan"),
        (lambda found: found[..., :1], "the converted model answers [3, 12, 16, 1], and the SavedModel [3, 12, 16, 2]"),
    ):
        monkeypatch.setattr(conversion, "answers_of", lambda *given, answer=answer: answer(expected))
        assert main(call) == 1
        assert message in capsys.readouterr().err
    monkeypatch.setattr(conversion, "answers_of", right)
    assert main(call) == 1
    assert "model.tflite: does not answer in a clean process: ValueError" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_model_that_cannot_be_converted(models, pictures, tmp_path, capsys, monkeypatch):
    def message(*changes):
        call = ["convert", str(models["masks"]), str(pictures), "--to", "litert", "--out", str(tmp_path / "out")]
        assert main([*call, *changes]) == 2
        return capsys.readouterr().err

    opened = conversion.open_model(str(models["masks"]))
    assert "--count: 0 is too small" in message("--count", "0")
    monkeypatch.setattr(conversion, "find_spec", lambda name: None)
    assert "--to: onnx needs packages that are not installed. Run `pip install tf2onnx onnxruntime`" in message(
        "--to", "onnx"
    )
    monkeypatch.undo()
    for changed, expected in (
        ({"texts": (("caption", "image/caption"),)}, "reads texts, too"),
        ({"loaded": type("Loaded", (), {"signatures": {}})}, "an earlier version of Shardwright exported it"),
    ):
        monkeypatch.setattr(
            conversion, "open_model", lambda _, changed=changed, **options: dataclasses.replace(opened, **changed)
        )
        assert expected in message()
