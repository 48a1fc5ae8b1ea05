"""Input formats: tables as people write them, matched with images and classes; clear words where they do not fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.config import LabelsConfig
from shardwright.config.input import RleConfig
from shardwright.errors import ConfigError, UsageError
from shardwright.formats.base import Annotation, Images, Request
from shardwright.formats.classes import as_integer, map_classes
from shardwright.formats.detect import open_source
from shardwright.formats.image_names import NameIndex
from shardwright.formats.tables import Table, choose_columns

KEYS = ["a.jpg", "b.jpg", "c.jpg", "d.jpg"]


@pytest.fixture
def table(tmp_path):
    def write(text, name="labels.csv"):
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return str(file)

    return write


def source(
    labels,
    task="segmentation",
    keys=KEYS,
    classes=None,
    label_format="auto",
    columns=None,
    skip=(),
    code=None,
    size=(20, 30),
):
    if isinstance(classes, (list, tuple)):
        classes = dict.fromkeys(classes)
    return open_source(
        Request(
            task=task,
            options=LabelsConfig(format=label_format, path=labels, columns=columns or {}, **(code or {})),
            classes=classes,
            path=labels,
            images=Images(list(keys), frozenset(skip), size_of=lambda position: size, max_pixels=10**6),
        )
    )


def read(*args, **options):
    opened = source(*args, **options)
    survey = opened.survey()
    return survey, list(opened.annotations())


# --- tables ----------------------------------------------------------------------------------------------------------

PLAIN = 'ImageId,ClassId,EncodedPixels\na.jpg,1,1 3\n"b.jpg",2,"4 5"\n\nc.jpg,1,\n'


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        "\ufeff" + PLAIN,
        "\n\n" + PLAIN,
        PLAIN.rstrip("\n"),
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "\t"),
        PLAIN.replace("ImageId,ClassId", " image_id , class "),
    ],
)
def test_the_same_table_in_many_spellings(table, text):
    survey, annotations = read(table(text))
    assert survey.classes == ("1", "2")
    assert [(a.image, a.label, a.text) for a in annotations] == [(0, 0, "1 3"), (1, 1, "4 5")]
    assert list(survey.listed) == [1, 1, 1, 0]


def test_rows_are_numbered_as_an_editor_does(table):
    text = 'ImageId,ClassId,EncodedPixels\na.jpg,1,"1\n3"\n\nb.jpg,1,4 5\n'
    _, annotations = read(table(text))
    assert [a.row for a in annotations] == [2, 5]
    assert annotations[0].text == "1\n3"


def test_a_mask_of_megabytes_is_one_field(table):
    mask = "1 1 " * 500_000
    _, annotations = read(table(f"ImageId,ClassId,EncodedPixels\na.jpg,1,{mask}\n"))
    assert annotations[0].text == mask.strip()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        ("ImageId,ClassId\n".encode("utf-16"), "not UTF-8"),
        (b"ImageId,ClassId,EncodedPixels\nn\xe4h.jpg,1,1 1\n", r"not UTF-8 text \(bytes e4"),
    ],
)
def test_text_that_is_none_is_refused(table, text, message):
    with pytest.raises(UsageError, match=message):
        read(table(text))


def test_columns_are_detected_by_synonyms_and_overridden(table):
    opened = Table.open(table("id,photo,kind,file_name\n"))
    assert choose_columns(opened, {}) == {"image": 3}
    assert choose_columns(opened, {"image": "photo", "label": "kind"}) == {"image": 1, "label": 2}
    with pytest.raises(UsageError, match=r"columns\.label: .* has no column 'Kind'\. It has: 'id', 'photo'"):
        choose_columns(opened, {"label": "Kind"})
    with pytest.raises(UsageError, match="more than one column 'x'"):
        choose_columns(Table.open(table("x,x\n")), {"image": "x"})
    with pytest.raises(UsageError, match=r"several columns are called 'label', and one of them holds the label"):
        choose_columns(Table.open(table("image,label,note,label\n")), {})
    assert choose_columns(Table.open(table("image,label,note,note\n")), {}) == {"image": 0, "label": 1}


# --- which format ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "row", "unlisted"),
    [
        ("Image_Label,EncodedPixels", "a.jpg_Fish,1 3", "fail"),
        ("ImageId_ClassId,EncodedPixels", "a.jpg_1,1 3", "fail"),
        ("ImageId,ClassId,EncodedPixels", "a.jpg,1,1 3", "empty"),
    ],
)
def test_the_three_layouts_of_masks(table, header, row, unlisted):
    opened = source(table(f"{header}\n{row}\n"), classes=["Fish"])
    survey = opened.survey()
    assert list(opened.annotations()) == [Annotation(0, 0, "1 3", 2)]
    assert opened.unlisted == unlisted
    assert opened.mask_column == "EncodedPixels"
    assert survey.notes[0] == "labels: rle_csv, since labels.csv has a column 'EncodedPixels'"
    assert "mask from column 'EncodedPixels'" in survey.notes[1]


def test_labels_and_class_folders_are_detected_too(table):
    survey, annotations = read(table("filename,species\na.jpg,rose\nc.jpg,tulip\n"), task="classification")
    assert survey.classes == ("rose", "tulip")
    assert annotations == [Annotation(0, 0, None, 2), Annotation(2, 1, None, 3)]
    assert survey.notes[0] == "labels: label_csv, since labels.csv has no column of masks"
    survey, annotations = read(None, task="classification", keys=["rose/a.jpg", "rose/x/b.jpg", "tulip/a.jpg"])
    assert survey.classes == ("rose", "tulip")
    assert [a.label for a in annotations] == [0, 0, 1]
    assert survey.notes[0].startswith("labels: class folders")


@pytest.mark.parametrize(
    ("header", "task", "message"),
    [
        ("foo,bar", "segmentation", "columns 'foo', 'bar' were found, but expected Image_Label,EncodedPixels"),
        ("ClassId,EncodedPixels", "segmentation", "expected Image_Label,EncodedPixels"),
        ("image,label", "segmentation", "expected Image_Label,EncodedPixels"),
        ("foo,label", "classification", "expected one column for the image"),
        ("ImageId,ClassId,EncodedPixels", "classification", "holds masks .* task is classification"),
    ],
)
def test_columns_that_do_not_do_name_found_and_expected(table, header, task, message):
    with pytest.raises(UsageError, match=message):
        source(table(f"{header}\n"), task=task)


@pytest.mark.parametrize("column", ["kind", "defect", "Score"])
def test_a_column_that_may_hold_classes_is_not_passed_over(table, column):
    text = f"ImageId,{column},EncodedPixels\na.jpg,x,1 3\n"
    with pytest.raises(UsageError, match=rf"no column of classes was found; is it '{column}'\? Name it by input\."):
        source(table(text))
    assert read(table(text), classes=["ship"])[0].classes == ("ship",)
    assert read(table(text), columns={"label": column})[0].classes == ("x",)
    assert read(table(text.replace(column, "Height")))[0].classes == ("mask",)


@pytest.mark.parametrize("number", ["confidence", "Score", "is_difficult", "conf"])
@pytest.mark.parametrize("name", ["thing", "defect_type", "finding"])
def test_classes_are_offered_before_what_a_detector_says(table, number, name):
    lines = [f"{'ab'[i % 2]}.jpg,{90 + i % 4},{i % 2},{('rust', 'dent')[i % 2]},1 3" for i in range(8)]
    text = "\n".join([f"ImageId,{number},occluded,{name},EncodedPixels", *lines])
    with pytest.raises(UsageError, match=f"is it '{name}'") as caught:
        source(table(text + "\n"))
    offered = [reading.options.get("input.labels.columns.label") for reading in caught.value.readings]
    assert offered[0] == name
    assert not {number, "occluded"} & set(offered)
    with pytest.raises(UsageError) as caught:
        source(table(text.replace(",1 3", "").replace(",EncodedPixels", "") + "\n"), task="classification")
    offered = [reading.options.get("input.labels.columns.label") for reading in caught.value.readings]
    assert offered[0] == name


def test_rows_next_to_masks_are_not_looked_at_for_the_dialect(table):
    """Images that are not there, that cannot be read, and broken rows do not decide how runs are written."""
    text = "photo,kind,rle\nz.jpg,x,0 3\n,x,0 3\na.jpg,x\na.jpg,x,\n"
    columns = {"image": "photo", "label": "kind"}
    assert read(table(text), columns=columns)[0].notes[-2].startswith("run lengths: absolute starts from 1, column")
    opened = source(table(text + "a.jpg,x,0 3\n"), columns=columns, size=None)
    assert opened.dialect.base == 1
    with pytest.raises(UsageError, match=r"input\.labels\.rle\.order"):
        source(table(text + "a.jpg,x,0 3\n"), columns=columns)
    ordered = {"rle": RleConfig(order="row")}
    assert source(table(text + "a.jpg,x,0 3\n"), columns=columns, code=ordered).dialect.base == 0


def test_masks_need_a_table():
    with pytest.raises(ConfigError, match=r"input\.labels\.path"):
        source(None)


def test_the_format_can_be_forced(table):
    text = "ImageId,ClassId,EncodedPixels\na.jpg,1,1 3\n"
    survey, annotations = read(table(text), task="classification", label_format="label_csv")
    assert annotations == [Annotation(0, 0, None, 2)]
    assert not any(note.startswith("labels: ") for note in survey.notes)


# --- rows and images -------------------------------------------------------------------------------------------------


def test_rows_of_an_image_may_be_far_apart_and_repeat_a_class(table):
    text = "Image_Label,EncodedPixels\na.jpg_Fish,1 3\nb.jpg_Fish,1 1\na.jpg_Sugar,\na.jpg_Fish,9 2\n"
    survey, annotations = read(table(text), classes=["Fish", "Sugar"])
    assert annotations == [Annotation(0, 0, "1 3", 2), Annotation(1, 0, "1 1", 3), Annotation(0, 0, "9 2", 5)]
    assert survey.rejected == {}


def test_underscores_in_files_and_classes_are_distinguished(table):
    keys = ["a_b.jpg", "a_b.jpg_hot"]
    text = "Image_Label,EncodedPixels\na_b.jpg_hot_spot,1 1\na_b.jpg_cold,1 1\n"
    survey, annotations = read(table(text), keys=keys)
    assert survey.classes == ("cold", "spot")
    assert [a.image for a in annotations] == [1, 0]
    survey, annotations = read(table(text), keys=keys, classes=["hot_spot", "cold"])
    assert [(a.image, a.label) for a in annotations] == [(0, 0), (0, 1)]
    survey, annotations = read(table(text), keys=keys[:1])
    assert survey.classes == ("cold", "hot_spot")


def test_images_that_are_not_there_are_refused_once(table):
    text = "Image_Label,EncodedPixels\na.jpg_Fish,1 1\nz.jpg_Fish,1 1\ny.jpg_Fish,\nz.jpg_Sugar,\n"
    survey, annotations = read(table(text))
    assert [(r.key, r.code) for r in survey.refused] == [("z.jpg", "missing_image"), ("y.jpg", "missing_image")]
    assert "labels.csv, row 3" in survey.refused[0].reason
    assert len(annotations) == 1


def test_an_image_without_class_and_mask_is_listed(table):
    survey, annotations = read(table("ImageId,ClassId,EncodedPixels\na.jpg,1,1 1\nb.jpg,,\n"))
    assert list(survey.listed) == [1, 1, 0, 0]
    assert len(annotations) == 1
    survey, _ = read(table("Image_Label,EncodedPixels\na.jpg_Fish,1 1\nb.jpg,\n"))
    assert list(survey.listed) == [1, 1, 0, 0]
    assert survey.classes == ("Fish",)


def test_broken_rows_reject_their_image_or_themselves(table):
    text = "ImageId,ClassId,EncodedPixels\na.jpg,1\nb.jpg,,1 1\n,1,1 1\nc.jpg,1,1 1\nz.jpg,1,1,1\n"
    survey, annotations = read(table(text))
    assert {i: (r.key, r.code) for i, r in survey.rejected.items()} == {
        0: ("a.jpg", "bad_row"),
        1: ("b.jpg", "bad_row"),
    }
    assert "row 2: 2 fields, the header has 3" in survey.rejected[0].reason
    assert [(r.key, r.code) for r in survey.refused] == [("labels.csv:4", "bad_row"), ("labels.csv:6", "bad_row")]
    assert [a.image for a in annotations] == [2]


def test_two_classes_for_one_image_reject_it(table):
    text = "image,label\na.jpg,rose\nb.jpg,rose\na.jpg,rose\nb.jpg,tulip\n"
    survey, _ = read(table(text), task="classification")
    assert list(survey.rejected) == [1]
    assert survey.rejected[1].code == "conflicting_labels"
    assert "row 5: states 'tulip', row 3 states 'rose'" in survey.rejected[1].reason


def test_an_image_outside_all_class_folders_is_rejected():
    survey, annotations = read(None, task="classification", keys=["a.jpg", "rose/b.jpg", "x/notes.txt"], skip=[2])
    assert survey.classes == ("rose",)
    assert survey.rejected[0].code == "no_class_folder"
    assert [a.image for a in annotations] == [1]


NESTED = ["x/a.jpg", "x/b.jpg", "y/a.jpg", "y/c.jpg"]


def test_names_match_by_key_or_by_unique_file_name():
    index = NameIndex(NESTED, frozenset([3]))
    assert index.find("x/a.jpg") == 0
    assert index.find("./y\\a.jpg") == 2
    assert index.find("b.jpg") == 1
    assert index.find(" b.jpg ") == 1
    assert index.find("c.jpg") is None
    assert index.find("z/b.jpg") is None
    assert index.find("") is None
    with pytest.raises(UsageError, match=r"'a\.jpg', which could be x/a\.jpg or y/a\.jpg"):
        index.find("a.jpg")


def test_names_match_without_extension_where_one_image_fits():
    index = NameIndex(
        ["1.2.840.png", "x/a.jpg", "x/a.png", "x/b.jpg", "y/b.jpg", "y/c.tar.png", "z.txt"], frozenset([6])
    )
    assert index.find("1.2.840") == 0
    assert index.find("y/c.tar") == index.find("c.tar") == 5
    assert index.find("y/b") == 4
    assert [index.find(name) for name in ("1.2", "c", "z", "c.tar.jpg", ".png", "")] == [None] * 6
    with pytest.raises(UsageError, match=r"'a', which could be x/a\.jpg or x/a\.png"):
        index.find("a")
    with pytest.raises(UsageError, match=r"'x/a', which could be x/a\.jpg or x/a\.png"):
        index.find("x/a")
    with pytest.raises(UsageError, match=r"'b', which could be x/b\.jpg or y/b\.jpg"):
        index.find("b")


def test_names_match_however_unicode_spells_them():
    assert NameIndex(["na\u00efve.jpg"]).find("nai\u0308ve.jpg") == 0


@given(st.lists(st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=8), unique=True, max_size=20))
def test_every_key_finds_itself(keys):
    index = NameIndex(sorted(keys))
    assert [index.find(key) for key in sorted(keys)] == list(range(len(keys)))
    assert [index.find(key) for key in keys] == [sorted(keys).index(key) for key in keys]


# --- classes ---------------------------------------------------------------------------------------------------------


def values(*names):
    return {name: f"t.csv, row {i + 2}" for i, name in enumerate(names)}


def test_detected_classes_are_sorted_as_numbers_when_they_are():
    assert map_classes(values("b", "a"), None).names == ("a", "b")
    assert map_classes(values("10", "9", "1"), None).names == ("1", "9", "10")
    assert map_classes(values("10", "9", "x"), None).names == ("10", "9", "x")


def test_names_are_taken_by_name():
    mapped = map_classes(values("b"), {"b": None, "a": None})
    assert (mapped.names, dict(mapped.index), mapped.notes) == (("b", "a"), {"b": 0}, ())


@pytest.mark.parametrize(
    ("found", "index", "base"),
    [
        (["1", "3"], {"1": 0, "3": 2}, 1),
        (["0", "2"], {"0": 0, "2": 2}, 0),
        (["2"], {"2": 1}, 1),
        (["1.0"], {"1.0": 0}, 1),
    ],
)
def test_ids_of_a_plain_list_count_from_0_or_1_with_a_note(found, index, base):
    mapped = map_classes(values(*found), dict.fromkeys(["a", "b", "c"]))
    assert dict(mapped.index) == index
    assert f"count from {base}" in mapped.notes[0]


def test_ids_of_a_mapping_are_taken_by_id():
    mapped = map_classes(values("4", "7", "b"), {"a": 7, "b": 4})
    assert dict(mapped.index) == {"4": 1, "7": 0, "b": 1}


@pytest.mark.parametrize(
    ("found", "classes", "message"),
    [
        (["a", "Crab"], {"a": None}, r"t.csv, row 3: the class 'Crab' is not in input.classes. Known are: a\."),
        (["1", "4"], {"a": None, "b": None, "c": None}, r"row 3: the class '4' .* a \(1\), b \(2\), c \(3\)"),
        (["0", "3"], {"a": None, "b": None, "c": None}, r"row 3: the class '3' .* a \(0\), b \(1\), c \(2\)"),
        (["-1"], {"a": None}, "'-1'"),
        (["a", "1"], {"a": None}, "row 3: the class '1'"),
        (["1", "x"], {"a": 1}, r"row 3: the class 'x' .* a \(1\)"),
        (["2"], {"a": 1}, r"'2' .* a \(1\)"),
        (["0"], {"a": 1}, "'0'"),
        ([], None, "none are given"),
        (["a\nb"], None, "cannot be part of a feature's name"),
    ],
)
def test_unknown_classes_name_place_value_and_the_known_ones(found, classes, message):
    with pytest.raises(UsageError, match=message):
        map_classes(values(*found), classes)


@given(st.lists(st.integers(0, 10**6), min_size=1, unique=True))
def test_detected_numbers_keep_their_order(numbers):
    names = map_classes(values(*map(str, numbers)), None).names
    assert [as_integer(name) for name in names] == sorted(numbers)


def test_too_many_classes_are_no_classes(table, monkeypatch):
    monkeypatch.setattr("shardwright.formats.rows.MOST_CLASSES", 3)
    rows = "".join(f"a.jpg,{i},1 1\n" for i in range(5))
    with pytest.raises(UsageError, match="more than 3 different classes"):
        read(table("ImageId,ClassId,EncodedPixels\n" + rows))


@pytest.mark.parametrize(
    ("values", "classes", "names"),
    [
        ({"cat": "row 2", "dog": "row 3", "cow": "row 4"}, {"hen": None, "cow": None}, "'cat', 'dog'"),
        ({"7": "row 2", "8": "row 3", "1": "row 4"}, {"hen": 1, "cow": 2}, "'7', '8'"),
        ({"7": "row 2", "8": "row 3", "1": "row 4"}, {"hen": None, "cow": None}, "'7', '8'"),
    ],
)
def test_all_classes_that_are_missing_are_named_at_once(values, classes, names):
    with pytest.raises(UsageError, match=f"^row 2: 2 classes are not in input.classes: {names}. Known are: hen"):
        map_classes(values, classes)
