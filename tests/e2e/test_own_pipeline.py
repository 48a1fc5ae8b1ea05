"""The pipeline of docs/tutorials/tfx-pipeline.md: our component in front of TFX's own, in a folder like theirs."""

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tfx import v1 as tfx

from shardwright.components import ImageExampleGen, Input, RleCsv, Shards, Split
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ConfigError, UsageError
from shardwright.ingest.recipe import IngestRecipe

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "tfx-pipeline.md"


@pytest.fixture
def project(tmp_path):
    """The page's files, photographs, and folders of the names that TFX projects have."""
    blocks = re.findall(r"^ *```python\n(.*?)^ *```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for block in map(textwrap.dedent, blocks):
        name, _, _ = block.removeprefix("# ").partition("\n")
        (tmp_path / name).write_text(block, encoding="utf-8")
    draw = np.random.default_rng(0)
    for number in range(16):
        folder = tmp_path / "photographs" / ("daisy", "rose")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(draw.integers(0, 256, (48, 64, 3), dtype=np.uint8)).save(folder / f"{number}.jpg")
    for name in ("components", "pipelines"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('{name} of the project')\n")
    return tmp_path


@pytest.mark.slow
def test_stock_components_take_the_examples(project):
    done = subprocess.run([sys.executable, "pipeline.py"], cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (examples,) = (project / "runs/ImageExampleGen/examples").iterdir()
    dataset = ImageDataset.open(examples)
    assert sum(dataset.num_records(split) for split in dataset.splits) == 16
    assert set(dataset.splits) == {"eval", "train"}
    assert list((project / "runs/Trainer/model").glob("*/Format-Serving/saved_model.pb"))
    assert list((project / "runs/ExampleValidator/anomalies").glob("*/Split-train/SchemaDiff.pb"))


def test_the_checked_pipeline_is_constructed(project, monkeypatch, small_dataset):
    monkeypatch.chdir(project)
    (project / "runs/ImageExampleGen/examples").mkdir(parents=True)
    earlier = small_dataset(project / "earlier", classes=("daisy", "rose"), counts={"train": [2]})
    earlier.rename(project / "runs/ImageExampleGen/examples/1")
    names = {}
    exec((project / "checked.py").read_text(encoding="utf-8"), names)
    tfx.dsl.Pipeline(pipeline_name="checked", pipeline_root="runs", components=names["components"])
    assert names["gate"] in names["transform"].upstream_nodes
    assert names["report"] in names["gate"].upstream_nodes
    assert json.loads(names["transform"].exec_properties["recipe"])["size"] == [96, 96]


def test_options_are_those_of_the_configuration(project, monkeypatch):
    monkeypatch.chdir(project)
    component = ImageExampleGen(
        Input("photographs"),
        task="classification",
        split=Split(train=0.5, eval=0.5, salt="x"),
        shards=Shards(count=2),
    )
    recipe = IngestRecipe.from_json(component.exec_properties["recipe"])
    assert (recipe.task, dict(recipe.split.ratios), recipe.split.salt) == (
        "classification",
        {"train": 0.5, "eval": 0.5},
        "x",
    )
    assert recipe.shards.count == 2
    assert list(recipe.input.classes) == ["daisy", "rose"]
    same = ImageExampleGen(
        {"images": project / "photographs"},
        task="classification",
        split={"ratios": {"train": 0.5, "eval": 0.5}, "salt": "x"},
        shards={"count": 2},
    )
    for name in ("recipe", "input_fingerprint", "input_location"):
        assert same.exec_properties[name] == component.exec_properties[name]
    assert json.loads(component.exec_properties["input_location"])["images"] == str(project / "photographs")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, UsageError, "ImageExampleGen: input is missing"),
        ({"input": {"images": "nowhere"}}, UsageError, "nowhere"),
        ({"input": {"images": "photographs"}, "shards": {"cuont": 2}}, ConfigError, r"shards\.cuont"),
        ({"input": {"images": "photographs", "labels": RleCsv("none.csv")}}, UsageError, r"none\.csv"),
    ],
)
def test_a_wrong_input_is_refused_when_it_is_constructed(project, monkeypatch, options, error, message):
    monkeypatch.chdir(project)
    with pytest.raises(error, match=message):
        ImageExampleGen(**options)


def test_a_configuration_and_the_options_give_the_same_component(project, monkeypatch):
    monkeypatch.chdir(project)
    (project / "c.yaml").write_text("task: classification\ninput: {images: photographs}\n")
    given = ImageExampleGen(Input("photographs"), task="classification").exec_properties
    assert ImageExampleGen.from_config("c.yaml").exec_properties == given
