"""Memory of an ingest: ten times as many images with masks take less than a tenth more of it."""

import io
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from shardwright.dataset.reader import ImageDataset

pytestmark = pytest.mark.soak

CLASSES = ("Fish", "Flower", "Gravel", "Sugar")
HEIGHT, WIDTH = 64, 96
RUNS = 500
MOST_BYTES = 1.5e9

# Workers are no children of the process that asks them, so they are looked for while they live.
INGEST = """
import json, os, sys, threading
from pathlib import Path
from shardwright.running.processes import peak_memory
from shardwright.config import parse_config
from shardwright.ingest import ingest
peaks, done = {}, threading.Event()

def below(process):
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        for child in task.read_text().split():
            yield child
            yield from below(child)

def watch():
    while not done.wait(0.1):
        try:
            for child in below(os.getpid()):
                peaks[child] = peak_memory(child)
        except (OSError, AssertionError):
            pass  # It has just ended.

if __name__ == "__main__":
    threading.Thread(target=watch).start()
    try:
        ingest(parse_config(json.loads(sys.argv[1]), base="/"), sys.argv[2], workers=2, quiet=True)
    finally:
        done.set()
    assert len(peaks) >= 3, peaks
    print(max(peak_memory(), *peaks.values()))
"""


def masks(draw):
    """The text of a mask of `RUNS` runs; starts from 1."""
    starts = sorted(draw.sample(range(1, HEIGHT * WIDTH // 3), RUNS))
    return " ".join(f"{3 * start} {draw.randint(1, 2)}" for start in starts)


def write_input(root, images):
    """Many small images, no two the same, and four masks for each."""
    draw = random.Random(images)
    texts = [masks(draw) for _ in range(64)]
    encoded = io.BytesIO()
    Image.new("RGB", (WIDTH, HEIGHT), (90, 120, 150)).save(encoded, "JPEG")
    data = encoded.getvalue()
    (root / "images").mkdir(parents=True)
    with (root / "labels.csv").open("w") as table:
        table.write("Image_Label,EncodedPixels\n")
        for number in range(images):
            comment = b"\xff\xfe\x00\x0a%08d" % number
            (root / "images" / f"{number:08d}.jpg").write_bytes(data[:2] + comment + data[2:])
            for index, name in enumerate(CLASSES):
                table.write(f"{number:08d}.jpg_{name},{texts[(number * 5 + index) % len(texts)]}\n")
    labels = {"path": str(root / "labels.csv")}
    return {"task": "segmentation", "input": {"images": str(root / "images"), "labels": labels}}


def peak(root, images):
    """Bytes that the largest process of an ingest held at once."""
    raw = write_input(root, images)
    command = [sys.executable, "-c", INGEST, json.dumps(raw), str(root / "out")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    assert ImageDataset.open(root / "out").manifest.totals["written"] == images
    return int(done.stdout)


def test_memory_hardly_grows_with_the_number_of_images(tmp_path: Path):
    few, many = peak(tmp_path / "few", 10_000), peak(tmp_path / "many", 100_000)
    print(f"10,000 images {few / 1e6:.0f} MB, 100,000 images {many / 1e6:.0f} MB")
    assert max(few, many) < MOST_BYTES
    assert many < 1.1 * few
