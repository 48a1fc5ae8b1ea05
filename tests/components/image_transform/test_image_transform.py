"""ImageTransform: pixels and masks moved as one, figures that numpy agrees with, a graph that serves."""

import io
import json
import shutil
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_transform as tft
from damage import without_pixels
from PIL import Image
from tfx.types import artifact_utils, standard_artifacts

from shardwright import loader
from shardwright.components.image_transform import component, executor, rewrite
from shardwright.components.image_transform import transform_plan as planning
from shardwright.components.image_transform.transform_recipe import read_recipe, transform_recipe
from shardwright.config import parse_config
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import CheckFailed, DatasetError
from shardwright.images import tf_ops
from shardwright.images.geometry import plan_geometry
from shardwright.lineage.record import read_lineage
from shardwright.masks import rle
from shardwright.storage.fingerprint import canonical_json
from shardwright.tfrecords.records import decode_example

pytestmark = pytest.mark.slow

MakeDataset = Callable[..., Path]


def recipe_of(rejects=0.01, **transform):
    return transform_recipe(config_of(rejects, **transform))


def config_of(rejects=0.01, **transform):
    raw = {"input": {"images": "x"}, "transform": {"size": [20, 30], **transform}, "rejects": {"max_fraction": rejects}}
    return parse_config(raw, base=".")


def run(source, root, recipe, *beam_args):
    """Runs the executor as TFX does: with artifacts, and output folders that exist."""
    examples, schema = standard_artifacts.Examples(), standard_artifacts.Schema()
    examples.uri, schema.uri = str(source), str(root / "schema")
    Path(schema.uri).mkdir(parents=True, exist_ok=True)
    Path(schema.uri, "schema.pbtxt").write_text('feature { name: "image/encoded" type: BYTES }\n')
    transformed, graph = standard_artifacts.Examples(), standard_artifacts.TransformGraph()
    statistics, post_schema = standard_artifacts.ExampleStatistics(), standard_artifacts.Schema()
    outputs = {
        "transformed_examples": transformed,
        "transform_graph": graph,
        "post_transform_stats": statistics,
        "post_transform_schema": post_schema,
    }
    for name, artifact in outputs.items():
        artifact.uri = str(root / name)
        Path(artifact.uri).mkdir()
    context = executor.Executor.Context(beam_pipeline_args=list(beam_args), tmp_dir=str(root / "tmp"), unique_id="1")
    executor.Executor(context).Do(
        {"examples": [examples], "schema": [schema]},
        {name: [artifact] for name, artifact in outputs.items()},
        {"recipe": recipe},
    )
    return SimpleNamespace(
        artifact=transformed,
        examples=Path(transformed.uri),
        graph=Path(graph.uri),
        statistics=statistics,
        schema=post_schema,
    )


def examples_of(dataset, split):
    return [decode_example(record) for _, record in ImageDataset.open(dataset).records(split)]


def contents(folder):
    """All files but the SavedModel: TensorFlow numbers its functions by what the process traced before."""
    files = (f for f in sorted(folder.rglob("*")) if f.is_file() and "transform_fn" not in f.parts)
    return {str(f.relative_to(folder)): f.read_bytes() for f in files}


@pytest.fixture(scope="module")
def clouds(small_dataset, tmp_path_factory):
    """Images of several sizes, with a feature that the transform knows nothing of."""
    return small_dataset(
        tmp_path_factory.mktemp("clouds"),
        counts={"train": [4, 3], "eval": [2], "test": [0]},
        size=lambda number: (33 + 7 * number, 90 - 5 * number),
        change=lambda number, example: {**example, "site/name": f"site {number}".encode(), "site/height": number / 4},
    )


@pytest.fixture(scope="module")
def transformed(clouds, tmp_path_factory):
    """Runs the component by a policy, once."""

    @cache
    def made(policy: str) -> SimpleNamespace:
        result = run(clouds, tmp_path_factory.mktemp("done"), recipe_of(resize=policy, encoding="png"))
        result.policy = policy
        return result

    return made


@pytest.fixture(scope="module")
def done(transformed):
    """By the policy that does most; stretch is that of whole pipelines, and test_forms.py tries all of them."""
    return transformed("letterbox")


def test_records_are_the_resized_images_with_their_masks(clouds, done):
    assert [s.records for s in ImageDataset.open(done.examples).manifest.shards] == [2, 0, 4, 3]
    lost = 0
    for split in ("train", "eval"):
        pairs = zip(examples_of(clouds, split), examples_of(done.examples, split), strict=True)
        for before, after in pairs:
            image = np.asarray(Image.open(io.BytesIO(after["image/encoded"][0])))
            expected = tf_ops.decode_resized(before["image/encoded"][0], 20, 30, done.policy)
            np.testing.assert_array_equal(image, expected)
            height, width = int(before["image/height"][0]), int(before["image/width"][0])
            plan = plan_geometry(done.policy, height, width, 20, 30)
            present = []
            for index, name in enumerate(("Fish", "Sugar")):
                runs = rle.resample(rle.from_flat(before[f"image/segmentation/{name}/rle"]), plan)
                np.testing.assert_array_equal(after[f"image/segmentation/{name}/rle"], runs.reshape(-1))
                assert after[f"image/segmentation/{name}/area"].tolist() == [rle.area(runs)]
                present += [index] if len(runs) else []
            assert after["image/class/label"].tolist() == present
            assert after["image/class/text"] == [(b"Fish", b"Sugar")[index] for index in present]
            lost += len(before["image/class/label"]) - len(present)
            changed = {name for name in after if name not in before or not np.array_equal(before[name], after[name])}
            new = {"image/original/height", "image/original/width"}
            allowed = {"image/encoded", "image/height", "image/width", "image/class/label", "image/class/text"} | new
            assert {n for n in changed if not n.startswith("image/segmentation/")} <= allowed
            assert set(after) == set(before) | new
            assert [int(after[f"image/{n}"][0]) for n in ("height", "width")] == [20, 30]
            assert [int(after[f"image/original/{n}"][0]) for n in ("height", "width")] == [height, width]
    manifest = ImageDataset.open(done.examples).manifest
    assert set(manifest.features) == set(after)
    assert manifest.kind == "transform"
    assert manifest.parent == ImageDataset.open(clouds).manifest.digest


def test_statistics_equal_numpy(done):
    after = examples_of(done.examples, "train")
    values = np.concatenate(
        [np.asarray(Image.open(io.BytesIO(e["image/encoded"][0]))).reshape(-1, 3) for e in after]
    ).astype(np.float64)
    found = loader.dataset_statistics(done.graph)
    np.testing.assert_allclose(found["mean"], values.mean(axis=0), rtol=0, atol=1e-6)
    np.testing.assert_allclose(found["std"], values.std(axis=0), rtol=0, atol=1e-6)
    for index, name in enumerate(("Fish", "Sugar")):
        areas = [int(e[f"image/segmentation/{name}/area"][0]) for e in after]
        assert found["class_frequency"][name] == pytest.approx(
            np.mean([index in e["image/class/label"] for e in after])
        )
        assert found["pixel_frequency"][name] == pytest.approx(sum(areas) / (len(after) * 20 * 30))
    assert found["size"] == [20, 30]
    assert found["policy"] == done.policy
    assert loader.dataset_statistics(done.examples) == found


def test_the_graph_serves_raw_bytes(done, clouds):
    graph = tft.TFTransformOutput(str(done.graph))
    assert graph.raw_feature_spec()["image/encoded"] == tf.io.FixedLenFeature([], tf.string)
    encoded = [e["image/encoded"][0] for e in examples_of(clouds, "train")]
    served = graph.transform_raw_features({"image/encoded": tf.constant(encoded)})
    assert graph.transformed_feature_spec()["image"].shape == [20, 30, 3]
    stored = [tf_ops.decode(e["image/encoded"][0]).numpy() for e in examples_of(done.examples, "train")]
    np.testing.assert_array_equal(served["image"], np.stack(stored))
    figures = loader.dataset_statistics(done.graph)
    for name in ("mean", "std"):
        np.testing.assert_allclose(served[f"statistics/{name}"], [figures[name]] * len(encoded), rtol=1e-6)

    # As an exported model calls it: inside a traced function, with any number of images.
    layer = graph.transform_features_layer()
    serve = tf.function(lambda images: layer({"image/encoded": images})["image"])
    concrete = serve.get_concrete_function(tf.TensorSpec([None], tf.string))
    np.testing.assert_array_equal(concrete(tf.constant(encoded[:1])), stored[:1])


def test_the_loader_reads_it(done):
    images, masks = next(loader.load(done.examples, "train", 7, normalize="dataset").as_numpy_iterator())
    assert images.shape == (7, 20, 30, 3)
    np.testing.assert_allclose(images.mean(axis=(0, 1, 2)), 0, atol=1e-3)
    np.testing.assert_allclose(images.std(axis=(0, 1, 2)), 1, atol=1e-3)
    assert masks.any(axis=(0, 1, 2)).all()


def test_the_artifacts_have_their_properties(done, clouds):
    assert artifact_utils.decode_split_names(done.artifact.split_names) == ["eval", "test", "train"]
    assert done.artifact.get_string_custom_property("payload_format") == "FORMAT_TF_EXAMPLE"
    assert not done.artifact.get_string_custom_property("file_format")
    digest = ImageDataset.open(done.examples).manifest.digest
    assert done.artifact.get_string_custom_property("dataset_digest") == digest
    lineage = read_lineage(done.graph)
    assert lineage["parents"]["examples"] == ImageDataset.open(clouds).manifest.digest
    assert read_lineage(done.examples)["kind"] == "transform"
    assert all(f.name.endswith(".tfrecord") for f in done.examples.glob("Split-*/*"))


def test_classification(small_dataset, tmp_path):
    source = small_dataset(tmp_path / "in", task="classification", classes=("daisy", "rose"))
    done = run(source, tmp_path / "out", recipe_of(labels="one_hot"))
    figures = loader.dataset_statistics(done.graph)
    labels = [int(e["image/class/label"][0]) for e in examples_of(source, "train")]
    assert figures["pixel_frequency"] == {}
    assert figures["class_frequency"] == {"daisy": labels.count(0) / 5, "rose": labels.count(1) / 5}
    after = examples_of(done.examples, "train")
    assert [int(e["image/class/label"][0]) for e in after] == labels
    # The default is JPEG, for any input.
    assert [e["image/format"] for e in after] == [[b"jpeg"]] * 5
    one_hot = [[float(label == number) for number in range(2)] for label in labels]
    assert [e["image/class/one_hot"].tolist() for e in after] == one_hot
    raw = examples_of(source, "train")
    served = tft.TFTransformOutput(str(done.graph)).transform_raw_features(
        {
            "image/encoded": tf.constant([e["image/encoded"][0] for e in raw]),
            "image/class/text": tf.ragged.constant([e["image/class/text"] for e in raw], tf.string).to_sparse(),
        }
    )
    np.testing.assert_array_equal(served["labels"], one_hot)
    loaded = next(loader.load(done.examples, "train", 5).as_numpy_iterator())[1]
    assert sorted(loaded.tolist()) == sorted(labels)


def test_a_train_split_without_images_stops_it(small_dataset, tmp_path):
    source = small_dataset(tmp_path / "in", counts={"train": [2], "eval": [2]}, change=without_pixels({2, 3}))
    with pytest.raises(CheckFailed, match=r"'train' has no image left to train on: 2 were rejected(.|\n)*undecodable"):
        run(source, tmp_path / "out", recipe_of())


def test_finished_shards_are_used_again(clouds, transformed, tmp_path, monkeypatch):
    fresh = transformed("letterbox")
    monkeypatch.setenv("SHARDWRIGHT_STAGING", str(tmp_path / "staging"))
    recipe = recipe_of(resize="letterbox", encoding="png")
    source = ImageDataset.open(clouds)
    plan = planning.plan_transform(source, *read_recipe(recipe))
    staging = planning.open_staging(str(tmp_path / "staging"), plan.dataset)
    work = planning.TransformWork.of(source, plan, staging, {})
    for number in range(len(work.shards)):
        planning.write_numbered(number, work)

    def never(*_: object) -> None:
        raise AssertionError("a finished shard was written again")

    monkeypatch.setattr(rewrite, "rewritten", never)
    # The graph is traced by the test before; here it would be the same, for seconds.
    copied = partial(shutil.copytree, fresh.graph, dirs_exist_ok=True)
    monkeypatch.setattr(executor, "write_graph", lambda *given: copied(given[-1]))
    resumed = run(clouds, tmp_path / "resumed", recipe)
    assert contents(resumed.examples) == contents(fresh.examples)
    assert not Path(staging.root).exists()


def test_an_input_that_is_no_dataset_is_refused(tmp_path):
    (tmp_path / "in").mkdir()
    with pytest.raises(DatasetError, match=r"has no records"):
        run(tmp_path / "in", tmp_path / "out", recipe_of())


def test_the_recipe_holds_what_changes_bytes():
    assert json.loads(recipe_of(quality=80)) == {
        "code": 2, "encoding": "jpeg", "max_rejects": 0.01, "quality": 80, "resize": "stretch", "size": [20, 30]
    }  # fmt: skip
    assert recipe_of(encoding="png", quality=80) == recipe_of(encoding="png", quality=90)
    old = canonical_json({**json.loads(recipe_of()), "code": 0})
    with pytest.raises(ValueError, match="code version 0, this is 2"):
        read_recipe(old)


def test_the_component_has_its_channels():
    from tfx.types import channel_utils

    examples, schema = standard_artifacts.Examples(), standard_artifacts.Schema()
    channels = channel_utils.as_channel([examples]), channel_utils.as_channel([schema])
    made = component.ImageTransform.from_config(config_of(), *channels)
    assert set(made.outputs) == {
        "transformed_examples", "transform_graph", "post_transform_stats", "post_transform_schema"
    }  # fmt: skip
    assert made.exec_properties == {"recipe": recipe_of()}
