"""The JSON Schema and the reference page of the configuration: held equal to the sections."""

import datetime
import json
import os
import re
import textwrap
from pathlib import Path
from typing import Any

import build
import jsonschema
import pytest
from configuration_page import examples, page

from shardwright.config import Config, json_schema, parse_config
from shardwright.config.constructors import Coco, LabelCsv, RleCsv, Split
from shardwright.config.json_schema import SCHEMA_FILE, config_schema, leaves, schema_text
from shardwright.config.parse_values import keys_of, section_of
from shardwright.config.yaml_text import parse_yaml
from shardwright.errors import ConfigError

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "configuration.md"
CHECKER = jsonschema.Draft202012Validator(config_schema())
SNIPPETS = [
    (file.name, textwrap.dedent(text))
    for file in [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
    for text in re.findall(r"```yaml\n(.*?)```", file.read_text(encoding="utf-8"), re.DOTALL)
]
FILES = sorted((ROOT / "pipelines" / "configs").glob("*.yaml"))
# Texts that are a choice among several, and names that are known by their form only.
OPEN = ("loader.augment", "trainer.model", "duplicates.near.confirm_hash")


def wrong(raw):
    """Returns the schema's errors of a configuration."""
    # JSON has no dates, and its keys are texts.
    return [error.message for error in CHECKER.iter_errors(json.loads(json.dumps(raw, default=str)))]


def with_value(path, value):
    raw: dict[str, Any] = {"input": {"images": "x"}}
    inner = raw
    *folders, last = path.replace("*", "ImageTransform").split(".")
    for folder in folders:
        inner = inner.setdefault(folder, {})
        if folder == "near":
            inner["max_distance"] = 4
        if folder == "drift":
            inner["reference"] = "earlier"
    inner[last] = value
    return raw


def refusal(path, value):
    try:
        parse_config(with_value(path, value), base="/")
    except ConfigError as error:
        return str(error)
    return ""


def found_in(schema, name):
    inner = [schema.get("items"), schema.get("additionalProperties"), *schema.get("anyOf", [])]
    here = [schema[name]] if name in schema else []
    return here + [value for one in inner if isinstance(one, dict) for value in found_in(one, name)]


LEAVES = {path: schema for path, schema, _ in leaves() if ".*.*" not in path}


def test_the_schema_is_one_and_its_file_is_that_of_the_code():
    jsonschema.Draft202012Validator.check_schema(config_schema())
    file = Path(json_schema.__file__).with_name(SCHEMA_FILE)
    if os.environ.get("SHARDWRIGHT_RENEW_GOLDEN"):
        file.write_text(schema_text(), encoding="utf-8")
        PAGE.write_text(page(), encoding="utf-8")
    assert file.name == SCHEMA_FILE
    assert file.read_text(encoding="utf-8") == schema_text(), "SHARDWRIGHT_RENEW_GOLDEN=1 writes it again"
    assert len(LEAVES) > 150


def test_the_page_is_that_of_the_code():
    assert PAGE.read_text(encoding="utf-8") == page(), "SHARDWRIGHT_RENEW_GOLDEN=1 writes it again"


def test_every_key_of_the_page_has_an_example_that_is_valid():
    shown = list(examples())
    assert len(shown) > 150
    assert [path for path, example, _ in shown if example is None] == [], "add it to _EXAMPLES of configuration_page.py"
    wrong_ones = [
        path for path, example, schema in shown if not jsonschema.Draft202012Validator(schema).is_valid(example)
    ]
    assert wrong_ones == []


def test_every_key_is_described():
    def described(schema: dict[str, Any]) -> list[tuple[str, str]]:
        properties = schema.get("properties", {})
        here = [(key, value["description"]) for key, value in properties.items() if "description" in value]
        inner = [
            schema.get("items"),
            schema.get("additionalProperties"),
            *schema.get("anyOf", []),
            *properties.values(),
        ]
        return here + [found for one in inner if isinstance(one, dict) for found in described(one)]

    found = described(config_schema())
    assert len(found) > 200
    assert [key for key, description in found if not description.endswith(".")] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_examples_are_valid(file):
    assert wrong(parse_yaml(file.read_text(encoding="utf-8"))) == []


def test_the_snippets_of_the_pages_are_valid():
    checked = 0
    for name, text in SNIPPETS:
        raw = parse_yaml(text)
        if isinstance(raw, dict) and raw.keys() <= keys_of(Config).keys():
            raw["input"] = {"images": "x", **(raw.get("input") or {})}
            assert wrong(raw) == [], (name, text)
            checked += 1
    assert checked > 20


@pytest.mark.parametrize("path", LEAVES)
def test_choices_and_ranges_are_those_of_the_sections(path):
    for value in ("no such value", ["no such value"]):
        listed = re.search(r"is not known\. Use one of: (.*)\.$", refusal(path, value))
        if listed and path not in OPEN:
            assert [str(choice) for choice in found_in(LEAVES[path], "enum")[0]] == listed[1].split(", ")
    for value, name, pattern in (
        (-(10**13), "minimum", r"Use (?:a value from|at least) (\S+?)(?: to \S+?)?\.$"),
        (10**13, "maximum", r"Use a value from \S+ to (\S+?)\.$"),
    ):
        for given in (value, [value, value]):
            limit = re.search(pattern, refusal(path, given))
            if limit and not path.endswith(".alpha"):
                assert {float(found) for found in found_in(LEAVES[path], name)} == {float(limit[1])}


VALUES: tuple[Any, ...] = (
    *("no such value", "", "auto", "off", "16", " 5 ", "16.0", "1.5", ".5", "1e-3", "-1", "+5", "--5", "1..2", "1_000"),
    *("10%", "5%%", "1GB", "5 mb", "1.5KB", "1.55B", "5MP", "1XB", "nan", "0x10", "a=b", None, False, True),
    *(0, 1, 16, 16.0, 1.5, -1, -(10**13), [], ["x"], [1], [[1]], [None], [["no such value"]], [16, 16], {}),
    *({"a": 1}, {"a": None}, {"a": 0.5}, {"no": {"such": "key"}}),
)
OF_TYPE = re.compile(r"is not a( whole)? number|is not a text|is not a list|is not a mapping|neither true nor false")


@pytest.mark.parametrize("path", LEAVES)
def test_types_and_units_are_those_of_the_sections(path):
    for value in VALUES:
        why, refused = wrong(with_value(path, value)), refusal(path, value)
        assert refused or not why, (value, why)
        if path not in ("input.classes", "input.span", "input.version"):
            assert why or not OF_TYPE.search(refused), (value, refused)


_DAY = datetime.date(2024, 5, 1)
_SPANNED = {"images": "x/{SPAN}/v{VERSION}"}
# Key -> further options that it needs; all values are compared in both directions.
_WHOLE = {
    "input.span": _SPANNED,
    "input.version": _SPANNED,
    "input.classes": {},
    "input.labels.columns": {"labels": {"path": "t.csv"}},
    "input.labels.path": {},
}
_FORMS: tuple[Any, ...] = (
    *("newest", "all", "7", "2024-05-01", "2024-13-01x", _DAY, -3, 7.5, "7-9", "7-9-11"),
    *([3, 5], [3, "5"], [_DAY, "2024-06-01"], [3], [3, "x"], [3, 4, 5], ["a", "a"], ["a", "b"], [3, -5]),
    *([{"id": 0, "name": "a"}], [{"id": "7", "name": "a"}], [{"id": 0, "name": 1}], [{"id": "x", "name": "a"}]),
    *(
        [{"id": 0}],
        {"a": "x"},
        {"a": "#00ff00"},
        {1: "a"},
        {"1": "2"},
        {"a": True},
        {"#00ff00": "a"},
        {"a": 1, "b": "c"},
    ),
    *({"image": "a"}, {"images": "a"}, {"image": "a", "label": "b"}, {"image": 3}),
)


@pytest.mark.parametrize("path", _WHOLE)
def test_what_the_schema_accepts_is_accepted_and_the_reverse(path):
    for value in (*VALUES, *_FORMS):
        raw = with_value(path, value)
        raw["input"] = {**raw["input"], **_WHOLE[path]}
        if path == "input.labels.columns":
            raw["input"]["labels"] = {"path": "t.csv", "columns": value}
        if path == "input.classes" and isinstance(value, str):
            continue  # The path of a file.
        if (value == _DAY or value == [_DAY, "2024-06-01"]) and _WHOLE[path] is not _SPANNED:
            continue  # JSON has a date as a text.
        if path == "input.version" and value == [16, 16]:
            continue  # From a version to the same one.
        try:
            parse_config(raw, base="/")
            refused = ""
        except ConfigError as error:
            refused = str(error)
        assert bool(wrong(raw)) == bool(refused), (value, wrong(raw), refused)


def test_a_section_without_a_value_has_its_defaults():
    for key in keys_of(Config):
        if section_of(keys_of(Config)[key]) is not None and key != "input":
            raw = {"input": {"images": "x"}, key: None}
            assert wrong(raw) == [], key
            assert parse_config(raw, base="/") == build.config()


@pytest.mark.parametrize(
    ("raw", "path", "fix"),
    [
        ({"input": {"image": "x"}}, "input.image", "Did you mean input.images?"),
        (
            {"input": {"images": "x"}, "transform": {"image_size": 3}},
            "transform.image_size",
            "Did you mean transform.size?",
        ),
        ({"input": {"images": "x"}, "trainer": {"lr": 0.1}}, "trainer.lr", "Did you mean trainer.learning_rate?"),
        ({"input": {"images": "x"}, "evaluator": {"min_iou": 0.1}}, "evaluator.min_iou", "Known here: split, min_dice"),
        ({"input": {"images": "x"}, "epochs": 3}, "epochs", "Did you mean trainer.epochs?"),
        (
            {"input": {"images": "x"}, "split": {"train": 0.8}},
            "split.train",
            "Shares of splits are keys of split.ratios: write split.ratios: {train: 0.8}.",
        ),
        ({"input": {}, "trainer": {"epoch": 3}}, "trainer.epoch", "Did you mean trainer.epochs?"),
        ({"input": {}}, "input.images", "Give a folder or a glob of images."),
        ({"input": {"images": "x", "labels": "a.csv"}}, "input.labels", "Write labels: {path: a.csv}."),
        ({"input": {"images": ["x"]}}, "input.images", "Give one value."),
        ({"input": {"images": "x"}, "split": {"unlisted_images": ["x"]}}, "split.unlisted_images", "Give one value."),
    ],
)
def test_wrong_keys_are_refused_by_both_with_a_way_out(raw, path, fix):
    assert wrong(raw)
    with pytest.raises(ConfigError) as caught:
        parse_config(raw, base="/")
    assert caught.value.path == path
    assert fix in str(caught.value)


def test_one_text_is_a_list_of_one():
    raw = {"input": {"images": "x"}, "loader": {"augment": "flip_left_right"}}
    assert wrong(raw) == []
    assert parse_config(raw, base="/").loader.augment == ("flip_left_right",)


def test_options_in_python_are_checked_as_those_of_the_file():
    assert Split(train=0.8, val=0.2) == Split(ratios={"train": 0.8, "eval": 0.2})
    for call, message in (
        (lambda: RleCsv("t.csv", ordre="row"), r"RleCsv: ordre: is not an option\. Did you mean order\?"),
        (
            lambda: RleCsv("t.csv", rons=1),
            r"rons: .*\. Use: path, encoding, order, start, columns, features, key_regex, rle, ",
        ),
        (lambda: RleCsv("t.csv", rle={"strat": 1}), r"input\.labels\.rle\.strat: .* Did you mean .*rle\.start\?"),
        (lambda: Coco("a.json", boxs=True), r"Coco: boxs: .* Did you mean boxes\?"),
        (lambda: Coco("a.json", format="yolo"), r"Coco: format: is not an option"),
        (lambda: LabelCsv("a.csv", multi_label="yes"), r"input\.labels\.multi_label: 'yes' is neither true nor false"),
        (lambda: Split(train=0.8, slat="x"), r"split\.slat: unknown key\. Did you mean split\.salt\?"),
    ):
        with pytest.raises(ConfigError, match=message):
            call()
