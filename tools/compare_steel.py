#!/usr/bin/env python3
"""Trains on the steel defects by `shardwright run`, and a notebook's plain U-Net with the same CPU time, and compares.

    .venv/bin/python tools/compare_steel.py DATA OUT [--epochs N]

DATA is the folder of the steel set (`images`, `image_label.csv`); OUT gets the run and `comparison.json`. Both learn
from the images of the same split at the same size and are measured on the same held-out ones by the same Dice. The
notebook's way: a U-Net of 16 to 256 channels at full resolution, images over 255, binary cross-entropy, Adam at 1e-3,
threshold 0.5; it stops when it has used the CPU seconds of all that `shardwright run` did. Our settings are tuned for
this set, and the rival is large for the time: `docs/trust/benchmarks.md` says what the defaults give. Exit code 0: ours
has a mean Dice of at least 0.70, took at most ten minutes, and is not worse. Fewer epochs than 16 are for trying the
script.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

CONFIG: dict[str, Any] = {
    "name": "steel",
    "task": "segmentation",
    "input": {"classes": ["Inclusion", "Patches", "Scratches"]},
    "split": {"ratios": {"train": 0.7, "eval": 0.1, "test": 0.2}},
    "transform": {"size": [128, 128], "encoding": "png"},
    "loader": {"augment": ["flip_left_right", "flip_up_down"]},
    "trainer": {"epochs": 16, "batch_size": 8, "learning_rate": 3e-3},
    # Judged here: a run that is not good enough is to be compared, too.
    "evaluator": {"min_dice": 0.0, "min_images": 1, "min_per_class": 0, "beat_trivial": False},
}
CHANNELS = (16, 32, 64, 128, 256)
BATCH = 16
LEAST_DICE, MOST_SECONDS = 0.70, 600


def run_ours(data: Path, out: Path, epochs: int) -> dict[str, Any]:
    """Runs the pipeline; returns its figures, and the place of its dataset."""
    source = {"images": str(data / "images"), "labels": {"path": str(data / "image_label.csv")}}
    trainer = {**CONFIG["trainer"], "epochs": epochs}
    config = {**CONFIG, "input": {**CONFIG["input"], **source}, "trainer": trainer}
    out.mkdir(parents=True, exist_ok=True)
    (out / "steel.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [
        sys.executable,
        "-m",
        "shardwright.pipelines.cli",
        "run",
        str(out / "steel.yaml"),
        "--root",
        str(out / "run"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    (out / "ours.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    if done.returncode:
        sys.exit(f"shardwright run ended with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    figures = {name: float(value) for name, value in re.findall(r"^(\w+(?:/\w+)?) +(\d\.\d{4})", done.stdout, re.M)}
    places = dict(re.findall(r"^(transformed|TensorBoard) +(\S+)$", done.stdout, re.M))
    history = json.loads(Path(places["TensorBoard"], "history.json").read_text(encoding="utf-8"))
    return {
        "cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "seconds": time.monotonic() - started,
        "figures": figures,
        "curve": [row["mean_dice"] for row in history["evaluation"]],
        "parameters": history["parameters"],
        "dataset": places["transformed"],
    }


def run_notebook(dataset: Path, cpu_seconds: float) -> dict[str, Any]:
    """Trains the plain U-Net until the CPU time is used, and measures it on the held-out split."""
    os.environ |= {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}
    import keras
    import numpy as np
    from PIL import Image

    from shardwright.dataset.reader import ImageDataset
    from shardwright.evaluation.metrics import MaskSums
    from shardwright.masks import rle
    from shardwright.tfrecords.records import decode_example

    opened = ImageDataset.open(dataset)
    classes = opened.manifest.classes

    def arrays(split: str) -> tuple[Any, Any]:
        images, masks = [], []
        for _, record in opened.records(split):
            example: Any = decode_example(record)
            with Image.open(io.BytesIO(example["image/encoded"][0])) as image:
                images.append(np.asarray(image.convert("RGB"), np.float32) / 255)
            height, width = images[-1].shape[:2]
            runs = [rle.from_flat(example[f"image/segmentation/{name}/rle"]) for name in classes]
            masks.append(np.stack([rle.draw(r, height, width) for r in runs], -1).astype(np.float32))
        return np.stack(images), np.stack(masks)

    class Budget(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.model.stop_training = time.process_time() - started > cpu_seconds

    keras.utils.set_random_seed(1)
    model = plain_unet(opened.manifest.recipe["size"], len(classes))
    model.compile(keras.optimizers.Adam(1e-3), "binary_crossentropy")
    started, wall = time.process_time(), time.monotonic()
    images, masks = arrays("train")
    history = model.fit(images, masks, batch_size=BATCH, epochs=1000, verbose=0, callbacks=[Budget()])
    used, took = time.process_time() - started, time.monotonic() - wall
    images, masks = arrays("test")
    predicted = model.predict(images, batch_size=BATCH, verbose=0) >= 0.5
    return {
        "cpu_seconds": used,
        "seconds": took,
        "figures": MaskSums.of_masks(predicted, masks).report(classes),
        "losses": history.history["loss"],
        "parameters": model.count_params(),
    }


def plain_unet(size: list[int], classes: int) -> Any:
    """Builds the U-Net of the tutorials."""
    import keras
    from keras import layers

    def block(x: Any, channels: int) -> Any:
        for _ in range(2):
            x = layers.Conv2D(channels, 3, padding="same", activation="relu", kernel_initializer="he_normal")(x)
        return x

    inputs = keras.Input((*size, 3))
    x, skips = inputs, []
    for channels in CHANNELS[:-1]:
        x = block(x, channels)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = block(x, CHANNELS[-1])
    for channels, skip in zip(reversed(CHANNELS[:-1]), reversed(skips), strict=True):
        x = layers.Conv2DTranspose(channels, 2, strides=2, padding="same")(x)
        x = block(layers.Concatenate()([x, skip]), channels)
    return keras.Model(inputs, layers.Conv2D(classes, 1, activation="sigmoid")(x))


def main() -> int:
    """Runs both; 0 when ours is good enough and at least as good."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--epochs", type=int, default=CONFIG["trainer"]["epochs"], metavar="N")
    options = parser.parse_args()
    ours = run_ours(options.data.absolute(), options.out.absolute(), options.epochs)
    curve = " ".join(f"{dice:.3f}" for dice in ours["curve"])
    print(f"ours: mean_dice on eval by epoch: {curve}", flush=True)
    notebook = run_notebook(Path(ours["dataset"]), ours["cpu_seconds"])
    rows = {"ours": ours, "notebook": notebook}
    reached = {name: row["figures"]["mean_dice"] for name, row in rows.items()}
    checks = {
        f"mean_dice at least {LEAST_DICE:.2f}": reached["ours"] >= LEAST_DICE,
        f"at most {MOST_SECONDS} s": ours["seconds"] <= MOST_SECONDS,
        "no worse than the notebook": reached["ours"] >= reached["notebook"],
    }
    text = json.dumps({**rows, "checks": checks}, indent=1) + "\n"
    (options.out / "comparison.json").write_text(text, encoding="utf-8")
    for name, row in rows.items():
        spent = f"{row['cpu_seconds']:.0f} CPU s, {row['seconds']:.0f} s"
        print(f"{name:9} mean_dice {reached[name]:.4f}, {spent}, {row['parameters']} parameters")
    for name, holds in checks.items():
        print(f"{'ok' if holds else 'SHORT':9} {name}")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
