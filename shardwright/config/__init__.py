"""The configuration: one YAML file, frozen dataclasses, refused before any work where it makes no sense."""

from shardwright.config.labels import LabelsConfig
from shardwright.config.load import load_config, parse_config
from shardwright.config.sections import (
    BeamConfig,
    Config,
    EvaluatorConfig,
    GateConfig,
    ImagesConfig,
    InputConfig,
    LoaderConfig,
    RejectsConfig,
    RunConfig,
    ShardsConfig,
    SplitConfig,
    TrainerConfig,
    TransformConfig,
)

__all__ = [
    "BeamConfig",
    "Config",
    "EvaluatorConfig",
    "GateConfig",
    "ImagesConfig",
    "InputConfig",
    "LabelsConfig",
    "LoaderConfig",
    "RejectsConfig",
    "RunConfig",
    "ShardsConfig",
    "SplitConfig",
    "TrainerConfig",
    "TransformConfig",
    "load_config",
    "parse_config",
]
