"""The published figures: `figures.json`, written by `--record`, and what the documentation shows of it.

A subject's figures are those of its last recorded run. The page of results, the charts and quotes on other pages are
made from the file; tests compare them.
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.figures import AT_LEAST, Figure

FILE = Path(__file__).with_name("figures.json")
PAGE = Path(__file__).parents[1] / "docs/trust/benchmarks.md"
# Figures of the subject `ingest` that have a separate table: how the names begin.
PARTS = (
    *(
        "10,000 RLE",
        "masks ",
        "probing",
        "100,000 hashes",
        "1,000,000 ",
        "the same, memory",
        "objects/s",
        "ten million",
        "verify",
    ),
    *("start-up", "ingest: shards"),
)
# Name of a figure -> what the page calls it.
WORDS: Mapping[str, str] = {
    "processor: notebook / ingest, four masks": "processor time: notebook, compared with the ingest of four masks",
    "processor: ingest, four masks / copying with fsync": "processor time: that ingest, compared with copying, `fsync`",
    "wall / processor: ingest, four masks": "wall time of that ingest, compared with its processor time",
    "processor: decoding / ingest, full": "processor time: decoding alone, compared with the decoding ingest",
    "ingest, header: notebook": "ingest, compared with the notebook",
    "ingest, header: copying": "ingest, compared with copying the files without `fsync`",
    "with four masks each: notebook": "ingest of four masks an image, compared with the notebook",
    "ingest: shards / input": "size of the shards, compared with the input",
    "verify, one core": "verify, on one core",
    "start-up to first record": "time to the first record",
    "ingest, full: notebook": "ingest that decodes, hashes and measures every image, compared with the notebook",
    "ingest, full: decoding alone": "… compared with decoding alone",
    "masks resized in runs: draw, sample, encode": "masks resized as runs, compared with drawing and sampling",
    "transform: notebook": "transform to a quarter of the size with four masks, compared with OpenCV on one thread",
    "transform: decode and encode": "… compared with decoding and encoding alone",
    "transform: shards": "… images",
    "loader / decoding alone, no masks": "loader without masks, compared with decoding alone",
    "loader / decoding alone, masks of 4 classes": "loader with masks of four classes, compared with decoding alone",
    "loader / decoding alone, float32": "loader with float32, compared with decoding alone",
    "loader / decoding alone, float32 made on the device": "… made on the device, which is not counted",
    "loader / decoding alone, in pairs with a label": "… compared with decoding alone in pairs with a label",
    "TensorFlow's shortest way to the same": "TensorFlow's shortest way without masks, compared with decoding alone",
    "plain notebook loader, float32": "a notebook's loader with float32, compared with decoding alone",
    "plain notebook loader, uint8": "a notebook's loader with uint8, compared with decoding alone",
    "the same, the other representation": "… masks as bytes, not as bits",
    "what the loader adds to an image, fast": "processor time that the loader adds to an image",
    "what the loader adds to an image, exact": "… with `order='exact'`",
    "the same with 16 reads of files in flight": "… with 16 concurrent reads of files",
    "shards / single files, warm local disk": "shards, compared with single files on a warm local disk",
    "loader: exact / fast": "images/s with `order='exact'`, compared with `fast`",
    "memory: 600 images with masks": "memory of an epoch of 600 images with masks",
    "memory: 100,000 tiny records": "memory of an epoch of 100,000 tiny records",
    "the same, memory": "… memory",
    "100,000 hashes as by brute force": "100,000 hashes clustered as by comparing each pair (1: yes)",
    "10,000 RLE rows read and merged": "10,000 run-length rows read and merged",
    "ingest, 200 small images": "the whole command for 200 small images",
    "report": "report of 100,000 images",
    "report: memory": "… memory",
    "masks drawn: pycocotools": "masks drawn, compared with pycocotools",
    "probing: four hashes of ImageHash": "four perceptual hashes, compared with ImageHash",
    "objects/s on S3 storage, 30 ms per request: concurrent / serial": "many requests of 30 ms to S3 at once",
    "objects/s on Google's storage, 30 ms per request: concurrent / serial": "… to Google's storage",
    "1% more on S3 storage, 30 ms a request: with reuse_from / full": "1 % more of 20,000 images on S3",
    "1% more on Google's storage, 30 ms a request: with reuse_from / full": "… on Google's storage",
    "resuming exact in the middle of 100,000 records": "continuing in the middle of 100,000 records",
    "memory: 2000 images with masks": "memory of an epoch of 2,000 images with masks",
    "shards / single files, 20 ms a request": "shards, compared with single files at 20 ms a request",
}
# Name of a loader in `make loaders` -> what the page calls it.
LOADERS: Mapping[str, str] = {
    "ours": "Shardwright, uint8",
    "ours_float32": "Shardwright, float32",
    "tfds_style": "the way of TFDS",
    "image_dataset_from_directory": "Keras' image_dataset_from_directory",
    "grain_threads": "Grain, ArrayRecord, threads",
    "grain_processes": "Grain, ArrayRecord, processes",
    "webdataset": "WebDataset",
    "webdataset_processes": "WebDataset, processes",
}


class Subject(NamedTuple):
    """The last recorded run of a subject.

    Attributes:
        date: day of the run.
        machine: processor, cores and system.
        rows: its figures, or the rows of `loaders`.
    """

    date: str
    machine: str
    rows: Sequence[Mapping[str, Any]]


def load(file: Path = FILE) -> dict[str, Subject]:
    """Returns all subjects of the file."""
    return {name: Subject(**subject) for name, subject in json.loads(file.read_text(encoding="utf-8")).items()}


def record(subject: str, rows: Iterable[Mapping[str, Any]], file: Path = FILE) -> None:
    """Replaces the figures of a subject with those of a run that has just ended on this machine."""
    subjects = load(file)
    day, here, all_rows = datetime.now(timezone.utc).date().isoformat(), machine(), list(rows)
    parts = [row for row in all_rows if subject == "ingest" and row["name"].startswith(PARTS)]
    subjects[subject] = Subject(day, here, [row for row in all_rows if row not in parts])
    if parts:
        subjects["parts"] = Subject(day, here, parts)
    text = json.dumps({name: subject._asdict() for name, subject in subjects.items()}, indent=1, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8")


def machine() -> str:
    """Returns the processor, its cores and the system in words."""
    try:
        name = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
        system = re.search(r'^PRETTY_NAME="(.*)"$', Path("/etc/os-release").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        name = system = None
    processor = name[1] if name else platform.processor() or platform.machine()
    return f"{os.cpu_count()} cores of {processor}, {system[1] if system else platform.system()}"


def table(subject: Subject) -> str:
    """Returns the table of a subject in Markdown, with a line about the run."""
    lines = [f"Measured on {subject.date}: {subject.machine}.", "", "| what | figure | target |", "|---|---|---|"]
    for row in subject.rows:
        figure = Figure(**row)
        if figure.value is not None:
            lines.append(f"| {WORDS.get(figure.name, figure.name)} | {shown(figure)} | {_target(figure)} |")
    return "\n".join(lines)


def loaders_table(subject: Subject) -> str:
    """Returns the table of other loaders: ours relative to each, by wall and by processor time."""
    lines = [f"Measured on {subject.date}: {subject.machine}.", ""]
    lines += ["| loader | images/s | Shardwright / this loader | by processor time |", "|---|---|---|---|"]
    for row in subject.rows:
        share = f"{row['share']:.2f}" + (", **faster than Shardwright**" if row["share"] < 1 else "")
        lines.append(f"| {LOADERS[row['name']]} | {row['rate']:,.0f} | {share} | {row['processor']:.2f} |")
    return "\n".join(lines)


def shown(figure: Figure) -> str:
    """Returns a figure with its unit."""
    return f"{_number(figure.value)}{_unit(figure.unit)}"


def _number(value: float | None) -> str:
    assert value is not None
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.4g}" if 1 <= abs(value) < 1.1 else f"{value:.3g}"


def _unit(unit: str) -> str:
    return {"x": "x", "1/s": " images/s", "": ""}.get(unit, f" {unit}")


def _target(figure: Figure) -> str:
    if figure.target is None:
        return ""
    least = figure.relation == AT_LEAST
    text = f"{'' if least else 'at most '}{figure.target:,g}{_unit(figure.unit)}"
    missed = f", **{'below' if least else 'above'} the target**" if figure.verdict == "short" else ""
    return text + missed


def charts() -> dict[str, dict[str, Any]]:
    """Returns the bars of the charts: title, and label with value."""
    subjects = load()
    ratios = {row["name"]: float(_number(row["value"])) for row in subjects["ingest"].rows}
    bars = [
        ("a notebook", 1.0),
        ("ingest", ratios["ingest, header: notebook"]),
        ("ingest, four masks an image", ratios["with four masks each: notebook"]),
        ("ingest, every image decoded", ratios["ingest, full: notebook"]),
    ]
    made = {"ingest": {"title": "Images in the time in which a notebook writes one", "bars": bars}}
    for name, dtype in (("loader", "uint8"), ("loader-float32", "float32")):
        rows = [row for row in subjects["loaders"].rows if row["dtype"] == dtype]
        made[name] = {
            "title": f"Images per second of loaders that return {dtype}",
            "bars": [(LOADERS[row["name"]], round(row["rate"])) for row in rows],
        }
    return made


def page(text: str) -> str:
    """Returns the page of results with the tables of the recorded runs."""
    for name, subject in load().items():
        made = loaders_table(subject) if name == "loaders" else table(subject)
        escaped = made.replace("\\", r"\\")
        text, count = re.subn(
            rf"(<!-- generated: {name} -->\n).*?(<!-- end: {name} -->)",
            rf"\g<1>{escaped}\n\g<2>",
            text,
            flags=re.DOTALL,
        )
        assert count == 1, f"{name} has no place on the page"
    return text
