"""A configuration into the document that Vertex AI and Kubeflow Pipelines run: what both have in common.

TFX's KubeflowV2DagRunner does the work; what it gets wrong or leaves out is put right here. The document is the same
for the same configuration, schema and packages: no clock and no path of this machine is in it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shardwright.components.runtime.mounts import MODULE
from shardwright.config import Config
from shardwright.config.cloud import Resources
from shardwright.config.trainer import BLESSED
from shardwright.dataset.manifest import MULTI
from shardwright.errors import ConfigError
from shardwright.ingest.baseline import REFERENCE, SPLITS, BaselineRequest
from shardwright.ingest.recipe import location_json, relative_places
from shardwright.lineage.record import IMAGE_VARIABLE
from shardwright.pipelines.inputs import resolve_inputs
from shardwright.processes import gc_paused
from shardwright.staging.staging import STAGING_VARIABLE
from shardwright.storage.spans import NEWEST

# Never cached: what they look at changes while their parameters stay.
ALWAYS_RUN = ("InputResolver", "BaselineResolver")
BEAM_COMPONENTS = ("ImageExampleGen", "StatisticsGen", "ImageTransform", "Evaluator")
# What they have finished outlives an attempt: shards, checkpoints.
_STAGES = ("ImageExampleGen", "ImageTransform", "Trainer")
DATA_ROOT = "data_root"
SPAN = "span"

_GIGABYTE = 10**9
_BACKOFF = {"backoffDuration": "60s", "backoffFactor": 2, "backoffMaxDuration": "1800s"}


@dataclass(frozen=True)
class Target:
    """What a place to run on asks of the document.

    Attributes:
        section: its section of the configuration, for messages.
        image: the image of all tasks.
        pipeline_root: folder of all artifacts.
        data_root: folder that stands for the input's own, `None` for that one itself.
        push_directory: folder of blessed models.
        artifacts: how `shardwright.components.runtime.container` opens the places of artifacts.
        other_artifacts: component -> the same, for those that need another way.
        beam: component -> options of Beam beyond those of the configuration.
        resources: component -> what its machine must have.
        custom_job: what TFX's extension for Vertex AI is told, where that trains.
        labels: labels of the run.
        staging: folder of finished shards and checkpoints, which the next attempt uses again.
        retries: how often a task that fails is run again.
    """

    section: str
    image: str
    pipeline_root: str
    data_root: str | None
    push_directory: str
    artifacts: str
    other_artifacts: Mapping[str, str] = field(default_factory=dict)
    beam: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    resources: Mapping[str, Resources] = field(default_factory=dict)
    custom_job: Mapping[str, Any] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    staging: str | None = None
    retries: int = 0


@dataclass(frozen=True)
class Compiled:
    """A compiled pipeline.

    Attributes:
        job: a PipelineJob as plain values.
        data_root: folder of the input unless the run is given another.
        notes: what was told from the data, to be shown.
    """

    job: dict[str, Any]
    data_root: str
    notes: tuple[str, ...]


def required(config: Any, section: str, *names: str) -> None:
    """Refuses a section without the options that its target cannot do without."""
    fixes = {
        "image": "Build one (docs/kubeflow.md) and write REGISTRY/NAME:TAG.",
        "project": "Write the Google Cloud project's id.",
        "region": "Write e.g. europe-west4.",
        "pipeline_root": "Write gs://BUCKET/FOLDER.",
        "push_directory": "Write the folder of a volume, e.g. /models/NAME.",
    }
    for name in names:
        if getattr(config, name) is None:
            raise ConfigError(f"{section}.{name}", "missing", fixes[name])


def staging_notes(config: Config, staging: str, where: str) -> tuple[str, ...]:
    """What to show where `run.staging` names a folder that the target's machines do not share.

    Args:
        config: the configuration.
        staging: the folder that is used.
        where: what `run.staging` is not on.
    """
    own = config.run.staging
    if own is None or own.rstrip("/") == staging:
        return ()
    return (f"run.staging: {own!r} is on {where}; this pipeline stages in {staging}",)


def compile_job(config: Config, config_file: Path, target: Target) -> Compiled:
    """Compiles a configuration.

    Args:
        config: the configuration; its input is listed, for classes and schema, and not hashed.
        config_file: where it was read from.
        target: where it is to run.

    Raises:
        ShardwrightError: something about the input, the schema or the target is wrong.
    """
    prepared = resolve_inputs(config, config_file, hashed=False)
    own_root, places = relative_places(prepared.location)
    data_root = target.data_root or own_root
    asked = BaselineRequest.of(config, target.push_directory)
    # Not above: it takes seconds, and a wrong configuration is refused without it.
    with gc_paused():
        from google.protobuf import json_format
        from tfx import v1 as tfx
        from tfx.orchestration.data_types import RuntimeParameter

        from shardwright.components.baseline_resolver.executor import IN_FORCE
        from shardwright.components.image_transform.recipe import transform_recipe
        from shardwright.components.input_resolver.component import InputResolver
        from shardwright.components.input_resolver.executor import FINGERPRINT, LOCATION, SETTLED_DRIFT, SETTLED_RECIPE
        from shardwright.pipelines.graph import GraphInputs, build_nodes

    resolver = InputResolver(
        recipe=prepared.recipe,
        places=location_json(dataclasses.replace(places, span=NEWEST)),
        data_root=RuntimeParameter(DATA_ROOT, str, default=data_root),
        span=RuntimeParameter(SPAN, str, default=config.input.span),
        blessed=asked,
    )

    def found(name: str) -> Any:
        return resolver.outputs[name].future()[0].value

    options = () if asked is None else asked.options
    inputs = GraphInputs(
        input_fingerprint=found(FINGERPRINT),
        ingest_recipe=found(SETTLED_RECIPE) if SPLITS in options else prepared.recipe,
        transform_recipe=transform_recipe(config),
        classes=prepared.classes,
        multi=prepared.labels == MULTI,
        schema_file="",
        schema_text=prepared.schema_text,
        push_directory=target.push_directory,
        baseline_digest=IN_FORCE,
        input_location=found(LOCATION),
        resolver=resolver,
        custom_job=target.custom_job,
        drift=found(SETTLED_DRIFT) if REFERENCE in options else None,
    )
    pipeline = tfx.dsl.Pipeline(
        pipeline_name=config.name,
        pipeline_root=target.pipeline_root,
        components=build_nodes(_with_beam(prepared.config, target), inputs),
        enable_cache=True,
    )
    runner = tfx.orchestration.experimental.KubeflowV2DagRunner(
        config=tfx.orchestration.experimental.KubeflowV2DagRunnerConfig(
            default_image=target.image, default_commands=["python", "-m", MODULE], use_pipeline_spec_2_1=True
        )
    )
    job = runner.run(pipeline, write_out=False)
    if not isinstance(job, dict):
        job = json_format.MessageToDict(job)
    _fix_producer_tasks(job, target, {DATA_ROOT: data_root, SPAN: config.input.span})
    looked_up = tuple(f"{option}: {BLESSED!r} is looked up when the pipeline runs" for option in options)
    return Compiled(job, data_root, (*prepared.notes, *looked_up))


def executor_label(component: str) -> str:
    """The key under which a document keeps how a component runs."""
    return f"{component}_executor"


def containers(job: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The components of a compiled job by name, each with its container."""
    for label, executor in sorted(job["pipelineSpec"]["deploymentSpec"]["executors"].items()):
        yield label.removesuffix("_executor"), executor["container"]


def _with_beam(config: Config, target: Target) -> Config:
    """The configuration with a target's options of Beam, all of them by component: others take none."""
    options = {
        name: (*config.beam.options, *target.beam.get(name, ()), *config.beam.per_component.get(name, ()))
        for name in BEAM_COMPONENTS
    }
    further = {name: own for name, own in config.beam.per_component.items() if name not in BEAM_COMPONENTS}
    per_component = {name: own for name, own in {**options, **further}.items() if own}
    return dataclasses.replace(config, beam=dataclasses.replace(config.beam, options=(), per_component=per_component))


def _fix_producer_tasks(job: dict[str, Any], target: Target, defaults: Mapping[str, str]) -> None:
    # TFX leaves the parameters' own defaults out, and a run without them would be refused.
    for name, value in defaults.items():
        job["pipelineSpec"]["root"]["inputDefinitions"]["parameters"][name]["defaultValue"] = value
    tasks = job["pipelineSpec"]["root"]["dag"]["tasks"]
    for name, task in tasks.items():
        if name in ALWAYS_RUN:
            task["cachingOptions"] = {}
        if target.retries:
            task["retryPolicy"] = {"maxRetryCount": target.retries, **_BACKOFF}
        for parameter in task.get("inputs", {}).get("parameters", {}).values():
            # TFX names the producer of a dynamic value after no task: https://github.com/tensorflow/tfx, step_builder.
            produced = parameter.get("taskOutputParameter")
            if produced is not None and produced["producerTask"] not in tasks:
                produced["producerTask"] = produced["producerTask"].removesuffix("_task")
                task["dependentTasks"] = sorted({*task.get("dependentTasks", ()), produced["producerTask"]})
    for name, container in containers(job):
        # Every artifact's lineage names the image that it was made in.
        container["env"] = [*container.get("env", ()), {"name": IMAGE_VARIABLE, "value": target.image}]
        if target.staging is not None and name in _STAGES and not (name == "Trainer" and target.custom_job):
            container["env"].append({"name": STAGING_VARIABLE, "value": target.staging})
        container["args"] = ["--artifacts", target.other_artifacts.get(name, target.artifacts), *container["args"]]
        resources = target.resources.get(name)
        if resources is not None:
            container["resources"] = _resource_spec(resources)
    job["labels"] = {**job.get("labels", {}), **target.labels}


def _resource_spec(resources: Resources) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if resources.cpu is not None:
        spec |= {"cpuLimit": resources.cpu, "cpuRequest": resources.cpu}
    if resources.memory is not None:
        gigabytes = resources.memory / _GIGABYTE
        spec |= {"memoryLimit": gigabytes, "memoryRequest": gigabytes}
    return spec
