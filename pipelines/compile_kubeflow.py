"""`--target kubeflow`: the two YAML documents that Kubeflow Pipelines v2 runs.

The first is the pipeline's intermediate representation (schema 2.1.0). The second states how Kubernetes runs it, keyed
by executor label. `check_for_backend` refuses documents that the backend refuses, cannot start or silently ignores
(kubeflow/pipelines, backend/src/v2): schema versions other than 2.1.0, `lifecycle`, resolvers, labels of no executor,
arguments that are too long for a pod.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from shardwright.components.runtime.documents import tasks_of
from shardwright.components.runtime.mounts import LOCAL
from shardwright.components.runtime.post_notification import WEBHOOK_VARIABLE
from shardwright.config import Config, KubeflowConfig
from shardwright.config.cloud import COMPONENTS
from shardwright.config.pods import ALL, PodConfig
from shardwright.config.trainer import BLESSED
from shardwright.config.yaml_text import dump_yaml
from shardwright.errors import ConfigError
from shardwright.ingest.baseline import uses_baseline
from shardwright.pipelines import tpu
from shardwright.pipelines.cloud.exit_task import EXECUTOR, NOTIFY, add_webhook_task
from shardwright.pipelines.cloud.image import image_notes
from shardwright.pipelines.cloud.jobset_document import jobset_template
from shardwright.pipelines.cloud.machines import check_hosts, trainer_slice, with_accelerator
from shardwright.pipelines.cloud.pipeline_document import (
    Compiled,
    Target,
    compile_job,
    containers,
    errors_of,
    executor_label,
    input_places,
    missing_options,
    refuse_all,
    staging_notes,
    unreadable_weights,
)
from shardwright.pipelines.cloud.pod_documents import RUN_AS, pod_settings
from shardwright.pipelines.graph_inputs import check_options
from shardwright.staging.staging import VOLUME_STAGING
from shardwright.storage.fingerprint import canonical_json
from shardwright.storage.paths import scheme_of

SECTION = "kubeflow"
SCHEMA_VERSION = "2.1.0"
IMAGE = "image"

_IMAGE_OF_THE_RUN = f"{{{{$.inputs.parameters['{IMAGE}']}}}}"

# Argo takes `backoffMaxDuration` as a deadline: that long after a task began it starts no attempt, and ends the one
# that runs (argoproj/argo-workflows, workflow/controller/operator.go, `processNodeRetries`). The default is 0.
_RETRY_FOR = 30 * 24 * 3600

# Argo hands the arguments of a pod over in one variable, ARGO_TEMPLATE, and Linux allows 131,071 bytes for one. Before
# Argo 3.6, so in Kubeflow Pipelines before 2.14, they are in it twice: as parameters and as arguments. Later versions
# move a longer one to a ConfigMap, which they may not create as installed (workflow/controller/workflowpod.go).
# The rest is for Kubeflow's own options, and for the artifacts that a task reads: less than 8,000 bytes in every
# recorded run.
_MOST_BYTES = 100_000
_ONCE_SINCE = 14

# Earlier compilers refuse a whole pipeline with it: "task final status not supported yet".
_STATUS_SINCE = 14
_NOTIFY_NOTE = (
    f"kubeflow.notify: needs Kubeflow Pipelines 2.{_STATUS_SINCE}; an earlier one refuses the pipeline unless "
    "kubeflow.version names it"
)

# Since then Kubeflow's own compiler gives a task's pod all that the Pod Security Standard "restricted" asks for, except
# the user (backend/src/v2/compiler/argocompiler/security_context.go). Drivers before 2.5 refuse unknown settings.
_SECURED_SINCE = 16

_CLUSTERS_OWN_ROOT = "minio://mlpipeline/v2/artifacts"


def compile_kubeflow(config: Config, config_file: Path) -> Compiled:
    """Compiles a configuration for Kubeflow Pipelines.

    Raises:
        ShardwrightError: something about the configuration, the input or the schema is wrong.
    """
    refuse_all(target_errors(config))
    section, config = config.kubeflow, _with_accelerator(config)
    image = image_notes(SECTION, str(section.image), config.trainer.accelerator)
    root = (section.pipeline_root or _CLUSTERS_OWN_ROOT).rstrip("/")
    target = Target(
        section=SECTION,
        image=str(section.image),
        pipeline_root=root,
        data_root=None if section.data_root is None else section.data_root.rstrip("/"),
        push_directory=str(section.push_directory).rstrip("/"),
        artifacts=lambda step: LOCAL,
        staging=_staging(config),
        retries=section.retries,
        retry_for=_RETRY_FOR,
        # If the slice has several hosts, the pods of the JobSet ask for the Trainer's resources.
        resources={n: r for n, r in section.resources.items() if n != "Trainer" or not _has_several_hosts(config)},
    )
    compiled = compile_job(config, config_file, target)
    _add_variables(config, compiled.job)
    add_accelerator(config, compiled.job)
    notes = add_jobset(config, compiled.job)
    notes += staging_notes(config, str(target.staging), "a bucket or a volume of kubeflow.volumes")
    if section.pipeline_root is not None:
        # Nothing in the backend reads `defaultPipelineRoot`; the page of a new run does (frontend, NewRunV2.tsx).
        notes += ("kubeflow.pipeline_root: the page of Kubeflow uses it; a run that a client starts must be given it",)
    if section.image_parameter:
        add_image_parameter(compiled.job["pipelineSpec"], str(section.image))
    if section.notify.webhook is not None:
        if _notifies(section):
            _add_notification(config, compiled.job["pipelineSpec"])
            notes += () if section.version else (_NOTIFY_NOTE,)
        else:
            notes += (f"kubeflow.notify: left out, since Kubeflow Pipelines {section.version} would refuse it",)
    return dataclasses.replace(compiled, notes=(*compiled.notes, *notes, *image))


def target_errors(config: Config) -> list[ConfigError]:
    """Returns everything in a configuration that keeps it from being compiled for Kubeflow Pipelines."""
    section = config.kubeflow
    return [
        *missing_options(section, "image", "push_directory"),
        *errors_of(lambda: _tpu_slice(config), lambda: _with_accelerator(config), lambda: check_options(config)),
        *_misplaced(config, section),
        *unreadable_weights(config),
    ]


def _with_accelerator(config: Config) -> Config:
    trainer = config.kubeflow.trainer
    return with_accelerator(config, "kubeflow.trainer", trainer.machine is not None, trainer.gpu)


def kubeflow_document(config: Config, compiled: Compiled) -> str:
    """Returns the content of the file that `--out` names: both documents."""
    spec = compiled.job["pipelineSpec"]
    if config.kubeflow.pipeline_root is not None:
        spec = {**spec, "defaultPipelineRoot": config.kubeflow.pipeline_root}
    documents = [spec]
    settings = _kubernetes_executors(config)
    check_for_backend(spec, settings, once=config.kubeflow.is_at_least(_ONCE_SINCE))
    platform = platform_document(config)
    if platform:
        documents.append(platform)
    return "---\n".join(dump_yaml(document, sort_keys=True, width=4096) for document in documents)


def add_image_parameter(spec: dict[str, Any], image: str) -> None:
    """Makes the image of all tasks a parameter of the run, with the configured image as its default.

    The backend replaces such a placeholder from 2.4 on: https://github.com/kubeflow/pipelines/pull/11404.
    """
    defined = spec["root"]["inputDefinitions"]["parameters"]
    defined[IMAGE] = {"parameterType": "STRING", "defaultValue": image}
    for name in spec["root"]["dag"]["tasks"]:
        _take_image(spec, name)


def _take_image(spec: dict[str, Any], name: str) -> None:
    """Makes a task of the outermost pipeline run in the image that is a parameter of the run."""
    task = spec["root"]["dag"]["tasks"][name]
    task.setdefault("inputs", {}).setdefault("parameters", {})[IMAGE] = {"componentInputParameter": IMAGE}
    component = spec["components"][task["componentRef"]["name"]]
    component.setdefault("inputDefinitions", {}).setdefault("parameters", {})[IMAGE] = {"parameterType": "STRING"}
    spec["deploymentSpec"]["executors"][component["executorLabel"]]["container"]["image"] = _IMAGE_OF_THE_RUN


def platform_document(config: Config) -> dict[str, Any]:
    """Returns how Kubernetes runs the executors, as `PlatformSpec`; empty if all is as by default."""
    executors = _kubernetes_executors(config)
    return {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}} if executors else {}


def _kubernetes_executors(config: Config) -> dict[str, Any]:
    """Returns the `KubernetesExecutorConfig` of each executor that has one, by its label."""
    executors = {}
    for component in COMPONENTS:
        executor = kubernetes_executor(config, component)
        if executor:
            executors[executor_label(component)] = executor
    if _notifies(config.kubeflow):
        executors[EXECUTOR] = _notifier(config.kubeflow)
    return executors


def _notifies(section: KubeflowConfig) -> bool:
    return section.notify.webhook is not None and section.is_at_least(_STATUS_SINCE)


def _notifier(section: KubeflowConfig) -> dict[str, Any]:
    """Returns the `KubernetesExecutorConfig` of the exit task: settings of all pods, and the address."""
    of_all = section.pods.get(ALL, PodConfig())
    secrets = {**of_all.secret_env, WEBHOOK_VARIABLE: str(section.notify.webhook)}
    return _executor(section, dataclasses.replace(of_all, secret_env=secrets, shared_memory=None, scratch=()))


def _executor(section: KubeflowConfig, pod: PodConfig) -> dict[str, Any]:
    secrets = [{"secretName": name} for name in section.image_pull_secrets]
    executor = pod_settings(pod)
    if secrets:
        executor["imagePullSecret"] = secrets
    if section.is_at_least(_SECURED_SINCE):
        executor["securityContext"] = dict(RUN_AS)
    return executor


def check_for_backend(
    spec: dict[str, Any], settings: Mapping[str, Any] = MappingProxyType({}), *, once: bool = True
) -> None:
    """Checks a document by the rules of Kubeflow's backend.

    Args:
        spec: the pipeline.
        settings: executor label -> its `KubernetesExecutorConfig`.
        once: whether the backend's Argo hands arguments over once.

    Raises:
        ConfigError: the backend would refuse it, or ignore a part of it.
    """
    if spec["schemaVersion"] != SCHEMA_VERSION:
        raise ConfigError(SECTION, f"schema {spec['schemaVersion']}", f"Kubeflow runs {SCHEMA_VERSION} only.")
    executors = spec["deploymentSpec"]["executors"]
    for label, executor in executors.items():
        if "container" not in executor or "lifecycle" in executor["container"]:
            raise ConfigError(SECTION, f"{label} is not a plain container", "Kubeflow runs nothing else.")
    for name, component in spec["components"].items():
        if "dag" not in component and component.get("executorLabel") not in executors:
            raise ConfigError(SECTION, f"{name} has no executor", "Report this to Shardwright's authors.")
    size, pod = longest_template(spec, settings)
    size *= 1 if once else 2
    if size > _MOST_BYTES:
        raise ConfigError(
            SECTION,
            f"the arguments of {pod} take {size} bytes, and the cluster hands them over in one variable, which takes "
            f"{_MOST_BYTES} with room for what is added",
            "Shorten the names in input.classes, or the longest option.",
        )


def longest_template(spec: dict[str, Any], settings: Mapping[str, Any] = MappingProxyType({})) -> tuple[int, str]:
    """Returns bytes and name of the longest arguments that Argo hands over to a pod, quoted as in a template.

    The driver of a graph gets all of it; that of a task gets component, container, settings and task; the task's own
    pod, in a patch, gets component, parameters and command (backend/src/v2/compiler/argocompiler, driver/driver.go).

    Args:
        spec: the pipeline.
        settings: executor label -> its `KubernetesExecutorConfig`.
    """
    sizes = {"the driver of the graph": _quoted(_json(spec["root"]))}
    for name, task in (pair for tasks in tasks_of(spec) for pair in tasks.items()):
        component = spec["components"][task["componentRef"]["name"]]
        arguments = [_json(component), _json(task)]
        if (label := component.get("executorLabel")) is not None:
            container = spec["deploymentSpec"]["executors"][label]["container"]
            given = task.get("inputs", {}).get("parameters", {})
            values = {key: one.get("runtimeValue", {}).get("constant", "") for key, one in given.items()}
            command = [*container.get("command", ()), *container.get("args", ())]
            sizes[f"the pod of {name}"] = _quoted(_json([_json(values), _json(component), *command]))
            arguments += [_json(container), _json(settings.get(label, {}))]
        sizes[f"the driver of {name}"] = _quoted(*arguments)
    return max((size, name) for name, size in sizes.items())


def _quoted(*arguments: str) -> int:
    return sum(len(_json(argument).encode()) for argument in arguments)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _add_notification(config: Config, spec: dict[str, Any]) -> None:
    section = config.kubeflow
    add_webhook_task(spec, config.name, section.notify.when, str(section.image))
    if section.image_parameter:
        _take_image(spec, NOTIFY)


def kubernetes_executor(config: Config, component: str) -> dict[str, Any]:
    """Returns a component's `KubernetesExecutorConfig`."""
    section = config.kubeflow
    executor: dict[str, Any] = {}
    # The pod that starts a JobSet may run anywhere.
    if component != "Trainer" or not _has_several_hosts(config):
        selector, tolerations = _node_placement(config, component)
        if selector:
            executor["nodeSelector"] = {"labels": selector}
        if tolerations:
            executor["tolerations"] = tolerations
    if section.volumes:
        executor["pvcMount"] = [{"constant": volume.claim, "mountPath": volume.path} for volume in section.volumes]
    return {**executor, **_executor(section, section.pod_of(component))}


def _node_placement(config: Config, component: str) -> tuple[dict[str, str], list[dict[str, str]]]:
    """Returns labels of the nodes that a component's pods may run on, and the taints that they tolerate."""
    section = config.kubeflow
    selector = dict(section.node_selectors.get(component, {}))
    tolerations = [
        {name: value for name, value in vars(toleration).items() if value is not None}
        for toleration in section.tolerations.get(component, ())
    ]
    rented = _tpu_slice(config) if component == "Trainer" else None
    if rented is not None:
        selector |= rented.node_selector
        tolerations.append({"key": tpu.RESOURCE, "operator": "Exists", "effect": "NoSchedule"})
    return selector, tolerations


def _tpu_slice(config: Config) -> tpu.TpuSlice | None:
    trainer = config.kubeflow.trainer
    if trainer.machine is None:
        return None
    rented = trainer_slice("kubeflow.trainer", trainer.machine, trainer.topology, config.trainer.accelerator)
    check_hosts("kubeflow.trainer", rented, config.trainer.hosts, trainer.slices)
    return rented


def _has_several_hosts(config: Config) -> bool:
    rented = _tpu_slice(config)
    return rented is not None and rented.hosts > 1


def add_jobset(config: Config, job: Mapping[str, Any], task: str = "Trainer") -> tuple[str, ...]:
    """Makes the pod of a task that trains start a JobSet if its slice has several hosts; returns notes for the user."""
    rented = _tpu_slice(config)
    if rented is None or rented.hosts == 1:
        return ()
    selector, tolerations = _node_placement(config, "Trainer")
    image = _IMAGE_OF_THE_RUN if config.kubeflow.image_parameter else str(config.kubeflow.image)
    placing = {"nodeSelector": selector, "tolerations": tolerations}
    template = jobset_template(config.kubeflow, rented, image, placing)
    shared = f"{shared_folder(config.kubeflow)}/.shardwright-jobsets"
    container = dict(containers(job))[task]
    container["args"] = ["--jobset", canonical_json(template), "--shared", shared, *container["args"]]
    role = "its service account needs a Role (`shardwright docs deploy/kubeflow`)"
    return (f"{task} starts a JobSet of {config.trainer.hosts} pods: {role}",)


def _add_variables(config: Config, job: dict[str, Any]) -> None:
    """Adds the environment variables of `kubeflow.pods`, which are part of the pipeline's document."""
    for name, container in containers(job):
        own = config.kubeflow.pod_of(name).env
        container["env"] = [*container.get("env", ()), *({"name": key, "value": own[key]} for key in sorted(own))]


def add_accelerator(config: Config, job: Mapping[str, Any], task: str = "Trainer") -> None:
    """Makes a task that trains ask for the chips of `kubeflow.trainer`, unless the pods of a JobSet do."""
    rented, trainer = _tpu_slice(config), config.kubeflow.trainer
    if (rented is None and trainer.gpu is None) or _has_several_hosts(config):
        return
    # The backend uses any type as the resource's name.
    kind, count = (tpu.RESOURCE, rented.chips_per_host) if rented else (trainer.gpu, trainer.gpus)
    container = dict(containers(job))[task]
    container.setdefault("resources", {})["accelerator"] = {"type": kind, "count": str(count)}


def _staging(config: Config) -> str:
    """Returns the folder of finished shards and checkpoints, which outlive an attempt.

    By default it is on the volume of `push_directory`, which every pod mounts and can write to without credentials.
    """
    section, own = config.kubeflow, config.run.staging
    if own is not None and (scheme_of(own) is not None or section.volume_of(own) is not None):
        return own.rstrip("/")
    return f"{shared_folder(section)}/{VOLUME_STAGING}"


def shared_folder(section: KubeflowConfig) -> str:
    """Returns the folder of the volume of `push_directory`."""
    volume = section.volume_of(str(section.push_directory))
    return "" if volume is None else volume.path.rstrip("/")


def _misplaced(config: Config, section: KubeflowConfig) -> Iterator[ConfigError]:
    """Yields an error for each place of data that not every pod reads, or writes."""
    if section.push_directory is not None and section.volume_of(section.push_directory) is None:
        yield ConfigError(
            "kubeflow.push_directory",
            f"{section.push_directory!r} is not on a volume, so no pod would see models that another one pushed",
            "Write a folder below the path of one of kubeflow.volumes.",
        )
    places = input_places(config) if section.data_root is None else {"kubeflow.data_root": section.data_root}
    for option in uses_baseline(config):
        if scheme_of(str(section.pipeline_root)) is None:
            yield ConfigError(
                option,
                f"{BLESSED!r} is a dataset of an earlier run, and tasks cannot read the cluster's own store",
                "Let kubeflow.pipeline_root be gs:// or s3://, or name a dataset by its path.",
            )
    if config.gate.drift is not None and config.gate.drift.reference != BLESSED:
        places["gate.drift.reference"] = config.resolve(config.gate.drift.reference)
    for path, place in places.items():
        if scheme_of(place) is None and section.volume_of(place) is None:
            yield ConfigError(
                path, f"{place!r} is not on a bucket or a volume", "Write gs://, s3:// or a folder of kubeflow.volumes."
            )
