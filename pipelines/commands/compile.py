"""`shardwright compile`: compiles a configuration for Vertex AI or Kubeflow Pipelines."""

from __future__ import annotations

import importlib
import shlex
from argparse import Namespace
from pathlib import Path

from shardwright.errors import UsageError
from shardwright.pipelines.commands.files import check_free, compiled_pipeline
from shardwright.pipelines.commands.results import finish
from shardwright.pipelines.commands.settings import config_words, configuration
from shardwright.running.progress import print_note
from shardwright.storage.durable import write_file

_ENDINGS = {"vertex": (".json",), "kubeflow": (".yaml", ".yml")}


def run(options: Namespace) -> int:
    """Writes the file that the platform runs."""
    from shardwright.pipelines.runs.logs import quiet_libraries

    config_file, out = Path(options.config).absolute(), Path(options.out)
    if "://" in options.out:
        raise UsageError(f"--out: {options.out} is on a bucket. Give a file on this machine.")
    endings = _ENDINGS[options.target]
    if out.suffix not in endings:
        raise UsageError(f"--out: {out} is not a {endings[0]} file, which {options.target} reads. Change its ending.")
    if not out.absolute().parent.is_dir():
        raise UsageError(f"--out: there is no folder {out.absolute().parent}. Make it first.")
    if out.absolute().resolve() == config_file.resolve():
        raise UsageError(f"--out: {out} is the configuration, which would be overwritten. Name another file.")
    earlier = compiled_pipeline(options.out)
    if earlier is None:
        check_free("--out", options.out, force=options.force)
    config = configuration(options)
    if earlier != config.name:
        check_free("--out", options.out, force=options.force)
    with quiet_libraries():
        from shardwright.pipelines.cloud.pipeline_document import DATA_ROOT, SPAN, containers

        importlib.import_module(f"shardwright.pipelines.compile_{options.target}")
    if options.target == "vertex":
        from shardwright.pipelines.compile_vertex import compile_vertex, vertex_document

        compiled = compile_vertex(config, config_file)
        text = vertex_document(compiled)
        following = f"shardwright submit {config_words(options)}"
    else:
        from shardwright.pipelines.compile_kubeflow import compile_kubeflow, kubeflow_document

        compiled = compile_kubeflow(config, config_file)
        text = kubeflow_document(config, compiled)
        following = f"kfp run create --experiment-name {config.name} --package-file {shlex.quote(options.out)}"
    write_file(out, text)
    tasks = sorted(name for name, _ in containers(compiled.job))
    parameters = {DATA_ROOT: compiled.data_root, SPAN: config.input.span}
    notes = list(compiled.notes)
    if config.push.hub is not None:
        again = f"shardwright deliver {config_words(options)} --hub --pushed DIR"
        notes.append(f"push.hub: the pipeline itself pushes to no hub; call {again} after a run")
    for note in notes:
        print_note(note)
    return finish(
        options,
        {"file": str(out), "tasks": tasks, "parameters": parameters, "notes": notes},
        f"{out}: {len(tasks)} tasks; parameters data_root (default {compiled.data_root}), span ({config.input.span})",
        following=following,
    )
