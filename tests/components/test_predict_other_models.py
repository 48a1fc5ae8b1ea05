"""`predict` for models that Shardwright did not export, Keras files and SavedModels: what a call must state."""

import csv
import re
from typing import Any

import build
import keras
import numpy as np
import pytest
from keras import layers
from PIL import Image

from shardwright import make_dataset
from shardwright.components.predictor.exported_model import open_model
from shardwright.components.predictor.other_model import Stated, open_any_model
from shardwright.components.predictor.predict_images import PredictOptions, predict
from shardwright.config.loader import NORMALIZATIONS
from shardwright.config.trainer import OUTPUTS
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed, DatasetError, UsageError
from shardwright.images.tf_ops import normalize
from shardwright.pipelines.cli import main
from shardwright.pipelines.commands import catalog_of_models
from shardwright.pipelines.try_server import TriedModel

SIZE = (16, 24)
UNIT = "unit"


def masks(last="sigmoid", *, size=SIZE, classes=2):
    inputs = keras.Input((*size, 3))
    return keras.Model(inputs, layers.Conv2D(classes, 3, padding="same", activation=last)(inputs))


def labels(last, classes=2):
    inputs = keras.Input((*SIZE, 3))
    return keras.Model(inputs, layers.Dense(classes, activation=last)(layers.GlobalAveragePooling2D()(inputs)))


@pytest.fixture(params=["file", "folder"])
def saved(request, tmp_path):
    """Saves a model as a Keras file or as a SavedModel."""

    def save(model: Any) -> str:
        if request.param == "file":
            model.compile("adam", "mse")
            model.save(tmp_path / "model.keras")
            return str(tmp_path / "model.keras")
        model.export(tmp_path / "model", verbose=False)
        return str(tmp_path / "model")

    return save


def table(model, images, out, stated):
    predict(model, str(images), str(out), PredictOptions(stated=stated), quiet=True)
    with out.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.two_stacks
def test_masks_are_those_of_the_model(saved, tmp_path):
    source = build.dataset(tmp_path / "source", counts={"train": [2]})
    model = masks()
    rows = table(saved(model), source, tmp_path / "out.csv", Stated(UNIT))
    opened = open_any_model(str(saved(model)), Stated(UNIT, dataset=str(source)))
    dataset = ImageDataset.open(source)
    assert len(rows) == 2 * len(dataset.manifest.classes)
    for key in dataset.keys("train"):
        image = dataset.example(key).encoded
        pixels = opened.pixels([image])
        wanted = np.asarray(model(normalize(pixels, UNIT), training=False))
        answer = opened.answer([image])
        assert np.abs(answer["probabilities"] - wanted).max() < 1e-5
        assert np.array_equal(answer["masks"].astype(bool), wanted >= 0.5)


def test_logits_are_seen_in_a_keras_file_and_must_be_stated_for_a_saved_model(saved, tmp_path):
    source = build.dataset(tmp_path / "source", counts={"train": [2]})
    model = masks(None)
    model.layers[-1].bias.assign([40.0, -40.0])
    place = saved(model)
    if place.endswith(".keras"):
        assert table(place, source, tmp_path / "out.csv", Stated(UNIT))
    else:
        with pytest.raises(CheckFailed, match=r"which are no probabilities. State --outputs logits"):
            table(place, source, tmp_path / "out.csv", Stated(UNIT))
        assert not (tmp_path / "out.csv").exists()
    (example,) = ImageDataset.open(source).examples("train", 1)
    answer = open_any_model(place, Stated(UNIT, str(source), outputs="logits")).answer([example.encoded])
    assert answer["probabilities"][..., 0].min() > 0.99
    assert answer["probabilities"][..., 1].max() < 0.01


def test_labels(saved, tmp_path):
    source = build.dataset(tmp_path / "source", counts={"train": [3]}, task="classification")
    names = ImageDataset.open(source).manifest.classes
    rows = table(saved(labels("softmax", len(names))), source, tmp_path / "out.csv", Stated(UNIT))
    assert len(rows) == 3
    for row in rows:
        shares = {name: float(row[name]) for name in names}
        assert abs(sum(shares.values()) - 1) < 1e-4
        assert shares[row["label"]] == max(shares.values())


@pytest.mark.parametrize(
    ("model", "stated", "problem"),
    [
        (masks, Stated(classes=("a", "b")), r"State --preprocess, how pixels become numbers: unit, "),
        (masks, Stated(UNIT), r"State --classes, .* or --dataset"),
        (lambda: masks(size=(None, None)), Stated(UNIT, classes=("a", "b")), re.escape("takes [batch, any, any, 3]")),
        (
            masks,
            Stated(UNIT, classes=("a", "b", "c")),
            re.escape(
                "gives [batch, 16, 24, 2], not [batch, 16, 24, 3]: the last number is that of the classes, 3 (a, b, c)"
            ),
        ),
        (masks, Stated(UNIT, classes=("a,b",)), "A name holds a comma; --classes takes names with spaces between"),
        (
            masks,
            Stated(UNIT, classes=("a", "b"), size=(8, 8)),
            re.escape("differ: the model: [batch, 16, 24, 3]; --size: [batch, 8, 8, 3]"),
        ),
        (
            lambda: keras.Sequential([keras.Input((16, 24, 1)), layers.Conv2D(2, 1)]),
            Stated(UNIT, classes=("a", "b")),
            re.escape("takes [batch, 16, 24, 1]; images are given as [batch, height, width, 3]"),
        ),
        (
            lambda: keras.Sequential([keras.Input((16, 24, 3)), layers.Conv2D(2, 1, strides=2, activation="sigmoid")]),
            Stated(UNIT, classes=("a", "b")),
            re.escape("gives [batch, 8, 12, 2], not [batch, 16, 24, 2]: "),
        ),
        (lambda: labels(None), Stated(UNIT, classes=("a", "b")), "whether an image has one class or several"),
        (masks, Stated("dataset", classes=("a", "b")), "needs --dataset, a transformed one"),
    ],
)
def test_what_is_missing_or_does_not_fit_is_said_with_both_shapes(saved, tmp_path, model, stated, problem):
    with pytest.raises(UsageError, match=problem):
        open_any_model(saved(model()), stated)


def test_a_dataset_of_the_other_task_does_not_fit(saved, tmp_path):
    source = build.dataset(tmp_path / "source", counts={"train": [1]})
    with pytest.raises(UsageError, match=re.escape("gives [batch, 2], not [batch, 16, 24, 2]: ")):
        open_any_model(saved(labels("softmax")), Stated(UNIT, str(source)))


def test_a_file_of_the_old_format_is_named(tmp_path):
    masks().save(tmp_path / "model.h5")
    with pytest.raises(UsageError, match=r"old format HDF5.*load_model\('model.h5'\)\.save\('model\.keras'\)"):
        open_any_model(str(tmp_path / "model.h5"), Stated(UNIT, classes=("a", "b")))


def test_a_model_that_runs_code_is_not_opened(tmp_path):
    model = keras.Sequential([keras.Input((16, 24, 3)), layers.Lambda(lambda x: x), layers.Conv2D(2, 1)])
    model.save(tmp_path / "model.keras")
    with pytest.raises(DatasetError, match="Lambda"):
        open_any_model(str(tmp_path / "model.keras"), Stated(UNIT, classes=("a", "b")))
    (tmp_path / "broken.keras").write_bytes(b"PK")
    with pytest.raises(DatasetError, match="cannot open it"):
        open_any_model(str(tmp_path / "broken.keras"), Stated(UNIT, classes=("a", "b")))


def test_other_commands_say_what_to_do_with_it(tmp_path):
    masks().export(tmp_path / "model", verbose=False)
    with pytest.raises(UsageError, match=r"did not export this model. `predict`, `review` and `try` take it"):
        open_model(str(tmp_path / "model"))


def resized(root):
    """A dataset whose ingest changed the pixels: the images show what their masks say, but for one."""
    lines = ["Image_Label,EncodedPixels"]
    (root / "images").mkdir(parents=True)
    for number in range(6):
        pixels = np.zeros((32, 48, 3), np.uint8)
        pixels[:, 24 * (number % 2) :][:, :24, 0] = 255
        Image.fromarray(pixels).save(root / f"images/{number}.png")
        lines += [f"{number}.png_Fish,{32 * 24 * ((number + (number == 4)) % 2) + 1} {32 * 24}", f"{number}.png_Sugar,"]
    (root / "labels.csv").write_text("\n".join(lines) + "\n")
    given = {"images": str(root / "images"), "labels": {"path": str(root / "labels.csv")}}
    smaller = {"resize": "stretch", "size": list(SIZE)}
    split = {"ratios": {"eval": 1.0}}
    make_dataset({"task": "segmentation", "input": given, "images": smaller, "split": split}, root / "dataset")
    return str(root / "dataset")


def test_a_review_ranks_by_its_answers(saved, tmp_path, capsys):
    source = resized(tmp_path / "source")
    model = masks()
    kernel = np.zeros((3, 3, 3, 2), np.float32)
    kernel[1, 1, 0, 0] = 20
    model.layers[-1].set_weights([kernel, np.array([-10, -10], np.float32)])
    call = ["review", saved(model), "--dataset", source]
    assert main([*call, "--out", str(tmp_path / "review")]) == 2
    assert "State --preprocess" in capsys.readouterr().err
    call += ["--preprocess", UNIT, "--out", str(tmp_path / "review")]
    assert main([*call, "--folds", "2"]) == 2
    assert "Shardwright did not train this model. Give --config FILE" in capsys.readouterr().err
    assert main([*call, "--size", "8", "8"]) == 2
    assert "[batch, 16, 24, 3]; --size: [batch, 8, 8, 3]" in capsys.readouterr().err
    assert main(call) == 0
    with (tmp_path / "review/ranking.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["image"] == "4.png"
    assert rows[0]["reason"].startswith("Fish: Dice 0.00")
    assert all(row["reason"] == "Fish: Dice 1.00" for row in rows[1:])


def test_the_page_of_try_shows_its_answers(saved, tmp_path):
    dataset = ImageDataset.open(resized(tmp_path / "source"))
    tried = TriedModel(open_any_model(saved(masks()), Stated(UNIT, dataset=dataset.root)), dataset)
    assert "segmentation, 16 × 24 pixels, 2 classes" in tried.page()
    answer = tried.example(b"")
    assert answer["size"] == list(SIZE)
    assert answer["truth"]


def test_the_help_has_all_values():
    assert catalog_of_models.NORMALIZATIONS == NORMALIZATIONS
    assert catalog_of_models.OUTPUTS == OUTPUTS
