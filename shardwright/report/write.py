"""Writes the report of a dataset as one HTML file, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from shardwright.console import progress
from shardwright.dataset import Dataset
from shardwright.errors import UsageError
from shardwright.report.collect import DEFAULTS, Options
from shardwright.report.page import Chapter, render, see
from shardwright.storage import is_remote
from shardwright.storage.durable import make_folder, write_file

REPORT_FILE = "report.html"


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
        out: the file; replaced where it is there.
        chapters: further sections.
        options: how much is looked at.
        quiet: show no progress.

    Returns:
        The file.

    Raises:
        DatasetError: there is no dataset, or a damaged one.
        UsageError: the file cannot be written, or would lie within the dataset.
    """
    dataset = Dataset.open(directory)
    target = page_file(out, "--out", dataset.root)
    total = sum(shard.records for shard in dataset.manifest.shards)
    with progress(total, "reading records", quiet=quiet) as shown:
        seen = see(dataset, options, shown)
    write_whole(target, render(seen, chapters))
    return target


def page_file(out: str | os.PathLike[str], option: str, *datasets: str) -> Path:
    """Where a page may be written, absolute.

    Args:
        out: what the user says.
        option: how they say it.
        datasets: those in which it may not lie.

    Raises:
        UsageError: not there.
    """
    if is_remote(str(out)):
        raise UsageError(f"{option} {out}: it is written to this machine. Give a file here.")
    target = Path(out).absolute()
    here = [Path(dataset).resolve() for dataset in datasets if not is_remote(dataset)]
    if any(target.resolve().is_relative_to(dataset) for dataset in here):
        raise UsageError(f"{option} {out}: lies within the dataset, which nothing may change. Give a file elsewhere.")
    return target


def write_whole(target: Path, text: str) -> None:
    """Writes a text file that appears whole.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        make_folder(target.parent)
        write_file(target, text)
    except OSError as error:
        raise UsageError(f"{target}: cannot be written ({error.strerror}). Give another file.") from None
