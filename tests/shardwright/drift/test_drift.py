"""Samples of images are compared: what has changed speaks, nothing else does; and where samples come from."""

import dataclasses
import io
import shutil

import numpy as np
import pytest
from ingesting import run
from PIL import Image, ImageFilter

from benchmarks.drift_calibration import CHANGES, measure_all, table
from shardwright.config.evaluation import DriftConfig
from shardwright.config.images import ImagesConfig
from shardwright.dataset.reader import ImageDataset
from shardwright.drift.chapter import file_tiles
from shardwright.drift.compare import Comparison, compare
from shardwright.drift.monitor import _names, check_drift, check_paths, compare_datasets, sample_of
from shardwright.drift.sampling import sample_dataset, sample_folder
from shardwright.errors import DatasetError
from shardwright.storage.checksum import checksum_of
from shardwright.tfrecords.records import find_feature


def scene(number, size=(96, 64)):
    random = np.random.default_rng(number)
    cells = Image.fromarray(random.integers(40, 200, (6, 8, 3), dtype=np.uint8)).resize(size, Image.Resampling.BICUBIC)
    noise = random.normal(0, 12, (size[1], size[0], 1))
    return Image.fromarray((np.asarray(cells) + noise).clip(0, 255).astype(np.uint8))


def encoded(picture):
    return CHANGES["none"](picture)


@pytest.fixture(scope="module")
def files():
    return [encoded(scene(number)) for number in range(120)]


@pytest.fixture(scope="module")
def still(files):
    return measure_all(files, CHANGES["none"])


@pytest.mark.parametrize(
    ("change", "measures"),
    [
        ("brightness +10 %", {"brightness"}),
        ("blur of sigma 1", {"sharpness", "bytes"}),
        ("JPEG quality 95 -> 60", {"steps", "bytes"}),
        ("another camera", {"size", "pixels"}),
    ],
)
def test_a_change_speaks_by_its_own_measure(files, still, change, measures):
    found = {finding.measure for finding in compare(still, measure_all(files, CHANGES[change])).drifted}
    assert measures <= found


def test_nothing_speaks_without_a_change(files, still):
    assert compare(still, still).drifted == ()
    half = np.arange(60)
    found = compare(still.select(half), still.select(half + 60))
    assert found.drifted == ()
    assert found.reference_images == found.current_images == 60
    assert {"brightness", "embedding", "size"} <= {finding.measure for finding in found.findings}


@pytest.mark.parametrize("alpha", [0.006, 0.003, 0.0002])
def test_what_the_pictures_show_can_speak_alone_however_alpha_is_shared_out(still, alpha):
    other = dataclasses.replace(still, embeddings=still.embeddings + 3 * still.embeddings.std(axis=0))
    assert [finding.measure for finding in compare(still, other, alpha=alpha).drifted] == ["embedding"]


@pytest.mark.slow
def test_measures_can_be_left_out_and_few_images_have_no_verdict(files, still):
    darker = measure_all(files, lambda picture: encoded(picture.point(lambda level: level // 2)))
    drifted = compare(still, darker).drifted
    assert "brightness" in {finding.measure for finding in drifted}
    left = compare(still, darker, ignore=[finding.measure for finding in drifted])
    assert not {f.measure for f in left.findings} & {f.measure for f in drifted}
    few = np.arange(10)
    assert compare(still.select(few), darker.select(few)).drifted == ()


@pytest.mark.parametrize(("one", "other"), [(20, 20), (19, 30), (30, 19)])
def test_twenty_images_on_both_sides_are_enough(one, other):
    assert Comparison("reference", "current", one, other, ()).enough == (min(one, other) == 20)


@pytest.mark.slow
def test_the_table_has_a_row_for_each_change(files):
    lines = {line.change: line for line in table(files[:60], images=80, resamples=3, power_resamples=2, quiet=True)}
    assert lines["none"].alarms == 0
    assert lines["brightness +10 %"].alarms == 1
    assert lines["5 % of the images from another camera"].measures.keys() <= {"size", "pixels", "aspect", "embedding"}
    served = table(files[:60], images=80, resamples=2, power_resamples=1, served=True, quiet=True)
    assert [line.change for line in served] == [change for change in lines if "class" not in change]
    assert not any("classes" in line.measures for line in served)


def test_images_that_both_datasets_have_do_not_hide_that_the_new_ones_differ(small_dataset, tmp_path):
    """A dataset grows each month: the old images are left out, if enough are new for a verdict."""

    def darker(number, example):
        if number < 150:
            return example
        picture = Image.open(io.BytesIO(example["image/encoded"])).point(lambda level: level * 3 // 4)
        data = encoded(picture)
        return {**example, "image/encoded": data, "image/format": b"jpeg", "image/blake3": checksum_of(data).encode()}

    def month(name, new):
        counts = {"train": [100, 50, *([new] if new else [])]}
        return small_dataset(tmp_path / name, counts=counts, image_format="jpeg", change=darker)

    first, few, second = month("first", 0), month("few", 19), month("second", 20)
    for current, known, images in ((first, 0, 150), (few, 0, 169), (second, 150, 20)):
        found = compare_datasets(first, current)
        assert (found.current_known, found.current_images, found.reference_images) == (known, images, 150)
        assert ("brightness" in {one.measure for one in found.drifted}) == (current == second)
    assert found.known == "Left out of second/dataset: 150 images that first/dataset has, too"
    assert found.known in found._repr_html_()
    # A folder that grows: some of its files have other names than the images of the dataset.
    folder = tmp_path / "folder"
    for number, data in enumerate(images_of(second)):
        file = folder / (f"{number:04d}" if number % 2 else f"more/{number}.jpg")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    served = compare_datasets(first, folder)
    assert (served.current_known, served.current_images) == (150, 20)
    assert served.known == "Left out of folder: 150 images that dataset has, too"
    assert "brightness" in {one.measure for one in served.drifted}
    # In a sample, the rest of the dataset is the whole.
    checked = check_drift(ImageDataset.open(second), DriftConfig(str(first)), ImageDataset.open(first).manifest.digest)
    assert checked.comparison.findings == found.findings
    assert (checked.current.total, checked.current.known) == (20, 150)


def images_of(dataset):
    """The stored images of a dataset."""
    opened = ImageDataset.open(dataset)
    for split in opened.splits:
        for _, payload in opened.records(split):
            yield find_feature(payload, "image/encoded")[0]


@pytest.mark.parametrize(
    ("places", "names"),
    [
        (("runs/examples/2", "runs/examples/27"), ["examples/2", "examples/27"]),
        (("ds/2026/10", "ds/2026/11"), ["ds/2026/10", "ds/2026/11"]),
        (("/a/october", "/a/november"), ["october", "november"]),
        (("/2", "/3"), ["2", "3"]),
        (("/a/ds", "/b/ds"), ["a/ds", "b/ds"]),
    ],
)
def test_names_of_sides_are_distinct_and_no_mere_numbers(places, names):
    assert _names(*places) == names


def test_a_sample_of_a_dataset_and_one_of_a_folder_agree(small_dataset, tmp_path):
    root = ImageDataset.open(small_dataset(tmp_path, counts={"train": [9, 4], "eval": [6]}, image_format="jpeg"))
    every = sample_dataset(root)
    assert len(every) == every.total == 19
    assert sample_dataset(root, size=5).keys == every.keys[:5]
    train, evaluation = sample_dataset(root, ["train"]), sample_dataset(root, ["eval"])
    assert sorted([*train.keys, *evaluation.keys]) == sorted(every.keys)
    assert all(0 < part <= 1 for areas in every.areas for part in areas.values())
    with pytest.raises(DatasetError, match="no split 'test'"):
        sample_dataset(root, ["test"])
    folder = tmp_path / "folder"
    reader = {key: data for split in root.splits for key, data in root.records(split)}
    for key in train.keys:
        file = folder / f"{key}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(find_feature(reader[key], "image/encoded")[0])
    (folder / "broken.jpg").write_bytes(b"no image")
    (folder / "labels.csv").write_text("image,label\n")
    (folder / "LICENSE").write_text("free")
    # Shards may have names without an ending.
    shutil.copytree(root.root, folder / "october")
    (folder / "october/Split-train/data").write_bytes(b"shard")
    files = sample_folder(str(folder))
    assert (files.total, files.unreadable) == (14, ["broken.jpg"])
    order = np.argsort(files.keys)
    assert np.array_equal(files.numbers[order], train.numbers[np.argsort(train.keys)])
    assert compare(train, files).drifted == ()
    assert sample_folder(str(folder), options=ImagesConfig(max_pixels=1)).keys == []
    # A folder is read with the limit of the dataset that it is compared with.
    limit = ImageDataset(root.root, dataclasses.replace(root.manifest, recipe={"images": {"max_pixels": 1}}))
    assert len(sample_of(folder, 20, reference=limit).unreadable) == 14


@pytest.mark.parametrize(
    ("images", "stored"),
    [
        ({"unsupported_formats": "jpeg"}, "jpeg"),
        ({"unsupported_formats": "png", "resize": "longest_side", "size": 48, "verify": "full"}, "png"),
        ({"unsupported_formats": "png", "encoding": "tensor", "resize": "stretch", "size": [32, 48]}, "tensor"),
    ],
)
def test_files_of_a_folder_are_measured_as_the_ingest_of_the_reference_stores_them(images, stored, tmp_path):
    """Each WebP and TIFF file counted as unreadable; and resized images were compared with those of the full size."""
    for number in range(60):
        file = tmp_path / ("before" if number < 30 else "after") / f"{number}.{'webp' if number % 2 else 'tiff'}"
        file.parent.mkdir(exist_ok=True)
        scene(number).save(file, quality=95)
    reference = tmp_path / "reference"
    run(
        {
            "task": "classification",
            "input": {"images": str(tmp_path / "before"), "labels": {"format": "none"}},
            "images": images,
        },
        reference,
    )
    check = check_paths(DriftConfig(str(reference)), tmp_path / "after")
    assert (len(check.current), len(check.reference)) == (30, 30)
    assert check.comparison.unreadable == check.comparison.drifted == ()
    assert set(check.current.kinds["format"]) == set(check.reference.kinds["format"]) == {stored}
    assert file_tiles()(check.current, 0, "").count("data:image/jpeg") == 1
    # Files that the dataset was made of are known, although it stores other bytes.
    assert compare_datasets(reference, tmp_path / "before").current_known == 0
    assert sample_folder(str(tmp_path / "before"), known_to=ImageDataset.open(reference)).known == 30


@pytest.mark.slow
def test_sharpness_is_that_of_the_full_size():
    large = scene(1, (900, 700))
    blurred = large.filter(ImageFilter.GaussianBlur(1))
    sharp, soft = (measure_all([encoded(picture)], CHANGES["none"]).numbers[0, 2] for picture in (large, blurred))
    assert soft < 0.6 * sharp
