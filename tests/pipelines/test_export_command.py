"""`export` gives back what was ingested: the files to the byte, and masks that decode to the same in every dialect."""

import csv
import json
import shutil

import numpy as np
import pytest
from ingesting import examples, run
from PIL import Image

from shardwright.dataset.reader import ImageDataset
from shardwright.edit import export_dataset as exporting
from shardwright.edit.export_dataset import ExportOptions
from shardwright.masks import rle
from shardwright.masks.dialects import COCO, COLUMN_PAIRS, ROW_PAIRS, SIIM, Dialect, dialect_header
from shardwright.pipelines.cli import main
from shardwright.tfrecords.records import frame, read_records

RUNS, ORDERS = ("absolute", "relative", "counts", "compressed"), ("column", "row")


@pytest.fixture(scope="module")
def masked(image_input, tmp_path_factory):
    root = tmp_path_factory.mktemp("masked")
    run(image_input(root / "in", images=9), root / "ds", workers=1)
    return root


@pytest.fixture(scope="module")
def labeled(image_input, tmp_path_factory):
    root = tmp_path_factory.mktemp("labeled")
    run(image_input(root / "in", layout="class_folders", images=9), root / "ds", workers=1)
    return root


def files(root):
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_files_come_back_byte_for_byte(masked, labeled, tmp_path):
    for root in (masked, labeled):
        out = tmp_path / root.name
        assert main(["export", str(root / "ds"), "--out", str(out)]) == 0
        assert files(out / "images") == files(root / "in" / "images")


def test_another_shard_than_the_manifests_becomes_no_files(masked, tmp_path, capsys):
    """Records and checksums are right and at the offsets of the index: only the hash of the whole file differs."""
    shutil.copytree(masked / "ds", tmp_path / "ds")
    shard = min(tmp_path.glob("ds/Split-*/*"), key=lambda path: path.stat().st_size)
    first, *others = [payload for _, payload in read_records(shard)]
    at = first.index(b".jpg") - 1
    changed = first[:at] + bytes([first[at] ^ 1]) + first[at + 1 :]
    shard.write_bytes(b"".join(map(frame, [changed, *others])))
    assert main(["export", str(tmp_path / "ds"), "--out", str(tmp_path / "out")]) == 1
    assert f"{shard}: differs from the manifest" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["ds"]


def test_files_are_not_put_into_the_dataset(masked, capsys):
    before = files(masked / "ds")
    assert main(["export", str(masked / "ds"), "--out", str(masked / "ds/deep/files")]) == 2
    assert "is inside the dataset" in capsys.readouterr().err
    assert files(masked / "ds") == before


def test_two_calls_at_once_do_not_write_into_each_others_folder(masked, tmp_path, capsys, monkeypatch):
    write = exporting._Writer.write
    calls = []

    def meanwhile(writer, shown):
        monkeypatch.setattr(exporting._Writer, "write", write)
        calls.extend(main(["export", str(masked / "ds"), "--out", str(tmp_path / name)]) for name in ("out", "other"))
        return write(writer, shown)

    monkeypatch.setattr(exporting._Writer, "write", meanwhile)
    assert main(["export", str(masked / "ds"), "--out", str(tmp_path / "out")]) == 0
    assert calls == [2, 0]
    assert "another run is publishing" in capsys.readouterr().err
    assert files(tmp_path / "out" / "images") == files(tmp_path / "other" / "images")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "out"]


@pytest.mark.parametrize("order", ["column", "row"])
@pytest.mark.parametrize(
    ("runs", "base"), [("absolute", 0), ("absolute", 1), ("relative", 0), ("counts", 0), ("compressed", 0)]
)
def test_masks_decode_to_the_same_in_every_dialect(masked, tmp_path, runs, base, order):
    arguments = ["--encoding", runs, "--order", order, "--start", str(base), "--json"]
    assert main(["export", str(masked / "ds"), "--out", str(tmp_path / "out"), *arguments]) == 0
    dialect = Dialect("counts" if runs == "compressed" else runs, order, base, ("", "-1", "[]"))
    with open(tmp_path / "out" / "labels.csv", encoding="utf-8", newline="") as file:
        rows = dict(csv.reader(file))
    usual = (runs, order, base) == ("absolute", "column", 1)
    # Else the header names the dialect, so that no reader takes it for that of a published set.
    assert rows.pop("Image_Label") == ("EncodedPixels" if usual else dialect_header(dialect))
    stored = examples(masked / "ds")
    assert len(rows) == 2 * len(stored)
    assert all(text.startswith("[") for text in rows.values() if text) == (runs == "counts")
    for key, example in stored.items():
        height, width = int(example["image/height"][0]), int(example["image/width"][0])
        for name in ("Fish", "Sugar"):
            found = dialect.parse(rows[f"{key}_{name}"], height=height, width=width)
            assert np.array_equal(found, rle.from_flat(example[f"image/segmentation/{name}/rle"]))


# All options of `input.labels` for run lengths; it distinguishes compressed counts from a list automatically.
READ_BACK = [
    *(("absolute", order, base) for order in ORDERS for base in (0, 1)),
    *(("relative", order, None) for order in ORDERS),
    *((runs, "column", None) for runs in ("counts", "compressed")),
]


@pytest.mark.parametrize(("runs", "order", "base"), READ_BACK)
def test_every_dialect_that_is_read_comes_back_to_the_same_records(masked, tmp_path, runs, order, base):
    number = [] if base is None else ["--start", str(base)]
    code = ["--order", order, *number]
    assert main(["export", str(masked / "ds"), "--out", str(tmp_path / "out"), "--encoding", runs, *code]) == 0
    table = str(tmp_path / "out" / "labels.csv")
    how = ["--encoding", "counts"] if runs in ("counts", "compressed") else ["--encoding", runs, *code]
    assert main(["relabel", str(masked / "ds"), table, "--out", str(tmp_path / "again"), *how]) == 0
    assert dict(ImageDataset.open(tmp_path / "again").records("train")) == dict(
        ImageDataset.open(masked / "ds").records("train")
    )
    assert main(["diff", str(masked / "ds"), str(tmp_path / "again")]) == 0


def test_the_columns_are_those_of_published_sets(masked, small_dataset, tmp_path, capsys):
    ds = str(masked / "ds")
    assert main(["export", ds, "--out", str(tmp_path / "severstal"), "--table", "image_class"]) == 0
    table = tmp_path / "severstal/labels.csv"
    stored = examples(masked / "ds")
    expected = [
        [key, name, rle.to_pairs(rle.from_flat(example[f"image/segmentation/{name}/rle"]))]
        for key, example in stored.items()
        for name in ("Fish", "Sugar")
        if example[f"image/segmentation/{name}/area"][0]
    ]
    with open(table, encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["ImageId", "ClassId", "EncodedPixels"]
    assert sorted(rows) == sorted(expected)
    # An image without a row has no mask, as in that set.
    assert main(["relabel", ds, str(table), "--out", str(tmp_path / "again")]) == 0
    assert main(["diff", ds, str(tmp_path / "again")]) == 0
    assert main(["export", ds, "--out", str(tmp_path / "x"), "--table", "image"]) == 2
    assert "image is for one class" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["export", ds, "--out", str(tmp_path / "x"), "--table", "wide"])
    assert "--table: invalid choice: 'wide'" in capsys.readouterr().err
    one = small_dataset(tmp_path / "one", classes=("Ship",))
    assert main(["export", str(one), "--out", str(tmp_path / "airbus"), "--table", "image"]) == 0
    with open(tmp_path / "airbus/labels.csv", encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["ImageId", "EncodedPixels"]
    assert dict(rows).keys() == examples(one).keys()
    assert len(rows) == len(examples(one))


@pytest.mark.slow
@pytest.mark.shared_data
def test_real_masks_come_back_as_they_were_delivered(shared_data, tmp_path):
    delivered = shared_data / "steel_defects/image_class.csv"
    raw = {
        "task": "segmentation",
        "input": {"images": str(shared_data / "steel_defects/images"), "labels": {"path": str(delivered)}},
    }
    run(raw, tmp_path / "ds", workers=1)
    assert main(["export", str(tmp_path / "ds"), "--out", str(tmp_path / "out"), "--table", "image_class"]) == 0
    tables = []
    for table in (delivered, tmp_path / "out/labels.csv"):
        with open(table, encoding="utf-8", newline="") as file:
            tables.append(sorted(row for row in csv.reader(file) if row[2]))
    assert len(tables[0]) == 1078
    assert tables[0] == tables[1]
    assert files(tmp_path / "out/images") == files(shared_data / "steel_defects/images")


@pytest.mark.slow
def test_what_is_exported_is_ingested_to_the_same_records(masked, tmp_path):
    assert main(["export", str(masked / "ds"), "--out", str(tmp_path / "out")]) == 0
    raw = {
        "task": "segmentation",
        "input": {
            "images": str(tmp_path / "out" / "images"),
            "labels": {"path": str(tmp_path / "out" / "labels.csv")},
            "classes": ["Fish", "Sugar"],
        },
        "shards": {"records": 7},
    }
    run(raw, tmp_path / "again", workers=1)
    one, other = examples(masked / "ds"), examples(tmp_path / "again")
    assert one.keys() == other.keys()
    for key in one:
        assert all(np.array_equal(one[key][name], other[key][name]) for name in one[key])


def test_every_dialect_of_published_sets_can_be_asked_for():
    """`export` writes all dialects that `rle_dialects` names, and all combinations that its `Dialect` can have."""
    written = {
        ExportOptions(runs=runs, order=order, base=base).dialect for runs in RUNS for order in ORDERS for base in (0, 1)
    }
    assert {COLUMN_PAIRS, ROW_PAIRS, SIIM, COCO} <= written


def test_masks_as_pictures(masked, tmp_path, capsys):
    assert main(["export", str(masked / "ds"), "--out", str(tmp_path / "out"), "--masks", "png", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    stored = examples(masked / "ds")
    drawn = 0
    for key, example in stored.items():
        for name in ("Fish", "Sugar"):
            runs = rle.from_flat(example[f"image/segmentation/{name}/rle"])
            file = tmp_path / "out" / "masks" / name / f"{key}.png"
            assert file.exists() == bool(len(runs))
            if len(runs):
                drawn += 1
                with Image.open(file) as picture:
                    assert np.array_equal(rle.encode(np.asarray(picture)), runs)
    assert result["masks"] == drawn > 0
    assert not (tmp_path / "out" / "labels.csv").exists()


def test_class_folders_and_queries(labeled, masked, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["export", str(labeled / "ds"), "--out", str(out), "--layout", "classes", "--classes", "Fish"]) == 0
    assert {name.split("/")[0] for name in files(out / "images")} == {"Fish"}
    assert files(out / "images").items() <= files(labeled / "in" / "images").items()
    assert main(["export", str(labeled / "ds"), "--out", str(out), "--layout", "classes", "--classes", "Fish"]) == 0
    assert main(["export", str(labeled / "ds"), "--out", str(out)]) == 2
    assert "is not this export" in capsys.readouterr().err
    assert main(["export", str(masked / "ds"), "--out", str(tmp_path / "x"), "--splits", "dev"]) == 2
    assert "no split 'dev'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["export", str(masked / "ds"), "--out", str(tmp_path / "x"), "--encoding", "huffman"])
    assert "--encoding: invalid choice: 'huffman'" in capsys.readouterr().err
    assert main(["export", str(masked / "ds"), "--out", "gs://bucket/x"]) == 2
    assert "files are exported to this machine" in capsys.readouterr().err


def test_hostile_class_names_and_keys_stay_within_the_folder(small_dataset, tmp_path, capsys):
    names = ("..", "a\\b", "/etc")
    root = small_dataset(tmp_path / "in", task="classification", classes=names, counts={"train": [6]})
    assert main(["export", str(root), "--out", str(tmp_path / "out"), "--layout", "classes"]) == 0
    assert {name.split("/")[1] for name in files(tmp_path / "out") if name.startswith("images")} == {"_", "a_b", "_etc"}
    outside = {path.name for path in tmp_path.iterdir()}
    assert outside == {"in", "out"}
    from shardwright.edit.export_dataset import _new_file
    from shardwright.errors import DatasetError

    for name in ("../x", "/x", "a/../../x", "a//b", "", "a\0b", "x" * 300, "./x"):
        with pytest.raises(DatasetError, match="not a path of a file"):
            _new_file(tmp_path / "out", name)


def test_a_wrong_size_is_reported_and_nothing_is_left(small_dataset, tmp_path, capsys):
    root = small_dataset(tmp_path / "in", change=lambda number, example: {**example, "image/height": 23})
    assert main(["export", str(root), "--out", str(tmp_path / "out")]) == 1
    assert "the picture is 24x36, but its record has 23x36" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"in"}


@pytest.mark.parametrize("raw", [False, True])
def test_no_name_is_a_formula_unless_asked_for(small_dataset, tmp_path, raw, capsys):
    names = ["=HYPERLINK(1)", "+a", "-b", "@c", "\td", "-5", "plain"]
    made = small_dataset(
        tmp_path, task="classification", counts={"train": [7]}, classes=("=cat", "dog"), key_of=lambda _, n: names[n]
    )
    call = ["export", str(made), "--out", str(tmp_path / "out"), *(["--raw"] if raw else [])]
    assert main(call) == 0
    with (tmp_path / "out/labels.csv").open(newline="") as file:
        cells = {cell for row in csv.reader(file) for cell in row}
    kept = {name if raw or name in ("-5", "plain") else f"'{name}" for name in names}
    assert cells == {"image", "label", "dog", "=cat" if raw else "'=cat", *kept}
    assert ("A program needs --raw" in capsys.readouterr().out) is not raw
