"""Texts as an input besides images: from the configuration to what is served."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from recipes import train_recipe

from shardwright.components.image_trainer.export.signatures import FlippedMean, ServedModel
from shardwright.components.image_trainer.models.build import build_model
from shardwright.components.image_trainer.models.text_inputs import Words
from shardwright.components.image_trainer.spec import TextColumn, TrainRecipe, TrainSpec
from shardwright.components.image_trainer.training.warm_start import begin_with
from shardwright.components.predictor.sources import read_texts
from shardwright.config import parse_config
from shardwright.errors import ConfigError, UsageError
from shardwright.loader.text_features import text_features
from shardwright.storage.checksum import checksum_of
from shardwright.tfrecords.encode import byte_strings, encode_example

RECIPE = train_recipe("cnn", 4, 2, 4, 1e-3, 1, "eval", text=("caption", "place"))
TEXT = {"caption": {"vocabulary": 5}, "place": {"vocabulary": 2, "output": "dense"}}


def config(text=("caption",), transform=TEXT, **sections):
    trainer = {"text": list(text), **sections.pop("trainer", {})}
    raw = {"input": {"images": "x"}, "transform": {"text": transform}, "trainer": trainer, **sections}
    return parse_config(raw, base="/")


def test_the_recipe_holds_the_columns_and_none_without():
    assert TrainRecipe.from_config(config(["place", "caption"])).to_dict()["trainer"]["text"] == ["place", "caption"]
    assert "text" not in TrainRecipe.from_config(config([])).to_dict()["trainer"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": ["title"]}, "trainer.text: 'title' is not among transform.text. It has: caption, place."),
        ({"text": ["a"], "transform": {}}, "trainer.text: 'a' is not among transform.text. It has: none."),
        ({"text": ["caption", "caption"]}, "trainer.text: 'caption' twice"),
        (
            {"trainer": {"model": "mine:build"}},
            "trainer.text: the model is your own, and gets images only",
        ),
        ({"loader": {"augment": ["mixup=0.3"]}}, "loader.augment: mixup mixes images, and trainer.text has texts"),
        (
            {"transform": {"caption": {"vocabulary": 60_000}}},
            "trainer.text: 60000 words are too many. Lower transform.text.caption",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(options, message):
    with pytest.raises(ConfigError) as caught:
        config(**options)
    assert message in str(caught.value)


@pytest.fixture
def spec(tmp_path):
    """A vocabulary of five words, of which three are there, and one of two."""
    (tmp_path / "vocabulary_image_meta_caption").write_text("sea\nsky\nüben\n", encoding="utf-8")
    (tmp_path / "vocabulary_place").write_text("north\nsouth\n")
    columns = (
        TextColumn("caption", "image/meta/caption", 5, "c" * 64),
        TextColumn("place", "place", 2, "p" * 64),
    )
    return TrainSpec(
        RECIPE, "d", "d", "classification", tuple("abcdefg"), 4, 6, "stretch", None, None, "run", "export",
        multi=True, texts=columns, vocabularies=str(tmp_path),
    )  # fmt: skip


def served_model(model, spec):
    return ServedModel(FlippedMean(model, spec), spec)


def test_what_is_served_and_evaluated_counts_the_words_as_the_transform_does(spec):
    served = served_model(lambda inputs, training: inputs["text"] / 4, spec).signatures()
    png = tf.io.encode_png(np.zeros((9, 9, 3), np.uint8)).numpy()
    texts = [["The SEA, the sky-sea", "South"], ["\tÜBEN", "nowhere"], ["", ""]]
    wanted = np.array([[2, 1, 0, 0, 0, 0, 1], [0, 0, 1, 0, 0, 0, 0], [0] * 7]) / 4
    found = served["serving_default"](image_bytes=tf.constant([png] * 3), texts=tf.constant(texts))
    np.testing.assert_array_equal(found["probabilities"], wanted)
    examples = [
        {"image/encoded": png, "image/meta/caption": [a.encode()], "place": [b.encode()], "image/class/label": 1}
        for a, b in texts
    ]
    # Several texts of one image are one; none at all is an empty one.
    examples[0]["image/meta/caption"] = byte_strings([b"The SEA, the", b"sky-sea"])
    examples[2] = {"image/encoded": png, "image/class/label": 1}
    records = [encode_example(example) for example in examples]
    found = served["examples"](examples=tf.constant(records))
    np.testing.assert_array_equal(found["prediction"], (wanted >= 0.5).astype(np.float32))


def test_what_is_served_counts_no_word_that_the_stored_ids_have_no_room_for(spec):
    short = (dataclasses.replace(spec.texts[0], length=3), spec.texts[1])
    served = served_model(lambda inputs, training: inputs["text"], dataclasses.replace(spec, texts=short)).signatures()
    png = tf.io.encode_png(np.zeros((9, 9, 3), np.uint8)).numpy()
    # A word of no vocabulary takes its place, too.
    found = served["serving_default"](image_bytes=[png], texts=[["Sea, the sky; sea!", "south south"]])
    np.testing.assert_array_equal(found["probabilities"], [[1, 1, 0, 0, 0, 0, 2]])


def test_the_length_of_stored_ids_is_in_the_specification():
    options = {"t": {"output": "ids", "vocabulary": 4, "length": 3}, "u": {"output": "counts", "vocabulary": 4}}
    names = ["t/ids", "u/indices", "u/counts"]
    manifest = SimpleNamespace(recipe={"text": options}, stored=str, features=dict.fromkeys(names, "int64"))
    found = text_features(SimpleNamespace(manifest=manifest, root="d"), ["t", "u"])
    assert [(text.column, text.length) for text in found] == [("t", 3), ("u", 0)]


def test_a_specification_with_texts_survives_its_file_and_knows_no_place(spec, tmp_path):
    spec.write(tmp_path / "spec.json")
    assert TrainSpec.read(tmp_path / "spec.json") == spec
    assert dataclasses.replace(spec, vocabularies="elsewhere").fingerprint == spec.fingerprint
    other = (dataclasses.replace(spec.texts[0], digest="d" * 64), spec.texts[1])
    assert dataclasses.replace(spec, texts=other).fingerprint != spec.fingerprint


def model(name, vocabulary):
    columns = (TextColumn("t", "t", 5, checksum_of(vocabulary)),)
    return build_model(name, height=16, width=16, classes=2, filters=4, seed=len(vocabulary), words=Words.of(columns))


@pytest.mark.parametrize("name", ["unet", "cnn", "deeplab"])
def test_both_parts_count(name):
    built = model(name, b"one")
    rng = np.random.default_rng(1)
    images, texts = rng.normal(size=(2, 16, 16, 3)).astype(np.float32), np.eye(5, dtype=np.float32)[:2]
    # The scores of a classifier begin at 0.
    built.get_layer("scores").set_weights([rng.normal(size=v.shape) for v in built.get_layer("scores").weights])
    answer = np.asarray(built({"image": images, "text": texts}))
    for changed in ({"image": images[::-1], "text": texts}, {"image": images, "text": texts[::-1]}):
        assert np.abs(np.asarray(built(changed)) - answer).max() > 1e-4


def test_a_warm_start_with_other_words_learns_them_again_and_keeps_the_rest(tmp_path):
    earlier = model("cnn", b"old words")
    earlier.save(tmp_path / "model.keras")
    same, other = model("cnn", b"old words"), model("cnn", b"words")
    assert begin_with(same, str(tmp_path / "model.keras")) == ()
    fresh = [np.asarray(w) for w in other.weights]
    (note,) = begin_with(other, str(tmp_path / "model.keras"))
    assert note == "the vocabulary has changed: the weights of words are learned again"
    for mine, before, theirs in zip(other.weights, fresh, earlier.weights, strict=True):
        kept = before if "words_" in mine.path else np.asarray(theirs)
        np.testing.assert_array_equal(np.asarray(mine), kept, err_msg=mine.path)
    for mine, theirs in zip(same.weights, earlier.weights, strict=True):
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs))


def test_texts_of_images_are_found_by_key_and_by_name(tmp_path):
    file = tmp_path / "texts.csv"
    file.write_text('File Name;note;caption\nb/1.png;x;"one; two"\n1.png;y;three\n2.png;z\nelse.png;;\n')
    found = read_texts(str(file), ["caption", "note"], ["a/1.png", "b/1.png", "2.png", "3.png"])
    assert found == {
        "a/1.png": [b"three", b"y"],
        "b/1.png": [b"one; two three", b"x y"],
        "2.png": [b"", b"z"],
    }
    with pytest.raises(UsageError, match=r"no column 'title', which the model reads. It has: 'File Name'"):
        read_texts(str(file), ["title"], [])
    file.write_text("caption,other\n")
    with pytest.raises(UsageError, match="no column names the images"):
        read_texts(str(file), ["caption"], [])
