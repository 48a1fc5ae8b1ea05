"""`shardwright deliver`: the blessed model into Vertex AI's Model Registry and onto an endpoint.

1. Upload: a version of the model named like the configuration, with an alias. Its labels name the dataset and the
   training that it descends from. A version with the same digest is used again.
2. Evaluation: the metrics of the blessing, attached to the version.
3. Deployment to the endpoint of that name, which gets a share of the traffic. The rest stays with the earlier models.
4. Smoke test: images are sent, so many that the new model gets one of them almost certainly (1 - 1e-6). If an answer is
   an error or wrong, the model is undeployed and the earlier split of the traffic is set again.

Each step is a request of google-cloud-aiplatform, built here, so that a dry run prints what would be sent.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, log
from typing import TYPE_CHECKING, Any

from shardwright.components.model_files.saved_model import check_saved_model
from shardwright.config import Config
from shardwright.config.cloud import IMAGE
from shardwright.config.vertex import MACHINE
from shardwright.errors import CheckFailed, UsageError
from shardwright.images.encode_picture import encode_picture
from shardwright.lineage.blessing import Blessing, read_blessing
from shardwright.pipelines.cloud.pipeline_document import missing_options, refuse_all

if TYPE_CHECKING:
    from google.cloud import aiplatform_v1 as vertex

# Google's own build of TF Serving (cloud.google.com/vertex-ai/docs/predictions/pre-built-containers).
SERVING_IMAGE = "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest"
ALIAS = "blessed"
_DIGEST_LABEL = "shardwright-digest"
_MOST_LABEL = 63
_SCHEMAS = "gs://google-cloud-aiplatform/schema/modelevaluation"
# In a traffic split: the model that the request deploys.
_NEW = "0"
_ALL = 100
# `Model.version_aliases` and `Endpoint.display_name` in the API.
_ALIAS, _MOST_NAME = re.compile(r"[a-z][a-zA-Z0-9-]{0,126}[a-z0-9]"), 128
_MISSED = 1e-6


@dataclass(frozen=True)
class DeliveryOptions:
    """The options of the command line.

    Attributes:
        alias: alias of the version.
        serving_image: image that serves the model.
        endpoint: display name of the endpoint; by default the configuration's name.
        machine: machine type of the endpoint.
        replicas: how many machines serve the model.
        traffic: percentage of the requests that the new model gets.
        trust_model: whether the model may do more than compute.
    """

    alias: str = ALIAS
    serving_image: str = SERVING_IMAGE
    endpoint: str | None = None
    machine: str = "n1-standard-4"
    replicas: int = 1
    traffic: int = _ALL
    trust_model: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.traffic <= _ALL:
            raise UsageError(f"--traffic: {self.traffic} is not a percentage from 1 to 100.")
        if self.replicas < 1:
            raise UsageError(f"--replicas: {self.replicas} is too few. Use 1 or more.")
        if not _ALIAS.fullmatch(self.alias):
            fix = "Use a-z, 0-9 and -, at most 128 characters, a letter first."
            raise UsageError(f"--alias: {self.alias!r} is not an alias of a version. {fix}")
        if self.endpoint is not None and not 1 <= len(self.endpoint) <= _MOST_NAME:
            raise UsageError(f"--endpoint: {self.endpoint!r} is not a name. Use 1 to {_MOST_NAME} characters.")
        if not MACHINE.fullmatch(self.machine):
            raise UsageError(f"--machine: {self.machine!r} is not a machine type. Write one such as n1-standard-4.")
        IMAGE("--serving-image", self.serving_image)


@dataclass(frozen=True)
class Services:
    """The clients of Vertex AI: models, endpoints and predictions."""

    models: vertex.ModelServiceClient
    endpoints: vertex.EndpointServiceClient
    predictions: vertex.PredictionServiceClient


@dataclass(frozen=True)
class Delivered:
    """A delivered model.

    Attributes:
        model: resource name of the version in the Model Registry.
        endpoint: resource name of the endpoint.
        deployed_id: ID of the deployed model.
        traffic: ID of each deployed model -> percentage.
    """

    model: str
    endpoint: str
    deployed_id: str
    traffic: Mapping[str, int]


def blessed_model(config: Config) -> tuple[str, Blessing]:
    """Returns the URL of the blessed model of a configuration, and its blessing.

    Raises:
        UsageError: there is none.
    """
    refuse_all(missing_options(config.vertex, "project", "region", "pipeline_root"))
    root = str(config.vertex.pipeline_root).rstrip("/")
    pushed = (config.vertex.push_directory or f"{root}/pushed").rstrip("/")
    blessing = read_blessing(pushed)
    if blessing is None:
        raise UsageError(f"{pushed}: no model was blessed there yet. Run the pipeline first.")
    return f"{pushed}/{blessing.model}", blessing


def upload_request(config: Config, model: str, blessing: Blessing, options: DeliveryOptions, parent: str) -> Any:
    """Returns the `UploadModelRequest`.

    Args:
        config: the configuration.
        model: URL of the model.
        blessing: of the model.
        options: alias and image.
        parent: resource name of the model that gets another version; empty for a new one.
    """
    from google.cloud import aiplatform_v1 as vertex

    lineage = {f"shardwright-{role}": value[:_MOST_LABEL] for role, value in sorted(blessing.fingerprints.items())}
    # As Google Cloud takes them.
    lineage = {name.lower().replace(".", "-")[:_MOST_LABEL]: value for name, value in lineage.items()}
    labels = {**config.vertex.labels, **lineage, _DIGEST_LABEL: blessing.digest[:_MOST_LABEL]}
    figures = ", ".join(f"{name} {value:.4g}" for name, value in sorted(blessing.metrics.items()))
    made = vertex.Model(
        display_name=config.name,
        artifact_uri=model,
        version_aliases=[options.alias],
        version_description=f"Blessed by Shardwright: {figures}" if figures else "Blessed by Shardwright",
        labels=labels,
        container_spec=vertex.ModelContainerSpec(image_uri=options.serving_image),
        encryption_spec=encryption(config),
    )
    account = config.vertex.service_account
    return vertex.UploadModelRequest(
        parent=location_of(config), model=made, parent_model=parent, service_account=account
    )


def evaluation_request(config: Config, version: str, blessing: Blessing) -> Any:
    """Returns the `ImportModelEvaluationRequest`: the metrics in the service's words, all of them as its metadata."""
    from google.cloud import aiplatform_v1 as vertex
    from google.protobuf import struct_pb2

    figures = blessing.metrics
    if config.task == "segmentation":
        kind = "image_segmentation_metrics_1.0.0.yaml"
        names = {"diceScoreCoefficient": "mean_dice", "iouScore": "mean_iou"}
        entry = {name: figures[own] for name, own in names.items() if own in figures}
        metrics: dict[str, Any] = {"confidenceMetricsEntries": [entry]}
    else:
        kind = "classification_metrics_1.0.0.yaml"
        metrics = {"confidenceMetrics": [{"recall": figures["accuracy"]}]} if "accuracy" in figures else {}
    further = {"metrics": dict(figures), "lineage": dict(blessing.fingerprints), "digest": blessing.digest}
    values = {"metrics": struct_pb2.Value(), "metadata": struct_pb2.Value()}
    values["metrics"].struct_value.update(metrics)
    values["metadata"].struct_value.update({"shardwright": further})
    evaluation = vertex.ModelEvaluation(display_name=config.name, metrics_schema_uri=f"{_SCHEMAS}/{kind}", **values)
    return vertex.ImportModelEvaluationRequest(parent=version, model_evaluation=evaluation)


def endpoint_request(config: Config, options: DeliveryOptions) -> Any:
    """Returns the `CreateEndpointRequest`."""
    from google.cloud import aiplatform_v1 as vertex

    made = vertex.Endpoint(
        display_name=options.endpoint or config.name,
        labels=dict(config.vertex.labels),
        encryption_spec=encryption(config),
        network=config.vertex.network,
    )
    return vertex.CreateEndpointRequest(parent=location_of(config), endpoint=made)


def deploy_request(
    config: Config, endpoint: str, version: str, options: DeliveryOptions, traffic: Mapping[str, int]
) -> Any:
    """Returns the `DeployModelRequest`; `traffic` is the endpoint's split before it."""
    from google.cloud import aiplatform_v1 as vertex

    deployed = vertex.DeployedModel(
        model=version,
        display_name=config.name,
        dedicated_resources=vertex.DedicatedResources(
            machine_spec=vertex.MachineSpec(machine_type=options.machine),
            min_replica_count=options.replicas,
            max_replica_count=options.replicas,
        ),
        service_account=config.vertex.service_account,
    )
    split = new_traffic(traffic, options.traffic)
    return vertex.DeployModelRequest(endpoint=endpoint, deployed_model=deployed, traffic_split=split)


def smoke_request(config: Config, endpoint: str) -> Any:
    """Returns the `RawPredictRequest` of the smoke test: a gray PNG of 8x8 pixels, in TF Serving's own form.

    Masks are asked for as run lengths: as numbers they are larger than Vertex AI's limit of an answer.
    """
    from google.cloud import aiplatform_v1 as vertex
    from PIL import Image

    png = encode_picture(Image.new("RGB", (8, 8), (128, 128, 128)), "png")
    instance: dict[str, Any] = {"image_bytes": {"b64": base64.b64encode(png).decode("ascii")}}
    if config.trainer.text:
        instance["texts"] = [""] * len(config.trainer.text)
    signature = "rle" if config.task == "segmentation" else "serving_default"
    body = json.dumps({"signature_name": signature, "instances": [instance]}).encode()
    content = {"content_type": "application/json", "data": body}
    return vertex.RawPredictRequest(endpoint=endpoint, http_body=content)


def smoke_tests(share: int) -> int:
    """Returns how many requests reach a model with a share of the traffic almost certainly."""
    return 1 if share == _ALL else ceil(log(_MISSED) / log(1 - share / _ALL))


def roll_back_request(endpoint: str, deployed_id: str, traffic: Mapping[str, int]) -> Any:
    """Returns the `UndeployModelRequest` that sets an earlier split of the traffic again."""
    from google.cloud import aiplatform_v1 as vertex

    return vertex.UndeployModelRequest(endpoint=endpoint, deployed_model_id=deployed_id, traffic_split=dict(traffic))


def new_traffic(traffic: Mapping[str, int], share: int) -> dict[str, int]:
    """Returns the split after a deployment: the new model has `share` percent, the earlier ones share the rest.

    Percentages are whole and add up to 100: what rounding leaves goes to the model with the largest share.
    """
    earlier = {name: part for name, part in traffic.items() if part > 0}
    if not earlier:
        return {_NEW: _ALL}
    rest = _ALL - share
    total = sum(earlier.values())
    split = {name: part * rest // total for name, part in sorted(earlier.items())}
    largest = max(sorted(split), key=lambda name: split[name])
    split[largest] += rest - sum(split.values())
    return {**split, _NEW: share}


def delivery_requests(config: Config, options: DeliveryOptions) -> str:
    """Returns all requests as JSON, by step; sends nothing. Values of the service are in capital letters."""
    model, blessing = blessed_model(config)
    location = location_of(config)
    version, endpoint = f"{location}/models/MODEL@VERSION", f"{location}/endpoints/ENDPOINT"
    requests = {
        "1 upload": upload_request(config, model, blessing, options, ""),
        "2 evaluation": evaluation_request(config, version, blessing),
        "3 endpoint": endpoint_request(config, options),
        "4 deploy": deploy_request(config, endpoint, version, options, {"EARLIER": _ALL}),
        "5 smoke test": smoke_request(config, endpoint),
        "6 roll back if that fails": roll_back_request(endpoint, "NEW", {"EARLIER": _ALL}),
    }
    shown = {name: json.loads(type(request).to_json(request)) for name, request in requests.items()}
    body = shown["5 smoke test"]["httpBody"]
    body["data"] = json.loads(base64.b64decode(body["data"]))
    return json.dumps(shown, indent=1, sort_keys=True)


def deliver(config: Config, options: DeliveryOptions, services: Services, report: Callable[[str], None]) -> Delivered:
    """Delivers the blessed model.

    Args:
        config: the configuration.
        options: of the command line.
        services: Vertex AI's clients.
        report: called with a line for each step.

    Raises:
        UsageError: no model was blessed.
        DatasetError: the model does more than compute; it was not uploaded.
        CheckFailed: the model does not answer. It was undeployed, and the earlier split of the traffic is set again,
            as after an interruption.
    """
    model, blessing = blessed_model(config)
    version = _version(config, model, blessing, options, services, report)
    found = _find_endpoint(config, options, services)
    endpoint = found or services.endpoints.create_endpoint(request=endpoint_request(config, options)).result()
    endpoint, traffic = endpoint.name, dict(found.traffic_split) if found else {}
    request = deploy_request(config, endpoint, version, options, traffic)
    deployed = services.endpoints.deploy_model(request=request).result().deployed_model.id
    report(f"deployed as {deployed} to {endpoint}")
    try:
        _smoke_test(services, smoke_request(config, endpoint), smoke_tests(request.traffic_split[_NEW]))
    except BaseException as error:
        services.endpoints.undeploy_model(request=roll_back_request(endpoint, deployed, traffic)).result()
        if not isinstance(error, Exception):
            raise
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise CheckFailed(f"{model}: does not answer on {endpoint}: {reason}. It was rolled back.") from None
    split = {deployed if name == _NEW else name: part for name, part in request.traffic_split.items()}
    report(f"answers; traffic: {', '.join(f'{name} {part} %' for name, part in split.items())}")
    return Delivered(version, endpoint, deployed, split)


def roll_back(config: Config, options: DeliveryOptions, services: Services) -> str:
    """Undeploys the model that was deployed last, and gives its traffic to the others; returns its ID.

    Raises:
        UsageError: there is no endpoint of that name, or it has no earlier model.
    """
    endpoint = _find_endpoint(config, options, services)
    models = sorted(endpoint.deployed_models, key=lambda model: model.create_time.timestamp()) if endpoint else []
    if len(models) < 2:
        raise UsageError(f"endpoint {options.endpoint or config.name!r}: has no earlier model to go back to.")
    last = models[-1]
    left = {model.id: endpoint.traffic_split.get(model.id, 0) for model in models[:-1]}
    if not any(left.values()):
        left[models[-2].id] = _ALL
    split = {name: part for name, part in new_traffic(left, 0).items() if name != _NEW}
    services.endpoints.undeploy_model(request=roll_back_request(endpoint.name, last.id, split)).result()
    return str(last.id)


def _version(
    config: Config,
    model: str,
    blessing: Blessing,
    options: DeliveryOptions,
    services: Services,
    report: Callable[[str], None],
) -> str:
    """Returns the version in the registry: the one with the same digest, or a new one.

    Either gets the alias, which another version then loses, and has its evaluation.
    """
    parent, known = registered_version(config, blessing, services)
    if known:
        services.models.merge_version_aliases(name=known, version_aliases=[options.alias])
        if not list(services.models.list_model_evaluations(parent=known)):
            services.models.import_model_evaluation(request=evaluation_request(config, known, blessing))
        report(f"the registry has this model already: {known}")
        return known
    check_saved_model(model, trusted=options.trust_model)
    request = upload_request(config, model, blessing, options, parent)
    answer = services.models.upload_model(request=request).result()
    version = f"{answer.model}@{answer.model_version_id}"
    services.models.import_model_evaluation(request=evaluation_request(config, version, blessing))
    report(f"uploaded as {version}")
    return version


def registered_version(config: Config, blessing: Blessing, services: Services) -> tuple[str, str]:
    """Returns the names of the registered model and of its version with the blessed bytes; empty where missing."""
    parent = ""
    for known in services.models.list_models(parent=location_of(config)):
        if known.display_name == config.name:
            parent = known.name
            for version in services.models.list_model_versions(name=known.name):
                if version.labels.get(_DIGEST_LABEL) == blessing.digest[:_MOST_LABEL]:
                    return parent, f"{version.name}@{version.version_id}"
    return parent, ""


def _find_endpoint(config: Config, options: DeliveryOptions, services: Services) -> Any:
    name, listed = options.endpoint or config.name, services.endpoints.list_endpoints(parent=location_of(config))
    return next((endpoint for endpoint in listed if endpoint.display_name == name), None)


def _smoke_test(services: Services, request: Any, times: int) -> None:
    """Sends an image; each answer must have one prediction."""
    for _ in range(times):
        answer = services.predictions.raw_predict(request=request)
        body = json.loads(answer.data)
        answers = body.get("predictions") if isinstance(body, dict) else None
        if not isinstance(answers, list) or len(answers) != 1 or not answers[0]:
            raise CheckFailed(f"it answers {answer.data[:200].decode('utf-8', 'replace')}")


def encryption(config: Config) -> Any:
    """Returns the `EncryptionSpec` of `vertex.kms_key`; `None` without one."""
    from google.cloud import aiplatform_v1 as vertex

    key = config.vertex.kms_key
    return None if key is None else vertex.EncryptionSpec(kms_key_name=key)


def location_of(config: Config) -> str:
    """Returns the resource name of the project's region."""
    return f"projects/{config.vertex.project}/locations/{config.vertex.region}"
