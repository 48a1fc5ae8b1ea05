"""Mask images and Pascal VOC on both object stores: the dataset that the same files on disk give."""

import io
from collections import Counter

import numpy as np
import pytest
from ingesting import run, tree
from object_stores import SCHEMES
from PIL import Image

from shardwright.errors import CheckFailed
from shardwright.storage import buckets

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
        pixels = np.zeros((8, 9), np.uint8)
        pixels[:7], pixels[:6], pixels[:2, : number + 2] = 255, 1, 2
        found[f"{masks}/{number}.png"] = encoded(pixels, "png")
        if masks == "SegmentationClass":
            found[f"Annotations/{number}.xml"] = XML
    return found


def write(folder, found):
    for name, data in found.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def config(root, labels, classes, values="auto"):
    places = {"images": f"{root}/data/images", "labels": {"path": f"{root}/{labels}", "values": values}}
    return {"task": "segmentation", "input": {**places, "classes": classes}, "rejects": {"max_fraction": 0.6}}


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("masks", "labels"), [("masks", "data/masks"), ("SegmentationClass", "data")])
def test_masks_on_a_bucket_are_those_on_disk(stores, tmp_path, scheme, masks, labels):
    bucket = stores.bucket(scheme)
    stores.fill(f"{bucket}/data", files(masks))
    write(tmp_path / "data", files(masks))
    notes = []
    run(config(bucket, labels, ["a", "b"]), tmp_path / "there", log=notes.append)
    run(config(tmp_path, labels, ["a", "b"]), tmp_path / "here")
    assert tree(tmp_path / "there") == tree(tmp_path / "here")
    assert notes[0].startswith("labels: pascal_voc" if labels == "data" else "labels: mask_images")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    ("classes", "values", "reads"),
    [({"a": 1, "b": 2, "ignore": 255}, "stored", 1), ({"a": 1, "b": 2}, "auto", 2), (["a", "b"], "stored", 2)],
)
def test_each_mask_is_read_once_where_the_configuration_states_all(stores, tmp_path, scheme, classes, values, reads):
    """Also one of a rejected image, a broken one, and one of no image. To check the values takes another read, or
    another one of the first mask, which shows that a class occurs.
    """
    found = files("masks")
    found["images/2.jpg"] = found["images/2.jpg"][:200]
    found["masks/1.png"] = found["masks/1.png"][:60]
    found["masks/other.png"] = found["masks/0.png"]
    bucket = stores.bucket(scheme)
    stores.fill(f"{bucket}/data", found)
    write(tmp_path / "data", found)
    run(config(tmp_path, "data/masks", classes, values), tmp_path / "here")
    stores.requests.clear()
    run(config(bucket, "data/masks", classes, values), tmp_path / "there")
    assert tree(tmp_path / "there") == tree(tmp_path / "here")
    asked = [path.split("?")[0].rpartition("masks")[2] for method, path in stores.requests if method == "GET"]
    counts = Counter(name for name in asked if name.endswith(".png"))
    expected = {name: 1 if "other" in name else reads for name in counts}
    first = {} if reads > 1 else {name: 2 for name in counts if name.endswith("0.png")}
    assert counts == {**expected, **first}
    assert len(counts) == 5
    stores.requests.clear()
    run(config(bucket, "data/masks", classes, values), tmp_path / "there")
    again = [path for method, path in stores.requests if method == "GET" and ".png" in path.split("?")[0]]
    assert len(again) == (1 if reads == 1 else 4)


@pytest.mark.parametrize("scheme", SCHEMES[:1])
def test_a_mask_that_changes_after_it_was_listed_ends_the_run(stores, tmp_path, scheme, monkeypatch):
    bucket = stores.bucket(scheme)
    stores.fill(f"{bucket}/data", files("masks"))
    read = buckets.read

    def flipped(url, *more):
        data = read(url, *more)
        return data[:-1] + bytes([data[-1] ^ 1]) if url.endswith("3.png") else data

    monkeypatch.setattr(buckets, "read", flipped)
    with pytest.raises(CheckFailed, match=r"3\.png: the mask has changed while the run was reading the input"):
        run(config(bucket, "data/masks", {"a": 1, "b": 2, "ignore": 255}, "stored"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
