"""Ingest with `verify: full`: damage is found, hashes and measures are features.

If duplicates are found by pixels, a pass before the plan decodes the images and keeps rows; else the writers do.
"""

import csv
import json
import sqlite3
import subprocess
import sys
from dataclasses import replace

import pytest
from ingesting import changed, config, examples, ledger, run, tree
from killing import KILL_AT_STEP

from shardwright.config import images as running
from shardwright.duplicates.hashes import ImageHashes
from shardwright.images.quality import Quality
from shardwright.ingest import known_files, probe
from shardwright.ingest import write_shards as write
from shardwright.ingest.known_files import cache_file
from shardwright.ingest.previous_dataset import PreviousDataset

FEATURES = {*(f"image/hash/{n}" for n in ImageHashes._fields), *(f"image/quality/{n}" for n in Quality._fields)}


def full(raw, **more):
    return {**raw, "images": {"verify": "full"}, **more}


def looked(raw, **more):
    """Pixels are needed before the plan."""
    return full(raw, duplicates={"pixels": "keep"}, **more)


def damage(file):
    """Breaks the coded picture of a PNG, which its header does not show."""
    import zlib

    data = bytearray(file.read_bytes())
    begin = data.index(b"IDAT")
    length = int.from_bytes(data[begin - 4 : begin], "big")
    data[begin + 10 : begin + 30] = bytes(20)
    data[begin + 4 + length : begin + 8 + length] = zlib.crc32(data[begin : begin + 4 + length]).to_bytes(4, "big")
    file.write_bytes(bytes(data))


@pytest.fixture
def probed_files(monkeypatch):
    """Positions of files whose pixels were looked at, in this process."""
    seen = []
    decode_file = known_files.decode_file
    for module in (probe, write):
        monkeypatch.setattr(
            module, "decode_file", lambda data, *a, **k: seen.append(len(data)) or decode_file(data, *a, **k)
        )
    return seen


def test_pixels_become_features(tmp_path, image_input):
    raw = image_input(tmp_path / "in")
    manifest = run(full(raw), tmp_path / "out")
    plain = run(raw, tmp_path / "plain")
    assert set(manifest.features) - set(plain.features) == FEATURES
    assert {manifest.features[name] for name in FEATURES} == {"int64", "float32"}
    found = examples(tmp_path / "out")
    assert len(found) == 24
    for key, example in examples(tmp_path / "plain").items():
        more = found[key]
        assert set(more) - set(example) == FEATURES
        assert all(len(more[name]) == 1 for name in FEATURES)
        assert more["image/encoded"] == example["image/encoded"]
    assert len({int(example["image/hash/perceptual"][0]) for example in found.values()}) > 20


def test_splits_are_those_of_headers_alone(tmp_path, image_input):
    raw = image_input(tmp_path / "in")
    run(raw, tmp_path / "plain")
    run(full(raw), tmp_path / "out")
    splits = [{key: row.split for key, row in ledger(tmp_path / name).items()} for name in ("plain", "out")]
    assert splits[0] == splits[1]


@pytest.mark.parametrize("before", [False, True])
def test_what_cannot_be_decoded_is_rejected(tmp_path, image_input, before):
    from PIL import Image

    raw = image_input(tmp_path / "in", layout="class_folders")
    broken = tmp_path / "in" / "images" / "Fish" / "broken.png"
    Image.effect_noise((64, 64), 50).save(broken)
    damage(broken)
    assert run(raw, tmp_path / "header").totals["written"] == 25
    manifest = run((looked if before else full)(raw, rejects={"max_fraction": 1}), tmp_path / "full")
    row = ledger(tmp_path / "full")["Fish/broken.png"]
    # A writer finds it in the shard that it was planned for.
    planned = run(raw, tmp_path / "again") and ledger(tmp_path / "again")["Fish/broken.png"]
    place = ("", None) if before else (planned.split, planned.shard)
    assert (row.status, row.code, row.split, row.shard) == ("rejected", "damaged", *place)
    assert "cannot be decoded" in row.reason
    assert manifest.totals["written"] == 24


def test_nothing_with_a_bombs_header_is_decoded(tmp_path, image_input, probed_files):
    raw = image_input(tmp_path / "in", images=6)
    options = {"images": {"verify": "full", "max_pixels": 20 * 30}, "rejects": {"max_fraction": 0.7}}
    manifest = run({**raw, **options}, tmp_path / "out")
    assert manifest.totals["rejected/too_large"] == 4
    assert len(probed_files) == 2


@pytest.mark.parametrize("workers", [None, 1, 2, 5])
def test_workers_change_nothing(tmp_path, image_input, workers, monkeypatch):
    raw = full(image_input(tmp_path / "in"), duplicates={"near": {"max_distance": 6}})
    run(raw, tmp_path / "one", workers=1)
    monkeypatch.setattr(probe, "_FEWEST_AT_ONCE", 3)
    monkeypatch.setattr(probe, "readers", lambda root: 2)
    run(raw, tmp_path / "out", workers=workers)
    assert tree(tmp_path / "out") == tree(tmp_path / "one")


@pytest.mark.parametrize(("name", "most"), [("_MOST_DECODED", 1), ("_MOST_DECODED", 5), ("_MOST_AREA", 0)])
@pytest.mark.parametrize("options", [looked, full])
def test_how_many_pictures_wait_changes_nothing(tmp_path, image_input, monkeypatch, name, most, options):
    raw = options(image_input(tmp_path / "in"))
    # One without a picture is between those that wait.
    (tmp_path / "in" / "images" / "003.jpg").write_bytes(b"BM")
    run(raw, tmp_path / "usual")
    assert ledger(tmp_path / "usual")["003.jpg"].status == "rejected"
    monkeypatch.setattr(known_files, name, most)
    run(raw, tmp_path / "out")
    assert tree(tmp_path / "out") == tree(tmp_path / "usual")


def test_rows_are_kept_where_staging_is_and_used_again(tmp_path, image_input, probed_files):
    raw = looked(image_input(tmp_path / "in"), run={"staging": str(tmp_path / "staging")})
    run(raw, tmp_path / "first")
    assert len(probed_files) == 24
    (tmp_path / "in/images/new.jpg").write_bytes((tmp_path / "in/images/003.jpg").read_bytes() + b"x")
    # Another name for what is known; a new file; another configuration.
    (tmp_path / "in/images/000.jpg").rename(tmp_path / "in/images/zzz.jpg")
    raw = {**changed(raw, unlisted_images="empty"), "shards": {"records": 4}}
    table = tmp_path / "in/labels.csv"
    table.write_text(table.read_text().replace("000.jpg", "zzz.jpg"))
    again = run(raw, tmp_path / "again")
    assert len(probed_files) == 25
    run({**raw, "run": {}}, tmp_path / "fresh")
    assert len(probed_files) == 50
    assert tree(tmp_path / "again") == tree(tmp_path / "fresh")
    assert again.totals["written"] == 25


def test_writers_decode_each_image_once_and_record_what_they_saw(tmp_path, image_input, probed_files):
    raw = image_input(tmp_path / "in")
    run(full(raw), tmp_path / "out")
    assert len(probed_files) == 24
    run(looked(raw), tmp_path / "before")
    rows = [list(PreviousDataset.open(str(tmp_path / name)).input_records()) for name in ("out", "before")]
    assert [row.key for row in rows[0]] == [f"{number:03d}.jpg" for number in range(24)]
    for one, other in zip(*rows, strict=True):
        assert one.row is not None
        assert one.row.pixels is None
        assert other._replace(row=replace(other.row, pixels=None)) == one


def test_next_to_the_output_nothing_is_left(tmp_path, image_input):
    run(full(image_input(tmp_path / "in")), tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out"}


def test_an_output_that_is_there_is_known_without_looking(tmp_path, image_input, probed_files):
    raw = looked(image_input(tmp_path / "in"))
    first = run(raw, tmp_path / "out")
    assert run(raw, tmp_path / "out") == first
    assert len(probed_files) == 24


@pytest.mark.parametrize("harm", ["a row", "all rows", "no database", "half a database", "a folder", "another table"])
def test_a_damaged_cache_costs_time_and_nothing_else(tmp_path, image_input, harm, probed_files):
    raw = looked(image_input(tmp_path / "in"), run={"staging": str(tmp_path / "staging")})
    run(raw, tmp_path / "whole")
    file = cache_file(str(tmp_path / "staging" / "probed"))
    assert file.is_file()
    data = file.read_bytes()
    if harm == "no database":
        file.write_bytes(b"not a database" * 100)
    elif harm == "half a database":
        file.write_bytes(data[: len(data) // 2])
    elif harm == "a folder":
        file.unlink()
        file.mkdir()
    else:
        with sqlite3.connect(file) as rows:
            if harm == "another table":
                rows.execute("DROP TABLE probed")
                rows.execute("CREATE TABLE probed (other TEXT)")
            else:
                which = "(SELECT content FROM probed LIMIT 1)" if harm == "a row" else "(SELECT content FROM probed)"
                rows.execute(f"UPDATE probed SET row = replace(row, '0.', '1.') WHERE content IN {which}")
        rows.close()
    run({**raw, "shards": {"records": 24}}, tmp_path / "again")
    assert len(probed_files) == 25 if harm == "a row" else 48
    run({**raw, "shards": {"records": 12}}, tmp_path / "fixed")
    assert len(probed_files) == (25 if harm == "a row" else 72 if harm == "a folder" else 48)
    run({**raw, "shards": {"records": 24}, "run": {}}, tmp_path / "fresh")
    assert tree(tmp_path / "again") == tree(tmp_path / "fresh")


def test_a_row_of_other_content_is_not_taken(tmp_path, image_input):
    raw = looked(image_input(tmp_path / "in"), run={"staging": str(tmp_path / "staging")})
    run(raw, tmp_path / "out")
    file = cache_file(str(tmp_path / "staging" / "probed"))
    with sqlite3.connect(file) as rows:
        (row,) = rows.execute("SELECT row FROM probed LIMIT 1").fetchone()
        rows.execute("UPDATE probed SET row = ?", (row,))
    rows.close()
    run({**raw, "shards": {"records": 24}}, tmp_path / "again")
    run({**raw, "shards": {"records": 24}, "run": {}}, tmp_path / "fresh")
    assert tree(tmp_path / "again") == tree(tmp_path / "fresh")


def test_an_interrupted_probe_goes_on_where_it_was(tmp_path, image_input, probed_files, monkeypatch):
    raw = looked(image_input(tmp_path / "in"))
    monkeypatch.setattr(probe, "_FEWEST_AT_ONCE", 4)
    monkeypatch.setattr(probe, "readers", lambda root: 1)
    fill = probe._fill

    def interrupted(result, listing, position, one):
        if position == 9:
            raise KeyboardInterrupt
        fill(result, listing, position, one)

    monkeypatch.setattr(probe, "_fill", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(raw, tmp_path / "out", workers=1)
    assert len(probed_files) == 12
    monkeypatch.setattr(probe, "_fill", fill)
    run(raw, tmp_path / "out", workers=1)
    assert len(probed_files) == 24
    run(raw, tmp_path / "whole")
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out", "whole"}


KILLED = (
    KILL_AT_STEP
    + """
import json
from shardwright.config import parse_config
from shardwright.ingest import ingest
from shardwright.ingest import known_files, probe
from shardwright.ingest import write_shards as write
probe._FEWEST_AT_ONCE = 2
probe._BYTES_WORTH_KEEPING = 0
probe.readers = lambda root: 1
probe.decode_file = counted(probe.decode_file)
known_files.ProbeCache.keep = counted(known_files.ProbeCache.keep)
ingest(parse_config(json.loads(sys.argv[1]), base="/"), sys.argv[2], quiet=True, workers=1)
print("done")
"""
)


@pytest.mark.slow
@pytest.mark.parametrize("step", [5, 8, 11, 20, 33])
def test_killed_while_probing_it_reuses_rows_and_makes_the_same(tmp_path, image_input, step, probed_files):
    raw = looked(image_input(tmp_path / "in"))
    out = tmp_path / "out"
    killed = subprocess.run([sys.executable, "-c", KILLED, json.dumps(raw), str(out), str(step)], capture_output=True)
    assert killed.returncode == -9, killed.stderr
    assert not out.exists()
    with sqlite3.connect(cache_file(str(tmp_path / ".out.staging" / "probed"))) as rows:
        (kept,) = rows.execute("SELECT count(*) FROM probed").fetchone()
    rows.close()
    # Two of three steps probe a file and one keeps both rows; the first few create folders.
    assert 2 * ((step - 1) // 3) - 2 <= kept <= 2 * ((step - 1) // 3)
    assert kept > 0 or step < 8
    run(raw, out)
    assert len(probed_files) == 24 - kept
    run(raw, tmp_path / "whole")
    assert tree(out) == tree(tmp_path / "whole")


def test_a_wrong_place_for_the_output_leaves_no_trace(tmp_path, image_input):
    from shardwright.errors import UsageError

    raw = full(image_input(tmp_path / "in"))
    before = tree(tmp_path)
    with pytest.raises(UsageError, match="is inside the input folder"):
        run(raw, tmp_path / "in" / "images" / "out")
    assert tree(tmp_path) == before
    assert not (tmp_path / "in/images/.out.staging").exists()


def test_other_formats_are_probed_where_they_are_converted(tmp_path, image_input):
    from PIL import Image

    raw = image_input(tmp_path / "in", layout="class_folders", images=6)
    whole = Image.open(tmp_path / "in/images/Fish/000.jpg").resize((90, 80))
    whole.save(tmp_path / "in/images/Fish/one.webp", lossless=True)
    whole.save(tmp_path / "in/images/Fish/two.png")
    run({**raw, "images": {"verify": "full", "unsupported_formats": "png"}}, tmp_path / "out")
    found = examples(tmp_path / "out")
    assert all(found["Fish/one.webp"][name] == found["Fish/two.png"][name] for name in FEATURES)
    rejected = run({**raw, "images": {"verify": "full"}}, tmp_path / "reject")
    assert rejected.totals["rejected/unsupported_format"] == 1


def test_the_schema_knows_the_features(tmp_path, image_input):
    from shardwright.dataset.dataset_schema import parse_schema, render_schema
    from shardwright.ingest import example_features, locate, survey_input
    from shardwright.ingest.recipe import IngestRecipe

    given = config(full(image_input(tmp_path / "in")))
    survey = survey_input(IngestRecipe.of(given), locate(given)).survey
    features = example_features(given.task, survey, given.images)
    schema = parse_schema(render_schema(given.task, survey.classes, "masks", features), "x")
    known = {feature.name: feature for feature in schema.feature}
    assert set(known) >= FEATURES
    assert known["image/quality/brightness"].presence.min_fraction == 1
    assert running.FULL == "full"


@pytest.mark.shared_data
def test_hostile_files_are_written_or_rejected_by_name(tmp_path, shared_data):
    hostile = shared_data / "hostile"
    raw = {
        "task": "classification",
        "input": {"images": str(hostile), "labels": {"format": "none"}},
        "rejects": {"max_fraction": 1},
        "duplicates": {"pixels": "keep", "near": {"max_distance": 4}},
    }
    found = {}
    for convert in ("reject", "png"):
        raw["images"] = {"verify": "full", "unsupported_formats": convert}
        manifest = run(raw, tmp_path / convert)
        rows = found[convert] = ledger(tmp_path / convert)
        assert manifest.totals["inputs"] == len(rows) == 112
        assert all(row.status == "written" or (row.code and row.reason) for row in rows.values())
    with (hostile / "manifest.csv").open(encoding="utf-8", newline="") as lines:
        listed = {row["file"]: row for row in csv.DictReader(lines) if row["file"] not in (".DS_Store", "desktop.ini")}
    for key, expected in listed.items():
        row = found["png"][key]
        # Pillow refuses the metadata of these two, not their pixels; and a Lab picture has no single meaning in 8 bits.
        if key in ("unknown_compression_method.png", "png_decompression_dos.png"):
            assert row.status == "written"
        elif key == "hopper.Lab.tif":
            assert row.code == "unsupported_color"
        else:
            assert (row.status == "written") == (expected["pillow_strict"] == "ok"), (key, row)
