"""Annotations of further formats on both object stores: the dataset that the same files on disk give."""

import io
import json

import pytest
from ingesting import changed, run, tree
from PIL import Image

pytestmark = pytest.mark.slow

# Both stores are behind one protocol, tested on both by test_object_stores; here the second takes its time.


def picture(number):
    file = io.BytesIO()
    Image.new("RGB", (30, 20), (number * 9, 60, 90)).save(file, "jpeg")
    return file.getvalue()


def coco():
    images = [{"id": n, "file_name": f"{n}.jpg", "height": 20, "width": 30} for n in range(6)]
    box = [[2, 2, 9, 2, 9, 9, 2, 9]]
    annotations = [
        {"id": n, "image_id": n, "category_id": 1 + n % 2, "segmentation": box, "iscrowd": 0, "bbox": [2, 2, 7, 7]}
        for n in range(6)
    ]
    categories = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    return json.dumps({"images": images, "annotations": annotations, "categories": categories}).encode()


def captions():
    return "".join(json.dumps({"image": f"{n}.jpg", "caption": f"é {n}"}) + "\n" for n in range(6)).encode()


def severstal():
    return b"ImageId,ClassId,EncodedPixels\r\n" + b"".join(b"%d.jpg,1,1 %d\r\n" % (n, 1 + n) for n in range(6))


FORMATS = {
    "coco": ("segmentation", "labels.json", coco),
    "captions": ("classification", "captions.jsonl", captions),
    "rle": ("segmentation", "train.csv", severstal),
}


@pytest.mark.parametrize("scheme", ["gs"])
@pytest.mark.parametrize("kind", FORMATS)
def test_annotations_on_a_bucket_are_those_on_disk(stores, tmp_path, scheme, kind):
    task, name, make = FORMATS[kind]
    files = {**{f"images/{n}.jpg": picture(n) for n in range(6)}, name: make()}
    bucket = stores.bucket(scheme)
    stores.fill(f"{bucket}/data", files)
    for path, data in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(data)

    def config(root):
        return {"task": task, "input": {"images": f"{root}/images", "labels": {"path": f"{root}/{name}"}}}

    assert run(config(f"{bucket}/data"), tmp_path / "there") == run(config(tmp_path), tmp_path / "here")
    assert tree(tmp_path / "there") == tree(tmp_path / "here")


@pytest.mark.parametrize(
    ("scheme", "options"),
    [("gs", {"verify": "full"}), ("s3", {"resize": "stretch", "size": [16, 24], "encoding": "png"})],
)
def test_probing_and_conversion_read_buckets(stores, tmp_path, image_input, scheme, options):
    raw = {**image_input(tmp_path / "in"), "images": options}
    bucket = stores.bucket(scheme)
    stores.copy_of(tmp_path / "in", f"{bucket}/data")
    labels = {**raw["input"]["labels"], "path": f"{bucket}/data/labels.csv"}
    there = changed(raw, images=f"{bucket}/data/images", labels=labels)
    # Probe rows have a place also where the staging folder is on a bucket.
    there["run"] = {"staging": f"{bucket}/staging"}
    assert run(there, tmp_path / "there") == run(raw, tmp_path / "here")
    assert tree(tmp_path / "there") == tree(tmp_path / "here")
    assert {name.split("/")[0] for name in stores.tree(bucket)} == {"data"}


@pytest.mark.parametrize("scheme", ["s3"])
def test_records_on_a_bucket_and_splits_of_a_dataset_there(stores, tmp_path, image_input, scheme):
    bucket = stores.bucket(scheme)
    raw = image_input(tmp_path / "in", layout="class_folders")
    first = run(raw, f"{bucket}/first")
    run(raw, tmp_path / "first")
    previous = {**raw, "split": {"keep_from": f"{bucket}/first"}}
    assert run(previous, tmp_path / "again").shards == first.shards

    def config(root):
        return {"task": "classification", "input": {"images": f"{root}/first/Split-*/*.tfrecord"}}

    assert run(config(bucket), tmp_path / "there") == run(config(tmp_path), tmp_path / "here")
    assert tree(tmp_path / "there") == tree(tmp_path / "here")
