"""`shardwright report`: shows a dataset as one HTML file."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from shardwright.errors import UsageError
from shardwright.pipelines.commands.files import new_page
from shardwright.pipelines.commands.results import finish
from shardwright.report.collect import Options
from shardwright.report.page import write_report


def run(options: Namespace) -> int:
    """Writes the page; by default `DIR.html` next to the folder, or in the current folder for a URL."""
    folder = os.path.basename(os.path.normpath(options.dataset)) or "dataset"
    if "://" not in options.dataset:
        folder = str(Path(options.dataset).absolute())
    out = options.out or f"{folder}.html"
    new_page("--out", out, options.dataset, force=options.force, title=r"[^\n]* · dataset [0-9a-f]{12}")
    from shardwright.pipelines.runs.corrections import find_corrections

    if options.evaluation is None and options.training is not None:
        raise UsageError("--training: is shown only with --evaluation. Give both.")
    for option, given in (("--evaluation", options.evaluation), ("--training", options.training)):
        if given is not None and not os.path.isdir(given):
            raise UsageError(f"{option}: there is no folder {given}. Give what the component wrote.")
    corrections = find_corrections(options.dataset, None)
    chapters = [] if corrections is None else [corrections.chapter(options.evaluation)]
    if options.evaluation is not None:
        from shardwright.pipelines.runs.summary import model_chapter_of

        chapters.append(model_chapter_of(options.evaluation, options.training))
    file = write_report(options.dataset, out, chapters=chapters, options=Options(seed=options.seed), quiet=options.json)
    size = file.stat().st_size
    row = {"report": str(file), "bytes": size}
    return finish(options, row, f"{file}: {size / 1e6:.1f} MB; open it in a browser")
