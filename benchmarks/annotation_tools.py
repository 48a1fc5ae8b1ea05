"""Lets annotation tools write data sets, ingests these as they are, and compares with what the tools read themselves.

    .venv/bin/python -m benchmarks.annotation_tools [--dir DIR] [--only TEXT] [--images N] [--json]

Each tool gets a separate environment (`annotation_tools.txt`). A row of the table is one format of one tool. The
tool writes it, `shardwright init` writes a configuration, and `shardwright ingest` runs it without a change. The masks,
boxes and classes are then compared with those that the tool's own reader (or pycocotools) finds in the same files.
Exit code 0 when every row that could be installed is identical, 1 otherwise.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from benchmarks.environments import environment
from shardwright.dataset.reader import ImageDataset
from shardwright.pipelines.cli import main as shardwright
from shardwright.tfrecords.records import decode_example

_HERE = Path(__file__).resolve().parent
_WORKER = "benchmarks.annotation_worker"
_PINS = _HERE / "annotation_tools.txt"
_LONGEST = 200
_ALWAYS = ("pillow", "pycocotools")
# Boxes are float32 fractions in a dataset, and texts of two decimals in some files.
_PIXELS_APART = 0.01
CLASSES, TAGS = ["car", "road sign", "tree"], ["day", "night"]
_BOXES = ("--set", "task=classification", "--set", "input.labels.boxes=true")
_AS_IS: tuple[str, ...] = ()
_TAGS = ("--set", "task=classification")


class Row(NamedTuple):
    """A format of a tool.

    Attributes:
        name: the tool and the format; the tool is before the colon.
        format: `input.labels.format` that `init` must find.
        options: further options of `init` -> the parts that are compared then.
        known: why boxes may be one pixel apart.
    """

    name: str
    format: str
    options: Mapping[tuple[str, ...], str]
    known: str = ""


_FROM_1 = "one pixel: VOC counts from 1, the tool from 0"
_M, _B, _C = {_AS_IS: "masks"}, {_AS_IS: "boxes"}, {_AS_IS: "classes"}
ROWS = (
    Row("datumaro: COCO instances", "coco_json", {_AS_IS: "masks", _BOXES: "boxes"}),
    Row("datumaro: COCO panoptic", "panoptic", _M),
    Row("datumaro: CVAT", "cvat_xml", {_AS_IS: "masks", _TAGS: "classes"}),
    Row("datumaro: YOLO (Darknet)", "yolo", _B),
    Row("datumaro: YOLO (Ultralytics)", "yolo", _B),
    Row("datumaro: Open Images", "open_images", _B),
    Row("datumaro: Open Images masks", "open_images", _M),
    Row("datumaro: Open Images labels", "open_images", _C),
    Row("datumaro: Pascal VOC boxes", "voc_boxes", _B, _FROM_1),
    Row("datumaro: Pascal VOC masks", "pascal_voc", _M),
    Row("datumaro: class folders", "class_folders", _C),
    Row("globox: COCO boxes", "coco_json", _B),
    Row("globox: CVAT", "cvat_xml", _B),
    Row("globox: LabelMe", "labelme", _B),
    Row("globox: VIA", "via_json", _B),
    Row("globox: Open Images", "open_images", _B),
    Row("globox: YOLO (Darknet)", "yolo", _B),
    Row("globox: YOLO v5", "yolo", _B),
    Row("globox: Pascal VOC", "voc_boxes", _B, _FROM_1),
    Row("labelme", "labelme", {_AS_IS: "masks", _TAGS: "classes"}),
    Row("label-studio-converter: brush", "label_studio", {_AS_IS: "masks", _TAGS: "classes"}),
    Row("label-studio-converter: from COCO", "label_studio", _M),
    Row("supervision: COCO", "coco_json", {_BOXES: "boxes"}),
    Row("supervision: YOLO", "yolo", {_BOXES: "boxes"}),
    Row("supervision: Pascal VOC", "voc_boxes", _B),
    Row("supervision: LabelMe", "labelme", {_BOXES: "boxes"}),
    Row("pylabel: YOLO segments", "yolo", _M),
    Row("pylabel: Pascal VOC", "voc_boxes", _B, _FROM_1),
    Row("supervisely", "supervisely", {_AS_IS: "masks", _TAGS: "classes"}),
    Row("datasets: metadata.csv", "label_csv", _C),
    Row("datasets: metadata.jsonl", "label_jsonl", _B),
    Row("datasets: metadata.parquet", "label_jsonl", _B),
    Row("labelformat reads: Labelbox", "labelbox", _B),
)


def make_scene(folder: Path, count: int) -> dict[str, Any]:
    """Draws the images and their objects: a concave polygon, a box, a mask with a hole, and a class of the image."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    images = []
    for number in range(count):
        height, width = (64, 96) if number % 2 else (80, 60)
        random = np.random.default_rng(number)
        picture = Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8)).resize((width, height))
        path = folder / "images" / f"photo_{number}.jpg"
        picture.save(path, quality=95)
        rows, columns = np.mgrid[:height, :width]
        distance = np.hypot(rows - height * 0.7, columns - width * 0.6)
        tree = ((distance < 11) & (distance > 4)).astype(np.uint8)
        shift = number * 0.37
        car = [5.3 + shift, 4.6, 25.8 + shift, 6.2, 17.4 + shift, 13.1, 27.7 + shift, 24.9, 6.1 + shift, 21.5]
        box = [width * 0.55 + number, 3.25, width * 0.55 + number + 14.5, 20.75]
        objects = [
            {"class": CLASSES[0], "polygon": car},
            {"class": CLASSES[1], "box": box},
            {"class": CLASSES[2], "mask": base64.b64encode(np.packbits(tree).tobytes()).decode()},
        ]
        draw = ImageDraw.Draw(picture)
        draw.polygon(car, fill="red")
        stated = {"name": path.name, "path": str(path), "height": height, "width": width, "tag": TAGS[number % 2]}
        images.append({**stated, "split": "train" if number < max(1, 2 * count // 3) else "val", "objects": objects})
    scene = {"classes": CLASSES, "tags": TAGS, "images": images}
    (folder / "scene.json").write_text(json.dumps(scene), encoding="utf-8")
    return scene


def environments(folder: Path, tools: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Makes an environment for each tool; returns for each what `loaders.environment` returns."""
    pins = dict(line.split("==") for line in _PINS.read_text(encoding="utf-8").splitlines() if "==" in line)
    made = {}
    for tool in tools:
        home, ready = folder / "tools" / tool, folder / "tools" / tool / "ready"
        if ready.exists():
            made[tool] = (str(home / "bin" / "python"), "")
            continue
        made[tool] = environment(home, [f"{name}=={pins[name]}" for name in dict.fromkeys((tool, *_ALWAYS))])
        if made[tool][0]:
            ready.touch()
    return made


def compare(row: Row, python: str, scene_folder: Path, folder: Path) -> str:
    """Runs one row; returns an empty text where everything is identical, or what differs."""
    shutil.rmtree(folder, ignore_errors=True)
    data = folder / "data"
    data.mkdir(parents=True)
    try:
        _run_worker(python, "write", row.name, scene_folder, data)
        truth = json.loads(_run_worker(python, "truth", row.name, scene_folder, data))
    except RuntimeError as error:
        return f"the tool itself: {error}"
    problems = []
    for number, (options, part) in enumerate(row.options.items()):
        try:
            found = _ingest(row, options, folder, number)
        except RuntimeError as error:
            problems.append(f"{part}: {error}")
            continue
        apart = _PIXELS_APART + (1 if row.known else 0)
        problems += [f"{part}: {problem}" for problem in _differences(truth, found, part, apart)]
    return "; ".join(problems)


def _run_worker(python: str, what: str, row: str, scene: Path, out: Path) -> str:
    call = [python, "-m", _WORKER, what, row, str(scene), str(out)]
    variables = {**os.environ, "PYTHONPATH": str(_HERE.parent)}
    done = subprocess.run(call, capture_output=True, text=True, check=False, cwd=out.parent, env=variables)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1][:_LONGEST])
    return done.stdout


def _ingest(row: Row, options: Sequence[str], folder: Path, number: int) -> dict[str, dict[str, Any]]:
    config, out = folder / f"config{number}.yaml", folder / f"dataset{number}"
    _call("init", str(folder / "data"), "--out", str(config), *options)
    stated = re.search(r"^ *format: (\S+)", config.read_text(encoding="utf-8"), re.MULTILINE)
    if stated is None or stated[1] != row.format:
        raise RuntimeError(f"init found {stated[1] if stated else 'no format'}, not {row.format}")
    _call("ingest", str(config), "--out", str(out))
    dataset = ImageDataset.open(str(out))
    found = {}
    for split in dataset.splits:
        for key, data in dataset.records(split):
            example = decode_example(data)
            found[os.path.basename(key)] = _annotations(example, dataset.manifest.classes)
    return found


def _call(*arguments: str) -> None:
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = shardwright(list(arguments))
    if code:
        lines = [line for line in output.getvalue().splitlines() if line.startswith("shardwright:")]
        raise RuntimeError(f"{arguments[0]} ended with {code}: {(lines or [output.getvalue()[-_LONGEST:]])[0]}")


def _annotations(example: Mapping[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    height, width = int(example["image/height"][0]), int(example["image/width"][0])
    masks = {}
    for name in classes:
        feature = example.get(f"image/segmentation/{name}/rle")
        if feature is not None and len(feature):
            flat = np.zeros(height * width, bool)
            for start, length in np.reshape(feature, (-1, 2)):
                flat[start : start + length] = True
            masks[name] = base64.b64encode(np.packbits(flat.reshape(width, height).T).tobytes()).decode()
    edges = [
        np.asarray(example.get(f"image/object/bbox/{edge}", []), float) * side
        for edge, side in (("xmin", width), ("ymin", height), ("xmax", width), ("ymax", height))
    ]
    names = [text.decode() for text in example.get("image/object/class/text", [])]
    boxes = [[name, *box] for name, box in zip(names, np.transpose(edges).tolist() if names else [], strict=True)]
    tags = [text.decode() for text in example.get("image/class/text", [])]
    return {"masks": masks, "boxes": boxes, "classes": tags}


def _differences(truth: Mapping[str, Any], found: Mapping[str, Any], part: str, apart: float) -> list[str]:
    if not any(one.get(part) for one in truth.values()):
        return ["the tool read nothing, so there is nothing to compare"]
    kinds: Counter[str] = Counter()
    for name, one in truth.items():
        if name not in found:
            kinds["images missing"] += 1
            continue
        ours, wanted = found[name][part], one[part]
        if part == "boxes":
            ours, wanted = sorted(ours), sorted(wanted)
            same = [box[0] for box in ours] == [box[0] for box in wanted] and (
                not ours or np.abs(_numbers(ours) - _numbers(wanted)).max() <= apart
            )
            kinds["images with other boxes"] += not same
        elif part == "classes":
            kinds["images with other classes"] += ours != wanted
        else:
            for label in sorted(set(ours) | set(wanted)):
                count = _apart(ours.get(label), wanted.get(label))
                kinds[f"pixels of {label}"] += count
    return [f"{count} {kind}" for kind, count in kinds.items() if count]


def _numbers(boxes: Sequence[Sequence[Any]]) -> npt.NDArray[np.float64]:
    return np.array([box[1:] for box in boxes], float)


def _apart(one: str | None, other: str | None) -> int:
    bits = [np.unpackbits(np.frombuffer(base64.b64decode(text or ""), np.uint8)) for text in (one, other)]
    if len(bits[0]) != len(bits[1]):
        return int(max(bits, key=len).sum())
    return int((bits[0] != bits[1]).sum())


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs all rows and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dir", type=Path, help="folder to work in, kept; by default a temporary one")
    parser.add_argument("--only", default="", help="only rows whose name contains this")
    parser.add_argument("--images", type=int, default=6, help="number of images; the default is 6")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(arguments)
    with contextlib.ExitStack() as stack:
        folder = (given.dir or Path(stack.enter_context(tempfile.TemporaryDirectory()))).resolve()
        make_scene(folder / "scene", given.images)
        rows = [row for row in ROWS if given.only in row.name]
        tools = {row.name: re.split(r":| reads", row.name)[0] for row in rows}
        pythons = environments(folder, sorted(set(tools.values())))
        results = {}
        for row in rows:
            python, why = pythons[tools[row.name]]
            place = folder / "rows" / re.sub(r"\W+", "_", row.name)
            outcome = f"left out: {why}" if why else compare(row, python, folder / "scene", place)
            results[row.name] = outcome or row.known or "identical"
            if not given.json:
                parts = ", ".join(row.options.values())
                print(f"| {row.name} | `{row.format}` | {parts} | {results[row.name]} |", flush=True)
        if given.json:
            print(json.dumps(results, indent=1))
    good = ("identical", _FROM_1)
    return int(any(result not in good and not result.startswith("left out") for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
