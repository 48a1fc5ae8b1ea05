"""`shardwright schema`: renders it from a configuration, infers it from a dataset, compares two."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from shardwright.config.options import between
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError
from shardwright.pipelines.commands.files import new_page
from shardwright.pipelines.commands.results import finish, reading
from shardwright.pipelines.commands.settings import config_words, configuration
from shardwright.report.page import write_page
from shardwright.storage import read_bytes


def render(options: Namespace) -> int:
    """Writes the schema of a configuration next to it."""
    from shardwright.pipelines.graph_inputs import render_schema_file

    file = str(render_schema_file(configuration(options), Path(options.config), force=options.force))
    return finish(options, {"file": file}, file, following=f"edit it, then shardwright run {config_words(options)}")


def infer(options: Namespace) -> int:
    """Infers a schema from the records of a dataset."""
    from shardwright.dataset.dataset_schema import infer_schema

    between("--margin", options.margin, 0, 10)
    dataset = ImageDataset.open(options.dataset)
    target = None if options.out is None else new_page("--out", options.out, options.dataset, force=options.force)
    with reading(dataset, "reading records") as shown:
        text = infer_schema(dataset, margin=options.margin, shown=shown)
    if target is not None:
        write_page(target, text)
    return finish(options, {"file": options.out, "schema": text}, text.rstrip("\n") if target is None else options.out)


def diff(options: Namespace) -> int:
    """Compares two schemas; returns 1 if they differ."""
    from shardwright.dataset.dataset_schema import schema_difference

    texts = []
    for name in (options.one, options.other):
        try:
            texts.append(read_bytes(name).decode("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(f"{name}: cannot be read ({why}). Give a file that `schema render` wrote.") from None
    lines = schema_difference(texts[0], texts[1], options.one, options.other)
    return finish(options, lines, *(lines or ["no difference"]), failed=bool(lines))
