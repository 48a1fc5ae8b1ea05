"""A damaged dataset in the output is replaced by the same one, and by nothing else."""

import pytest
from ingesting import config, run, tree

from shardwright.errors import DatasetError, UsageError
from shardwright.ingest import ingest
from shardwright.storage import whole_files as whole_folders


@pytest.fixture(scope="module")
def raw(tmp_path_factory, image_input):
    return {**image_input(tmp_path_factory.mktemp("in"), images=6), "shards": {"records": 100}}


@pytest.fixture
def out(tmp_path, raw):
    run(raw, tmp_path / "out")
    return tmp_path / "out"


def change(file, data):
    file.write_bytes(data)


def damaged(text):
    return [b"", text[:100], bytes(len(text)), b"[]", b"nonsense", text.replace(b"segmentation", b"segmentatiom")]


@pytest.mark.parametrize("number", range(6))
def test_a_damaged_manifest_is_replaced(raw, out, number):
    whole, notes = tree(out), []
    change(out / "manifest.json", damaged((out / "manifest.json").read_bytes())[number])
    ingest(config(raw), out, quiet=True, log=notes.append)
    assert tree(out) == whole
    assert [note for note in notes if "manifest.json" in note and "replaced" in note]
    assert [place.name for place in out.parent.iterdir()] == ["out"]


@pytest.mark.parametrize("data", [lambda old: b"", lambda old: bytes(len(old))], ids=["empty", "zeros"])
def test_files_that_a_power_cut_has_emptied_are_replaced(raw, out, data):
    whole = tree(out)
    for file in [path for path in out.rglob("*") if path.is_file()]:
        change(file, data(file.read_bytes()))
    run(raw, out)
    assert tree(out) == whole


def test_a_short_shard_is_replaced(raw, out):
    whole = tree(out)
    change(min(out.glob("Split-*/*")), b"")
    run(raw, out)
    assert tree(out) == whole


def refused(raw, out, match, error=DatasetError):
    before = tree(out)
    with pytest.raises(error, match=match):
        run(raw, out)
    assert tree(out) == before


def test_another_dataset_is_not_replaced(raw, out):
    change(out / "manifest.json", b"")
    refused({**raw, "shards": {"records": 2}}, out, "lineage.json is of another dataset")


def test_what_may_be_another_dataset_is_not_replaced(raw, out):
    change(out / "manifest.json", b"")
    change(out / "lineage.json", b"")
    refused(raw, out, "none of its files identifies the dataset")


@pytest.mark.parametrize("name", ["notes.txt", "Split-train/notes.txt", "more/notes.txt"])
def test_files_of_others_are_not_deleted(raw, out, name):
    change(out / "manifest.json", b"")
    (out / name).parent.mkdir(exist_ok=True)
    change(out / name, b"mine")
    refused(raw, out, "notes.txt", UsageError)
    assert (out / name).read_bytes() == b"mine"


def test_a_link_is_not_deleted(raw, out, tmp_path):
    change(out / "manifest.json", b"")
    (out / "more").symlink_to(tmp_path)
    refused(raw, out, "more", UsageError)
    assert (out / "more").is_symlink()


def test_a_kill_between_the_two_renames_leaves_nothing_behind(raw, out, monkeypatch):
    whole, rename = tree(out), whole_folders.rename_folder

    def killed(source, target):
        if target == out:
            raise KeyboardInterrupt
        rename(source, target)

    change(out / "manifest.json", b"")
    with monkeypatch.context() as patch:
        patch.setattr(whole_folders, "rename_folder", killed)
        with pytest.raises(KeyboardInterrupt):
            run(raw, out)
    assert not out.exists()
    run(raw, out)
    assert tree(out) == whole
    assert [place.name for place in out.parent.iterdir()] == ["out"]
