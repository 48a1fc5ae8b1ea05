"""Bombs: annotations as JSON, XML and tables, and configurations as YAML."""

from __future__ import annotations

import base64
import io
import json
import zlib
from pathlib import Path

import numpy as np
from bombing import SEGMENTATION, Input, bomb, images, in_file, picture, repeat
from PIL import Image

# --- JSON -----------------------------------------------------------------------------------------------------------


COCO = b'{"images":[{"id":1,"file_name":"0.png"}],"categories":[{"id":1,"name":"a"}],"annotations":['
ANNOTATION = b'{"image_id":1,"category_id":1,"segmentation":[[1,1,5,1,5,5]],"x":'


@bomb("coco_json", 1 << 20, 96 << 20, **SEGMENTATION)
def coco_lists(folder: Path, size: int) -> Input:
    repeat(folder / "a.json", COCO + ANNOTATION + b"[", b"[],", size // 3, b"0]}]}")
    return in_file(folder, "a.json", "coco_json")


@bomb("coco_json", 1 << 20, 96 << 20, **SEGMENTATION)
def coco_objects(folder: Path, size: int) -> Input:
    repeat(folder / "a.json", COCO + ANNOTATION + b"[", b'{"a":{}},', size // 9, b"0]}]}")
    return in_file(folder, "a.json", "coco_json")


@bomb("coco_json", 1 << 20, 24 << 20, **SEGMENTATION)
def coco_keys(folder: Path, size: int) -> Input:
    """As many different keys as the budget allows: Python takes 18 bytes of memory for each byte."""
    keys = b",".join(b'"%x":1' % i for i in range(size // 10))
    (folder / "a.json").write_bytes(COCO + ANNOTATION + b"{" + keys + b"}}]}")
    return in_file(folder, "a.json", "coco_json")


@bomb("coco_json", 100_000, 10_000_000, **SEGMENTATION)
def coco_depth(folder: Path, size: int) -> Input:
    (folder / "a.json").write_bytes(COCO + ANNOTATION + b"[" * size + b"]" * size + b"}]}")
    return in_file(folder, "a.json", "coco_json")


@bomb("coco_json", 200, 20_000, **SEGMENTATION)
def coco_slopes(folder: Path, size: int) -> Input:
    """Triangles across an image of 200,000 columns: a run for each column, for 40 bytes."""
    out = io.BytesIO()
    Image.fromarray(np.zeros((100, 200_000), np.uint8)).save(out, "PNG")
    (folder / "0.png").write_bytes(out.getvalue())
    one = b'{"image_id":1,"category_id":1,"segmentation":[[%d,0,200000,100,0,%d]]}'
    text = b",".join(one % (i % 90, i % 89) for i in range(size))
    (folder / "a.json").write_bytes(COCO + text + b"]}")
    return {"images": "set/*.png", "labels": {"path": "set/a.json", "format": "coco_json"}}


@bomb("coco_json", 20, 320, **SEGMENTATION)
def coco_zigzag(folder: Path, size: int) -> Input:
    """One outline that goes from side to side."""
    given = coco_slopes(folder, 1)
    corners = ",".join(f"{i % 2 * 200_000},{i % 97}" for i in range(size)).encode()
    one = b'{"image_id":1,"category_id":1,"segmentation":[[%s]]}' % corners
    (folder / "a.json").write_bytes(COCO + one + b"]}")
    return given


@bomb("coco_json", 100_000, 20_000_000, **SEGMENTATION)
def coco_counts(folder: Path, size: int) -> Input:
    counts = b"1" * size
    one = b'{"image_id":1,"category_id":1,"segmentation":{"size":[8,8],"counts":"%s"}}' % counts
    (folder / "a.json").write_bytes(COCO + one + b"]}")
    return in_file(folder, "a.json", "coco_json")


@bomb("coco_json", 20_000, 1_000_000, **SEGMENTATION)
def coco_big_counts(folder: Path, size: int) -> Input:
    """Counts that no image has, as a list."""
    counts = b",".join([b"9" * 18] * size)
    one = b'{"image_id":1,"category_id":1,"segmentation":{"size":[8,8],"counts":[%s]}}' % counts
    (folder / "a.json").write_bytes(COCO + one + b"]}")
    return in_file(folder, "a.json", "coco_json")


@bomb("captions", 1 << 20, 96 << 20)
def captions_lists(folder: Path, size: int) -> Input:
    start = b'{"images":[{"id":1,"file_name":"0.png"}],"annotations":[{"image_id":1,"caption":"x"},'
    repeat(folder / "a.json", start, b"[],", size // 3, b"0]}")
    return in_file(folder, "a.json", "captions")


def in_line(folder: Path, start: bytes, size: int, form: str) -> Input:
    """A line of JSON that ends in many objects."""
    repeat(folder / "a.jsonl", start, b'{"a":{}},', size // 9, b"0]}\n")
    return in_file(folder, "a.jsonl", form)


@bomb("captions", 1 << 20, 64 << 20)
def captions_line(folder: Path, size: int) -> Input:
    start = b'{"file_name":"0.png","caption":"x"}\n{"file_name":"1.png","caption":"x","y":['
    return in_line(folder, start, size, "captions")


@bomb("numbers", 1 << 20, 60 << 20)
def numbers_line(folder: Path, size: int) -> Input:
    start = b'{"file_name":"0.png","n":1}\n{"file_name":"1.png","n":2,"y":['
    return in_line(folder, start, size, "numbers")


@bomb("label_jsonl", 1 << 20, 60 << 20)
def label_line(folder: Path, size: int) -> Input:
    start = b'{"file_name":"0.png","label":"a"}\n{"file_name":"1.png","label":"a","y":['
    return in_line(folder, start, size, "label_jsonl")


@bomb("vertex_jsonl", 1 << 20, 60 << 20)
def vertex_line(folder: Path, size: int) -> Input:
    start = b'{"imageGcsUri":"gs://b/0.png","classificationAnnotation":{"displayName":"cat"},"y":['
    return in_line(folder, start, size, "vertex_jsonl")


@bomb("labelbox", 1 << 20, 60 << 20)
def labelbox_line(folder: Path, size: int) -> Input:
    start = b'{"data_row":{"external_id":"0.png"},"projects":{"p":{"labels":[]}},"y":['
    return in_line(folder, start, size, "labelbox")


@bomb("via_json", 1 << 20, 60 << 20, **SEGMENTATION)
def via_objects(folder: Path, size: int) -> Input:
    repeat(folder / "a.json", b'{"0.png1":{"filename":"0.png","regions":[', b'{"a":{}},', size // 9, b"0]}}")
    return in_file(folder, "a.json", "via_json")


@bomb("datumaro", 1 << 20, 60 << 20, **SEGMENTATION)
def datumaro_objects(folder: Path, size: int) -> Input:
    start = b'{"categories":{"label":{"labels":[{"name":"a"}]}},"items":[{"id":"0","annotations":['
    repeat(folder / "a.json", start, b'{"a":{}},', size // 9, b"0]}]}")
    return in_file(folder, "a.json", "datumaro")


@bomb("label_studio", 1 << 20, 60 << 20, **SEGMENTATION)
def label_studio_objects(folder: Path, size: int) -> Input:
    start = b'[{"data":{"image":"0.png"},"annotations":[{"result":['
    repeat(folder / "a.json", start, b'{"a":{}},', size // 9, b"0]}]}]")
    return in_file(folder, "a.json", "label_studio")


@bomb("panoptic", 1 << 20, 60 << 20, **SEGMENTATION)
def panoptic_objects(folder: Path, size: int) -> Input:
    (folder / "masks").mkdir()
    start = b'{"images":[{"id":1,"file_name":"0.png"}],"categories":[{"id":1,"name":"a"}],"annotations":['
    start += b'{"image_id":1,"file_name":"0.png","segments_info":['
    repeat(folder / "a.json", start, b'{"a":{}},', size // 9, b"0]}]}")
    return in_file(folder, "a.json", "panoptic")


@bomb("labelme", 1 << 20, 60 << 20, **SEGMENTATION)
def labelme_objects(folder: Path, size: int) -> Input:
    (folder / "l").mkdir()
    start = b'{"imagePath":"0.png","imageHeight":8,"imageWidth":8,"shapes":['
    repeat(folder / "l/0.json", start, b'{"a":{}},', size // 9, b"0]}")
    return in_file(folder, "l", "labelme")


@bomb("labelme", 2, 12, **SEGMENTATION)
def labelme_files(folder: Path, size: int) -> Input:
    """Several files at a time, as many as threads read."""
    (folder / "l").mkdir()
    start = b'{"imagePath":"0.png","imageHeight":8,"imageWidth":8,"shapes":['
    for i in range(size):
        repeat(folder / f"l/{i}.json", start, b'{"a":{}},', 6 << 20 if size > 2 else 1000, b"0]}")
    return in_file(folder, "l", "labelme")


@bomb("labelme", 1 << 20, 60 << 20, **SEGMENTATION)
def labelme_image(folder: Path, size: int) -> Input:
    """A picture in base64."""
    (folder / "l").mkdir()
    start = b'{"imagePath":"0.png","imageHeight":8,"imageWidth":8,"shapes":[],"imageData":"'
    repeat(folder / "l/0.json", start, b"A" * 64, size // 64, b'"}')
    return in_file(folder, "l", "labelme")


@bomb("supervisely", 16 << 20, 4 << 30, **SEGMENTATION)
def supervisely_bitmap(folder: Path, size: int) -> Input:
    """A mask that unpacks to gigabytes."""
    (folder / "ann").mkdir()
    (folder / "meta.json").write_text('{"classes":[{"title":"a"}]}')
    packer, parts = zlib.compressobj(9), []
    for _ in range(size >> 20):
        parts.append(packer.compress(bytes(1 << 20)))
    data = base64.b64encode(b"".join(parts) + packer.flush()).decode()
    thing = {"classTitle": "a", "geometryType": "bitmap", "bitmap": {"data": data, "origin": [0, 0]}}
    for i in range(2):
        found = {"size": {"height": 8, "width": 8}, "objects": [thing] * 10}
        (folder / f"ann/{i}.png.json").write_text(json.dumps(found))
    images(folder)
    return {"images": "set/*.png", "labels": {"path": "set", "format": "supervisely"}}


# --- XML ------------------------------------------------------------------------------------------------------------

CVAT = b'<?xml version="1.0"?><annotations><meta><task><labels><label><name>a</name></label></labels></task></meta>'
CVAT += b'<image id="0" name="0.png" width="8" height="8">'
CVAT_END = b"</image></annotations>"


@bomb("cvat_xml", 1 << 20, 64 << 20, **SEGMENTATION)
def cvat_elements(folder: Path, size: int) -> Input:
    repeat(folder / "a.xml", CVAT, b"<b/>", size // 4, CVAT_END)
    return in_file(folder, "a.xml", "cvat_xml")


@bomb("cvat_xml", 1 << 20, 64 << 20, **SEGMENTATION)
def cvat_attributes(folder: Path, size: int) -> Input:
    attributes = b" ".join(b'a%x=""' % i for i in range(size // 10))
    (folder / "a.xml").write_bytes(CVAT + b"<box " + attributes + b"/>" + CVAT_END)
    return in_file(folder, "a.xml", "cvat_xml")


@bomb("cvat_xml", 1 << 20, 256 << 20, **SEGMENTATION)
def cvat_attribute(folder: Path, size: int) -> Input:
    """One token, which a parser may begin anew for each piece of the file."""
    repeat(folder / "a.xml", CVAT + b'<polygon label="a" points="', b"1,2;", size // 4, b'1,2"/>' + CVAT_END)
    return in_file(folder, "a.xml", "cvat_xml")


@bomb("cvat_xml", 1 << 20, 64 << 20, **SEGMENTATION)
def cvat_names(folder: Path, size: int) -> Input:
    names = b"".join(b"<b%x/>" % i for i in range(size // 10))
    (folder / "a.xml").write_bytes(CVAT + names + CVAT_END)
    return in_file(folder, "a.xml", "cvat_xml")


@bomb("cvat_xml", 10, 30, **SEGMENTATION)
def cvat_entities(folder: Path, size: int) -> Input:
    entities = b"".join(b'<!ENTITY e%d "%s">' % (i + 1, b"&e%d;" % i * 10) for i in range(size))
    (folder / "a.xml").write_bytes(
        b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e0 "ha">' + entities + b"]><annotations>&e%d;</annotations>" % size
    )
    return in_file(folder, "a.xml", "cvat_xml")


@bomb("cvat_xml", 100_000, 10_000_000, **SEGMENTATION)
def cvat_depth(folder: Path, size: int) -> Input:
    repeat(folder / "a.xml", CVAT, b"<b>", size, CVAT_END)
    return in_file(folder, "a.xml", "cvat_xml")


@bomb("voc_boxes", 1 << 20, 4_000_000)
def voc_objects(folder: Path, size: int) -> Input:
    (folder / "l").mkdir()
    start = b"<annotation><size><width>8</width><height>8</height></size>"
    repeat(folder / "l/0.xml", start, b"<object/>", size // 9, b"</annotation>")
    return in_file(folder, "l", "voc_boxes", boxes=True)


@bomb("pascal_voc", 1 << 20, 4_000_000, **SEGMENTATION)
def voc_tree(folder: Path, size: int) -> Input:
    for name in ("Annotations", "JPEGImages", "SegmentationClass"):
        (folder / name).mkdir()
    (folder / "JPEGImages/0.jpg").write_bytes(picture(form="JPEG"))
    (folder / "SegmentationClass/0.png").write_bytes(picture())
    start = b"<annotation><size><width>8</width><height>8</height></size>"
    repeat(folder / "Annotations/0.xml", start, b"<object/>", size // 9, b"</annotation>")
    return {"images": "set/JPEGImages", "labels": {"path": "set", "format": "pascal_voc"}}


# --- tables ---------------------------------------------------------------------------------------------------------


@bomb("label_csv", 1 << 20, 60 << 20)
def csv_columns(folder: Path, size: int) -> Input:
    repeat(folder / "a.csv", b"image,label", b",a", size // 2, b"\n0.png,a\n1.png,a\n")
    return in_file(folder, "a.csv", "label_csv")


@bomb("label_csv", 1 << 20, 20 << 20)
def csv_different_columns(folder: Path, size: int) -> Input:
    names = b"".join(b",x%x" % i for i in range(size // 6))
    (folder / "a.csv").write_bytes(b"image,label" + names + b"\n0.png,a\n1.png,a\n")
    return in_file(folder, "a.csv", "label_csv")


@bomb("label_csv", 1 << 20, 60 << 20)
def csv_fields(folder: Path, size: int) -> Input:
    """A row with more fields than columns."""
    repeat(folder / "a.csv", b"image,label\n0.png,a\n1.png,a", b",b", size // 2, b"\n")
    return in_file(folder, "a.csv", "label_csv")


@bomb("label_csv", 1 << 20, 100 << 20)
def csv_quoted_row(folder: Path, size: int) -> Input:
    """A row that goes on over all lines."""
    repeat(folder / "a.csv", b"image,label\n0.png,a\n1.png,a", b',"\n"', size // 4, b"\n")
    return in_file(folder, "a.csv", "label_csv")


@bomb("label_csv", 1 << 20, 200 << 20)
def csv_open_quote(folder: Path, size: int) -> Input:
    repeat(folder / "a.csv", b'image,label\n0.png,a\n1.png,"', b"x,y\n", size // 4, b"")
    return in_file(folder, "a.csv", "label_csv")


@bomb("label_csv", 1 << 20, 60 << 20)
def csv_nulls(folder: Path, size: int) -> Input:
    repeat(folder / "a.csv", b"image,label\n0.png,a\n1.png,", b"\0", size, b"\n")
    return in_file(folder, "a.csv", "label_csv")


@bomb("label_csv", 1 << 20, 60 << 20)
def csv_returns(folder: Path, size: int) -> Input:
    """Lines that end with a carriage return alone."""
    repeat(folder / "a.csv", b"image,label\r0.png,a\r1.png,a\r", b"\r", size, b"")
    return in_file(folder, "a.csv", "label_csv")


@bomb("label_csv", 1 << 20, 60 << 20)
def csv_labels(folder: Path, size: int) -> Input:
    """A cell of many labels."""
    repeat(folder / "a.csv", b"image,label\n0.png,a\n1.png,a", b"|b", size // 2, b"\n")
    return in_file(folder, "a.csv", "label_csv")


@bomb("rle_csv", 1 << 20, 60 << 20, **SEGMENTATION)
def rle_runs(folder: Path, size: int) -> Input:
    repeat(folder / "a.csv", b"image,encodedpixels\n0.png,1 1\n1.png,", b"1 1 ", size // 4, b"1 1\n")
    return in_file(folder, "a.csv", "rle_csv")


@bomb("rle_csv", 1 << 20, 60 << 20, **SEGMENTATION)
def rle_huge_runs(folder: Path, size: int) -> Input:
    repeat(folder / "a.csv", b"image,encodedpixels\n0.png,1 1\n1.png,", b"1 9000000000000000000 ", size // 22, b"\n")
    return in_file(folder, "a.csv", "rle_csv")


@bomb("rle_csv", 20_000, 1_000_000, **SEGMENTATION)
def rle_rows(folder: Path, size: int) -> Input:
    """Masks of one image."""
    repeat(folder / "a.csv", b"image,encodedpixels\n1.png,1 1\n", b"0.png,1 1\n", size, b"")
    return in_file(folder, "a.csv", "rle_csv")


@bomb("box_csv", 1 << 20, 60 << 20)
def box_columns(folder: Path, size: int) -> Input:
    start = b"image,label,xmin,ymin,xmax,ymax"
    repeat(folder / "a.csv", start, b",a", size // 2, b"\n0.png,a,1,1,2,2\n1.png,a,1,1,2,2\n")
    return in_file(folder, "a.csv", "box_csv", boxes=True)


@bomb("open_images", 1 << 20, 60 << 20)
def open_images_columns(folder: Path, size: int) -> Input:
    (folder / "l").mkdir()
    start = b"ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax"
    end = b"\n0,x,/m/a,1,0.1,0.2,0.1,0.2\n1,x,/m/a,1,0.1,0.2,0.1,0.2\n"
    repeat(folder / "l/train-annotations-bbox.csv", start, b",a", size // 2, end)
    return in_file(folder, "l", "open_images", boxes=True)


@bomb("yolo", 1 << 20, 60 << 20)
def yolo_rows(folder: Path, size: int) -> Input:
    for name in ("images", "labels"):
        (folder / name).mkdir()
    images(folder / "images")
    (folder / "data.yaml").write_text("names: [a]\ntrain: images\n")
    repeat(folder / "labels/0.txt", b"", b"0 .5 .5 .1 .1\n", size // 14, b"")
    (folder / "labels/1.txt").write_text("0 .5 .5 .1 .1\n")
    return {"images": "set/images", "labels": {"path": "set/data.yaml", "format": "yolo", "boxes": True}}


@bomb("yolo", 1 << 20, 60 << 20, **SEGMENTATION)
def yolo_points(folder: Path, size: int) -> Input:
    given = yolo_rows(folder, 14)
    repeat(folder / "labels/0.txt", b"0", b" 0 1", size // 4, b"\n")
    del given["labels"]["boxes"]
    return given


# --- YAML -----------------------------------------------------------------------------------------------------------


def configured(folder: Path, text: bytes) -> None:
    """The configuration itself is the bomb."""
    images(folder)
    (folder.parent / "c.yaml").write_bytes(
        b"task: classification\ninput: {images: set, labels: {format: none}}\nx:\n " + text
    )


@bomb("YAML", 9, 30)
def yaml_aliases(folder: Path, size: int) -> None:
    lines = [b"a0: &a0 [x]"] + [b"a%d: &a%d [%s]" % (i, i, b",".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, size)]
    configured(folder, b"\n ".join(lines))


@bomb("YAML", 100_000, 4_100_000)
def yaml_depth(folder: Path, size: int) -> None:
    configured(folder, b"[" * size)


@bomb("YAML", 100_000, 4_100_000)
def yaml_scalar(folder: Path, size: int) -> None:
    configured(folder, b"a: " + b"1_" * (size // 2))


@bomb("YAML", 100_000, 4_100_000)
def yaml_keys(folder: Path, size: int) -> None:
    configured(folder, b"? " * (size // 2))


@bomb("YAML", 100_000, 4_100_000)
def yaml_anchors(folder: Path, size: int) -> None:
    configured(folder, b"a: " + b"&x " * (size // 3))
