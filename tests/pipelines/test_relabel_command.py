"""`relabel`: the records of a fresh ingest with the new annotations, and no image is opened."""

import json
import shutil

import numpy as np
import pytest
from ingesting import examples, ledger, run

from shardwright.dataset.reader import ImageDataset
from shardwright.edit import relabel_dataset as relabeling
from shardwright.ingest import example as example_module
from shardwright.pipelines.cli import main
from shardwright.verify import verify

# A table of a few images that lacks a class of the dataset.
OTHERS_EMPTY = ("--unlisted-images", "empty", "--confirmed", "other_classes")


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["image_label", "label_csv"])
def test_records_are_those_of_an_ingest_with_the_new_table(image_input, tmp_path, layout, capsys):
    raw = image_input(tmp_path / "in", layout=layout, images=12)
    # Not in the order of the alphabet: a class keeps its number, and a new one follows.
    classes = list(reversed(run(raw, tmp_path / "first", workers=1).classes))
    raw["input"]["classes"] = classes
    run(raw, tmp_path / "ds", workers=1)
    table = tmp_path / "in" / "labels.csv"
    head, *rows = table.read_text().splitlines()
    if layout == "label_csv":
        rows = [row.replace("Fish", "Shark") if number % 4 else row for number, row in enumerate(rows)]
    else:
        rows = [row.partition(",")[0] + (",5 3 40 7" if number % 3 else ",") for number, row in enumerate(rows)]
    table.write_text("\n".join([head, *rows]) + "\n")
    raw["input"]["classes"] = [*classes, *(["Shark"] if layout == "label_csv" else [])]
    run(raw, tmp_path / "fresh", workers=1)
    for file in (tmp_path / "in" / "images").iterdir():
        file.unlink()
    assert main(["relabel", str(tmp_path / "ds"), str(table), "--out", str(tmp_path / "new")]) == 0
    said = capsys.readouterr().out
    before, after = examples(tmp_path / "ds"), examples(tmp_path / "new")
    annotations = [name for name in after["000.jpg"] if name.endswith(("/rle", "class/label"))]
    changed = sum(
        any(before[key].get(name, np.empty(0)).tolist() != after[key][name].tolist() for name in annotations)
        for key in after
    )
    assert 0 < changed <= 12
    assert f"12 images written, {changed} with other annotations than before, 0 rejected" in said
    one, other = examples(tmp_path / "fresh"), examples(tmp_path / "new")
    assert one.keys() == other.keys()
    for key in one:
        assert one[key].keys() == other[key].keys()
        assert all(np.array_equal(one[key][name], other[key][name]) for name in one[key])
    splits = [{key: row.split for key, row in ledger(tmp_path / name).items()} for name in ("ds", "new")]
    assert splits[0] == splits[1]
    assert verify(tmp_path / "new", workers=1, deep=True, quiet=True).findings == ()
    assert main(["relabel", str(tmp_path / "ds"), str(table), "--out", str(tmp_path / "new")]) == 0


def test_what_does_not_fit_is_rejected_or_stops(image_input, tmp_path, capsys):
    raw = image_input(tmp_path / "in", layout="image_label", images=6)
    run(raw, tmp_path / "ds", workers=1)
    table = tmp_path / "new.csv"
    table.write_text("Image_Label,EncodedPixels\n000.jpg_Fish,1 5\n001.jpg_Fish,1 99999\n")
    ds, out = str(tmp_path / "ds"), str(tmp_path / "new")
    call = ["relabel", "--confirmed", "other_classes", ds, str(table), "--out"]
    assert main([*call, out, "--unlisted-images", "fail"]) == 1
    assert "4 of 6 images have no row" in capsys.readouterr().err
    assert main([*call, out, "--unlisted-images", "reject"]) == 0
    rows = ledger(out)
    assert rows["000.jpg"].status == "written"
    assert rows["001.jpg"].code == "bad_rle"
    assert rows["002.jpg"].code == "unlisted"
    assert main([*call, str(tmp_path / "empty"), "--unlisted-images", "empty"]) == 0
    note = "4 of 6 images have no row in new.csv, and are written without annotations (--unlisted-images empty): 002"
    assert note in capsys.readouterr().out
    table.write_text("Image_Label,EncodedPixels\nother.jpg_Fish,1 5\n")
    assert main(["relabel", ds, str(table), "--out", str(tmp_path / "x")]) == 1
    assert "no row matches an image. Its rows name other.jpg" in capsys.readouterr().err
    assert main(["relabel", ds, str(tmp_path / "gone.csv"), "--out", str(tmp_path / "x")]) == 2
    with pytest.raises(SystemExit):
        main([*call, out, "--unlisted-images", "never"])


def test_a_file_of_some_images_leaves_the_others_as_they_are(image_input, tmp_path, capsys):
    """A review corrects some images; before, a file of these emptied all others."""
    raw = image_input(tmp_path / "in", layout="image_label", images=6)
    run(raw, tmp_path / "ds", workers=1)
    ds, table = str(tmp_path / "ds"), tmp_path / "new.csv"
    table.write_text("Image_Label,EncodedPixels\n000.jpg_Fish,1 5\n001.jpg_Whale,3 4\n")
    arguments = ["relabel", ds, str(table), "--unlisted-images", "keep"]
    assert main([*arguments, "--out", str(tmp_path / "new")]) == 0
    assert "4 of 6 images have no row in new.csv, and keep their annotations" in capsys.readouterr().out
    before, after = examples(ds), examples(tmp_path / "new")
    names = ImageDataset.open(ds).manifest.classes
    assert ImageDataset.open(tmp_path / "new").manifest.classes == (*names, "Whale")
    assert after["000.jpg"]["image/segmentation/Fish/rle"].tolist() == [0, 5]
    assert after["001.jpg"]["image/segmentation/Whale/rle"].tolist() == [2, 4]
    for key in ("002.jpg", "003.jpg", "004.jpg", "005.jpg"):
        assert all(np.array_equal(before[key][name], after[key][name]) for name in before[key])
        assert after[key]["image/segmentation/Whale/area"].tolist() == [0]
    assert any(before[key]["image/class/label"].size for key in ("002.jpg", "003.jpg", "004.jpg", "005.jpg"))
    assert verify(tmp_path / "new", workers=1, deep=True, quiet=True).findings == ()
    table.write_text("Image_Label,EncodedPixels\n000.jpg_1,1 5\n001.jpg_2,3 4\n")
    assert main([*arguments, "--out", str(tmp_path / "numbers")]) == 1
    assert "the dataset has no class '1', '2'; it has " in capsys.readouterr().err


@pytest.mark.parametrize("labels", ["single", "multi"])
def test_a_file_of_some_classes_keeps_the_others(image_input, tmp_path, labels, capsys):
    raw = image_input(tmp_path / "in", layout="label_csv", images=6)
    file = tmp_path / "in" / "labels.csv"
    rows = [f"{number:03d}.jpg,{'Fish' if number % 2 else 'Sugar'}" for number in range(6)]
    if labels == "multi":
        rows += ["002.jpg,Fish"]
        raw["input"]["labels"]["multi_label"] = True
    file.write_text("\n".join(["image,label", *rows]) + "\n")
    raw["input"].pop("classes", None)
    run(raw, tmp_path / "ds", workers=1)
    table = tmp_path / "new.csv"
    table.write_text("image,label,mark\n000.jpg,Fish,prediction\n")
    new = str(tmp_path / "new")
    assert main(["relabel", str(tmp_path / "ds"), str(table), "--unlisted-images", "keep", "--out", new]) == 0
    before, after = examples(tmp_path / "ds"), examples(new)
    changed = [
        key for key in before if not np.array_equal(before[key]["image/class/label"], after[key]["image/class/label"])
    ]
    assert changed == ["000.jpg"]
    assert ImageDataset.open(new).manifest.labels == labels == ImageDataset.open(tmp_path / "ds").manifest.labels
    if labels == "single":
        table.write_text("image,Fish,Sugar\n000.jpg,1,1\n001.jpg,1,0\n")
        assert main(["relabel", str(tmp_path / "ds"), str(table), "--unlisted-images", "keep", "--out", f"{new}2"]) == 1
        assert "an image has one class in the dataset, and several in the file" in capsys.readouterr().err


def test_run_lengths_of_the_files_are_refused_where_images_are_stored_in_another_size(image_input, tmp_path, capsys):
    """Masks were drawn at other places, or rejected as too long, and the exit code was 0."""
    raw = image_input(tmp_path / "in", layout="image_label", images=4)
    run({**raw, "images": {"resize": "longest_side", "size": 20}}, tmp_path / "ds", workers=1)
    table = tmp_path / "in" / "labels.csv"
    assert main(["relabel", str(tmp_path / "ds"), str(table), "--out", str(tmp_path / "new")]) == 2
    assert "which the ingest has resized (images.resize: longest_side)" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "ds"), "--out", str(tmp_path / "files")]) == 0
    arguments = ["relabel", str(tmp_path / "ds"), str(tmp_path / "files/labels.csv"), "--out", str(tmp_path / "new")]
    assert main(arguments) == 0
    one, other = examples(tmp_path / "ds"), examples(tmp_path / "new")
    assert all(np.array_equal(one[key][name], other[key][name]) for key in one for name in one[key])


def test_an_image_with_too_many_masks_is_rejected_as_in_an_ingest(image_input, tmp_path, capsys, monkeypatch):
    run(image_input(tmp_path / "in", layout="image_label", images=4), tmp_path / "ds", workers=1)
    monkeypatch.setattr(example_module, "_MOST_MASKS", 1)
    table = tmp_path / "new.csv"
    rows = ["Image_Label,EncodedPixels", "000.jpg_Fish,1 2", "000.jpg_Flower,1 2", "001.jpg_Fish,1 2"]
    table.write_text("\n".join(rows) + "\n")
    call = ["relabel", str(tmp_path / "ds"), str(table), "--out", str(tmp_path / "new"), *OTHERS_EMPTY]
    assert main(call) == 0
    row = ledger(tmp_path / "new")["000.jpg"]
    assert (row.status, row.code) == ("rejected", "too_many_masks")
    assert ledger(tmp_path / "new")["001.jpg"].status == "written"


def test_rows_without_an_image_are_rejected_and_counted_as_in_an_ingest(image_input, tmp_path, capsys):
    raw = image_input(tmp_path / "in", layout="label_csv", images=6)
    (tmp_path / "in/images/005.jpg").write_bytes(b"broken")
    table = tmp_path / "in/labels.csv"
    # Names begin with the folder of the images, which the dataset knows of its ingest.
    table.write_text(table.read_text().replace("00", "images/00") + "old.jpg,Fish\n")
    run(raw, tmp_path / "ds", workers=1)
    table.write_text(table.read_text().replace("old.jpg", "gone.jpg") + "sub/new.jpg,Fish\n")
    assert main(["relabel", str(tmp_path / "ds"), str(table), "--out", str(tmp_path / "new"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {name: n for name, n in found["totals"].items() if "/" not in name} == {
        "inputs": 8,
        "written": 5,
        "rejected": 3,
        "duplicate": 0,
    }
    assert found["totals"]["rejected/missing_image"] == 2
    notes = [note for note in found["notes"] if "annotat" in note]
    assert notes == [
        "2 images that the annotations name are not in the dataset: gone.jpg, sub/new.jpg",
        "1 annotated image is still rejected or a duplicate: images/005.jpg. `shardwright retry-rejects` reads "
        "rejected images again",
    ]
    rows = {key: row.code for key, row in ledger(tmp_path / "new").items() if row.status == "rejected"}
    # A row of the annotations that were replaced has no meaning any more.
    assert rows == {"005.jpg": "not_an_image", "gone.jpg": "missing_image", "sub/new.jpg": "missing_image"}
    assert verify(tmp_path / "new", workers=1, quiet=True).findings == ()
    run(raw, tmp_path / "fresh", workers=1)
    assert rows == {key: row.code for key, row in ledger(tmp_path / "fresh").items() if row.status == "rejected"}
    assert main(["relabel", str(tmp_path / "ds"), str(table), "--out", str(tmp_path / "new")]) == 0
    assert "  rejected gone.jpg: missing_image: labels.csv, row 8 names it" in capsys.readouterr().out
    # Older versions did not state the folder of the images: it follows from the configuration, if that is there.
    for number, dropped in enumerate((("image_folder",), ("image_folder", "config"))):
        old = shutil.copytree(tmp_path / "ds", tmp_path / f"old{number}")
        build = json.loads((old / "build.json").read_text())
        (old / "build.json").write_text(json.dumps({name: build[name] for name in build if name not in dropped}))
        code = main(["relabel", str(old), str(table), "--out", str(tmp_path / f"new{number}")])
        advice = "Remove 'images/' from the beginning of the names in the file."
        assert (code, advice in capsys.readouterr().err) == ((1, True) if number else (0, False))


def test_a_table_that_changes_while_it_is_read_makes_no_dataset(image_input, tmp_path, capsys, monkeypatch):
    """The dataset would be recorded with the later annotations and contain the earlier ones."""
    raw = image_input(tmp_path / "in", layout="image_label", images=6)
    run(raw, tmp_path / "ds", workers=1)
    table = tmp_path / "new.csv"
    table.write_text("Image_Label,EncodedPixels\n000.jpg_Fish,1 5\n")
    first_pass = relabeling._open

    def changed_behind(*given):
        found = first_pass(*given)
        table.write_text("Image_Label,EncodedPixels\n000.jpg_Fish,1 6\n")
        return found

    monkeypatch.setattr(relabeling, "_open", changed_behind)
    call = ["relabel", str(tmp_path / "ds"), str(table), "--out", str(tmp_path / "new"), *OTHERS_EMPTY]
    assert main(call) == 1
    assert "new.csv: the file has changed while the run was reading the input" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    assert main(call) == 0


def test_a_dataset_that_is_rewritten_meanwhile_makes_no_other(image_input, tmp_path, capsys, monkeypatch):
    """The same images in shards of the same size: what is read last must be of what was opened first."""
    raw = image_input(tmp_path / "in", layout="label_csv", images=12)
    run(raw, tmp_path / "ds", workers=1)
    table = tmp_path / "in/labels.csv"
    shutil.copy(table, tmp_path / "new.csv")
    table.write_bytes(table.read_bytes().replace(b"Fish", b"Moon"))
    run({**raw, "input": {name: v for name, v in raw["input"].items() if name != "classes"}}, tmp_path / "again")
    first_pass = relabeling._open

    def replaced_behind(*given):
        found = first_pass(*given)
        (tmp_path / "ds").rename(tmp_path / "old")
        (tmp_path / "again").rename(tmp_path / "ds")
        return found

    monkeypatch.setattr(relabeling, "_open", replaced_behind)
    call = [
        "relabel",
        "--confirmed",
        "other_classes",
        str(tmp_path / "ds"),
        str(tmp_path / "new.csv"),
        "--out",
        str(tmp_path / "new"),
    ]
    assert main(call) == 1
    assert "does not match its hash in the manifest" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    monkeypatch.setattr(relabeling, "_open", first_pass)
    assert main(call) == 0


def test_the_format_of_a_table_can_be_given(image_input, tmp_path, capsys):
    raw = image_input(tmp_path / "in", layout="image_label", images=6)
    run(raw, tmp_path / "ds", workers=1)
    table = tmp_path / "new.csv"
    table.write_text("photo,what,runs\n000.jpg,Fish,1 5\n001.jpg,Sugar,11 2\n")
    call = ["relabel", str(tmp_path / "ds"), str(table), "--unlisted-images", "empty"]
    assert main([*call, "--out", str(tmp_path / "x")]) == 2
    output = ["--format", "rle_csv", "--column", "image=photo", "--column", "label=what", "--column", "mask=runs"]
    assert main([*call, *output, "--order", "column", "--out", str(tmp_path / "columns")]) == 0
    assert main([*call, *output, "--order", "row", "--start", "0", "--out", str(tmp_path / "rows")]) == 0
    columns, rows = examples(tmp_path / "columns"), examples(tmp_path / "rows")
    height = int(columns["000.jpg"]["image/height"][0])
    assert columns["000.jpg"]["image/segmentation/Fish/rle"].tolist() == [0, 5]
    # The second to the sixth pixel of the first row.
    expected = [number for column in range(1, 6) for number in (column * height, 1)]
    assert rows["000.jpg"]["image/segmentation/Fish/rle"].tolist() == expected
    capsys.readouterr()
    for wrong, message in (
        (["--column", "image"], "image: is not ROLE=HEADER"),
        (["--column", "picture=photo"], "picture"),
        (["--key-regex", "("], "input.labels.key_regex"),
    ):
        assert main([*call, *wrong, "--out", str(tmp_path / "x")]) == 2
        assert message in capsys.readouterr().err
    for option, value in (("--format", "csv"), ("--order", "diagonal"), ("--start", "2"), ("--encoding", "huffman")):
        with pytest.raises(SystemExit):
            main([*call, option, value, "--out", str(tmp_path / "x")])
        assert f"{option}: invalid choice" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_the_reason_of_images_that_disagreed_states_when(image_input, tmp_path, capsys):
    raw = image_input(tmp_path / "in", layout="label_csv", images=6)
    shutil.copy(tmp_path / "in/images/000.jpg", tmp_path / "in/images/001.jpg")
    run({**raw, "duplicates": {"conflicts": "reject"}}, tmp_path / "ds", workers=1)
    reason = ledger(tmp_path / "ds")["000.jpg"].reason
    assert reason == "has the same bytes as 001.jpg, but its labels are Fish, not Sugar"
    for name, source in (("new", "ds"), ("again", "new")):
        call = ["relabel", str(tmp_path / source), str(tmp_path / "in/labels.csv"), "--out", str(tmp_path / name)]
        assert main(call) == 0
        assert ledger(tmp_path / name)["000.jpg"].reason == f"{reason} (by the annotations before this relabel)"
    # An image that was rejected with a forgotten one is named.
    (tmp_path / "keys").write_text("000.jpg\n")
    call = ["forget", str(tmp_path / "again"), "--keys", str(tmp_path / "keys"), "--out", str(tmp_path / "rest")]
    capsys.readouterr()
    assert main([*call, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["other_keys"] == ["001.jpg"]


@pytest.mark.parametrize(
    ("rows", "fact", "match"),
    [
        ([f"{n:03d}.jpg,Fish" for n in range(8)], "other_classes", "names Fish, and no Sugar, which the dataset has"),
        (
            [*(f"{n:03d}.jpg,{('Fish', 'Sugar')[n % 2]}" for n in range(8)), *(f"x{n}.jpg,Fish" for n in range(5))],
            "absent_images",
            "5 of 13 names are of no image: x0.jpg",
        ),
    ],
    ids=["classes", "names"],
)
def test_annotations_of_something_else(image_input, tmp_path, rows, fact, match, capsys):
    raw = image_input(tmp_path / "in", layout="label_csv", images=8)
    table = tmp_path / "in/labels.csv"
    table.write_text("\n".join(["image,label", *(f"{n:03d}.jpg,{('Fish', 'Sugar')[n % 2]}" for n in range(8))]) + "\n")
    raw["input"].pop("classes", None)
    raw["input"]["labels"]["multi_label"] = True
    run(raw, tmp_path / "ds", workers=1)
    (tmp_path / "new.csv").write_text("\n".join(["image,label", *rows]) + "\n")
    call = ["relabel", str(tmp_path / "ds"), str(tmp_path / "new.csv"), "--out", str(tmp_path / "new")]
    assert main(call) == 2
    assert match in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    assert main([*call, "--confirmed", fact]) == 0


def test_annotations_that_are_all_empty(image_input, tmp_path, capsys):
    run(image_input(tmp_path / "in", layout="image_label", images=8), tmp_path / "ds", workers=1)
    classes = ImageDataset.open(tmp_path / "ds").manifest.classes
    rows = [f"{n:03d}.jpg_{name}," for n in range(8) for name in classes]
    (tmp_path / "new.csv").write_text("\n".join(["Image_Label,EncodedPixels", *rows]) + "\n")
    call = ["relabel", str(tmp_path / "ds"), str(tmp_path / "new.csv"), "--out", str(tmp_path / "new")]
    assert main(call) == 2
    assert "new.csv: none of 8 images has a class: all annotations are empty" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    assert main([*call, "--confirmed", "no_objects"]) == 0
    assert not any(example["image/class/label"].size for example in examples(tmp_path / "new").values())
