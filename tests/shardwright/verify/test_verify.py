"""Verify: every flipped bit and every cut is found, with its record or line, and nothing else is reported."""

import json
import random
import shutil
from pathlib import Path

import damage
import pytest
from ingesting import run

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import OtherLayoutError, UsageError
from shardwright.lineage.ancestry import read_artifact
from shardwright.storage.checksum import checksum_file
from shardwright.tfrecords import encode, records
from shardwright.verify import findings as what
from shardwright.verify import verify

FLIPS = 200


@pytest.fixture(scope="module")
def whole(tmp_path_factory, image_input):
    """A dataset of several shards, with inputs that were not written."""
    root = tmp_path_factory.mktemp("verify")
    raw = image_input(root / "in")
    for number in (3, 11, 17):
        (root / "in" / "images" / f"{number:03d}.jpg").write_bytes(b"BM")
    run(raw, root / "out")
    damage.settle(root / "out", root)
    return root / "out"


@pytest.fixture
def dataset(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "dataset")
    return tmp_path / "dataset"


def test_a_sound_dataset_has_no_findings(whole):
    report = verify(whole, deep=True)
    assert report.findings == ()
    assert report.records == 21
    assert report.shards == 5
    files = [p for p in whole.rglob("*") if p.is_file() and p.name not in ("manifest.json", "build.json")]
    assert report.bytes == sum(p.stat().st_size for p in files)


@pytest.mark.one_stack
def test_every_flip_and_cut_is_found_where_it_is(dataset):
    draw = random.Random(0)
    for _ in range(FLIPS):
        one = damage.drawn(dataset, draw)
        fits = damage.must_be_found(dataset, one)
        with damage.done(dataset, one):
            found = verify(dataset).findings
        assert fits(found), (one, found)


def test_a_damaged_checksum_in_build_json_is_one_finding(dataset):
    file = dataset / "build.json"
    text = file.read_text(encoding="utf-8")
    at = text.index(json.loads(text)["files"]["lineage.json"])
    one = damage.Damage("build.json", False, (at + 3) * 8)
    with damage.done(dataset, one):
        found = verify(dataset).findings
    assert [(finding.file, finding.code) for finding in found] == [("build.json", "hash")]


@pytest.mark.parametrize(
    ("layout", "problem"), [(1, "an older version wrote it (code format 3)"), (2, "layout version 2")]
)
def test_a_dataset_of_another_version_is_not_called_damaged(dataset, layout, problem):
    """Its checksums were those of another algorithm: each file without one that this version knows was a finding."""
    row = json.loads((dataset / "manifest.json").read_text())
    del row["checksum"]
    shards = [
        {"sha256": "0" * 64, **{name: shard[name] for name in shard if name != "checksum"}} for shard in row["shards"]
    ]
    recipe = {**row["recipe"], "code_format": 3}
    (dataset / "manifest.json").write_text(
        json.dumps({**row, "format_version": layout, "recipe": recipe, "shards": shards}) + "\n"
    )
    for name in ("build.json", "lineage.json"):
        text = (dataset / name).read_text()
        (dataset / name).write_text(text.replace(json.loads(text)["digest"], "0" * 64))
    (finding,) = verify(dataset).findings
    assert (finding.file, finding.code) == ("manifest.json", what.MANIFEST)
    assert problem in finding.problem
    with pytest.raises(OtherLayoutError, match="(Ingest the images again|Use a newer shardwright)"):
        ImageDataset.open(dataset)
    assert list(read_artifact(str(dataset)).problems) == [finding.problem]


def test_an_index_line_in_other_bytes_is_reported_with_its_number(dataset):
    (path,) = (dataset / "index/Split-train").glob("data-00000-*")
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b'":', b'": ', 1)
    path.write_bytes(b"\n".join(lines))
    (found,) = verify(dataset).findings
    assert (found.code, found.line) == (what.ROW, 2)


def test_every_part_of_a_frame_is_distinguished(dataset):
    path = "Split-train/data-00000-of-00003.tfrecord"
    length = json.loads((dataset / "index" / path).with_suffix(".jsonl").read_text().split("\n")[0])["length"]
    for byte in (*range(12), 12, 40, length - 5, *range(length - 4, length)):
        for bit in (0, 7):
            one = damage.Damage(path, False, byte * 8 + bit)
            fits = damage.must_be_found(dataset, one)
            with damage.done(dataset, one):
                found = verify(dataset).findings
            assert fits(found), (one, found)


def test_all_damages_are_reported_not_only_the_first(dataset):
    path = "Split-train/data-00001-of-00003.tfrecord"
    index = [json.loads(line) for line in (dataset / "index" / path).with_suffix(".jsonl").open()]
    data = bytearray((dataset / path).read_bytes())
    data[index[0]["offset"] + 2] ^= 1
    data[index[2]["offset"] + 40] ^= 1
    data[index[4]["offset"] + 9] ^= 1
    (dataset / path).write_bytes(data)
    (dataset / "Split-eval" / "data-00000-of-00001.tfrecord").unlink()
    (dataset / "ledger" / "part-00000-of-00001.jsonl").write_bytes(b"")
    found = [(f.file, f.code, f.record, f.key) for f in verify(dataset).findings]
    assert (path, what.LENGTH, 0, index[0]["key"]) in found
    assert (path, what.PAYLOAD, 2, index[2]["key"]) in found
    assert (path, what.LENGTH_CHECKSUM, 4, index[4]["key"]) in found
    assert ("Split-eval/data-00000-of-00001.tfrecord", what.MISSING, None, None) in found
    assert {f[0] for f in found} == {
        path,
        "Split-eval/data-00000-of-00001.tfrecord",
        "ledger/part-00000-of-00001.jsonl",
    }


def test_records_are_found_though_index_or_manifest_are_damaged_too(dataset):
    path = "Split-train/data-00001-of-00003.tfrecord"
    index = (dataset / "index" / path).with_suffix(".jsonl")
    rows = [json.loads(line) for line in index.open()]
    data = bytearray((dataset / path).read_bytes())
    data[rows[3]["offset"] + 60] ^= 16
    data[rows[2]["offset"]] ^= 16
    (dataset / path).write_bytes(data)
    index.write_bytes(index.read_bytes().replace(b'"length"', b'"lenght"', 1))
    text = (dataset / "manifest.json").read_bytes()
    for manifest in (text, text[:-1]):
        (dataset / "manifest.json").write_bytes(manifest)
        found = {(f.file, f.code, f.record, f.line) for f in verify(dataset).findings}
        assert (path, what.PAYLOAD, 3, None) in found
        assert (path, what.LENGTH, 2, None) in found
    assert ("manifest.json", what.MANIFEST, None, None) in found


def test_two_records_exchanged_with_their_hashes_are_found_by_their_keys(dataset):
    manifest = json.loads((dataset / "manifest.json").read_text())
    path = "index/Split-train/data-00000-of-00003.jsonl"
    text = (dataset / path).read_text()
    first, second = (json.loads(line)["key"] for line in text.split("\n")[1:3])
    text = text.replace(first, "x").replace(second, first).replace("x", second)
    (dataset / path).write_text(text)
    reseal(dataset, manifest, path)
    found = [(f.file, f.code, f.line, f.record) for f in verify(dataset).findings]
    assert found == [(path, what.ROW, 2, 1), (path, what.ROW, 3, 2)]


@pytest.mark.parametrize("end", ["first_key", "last_key"])
def test_a_shard_that_begins_or_ends_with_another_key_than_in_the_manifest_is_found(dataset, end):
    manifest = json.loads((dataset / "manifest.json").read_text())
    manifest["shards"][-1][end] = "another.jpg"
    reseal(dataset, manifest, "ledger/part-00000-of-00001.jsonl")
    (found,) = verify(dataset).findings
    assert found.code == what.TOTALS
    assert "another.jpg" in found.problem


def reseal(dataset, manifest, path):
    """Gives a changed file's hash to the manifest, as a faulty writer would."""
    from shardwright.storage.fingerprint import canonical_json, fingerprint

    manifest["parts"][path] = checksum_file(dataset / path)
    del manifest["digest"]
    manifest["digest"] = fingerprint(manifest)
    (dataset / "manifest.json").write_text(canonical_json(manifest) + "\n")


def test_a_ledger_that_does_not_add_up_is_found(dataset):
    manifest = json.loads((dataset / "manifest.json").read_text())
    path = "ledger/part-00000-of-00001.jsonl"
    lines = (dataset / path).read_text().splitlines(keepends=True)
    (dataset / path).write_text("".join(lines[1:]))
    reseal(dataset, manifest, path)
    problems = [f.problem for f in verify(dataset).findings]
    assert "inputs: counted 23, the manifest's totals contain 24" in problems


def test_stray_and_missing_files_are_found(dataset):
    (dataset / "Split-train" / ".data.tmp").write_bytes(b"")
    (dataset / "Split-old").mkdir()
    (dataset / "Split-old" / "x.tfrecord").write_bytes(b"")
    (dataset / "index" / "Split-test" / "data-00000-of-00001.jsonl").unlink()
    (dataset / "lineage.json").unlink()
    (dataset / "notes.txt").write_text("mine")
    assert [(f.file, f.code) for f in verify(dataset).findings] == [
        ("Split-old/x.tfrecord", what.STRAY),
        ("Split-train/.data.tmp", what.STRAY),
        ("index/Split-test/data-00000-of-00001.jsonl", what.MISSING),
        ("lineage.json", what.MISSING),
        ("notes.txt", what.STRAY),
    ]


def test_deep_finds_an_image_that_is_not_the_one_that_was_hashed(tmp_path, small_dataset):
    def wrong(number, example):
        return {**example, "image/blake3": b"0" * 64} if number == 4 else example

    dataset = small_dataset(tmp_path, change=wrong)
    assert verify(dataset).findings == ()
    (found,) = verify(dataset, deep=True).findings
    assert (found.code, found.key) == (what.IMAGE, "train/0004")
    bare = small_dataset(tmp_path / "b", change=lambda number, example: {"image/key": example["image/key"]})
    assert verify(bare).findings == ()
    with pytest.raises(UsageError, match="contain no image/encoded with image/blake3"):
        verify(bare, deep=True)


def test_deep_is_refused_where_other_bytes_than_the_files_are_stored(tmp_path, image_input):
    raw = {**image_input(tmp_path / "in"), "images": {"strip_metadata": "all"}}
    run(raw, tmp_path / "out")
    assert verify(tmp_path / "out").findings == ()
    with pytest.raises(UsageError, match="images.strip_metadata stores other bytes"):
        verify(tmp_path / "out", deep=True)


def test_without_keys_in_the_records_the_ledger_has_them(tmp_path, small_dataset):
    dataset = small_dataset(tmp_path, change=lambda number, example: {"id": number})
    assert verify(dataset).findings == ()
    index = dataset / "index/Split-train/data-00000-of-00002.jsonl"
    index.write_bytes(index.read_bytes().replace(b"train/0003", b"train/0007"))
    (found,) = verify(dataset).findings
    assert (found.line, found.key, found.record) == (2, "train/0003", 1)


def test_workers_find_the_same(dataset):
    path = dataset / "Split-train/data-00001-of-00003.tfrecord"
    path.write_bytes(path.read_bytes()[:100])
    assert verify(dataset, workers=2) == verify(dataset, workers=1)
    with pytest.raises(UsageError, match="--workers: 0 is too few"):
        verify(dataset, workers=0)


def test_no_dataset_is_a_usage_error(tmp_path):
    for folder, problem in ((tmp_path, "not a dataset"), (tmp_path / "none", "there is no such folder")):
        with pytest.raises(UsageError, match=problem):
            verify(folder)


def test_a_manifest_that_leads_out_of_its_folder_is_not_followed(dataset):
    manifest = json.loads((dataset / "manifest.json").read_text())
    manifest["shards"][0]["path"] = "../../etc/passwd"
    reseal(dataset, manifest, "ledger/part-00000-of-00001.jsonl")
    (found,) = verify(dataset).findings
    assert found.file == "manifest.json"
    assert "'../../etc/passwd' is not a path below the dataset's folder" in found.problem


def test_a_feature_is_found_as_the_whole_example_has_it():
    data = encode.encode_example({"a": [b"x", b"y"], "image/key": b"k", "image/keys": 3, "z": encode.ints([])})
    for name, values in records.decode_example(data).items():
        assert list(records.find_feature(data, name)) == list(values)
    assert records.find_feature(data, "image/ke") is None
    with pytest.raises(encode.RecordError, match="not a tf.train.Example"):
        records.find_feature(b"\xff\xff", "a")


def test_a_flip_in_a_stored_checksum_differs_in_one_bit_and_one_in_the_data_never():
    data = random.Random(1).randbytes(3000)
    footer = records.frame(data)[-records.FOOTER_BYTES :]
    for bit in range(32):
        flipped = bytearray(footer)
        flipped[bit // 8] ^= 1 << bit % 8
        assert records.checksum_difference(data, bytes(flipped)).bit_count() == 1
    for bit in range(0, len(data) * 8, 5):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        assert records.checksum_difference(bytes(changed), footer).bit_count() > 1


def test_files_that_seal_themselves_show_any_change():
    from shardwright.storage.fingerprint import checksum_matches, checksummed_json

    text = checksummed_json({"b": 1, "a": "ü"})
    assert checksum_matches(text)
    assert json.loads(text)["a"] == "ü"
    for other in (text[:-1], text + "\n", text.replace("1", "2"), text.replace(" ", "  ", 1), "[]", "3", ""):
        assert not checksum_matches(other)


@pytest.mark.parametrize("deep", [False, True])
def test_a_record_that_parsers_read_differently_is_found(tmp_path, small_dataset, monkeypatch, deep):
    """Everything else of the dataset is right: its writer has stored a feature twice."""
    written = encode.encode_example
    again = written({"image/height": 1})

    def twice(features):
        data = written(features)
        return data + again if features["image/key"] == b"train/0004" else data

    monkeypatch.setattr(encode, "encode_example", twice)
    with pytest.raises(encode.RecordError, match="feature 'image/height' is there twice"):
        small_dataset(tmp_path / "refused")
    monkeypatch.setattr(encode, "encode_example", written)
    dataset = small_dataset(tmp_path)
    file = dataset / "Split-train/data-00001-of-00002.tfrecord"
    payloads = [payload for _, payload in records.read_records(file)]
    file.write_bytes(b"".join(records.frame(payload + again) for payload in payloads))
    found = verify(dataset, deep=deep).findings
    assert [f.record for f in found if f.code == what.PAYLOAD and "is there twice" in f.problem] == [0, 1]
    found = verify(file).findings
    assert [(f.record, "is there twice" in f.problem) for f in found] == [(0, True), (1, True)]


def test_paths_in_findings_are_relative(dataset):
    (dataset / "Split-train" / "data-00001-of-00003.tfrecord").write_bytes(b"short")
    assert not any(Path(f.file).is_absolute() or str(dataset) in f.problem for f in verify(dataset).findings)
