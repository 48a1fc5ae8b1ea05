"""Labels in file names: what is found in them, and when `auto` takes them rather than the folders."""

import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ingesting import changed, examples, ledger, run, tree

from shardwright.config import LabelsConfig, parse_config
from shardwright.errors import CheckFailed, UsageError
from shardwright.formats.base import Images, Request
from shardwright.formats.class_folders import name_label
from shardwright.formats.detect import open_source
from shardwright.ingest import IngestRecipe

WORDS = st.text(st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=8)


def read(keys, classes=None, label_format="auto", pattern=None, skip=()):
    opened = open_source(
        Request(
            task="classification",
            options=LabelsConfig(format=label_format, regex=pattern),
            classes=dict.fromkeys(classes) if isinstance(classes, list) else classes,
            path="",
            images=Images(sorted(keys), frozenset(skip), size_of=lambda position: None, max_pixels=10**6),
        )
    )
    survey = opened.survey()
    return survey, {sorted(keys)[a.image]: survey.classes[a.label] for a in opened.annotations()}


# --- the class in a name ----------------------------------------------------------------------------------------------


@given(WORDS, st.integers(0, 10**9), st.sampled_from(["", ".png", ".JPG"]), st.sampled_from(["", "x/", "a_1/b_2/"]))
def test_the_label_is_all_before_the_last_number(label, number, extension, folder):
    assert name_label(f"{folder}{label}_{number}{extension}") == label


@pytest.mark.parametrize(
    ("key", "label"),
    [
        ("cat_0.png", "cat"),
        ("cat_12_3.png", "cat_12"),
        ("hot_dog_007.jpg", "hot_dog"),
        ("cat_0", "cat"),
        ("cat__0.png", "cat_"),
        ("x/dog_1.jpg", "dog"),
        ("cat.png", ""),
        ("cat_.png", ""),
        ("_0.png", ""),
        ("cat_0.tar.png", ""),
        ("cat_0/dog.png", ""),
        ("cat_\u0663.png", ""),
        ("cat_0.png\n", "cat"),
        ("", ""),
    ],
)
def test_labels_of_names(key, label):
    assert name_label(key) == label


def test_a_pattern_is_searched_in_the_path_below_the_folder():
    keys = ["train/cat/1.png", "train/dog/2.png", "9.png"]
    survey, labels = read(keys, pattern=r"(?P<label>[a-z]+)/[^/]+$")
    assert labels == {"train/cat/1.png": "cat", "train/dog/2.png": "dog"}
    assert survey.notes[0] == "labels: file_name, since input.labels.regex is given"
    pattern = r"(?P<label>[a-z]+)/[^/]+$"
    assert survey.rejected == {0: ("9.png", "no_label", f"input.labels.regex {pattern!r} finds no label in it")}
    survey, labels = read(["a1-x.png", "b-y.png"], label_format="file_name", pattern=r"^(?:[a-z]\d-(?P<label>.))?")
    assert labels == {"a1-x.png": "x"}
    assert list(survey.rejected) == [1]


def test_names_without_a_label_are_rejected_and_files_that_are_no_images_passed_over():
    survey, labels = read(["cat_0.png", "dog.png", "notes_1.txt"], label_format="file_name", skip=[2])
    assert labels == {"cat_0.png": "cat"}
    assert survey.classes == ("cat",)
    assert survey.rejected[1].code == "no_label"
    assert list(survey.listed) == [1, 1, 0]


def test_labels_are_classes_like_others():
    survey, labels = read(["10_1.png", "9_1.png"], label_format="file_name")
    assert survey.classes == ("9", "10")
    _, labels = read(["1_0.png", "2_0.png"], classes={"cat": 2, "dog": 1}, label_format="file_name")
    assert labels == {"1_0.png": "dog", "2_0.png": "cat"}
    with pytest.raises(UsageError, match=r"emu_3\.png, in its name: the class 'emu' is not in input\.classes"):
        read(["cat_1.png", "emu_3.png"], classes=["cat"], label_format="file_name")


# --- which of the two ------------------------------------------------------------------------------------------------


def test_names_are_taken_where_there_are_no_folders_with_a_note():
    survey, labels = read(["cat_0.png", "dog_1.png", "dog_2.png", "odd.png"])
    assert labels == {"cat_0.png": "cat", "dog_1.png": "dog", "dog_2.png": "dog"}
    assert survey.notes[0] == (
        "labels: file_name, since no file of annotations is given, no image is in a folder, "
        "and 3 of 4 names hold a label"
    )


@pytest.mark.parametrize(
    ("keys", "classes", "reason"),
    [
        (["rose/1.jpg", "tulip/a.jpg"], None, "is given"),
        (["rose/IMG_1.jpg", "tulip/IMG_2.jpg"], None, "is given"),
        (["rose/rose_1.jpg", "tulip/tulip_2.jpg"], None, "is given; the file names agree"),
        (
            ["rose/rose_1.jpg", "rose_2.jpg", "tulip/tulip_2.jpg"],
            ["rose", "tulip"],
            "is given; the file names agree",
        ),
        (["rose/IMG_1.jpg", "tulip/DSC_2.jpg"], None, "is given (rose/IMG_1.jpg is 'rose' by its folder and 'IMG'"),
        (["train/IMG_1.jpg", "test/DSC_2.jpg"], ["test", "train"], "is given (test/DSC_2.jpg is 'test' by its"),
        (["rose/1_1.jpg", "tulip/0_2.jpg"], ["rose", "tulip"], "is given (rose/1_1.jpg is 'rose'"),
    ],
)
def test_class_folders_come_first(keys, classes, reason):
    survey, labels = read(keys, classes)
    assert survey.notes[0].startswith(f"labels: class folders, since no file of annotations {reason}")
    assert labels == {key: key.split("/")[0] for key in keys if "/" in key}


@pytest.mark.parametrize(
    "keys", [["train/cat_0.png", "train/dog_1.png"], ["a/cat_0.png", "b/dog_1.png", "b/cat_2.png"]]
)
def test_names_are_taken_where_only_they_are_classes_with_a_note(keys):
    survey, labels = read(keys, ["cat", "dog"])
    assert survey.notes[0].startswith(
        "labels: file_name, since no file of annotations is given, "
        "and input.classes knows the labels in the names, not "
        f"the folders: {keys[0]} is {keys[0].split('/')[0]!r} by its folder and 'cat' by its name"
    )
    assert labels == {key: name_label(key) for key in keys}


@pytest.mark.parametrize(
    ("keys", "classes", "message"),
    [
        (["train/cat_0.png", "train/dog_1.png"], None, r"the folders \(train\) may not be classes"),
        (["Train/cat_0.png", "test/dog_1.png"], None, r"the folders \(Train, test\) may not be classes"),
        (["cat/dog_0.png", "dog/cat_1.png"], ["cat", "dog"], "input.classes knows both"),
        (["1/2_0.png", "2/1_1.png"], {"cat": 1, "dog": 2}, "input.classes knows both"),
    ],
)
def test_where_either_may_be_meant_it_is_refused_until_the_format_is_given(keys, classes, message):
    with pytest.raises(UsageError, match=rf"{message}\. Set input\.labels\.format: class_folders or file_name"):
        read(keys, classes)
    by_folder = read(keys, classes, label_format="class_folders")[1]
    by_name = read(keys, classes, label_format="file_name")[1]
    assert list(by_folder) == list(by_name) == sorted(keys)
    assert by_folder != by_name


@pytest.mark.parametrize("keys", [["IMG_1.jpg", "IMG_2.jpg"], ["cat.png", "dog.png", "cow_1.png", "pig_2.png"]])
def test_a_prefix_that_all_share_and_a_few_fitting_names_are_no_labels(keys):
    with pytest.raises(UsageError, match=r"no folder and no file name contains a class.*input\.labels\.format: none"):
        read(keys)


def test_one_known_class_in_the_names_is_enough():
    assert read(["cat_1.jpg", "cat_2.jpg"], ["cat", "dog"])[1] == {"cat_1.jpg": "cat", "cat_2.jpg": "cat"}


@given(st.lists(st.tuples(st.sampled_from(["", "cat/", "dog/", "test/"]), WORDS, st.sampled_from(["_1.png", ".png"]))))
def test_every_image_is_labeled_or_rejected_with_any_format(parts):
    keys = sorted({"".join(part) for part in parts})
    try:
        survey, labels = read(keys)
    except UsageError:
        asked = "may (not be c|be splits|hold images)"
        with pytest.raises(UsageError, match=f"no folder and no|none are given|{asked}|cannot be part"):
            read(keys)
        return
    assert [key in labels for key in keys] == [i not in survey.rejected for i in range(len(keys))]
    assert survey.notes[0].startswith("labels: ")


# --- the whole ingest ------------------------------------------------------------------------------------------------


@pytest.fixture
def flat(tmp_path, image_input):
    """24 images of class folders, moved out of them."""
    raw = image_input(tmp_path / "in", layout="class_folders")
    images = tmp_path / "in" / "images"
    for number, file in enumerate(sorted(images.rglob("*.jpg"))):
        shutil.move(file, images / f"{file.parent.name}_{number}.jpg")
    for folder in ("Fish", "Sugar"):
        (images / folder).rmdir()
    return raw


def test_labels_in_names_are_ingested(tmp_path, flat):
    (tmp_path / "in" / "images" / "Fish_0.jpg").rename(tmp_path / "in" / "images" / "unnamed.jpg")
    notes = []
    manifest = run(flat, tmp_path / "out", log=notes.append)
    assert notes[0].startswith("labels: file_name, since no file of annotations is given")
    assert manifest.classes == ("Fish", "Sugar")
    assert manifest.totals["written"] == 23
    for key, example in examples(tmp_path / "out").items():
        assert example["image/class/text"] == [key.split("_")[0].encode()]
    assert ledger(tmp_path / "out")["unnamed.jpg"].code == "no_label"


def test_the_pattern_is_part_of_the_recipe_and_of_nothing_else(tmp_path, flat):
    pattern = r"^(?P<label>[A-Z][a-z]+)_"
    given = changed(flat, labels={"format": "file_name", "regex": pattern})
    run(flat, tmp_path / "plain")
    run(given, tmp_path / "given")
    assert examples(tmp_path / "plain").keys() == examples(tmp_path / "given").keys()
    shards = [{k: v for k, v in tree(tmp_path / out).items() if k.startswith("Split-")} for out in ("plain", "given")]
    assert shards[0] == shards[1]
    recipe = IngestRecipe.of(parse_config(given, base="/"))
    assert recipe.options()["input"]["labels"] == {"format": "file_name", "regex": pattern}
    assert IngestRecipe.from_json(recipe.to_json()) == recipe
    assert "labels" not in IngestRecipe.of(parse_config(flat, base="/")).options()["input"]


def test_a_pattern_that_fits_nothing_publishes_nothing(tmp_path, flat):
    raw = changed(flat, labels={"regex": "(?P<label>[0-9]+)-"})
    with pytest.raises(CheckFailed, match=r"all 24 inputs were rejected \(no_label 24\)"):
        run(raw, tmp_path / "out")
    assert not (tmp_path / "out").exists()
