"""`shardwright run`: the whole pipeline on this machine, with BeamDagRunner and SQLite metadata.

The process works inside the run's root, and every path that TFX sees is relative to it. Cache keys and metadata contain
no absolute path, so a root that was moved keeps its cache. Only the input and the staging folder are absolute;
executors read them from the environment, outside all keys.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardwright.components.image_trainer.devices.placement import check_machine
from shardwright.components.image_trainer.training.warm_start import WARM_START_VARIABLE, WEIGHTS_VARIABLE
from shardwright.components.runtime.later_imports import later_imports
from shardwright.config import Config, load_config
from shardwright.config.config import WARN
from shardwright.config.trainer import BLESSED, FRESH
from shardwright.drift.monitor import REFERENCE_VARIABLE
from shardwright.errors import ShardwrightError, UsageError
from shardwright.ingest import INPUT_VARIABLE
from shardwright.ingest.baseline import run_root as root_of
from shardwright.lineage.ancestry import ARTIFACTS, METADATA_FILE, PUSHED, Family, find_artifacts
from shardwright.lineage.blessing import baseline_digest
from shardwright.pipelines.commands.results import print_json
from shardwright.pipelines.graph_inputs import ResolvedInputs, resolve_inputs
from shardwright.pipelines.hub.push_model import HubPush, push_blessed, read_token
from shardwright.pipelines.runs.disk_space import check_disk_space, estimate_space, same_disk
from shardwright.pipelines.runs.logs import last_line, log_to_file, shardwright_error
from shardwright.pipelines.runs.on_finish import FinishHook
from shardwright.pipelines.runs.run_folder import LOGS, SCHEMAS, STAGING, check_artifacts, locked_run
from shardwright.report.page import REPORT_FILE
from shardwright.running.processes import gc_paused
from shardwright.running.progress import print_note, print_progress
from shardwright.staging.staging import STAGING_VARIABLE
from shardwright.storage import cached_hashes, is_remote
from shardwright.storage.checksum import checksum_of
from shardwright.storage.whole_files import write_text

if TYPE_CHECKING:
    from shardwright.pipelines.runs.runner import RunRecord
    from shardwright.pipelines.runs.summary import RunSummary


@cached_hashes()  # The input, which is hashed before the graph is built and again in ImageExampleGen.
def run_local(
    config_path: str,
    *,
    root: str | None = None,
    verbose: bool = False,
    as_json: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> int:
    """Runs the pipeline of a configuration file.

    Args:
        config_path: YAML file.
        root: replaces `run.root`.
        verbose: show the messages of TFX, Beam and TensorFlow instead of writing them to a log file.
        as_json: print the summary as JSON.
        settings: see `load_config`.

    Returns:
        0 when a model was blessed and pushed, else 1.

    Raises:
        ShardwrightError: the configuration, the input or a check inside a component is wrong.
    """
    started = time.monotonic()
    config = load_config(config_path, root=root, settings=settings)
    hook = FinishHook(config, str(Path(root_of(config)).absolute()))
    read_token(config.push.hub)
    check_machine(config.trainer.accelerator, config.trainer.hosts, config.trainer.batch_size, os.environ)
    print_progress(f"{config.name}: reading the input")
    resolved = resolve_inputs(config, Path(config_path).absolute())
    config = resolved.config
    run_root = Path(root_of(config))
    try:
        run_root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"run.root: {run_root} cannot be made ({error}). Give another folder with --root.") from None
    for note in (*resolved.notes, *_check_disk_space(config, resolved, str(run_root))):
        print_note(note)
    log_file = run_root / LOGS / f"{time.strftime('%Y%m%d-%H%M%S')}.log"
    shown_log = "above" if verbose else str(log_file)
    with locked_run(run_root):
        check_artifacts(run_root)
        try:
            with _run_environment(run_root, config, resolved), log_to_file(log_file, verbose=verbose):
                summary = _run(config, resolved, run_root, shown_log)
        except Exception as error:
            if as_json:
                print_json({"root": str(run_root), "log": shown_log, "blessed": False, "reasons": [str(error)]})
            hook.failed(error, time.monotonic() - started)
            raise
    seconds = time.monotonic() - started
    delivered = _push_to_hub(config, run_root, config_path, settings or {}) if summary.blessed else None
    hub = delivered if isinstance(delivered, HubPush) else None
    _print_results(summary, hub, run_root=run_root, log=shown_log, seconds=seconds, as_json=as_json)
    hook.finished(summary.facts, blessed=summary.blessed, reasons=list(summary.reasons), seconds=seconds)
    if isinstance(delivered, ShardwrightError):
        raise delivered
    return 0 if summary.blessed else 1


def _push_to_hub(
    config: Config, run_root: Path, config_path: str, settings: Mapping[str, Any]
) -> HubPush | ShardwrightError | None:
    """Pushes the blessed model to the repository of `push.hub`, if there is one; an error waits for the summary."""
    if config.push.hub is None:
        return None
    try:
        return push_blessed(config, config.push.hub, str(run_root / PUSHED), print_note)
    except ShardwrightError as error:
        given = [word for name, value in settings.items() for word in ("--set", f"{name}={json.dumps(value)}")]
        again = ["shardwright", "deliver", config_path, *given, "--hub", "--pushed", str(run_root / PUSHED)]
        return type(error)(f"{error} The run is complete, and the model is blessed. To push it: {shlex.join(again)}")


def _print_results(
    summary: RunSummary, hub: HubPush | None, *, run_root: Path, log: str, seconds: float, as_json: bool
) -> None:
    if as_json:
        pushed = {} if hub is None else {"hub": asdict(hub)}
        print_json({"root": str(run_root), "log": log, **summary.to_dict(), **pushed})
    else:
        lines = [summary.table(), *([] if hub is None else [hub.words()]), "", f"{seconds:.0f} s in all; log: {log}"]
        print("", *lines, sep="\n", flush=True)
    if not summary.blessed:
        print(f"shardwright: the model was not blessed: {'; '.join(summary.reasons)}", file=sys.stderr)
    elif not as_json:
        print_progress(f"Next: shardwright predict {shlex.quote(str(run_root))} IMAGES --out predictions.csv")


def _run(config: Config, resolved: ResolvedInputs, run_root: Path, shown_log: str) -> RunSummary:
    print_progress("  loading TFX")
    with gc_paused(), later_imports():
        from tfx import v1 as tfx

        from shardwright.components.runtime.beam import beam_args, check_staging
        from shardwright.pipelines.graph import GraphInputs, build_nodes
        from shardwright.pipelines.runs.runner import NodeReport, run_pipeline
        from shardwright.pipelines.runs.stock_executors import flush_stock_outputs
        from shardwright.pipelines.runs.summary import hopeless

    options_of_steps = [[*config.beam.options, *options] for options in ((), *config.beam.per_component.values())]
    for options in options_of_steps:
        check_staging(options, config.run.staging, os.environ[STAGING_VARIABLE])
    inputs = GraphInputs(
        input_fingerprint=resolved.fingerprint,
        ingest_recipe=resolved.recipe,
        schema_file=_write_schema(resolved.schema_text),
        schema_text=resolved.schema_text,
        push_directory=PUSHED,
        baseline_digest=baseline_digest(PUSHED),
    )
    nodes = build_nodes(config, inputs)
    flush_stock_outputs(nodes)
    pipeline = tfx.dsl.Pipeline(
        pipeline_name=config.name,
        pipeline_root=root_for(options_of_steps),
        components=nodes,
        enable_cache=True,
        metadata_connection_config=tfx.orchestration.metadata.sqlite_metadata_connection_config(METADATA_FILE),
        beam_pipeline_args=beam_args(config.beam.options),
    )

    def show(report: NodeReport) -> None:
        outcome = "cached" if report.cached else f"{report.seconds:.1f} s"
        print_progress(f"  {report.node:<18}{outcome:>9}")
        if report.node == "ImageExampleGen":
            # Before hours of training: a split that cannot bless any model is known now.
            for line in hopeless(report.outputs["examples"][0], config.evaluator):
                print_note(line)

    record = run_pipeline(pipeline, show)
    if record.failure is not None:
        node, error = record.failure
        logging.getLogger(__name__).error("%s failed", node, exc_info=error)
        if isinstance(error, KeyboardInterrupt):
            raise error
        print_progress(f"  {node:<18}   failed")
        raise shardwright_error(error) or ShardwrightError(
            f"{node} failed with {type(error).__name__}: {last_line(error)}. The log: {shown_log}"
        )
    return _write_results(config, record, run_root, resolved.notes)


def _write_results(config: Config, record: RunRecord, run_root: Path, shown: Sequence[str]) -> RunSummary:
    from shardwright.pipelines.runs.corrections import find_corrections
    from shardwright.pipelines.runs.summary import summarize, write_run_report

    examples = record.output("ImageExampleGen", "examples")
    corrections = None if config.reuse_from is None else find_corrections(examples, config.resolve(config.reuse_from))
    write_run_report(
        dataset=examples,
        verdict=record.output("Report", "report"),
        evaluation=record.output("Evaluator", "evaluation"),
        training=record.output("Trainer", "model_run"),
        target=run_root / REPORT_FILE,
        corrections=corrections,
    )
    return summarize(record, run_root, PUSHED, shown, corrections)


def root_for(options_of_steps: Iterable[Sequence[str]]) -> str:
    """Returns the root of the artifacts of a run in the current folder.

    It is relative, so that the folder can be moved; but workers of a cluster work in folders of their own.

    Args:
        options_of_steps: Beam's options of each component.
    """
    from shardwright.components.runtime.beam import cluster_of

    return os.path.abspath(ARTIFACTS) if any(map(cluster_of, options_of_steps)) else ARTIFACTS


def _check_disk_space(config: Config, resolved: ResolvedInputs, run_root: str) -> Iterator[str]:
    """Reports how much disk space the run takes; outputs of an earlier run that it uses again take none.

    Raises:
        StorageError: there is less space, and `run.space` asks for a check.
    """
    only_warn = config.run.space == WARN
    needed = estimate_space(resolved.images, resolved.bytes, config.images, config.transform)
    family = Family(find_artifacts(f"{run_root}/{ARTIFACTS}"))
    there = [artifact.digest for artifact in family.artifacts.values() if artifact.data == resolved.fingerprint]
    again = any(artifact.parents.get("input") in there for artifact in family.artifacts.values())
    dataset, transformed = 0 if there else needed.dataset, 0 if again else needed.transformed
    staging = config.resolve(config.run.staging) if config.run.staging else run_root
    if not is_remote(staging) and not same_disk(run_root, staging):
        yield check_disk_space(staging, max(dataset, transformed), "staging", only_warn=only_warn)
    yield check_disk_space(run_root, dataset + transformed + needed.rest, "the run", only_warn=only_warn)


def _write_schema(text: str) -> str:
    """Writes the schema to a file named after its content: ImportSchemaGen's cache key is the path."""
    file = Path(SCHEMAS, f"{checksum_of(text.encode())[:16]}.pbtxt")
    write_text(file, text)
    return str(file)


@contextmanager
def _run_environment(run_root: Path, config: Config, resolved: ResolvedInputs) -> Iterator[None]:
    staging = config.resolve(config.run.staging) if config.run.staging else str(run_root / STAGING)
    variables = {INPUT_VARIABLE: json.dumps(asdict(resolved.location)), STAGING_VARIABLE: staging}
    if config.trainer.warm_start not in (FRESH, BLESSED):
        variables[WARM_START_VARIABLE] = config.resolve(config.trainer.warm_start)
    if config.trainer.weights:
        variables[WEIGHTS_VARIABLE] = config.resolve(config.trainer.weights)
    if config.gate.drift is not None:
        variables[REFERENCE_VARIABLE] = config.resolve(config.gate.drift.reference)
    before = {name: os.environ.get(name) for name in variables}
    here = os.getcwd()
    os.environ.update(variables)
    os.chdir(run_root)
    try:
        yield
    finally:
        os.chdir(here)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
