"""The configurations that come with the project are valid, and so are the schemas next to them."""

from pathlib import Path

import pytest

from shardwright.config import load_config
from shardwright.dataset.dataset_schema import render_schema, schema_file_for
from shardwright.formats.base import Survey
from shardwright.ingest import example_features, labels_kind

FOLDER = Path(__file__).parents[2] / "pipelines" / "configs"
CONFIGS = sorted(FOLDER.glob("*.yaml"))


def test_the_promised_ones_are_there():
    assert {file.stem for file in CONFIGS} >= {"demo", "clouds", "severstal", "flowers"}


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: file.stem)
def test_it_is_valid_and_its_schema_is_the_rendered_one(file):
    config = load_config(file)
    assert config.name == file.stem
    schema = schema_file_for(file)
    # If classes are detected in the data, there is nothing to render before.
    assert schema.exists() == (config.input.classes is not None)
    if config.input.classes is not None:
        survey = Survey(classes=tuple(config.input.classes), listed=bytearray())
        features = example_features(config.task, survey)
        assert schema.read_text() == render_schema(
            config.task, survey.classes, labels_kind(config.task, survey), features
        )
