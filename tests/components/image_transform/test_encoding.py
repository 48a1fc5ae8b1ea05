"""`transform.encoding: auto`: what it chooses, and that the choice is written as if it had been configured."""

from dataclasses import replace

import build
import pytest

from shardwright.components.image_transform.encoding import IN_MEMORY, choose_encoding
from shardwright.components.image_transform.transform_plan import plan_transform
from shardwright.components.image_transform.transform_recipe import read_recipe, transform_recipe
from shardwright.config import TransformConfig, parse_config
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ConfigError
from shardwright.pipelines.runs.disk_space import estimate_space

MOST = IN_MEMORY // (100 * 200 * 3)


@pytest.mark.parametrize(
    ("images", "options", "chosen", "why"),
    [
        (MOST, {}, "raw", "4.00 GB as pixel values, at most 4.00 GB: they stay in memory"),
        (MOST + 1, {}, "jpeg", "as pixel values, more than 4.00 GB"),
        (1, {"preset": "tfds"}, "jpeg", "readers of transform.preset: tfds"),
        (1, {"size": None, "resize": "keep"}, "jpeg", "transform.resize: keep"),
    ],
)
def test_pixel_values_are_stored_where_all_of_them_stay_in_memory(images, options, chosen, why):
    recipe = TransformConfig(**{"size": (100, 200), "encoding": "auto", **options})
    encoding, reason = choose_encoding(recipe, images)
    assert encoding == chosen
    assert why in reason
    # The estimate of the disk space follows the same rule.
    images_config = build.config().images
    chosen_space = estimate_space(images, images * 1000, images_config, replace(recipe, encoding=chosen))
    assert estimate_space(images, images * 1000, images_config, recipe) == chosen_space


def planned(dataset, **transform):
    raw = {"input": {"images": "x"}, "transform": {"size": [20, 30], **transform}}
    return plan_transform(ImageDataset.open(dataset), *read_recipe(transform_recipe(parse_config(raw, base="."))))


@pytest.mark.parametrize(("most", "stated"), [(IN_MEMORY, "raw"), (100, "jpeg")])
def test_the_dataset_is_the_one_of_the_stated_encoding(small_dataset, tmp_path, monkeypatch, most, stated):
    monkeypatch.setattr("shardwright.components.image_transform.encoding.IN_MEMORY", most)
    source = small_dataset(tmp_path / "ds")
    automatic, configured = planned(source, encoding="auto"), planned(source, encoding=stated)
    assert automatic.recipe == configured.recipe
    assert automatic.dataset == configured.dataset
    assert configured.note == ""
    assert automatic.note.startswith(f"transform.encoding: {stated}, since ")


@pytest.mark.parametrize("encoding", ["auto", "png"])
def test_quality_is_a_number(encoding):
    with pytest.raises(ConfigError, match=r"transform\.quality"):
        build.config(transform={"encoding": encoding, "quality": None})


def test_an_encoding_without_quality_records_none(small_dataset, tmp_path):
    source = small_dataset(tmp_path / "ds")
    assert planned(source, encoding="png", quality=50).dataset == planned(source, encoding="png").dataset
    assert planned(source, encoding="png").dataset.recipe["quality"] is None
