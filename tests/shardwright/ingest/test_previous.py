"""`previous`: what has not changed is copied from an earlier dataset, and the result is that of a full ingest."""

import json
import shutil
from pathlib import Path

import pytest
from damage import name_indexes, swap_records
from ingesting import changed, config, ledger, run, tree
from monthly import COPIED, GONE, NEW, OLD, READ, copied_of, raw_of, run_telling, write_months

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ConfigError, DatasetError, UsageError
from shardwright.ingest import IngestRecipe, locate, plan_ingest, write_range
from shardwright.staging.staging import Staging
from shardwright.storage.fingerprint import checksummed_lines
from shardwright.verify import verify


@pytest.fixture(scope="module")
def months(tmp_path_factory):
    """The two folders, and the dataset of the first."""
    folder = tmp_path_factory.mktemp("months")
    write_months(folder)
    run(raw_of(folder / "first"), folder / "one")
    return folder


def both(months, tmp_path, earlier, **options):
    """A full ingest of the second month and one with `previous`, which must be the same; what the latter copied."""
    raw = raw_of(months / "second", **options)
    run(raw, tmp_path / "full")
    notes = run_telling({**raw, "reuse_from": str(earlier)}, tmp_path / "copied")
    assert tree(tmp_path / "copied") == tree(tmp_path / "full")
    return notes


def test_what_has_not_changed_is_copied_and_the_result_is_that_of_a_full_ingest(months, tmp_path):
    notes = both(months, tmp_path, months / "one")
    assert copied_of(notes) == (COPIED, READ)
    assert notes[-1] == f"{COPIED} of {OLD - GONE + NEW} images copied from {months / 'one'}, {READ} read"
    assert verify(tmp_path / "copied").findings == ()


def test_previous_is_in_no_recipe_and_no_fingerprint(months):
    raw = raw_of(months / "second")
    with_it = config({**raw, "reuse_from": str(months / "one")})
    assert IngestRecipe.of(with_it) == IngestRecipe.of(config(raw))
    location, recipe = locate(with_it), IngestRecipe.of(with_it)
    assert plan_ingest(recipe, location).plan.dataset == plan_ingest(recipe, locate(config(raw))).plan.dataset


def test_the_stored_bytes_of_a_re_encoded_image_are_compared_with_their_hash(months, tmp_path):
    """Records that changed places: the file keeps its size, every record its checksum."""
    images = {"encoding": "raw"}
    run(raw_of(months / "first", images=images), tmp_path / "one")
    shards = sorted((tmp_path / "one").glob("Split-*/*"))
    assert sum(swap_records(shard) for shard in shards) > 2
    notes = both(months, tmp_path, tmp_path / "one", images=images)
    assert copied_of(notes)[0] < COPIED


@pytest.mark.parametrize(
    "images",
    [
        {"resize": "stretch", "size": [24, 32]},
        {"encoding": "raw", "orientation": "apply"},
        {"orientation": "apply"},
        {"strip_metadata": "all"},
    ],
)
@pytest.mark.slow
def test_re_encoded_images_are_copied_where_the_options_are_the_same(months, tmp_path, images, monkeypatch):
    run(raw_of(months / "first", images=images), tmp_path / "one")
    raw = raw_of(months / "second", images=images)
    run(raw, tmp_path / "full")
    prepared = []
    from shardwright.dataset import stored_image
    from shardwright.ingest import write_shards as write

    prepare = stored_image.prepare
    monkeypatch.setattr(write, "prepare", lambda data, *given: prepared.append(data) or prepare(data, *given))
    notes = run_telling({**raw, "reuse_from": str(tmp_path / "one")}, tmp_path / "copied", workers=1)
    assert tree(tmp_path / "copied") == tree(tmp_path / "full")
    assert copied_of(notes) == (COPIED, READ)
    # Upright images are stored with the bytes of the file: checking them costs nearly nothing.
    assert len(prepared) < COPIED if "orientation" not in images or len(images) > 1 else prepared


@pytest.mark.slow
def test_other_pixels_than_the_options_ask_for_are_not_copied(months, tmp_path):
    resized = {"resize": "stretch", "size": [24, 32]}
    run(raw_of(months / "first", images=resized), tmp_path / "one")
    notes = both(months, tmp_path, tmp_path / "one", images={"resize": "stretch", "size": [16, 16]})
    assert any("stores other pixels" in note for note in notes)
    # The other way round the earlier dataset has the files themselves.
    raw = raw_of(months / "second", images=resized)
    run(raw, tmp_path / "small")
    notes = run_telling({**raw, "reuse_from": str(months / "one")}, tmp_path / "small-copied")
    assert copied_of(notes) == (COPIED, READ)
    assert tree(tmp_path / "small-copied") == tree(tmp_path / "small")


@pytest.mark.slow
def test_other_encoders_than_this_one_make_other_bytes(months, tmp_path, monkeypatch):
    turned = {"orientation": "apply"}
    monkeypatch.setattr("shardwright.ingest.plan.PIL.__version__", "1.0")
    run(raw_of(months / "first", images=turned), tmp_path / "one")
    monkeypatch.undo()
    notes = both(months, tmp_path, tmp_path / "one", images=turned)
    assert 0 < copied_of(notes)[0] < COPIED
    # So may another version of this code, of the same encoder.
    monkeypatch.setattr("shardwright.ingest.recipe.CODE_FORMAT", 1)
    run(raw_of(months / "first", images=turned), tmp_path / "old")
    monkeypatch.undo()
    older = run_telling(
        {**raw_of(months / "second", images=turned), "reuse_from": str(tmp_path / "old")}, tmp_path / "x"
    )
    assert copied_of(older) == copied_of(notes)
    assert tree(tmp_path / "x") == tree(tmp_path / "full")
    assert any("old is of another version, so re-encoded images are read" in note for note in older)


@pytest.mark.slow
def test_other_annotations_are_put_to_the_same_images(months, tmp_path):
    def labeled(month, labels):
        names = sorted(path.relative_to(months / month).as_posix() for path in (months / month).rglob("*.jpg"))
        table = tmp_path / f"{month}.csv"
        table.write_text("image,label\n" + "".join(f"{name},{labels[i % 2]}\n" for i, name in enumerate(names)))
        return changed(raw_of(months / month), labels={"path": str(table)})

    run(labeled("first", ["a", "b"]), tmp_path / "one")
    raw = labeled("second", ["c", "d"])
    run(raw, tmp_path / "full")
    notes = run_telling({**raw, "reuse_from": str(tmp_path / "one")}, tmp_path / "copied")
    assert copied_of(notes) == (COPIED, READ)
    assert tree(tmp_path / "copied") == tree(tmp_path / "full")


@pytest.mark.parametrize(
    "options",
    [
        {"split": {"ratios": {"train": 0.4, "eval": 0.3, "test": 0.3}, "salt": "x"}},
        {"shards": {"count": 2, "balance": "class"}},
        {"features": {"preset": "tfds"}},
        {"images": {"verify": "full"}, "duplicates": {"exact": "first", "pixels": "first"}},
    ],
)
@pytest.mark.slow
def test_splits_shards_names_and_duplicates_may_be_others(months, tmp_path, options):
    notes = both(months, tmp_path, months / "one", **options)
    assert copied_of(notes)[0] == COPIED


@pytest.mark.slow
def test_an_image_that_stays_in_its_split_is_copied_too(months, tmp_path):
    other = {"ratios": {"train": 0.2, "eval": 0.4, "test": 0.4}, "salt": "y", "keep_from": str(months / "one")}
    notes = both(months, tmp_path, months / "one", split=other)
    assert copied_of(notes) == (COPIED, READ)
    before, after = ledger(months / "one"), ledger(tmp_path / "copied")
    assert all(after[key].split == row.split for key, row in before.items() if key in after)


@pytest.mark.slow
def test_names_of_others_are_read_and_written(months, tmp_path):
    run(raw_of(months / "first", features={"preset": "kaggle_flowers"}), tmp_path / "one")
    notes = both(months, tmp_path, tmp_path / "one", features={"preset": "kaggle_flowers"})
    assert copied_of(notes) == (COPIED, READ)


def test_pixels_are_not_looked_at_again(months, tmp_path, monkeypatch):
    looking = {"images": {"verify": "full"}}
    run(raw_of(months / "first", **looking), tmp_path / "one")
    raw = raw_of(months / "second", **looking)
    run(raw, tmp_path / "full")
    from shardwright.ingest import known_files, probe
    from shardwright.ingest import write_shards as write

    looked = []
    decode_file = known_files.decode_file
    for module in (probe, write):
        monkeypatch.setattr(module, "decode_file", lambda *args, **more: looked.append(1) or decode_file(*args, **more))
    run({**raw, "reuse_from": str(tmp_path / "one")}, tmp_path / "copied")
    assert len(looked) == READ
    assert tree(tmp_path / "copied") == tree(tmp_path / "full")


@pytest.mark.slow
def test_processes_copy_the_same(months, tmp_path):
    raw = {**raw_of(months / "second", images={"orientation": "apply", "verify": "full"})}
    run(raw, tmp_path / "one")
    notes = run_telling({**raw, "reuse_from": str(tmp_path / "one")}, tmp_path / "two", workers=2)
    assert copied_of(notes) == (COPIED + READ, 0)
    assert tree(tmp_path / "two") == tree(tmp_path / "one")


def damaged_copy(months, folder, damage):
    """A copy of the first dataset, one file of which is changed by `damage`."""
    import shutil

    shutil.copytree(months / "one", folder)
    damage(folder)
    return folder


def spoil_manifest(root: Path) -> None:
    file = root / "manifest.json"
    file.write_text(file.read_text().replace("classification", "segmentation"))


def flip(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)


@pytest.mark.slow
def test_a_damaged_record_is_read_from_the_input_and_logged(months, tmp_path):
    shard = sorted(Path(months / "one", "Split-train").iterdir())[0].name
    earlier = damaged_copy(months, tmp_path / "one", lambda root: flip(root / "Split-train" / shard, 200))
    notes = both(months, tmp_path, earlier)
    copied = copied_of(notes)[0]
    assert copied in (COPIED - 1, COPIED)
    if copied < COPIED:
        assert any("damaged" in note for note in notes)


def test_all_damage_of_shards_is_noticed(months, tmp_path):
    def spoil(root):
        for file in root.glob("Split-*/*"):
            file.write_bytes(bytes(file.stat().st_size))

    notes = both(months, tmp_path, damaged_copy(months, tmp_path / "one", spoil))
    assert copied_of(notes) == (0, COPIED + READ)
    assert f"{COPIED + 2:,} of these because their records in {tmp_path / 'one'} are damaged" in notes[-1]


def test_a_damaged_index_is_not_believed(months, tmp_path):
    def spoil(root):
        for file in root.glob("index/*/*"):
            flip(file, 10)

    notes = both(months, tmp_path, damaged_copy(months, tmp_path / "one", spoil))
    assert copied_of(notes) == (0, COPIED + READ)
    assert any("is damaged; the images of that shard are read again" in note for note in notes)


@pytest.mark.parametrize(
    "change", [{"offset": -1}, {"length": 1 << 40}, {"length": 1 << 70}, {"offset": 1e400}, {"key": None, "length": 0}]
)
@pytest.mark.slow
def test_an_index_of_a_stranger_leads_nowhere(months, tmp_path, change):
    """Its hash is the one in the manifest, and the manifest has its digest: a forged dataset."""
    root = damaged_copy(months, tmp_path / "one", lambda root: None)
    for file in root.glob("index/*/*"):
        rows = [{**json.loads(line), **change} for line in file.read_text().splitlines()]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    name_indexes(root)
    notes = both(months, tmp_path, root)
    assert copied_of(notes) == (0, COPIED + READ)


@pytest.mark.slow
def test_damaged_origins_are_not_believed(months, tmp_path):
    images = {"encoding": "png"}
    run(raw_of(months / "first", images=images), tmp_path / "one")
    for file in sorted((tmp_path / "one" / "origins").rglob("*.jsonl")):
        flip(file, 5)
    notes = both(months, tmp_path, tmp_path / "one", images=images)
    assert copied_of(notes) == (0, COPIED + READ)
    assert {finding.file for finding in verify(tmp_path / "one").findings} == {
        path.relative_to(tmp_path / "one").as_posix() for path in (tmp_path / "one" / "origins").rglob("*.jsonl")
    }


@pytest.mark.slow
def test_a_record_of_another_image_is_not_copied_because_of_a_wrong_index(months, tmp_path):
    """In an untrusted dataset the records may be whole but belong to other keys."""
    raw = raw_of(months / "second")
    run(raw, tmp_path / "full")
    recipe, location = IngestRecipe.of(config(raw)), locate(config({**raw, "reuse_from": str(months / "one")}))
    prepared = plan_ingest(recipe, location)
    held = [i for i, shard in enumerate(prepared.locations.shard) if shard >= 0]
    for column in (prepared.locations.shard, prepared.locations.offset, prepared.locations.length):
        column[held] = column[held[::-1]]
    staging = Staging.open(tmp_path / "staging", prepared.plan.dataset.fingerprint)
    prepared.stage(staging)
    for part in prepared.plan.cut.missing(prepared.plan.dataset.shards, staging, 1):
        write_range(part, prepared.plan, staging)
    results = staging.results(prepared.plan.dataset.shards)
    assert [result.info for result in results] == list(ImageDataset.open(tmp_path / "full").manifest.shards)
    assert sum(result.copied for result in results) <= len(held) % 2


def test_a_run_that_was_stopped_goes_on_with_another_earlier_dataset_or_none(months, tmp_path, monkeypatch):
    from shardwright.ingest import run_ingest as module

    raw = raw_of(months / "second")
    run(raw, tmp_path / "full")
    (tmp_path / "two").symlink_to(tmp_path / "full")
    write_all = module.map_processes

    def stop_after_one(*arguments):
        yield next(write_all(*arguments))
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "map_processes", stop_after_one)
    for earlier in (str(months / "one"), None, str(tmp_path / "two")):
        with pytest.raises(KeyboardInterrupt):
            run({**raw, "reuse_from": earlier}, tmp_path / "out")
    monkeypatch.setattr(module, "map_processes", write_all)
    run({**raw, "reuse_from": str(months / "one")}, tmp_path / "out")
    assert tree(tmp_path / "out") == tree(tmp_path / "full")


def test_rejected_images_are_read_again(months, tmp_path):
    broken = tmp_path / "in"
    for label in ("cat", "dog"):
        (broken / label).mkdir(parents=True)
        for file in (months / "first" / label).iterdir():
            (broken / label / file.name).write_bytes(file.read_bytes())
    bad = broken / "cat" / "00.jpg"
    good = bad.read_bytes()
    bad.write_bytes(good[:300])
    run(raw_of(broken), tmp_path / "one")
    assert ledger(tmp_path / "one")["cat/00.jpg"].status == "rejected"
    bad.write_bytes(good)
    notes = run_telling({**raw_of(broken), "reuse_from": str(tmp_path / "one")}, tmp_path / "two")
    assert copied_of(notes) == (OLD - 1, 1)
    assert tree(tmp_path / "two") == tree(months / "one")


def test_what_is_no_dataset_of_an_ingest_is_refused(months, tmp_path, small_dataset):
    raw = raw_of(months / "second")
    with pytest.raises(UsageError, match="reuse_from: .*not a finished dataset"):
        run({**raw, "reuse_from": str(months / "second")}, tmp_path / "out")
    with pytest.raises(DatasetError, match="damaged"):
        run({**raw, "reuse_from": str(damaged_copy(months, tmp_path / "x", spoil_manifest))}, tmp_path / "out")
    with pytest.raises(ConfigError, match="reuse_from: empty"):
        config({**raw, "reuse_from": " "})
    with pytest.raises(ConfigError, match="reuse_from"):
        config({**raw, "reuse_from": 7})
    manifest = json.loads((months / "one" / "manifest.json").read_text())
    assert manifest["kind"] == "ingest"
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_records_of_others_as_input(months, tmp_path):
    """Images that are parts of TFRecord files have no listed checksums: they are hashed, then copied."""
    raw = {**raw_of(months / "one"), "name": "records"}
    run(raw, tmp_path / "one")
    notes = run_telling({**raw, "reuse_from": str(tmp_path / "one")}, tmp_path / "two")
    assert copied_of(notes) == (OLD, 0)
    assert tree(tmp_path / "two") == tree(tmp_path / "one")


def test_bytes_that_only_have_the_right_checksums_are_not_taken(months, tmp_path):
    """If the polynomial of CRC-32C is added, neither the record's checksum nor that of the image changes."""
    unseen = (1 | 0x82F63B78 << 1).to_bytes(5, "little")

    def spoil(root):
        for file in root.glob("Split-*/*"):
            data = bytearray(file.read_bytes())
            at = data.index(b"\xff\xd8\xff") + 30
            data[at : at + 5] = bytes(a ^ b for a, b in zip(data[at : at + 5], unseen, strict=True))
            file.write_bytes(data)

    earlier = damaged_copy(months, tmp_path / "one", spoil)
    copied = copied_of(both(months, tmp_path, earlier))[0]
    assert COPIED - len(list(earlier.glob("Split-*/*"))) <= copied < COPIED


def test_probe_results_are_not_taken_from_a_damaged_file(months, tmp_path, monkeypatch):
    monkeypatch.setattr("shardwright.ingest.probe._ROWS_AT_ONCE", 4)
    looking = {"images": {"verify": "full"}}
    run(raw_of(months / "first", **looking), tmp_path / "one")
    file = tmp_path / "one/origins/inputs.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows[1:-1]:
        row[5][0][0] ^= 1
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    both(months, tmp_path, tmp_path / "one", **looking)


@pytest.mark.parametrize("header", [["x", 1, 1], [0, 1, 1], [None, None, None]])
@pytest.mark.slow
def test_untrusted_origins_are_not_believed(months, tmp_path, header):
    images = {"resize": "stretch", "size": [24, 32]}
    run(raw_of(months / "first", images=images), tmp_path / "one")
    for file in (tmp_path / "one" / "origins").rglob("data-*.jsonl"):
        rows = [json.loads(line) for line in file.read_text().splitlines()[:-1]]
        lines = [json.dumps([offset, [*origin[:2], header, *origin[3:]]]) + "\n" for offset, origin in rows]
        file.write_text("".join(checksummed_lines(lines)))
    assert copied_of(both(months, tmp_path, tmp_path / "one", images=images)) == (0, COPIED + READ)


@pytest.mark.slow
def test_why_images_of_an_earlier_version_are_read_again_is_logged(months, tmp_path):
    """Its origins lack the hash of what was stored."""
    images = {"resize": "stretch", "size": [24, 32]}
    run(raw_of(months / "first", images=images), tmp_path / "one")
    before = both(months, tmp_path, tmp_path / "one", images=images)
    shutil.rmtree(tmp_path / "copied")
    for file in (tmp_path / "one" / "origins").rglob("data-*.jsonl"):
        rows = [json.loads(line) for line in file.read_text().splitlines()[:-1]]
        file.write_text("".join(checksummed_lines(json.dumps([at, origin[:4]]) + "\n" for at, origin in rows)))
    notes = both(months, tmp_path, tmp_path / "one", images=images)
    assert copied_of(notes) == (0, COPIED + READ)
    why = "is damaged or of an earlier version, so re-encoded images are read"
    assert [any(why in note for note in some) for some in (before, notes)] == [False, True]
