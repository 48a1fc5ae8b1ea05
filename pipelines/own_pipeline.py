"""A TPU for a pipeline of your own: the CustomJob of Vertex AI, and the pods of Kubeflow Pipelines.

`shardwright compile` writes both for its own pipeline. Here they are for any pipeline that TFX compiles and in which
ImageTrainer trains. Nothing of it contacts a cloud: the values of a section are checked against the tables of machines.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from shardwright.config import Config, parse_config
from shardwright.errors import UsageError
from shardwright.pipelines.cloud.pipeline_document import containers, executor_label, missing_options, refuse_all


def custom_job(
    vertex: Mapping[str, Any], *, trainer: Mapping[str, Any] | None = None, name: str = "pipeline"
) -> dict[str, Any]:
    """Returns `custom_job` of ImageTrainer: the training runs as a CustomJob on the machine of a section `vertex`.

    Example:
        ```python
        vertex = {
            "project": "p",
            "region": "us-west1",
            "image": "…",
            "pipeline_root": "gs://bucket/runs",
            "trainer": {"machine": "ct5lp-hightpu-4t", "topology": "2x2"},
        }
        ImageTrainer(transformed, graph, trainer=Trainer(accelerator="tpu"), custom_job=custom_job(vertex))
        ```

    Args:
        vertex: the section of the configuration, see "Settings of Vertex AI" in the documentation.
        trainer: the keys of `trainer` that ImageTrainer has; `hosts` must be the number of machines of the slice.
        name: begins the name of the job.

    Raises:
        ConfigError: a value is wrong, or a key is missing that the job needs.
        UsageError: `vertex.trainer` names no machine.
    """
    from shardwright.pipelines.compile_vertex import job_of_trainer

    config = _config(name, trainer, vertex=vertex)
    refuse_all(missing_options(config.vertex, "project", "region", "image", "pipeline_root"))
    job = job_of_trainer(config)
    if job is None:
        raise UsageError("vertex.trainer.machine: is missing. Name the machine, for example ct5lp-hightpu-4t.")
    return job


def place_trainer(
    document: dict[str, Any],
    kubeflow: Mapping[str, Any],
    *,
    trainer: Mapping[str, Any] | None = None,
    task: str = "ImageTrainer",
) -> dict[str, Any]:
    """Lets the training of a compiled pipeline run on a TPU slice or a GPU of Kubernetes.

    On a slice of one host the task itself asks for the chips. On one of several hosts it starts a JobSet, a pod for
    each host, and waits for it.

    Args:
        document: the pipeline that TFX's runner has written, whose tasks have the command
            `python -m shardwright.components.runtime.container`; the task is changed in place.
        kubeflow: the section of the configuration, see "Settings of Kubeflow" in the documentation. Its image is that
            of the task, and its `push_directory` names the volume that the hosts share.
        trainer: the keys of `trainer` that ImageTrainer has; `hosts` must be the number of hosts of the slice.
        task: the component that trains.

    Returns:
        The document for Kubernetes, the second one of the YAML file that Kubeflow Pipelines takes.

    Raises:
        ConfigError: a value is wrong.
        UsageError: the pipeline has no such task, or several hosts have no volume in common.
    """
    from shardwright.pipelines.compile_kubeflow import add_accelerator, add_jobset, kubernetes_executor, shared_folder

    job = {"pipelineSpec": document.get("pipelineSpec", document)}
    tasks = dict(containers(job))
    if task not in tasks:
        raise UsageError(f"{task}: is not in the pipeline; its tasks are {', '.join(tasks)}. Name the one that trains.")
    config = _config("pipeline", trainer, kubeflow={"image": tasks[task]["image"], **kubeflow})
    if config.trainer.hosts > 1 and not shared_folder(config.kubeflow):
        raise UsageError("kubeflow.push_directory: several hosts need a volume in common. Put it below one of volumes.")
    add_accelerator(config, job, task)
    add_jobset(config, job, task)
    executors = {name: kubernetes_executor(config, "Trainer" if name == task else name) for name in tasks}
    named = {executor_label(name): executor for name, executor in executors.items() if executor}
    return {"platforms": {"kubernetes": {"deploymentSpec": {"executors": named}}}}


def _config(name: str, trainer: Mapping[str, Any] | None, **section: Mapping[str, Any]) -> Config:
    """Returns a configuration with a section; the images are those of the pipeline, and not looked at."""
    values = {"name": name, "input": {"images": "images"}, "trainer": dict(trainer or {}), **section}
    return parse_config(values, base=os.getcwd())
