"""Listing: sorted NFC keys, nothing outside the root, and a name for everything that is refused."""

import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.errors import UsageError
from shardwright.storage import list_inputs, list_names, map_threads, open_table


def fill(root, *names):
    for name in names:
        file = Path(root, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(name.encode("utf-8", "surrogateescape"))


def keys(images, **options):
    return list_inputs(str(images), **options).keys


def test_a_folder_is_listed_with_all_below_it_by_key(tmp_path):
    fill(tmp_path, "b.jpg", "a/z.png", "a.jpg", "a/y/x.jpg", "Thumbs.db")
    listing = list_inputs(str(tmp_path))
    # What systems write, Thumbs.db, is not listed.
    assert listing.keys == ["a.jpg", "a/y/x.jpg", "a/z.png", "b.jpg"]
    assert list(listing.sizes) == [5, 9, 7, 5]
    assert listing.path(1) == str(tmp_path / "a/y/x.jpg")
    assert listing.refused == []


def test_names_of_a_folder_are_listed_with_links_that_lead_nowhere(tmp_path):
    """A link to a folder is left out, as in every listing; one that leads to itself is a name like others."""
    fill(tmp_path, "a.jpg", "b/c.jpg", ".hidden")
    os.symlink("loop", tmp_path / "loop")
    os.symlink("nothing", tmp_path / "broken")
    os.symlink("b", tmp_path / "linked")
    assert list_names(str(tmp_path)) == ["a.jpg", "b", "broken", "loop"]
    assert list_names(str(tmp_path / "loop")) == []
    found = list_inputs(str(tmp_path))
    assert found.keys == ["a.jpg", "b/c.jpg"]
    assert {refusal.key: refusal.code for refusal in found.refused} == {
        "broken": "broken_link",
        "linked": "linked_folder",
        "loop": "broken_link",
    }


def test_hidden_files_and_the_labels_are_no_inputs(tmp_path):
    fill(tmp_path, "a.jpg", ".DS_Store", ".cache/b.jpg", "train.csv", "other.csv")
    assert keys(tmp_path, leave_out=str(tmp_path / "train.csv")) == ["a.jpg", "other.csv"]
    os.symlink(tmp_path / "train.csv", tmp_path.parent / "link.csv")
    assert keys(tmp_path, leave_out=str(tmp_path.parent / "link.csv")) == ["a.jpg", "other.csv"]


def test_what_is_left_out_is_one_path_and_no_other_name_of_the_same_file(tmp_path):
    fill(tmp_path, "a.jpg", "train.csv")
    os.link(tmp_path / "train.csv", tmp_path / "hard.csv")
    os.symlink("train.csv", tmp_path / "soft.csv")
    assert keys(tmp_path, leave_out=str(tmp_path / "train.csv")) == ["a.jpg", "hard.csv"]
    assert keys(tmp_path, leave_out=str(tmp_path / "missing.csv")) == ["a.jpg", "hard.csv", "soft.csv", "train.csv"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.jpg", ["a.jpg"]),
        ("*/*.jpg", ["x/b.jpg", "y/d.jpg"]),
        ("**/*.jpg", ["a.jpg", "x/b.jpg", "x/z/c.jpg", "y/d.jpg"]),
        ("**", ["a.jpg", "x/b.jpg", "x/e.png", "x/z/c.jpg", "y/d.jpg"]),
        ("x/**/*.jpg", ["b.jpg", "z/c.jpg"]),
        ("**/z/*", ["x/z/c.jpg"]),
        ("[x]/?.png", ["x/e.png"]),
        ("x/*", ["b.jpg", "e.png"]),
    ],
)
def test_globs_start_their_keys_after_the_folder_before_the_first_wildcard(tmp_path, pattern, expected):
    fill(tmp_path, "a.jpg", "x/b.jpg", "x/z/c.jpg", "y/d.jpg", "x/e.png")
    assert keys(tmp_path / pattern) == expected


def test_a_folder_with_wildcards_in_its_name_is_a_folder(tmp_path):
    fill(tmp_path, "data[1]/a.jpg")
    assert keys(tmp_path / "data[1]") == ["a.jpg"]


def test_keys_are_composed_and_files_are_still_found(tmp_path):
    spelled = unicodedata.normalize("NFD", "naïve.jpg")
    fill(tmp_path, spelled)
    listing = list_inputs(str(tmp_path))
    assert listing.keys == [unicodedata.normalize("NFC", "naïve.jpg")]
    assert Path(listing.path(0)).is_file()


def test_two_spellings_of_one_name_are_one_key_and_one_refusal(tmp_path):
    names = [unicodedata.normalize(form, "é.jpg") for form in ("NFC", "NFD")]
    fill(tmp_path, *names)
    listing = list_inputs(str(tmp_path))
    assert listing.names == [names[0]]
    assert [(r.key, r.code) for r in listing.refused] == [(names[1], "duplicate_key")]


def test_a_name_that_is_not_utf8_is_refused_by_name(tmp_path):
    fill(tmp_path, "a.jpg", os.fsdecode(b"b\xff.jpg"))
    listing = list_inputs(str(tmp_path))
    assert listing.keys == ["a.jpg"]
    assert [(r.key, r.code) for r in listing.refused] == [("b\\xff.jpg", "bad_name")]


def test_nothing_outside_the_root_is_followed(tmp_path):
    fill(tmp_path, "in/a.jpg", "in/sub/b.jpg", "out/c.jpg")
    os.symlink("a.jpg", tmp_path / "in/inside.jpg")
    os.symlink(tmp_path / "out/c.jpg", tmp_path / "in/outside.jpg")
    os.symlink("../out", tmp_path / "in/folder.jpg")
    os.symlink("nowhere", tmp_path / "in/broken.jpg")
    os.mkfifo(tmp_path / "in/pipe.jpg")
    listing = list_inputs(str(tmp_path / "in"))
    assert listing.keys == ["a.jpg", "inside.jpg", "sub/b.jpg"]
    assert {r.key: r.code for r in listing.refused} == {
        "broken.jpg": "broken_link",
        "folder.jpg": "linked_folder",
        "outside.jpg": "outside_root",
        "pipe.jpg": "not_a_file",
    }
    assert not any(str(tmp_path) in r.reason for r in listing.refused)


def test_the_root_itself_may_be_a_link(tmp_path):
    fill(tmp_path, "real/a.jpg")
    os.symlink("real", tmp_path / "link")
    os.symlink("a.jpg", tmp_path / "real/b.jpg")
    assert keys(tmp_path / "link") == ["a.jpg", "b.jpg"]


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ("http://host/a", "http:// is not known"),
        ("gs://", "does not name a bucket"),
        ("s3:///a", "does not name a bucket"),
        ("gs://*/a", "Name one bucket"),
        ("{root}/absent", "does not exist"),
        ("{root}/absent/*.jpg", "the folder .*absent of .* does not exist"),
        ("{root}/empty", "contains no files"),
        ("{root}/full/*.gif", "matches no file"),
        ("{root}/full/a.jpg", "is a file"),
        ("{root}/*/../a", r"has `\.\.` after a wildcard"),
    ],
)
def test_wrong_paths_are_named(tmp_path, images, message):
    fill(tmp_path, "full/a.jpg")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=message):
        list_inputs(images.format(root=tmp_path))


def test_a_folder_with_only_hidden_files_is_empty(tmp_path):
    fill(tmp_path, ".gitkeep")
    with pytest.raises(UsageError, match="contains no files"):
        list_inputs(str(tmp_path))


def test_tables_that_cannot_be_opened_are_named(tmp_path):
    for path, message in (
        ("ftp://b/a.csv", "ftp:// is not known"),
        (f"{tmp_path}/a", "does not exist"),
        (f"{tmp_path}", "folder"),
    ):
        with pytest.raises(UsageError, match=message):
            open_table(path)


@given(st.lists(st.integers()), st.integers(1, 4))
def test_parallel_results_come_in_order(items, threads):
    assert list(map_threads(lambda x: x + 1, items, threads)) == [x + 1 for x in items]


def test_a_parallel_error_is_raised_where_it_belongs():
    results = map_threads(lambda x: 1 // x, [1, 0, 1])
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)
