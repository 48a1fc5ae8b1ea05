"""Draws the pictures of the documentation into docs/pictures: `.venv/bin/python tools/pictures.py [--drawings]`.

Drawings (SVG) are made from the code, from `benchmarks/figures.json` and from `tools/demo_session.txt`, a recording of
the demo that `--record` renews. A test compares them with the files. Photographs of pages (PNG) are taken with Chromium
from a sample data set that is always the same.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from shardwright import ImageDataset

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # for `benchmarks`, which is not installed
FOLDER = ROOT / "docs" / "pictures"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
TEAL, GRAY, PALE, ORANGE = "#00695c", "#546e7a", "#e0f2f1", "#fff3e0"
LIMIT = 300
SESSION = ROOT / "tools" / "demo_session.txt"
# What `make demo` calls.
DEMO = (
    "shardwright sample --out demo-data --count 200 --height 350 --width 525",
    "shardwright run pipelines/configs/demo.yaml",
)
# Left out of the demo's output: epochs in the middle, metrics of each class, places of artifacts.
NOT_SHOWN = re.compile(
    r"  epoch (?!1/|(\d+)/\1:)|\w+/|dataset|transformed|TensorBoard|evaluation|  the run takes|  schema"
)
TERMINAL_WIDTH, COLUMNS = 960, 117
BUTTONS = ("#ef5350", "#ffca28", "#66bb6a")


def svg(width: int, height: int, title: str, shapes: Sequence[str]) -> str:
    """Returns a drawing on white, readable in the light and in the dark."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="14">\n<title>{escape(title)}</title>\n'
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


def terminal() -> str:
    """Returns the recording of the demo as a terminal in which the lines appear one after the other."""
    rows = [line.split("\t", 1)[1] for line in SESSION.read_text(encoding="utf-8").splitlines()]
    rows = [text for text in rows if not NOT_SHOWN.match(text)]
    height = 52 + 18 * len(rows)
    # Three lines a second, whatever they took: nobody watches a progress bar.
    shapes = [
        "<style>text{white-space:pre;font-family:ui-monospace,monospace;font-size:13px;fill:#cfd8dc}"
        ".typed{fill:#80cbc4;font-weight:600}g{animation:shown .1s both}@keyframes shown{from{opacity:0}}"
        "@media (prefers-reduced-motion: reduce){g{animation:none}}</style>",
        f'<rect width="{TERMINAL_WIDTH}" height="{height}" rx="8" fill="#263238"/>',
        *(f'<circle cx="{18 + 18 * at}" cy="18" r="5" fill="{color}"/>' for at, color in enumerate(BUTTONS)),
    ]
    for number, text in enumerate(rows):
        kind = ' class="typed"' if text.startswith("$ ") else ""
        shapes.append(
            f'<g style="animation-delay:{number / 3:.1f}s"><text{kind} x="16" y="{52 + 18 * number}">'
            f"{escape(shortened(text))}</text></g>"
        )
    return svg(TERMINAL_WIDTH, height, "The demo in a terminal", shapes)


def shortened(text: str) -> str:
    """Returns what fits into the width of the terminal."""
    return text if len(text) <= COLUMNS else f"{text[: COLUMNS - 1]}…"


def record_session() -> None:
    """Runs the demo in a folder of its own and stores its output with the seconds since the start of each command."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "pipelines/configs", f"{folder}/pipelines/configs")
        for call in DEMO:
            rows.append(f"0.0\t$ {call}")
            begun = time.monotonic()
            with subprocess.Popen(
                [sys.executable, "-m", "shardwright.pipelines.cli", *call.split()[1:]],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT)},
            ) as process:
                for line in process.stdout or ():
                    # Progress within a step changes from call to call.
                    if not re.match(r"  [a-z ]+: \d+/\d+$", line):
                        text = line.rstrip().replace(f"{folder}/", "").replace(folder, ".")
                        rows.append(f"{time.monotonic() - begun:.1f}\t{text}")
            if process.returncode != 0:
                raise SystemExit("\n".join(rows))
    SESSION.write_text("\n".join(rows) + "\n", encoding="utf-8")


DRAWINGS: dict[str, Callable[[], str]] = {
    "architecture": architecture,
    "demo": terminal,
    **{f"graph-{target}": lambda target=target: graph(target) for target in GRAPH_TARGETS},
    **{f"bars-{name}": lambda name=name: bars(name) for name in ("ingest", "loader", "loader-float32")},
}


def drawings() -> dict[str, str]:
    """Returns all drawings by name."""
    return {**badges(), **{name: draw() for name, draw in DRAWINGS.items()}}


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
        text = f'<!doctype html><meta charset="utf-8"><body style="margin:16px">{batch._repr_html_()}</body>'
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    darken(folder)
    (folder / "overview.html").write_text(overview(folder / "clouds", dataset), encoding="utf-8")
    photograph(browser, folder / "overview.html", FOLDER / "overview.png", 1280, 420)
    compare = ["drift", str(folder / "clouds-dataset"), str(folder / "dark"), "--html", str(folder / "drift.html")]
    subprocess.run([sys.executable, "-m", "shardwright.pipelines.cli", *compare], check=False, timeout=LIMIT)
    photograph(browser, folder / "drift.html", FOLDER / "drift.png", 1000, 760)
    photograph(browser, folder / "report.html", FOLDER / "report.png", 1280, 1100)
    photograph(browser, folder / "report.html", FOLDER / "report-dark.png", 1280, 1100, dark=True)
    photograph(browser, folder / "report.html", FOLDER / "report-phone.png", 390, 760)
    for name in shown:
        photograph(browser, folder / f"{name}.html", FOLDER / f"{name}.png", 1000, 480)


OVERVIEW = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; padding: 20px; font: 14px system-ui, sans-serif; color: #263238; background: #fff;
  display: grid; grid-template-columns: 1fr 92px 1fr 92px 1fr;
  align-items: stretch; gap: 0 6px; box-sizing: border-box }}
section {{ border: 1px solid #cfd8dc; border-radius: 8px; padding: 12px 14px; overflow: hidden }}
h2 {{ font-size: 15px; margin: 0 0 8px }}
div.images {{ display: grid; grid-template-columns: 1fr 1fr; gap: 6px }}
img {{ width: 100%; border-radius: 4px; display: block }}
pre {{ font: 11.5px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; margin: 8px 0 0; overflow: hidden }}
span.arrow {{ align-self: center; text-align: center; font-weight: 600; color: #00695c }}
span.arrow b {{ display: block; font-size: 30px; line-height: 1 }}
</style>
<section><h2>Photographs and a CSV</h2><div class="images">{photographs}</div><pre>{table}</pre></section>
<span class="arrow">init<br>ingest<b>→</b></span>
<section><h2>A dataset, checked and reproducible</h2><pre>{files}</pre><pre>{counts}</pre></section>
<span class="arrow">load<br>run<b>→</b></span>
<section><h2>What a training gets</h2><div class="images">{masked}</div><pre>{batch}</pre></section>
"""


def overview(source: Path, dataset: ImageDataset) -> str:
    """Returns the page of the README's first picture: what goes in, the dataset, and what a training gets."""
    from shardwright import load
    from shardwright.display.thumbnails import overlaid

    examples = [example for example in dataset.examples("train", count=12) if len(example.classes) > 1][:4]
    photographs = "".join(f'<img alt="" src="{data_url(source / "train_images" / one.key)}">' for one in examples)
    rows = (source / "train.csv").read_text(encoding="utf-8").splitlines()
    table = "\n".join(
        row if len(row) < 44 else f"{row[:42]}…" for row in (rows[0], *(r for r in rows[1:] if r[-1] != ","))
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
        table=escape("\n".join(table)),
        files=escape("\n".join(files)),
        counts=escape(counts),
        masked=masked,
        batch=batch,
    )


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


def darken(folder: Path) -> None:
    """Draws other images into `dark`, as a camera with a shorter exposure and a stronger compression takes them."""
    from PIL import Image, ImageEnhance

    import shardwright as sw

    sw.write_sample(str(folder / "new"), images=60, height=240, width=360, seed=8)
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
    """Draws all pictures, or the drawings only with `--drawings`; `--record` records the demo before."""
    FOLDER.mkdir(exist_ok=True)
    if sys.argv[1:] == ["--record"]:
        record_session()
    for name, text in drawings().items():
        (FOLDER / f"{name}.svg").write_text(text, encoding="utf-8")
    if not sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            take_photographs(Path(folder))
    for file in sorted(FOLDER.iterdir()):
        print(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
