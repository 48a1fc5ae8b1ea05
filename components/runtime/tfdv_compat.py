"""The part of TensorFlow Data Validation that is not public and that we use. Checked with TFDV 1.16 and 1.21.

`tests/components/runtime/test_tfdv_compat.py` fails when a release of TFDV changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
import tensorflow_data_validation as tfdv
from tensorflow_data_validation.statistics.stats_impl import GenerateSlicedStatisticsImpl
from tensorflow_metadata.proto.v0 import statistics_pb2

Slicer = Callable[[pa.RecordBatch], Iterator[tuple[str, pa.RecordBatch]]]

# The name that TFDV gives to the data set of all examples, if there are others.
WHOLE = "All Examples"
_APART = "\n"


class StatisticsOfSplits(beam.PTransform):
    """Computes the statistics of several splits by one graph.

    The graph of `tfdv.GenerateStatistics` has some hundred steps, which take longer than the statistics of a small data
    set. Here a split is a slice of all batches, so that there is one such graph.

    Takes pairs of a split and a batch, and returns pairs of a split and its `DatasetFeatureStatisticsList`: the data
    set of all examples, then one for each slice by name. Features are sorted by path. These orders are the runner's
    otherwise.

    Args:
        splits: all splits; also one without a batch has statistics.
        slicers: return slices of a batch with their names.
    """

    def __init__(self, splits: Sequence[str], slicers: Sequence[Slicer] = ()) -> None:
        super().__init__()
        self._splits, self._slicers = tuple(splits), tuple(slicers)

    def expand(self, batches: Any) -> Any:
        """Returns the statistics by split."""
        return (
            batches
            | "Slice" >> beam.FlatMap(_sliced, slicers=self._slicers)
            | "Generate" >> GenerateSlicedStatisticsImpl(tfdv.StatsOptions(), is_slicing_enabled=True)
            | "BySplit" >> beam.FlatMap(_by_split, splits=self._splits, named=bool(self._slicers))
        )


def _sliced(batch: tuple[str, pa.RecordBatch], slicers: Sequence[Slicer]) -> Iterator[tuple[str, pa.RecordBatch]]:
    split, rows = batch
    yield f"{split}{_APART}{WHOLE}", rows
    for slicer in slicers:
        for name, part in slicer(rows):
            yield f"{split}{_APART}{name}", part


def _by_split(
    statistics: statistics_pb2.DatasetFeatureStatisticsList, splits: Sequence[str], *, named: bool
) -> Iterator[tuple[str, statistics_pb2.DatasetFeatureStatisticsList]]:
    of_splits: Mapping[str, list[Any]] = {split: [] for split in splits}
    for dataset in statistics.datasets:
        # TFDV describes no examples at all by a data set without a name.
        split, apart, dataset.name = dataset.name.partition(_APART)
        if apart:
            of_splits[split].append(dataset)
    for split, datasets in of_splits.items():
        datasets.sort(key=lambda dataset: (dataset.name != WHOLE, dataset.name))
        made = statistics_pb2.DatasetFeatureStatisticsList(datasets=datasets)
        for dataset in made.datasets:
            features = sorted(dataset.features, key=lambda feature: (feature.name, *feature.path.step))
            del dataset.features[:]
            dataset.features.extend(features)
            if not named:
                dataset.ClearField("name")
        if not datasets:
            made.datasets.add()
        yield split, made
