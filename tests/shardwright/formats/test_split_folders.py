"""Folders that are splits are not classes; where both readings fit, the input is refused with the lines to paste."""

import pytest
import yaml
from ingesting import changed, examples, run

from shardwright.config import LabelsConfig
from shardwright.config.split import split_word
from shardwright.errors import UsageError
from shardwright.formats.base import Images, Request
from shardwright.formats.detect import open_source


def read(keys, classes=None, **options):
    images = Images(sorted(keys), frozenset(), size_of=lambda position: None, max_pixels=10**6)
    source = open_source(
        Request(task="classification", options=LabelsConfig(**options), classes=classes, path="", images=images)
    )
    survey = source.survey()
    return survey, {sorted(keys)[a.image]: survey.classes[a.label] for a in source.annotations()}


def pasted(message):
    """The configurations that a message offers."""
    blocks = message.split("\n\n")[1:]
    return [yaml.safe_load("\n".join(line for line in block.splitlines() if line.startswith(" "))) for block in blocks]


@pytest.mark.parametrize(
    "splits",
    [
        ("train", "val", "test"),
        ("Train", "valid", "TEST"),
        ("training", "validation", "testing"),
        ("train", "eval", "dev"),
        ("train2017", "val2017", "test2017"),
        ("train_2014", "val_2014"),
        ("test",),
    ],
)
@pytest.mark.parametrize("label_format", ["auto", "class_folders"])
def test_the_folders_below_splits_are_the_classes(splits, label_format):
    keys = [f"{split}/{name}/{i}.jpg" for split in splits for i, name in enumerate(("daisy", "rose"))]
    survey, labels = read(keys, format=label_format)
    assert survey.classes == ("daisy", "rose")
    assert labels == {key: key.split("/")[1] for key in keys}
    (note,) = [note for note in survey.notes if "splits" in note]
    assert all(split in note for split in splits)


def test_splits_below_an_images_folder_and_images_folders_below_splits():
    survey, _ = read(["images/train/daisy/1.jpg", "images/train/rose/1.jpg", "images/val/rose/2.jpg"])
    assert survey.classes == ("daisy", "rose")
    survey, _ = read(["train/images/daisy/1.jpg", "train/images/rose/1.jpg", "val/images/rose/2.jpg"])
    assert survey.classes == ("daisy", "rose")


@pytest.mark.parametrize("further", ["1_daisy", "unknown"])
def test_folders_of_splits_with_other_classes_than_train_are_refused(further):
    keys = ["train/0_daisy/1.jpg", "train/1_rose/2.jpg", "test/1_rose/3.jpg", f"test/{further}/4.jpg"]
    with pytest.raises(UsageError, match=f"train has 0_daisy, 1_rose, but no {further}") as raised:
        read(keys)
    first = raised.value.readings[0].options
    assert first.get("input.exclude") == ([f"test/{further}"] if further == "unknown" else None)
    survey, _ = read(keys, classes=dict.fromkeys(("0_daisy", "1_rose", further)))
    assert survey.classes == ("0_daisy", "1_rose", further)


def test_images_directly_below_a_split_have_no_class():
    survey, labels = read(["train/daisy/1.jpg", "train/rose/1.jpg", "test/1.jpg"])
    assert survey.classes == ("daisy", "rose")
    assert len(labels) == 2
    assert survey.rejected[0][:2] == ("test/1.jpg", "no_class_folder")


def test_one_folder_among_others_may_be_called_train():
    survey, labels = read(["train/1.jpg", "car/1.jpg", "bus/1.jpg"])
    assert survey.classes == ("bus", "car", "train")
    assert labels["train/1.jpg"] == "train"
    assert any("train is a class" in note for note in survey.notes)


@pytest.mark.parametrize("folder", ["", "images/"])
def test_splits_with_images_directly_beneath_are_refused_with_two_configurations(folder):
    keys = [f"{folder}train/1.jpg", f"{folder}val/2.jpg"]
    with pytest.raises(UsageError, match="train, val") as error:
        read(keys)
    one, other = pasted(str(error.value))
    assert one == {"input": {"labels": {"format": "none"}}, "split": {"method": "predefined"}}
    survey, labels = read(keys, **other["input"]["labels"])
    assert survey.classes == ("train", "val")
    assert len(labels) == 2


@pytest.mark.parametrize(
    "keys",
    [
        ["train/daisy/1.jpg", "test/rose/2.jpg", "extra/lily/3.jpg"],
        ["train/diesel/1.jpg", "car/sedan/2.jpg"],
        ["train/1.jpg", "test/2.jpg", "extra/3.jpg"],
    ],
)
def test_splits_among_other_folders_are_refused_with_two_configurations(keys):
    with pytest.raises(UsageError, match="input.labels: ") as error:
        read(keys)
    one, other = pasted(str(error.value))
    assert one["split"] == {"method": "predefined"}
    survey, labels = read(keys, **other["input"]["labels"])
    assert set(survey.classes) == {key.split("/")[0] for key in keys}
    if one["input"]["labels"]["format"] != "none":
        survey, labels = read(keys, **one["input"]["labels"])
        assert labels == {key: key.split("/")[1] for key in keys if key.startswith("t")}


@pytest.mark.parametrize(
    "name",
    [
        *("test", "val", "eval", "test1", "test_images", "testset", "Validation Data"),
        *("unlabeled", "unlabelled", "not_annotated", "to_label", "unsup", "predict", "submission", "hold-out"),
    ],
)
def test_images_to_predict_next_to_class_folders_are_a_question(name):
    classes = [f"{folder}/{i}.jpg" for folder in ("daisy", "rose") for i in range(3)]
    with pytest.raises(UsageError, match=f"{name}, next to daisy, rose, may hold images to predict") as error:
        read([*classes, f"{name}/9.jpg"])
    left_out, is_class = (reading.options for reading in error.value.readings)
    assert left_out == {"input.exclude": [name]}
    survey, _ = read([*classes, f"{name}/9.jpg"], format="file_name", regex=is_class["input.labels.regex"])
    assert survey.classes == tuple(sorted(("daisy", "rose", name)))
    survey, _ = read([*classes, f"{name}/9.jpg"], dict.fromkeys(("daisy", "rose", name)))
    assert len(survey.classes) == 3


@pytest.mark.parametrize("name", ["new", "unknown", "other", "background", "labels", "testudo", "valley"])
def test_folders_that_may_well_be_classes_are(name):
    keys = [f"{folder}/{i}.jpg" for folder in ("daisy", "rose", name) for i in range(3)]
    assert read(keys)[0].classes == tuple(sorted(("daisy", "rose", name)))


@pytest.mark.parametrize("folder", ["test/test", "val/val", "test1/test1", "test/images"])
def test_a_folder_of_a_split_that_is_called_after_it_is_no_class_by_itself(folder):
    train = [f"train/{name}/{i}.jpg" for name in ("daisy", "rose") for i in range(3)]
    with pytest.raises(UsageError, match="train has daisy, rose, but no") as error:
        read([*train, f"{folder}/9.jpg"])
    assert error.value.readings[0].options == {"input.exclude": [folder]}


def test_input_classes_decide():
    keys = ["train/diesel/1.jpg", "car/sedan/2.jpg"]
    assert read(keys, dict.fromkeys(("car", "train")))[0].classes == ("car", "train")
    keys = ["train/a/1.jpg", "test/b/2.jpg"]
    assert read(keys, dict.fromkeys(("test", "train")))[1]["train/a/1.jpg"] == "train"
    assert read(keys, dict.fromkeys(("a", "b")))[1]["train/a/1.jpg"] == "a"


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("train2017", "train"),
        ("VAL-2014", "eval"),
        ("test", "test"),
        ("test1", "test"),
        ("train_v2", "train"),
        ("train17", None),
        ("2017", None),
    ],
)
def test_years_are_part_of_a_splits_name(text, split):
    assert split_word(text) == split


def test_classes_and_splits_of_one_tree(tmp_path, image_input):
    raw = image_input(tmp_path, layout="class_folders", images=8)
    images = tmp_path / "images"
    for number, file in enumerate(sorted(images.rglob("*.jpg"))):
        place = images / ("train2017", "val2017", "test2017")[number % 3] / file.relative_to(images)
        place.parent.mkdir(parents=True, exist_ok=True)
        file.rename(place)
    manifest = run({**changed(raw, classes=None), "split": {"method": "predefined"}}, tmp_path / "out", workers=1)
    assert manifest.classes == ("Fish", "Sugar")
    assert {name: manifest.totals[f"records/{name}"] for name in manifest.splits} == {"train": 3, "eval": 3, "test": 2}
    for key, example in examples(tmp_path / "out").items():
        assert example["image/class/text"] == [key.split("/")[1].encode()]


def test_classes_detected_and_the_same_given_are_read_alike():
    """As in a compiled pipeline, which gives the classes that it detected to the run."""
    trees = (
        ["train/daisy/1.jpg", "train/rose/2.jpg", "val/rose/2.jpg"],
        ["train/1.jpg", "car/1.jpg", "bus/1.jpg"],
        ["images/train/daisy/1.jpg", "images/train/rose/1.jpg", "images/test/rose/2.jpg"],
        ["train/images/daisy/1.jpg", "train/images/rose/1.jpg", "val/images/rose/2.jpg"],
        ["test/0/1.jpg", "train/0/2.jpg", "train/1/1.jpg"],
    )
    for keys in trees:
        survey, labels = read(keys)
        assert read(keys, dict.fromkeys(survey.classes))[1] == labels
