"""Mask images and Pascal VOC on both object stores: the dataset that the same files on disk give."""

import io

import numpy as np
import pytest
from ingesting import run, tree
from object_stores import SCHEMES
from PIL import Image

pytestmark = pytest.mark.slow

XML = b"<annotation><size><width>9</width><height>8</height></size></annotation>"


def encoded(pixels, kind):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def files(masks):
    found = {}
    for number in range(4):
        random = np.random.default_rng(number)
        found[f"images/{number}.jpg"] = encoded(random.integers(0, 255, (8, 9, 3), dtype=np.uint8), "jpeg")
        found[f"{masks}/{number}.png"] = encoded(random.choice(np.array([0, 1, 2, 255], np.uint8), (8, 9)), "png")
        if masks == "SegmentationClass":
            found[f"Annotations/{number}.xml"] = XML
    return found


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("masks", "labels"), [("masks", "data/masks"), ("SegmentationClass", "data")])
def test_masks_on_a_bucket_are_those_on_disk(stores, tmp_path, scheme, masks, labels):
    bucket = stores.bucket(scheme)
    stores.fill(f"{bucket}/data", files(masks))
    for name, data in files(masks).items():
        file = tmp_path / "data" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    def config(root):
        places = {"images": f"{root}/data/images", "labels": {"path": f"{root}/{labels}"}}
        return {"task": "segmentation", "input": {**places, "classes": ["a", "b"]}}

    notes = []
    run(config(bucket), tmp_path / "there", log=notes.append)
    run(config(tmp_path), tmp_path / "here")
    assert tree(tmp_path / "there") == tree(tmp_path / "here")
    assert notes[0].startswith("labels: pascal_voc" if labels == "data" else "labels: mask_images")
