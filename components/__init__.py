"""TFX components for images: use them in a pipeline of your own, or run `shardwright run`, which is made of them.

A component is a folder: `component.py` (its inputs, outputs and parameters) and `executor.py` (the work). The names
below are imported when they are first asked for: TFX takes seconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shardwright.label_formats import FORMATS
from shardwright.running.extras import missing_extra

if TYPE_CHECKING:
    from shardwright.components.baseline_resolver.component import BaselineResolver
    from shardwright.components.baseline_resolver.executor import AT_RUN
    from shardwright.components.data_gate.component import DataGate
    from shardwright.components.evaluator.component import ImageEvaluator
    from shardwright.components.image_example_gen.component import ImageExampleGen
    from shardwright.components.image_trainer.component import ImageTrainer
    from shardwright.components.image_transform.component import ImageTransform
    from shardwright.components.input_resolver.component import InputResolver
    from shardwright.components.predictor.component import Predictor
    from shardwright.components.pusher.component import Pusher
    from shardwright.components.report.component import Report
    from shardwright.components.runtime.documents import correct_document
    from shardwright.components.runtime.user_code import code_digest
    from shardwright.components.statistics_gen.component import StatisticsGen
    from shardwright.components.statistics_gen.stock import statistics_options
    from shardwright.config.constructors import *  # noqa: F403 -- one for each annotation format; the stub has them
    from shardwright.config.constructors import (
        Drift,
        Duplicates,
        Evaluator,
        Features,
        Gate,
        Images,
        Input,
        Loader,
        Rejects,
        Shards,
        Skew,
        Split,
        Text,
        Trainer,
        Transform,
    )
    from shardwright.ingest.identify import IngestSource

__all__ = [
    "AT_RUN",
    "BaselineResolver",
    "DataGate",
    "Drift",
    "Duplicates",
    "Evaluator",
    "Features",
    "Gate",
    "ImageEvaluator",
    "ImageExampleGen",
    "ImageTrainer",
    "ImageTransform",
    "Images",
    "IngestSource",
    "Input",
    "InputResolver",
    "Loader",
    "Predictor",
    "Pusher",
    "Rejects",
    "Report",
    "Shards",
    "Skew",
    "Split",
    "StatisticsGen",
    "Text",
    "Trainer",
    "Transform",
    "code_digest",
    "correct_document",
    "statistics_options",
]
__all__ += [row.function for row in FORMATS]
__all__.sort()

# All others are functions of `config.constructors`.
_MODULES = {
    "AT_RUN": "components.baseline_resolver.executor",
    "BaselineResolver": "components.baseline_resolver.component",
    "DataGate": "components.data_gate.component",
    "ImageEvaluator": "components.evaluator.component",
    "ImageExampleGen": "components.image_example_gen.component",
    "ImageTrainer": "components.image_trainer.component",
    "ImageTransform": "components.image_transform.component",
    "IngestSource": "ingest.identify",
    "InputResolver": "components.input_resolver.component",
    "Predictor": "components.predictor.component",
    "Pusher": "components.pusher.component",
    "Report": "components.report.component",
    "StatisticsGen": "components.statistics_gen.component",
    "code_digest": "components.runtime.user_code",
    "correct_document": "components.runtime.documents",
    "statistics_options": "components.statistics_gen.stock",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}. It offers {', '.join(__all__)}.")
    module = _MODULES.get(name, "config.constructors")
    try:
        return getattr(import_module(f"shardwright.{module}"), name)
    except ModuleNotFoundError as error:
        raise missing_extra(error) or error from None


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
