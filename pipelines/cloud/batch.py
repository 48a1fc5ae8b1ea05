"""`shardwright deliver --batch`: predictions for many images, without an endpoint.

On Vertex AI it is a BatchPredictionJob of the version in the Model Registry. KServe has no such thing, so for
Kubernetes it is the manifest of a Job that runs `shardwright predict` on the folder of pushed models.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from shardwright.config import Config
from shardwright.config.kubernetes_names import mount_point
from shardwright.config.pods import ALL, PodConfig
from shardwright.config.yaml_text import dump_yaml
from shardwright.errors import UsageError
from shardwright.pipelines.cloud.deliver_model import (
    DeliveryOptions,
    Services,
    blessed_model,
    encryption,
    location_of,
    registered_version,
)
from shardwright.pipelines.cloud.kserve import pushed_folder
from shardwright.pipelines.cloud.pipeline_document import missing_options, refuse_all
from shardwright.pipelines.cloud.pod_documents import pod_template
from shardwright.storage.paths import scheme_of

if TYPE_CHECKING:
    from google.cloud import aiplatform_v1 as vertex

_BUCKET = "gs://"
_LINES = ".jsonl"


def batch_request(config: Config, version: str, images: str, out: str, options: DeliveryOptions) -> Any:
    """Returns the `CreateBatchPredictionJobRequest`.

    Args:
        config: the configuration.
        version: resource name of the version.
        images: a list of `gs://` addresses, one a line, or a `.jsonl` with one instance of the model a line.
        out: folder on a bucket.
        options: machine and number of machines.
    """
    from google.cloud import aiplatform_v1 as vertex

    job = vertex.BatchPredictionJob
    made = job(
        encryption_spec=encryption(config),
        service_account=config.vertex.service_account,
        display_name=config.name,
        model=version,
        input_config=job.InputConfig(
            # The service sends each file of a list to the model as `{"b64": …}`.
            instances_format="jsonl" if images.endswith(_LINES) else "file-list",
            gcs_source=vertex.GcsSource(uris=[images]),
        ),
        output_config=job.OutputConfig(
            predictions_format="jsonl", gcs_destination=vertex.GcsDestination(output_uri_prefix=out)
        ),
        dedicated_resources=vertex.BatchDedicatedResources(
            machine_spec=vertex.MachineSpec(machine_type=options.machine),
            starting_replica_count=options.replicas,
            max_replica_count=options.replicas,
        ),
        labels=dict(config.vertex.labels),
    )
    return vertex.CreateBatchPredictionJobRequest(parent=location_of(config), batch_prediction_job=made)


def _check_on_bucket(*places: str) -> None:
    for place in places:
        if not place.startswith(_BUCKET):
            raise UsageError(f"--batch: {place!r} is not on a bucket that Vertex AI reads. Write gs://BUCKET/….")


def shown_batch_request(config: Config, images: str, out: str, options: DeliveryOptions) -> str:
    """Returns the request as JSON; sends nothing. The version, which only the service knows, is in capital letters.

    Raises:
        UsageError: a place is not on a bucket of Google's, or no model was blessed.
    """
    _check_on_bucket(images, out)
    blessed_model(config)
    version = f"{location_of(config)}/models/MODEL@VERSION"
    request = batch_request(config, version, images, out, options)
    return json.dumps({"1 batch prediction": json.loads(type(request).to_json(request))}, indent=1, sort_keys=True)


def start_batch(
    config: Config,
    images: str,
    out: str,
    options: DeliveryOptions,
    services: Services,
    jobs: vertex.JobServiceClient,
) -> str:
    """Starts the job for the blessed model; returns its resource name.

    Raises:
        UsageError: a place is not on a bucket of Google's, or the registry does not have the blessed model.
    """
    _check_on_bucket(images, out)
    _, blessing = blessed_model(config)
    version = registered_version(config, blessing, services)[1]
    if not version:
        raise UsageError(f"{config.name}: the Model Registry does not have the blessed model. Call deliver first.")
    request = batch_request(config, version, images, out, options)
    made: str = jobs.create_batch_prediction_job(request=request).name
    return made


def predict_job(config: Config, images: str, out: str) -> str:
    """Returns the manifest of a Kubernetes Job that predicts with the newest pushed model, as YAML.

    Raises:
        UsageError: a place is neither on a bucket nor on a volume of `kubeflow.volumes`.
        ConfigError: the configuration names no image.
    """
    section = config.kubeflow
    refuse_all(missing_options(section, "image", "push_directory"))
    for place in (images, out):
        if scheme_of(place) is None and section.volume_of(place) is None:
            raise UsageError(f"--batch: {place!r} is not on a bucket or a volume. Use a folder of kubeflow.volumes.")
    if mount_point(out) in {mount_point(volume.path) for volume in section.volumes}:
        raise UsageError(
            f"--batch: {out!r} is a volume. Give the name of a file, e.g. {out.rstrip('/')}/predictions.csv."
        )
    container = {
        "name": "predict",
        "image": str(section.image),
        "command": ["python", "-m", "shardwright.pipelines.cli"],
        # A second attempt, or the Job of the next month, replaces the table.
        "args": ["predict", pushed_folder(config), images, "--out", out, "--force"],
    }
    of_all = section.pods.get(ALL, PodConfig())
    template = pod_template(section, of_all, container, resources=section.resources.get("Evaluator"))
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": f"{config.name}-predict-"},
        "spec": {"backoffLimit": section.retries, "template": template},
    }
    return dump_yaml(manifest, width=4096)
