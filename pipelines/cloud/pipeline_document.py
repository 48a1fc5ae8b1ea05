"""Compiles a configuration into a pipeline document: the part that Vertex AI and Kubeflow Pipelines share.

TFX's KubeflowV2DagRunner does the work; `compile_job` corrects and completes its result. The same configuration, schema
and packages give the same document: it contains neither a time nor a path of this machine.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardwright.components.runtime.documents import correct_document
from shardwright.components.runtime.mounts import MODULE
from shardwright.components.runtime.packed import pack_parameters
from shardwright.components.runtime.page_outputs import CLASSIFICATION_METRICS, PAGE_OUTPUTS, SCHEMA_VERSION
from shardwright.config import Config, KubeflowConfig, VertexConfig
from shardwright.config.cloud import Resources
from shardwright.config.trainer import BLESSED, FRESH
from shardwright.dataset.manifest import MULTI
from shardwright.errors import ConfigError, CredentialsError, UsageError
from shardwright.ingest.baseline import REFERENCE, SPLITS, BaselineRequest
from shardwright.ingest.recipe import InputLocation, absolute_places, location_json, relative_places
from shardwright.ingest.select_spans import becomes_input
from shardwright.lineage.record import IMAGE_VARIABLE
from shardwright.pipelines.graph_inputs import ResolvedInputs, resolve_inputs
from shardwright.running.processes import gc_paused
from shardwright.staging.staging import STAGING_VARIABLE
from shardwright.storage.listing import has_wildcard
from shardwright.storage.paths import scheme_of
from shardwright.storage.spans import NEWEST

if TYPE_CHECKING:
    from tfx.types import BaseNode

    from shardwright.components.input_resolver.component import InputResolver
    from shardwright.pipelines.graph import GraphInputs, Step

DATA_ROOT = "data_root"
SPAN = "span"

_GIGABYTE = 10**9
# Vertex AI allows no longer time.
_HOUR = 3600
# Option that a target needs -> what to write.
_EXAMPLES = {
    "image": "Build one (`shardwright docs deploy/image`) and write REGISTRY/NAME:TAG.",
    "project": "Write the Google Cloud project's id, e.g. my-project.",
    "region": "Write e.g. europe-west4.",
    "pipeline_root": "Write gs://BUCKET/FOLDER.",
    "push_directory": "Write the folder of a volume, e.g. /models/NAME.",
}
_BACKOFF = {"backoffDuration": "60s", "backoffFactor": 2}


@dataclass(frozen=True)
class Target:
    """The requirements of a platform on the document.

    Attributes:
        section: its section of the configuration, for messages.
        image: the image of all tasks.
        pipeline_root: folder of all artifacts.
        data_root: folder that stands for the input's own, `None` for that one itself.
        push_directory: folder of blessed models.
        artifacts: returns how `shardwright.components.runtime.container` opens the artifacts of a step.
        beam: component -> options of Beam beyond those of the configuration.
        resources: component -> what its machine must have.
        custom_job: options of TFX's extension for Vertex AI, if that trains.
        labels: labels of the run.
        staging: folder of finished shards and checkpoints, which the next attempt uses again.
        retries: how often a task that fails is run again.
        retry_for: seconds since a task began in which it may be run again.
    """

    section: str
    image: str
    pipeline_root: str
    data_root: str | None
    push_directory: str
    artifacts: Callable[[Step], str]
    beam: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    resources: Mapping[str, Resources] = field(default_factory=dict)
    custom_job: Mapping[str, Any] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    staging: str | None = None
    retries: int = 0
    retry_for: int = _HOUR


@dataclass(frozen=True)
class Compiled:
    """A compiled pipeline.

    Attributes:
        job: a PipelineJob as plain values.
        data_root: folder of the input unless the run is given another.
        notes: what was detected in the data, to be shown.
    """

    job: dict[str, Any]
    data_root: str
    notes: tuple[str, ...]


def missing_options(section: VertexConfig | KubeflowConfig, *names: str) -> Iterator[ConfigError]:
    """Yields an error with an example for each option that a target needs and its section lacks."""
    for name in names:
        if getattr(section, name) is None:
            yield ConfigError(f"{section.PATH}.{name}", "missing", _EXAMPLES[name])


def errors_of(*checks: Callable[[], object]) -> Iterator[ConfigError]:
    """Yields what some checks refuse."""
    for check in checks:
        try:
            check()
        except ConfigError as error:
            yield error


def refuse_all(errors: Iterable[ConfigError]) -> None:
    """Raises errors at once: a single one as it is, several as one that lists them.

    Raises:
        UsageError: there is an error.
    """
    listed = list(errors)
    if len(listed) == 1:
        raise listed[0]
    if listed:
        raise UsageError("\n".join(map(str, listed)))


def unreadable_weights(config: Config) -> Iterator[ConfigError]:
    """Yields an error for each file of initial weights that the machine that trains cannot read."""
    files = {"trainer.warm_start": config.trainer.warm_start, "trainer.weights": config.trainer.weights}
    for path, place in files.items():
        if place not in (None, FRESH, BLESSED) and scheme_of(str(place)) is None:
            yield ConfigError(
                path,
                f"{place!r} is not on a bucket, and the machine that trains cannot read files of this one",
                "Copy the file to a bucket, and write its URL, such as gs://BUCKET/model.keras.",
            )


def staging_notes(config: Config, staging: str, where: str) -> tuple[str, ...]:
    """Returns a note if `run.staging` names a folder that the target's machines do not share.

    Args:
        config: the configuration.
        staging: the folder that is used instead.
        where: the kinds of storage that `run.staging` is not on.
    """
    own = config.run.staging
    if own is None or own.rstrip("/") == staging:
        return ()
    return (f"run.staging: {own!r} is not on {where}; this pipeline stages in {staging}",)


def input_places(config: Config) -> dict[str, str]:
    """Returns the absolute paths and URLs of the input and of earlier datasets, by the options that name them."""
    places = {"input.images": config.input.images, "input.labels.path": config.input.labels.path}
    places |= {f"split.from_lists.{name}": file for name, file in (config.split.from_lists or {}).items()}
    places |= {"split.keep_from": config.split.keep_from, "reuse_from": config.reuse_from}
    return {path: config.resolve(place) for path, place in places.items() if place not in (None, BLESSED)}


def _check_places(target: Target, images: str) -> None:
    """Refuses folders of the pipeline's files that the next run would list as images.

    Nothing is asked of another bucket than that of the input.
    """
    if target.data_root is not None and (has_wildcard(images) or "{" in images):
        return
    for key, place in (("pipeline_root", target.pipeline_root), ("push_directory", target.push_directory)):
        if becomes_input(place, images):
            what = f"{place} is inside the input folder {images} and would become input"
            raise ConfigError(f"{target.section}.{key}", what, "Name a folder outside of it.")


def compile_job(config: Config, config_file: Path, target: Target) -> Compiled:
    """Compiles a configuration.

    Args:
        config: the configuration; its input is listed, for classes and schema, and not hashed.
        config_file: where it was read from.
        target: the platform that runs it.

    Raises:
        ShardwrightError: something about the input, the schema or the target is wrong.
    """
    try:
        resolved = resolve_inputs(config, config_file, hashed=False)
    except CredentialsError as error:
        raise UsageError(
            f"{error} Without an account, name a copy on this machine in input.images, and the bucket in "
            f"{target.section}.data_root."
        ) from None
    own_root, locations = relative_places(resolved.location)
    _check_places(target, absolute_places(target.data_root or own_root, locations).images)
    defaults = {DATA_ROOT: target.data_root or own_root, SPAN: config.input.span}
    baseline = BaselineRequest.of(config, target.push_directory)
    options = () if baseline is None else baseline.options
    # Imported only now: it takes seconds, and errors in the configuration are reported without it.
    with gc_paused():
        from shardwright.pipelines.graph import STEPS, build_nodes

    resolver = _input_resolver(resolved.recipe, locations, defaults, baseline)
    inputs = _graph_inputs(config, target, resolved, resolver, options)
    job = _compile_nodes(config.name, build_nodes(_with_beam(resolved.config, target, STEPS), inputs), target)
    for name, value in defaults.items():
        # TFX leaves them out, and a run without them would be refused.
        job["pipelineSpec"]["root"]["inputDefinitions"]["parameters"][name]["defaultValue"] = value
    steps = {step.name: step for step in STEPS}
    _fix_producer_tasks(job, target, steps)
    _set_containers(job, target, steps)
    pack_parameters(job["pipelineSpec"])
    _add_page_outputs(job, with_matrix=config.task == "classification" and resolved.labels != MULTI)
    job["labels"] = {**job.get("labels", {}), **target.labels}
    at_run = tuple(f"{option}: {BLESSED!r} is looked up when the pipeline runs" for option in options)
    if config.run.on_finish is not None:
        at_run += (
            "run.on_finish: only `shardwright run` calls it; for a message use vertex.notify or kubeflow.notify",
        )
    return Compiled(job, defaults[DATA_ROOT], (*resolved.notes, *at_run))


def _input_resolver(
    recipe: str, locations: InputLocation, defaults: Mapping[str, str], baseline: BaselineRequest | None
) -> InputResolver:
    """Returns the component that resolves the input when the pipeline runs."""
    from tfx.orchestration.data_types import RuntimeParameter

    from shardwright.components.input_resolver.component import InputResolver, ResolverRequest

    places = location_json(dataclasses.replace(locations, span=NEWEST))
    return InputResolver.of_request(
        ResolverRequest(recipe, places, baseline),
        RuntimeParameter(DATA_ROOT, str, default=defaults[DATA_ROOT]),
        RuntimeParameter(SPAN, str, default=defaults[SPAN]),
    )


def _graph_inputs(
    config: Config, target: Target, resolved: ResolvedInputs, resolver: InputResolver, options: Sequence[str]
) -> GraphInputs:
    """Returns the graph's inputs; those that only the run knows are outputs of the resolver."""
    from shardwright.components.baseline_resolver.executor import AT_RUN
    from shardwright.components.input_resolver.executor import FINGERPRINT, LOCATION, SETTLED_DRIFT, SETTLED_RECIPE
    from shardwright.pipelines.graph import GraphInputs

    def at_run(name: str) -> Any:
        return resolver.outputs[name].future()[0].value

    return GraphInputs(
        input_fingerprint=at_run(FINGERPRINT),
        ingest_recipe=at_run(SETTLED_RECIPE) if SPLITS in options else resolved.recipe,
        schema_file="",
        schema_text=resolved.schema_text,
        push_directory=target.push_directory,
        baseline_digest=AT_RUN,
        input_location=at_run(LOCATION),
        resolver=resolver,
        custom_job=target.custom_job,
        drift=at_run(SETTLED_DRIFT) if REFERENCE in options else None,
    )


def _compile_nodes(name: str, nodes: list[BaseNode], target: Target) -> dict[str, Any]:
    """Returns TFX's PipelineJob as plain values."""
    from google.protobuf import json_format
    from tfx import v1 as tfx

    pipeline = tfx.dsl.Pipeline(
        pipeline_name=name, pipeline_root=target.pipeline_root, components=nodes, enable_cache=True
    )
    runner = tfx.orchestration.experimental.KubeflowV2DagRunner(
        config=tfx.orchestration.experimental.KubeflowV2DagRunnerConfig(
            default_image=target.image, default_commands=["python", "-m", MODULE], use_pipeline_spec_2_1=True
        )
    )
    job = runner.run(pipeline, write_out=False)
    return job if isinstance(job, dict) else json_format.MessageToDict(job)


def executor_label(component: str) -> str:
    """Returns the key of a component's executor in a document."""
    return f"{component}_executor"


def containers(job: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the components of a compiled job by name, each with its container."""
    for label, executor in sorted(job["pipelineSpec"]["deploymentSpec"]["executors"].items()):
        yield label.removesuffix("_executor"), executor["container"]


def _with_beam(config: Config, target: Target, steps: Iterable[Step]) -> Config:
    """Returns the configuration with the target's options of Beam, all of them by component: others take none."""
    names = [step.name for step in steps if step.uses_beam]
    options = {
        name: (*config.beam.options, *target.beam.get(name, ()), *config.beam.per_component.get(name, ()))
        for name in names
    }
    unknown = {name: own for name, own in config.beam.per_component.items() if name not in names}
    per_component = {name: own for name, own in {**options, **unknown}.items() if own}
    return dataclasses.replace(config, beam=dataclasses.replace(config.beam, options=(), per_component=per_component))


def _fix_producer_tasks(job: dict[str, Any], target: Target, steps: Mapping[str, Step]) -> None:
    """Sets how tasks are cached and retried, and corrects the names of the tasks that produce dynamic values."""
    correct_document(job)
    tasks = job["pipelineSpec"]["root"]["dag"]["tasks"]
    for name, task in tasks.items():
        if not steps[name].cached:
            task["cachingOptions"] = {}
        if target.retries:
            task["retryPolicy"] = {
                "maxRetryCount": target.retries,
                **_BACKOFF,
                "backoffMaxDuration": f"{target.retry_for}s",
            }


def _set_containers(job: dict[str, Any], target: Target, steps: Mapping[str, Step]) -> None:
    """Completes the containers: environment, how artifacts are opened, resources."""
    for name, container in containers(job):
        step = steps[name]
        # Every artifact's lineage names the image that it was made in.
        container["env"] = [*container.get("env", ()), {"name": IMAGE_VARIABLE, "value": target.image}]
        if target.staging is not None and step.stages and not (name == "Trainer" and target.custom_job):
            container["env"].append({"name": STAGING_VARIABLE, "value": target.staging})
        container["args"] = ["--artifacts", target.artifacts(step), *container["args"]]
        if (resources := target.resources.get(name)) is not None:
            gigabytes = None if resources.memory is None else resources.memory / _GIGABYTE
            asked = {"cpu": resources.cpu, "memory": gigabytes}
            container["resources"] = {
                f"{kind}{bound}": value
                for kind, value in asked.items()
                for bound in ("Limit", "Request")
                if value is not None
            }


def _add_page_outputs(job: dict[str, Any], *, with_matrix: bool) -> None:
    """Declares the outputs that the service's pages show; the container writes them.

    Args:
        job: the pipeline.
        with_matrix: whether the evaluation has a confusion matrix.
    """
    spec = job["pipelineSpec"]
    for name, outputs in PAGE_OUTPUTS.items():
        component = spec["components"][spec["root"]["dag"]["tasks"][name]["componentRef"]["name"]]
        defined = component["outputDefinitions"]["artifacts"]
        for key, kind in outputs.items():
            if kind != CLASSIFICATION_METRICS or with_matrix:
                defined[key] = {"artifactType": {"schemaTitle": kind, "schemaVersion": SCHEMA_VERSION}}
