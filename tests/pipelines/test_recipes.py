"""Recipes are cache keys and are stored in manifests: the same options give the same bytes, version after version."""

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from shardwright.components.image_trainer.spec import TrainRecipe
from shardwright.components.image_transform.transform_recipe import transform_recipe
from shardwright.config import load_config, parse_config
from shardwright.errors import ConfigError
from shardwright.ingest import ingest_recipe
from shardwright.storage.fingerprint import canonical_json

CONFIGS = sorted((Path(__file__).parents[2] / "pipelines" / "configs").glob("*.yaml"))
GOLDEN = Path(__file__).with_name("golden") / "recipes.json"
CLASSES = ("cat", "dog")
DRAWN = 50
# Section -> option -> values that are not its default.
OPTIONS: dict[str, dict[str, list[Any]]] = {
    "input": {"unlisted_images": ["empty", "unlabeled"], "classes": [["b", "a"], {"b": 1, "a": 2}]},
    "images": {"max_pixels": [1000000], "orientation": ["as_stored"], "verify": ["full"]},
    "duplicates": {"exact": ["drop", "keep"], "pixels": ["drop"], "near": [{"max_distance": 4}]},
    "split": {"ratios": [{"train": 0.5, "test": 0.5}], "salt": ["other"], "stratify": [True]},
    "shards": {"count": [4], "target_size": ["10MB"], "filename_template": ["{split}/{index:05d}.tfrecord"]},
    "features": {"preset": ["tfds", "tf_vision"]},
    "rejects": {"max_fraction": [0.25]},
    "transform": {
        "size": [[32, 48]],
        "resize": ["stretch", "fit_pad", "fill_crop", "keep"],
        "encoding": ["png", "jpeg", "tensor"],
        "quality": [80],
        "optimize": [True],
        "chroma": [444],
        "masks": ["png"],
        "labels": ["one_hot"],
    },
    "loader": {"augment": [["flip_left_right"], []], "shuffle_buffer": [7], "order": ["exact"], "normalize": ["none"]},
    "trainer": {
        "epochs": [3],
        "batch_size": [5],
        "learning_rate": [0.1],
        "seed": [9],
        "base_filters": [16],
        "loss": ["focal", "dice"],
        "optimizer": ["sgd", "adamw"],
        "weight_decay": [0.01],
        "schedule": ["cosine"],
        "warm_up": [2],
        "patience": [4],
        "precision": ["bfloat16"],
        "ema": [0.9],
        "accumulate": [2],
        "accelerator": ["cpu"],
    },
    "evaluator": {"threshold": [0.4, "auto"], "min_area": [12, "auto"], "flips": [["flip_left_right"]]},
}


def drawn(number):
    """The options of a configuration, drawn from the table by a number."""
    draw = random.Random(number)
    # A few options only: with more, most configurations are refused.
    chosen = draw.sample([(section, option) for section in OPTIONS for option in OPTIONS[section]], draw.randint(1, 4))
    raw: dict[str, Any] = {"task": draw.choice(["segmentation", "classification"]), "input": {"images": "photographs"}}
    for section, option in chosen:
        raw.setdefault(section, {})[option] = draw.choice(OPTIONS[section][option])
    return raw


def recipes(config):
    return {
        "ingest": json.loads(ingest_recipe(config, CLASSES)),
        "transform": json.loads(transform_recipe(config)),
        "train": TrainRecipe.from_config(config).to_dict(),
    }


def all_recipes():
    found = {file.stem: recipes(load_config(file)) for file in CONFIGS}
    for number in range(DRAWN):
        try:
            found[f"drawn {number}"] = recipes(parse_config(drawn(number), base="/data"))
        except ConfigError as refused:
            found[f"drawn {number}"] = refused.args[0].partition(":")[0]
    return found


def test_recipes_stay_the_same():
    """After a change that is meant: raise the recipe's version, then SHARDWRIGHT_RENEW_GOLDEN=1 and look at it."""
    found = all_recipes()
    assert sum(isinstance(value, dict) for value in found.values()) > DRAWN // 2
    if os.environ.get("SHARDWRIGHT_RENEW_GOLDEN"):
        GOLDEN.write_text("".join(f"{canonical_json({name: found[name]})}\n" for name in found), encoding="utf-8")
    golden: dict[str, Any] = {}
    for line in GOLDEN.read_text(encoding="utf-8").splitlines():
        golden |= json.loads(line)
    assert golden.keys() == found.keys()
    for name in golden:
        assert found[name] == golden[name], name


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: file.stem)
def test_the_order_of_sections_does_not_matter(file, tmp_path):
    import yaml

    raw = yaml.safe_load(file.read_text(encoding="utf-8"))
    turned = tmp_path / file.name
    turned.write_text(yaml.safe_dump(dict(reversed(raw.items())), sort_keys=False), encoding="utf-8")
    assert recipes(load_config(turned)) == recipes(load_config(file))
