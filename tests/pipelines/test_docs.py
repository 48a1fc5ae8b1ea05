"""The pages in docs/: every configuration on them is valid, and every option of datasets is explained."""

import dataclasses
import re
import textwrap
from pathlib import Path
from typing import Any

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
from shardwright.config.json_schema import config_schema
from shardwright.config.transform import TextConfig

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
BLOCKS = [
    pytest.param(textwrap.dedent(block), id=f"{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
]


def test_there_are_examples():
    assert len(BLOCKS) >= 6


@pytest.mark.parametrize("block", BLOCKS)
def test_an_example_is_a_valid_configuration(block):
    parse_config(yaml.safe_load(block), base="/")


GUIDES = "".join(page.read_text(encoding="utf-8") for page in PAGES if page.parent.name in ("formats", "how-to"))


@pytest.mark.parametrize(
    "section",
    [
        *(InputConfig, LabelsConfig, ImagesConfig, DuplicatesConfig, SplitConfig, ShardsConfig, FeaturesConfig),
        *(TransformConfig, TextConfig),
    ],
    ids=lambda section: section.PATH,
)
def test_every_option_of_the_datasets_is_explained(section):
    names = {field.name for field in dataclasses.fields(section)} - {"shares"}
    assert not {name for name in names if not re.search(rf"\b{name}\b", GUIDES)}


def test_the_model_and_the_callbacks_of_the_page_are_what_keras_takes(tmp_path):
    import keras

    text = (DOCS / "how-to/own-model.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"```py\n(.*?)```", text, re.DOTALL):
        exec(block, names)
    model = names["build"](height=8, width=12, classes=2)
    assert model.output_shape == (None, 8, 12, 2)
    found = names["callbacks"](folder=tmp_path, epochs=3, task="segmentation")
    assert all(isinstance(one, keras.callbacks.Callback) for one in found)


def _keys(schema, path=""):
    """All keys of a schema, sections included, with dots between them."""
    found: set[str] = set()
    for option in [schema, *schema.get("anyOf", [])]:
        for key, value in option.get("properties", {}).items():
            found |= {f"{path}{key}", *_keys(value, f"{path}{key}.")}
        if isinstance(rows := option.get("additionalProperties"), dict):
            found |= _keys(rows, f"{path}*.")
    return found


def test_every_key_that_a_page_names_exists():
    keys = _keys(config_schema())
    sections = "|".join(sorted({key.partition(".")[0] for key in keys}))
    known = re.compile("|".join(re.escape(key).replace(re.escape("*"), "[a-z_]+") for key in keys))
    wrong = []
    for page in PAGES:
        for name in re.findall(rf"`((?:{sections})\.[a-z_.]+[a-z])(?=[`:])", page.read_text(encoding="utf-8")):
            # Files, and a module that Python's reference names.
            if not known.fullmatch(name) and not name.endswith((".json", ".jsonl", ".txt", ".global_order")):
                wrong.append(f"{page.relative_to(DOCS)}: {name}")
    assert not wrong
    assert len(keys) > 150
