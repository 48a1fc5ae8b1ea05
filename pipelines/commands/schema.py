"""`shardwright schema`: renders it from a configuration, infers it from a dataset, compares two."""

from __future__ import annotations

import argparse
from pathlib import Path

from shardwright.pipelines.commands.files import add_force, new_page
from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    actions = commands.add_group("schema")
    render = actions.add("render")
    render.add_argument("config", metavar="CONFIG", help="YAML file")
    render.add_argument("--force", action="store_true", help="replace the file, also if you have edited it")
    _add_json(render, "the file")
    render.set_defaults(command=_render)
    infer = actions.add("infer")
    infer.add_argument("dataset", metavar="DIR", help="folder that `shardwright ingest` wrote, or its URL")
    infer.add_argument("--out", metavar="FILE", help="file to write (default: print it)")
    infer.add_argument("--margin", type=float, default=0.1, metavar="P", help="room beyond the values (default 0.1)")
    add_force(infer)
    _add_json(infer, "the file and the schema")
    infer.set_defaults(command=_infer)
    diff = actions.add("diff")
    diff.add_argument("one", metavar="OLD", help="a schema")
    diff.add_argument("other", metavar="NEW", help="another one")
    _add_json(diff, "the differences")
    diff.set_defaults(command=_diff)


def _add_json(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--json", action="store_true", help=f"print {what} as JSON")


def _render(options: argparse.Namespace) -> int:
    from shardwright.config import load_config
    from shardwright.pipelines.graph_inputs import render_schema_file

    file = str(render_schema_file(load_config(options.config), Path(options.config), force=options.force))
    if options.json:
        print_json({"file": file})
    else:
        print(file)
    return 0


def _infer(options: argparse.Namespace) -> int:
    from shardwright.config.options import between
    from shardwright.dataset.dataset_schema import infer_schema
    from shardwright.dataset.reader import ImageDataset
    from shardwright.report.page import write_page
    from shardwright.running.progress import progress

    between("--margin", options.margin, 0, 10)
    dataset = ImageDataset.open(options.dataset)
    target = None if options.out is None else new_page("--out", options.out, options.dataset, force=options.force)
    with progress(sum(shard.records for shard in dataset.manifest.shards), "reading records") as shown:
        text = infer_schema(dataset, margin=options.margin, shown=shown)
    if target is not None:
        write_page(target, text)
    if options.json:
        print_json({"file": options.out, "schema": text})
    else:
        print(text if target is None else f"{options.out}\n", end="")
    return 0


def _diff(options: argparse.Namespace) -> int:
    from shardwright.dataset.dataset_schema import schema_difference
    from shardwright.errors import UsageError
    from shardwright.storage import read_bytes

    texts = []
    for name in (options.one, options.other):
        try:
            texts.append(read_bytes(name).decode("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(f"{name}: cannot be read ({why}). Give a file that `schema render` wrote.") from None
    lines = schema_difference(texts[0], texts[1], options.one, options.other)
    if options.json:
        print_json(lines)
    else:
        print("\n".join(lines) if lines else "no difference")
    return 1 if lines else 0
