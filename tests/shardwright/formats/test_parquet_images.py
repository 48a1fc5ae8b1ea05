"""Parquet and ArrayRecord files with the images inside: those of other programs, and broken ones."""

import json

import pytest
from ingesting import examples, run
from recording import picture

from shardwright.errors import UsageError
from shardwright.formats.array_records import begins_as_array_record
from shardwright.pipelines.cli import main

pyarrow = pytest.importorskip("pyarrow")


def write(path, columns, features=None):
    from pyarrow import parquet

    table = pyarrow.table(columns)
    if features:
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    path.parent.mkdir(exist_ok=True)
    parquet.write_table(table, path)


def images(count=3):
    return [{"bytes": picture(i), "path": f"{i}.png"} for i in range(count)]


def ingested(folder, out, **given):
    run({"task": "classification", "input": {"images": str(folder), **given}}, out, workers=1)
    return examples(out)


def test_a_data_set_of_hugging_face(tmp_path, capsys):
    names = {"label": {"names": ["dog", "cat"], "_type": "ClassLabel"}}
    columns = {"image": images(), "label": [1, 0, 1], "depth": [1.5, 2.5, 3.5], "objects": [{"bbox": []}] * 3}
    write(tmp_path / "in/train.parquet", columns, names)
    found = ingested(tmp_path / "in", tmp_path / "out")
    assert [found[f"{i}.png"]["image/class/text"] for i in range(3)] == [[b"cat"], [b"dog"], [b"cat"]]
    # The order of the description, not of the alphabet.
    assert [list(found[f"{i}.png"]["image/class/label"]) for i in range(3)] == [[1], [0], [1]]
    assert [found[f"{i}.png"]["image/encoded"] for i in range(3)] == [[picture(i)] for i in range(3)]
    assert [list(found[f"{i}.png"]["depth"]) for i in range(3)] == [[1.5], [2.5], [3.5]]
    assert main(["init", str(tmp_path / "in"), "--out", str(tmp_path / "c.yaml")]) == 0
    shown = "".join(capsys.readouterr()) + (tmp_path / "c.yaml").read_text()
    assert "is a Parquet file with images inside" in shown
    assert "not read as annotations" not in shown


def test_a_bad_file_is_one_error(tmp_path):
    boxes = {"boxes": [[[0.0, 0.0, 4.0, 4.0]]] * 3, "box_classes": [["cat"]] * 3}
    write(tmp_path / "in/a.parquet", {"image": images(), **boxes})
    with pytest.raises(UsageError, match=r"a\.parquet, row 1: the class 'cat' of a box is not in the classes of"):
        ingested(tmp_path / "in", tmp_path / "out")
    whole = (tmp_path / "in/a.parquet").read_bytes()
    (tmp_path / "in/a.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match=r"a\.parquet: cannot be read as Parquet"):
        ingested(tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_damaged_array_record_file_is_one_error(tmp_path):
    start = bytes.fromhex(
        "83af70d10d884a3f0000000000000000400000000000000091bac23c9287e1a9"
        "0000000000000000e19f13c0e9b1c37273000000000000000000000000000000"
    )
    assert begins_as_array_record(start)
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.array_record").write_bytes(start + b"x" * 100)
    # Without the package, the error is the command to install it.
    with pytest.raises(UsageError, match=r"a\.array_record: (ArrayRecord needs a package|the ArrayRecord file is)"):
        ingested(tmp_path / "in", tmp_path / "out")


def test_images_without_classes_are_detected_and_structures_are_named(tmp_path, capsys):
    columns = {"image": images(), "objects": [{"bbox": [[1.0, 2.0, 3.0, 4.0]], "category": [1]}] * 3}
    write(tmp_path / "in/train.parquet", columns)
    assert main(["init", str(tmp_path / "in"), "--out", str(tmp_path / "c.yaml")]) == 0
    assert "tfrecord: left out: objects (structures; " in capsys.readouterr().out


@pytest.mark.parametrize("columns", [{"img": [b"1", b"2"], "text": ["a", "b"]}, {"text": ["a", "b"]}])
def test_parquet_without_a_column_of_images_is_named_as_that(tmp_path, capsys, columns):
    write(tmp_path / "in/train.parquet", columns)
    with pytest.raises(UsageError, match=r"only train\.parquet \(not_an_image\)\. A Parquet file of images has"):
        ingested(tmp_path / "in", tmp_path / "out")
    assert main(["init", str(tmp_path / "in"), "--out", str(tmp_path / "c.yaml")]) == 2
    assert "A Parquet file of images has a column of structures" in capsys.readouterr().err


def test_a_file_that_is_only_called_an_array_record_is_named(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/train.array_record").write_bytes(b"something else" * 100)
    with pytest.raises(UsageError, match=r"no images below .*/in, only train\.array_record \(not_an_image\)"):
        ingested(tmp_path / "in", tmp_path / "out")
