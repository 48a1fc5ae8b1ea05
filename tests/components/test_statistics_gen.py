"""StatisticsGen: figures of all images, of each class and of each source are those of an independent count."""

import base64
import io
import json
import re
import uuid
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tensorflow_data_validation as tfdv
from tensorflow_data_validation.utils import display_util
from tensorflow_metadata.proto.v0 import statistics_pb2
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import channel_utils, standard_artifacts

from shardwright.components.statistics_gen import executor
from shardwright.components.statistics_gen.component import StatisticsGen
from shardwright.components.statistics_gen.executor import MOST, Executor, slices, sources
from shardwright.dataset.dataset_schema import parse_schema, render_schema
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ConfigError, UsageError
from shardwright.tfrecords.records import decode_example

FEATURES = ["image/class/label", "image/class/text", "image/height", "image/key", "image/quality/brightness"]


def measured(number, example):
    return {**example, "image/height": 20 + number, "image/quality/brightness": number / 64}


def elsewhere(split, number):
    return f"{('', 'near/', 'far/<b>/')[number % 3]}{number:03d}"


def written(small_dataset, root, **options):
    """A dataset whose keys are in folders, and the statistics of its splits."""
    names = ("Fish", "Sugar", "Ünïq")
    dataset = ImageDataset.open(small_dataset(root, classes=names, change=measured, key_of=elsewhere, **options))
    examples, statistics = standard_artifacts.Examples(), standard_artifacts.ExampleStatistics()
    examples.uri, statistics.uri = dataset.root, str(root / "statistics")
    examples.split_names = json.dumps(list(dataset.splits))
    context = BaseBeamExecutor.Context(beam_pipeline_args=[], tmp_dir=str(root / "tmp"), unique_id="1")
    properties = {"features": json.dumps([*FEATURES, "image/nowhere"])}
    Executor(context).Do({"examples": [examples]}, {"statistics": [statistics]}, properties)
    assert statistics.split_names == examples.split_names
    read = {
        split: tfdv.load_stats_binary(str(root / "statistics" / f"Split-{split}" / "FeatureStats.pb"))
        for split in dataset.splits
    }
    return dataset, read


@pytest.fixture(scope="module")
def counted(small_dataset, tmp_path_factory):
    return written(small_dataset, tmp_path_factory.mktemp("statistics"), counts={"train": [20, 15], "eval": [9]})


def test_data_sets_and_features_are_sorted(counted):
    for statistics in counted[1].values():
        names = [dataset.name for dataset in statistics.datasets]
        assert len(names) > 2
        assert names == ["All Examples", *sorted(names[1:])]
        for dataset in statistics.datasets:
            paths = [tuple(feature.path.step) for feature in dataset.features]
            assert paths == sorted(paths)


def brightness(examples):
    return [float(example["image/quality/brightness"][0]) for example in examples]


def numbers(one):
    """Images, and mean and extremes of the brightness, as TFDV has them."""
    (feature,) = [f.num_stats for f in one.features if f.path.step[0] == "image/quality/brightness"]
    return one.num_examples, feature.mean, feature.min, feature.max


@pytest.mark.slow
def test_every_slice_equals_an_independent_count(counted):
    dataset, read = counted
    for split in dataset.splits:
        examples = [decode_example(payload) for _, payload in dataset.records(split)]
        groups = {"All Examples": examples}
        for example in examples:
            for name in {value.decode() for value in example.get("image/class/text", [])}:
                groups.setdefault(f"class/{name}", []).append(example)
            folder = example["image/key"][0].decode().rpartition("/")[0].split("/")[0]
            groups.setdefault(f"source/{folder or '(none)'}", []).append(example)
        found = {one.name: one for one in read[split].datasets}
        assert set(found) == set(groups)
        assert {"class/Ünïq", "source/far", "source/near", "source/(none)"} <= set(found)
        for name, members in groups.items():
            values = brightness(members)
            wanted = (len(members), np.mean(values), min(values), max(values))
            assert numbers(found[name]) == pytest.approx(wanted), name
        assert {".".join(f.path.step) for f in found["All Examples"].features} == set(FEATURES)


@pytest.mark.slow
def test_tfdv_opens_them(counted, monkeypatch):
    dataset, read = counted
    shown = []
    monkeypatch.setattr(display_util, "display", lambda html: shown.append(html.data))
    tfdv.visualize_statistics(
        read["train"], tfdv.get_slice_stats(read["train"], "class/Fish"), lhs_name="all", rhs_name="Fish"
    )
    (page,) = shown
    parsed = statistics_pb2.DatasetFeatureStatisticsList()
    parsed.ParseFromString(base64.b64decode(re.search(r'proto-input="(.*?)"', page)[1]))
    assert [one.name for one in parsed.datasets] == ["all", "Fish"]
    assert parsed.datasets[0].num_examples == dataset.num_records("train") > parsed.datasets[1].num_examples > 0
    assert {".".join(f.path.step) or f.name for f in parsed.datasets[0].features} == set(FEATURES)
    # Components that read them use the whole split, with any slices.
    manifest = dataset.manifest
    schema = parse_schema(render_schema(manifest.task, manifest.classes, manifest.labels, manifest.features), "x")
    del schema.feature[:]
    anomalies = tfdv.validate_statistics(read["train"], schema).anomaly_info
    assert set(anomalies) == {f"'{name}'" if "." in name else name for name in FEATURES}
    inferred = tfdv.infer_schema(read["train"])
    assert {feature.name for feature in inferred.feature} == set(FEATURES)


def opened(place, folder):
    Path(folder, uuid.uuid4().hex).write_text(place)
    return io.BytesIO()


@pytest.mark.slow
def test_on_a_bucket_they_are_written_to_its_url(small_dataset, tmp_path, monkeypatch):
    """As on Vertex AI, where this component opens buckets itself: no place of it may go through a local path."""
    places = tmp_path / "places"
    places.mkdir()
    monkeypatch.setattr(executor.FileSystems, "create", partial(opened, folder=places))
    examples, statistics = standard_artifacts.Examples(), standard_artifacts.ExampleStatistics()
    examples.uri, statistics.uri = str(small_dataset(tmp_path)), "gs://bucket/statistics/7"
    examples.split_names = '["train","eval"]'
    context = BaseBeamExecutor.Context(beam_pipeline_args=[], tmp_dir=str(tmp_path / "tmp"), unique_id="1")
    monkeypatch.chdir(tmp_path)
    Executor(context).Do({"examples": [examples]}, {"statistics": [statistics]}, {"features": '["image/height"]'})
    found = {file.read_text() for file in places.iterdir()}
    assert found == {f"gs://bucket/statistics/7/Split-{split}/FeatureStats.pb" for split in ("train", "eval")}
    assert not (tmp_path / "gs:").exists()


def test_folders_that_are_the_classes_give_no_second_slices(small_dataset, tmp_path):
    root = small_dataset(
        tmp_path, task="classification", key_of=lambda _, number: f"{('Fish', 'Sugar')[number % 2]}/{number}"
    )
    assert len(slices(ImageDataset.open(root), FEATURES)) == 1


def test_one_folder_and_one_class_are_no_slices(small_dataset, tmp_path):
    dataset = ImageDataset.open(small_dataset(tmp_path, classes=("Fish",), counts={"train": [4]}))
    assert sources(dataset) == []
    assert slices(dataset, FEATURES) == []
    assert slices(dataset, ["image/height"]) == []


def test_the_most_frequent_sources_have_slices(small_dataset, tmp_path):
    root = small_dataset(
        tmp_path, counts={"train": [MOST + 14]}, key_of=lambda split, number: f"{max(0, number - 9):03d}/{number:03d}"
    )
    found = sources(ImageDataset.open(root))
    assert found == [f"{number:03d}" for number in range(MOST)]


def test_parameters_are_sorted_names():
    examples = channel_utils.as_channel([standard_artifacts.Examples()])
    component = StatisticsGen(examples, ["b", "a"])
    assert component.exec_properties == {"features": '["a","b"]', "required": 1}
    assert component.id == "StatisticsGen"
    assert StatisticsGen(examples, ["a"], allow_absent=True).exec_properties == {"features": '["a"]'}
    for wrong in ([], ["a", 7]):
        with pytest.raises(ConfigError, match="feature_names: .* is not a list of names"):
            StatisticsGen(examples, wrong)


@pytest.mark.parametrize(("names", "required"), [(["image/height", "image/nowhere"], 1), (["image/nowhere"], 0)])
def test_features_that_the_examples_lack_are_refused(small_dataset, tmp_path, names, required):
    examples = standard_artifacts.Examples()
    examples.uri, examples.split_names = str(small_dataset(tmp_path)), '["train","eval"]'
    context = BaseBeamExecutor.Context(beam_pipeline_args=[], tmp_dir=str(tmp_path / "tmp"), unique_id="1")
    properties = {"features": json.dumps(names), "required": required}
    outputs = {"statistics": [standard_artifacts.ExampleStatistics()]}
    with pytest.raises(UsageError, match=r"no feature 'image/nowhere'\. Use names of these: .*image/height"):
        Executor(context).Do({"examples": [examples]}, outputs, properties)
