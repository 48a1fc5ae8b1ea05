"""Further content of annotation tools' files: several annotators, attributes, key points, tags, separate labels."""

import json

import pytest
import tool_files
from ingesting import examples, ledger, run
from layouts import COUNT, HEIGHT, WIDTH
from PIL import Image

from shardwright.errors import UsageError
from shardwright.pipelines.cli import main


def classes_of(root):
    return {key: [text.decode() for text in one["image/class/text"]] for key, one in sorted(examples(root).items())}


def changed(file, change):
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))


def test_yolo_reads_the_boxes_of_key_points_and_counts_the_points(tmp_path):
    tool_files.yolo_boxes(tmp_path / "data")
    for file in (tmp_path / "data/labels").rglob("*.txt"):
        file.write_text("".join(f"{line} 0.5 0.5 2 0.1 0.1 0\n" for line in file.read_text().splitlines()))
    with (tmp_path / "data/data.yaml").open("a") as file:
        file.write("kpt_shape: [2, 3]\n")
    labels = {"path": str(tmp_path / "data/data.yaml"), "boxes": True}
    notes: list[str] = []
    raw = {"task": "classification", "input": {"images": str(tmp_path / "data/images"), "labels": labels}}
    run(raw, tmp_path / "out", log=notes.append)
    assert f"left out: {2 * COUNT} sets of key points" in notes
    assert all(len(one["image/object/bbox/xmin"]) == 2 for one in examples(tmp_path / "out").values())


@pytest.mark.parametrize(("classes", "names"), [(None, ("0", "1")), (["auto", "street"], ("auto", "street"))])
def test_yolo_without_names_has_numbers(tmp_path, classes, names):
    tool_files.yolo(tmp_path / "data")
    (tmp_path / "data/data.yaml").unlink()
    source = {"images": str(tmp_path / "data/images"), "labels": {"path": str(tmp_path / "data/labels")}}
    assert run({"input": {**source, **({"classes": classes} if classes else {})}}, tmp_path / "out").classes == names


def test_yolo_counts_the_names_of_the_configuration_from_0(tmp_path):
    """Whatever numbers occur; a number that is a name is that class."""
    tool_files.yolo_boxes(tmp_path / "data")
    (tmp_path / "data/data.yaml").unlink()
    for file in (tmp_path / "data/labels").rglob("*.txt"):
        file.write_text("1 0.5 0.5 0.5 0.5\n")
    labels = {"path": str(tmp_path / "data/labels"), "boxes": True}
    given = {"images": str(tmp_path / "data/images"), "labels": labels}
    for number, classes in enumerate((["zero", "one", "two"], ["1", "2"])):
        out, notes = tmp_path / str(number), list[str]()
        run({"task": "classification", "input": {**given, "classes": classes}}, out, log=notes.append)
        assert set(map(tuple, classes_of(out).values())) == {("1",) if number else ("one",)}
        assert ("class ids count from 0 (YOLO counts so): 0 is zero" in " ".join(notes)) == (not number)
    raw = {"task": "classification", "input": {**given, "classes": ["zero"]}}
    with pytest.raises(UsageError, match=r"train/i0.txt: the class '1' is not in input.classes. Known are: zero \(0\)"):
        run(raw, tmp_path / "out")


def test_an_image_without_a_text_file_has_no_objects(tmp_path):
    tool_files.yolo(tmp_path / "data")
    (tmp_path / "data/labels/train/i1.txt").unlink()
    (tmp_path / "data/labels/train/i2.txt").write_text("\n")
    source = {"images": str(tmp_path / "data/images"), "labels": {"path": str(tmp_path / "data/labels")}}
    assert run({"input": source}, tmp_path / "out").totals["written"] == COUNT
    found = classes_of(tmp_path / "out")
    assert [found[f"train/i{number}.jpg"] for number in range(4)] == [["car", "road"], [], [], ["car", "road"]]


@pytest.mark.parametrize(
    "text", ["8 images, and what is wrong\n", "1.\nnotes\n", "labels: yolo\n", "name,class\na,1\n"]
)
def test_a_text_of_words_is_of_an_image_or_is_left_out_with_a_note(tmp_path, text):
    tool_files.yolo(tmp_path / "data")
    (tmp_path / "data/truth.txt").write_text(text)
    source = {"images": str(tmp_path / "data/images"), "labels": {"path": str(tmp_path / "data/data.yaml")}}
    notes = list[str]()
    assert run({"input": source}, tmp_path / "out", log=notes.append).totals["inputs"] == COUNT
    assert "YOLO: 1 text file has no labels and the name of no image, so left out: truth.txt" in notes
    # Numbers are about an image that is missing, and an image is not left without its objects.
    (tmp_path / "data/truth.txt").write_text("0 0.5 0.5 0.1 0.1 0.3 0.3\n")
    (tmp_path / "data/labels/train/i1.txt").write_text(text)
    run({"input": source}, tmp_path / "again")
    rejected = {key: row.code for key, row in ledger(tmp_path / "again").items() if row.status == "rejected"}
    assert rejected == {"train/i1.jpg": "bad_object", "truth.txt": "missing_image"}


@pytest.mark.parametrize("shown", ["sizes", "edges"])
def test_boxes_in_lists_may_be_edges(tmp_path, shown):
    tool_files.image_folder(tmp_path / "data")
    file = tmp_path / "data/train/metadata.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    source = {"images": str(tmp_path / "data/train"), "labels": {"path": str(file), "boxes": True}}
    run({"task": "classification", "input": source}, tmp_path / "expected")
    for row in rows if shown == "edges" else ():
        row["objects"]["bbox"] = [[x, y, x + width, y + height] for x, y, width, height in row["objects"]["bbox"]]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    notes: list[str] = []
    run({"task": "classification", "input": source}, tmp_path / "out", log=notes.append)
    assert ["left, top, right and bottom edge" in note for note in notes if "bbox:" in note] == [shown == "edges"]
    for key, one in examples(tmp_path / "expected").items():
        for side in ("xmin", "ymin", "xmax", "ymax"):
            found = examples(tmp_path / "out")[key][f"image/object/bbox/{side}"]
            assert list(found) == pytest.approx(list(one[f"image/object/bbox/{side}"]))


def test_relations_of_label_studio_are_left_out(tmp_path):
    """They have neither a value nor a picture, as in its own export of key points."""
    tool_files.label_studio(tmp_path / "data")
    relation = {"type": "relation", "from_id": "a", "to_id": "b", "direction": "right"}
    changed(tmp_path / "data/project-3.json", lambda tasks: tasks[0]["annotations"][0]["result"].append(relation))
    source = {"images": str(tmp_path / "data"), "labels": {"path": str(tmp_path / "data/project-3.json")}}
    notes: list[str] = []
    assert run({"input": source}, tmp_path / "out", log=notes.append).totals["written"] == COUNT
    assert "left out: 1 results of the type 'relation'" in notes


def test_boxes_of_vertex_ai_may_be_texts_and_polygons_are_named(tmp_path):
    tool_files.vertex_boxes(tmp_path / "data")
    file = next((tmp_path / "data").glob("*.jsonl"))
    source = {"images": str(tmp_path / "data"), "labels": {"path": str(file), "boxes": True}}
    raw = {"task": "classification", "input": source}
    run(raw, tmp_path / "expected")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        row["boundingBoxAnnotations"] = [
            {name: str(value) for name, value in box.items()} for box in row["boundingBoxAnnotations"]
        ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(raw, tmp_path / "out")
    for key, one in examples(tmp_path / "expected").items():
        found = examples(tmp_path / "out")[key]
        assert list(found["image/object/bbox/xmin"]) == list(one["image/object/bbox/xmin"])
    polygon = [{"displayName": "a", "polygonAnnotation": {"vertexes": []}}]
    rows = [{"imageGcsUri": row["imageGcsUri"], "segmentationAnnotations": polygon} for row in rows]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UsageError, match="has segmentationAnnotations, which are not read; export masks"):
        run(raw, tmp_path / "polygons")


@pytest.mark.parametrize("kind", ["job", "project"])
def test_the_labels_of_cvat_are_in_a_task_a_job_or_a_project(tmp_path, kind):
    """The server of CVAT writes one of them, depending on where a user exports."""
    tool_files.cvat(tmp_path / "data")
    file = tmp_path / "data/annotations.xml"
    text = file.read_text()
    file.write_text(text.replace("<task>", f"<{kind}>").replace("</task>", f"</{kind}><dumped>2026-07-06</dumped>"))
    assert file.read_text() != text
    source = {"images": str(tmp_path / "data"), "labels": {"path": str(file)}}
    notes: list[str] = []
    assert run({"input": source}, tmp_path / "out", log=notes.append).classes == ("car", "road")
    assert any("in the order of CVAT's labels" in note for note in notes)


def test_label_studio_takes_the_ground_truth_and_leaves_out_skipped_tasks(tmp_path):
    tool_files.label_studio(tmp_path / "data")
    file = tmp_path / "data/project-3.json"

    def change(tasks):
        second = json.loads(json.dumps(tasks[0]["annotations"][0]))
        second |= {"result": second["result"][:1], "ground_truth": True}
        tasks[0]["annotations"].append(second)
        tasks[1]["annotations"][0]["was_cancelled"] = True

    changed(file, change)
    source = {"images": str(tmp_path / "data"), "labels": {"path": str(file)}, "unlisted_images": "reject"}
    run({"input": source}, tmp_path / "out")
    found = classes_of(tmp_path / "out")
    assert found["images/i0.jpg"] == ["car"]
    assert found["images/i2.jpg"] == ["car", "road"]
    assert ledger(tmp_path / "out")["images/i1.jpg"].code == "unlisted"


def test_label_studio_reads_classes_in_a_separate_result_and_choices(tmp_path):
    tool_files.label_studio(tmp_path / "data")
    file = tmp_path / "data/project-3.json"

    def change(tasks):
        for task in tasks:
            results = task["annotations"][0]["result"]
            results[0] |= {"type": "polygon"}
            label = results[0]["value"].pop("polygonlabels")
            results.append({"id": "a", "type": "labels", "value": {"labels": label}})
            results.append({"id": "d", "type": "choices", "value": {"choices": ["day", "wet"]}})

    changed(file, change)
    source = {"images": str(tmp_path / "data"), "labels": {"path": str(file)}}
    run({"input": source}, tmp_path / "masks")
    assert set(map(tuple, classes_of(tmp_path / "masks").values())) == {("car", "road")}
    manifest = run({"task": "classification", "input": source}, tmp_path / "classes")
    assert manifest.classes == ("day", "wet")
    assert set(map(tuple, classes_of(tmp_path / "classes").values())) == {("day", "wet")}


def studio_region(tag, label, **more):
    value = {"x": 10, "y": 25, "width": 25, "height": 50, "rotation": 0, "rectanglelabels": [label]}
    sizes = {"original_width": WIDTH, "original_height": HEIGHT, "image_rotation": 0}
    return {"id": label, "type": "rectanglelabels", "to_name": tag, "value": value, **sizes, **more}


def studio_choice(choice, **more):
    return {"id": choice, "type": "choices", "value": {"choices": [choice]}, **more}


def studio(tmp_path, *tasks, **options):
    """Ingests two images with the data and results of each task; returns the log and the classes of each image."""
    images = tmp_path / "images"
    images.mkdir()
    for number, name in enumerate(("a.jpg", "b.jpg")):
        Image.new("RGB", (WIDTH, HEIGHT), (100 * number, 0, 0)).save(images / name)
    written = [{"data": data, "annotations": [{"result": results}]} for data, *results in tasks]
    (tmp_path / "p.json").write_text(json.dumps(written))
    labels = {"path": str(tmp_path / "p.json"), "format": "label_studio", "boxes": True, **options}
    notes: list[str] = []
    source = {"images": str(images), "labels": labels, "unlisted_images": "reject"}
    run({"task": "classification", "input": source}, tmp_path / "out", log=notes.append)
    return notes, classes_of(tmp_path / "out")


TWO = {"left": "/d/a.jpg", "right": "/d/b.jpg", "question": "which?"}
# Data and results of a task, the classes of each image, and what is left out.
STUDIO_TASKS = [
    ((TWO, studio_region("left", "car"), studio_region("right", "bus")), {"a.jpg": ["car"], "b.jpg": ["bus"]}, ()),
    (
        (
            {"pages": ["a.jpg", "b.jpg"]},
            *(studio_region("x", name, item_index=i) for i, name in enumerate(("car", "bus"))),
        ),
        {"a.jpg": ["car"], "b.jpg": ["bus"]},
        (),
    ),
    (
        (TWO, studio_region("left", "car"), studio_choice("b", to_name="question"), studio_region("right", "bus")),
        {"a.jpg": ["car"], "b.jpg": ["bus"]},
        ("left out: 1 results of the type 'choices'",),
    ),
    ((TWO, studio_region("right", "car")), {"b.jpg": ["car"]}, ()),
    (({**TWO, "image": "/d/b.jpg"}, studio_region("picture", "car")), {"b.jpg": ["car"]}, ()),
    (({"photo": "a.jpg", "thumb": "small.jpg"}, studio_region("picture", "car")), {"a.jpg": ["car"]}, ()),
]


@pytest.mark.parametrize(("task", "classes", "left_out"), STUDIO_TASKS, ids=range(len(STUDIO_TASKS)))
def test_label_studio_results_are_of_the_image_that_they_name(tmp_path, task, classes, left_out):
    notes, found = studio(tmp_path, task)
    assert found == classes
    assert tuple(note for note in notes if note.startswith("left out")) == left_out


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (
            (TWO, studio_region("x", "car"), studio_region("y", "bus")),
            "has the images 'left', 'right', and its .* of 'x', 'y'",
        ),
        ((TWO, studio_region("x", "car")), "its results are of 'x'; name each Image tag like the member"),
        ((TWO, studio_region("left", "car"), studio_region("right", "car"), studio_choice("day")), "has no to_name"),
        (
            ({"pages": ["a.jpg", "b.jpg"]}, studio_region("x", "car")),
            "its item_index is None, not one of the task's 2 images",
        ),
        (({"pages": ["a.jpg", "b.jpg"]}, studio_region("x", "car", item_index=2)), "its item_index is 2"),
    ],
)
def test_label_studio_results_that_may_be_of_several_images_are_rejected(tmp_path, task, reason):
    with pytest.raises(UsageError, match=f"all 2 annotations cannot be used.*{reason}"):
        studio(tmp_path, task)


def test_choices_of_a_region_in_label_studio_are_attributes(tmp_path):
    by_id = studio_choice("occluded", to_name="image") | {"id": "car"}
    by_value = studio_choice("cut", to_name="image")
    by_value["value"] |= {"x": 10, "y": 25}
    regions = ({"image": "a.jpg"}, studio_region("image", "car"), by_id, by_value, studio_choice("day"))
    notes, found = studio(tmp_path, regions, ({"image": "b.jpg"}, studio_choice("night")), boxes=False)
    assert found == {"a.jpg": ["day"], "b.jpg": ["night"]}
    assert "left out: 2 attributes of objects" in notes


def test_via_takes_the_attribute_that_is_named_also_of_check_boxes(tmp_path):
    tool_files.via(tmp_path / "data")
    file = tmp_path / "data/via_project.json"

    def change(project):
        for entry in project["_via_img_metadata"].values():
            for region in entry["regions"]:
                kind = region["region_attributes"]["kind"]
                region["region_attributes"] |= {"shade": "dark", "kinds": {kind: True, "other": False}}

    changed(file, change)
    source = {"images": str(tmp_path / "data"), "labels": {"path": str(file)}}
    with pytest.raises(UsageError, match=r"several attributes: kind, kinds, shade.*columns: \{label: kind\}"):
        run({"input": source}, tmp_path / "out")
    source["labels"]["columns"] = {"label": "kinds"}
    assert run({"input": source}, tmp_path / "out").classes == ("car", "road")
    source["labels"]["columns"] = {"label": "sort"}
    with pytest.raises(UsageError, match="'sort' is not a region attribute"):
        run({"input": source}, tmp_path / "other")


@pytest.mark.parametrize(("classes", "name"), [(None, "object"), (["balloon"], "balloon")])
def test_via_regions_without_attributes_are_of_one_class(tmp_path, classes, name):
    tool_files.via(tmp_path / "data")
    file = tmp_path / "data/via_project.json"

    def change(project):
        for entry in project["_via_img_metadata"].values():
            entry["regions"] = {str(i): {**one, "region_attributes": {}} for i, one in enumerate(entry["regions"])}

    changed(file, change)
    source = {"images": str(tmp_path / "data"), "labels": {"path": str(file)}}
    manifest = run({"input": {**source, **({"classes": classes} if classes else {})}}, tmp_path / "out")
    assert manifest.classes == (name,)


def test_flags_of_labelme_are_the_classes_of_images(tmp_path):
    tool_files.labelme(tmp_path / "data")
    for number in range(COUNT):
        flags = {"night": number % 2 == 0, "day": number % 2 == 1}
        changed(tmp_path / f"data/i{number}.json", lambda document, flags=flags: document.update(flags=flags))
    source = {"images": str(tmp_path / "data"), "labels": {"path": str(tmp_path / "data")}}
    notes: list[str] = []
    manifest = run({"task": "classification", "input": source}, tmp_path / "out", log=notes.append)
    assert manifest.classes == ("day", "night")
    assert classes_of(tmp_path / "out")["i1.jpg"] == ["day"]
    assert any(note.startswith(f"left out: {2 * COUNT} objects") for note in notes)


def test_json_lines_may_have_other_names_and_several_classes(tmp_path):
    tool_files.label_lines(tmp_path / "data")
    file = tmp_path / "data/labels.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    tool_files.lines(file, [{"where": row["image"], "what": [row["label"], "thing"]} for row in rows])
    labels = {"path": str(file), "format": "label_jsonl", "columns": {"image": "where", "label": "what"}}
    source = {"images": str(tmp_path / "data/images"), "labels": labels}
    manifest = run({"task": "classification", "input": source}, tmp_path / "out")
    assert manifest.classes == ("car", "road", "thing")
    assert classes_of(tmp_path / "out")["i1.jpg"] == ["road", "thing"]


def test_a_large_panoptic_file_is_recognized_when_its_segments_come(tmp_path, monkeypatch):
    tool_files.panoptic(tmp_path / "data")
    file = tmp_path / "data/annotations/panoptic_val.json"
    document = json.loads(file.read_text())
    # Images come first, so that the start of the file has nothing else.
    file.write_text(json.dumps({"info": {"x": " " * (1 << 17)}, "images": document["images"], **document}))
    source = {"images": str(tmp_path / "data/images"), "labels": {"path": str(file)}}
    with pytest.raises(UsageError, match="holds COCO panoptic JSON. Set input.labels.format: panoptic"):
        run({"input": source}, tmp_path / "out")
    monkeypatch.chdir(tmp_path)
    assert main(["init", "data/images", "data/annotations/panoptic_val.json", "--out", "c.yaml"]) == 0
    assert "format: panoptic" in (tmp_path / "c.yaml").read_text()


def test_classes_of_open_images_count_where_people_are_sure(tmp_path):
    keys = tool_files.names(tmp_path / "data")
    tool_files.described(tmp_path / "data")
    rows = [f"i{number},verification,/m/0k4j,1\ni{number},verification,/m/06gfj,0" for number in range(COUNT)]
    file = tmp_path / "data/train-annotations-human-imagelabels.csv"
    tool_files.write(file, "ImageID,Source,LabelName,Confidence\n" + "\n".join(rows) + "\n")
    source = {"images": str(tmp_path / "data/images"), "labels": {"path": str(file)}}
    notes: list[str] = []
    run({"task": "classification", "input": source}, tmp_path / "out", log=notes.append)
    assert classes_of(tmp_path / "out") == {key: ["car"] for key in keys}
    assert f"left out: {COUNT} classes of images with a confidence below 1" in notes
