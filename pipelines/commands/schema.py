"""`shardwright schema`: renders it from a configuration, infers it from a dataset, compares two."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TypeAlias

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add(commands: _Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    schema = commands.add_parser("schema", help="render, infer or compare schemas")
    actions = schema.add_subparsers(title="actions", required=True, metavar="ACTION")
    render = actions.add_parser("render", help="write the schema next to the configuration")
    render.add_argument("config", metavar="CONFIG", help="YAML file")
    render.add_argument("--force", action="store_true", help="replace a file that is there, curated or not")
    render.set_defaults(command=_render)
    infer = actions.add_parser("infer", help="infer a schema with domains as narrow as a dataset's values")
    infer.add_argument("dataset", metavar="DIR", help="folder that `shardwright ingest` wrote, or its URL")
    infer.add_argument("--out", metavar="FILE", help="file to write (default: print it)")
    infer.add_argument("--margin", type=float, default=0.1, metavar="P", help="room beyond the values (default 0.1)")
    infer.set_defaults(command=_infer)
    diff = actions.add_parser("diff", help="compare two schemas; exit code 1 if they differ")
    diff.add_argument("one", metavar="FILE", help="a schema")
    diff.add_argument("other", metavar="FILE", help="another one")
    diff.set_defaults(command=_diff)


def _render(options: argparse.Namespace) -> int:
    from shardwright.config import load_config
    from shardwright.pipelines.inputs import render_schema_file

    print(render_schema_file(load_config(options.config), Path(options.config), force=options.force))
    return 0


def _infer(options: argparse.Namespace) -> int:
    from shardwright.config.parsing import between
    from shardwright.dataset.reader import ImageDataset
    from shardwright.dataset.schema import infer_schema
    from shardwright.progress import progress
    from shardwright.report.page import page_file, write_page

    between("--margin", options.margin, 0, 10)
    dataset = ImageDataset.open(options.dataset)
    target = None if options.out is None else page_file(options.out, "--out", options.dataset)
    with progress(sum(shard.records for shard in dataset.manifest.shards), "reading records") as shown:
        text = infer_schema(dataset, margin=options.margin, shown=shown)
    if target is None:
        print(text, end="")
    else:
        write_page(target, text)
        print(options.out)
    return 0


def _diff(options: argparse.Namespace) -> int:
    from shardwright.dataset.schema import schema_difference
    from shardwright.errors import UsageError

    texts = []
    for name in (options.one, options.other):
        try:
            texts.append(Path(name).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{name}: cannot be read ({error}). Give a file that `schema render` wrote.") from None
    lines = schema_difference(texts[0], texts[1], options.one, options.other)
    print("\n".join(lines) if lines else "no difference")
    return 1 if lines else 0
