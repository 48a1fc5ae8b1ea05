"""The whole component: texts, labels and kept sizes in the graph; statistics and schema that TFX's components take."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import build
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_data_validation as tfdv
import tensorflow_transform as tft
from tensorflow_metadata.proto.v0 import anomalies_pb2
from tfx.components.example_validator import executor as example_validator
from tfx.types import standard_artifacts

from shardwright.components.image_transform import executor
from shardwright.components.image_transform.transform_recipe import transform_recipe
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError
from shardwright.images import tf_ops
from shardwright.loader import dataset_statistics, load
from shardwright.tfrecords.encode import byte_strings
from shardwright.tfrecords.records import decode_example

pytestmark = pytest.mark.slow

WORDS = ("cloud", "Über", "don't", "sea", "sky")
FEATURE = "image/caption/text"
# The same texts again as ids of a length. A vocabulary in the graph takes seconds; test_text.py has the other outputs.
OTHERS = {"image/a/text": {"vocabulary": 4, "output": "ids", "length": 6}}
SPLITS = ["eval", "train"]


def texts_of(number):
    random = np.random.default_rng(number)
    return [" ".join(random.choice(WORDS, 5)).encode() + b", 7!" for _ in range(number % 3)]


@pytest.fixture(scope="module")
def done(small_dataset, tmp_path_factory):
    """Captioned images of several sizes, which they keep; captions as counts."""
    root = tmp_path_factory.mktemp("captioned")
    source = small_dataset(
        root,
        counts={"train": [3, 2], "eval": [2]},
        size=lambda number: (24 + number, 36),
        change=lambda number, example: {
            **example,
            **{name: byte_strings(texts_of(number)) for name in (FEATURE, *OTHERS)},
        },
    )
    options = {
        "resize": "keep",
        "encoding": "png",
        "labels": "multi_hot",
        "text": {FEATURE: {"vocabulary": 4}, **OTHERS},
    }
    config = build.config(transform=options)
    made: dict[str, Any] = {
        "transformed_examples": standard_artifacts.Examples(),
        "transform_graph": standard_artifacts.TransformGraph(),
        "post_transform_stats": standard_artifacts.ExampleStatistics(),
        "post_transform_schema": standard_artifacts.Schema(),
    }
    for name, artifact in made.items():
        artifact.uri = str(root / name)
        Path(artifact.uri).mkdir()
    examples, schema = standard_artifacts.Examples(), standard_artifacts.Schema()
    examples.uri, schema.uri = str(source), str(root)
    (root / "schema.pbtxt").write_text("")
    context = executor.Executor.Context(beam_pipeline_args=[], tmp_dir=str(root / "tmp"), unique_id="1")
    executor.Executor(context).Do(
        {"examples": [examples], "schema": [schema]},
        {name: [artifact] for name, artifact in made.items()},
        {"recipe": transform_recipe(config)},
    )
    return SimpleNamespace(source=source, root=root, **made)


def records_of(dataset, split):
    return [record for _, record in ImageDataset.open(dataset).records(split)]


def test_counts_are_read_sparsely(done):
    vocabulary = tft.TFTransformOutput(done.transform_graph.uri).vocabulary_by_name("vocabulary_image_caption_text")
    words = [word.decode() for word in vocabulary]
    totals = Counter(
        word
        for record in records_of(done.source, "train")
        for text in decode_example(record)[FEATURE]
        for word in text.decode().lower().replace(",", "").replace("!", "").split()
    )
    assert len(words) == 4
    assert sorted((totals[word] for word in words), reverse=True) == sorted(totals.values(), reverse=True)[:4]
    spec = {"counts": tf.io.SparseFeature(f"{FEATURE}/indices", f"{FEATURE}/counts", tf.int64, 4)}
    for split in SPLITS:
        before, after = records_of(done.source, split), records_of(done.transformed_examples.uri, split)
        for old, new in zip(before, after, strict=True):
            counts = tf.sparse.to_dense(tf.io.parse_single_example(new, spec)["counts"]).numpy().tolist()
            tokens = b" ".join(decode_example(old)[FEATURE]).decode().lower().replace(",", "").replace("!", "").split()
            assert counts == [tokens.count(word) for word in words]


def test_the_graph_makes_of_raw_inputs_what_is_stored(done):
    graph = tft.TFTransformOutput(done.transform_graph.uri)
    before = [decode_example(record) for record in records_of(done.source, "train")]
    after = [decode_example(record) for record in records_of(done.transformed_examples.uri, "train")]
    served = graph.transform_raw_features(
        {
            "image/encoded": tf.constant([e["image/encoded"][0] for e in before]),
            "image/class/text": tf.ragged.constant([e["image/class/text"] for e in before], tf.string).to_sparse(),
            **{
                name: tf.ragged.constant([e[name] for e in before], tf.string).to_sparse()
                for name in (FEATURE, *OTHERS)
            },
        }
    )
    np.testing.assert_array_equal(served["labels"], [e["image/class/multi_hot"] for e in after])
    for name in ("indices", "counts"):
        rows = tf.RaggedTensor.from_sparse(served[f"{FEATURE}/{name}"]).to_list()
        assert rows == [e[f"{FEATURE}/{name}"].tolist() for e in after]
    assert served["image/a/text/ids"].shape == (5, 6)
    np.testing.assert_array_equal(served["image/a/text/ids"], [e["image/a/text/ids"] for e in after])
    # Sizes differ, so pixels come as serialized tensors.
    for data, example in zip(served["image"].numpy(), after, strict=True):
        np.testing.assert_array_equal(tf_ops.parse_tensor(data), tf_ops.decode(example["image/encoded"][0]))


def test_ids_are_those_of_the_words(done):
    graph = tft.TFTransformOutput(done.transform_graph.uri)
    spec = {"image/a/text/ids": tf.io.FixedLenFeature([6], tf.int64)}
    words = [word.decode() for word in graph.vocabulary_by_name("vocabulary_image_a_text")]
    assert len(words) == 4
    for split in SPLITS:
        before, after = records_of(done.source, split), records_of(done.transformed_examples.uri, split)
        for old, new in zip(before, after, strict=True):
            tokens = b" ".join(decode_example(old)[FEATURE]).decode().lower().replace(",", "").replace("!", "").split()
            found = tf.io.parse_single_example(new, spec)["image/a/text/ids"].numpy().tolist()
            assert found == [*(words.index(w) + 2 if w in words else 1 for w in tokens), *[0] * 6][:6]


def test_kept_sizes_are_recorded_and_refused_by_the_loader(done):
    figures = dataset_statistics(done.transformed_examples.uri)
    assert figures["size"] is None
    images = [
        tf_ops.decode(decode_example(record)["image/encoded"][0]).numpy().reshape(-1, 3).astype(np.float64)
        for record in records_of(done.transformed_examples.uri, "train")
    ]
    np.testing.assert_allclose(figures["mean"], np.concatenate(images).mean(axis=0), rtol=0, atol=1e-6)
    np.testing.assert_allclose(figures["std"], np.concatenate(images).std(axis=0), rtol=0, atol=1e-6)
    with pytest.raises(DatasetError, match=r"several sizes \(transform\.resize: keep\), and batches need one"):
        load(done.transformed_examples.uri, "train", 2)


def test_tfx_takes_statistics_and_schema(done):
    schema = tfdv.load_schema_text(str(Path(done.post_transform_schema.uri, "schema.pbtxt")))
    stored = ImageDataset.open(done.transformed_examples.uri).manifest.features
    assert {feature.name for feature in schema.feature} == set(stored)
    for split, records in zip(SPLITS, (2, 5), strict=True):
        statistics = tfdv.load_stats_binary(
            str(Path(done.post_transform_stats.uri, f"Split-{split}", "FeatureStats.pb"))
        ).datasets[0]
        assert statistics.num_examples == records
        names = {feature.path.step[0] for feature in statistics.features}
        assert {"image/height", "image/class/multi_hot", f"{FEATURE}/counts"} <= names <= set(stored)
        assert not {name for name in names if name == "image/encoded" or name.endswith("/rle")}
    anomalies = standard_artifacts.ExampleAnomalies()
    anomalies.uri = str(done.root / "anomalies")
    example_validator.Executor().Do(
        {"statistics": [done.post_transform_stats], "schema": [done.post_transform_schema]},
        {"anomalies": [anomalies]},
        {"exclude_splits": "[]", "custom_validation_config": None},
    )
    for split in SPLITS:
        file = Path(anomalies.uri, f"Split-{split}", "SchemaDiff.pb")
        assert dict(anomalies_pb2.Anomalies.FromString(file.read_bytes()).anomaly_info) == {}
