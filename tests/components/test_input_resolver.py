"""InputResolver, InlineSchema and what a baseline's number becomes in a container, by their executors."""

from pathlib import Path

import pytest
from tfx.types import standard_artifacts

from shardwright.components.baseline_resolver.executor import HAS_BASELINE, has_baseline
from shardwright.components.inline_schema.executor import Executor as InlineSchema
from shardwright.components.input_resolver.executor import Executor as InputResolver
from shardwright.config import parse_config
from shardwright.errors import UsageError
from shardwright.ingest import InputLocation, ingest_recipe, input_fingerprint, locate
from shardwright.ingest.recipe import location_json, relative_places
from shardwright.sample import write_sample

CLASSES = ["Fish", "Flower", "Gravel", "Sugar"]


@pytest.fixture(scope="module")
def deliveries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("deliveries")
    for span, seed in (("1", 5), ("2", 6)):
        write_sample(str(folder / span), images=4, height=64, width=64, seed=seed)
    return folder


def configuration(folder):
    section = {"images": f"{folder}/{{SPAN}}/train_images", "labels": {"path": f"{folder}/{{SPAN}}/train.csv"}}
    return parse_config({"input": {**section, "classes": CLASSES}}, base="/")


def resolved(config, data_root, span, folder):
    root, places = relative_places(locate(config))
    outputs = {}
    for name in ("fingerprint", "location"):
        outputs[name] = [standard_artifacts.String()]
        outputs[name][0].uri = str(folder / name)
    folder.mkdir()
    recipe = ingest_recipe(config, CLASSES)
    properties = {"recipe": recipe, "places": location_json(places), "data_root": data_root or root, "span": span}
    InputResolver().Do({}, outputs, properties)
    return Path(folder, "fingerprint").read_text(), InputLocation.from_json(Path(folder, "location").read_text())


def test_the_newest_span_is_pinned_with_its_fingerprint(deliveries, tmp_path):
    config = configuration(deliveries)
    fingerprint, location = resolved(config, None, "newest", tmp_path / "out")
    assert location.span == "2"
    assert location.images == f"{deliveries}/{{SPAN}}/train_images"
    # ImageExampleGen reads exactly that span, with the same fingerprint.
    assert input_fingerprint(config, location) == fingerprint == input_fingerprint(config, locate(config))


def test_another_span_has_another_content(deliveries, tmp_path):
    config = configuration(deliveries)
    first, location = resolved(config, None, "1", tmp_path / "first")
    both, _ = resolved(config, None, "1-2", tmp_path / "both")
    newest, _ = resolved(config, None, "newest", tmp_path / "newest")
    assert location.span == "1"
    assert len({first, both, newest}) == 3


def test_the_folder_does_not_count(deliveries, tmp_path):
    moved = tmp_path / "moved"
    moved.symlink_to(deliveries)
    config = configuration(deliveries)
    here, _ = resolved(config, None, "newest", tmp_path / "here")
    there, location = resolved(config, str(moved), "newest", tmp_path / "there")
    assert here == there
    assert location.images.startswith(str(moved))


def test_a_span_that_is_not_there(deliveries, tmp_path):
    with pytest.raises(UsageError, match=r"input\.span 9"):
        resolved(configuration(deliveries), None, "9", tmp_path / "out")


def test_a_schema_comes_out_as_it_went_in(tmp_path):
    schema = standard_artifacts.Schema()
    schema.uri = str(tmp_path / "schema")
    text = 'feature { name: "image/key" type: BYTES }\n'
    InlineSchema().Do({}, {"schema": [schema]}, {"schema_text": text})
    assert Path(schema.uri, "schema.pbtxt").read_text() == text
    with pytest.raises(UsageError, match="schema_text"):
        InlineSchema().Do({}, {"schema": [schema]}, {"schema_text": "feature {"})


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [("int_value", 1, True), ("double_value", 1.0, True), ("int_value", 0, False), ("double_value", 0.0, False)],
)
def test_a_baseline_is_detected_by_either_number(name, value, found):
    model = standard_artifacts.Model()
    setattr(model.mlmd_artifact.custom_properties[HAS_BASELINE], name, value)
    assert has_baseline(model) is found


def test_without_the_property_there_is_no_baseline():
    assert has_baseline(standard_artifacts.Model()) is False
