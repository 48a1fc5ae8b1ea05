"""Files of annotation tools are named for what they are; of those that are not read, with what to do instead."""

import json
import subprocess
import sys

import pytest
import tool_files
from ingesting import run

from shardwright.errors import ConfigError, UsageError
from shardwright.formats.head import Head
from shardwright.formats.registry import reader, recognize
from shardwright.label_formats import FORMATS

LABELME = {"version": "5.0", "flags": {}, "shapes": [{"label": "cat", "points": [[0, 0]]}], "imagePath": "a.jpg"}
VIA = {"a.jpg123": {"filename": "a.jpg", "size": 123, "regions": [{"shape_attributes": {}}], "file_attributes": {}}}
VIA_PROJECT = {"_via_settings": {}, "_via_img_metadata": VIA}
LABEL_STUDIO = [{"id": 1, "data": {"image": "a.jpg"}, "annotations": [{"result": []}]}]
LABELBOX = {"data_row": {"id": "x", "external_id": "a.jpg"}, "projects": {}}
PANOPTIC = {"images": [], "annotations": [{"segments_info": [], "file_name": "a.png"}], "categories": []}
CAPTIONS = {"images": [], "annotations": [{"image_id": 1, "caption": "A cat."}]}
INSTANCES = {"images": [], "annotations": [{"image_id": 1, "segmentation": [], "caption": "x"}], "categories": []}
VOC = "<annotation><folder>a</folder><object><name>cat</name></object></annotation>"
CVAT = '<?xml version="1.0"?>\n<annotations><version>1.1</version></annotations>'
YOLO = "0 0.5 0.5 0.2 0.25\n1 0.1 0.1 0.1 0.1\n"
DATUMARO = {"dm_format_version": "1.0", "info": {}, "categories": {"label": {}}, "items": [{"id": "a"}]}
CREATE_ML = [{"image": "a.jpg", "annotations": [{"label": "cat", "coordinates": {"x": 1, "y": 1}}]}]
LABELBOX_V1 = {"ID": "c1", "DataRow ID": "c2", "Labeled Data": "https://example.com/a.jpg", "Label": {"objects": []}}
LABELBOX_IMPORT = [{"uuid": "b8", "schemaId": "c1", "dataRow": {"id": "c2"}, "bbox": {"top": 1, "left": 2}}]
LABEL_STUDIO_MIN = [{"image": "a.jpg", "id": 1, "label": [{"x": 1}], "annotator": 1, "annotation_id": 1}]
VOTT = {"name": "n", "videoSettings": {"frameExtractionRate": 15}, "tags": [{"name": "cat"}], "assets": {}}
BDD = [{"name": "a.jpg", "attributes": {"weather": "clear"}, "labels": [{"category": "car", "box2d": {"x1": 1}}]}]
KITTI = "Car 0.00 0 -1.57 10.50 5.00 30.25 20.00 1.5 1.6 3.9 1.0 1.7 40.0 -1.5\n"
DOTA = "imagesource:GoogleEarth\ngsd:0.146\n10 5 30 5 30 20 10 20 small-vehicle 0\n"
TOOLS = [
    ("a.json", json.dumps(LABELME), "LabelMe"),
    ("via.json", json.dumps(VIA), "VIA"),
    ("project.json", json.dumps(VIA_PROJECT), "VIA"),
    ("tasks.json", json.dumps(LABEL_STUDIO, indent=1), "Label Studio"),
    ("rows.ndjson", f"{json.dumps(LABELBOX)}\n{json.dumps(LABELBOX)}\n", "Labelbox"),
    ("panoptic.json", json.dumps(PANOPTIC), "panoptic"),
    ("captions.json", json.dumps(CAPTIONS), "captions"),
    ("a.xml", VOC, "Pascal VOC XML"),
    ("annotations.xml", CVAT, "CVAT"),
    ("a.txt", YOLO, "YOLO"),
    ("data.yaml", "train: ../train\nnc: 2\nnames: [cat, dog]\n", "YOLO"),
    ("default.json", json.dumps(DATUMARO), "Datumaro"),
    ("createml.json", json.dumps(CREATE_ML), "CreateML"),
    ("export.json", json.dumps(LABELBOX_V1), "from before its JSON lines"),
    ("import.json", json.dumps(LABELBOX_IMPORT), "import file of Labelbox"),
    ("min.json", json.dumps(LABEL_STUDIO_MIN), "JSON-MIN"),
    ("dicts.json", '[{"file_name": "a.jpg", "image_id": 1, "annotations": []}]', "detectron2"),
    ("middle.json", '[{"filename": "a.jpg", "ann": {"bboxes": []}}]', "MMDetection"),
    ("darwin.json", '{"version": "2.0", "item": {"name": "a.jpg"}, "annotations": []}', "V7 Darwin"),
    (
        "mit.xml",
        "<annotation><object><name>a</name><polygon><pt><x>1</x></pt></polygon></object></annotation>",
        "MIT's LabelMe",
    ),
    ("vott.json", json.dumps(VOTT), "VoTT"),
    ("bdd.json", json.dumps(BDD), "BDD100K"),
    ("000000.txt", KITTI, "KITTI"),
    ("P0000.txt", DOTA, "DOTA"),
    ("P0001.txt", DOTA.splitlines()[-1] + "\n", "DOTA"),
    ("visdrone.txt", "10,5,20,15,1,4,0,0\n", "VisDrone"),
    ("automl.csv", "TRAIN,gs://bucket/a.jpg,daisy\n", "Vertex AI or AutoML"),
    ("unsplit.csv", "gs://bucket/a.jpg,car,0.1,0.2,,,0.5,0.6,,\n", "Vertex AI or AutoML"),
]
NOT_READ = (
    *("CreateML", "from before its JSON lines", "import file of Labelbox", "JSON-MIN", "VoTT", "BDD100K"),
    *("KITTI", "DOTA", "VisDrone", "Vertex AI or AutoML", "detectron2", "MMDetection", "V7 Darwin", "MIT's LabelMe"),
)


@pytest.mark.parametrize(("name", "content", "tool"), TOOLS)
def test_a_file_is_named(tmp_path, name, content, tool):
    (tmp_path / name).write_text(content)
    assert tool in recognize(Head.read(str(tmp_path / name))).called


@pytest.mark.parametrize(("name", "content", "tool"), TOOLS)
def test_a_file_of_which_only_the_start_is_read_is_named(tmp_path, name, content, tool):
    rest = " " * (1 << 17) if name.endswith(("json", "xml")) else "\n" * (1 << 17)
    (tmp_path / name).write_text(content.replace("{", "{\n", 1) + rest)
    assert tool in recognize(Head.read(str(tmp_path / name))).called


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("instances.json", json.dumps(INSTANCES)),
        ("instances.json", json.dumps(INSTANCES) + " " * (1 << 17)),
        ("a.jsonl", '{"file_name": "a.jpg", "text": "A cat."}\n' * 2),
        ("a.csv", "image,label\na.jpg,cat\n"),
        ("a.txt", "the cat\n"),
        ("b.txt", "a cat 1 2 3\n"),
        ("config.yaml", "task: segmentation\n"),
        ("a.json", "[]"),
        ("a.json", "{"),
        ("a.xml", "<html></html>"),
        ("empty.txt", ""),
    ],
)
def test_other_files_are_of_no_tool(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert recognize(Head.read(str(tmp_path / name))) is None


def test_a_file_that_is_not_there_is_of_no_tool(tmp_path):
    assert recognize(Head.read(str(tmp_path / "none"))) is None


def test_most_files_of_a_folder_decide(tmp_path):
    for number in range(4):
        (tmp_path / f"{number}.txt").write_text(YOLO)
    (tmp_path / "readme.txt").write_text("hello")
    assert "YOLO" in recognize(Head.read(str(tmp_path))).called
    for number in range(6):
        (tmp_path / f"{number}.png").write_bytes(b"")
    # There are masks, too.
    assert recognize(Head.read(str(tmp_path))) is None


@pytest.mark.parametrize(("name", "content", "tool"), [one for one in TOOLS if one[2] in NOT_READ])
def test_a_file_of_a_tool_that_is_not_read_is_not_called_a_table(tmp_path, image_input, name, content, tool):
    raw = image_input(tmp_path / "in", layout="class_folders", images=4)
    (tmp_path / name).write_text(content)
    raw["input"]["labels"] = {"path": str(tmp_path / name)}
    with pytest.raises(UsageError, match=f"{name}: holds .*{tool}.*which is not read"):
        run(raw, tmp_path / "out")


@pytest.mark.parametrize(("name", "content", "tool"), [TOOLS[0], TOOLS[7], TOOLS[9]])
def test_one_of_many_files_needs_their_folder(tmp_path, image_input, name, content, tool):
    raw = image_input(tmp_path / "in", layout="class_folders", images=4)
    (tmp_path / name).write_text(content)
    raw["input"]["labels"] = {"path": str(tmp_path / name)}
    with pytest.raises(UsageError, match=f"{name}: holds {tool}.*Give the folder"):
        run(raw, tmp_path / "out")


@pytest.mark.parametrize(
    ("tool", "option", "value"),
    [
        ("LabelMe", "threshold", 128),
        ("VIA", "values", "stored"),
        ("boxes in a CSV", "separator", "|"),
        ("labels as JSON lines", "unlisted_values", "ignore"),
        ("Datumaro", "features", "auto"),
    ],
)
def test_an_option_that_a_detected_format_does_not_use_is_refused(tmp_path, tool, option, value):
    draw, form, _ = tool_files.TOOLS[tool]
    draw(tmp_path / "in")
    file = next(path for path in sorted((tmp_path / "in").rglob("*")) if path.suffix in (".json", ".csv", ".jsonl"))
    labels = {"path": str(file.parent if tool == "LabelMe" else file), option: value, "boxes": True}
    source = {"images": str(tmp_path / "in"), "labels": labels, "classes": ["car", "road"]}
    with pytest.raises(ConfigError, match=f"input.labels.{option}: not used by {form} "):
        run({"task": "classification", "input": source}, tmp_path / "out")


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_a_row_leads_to_its_reader(row):
    assert reader(row.reader).format == row.name


def test_formats_are_imported_when_they_are_chosen(tmp_path):
    (tmp_path / "labels.csv").write_text("image,label\na.jpg,cat\n")
    program = """
import sys
from shardwright.config import LabelsConfig
from shardwright.formats.base import Images, Request
from shardwright.formats.detect import open_source

path = sys.argv[1]
images = Images(["a.jpg"], frozenset(), size_of=lambda position: (4, 6), max_pixels=100)
source = open_source(Request(options=LabelsConfig(path=path), classes=None, path=path, images=images))
print(source.format, *(name.rpartition(".")[2] for name in sys.modules if name.startswith("shardwright.formats.")))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "labels.csv")], capture_output=True, text=True, check=True
    )
    chosen, *loaded = done.stdout.split()
    assert chosen == "label_csv"
    readers = {row.reader.partition(":")[0] for row in FORMATS}
    # Those of tables, and of images without annotations.
    assert readers & {*loaded} <= {"label_csv", "rows", "base", "class_folders"}
