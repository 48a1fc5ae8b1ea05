"""How fast photographs become what is trained on, beside the usual notebook's way and beside nothing but pixels."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from shardwright.bench.figures import AT_LEAST, Figure, seconds
from shardwright.bench.photographs import HEIGHT, WIDTH, photographs, warm
from shardwright.config import Config, parse_config
from shardwright.dataset import Dataset
from shardwright.ingest import ingest

RATIO = 4
_THREADS = 2
_REPEATS = 5


@dataclass(frozen=True)
class Methods:
    """What is measured.

    Attributes:
        notebook: one thread: read, decode, resize, encode each of some files; height and width of the output.
        notebook_name: what does it.
        pixels_only: so many threads: decode at a ratio and encode images that are in memory, nothing else.
        shards: writes the transformed shards of a dataset, with a configuration, into a folder.
        transform: the whole of the component likewise, analyzers and graph included.
    """

    notebook: Callable[[Sequence[str], tuple[int, int]], None]
    notebook_name: str
    pixels_only: Callable[[Sequence[bytes], int, int], None]
    shards: Callable[[Config, str, str], int]
    transform: Callable[[Config, str, str], None]


def transform_figures(
    folder: Path, images: int, methods: Methods, size: tuple[int, int] = (HEIGHT, WIDTH), repeats: int = _REPEATS
) -> list[Figure]:
    """Measures the transform of photographs with four masks each to a quarter of their size.

    All take turns, so that what else the machine does meets all alike; of each the quickest turn counts.

    Args:
        folder: where images are kept between calls and outputs are written.
        images: number of photographs.
        methods: what is measured.
        size: height and width of the photographs.
        repeats: turns of each.
    """
    height, width = size
    source = photographs(folder, images, height=height, width=width)
    warm(source.paths)
    small = (height // RATIO, width // RATIO)
    config = parse_config(
        {
            "input": {"images": source.images, "labels": {"path": source.masks}},
            "split": {"train": 1.0},
            "evaluator": {"split": "train"},
            "transform": {"size": list(small)},
        },
        base="/",
    )
    dataset = folder / f"ingested-{images}-{height}x{width}"
    ingest(config, dataset, quiet=True)
    encoded = [Path(path).read_bytes() for path in source.paths]
    out = folder / "transformed"
    works: Sequence[Callable[[], object]] = (
        lambda: methods.shards(config, str(dataset), str(out)),
        lambda: methods.notebook(source.paths, small),
        lambda: methods.pixels_only(encoded, RATIO, _THREADS),
    )
    best = [float("inf")] * len(works)
    for _ in range(repeats):
        for number, work in enumerate(works):
            shutil.rmtree(out, ignore_errors=True)
            best[number] = min(best[number], seconds(work))
    shutil.rmtree(out, ignore_errors=True)
    whole = seconds(lambda: methods.transform(config, str(dataset), str(out)))
    shutil.rmtree(out, ignore_errors=True)
    ours, theirs, pixels = (images / taken for taken in best)
    records = sum(shard.records for shard in Dataset.open(dataset).manifest.shards)
    return [
        Figure(
            "transform: notebook", ours / theirs, "x", AT_LEAST, 2.8, f"{methods.notebook_name}, {theirs:.0f} images/s"
        ),
        Figure(
            "transform: decode and encode",
            ours / pixels,
            "x",
            AT_LEAST,
            0.75,
            f"{_THREADS} threads, {pixels:.0f} images/s",
        ),
        Figure("transform: shards", ours, "1/s", note=f"{records} photographs of {height}x{width}, four masks each"),
        Figure("transform: graph and statistics", whole - best[0], "s", note="once a run, start of Beam included"),
    ]
