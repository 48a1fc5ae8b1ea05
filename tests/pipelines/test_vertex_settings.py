"""The table of benchmarks/CLOUD_SETTINGS.md: each setting of `vertex`, its place, the line that reads it there.

A row is proven: the value is found at its place, and the line is found in the installed package. A value that only the
service reads is named by the field of its message.
"""

import functools
import importlib.metadata
import importlib.util
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from vertex_section import VERTEX

from shardwright.config import parse_config
from shardwright.config.json_schema import leaves
from shardwright.pipelines.cloud.exit_task import add_email_task
from shardwright.pipelines.compile_vertex import dataflow_options, job_of_trainer

PAGE = Path(__file__).parents[2] / "benchmarks" / "CLOUD_SETTINGS.md"
BEGIN, END = "<!-- generated: vertex -->\n", "<!-- end: vertex -->\n"
GOLDEN = Path(__file__).parent / "golden" / "vertex.yaml"

JOBS, SCHEDULES = "google/cloud/aiplatform/pipeline_jobs.py", "google/cloud/aiplatform/pipeline_job_schedules.py"
TYPES = "google/cloud/aiplatform_v1/types"
BEAM = "apache_beam/options/pipeline_options.py"
PIPELINE_SPEC = "kfp/pipeline_spec/pipeline_spec_pb2.py"
GPU = {"machine": "n1-standard-8", "gpu": "NVIDIA_TESLA_T4", "gpus": 2}
TPU = {"machine": "ct5lp-hightpu-4t", "topology": "2x2"}
RESERVATION = "projects/p/zones/europe-west4-a/reservations/r"
POOL = "jobSpec.workerPoolSpecs.0"


class Row(NamedTuple):
    """A setting: `value` in `section` ends as `found` at `place`; `line` of `file` reads it."""

    place: str
    file: str
    line: str
    section: dict[str, Any] = {}
    found: Any = None


def call(name: str, file: str = JOBS) -> Row:
    """An argument of Google's client."""
    function = {JOBS: "PipelineJob", SCHEDULES: "PipelineJobSchedule.create"}[file]
    return Row(f"client: {function}({name}=…)", file, rf"^ +{name}: ")


def job(place: str, file: str, field: str, section: dict[str, Any], found: Any) -> Row:
    """A field of the CustomJob."""
    return Row(f"CustomJob: {place}", f"{TYPES}/{file}", rf"^    {field}: ", section, found)


def trainer(place: str, file: str, field: str, found: Any, **values: Any) -> Row:
    return job(place, file, field, {"trainer": {**GPU, **values}}, found)


def beam(option: str, found: Any, **values: Any) -> Row:
    """An option of Dataflow."""
    return Row(f"Dataflow: --{option}", BEAM, rf"^ +'--{option}'", {"dataflow": values}, found)


def document(place: str, file: str, line: str, found: Any) -> Row:
    """A field of the pipeline's document; `found` is that of the configuration of test_compile."""
    return Row(f"document: {place}", file, line, {}, found)


ROWS: dict[str, Row] = {
    "vertex.project": call("project"),
    "vertex.region": call("location"),
    "vertex.service_account": call("service_account"),
    "vertex.pipeline_root": document(
        "runtimeConfig.gcsOutputDirectory", "google/cloud/aiplatform/utils/pipeline_utils.py", "gcsOutputDirectory",
        "gs://bucket/runs/clouds",
    ),
    "vertex.data_root": document(
        "pipelineSpec.root.inputDefinitions.parameters.data_root.defaultValue", PIPELINE_SPEC, "default_?[vV]alue",
        "gs://bucket/clouds",
    ),
    "vertex.push_directory": document(
        "pipelineSpec.root.dag.tasks.Pusher.inputs.parameters.push_destination.runtimeValue.constant",
        "tfx/components/pusher/executor.py", "PUSH_DESTINATION_KEY", "gs://bucket/runs/clouds/pushed",
    ),
    "vertex.image": document(
        "pipelineSpec.deploymentSpec.executors.Pusher_executor.container.image", PIPELINE_SPEC, "PipelineContainerSpec",
        "europe-docker.pkg.dev/my-project/ml/shardwright:1.0",
    ),
    "vertex.retries": document(
        "pipelineSpec.root.dag.tasks.Pusher.retryPolicy.maxRetryCount", PIPELINE_SPEC, "max_retry_count", 2
    ),
    "vertex.network": call("network"),
    "vertex.reserved_ip_ranges": call("reserved_ip_ranges"),
    "vertex.network_attachment": job(
        "jobSpec.pscInterfaceConfig.networkAttachment", "service_networking.py", "network_attachment",
        {"network_attachment": "projects/p/regions/europe-west4/networkAttachments/n", "trainer": GPU},
        "projects/p/regions/europe-west4/networkAttachments/n",
    ),
    "vertex.kms_key": call("encryption_spec_key_name"),
    "vertex.experiment": call("experiment"),
    "vertex.labels": call("labels"),
    "vertex.resources.*.cpu": document(
        "pipelineSpec.deploymentSpec.executors.ImageTransform_executor.container.resources.cpuLimit", PIPELINE_SPEC,
        "cpu_limit", 8.0,
    ),
    "vertex.resources.*.memory": document(
        "pipelineSpec.deploymentSpec.executors.ImageTransform_executor.container.resources.memoryLimit", PIPELINE_SPEC,
        "memory_limit", 32.0,
    ),
    "vertex.trainer.machine": trainer(
        f"{POOL}.machineSpec.machineType", "machine_resources.py", "machine_type", "n1-standard-8"
    ),
    "vertex.trainer.topology": job(
        f"{POOL}.machineSpec.tpuTopology", "machine_resources.py", "tpu_topology", {"trainer": TPU}, "2x2"
    ),
    "vertex.trainer.gpu": trainer(
        f"{POOL}.machineSpec.acceleratorType", "machine_resources.py", "accelerator_type", "NVIDIA_TESLA_T4"
    ),
    "vertex.trainer.gpus": trainer(
        f"{POOL}.machineSpec.acceleratorCount", "machine_resources.py", "accelerator_count", 2
    ),
    "vertex.trainer.max_hours": trainer(
        "jobSpec.scheduling.timeout", "custom_job.py", "timeout", {"seconds": 7200}, max_hours=2
    ),
    "vertex.trainer.capacity": trainer(
        "jobSpec.scheduling.strategy", "custom_job.py", "strategy", "SPOT", capacity="spot"
    ),
    "vertex.trainer.max_wait_hours": trainer(
        "jobSpec.scheduling.maxWaitDuration", "custom_job.py", "max_wait_duration", {"seconds": 3600},
        capacity="flex_start", max_wait_hours=1,
    ),
    "vertex.trainer.reservation": trainer(
        f"{POOL}.machineSpec.reservationAffinity.values", "reservation_affinity.py", "values", [RESERVATION],
        capacity="reservation", reservation=RESERVATION,
    ),
    "vertex.trainer.disk.type": trainer(
        f"{POOL}.diskSpec.bootDiskType", "machine_resources.py", "boot_disk_type", "pd-ssd", disk={"type": "pd-ssd"}
    ),
    "vertex.trainer.disk.size": trainer(
        f"{POOL}.diskSpec.bootDiskSizeGb", "machine_resources.py", "boot_disk_size_gb", 300, disk={"size": "300GB"}
    ),
    "vertex.trainer.env": trainer(
        f"{POOL}.containerSpec.env.0", "custom_job.py", "env", {"name": "A", "value": "1"}, env={"A": "1"}
    ),
    "vertex.trainer.restart_on_worker_restart": trainer(
        "jobSpec.scheduling.restartJobOnWorkerRestart", "custom_job.py", "restart_job_on_worker_restart", True,
        restart_on_worker_restart=True,
    ),
    "vertex.trainer.persistent_resource": trainer(
        "jobSpec.persistentResourceId", "custom_job.py", "persistent_resource_id", "mine", persistent_resource="mine"
    ),
    "vertex.dataflow.components": beam("runner", "DataflowRunner", components=["StatisticsGen"]),
    "vertex.dataflow.machine": beam("worker_machine_type", "n2-standard-8", machine="n2-standard-8"),
    "vertex.dataflow.max_workers": beam("max_num_workers", "7", max_workers=7),
    "vertex.dataflow.subnetwork": beam(
        "subnetwork", "regions/europe-west4/subnetworks/s", subnetwork="regions/europe-west4/subnetworks/s"
    ),
    "vertex.dataflow.public_ips": beam("no_use_public_ips", None, public_ips=False),
    "vertex.schedule.cron": call("cron", SCHEDULES),
    "vertex.schedule.max_runs": call("max_run_count", SCHEDULES),
    "vertex.schedule.max_concurrent_runs": call("max_concurrent_run_count", SCHEDULES),
    "vertex.notify.emails": document(
        "pipelineSpec.root.dag.tasks.Notify.inputs.parameters.recipients.runtimeValue.constant", PIPELINE_SPEC,
        "TASK_FINAL_STATUS", ["a@example.com"],
    ),
}  # fmt: skip


def at(value: Any, path: str) -> Any:
    """The value at a path of a message; keys as JSON or as Python writes them."""
    for key in path.split("."):
        if isinstance(value, list):
            value = value[int(key)]
        else:
            value = value[key] if key in value else value[re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", key)]
    return value


@functools.cache
def source(file: str) -> tuple[str, list[str]]:
    """Package with version, and the lines of one of its modules."""
    packages = {
        "google": "google-cloud-aiplatform",
        "apache_beam": "apache-beam",
        "kfp": "kfp-pipeline-spec",
        "tfx": "tfx",
    }
    package = packages[file.partition("/")[0]]
    spec = importlib.util.find_spec(file.removesuffix(".py").replace("/", "."))
    assert spec is not None
    assert spec.origin is not None
    lines = Path(spec.origin).read_text(encoding="utf-8").splitlines()
    return f"{package} {importlib.metadata.version(package)}", lines


def line_of(row: Row) -> int:
    """Number of the first line that reads a setting."""
    found = [number for number, line in enumerate(source(row.file)[1], 1) if re.search(row.line, line)]
    assert found, f"{row.file} has no {row.line}"
    return found[0]


def test_every_setting_has_a_row() -> None:
    assert set(ROWS) == {path for path, _, _ in leaves() if path.startswith("vertex.")}


@pytest.mark.parametrize("setting", ROWS)
def test_a_setting_ends_where_the_table_says(setting: str) -> None:
    row = ROWS[setting]
    assert line_of(row)
    kind, _, place = row.place.partition(": ")
    if kind == "client":
        return  # The line is the argument itself; test_submit sends it.
    if kind == "document":
        job_document = next(yaml.safe_load_all(GOLDEN.read_text(encoding="utf-8")))
        if ".Notify." in place:
            add_email_task(job_document["pipelineSpec"], ("a@example.com",))
        found = at(job_document, place)
        assert row.found == found or (isinstance(found, str) and str(row.found) in found)
        return
    config = parse_config({"input": {"images": "gs://bucket/x"}, "vertex": {**VERTEX, **row.section}}, base="/")
    if kind == "Dataflow":
        option = place if row.found is None else f"{place}={row.found}"
        assert option in dataflow_options(config.vertex, "gs://bucket/runs")
        return
    made = job_of_trainer(config)
    assert made is not None
    assert at(made["ai_platform_training_args"], place) == row.found


def table() -> str:
    """The table of the page, with the lines of the installed packages."""
    versions = sorted({source(row.file)[0] for row in ROWS.values()})
    lines = [f"Lines of {', '.join(versions)}.", "", "| setting | where it ends | read by |", "|---|---|---|"]
    for setting, row in ROWS.items():
        kind, _, place = row.place.partition(": ")
        lines.append(f"| `{setting}` | {kind}: `{place}` | `{row.file}:{line_of(row)}` |")
    return "\n".join(lines) + "\n"


def test_the_page_has_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = page.partition(BEGIN)[2].partition(END)[0]
    if os.environ.get("SHARDWRIGHT_RENEW_GOLDEN"):
        PAGE.write_text(page.replace(f"{BEGIN}{shown}{END}", f"{BEGIN}{table()}{END}"), encoding="utf-8")
        shown = table()
    if shown.partition("\n")[0] == table().partition("\n")[0]:
        assert shown == table(), "renew it with SHARDWRIGHT_RENEW_GOLDEN=1"
    else:
        # The other stack has other lines.
        without = [re.sub(r":\d+`", "`", text).partition("\n")[2] for text in (shown, table())]
        assert without[0] == without[1]
