"""Small data sets, one for each layout that an ingest reads, as people have them in a folder."""

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import build
import google_crc32c
import numpy as np
from PIL import Image

from shardwright.config.input import RleConfig
from shardwright.masks.dialects import dialect_of
from shardwright.masks.rle import encode
from shardwright.tfrecords import encode as example

COUNT, HEIGHT, WIDTH = 8, 24, 40
CLASSES = ("car", "road")


@dataclass(frozen=True)
class Layout:
    """A data set to draw.

    Attributes:
        draw: writes it into a folder.
        format: what `init` finds.
        classes: likewise.
        labels: the annotations below the folder, where the call of `init` names them.
        further: YAML path -> value, which the call of `init` has too.
        found: what must be in `input.labels`.
    """

    draw: Callable[[Path], object]
    format: str
    classes: tuple[str, ...]
    labels: str | None = None
    further: tuple[str, ...] = ()
    found: Mapping[str, Any] | None = None


def image(file: Path, number: int, size: tuple[int, int] = (HEIGHT, WIDTH)) -> None:
    """Draws an image that no other number has."""
    file.parent.mkdir(parents=True, exist_ok=True)
    build.cloudy(number, size[::-1]).save(file)


def mask(number: int, label: int) -> np.ndarray:
    """The mask of a class: a disc, so that its outline is longer the wrong way."""
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    middle = (6 + number % 3 + 8 * label, 8 + 2 * number % 7 + 14 * label)
    return ((rows - middle[0]) ** 2 + (columns - middle[1]) ** 2 < 30).astype(np.uint8)


def indices(number: int) -> np.ndarray:
    """All classes of an image, from 1."""
    return np.maximum(mask(number, 0), 2 * mask(number, 1)).astype(np.uint8)


def images(folder: Path, name: str = "{}.jpg") -> list[str]:
    """Draws all images; returns their names."""
    names = [name.format(f"i{number}") for number in range(COUNT)]
    for number, key in enumerate(names):
        image(folder / key, number)
    return names


def lines(file: Path, *rows: str) -> None:
    """Writes a table."""
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")


def runs(number: int, label: int, encoding: str = "absolute", order: str = "column", start: int = 1) -> str:
    """A mask as text."""
    return dialect_of(encoding, order, start).format(encode(mask(number, label)), height=HEIGHT, width=WIDTH)


def class_folders(root: Path) -> None:
    for number in range(COUNT):
        image(root / CLASSES[number % 2] / f"{number}.jpg", number)


def split_folders(root: Path) -> None:
    for number in range(COUNT):
        image(root / ("train" if number % 4 else "val") / CLASSES[number // 4] / f"{number}.jpg", number)


def file_names(root: Path) -> None:
    for number in range(COUNT):
        image(root / f"{CLASSES[number % 2]}_{number}.jpg", number)


def label_csv(root: Path) -> None:
    names = images(root / "photos")
    lines(root / "labels.csv", "filename,kind,age", *(f"{n},{CLASSES[i % 2]},{i}" for i, n in enumerate(names)))
    (root / "labels.csv").write_text((root / "labels.csv").read_text().replace("kind", "label"))


def multi_label(root: Path) -> None:
    names = images(root / "photos")
    lines(root / "labels.csv", "image,labels", *(f"{n},{'car|road' if i % 2 else 'car'}" for i, n in enumerate(names)))


def one_hot(root: Path) -> None:
    names = images(root / "photos")
    lines(root / "labels.csv", "image,car,road", *(f"{n},{i % 2},{1 - i % 2}" for i, n in enumerate(names)))


def kaggle(root: Path) -> None:
    """Images to learn from and images to predict, and the table of each."""
    names = images(root / "train_images")
    images(root / "test_images", "{}_of_test.jpg")
    rows = [f"{n}_{name},{runs(i, k)}" for i, n in enumerate(names) for k, name in enumerate(CLASSES)]
    lines(root / "train.csv", "Image_Label,EncodedPixels", *rows)
    lines(root / "sample_submission.csv", "Image_Label,EncodedPixels", "i0_of_test.jpg_car,1 1")


def severstal(root: Path) -> None:
    names = images(root / "images")
    rows = [f"{n},{k + 1},{runs(i, k)}" for i, n in enumerate(names[1:], 1) for k in range(2)]
    lines(root / "train.csv", "ImageId,ClassId,EncodedPixels", *rows)


def rle(encoding: str, order: str = "column", start: int = 1) -> Callable[[Path], None]:
    """A table with headers of no known set."""

    def draw(root: Path) -> None:
        names = images(root / "images")
        texts = [
            (n, name, runs(i, k, encoding, order, start)) for i, n in enumerate(names) for k, name in enumerate(CLASSES)
        ]
        lines(root / "masks.csv", "picture,label,rle", *(f'{n},{name},"{text}"' for n, name, text in texts))

    return draw


def one_class(root: Path) -> None:
    names = images(root / "images")
    lines(root / "train.csv", "ImageId,EncodedPixels", *(f"{n},{runs(i, 0)}" for i, n in enumerate(names)))


def coco(masks: bool) -> Callable[[Path], None]:
    def draw(root: Path) -> None:
        names = images(root / "images")
        box = {"bbox": [2, 3, 10, 8], "iscrowd": 0}
        polygon = {"segmentation": [[2, 3, 12, 3, 12, 11, 2, 11]]} if masks else {}
        document = {
            "images": [{"id": i, "file_name": n, "height": HEIGHT, "width": WIDTH} for i, n in enumerate(names)],
            "annotations": [{"id": i, "image_id": i, "category_id": 3 + i % 2, **box, **polygon} for i in range(COUNT)],
            "categories": [{"id": 3, "name": "car"}, {"id": 4, "name": "road"}],
        }
        (root / "instances.json").write_text(json.dumps(document))

    return draw


def mask_indices(root: Path) -> None:
    images(root / "images")
    (root / "masks").mkdir()
    for number in range(COUNT):
        Image.fromarray(indices(number)).save(root / "masks" / f"i{number}.png")


def mask_suffix(root: Path) -> None:
    images(root)
    for number in range(COUNT):
        Image.fromarray(mask(number, 0) * np.uint8(255)).save(root / f"i{number}_mask.png")


def mask_colors(root: Path) -> None:
    images(root / "images")
    (root / "masks").mkdir()
    colors = np.array([[0, 0, 0], [128, 64, 128], [0, 0, 142]], np.uint8)
    for number in range(COUNT):
        Image.fromarray(colors[indices(number)]).save(root / "masks" / f"i{number}.png")


def mask_folders(root: Path) -> None:
    images(root / "images")
    for label, name in enumerate(CLASSES):
        (root / "masks" / name).mkdir(parents=True)
        for number in range(COUNT):
            Image.fromarray(mask(number, label) * np.uint8(255)).save(root / "masks" / name / f"i{number}.png")


def pascal_voc(root: Path) -> None:
    images(root / "JPEGImages")
    (root / "SegmentationClass").mkdir()
    (root / "ImageSets/Segmentation").mkdir(parents=True)
    lines(root / "ImageSets/Segmentation/train.txt", *(f"i{i}" for i in range(6)))
    lines(root / "ImageSets/Segmentation/val.txt", "i6", "i7")
    for number in range(COUNT):
        Image.fromarray(indices(number)).save(root / "SegmentationClass" / f"i{number}.png")


def caption_csv(root: Path) -> None:
    names = images(root / "images")
    lines(root / "captions.csv", "image,caption", *(f"{n},A picture of {i} things." for i, n in enumerate(names)))


def caption_jsonl(root: Path) -> None:
    names = images(root / "images")
    lines(root / "captions.jsonl", *(json.dumps({"file_name": n, "text": f"Number {i}."}) for i, n in enumerate(names)))


def records(root: Path) -> None:
    """A file of tf.train.Examples, as other programs write it."""
    image(root / "x.jpg", 0)
    with (root / "data.tfrecord").open("wb") as file:
        for number in range(COUNT):
            image(root / "x.jpg", number)
            payload = example.encode_example(
                {
                    "image": (root / "x.jpg").read_bytes(),
                    "label": number % 2,
                    "id": f"r{number}".encode(),
                }
            )
            file.write(_framed(payload))
    (root / "x.jpg").unlink()


def _framed(payload: bytes) -> bytes:
    def masked(data: bytes) -> bytes:
        crc = google_crc32c.value(data)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack("<Q", len(payload))
    return length + masked(length) + payload + masked(payload)


def coco_captions(root: Path) -> None:
    names = images(root / "images")
    document = {
        "images": [{"id": i, "file_name": n} for i, n in enumerate(names)],
        "annotations": [{"id": i, "image_id": i // 2, "caption": f"Scene {i}."} for i in range(2 * COUNT)],
    }
    (root / "captions_val.json").write_text(json.dumps(document))


def numbers_csv(root: Path) -> None:
    names = images(root / "images")
    lines(root / "targets.csv", "filename,head circumference (mm)", *(f"{n},{40 + i / 4}" for i, n in enumerate(names)))


def numbers_jsonl(root: Path) -> None:
    names = images(root / "images")
    rows = (json.dumps({"file_name": n, "head": 40 + i / 4, "age": i}) for i, n in enumerate(names))
    lines(root / "targets.jsonl", *rows)


def bare(root: Path) -> None:
    images(root, "IMG{}.jpg")


def gifs(root: Path) -> None:
    images(root / "a", "{}.gif")
    images(root / "b", "{}.jpg")


LAYOUTS = {
    "class folders": Layout(class_folders, "class_folders", CLASSES),
    "class folders below splits": Layout(split_folders, "class_folders", CLASSES),
    "file names": Layout(file_names, "file_name", CLASSES),
    "label CSV": Layout(label_csv, "label_csv", CLASSES, found={"multi_label": False}),
    "label CSV, named": Layout(label_csv, "label_csv", CLASSES, "labels.csv"),
    "several labels": Layout(multi_label, "label_csv", CLASSES, found={"multi_label": True, "separator": "|"}),
    "one hot": Layout(one_hot, "label_csv", CLASSES, found={"multi_label": False}),
    "Kaggle, train and test": Layout(
        kaggle, "rle_csv", ("car", "road"), found={"rle": RleConfig("absolute", "column", 1)}
    ),
    "Severstal": Layout(severstal, "rle_csv", ("1", "2")),
    "RLE by rows": Layout(rle("absolute", "row"), "rle_csv", CLASSES, found={"rle": RleConfig("absolute", "row", 1)}),
    "COCO counts in a CSV": Layout(rle("counts"), "rle_csv", CLASSES, found={"rle": RleConfig("counts", "column")}),
    "relative runs": Layout(rle("relative"), "rle_csv", CLASSES, found={"rle": RleConfig("relative", "column")}),
    "one class": Layout(one_class, "rle_csv", ("mask",)),
    "COCO": Layout(coco(True), "coco_json", CLASSES),
    "COCO boxes": Layout(coco(False), "coco_json", CLASSES, found={"boxes": True}),
    "mask indices": Layout(mask_indices, "mask_images", ("1", "2")),
    "masks, named": Layout(mask_indices, "mask_images", ("1", "2"), "masks"),
    "mask suffix": Layout(mask_suffix, "mask_images", ("mask",)),
    "mask colors": Layout(mask_colors, "mask_images", ("color_00008e", "color_804080")),
    "a folder of masks for each class": Layout(mask_folders, "mask_images", CLASSES),
    "Pascal VOC": Layout(pascal_voc, "pascal_voc", ("1", "2")),
    "captions": Layout(caption_csv, "captions", ()),
    "captions in JSON lines": Layout(caption_jsonl, "captions", ()),
    "COCO captions": Layout(coco_captions, "captions", ()),
    "numbers": Layout(numbers_csv, "numbers", (), found={"features": {"head circumference (mm)": "float"}}),
    "numbers in JSON lines": Layout(
        numbers_jsonl, "numbers", (), found={"features": {"head": "float", "age": "float"}}
    ),
    "TFRecords": Layout(records, "tfrecord", ("0", "1")),
    "images alone": Layout(bare, "none", ()),
    "GIFs": Layout(gifs, "class_folders", ("a", "b")),
}
