"""Spans and versions in paths: which folders are found, and which of them are read."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.errors import ConfigError, UsageError
from shardwright.storage.spans import Choice, SpanPath, candidates, days


def lister(*paths):
    """List the names in a folder of a made-up tree."""

    def list_names(folder):
        start = [part for part in folder.split("/") if part not in ("", ".")]
        parts = [path.split("/") for path in paths]
        return sorted({p[len(start)] for p in parts if p[: len(start)] == start and len(p) > len(start)})

    return list_names


def found(path, *paths):
    return [delivery[:2] for delivery in SpanPath.parse("input.images", path).find(lister(*paths))]


def chosen(deliveries, span="newest", version="newest"):
    lists = candidates(deliveries, Choice.parse("input.span", span), Choice.parse("input.version", version))
    return [[delivery[:2] for delivery in versions] for versions in lists]


def test_a_path_without_marks_names_no_span():
    assert SpanPath.parse("input.images", "photos/{span}/{X}/*.jpg") is None


def test_spans_and_versions_are_found_in_the_names_of_folders():
    tree = ("in/7/v1/a.jpg", "in/7/v2/a.jpg", "in/12/v1/a.jpg", "in/old/v1/a.jpg", "in/9/final/a.jpg", "in/x7/v1/b.jpg")
    assert found("in/{SPAN}/v{VERSION}/*.jpg", *tree) == [(7, 1), (7, 2), (12, 1)]


def test_the_path_below_the_marks_is_kept_and_names_are_reported():
    path = SpanPath.parse("input.images", "/in/s{SPAN}/raw/v{VERSION:2}/images/**/*.jpg")
    (delivery,) = path.find(lister("in/s3/raw/v04/images/a.jpg"))
    assert delivery.path == "/in/s3/raw/v04/images/**/*.jpg"
    assert delivery.folder == "s3/raw/v04"
    assert (path.root, path.called(delivery)) == ("/in", "span 3, version 4")


def test_a_bucket_is_a_root_like_any_other():
    path = SpanPath.parse("input.images", "gs://bucket/in/{SPAN}")
    (delivery,) = path.find(lambda folder: {"gs://bucket/in": ["5"]}.get(folder, []))
    assert (path.root, delivery.path) == ("gs://bucket/in", "gs://bucket/in/5")


def test_a_width_is_exact_and_no_width_takes_any_number_of_digits():
    tree = ("in/0007/a", "in/7/a", "in/00012/a", "in/12345/a")
    assert found("in/{SPAN:4}", *tree) == [(7, 0)]
    assert found("in/{SPAN}", "in/0007/a", "in/12345/a") == [(7, 0), (12345, 0)]
    assert found("in/{SPAN}", "in/٣/a", "in/³/a", "in/-1/a", "in/1.5/a") == []


@given(st.dates(min_value=datetime.date(1, 1, 1)))
def test_the_span_of_a_date_is_its_days_since_1970(date):
    name = f"{date.year:04}-{date.month:02}-{date.day:02}"
    assert found("in/{YYYY}-{MM}-{DD}/*.jpg", f"in/{name}/a.jpg") == [((date - datetime.date(1970, 1, 1)).days, 0)]
    assert found("in/{DD}/{MM}{YYYY}", f"in/{date.day:02}/{date.month:02}{date.year:04}/a.jpg") == [(days(date), 0)]


def test_a_date_is_reported_with_its_span():
    path = SpanPath.parse("input.images", "in/{YYYY}/{MM}/{DD}")
    (delivery,) = path.find(lister("in/2024/05/01/a.jpg"))
    assert path.called(delivery) == "span 19844 (2024-05-01)"


def test_a_date_that_no_calendar_has_is_an_error():
    with pytest.raises(UsageError, match="2024-02-30 is not a date"):
        found("in/{YYYY}-{MM}-{DD}", "in/2024-02-30/a.jpg")


def test_two_folders_of_one_span_are_an_error():
    with pytest.raises(UsageError, match="07 and 7 are both span 7"):
        found("in/{SPAN}", "in/7/a", "in/07/a")


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("in/{SPAN}/{YYYY}-{MM}-{DD}", "both a span and a date"),
        ("in/{YYYY}-{MM}", "an incomplete date"),
        ("in/{YYYY}-{MM}-{DD}-{DD}", "an incomplete date"),
        ("in/{SPAN}/{SPAN}", "more than once"),
        ("in/{SPAN}/{VERSION}-{VERSION}", "more than once"),
        ("in/{VERSION}", "version without a span"),
        ("in/{SPAN:x}", "no width"),
        ("in/{SPAN:0}", "no width"),
        ("in/{SPAN:}", "no width"),
        ("in/{YYYY:4}-{MM}-{DD}", "no width"),
        ("in/*/{SPAN}", "wildcard before"),
        ("in/{SPAN}_*.jpg", "wildcard before or next to"),
    ],
)
def test_malformed_paths_are_refused(path, problem):
    with pytest.raises(ConfigError, match=problem):
        SpanPath.parse("input.images", path)


DELIVERIES = SpanPath.parse("input.images", "{SPAN}/{VERSION}").find(
    lister("1/1/a", "3/1/a", "3/10/a", "3/9/a", "10/2/a")
)


@pytest.mark.parametrize(
    ("span", "version", "expected"),
    [
        ("newest", "newest", [[(1, 1)], [(3, 10), (3, 9), (3, 1)], [(10, 2)]]),
        ("3", "newest", [[(3, 10), (3, 9), (3, 1)]]),
        ("1-3", "newest", [[(1, 1)], [(3, 10), (3, 9), (3, 1)]]),
        ("all", "1", [[(1, 1)], [(3, 1)]]),
        ("3", "9", [[(3, 9)]]),
        ("4-9", "newest", []),
    ],
)
def test_spans_come_from_old_to_new_with_the_newest_version_first(span, version, expected):
    assert chosen(DELIVERIES, span, version) == expected


@given(st.sets(st.tuples(st.integers(0, 30), st.integers(0, 5))), st.integers(0, 30), st.integers(0, 30))
def test_a_range_takes_each_span_in_it_once(numbers, one, other):
    first, last = sorted((one, other))
    deliveries = SpanPath.parse("input.images", "{SPAN}/{VERSION}").find(lister(*(f"{s}/{v}/a" for s, v in numbers)))
    newest = [versions[0] for versions in chosen(deliveries, f"{first}-{last}")]
    inside = {s for s, _ in numbers if first <= s <= last}
    assert newest == [(s, max(v for t, v in numbers if t == s)) for s in sorted(inside)]


@pytest.mark.parametrize("text", ["latest", "", "-3", "3-", "9-7", "٣", "1.5"])
def test_other_choices_are_refused(text):
    with pytest.raises(ConfigError, match=r"input.span"):
        Choice.parse("input.span", text)
