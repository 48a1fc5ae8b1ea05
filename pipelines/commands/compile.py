"""`shardwright compile`: compiles a configuration for Vertex AI or Kubeflow Pipelines."""

from __future__ import annotations

import argparse
import importlib
import os
from pathlib import Path

from shardwright.pipelines.commands.files import add_force, check_free, compiled_pipeline
from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json
from shardwright.running.progress import print_note


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    command = commands.add("compile")
    command.add_argument("config", metavar="CONFIG", help="YAML file")
    command.add_argument("--target", required=True, choices=("vertex", "kubeflow"), help="platform that runs it")
    command.add_argument("--out", required=True, metavar="FILE", help=".json file for Vertex AI, .yaml for Kubeflow")
    add_force(command)
    command.add_argument("--json", action="store_true", help="print the file, its tasks and parameters as JSON")
    command.set_defaults(command=_compile)


def _compile(options: argparse.Namespace) -> int:
    from shardwright.config import load_config
    from shardwright.errors import UsageError
    from shardwright.pipelines.runs.logs import quiet_libraries
    from shardwright.storage.durable import write_file

    config_file, out = Path(options.config).absolute(), Path(options.out)
    if "://" in options.out:
        raise UsageError(f"--out: {options.out} is on a bucket. Give a file on this machine.")
    endings = {"vertex": (".json",), "kubeflow": (".yaml", ".yml")}[options.target]
    if out.suffix not in endings:
        raise UsageError(f"--out: {out} is not a {endings[0]} file, which {options.target} reads. Change its ending.")
    if not out.absolute().parent.is_dir():
        raise UsageError(f"--out: there is no folder {out.absolute().parent}. Make it first.")
    if out.absolute().resolve() == config_file.resolve():
        raise UsageError(f"--out: {out} is the configuration, which would be overwritten. Name another file.")
    earlier = compiled_pipeline(options.out)
    if earlier is None:
        check_free("--out", options.out, force=options.force)
    config = load_config(options.config)
    if earlier != config.name:
        check_free("--out", options.out, force=options.force)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    with quiet_libraries():
        from shardwright.pipelines.cloud.pipeline_document import DATA_ROOT, SPAN, containers

        importlib.import_module(f"shardwright.pipelines.compile_{options.target}")
    if options.target == "vertex":
        from shardwright.pipelines.compile_vertex import compile_vertex, vertex_document

        compiled = compile_vertex(config, config_file)
        text = vertex_document(compiled)
    else:
        from shardwright.pipelines.compile_kubeflow import compile_kubeflow, kubeflow_document

        compiled = compile_kubeflow(config, config_file)
        text = kubeflow_document(config, compiled)
    write_file(out, text)
    tasks = [name for name, _ in containers(compiled.job)]
    if options.json:
        parameters = {DATA_ROOT: compiled.data_root, SPAN: config.input.span}
        row = {"file": str(out), "tasks": sorted(tasks), "parameters": parameters, "notes": list(compiled.notes)}
        print_json(row)
        return 0
    for note in compiled.notes:
        print_note(note)
    print(f"{out}: {len(tasks)} tasks; parameters data_root (default {compiled.data_root}), span ({config.input.span})")
    return 0
