"""`shardwright predict` with exported models whose answers are known: the colors of the image."""

import csv
import dataclasses
import errno
import json
import shutil
import struct
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from object_stores import running_stores
from PIL import Image
from recipes import train_recipe
from transforming import transform_shards

from shardwright.components.image_trainer.spec import TextColumn, TrainSpec
from shardwright.components.image_transform.text import Text
from shardwright.components.image_transform.transform_recipe import ingest_image_options
from shardwright.components.predictor import sources
from shardwright.components.predictor.exported_model import model_folder, open_model
from shardwright.components.predictor.predict_images import PredictOptions, _opened, predict, write_part
from shardwright.config import parse_config
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError, StorageError, UsageError
from shardwright.evaluation.thresholds import Thresholds
from shardwright.ingest import ingest
from shardwright.lineage.blessing import Blessing, model_digest, write_blessing
from shardwright.masks import rle
from shardwright.pipelines.cli import main
from shardwright.staging.staged import clear
from shardwright.storage import read_bytes
from shardwright.tfrecords.records import decode_example, read_records

pytestmark = pytest.mark.slow

RECIPE = train_recipe("unet", 8, 2, 4, 1e-3, 1, "eval")
SPEC = TrainSpec(RECIPE, "d", "d", "segmentation", ("Fish", "Sugar"), 12, 16, "stretch", None, None, "run", "export")


def save(folder, model, spec, chosen):
    from shardwright.components.image_trainer.export.export_model import save_model
    from shardwright.components.image_trainer.export.signatures import FlippedMean

    save_model(FlippedMean(model, spec), dataclasses.replace(spec, export=str(folder)), chosen)
    return folder


@pytest.fixture(scope="module", autouse=True)
def _opened_once():
    """A model that has not changed is opened once by this process: that takes longer than predicting a few images."""
    opened = {}

    def open_once(place, **options):
        folder = model_folder(place)
        key = folder, (folder / "saved_model.pb").stat().st_mtime_ns
        if key not in opened:
            opened[key] = open_model(place, **options)
        return opened[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shardwright.components.predictor.other_model.open_model", open_once)
        yield
    opened.clear()


@pytest.fixture(scope="module")
def segmenter(tmp_path_factory):
    """Red is Fish, green from 0.75 on and in regions of at least 5 pixels is Sugar."""
    place = tmp_path_factory.mktemp("model") / "1"
    return save(place, lambda images, training: images[..., :2], SPEC, Thresholds((0.5, 0.75), (0, 5)))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Images of several sizes and kinds; key -> pixels."""
    root = tmp_path_factory.mktemp("pictures")
    made = {}
    for number, (height, width) in enumerate([(12, 16), (24, 32), (7, 40), (12, 16)]):
        image = np.zeros((height, width, 3), np.uint8)
        image[: height // 2, : width // 4, 0] = 255
        image[height // 2 :, width // 2 :, 1] = 230
        key = f"{['b', 'a', 'c/d', 'a,x'][number]}.png"
        (root / key).parent.mkdir(exist_ok=True)
        Image.fromarray(image).save(root / key)
        made[key] = image
    return root, made


def rows_of(file):
    with file.open(newline="", encoding="utf-8") as table:
        return list(csv.reader(table))


def test_masks_are_written_in_the_images_own_size_in_the_order_of_the_keys(segmenter, pictures, tmp_path):
    root, made = pictures
    found = predict(str(segmenter), str(root), str(tmp_path / "out.csv"), quiet=True)
    assert (found.images, found.rows, found.failures, found.dialect) == (4, 8, (), "clouds")
    header, *rows = rows_of(tmp_path / "out.csv")
    assert header == ["Image_Label", "EncodedPixels"]
    assert [row[0] for row in rows] == [f"{key}_{name}" for key in sorted(made) for name in SPEC.classes]
    codes = dict(rows)
    for key, image in made.items():
        height, width = image.shape[:2]
        for c, name in enumerate(SPEC.classes):
            drawn = rle.draw(rle.parse_pairs(codes[f"{key}_{name}"], height=height, width=width), height, width)
            wanted = image[..., c] > 127
            assert (drawn != wanted).mean() < 0.06, (key, name)
            if (height, width) == (12, 16):
                np.testing.assert_array_equal(drawn, wanted)


def test_the_batch_size_changes_no_byte(segmenter, pictures, tmp_path):
    root, _ = pictures
    for size in (1, 3):
        predict(str(segmenter), str(root), str(tmp_path / f"{size}.csv"), PredictOptions(batch_size=size), quiet=True)
    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "3.csv").read_bytes()


def tables(segmenter, images, folder, monkeypatch, *options):
    """The table of this process, then those of one and of three workers of Beam, in parts of three images."""
    monkeypatch.setattr(sources, "_IN_A_PART", 3)
    call = ["predict", str(segmenter), str(images), *options]
    beam = ["--beam=--direct_running_mode=multi_threading", f"--staging={folder}/staging"]
    made = []
    for name, further in {"here": [], "1": beam, "3": [*beam, "--beam=--direct_num_workers=3"]}.items():
        assert main([*call, "--out", str(folder / name), *further]) == 0
        made.append(folder / name)
    # The parts are gone.
    assert not [path for path in (folder / "staging").rglob("*") if path.is_file()]
    return [path.read_bytes() if path.is_file() else tree(path) for path in made]


def tree(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_workers_of_beam_change_no_byte(segmenter, pictures, tmp_path, monkeypatch):
    here, one, three = tables(segmenter, pictures[0], tmp_path, monkeypatch)
    assert one == three == here
    assert len(here.splitlines()) == 9


def test_clean_knows_the_parts_of_a_killed_prediction_and_leaves_those_of_a_live_one(segmenter, pictures, tmp_path):
    live, left = tmp_path / "staging", tmp_path / "left"

    def run_parts(work, parts):
        for number in range(parts):
            write_part(number, work)
        # A kill at this moment leaves the files without the lock.
        shutil.copytree(live, left)
        with pytest.raises(UsageError):
            clear(str(live))

    predict(str(segmenter), str(pictures[0]), str(tmp_path / "out.csv"), run_parts=run_parts, staging_root=str(live))
    assert (tmp_path / "out.csv").exists()
    assert not list(live.iterdir())
    (folder,) = left.iterdir()
    assert clear(str(left)) == [str(folder)]
    assert not folder.exists()


def test_tfrecord_files_have_the_masks_of_the_table(segmenter, pictures, tmp_path, monkeypatch):
    here, one, three = tables(segmenter, pictures[0], tmp_path, monkeypatch, "--format", "tfrecord")
    assert one == three == here
    assert sorted(here) == [*(f"predictions-0000{n}-of-00002.tfrecord" for n in (0, 1)), "predictions.json"]
    predict(str(segmenter), str(pictures[0]), str(tmp_path / "out.csv"), quiet=True)
    codes = dict(rows_of(tmp_path / "out.csv")[1:])
    found = []
    for name in sorted(here)[:2]:
        for _, record in read_records(tmp_path / "here" / name):
            example = decode_example(record)
            key = example["image/key"][0].decode()
            found.append(key)
            assert (int(example["image/height"][0]), int(example["image/width"][0])) == pictures[1][key].shape[:2]
            for label in SPEC.classes:
                runs = rle.from_flat(example[f"prediction/{label}/rle"])
                assert rle.to_pairs(runs) == codes[f"{key}_{label}"]
                assert rle.area(runs) == example[f"prediction/{label}/area"][0]
    assert found == sorted(pictures[1])
    assert json.loads(here["predictions.json"])["images"] == 4
    assert (
        main(["predict", str(segmenter), str(pictures[0]), "--out", str(tmp_path / "here"), "--format=tfrecord"]) == 2
    )


def test_a_dataset_has_the_table_of_its_images(segmenter, small_dataset, tmp_path, monkeypatch, capsys):
    counts = {"train": [4, 3], "test": [2]}
    root = small_dataset(tmp_path / "made", counts=counts, key_of=lambda split, number: f"{split}-{number}.png")
    dataset, folder = ImageDataset.open(root), tmp_path / "in"
    folder.mkdir()
    keys = [key for split in ("test", "train") for key in dataset.keys(split)]
    for key in keys:
        (folder / key).write_bytes(dataset.example(key).encoded)
    here, one, three = tables(segmenter, root, tmp_path, monkeypatch)
    assert one == three == here
    assert [row[0] for row in rows_of(tmp_path / "here")[1:]] == [f"{k}_{name}" for k in keys for name in SPEC.classes]
    predict(str(segmenter), str(folder), str(tmp_path / "out.csv"), quiet=True)
    assert sorted(here.splitlines()) == sorted((tmp_path / "out.csv").read_bytes().splitlines())
    predict(str(segmenter), str(root), str(tmp_path / "t.csv"), PredictOptions(split="test"), quiet=True)
    assert rows_of(tmp_path / "t.csv") == rows_of(tmp_path / "here")[:5]
    assert main(["predict", str(segmenter), str(folder), "--split", "test", "--out", str(tmp_path / "x.csv")]) == 2
    assert "is not a dataset" in capsys.readouterr().err


def test_images_and_tables_on_a_bucket(segmenter, pictures, tmp_path):
    predict(str(segmenter), str(pictures[0]), str(tmp_path / "out.csv"), quiet=True)
    with running_stores() as stores:
        place = f"{stores.bucket('gs')}/photos"
        stores.copy_of(pictures[0], place)
        predict(str(segmenter), place, f"{place}-out/table.csv", quiet=True)
        assert read_bytes(f"{place}-out/table.csv") == (tmp_path / "out.csv").read_bytes()
        # The same by Beam's workers, whose parts are on the bucket, too.
        beam = ["--beam=--direct_running_mode=multi_threading", "--beam=--direct_num_workers=2"]
        call = ["predict", str(segmenter), place, "--out", f"{place}-out/by-beam.csv", f"--staging={place}-staging"]
        assert main([*call, *beam]) == 0
        assert read_bytes(f"{place}-out/by-beam.csv") == (tmp_path / "out.csv").read_bytes()
        assert not stores.tree(f"{place}-staging")
        predict(str(segmenter), place, f"{place}-out/records", PredictOptions(form="tfrecord"), quiet=True)
        assert json.loads(read_bytes(f"{place}-out/records/predictions.json"))["images"] == 4


@pytest.mark.parametrize("dialect", ["clouds", "severstal", "coco"])
def test_what_is_written_can_be_ingested(segmenter, pictures, tmp_path, dialect):
    root, _ = pictures
    predict(str(segmenter), str(root), str(tmp_path / "out.csv"), PredictOptions(dialect=dialect), quiet=True)
    classes = ["Fish", "Sugar"] if dialect == "clouds" else {"Fish": 1, "Sugar": 2}
    raw = {
        "input": {"images": str(root), "classes": classes, "labels": {"path": str(tmp_path / "out.csv")}},
        "split": {"ratios": {"train": 1.0}},
        "evaluator": {"split": "train"},
    }
    ingest(parse_config(raw, base="/"), str(tmp_path / "ds"), workers=1)
    predict(str(segmenter), str(root), str(tmp_path / "again.csv"), quiet=True)
    codes = dict(rows_of(tmp_path / "again.csv")[1:])
    stored = [decode_example(record) for _, record in ImageDataset.open(tmp_path / "ds").records("train")]
    assert len(stored) == 4
    for example in stored:
        key = example["image/key"][0].decode()
        for name in SPEC.classes:
            runs = rle.from_flat(example[f"image/segmentation/{name}/rle"])
            assert rle.to_pairs(runs) == codes[f"{key}_{name}"]


def damaged_png(file):
    """A sound header and sound checksums over pixels that cannot be unpacked."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 9, 9, 8, 2, 0, 0, 0)
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"nothing") + chunk(b"IEND", b""))


def test_hostile_files_are_named_and_the_others_written(segmenter, small_dataset, tmp_path, capsys):
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("good", "last"):
        Image.new("RGB", (16, 12), "red").save(folder / f"{name}.png")
    damaged_png(folder / "hollow.png")
    (folder / "=cmd.jpg").write_bytes(b"<html>")
    (folder / "empty.jpg").write_bytes(b"")
    (folder / "labels.csv").write_text("image,label\n")
    shutil.copytree(small_dataset(tmp_path / "made", task="classification"), folder / "october")
    code = main(["predict", str(segmenter), str(folder), "--out", str(tmp_path / "out.csv"), "--json"])
    result = json.loads(capsys.readouterr().out)
    assert code == 1
    assert (result["images"], result["rows"]) == (2, 4)
    assert [(f["key"], f["code"]) for f in result["failures"]] == [
        ("=cmd.jpg", "not_an_image"),
        ("empty.jpg", "empty_file"),
        ("hollow.png", "undecodable"),
    ]
    assert ["datasets or runs, and left out: october" in note for note in result["notes"]] == [True, False]
    assert result["notes"][1] == "images: other files are ignored: .csv 1"
    assert [row[0] for row in rows_of(tmp_path / "out.csv")[1:]] == [
        f"{image}.png_{name}" for image in ("good", "last") for name in SPEC.classes
    ]


def test_nothing_is_written_where_nothing_could_be_predicted(segmenter, tmp_path, capsys):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jpg").write_bytes(b"")
    (tmp_path / "out.csv").write_text("as it was")
    assert main(["predict", str(segmenter), str(folder), "--out", str(tmp_path / "out.csv"), "--force"]) == 1
    assert "none of 1 image could be predicted: a.jpg: the file has no bytes" in capsys.readouterr().err
    assert (tmp_path / "out.csv").read_text() == "as it was"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "out.csv"]


def test_a_full_disk_of_the_output_is_named(segmenter, pictures, tmp_path, monkeypatch):
    def full(*given):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(f"{predict.__module__}._write_table", full)
    message = r"^--out \S+out\.csv: cannot be written \(full\)\. Make room, or give another path\.$"
    with pytest.raises(StorageError, match=message):
        predict(str(segmenter), str(pictures[0]), str(tmp_path / "out.csv"), quiet=True)


def test_the_push_folder_means_its_blessed_model_and_a_sample_gives_the_layout(
    segmenter, pictures, tmp_path, capsys, monkeypatch
):
    write_blessing(segmenter.parent, Blessing(segmenter.name, model_digest(segmenter)))
    (tmp_path / "sample.csv").write_text("ImageId,ClassId,EncodedPixels\nx,1,\n")
    arguments = ["predict", str(segmenter.parent), str(pictures[0]), "--out", str(tmp_path / "out.csv")]
    opened, open_one = [], sys.modules[predict.__module__].open_any_model

    def counted(place, *stated, **options):
        opened.append(place)
        return open_one(place, *stated, **options)

    monkeypatch.setattr(f"{predict.__module__}.open_any_model", counted)
    monkeypatch.setattr("shardwright.components.predictor.sources._IN_A_PART", 2)
    assert main([*arguments, "--like", str(tmp_path / "sample.csv")]) == 0
    # For both parts of the folder: to open a model takes seconds.
    assert opened == [str(segmenter.parent)]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "pushed").symlink_to(segmenter.parent)
    assert model_folder(str(tmp_path / "run")).samefile(segmenter)
    # No model is left for the exit of the process, where TensorFlow prints that it cannot delete its functions.
    assert _opened.cache_info().currsize == 0
    assert "4 images, 8 rows in the layout of severstal" in capsys.readouterr().out
    assert rows_of(tmp_path / "out.csv")[1][:2] == ["a,x.png", "1"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "nowhere"}, "nowhere: contains neither saved_model.pb nor BLESSED.json"),
        ({"images": "nowhere"}, "shardwright: /"),
        ({"images": "bad.csv"}, "bad.csv is a file. Give its folder, or a glob."),
        ({"out": "."}, "is a folder. Give the name of a file"),
        ({"out": "no/such/file.csv"}, "there is no folder"),
        ({"more": ["--format", "tfrecord", "--dialect", "coco"]}, "TFRecord files have masks as runs"),
        ({"more": ["--split", "test"]}, "is not a dataset"),
        ({"more": ["--beam", "runner=X"]}, "--beam runner=X: is not an option of Beam"),
        ({"more": ["--dialect", "tgs"]}, "'tgs' has no column of classes"),
        ({"more": ["--batch-size", "0"]}, "--batch-size: 0 is too small"),
        ({"more": ["--like", "bad.csv"]}, "--like bad.csv: its header 'a,b' is of no known layout"),
    ],
)
def test_wrong_calls_end_with_a_message(segmenter, pictures, tmp_path, capsys, monkeypatch, change, message):
    monkeypatch.chdir(tmp_path)
    Path("bad.csv").write_text("a,b\n")
    call = {"model": str(segmenter), "images": str(pictures[0]), "out": "out.csv", "more": [], **change}
    assert main(["predict", call["model"], call["images"], "--out", call["out"], *call["more"]]) == 2
    assert message in capsys.readouterr().err


def test_labels_come_with_their_probabilities(pictures, tmp_path):
    import tensorflow as tf

    def model(images, training):
        return tf.nn.softmax(10 * tf.reduce_mean(images, axis=(1, 2)))

    spec = dataclasses.replace(SPEC, task="classification", classes=("red", "green", "blue"))
    place = save(tmp_path / "model", model, spec, Thresholds.fixed(3))
    found = predict(str(place), str(pictures[0]), str(tmp_path / "out.csv"), quiet=True)
    header, *rows = rows_of(tmp_path / "out.csv")
    assert header == ["image", "label", "red", "green", "blue"]
    assert {row[1] for row in rows} == {"green"}
    assert all(sum(map(float, row[2:])) == pytest.approx(1, abs=1e-5) for row in rows)
    assert found.dialect == ""


def test_several_classes_an_image_are_those_above_their_thresholds(pictures, tmp_path):
    import tensorflow as tf

    spec = dataclasses.replace(SPEC, task="classification", multi=True, classes=("red", "green", "blue"))
    place = save(
        tmp_path / "model",
        lambda images, training: tf.reduce_max(images, axis=(1, 2)),
        spec,
        Thresholds((0.5, 0.95, 0.0), (0, 0, 0)),
    )
    predict(str(place), str(pictures[0]), str(tmp_path / "out.csv"), quiet=True)
    header, *rows = rows_of(tmp_path / "out.csv")
    assert header[1] == "labels"
    assert {row[1] for row in rows} == {"red blue"}


def test_images_of_a_dataset_are_answered_as_they_are_stored(tmp_path):
    """The table of the files, of a dataset with the ingest of the training, of one that stores files, of transforms."""
    import tensorflow as tf

    noise = np.random.default_rng(0)
    (tmp_path / "in").mkdir()
    rows = ["image,label,caption", "0.png,a,sea", "1.png,b,sky sea", "2.png,a,sky"]
    (tmp_path / "labels.csv").write_text("\n".join(rows))
    for number in range(3):
        pixels = noise.integers(0, 256, (12, 16, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / "in" / f"{number}.png")
    labels = {"path": str(tmp_path / "labels.csv"), "features": ["caption"]}
    raw = {"task": "classification", "input": {"images": str(tmp_path / "in"), "labels": labels}}
    raw |= {"split": {"ratios": {"train": 1.0}}, "evaluator": {"split": "train"}}
    changed = {"encoding": "jpeg", "quality": 30}
    for name, images in {"changed": changed, "plain": {}}.items():
        ingest(parse_config({**raw, "images": images}, base="/"), str(tmp_path / name), workers=1)
    for encoding in ("raw", "tensor", "png"):
        transform = {"size": [12, 16], "encoding": encoding, "text": {"caption": {"vocabulary": 2}}}
        config = parse_config({**raw, "transform": transform}, base="/")
        texts = {"image/meta/caption": Text(config.transform.text["caption"], str(tmp_path / "words"))}
        (tmp_path / "words").write_text("sea\nsky\n")
        transform_shards(config, tmp_path / "changed", tmp_path / encoding, texts)
    (tmp_path / "vocabulary_image_meta_caption").write_text("sea\nsky\n")
    # A limit of pixels changes none.
    limited = {**changed, "max_pixels": 300_000_000}
    spec = dataclasses.replace(SPEC, task="classification", classes=("a", "b"), ingested=limited)
    words = (TextColumn("caption", "image/meta/caption", 2, "c" * 64),)

    def of_pixels(images, training):
        return images[..., :2]

    def of_means(images, training):
        return tf.reduce_mean(tf.square(images), axis=(1, 2))[:, :2]

    def of_both(inputs, training):
        return of_means(inputs["image"], training) + inputs["text"]

    models = {
        "masks": (of_pixels, dataclasses.replace(SPEC, ingested=changed), Thresholds((0.4, 0.6), (0, 3))),
        "labels": (of_means, spec, Thresholds.fixed(2)),
        "several": (of_means, dataclasses.replace(spec, multi=True), Thresholds((0.3, 0.3), (0, 0))),
        "texts": (of_both, dataclasses.replace(spec, texts=words, vocabularies=str(tmp_path)), Thresholds.fixed(2)),
    }
    for kind, (model, spec, chosen) in models.items():
        place = save(tmp_path / "models" / kind, model, spec, chosen)
        tables = {}
        for images in ("in", "changed", "plain", "raw/out", "tensor/out", "png/out"):
            # Datasets have their texts.
            options = PredictOptions(texts=str(tmp_path / "labels.csv") if spec.texts and images == "in" else None)
            predict(str(place), str(tmp_path / images), str(tmp_path / "out.csv"), options, quiet=True)
            tables[images] = sorted(rows_of(tmp_path / "out.csv"))
        assert len(tables["in"]) > 3
        assert [name for name, table in tables.items() if table != tables["in"]] == [], kind


def test_the_limit_of_pixels_is_that_of_the_training_for_files_and_none_for_datasets(pictures, small_dataset, tmp_path):
    model = SimpleNamespace(ingested=ingest_image_options({"images": {"max_pixels": 100}}), texts=())
    files = sources.find_source(str(pictures[0]))
    reasons = {image.failure.reason.partition("; ")[2] for image in files.read(0, model)}
    assert reasons == {"images.max_pixels is 100"}
    made = {"task": "classification", "classes": ("cat", "dog"), "counts": {"train": [3]}}
    folder = small_dataset(tmp_path, **made)
    stored = sources.find_source(str(folder))
    assert [image.failure for image in stored.read(0, model)] == [None] * 3
    model.ingested = {"max_pixels": 10_000}
    assert [image.failure for image in files.read(0, model)] == [None] * 4
    # Another dataset of the same names and sizes takes its place.
    other = small_dataset(tmp_path / "b", change=lambda i, one: {**one, "image/class/label": 1 - i % 2}, **made)
    folder.rename(tmp_path / "old")
    other.rename(folder)
    with pytest.raises(DatasetError, match="differs from the manifest: damaged, or changed since"):
        list(stored.read(0, model))
