"""BLESSED.json: which model is the blessed one."""

import os

import pytest

from shardwright.errors import DatasetError
from shardwright.lineage.blessing import (
    BLESSING_FILE,
    Blessing,
    baseline_digest,
    model_digest,
    read_blessing,
    write_blessing,
)


def model(folder, text="weights"):
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_text("graph")
    (folder / "variables/data").write_text(text)
    return folder


def test_what_was_written_is_read(tmp_path):
    digest = model_digest(model(tmp_path / "1"))
    blessing = Blessing("1", digest, {"mean_dice": 0.8, "dice/Öl": 1.0}, {"training": "f" * 64})
    write_blessing(tmp_path, blessing)
    assert read_blessing(tmp_path) == blessing
    assert baseline_digest(tmp_path) == digest


def test_a_new_blessing_replaces_the_old_one_and_leaves_nothing_behind(tmp_path):
    for version in ("1", "2"):
        write_blessing(tmp_path, Blessing(version, model_digest(model(tmp_path / version, version))))
    assert read_blessing(tmp_path).model == "2"
    assert sorted(os.listdir(tmp_path)) == ["1", "2", BLESSING_FILE]


@pytest.mark.parametrize("folder", [".", "missing"])
def test_where_nothing_was_blessed_there_is_no_baseline(tmp_path, folder):
    assert read_blessing(tmp_path / folder) is None
    assert baseline_digest(tmp_path / folder) == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"model": "1"}',
        '{"model": "1", "digest": "x", "more": 1}',
        '{"model": "1", "digest": "x", "examples": ["/place"]}',
        '{"model": "1", "digest": "x", "examples": {"place": 5}}',
        "{",
    ],
)
def test_a_damaged_blessing_is_reported_with_its_file(tmp_path, text):
    model(tmp_path / "1")
    (tmp_path / BLESSING_FILE).write_text(text)
    with pytest.raises(DatasetError, match=BLESSING_FILE):
        read_blessing(tmp_path)


def test_a_missing_blessed_model_is_reported(tmp_path):
    write_blessing(tmp_path, Blessing("7", "d" * 64))
    with pytest.raises(DatasetError, match="7, which does not exist"):
        read_blessing(tmp_path)


def test_the_digest_sees_content_and_names_but_neither_place_nor_time(tmp_path):
    one, two = model(tmp_path / "a"), model(tmp_path / "deep/b")
    os.utime(two / "saved_model.pb", (1, 1))
    assert model_digest(one) == model_digest(two)
    (two / "saved_model.pb").rename(two / "other.pb")
    assert model_digest(one) != model_digest(two)
    assert model_digest(model(tmp_path / "c", "others")) != model_digest(one)
