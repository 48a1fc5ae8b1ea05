"""Parquet and ArrayRecord files with the images inside: those of other programs, and broken ones."""

import json

import pytest
from ingesting import examples, ledger, run
from recording import mask_png, picture

from shardwright.errors import UsageError
from shardwright.formats.array_records import begins_as_array_record
from shardwright.pipelines.cli import main

pyarrow = pytest.importorskip("pyarrow")

# Where so few images leave a class out of a split, which is a question of its own.
HASHED = ("--set", "split.method=hash")


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
    assert main(["init", str(tmp_path / "in"), "--out", str(tmp_path / "c.yaml"), *HASHED]) == 0
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
    columns = {"image": images(), "place": [{"city": "Bern"}] * 3, "height": [8, 8, 8], "width": [6, 6, 6]}
    write(tmp_path / "in/train.parquet", columns)
    assert main(["init", str(tmp_path / "in"), "--out", str(tmp_path / "c.yaml")]) == 0
    assert "tfrecord: left out: place (structures)" in capsys.readouterr().out


CATEGORIES = {"names": ["glove", "mask"], "_type": "ClassLabel"}
SIDES = {f"image/object/bbox/{side}": (12, 10)[at % 2] for at, side in enumerate(("xmin", "ymin", "xmax", "ymax"))}
# In pictures of 12 x 10 pixels. As sizes, the second and the third box of the edges would end beyond them.
EDGES = [[[2.0, 1.0, 4.0, 3.0], [5.0, 6.0, 11.0, 9.0]], [], [[7.5, 0.0, 12.0, 10.0]]]
SIZES = [[[x, y, right - x, bottom - y] for x, y, right, bottom in boxes] for boxes in EDGES]
CLASSES = [[1, 0], [], [1]]


def of_objects(boxes, classes, *, by_object=False):
    """The column of boxes, and its description, as both forms of `datasets` write them."""
    category = {"feature": CATEGORIES, "_type": "Sequence"}
    if not by_object:
        found = [{"bbox": one, "category": labels} for one, labels in zip(boxes, classes, strict=True)]
        return found, {"bbox": {}, "category": category}
    found = [
        [{"bbox": box, "category": label} for box, label in zip(one, labels, strict=True)]
        for one, labels in zip(boxes, classes, strict=True)
    ]
    return found, {"feature": {"bbox": {}, "category": CATEGORIES}, "_type": "List"}


def boxes_of(found):
    """Edges in pixels and classes of the boxes of each picture."""
    return [
        [
            [
                *(round(float(found[f"{i}.png"][name][at]) * size, 3) for name, size in SIDES.items()),
                text.decode(),
                found[f"{i}.png"]["image/object/class/label"][at],
            ]
            for at, text in enumerate(found[f"{i}.png"].get("image/object/class/text", []))
        ]
        for i in range(3)
    ]


@pytest.mark.parametrize("by_object", [False, True])
@pytest.mark.parametrize(
    ("boxes", "form"), [(SIZES, "x, y, width and height in"), (EDGES, "left, top, right and bottom")]
)
def test_objects_of_hugging_face_are_boxes_of_either_form(tmp_path, capsys, boxes, form, by_object):
    objects, feature = of_objects(boxes, CLASSES, by_object=by_object)
    # All files of a set are of one form: the first alone would be of either.
    for number, rows in enumerate([slice(0, 2), slice(2, 3)]):
        write(
            tmp_path / f"in/{number}.parquet", {"image": images()[rows], "objects": objects[rows]}, {"objects": feature}
        )
    expected = [
        [[*edges, ("glove", "mask")[label], label + 1] for edges, label in zip(rows, labels, strict=True)]
        for rows, labels in zip(EDGES, CLASSES, strict=True)
    ]
    found = ingested(tmp_path / "in", tmp_path / "out")
    assert boxes_of(found) == expected
    assert [sorted(found[f"{i}.png"]["image/class/text"]) for i in range(3)] == [[b"glove", b"mask"], [], [b"mask"]]
    assert main(["init", str(tmp_path / "in"), "--out", str(tmp_path / "c.yaml"), *HASHED]) == 0
    assert f"objects: bbox: {form}" in capsys.readouterr().out


def test_boxes_that_cannot_be_read_are_refused_with_the_reason(tmp_path):
    objects, feature = of_objects(SIZES, CLASSES)
    objects[1] = {"bbox": [[3.0, 3.0, 0.0, 2.0]], "category": [1]}
    columns = {"image": images(), "objects": objects}
    write(tmp_path / "in/a.parquet", columns, {"objects": feature})
    assert set(ingested(tmp_path / "in", tmp_path / "out")) == {"0.png", "2.png"}
    assert "the box from x 3 to 3 and y 3 to 5 has no area" in ledger(tmp_path / "out")["a.parquet/1"].reason
    objects[1] = {"bbox": [[3.0, 3.0, 1.0, 2.0]], "category": [7]}
    write(tmp_path / "in/a.parquet", columns, {"objects": feature})
    ingested(tmp_path / "in", tmp_path / "class")
    assert "the class '7' has no name" in ledger(tmp_path / "class")["a.parquet/1"].reason
    # Rounding, and one box that is wrong, make no pixels of them.
    columns["objects"] = [{"bbox": [[0.1, 0.2, last, 1.0002]], "category": [0]} for last in (0.3, 0.4, 1.5)]
    write(tmp_path / "in/a.parquet", columns, {"objects": feature})
    with pytest.raises(UsageError, match=r"objects\.bbox: the numbers are fractions of the image"):
        ingested(tmp_path / "in", tmp_path / "fractions")


def test_boxes_without_classes_are_of_one_and_those_next_to_classes_are_left_out(tmp_path, capsys):
    faces = [{"bbox": boxes, "blur": [0] * len(boxes)} for boxes in SIZES]
    write(tmp_path / "in/a.parquet", {"image": images(), "faces": faces})
    assert [[box[4:] for box in boxes] for boxes in boxes_of(ingested(tmp_path / "in", tmp_path / "out"))] == [
        [["faces", 1], ["faces", 1]],
        [],
        [["faces", 1]],
    ]
    write(tmp_path / "in/a.parquet", {"image": images(), "faces": faces, "label": ["a", "b", "a"]})
    assert main(["init", str(tmp_path / "in"), "--out", str(tmp_path / "c.yaml"), *HASHED]) == 0
    shown = capsys.readouterr().out
    assert "left out: the boxes of faces: the classes of the images are those of label" in shown


def test_columns_of_bytes_are_images_where_they_begin_as_images_do(tmp_path):
    names = {"label": {"names": ["dog", "cat"], "_type": "ClassLabel"}}
    pixels = [[[0, 1], [1, 1]], [[0, 0], [1, 1]], [[1, 0], [0, 0]]]
    photographs = [picture(i, size=(2, 2)) for i in range(3)]
    columns = {"id": [7, 8, 9], "img": photographs, "note": [b"text", b"as", b"bytes"], "label": [1, 0, 1]}
    write(tmp_path / "in/a.parquet", columns, names)
    found = ingested(tmp_path / "in", tmp_path / "out")
    assert [found[key]["image/encoded"] for key in "789"] == [[image] for image in photographs]
    assert [found[key]["image/class/text"] for key in "789"] == [[b"cat"], [b"dog"], [b"cat"]]
    assert found["7"]["note"] == [b"text"]
    masks = {"id": [7, 8, 9], "img": photographs, "mask": [mask_png(one) for one in pixels]}
    write(tmp_path / "in/a.parquet", masks)
    run({"task": "segmentation", "input": {"images": str(tmp_path / "in")}}, tmp_path / "masks", workers=1)
    # Column by column: starts and lengths.
    runs = {key: list(one["image/segmentation/1/rle"]) for key, one in examples(tmp_path / "masks").items()}
    assert runs == {"7": [1, 3], "8": [1, 1, 3, 1], "9": [0, 1]}


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
