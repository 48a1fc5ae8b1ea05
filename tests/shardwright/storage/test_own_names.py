"""What lies under names that others can guess is checked before it is used, and only what is ours is deleted."""

import os

import pytest

from shardwright.errors import UsageError
from shardwright.storage.locks import lock_folder
from shardwright.storage.own_names import (
    LOCK_FILE,
    MARK,
    check_own_database,
    check_own_tree,
    is_own,
    make_own_folder,
    make_working_folder,
    open_own_file,
    remove_tree,
    set_aside,
    staging_next_to,
)


@pytest.fixture
def precious(tmp_path):
    folder = tmp_path / "precious"
    folder.mkdir()
    (folder / "taxes").write_text("mine")
    yield folder
    assert [place.name for place in folder.iterdir()] == ["taxes"]
    assert (folder / "taxes").read_text() == "mine"


def link_to_folder(place, precious):
    place.symlink_to(precious)


def link_to_file(place, precious):
    place.symlink_to(precious / "taxes")


def dangling_link(place, precious):
    place.symlink_to(precious / "new")


def pipe(place, precious):
    os.mkfifo(place)


@pytest.mark.parametrize("plant", [link_to_folder, link_to_file, dangling_link, pipe])
def test_links_and_pipes_are_refused_wherever_they_are(tmp_path, precious, plant):
    place = tmp_path / "place"
    plant(place, precious)
    for use in (
        lambda: is_own(place),
        lambda: make_own_folder(place),
        lambda: lock_folder(place),
        lambda: open_own_file(place, os.O_RDWR | os.O_CREAT),
    ):
        with pytest.raises(UsageError, match=r"place: is a (link|pipe), which no run of ours made\. Remove it"):
            use()
    plant(tmp_path / ".out.staging", precious)
    with pytest.raises(UsageError, match=r"\.out\.staging: is a (link|pipe)"):
        staging_next_to(tmp_path / "out")
    forged = tmp_path / "forged"
    (forged / "a/b").mkdir(parents=True)
    (forged / LOCK_FILE).write_bytes(MARK)
    plant(forged / "a/b/done", precious)
    with pytest.raises(UsageError, match=r"forged/a/b/done: is a (link|pipe)"):
        lock_folder(forged)
    remove_tree(forged)
    assert not forged.exists()


def test_a_folder_counts_as_ours_by_its_mark_only(tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "a").write_text("mine")
    for mark in (None, b"", b"of another program"):
        if mark is not None:
            (mine / LOCK_FILE).write_bytes(mark)
        with pytest.raises(UsageError, match="mine: contains files, and no run of this version made the folder"):
            lock_folder(mine)
        assert (mine / "a").read_text() == "mine"
        lock_folder(mine, working=False).close()
    make_working_folder(tmp_path / "ours")
    (tmp_path / "ours/a").write_text("ours")
    lock_folder(tmp_path / "ours").close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_what_another_user_has_made_is_refused(tmp_path):
    (tmp_path / "x/a").mkdir(parents=True)
    os.chown(tmp_path / "x/a", 12345, 12345)
    with pytest.raises(UsageError, match=r"x/a: belongs to another user \(uid 12345\)"):
        check_own_tree(tmp_path / "x")
    with pytest.raises(UsageError, match="belongs to another user"):
        is_own(tmp_path / "x/a")


def test_a_file_that_has_another_name_is_not_opened(tmp_path, precious):
    os.link(precious / "taxes", tmp_path / LOCK_FILE)
    with pytest.raises(UsageError, match=r"\.lock: has another name"):
        open_own_file(tmp_path / LOCK_FILE, os.O_RDWR)


def test_a_folder_without_end_is_refused(tmp_path):
    place = tmp_path / "x"
    for _ in range(80):
        place = place / "d"
    place.mkdir(parents=True)
    with pytest.raises(UsageError, match="is deeper than any folder of ours"):
        check_own_tree(tmp_path / "x")
    remove_tree(tmp_path / "x")
    assert place.exists(), "it is not deleted in part"


def test_a_journal_that_makes_sqlite_delete_a_file_is_refused(tmp_path, precious):
    database = tmp_path / "rows.sqlite"
    check_own_database(database)
    database.write_bytes(b"")
    (tmp_path / "rows.sqlite-journal").write_bytes(b"\0" * 512 + bytes.fromhex("d9d505f920a163d7"))
    with pytest.raises(UsageError, match="names a file for SQLite to delete"):
        check_own_database(database)
    (tmp_path / "rows.sqlite-journal").write_bytes(b"\0" * 512)
    check_own_database(database)
    database.unlink()
    database.symlink_to(precious / "taxes")
    with pytest.raises(UsageError, match="is a link"):
        check_own_database(database)


def test_a_folder_gets_a_name_that_nobody_can_guess_before_it_is_deleted(tmp_path):
    (tmp_path / "a").mkdir()
    aside = set_aside(tmp_path / "a")
    again = set_aside(aside)
    assert again.name.endswith("-a")
    assert len({"a", aside.name, again.name}) == 3
    assert len(aside.name) == len(again.name)


def test_the_mark_is_deleted_last(tmp_path, monkeypatch):
    make_working_folder(tmp_path / "x")
    for name in ("a", "z"):
        (tmp_path / "x" / name).write_text("")
    deleted, unlink = [], os.unlink
    monkeypatch.setattr(os, "unlink", lambda name, **given: deleted.append(name) or unlink(name, **given))
    remove_tree(tmp_path / "x")
    assert sorted(deleted[:-1]) == ["a", "z"]
    assert deleted[-1] == LOCK_FILE
