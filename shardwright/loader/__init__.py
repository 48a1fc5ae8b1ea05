"""The loader: from a dataset on disk to the batches a model learns from."""

from shardwright.loader.facts import STATISTICS_FILE, dataset_statistics, image_size
from shardwright.loader.load import load, steps_per_epoch

__all__ = ["STATISTICS_FILE", "dataset_statistics", "image_size", "load", "steps_per_epoch"]
