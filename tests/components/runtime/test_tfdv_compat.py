"""The statistics of splits by one graph are those that TFDV computes for each split."""

import pickle
import uuid
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pytest
import tensorflow_data_validation as tfdv
from compat import checked_with

from shardwright.components.runtime.beam import in_process_pipeline
from shardwright.components.runtime.tfdv_compat import WHOLE, StatisticsOfSplits

SPLITS = {"train": [3, 1, 4, 1], "eval": [5, 9], "empty": []}


def test_the_version_is_one_that_was_checked():
    checked_with("tensorflow-data-validation", ">=1.16,<1.22")


def rows(values):
    columns = {"number": [[v] for v in values], "word": [[b"odd" if v % 2 else b"even"] for v in values]}
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns.values()], list(columns))


def halves(batch):
    for value, name in ((b"odd", "is odd"), (b"even", "is even")):
        taken = [row for row, words in enumerate(batch.column(1).to_pylist()) if words == [value]]
        if taken:
            yield name, batch.take(pa.array(taken))


def keep(element, folder):
    """Beam copies functions, and what they refer to."""
    Path(folder, uuid.uuid4().hex).write_bytes(pickle.dumps(element))


def outcome(transform, elements, folder):
    """Returns what a transform returns for some elements."""
    folder.mkdir()
    with in_process_pipeline() as pipeline:
        _ = pipeline | beam.Create(elements, reshuffle=False) | transform | beam.Map(keep, folder=str(folder))
    return [pickle.loads(file.read_bytes()) for file in folder.iterdir()]


def sorted_features(dataset):
    features = sorted(dataset.features, key=lambda feature: tuple(feature.path.step))
    del dataset.features[:]
    dataset.features.extend(features)
    return dataset


@pytest.mark.slow
@pytest.mark.two_stacks
@pytest.mark.parametrize("slicers", [(), (halves,)])
def test_they_are_those_of_each_split_alone(slicers, tmp_path):
    pairs = [(split, rows([value])) for split, values in SPLITS.items() for value in values]
    made = dict(outcome(StatisticsOfSplits(list(SPLITS), slicers), pairs, tmp_path / "together"))
    assert set(made) == set(SPLITS)
    for split, values in SPLITS.items():
        options = tfdv.StatsOptions(experimental_slice_functions=list(slicers) or None)
        batches = [rows([value]) for value in values]
        (alone,) = outcome(tfdv.GenerateStatistics(options), batches, tmp_path / split)
        wanted = sorted(map(sorted_features, alone.datasets), key=lambda dataset: (dataset.name != WHOLE, dataset.name))
        assert list(made[split].datasets) == wanted, split


@pytest.mark.slow
def test_no_split_may_have_any_example(tmp_path):
    made = dict(outcome(StatisticsOfSplits(["train", "eval"], (halves,)), [], tmp_path / "together"))
    (alone,) = outcome(tfdv.GenerateStatistics(tfdv.StatsOptions()), [], tmp_path / "alone")
    assert made == {"train": alone, "eval": alone}
