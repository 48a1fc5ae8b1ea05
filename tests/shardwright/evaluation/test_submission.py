"""Tables of predicted masks: read back they are the masks; masks come back to the image's own size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from shardwright import make_dataset
from shardwright.errors import UsageError
from shardwright.evaluation.submission import (
    LAYOUTS,
    choose_layout,
    layout_of_header,
    layout_of_table,
    mask_rows,
    write_submission,
)
from shardwright.images.geometry import POLICIES, plan_geometry
from shardwright.images.orientation import displayed_size
from shardwright.masks import rle
from shardwright.masks.coordinate_frame import CoordinateFrame, restore_to_file, to_image_size
from shardwright.masks.regions import find_regions

sides = st.integers(1, 30)


@given(sides, sides, sides, sides, st.sampled_from(POLICIES), st.integers(0, 2**32 - 1))
def test_a_mask_comes_back_pixel_by_pixel(height, width, model_height, model_width, policy, seed):
    mask = np.random.default_rng(seed).random((model_height, model_width)) < 0.5
    found = rle.draw(to_image_size(mask, policy, height, width), height, width)
    plan = plan_geometry(policy, height, width, model_height, model_width)
    wanted = np.zeros((height, width), np.uint8)
    for y in range(plan.crop_height):
        for x in range(plan.crop_width):
            row = plan.pad_top + (2 * y + 1) * plan.resized_height // (2 * plan.crop_height)
            column = plan.pad_left + (2 * x + 1) * plan.resized_width // (2 * plan.crop_width)
            wanted[plan.crop_top + y, plan.crop_left + x] = mask[row, column]
    np.testing.assert_array_equal(found, wanted)


@given(sides, sides, st.integers(1, 8), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
def test_a_mask_of_turned_and_resized_pixels_comes_back_to_those_of_the_file(
    height, width, orientation, turned, enlarged, seed
):
    displayed = displayed_size(height, width, orientation if turned else 1)
    mask = np.random.default_rng(seed).random(displayed) < 0.5
    geometry = None
    if enlarged:
        geometry = plan_geometry("stretch", *displayed, 2 * displayed[0], 3 * displayed[1])
        mask = mask.repeat(2, axis=0).repeat(3, axis=1)
    frames = CoordinateFrame(height, width, orientation, turned, geometry)
    found = restore_to_file(mask, "stretch", frames)
    assert rle.draw(found, height, width).shape == (height, width)
    # The ingest's own way there again.
    np.testing.assert_array_equal(frames.move_runs(found, False), rle.encode(mask))


@given(
    sides,
    sides,
    st.sampled_from(sorted(LAYOUTS)),
    st.sampled_from([("Fish", "1"), ("2", "Fish"), ("3", "7")]),
    st.integers(0, 2**32 - 1),
    st.floats(0, 1),
)
def test_rows_hold_the_masks(height, width, name, classes, seed, share):
    layout = LAYOUTS[name]
    classes = classes if layout.classes else classes[:1]
    masks = [rle.encode(np.random.default_rng([seed, c]).random((height, width)) < share) for c in range(len(classes))]
    rows = list(mask_rows(layout, "a/b_1.jpg", masks, classes, (height, width)))
    assert all(len(row) == len(layout.header) for row in rows)
    named = {"file_Class": "_{}", "file_id": "_{}"}.get(layout.classes, "")
    image = "a/b_1.jpg" if layout.extension else "a/b_1"
    for number, (label, runs) in enumerate(zip(classes, masks, strict=True)):
        # Numbers of classes are their own only if all are numbers: no two classes have the same one.
        shown = label if layout.classes in ("file_Class", "name") or "Fish" not in classes else str(number + 1)
        heads = [[image + named.format(shown)], [image, shown]]
        mine = [row for row in rows if row[:-1] in heads or not layout.classes]
        read = [layout.dialect.parse(row[-1], height=height, width=width) for row in mine]
        np.testing.assert_array_equal(rle.union(read), runs)
        regions = len(find_regions(runs, height).areas)
        assert len(mine) == (max(regions, 1) if layout.instances else 1), number


def test_headers_determine_the_layout():
    assert layout_of_header(["Image_Label", "EncodedPixels"]) == "clouds"
    assert layout_of_header(["img", "RLE_mask"]) == "carvana"
    assert layout_of_header(["ImageId", "ClassId", "EncodedPixels"]) == "severstal"
    assert layout_of_header(["a", "b"]) is None


def test_a_table_has_the_layout_of_its_header(tmp_path):
    (tmp_path / "a.csv").write_text("\ufeffImage_Label,EncodedPixels\nx,\n", encoding="utf-8")
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "c.csv").write_bytes(b"")
    assert layout_of_table(str(tmp_path / "a.csv")) == "clouds"
    assert [layout_of_table(str(tmp_path / name)) for name in ("b.csv", "c.csv", "none.csv", "")] == [None] * 4


def test_a_layout_without_classes_is_refused_for_several():
    assert choose_layout("airbus", ["ship"]).instances
    with pytest.raises(UsageError, match=r"'airbus' has no column of classes, and there are 2: a, b\. Use one of"):
        choose_layout("airbus", ["a", "b"])
    with pytest.raises(UsageError, match="'cloud' is not known. Use one of: clouds"):
        choose_layout("cloud", ["a"])


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_our_own_ingest_reads_what_is_written(tmp_path, name):
    layout, random = LAYOUTS[name], np.random.default_rng(3)
    classes = ["1", "2"] if layout.classes else []
    keys = [f"photo {number}, a.png" for number in range(6)]
    (tmp_path / "images").mkdir()
    masks = []
    for key in keys:
        Image.fromarray(random.integers(0, 255, (20, 31, 3), np.uint8)).save(tmp_path / "images" / key)
        mask = np.zeros((20, 31, 2 if classes else 1), bool)
        mask[2 : 2 + random.integers(3, 9), 5:29, 0] = True
        mask[12:, : random.integers(3, 9), -1] = True
        masks.append(mask)
    table = tmp_path / "masks.csv"
    rows = write_submission(keys, masks, table, layout=name, classes=classes)
    assert rows == len(table.read_text().splitlines()) - 1 == 6 * (2 if classes or layout.instances else 1)
    dialect = layout.dialect
    order = {} if dialect.runs == "counts" else {"order": dialect.order}
    labels = {"path": str(table), "rle": {"encoding": dialect.runs, **order}}
    config = {"input": {"images": str(tmp_path / "images"), "labels": labels}, "split": {"method": "hash"}}
    made = make_dataset({**config, "task": "segmentation"}, tmp_path / "out")
    for key, mask in zip(keys, masks, strict=True):
        np.testing.assert_array_equal(made.example(key).masks, mask)


def test_masks_of_another_size_come_back_to_the_images(tmp_path):
    masks = [np.eye(8, dtype=np.uint8), np.ones((8, 8), np.uint8)]
    write_submission(["a.jpg", "b.jpg"], masks, tmp_path / "s.csv", layout="airbus", sizes=[(16, 24), (3, 3)])
    rows = [row.split(",") for row in (tmp_path / "s.csv").read_text().splitlines()[1:]]
    parse = LAYOUTS["airbus"].dialect.parse
    found = rle.union([parse(code, height=16, width=24) for image, code in rows if image == "a.jpg"])
    np.testing.assert_array_equal(rle.draw(found, 16, 24), masks[0].repeat(2, axis=0).repeat(3, axis=1))
    assert rows[-1] == ["b.jpg", "1 9"]


@pytest.mark.parametrize(
    ("keys", "masks", "options", "message"),
    [
        (["a.png"], [np.full((2, 2), 0.7)], {}, r"masks: the mask of 'a.png' contains 0.7, not only 0 and 1"),
        (["a.png"], [np.full((2, 2), np.nan)], {}, "contains nan, not only"),
        (["a.png"], [np.full((2, 2), 255, np.uint8)], {}, "contains 255"),
        (["a.png"], [np.ones((2, 2, 3))], {}, r"has the shape \[2, 2, 3\]. Give \[H, W\] or \[H, W, 1\]"),
        (["a.png"], [np.ones((0, 2))], {}, r"has the shape \[0, 2\]"),
        (["a.png", "b.png"], [np.ones((2, 2))], {}, "masks: end after 1, but there are more images"),
        (["a.png"], [np.ones((2, 2))] * 2, {}, "keys: end after 1"),
        (["a.png"], [np.ones((2, 2))], {"sizes": []}, "sizes: end after 0"),
        (["a.png", "a.png"], [np.ones((2, 2))] * 2, {}, "keys: 'a' is the name of two images in the layout 'tgs'"),
        (["a.png", "a.jpg"], [np.ones((2, 2))] * 2, {}, "keys: 'a' is the name of two images"),
        (["a.png"], [np.ones((2, 2))], {"layout": "clouds"}, "classes: missing, and the layout 'clouds' names"),
        (["a.png"], [np.ones((2, 2))], {"layout": "cloud"}, "layout 'cloud' is not known"),
        (["a.png"], [np.ones((2, 2, 2))], {"classes": ["a", "b"]}, "layout 'tgs' has no column of classes"),
        (["a.png"], [np.ones((2, 2))], {"resize": "crop"}, "resize: 'crop' is not known"),
    ],
)
def test_what_is_no_submission_is_refused_and_leaves_the_file_alone(tmp_path, keys, masks, options, message):
    (tmp_path / "s.csv").write_text("before")
    with pytest.raises(UsageError, match=message):
        write_submission(keys, masks, tmp_path / "s.csv", **{"layout": "tgs", **options})
    assert (tmp_path / "s.csv").read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["s.csv"]
