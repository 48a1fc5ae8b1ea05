"""Measures how many planted annotation errors a review shows first: the table of `docs/tutorials/review-labels.md`.

    python -m benchmarks.planted_labels --task segmentation --errors shifted --seeds 1 2 3
    python -m benchmarks.planted_labels --task classification --folder flowers --images 300

The images are drawn, or those of class folders. A twentieth of the annotations is made wrong: another class, masks that
are shifted by a fifth to a third of the image, or masks of another image. Models of folds, as `shardwright review
--folds` trains them, predict the images that they have not seen. Printed is the share of the planted errors within the
first tenth: of the review's own ranking, of the loss alone, and of chance; for classes also how often these models name
the right class, and the share that an oracle with that accuracy is expected to find: it knows which of their answers
are right, puts the errors among those images first, and the others in the order of chance.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shardwright import make_dataset
from shardwright.components.predictor.exported_model import open_model
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError
from shardwright.masks.rle import encode, to_pairs
from shardwright.pipelines.reviewing.answers import Annotated, Answer, annotations_of, answers_of
from shardwright.pipelines.reviewing.folds import fold_models
from shardwright.review.confident_learning import doubt_labels
from shardwright.review.mask_doubts import doubt_masks
from shardwright.sample.cloud_outlines import KINDS
from shardwright.sample.scene import draw_masks, draw_picture, encode_jpeg

_WRONG, _FIRST = 0.05, 0.1
_HEIGHT, _WIDTH = 64, 96
_LEAST = 1e-7
_SHIFTED, _SWAPPED = "shifted", "swapped"


class Planted(NamedTuple):
    """A dataset with errors, the keys of the wrong images, and what is right by key: names of classes, or masks."""

    dataset: ImageDataset
    wrong: frozenset[str]
    right: dict[str, Any]


class Shares(NamedTuple):
    """Shares of the errors within the first tenth, and of the images whose right class the models name."""

    review: float
    loss: float
    oracle: float = float("nan")
    accuracy: float = float("nan")

    def __str__(self) -> str:
        found = f"review {self.review:.2f}, loss alone {self.loss:.2f}, chance {_FIRST:.2f}"
        return found if np.isnan(self.oracle) else f"{found}, oracle {self.oracle:.2f}, accuracy {self.accuracy:.2f}"


def plant(folder: Path, task: str, errors: str, images: int, seed: int, classes: Path | None) -> Planted:
    """Makes a dataset with wrong annotations; all images are in `train`."""
    random = np.random.default_rng(seed)
    make = _class_folders(folder, classes, images, random) if classes else _drawn(folder, task, images, seed)
    keys = sorted(make)
    wrong = random.choice(len(keys), max(2, round(_WRONG * len(keys))), replace=False)
    told = dict(make)
    for place, number in enumerate(wrong):
        key, other = keys[number], keys[wrong[(place + 1) % len(wrong)]]
        if task == "classification":
            told[key] = str(random.choice(sorted(set(make.values()) - {make[key]})))
        elif errors == _SWAPPED:
            told[key] = make[other]
        else:
            by = [int(random.uniform(0.2, 1 / 3) * size) for size in (_HEIGHT, _WIDTH)]
            told[key] = [np.roll(mask, by, (0, 1)) for mask in make[key]]
    labels = _write_labels(folder / "labels.csv", told, task)
    given = {"images": str(folder / "images"), "labels": {"path": labels}}
    make_dataset({"task": task, "input": given, "split": {"ratios": {"train": 1.0}}}, folder / "dataset")
    return Planted(ImageDataset.open(folder / "dataset"), frozenset(keys[number] for number in wrong), make)


def _drawn(folder: Path, task: str, images: int, seed: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    (folder / "images").mkdir()
    for index in range(images):
        masks = draw_masks(seed, index, _HEIGHT, _WIDTH)
        if task == "classification":
            present = [number for number, mask in enumerate(masks) if mask.any()] or [0]
            kept = present[index % len(present)]
            masks = [mask if number == kept else np.zeros_like(mask) for number, mask in enumerate(masks)]
        key = f"{index:04d}.jpg"
        (folder / "images" / key).write_bytes(encode_jpeg(draw_picture(seed, index, masks)))
        found[key] = KINDS[kept] if task == "classification" else masks
    return found


def _class_folders(folder: Path, classes: Path, images: int, random: np.random.Generator) -> dict[str, Any]:
    files = sorted(file for file in classes.glob("*/*") if file.is_file())
    (folder / "images").mkdir()
    found = {}
    for number in random.choice(len(files), min(images, len(files)), replace=False):
        file = files[number]
        key = f"{number:05d}{file.suffix}"
        shutil.copyfile(file, folder / "images" / key)
        found[key] = file.parent.name
    return found


def _write_labels(file: Path, told: dict[str, Any], task: str) -> str:
    with file.open("w", encoding="utf-8", newline="") as opened:
        table = csv.writer(opened)
        if task == "classification":
            table.writerow(("image", "label"))
            table.writerows(told.items())
        else:
            table.writerow(("Image_Label", "EncodedPixels"))
            for key, masks in told.items():
                table.writerows(
                    (f"{key}_{kind}", to_pairs(encode(mask))) for kind, mask in zip(KINDS, masks, strict=True)
                )
    return str(file)


def ranked_first(planted: Planted, folder: Path, folds: int, options: dict[str, Any]) -> Shares:
    """Returns the shares of a review's ranking, of the loss alone, and of an oracle."""
    answers: list[Answer] = []
    annotated: dict[str, Annotated] = {}
    for place, source in fold_models(planted.dataset, folder, folds, None, options):
        annotated |= annotations_of(source)
        answers += [
            one for one in answers_of(open_model(place), source, annotated=annotated) if isinstance(one, Answer)
        ]
    oracle = accuracy = float("nan")  # Masks are not right or wrong.
    if answers[0].differences:
        order, _ = doubt_masks([one.differences for one in answers])
        loss = np.array([sum(part.wrong for part in one.differences) for one in answers])
    else:
        labels = [annotated[one.key].labels[0] for one in answers]
        given = np.stack([one.probabilities for one in answers])
        order = doubt_labels(given, labels).order
        loss = -np.log(np.maximum(given[np.arange(len(labels)), labels], _LEAST))
        classes = planted.dataset.manifest.classes
        accuracy = float(np.mean([classes[one.probabilities.argmax()] == planted.right[one.key] for one in answers]))
        sure = accuracy * _WRONG
        oracle = accuracy + (1 - accuracy) * (_FIRST - sure) / (1 - sure)
    keys = [one.key for one in answers]
    by_loss = _found(np.argsort(-loss, kind="stable"), keys, planted.wrong)
    return Shares(_found(order, keys, planted.wrong), by_loss, oracle, accuracy)


def _found(order: npt.NDArray[Any], keys: Sequence[str], wrong: frozenset[str]) -> float:
    first = {keys[place] for place in order[: round(_FIRST * len(keys))]}
    return len(first & wrong) / len(wrong)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a row for each seed, and their mean."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planted_labels", description=__doc__)
    parser.add_argument("--task", choices=("classification", "segmentation"), default="segmentation")
    parser.add_argument("--errors", choices=(_SHIFTED, _SWAPPED), default=_SHIFTED)
    parser.add_argument("--folder", type=Path, help="class folders (default: images are drawn)")
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], metavar="N")
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=12)
    wanted = parser.parse_args(arguments)
    if wanted.folder is not None and wanted.task != "classification":
        raise UsageError("--folder: class folders have no masks. Add --task classification.")
    trainer = {"epochs": wanted.epochs, "batch_size": 8, "base_filters": 8, "learning_rate": 3e-3}
    options = {"transform": {"size": [_HEIGHT, _WIDTH]}, "trainer": trainer}
    rows = []
    for seed in wanted.seeds:
        with tempfile.TemporaryDirectory(prefix="planted-labels-") as scratch:
            folder = Path(scratch)
            planted = plant(folder, wanted.task, wanted.errors, wanted.images, seed, wanted.folder)
            rows.append(ranked_first(planted, folder / "folds", wanted.folds, options))
        print(f"seed {seed}: {rows[-1]}", flush=True)
    print(f"mean: {Shares(*np.mean(rows, 0))}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
