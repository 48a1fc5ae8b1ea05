"""Bombs: files of a few megabytes, or fewer, whose reading took gigabytes or minutes: at least one for every format.

A bomb is a folder with `c.yaml` and the folder `set`. `size` is the size of the attack, in the unit of the bomb: the
full one takes far more than `guarded_call.py` allows where nothing limits it, the small one still more than a budget.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from PIL import Image

from shardwright.tfrecords.encode import encode_example

Input = dict[str, Any]


class Bomb(NamedTuple):
    """A way to make reading cost more than the file is worth.

    Attributes:
        format: which format it attacks: a key of `formats_of_the_code` (`test_bombs.py`).
        make: writes the folder `set`, and returns `input` of the configuration.
        small: a size for every run of the tests.
        full: a size for the slow tests.
        task: of the configuration.
        said: what the message must contain, or empty where the input is harmless.
        calls: further commands; `{}` is the folder.
    """

    format: str
    make: Callable[[Path, int], Input]
    small: int
    full: int
    task: str = "classification"
    said: str = ""
    calls: tuple[tuple[str, ...], ...] = ()


SEGMENTATION = {"task": "segmentation"}
BOMBS: dict[str, Bomb] = {}


def bomb(attacked: str, small: int, full: int, **more: Any) -> Callable[[Callable[..., Input]], Callable[..., Input]]:
    def add(make: Callable[..., Input]) -> Callable[..., Input]:
        BOMBS[make.__name__] = Bomb(attacked, make, small, full, **more)
        return make

    return add


def write(name: str, folder: Path, size: int) -> Bomb:
    """Writes a bomb, with its configuration."""
    found = BOMBS[name]
    (folder / "set").mkdir(parents=True)
    given = found.make(folder / "set", size)
    if given is None:
        return found
    converted = {"unsupported_formats": "png"}
    raw = {"task": found.task, "input": {"images": "set", **given}, "images": converted, "shards": {"count": 1}}
    (folder / "c.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    return found


def picture(value: int = 0, side: int = 8, form: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.full((side, side, 3), value, np.uint8)).save(out, form, **options)
    return out.getvalue()


def images(folder: Path, count: int = 2) -> None:
    for i in range(count):
        (folder / f"{i}.png").write_bytes(picture(i))


def repeat(file: Path, start: bytes, body: bytes, times: int, end: bytes) -> None:
    with file.open("wb") as out:
        out.write(start)
        for left in range(times, 0, -100_000):
            out.write(body * min(left, 100_000))
        out.write(end)


def example(**features: Any) -> bytes:
    return encode_example({"image/encoded": picture(), "image/class/text": b"a", **features})


def in_file(folder: Path, name: str, form: str, **more: Any) -> Input:
    images(folder)
    return {"images": "set/*.png", "labels": {"path": f"set/{name}", "format": form, **more}}
