"""Ingest with turns, sizes, encodings and formats: masks stay on what they were drawn on, and nothing is lost."""

import io
import json

import numpy as np
import PIL
import pytest
from ingesting import changed, config, examples, ledger, run, tree
from picturing import GPS, pillow_exif
from PIL import Image, ImageDraw
from recording import reading

from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ConfigError, UsageError
from shardwright.images import orientation as turns
from shardwright.images.decode import apply_orientation
from shardwright.images.exif import only_orientation
from shardwright.ingest import IngestRecipe, ingest, locate, plan_ingest, write_range
from shardwright.masks import rle
from shardwright.staging.ranges import Range
from shardwright.staging.staging import Staging
from shardwright.verify import verify

HEIGHT, WIDTH = 60, 90


def displayed(number, height=HEIGHT, width=WIDTH):
    """A light ellipse on dark ground, as a viewer shows it, and its mask."""
    random = np.random.default_rng(number)
    left, top = random.uniform(0.1, 0.4) * width, random.uniform(0.1, 0.4) * height
    image = Image.new("RGB", (width, height), (10, 20, 30))
    ImageDraw.Draw(image).ellipse((left, top, left + width * 0.5, top + height * 0.4), fill=(250, 240, 245))
    return image, np.asarray(image)[..., 0] > 128


def stored_image(number):
    """The same as a camera stores it, number % 8 + 1 being the orientation."""
    return apply_orientation(displayed(number)[0], turns.inverse(number % 8 + 1))


def stored_mask(number):
    return np.asarray(stored_image(number))[..., 0] > 128


def name(number):
    return f"{number:03d}.{'png' if number % 2 else 'jpg'}"


@pytest.fixture
def shapes(tmp_path):
    """16 images of all orientations; `labels.csv` has the masks as displayed, `stored.csv` as stored."""
    folder = tmp_path / "in" / "images"
    folder.mkdir(parents=True)
    tables = {"labels.csv": [], "stored.csv": []}
    for number in range(16):
        exif = b"Exif\0\0" + pillow_exif({0x0112: number % 8 + 1}, gps=GPS if number < 3 else ())
        options = {"quality": 98, "subsampling": 0} if number % 2 == 0 else {}
        stored_image(number).save(folder / name(number), exif=exif, **options)
        for file, mask in (("labels.csv", displayed(number)[1]), ("stored.csv", stored_mask(number))):
            tables[file].append(f"{name(number)}_Shape,{rle.to_pairs(rle.encode(mask))}")
    for file, rows in tables.items():
        (tmp_path / "in" / file).write_text("\n".join(["Image_Label,EncodedPixels", *rows]) + "\n")
    return {
        "task": "segmentation",
        "input": {
            "images": str(folder),
            "labels": {"path": str(tmp_path / "in" / "labels.csv"), "rle": {"order": "column"}},
            "classes": ["Shape"],
        },
        "shards": {"records": 5},
    }


def overlap(example):
    """Returns the overlap of the stored mask and the light pixels of the stored image."""
    image = np.asarray(Image.open(io.BytesIO(example["image/encoded"][0])).convert("RGB"))[..., 0] > 128
    size = (int(example["image/height"][0]), int(example["image/width"][0]))
    assert image.shape == size
    mask = rle.draw(rle.from_flat(example["image/segmentation/Shape/rle"]), *size) > 0
    assert mask.sum() == example["image/segmentation/Shape/area"][0]
    return (mask & image).sum() / (mask | image).sum()


def as_stored(raw):
    labels = {**raw["input"]["labels"], "path": raw["input"]["labels"]["path"].replace("labels", "stored")}
    return changed(raw, labels={**labels, "orientation": "stored"})


@pytest.mark.parametrize("frame", ["displayed", "stored"])
@pytest.mark.parametrize("option", ["keep", "apply"])
def test_masks_lie_on_what_they_were_drawn_on(tmp_path, shapes, frame, option):
    raw = as_stored(shapes) if frame == "stored" else shapes
    run({**raw, "images": {"orientation": option}}, tmp_path / "out")
    found = examples(tmp_path / "out")
    assert len(found) == 16
    for key, example in found.items():
        number = int(key[:3])
        assert overlap(example) > 0.98
        delivered = (tmp_path / "in" / "images" / key).read_bytes()
        untouched = option == "keep" or number % 8 == 0
        assert (example["image/encoded"][0] == delivered) == untouched
        assert example["image/orientation"][0] == (number % 8 + 1 if option == "keep" else 1)
        if option == "apply":
            assert (example["image/height"][0], example["image/width"][0]) == (HEIGHT, WIDTH)


def test_how_many_images_have_masks_in_the_displayed_frame_is_logged(tmp_path, shapes):
    notes = []
    manifest = ingest(config(shapes), tmp_path / "out", quiet=True, log=notes.append)
    assert manifest.totals["displayed_frame"] == 14
    assert "14 images are turned by Exif: masks and boxes are taken as drawn on the displayed" in notes[-1]
    assert "input.labels.orientation" in notes[-1]
    assert "displayed_frame" not in run(as_stored(shapes), tmp_path / "stored").totals


def test_the_wrong_frame_is_wrong(tmp_path, shapes):
    labels = {**shapes["input"]["labels"], "orientation": "stored"}
    run(changed(shapes, labels=labels), tmp_path / "out")
    overlaps = {key: overlap(example) for key, example in examples(tmp_path / "out").items()}
    assert min(overlaps.values()) < 0.7
    assert min(overlaps["000.jpg"], overlaps["008.jpg"]) > 0.98


@pytest.mark.parametrize("stated", ["displayed", "stored"])
def test_a_coco_files_sizes_decide_the_frame(tmp_path, shapes, stated):
    document = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "Shape"}]}
    for number in range(16):
        mask = displayed(number)[1] if stated == "displayed" else stored_mask(number)
        entry = {"id": number, "file_name": name(number), "height": mask.shape[0], "width": mask.shape[1]}
        runs = rle.encode(mask).reshape(-1, 2)
        counts = np.diff(np.concatenate([[0], np.stack([runs[:, 0], runs.sum(axis=1)], axis=1).ravel(), [mask.size]]))
        segmentation = {"size": list(mask.shape), "counts": counts.tolist()}
        document["images"].append(entry)
        document["annotations"].append(
            {"id": number, "image_id": number, "category_id": 1, "iscrowd": 1, "segmentation": segmentation}
        )
    (tmp_path / "in" / "coco.json").write_text(json.dumps(document))
    run(changed(shapes, labels={"path": str(tmp_path / "in" / "coco.json")}), tmp_path / "out")
    for key, example in examples(tmp_path / "out").items():
        # A size does not show turns that leave it as it is: then masks are as displayed.
        decided = stated == "displayed" or int(key[:3]) % 8 + 1 in (1, 5, 6, 7, 8)
        assert (overlap(example) > 0.98) or not decided


@pytest.mark.parametrize("drawn", ["displayed", "stored"])
def test_a_mask_images_size_decides_the_frame(tmp_path, shapes, drawn):
    folder = tmp_path / "in" / "masks"
    folder.mkdir()
    for number in range(16):
        mask = displayed(number)[1] if drawn == "displayed" else stored_mask(number)
        Image.fromarray(mask.astype(np.uint8)).save(folder / f"{number:03d}.png")
    raw = changed(shapes, labels={"format": "mask_images", "path": str(folder)}, classes={"Shape": 1})
    run(raw, tmp_path / "out")
    found = examples(tmp_path / "out")
    assert len(found) == 16
    for key, example in found.items():
        decided = drawn == "displayed" or int(key[:3]) % 8 + 1 in (1, 5, 6, 7, 8)
        assert (overlap(example) > 0.98) or not decided


@pytest.mark.slow
@pytest.mark.parametrize(
    ("images", "size"),
    [
        ({"resize": "stretch", "size": [40, 50]}, (40, 50)),
        ({"resize": "fill_crop", "size": [50, 50]}, (50, 50)),
        ({"resize": "letterbox", "size": [64, 64]}, (64, 64)),
        ({"resize": "longest_side", "size": 70}, (47, 70)),
    ],
)
def test_resized_images_and_masks_are_one_and_load(tmp_path, shapes, images, size):
    from shardwright import loader

    run({**shapes, "images": {**images, "orientation": "apply", "quality": 95}}, tmp_path / "out")
    for example in examples(tmp_path / "out").values():
        assert (example["image/height"][0], example["image/width"][0]) == size
        assert overlap(example) > 0.9
    loaded = 0
    for split in ImageDataset.open(tmp_path / "out").splits:
        for image, mask in loader.load(tmp_path / "out", split, 4).unbatch():
            assert (*image.shape,) == (*size, 3)
            light, drawn = image.numpy()[..., 0] > 0.5, mask.numpy()[..., 0] > 0
            assert (light & drawn).sum() / (light | drawn).sum() > 0.9
            loaded += 1
    assert loaded == 16


def test_all_encodings_load_the_same_pixels(tmp_path, shapes):
    from shardwright import loader

    found = {}
    for encoding in ("png", "tensor", "raw", "jpeg"):
        out = tmp_path / encoding
        run({**shapes, "images": {"orientation": "apply", "encoding": encoding, "quality": 99}}, out)
        assert {example["image/format"][0] for example in examples(out).values()} == {encoding.encode()}
        batches = loader.load(out, "train", 16, normalize="none")
        found[encoding] = np.concatenate([image.numpy() for image, _ in batches])
    np.testing.assert_array_equal(found["png"], found["tensor"])
    np.testing.assert_array_equal(found["png"], found["raw"])
    assert np.abs(found["png"] - found["jpeg"]).mean() < 3


def test_shards_of_values_are_planned_by_what_they_will_hold(tmp_path, shapes):
    images = {"resize": "stretch", "size": [100, 100], "encoding": "raw"}
    manifest = run({**shapes, "images": images, "shards": {"target_size": 100_000}}, tmp_path / "out")
    for shard in manifest.shards:
        assert shard.records in (2, 3, 4)
        assert shard.bytes > 30_000 * shard.records


def test_boxes_go_with_the_pixels(tmp_path, shapes):
    document = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "Shape"}]}
    for number in range(16):
        rows, columns = np.nonzero(displayed(number)[1])
        sides = [columns.min(), rows.min(), columns.max() + 1 - columns.min(), rows.max() + 1 - rows.min()]
        document["images"].append({"id": number, "file_name": name(number), "height": HEIGHT, "width": WIDTH})
        document["annotations"].append(
            {"id": number, "image_id": number, "category_id": 1, "bbox": [int(side) for side in sides]}
        )
    (tmp_path / "in" / "coco.json").write_text(json.dumps(document))
    raw = changed(shapes, labels={"path": str(tmp_path / "in" / "coco.json"), "boxes": True})
    for option in ("keep", "apply"):
        images = {"orientation": option, "resize": "letterbox", "size": [64, 64], "encoding": "png"}
        run({**raw, "task": "classification", "images": images}, tmp_path / option)
        for example in examples(tmp_path / option).values():
            light = np.asarray(Image.open(io.BytesIO(example["image/encoded"][0])))[..., 0] > 128
            rows, columns = np.nonzero(light)
            edges = [example[f"image/object/bbox/{side}"][0] * 64 for side in ("xmin", "ymin", "xmax", "ymax")]
            expected = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
            np.testing.assert_allclose(edges, expected, atol=1.5)


def test_other_formats_are_written_where_they_may_be(tmp_path, shapes):
    for number, kind in ((1, "webp"), (3, "gif"), (5, "tiff"), (7, "bmp")):
        target = tmp_path / "in" / "images" / name(number)
        options = {"lossless": True, "exif": b"Exif\0\0" + only_orientation(2)} if kind == "webp" else {}
        stored_image(number).save(target, kind, **options)
    run(shapes, tmp_path / "out")
    rejected = {key: row.code for key, row in ledger(tmp_path / "out").items() if row.status == "rejected"}
    assert rejected == {name(number): "unsupported_format" for number in (1, 3, 5, 7)}
    labels = as_stored(shapes)["input"]["labels"]
    run(changed({**shapes, "images": {"unsupported_formats": "png"}}, labels=labels), tmp_path / "converted")
    found = examples(tmp_path / "converted")
    assert len(found) == 16
    for number in (1, 3, 5, 7):
        assert found[name(number)]["image/format"][0] == b"png"
        assert overlap(found[name(number)]) > 0.98
    assert found[name(1)]["image/orientation"][0] == 2


def test_the_order_of_run_lengths_is_detected_from_the_sizes_of_other_formats_too(tmp_path, shapes):
    rows = ["Image_Label,EncodedPixels"]
    for number in range(16):
        image, mask = displayed(number, 40, 300)
        image.save(tmp_path / "in" / "images" / name(number), "webp", lossless=True)
        rows.append(f"{name(number)}_Shape,{rle.to_pairs(rle.encode(mask.T))}")
    (tmp_path / "in" / "labels.csv").write_text("\n".join(rows) + "\n")
    raw = changed(
        {**shapes, "images": {"unsupported_formats": "png"}}, labels={"path": str(tmp_path / "in" / "labels.csv")}
    )
    with pytest.raises(UsageError, match="the outlines of 16 masks are .* times as long as row by row"):
        run(raw, tmp_path / "out")
    run(changed(raw, labels={**raw["input"]["labels"], "rle": {"order": "row"}}), tmp_path / "out")
    assert min(map(overlap, examples(tmp_path / "out").values())) > 0.98


def test_masks_of_a_dataset_that_is_read_again_lie_where_they_lay(tmp_path, shapes):
    run(shapes, tmp_path / "first")
    run({**reading(tmp_path / "first", "segmentation"), "images": {"orientation": "apply"}}, tmp_path / "second")
    found = examples(tmp_path / "second")
    assert len(found) == 16
    assert min(map(overlap, found.values())) > 0.98
    assert {int(example["image/orientation"][0]) for example in found.values()} == {1}


def has_position(example):
    return bool(Image.open(io.BytesIO(example["image/encoded"][0])).getexif().get_ifd(0x8825))


def test_files_with_a_position_are_counted_and_logged(tmp_path, shapes):
    notes = []
    for policy, kept in (("none", True), ("private", False), ("all", False)):
        out = tmp_path / policy
        options = config(shapes, images={"strip_metadata": policy})
        manifest = ingest(options, out, quiet=True, log=notes.append)
        assert manifest.totals["gps"] == 3
        assert notes[-2].startswith("3 images contain a GPS position, which is ")
        assert ("images.strip_metadata: private" in notes[-2]) == kept
        found = examples(out)
        assert sorted(filter(lambda key: has_position(found[key]), found)) == (
            [name(number) for number in range(3)] if kept else []
        )
        assert min(map(overlap, found.values())) > 0.98
        assert not verify(out).findings
    for number in range(3):
        stored_image(number).save(tmp_path / "in" / "images" / name(number), exif=only_orientation(number % 8 + 1))
    assert "gps" not in run(shapes, tmp_path / "nowhere").totals


@pytest.mark.slow
def test_bytes_do_not_depend_on_the_number_of_processes(tmp_path, shapes):
    raw = {**shapes, "images": {"orientation": "apply", "resize": "longest_side", "size": 40, "encoding": "jpeg"}}
    run(raw, tmp_path / "one", workers=1)
    run(raw, tmp_path / "two", workers=2)
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


@pytest.mark.parametrize("encodes", [True, False])
def test_shards_that_another_encoder_has_staged_are_written_again(tmp_path, shapes, monkeypatch, encodes):
    raw = {**shapes, "images": {"encoding": "jpeg"} if encodes else {}}
    options = config(raw)
    prepared = plan_ingest(IngestRecipe.of(options), locate(options))
    found = []
    for version in ("1.0", "1.0", "2.0"):
        monkeypatch.setattr(PIL, "__version__", version)
        staging = Staging.open(tmp_path / "staging", prepared.plan.dataset.fingerprint, prepared.plan.tools)
        prepared.stage(staging)
        found.append(staging.results(prepared.plan.dataset.shards)[0] is not None)
        write_range(Range(0, -1, prepared.plan.cut.bounds[0]), prepared.plan, staging)
    assert found == [False, True, not encodes]


def test_options_at_their_defaults_are_not_in_the_recipe(tmp_path, shapes):
    defaults = {
        "orientation": "keep",
        "encoding": "keep",
        "quality": 90,
        "unsupported_formats": "reject",
        "resize": "keep",
    }
    one, two = run(shapes, tmp_path / "one"), run({**shapes, "images": defaults}, tmp_path / "two")
    assert one.fingerprint == two.fingerprint
    assert one.recipe["images"] == {}


@pytest.mark.parametrize(
    ("images", "path", "problem"),
    [
        ({"resize": "stretch"}, "images.size", "None is not a size for stretch"),
        ({"resize": "stretch", "size": 512}, "images.size", "512 is not a size for stretch"),
        ({"resize": "longest_side", "size": [5, 5]}, "images.size", "is not a size for longest_side"),
        ({"size": [5, 5]}, "images.size", "has no effect without images.resize"),
        ({"resize": "stretch", "size": [5, 0]}, "images.size", "0 is out of range"),
        ({"resize": "stretch", "size": [5]}, "images.size", "has 1 entries"),
        ({"resize": "stretch", "size": "big"}, "images.size", "not a whole number"),
        ({"resize": "squash"}, "images.resize", "'squash' is not known"),
        ({"chroma": 411}, "images.chroma", "411 is not known"),
        ({"quality": 0}, "images.quality", "0 is out of range"),
        ({"encoding": "gif"}, "images.encoding", "'gif' is not known"),
        ({"unsupported_formats": "raw"}, "images.unsupported_formats", "'raw' is not known"),
        ({"orientation": "turn"}, "images.orientation", "'turn' is not known"),
        ({"strip_metadata": "gps"}, "images.strip_metadata", "'gps' is not known"),
    ],
)
def test_options_that_make_no_sense_are_refused(shapes, images, path, problem):
    with pytest.raises(ConfigError, match=problem) as caught:
        config(shapes, images=images)
    assert caught.value.path.startswith(path)


def test_the_sources_own_texts_do_not_fit_moved_pixels(shapes):
    for images in ({"orientation": "apply"}, {"resize": "longest_side", "size": 9}):
        with pytest.raises(ConfigError, match="rle_text keeps the masks as the source has them"):
            config(shapes, images=images, features={"preset": "rle_text"})


@pytest.mark.shared_data
@pytest.mark.parametrize(
    "images",
    [
        {"unsupported_formats": "png"},
        {"unsupported_formats": "jpeg", "orientation": "apply", "strip_metadata": "all"},
        {"unsupported_formats": "png", "resize": "letterbox", "size": [64, 64], "strip_metadata": "private"},
    ],
    ids=["convert", "turn and strip", "resize"],
)
def test_every_hostile_file_is_written_or_rejected_by_name(tmp_path, shared_data, images):
    folder = shared_data / "hostile"
    raw = {
        "task": "classification",
        "input": {"images": str(folder), "labels": {"format": "none"}},
        "images": {**images, "max_pixels": 100_000_000},
        "rejects": {"max_fraction": 1.0},
    }
    manifest = run(raw, tmp_path / "out")
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    found = ledger(tmp_path / "out")
    assert manifest.totals["inputs"] == len(found)
    assert set(found) >= {file for file in files if not file.rpartition("/")[2].startswith(".")} - {
        "desktop.ini",
        "manifest.csv",
    }
    for row in found.values():
        assert row.status == "written" or (row.code and row.reason)
        assert str(shared_data) not in row.reason
    assert found["decompression_bomb.gif"].code == found["l2rgb_read.bmp"].code == "too_large"
    assert manifest.totals["written"] > 80
