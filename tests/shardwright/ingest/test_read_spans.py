"""Several deliveries as one listing: nothing is lost, nothing counts twice."""

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardwright.errors import CheckFailed, UsageError
from shardwright.ingest.recipe import InputLocation
from shardwright.ingest.select_spans import read_spans

# Span -> key -> content.
TREES = st.dictionaries(
    st.integers(0, 12),
    st.dictionaries(st.sampled_from(["a.png", "b.png", "x/a.png", "x/c.png"]), st.sampled_from([b"1", b"2"])),
    max_size=4,
)
few = settings(max_examples=40)


def read(tree, on_conflict, **options):
    """Returns the spans that are read of a tree, and the content of each key."""
    with tempfile.TemporaryDirectory() as folder:
        for span, files in tree.items():
            Path(folder, str(span)).mkdir()
            for key, content in files.items():
                file = Path(folder, str(span), key)
                file.parent.mkdir(exist_ok=True)
                file.write_bytes(content)
        location = InputLocation(f"{folder}/{{SPAN}}", **options)
        delivered = read_spans(location, on_conflict)
        listing = delivered.listing
        contents = {key: Path(listing.path(i)).read_bytes() for i, key in enumerate(listing.keys)}
        assert list(listing.keys) == sorted(contents)
        assert list(listing.sizes) == [1] * len(contents)
        return delivered, contents


@few
@given(TREES)
def test_of_all_spans_the_newest_file_of_each_key_counts(tree):
    expected = {key: content for span in sorted(tree) for key, content in tree[span].items()}
    if not expected:
        with pytest.raises(UsageError, match=r"input.images: nothing at"):
            read(tree, "newest", span="all")
        return
    delivered, contents = read(tree, "newest", span="all")
    assert contents == expected
    assert len(contents) + len(delivered.passed_over) == sum(map(len, tree.values()))
    for row in delivered.passed_over:
        span, _, key = row.key.partition("/")
        same = tree[int(span)][key] == expected[key]
        assert (row.status, row.code) == ("duplicate", "delivered_again" if same else "superseded")


@few
@given(TREES)
def test_with_span_every_content_of_a_key_counts_once(tree):
    pairs = Counter((key, content) for files in tree.values() for key, content in files.items())
    if not pairs:
        return
    delivered, contents = read(tree, "with_span", span="all")
    assert Counter((key.partition("/")[2], content) for key, content in contents.items()) == Counter(set(pairs))
    assert all(tree[int(key.partition("/")[0])][key.partition("/")[2]] == content for key, content in contents.items())
    assert len(contents) + len(delivered.passed_over) == sum(pairs.values())
    assert {row.code for row in delivered.passed_over} <= {"delivered_again"}


@few
@given(TREES)
def test_other_bytes_fail_and_equal_ones_do_not(tree):
    held = {}
    for files in tree.values():
        for key, content in files.items():
            held.setdefault(key, set()).add(content)
    if not held:
        return
    if max(map(len, held.values())) > 1:
        with pytest.raises(CheckFailed, match="input.on_conflict"):
            read(tree, "fail", span="all")
    else:
        assert read(tree, "fail", span="all")[1] == {key: next(iter(found)) for key, found in held.items()}


@few
@given(TREES)
def test_the_newest_span_with_files_is_read_alone(tree):
    holding = [span for span, files in tree.items() if files]
    if not holding:
        return
    delivered, contents = read(tree, "newest")
    assert contents == tree[max(holding)]
    assert delivered.passed_over == ()
    empty = sum(span > max(holding) for span in tree)
    assert sum("contains no file yet" in note for note in delivered.notes) == empty
