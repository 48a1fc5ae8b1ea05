"""The configuration: one YAML file and its frozen dataclasses, which refuse wrong values before any work.

Each name is imported on first use: the help of the command line reads `label_formats`, and none of the sections.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardwright.config.config import Config as Config
    from shardwright.config.evaluation import EvaluatorConfig as EvaluatorConfig
    from shardwright.config.images import DuplicatesConfig as DuplicatesConfig
    from shardwright.config.images import ImagesConfig as ImagesConfig
    from shardwright.config.input import InputConfig as InputConfig
    from shardwright.config.input import LabelsConfig as LabelsConfig
    from shardwright.config.kubeflow import KubeflowConfig as KubeflowConfig
    from shardwright.config.loader import LoaderConfig as LoaderConfig
    from shardwright.config.parse_values import parse_section as parse_section
    from shardwright.config.shards import FeaturesConfig as FeaturesConfig
    from shardwright.config.shards import RejectsConfig as RejectsConfig
    from shardwright.config.shards import ShardsConfig as ShardsConfig
    from shardwright.config.split import SplitConfig as SplitConfig
    from shardwright.config.trainer import TrainerConfig as TrainerConfig
    from shardwright.config.transform import TransformConfig as TransformConfig
    from shardwright.config.vertex import VertexConfig as VertexConfig
    from shardwright.config.yaml_config import as_config as as_config
    from shardwright.config.yaml_config import load_config as load_config
    from shardwright.config.yaml_config import parse_config as parse_config

# Name -> the module that has it.
_HOMES = {
    "Config": "config",
    "EvaluatorConfig": "evaluation",
    "DuplicatesConfig": "images",
    "ImagesConfig": "images",
    "InputConfig": "input",
    "LabelsConfig": "input",
    "KubeflowConfig": "kubeflow",
    "LoaderConfig": "loader",
    "parse_section": "parse_values",
    "FeaturesConfig": "shards",
    "RejectsConfig": "shards",
    "ShardsConfig": "shards",
    "SplitConfig": "split",
    "TrainerConfig": "trainer",
    "TransformConfig": "transform",
    "VertexConfig": "vertex",
    "as_config": "yaml_config",
    "load_config": "yaml_config",
    "parse_config": "yaml_config",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'shardwright.config' has no attribute {name!r}")
    return getattr(import_module(f"shardwright.config.{_HOMES[name]}"), name)
