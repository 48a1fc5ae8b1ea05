"""TFX components for images: use them in a pipeline of your own, or run `shardwright run`, which is made of them.

A component is a folder: `component.py` (its inputs, outputs and parameters) and `executor.py` (the work). The names
below are imported when they are first asked for: TFX takes seconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shardwright.extras import missing_extra

if TYPE_CHECKING:
    from shardwright.components.baseline_resolver.component import BaselineResolver
    from shardwright.components.data_gate.component import DataGate
    from shardwright.components.image_example_gen.component import ImageExampleGen
    from shardwright.components.image_transform.component import ImageTransform
    from shardwright.components.input_resolver.component import InputResolver
    from shardwright.components.pusher.component import Pusher
    from shardwright.components.report.component import Report
    from shardwright.components.statistics_gen.component import StatisticsGen
    from shardwright.config.inline import (
        Captions,
        ClassFolders,
        Coco,
        Duplicates,
        Features,
        FileNames,
        Images,
        LabelCsv,
        MaskImages,
        PascalVoc,
        Rejects,
        RleCsv,
        Shards,
        Split,
        Unlabelled,
    )
    from shardwright.ingest.survey import IngestSource

__all__ = [
    "BaselineResolver",
    "Captions",
    "ClassFolders",
    "Coco",
    "DataGate",
    "Duplicates",
    "Features",
    "FileNames",
    "ImageExampleGen",
    "ImageTransform",
    "Images",
    "IngestSource",
    "InputResolver",
    "LabelCsv",
    "MaskImages",
    "PascalVoc",
    "Pusher",
    "Rejects",
    "Report",
    "RleCsv",
    "Shards",
    "Split",
    "StatisticsGen",
    "Unlabelled",
]

_FOLDERS = {
    "BaselineResolver": "baseline_resolver",
    "DataGate": "data_gate",
    "ImageExampleGen": "image_example_gen",
    "ImageTransform": "image_transform",
    "InputResolver": "input_resolver",
    "Pusher": "pusher",
    "Report": "report",
    "StatisticsGen": "statistics_gen",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}. It offers {', '.join(__all__)}.")
    if name in _FOLDERS:
        module = f"shardwright.components.{_FOLDERS[name]}.component"
    else:
        module = "shardwright.ingest.survey" if name == "IngestSource" else "shardwright.config.inline"
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise missing_extra(error) or error from None


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
