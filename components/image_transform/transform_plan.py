"""The plan of a transform, made before anything is written, and the work for its workers.

TFX is not imported, so that Beam's worker processes start without it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

from shardwright.components.image_transform.encoding import resolve_encoding
from shardwright.components.image_transform.rewrite import ShardTransform, transform_shard
from shardwright.components.image_transform.text import Text
from shardwright.components.image_transform.transform_recipe import ingest_image_options, manifest_recipe
from shardwright.components.image_transform.transformed_features import stored_features
from shardwright.config import Config, TransformConfig
from shardwright.config.transform import TextConfig
from shardwright.dataset.feature_presets import StoredFeatures
from shardwright.dataset.manifest import Manifest
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.record_facts import FactsCollector
from shardwright.errors import DatasetError
from shardwright.staging.commit import DatasetPlan
from shardwright.staging.shard_writer import planned_shards
from shardwright.staging.staging import PlannedShard, Staging
from shardwright.storage import is_remote
from shardwright.storage.own_names import make_own_folder

TRAIN = "train"


class TransformPlan(NamedTuple):
    """The plan of a run.

    Attributes:
        dataset: the dataset to write.
        recipe: options that change bytes.
        stored: forms of the stored features.
        texts: feature -> its text options.
        note: why this encoding was chosen; empty where the configuration states it.
    """

    dataset: DatasetPlan
    recipe: TransformConfig
    stored: StoredFeatures
    texts: Mapping[str, TextConfig]
    note: str = ""

    @property
    def train(self) -> list[PlannedShard]:
        """The shards that are analyzed."""
        return [planned for planned in self.dataset.shards if planned.split == TRAIN]

    @property
    def totals(self) -> dict[str, int]:
        """Split -> number of its shards."""
        return {planned.split: planned.total for planned in self.dataset.shards}


@dataclass(frozen=True)
class TransformWork:
    """The input of all workers; picklable and small: a name and a hash per shard.

    Attributes:
        staging: destination of the shards.
        root: folder or URL of the source dataset.
        shards: every shard with its source's path below the root, and the source's BLAKE3.
        how: the transformation of their records.
        outline: the manifest of the transformed dataset without its shards.
    """

    staging: Staging
    root: str
    shards: tuple[tuple[PlannedShard, str, str], ...]
    how: ShardTransform
    outline: Manifest

    @staticmethod
    def of(source: ImageDataset, plan: TransformPlan, staging: Staging, texts: Mapping[str, Text]) -> TransformWork:
        """Returns the work of a plan."""
        dataset = plan.dataset
        pairs = zip(dataset.shards, source.manifest.shards, strict=True)
        shards = tuple((planned, shard.path, shard.checksum) for planned, shard in pairs)
        how = ShardTransform(plan.recipe, dataset.task, dataset.classes, plan.stored, texts)
        return TransformWork(staging, source.root, shards, how, dataset.outline())


def write_numbered(number: int, work: TransformWork, threads: int | None = None) -> int:
    """Writes a shard by its position in `work.shards`; see `rewrite.transform_shard`."""
    planned, path, checksum = work.shards[number]
    facts = FactsCollector(work.outline, planned.total)
    return transform_shard(work.staging, planned, os.path.join(work.root, path), checksum, work.how, facts, threads)


def open_staging(root: str, plan: DatasetPlan) -> Staging:
    """Opens the staging folder of a plan, one per TensorFlow version: re-encoded pixels may differ between versions."""
    group = os.path.join(root, f"tensorflow-{tf.__version__}")
    if not is_remote(root):
        make_own_folder(group)
    return Staging.open(group, plan.fingerprint)


def plan_transform(source: ImageDataset, recipe: TransformConfig, max_rejects: float) -> TransformPlan:
    """Plans the transformed dataset: a shard for every shard, an input for every record.

    Raises:
        ConfigError: the recipe does not fit the input.
        DatasetError: the input's features have foreign names or forms.
    """
    manifest = source.manifest
    problem = ""
    if manifest.names or manifest.recipe.get("features"):
        problem = "its features have the names of a preset or of features.map. Ingest without the section features"
    elif manifest.encoding in ("tensor", "raw"):
        problem = f"its images are stored as {manifest.encoding}. Ingest with images.encoding: jpeg, png or keep"
    if problem:
        raise DatasetError(f"{source.root}: cannot be transformed: {problem}.")
    recipe, note = resolve_encoding(recipe, manifest)
    # Options that serving cannot repeat are refused before anything is written.
    ingest_image_options(source.manifest.recipe)
    stored, texts = stored_features(recipe, manifest.features, labels=manifest.labels, classes=len(manifest.classes))
    dataset = DatasetPlan(
        kind="transform",
        task=manifest.task,
        classes=manifest.classes,
        recipe=manifest_recipe(recipe),
        parent=manifest.digest,
        features=stored.kinds,
        names=stored.names,
        inputs=manifest.records,
        shards=planned_shards([shard.split for shard in manifest.shards]),
        max_rejects=max_rejects,
        labels=manifest.labels,
    )
    return TransformPlan(dataset, recipe, stored, texts, note)


def plan_of_config(source: ImageDataset, config: Config) -> TransformPlan:
    """Plans the transform of a configuration; see `plan_transform`."""
    return plan_transform(source, config.transform.effective(config.task), config.rejects.max_fraction)
