"""Draws the pictures of the documentation into docs/pictures: `.venv/bin/python tools/pictures.py [--drawings]`.

Drawings (SVG) are made from the code, from `benchmarks/figures.json` and from `tools/demo_session.txt` and
`tools/gate_session.txt`, recordings that `--record` renews. A test compares them with the files. Photographs of pages
(PNG) are taken with Chromium from a sample data set that is always the same; the predictions are those of a model that
is trained for them.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from base64 import b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from shardwright import ImageDataset
    from shardwright.dataset.examples import Example

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # for `benchmarks`, which is not installed
FOLDER = ROOT / "docs" / "pictures"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
TEAL, GRAY, PALE, ORANGE = "#00695c", "#546e7a", "#e0f2f1", "#fff3e0"
LIMIT = 300
SESSION, GATE_SESSION = ROOT / "tools" / "demo_session.txt", ROOT / "tools" / "gate_session.txt"
# What `make demo` calls.
DEMO = (
    "shardwright sample --out demo-data --count 200 --height 350 --width 525",
    "shardwright run pipelines/configs/demo.yaml",
)
# Left out of the demo's output: epochs in the middle, metrics of each class, places of artifacts.
NOT_SHOWN = re.compile(
    r"  epoch (?!1/|(\d+)/\1:)|\w+/|dataset|transformed|TensorBoard|evaluation|  the run takes|  schema|\d+ s in all|"
    r"  labels:|  train\.csv:|  run lengths:"
)
# The time of a step and the rate of an epoch are those of one machine, and are on no picture.
TIMES = re.compile(r" +\d+\.\d s$|, \d+\.\d images/s$")
TERMINAL_WIDTH, COLUMNS = 960, 117
BUTTONS = ("#ef5350", "#ffca28", "#66bb6a")


# The colors of drawings, and those of the same drawing where the reader prefers dark pages.
DARK = {
    "#ffffff": "#1e2129",
    "#263238": "#e3e6ea",
    GRAY: "#9fb0b9",
    PALE: "#0d3b36",
    ORANGE: "#4a3413",
    "#b0bec5": "#5f7079",
    TEAL: "#26a69a",
}


def svg(width: int, height: int, title: str, shapes: Sequence[str]) -> str:
    """Returns a drawing with a background of its own, light or dark as the reader prefers."""
    recolored = "".join(f'[fill="{one}"]{{fill:{dark}}}[stroke="{one}"]{{stroke:{dark}}}' for one, dark in DARK.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="14">\n<title>{escape(title)}</title>\n'
        f"<style>@media (prefers-color-scheme: dark){{{recolored}}}</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>\n' + "\n".join(shapes) + "\n</svg>\n"
    )


def box(x: int, y: int, width: int, lines: Sequence[str], fill: str = PALE, height: int = 0) -> str:
    """Returns a box with lines of text in its middle; the first one is bold."""
    height = height or 20 + 18 * len(lines)
    top = y + height / 2 - 9 * (len(lines) - 1) + 5
    shapes = [f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="{TEAL}"/>']
    for number, line in enumerate(lines):
        weight = ' font-weight="600" font-size="13"' if number == 0 else ' font-size="12"'
        shapes.append(
            f'<text x="{x + width / 2:g}" y="{top + 18 * number:g}" text-anchor="middle"{weight} fill="#263238">'
            f"{escape(line)}</text>"
        )
    return "\n".join(shapes)


def arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    """Returns an arrow to the right."""
    head = (-7, -4, -7, 4)
    points = f"{to_x:g},{to_y:g} {to_x + head[0]:g},{to_y + head[1]:g} {to_x + head[2]:g},{to_y + head[3]:g}"
    line = f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}" stroke="{GRAY}" stroke-width="1.5"/>'
    return f'{line}<polygon points="{points}" fill="{GRAY}"/>'


def architecture() -> str:
    """Returns the flow of the data."""
    shapes = [
        box(16, 20, 170, ["Images", "folder, gs://, s3://"], ORANGE),
        box(16, 96, 170, ["Annotations", "RLE CSV, COCO, masks, …"], ORANGE),
        box(256, 58, 150, ["ingest", "check, split, shard"]),
        box(476, 20, 170, ["Dataset", "TFRecord shards, index", "manifest, ledger"], ORANGE, 96),
        box(716, 20, 150, ["load", "tf.data for Keras"]),
        box(716, 96, 150, ["report, verify, diff"]),
        arrow(186, 48, 256, 76),
        arrow(186, 124, 256, 100),
        arrow(406, 86, 476, 86),
        arrow(646, 48, 716, 48),
        arrow(646, 108, 716, 112),
    ]
    steps = ["StatisticsGen", "DataGate", "ImageTransform", "Trainer", "Evaluator", "Pusher"]
    for number, step in enumerate(steps):
        shapes.append(box(16 + 144 * number, 196, 130, [step], height=40))
        if number:
            shapes.append(arrow(2 + 144 * number, 216, 16 + 144 * number, 216))
    shapes.append(
        '<text x="16" y="180" fill="#263238">The same dataset feeds one TFX pipeline, on this machine, on Kubeflow and '
        "on Vertex AI:</text>"
    )
    return svg(882, 256, "From images and annotations to a dataset, and on to a pushed model", shapes)


GRAPH_TARGETS = ("local", "kubeflow", "vertex")


def graph(target: str) -> str:
    """Returns the steps of the pipeline for a target, in the order of the graph."""
    from shardwright.pipelines.graph import STEPS

    notes = {
        "local": {"Trainer": "this machine's CPU or GPU"},
        "kubeflow": {"InputResolver": "looks for new images", "Trainer": "or a JobSet on a TPU slice"},
        "vertex": {"InputResolver": "looks for new images", "Trainer": "or a CustomJob on a TPU"},
    }[target]
    shapes = []
    steps = [step for step in STEPS if target != "local" or step.name != "InputResolver"]
    for number, step in enumerate(steps):
        column, row = number % 4, number // 4
        x, y = 16 + 212 * column, 16 + 92 * row
        beam = "Beam" + (", also on Dataflow" if target == "vertex" and step.stages else "") if step.uses_beam else ""
        lines = [step.name, *(text for text in (beam, notes.get(step.name, "")) if text)]
        shapes.append(box(x, y, 196, lines, PALE if step.cached else ORANGE, 70))
        if column:
            shapes.append(arrow(x - 16, y + 35, x, y + 35))
    rows = (len(steps) + 3) // 4
    return svg(864, 16 + 92 * rows, f"The steps of the pipeline on {target}", shapes)


def bars(name: str) -> str:
    """Returns the bar chart of a group of figures."""
    from benchmarks.record import charts

    group = charts()[name]
    top = max(value for _, value in group["bars"])
    shapes = [f'<text x="16" y="28" font-weight="600" fill="#263238">{escape(group["title"])}</text>']
    for number, (label, value) in enumerate(group["bars"]):
        y = 48 + 34 * number
        fill = TEAL if label.startswith(("Shardwright", "ingest")) else "#b0bec5"
        width = 380 * value / top
        shapes.append(f'<text x="250" y="{y + 17}" text-anchor="end" fill="#263238">{escape(label)}</text>')
        shapes.append(f'<rect x="260" y="{y}" width="{width:.0f}" height="24" fill="{fill}"/>')
        shapes.append(f'<text x="{268 + width:.0f}" y="{y + 17}" fill="#263238">{value:,}</text>')
    return svg(740, 60 + 34 * len(group["bars"]), group["title"], shapes)


def badge(label: str, value: str) -> str:
    """Returns a small badge."""
    left, right = 12 + 7 * len(label), 12 + 7 * len(value)
    texts = [
        f'<text x="{x:g}" y="14" text-anchor="middle" fill="#ffffff" font-size="12">{escape(text)}</text>'
        for x, text in ((left / 2, label), (left + right / 2, value))
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'font-family="system-ui, sans-serif">\n<title>{escape(label)}: {escape(value)}</title>\n'
        f'<rect width="{left + right}" height="20" rx="3" fill="#455a64"/>\n'
        f'<rect x="{left}" width="{right}" height="20" rx="3" fill="{TEAL}"/>\n{texts[0]}{texts[1]}\n</svg>\n'
    )


def badges() -> dict[str, str]:
    """Returns the badges of README: what the package states about itself."""
    from shardwright.version import __version__

    setup = (ROOT / "setup.py").read_text(encoding="utf-8")
    versions = re.findall(r"Python :: (3\.\d+)", setup)
    assert "Apache-2.0" in setup
    return {
        "badge-version": badge("version", __version__),
        "badge-python": badge("Python", f"{versions[0]} to {versions[-1]}"),
        "badge-license": badge("license", "Apache-2.0"),
    }


def terminal(session: Path, title: str, *, animated: bool = False) -> str:
    """Returns a recording as a terminal, in which the lines may appear one after the other."""
    rows = [TIMES.sub("", text) for text in session.read_text(encoding="utf-8").splitlines()]
    rows = [part for text in rows if not NOT_SHOWN.match(text) for part in wrapped(text)]
    height = 52 + 18 * len(rows)
    # Three lines a second, whatever they took: nobody watches a progress bar.
    shapes = [
        "<style>text{white-space:pre;font-family:ui-monospace,monospace;font-size:13px;fill:#cfd8dc}"
        ".typed{fill:#80cbc4;font-weight:600}.wrong{fill:#ffab91}"
        + ("g{animation:shown .1s both}@keyframes shown{from{opacity:0}}" if animated else "")
        + "@media (prefers-reduced-motion: reduce){g{animation:none}}</style>",
        # Not `fill`, which is another color on dark pages.
        f'<rect width="{TERMINAL_WIDTH}" height="{height}" rx="8" style="fill:#263238"/>',
        *(f'<circle cx="{18 + 18 * at}" cy="18" r="5" fill="{color}"/>' for at, color in enumerate(BUTTONS)),
    ]
    for number, text in enumerate(rows):
        kind = ' class="typed"' if text.startswith("$ ") else ' class="wrong"' if text.endswith(" failed") else ""
        shapes.append(
            f'<g style="animation-delay:{number / 3:.1f}s"><text{kind} x="16" y="{52 + 18 * number}">'
            f"{escape(text)}</text></g>"
        )
    return svg(TERMINAL_WIDTH, height, title, shapes)


def wrapped(text: str) -> list[str]:
    """Returns a line as lines that fit into the terminal."""
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    return textwrap.wrap(text, COLUMNS, subsequent_indent=indent, drop_whitespace=True) or [""]


def data_flow() -> str:
    """Returns how an ingest goes from files to a dataset."""
    top = ["list", "survey", "plan", "write", "commit"]
    about = [
        ("names and sizes,", "no content"),
        ("classes, layout,", "contradictions"),
        ("rejects, duplicates,", "splits, shards"),
        ("decode, check,", "encode, in parallel"),
        ("manifest.json", "comes last"),
    ]
    made = ["", "questions", "task files", "staging", "the dataset"]
    shapes = []
    for number, step in enumerate(top):
        x = 16 + 172 * number
        shapes.append(box(x, 20, 150, [step, *about[number]], height=84))
        if number:
            shapes.append(arrow(x - 22, 62, x, 62))
        if made[number]:
            shapes.append(box(x, 140, 150, [made[number]], ORANGE, 36))
            shapes.append(f'<line x1="{x + 75}" y1="104" x2="{x + 75}" y2="140" stroke="{GRAY}" stroke-width="1.5"/>')
    shapes.append(
        '<text x="16" y="206" font-size="13" fill="#263238">Everything is decided before a byte is written. A run that '
        "is killed continues from the finished shards in staging.</text>"
    )
    return svg(876, 224, "From files to a dataset: list, survey, plan, write, commit", shapes)


def shard() -> str:
    """Returns the layout of a shard: three records, and the row of the index for one of them."""
    from shardwright.tfrecords.records import FOOTER_BYTES, HEADER_BYTES

    length, crc = f"{HEADER_BYTES - FOOTER_BYTES} bytes", f"{FOOTER_BYTES} bytes"
    shapes = ['<text x="16" y="28" font-weight="600" fill="#263238">Split-train/data-00000-of-00002.tfrecord</text>']
    for number in range(3):
        x = 16 + 286 * number
        shapes += [
            box(x, 40, 58, ["length", length], PALE, 46),
            box(x + 58, 40, 52, ["CRC", crc], PALE, 46),
            box(x + 110, 40, 116, ["Example", "tf.train.Example"], ORANGE, 46),
            box(x + 226, 40, 52, ["CRC", crc], PALE, 46),
        ]
    shapes += [
        f'<path d="M302 92 v8 h278 v-8" fill="none" stroke="{GRAY}"/>',
        f'<line x1="441" y1="100" x2="441" y2="128" stroke="{GRAY}"/>',
        box(16, 128, 850, ['{"key": "b.jpg", "length": 9754, "offset": 10381}'], PALE, 34),
        '<text x="16" y="184" font-size="13" fill="#263238">A row of index/Split-train/data-00000-of-00002.jsonl: any '
        "record is read without reading those before it.</text>",
        '<text x="16" y="214" font-size="13" fill="#263238">An Example has:</text>',
        box(16, 226, 262, ["image", "encoded, key, format, height,", "width, checksum"], ORANGE, 70),
        box(
            306,
            226,
            262,
            ["annotations", "segmentation/CLASS/rle, class/label,", "object/bbox, caption/text"],
            ORANGE,
            70,
        ),
        box(596, 226, 270, ["more", "meta/COLUMN; measures with", "images.verify: full"], ORANGE, 70),
    ]
    return svg(882, 312, "The layout of a shard and of its index", shapes)


def record(session: Path, calls: Sequence[str], folder: Path, code: int = 0) -> None:
    """Runs commands in a folder and stores their output, without progress and paths of this machine."""
    rows = []
    for call in calls:
        done = subprocess.run(
            [sys.executable, "-m", "shardwright.pipelines.cli", *call.split()[1:]],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT)},
        )
        lines = [f"$ {call}", *done.stdout.splitlines()]
        # Progress within a step changes from call to call.
        kept = [line for line in lines if not re.match(r"  [a-z ]+: \d+/\d+", line)]
        rows += [line.rstrip().replace(f"{folder}/", "").replace(str(folder), ".") for line in kept]
        if done.returncode not in (0, code):
            raise SystemExit("\n".join(rows))
    session.write_text("\n".join(rows) + "\n", encoding="utf-8")


def record_sessions() -> None:
    """Records the demo, and a run that the gate stops."""
    import shardwright as sw

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = {"height": 120, "width": 180}
        sw.write_sample(str(folder / "october"), images=60, **small)
        darken(folder, small)
        config = {"images": str(folder / "october/train_images"), "labels": {"path": str(folder / "october/train.csv")}}
        sw.make_dataset({"input": config}, folder / "october-dataset")
        (folder / "november.yaml").write_text(
            "input: {images: dark, labels: {path: new/train.csv}}\nsplit: {method: stratified}\n"
            "gate: {drift: {reference: october-dataset}}\n",
            encoding="utf-8",
        )
        record(GATE_SESSION, ["shardwright run november.yaml"], folder, code=1)
        shutil.copytree(ROOT / "pipelines/configs", folder / "pipelines/configs")
        record(SESSION, DEMO, folder)


DRAWINGS: dict[str, Callable[[], str]] = {
    "architecture": architecture,
    "data-flow": data_flow,
    "shard": shard,
    "demo": lambda: terminal(SESSION, "The demo in a terminal", animated=True),
    "gate": lambda: terminal(GATE_SESSION, "A run that the data gate stopped"),
    **{f"graph-{target}": lambda target=target: graph(target) for target in GRAPH_TARGETS},
    **{f"bars-{name}": lambda name=name: bars(name) for name in ("ingest", "loader", "loader-float32")},
}


def drawings() -> dict[str, str]:
    """Returns all drawings by name."""
    return {**badges(), **{name: draw() for name, draw in DRAWINGS.items()}}


# Photographs of pages that are taken in the light and in the dark: width and height.
SIZES = {
    "overview": (1280, 420),
    "overview-phone": (420, 1000),
    "mask-orders": (1000, 396),
    "predictions": (1000, 396),
    "notebook": (1000, 462),
    "drift": (1000, 760),
    "report": (1280, 1100),
    "samples": (1000, 480),
    "augmented": (1000, 480),
}


def take_photographs(folder: Path) -> None:
    """Makes a dataset of drawn images, and takes pictures of its report, of samples and of a batch."""
    import shardwright as sw

    browser = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if browser is None:
        raise SystemExit("pictures: no Chromium on this machine. Install it: apt-get install chromium.")
    sw.write_sample(str(folder / "clouds"), images=60, height=240, width=360, seed=7)
    spoil(folder / "clouds")
    config = {
        "task": "segmentation",
        "input": {"images": str(folder / "clouds/train_images"), "labels": {"path": str(folder / "clouds/train.csv")}},
        "images": {"verify": "full"},
        "rejects": {"max_fraction": 0.02},
    }
    dataset = sw.make_dataset(config, folder / "clouds-dataset")
    sw.write_report(dataset, folder / "report.html", quiet=True)
    classes = dataset.manifest.classes
    plain = sw.load(dataset, "train", batch_size=8, seed=1, shuffle=True)
    changed = ["flip_left_right", "crop=0.6", "brightness=0.2", "saturation=0.4", "cutout=0.4"]
    augmented = sw.load(dataset, "train", batch_size=8, seed=1, shuffle=True, augment=changed)
    shown = {"samples": sw.show_batch(plain, classes), "augmented": sw.show_batch(augmented, classes)}
    for name, batch in shown.items():
        (folder / f"{name}.html").write_text(BATCH.format(shown=batch._repr_html_()), encoding="utf-8")
    darken(folder, {"height": 240, "width": 360})
    for name, page in {"mask-orders": mask_orders, "predictions": predictions, "notebook": notebook}.items():
        (folder / f"{name}.html").write_text(page(folder, dataset), encoding="utf-8")
    init_question(folder)
    for name in ("overview", "overview-phone"):
        (folder / f"{name}.html").write_text(overview(folder / "clouds", dataset), encoding="utf-8")
    compare = ["drift", str(folder / "clouds-dataset"), str(folder / "dark"), "--html", str(folder / "drift.html")]
    subprocess.run([sys.executable, "-m", "shardwright.pipelines.cli", *compare], check=False, timeout=LIMIT)
    photograph(browser, folder / "report.html", FOLDER / "report-phone.png", 390, 760)
    for name, (width, height) in SIZES.items():
        photograph(browser, folder / f"{name}.html", FOLDER / f"{name}.png", width, height)
        photograph(browser, folder / f"{name}.html", FOLDER / f"{name}-dark.png", width, height, dark=True)


# The head of the pages that are made here, in the colors of the site.
HEAD = """<!doctype html><meta charset="utf-8"><style>
:root {{ color-scheme: light dark; --ground: #fff; --ink: #263238; --line: #cfd8dc; --code: #f5f5f5; --mark: #00695c }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ground: #1e2129; --ink: #e3e6ea; --line: #48505a; --code: #2a2e38; --mark: #4db6ac }}
}}
body {{ margin: 0; padding: 16px; font: 14px system-ui, sans-serif; color: var(--ink); background: var(--ground) }}
"""
OVERVIEW = (
    HEAD
    + """body {{ padding: 20px; display: grid; grid-template-columns: 1fr 92px 1fr 92px 1fr;
  align-items: stretch; gap: 0 6px; box-sizing: border-box }}
section {{ border: 1px solid var(--line); border-radius: 8px; padding: 12px 14px; overflow: hidden }}
h2 {{ font-size: 15px; margin: 0 0 8px }}
div.images {{ display: grid; grid-template-columns: 1fr 1fr; gap: 6px }}
img {{ width: 100%; border-radius: 4px; display: block }}
pre {{ font: 11.5px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; margin: 8px 0 0; overflow: hidden }}
span.arrow {{ align-self: center; text-align: center; font-weight: 600; color: var(--mark) }}
span.arrow b {{ display: block; font-size: 30px; line-height: 1 }}
@media (max-width: 600px) {{
  body {{ padding: 8px; grid-template-columns: 1fr; gap: 8px }}
  span.arrow b {{ rotate: 90deg }}
  span.arrow br {{ display: none }}
  div.images img:nth-child(n + 3) {{ display: none }}
}}
</style>
<section><h2>Photographs and a CSV</h2><div class="images">{photographs}</div><pre>{table}</pre></section>
<span class="arrow">init <br>ingest<b>→</b></span>
<section><h2>A dataset, checked and reproducible</h2><pre>{files}</pre><pre>{counts}</pre></section>
<span class="arrow">load <br>run<b>→</b></span>
<section><h2>What a training gets</h2><div class="images">{masked}</div><pre>{batch}</pre></section>
"""
)


def overview(source: Path, dataset: ImageDataset) -> str:
    """Returns the page of the README's first picture: what goes in, the dataset, and what a training gets."""
    from shardwright import load
    from shardwright.display.thumbnails import overlaid

    examples = [example for example in dataset.examples("train", count=12) if len(example.classes) > 1][:4]
    photographs = "".join(f'<img alt="" src="{data_url(source / "train_images" / one.key)}">' for one in examples)
    rows = (source / "train.csv").read_text(encoding="utf-8").splitlines()
    table = "\n".join(
        row if len(row) < 44 else f"{row[:42]}…" for row in (rows[0], *[r for r in rows[1:] if r[-1] != ","][:5])
    )
    root = Path(os.fspath(dataset))
    names = sorted(file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_file())
    shown = [name for name in names if name.startswith(("Split", "index", "ledger")) or name == "manifest.json"]
    files = [*shown, f"… and {len(names) - len(shown)} more"]
    counts = "\n".join(f"{name:<20}{value:>6,}" for name, value in dataset.manifest.totals.items())
    masked = "".join(f'<img alt="" src="{overlaid(one.view)}">' for one in examples)
    images, masks = next(iter(load(dataset, "train", batch_size=16)))
    batch = "\n".join(
        f"{name:<8}{tensor.dtype.name:<9}[{', '.join(map(str, tensor.shape))}]"
        for name, tensor in (("images", images), ("masks", masks))
    )
    return OVERVIEW.format(
        photographs=photographs,
        table=escape(table),
        files=escape("\n".join(files)),
        counts=escape(counts),
        masked=masked,
        batch=batch,
    )


GRID = (
    HEAD
    + """body {{ font-size: 15px }}
div {{ display: grid; grid-template-columns: repeat(4, 1fr); gap: 8px; margin: 6px 0 14px }}
img {{ width: 100%; border-radius: 4px; display: block }}
</style>{rows}
"""
)
BATCH = HEAD + "</style>{shown}"
CELL = (
    HEAD
    + """pre {{ font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; background: var(--code);
  border: 1px solid var(--line); border-radius: 4px; padding: 8px 12px; margin: 0 0 10px }}
</style><pre>import shardwright as sw

dataset = sw.ImageDataset.open("clouds-dataset")
dataset</pre>{shown}
"""
)


def pictures_in_rows(rows: dict[str, Sequence[str]]) -> str:
    """Returns a page of pictures, a row below each title."""
    shown = ""
    for title, urls in rows.items():
        images = "".join(f'<img alt="" src="{url}">' for url in urls)
        shown += f"<b>{escape(title)}</b><div>{images}</div>"
    return GRID.format(rows=shown)


def mask_orders(folder: Path, dataset: ImageDataset) -> str:
    """Returns images with their masks, and with those that the wrong order of the run lengths gives."""
    right = shown_examples(dataset)
    wrong = read_again(folder, folder / "clouds/train.csv", "wrong-order", rle={"order": "row", "start": 1})
    return pictures_in_rows(
        {
            "order: column, as the table was written": [picture(one) for one in right.values()],
            "order: row, the same table": [picture(wrong.example(key)) for key in right],
        }
    )


def predictions(folder: Path, dataset: ImageDataset) -> str:
    """Returns test images with their masks, and with those that a model predicts."""
    import shardwright as sw

    options = {"epochs": 60, "batch_size": 8}
    model = sw.train(dataset, folder / "model", transform={"size": (96, 144)}, trainer=options)
    model.predict(folder / "clouds/train_images", folder / "predicted.csv")
    predicted = read_again(folder, folder / "predicted.csv", "predicted")
    right = shown_examples(dataset, "test")
    return pictures_in_rows(
        {
            "truth": [picture(one) for one in right.values()],
            "prediction": [picture(predicted.example(key)) for key in right],
        }
    )


def notebook(folder: Path, dataset: ImageDataset) -> str:
    """Returns a cell of a notebook that shows a dataset."""
    return CELL.format(shown=dataset._repr_html_())


def init_question(folder: Path) -> None:
    """Takes the picture of a question of `init`: a table whose header says nothing about the order of its runs."""
    from PIL import Image

    import shardwright as sw

    sw.write_sample(str(folder / "photos"), images=12, height=128, width=128)
    table = folder / "photos/train.csv"
    with table.open(encoding="utf-8", newline="") as file:
        rows = [(*name.rsplit("_", 1), mask) for name, mask in list(csv.reader(file))[1:]]
    with table.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("image", "label", "mask"), *rows])
    shown = FOLDER / "init-question.png"
    call = ["init", str(folder / "photos"), "--out", str(folder / "photos.yaml"), f"--show={shown}"]
    subprocess.run([sys.executable, "-m", "shardwright.pipelines.cli", *call], check=False, timeout=LIMIT)
    with Image.open(shown) as image:
        image.convert("RGB").quantize(256, method=Image.Quantize.FASTOCTREE).save(shown, optimize=True)


def read_again(folder: Path, table: Path, name: str, **labels: object) -> ImageDataset:
    """Returns the sample's images with the masks of another table, or with another reading of the same one."""
    import shardwright as sw

    config = {
        "task": "segmentation",
        "input": {
            "images": str(folder / "clouds/train_images"),
            "labels": {"path": str(table), **labels},
            "unlisted_images": "empty",
        },
        "rejects": {"max_fraction": 1.0},
    }
    return sw.make_dataset(config, folder / name)


def shown_examples(dataset: ImageDataset, split: str = "train") -> dict[str, Example]:
    """Returns the first four images of a split that have several classes, by key."""
    found = [example for example in dataset.examples(split, count=40) if len(example.classes) > 1]
    return {example.key: example for example in found[:4]}


def picture(example: Example) -> str:
    """Returns an image with its masks."""
    from shardwright.display.thumbnails import overlaid

    return overlaid(example.view)


def data_url(file: Path) -> str:
    """Returns an image as a URL that holds its bytes."""
    return f"data:image/jpeg;base64,{b64encode(file.read_bytes()).decode()}"


def spoil(data: Path) -> None:
    """Copies an image under another name and cuts another one off, so that the report has findings."""
    table = data / "train.csv"
    first, second = sorted((data / "train_images").iterdir())[:2]
    copy = first.with_name("copy.jpg")
    copy.write_bytes(first.read_bytes())
    second.write_bytes(second.read_bytes()[:-2000])
    rows = [line for line in table.read_text(encoding="utf-8").splitlines() if line.startswith(f"{first.name}_")]
    with table.open("a", encoding="utf-8") as file:
        file.writelines(f"{row.replace(first.name, copy.name)}\n" for row in rows)


def darken(folder: Path, size: dict[str, int]) -> None:
    """Draws other images into `dark`, as a camera with a shorter exposure and a stronger compression takes them."""
    from PIL import Image, ImageEnhance

    import shardwright as sw

    sw.write_sample(str(folder / "new"), images=60, seed=8, **size)
    (folder / "dark").mkdir()
    for file in sorted((folder / "new/train_images").iterdir()):
        with Image.open(file) as image:
            ImageEnhance.Brightness(image).enhance(0.8).save(folder / "dark" / file.name, quality=60)


def photograph(browser: str, page: Path, target: Path, width: int, height: int, *, dark: bool = False) -> None:
    """Takes a picture of a page and stores it with few colors, which makes it small."""
    from PIL import Image

    # Chromium's window is never narrower than 500 pixels; a frame is.
    frame = page.with_name("frame.html")
    frame.write_text(
        f'<body style="margin:0"><iframe src="{page.as_uri()}" width="{width}" height="{height}" style="border:0">'
        "</iframe></body>",
        encoding="utf-8",
    )
    options = [
        *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND"),
        f"--user-data-dir={page.parent / 'profile'}",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        f"--window-size={max(width, 500)},{height}",
        f"--screenshot={target}",
    ]
    subprocess.run([browser, *options, frame.as_uri()], check=True, capture_output=True, timeout=LIMIT)
    with Image.open(target) as image:
        # An octree keeps colors of few pixels, such as the dots of a legend.
        small = image.convert("RGB").crop((0, 0, width, height)).quantize(256, method=Image.Quantize.FASTOCTREE)
        small.save(target, optimize=True)


def main() -> None:
    """Draws all pictures, or the drawings only with `--drawings`; `--record` records the terminals before."""
    FOLDER.mkdir(exist_ok=True)
    if sys.argv[1:] == ["--record"]:
        record_sessions()
    for name, text in drawings().items():
        (FOLDER / f"{name}.svg").write_text(text, encoding="utf-8")
    if not sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            take_photographs(Path(folder))
    for file in sorted(FOLDER.iterdir()):
        print(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
