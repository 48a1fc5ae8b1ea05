"""Spans in a configuration: how they are written, and what is refused with its place."""

import pytest
import yaml

from shardwright.config import parse_config
from shardwright.errors import ConfigError


def options(text, **labels):
    raw = {"input": {"images": "photos/{SPAN}", "labels": labels, **yaml.safe_load(text)}}
    return parse_config(raw, base="/").input


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("{}", "newest"),
        ("span: newest", "newest"),
        ("span: all", "all"),
        ("span: 7", "7"),
        ("span: [3, 12]", "3-12"),
        ("{images: 'p/{YYYY}-{MM}-{DD}', span: 2024-05-01}", "19844"),
        ("{images: 'p/{YYYY}-{MM}-{DD}', span: [2024-05-01, 2024-05-31]}", "19844-19874"),
        ("{images: 'p/{YYYY}-{MM}-{DD}', span: '2024-05-01'}", "19844"),
        ("{images: 'p/{YYYY}-{MM}-{DD}', span: ['2024-05-01', '2024-05-31']}", "19844-19874"),
    ],
)
def test_spans_are_numbers_dates_or_ranges(text, span):
    assert options(text).span == span


@pytest.mark.parametrize(
    ("text", "path", "problem"),
    [
        ("span: latest", "input.span", "is not a known value"),
        ("span: '2024-02-31'", "input.span", "'2024-02-31' is not a known value"),
        ("span: [3]", "input.span", "is not a text"),
        ("span: [9, 3]", "input.span", "ends before it begins"),
        ("span: true", "input.span", "is not a text"),
        ("version: all", "input.version", "one version of a span"),
        ("version: [1, 2]", "input.version", "one version of a span"),
        ("on_conflict: oldest", "input.on_conflict", "newest, fail, with_span"),
        ("images: 'photos/{VERSION}'", "input.images", "a version without a span"),
        ("{images: photos, span: 3}", "input.span", "name no spans"),
        ("{images: photos, version: 3}", "input.version", "name no spans"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(text, path, problem):
    with pytest.raises(ConfigError) as caught:
        options(text)
    assert caught.value.path == path
    assert problem in str(caught.value)


def test_spans_may_stand_in_the_path_of_the_labels_alone():
    assert options("{images: photos, span: 3}", path="labels/{SPAN}.csv").span == "3"
    with pytest.raises(ConfigError, match=r"input.labels.path: 'labels/\*/\{SPAN\}.csv' has a wildcard"):
        options("{images: photos}", path="labels/*/{SPAN}.csv")
    for path in (["labels/{SPAN}/a.csv", "labels/{SPAN}/b.csv"], {"train": "labels/{SPAN}.csv"}):
        with pytest.raises(ConfigError, match=r"input.labels.path: names spans, and several files"):
            options("{images: photos}", path=path)
