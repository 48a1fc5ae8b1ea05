"""Shardwright's core: photographs and annotations in, sharded, checked, reproducible TFRecord datasets out.

This module offers the names for notebooks and imports each on first use: `make_dataset`, `ImageDataset`, `load`,
`steps_per_epoch`, `train`, `show_batch`, `compare_datasets`, `write_report`, `write_sample`, `write_submission`.
`shardwright docs get-started/python` describes them.

The core imports neither TFX nor Beam, and TensorFlow only in `images/tf_ops.py` and `loader/`. The TFX components
(`shardwright.components`) and the pipelines (`shardwright.pipelines`) import the core, never the reverse; of the names
here, only `train` is from above the core, a part of the components that needs no TFX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shardwright.version import __version__ as __version__

if TYPE_CHECKING:
    from shardwright.components.image_trainer.train_dataset import train
    from shardwright.config import Config, load_config
    from shardwright.dataset.host_sharding import steps_per_epoch
    from shardwright.dataset.manifest import Manifest
    from shardwright.dataset.reader import ImageDataset
    from shardwright.dataset.source import source
    from shardwright.display.batches import show_batch
    from shardwright.drift.monitor import compare_datasets
    from shardwright.edit.export_dataset import ExportOptions
    from shardwright.edit.export_dataset import export as export_dataset
    from shardwright.errors import (
        CheckFailed,
        ConfigError,
        DatasetError,
        NotFound,
        ShardwrightError,
        StorageError,
        UsageError,
    )
    from shardwright.evaluation.submission import write_submission
    from shardwright.ingest.run_ingest import make_dataset
    from shardwright.loader.load import load
    from shardwright.report.page import write_report
    from shardwright.sample import write_sample
    from shardwright.verify.verify_dataset import verify as verify_dataset

__all__ = [
    "CheckFailed",
    "Config",
    "ConfigError",
    "DatasetError",
    "ExportOptions",
    "ImageDataset",
    "Manifest",
    "NotFound",
    "ShardwrightError",
    "StorageError",
    "UsageError",
    "compare_datasets",
    "export_dataset",
    "load",
    "load_config",
    "make_dataset",
    "show_batch",
    "source",
    "steps_per_epoch",
    "train",
    "verify_dataset",
    "write_report",
    "write_sample",
    "write_submission",
]

# Name -> the module that has it, and after a colon its name there. A function cannot have the name of a package
# (`verify`): the package would hide it once that is imported.
_HOMES = {
    "CheckFailed": "errors",
    "Config": "config",
    "ConfigError": "errors",
    "DatasetError": "errors",
    "ExportOptions": "edit.export_dataset",
    "ImageDataset": "dataset.reader",
    "Manifest": "dataset.manifest",
    "NotFound": "errors",
    "ShardwrightError": "errors",
    "StorageError": "errors",
    "UsageError": "errors",
    "compare_datasets": "drift.monitor",
    "export_dataset": "edit.export_dataset:export",
    "load": "loader",
    "load_config": "config",
    "make_dataset": "ingest.run_ingest",
    "show_batch": "display.batches",
    "source": "dataset.source",
    "steps_per_epoch": "dataset.host_sharding",
    "train": "components.image_trainer.train_dataset",
    "verify_dataset": "verify:verify",
    "write_report": "report.page",
    "write_sample": "sample",
    "write_submission": "evaluation.submission",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'shardwright' has no attribute {name!r}. It offers {', '.join(__all__)}.")
    module, _, attribute = _HOMES[name].partition(":")
    try:
        return getattr(import_module(f"shardwright.{module}"), attribute or name)
    except ModuleNotFoundError as error:
        from shardwright.running.extras import missing_extra, stand_in

        missing = missing_extra(error)
        if missing is None:
            raise
        return stand_in(name, missing)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
