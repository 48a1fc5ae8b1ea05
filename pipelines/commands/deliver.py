"""`shardwright deliver`: the blessed model to Vertex AI's Model Registry and endpoints, or as a KServe manifest."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from shardwright.pipelines.commands.files import add_trust
from shardwright.pipelines.commands.parsers import Commands, refuse_unused
from shardwright.pipelines.commands.results import print_json
from shardwright.running.progress import print_note

if TYPE_CHECKING:
    from shardwright.config import Config
    from shardwright.pipelines.cloud.deliver_model import DeliveryOptions, Services

_MOST_TOKEN = 1 << 16
# The options of an endpoint, and those among them that another way to deliver uses.
_ENDPOINT = ("--alias", "--endpoint", "--traffic", "--machine", "--replicas", "--serving-image", "--model-version")
_USED = {
    "--kserve": ("--traffic", "--model-version"),
    "--kserve --batch": (),
    "--batch": ("--machine", "--replicas"),
    "--model-registry": (),
    "--roll-back": ("--endpoint",),
}


def add(commands: Commands) -> None:
    """Adds the command to the parser of `shardwright`."""
    deliver = commands.add("deliver")
    deliver.add_argument("config", metavar="CONFIG", help="YAML file")
    deliver.add_argument("--alias", default="blessed", metavar="NAME", help="alias of the version (default blessed)")
    deliver.add_argument("--endpoint", metavar="NAME", help="endpoint (default: the configuration's name)")
    deliver.add_argument("--traffic", type=int, default=100, metavar="P", help="percentage of requests (default 100)")
    deliver.add_argument("--machine", default="n1-standard-4", metavar="TYPE", help="machine (default n1-standard-4)")
    deliver.add_argument("--replicas", type=int, default=1, metavar="N", help="machines (default 1)")
    deliver.add_argument("--serving-image", metavar="NAME", help="image with TF Serving (default: Google's)")
    deliver.add_argument("--model-version", metavar="N", help="with --kserve: a pushed model (default: the blessed)")
    instead = deliver.add_mutually_exclusive_group()
    instead.add_argument("--roll-back", action="store_true", help="undeploy the model that was deployed last")
    instead.add_argument("--kserve", action="store_true", help="print a KServe manifest, and send nothing")
    instead.add_argument("--model-registry", metavar="URL", help="register it in Kubeflow's Model Registry instead")
    deliver.add_argument("--token-file", metavar="FILE", help="with --model-registry: a bearer token")
    deliver.add_argument(
        "--batch", nargs=2, metavar=("IMAGES", "OUT"), help="predict many images; with --kserve print a Kubernetes Job"
    )
    add_trust(deliver)
    deliver.add_argument("--dry-run", action="store_true", help="print the requests, and send nothing")
    deliver.add_argument("--json", action="store_true", help="print what was delivered as JSON")
    deliver.set_defaults(command=_deliver)


def _deliver(options: argparse.Namespace) -> int:
    from shardwright.config import load_config
    from shardwright.pipelines.runs.logs import quiet_libraries

    with quiet_libraries():
        from shardwright.pipelines.cloud.deliver_model import (
            SERVING_IMAGE,
            DeliveryOptions,
            deliver,
            delivery_requests,
            roll_back,
        )
    from shardwright.pipelines.cloud.vertex_runs import google_errors

    _check_options(options)
    config = load_config(options.config)
    wanted = DeliveryOptions(
        alias=options.alias,
        serving_image=options.serving_image or SERVING_IMAGE,
        endpoint=options.endpoint,
        machine=options.machine,
        replicas=options.replicas,
        traffic=options.traffic,
        trust_model=options.trust_model,
    )
    if options.kserve:
        from shardwright.pipelines.cloud.batch import predict_job
        from shardwright.pipelines.cloud.kserve import kserve_manifest

        if options.batch:
            manifest = predict_job(config, *options.batch)
        else:
            manifest = kserve_manifest(config, wanted.traffic, options.model_version)
        if options.json:
            return _print_one(options, "manifest", manifest)
        print(manifest, end="")
        return 0
    if options.model_registry is not None:
        return _register(config, options)
    if options.batch:
        return _batch(config, wanted, options)
    if options.dry_run:
        print(delivery_requests(config, wanted))
        return 0
    with google_errors():
        if options.roll_back:
            undeployed = roll_back(config, wanted, _services(config))
            return _print_one(options, "undeployed", undeployed if options.json else f"undeployed {undeployed}")
        made = deliver(config, wanted, _services(config), print_note)
    if options.json:
        print_json(made)
    else:
        print(made.endpoint)
    return 0


def _check_options(options: argparse.Namespace) -> None:
    """Refuses options that contradict each other, or that the way to deliver does not use."""
    from shardwright.errors import UsageError

    if options.roll_back and options.dry_run:
        raise UsageError("--dry-run: --roll-back needs the state of the endpoint first. Leave out --dry-run.")
    if options.batch and (options.roll_back or options.model_registry is not None):
        other = "--roll-back" if options.roll_back else "--model-registry"
        raise UsageError(f"--batch: {other} predicts nothing. Leave one of them out.")
    if options.token_file is not None and options.model_registry is None:
        raise UsageError("--token-file: is for --model-registry. Add it, or leave --token-file out.")
    given = {"--kserve": options.kserve, "--batch": options.batch, "--roll-back": options.roll_back}
    given["--model-registry"] = options.model_registry is not None
    mode = " ".join(name for name, on in given.items() if on)
    refuse_unused(options, mode, *(name for name in _ENDPOINT if mode and name not in _USED[mode]))


def _register(config: Config, options: argparse.Namespace) -> int:
    """Registers the blessed model in Kubeflow's Model Registry."""
    from shardwright.pipelines.cloud.model_registry import RegistryServer, register, registry_requests
    from shardwright.storage import read_bytes

    token = None if options.token_file is None else read_bytes(options.token_file, most=_MOST_TOKEN).decode().strip()
    server = RegistryServer(options.model_registry, token)
    if options.dry_run:
        print(registry_requests(config))
        return 0
    version = register(config, server, print_note)
    return _print_one(options, "version", version)


def _batch(config: Config, wanted: DeliveryOptions, options: argparse.Namespace) -> int:
    """Starts a batch prediction on Vertex AI."""
    from shardwright.pipelines.cloud.batch import shown_batch_request, start_batch
    from shardwright.pipelines.cloud.vertex_runs import google_errors

    images, out = options.batch
    if options.dry_run:
        print(shown_batch_request(config, images, out, wanted))
        return 0
    with google_errors():
        from google.cloud import aiplatform_v1 as vertex

        jobs = vertex.JobServiceClient(client_options=_options(config))
        made = start_batch(config, images, out, wanted, _services(config), jobs)
    return _print_one(options, "job", made)


def _print_one(options: argparse.Namespace, name: str, value: str) -> int:
    if options.json:
        print_json({name: value})
    else:
        print(value)
    return 0


def _options(config: Config) -> dict[str, str]:
    return {"api_endpoint": f"{config.vertex.region}-aiplatform.googleapis.com"}


def _services(config: Config) -> Services:
    from google.cloud import aiplatform_v1 as vertex

    from shardwright.pipelines.cloud.deliver_model import Services

    options = _options(config)
    return Services(
        vertex.ModelServiceClient(client_options=options),
        vertex.EndpointServiceClient(client_options=options),
        vertex.PredictionServiceClient(client_options=options),
    )
