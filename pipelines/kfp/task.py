"""The program in the containers of the plain components: `python -m shardwright.pipelines.kfp.task STEP …`.

Kubeflow's launcher passes folders and files of this machine, Vertex AI passes URLs of Cloud Storage. ImageTransform and
the steps that write one file work on this machine and copy the result.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from shardwright.components.runtime.artifacts import fetch_folder
from shardwright.config import Config, load_config
from shardwright.config.trainer import BLESSED
from shardwright.dataset.manifest import Manifest
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ConfigError, ShardwrightError
from shardwright.ingest.baseline import uses_baseline
from shardwright.running.progress import counted, print_note
from shardwright.storage import buckets, is_remote
from shardwright.storage.mirror import put_folder
from shardwright.text.escaping import escape, escape_message, escaped_streams


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a step.

    Returns:
        0, or the exit code of an error that a user is meant to see.
    """
    with escaped_streams():
        return _run_step(arguments)


def _run_step(arguments: Sequence[str] | None) -> int:
    options = _parser().parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="shardwright-") as scratch:
            code: int = options.step(options, Path(scratch))
            return code
    except ShardwrightError as error:
        print(f"shardwright: {escape_message(str(error))}", file=sys.stderr, flush=True)
        return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m shardwright.pipelines.kfp.task", allow_abbrev=False)
    steps = parser.add_subparsers(required=True)
    for step, names in (
        (_ingest, ("config", "data-root", "dataset", "fingerprint")),
        (_verify, ("dataset", "deep", "strict", "findings", "whole")),
        (_transform, ("config", "dataset", "transformed", "graph")),
        (_report, ("dataset", "seed", "page")),
    ):
        command = steps.add_parser(step.__name__.removeprefix("_"))
        for name in names:
            command.add_argument(f"--{name}", required=True, type=_KINDS.get(name, str))
        command.set_defaults(step=step)
    return parser


def _ingest(options: argparse.Namespace, scratch: Path) -> int:
    from shardwright.ingest import ingest

    config = _config(options.config, scratch)
    for path in uses_baseline(config):
        raise ConfigError(
            path, f"{BLESSED!r} is the dataset of a model, which a single step does not have", "Name a dataset."
        )
    if options.data_root:
        config = dataclasses.replace(config, base=options.data_root.rstrip("/") or "/")
    manifest = ingest(config, options.dataset, log=print_note)
    _write(options.fingerprint, manifest.fingerprint, scratch)
    _print_summary(manifest)
    return 0


def _verify(options: argparse.Namespace, scratch: Path) -> int:
    from shardwright.verify import verify

    report = verify(options.dataset, deep=options.deep, quiet=True)
    findings = {"whole": not report.findings, **dataclasses.asdict(report)}
    # The path in this container is of no use outside it.
    del findings["dataset"]
    _write(options.findings, json.dumps(findings, sort_keys=True, indent=1, ensure_ascii=False) + "\n", scratch)
    _write(options.whole, "false" if report.findings else "true", scratch)
    for finding in report.findings:
        print(escape(f"{finding.file} {finding.place}: {finding.problem}"), file=sys.stderr)
    read = f"{counted(report.shards, 'shard')}, {counted(report.records, 'record')} read"
    print(f"{read}; {counted(len(report.findings), 'finding')}")
    return 1 if report.findings and options.strict else 0


def _transform(options: argparse.Namespace, scratch: Path) -> int:
    from shardwright.pipelines.standalone_transform import EXAMPLES, GRAPH, transform_dataset

    config = _config(options.config, scratch)
    # Next to the output, on the disk that has the space.
    made = scratch if is_remote(options.transformed) else Path(options.transformed).parent
    with tempfile.TemporaryDirectory(prefix=".transform.", dir=made) as folder:
        dataset = options.dataset
        if is_remote(dataset):
            dataset = str(Path(folder, "dataset"))
            fetch_folder(options.dataset, Path(dataset))
        beam = (*config.beam.options, *config.beam.per_component.get("ImageTransform", ()))
        manifest = transform_dataset(dataset, config, Path(folder, "out"), beam=beam or None)
        for name, place in ((GRAPH, options.graph), (EXAMPLES, options.transformed)):
            _deliver(Path(folder, "out", name), place)
    _print_summary(manifest)
    return 0


def _report(options: argparse.Namespace, scratch: Path) -> int:
    from shardwright.report.collect import Options
    from shardwright.report.page import write_report

    page = scratch / "report.html"
    write_report(options.dataset, page, options=Options(seed=options.seed), quiet=True)
    shards = counted(len(ImageDataset.open(options.dataset).manifest.shards), "shard")
    print(f"{page.stat().st_size / 1e6:.1f} MB about {shards}")
    _deliver(page, options.page)
    return 0


def _config(text: str, scratch: Path) -> Config:
    file = scratch / "pipeline.yaml"
    file.write_text(text, encoding="utf-8")
    return load_config(file)


def _boolean(text: str) -> bool:
    # KFP's launchers write them as Python, Go or JSON do.
    if text.lower() not in ("true", "false", "1", "0"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text.lower() in ("true", "1")


def _integer(text: str) -> int:
    # In KFP's documents every number is a double.
    if not float(text).is_integer():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(float(text))


_KINDS: dict[str, Callable[[str], Any]] = {"deep": _boolean, "strict": _boolean, "seed": _integer}


def _write(place: str, text: str, scratch: Path) -> None:
    file = scratch / "text"
    file.write_text(text, encoding="utf-8")
    _deliver(file, place)


def _print_summary(manifest: Manifest) -> None:
    shards, images = counted(len(manifest.shards), "shard"), counted(manifest.totals["written"], "image")
    print(f"{shards}, {images}, fingerprint {manifest.fingerprint}")


def _deliver(made: Path, place: str) -> None:
    """Moves a file or a folder to its place; an empty folder there is replaced."""
    if is_remote(place):
        if made.is_dir():
            put_folder(made, place)
        else:
            buckets.upload(place, str(made))
        return
    target = Path(place)
    target.parent.mkdir(parents=True, exist_ok=True)
    if made.is_dir() and target.is_dir():
        target.rmdir()
    shutil.move(made, target)


if __name__ == "__main__":
    sys.exit(main())
