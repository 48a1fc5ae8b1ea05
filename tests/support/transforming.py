"""Shared by tests of transformed datasets: the shards that ImageTransform writes, without the seconds for its graph."""

from collections.abc import Mapping
from pathlib import Path

from shardwright.components.image_transform import transform_plan as planning
from shardwright.components.image_transform.text import Text
from shardwright.components.image_transform.transform_recipe import read_recipe, transform_recipe
from shardwright.config import Config
from shardwright.dataset.reader import ImageDataset
from shardwright.staging.commit import commit


def transform_shards(config: Config, source: Path, root: Path, texts: Mapping[str, Text] | None = None) -> Path:
    """Writes the shards and commits, as the component does around its analyzers; returns the new dataset."""
    dataset = ImageDataset.open(source)
    plan = planning.plan_transform(dataset, *read_recipe(transform_recipe(config)))
    staging = planning.open_staging(str(root / "staging"), plan.dataset)
    with staging.locked():
        work = planning.TransformWork.of(dataset, plan, staging, texts or {})
        for number in range(len(work.shards)):
            planning.write_numbered(number, work)
        commit(staging, plan.dataset, root / "out", {})
    return root / "out"
