"""Shardwright's core: photographs and annotations in, sharded, checked, reproducible TFRecord datasets out.

This module offers the names for notebooks and imports each on first use: `make_dataset`, `ImageDataset`, `load`,
`steps_per_epoch`, `show_batch`, `compare_datasets`, `write_report`, `write_sample` (docs/python.md).

The core imports neither TFX nor Beam, and TensorFlow only in `images/tf_ops.py` and `loader/`. The TFX components
(`shardwright.components`) and the pipelines (`shardwright.pipelines`) import the core, never the reverse.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shardwright.version import __version__ as __version__

if TYPE_CHECKING:
    from shardwright.dataset.reader import ImageDataset
    from shardwright.display.batches import show_batch
    from shardwright.drift.monitor import compare_datasets
    from shardwright.ingest.run import make_dataset
    from shardwright.loader.load import load, steps_per_epoch
    from shardwright.report.page import write_report
    from shardwright.sample import write_sample


__all__ = [
    "ImageDataset",
    "compare_datasets",
    "load",
    "make_dataset",
    "show_batch",
    "steps_per_epoch",
    "write_report",
    "write_sample",
]

_HOMES = {
    "ImageDataset": "dataset.reader",
    "compare_datasets": "drift.monitor",
    "load": "loader",
    "show_batch": "display.batches",
    "make_dataset": "ingest.run",
    "steps_per_epoch": "loader",
    "write_report": "report.page",
    "write_sample": "sample",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'shardwright' has no attribute {name!r}. It offers {', '.join(__all__)}.")
    return getattr(import_module(f"shardwright.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
