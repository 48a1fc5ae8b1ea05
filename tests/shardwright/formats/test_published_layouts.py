"""Folders as published sets have them, made small: what `init` detects, and what the ingest makes of it.

Each layout is that of a set which people train on: its names of files and columns, and the files that are next to them.
"""

import csv
import json
import shlex
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import yaml
from ingesting import examples
from PIL import Image

from shardwright.config import load_config
from shardwright.ingest import ingest
from shardwright.masks.rle import draw, from_flat
from shardwright.pipelines.cli import main

SIZE = (24, 36)
# Where so few images leave a class out of a split, which is a question of its own.
HASHED = ("--set", "split.method=hash")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def photo(path, number=0, **how):
    path = Path("set", path)
    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(number)
    Image.fromarray(random.integers(0, 256, (*SIZE, 3), np.uint8)).save(path, **how)


def area(number):
    rows, columns = np.mgrid[: SIZE[0], : SIZE[1]]
    return np.hypot(rows - 9 - number % 5, columns - 12 - number % 7) < 5


def mask(path, pixels, **how):
    path = Path("set", path)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(pixels)).save(path, **how)


def table(name, rows, separator=","):
    path = Path("set", name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=separator).writerows(rows)


def init(*options):
    return main(["init", "set", "--out", "c.yaml", *options])


def read(*options):
    """Returns the name of each image -> its example, and the configuration."""
    assert init(*options) == 0
    manifest = ingest(load_config("c.yaml"), "out", quiet=True)
    found = {key.rpartition("/")[2]: example for key, example in examples("out").items()}
    assert manifest.totals["rejected"] == 0
    return found, yaml.safe_load(Path("c.yaml").read_text())


def classes(found):
    return {name: [text.decode() for text in example.get("image/class/text", [])] for name, example in found.items()}


def drawn(example, label):
    return draw(from_flat(np.array(example[f"image/segmentation/{label}/rle"])), *SIZE).astype(bool)


def boxes(example):
    edges = [np.array(example.get(f"image/object/bbox/{edge}", [])) for edge in ("xmin", "ymin", "xmax", "ymax")]
    sides = [SIZE[1], SIZE[0]] * 2
    values = np.round(np.transpose([edge * side for edge, side in zip(edges, sides, strict=True)]), 3).tolist()
    return list(zip([text.decode() for text in example.get("image/object/class/text", [])], values, strict=True))


# --- tables


def test_columns_are_found_by_their_values_and_endings_may_differ_in_case():
    """As Excel and Windows write them: semicolons, headers of another language, `a.jpg` for `a.JPG`."""
    rows = [["Dateiname", "Klasse", "Bemerkung"]]
    for number in range(6):
        photo(f"Fotos/Foto {number}.JPG", number, format="JPEG")
        rows.append([f"Foto {number}.jpg", ("Biene", "Wespe")[number % 2], f"Notiz {number}"])
    table("labels.csv", rows, ";")
    found, config = read(*HASHED)
    assert config["input"]["labels"]["columns"] == {"image": "Dateiname", "label": "Klasse"}
    assert classes(found) == {f"Foto {number}.JPG": [("Biene", "Wespe")[number % 2]] for number in range(6)}


def test_a_column_of_row_numbers_is_not_that_of_the_images():
    rows = [["id", "photo_file", "kind"]]
    for number in range(4):
        photo(f"in/{'abcd'[number]}.png", number)
        rows.append([str(100 + number), f"{'abcd'[number]}.png", "xy"[number % 2]])
    table("labels.csv", rows)
    found, _ = read(*HASHED, "--set", "input.labels.columns.label=kind")
    assert classes(found) == {"a.png": ["x"], "b.png": ["y"], "c.png": ["x"], "d.png": ["y"]}


@pytest.mark.parametrize(("image", "label"), [("id_code", "diagnosis"), ("id", "breed"), ("image_id", "dx")])
def test_tables_of_aptos_dog_breeds_and_ham10000(image, label):
    rows = [[image, label, "age"]]
    for number in range(6):
        photo(f"train_images/{'abcdef'[number]}.png", number)
        rows.append(["abcdef"[number], f"kind{number % 2}", "50.0"])
    photo("test_images/zz.png", 77)
    table("train.csv", rows)
    table("sample_submission.csv", [[image, label], ["zz", "kind0"]])
    found, config = read(*HASHED)
    assert config["input"]["images"] == "set/train_images"
    assert classes(found) == {f"{'abcdef'[number]}.png": [f"kind{number % 2}"] for number in range(6)}


def test_columns_that_may_have_the_classes_are_asked_for_next_to_numbers(capsys):
    rows = [["image_id", "stage", "sex", "age", "fold"]]
    for number in range(6):
        photo(f"in/{'abcdef'[number]}.png", number)
        rows.append(["abcdef"[number], f"s{number % 3}", "mf"[number % 2], f"{50 + number / 2}", number % 2])
    table("meta.csv", rows)
    assert init() == 2
    shown = capsys.readouterr().err
    for column in ("stage", "sex"):
        assert f"--set input.labels.columns.label={column} " in shown
    assert "label=age" not in shown
    assert "label=fold" not in shown


def test_global_wheat_has_four_numbers_in_one_field_and_no_classes(capsys):
    rows = [["image_id", "width", "height", "bbox", "source"]]
    for number in range(6):
        photo(f"train/{'abcdef'[number]}.jpg", number)
        if number:
            rows.append(["abcdef"[number], SIZE[1], SIZE[0], f"[{number}.0, 3.0, 10.0, 8.5]", "usask"])
    photo("test/zz.jpg", 77)
    table("train.csv", rows)
    assert init() == 2
    assert "1 of 6 images have no row in train.csv: a.jpg" in capsys.readouterr().err
    found, config = read("--set", "input.unlisted_images=empty")
    assert config["input"]["labels"]["format"] == "box_csv"
    assert boxes(found["c.jpg"]) == [("object", [2, 3, 12, 11.5])]
    assert boxes(found["a.jpg"]) == []


def test_a_box_of_three_numbers_costs_its_image():
    rows = [
        ["image", "class", "bbox"],
        *(["abcdefghijkl"[n], "x", "[1, 2, 3, 4]"] for n in range(11)),
        ["l", "x", "[1]"],
    ]
    for number in range(12):
        photo(f"in/{'abcdefghijkl'[number]}.png", number)
    table("boxes.csv", rows)
    assert init("--set", "rejects.max_fraction=0.1") == 0
    assert ingest(load_config("c.yaml"), "out", quiet=True).totals["rejected"] == 1


def test_annotations_as_csv_of_via_are_boxes_and_polygons():
    rows = [
        ["filename", "file_size", "file_attributes", "region_count", "region_id"],
        *([f"{letter}.jpg", "9", "{}", "1", "0"] for letter in "aab"),
    ]
    shapes = [
        {"name": "rect", "x": 4, "y": 5, "width": 10, "height": 6},
        {"name": "circle", "cx": 20, "cy": 12, "r": 4},
        {},
    ]
    rows[0] += ["region_shape_attributes", "region_attributes"]
    for row, shape in zip(rows[1:], shapes, strict=True):
        row += [json.dumps(shape), json.dumps({"kind": "bee"} if shape else {})]
    for number in range(2):
        photo(f"{'ab'[number]}.jpg", number)
    table("via_export_csv.csv", rows)
    found, config = read("--set", "task=classification", "--set", "input.labels.boxes=true")
    assert config["input"]["labels"]["format"] == "via_json"
    assert boxes(found["a.jpg"]) == [("bee", [4, 5, 14, 11]), ("bee", [16, 8, 24, 16])]
    assert boxes(found["b.jpg"]) == []


# --- folders of masks


@pytest.mark.parametrize(
    ("images", "masks", "ending"),
    [
        ("{}", "{}annot", ""),
        ("{}", "{}_labels", "_L"),
        ("{}/images", "{}/masks", ""),
        ("{}_images", "{}_masks", "_mask"),
    ],
)
def test_a_folder_of_masks_for_each_split(images, masks, ending):
    truth = {}
    for split, names in (("train", "abcd"), ("val", "ef"), ("test", "ag")):
        for letter in names:
            number = ord(letter) + len(truth)
            photo(f"{images.format(split)}/{split}{letter}.png", number)
            truth[f"{split}{letter}.png"] = area(number)
            mask(f"{masks.format(split)}/{split}{letter}{ending}.png", area(number).astype(np.uint8))
    found, config = read()
    assert config["split"]["method"] == "predefined"
    assert set(found) == set(truth)
    for name, pixels in truth.items():
        np.testing.assert_array_equal(drawn(found[name], "1"), pixels)


def test_images_to_predict_are_not_part_of_data_science_bowl_2018():
    for letter in "abcd":
        photo(f"stage1_train/{letter}/images/{letter}.png", ord(letter))
        for number in range(2):
            mask(f"stage1_train/{letter}/masks/{letter}{number}.png", area(number + ord(letter)).astype(np.uint8) * 255)
    photo("stage1_test/z/images/z.png", 7)
    found, config = read()
    assert config["input"]["images"] == "set/stage1_train"
    np.testing.assert_array_equal(drawn(found["b.png"], "mask"), area(ord("b")) | area(ord("b") + 1))


def test_images_to_predict_are_not_part_of_tgs_salt_whose_masks_have_16_bits():
    for letter in "abcd":
        photo(f"train/images/{letter}.png", ord(letter))
        mask(f"train/masks/{letter}.png", area(ord(letter)).astype(np.uint16) * 65535)
    photo("test/images/z.png", 7)
    found, config = read()
    assert config["input"]["images"] == "set/train/images"
    assert config["input"]["classes"] == {"mask": 65535}
    np.testing.assert_array_equal(drawn(found["b.png"], "mask"), area(ord("b")))


def test_of_the_masks_of_cityscapes_the_ids_of_classes_are_taken(capsys):
    for split, letters in (("train", "abc"), ("val", "de")):
        for letter in letters:
            photo(f"leftImg8bit/{split}/aachen/{letter}_leftImg8bit.png", ord(letter))
            place = f"gtFine/{split}/aachen/{letter}_gtFine"
            ids = np.where(area(ord(letter)), 26, 7).astype(np.uint8)
            mask(f"{place}_labelIds.png", ids)
            mask(f"{place}_instanceIds.png", ids.astype(np.uint16) * 1000)
            mask(f"{place}_color.png", np.dstack([ids, ids, ids // 2]))
            polygons = {"imgHeight": 24, "imgWidth": 36, "objects": []}
            Path("set", f"{place}_polygons.json").write_text(json.dumps(polygons))
    found, config = read()
    shown = capsys.readouterr().out
    assert "10 files of another kind (_color, _instanceIds) left out" in shown
    assert shown.count("Cityscapes' polygons") == 1
    assert "Likewise 4 more files." in shown
    assert (config["input"]["images"], config["split"]["method"]) == ("set/leftImg8bit", "predefined")
    np.testing.assert_array_equal(drawn(found["d_leftImg8bit.png"], "26"), area(ord("d")))


def test_trimaps_in_the_folder_of_annotations_are_masks_next_to_boxes(capsys):
    for number, name in enumerate(("Abyssinian_1", "Abyssinian_2", "beagle_1", "beagle_2")):
        photo(f"images/{name}.jpg", number)
        mask(f"annotations/trimaps/{name}.png", np.where(area(number), 1, 2).astype(np.uint8))
        Path("set/annotations/xmls").mkdir(exist_ok=True)
        box = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox>"
        text = f"<annotation><filename>{name}.jpg</filename><object><name>cat</name>{box}</object></annotation>"
        Path(f"set/annotations/xmls/{name}.xml").write_text(text)
    assert init() == 2
    assert "--set input.labels.path=set/annotations/trimaps\n" in capsys.readouterr().err
    found, _ = read("--set", "input.labels.path=set/annotations/trimaps")
    np.testing.assert_array_equal(drawn(found["beagle_1.jpg"], "1"), area(2))


@pytest.mark.parametrize("white", [0, 1])
def test_masks_of_carvana_and_drive_are_gifs_whose_colors_count(white):
    """Whichever index is white: programs write either."""
    Path("set/train_masks").mkdir(parents=True)
    for letter in "abc":
        photo(f"train/{letter}.jpg", ord(letter))
        indices = area(ord(letter)) == bool(white)
        gif = Image.fromarray(indices.astype(np.uint8), "P")
        gif.putpalette([0, 0, 0, 255, 255, 255] if white else [255, 255, 255, 0, 0, 0])
        gif.save(f"set/train_masks/{letter}_mask.gif", optimize=False)
    found, _ = read(*HASHED)
    for letter in "abc":
        np.testing.assert_array_equal(drawn(found[f"{letter}.jpg"], "mask"), area(ord(letter)))


def drive(*parts, with_fields=True):
    """DRIVE: the image, the vessels, and the field of view, which is not what people learn."""
    for part, numbers in parts:
        for number in numbers:
            photo(f"{part}/images/{number:02}_{part}.tif", number)
            mask(f"{part}/1st_manual/{number:02}_manual1.gif", area(number).astype(np.uint8) * 255)
            if with_fields:
                field = np.pad(np.full((SIZE[0] - 4, SIZE[1] - 4), 255, np.uint8), 2)
                mask(f"{part}/mask/{number:02}_{part}_mask.gif", field)


def chosen(shown, meaning):
    """The options of a choice that was printed: the command is the line before its meaning."""
    lines = shown.splitlines()
    command = next(line for line, comment in pairwise(lines) if comment.strip().startswith("#") and meaning in comment)
    return shlex.split(command)[3:]


def test_the_vessels_of_drive_have_another_suffix_than_the_images():
    drive(("training", range(21, 25)), with_fields=False)
    found, config = read()
    assert config["input"]["labels"]["path"] == "set/training/1st_manual"
    for number in range(21, 25):
        np.testing.assert_array_equal(drawn(found[f"{number}_training.tif"], "mask"), area(number))


def test_the_two_kinds_of_masks_of_drive_are_asked_for(capsys):
    drive(("training", range(21, 25)), ("test", range(1, 3)))
    assert init() == 2
    shown = capsys.readouterr().err
    assert "set/*/1st_manual of */images, set/*/mask of */images. Name one" in shown
    found, _ = read(*chosen(shown, "are set/*/1st_manual"))
    assert set(found) == {*(f"{number}_training.tif" for number in range(21, 25)), "01_test.tif", "02_test.tif"}
    np.testing.assert_array_equal(drawn(found["22_training.tif"], "mask"), area(22))


def test_further_masks_of_busi_have_a_number_and_are_joined():
    for name in ("benign", "normal"):
        for number in range(1, 4):
            photo(f"{name}/{name} ({number}).png", number)
            pixels = area(number) if name == "benign" else np.zeros(SIZE, bool)
            mask(f"{name}/{name} ({number})_mask.png", pixels.astype(np.uint8) * 255)
    second = np.roll(area(2), 12, axis=1)
    mask("benign/benign (2)_mask_1.png", second.astype(np.uint8) * 255)
    found, _ = read()
    assert len(found) == 6
    np.testing.assert_array_equal(drawn(found["benign (2).png"], "mask"), area(2) | second)
    np.testing.assert_array_equal(drawn(found["benign (1).png"], "mask"), area(1))


def test_masks_in_folders_of_no_known_name_are_not_images_of_a_class(capsys):
    """PH2: a folder for each image, and one in it for the mask."""
    for number in range(2, 7):
        name = f"IMD{number:03}"
        photo(f"{name}/{name}_Dermoscopic_Image/{name}.bmp", number)
        mask(f"{name}/{name}_lesion/{name}_lesion.bmp", area(number).astype(np.uint8) * 255)
    assert init() == 2
    shown = capsys.readouterr().err
    assert "5 of 10 files that were looked at have few colors, as masks do: IMD002/IMD002_lesion/" in shown
    found, _ = read(*chosen(shown, "files that end with _lesion are masks"))
    np.testing.assert_array_equal(drawn(found["IMD004.bmp"], "mask"), area(4))


@pytest.mark.parametrize(
    ("answer", "label"), [("255 is a class", "128"), ("255 is the background, and 0 is a class", "0")]
)
def test_gray_levels_are_not_numbers_of_classes(capsys, answer, label):
    """REFUGE: 0 is the cup, 128 the disc, 255 all else; of a trimap, 255 is what matters."""
    for letter in "abcd":
        photo(f"images/{letter}.jpg", ord(letter))
        pixels = np.where(area(ord(letter)), 128, 255).astype(np.uint8)
        pixels[2:4, 2:4] = 0
        mask(f"masks/{letter}.bmp", pixels)
    assert init() == 2
    shown = capsys.readouterr().err
    assert "255 is next to 128 (masks/a.bmp), not drawn around them, so it may be a class" in shown
    found, _ = read(*chosen(shown, answer))
    cup = np.zeros_like(area(0))
    cup[2:4, 2:4] = 1
    disc = area(ord("a")) & ~(cup > 0)
    np.testing.assert_array_equal(drawn(found["a.jpg"], label), cup if label == "0" else disc)


def test_masks_as_jpeg_of_one_class_get_a_threshold():
    for letter in "abc":
        photo(f"images/{letter}.jpg", ord(letter))
        mask(f"masks/{letter}.jpg", area(ord(letter)).astype(np.uint8) * 255)
    Path("set/boxes.json").write_text('{"a": {"height": 1}}')
    found, config = read(*HASHED)
    assert config["input"]["labels"]["threshold"] == {"*": 128}
    np.testing.assert_array_equal(drawn(found["a.jpg"], "mask"), area(ord("a")))


# --- names of classes


def test_numbers_of_classes_get_the_names_of_a_file_next_to_them():
    rows = [["image_id", "label"]]
    for number in range(6):
        photo(f"train_images/{'abcdef'[number]}.jpg", number)
        rows.append([f"{'abcdef'[number]}.jpg", number % 2])
    table("train.csv", rows)
    Path("set/label_num_to_disease_map.json").write_text(json.dumps({"0": "Blight (CBB)", "1": "Healthy"}))
    found, config = read(*HASHED)
    assert config["input"]["classes"] == {"Blight (CBB)": 0, "Healthy": 1}
    assert classes(found)["b.jpg"] == ["Healthy"]


def test_colors_of_classes_get_the_names_of_a_file_next_to_them():
    colors = {"Void": (0, 0, 0), "Road": (128, 64, 128), "Car": (64, 0, 128)}
    for letter in "abcd":
        photo(f"images/{letter}.png", ord(letter))
        pixels = np.where(area(ord(letter))[..., None], colors["Car"], colors["Road"]).astype(np.uint8)
        mask(f"labels/{letter}.png", pixels)
    table("class_dict.csv", [["name", "r", "g", "b"], *([name, *color] for name, color in colors.items())])
    found, config = read()
    assert config["input"]["classes"] == {"Void": "#000000", "Car": "#400080", "Road": "#804080"}
    np.testing.assert_array_equal(drawn(found["c.png"], "Car"), area(ord("c")))
    np.testing.assert_array_equal(drawn(found["c.png"], "Road"), ~area(ord("c")))
    assert "image/segmentation/Void/rle" not in found["c.png"]


@pytest.mark.parametrize(
    ("file", "text"), [("class_names.txt", "_background_\nbus\nperson\n"), ("classes.txt", "bus\nperson\n")]
)
def test_names_next_to_a_tree_of_voc_are_those_of_its_values(file, text):
    for letter in "abc":
        photo(f"JPEGImages/{letter}.jpg", ord(letter))
        mask(f"SegmentationClass/{letter}.png", area(ord(letter)).astype(np.uint8) * 2)
    Path("set", file).write_text(text)
    found, config = read(*HASHED)
    assert config["input"]["classes"] == {"bus": 1, "person": 2}
    np.testing.assert_array_equal(drawn(found["a.jpg"], "person"), area(ord("a")))
    Path("set", file).write_text(text.replace("bus", "\nbus"))
    assert init() == 2


def test_the_names_of_open_images_may_be_where_fiftyone_puts_them():
    rows = [["ImageID", "LabelName", "Confidence", "XMin", "XMax", "YMin", "YMax"]]
    for letter in "abc":
        photo(f"train/data/{letter}.jpg", ord(letter))
        rows.append([letter, "/m/0k4j", 1, 0.25, 0.5, 0.25, 0.75])
    table("train/labels/detections.csv", rows)
    table("train/metadata/classes.csv", [["/m/0k4j", "Car"], ["/m/01g317", "Person"]])
    found, _ = read(*HASHED)
    assert boxes(found["a.jpg"]) == [("Car", [9, 6, 18, 18])]


# --- folders and names


def test_folders_of_splits_are_not_classes_where_names_of_files_may_be(capsys):
    for number in range(5):
        for name in ("cat", "dog"):
            photo(f"train/{name}.{number}.jpg", number + 9 * len(name))
    photo("test1/1.jpg", 77)
    assert init() == 0
    assert "left out: test1/ (1 image), called after images to test or predict" in capsys.readouterr().out
    ingest(load_config("c.yaml"), "out", quiet=True)
    assert {key: example["image/class/text"][0].decode() for key, example in examples("out").items()} == {
        f"train/{name}.{number}.jpg": name for number in range(5) for name in ("cat", "dog")
    }


def test_folders_called_after_parts_of_a_set_are_not_classes_where_a_table_cannot_be_read(capsys):
    for number in range(4):
        photo(f"train_images/{number}.png", number)
        photo(f"test_images/t{number}.png", 9 + number)
    table("train.csv", [["a", "b"], ["p", "q"]])
    assert init() == 2
    assert "its annotations cannot be read, and its folders are not classes" in capsys.readouterr().err


def test_class_folders_of_portable_pixmaps_are_converted():
    for name in ("00000", "00001"):
        for number in range(3):
            photo(f"Images/{name}/{name}_{number:05}.ppm", number + 9 * int(name))
    found, config = read(*HASHED)
    assert config["images"]["unsupported_formats"] == "png"
    assert classes(found)["00001_00002.ppm"] == ["00001"]


def test_many_tables_of_one_kind_are_not_each_tried(capsys):
    for number in range(22):
        photo(f"c{number:02}/{number}.png", number)
        photo(f"c{number:02}/{number + 22}.png", number + 22)
        table(f"c{number:02}/notes.csv", [["a", "b"], ["1", "2"]])
    found, _ = read(*HASHED)
    assert classes(found)["3.png"] == ["c03"]
    assert "not read as annotations" not in capsys.readouterr().out


def test_one_table_that_is_read_whole_comes_before_one_about_a_few_images(capsys):
    rows, few = [["image", "label"]], [["image", "xmin", "ymin", "xmax", "ymax"], ["a.png", 1, 1, 5, 5]]
    for number in range(6):
        photo(f"in/{'abcdef'[number]}.png", number)
        rows.append([f"{'abcdef'[number]}.png", f"kind{number % 2}"])
    table("all.csv", rows)
    table("few.csv", few)
    assert init(*HASHED) == 2
    shown = capsys.readouterr().err
    assert shown.index("# the annotations are set/all.csv: 6 images") < shown.index("# the annotations are set/few.csv")
    _, config = read(*chosen(shown, "set/all.csv"))
    assert config["input"]["labels"]["path"] == "set/all.csv"


def test_the_folder_around_the_splits_is_not_a_class():
    for split in ("train", "val"):
        for name in ("NORMAL", "PNEUMONIA"):
            photo(f"chest_xray/{split}/{name}/{split}{name}.jpg", len(split + name))
    found, config = read()
    assert config["split"]["method"] == "predefined"
    assert classes(found) == {
        f"{split}{name}.jpg": [name] for split in ("train", "val") for name in ("NORMAL", "PNEUMONIA")
    }


def test_folders_called_after_parts_of_a_set_are_not_classes(capsys):
    for part in ("seg_train", "seg_test"):
        for name in ("sea", "forest"):
            photo(f"{part}/{part}/{name}/{part}{name}.jpg", len(part + name))
    photo("seg_pred/seg_pred/1.jpg", 3)
    assert init() == 2
    shown = capsys.readouterr().err
    found, config = read(*chosen(shown, "seg_pred is no part of the set"))
    assert config["split"]["method"] == "predefined"
    assert classes(found) == {
        f"{part}{name}.jpg": [name] for part in ("seg_train", "seg_test") for name in ("sea", "forest")
    }


def test_tags_with_blanks_are_asked_for(capsys):
    """Planet's table, in which no word is alone in a field."""
    rows = [["image_name", "tags"]]
    for number, tags in enumerate(("clear primary", "haze primary water", "cloudy")):
        photo(f"train-jpg/{'abc'[number]}.jpg", number)
        rows.append(["abc"[number], tags])
    table("train_v2.csv", rows)
    assert init() == 2
    shown = capsys.readouterr().err
    assert "'clear primary' may be one class or several" in shown
    found, _ = read(*chosen(shown, "is between classes"))
    assert classes(found)["b.jpg"] == ["haze", "primary", "water"]


FOLDERS = "input.labels.format=class_folders"


@pytest.mark.parametrize(
    ("places", "problem", "stated"),
    [
        # FGVC aircraft, RAF-DB, WIDER FACE: the classes or boxes are in text files of forms of their own.
        (
            ["data/images/{0}.jpg"],
            "the only folder that would be a class is data, and there is nothing to learn",
            FOLDERS,
        ),
        (["Image/aligned/train_{0}.jpg"], "the only folder that would be a class is Image", FOLDERS),
        # Tiny ImageNet.
        (
            ["train/n01/images/{0}.jpg", "train/n02/images/b{0}.jpg", "val/images/v{0}.jpg"],
            "the folders of the splits are not the same classes: train has n01, n02, but no images",
            "input.classes=[n01, n02, images]",
        ),
    ],
)
def test_folders_around_all_or_some_images_are_not_classes(capsys, places, problem, stated):
    for number in range(4):
        for i, place in enumerate(places):
            photo(place.format(f"{number}x"), number + 9 * i)
    assert init() == 2
    assert problem in capsys.readouterr().err
    # A user can state it.
    assert init("--set", stated) == 0


def test_photographs_and_drawings_may_be_classes_if_that_is_stated(capsys):
    for number in range(4):
        photo(f"photo/{number}.jpg", number)
        mask(f"icon/{number}.png", area(number).astype(np.uint8) * 200)
    assert init() == 2
    found, _ = read(*chosen(capsys.readouterr().err, "is its class"))
    assert classes(found)["2.png"] == ["icon"]
