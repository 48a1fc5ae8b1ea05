"""The pages in docs/: every configuration on them is valid, and every option of the ingest is on them."""

import dataclasses
import re
from pathlib import Path

import pytest
import yaml

from shardwright.config import (
    DuplicatesConfig,
    FeaturesConfig,
    ImagesConfig,
    InputConfig,
    LabelsConfig,
    ShardsConfig,
    SplitConfig,
    TransformConfig,
    parse_config,
)
from shardwright.config.transform import TextConfig

PAGES = sorted((Path(__file__).parents[2] / "docs").rglob("*.md"))
BLOCKS = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
]


def test_there_are_examples():
    assert len(BLOCKS) >= 6


@pytest.mark.parametrize("block", BLOCKS)
def test_an_example_is_a_valid_configuration(block):
    parse_config(yaml.safe_load(block), base="/")


@pytest.mark.parametrize(
    "section",
    [InputConfig, LabelsConfig, ImagesConfig, DuplicatesConfig, SplitConfig, ShardsConfig, FeaturesConfig],
    ids=lambda section: section.PATH,
)
def test_every_option_of_the_ingest_is_documented(section):
    found = (Path(__file__).parents[2] / "docs" / "how-to" / "ingest.md").read_text(encoding="utf-8")
    names = {field.name for field in dataclasses.fields(section)} - {"shares"}
    assert not {name for name in names if not re.search(rf"\b{name}\b", found)}


@pytest.mark.parametrize("section", [TransformConfig, TextConfig], ids=lambda section: section.PATH)
def test_every_option_of_the_transform_is_documented(section):
    found = (Path(__file__).parents[2] / "docs" / "how-to" / "transform.md").read_text(encoding="utf-8")
    assert not {field.name for field in dataclasses.fields(section) if f"`{field.name}" not in found}
