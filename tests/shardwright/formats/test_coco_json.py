"""COCO instances as a source: images, annotations and categories matched; what does not fit is reported."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.config import LabelsConfig
from shardwright.config.input import RleConfig
from shardwright.errors import UsageError
from shardwright.formats.base import Annotation, Images, Request
from shardwright.formats.detect import open_source

KEYS = ["a.jpg", "b.jpg", "x/c.jpg"]
SQUARE = [[0, 0, 2, 0, 2, 2, 0, 2]]


def annotation(image, category, segmentation=SQUARE, **fields):
    return {"image_id": image, "category_id": category, "segmentation": segmentation, **fields}


def document(annotations=(), images=None, categories=None):
    names = {10: "a.jpg", 20: "b.jpg"}
    return {
        "info": {"year": 2017},
        "images": [{"id": i, "file_name": n} for i, n in names.items()] if images is None else images,
        "annotations": list(annotations),
        "categories": [{"id": 18, "name": "dog"}, {"id": 3, "name": "car"}] if categories is None else categories,
    }


@pytest.fixture
def write(tmp_path):
    def write(content, name="instances.json"):
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return str(file)

    return write


def source(labels, classes=None, task="segmentation", label_format="auto", columns=None, code=None, skip=()):
    return open_source(
        Request(
            task=task,
            options=LabelsConfig(format=label_format, path=labels, columns=columns or {}, **(code or {})),
            classes=dict.fromkeys(classes) if isinstance(classes, list) else classes,
            path=labels,
            images=Images(KEYS, frozenset(skip), size_of=lambda position: None, max_pixels=10**6),
        )
    )


def read(*args, **options):
    opened = source(*args, **options)
    survey = opened.survey()
    return survey, list(opened.annotations())


def text(segmentation=SQUARE, size="null,null"):
    return f"[{size},{json.dumps(segmentation, separators=(',', ':'))}]"


# --- what fits -------------------------------------------------------------------------------------------------------


def test_annotations_are_matched_and_classes_go_by_category_id(write):
    counts = {"size": [4, 6], "counts": "0e0"}
    entries = [annotation(20, 18), annotation(10, 3, counts, iscrowd=1), annotation(20, 18, id=7)]
    survey, annotations = read(write(document(entries)))
    assert survey.classes == ("car", "dog")
    assert annotations == [
        Annotation(0, 0, text(counts), 1),
        Annotation(1, 1, text(), 0),
        Annotation(1, 1, text(), 2),
    ]
    assert list(survey.listed) == [1, 1, 0]
    assert survey.rejected == {}
    assert survey.refused == []
    assert survey.notes == (
        "labels: coco_json, since instances.json ends with .json",
        "2 classes, in the order of the category ids: car (3), dog (18)",
    )


@given(st.dictionaries(st.integers(-5, 10**6), st.text("abc", min_size=1), min_size=1, max_size=8))
def test_classes_detected_go_by_number_in_any_order_with_any_gaps(tmp_path_factory, names):
    names = {number: f"{name}{number}" for number, name in names.items()}
    file = tmp_path_factory.mktemp("coco") / "x.json"
    categories = [{"id": number, "name": name} for number, name in names.items()]
    file.write_text(json.dumps(document([annotation(10, number) for number in names], categories=categories)))
    survey, annotations = read(str(file))
    assert survey.classes == tuple(names[number] for number in sorted(names))
    assert [survey.classes[a.label] for a in annotations] == list(names.values())


def test_sizes_go_along_with_the_masks(write):
    images = [{"id": 1, "file_name": "c.jpg", "height": 40, "width": 60}]
    _, annotations = read(write(document([annotation(1, 3)], images=images)))
    assert annotations == [Annotation(2, 0, text(size="40,60"), 0)]


def test_ids_may_be_text_and_numbers_in_quotes(write):
    images = [{"id": "10", "file_name": "a.jpg"}, {"id": "x", "file_name": "b.jpg"}]
    categories = [{"id": "b", "name": "car"}, {"id": "a", "name": "dog"}]
    survey, annotations = read(write(document([annotation(10, "a"), annotation("x", "b")], images, categories)))
    assert survey.classes == ("dog", "car")
    assert [(a.image, a.label) for a in annotations] == [(0, 0), (1, 1)]


def test_ids_may_be_whole_floats_as_tables_write_them(write):
    entries = [annotation(10.0, 3), annotation(20, 18.0)]
    survey, annotations = read(write(document(entries)))
    assert [(a.image, a.label) for a in annotations] == [(0, 0), (1, 1)]
    assert survey.refused == []


def test_two_entries_may_be_of_one_image(write):
    """As files are after two were joined."""
    images = [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "./a.jpg"}, {"id": 3, "file_name": "a.jpg"}]
    survey, annotations = read(write(document([annotation(number, 3) for number in (3, 1, 2)], images)))
    assert [(a.image, a.row) for a in annotations] == [(0, 0), (0, 1), (0, 2)]
    assert survey.rejected == {}
    images = [{**image, "height": height, "width": 5} for image, height in zip(images, (4, 4, 6), strict=True)]
    images.append({"id": 4, "file_name": "b.jpg"})
    survey, _ = read(write(document([annotation(1, 3), annotation(4, 3)], images)))
    assert "several sizes of the image: (4, 5) and (6, 5)" in survey.rejected[0].reason


def test_images_may_have_a_further_member_image_id(write):
    images = [{"id": 10, "image_id": 10, "file_name": "a.jpg", "height": 4, "width": 6}]
    # Some annotations have the name of their image.
    _, annotations = read(write(document([annotation(10, 3, file_name="a.jpg")], images)))
    assert annotations == [Annotation(0, 0, text(size="4,6"), 0)]


@pytest.mark.parametrize(
    ("classes", "names", "label"),
    [
        (["dog", "car"], ("dog", "car"), 0),
        (["dog", "bike", "car"], ("dog", "bike", "car"), 0),
        ({"auto": 3, "dog": 18}, ("auto", "dog"), 1),
        ({"hound": 18}, ("hound",), 0),
    ],
)
def test_input_classes_decide_by_name_or_by_id(write, classes, names, label):
    survey, annotations = read(write(document([annotation(10, 18)])), classes=classes)
    assert survey.classes == names
    assert [a.label for a in annotations] == [label]


@pytest.mark.parametrize(
    ("classes", "labels"), [(["car", "fish"], [1, 1, 0]), ({"Fish": 0, "fish": 1, "car": 2}, [0, 1, 2])]
)
def test_input_classes_decide_where_two_categories_have_one_name(write, classes, labels):
    """As some exporters write it: the name of the whole project is a category, too."""
    categories = [{"id": 0, "name": "fish"}, {"id": 1, "name": "fish"}, {"id": 2, "name": "car"}]
    entries = [annotation(10, number) for number in range(3)]
    _, annotations = read(write(document(entries, categories=categories)), classes=classes)
    assert [a.label for a in annotations] == labels


def test_categories_without_annotations_are_detected(write):
    survey, _ = read(write(document([annotation(10, 18)])))
    assert survey.notes[-1] == "without annotations: car (3); input.classes leaves them out"


def test_auto_looks_at_name_and_first_character(write):
    notes = read(write(b"\xef\xbb\xbf \n" + json.dumps(document()).encode(), "labels.txt"))[0].notes
    assert notes[0] == "labels: coco_json, since labels.txt begins with a brace"
    survey, _ = read(write(document(), "labels.csv"), label_format="coco_json")
    assert not any(note.startswith("labels:") for note in survey.notes)
    with pytest.raises(UsageError, match="not UTF-8"):
        source(write(b"\xff\xfe", "labels.csv"))


# --- what does not ---------------------------------------------------------------------------------------------------


def refused(survey):
    return [(refusal.key, refusal.code) for refusal in survey.refused]


def test_images_that_are_not_there_are_refused_once(write):
    images = [{"id": i, "file_name": name} for i, name in enumerate(["a.jpg", "z.jpg", "z.jpg", "../../etc/passwd"])]
    survey, annotations = read(write(document([annotation(1, 3), annotation(0, 3), annotation(3, 3)], images)))
    assert refused(survey) == [("z.jpg", "missing_image"), ("../../etc/passwd", "missing_image")]
    assert survey.refused[0].reason == "instances.json, images[1] names 'z.jpg', but there is no such image"
    assert [(a.image, a.row) for a in annotations] == [(0, 1)]


def test_annotations_of_unknown_images_are_refused_once_an_id(write):
    survey, annotations = read(write(document([annotation(99, 3), annotation(99, 18), annotation(10, 3)])))
    assert refused(survey) == [("instances.json, annotations[0]", "missing_image")]
    assert "names the image id '99', which is not in images" in survey.refused[0].reason
    assert len(annotations) == 1


def test_broken_entries_reject_their_image_or_themselves(write):
    images = [{"id": 1, "file_name": "a.jpg"}, {"file_name": "b.jpg"}, {"id": 2}, 7, {"id": 3, "file_name": "\ud800"}]
    images.append({"id": 4, "file_name": "x/c.jpg"})
    entries = [annotation(1, None), {"image_id": 1.5}, {"bbox": []}, annotation(1, True), annotation(4, 3)]
    survey, annotations = read(write(document(entries, images)))
    entries = ["images[1]", "images[2]", "images[3]", "images[4]", "annotations[1]", "annotations[2]"]
    assert refused(survey) == [(f"instances.json, {entry}", "bad_row") for entry in entries]
    reasons = ["the image id is 1.5, not a whole number or a text", "names no image"]
    assert [one.reason.rpartition(": ")[2] for one in survey.refused[-2:]] == reasons
    assert survey.rejected[0] == ("a.jpg", "bad_row", "instances.json, annotations[0]: names no category")
    assert [one.image for one in annotations] == [2]


CARS = [{"id": 3, "name": "car"}]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"{", {}, r"is not JSON in UTF-8 \(Expecting"),
        (b'{"images": \xff}', {}, "is not JSON in UTF-8"),
        (b'{"a":' * 100_000, {}, "is not JSON in UTF-8"),
        (b'{"id": ' + b"9" * 5000 + b"}", {}, "is JSON, but has no list 'images'|is not JSON"),
        ([annotation(10, 3)], {}, r"has no list 'images' \(it holds list\)"),
        ({"images": [], "annotations": {}}, {}, "has no list 'annotations' .it holds 'images', 'annotations'"),
        (document(images=[]), {}, "'images' is empty"),
        (document(categories=[]), {}, "'categories' is empty"),
        (document([annotation(10, 4)]), {}, r"annotations\[0\]: the category id '4' .* car \(3\), dog \(18\)"),
        (document(categories=[*CARS, {"id": 3, "name": "bus"}]), {}, r"categories\[1\]: the id 3 occurs twice"),
        (
            document(categories=[*CARS, {"id": 4, "name": "car"}]),
            {},
            r"two categories have one name: 'car' \(3\), 'car' \(4",
        ),
        (document(categories=[{"id": 3}]), {}, r"categories\[0\]: has no id or no name"),
        (document(categories=[{"id": 3, "name": "a\nb"}]), {}, r"instances.json: the class 'a\\nb' cannot be part"),
        (
            document(images=[{"id": 1, "file_name": n} for n in KEYS]),
            {},
            r"images\[1\]: the id 1 is also that of 'a.jpg'",
        ),
        (document([annotation(10, 18)]), {"classes": ["car"]}, r"annotations\[0\]: the class 'dog' is not in input"),
        (document([annotation(10, 18)]), {"classes": {"car": 3}}, r"the class '18' is not in input.* car \(3\)"),
        (
            document(),
            {"classes": {"car": 18, "dog": 3}},
            "'car' has the id 18, but in .* that is 'dog', and 'car' has 3",
        ),
        (document(), {"task": "classification"}, "holds 0 objects .* and task is classification"),
        (document(), {"columns": {"image": "x"}}, r"input\.labels\.columns\.image: not used by coco_json"),
        (document(), {"code": {"rle": RleConfig(order="row")}}, r"input\.labels\.rle\.order: not used by coco_json"),
    ],
)
def test_a_file_that_does_not_do_is_refused(write, content, options, message):
    with pytest.raises(UsageError, match=message):
        read(write(content), **options)


@pytest.mark.parametrize(("annotated", "classes"), [([3], ["car"]), ([3, 0], ["traffic", "car"])])
def test_a_category_of_others_is_a_class_where_an_annotation_has_it(write, annotated, classes):
    """Roboflow's root of all categories has none."""
    content = document([annotation(10, number) for number in annotated])
    content["categories"] = [
        {"id": 0, "name": "traffic", "supercategory": "none"},
        {"id": 3, "name": "car", "supercategory": "traffic"},
    ]
    assert list(source(write(content)).survey().classes) == classes


def test_of_an_annotation_no_more_than_its_text_is_kept(write):
    """A polygon's numbers take eight times the memory of their text."""
    file = write(document([annotation(10, 3, bbox=[1, 2, 3, 4], area=9)]))
    assert [(one.text, dict(one.values)) for one in read(file)[1]] == [(text(), {})]
    opened = source(file, task="classification", code={"boxes": True})
    opened.survey()
    (_, content), _ = opened._kept
    assert content.things == [("car", None, (1, 2, 4, 6), {"is_crowd": 0}, "", 0, 0, None)]
