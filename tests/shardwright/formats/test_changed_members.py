"""Any member of an annotation file may be something else: its image is rejected, or the file is, in one clear line."""

import base64
import copy
import io
import json
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from property_tests import tries

from shardwright.config import LabelsConfig
from shardwright.errors import ShardwrightError
from shardwright.formats.base import Images, Request
from shardwright.formats.detect import open_source
from shardwright.images.boxes import AnnotationError
from shardwright.storage.fingerprint import canonical_json

HEIGHT, WIDTH = 24, 40
CORNERS = [[2, 3], [12, 3], [12, 11]]
OTHERS = [None, True, 0, -1, 1.5, 1e300, 10**30, "", "x", "polygon", [], ["x"], [[1, 2]], {}, {"x": {}}, [{}], "\ud800"]


def png(pack=bytes):
    file = io.BytesIO()
    Image.new("L", (3, 2), 1).save(file, "PNG")
    return base64.b64encode(pack(file.getvalue())).decode()


def studio_result(kind, **value):
    sizes = {"original_width": WIDTH, "original_height": HEIGHT, "image_rotation": 0}
    return {"id": kind, "type": kind, "to_name": "image", **sizes, "value": {kind: ["car"], **value}}


BOX = {"x": 10, "y": 10, "width": 25, "height": 25, "rotation": 5}
SEGMENT = {"id": 460551, "category_id": 3, "bbox": [2, 3, 4, 5], "iscrowd": 0}
IMAGE = {"id": 1, "file_name": "a.jpg", "height": HEIGHT, "width": WIDTH}
# Format -> the file, below the folder of the images, and its content; a list of lines for JSON lines.
FILES = {
    "labelme": (
        "a.json",
        {
            "imagePath": "a.jpg",
            "imageHeight": HEIGHT,
            "imageWidth": WIDTH,
            "flags": {"night": True},
            "shapes": [
                {"label": "car", "shape_type": "polygon", "points": CORNERS},
                {"label": "car", "shape_type": "mask", "points": [[2, 3], [4, 4]], "mask": png()},
                {"label": "car", "shape_type": "circle", "points": CORNERS[:2]},
            ],
        },
    ),
    "supervisely": (
        "d/ann/a.jpg.json",
        {
            "size": {"height": HEIGHT, "width": WIDTH},
            "tags": [{"name": "night", "value": "x"}],
            "objects": [
                {
                    "classTitle": "car",
                    "geometryType": "polygon",
                    "points": {"exterior": CORNERS, "interior": [CORNERS]},
                },
                {"classTitle": "car", "geometryType": "rectangle", "points": {"exterior": CORNERS[:2]}},
                {
                    "classTitle": "car",
                    "geometryType": "bitmap",
                    "bitmap": {"data": png(zlib.compress), "origin": [1, 2]},
                },
            ],
        },
    ),
    "label_studio": (
        "p.json",
        [
            {
                "data": {"image": "/d/a.jpg", "other": ["b.jpg", "c.jpg"]},
                "annotations": [
                    {
                        "ground_truth": True,
                        "was_cancelled": False,
                        "result": [
                            studio_result("rectanglelabels", **BOX),
                            studio_result("polygonlabels", points=[[10, 10], [30, 10], [30, 40]]),
                            studio_result("ellipselabels", **BOX, radiusX=5, radiusY=6),
                            studio_result("brushlabels", format="rle", rle=[0, 1, 2]),
                            {**studio_result("rectangle", **BOX), "id": "labels", "item_index": 0},
                            studio_result("labels"),
                            studio_result("choices"),
                            {"type": "relation", "from_id": "a", "to_id": "b"},
                        ],
                    }
                ],
            }
        ],
    ),
    "via_json": (
        "v.json",
        {
            "_via_settings": {},
            "_via_img_metadata": {
                "a.jpg1": {
                    "filename": "a.jpg",
                    "size": 1,
                    "file_attributes": {"label": "x"},
                    "regions": [
                        {"shape_attributes": shape, "region_attributes": {"kind": "car"}}
                        for shape in (
                            {"name": "polygon", "all_points_x": [1, 5, 5], "all_points_y": [1, 1, 5]},
                            {"name": "ellipse", "cx": 5, "cy": 6, "rx": 3, "ry": 2, "theta": 0.1},
                            {"name": "rect", "x": 1, "y": 2, "width": 3, "height": 4},
                        )
                    ],
                }
            },
        },
    ),
    "panoptic": (
        "f.json",
        {
            "images": [IMAGE],
            "categories": [{"id": 3, "name": "car", "isthing": 1}],
            "annotations": [{"image_id": 1, "file_name": "f.png", "segments_info": [SEGMENT]}],
        },
    ),
    "coco_json": (
        "c.json",
        {
            "images": [IMAGE],
            "categories": [{"id": 3, "name": "car", "keypoints": ["x"]}],
            "annotations": [
                {"image_id": 1, "category_id": 3, "segmentation": [[2, 3, 12, 3, 12, 11]], "bbox": [2, 3, 4, 5]},
                {
                    "image_id": 1,
                    "category_id": 3,
                    "segmentation": {"size": [HEIGHT, WIDTH], "counts": [900, 60]},
                    "bbox": [2, 3, 4, 5],
                    "iscrowd": 1,
                },
            ],
        },
    ),
    "captions": ("c.json", {"images": [IMAGE], "annotations": [{"image_id": 1, "caption": "a car"}]}),
    "label_jsonl": (
        "l.jsonl",
        [{"image": "a.jpg", "label": ["x", 1], "objects": {"bbox": [[1, 2, 3, 4]], "category": ["car"]}}],
    ),
    "vertex_jsonl": (
        "v.jsonl",
        [
            {
                "imageGcsUri": "gs://b/a.jpg",
                "classificationAnnotation": {"displayName": "x"},
                "boundingBoxAnnotations": [
                    {"displayName": "car", "xMin": 0.1, "yMin": "0.1", "xMax": 0.4, "yMax": 0.5}
                ],
                "dataItemResourceLabels": {"aiplatform.googleapis.com/ml_use": "training"},
            }
        ],
    ),
    "labelbox": (
        "l.ndjson",
        [
            {
                "data_row": {"external_id": "a.jpg", "row_data": "gs://b/a.jpg"},
                "media_attributes": {"height": HEIGHT, "width": WIDTH},
                "projects": {
                    "p": {
                        "labels": [
                            {
                                "annotations": {
                                    "objects": [
                                        {"name": "car", "polygon": [{"x": x, "y": y} for x, y in CORNERS]},
                                        {
                                            "name": "car",
                                            "bounding_box": {"top": 1, "left": 2, "height": 3, "width": 4},
                                        },
                                    ],
                                    "classifications": [
                                        {"radio_answer": {"name": "x"}},
                                        {"checklist_answers": [{"name": "y"}]},
                                    ],
                                }
                            }
                        ]
                    }
                },
            }
        ],
    ),
}


def places(value, path=()):
    """Yields the path of every member, and of the whole."""
    yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in members:
        yield from places(member, (*path, name))


def replaced(document, path, value):
    if not path:
        return value
    changed = copy.deepcopy(document)
    inner = changed
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return changed


def read(root, form, document, task, classes=None):
    """Reads a file as the ingest does, up to the pixels of masks; returns how much it found: annotations, rejects."""
    file = root / FILES[form][0]
    lined = file.suffix in (".jsonl", ".ndjson") and isinstance(document, list)
    file.write_text("".join(json.dumps(row) + "\n" for row in document) if lined else json.dumps(document))
    labels = str(root if form in ("labelme", "supervisely") else file)
    key = "d/img/a.jpg" if form == "supervisely" else "a.jpg"
    images = Images([key], frozenset(), lambda _: (HEIGHT, WIDTH), max_pixels=10_000, root=str(root))
    options = LabelsConfig(format=form, path=labels, boxes=form != "captions")
    source = open_source(Request(task=task, options=options, classes=classes, path=labels, images=images))
    survey = source.survey()
    annotations = list(source.annotations())
    for _, label, text, _, values, stated_size in annotations:
        canonical_json([text, dict(values), stated_size])
        with suppress(AnnotationError):
            list(source.dialect.masks(label, text, height=HEIGHT, width=WIDTH) if text else ())
    return len(annotations) + len(survey.rejected)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    found = {}
    for form in FILES:
        root = found[form] = tmp_path_factory.mktemp(form)
        (root / "d/ann").mkdir(parents=True)
        Image.new("RGB", (WIDTH, HEIGHT), (7, 7, 7)).save(root / "f.png")
        if form == "supervisely":
            (root / "meta.json").write_text('{"classes": [{"title": "car"}]}')
    return found


@pytest.mark.parametrize("form", FILES)
@tries(25)
@given(data=st.data())
def test_any_member_may_be_something_else(folders, form, data):
    document = FILES[form][1]
    path = data.draw(st.sampled_from(list(places(document))))
    changed = replaced(document, path, data.draw(st.sampled_from(OTHERS)))
    task = data.draw(st.sampled_from(["classification"] if form == "captions" else ["segmentation", "classification"]))
    assert read(folders[form], form, document, "classification") > 0
    with suppress(ShardwrightError):
        read(folders[form], form, changed, task, data.draw(st.sampled_from([None, {"car": 3}])))
