"""`shardwright init` on folders with more in them than a set: nothing is lost, nothing strange becomes data in silence.

For each kind of folder there are several members, drawn here. Either the configuration that is written gives the right
images, or there is a question; and every answer of a question, pasted, works, with the counts that it promises.
"""

import json
import re
import shlex
from collections import Counter

import layouts
import pytest
from PIL import Image

from shardwright.config import load_config
from shardwright.dataset.manifest import Manifest
from shardwright.dataset.outputs import without_excluded
from shardwright.errors import UsageError
from shardwright.pipelines.cli import main
from shardwright.storage import list_inputs

SIZE = (24, 24)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Drawn:
    """Draws a folder; every image has other pixels than all others."""

    def __init__(self, root):
        self.root, self.number = root, 0

    def images(self, *paths):
        for path in paths:
            layouts.image(self.root / path, self.number, SIZE)
            self.number += 1
        return paths

    def many(self, pattern, count):
        return self.images(*(pattern.format(i) for i in range(count)))

    def masks(self, pattern, count):
        for i in range(count):
            path = self.root / pattern.format(i)
            path.parent.mkdir(parents=True, exist_ok=True)
            mask = Image.new("L", SIZE, 0)
            mask.paste(1, (2, 2, 8 + i % 5, 9))
            mask.save(path)

    def coco(self, file, names):
        rows = [{"id": i, "file_name": name, "height": 24, "width": 24} for i, name in enumerate(names)]
        polygon = {"segmentation": [[2, 2, 9, 2, 9, 9, 2, 9]], "bbox": [2, 2, 7, 7], "area": 49, "iscrowd": 0}
        marked = [{"id": i, "image_id": i, "category_id": 1, **polygon} for i in range(len(names))]
        text = json.dumps({"images": rows, "annotations": marked, "categories": [{"id": 1, "name": "leaf"}]})
        self.text(file, text)

    def yolo(self, pattern, count):
        for i in range(count):
            self.text(pattern.format(i), "0 0.5 0.5 0.2 0.2\n")

    def text(self, file, text):
        (self.root / file).parent.mkdir(parents=True, exist_ok=True)
        (self.root / file).write_text(text)


def ingest(config="c.yaml"):
    """Ingests; returns the totals, and the number of images that were written of each class folder or table."""
    assert main(["ingest", config, "--out", "out", "--workers", "1"]) == 0
    with open("out/manifest.json") as file:
        return Manifest.from_json(file.read()).totals


def written():
    """Returns the keys of the images in the dataset, by split."""
    rows = [json.loads(line) for file in _ledger() for line in file.read_text().splitlines()]
    return {row["key"]: row["split"] for row in rows if row["status"] == "written"}


def _ledger():
    from pathlib import Path

    return sorted(Path("out/ledger").glob("*.jsonl"))


def answers(error):
    """Returns the commands that a question lists, each with what it promises."""
    found = re.findall(r"^ *(shardwright init .*)\n *# (.*?)(?: \(shardwright docs [^)]*\))?$", error, re.M)
    return [(shlex.split(command)[1:], promised) for command, promised in found]


def check_answers(error, expected=None):
    """Pastes each answer: it works, its counts are true, and one of them gives the expected images."""
    import shutil

    listed = answers(error)
    assert 1 <= len(listed) <= 3, error
    results = []
    for command, promised in listed:
        assert main([*command, "--force"]) == 0, (command, promised)
        shutil.rmtree("out", ignore_errors=True)
        totals = ingest()
        images = re.search(r"([\d,]+) images?(?:;|$)", promised)
        assert int(images[1].replace(",", "")) == totals["written"], promised
        # The last part; classes may have names of splits, too.
        splits = re.search(r"; ((?:(?:train|eval|test) \d+(?:, )?)+)(?:; rejected.*)?$", promised)
        for split, count in re.findall(r"(train|eval|test) (\d+)", splits[1] if splits else ""):
            assert totals.get(f"records/{split}", 0) == int(count), promised
        results.append(set(written()))
    assert expected is None or set(expected) in results, (expected, results)
    return results


def folders(draw, *others):
    """Two classes, and further folders of pictures, as (folder, number)."""
    draw.many("cat/c{}.png", 12)
    draw.many("dog/d{}.png", 12)
    for folder, count in others:
        draw.many(folder + "/{}.png", count)


ASIDE = ["assets", "results", "docs/figures", "screenshots", "plots", "preview_images", "sample_predictions", "logos"]


@pytest.mark.parametrize("folder", [ASIDE[0], *(pytest.param(name, marks=pytest.mark.slow) for name in ASIDE[1:])])
@pytest.mark.parametrize("count", [2, 9])
def test_pictures_about_a_set_are_no_class(here, capsys, folder, count):
    folders(Drawn(here / "data"), (folder, count))
    status = main(["init", "data", "--out", "c.yaml"])
    wanted = {f"{label}/{label[0]}{i}.png" for label in ("cat", "dog") for i in range(12)}
    if status == 0:
        assert count == 2
        ingest()
        assert set(written()) == wanted
        assert folder.partition("/")[0] in capsys.readouterr().out
    else:
        check_answers(capsys.readouterr().err, wanted)


@pytest.mark.parametrize("copy", ["cropped", "augmented", "backup"])
@pytest.mark.parametrize("beside", [True, False], ids=["beside the classes", "beside the folder of the classes"])
def test_second_copies_are_a_question(here, capsys, copy, beside):
    draw = Drawn(here / "data")
    for base in ("" if beside else "original/", f"{copy}/"):
        draw.many(base + "cat/c{}.png", 8)
        draw.many(base + "dog/d{}.png", 8)
    assert main(["init", "data", "--out", "c.yaml"]) == 2
    results = check_answers(capsys.readouterr().err)
    assert any(len(keys) == 16 for keys in results)
    assert not (here / "data.yaml").exists()


def masks(draw):
    draw.many("images/t{}.jpg", 8)
    draw.masks("masks/t{}.png", 8)


def yolo(draw):
    draw.many("images/t{}.jpg", 8)
    draw.yolo("labels/t{}.txt", 8)
    draw.text("data.yaml", "path: /home/somebody/data\ntrain: images\nval: images\nnames: [leaf]\n")


def yolo_without_yaml(draw):
    draw.many("images/t{}.jpg", 8)
    draw.yolo("labels/t{}.txt", 8)


def coco(draw):
    draw.coco("instances.json", [path[7:] for path in draw.many("images/t{}.jpg", 8)])


def table(draw):
    names = [path[7:] for path in draw.many("images/t{}.jpg", 8)]
    draw.text("labels.csv", "image,label\n" + "".join(f"{name},{'ab'[i % 2]}\n" for i, name in enumerate(names)))


@pytest.mark.parametrize(
    "set_of", [masks, yolo, *(pytest.param(draw, marks=pytest.mark.slow) for draw in (yolo_without_yaml, coco, table))]
)
@pytest.mark.parametrize(
    ("folder", "name"),
    [("preview", "t{}_preview.png"), ("overlays", "{}.png"), ("boxes", "t{}_drawn.png"), ("more", "x{}.jpg")],
)
def test_pictures_beside_an_annotated_set_are_no_data_in_silence(here, capsys, set_of, folder, name):
    draw = Drawn(here / "data")
    set_of(draw)
    draw.many(f"{folder}/{name}", 8)
    status = main(["init", "data", "--out", "c.yaml"])
    streams = capsys.readouterr()
    wanted = {f"t{i}.jpg" for i in range(8)}
    if status == 0:
        assert folder != "more" or set_of is yolo
        ingest()
        assert {key.rpartition("/")[2] for key in written()} == wanted
        assert folder in streams.out
    else:
        results = check_answers(streams.err)
        assert any({key.rpartition("/")[2] for key in keys} == wanted for keys in results)


def one_image_without_annotations(draw, kind, ending):
    names = {"train": [f"t{i}.png" for i in range(8)], ending: ["v0.png", "v1.png"]}
    for folder, files in names.items():
        draw.images(*(f"{folder}/{file}" for file in files))
        rows = [file for file in files if file != "t0.png"]
        if kind == "coco":
            draw.coco(f"{folder}/_annotations.coco.json", rows)
        elif kind == "boxes":
            lines = [f"{file},24,24,a,2,2,8,8" for file in rows]
            head = "filename,width,height,class,xmin,ymin,xmax,ymax"
            draw.text(f"{folder}/_annotations.csv", "\n".join([head, *lines]) + "\n")
        elif kind == "coco at the root":
            draw.coco(f"instances_{folder}.json", rows)
    if kind == "one table":
        lines = [
            f"{file},{'ab'[i % 2]}" for files in names.values() for i, file in enumerate(files) if file != "t0.png"
        ]
        draw.text("labels.csv", "\n".join(["image,label", *lines]) + "\n")


@pytest.mark.parametrize("kind", ["coco", "boxes", "one table", "coco at the root"])
@pytest.mark.parametrize("ending", ["valid", "val"])
def test_one_image_without_annotations_does_not_cost_a_split(here, capsys, kind, ending):
    one_image_without_annotations(Drawn(here / "data"), kind, ending)
    assert main(["init", "data", "--out", "c.yaml"]) == 2
    error = capsys.readouterr().err
    assert "train/t0.png" in error
    results = check_answers(error)
    assert {len(keys) for keys in results} == {9, 10}
    splits = Counter(written().values())
    assert splits["eval"] == 2


def test_a_picture_beside_the_splits_does_not_cost_one(here, capsys):
    draw = Drawn(here / "data")
    for folder, count in (("train", 8), ("valid", 2)):
        names = [path.rpartition("/")[2] for path in draw.many(folder + "/" + folder[0] + "{}.png", count)]
        draw.coco(f"{folder}/_annotations.coco.json", names)
    draw.images("overview.png")
    assert main(["init", "data", "--out", "c.yaml"]) == 0
    assert "overview.png" in capsys.readouterr().out
    totals = ingest()
    assert (totals["records/train"], totals["records/eval"], totals["rejected"]) == (8, 2, 0)


def test_a_broken_file_of_a_split_is_an_error_about_it(here, capsys):
    draw = Drawn(here / "data")
    for folder, count in (("train", 8), ("valid", 2)):
        names = [path.rpartition("/")[2] for path in draw.many(folder + "/" + folder[0] + "{}.png", count)]
        draw.coco(f"{folder}/_annotations.coco.json", names)
    file = here / "data/train/_annotations.coco.json"
    file.write_text(file.read_text()[:-300])
    assert main(["init", "data", "--out", "c.yaml"]) == 2
    assert "train/_annotations.coco.json: is not JSON" in capsys.readouterr().err
    assert not (here / "c.yaml").exists()


@pytest.mark.parametrize("count", [8, 12, 31])
def test_small_sets_get_every_class_in_every_split(here, count):
    draw = Drawn(here / "data")
    draw.many("images/{}.jpg", count)
    draw.masks("masks/{}.png", count)
    assert main(["init", "data", "--out", "c.yaml"]) == 0
    totals = ingest()
    assert all(totals[f"records/{split}"] for split in ("train", "eval", "test"))


def test_a_class_with_too_few_images_is_a_question(here, capsys):
    draw = Drawn(here / "data")
    draw.many("cat/{}.png", 20)
    draw.many("rare/{}.png", 2)
    assert main(["init", "data", "--out", "c.yaml"]) == 2
    error = capsys.readouterr().err
    assert "rare" in error
    check_answers(error)


def test_official_splits_in_a_column_or_in_lists_are_taken(here):
    draw = Drawn(here / "data")
    names = [path[7:] for path in draw.many("images/t{}.jpg", 20)]
    split = [("train", "val", "test")[(i % 10 == 8) + 2 * (i % 10 == 9)] for i in range(20)]
    rows = [f"{name},{'ab'[i % 2]},{split[i]}" for i, name in enumerate(names)]
    draw.text("labels.csv", "\n".join(["image,label,subset", *rows]) + "\n")
    assert main(["init", "data", "--out", "c.yaml"]) == 0
    assert load_config("c.yaml").split.from_column == "subset"
    ingest()
    assert {key: {"eval": "val"}.get(name, name) for key, name in written().items()} == dict(
        zip(names, split, strict=True)
    )
    draw.text("labels.csv", "\n".join(["image,label", *(row.rpartition(",")[0] for row in rows)]) + "\n")
    for word in ("train", "val", "test"):
        draw.text(f"{word}.txt", "".join(f"{n}\n" for n, s in zip(names, split, strict=True) if s == word))
    assert main(["init", "data", "--out", "c.yaml", "--force"]) == 0
    assert set(load_config("c.yaml").split.from_lists) == {"train", "eval", "test"}


def test_images_without_a_stated_split_are_a_question(here, capsys):
    draw = Drawn(here / "data")
    for folder in ("train", "val", "new"):
        draw.many(folder + "/" + folder + "{}.png", 8)
    names = [path.name for path in sorted((here / "data").rglob("*.png"))]
    draw.text("labels.csv", "image,label\n" + "".join(f"{name},{'ab'[i % 2]}\n" for i, name in enumerate(names)))
    assert main(["init", "data", "--out", "c.yaml"]) == 2
    error = capsys.readouterr().err
    assert "new/new0.png" in error
    check_answers(error)


@pytest.mark.parametrize("share", [0.5, 0])
def test_the_limit_of_rejects_is_never_raised(here, capsys, share):
    draw = Drawn(here / "data")
    draw.many("cat/c{}.jpg", 40)
    draw.many("dog/d{}.jpg", 40)
    for i in range(int(80 * share)):
        draw.text(f"{'cat' if i % 2 else 'dog'}/bad{i}.jpg", f"<html>{i}</html>")
    status = main(["init", "data", "--out", "c.yaml"])
    assert status == (2 if share else 0)
    if status:
        ((command, promised),) = answers(capsys.readouterr().err)
        assert "40 inputs are rejected: 80 images" in promised
        assert main(command) == 0
    else:
        assert load_config("c.yaml").rejects.max_fraction == 0.01
    assert ingest()["written"] == 80


@pytest.mark.parametrize(
    ("header", "sound", "broken", "told"),
    [
        ("image,label", "{},{}", "{},cat,5", "row 5: 3 fields, the header has 2 ('i3.png,cat,5')"),
        ("image,label", "{},{}", "{}", "row 5: 1 field, the header has 2 ('i3.png')"),
        ("image,label", "{},{}", "{},", "row 5: names no class"),
        ("image,label", "{0},{1}", "{0},cat\n{0},dog", "row 6: states 'dog', row 5 states 'cat'"),
        ("image,EncodedPixels,ClassId", "{},20 5 44 5,{}", "{},20 5 44 5,", "row 5: has a mask but names no class"),
        ("image,age", "{},7.5", "{},?", "row 5: column age: '?' is not a number"),
    ],
)
def test_the_image_of_a_broken_row_can_be_left_out(here, capsys, header, sound, broken, told):
    draw = Drawn(here / "data")
    names = [path[7:] for path in draw.many("images/i{}.png", 12)]
    rows = [(broken if i == 3 else sound).format(name, ("cat", "dog")[i % 2]) for i, name in enumerate(names)]
    draw.text("labels.csv", "\n".join([header, *rows, ""]))
    assert main(["init", "data", "--out", "c.yaml"]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert "Correct the row, or leave the image out." in error
    ((command, promised),) = answers(error)  # More rejects would give the same images.
    assert 'input.exclude=["i3.png"]' in command
    assert not any("rejects" in part for part in command)
    assert "i3.png is not part of the set: 11 images" in promised
    assert main(command) == 0
    assert ingest()["written"] == 11


def test_a_table_without_a_header_loses_no_row(here):
    draw = Drawn(here / "data")
    names = [path[7:] for path in draw.many("images/i{}.png", 12)]
    draw.text("labels.csv", "".join(f"{name},{'ab'[i % 2]}\n" for i, name in enumerate(names)))
    assert main(["init", "data", "--out", "c.yaml"]) == 0
    assert ingest()["written"] == 12


def test_images_alone_ask_for_their_classes(here, capsys):
    Drawn(here / "data").many("IMG_{}.jpg", 12)
    assert main(["init", "data", "--out", "c.yaml"]) == 2
    (answer, _), *others = answers(capsys.readouterr().err)
    assert not others
    assert answer[-2:] == ["--set", "input.labels.format=none"]


def test_files_of_systems_are_no_input(here):
    draw = Drawn(here / "data")
    folders(draw, ("cat/@eaDir/c1.png", 3), ("__MACOSX/cat", 2), ("dog/.thumbnails", 2))
    assert main(["init", "data", "--out", "c.yaml"]) == 0
    assert ingest()["inputs"] == 24


def test_exclude_names_folders_files_and_globs(here):
    Drawn(here / "data").images("a/1.png", "a/b/2.png", "c/3.png", "4.png", "c/x_5.png")
    listing = list_inputs(str(here / "data"))

    def left(*patterns):
        return list(without_excluded(listing, patterns)[0].keys)

    assert left("a") == left("a/") == ["4.png", "c/3.png", "c/x_5.png"]
    assert left("*.png") == ["a/1.png", "a/b/2.png", "c/3.png", "c/x_5.png"]
    assert left("**/x_*", "a/b") == ["4.png", "a/1.png", "c/3.png"]
    assert without_excluded(listing, ["c/*.png", "none"])[1].endswith("c/*.png 2, none 0")
    with pytest.raises(UsageError, match="leaves out all 5 files"):
        without_excluded(listing, ["**"])


@pytest.mark.parametrize("other", ["all", "results", "extra"])
def test_a_folder_beside_splits_is_a_question(here, capsys, other):
    draw = Drawn(here / "data")
    for folder in ("train", "val", other):
        draw.many(folder + "/cat/c" + folder + "{}.png", 8)
        draw.many(folder + "/dog/d" + folder + "{}.png", 8)
    assert main(["init", "data", "--out", "c.yaml"]) == 2
    official = {
        f"{split}/{label}/{label[0]}{split}{i}.png"
        for split in ("train", "val")
        for label in ("cat", "dog")
        for i in range(8)
    }
    check_answers(capsys.readouterr().err, official)


def test_images_to_test_are_left_out_although_a_table_names_equal_files(here, capsys):
    draw = Drawn(here / "data")
    draw.many("test/{}.png", 8)
    draw.many("train/{}.png", 8)
    draw.text("train.csv", "image,label\n" + "".join(f"{i}.png,{'ab'[i % 2]}\n" for i in range(8)))
    assert main(["init", "data", "--out", "c.yaml"]) == 0
    assert "left out: test/ (8 images)" in capsys.readouterr().out
    assert load_config("c.yaml").input.images == "data/train"


def test_images_to_test_between_masks_of_several_splits(here):
    draw = Drawn(here / "data")
    for folder in ("train", "val"):
        draw.many(folder + "/images/" + folder + "{}.png", 8)
        draw.masks(folder + "/masks/" + folder + "{}.png", 8)
    draw.many("test/images/x{}.png", 8)
    assert main(["init", "data", "--out", "c.yaml"]) == 0
    totals = ingest()
    assert (totals["records/train"], totals["records/eval"], totals["written"]) == (8, 8, 16)


def test_smaller_copies_of_the_images_are_a_question(here, capsys):
    draw = Drawn(here / "data")
    draw.many("images/t{}.jpg", 8)
    draw.many("images_small/t{}.jpg", 8)
    draw.masks("masks/t{}.png", 8)
    assert main(["init", "data", "--out", "c.yaml"]) == 2
    check_answers(capsys.readouterr().err, {f"t{i}.jpg" for i in range(8)})


BOXES = ["--task", "classification", "--set", "input.labels.boxes=true"]


def _cases():
    import os
    from pathlib import Path

    folder = Path(os.environ.get("SHARDWRIGHT_TEST_DATA", Path(__file__).parents[3] / "shared/data")) / "cases"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


@pytest.mark.shared_data
@pytest.mark.slow
@pytest.mark.parametrize("name", _cases())
def test_a_case_is_written_so_that_ingest_takes_it_or_each_of_its_answers_is(here, capsys, shared_data, name):
    import shutil

    shutil.copytree(shared_data / "cases" / name, "case")
    folder = "case/set" if (here / "case/set").is_dir() else "case"
    more = BOXES if name.startswith(("box_", "vary-box")) else []
    status = main(["init", folder, *more, "--out", "c.yaml", "--show=x.png"])
    error = capsys.readouterr().err
    if not status:
        ingest()
    elif listed := answers(error):
        check_answers(error)
        assert Image.open("x.png").width == 12 - 8 + len(listed) * 288
    else:
        assert not (here / "c.yaml").exists()
        assert "case" in error


def test_each_folder_is_listed_once_and_each_table_read_once(here, monkeypatch):
    from shardwright import storage

    draw, seen = Drawn(here / "data"), []
    draw.many("images/{}.png", 8)
    (here / "data/labels.csv").write_text("image,label\n" + "".join(f"{i}.png,{'ab'[i % 2]}\n" for i in range(8)))
    listed, read = storage.local.list_files, storage.read_bytes
    monkeypatch.setattr(storage.local, "list_files", lambda *given: seen.append(given[:2]) or listed(*given))
    monkeypatch.setattr(
        storage, "read_bytes", lambda path, *given, **further: seen.append(path) or read(path, *given, **further)
    )
    assert main(["init", "data", "--out", "c.yaml"]) == 0
    folders, tables = (
        [one for one in seen if isinstance(one, tuple)],
        [one for one in seen if str(one).endswith(".csv")],
    )
    assert len(folders) == len(set(folders)) == 2
    assert len(tables) == 1
