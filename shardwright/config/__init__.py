"""The configuration: one YAML file and its frozen dataclasses, which refuse wrong values before any work."""

from shardwright.config.cloud import BeamConfig
from shardwright.config.config import Config, RunConfig
from shardwright.config.evaluation import EvaluatorConfig, GateConfig
from shardwright.config.images import DuplicatesConfig, ImagesConfig
from shardwright.config.input import InputConfig, LabelsConfig
from shardwright.config.kubeflow import KubeflowConfig
from shardwright.config.loader import LoaderConfig
from shardwright.config.parse_values import parse_section
from shardwright.config.push import HubConfig, PushConfig
from shardwright.config.shards import FeaturesConfig, RejectsConfig, ShardsConfig
from shardwright.config.split import GroupConfig, SplitConfig
from shardwright.config.trainer import TrainerConfig
from shardwright.config.transform import TransformConfig
from shardwright.config.vertex import VertexConfig
from shardwright.config.yaml_config import as_config, load_config, parse_config

__all__ = [
    "BeamConfig",
    "Config",
    "DuplicatesConfig",
    "EvaluatorConfig",
    "FeaturesConfig",
    "GateConfig",
    "GroupConfig",
    "HubConfig",
    "ImagesConfig",
    "InputConfig",
    "KubeflowConfig",
    "LabelsConfig",
    "LoaderConfig",
    "PushConfig",
    "RejectsConfig",
    "RunConfig",
    "ShardsConfig",
    "SplitConfig",
    "TrainerConfig",
    "TransformConfig",
    "VertexConfig",
    "as_config",
    "load_config",
    "parse_config",
    "parse_section",
]
