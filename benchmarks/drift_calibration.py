"""False alarms and power of the drift tests, by resampling: the table of `docs/how-to/drift.md#how-drift-is-measured`.

`python -m benchmarks.drift_calibration [FOLDER]`, where the folder holds images, in folders or not; without one
the images are drawn (`shardwright.sample`). Every image is measured as it is and after each change; a resample draws
the reference and, of other images, the current sample from these rows.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFilter

from shardwright.config.evaluation import ALPHA
from shardwright.drift.compare import compare
from shardwright.drift.measures import measure_image
from shardwright.drift.sampling import Sample
from shardwright.images.read_header import read_header
from shardwright.running.progress import progress
from shardwright.sample import write_sample
from shardwright.storage import list_inputs, read_bytes

_MOST_PIXELS = 200_000_000
_BEFORE, _AFTER = 95, 60
# Shares of five classes, and those after a twentieth of all images has moved from the first to the last.
_SHARES = (0.36, 0.24, 0.18, 0.14, 0.08)
_SHIFTED = (0.31, 0.24, 0.18, 0.14, 0.13)
_CAMERA_SHARE = 0.05

Change = Callable[[Image.Image], bytes]


class Line(NamedTuple):
    """A row of the table.

    Attributes:
        change: what was done to the current images.
        alarms: share of the resamples in which anything spoke.
        measures: measure -> share in which it spoke, the most frequent first.
    """

    change: str
    alarms: float
    measures: dict[str, float]


def _encoded(picture: Image.Image, quality: int = _BEFORE) -> bytes:
    file = io.BytesIO()
    picture.save(file, "jpeg", quality=quality)
    return file.getvalue()


def _brighter(picture: Image.Image) -> bytes:
    return _encoded(picture.point([min(255, round(level * 1.1)) for level in range(256)] * len(picture.getbands())))


def _other_camera(picture: Image.Image) -> bytes:
    return _encoded(picture.resize((round(picture.width * 1.1), round(picture.height * 1.1)), Image.Resampling.BICUBIC))


CHANGES: dict[str, Change] = {
    "none": _encoded,
    "brightness +10 %": _brighter,
    "blur of sigma 1": lambda picture: _encoded(picture.filter(ImageFilter.GaussianBlur(1))),
    "JPEG quality 95 -> 60": lambda picture: _encoded(picture, _AFTER),
    "another camera": _other_camera,
}
_CLASS_SHIFT = "5 % of the images change their class"
_FEW = "5 % of the images from another camera"


def measure_all(files: list[bytes], change: Change) -> Sample:
    """Measures pictures after a change, without classes."""
    numbers, embeddings, sizes = [], [], []
    for data in files:
        with Image.open(io.BytesIO(data)) as picture:
            changed = change(picture.convert("RGB"))
        header = read_header(changed, max_pixels=_MOST_PIXELS)
        row = measure_image(changed, header)
        numbers.append(row.numbers)
        embeddings.append(row.embedding)
        sizes.append((header.height, header.width))
    count = len(files)
    kinds: dict[str, list[Hashable]] = {"format": ["jpeg"] * count, "size": [*sizes], "channels": [3] * count}
    keys = [str(number) for number in range(count)]
    return Sample("images", count, keys, np.stack(numbers), np.stack(embeddings), kinds)


def table(
    files: list[bytes],
    *,
    images: int,
    resamples: int,
    power_resamples: int,
    alpha: float = ALPHA,
    served: bool = False,
    quiet: bool = False,
) -> list[Line]:
    """Makes the table.

    Args:
        files: images, as many as there are; every resample draws from them with repetition.
        images: of each sample.
        resamples: without a change.
        power_resamples: for each change.
        alpha: the bound on false alarms that is asked for.
        served: the current images have no classes, as those in a folder that a model was asked about.
        quiet: show no progress.
    """
    with progress(len(CHANGES), "measuring", quiet=quiet) as shown:
        rows = {}
        for name, change in CHANGES.items():
            rows[name] = measure_all(files, change)
            shown.advance()
    lines = []
    cases = [*CHANGES, *(() if served else (_CLASS_SHIFT,)), _FEW]
    with progress(resamples + (len(cases) - 1) * power_resamples, "resampling", quiet=quiet) as shown:
        for place, name in enumerate(cases):
            spoke: dict[str, int] = {}
            alarms = 0
            times = power_resamples if place else resamples
            for number in range(times):
                random = np.random.default_rng([place, number])
                reference = _drawn(rows["none"], images, _SHARES, random)
                current = _current(name, rows, images, random)
                if served:
                    current.labels = []
                found = compare(reference, current, alpha=alpha, seed=number).drifted
                alarms += bool(found)
                for finding in found:
                    spoke[finding.measure] = spoke.get(finding.measure, 0) + 1
                shown.advance()
            order = sorted(spoke.items(), key=lambda item: (-item[1], item[0]))
            lines.append(Line(name, alarms / times, {measure: n / times for measure, n in order}))
    return lines


def _current(name: str, rows: dict[str, Sample], images: int, random: np.random.Generator) -> Sample:
    if name == _CLASS_SHIFT:
        return _drawn(rows["none"], images, _SHIFTED, random)
    if name == _FEW:
        sample = _drawn(rows["none"], images, _SHARES, random)
        other = _drawn(rows["another camera"], images, _SHARES, random)
        few = random.random(images) < _CAMERA_SHARE
        sample.numbers = np.where(few[:, None], other.numbers, sample.numbers)
        sample.embeddings = np.where(few[:, None], other.embeddings, sample.embeddings)
        sizes = zip(few.tolist(), sample.kinds["size"], other.kinds["size"], strict=True)
        sample.kinds["size"] = [theirs if foreign else own for foreign, own, theirs in sizes]
        return sample
    return _drawn(rows[name], images, _SHARES, random)


def _drawn(rows: Sample, images: int, shares: tuple[float, ...], random: np.random.Generator) -> Sample:
    chosen: npt.NDArray[np.int64] = random.integers(0, len(rows), images)
    sample = rows.select(chosen)
    sample.labels = [(str(label),) for label in random.choice(len(shares), images, p=shares).tolist()]
    return sample


def _files(folder: str | None, images: int) -> Iterator[bytes]:
    if folder is None:
        with tempfile.TemporaryDirectory() as scratch:
            drawn = write_sample(str(Path(scratch, "drawn")), images=images, height=256, width=384)
            yield from (file.read_bytes() for file in sorted(Path(drawn.images).iterdir()))
        return
    listing = list_inputs(str(Path(folder).absolute()))
    yield from (read_bytes(listing.path(number)) for number in range(min(images, len(listing.keys))))


def main() -> None:
    """Prints the table as text, or as JSON."""
    parser = argparse.ArgumentParser(description="False alarms and power of the drift tests.")
    parser.add_argument("folder", nargs="?", help="images; drawn ones by default")
    parser.add_argument("--pool", type=int, default=1000, help="images that are measured (default 1000)")
    parser.add_argument("--images", type=int, default=2000, help="of each sample (default 2000)")
    parser.add_argument("--resamples", type=int, default=500, help="without a change (default 500)")
    parser.add_argument("--power-resamples", type=int, default=100, help="for each change (default 100)")
    parser.add_argument("--served", action="store_true", help="the other side is a folder of images without classes")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    lines = table(
        list(_files(options.folder, options.pool)),
        images=options.images,
        resamples=options.resamples,
        power_resamples=options.power_resamples,
        served=options.served,
    )
    if options.json:
        print(json.dumps([line._asdict() for line in lines], indent=1))
        return
    print("| change | alarms | what spoke |\n|---|---|---|")
    for line in lines:
        spoke = ", ".join(f"{name} {share:.0%}" for name, share in list(line.measures.items())[:5]) or "–"
        print(f"| {line.change} | {line.alarms:.1%} | {spoke} |")


if __name__ == "__main__":
    main()
