"""Renders the report of a dataset as one HTML file without scripts or links to other files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from shardwright.dataset.reader import ImageDataset
from shardwright.display.histograms import number_of
from shardwright.display.html import code, document, isolate, join
from shardwright.errors import UsageError, unwritable
from shardwright.report.collect import DEFAULTS, Collected, Options, collect
from shardwright.report.contact_sheets import BUDGET, Sheets, contact_sheets, duplicate_sheets
from shardwright.report.duplicates import Duplicates, find_duplicates
from shardwright.report.image_stats import images, masks
from shardwright.report.overview import overview, statistics
from shardwright.report.rejects import rejected, reproducibility, shards
from shardwright.running.progress import SILENT, Progress, progress
from shardwright.storage import is_remote
from shardwright.storage.durable import make_folder, write_file

REPORT_FILE = "report.html"
MOST_BYTES = 5_000_000
# Bytes for all parts that are neither pictures nor lists of the dataset's content.
_RESERVE = 500_000


class Chapter(NamedTuple):
    """A section that another package adds: anomalies, drift, a trained model.

    Attributes:
        ident: its anchor.
        title: its name in the navigation.
        body: the section.
        findings: its findings: (`bad`, `warn` or `good`, a sentence).
    """

    ident: str
    title: str
    body: Markup
    findings: tuple[tuple[str, str], ...] = ()


class PageInput(NamedTuple):
    """All that the page shows of a dataset.

    Attributes:
        collected: the result of the pass over the dataset.
        duplicates: groups of images that are equal or look alike.
    """

    collected: Collected
    duplicates: Duplicates


def collect_page(dataset: ImageDataset, options: Options = DEFAULTS, progress: Progress = SILENT) -> PageInput:
    """Reads a dataset once.

    Args:
        dataset: the dataset of the report.
        options: sizes of the samples.
        progress: advances with every image.

    Raises:
        DatasetError: the dataset is damaged.
    """
    collected = collect(dataset, options, progress)
    return PageInput(collected, find_duplicates(collected))


def render(page: PageInput, chapters: Sequence[Chapter] = ()) -> str:
    """Renders the report of a dataset.

    Args:
        page: the result of `collect_page`.
        chapters: further sections, in their order.

    Returns:
        HTML; the same for the same dataset.

    Raises:
        DatasetError: the dataset has changed since it was read.
    """
    collected, duplicates = page
    dataset = collected.dataset
    ending = rejected(dataset), shards(dataset), reproducibility(dataset)
    size = sum(len(part.encode("utf-8")) for part in (*ending, *(chapter.body for chapter in chapters)))
    sheets = Sheets(collected, min(BUDGET, MOST_BYTES - _RESERVE - size))
    further = [finding for chapter in chapters for finding in chapter.findings]
    parts = [
        ("look", "Findings", Markup("")),
        ("funnel", "Inputs", Markup("")),
        ("classes", "Classes", overview(collected, duplicates, further)),
        *((chapter.ident, chapter.title, chapter.body) for chapter in chapters),
        ("images", "Images", images(collected)),
        ("masks", "Masks", masks(collected)),
        ("samples", "Samples", contact_sheets(collected, sheets)),
        ("duplicates", "Same and alike", duplicate_sheets(collected, duplicates, sheets)),
        ("rejected", "Not written", ending[0]),
        ("shards", "Shards", ending[1]),
        ("made", "How it was made", ending[2]),
    ]
    body = join(part for _, _, part in parts)
    links = [(ident, title) for ident, title, _ in parts if f'id="{ident}"' in body]
    manifest = dataset.manifest
    short = manifest.fingerprint[:12]
    name = f"{number_of(collected.total, 'image')} for {manifest.task}"
    shown = [isolate(name, 40) for name in manifest.classes[:8]]
    classes = join([*shown, *(["…"] if len(manifest.classes) > 8 else [])], ", ")
    left = f" Left out to keep it small: {number_of(sheets.left_out, 'picture')}." if sheets.left_out else ""
    title = f"{name} · dataset {short}"
    return document(
        name,
        "Dataset report",
        join([classes or "no classes", join(["fingerprint", code(short)], " ")], " · "),
        statistics(collected, duplicates),
        body,
        title=title,
        links=links,
        ending=left,
    )


def write_report(
    directory: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    chapters: Sequence[Chapter] = (),
    options: Options = DEFAULTS,
    quiet: bool = False,
) -> Path:
    """Writes the report of a dataset.

    Args:
        directory: the dataset, a folder or a URL.
        out: the file; an existing one is replaced.
        chapters: further sections.
        options: sizes of the samples.
        quiet: show no progress.

    Returns:
        The file.

    Raises:
        DatasetError: there is no dataset, or a damaged one.
        UsageError: the file cannot be written, or would be inside the dataset.
    """
    dataset = ImageDataset.open(directory)
    target = page_file(out, "--out", dataset.root)
    with progress(dataset.manifest.records, "reading records", quiet=quiet) as shown:
        page = collect_page(dataset, options, shown)
    write_page(target, render(page, chapters))
    return target


def page_file(out: str | os.PathLike[str], option: str, *datasets: str) -> Path:
    """Returns the absolute path of a page, checked.

    Args:
        out: the path as the user gives it.
        option: the option that gives it, for messages.
        datasets: datasets that must not contain it.

    Raises:
        UsageError: a page cannot be written to this path.
    """
    if is_remote(str(out)):
        raise UsageError(f"{option} {out}: the page is written to this machine only. Give a local path.")
    target = Path(out).absolute()
    here = [Path(dataset).resolve() for dataset in datasets if not is_remote(dataset)]
    if any(target.resolve().is_relative_to(dataset) for dataset in here):
        raise UsageError(f"{option} {out}: the path is inside the dataset. Give a path outside it.")
    return target


def write_page(target: Path, text: str) -> None:
    """Writes a text file atomically.

    Raises:
        UsageError, StorageError: it cannot be written.
    """
    try:
        make_folder(target.parent)
        write_file(target, text)
    except OSError as error:
        raise unwritable(f"{target}:", error, "Give another file.") from None
