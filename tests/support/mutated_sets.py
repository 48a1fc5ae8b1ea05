"""Data sets with a known truth, and mutations that each break one assumption of whoever reads them.

A set is drawn into a folder and has a truth: name of an image -> class -> mask, box (as a mask), or `None` for the
class of the whole image. A mutation changes the files, and says what may come of it:

| outcome | meaning |
|---|---|
| right | the dataset has exactly the truth |
| question | exit 2 and answers, each a command: each works, and one gives the truth, where the files still have one |
| refusal | another non-zero exit, without a dataset |

A dataset with anything else than the truth, written with exit code 0, is what must never happen.
"""

import json
import random
import re
import shutil
import unicodedata
from collections.abc import Callable, Iterator
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
        has: `masks`, `boxes`, `classes`, or `values` (features, by name).
        format: the format that reads it.
        states_size: whether the annotations state the size of each image, or depend on it in another way.
        fractions: whether coordinates are fractions of the image, so that resized images fit.
        unlisted_empty: whether an image without a file of annotations has no objects, by the tool's own rule.
        relative: whether names of images are relative to the folder of the annotations by definition.
        named: arguments of `init` below the folder; by default the folder itself.
    """

    draw: Callable[[Path], Truth]
    has: str
    format: str
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


def _of_layout(name: str, truth: Callable[[], Truth]) -> Callable[[Path], Truth]:
    def draw(root: Path) -> Truth:
        layouts.LAYOUTS[name].draw(root)
        return truth()

    return draw


def _pascal_voc(root: Path) -> Truth:
    layouts.pascal_voc(root)
    seen = {i: layouts.indices(i) for i in range(COUNT)}
    return {f"i{i}.jpg": {str(n): (seen[i] == n).astype(np.uint8) for n in (1, 2)} for i in range(COUNT)}


def _by_image(value: Callable[[int], dict[str, Any]], name: str = "i{}.jpg") -> Callable[[], Truth]:
    return lambda: {name.format(i): value(i) for i in range(COUNT)}


def _records(root: Path) -> Truth:
    layouts.records(root)
    return {f"r{i}": {str(i % 2): None} for i in range(COUNT)}


def _file_names(root: Path) -> Truth:
    layouts.file_names(root)
    return {f"{CLASSES[i % 2]}_{i}.jpg": {CLASSES[i % 2]: None} for i in range(COUNT)}


def _with_table(folder: Path) -> list[str]:
    files = [*folder.rglob("train-*.csv"), *folder.rglob("annotations/*.json")]
    return [str(folder / "images"), str(files[0])]


def _without_classes(folder: Path) -> list[str]:
    return [str(folder), "--set", "input.labels.format=none"]


_CAPTION = "image/caption/text"
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
    "Severstal": Drawn(_severstal, "masks", "rle_csv"),
    "Clouds": Drawn(_clouds, "masks", "rle_csv"),
    "COCO": Drawn(_coco, "masks", "coco_json", states_size=True),
    "mask files": Drawn(_mask_files, "masks", "mask_images", states_size=True),
    "Pascal VOC": Drawn(_pascal_voc, "masks", "pascal_voc", states_size=True),
    "class folders": Drawn(_class_folders, "classes", "class_folders"),
    "file names": Drawn(_file_names, "classes", "file_name"),
    "label CSV": Drawn(_label_csv, "classes", "label_csv"),
    "a column for each class": Drawn(
        _of_layout("one hot", _by_image(lambda i: {CLASSES[1 - i % 2]: None})), "classes", "label_csv"
    ),
    "captions": Drawn(
        _of_layout("captions", _by_image(lambda i: {_CAPTION: [f"A picture of {i} things.".encode()]})),
        "values",
        "captions",
    ),
    "COCO captions": Drawn(
        _of_layout("COCO captions", _by_image(lambda i: {_CAPTION: [f"Scene {2 * i + k}.".encode() for k in (0, 1)]})),
        "values",
        "captions",
    ),
    "numbers": Drawn(
        _of_layout("numbers", _by_image(lambda i: {"image/meta/head_circumference_mm": [40 + i / 4]})),
        "values",
        "numbers",
    ),
    "images alone": Drawn(
        _of_layout("images alone", _by_image(lambda i: {}, "IMGi{}.jpg")), "classes", "none", named=_without_classes
    ),
    "TFRecords": Drawn(_records, "classes", "tfrecord"),
    "Supervisely": Drawn(tool_files.supervisely, "masks", "supervisely", states_size=True),
    **{
        name: Drawn(
            draw,
            has,
            label_format,
            states_size=name in _SIZED,
            fractions=name in _FRACTIONS,
            unlisted_empty=name.startswith("YOLO"),
            relative=name == "imagefolder",
            **({"named": _with_table} if name in ("Open Images masks", "COCO panoptic") else {}),
        )
        for name, (draw, label_format, has) in tool_files.TOOLS.items()
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
        pictures: whether it changes files of images.
        aside: whether it adds images that are not the set's: nothing tells, where images are all there is.
        cause: what the message must name where there is a question or a refusal.
    """

    apply: Callable[[Path, Truth, random.Random], Truth]
    allowed: Callable[[Drawn], frozenset[str]] = lambda drawn: ANY
    pictures: bool = False
    aside: bool = False
    cause: str = ""


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


def _turned_by_exif(root: Path, truth: Truth, chance: random.Random) -> Truth:
    """The pixels of each image lie on their side, and Exif turns them back, as phones write it."""
    for path in pictures(root):
        exif = Image.Exif()
        exif[0x0112] = 6
        _resaved(path, lambda image: image.transpose(Image.Transpose.ROTATE_90), exif=exif)
    return {key: {name: _on_its_side(mask) for name, mask in classes.items()} for key, classes in truth.items()}


def _on_its_side(mask: Any) -> Any:
    return np.rot90(mask) if isinstance(mask, np.ndarray) else mask


def _rows_twice(root: Path, truth: Truth, chance: random.Random) -> Truth:
    """All rows of tables and lines of text files are there twice, as after a merge."""
    doubled = False
    for path in texts(root):
        if path.suffix in (".csv", ".jsonl", ".ndjson") or (path.suffix == ".txt" and _is_of_image(path, root)):
            lines = path.read_text(encoding="utf-8").splitlines()
            again = lines[1:] if path.suffix == ".csv" and ".jpg" not in lines[0] else lines
            path.write_text("\n".join([*lines, *again]) + "\n", encoding="utf-8")
            doubled = path.suffix == ".csv"
    # Captions of an image are a list.
    return {
        key: {name: 2 * value if doubled and name == "image/caption/text" else value for name, value in one.items()}
        for key, one in truth.items()
    }


def _is_of_image(path: Path, root: Path) -> bool:
    return path.stem in {picture.stem for picture in pictures(root)}


def _header_gone(root: Path, truth: Truth, chance: random.Random) -> Truth:
    for path in texts(root):
        first, _, rest = path.read_text(encoding="utf-8").partition("\n")
        if path.suffix == ".csv" and not re.search(r"\d", first):
            path.write_text(rest, encoding="utf-8")
    # The names of numbers were there alone.
    return {} if any("image/meta/" in name for one in truth.values() for name in one) else truth


def _rows_shuffled(root: Path, truth: Truth, chance: random.Random) -> Truth:
    """Rows in another order, as databases export them; not those that belong together: captions are a list."""
    for path in texts(root):
        if path.suffix in (".csv", ".jsonl", ".ndjson"):
            lines = path.read_text(encoding="utf-8").splitlines()
            head = lines[: path.suffix == ".csv" and ".jpg" not in lines[0]]
            rows = lines[len(head) :]
            chance.shuffle(rows)
            path.write_text("\n".join([*head, *rows]) + "\n", encoding="utf-8")
    return truth


def _one_file_gone(root: Path, truth: Truth, chance: random.Random) -> Truth:
    """The annotations of one image are not there, where each image has a file."""
    files = [path for path in root.rglob("*") if path.is_file() and path.suffix in (".txt", ".json", ".xml", ".png")]
    files = sorted(path for path in files if re.match(r"i\d\b", path.name) and "README" not in path.name)
    if not files:
        return truth
    stem = chance.choice(files).name.partition(".")[0]
    for path in files:
        if path.name.startswith(f"{stem}."):
            path.unlink()
    if any(f'"{stem}.png"' in path.read_text() for path in root.rglob("*.json")):
        # A table names the file: the image has annotations, which nobody knows. It can only be left out.
        return {key: classes for key, classes in truth.items() if not f"/{key}".endswith(f"/{stem}.jpg")}
    return {key: {} if f"/{key}".endswith(f"/{stem}.jpg") else classes for key, classes in truth.items()}


def _stray_files(root: Path, truth: Truth, chance: random.Random) -> Truth:
    """What lies in every folder of a project."""
    for folder in {path.parent for path in [*texts(root), *pictures(root)]}:
        (folder / "notes.md").write_text("# Notes\nDone by Ann.\n")
        (folder / "convert.py").write_text("print(1)\n")
    (root / "requirements.txt").write_text("numpy\nopencv-python\n")
    (root / ".git").mkdir()
    (root / ".git/config").write_text("[core]\n")
    return truth


def _one_of_another_size(root: Path, truth: Truth, chance: random.Random) -> Truth:
    """A camera of other pixels took one image, and its annotations are those of the old one."""
    _resaved(chance.choice(pictures(root)), lambda image: image.resize((image.width * 3, image.height * 2)))
    return {}


def _letters(root: Path, truth: Truth, chance: random.Random) -> Truth:
    """Names with letters of other alphabets: composed in the annotations, decomposed on the disk, as on a Mac."""
    composed = unicodedata.normalize("NFC", "é東 ")
    for path in texts(root):
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"(?<![A-Za-z0-9])i(\d)(?=\.jpg|,)", composed + r"i\1", text), encoding="utf-8")
    for path in sorted(root.rglob("i[0-9]*"), reverse=True):
        path.rename(path.with_name(unicodedata.normalize("NFD", composed) + path.name))
    return {re.sub(r"(?<![A-Za-z])i(\d\.jpg)$", composed + r"i\1", key): classes for key, classes in truth.items()}


def _members(value: Any) -> Iterator[dict[str, Any]]:
    """Each object in a JSON value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    yield from [value] if isinstance(value, dict) else []
    for one in inner:
        yield from _members(one)


def _in_json(root: Path, change: Callable[[dict[str, Any]], Any]) -> bool:
    """Changes objects in JSON files, and lines; returns whether any was changed."""
    changed = False
    for path in texts(root):
        if path.suffix in (".json", ".jsonl", ".ndjson"):
            lines = path.read_text(encoding="utf-8").splitlines() if path.suffix != ".json" else [path.read_text()]
            values = [json.loads(line) for line in lines]
            for one in (one for value in values for one in _members(value)):
                changed |= bool(change(one))
            path.write_text("\n".join(map(json.dumps, values)) + "\n", encoding="utf-8")
    return changed


def _box_of(one: dict[str, Any]) -> list[float] | None:
    """The [x, y, width, height] of a polygon or a box in pixels, as tools write them; `None` of something else."""
    numbers = next((one[name] for name in ("points", "segmentation", "bbox") if isinstance(one.get(name), list)), None)
    numbers = None if "categories" in one else numbers  # Lists of the boxes of an image.
    if isinstance(numbers, list) and numbers and isinstance(numbers[0], list):
        numbers = [number for part in numbers for number in part]
    if "all_points_x" in one:
        numbers = [number for pair in zip(one["all_points_x"], one["all_points_y"], strict=True) for number in pair]
    if not numbers or not all(isinstance(number, (int, float)) for number in numbers):
        return None
    if "bbox" in one and len(numbers) == 4:
        return numbers
    across, down = numbers[::2], numbers[1::2]
    return [min(across), min(down), max(across) - min(across), max(down) - min(down)]


def _beside(change: Callable[[list[float]], dict[str, Any]]) -> Callable[[Path, Truth, random.Random], Truth]:
    """Objects get another description beside their outline, which contradicts it."""

    def apply(root: Path, truth: Truth, chance: random.Random) -> Truth:
        def describe(one: dict[str, Any]) -> bool:
            box = _box_of(one)
            one.update(change(box) if box else {})
            return box is not None

        return {} if _in_json(root, describe) else truth

    return apply


def _exchanged(root: Path, truth: Truth, chance: random.Random) -> Truth:
    """x and y of fractions are exchanged."""
    changed = False
    for path in texts(root):
        lines = path.read_text(encoding="utf-8").splitlines()
        if path.suffix == ".txt" and _is_of_image(path, root):
            fields = [line.split() for line in lines]
            pairs = [
                [one[0], *(number for i in range(1, len(one), 2) for number in one[i : i + 2][::-1])] for one in fields
            ]
            path.write_text("\n".join(map(" ".join, pairs)) + "\n", encoding="utf-8")
            changed = True
        elif "XMin" in lines[0] and "Box" not in lines[0]:
            path.write_text("\n".join([lines[0].replace("X", "@").replace("Y", "X").replace("@", "Y"), *lines[1:]]))
            changed = True

    def swap(one: dict[str, Any]) -> bool:
        if "xMin" in one:
            one["xMin"], one["yMin"], one["xMax"], one["yMax"] = one["yMin"], one["xMin"], one["yMax"], one["xMax"]
        return "xMin" in one

    return {} if _in_json(root, swap) or changed else truth


BESIDE = "outline than the box|areas of"
SIZES = r"\d+x\d+ \(height x width\)|has \d+x\d+|beyond|turned|outside|column by column"
CUT = "not JSON|not XML|has no length|have no row|states a split|numbers; it needs"
ALWAYS = frozenset((RIGHT,))


def _contradicted(drawn: Drawn) -> frozenset[str]:
    return STOPS if drawn.format in ("coco_json", "datumaro", "via_json", "panoptic") else ANY


MUTATIONS: dict[str, Mutation] = {
    "nothing": Mutation(_none, lambda drawn: ALWAYS),
    "every image halved": Mutation(
        _halved, lambda drawn: ANY if _fits_any_size(drawn) else STOPS, pictures=True, cause=SIZES
    ),
    "one image halved": Mutation(
        _one_halved, lambda drawn: ANY if _fits_any_size(drawn) else STOPS, pictures=True, cause=SIZES
    ),
    "one image of another shape": Mutation(
        _one_of_another_size, lambda drawn: STOPS if drawn.states_size else ANY, pictures=True, cause=SIZES
    ),
    "every image turned": Mutation(
        _transposed, lambda drawn: ANY if _fits_any_size(drawn) else STOPS, pictures=True, cause=SIZES
    ),
    "every image turned by Exif": Mutation(_turned_by_exif, pictures=True, cause=SIZES),
    "thumbnails": Mutation(_thumbnails, lambda drawn: ALWAYS, pictures=True),
    "previews": Mutation(_previews, pictures=True, aside=True, cause="preview"),
    "a picture of the README": Mutation(_overview, aside=True, cause="overview"),
    "results": Mutation(_results, aside=True, cause="results"),
    "files of a project": Mutation(_stray_files, lambda drawn: STOPS if drawn.format == "tfrecord" else ALWAYS),
    "one image gone": Mutation(
        _image_gone, pictures=True, cause="there is no such image|no image belongs|no image has this name|too few"
    ),
    "the annotations of one image gone": Mutation(_one_file_gone, cause="have no row|none for|there is no file"),
    "annotations cut off": Mutation(_cut_off, cause=CUT),
    "annotations emptied": Mutation(_emptied, cause="empty|Expecting value|no element|no annotations"),
    "a second copy": Mutation(_copied_folder, cause=r"set \(copy\)|does not exist"),
    "paths of another machine": Mutation(_other_machine, lambda drawn: ANY if drawn.relative else ALWAYS),
    "endings in upper case": Mutation(_upper_case, pictures=True),
    "letters of other alphabets": Mutation(_letters),
    "lines of Windows": Mutation(_windows_lines, lambda drawn: ALWAYS),
    "rows twice": Mutation(_rows_twice, cause="both annotations|twice|another one"),
    "rows in another order": Mutation(_rows_shuffled, lambda drawn: ALWAYS),
    "the header gone": Mutation(_header_gone, lambda drawn: ANY, cause="header|first line|column_1"),
    "a box beside that is elsewhere": Mutation(
        _beside(lambda box: {"bbox": [box[0] + 9, box[1] + 9, box[2], box[3]], "area": 0}), _contradicted, cause=BESIDE
    ),
    "an area beside that is four times as large": Mutation(
        _beside(lambda box: {"bbox": box, "area": 4 * box[2] * box[3] + 1 + box[0]}), _contradicted, cause=BESIDE
    ),
    "x and y exchanged": Mutation(_exchanged, cause="Are x and y exchanged"),
    "one image is HTML": Mutation(_broken_image, pictures=True, cause="HTML|cannot be read"),
}
COMBINATIONS = [
    (name, mutation)
    for name, drawn in SETS.items()
    for mutation, one in MUTATIONS.items()
    if not (one.pictures and drawn.format == "tfrecord") and not (one.aside and drawn.format == "none")
]


def _fits_any_size(drawn: Drawn) -> bool:
    return drawn.has in ("classes", "values") or drawn.fractions
