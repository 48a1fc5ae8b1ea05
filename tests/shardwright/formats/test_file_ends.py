"""Mask files that annotations name: by the whole path, by its end where one file fits; never the last one listed."""

import json

import numpy as np
import pytest
from ingesting import changed, examples, run
from PIL import Image

from shardwright.errors import UsageError
from shardwright.formats.image_names import FileEnds
from shardwright.masks import rle

FILES = ["masks/a/0.png", "masks/b/0.png", "masks/c.png"]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("masks/a/0.png", "masks/a/0.png"),
        ("a/0.png", "masks/a/0.png"),
        ("./b/0.png", "masks/b/0.png"),
        ("b\\\\0.png", None),
        ("C:\\work\\b\\0.png", "masks/b/0.png"),
        ("/home/ann/a/0.png", "masks/a/0.png"),
        ("/home/ann/c.png", "masks/c.png"),
        ("c.png", "masks/c.png"),
        ("d.png", None),
    ],
)
def test_the_longest_end_decides(name, file):
    if name == "b\\\\0.png":
        with pytest.raises(UsageError, match="which could be masks/a/0.png or masks/b/0.png"):
            FileEnds(FILES, "set").find(name)
        return
    assert FileEnds(FILES, "set").find(name) == file


@pytest.mark.parametrize("name", ["0.png", "x/0.png", "/other/0.png"])
def test_two_files_that_fit_are_an_error(name):
    with pytest.raises(UsageError, match=r"could be masks/a/0.png or masks/b/0.png below set. Write the relative path"):
        FileEnds(FILES, "set").find(name)


@pytest.mark.parametrize("order", [1, -1])
def test_two_names_of_one_file_are_an_error(order):
    ends = FileEnds(["a/0.png"], "set")
    first, second = ["a/0.png", "b/0.png"][::order]
    assert ends.find(first) == ends.find(first) == "a/0.png"
    with pytest.raises(UsageError, match="only a/0.png fits both. Add the missing file"):
        ends.find(second)


def grown(size):
    pixels = np.zeros((20, 30), np.uint8)
    pixels[:size, :size] = 1
    return pixels


def pictures(root, *keys):
    for number, key in enumerate(keys):
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((20, 30, 3), number, np.uint8)).save(root / key)


def stored(out, label):
    return {
        key: rle.draw(rle.from_flat(example[f"image/segmentation/{label}/rle"]), 20, 30)
        for key, example in examples(out).items()
    }


def test_open_images_and_panoptic_masks_of_one_name_in_two_folders(tmp_path, image_input):
    raw = changed(image_input(tmp_path / "unused", images=1), classes=None, images=str(tmp_path / "images"))
    pictures(tmp_path / "images", "a/a0.jpg", "b/b0.jpg")
    rows = ["MaskPath,ImageID,LabelName,BoxID,BoxXMin,BoxXMax,BoxYMin,BoxYMax,PredictedIoU,Clicks"]
    document = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "ship"}]}
    for number, folder in enumerate("ab"):
        ship, none = grown(5 + number), grown(0)
        for kind, pixels in (("open", ship * 255), ("panoptic", np.dstack([ship * 9, none, none]))):
            (tmp_path / kind / "panoptic" / folder).mkdir(parents=True)
            Image.fromarray(pixels).save(tmp_path / kind / "panoptic" / folder / "0.png")
        rows.append(f"{folder}/0.png,{folder}0,ship,x,,,,,0.9,")
        document["images"].append({"id": number, "file_name": f"{folder}/{folder}0.jpg", "height": 20, "width": 30})
        segments = [{"id": 9, "category_id": 1}]
        document["annotations"].append({"image_id": number, "file_name": f"{folder}/0.png", "segments_info": segments})
    (tmp_path / "open/segs.csv").write_text("\n".join(rows))
    (tmp_path / "panoptic/panoptic.json").write_text(json.dumps(document))
    for kind, file in (("open", "segs.csv"), ("panoptic", "panoptic.json")):
        labels = {"path": str(tmp_path / kind / file), "format": "open_images" if kind == "open" else "panoptic"}
        run(changed(raw, labels=labels), tmp_path / f"out-{kind}")
        found = stored(tmp_path / f"out-{kind}", "ship")
        assert {key: int(mask.sum()) for key, mask in found.items()} == {"a/a0.jpg": 25, "b/b0.jpg": 36}
        (tmp_path / kind / "panoptic/a/0.png").unlink()
        with pytest.raises(UsageError, match="fits both"):
            run(changed(raw, labels=labels), tmp_path / "other")
