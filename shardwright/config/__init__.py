"""The configuration: one YAML file, frozen dataclasses, refused before any work where it makes no sense."""

from shardwright.config.beam import BeamConfig
from shardwright.config.duplicates import DuplicatesConfig
from shardwright.config.evaluation import EvaluatorConfig, GateConfig
from shardwright.config.images import ImagesConfig
from shardwright.config.input import InputConfig
from shardwright.config.kubeflow import KubeflowConfig
from shardwright.config.labels import LabelsConfig
from shardwright.config.layout import FeaturesConfig, RejectsConfig, ShardsConfig
from shardwright.config.load import load_config, parse_config, parse_section
from shardwright.config.loader import LoaderConfig
from shardwright.config.sections import Config, RunConfig
from shardwright.config.split import GroupConfig, SplitConfig
from shardwright.config.trainer import TrainerConfig
from shardwright.config.transform import TransformConfig
from shardwright.config.vertex import VertexConfig

__all__ = [
    "BeamConfig",
    "Config",
    "DuplicatesConfig",
    "EvaluatorConfig",
    "FeaturesConfig",
    "GateConfig",
    "GroupConfig",
    "ImagesConfig",
    "InputConfig",
    "KubeflowConfig",
    "LabelsConfig",
    "LoaderConfig",
    "RejectsConfig",
    "RunConfig",
    "ShardsConfig",
    "SplitConfig",
    "TrainerConfig",
    "TransformConfig",
    "VertexConfig",
    "load_config",
    "parse_config",
    "parse_section",
]
