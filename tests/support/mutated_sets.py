"""Data sets with a known truth, and mutations that each break one assumption of whoever reads them.

A set is drawn into a folder and has a truth: name of an image -> class -> mask, box (as a mask), or `None` for the
class of the whole image. A mutation changes the files, and says what may come of it:

| outcome | meaning |
|---|---|
| right | the dataset has exactly the truth |
| question | exit 2 before anything is written |
| refusal | another non-zero exit, without a dataset |

A dataset with anything else than the truth, written with exit code 0, is what must never happen.
"""

import json
import random
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import layouts
import numpy as np
import tool_files
from layouts import CLASSES, COUNT, HEIGHT, WIDTH, mask
from PIL import Image

Truth = dict[str, dict[str, Any]]
RIGHT, QUESTION, REFUSAL = "right", "question", "refusal"
ANY = frozenset((RIGHT, QUESTION, REFUSAL))
STOPS = frozenset((QUESTION, REFUSAL))
IMAGES = (".jpg", ".png", ".bmp")


@dataclass(frozen=True)
class Drawn:
    """A set to draw.

    Attributes:
        draw: writes it into a folder and returns its truth.
        has: `masks`, `boxes` or `classes`.
        states_size: whether the annotations state the size of each image, or depend on it in another way.
        fractions: whether coordinates are fractions of the image, so that resized images fit.
        unlisted_empty: whether an image without a file of annotations has no objects, by the tool's own rule.
        relative: whether names of images are relative to the folder of the annotations by definition.
        named: arguments of `init` below the folder; by default the folder itself.
    """

    draw: Callable[[Path], Truth]
    has: str
    states_size: bool = False
    fractions: bool = False
    unlisted_empty: bool = False
    relative: bool = False
    named: Callable[[Path], list[str]] = field(default=lambda folder: [str(folder)])


def _severstal(root: Path) -> Truth:
    layouts.severstal(root)
    return {f"i{i}.jpg": {name: mask(i, k) for k, name in enumerate(("1", "2")) if i} for i in range(COUNT)}


def _clouds(root: Path) -> Truth:
    names = layouts.images(root / "train_images")
    rows = [f"{n}_{name},{layouts.runs(i, k)}" for i, n in enumerate(names) for k, name in enumerate(CLASSES)]
    layouts.lines(root / "train.csv", "Image_Label,EncodedPixels", *rows)
    return {n: {name: mask(i, k) for k, name in enumerate(CLASSES)} for i, n in enumerate(names)}


def _coco(root: Path) -> Truth:
    layouts.coco(True)(root)
    drawn = np.zeros((HEIGHT, WIDTH), np.uint8)
    drawn[3:11, 2:12] = 1
    return {f"i{i}.jpg": {CLASSES[i % 2]: drawn} for i in range(COUNT)}


def _mask_files(root: Path) -> Truth:
    layouts.mask_folders(root)
    return {f"i{i}.jpg": {name: mask(i, k) for k, name in enumerate(CLASSES)} for i in range(COUNT)}


def _class_folders(root: Path) -> Truth:
    layouts.class_folders(root)
    return {f"{i}.jpg": {CLASSES[i % 2]: None} for i in range(COUNT)}


def _label_csv(root: Path) -> Truth:
    layouts.label_csv(root)
    return {f"i{i}.jpg": {CLASSES[i % 2]: None} for i in range(COUNT)}


def _with_table(folder: Path) -> list[str]:
    files = [*folder.rglob("train-*.csv"), *folder.rglob("annotations/*.json")]
    return [str(folder / "images"), str(files[0])]


_FRACTIONS = ("YOLO segments", "YOLO boxes", "YOLO of Roboflow", "YOLO next to images", "Vertex AI boxes")
_FRACTIONS += ("Open Images boxes",)
_SIZED = (
    "LabelMe",
    "CVAT",
    "Datumaro",
    "Label Studio",
    "VOC boxes",
    "boxes in a CSV",
    "COCO panoptic",
    "Open Images masks",
)
SETS: dict[str, Drawn] = {
    "Severstal": Drawn(_severstal, "masks"),
    "Clouds": Drawn(_clouds, "masks"),
    "COCO": Drawn(_coco, "masks", states_size=True),
    "mask files": Drawn(_mask_files, "masks", states_size=True),
    "class folders": Drawn(_class_folders, "classes"),
    "label CSV": Drawn(_label_csv, "classes"),
    **{
        name: Drawn(
            draw,
            has,
            states_size=name in _SIZED,
            fractions=name in _FRACTIONS,
            unlisted_empty=name.startswith("YOLO"),
            relative=name == "imagefolder",
            **({"named": _with_table} if name in ("Open Images masks", "COCO panoptic") else {}),
        )
        for name, (draw, _, has) in tool_files.TOOLS.items()
    },
}


def pictures(root: Path) -> list[Path]:
    """The images of a set, without masks: they are the only JPEG files."""
    return sorted(path for path in root.rglob("*.jpg") if path.is_file())


def texts(root: Path) -> list[Path]:
    """The annotation files."""
    endings = (".csv", ".json", ".jsonl", ".ndjson", ".xml", ".txt", ".yaml")
    return sorted(path for path in root.rglob("*") if path.suffix in endings and "README" not in path.name)


@dataclass(frozen=True)
class Mutation:
    """What breaks.

    Attributes:
        apply: changes the files below a folder, and returns the truth after that.
        allowed: outcomes, for a set.
    """

    apply: Callable[[Path, Truth, random.Random], Truth]
    allowed: Callable[[Drawn], frozenset[str]] = lambda drawn: ANY


def _resaved(path: Path, change: Callable[[Image.Image], Image.Image], **options: Any) -> None:
    with Image.open(path) as image:
        changed = change(image)
    changed.save(path, quality=95, **options)


def _none(root: Path, truth: Truth, chance: random.Random) -> Truth:
    return truth


def _halved(root: Path, truth: Truth, chance: random.Random) -> Truth:
    for path in pictures(root):
        _resaved(path, lambda image: image.resize((image.width // 2, image.height // 2)))
    return {}


def _one_halved(root: Path, truth: Truth, chance: random.Random) -> Truth:
    _resaved(chance.choice(pictures(root)), lambda image: image.resize((image.width // 2, image.height // 2)))
    return {}


def _transposed(root: Path, truth: Truth, chance: random.Random) -> Truth:
    for path in pictures(root):
        _resaved(path, lambda image: image.transpose(Image.Transpose.ROTATE_90))
    return {}


def _thumbnails(root: Path, truth: Truth, chance: random.Random) -> Truth:
    """What Synology, macOS and file managers put next to images."""
    for i, path in enumerate(pictures(root)[:3]):
        folder = path.parent / "@eaDir" / path.name
        folder.mkdir(parents=True)
        Image.new("RGB", (6, 4), (i, i, i)).save(folder / "SYNOPHOTO_THUMB_M.jpg")
        (path.parent / f"._{path.name}").write_bytes(b"\0\5\x16\7")
        (path.parent / ".thumbnails").mkdir(exist_ok=True)
        Image.new("RGB", (6, 4), (9, i, i)).save(path.parent / ".thumbnails" / path.name)
    (root / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
    (root / "Thumbs.db").write_bytes(b"\xd0\xcf\x11\xe0")
    return truth


def _previews(root: Path, truth: Truth, chance: random.Random) -> Truth:
    """Pictures with the annotations drawn in, as notebooks save them."""
    (root / "preview").mkdir()
    for path in pictures(root):
        if path.parent.name != "preview":
            with Image.open(path) as image:
                image.rotate(180).save(root / "preview" / f"{path.stem}_preview.jpg")
    return truth


def _overview(root: Path, truth: Truth, chance: random.Random) -> Truth:
    Image.new("RGB", (90, 70), (200, 10, 10)).save(root / "overview.jpg")
    return truth


def _image_gone(root: Path, truth: Truth, chance: random.Random) -> Truth:
    gone = chance.choice(pictures(root))
    gone.unlink()
    return {key: value for key, value in truth.items() if not str(gone).endswith(f"/{key}")}


def _other_machine(root: Path, truth: Truth, chance: random.Random) -> Truth:
    """Annotations name images by their paths on the machine that wrote them."""
    for path in texts(root):
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"(?<![\w/\\-])i(\d)\.jpg", r"/home/ann/photos/i\1.jpg", text), encoding="utf-8")
    return truth


def _upper_case(root: Path, truth: Truth, chance: random.Random) -> Truth:
    """The files end with .JPG, as cameras write them, and the annotations with .jpg."""
    for path in pictures(root):
        path.rename(path.with_suffix(".JPG"))
    return {key.replace(".jpg", ".JPG"): classes for key, classes in truth.items()}


def _cut_off(root: Path, truth: Truth, chance: random.Random) -> Truth:
    """A file of annotations is half there, as after a broken download."""
    files = [path for path in texts(root) if path.suffix != ".yaml"]
    if not files:
        return truth
    file = chance.choice(files)
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    return {}


def _emptied(root: Path, truth: Truth, chance: random.Random) -> Truth:
    files = [path for path in texts(root) if path.suffix not in (".yaml", ".txt")]
    if not files:
        return truth
    chance.choice(files).write_bytes(b"")
    return {}


def _copied_folder(root: Path, truth: Truth, chance: random.Random) -> Truth:
    """A second copy of the whole set, as `data (copy)`."""
    inside = root / "set"
    inside.mkdir()
    for path in list(root.iterdir()):
        if path != inside:
            path.rename(inside / path.name)
    shutil.copytree(inside, root / "set (copy)")
    return {}


def _windows_lines(root: Path, truth: Truth, chance: random.Random) -> Truth:
    for path in texts(root):
        text = path.read_text(encoding="utf-8")
        path.write_bytes(("\ufeff" + text.replace("\n", "\r\n")).encode("utf-8"))
    return truth


def _broken_image(root: Path, truth: Truth, chance: random.Random) -> Truth:
    """One image is a page that says 404."""
    chance.choice(pictures(root)).write_bytes(b"<!DOCTYPE html><html><body>Not found</body></html>")
    return {}


def _results(root: Path, truth: Truth, chance: random.Random) -> Truth:
    (root / "results").mkdir()
    for i in range(3):
        Image.new("RGB", (80, 60), (i, 200, 90)).save(root / "results" / f"curve_{i}.png")
    (root / "results" / "metrics.json").write_text(json.dumps({"accuracy": 0.9}))
    return truth


MUTATIONS: dict[str, Mutation] = {
    "nothing": Mutation(_none, lambda drawn: frozenset((RIGHT,))),
    "every image halved": Mutation(_halved, lambda drawn: ANY if _fits_any_size(drawn) else STOPS),
    "one image halved": Mutation(_one_halved, lambda drawn: ANY if _fits_any_size(drawn) else STOPS),
    "every image turned": Mutation(_transposed, lambda drawn: ANY if _fits_any_size(drawn) else STOPS),
    "thumbnails": Mutation(_thumbnails, lambda drawn: frozenset((RIGHT,))),
    "previews": Mutation(_previews),
    "a picture of the README": Mutation(_overview),
    "results": Mutation(_results),
    "one image gone": Mutation(_image_gone),
    "annotations cut off": Mutation(_cut_off),
    "annotations emptied": Mutation(_emptied),
    "a second copy": Mutation(_copied_folder),
    "paths of another machine": Mutation(_other_machine, lambda drawn: ANY if drawn.relative else frozenset((RIGHT,))),
    "endings in upper case": Mutation(_upper_case),
    "lines of Windows": Mutation(_windows_lines, lambda drawn: frozenset((RIGHT,))),
    "one image is HTML": Mutation(_broken_image),
}


def _fits_any_size(drawn: Drawn) -> bool:
    return drawn.has == "classes" or drawn.fractions
