"""Texts as numbers: words, their ids in order, dense and sparse counts."""

from collections import Counter
from pathlib import Path

import apache_beam as beam
import build
import pytest
import tensorflow as tf
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from hypothesis import given
from hypothesis import strategies as st
from property_tests import tries
from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

from shardwright.components.image_transform.text import Text, outputs, text_values, vocabulary_lines
from shardwright.components.image_transform.transform_images import transform_images
from shardwright.components.image_transform.transform_plan import plan_of_config
from shardwright.components.image_transform.transformed_features import text_features
from shardwright.components.runtime.beam import in_process_pipeline
from shardwright.config.transform import TextConfig
from shardwright.dataset.reader import ImageDataset
from shardwright.loader.text_features import tokenize
from shardwright.tfrecords.encode import byte_strings, encode_example
from shardwright.tfrecords.records import decode_example

pytestmark = pytest.mark.slow

VOCABULARY = ["sea", "sky", "üben"]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    file = tmp_path_factory.mktemp("words") / "vocabulary"
    file.write_text("".join(f"{word}\n" for word in VOCABULARY), encoding="utf-8")
    return str(file)


def stored(file, texts, **options):
    config = TextConfig(**options)
    values = text_values("t", Text(config, file), texts)
    assert set(values) == set(text_features("t", config))
    example = decode_example(encode_example(values))
    assert {name: "int64" if v.dtype == "int64" else "float32" for name, v in example.items()} == text_features(
        "t", config
    )
    return {name: v.tolist() for name, v in example.items()}


def test_words_are_cut_at_all_that_is_no_letter_digit_or_apostrophe():
    texts = tf.constant([["The SEA,the-sky!", "Don't 7x"], ["\tÜBEN … ÉTÉ", ""], ["", " "]])
    assert tokenize(texts).to_list() == [
        [b"the", b"sea", b"the", b"sky", b"don't", b"7x"],
        ["üben".encode(), "été".encode()],
        [],
    ]
    assert tokenize(tf.constant([[b"sea \xff\xfe sky"]])).to_list() == [[b"sea", b"sky"]]


def test_ids_are_in_order_cut_and_filled_up(vocabulary):
    texts = [b"Sky, lake. Sea?", "üben sky".encode()]
    assert stored(vocabulary, texts, output="ids") == {"t/ids": [3, 1, 2, 4, 3]}
    assert stored(vocabulary, texts, output="ids", length=3) == {"t/ids": [3, 1, 2]}
    assert stored(vocabulary, texts, output="ids", length=7) == {"t/ids": [3, 1, 2, 4, 3, 0, 0]}
    assert stored(vocabulary, [], output="ids") == {"t/ids": []}
    assert stored(vocabulary, [], output="ids", length=2) == {"t/ids": [0, 0]}


@tries(20)
@given(words=st.lists(st.sampled_from([*VOCABULARY, "lake", "Sky"]), max_size=12))
def test_counts_are_those_of_python_sparsely_and_densely(vocabulary, words):
    counts = Counter(word.lower() for word in words)
    expected = [counts[word] for word in VOCABULARY]
    texts = [" ".join(words[:5]).encode(), " ".join(words[5:]).encode()]
    found = stored(vocabulary, texts, vocabulary=5, output="counts")
    assert found["t/indices"] == [i for i, count in enumerate(expected) if count]
    assert found["t/counts"] == [count for count in expected if count]
    assert stored(vocabulary, texts, vocabulary=5, output="dense") == {"t/dense": [*expected, 0, 0]}


def test_the_graph_makes_of_several_images_what_is_stored_of_each(vocabulary):
    """The outputs that test_graph.py leaves out: all ids, and a number for each word."""
    texts = [[b"Sky, lake. Sea?", "üben sky".encode()], [], [b"sea"]]
    words = tokenize(tf.ragged.constant(texts, dtype=tf.string, ragged_rank=1))
    flat = [word.decode() for word in words.flat_values.numpy()]
    known = [VOCABULARY.index(word) if word in VOCABULARY else -1 for word in flat]
    places = words.with_flat_values(tf.constant(known, tf.int64))
    for options in ({"output": "ids"}, {"output": "dense", "vocabulary": 4}):
        ((name, made),) = outputs(places, "t", TextConfig(**options)).items()
        found = [row.numpy().tolist() for row in made]
        assert found == [stored(vocabulary, one, **options)[name] for one in texts]


@pytest.mark.parametrize("most", [2, None])
@pytest.mark.parametrize("words", [["sea", "sky", "sea", "üben", "a", "", "b\nc", "a", "z"], []])
def test_a_vocabulary_is_that_of_tensorflow_transform(tmp_path, words, most):
    def preprocess(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        tft.vocabulary(inputs["t"], top_k=most, vocab_filename="words")
        return dict(inputs)

    metadata = dataset_metadata.DatasetMetadata(
        schema_utils.schema_from_feature_spec({"t": tf.io.VarLenFeature(tf.string)})
    )
    with in_process_pipeline() as p, tft_beam.Context(temp_dir=str(tmp_path / "scratch")):
        rows = p | beam.Create([{"t": words}])
        made = (rows, metadata) | tft_beam.AnalyzeDataset(preprocess)
        _ = made | tft_beam.WriteTransformFn(str(tmp_path / "graph"))
    file = tft.TFTransformOutput(str(tmp_path / "graph")).vocabulary_file_by_name("words")
    assert vocabulary_lines(Counter(word.encode() for word in words), most) == Path(file).read_bytes()


def test_the_graph_has_the_words_of_the_stored_ids_where_an_image_was_rejected(tmp_path):
    """A word that only the rejected image has is the most frequent one, and moves all others."""

    def change(number: int, example: dict[str, object]) -> dict[str, object]:
        texts = byte_strings([b"lost lost lost lost" if number == 0 else b"sea sky sea"])
        return {**example, "image/a/text": texts, **({"image/encoded": b"no image"} if number == 0 else {})}

    source = build.dataset(tmp_path, counts={"train": [3]}, change=change)
    text = {"image/a/text": {"vocabulary": 3, "output": "ids"}}
    config = build.config(transform={"size": [8, 8], "text": text}, rejects={"max_fraction": 0.5})
    opened = ImageDataset.open(source)
    transform_images(opened, plan_of_config(opened, config), tmp_path / "out", graph=tmp_path / "graph", workers=1)
    stored = [decode_example(record) for _, record in ImageDataset.open(tmp_path / "out").records("train")]
    module = tf.saved_model.load(str(tmp_path / "graph/transform_fn"))
    for example in stored:
        inputs = {
            "image/encoded": tf.constant([example["image/encoded"][0]]),
            "image/class/text": tf.sparse.from_dense([["Fish"]]),
            "image/a/text": tf.sparse.from_dense([example["image/a/text"]]),
        }
        ids = module.transform_fn(inputs)["image/a/text/ids"].values
        assert ids.numpy().tolist() == example["image/a/text/ids"].tolist() == [2, 4, 2]
