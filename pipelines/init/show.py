"""Pictures for a question: three images under each of its readings, where these differ most."""

from __future__ import annotations

import io
import json
import math
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from PIL import Image

from shardwright.config.yaml_text import parse_yaml
from shardwright.dataset.manifest import IGNORED
from shardwright.display.readings import Column, Row, difference, draw_row, draw_table, label_map, strip
from shardwright.errors import Reading, ShardwrightError, unwritable
from shardwright.ingest import IngestInput
from shardwright.ingest.trial import TriedImage, try_these
from shardwright.masks.rle import area
from shardwright.storage.whole_files import write_bytes
from shardwright.text.escaping import escape, unescaped
from shardwright.verify.describe import draw

# Images that are compared, and images that are shown. More megapixels are not compared: it takes a moment.
_COMPARED, _SHOWN, _MOST_PIXELS = 128, 3, 256 << 20
# Used if the terminal does not report its size.
_COLUMNS, _LINES = 100, 24
# Options that change which images are written, or how they are divided, not how they look.
_INVISIBLE = ("split.", "rejects.", "input.unlisted_images")

Survey = Callable[[Mapping[str, Any]], IngestInput]


class ReadInput(NamedTuple):
    """An input under one reading.

    Attributes:
        column: the reading's meaning, and what chooses it.
        surveyed: the input.
    """

    column: Column
    surveyed: IngestInput


def hint(readings: Sequence[Reading]) -> str:
    """Returns the line on `--show` of a question; empty where its answers look alike."""
    visible = any(not path.startswith(_INVISIBLE) for reading in readings for path in reading.options)
    return "Add --show to see images under each reading." if visible else ""


def show_readings(readings: Sequence[Reading], survey: Survey, file: str) -> str:
    """Shows images under each reading of a question.

    Args:
        readings: the question's.
        survey: reads the input with the options of a reading.
        file: the PNG to write; empty where the terminal shows them.

    Returns:
        A line that says what was shown; empty where nothing was.

    Raises:
        UsageError: the file cannot be written.
    """
    inputs = []
    for number, reading in enumerate(readings, 1):
        setting = "  ".join(setting_text(path, value) for path, value in reading.options.items())
        with suppress(ShardwrightError):
            inputs.append(ReadInput(Column(f"{number}. {reading.meaning}", setting), survey(reading.options)))
    return show(inputs, file)


def setting_text(path: str, value: object) -> str:
    """Returns the option `--set` for a value, to be pasted."""
    text = value if isinstance(value, str) and _is_plain(value) else json.dumps(value, ensure_ascii=False)
    return f"--set {shlex.quote(f'{path}={text}')}"


def _is_plain(text: str) -> bool:
    """Returns whether YAML reads a text as itself: a blank and a column called `1` or `yes` need quotes."""
    try:
        return bool(parse_yaml(text) == text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return False


def show(readings: Sequence[ReadInput], file: str) -> str:
    """Shows images under each reading, in the terminal or as a PNG; see `show_readings`."""
    rows = _rows(readings) if readings else []
    if not rows:
        return ""
    columns = [reading.column for reading in readings]
    if not file:
        _print(columns, rows)
        return ""
    data = io.BytesIO()
    draw_table(columns, rows).save(data, "png")
    try:
        write_bytes(Path(file), data.getvalue())
    except OSError as error:
        raise unwritable(f"--show: {file}", error, "Check the path.") from None
    return f"{file} has images under each reading."


def _rows(readings: Sequence[ReadInput]) -> list[Row]:
    """Returns the images under each reading that differ most between them."""
    inputs = [reading.surveyed for reading in readings]
    paths = [{one.listing.path(i) for i in range(len(one.listing.keys)) if i not in one.rejected} for one in inputs]
    # Those that all readings have can be compared.
    there = sorted(set.intersection(*paths) or set.union(*paths))
    some = sorted({there[at * len(there) // _COMPARED] for at in range(_COMPARED)}) if there else []
    scores: dict[str, float] = {}
    pixels = 0
    for path, images in zip(some, _under_each(inputs, some), strict=True):
        drawn = [label_map(image) for image in map(_written, images) if image is not None]
        pixels += max((labels.size for labels in drawn), default=0)
        if pixels > _MOST_PIXELS:
            break
        # Whether an image is written at all is the largest difference.
        scores[path] = difference(drawn) + (len(drawn) < len(images)) if drawn else -1.0
    chosen = [path for path in sorted(scores, key=lambda path: (-scores[path], path))[:_SHOWN] if scores[path] >= 0]
    root = os.path.commonpath([one.listing.root for one in inputs])
    return [
        draw_row(
            os.path.relpath(path, root),
            list(map(_written, images)),
            [_caption(image) for image in images],
        )
        for path, images in zip(chosen, _under_each(inputs, chosen), strict=True)
    ]


def _under_each(inputs: Sequence[IngestInput], paths: Sequence[str]) -> Iterator[list[TriedImage | None]]:
    """Yields each image under all readings; `None` where one leaves it out."""
    places = []
    for one in inputs:
        wanted = set(paths)
        place = {path: i for i in range(len(one.listing.keys)) if (path := one.listing.path(i)) in wanted}
        places.append({path: i for path, i in place.items() if i not in one.rejected})
    tried = [
        try_these(one, [place[path] for path in paths if path in place])
        for one, place in zip(inputs, places, strict=True)
    ]
    for path in paths:
        yield [next(images) if path in place else None for images, place in zip(tried, places, strict=True)]


def _written(image: TriedImage | None) -> TriedImage | None:
    """Returns the image unless it is left out or rejected."""
    return None if image is None or image.refusal is not None else image


def _caption(image: TriedImage | None) -> str:
    if image is None:
        return "left out"
    if image.refusal is not None:
        return f"rejected: {image.refusal.code}"
    parts = []
    for label, name in zip(image.labels, (*image.classes, IGNORED), strict=False):
        pixels = area(image.runs(label))
        parts.append(f"{name}: {100 * pixels / math.prod(image.size):.2g} %" if pixels else name)
    return ", ".join(dict.fromkeys(parts)) or "no objects, no class"


def _print(columns: Sequence[Column], rows: Sequence[Row]) -> None:
    """Prints the pictures in the terminal."""
    width, height = shutil.get_terminal_size()
    for number, column in enumerate(columns, 1):
        print(f"{number}. {escape(column.title)}\n   {escape(column.setting)}")
    for row in rows:
        data = io.BytesIO()
        Image.fromarray(strip(row)).save(data, "png")
        print(f"\n{escape(row.title)}")
        # The colors are control sequences of ours.
        unescaped(sys.stdout).write(draw(data.getvalue(), width or _COLUMNS, max(_LINES, height // 2)) + "\n")
        print(escape("  ".join(f"{number}: {text}" for number, text in enumerate(row.captions, 1))))
