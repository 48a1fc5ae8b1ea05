"""Features under other names: `ingest` writes them, `run` refuses them."""

from functools import partial

import pytest

from shardwright.config import parse_config
from shardwright.errors import ConfigError
from shardwright.pipelines.graph_inputs import render_schema_file, resolve_inputs


@pytest.mark.parametrize("features", [{"preset": "tfds"}, {"map": {"image/key": "id"}}])
def test_features_that_training_does_not_know_are_refused_before_any_work(tmp_path, features):
    config = parse_config({"input": {"images": str(tmp_path / "none")}, "features": features}, base=str(tmp_path))
    for call in (resolve_inputs, partial(render_schema_file, force=False)):
        with pytest.raises(
            ConfigError, match=r"features: a pipeline reads features by their own names.*shardwright ingest"
        ):
            call(config, tmp_path / "c.yaml")


def test_pixels_that_serving_cannot_make_are_refused_before_any_work(tmp_path):
    raw = {"input": {"images": str(tmp_path / "none")}, "images": {"orientation": "apply", "chroma": 422}}
    with pytest.raises(ConfigError, match=r"images\.chroma: 422"):
        resolve_inputs(parse_config(raw, base=str(tmp_path)), tmp_path / "c.yaml")
