"""Input that was made to hang a run or to use up its memory: refused in a sentence, before it is read."""

import json
import os

import pytest
from guarded import guarded
from ingesting import changed, ledger, run, tree
from PIL import Image

from shardwright.dataset.sharding import shard_count
from shardwright.errors import ConfigError, UsageError
from shardwright.formats.tables import Table
from shardwright.ingest import example, split_lists
from shardwright.masks.polygons import PolygonError, rasterize_centers, read_polygon
from shardwright.pipelines.cli import main
from shardwright.storage import limits, open_file, open_table, read_bytes, read_each
from shardwright.storage.mirror import working_folder

GIB = 1 << 30


@pytest.fixture(autouse=True)
def _guarded():
    with guarded():
        yield


def sparse(path, size, start=b""):
    """A file of any size that takes no room on the disk."""
    path.write_bytes(start)
    os.truncate(path, size)
    return path


@pytest.fixture
def images(tmp_path):
    """Two images in class folders, and the configuration that reads them."""
    for name in ("cat", "dog"):
        (tmp_path / "images" / name).mkdir(parents=True)
        Image.new("RGB", (8, 6)).save(tmp_path / "images" / name / "0.png")
    raw = {"task": "classification", "input": {"images": str(tmp_path / "images")}}
    return raw | {"split": {"ratios": {"train": 1.0}}, "evaluator": {"split": "train"}}


@pytest.mark.parametrize("verify", ["header", "full"])
@pytest.mark.parametrize("name", ["big.png", "big.tiff", "big.dat"])
def test_an_image_of_ten_gigabytes_is_rejected_unread(images, tmp_path, verify, name):
    start = (tmp_path / "images" / "cat" / "0.png").read_bytes()
    sparse(tmp_path / "images" / "cat" / name, 10 * GIB, start)
    raw = {**images, "images": {"verify": verify, "unsupported_formats": "png"}}
    run(raw, tmp_path / "out", workers=1)
    rows = ledger(tmp_path / "out")
    assert [rows[key].status for key in ("cat/0.png", "dog/0.png")] == ["written", "written"]
    assert rows[f"cat/{name}"].code == "too_many_bytes"
    assert "10,737,418,240 bytes, images.max_bytes is 1,073,741,824" in rows[f"cat/{name}"].reason


def test_the_limit_of_images_is_an_option(images, tmp_path):
    run({**images, "images": {"max_bytes": 1 << 30}}, tmp_path / "same")
    run(images, tmp_path / "default")
    assert tree(tmp_path / "same") == tree(tmp_path / "default")
    with pytest.raises(ConfigError, match=r"images.max_bytes"):
        run({**images, "images": {"max_bytes": 4 * GIB}}, tmp_path / "no")
    size = os.path.getsize(tmp_path / "images" / "cat" / "0.png")
    with pytest.raises(UsageError, match=r"input.images: each of the 2 files has more bytes than images.max_bytes"):
        run({**images, "images": {"max_bytes": size - 1}}, tmp_path / "none")


def test_pipes_and_devices_are_not_opened(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (str(pipe), "/dev/zero", "/dev/tty"):
        with pytest.raises(OSError, match=r"not a regular file|No such device"):
            open_file(path)
        with pytest.raises(OSError, match=r"not a regular file|No such device"):
            read_bytes(path)
        assert list(read_each(str(tmp_path), [path], str, lambda _: 1)) == [(path, None)]
    with pytest.raises(IsADirectoryError):
        open_file(str(tmp_path))


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl"])
def test_labels_from_a_pipe_or_a_device(images, tmp_path, kind):
    pipe = tmp_path / f"labels.{kind}"
    os.mkfifo(pipe)
    for path in (str(pipe), "/dev/zero"):
        with pytest.raises(UsageError, match="not a regular file"):
            run(changed(images, labels={"path": path}), tmp_path / "out")


@pytest.mark.parametrize("call", [[], ["--record", "0"], ["--json"]])
def test_inspect_of_a_pipe(tmp_path, call, capsys):
    os.mkfifo(tmp_path / "pipe")
    assert main(["inspect", str(tmp_path / "pipe"), *call]) == 2
    assert "not a regular file" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["labels.csv", "labels.json", "labels.jsonl"])
def test_labels_of_twenty_gigabytes(images, tmp_path, name):
    path = str(sparse(tmp_path / name, 20 * GIB))
    with pytest.raises(UsageError, match="21,474,836,480 bytes, more than"):
        run(changed(images, labels={"path": path}), tmp_path / "out")


def test_lists_and_classes_are_limited(images, tmp_path, monkeypatch):
    path = str(sparse(tmp_path / "list.txt", GIB))
    with pytest.raises(ConfigError, match=r"input.classes: .*1,073,741,824 bytes"):
        run(changed(images, classes=path), tmp_path / "out")
    monkeypatch.setattr(split_lists, "MOST_LIST_BYTES", 10)
    path = str(sparse(tmp_path / "list.txt", 11))
    with pytest.raises(UsageError, match=r"split.from_lists.train: .*11 bytes"):
        run({**images, "split": {"method": "predefined", "from_lists": {"train": path}}}, tmp_path / "out")


def test_a_part_of_a_file_is_limited_too(tmp_path):
    path = str(sparse(tmp_path / "shard", 20 * GIB))
    assert read_bytes(f"{path}\x00{GIB}:{GIB + 5}") == bytes(5)
    with pytest.raises(OSError, match="4,294,967,296 bytes"):
        read_bytes(f"{path}\x000:{4 * GIB}")
    with pytest.raises(OSError, match="21,474,836,480 bytes"):
        read_bytes(path)
    assert list(read_each(str(tmp_path), [path], str, lambda _: 1)) == [(path, None)]


LONG = "x" * 5000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"image,{LONG}\na,b\n", "line 1 is longer than 4,000 bytes"),
        (f"image,label\na,b\nc,{LONG}\n", "line 3 is longer than 4,000 bytes"),
        ('image,label\na,"b\n' + "c,d\n" * 2000, "line 2 is not CSV"),
        ("\0" * 5000, "line 1 is longer than 4,000 bytes"),
        ("\n" * 5000, "the file is empty"),
    ],
)
def test_fields_and_lines_without_an_end(tmp_path, monkeypatch, text, problem):
    monkeypatch.setattr(limits, "LONGEST_LINE", 4000)
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(UsageError, match=problem):
        list(Table.open(str(tmp_path / "labels.csv")).rows())


@pytest.mark.parametrize(
    "text", ["", "a", "a\r", "a\rb", "a\r\nb\r\n", "a\r\r\n\rb\n", "\ufeffa\n\ufeffb\x85c\u2028\x0b\n", "\r\r"]
)
def test_lines_end_as_those_of_a_text_file(tmp_path, text):
    (tmp_path / "labels.csv").write_text(text, encoding="utf-8", newline="")
    with open_table(str(tmp_path / "labels.csv")) as lines, open_table(str(tmp_path / "labels.csv")) as file:
        assert list(limits.bounded_lines(file)) == list(lines)


@pytest.mark.parametrize("most", range(5, 30))
def test_a_table_with_carriage_returns_alone_may_be_longer_than_a_line(tmp_path, monkeypatch, most):
    """Up to the next line feed it counted as one line, so one of more than 64 MB was refused."""
    monkeypatch.setattr(limits, "LONGEST_LINE", most)
    text = "\ufeffi\rab\rcd\r\nef\r\r\né\r\r\rij\rkl\r\n" + "mn\r" * 9 + "o"
    (tmp_path / "labels.csv").write_text(text, encoding="utf-8", newline="")
    with open_table(str(tmp_path / "labels.csv")) as lines, open_table(str(tmp_path / "labels.csv")) as file:
        assert list(limits.bounded_lines(file)) == list(lines)


def test_a_header_with_a_long_field_is_read(tmp_path):
    (tmp_path / "labels.csv").write_text(f"image,{'x' * 200_000}\na,b\n")
    assert [row.fields for row in Table.open(str(tmp_path / "labels.csv")).rows()] == [["a", "b"]]


@pytest.fixture
def coco(tmp_path):
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (40, 30)).save(tmp_path / "photos" / "a.png")
    Image.new("RGB", (40, 30)).save(tmp_path / "photos" / "b.png")
    annotations = [
        {"id": i, "image_id": i % 2, "category_id": i % 3, "segmentation": [[i, 0, i + 9.5, 1, i + 3, 20]]}
        for i in range(21)
    ]
    document = {
        "images": [{"id": i, "file_name": f"{name}.png"} for i, name in enumerate("ab")],
        "annotations": annotations,
        "categories": [{"id": i, "name": f"class{i}"} for i in range(3)],
    }
    (tmp_path / "coco.json").write_text(json.dumps(document))
    raw = {"input": {"images": str(tmp_path / "photos"), "labels": {"path": str(tmp_path / "coco.json")}}}
    return raw | {"split": {"ratios": {"train": 1.0}}, "evaluator": {"split": "train"}}


def test_masks_of_one_image_are_limited(coco, tmp_path, monkeypatch):
    monkeypatch.setattr(example, "_MOST_MASKS", 10)
    run(coco, tmp_path / "out", workers=1)
    rows = ledger(tmp_path / "out")
    assert (rows["a.png"].code, rows["b.png"].status) == ("too_many_masks", "written")
    assert rows["a.png"].reason == "the image has 11 masks; at most 10 are joined"


def test_masks_that_are_joined_meanwhile_are_the_same(coco, tmp_path, monkeypatch):
    run(coco, tmp_path / "at once", workers=1)
    monkeypatch.setattr(example, "_JOINED_AT", 0)
    run(coco, tmp_path / "meanwhile", workers=1)
    assert tree(tmp_path / "at once") == tree(tmp_path / "meanwhile")


def test_a_polygon_that_goes_to_and_fro(tmp_path):
    corners = read_polygon([number for i in range(10_000) for number in (0, i, 20_000, i)])
    with pytest.raises(PolygonError, match="crosses 400,000,000 columns"):
        rasterize_centers(corners, 10_000, 20_000)


def test_a_million_shards_for_two_images(images, tmp_path, capsys):
    with pytest.raises(ConfigError, match=r"shards.count: 1,000,000 shards for 2 records are mostly empty"):
        run({**images, "shards": {"count": 1_000_000}}, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    run(images, tmp_path / "few")
    assert main(["reshard", str(tmp_path / "few"), "--out", str(tmp_path / "more"), "--shard-count", "1000000"]) == 2
    assert "mostly empty" in capsys.readouterr().err
    assert shard_count(2, 100, count=10_000) == 10_000
    assert shard_count(500_000, 100, count=400_000) == 400_000


def test_export_of_a_key_in_a_thousand_folders(small_dataset, tmp_path, capsys):
    dataset = small_dataset(tmp_path, key_of=lambda split, number: "a/" * 1000 + f"{number}")
    assert main(["export", str(dataset), "--out", str(tmp_path / "out")]) == 1
    assert "is in 1000 folders, and export makes at most 199" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    deep = small_dataset(tmp_path / "deep", key_of=lambda split, number: "a/" * 199 + f"{number}")
    assert main(["export", str(deep), "--out", str(tmp_path / "out")]) == 0


def test_the_working_folder_is_ours_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = working_folder("gs://bucket/staging")
    assert [place.stat().st_mode & 0o777 for place in (folder, folder.parent)] == [0o700, 0o700]
    assert working_folder("gs://bucket/staging") == folder
    folder.chmod(0o777)
    with pytest.raises(UsageError, match="other users may write there"):
        working_folder("gs://bucket/staging")
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(UsageError, match="is a link, which no run of ours made"):
        working_folder("gs://bucket/staging")
