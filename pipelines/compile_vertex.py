"""`--target vertex`: the JSON that Vertex AI Pipelines runs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardwright.components.runtime.mounts import AS_THEY_ARE, MOUNTED, STREAMED
from shardwright.config import Config, VertexConfig
from shardwright.config.cloud import check_bucket
from shardwright.config.trainer import BLESSED
from shardwright.config.vertex import FLEX_START, SPOT, VertexTrainer
from shardwright.errors import ConfigError
from shardwright.lineage.record import IMAGE_VARIABLE
from shardwright.pipelines import tpu
from shardwright.pipelines.cloud.exit_task import add_email_task
from shardwright.pipelines.cloud.image import image_notes
from shardwright.pipelines.cloud.machines import check_hosts, check_machine, trainer_slice, with_accelerator
from shardwright.pipelines.cloud.pipeline_document import (
    Compiled,
    Target,
    compile_job,
    errors_of,
    input_places,
    missing_options,
    refuse_all,
    staging_notes,
    unreadable_weights,
)
from shardwright.pipelines.graph_inputs import check_options
from shardwright.staging.staging import STAGING_VARIABLE
from shardwright.storage.paths import GCS, scheme_of

if TYPE_CHECKING:
    from shardwright.pipelines.graph import Step

SECTION = "vertex"
_GIGABYTE = 10**9


def compile_vertex(config: Config, config_file: Path) -> Compiled:
    """Compiles a configuration for Vertex AI Pipelines.

    Raises:
        ShardwrightError: something about the configuration, the input or the schema is wrong.
    """
    refuse_all(target_errors(config))
    section, config = config.vertex, _with_accelerator(config)
    image = image_notes(SECTION, str(section.image), config.trainer.accelerator)
    root = str(section.pipeline_root).rstrip("/")
    target = Target(
        section=SECTION,
        image=str(section.image),
        pipeline_root=root,
        data_root=None if section.data_root is None else section.data_root.rstrip("/"),
        push_directory=(section.push_directory or f"{root}/pushed").rstrip("/"),
        staging=_staging(config),
        retries=section.retries,
        artifacts=_artifacts,
        beam={name: dataflow_options(section, root) for name in section.dataflow.components},
        resources=section.resources,
        custom_job=job_of_trainer(config),
        labels=section.labels,
    )
    compiled = compile_job(config, config_file, target)
    if section.notify.emails:
        add_email_task(compiled.job["pipelineSpec"], section.notify.emails)
    notes = staging_notes(config, str(target.staging), "a bucket of Google Cloud")
    return dataclasses.replace(compiled, notes=(*compiled.notes, *notes, *image))


def target_errors(config: Config) -> list[ConfigError]:
    """Returns everything in a configuration that keeps it from being compiled for Vertex AI."""
    section = config.vertex
    return [
        *missing_options(section, "image", "project", "region", "pipeline_root"),
        *errors_of(lambda: job_of_trainer(_with_accelerator(config)), lambda: check_options(config)),
        *_misplaced(config, section),
        *unreadable_weights(config),
    ]


def _with_accelerator(config: Config) -> Config:
    trainer = config.vertex.trainer
    return with_accelerator(config, "vertex.trainer", trainer.machine in tpu.MACHINES, trainer.gpu)


def _artifacts(step: Step) -> str:
    """Returns how a step opens artifacts: if it cannot read buckets, through the mount below /gcs.

    Dataflow's workers lack that mount, so steps that run there read buckets.
    """
    if step.reads_buckets:
        return AS_THEY_ARE
    return STREAMED if step.streams_examples else MOUNTED


def _staging(config: Config) -> str:
    """Returns the folder of finished shards and checkpoints, which outlive an attempt."""
    if scheme_of(str(config.run.staging)) == GCS:
        return str(config.run.staging).rstrip("/")
    return f"{str(config.vertex.pipeline_root).rstrip('/')}/staging"


def vertex_document(compiled: Compiled) -> str:
    """Returns the content of the file that `--out` names."""
    return json.dumps(compiled.job, sort_keys=True, indent=1, ensure_ascii=False) + "\n"


def dataflow_options(section: VertexConfig, root: str) -> tuple[str, ...]:
    """Returns Beam's options for Dataflow, whose workers use the same image."""
    dataflow = section.dataflow
    options = [
        "--runner=DataflowRunner",
        f"--project={section.project}",
        f"--region={section.region}",
        f"--temp_location={root}/beam/temp",
        f"--staging_location={root}/beam/staging",
        f"--sdk_container_image={section.image}",
        "--sdk_location=container",
        f"--worker_machine_type={dataflow.machine}",
        f"--max_num_workers={dataflow.max_workers}",
        "--experiments=use_runner_v2",
        # A worker has one process per core. Each shard is written by several threads and needs the worker's disk until
        # it is complete, so a process writes only one.
        "--number_of_worker_harness_threads=1",
        # Beam 2.77 would pickle __main__ and send it along; the image has all that workers need.
        "--no_save_main_session",
    ]
    options += [f"--labels={name}={value}" for name, value in sorted(section.labels.items())]
    if section.service_account is not None:
        options.append(f"--service_account_email={section.service_account}")
    if dataflow.subnetwork is not None:
        options.append(f"--subnetwork={dataflow.subnetwork}")
    if not dataflow.public_ips:
        options.append("--no_use_public_ips")
    return tuple(options)


def worker_pools(config: Config) -> list[dict[str, Any]]:
    """Returns the worker pools of the CustomJob that trains, as Vertex AI's `WorkerPoolSpec`: one of one replica.

    A TPU slice is one replica, also with several machines: Vertex AI starts the container on each of them. Source:
    cloud.google.com/vertex-ai/docs/training/configure-compute, "TPU VMs" (`replicaCount` must be 1).

    Raises:
        ConfigError: there is no such machine.
    """
    section, trainer = config.vertex, config.vertex.trainer
    machine = str(trainer.machine)
    spec: dict[str, Any] = {"machine_type": machine}
    if machine in tpu.MACHINES:
        if trainer.gpu is not None:
            raise ConfigError("vertex.trainer.gpu", f"{machine} has TPUs", "Remove vertex.trainer.gpu and .gpus.")
        spec["tpu_topology"] = _tpu_slice(config, machine).topology
    else:
        if trainer.topology is not None:
            raise ConfigError("vertex.trainer.topology", f"{machine} has no TPU", "Remove vertex.trainer.topology.")
        check_machine("vertex.trainer", machine, trainer.gpu, trainer.gpus)
        if trainer.gpu is not None:
            spec |= {"accelerator_type": trainer.gpu, "accelerator_count": trainer.gpus}
    # TFX adds the command. All hosts, and the next attempt, find the checkpoints in the staging folder.
    variables = {IMAGE_VARIABLE: section.image, STAGING_VARIABLE: _staging(config)}
    env = [{"name": name, "value": value} for name, value in {**dict(sorted(trainer.env.items())), **variables}.items()]
    container = {"image_uri": section.image, "env": env}
    if trainer.reservation is not None:
        spec["reservation_affinity"] = {
            "reservation_affinity_type": "SPECIFIC_RESERVATION",
            "key": "compute.googleapis.com/reservation-name",
            "values": [trainer.reservation],
        }
    pool: dict[str, Any] = {"machine_spec": spec, "replica_count": 1, "container_spec": container}
    disk = trainer.disk
    spec_of_disk = {"boot_disk_type": disk.type, "boot_disk_size_gb": disk.size and -(-disk.size // _GIGABYTE)}
    if any(spec_of_disk.values()):
        pool["disk_spec"] = {name: value for name, value in spec_of_disk.items() if value is not None}
    return [pool]


def _tpu_slice(config: Config, machine: str) -> tpu.TpuSlice:
    path = "vertex.trainer"
    rented = trainer_slice(path, machine, config.vertex.trainer.topology, config.trainer.accelerator)
    rented.check_on_vertex()
    check_hosts(path, rented, config.trainer.hosts)
    return rented


def job_of_trainer(config: Config) -> dict[str, Any] | None:
    """Returns `custom_job` of ImageTrainer by `vertex.trainer`; `None` if a step of the pipeline trains."""
    section = config.vertex
    if section.trainer.machine is None:
        return None
    trainer = section.trainer
    job_spec: dict[str, Any] = {"worker_pool_specs": worker_pools(config), "scheduling": _scheduling(trainer)}
    further = {
        "service_account": section.service_account,
        "network": section.network,
        "reserved_ip_ranges": list(section.reserved_ip_ranges) or None,
        "persistent_resource_id": trainer.persistent_resource,
        "psc_interface_config": section.network_attachment and {"network_attachment": section.network_attachment},
    }
    job_spec |= {name: value for name, value in further.items() if value is not None}
    encryption = {} if section.kms_key is None else {"encryption_spec": {"kms_key_name": section.kms_key}}
    return {
        # Copies of the constants of TFX's extension, which takes seconds to import; a test compares them.
        "ai_platform_enable_vertex": True,
        "ai_platform_vertex_region": section.region,
        "ai_platform_training_args": {
            "project": section.project,
            "display_name": f"{config.name}-trainer",
            "labels": dict(section.labels),
            "job_spec": job_spec,
            **encryption,
        },
    }


def _scheduling(trainer: VertexTrainer) -> dict[str, Any]:
    """Returns the job's `Scheduling` as plain values, as they are kept as JSON: the seconds of a protobuf Duration."""
    scheduling: dict[str, Any] = {"timeout": {"seconds": round(trainer.max_hours * 3600)}}
    if trainer.capacity in (SPOT, FLEX_START):
        scheduling["strategy"] = trainer.capacity.upper()
    if trainer.max_wait_hours is not None:
        scheduling["max_wait_duration"] = {"seconds": round(trainer.max_wait_hours * 3600)}
    if trainer.restart_on_worker_restart:
        scheduling["restart_job_on_worker_restart"] = True
    return scheduling


def _misplaced(config: Config, section: VertexConfig) -> Iterator[ConfigError]:
    """Yields an error for each place of data that Vertex AI does not read."""
    drift = config.gate.drift
    if drift is not None and drift.reference != BLESSED:
        yield from errors_of(lambda: check_bucket("gate.drift.reference", drift.reference))
    for path, place in input_places(config).items() if section.data_root is None else ():
        if scheme_of(place) != GCS:
            yield ConfigError(
                path,
                f"{place!r} does not begin with gs://, and Vertex AI reads nothing else",
                "Put the data into a bucket, and its folder into vertex.data_root.",
            )
