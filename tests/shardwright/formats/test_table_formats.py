"""Which format a table is taken for: by its columns and the task, detected with the reason."""

import pytest

from shardwright.config import LabelsConfig
from shardwright.errors import UsageError
from shardwright.formats.base import Images, Request
from shardwright.formats.detect import open_source

KEYS = ["a.png", "b.png"]


def survey(tmp_path, text, task="classification", classes=None, **labels):
    file = tmp_path / "t.csv"
    file.write_text(text, encoding="utf-8")
    source = open_source(
        Request(
            task=task,
            options=LabelsConfig(path=str(file), **labels),
            classes=classes,
            path=str(file),
            images=Images(KEYS, frozenset(), size_of=lambda position: (4, 6), max_pixels=10**6),
        )
    )
    survey = source.survey()
    return survey, list(source.annotations())


@pytest.mark.parametrize(
    ("text", "expected", "labels"),
    [
        ("image,labels\na,x\n", "label_csv, since t.csv has no column of masks", "single"),
        ("Image Index,Finding Labels\na,x|y\n", "label_csv, since t.csv has no column of masks", "multi"),
        ("img,tags\na,x y\nb,x\na,y\n", "label_csv, since t.csv has no column of masks", "multi"),
        ("name,x,y\na,1,0\n", "label_csv, since the columns hold 0 and 1 only; every row has one 1", "single"),
        ("name,x,y\na,1,1\n", "label_csv, since the columns hold 0 and 1 only; not every row has one 1", "multi"),
        ("id,x,y,text\na,1,1,t\n", "label_csv, since the columns hold 0 and 1 only; not every row has one 1", "multi"),
        ("image,label,counts\na,x,3\n", "label_csv, since t.csv has no column of masks", "single"),
        ("image,label,text\na,x,hello\n", "label_csv, since t.csv has no column of masks", "single"),
        ("image,text\na,hello\n", "captions, since t.csv has no classes, but captions in 'text'", "none"),
        ("path,text1,text2\na,b,c\n", "captions, since t.csv has no classes, but captions in 'text1', 'text2'", "none"),
    ],
)
def test_tables_are_detected_by_their_columns(tmp_path, text, expected, labels):
    found, _ = survey(tmp_path, text)
    assert found.notes[0] == f"labels: {expected}"
    assert found.labels == labels


def test_a_column_of_counts_is_masks_for_segmentation_only(tmp_path):
    text = "image,label,counts\na,x,[3 2 19]\nb,x,[24]\n".replace(" ", ",").replace("[", '"[').replace("]", ']"')
    found, annotations = survey(tmp_path, text, task="segmentation")
    assert "mask from column 'counts'" in found.notes[1]
    assert [annotation.text for annotation in annotations] == ["[3,2,19]", "[24]"]
    found, annotations = survey(tmp_path, text)
    assert [annotation.text for annotation in annotations] == [None, None]
    with pytest.raises(UsageError, match="holds masks"):
        survey(tmp_path, text, columns={"mask": "counts"})


def test_columns_that_are_left_out_are_named(tmp_path):
    found, _ = survey(tmp_path, "image,label,age,site\na,x,3,s\n")
    assert found.notes[2] == "left out: 'age', 'site' (input.labels.features takes further columns)"
    found, _ = survey(tmp_path, "image,label,age,site\na,x,3,s\n", features={"age": "auto"})
    assert found.notes[-1] == "image/meta/age from column 'age': int"
    assert not any(note.startswith("left out") for note in found.notes)
    found, _ = survey(tmp_path, "image,label,age\na,x,3\nb,x,x7\n", features={"age": "auto"})
    assert found.notes[-1] == "image/meta/age from column 'age': text, since row 3 holds 'x7'"


@pytest.mark.parametrize("text", ["image,text\na,x\n", "image,x,y\na,1,0\n", "image,label\na,x\n"])
def test_tables_without_masks_are_none_for_segmentation(tmp_path, text):
    with pytest.raises(UsageError, match="expected Image_Label,EncodedPixels"):
        survey(tmp_path, text, task="segmentation")


@pytest.mark.parametrize(
    ("rows", "unit", "edges", "reason"),
    [
        ("a,x,0.5,0.25,1,0.75\nb,x,0,0,1,1\n", "fractions of the image", [0.5, 0.25, 1, 0.75], ""),
        ("a,x,-0.0001,0.25,0.5,1.0002\n", "fractions of the image", [0, 0.25, 0.5, 1], ""),
        ("a,x,0.5,0.25,1,0.75\nb,x,nan,0,1,1\n", "fractions of the image", [0.5, 0.25, 1, 0.75], "xmin is 'nan'"),
        (
            "a,x,0.5,0.25,1,0.75\na,x,0,0,.5,1\nb,x,0,0,1,1.5\n",
            "fractions of the image",
            [0.5, 0.25, 1, 0.75],
            "row 4: ymax: 1.5 is not a fraction of the image, from 0 to 1",
        ),
        ("a,x,0,0,1,1\n", "pixels", [0, 0, 1 / 6, 0.25], ""),
        ("a,x,1.5,0.5,3,2\nb,x,0.5,0,1,1\n", "pixels", [0.25, 0.125, 0.5, 0.5], ""),
        ("a,x,1.5,0.5,3,2\nb,x,0,0,3,2\nb,x,0.5,0,1,1\n", "pixels", [0.25, 0.125, 0.5, 0.5], ""),
    ],
)
def test_the_unit_of_boxes_is_that_of_most_of_them(tmp_path, rows, unit, edges, reason):
    found, annotations = survey(tmp_path, f"image,class,xmin,ymin,xmax,ymax\n{rows}", boxes=True)
    assert found.notes[-1].endswith(f", in {unit}")
    first = next(one.values for one in annotations if one.image == 0)
    sides = ("xmin", "ymin", "xmax", "ymax")
    assert [first[f"image/object/bbox/{side}"][0] for side in sides] == pytest.approx(edges)
    assert [reason in refusal.reason for refusal in found.rejected.values()] == ([True] if reason else [])


def test_boxes_without_classes_are_named_as_what_they_are(tmp_path):
    text = "image,xmin,ymin,xmax,ymax\na,0,0,1,1\nb,1,0,3,2\n"
    with pytest.raises(UsageError, match="'ymax' holds boxes, and no column has their classes. Name it") as caught:
        survey(tmp_path, text)
    assert caught.value.readings[0].options["input.classes"] == ["object"]
    found, _ = survey(tmp_path, text, format="numbers")
    assert "image/meta/xmax" in "".join(found.notes)


def test_captions_that_are_asked_for_must_be_there(tmp_path):
    with pytest.raises(UsageError, match="expected one column for the image and one or more for its captions"):
        survey(tmp_path, "image,label\na,x\n", format="captions")
    found, annotations = survey(tmp_path, "image,label,text\na,x,hello\n", format="captions")
    assert (found.labels, found.classes) == ("none", ())
    assert [annotation.values for annotation in annotations] == [{"image/caption/text": ["hello"]}]
