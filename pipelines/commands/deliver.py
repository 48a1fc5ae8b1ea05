"""`shardwright deliver`: the blessed model to Vertex AI, Kubeflow's Model Registry, a model hub, or for KServe."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from shardwright.config import Config
from shardwright.errors import UsageError
from shardwright.ingest.baseline import push_directory_of
from shardwright.pipelines.commands.parsers import refuse_unused
from shardwright.pipelines.commands.results import finish, table
from shardwright.pipelines.commands.settings import configuration
from shardwright.running.progress import counted, print_note
from shardwright.storage import read_bytes

if TYPE_CHECKING:
    from shardwright.pipelines.cloud.deliver_model import DeliveryOptions, Services

_MOST_TOKEN = 1 << 16
# The options of an endpoint, and those among them that another way to deliver uses.
_ENDPOINT = ("--alias", "--endpoint", "--traffic", "--machine", "--replicas", "--serving-image", "--model-version")
_USED = {
    "": _ENDPOINT,
    "--kserve": ("--traffic", "--model-version"),
    "--kserve --batch": (),
    "--batch": ("--machine", "--replicas"),
    "--model-registry": (),
    "--hub": (),
    "--roll-back": ("--endpoint",),
}


def run(options: Namespace) -> int:
    """Delivers the blessed model in one of the ways, or prints the requests."""
    _check_options(options)
    from shardwright.pipelines.runs.logs import quiet_libraries

    with quiet_libraries():
        from shardwright.pipelines.cloud.deliver_model import SERVING_IMAGE, DeliveryOptions

    if options.hub:
        return _push_to_hub(configuration(options), options)
    config = configuration(options)
    fields = {field.name for field in dataclasses.fields(DeliveryOptions)}
    wanted = {name: value for name, value in vars(options).items() if name in fields}
    delivery = DeliveryOptions(**{**wanted, "serving_image": options.serving_image or SERVING_IMAGE})
    if options.kserve:
        return _print_manifest(config, delivery, options)
    if options.model_registry is not None:
        return _register(config, options)
    return _predict_batch(config, delivery, options) if options.batch else _deploy(config, delivery, options)


def _check_options(options: Namespace) -> None:
    """Refuses options that contradict each other, or that the way to deliver does not use."""
    if options.roll_back and options.dry_run:
        raise UsageError("--dry-run: --roll-back needs the state of the endpoint first. Leave out --dry-run.")
    if options.batch and (options.roll_back or options.hub or options.model_registry is not None):
        other = "--roll-back" if options.roll_back else "--hub" if options.hub else "--model-registry"
        raise UsageError(f"--batch: {other} predicts nothing. Leave one of them out.")
    if options.token_file is not None and options.model_registry is None:
        raise UsageError("--token-file: is for --model-registry. Add it, or leave --token-file out.")
    if options.pushed is not None and not options.hub:
        raise UsageError("--pushed: is for --hub. Add it, or leave --pushed out.")
    ways = {
        "--kserve": options.kserve,
        "--batch": options.batch,
        "--roll-back": options.roll_back,
        "--hub": options.hub,
    }
    ways["--model-registry"] = options.model_registry is not None
    mode = " ".join(name for name, on in ways.items() if on)
    refuse_unused(options, mode, *(name for name in _ENDPOINT if name not in _USED[mode]))


def _deploy(config: Config, delivery: DeliveryOptions, options: Namespace) -> int:
    """Deploys to an endpoint of Vertex AI, or rolls back."""
    from shardwright.pipelines.cloud.deliver_model import deliver, delivery_requests, roll_back
    from shardwright.pipelines.cloud.vertex_runs import google_errors

    if options.dry_run:
        print(delivery_requests(config, delivery))
        return 0
    with google_errors():
        if options.roll_back:
            undeployed = roll_back(config, delivery, _services(config))
            return finish(options, {"undeployed": undeployed}, f"undeployed {undeployed}")
        made = deliver(config, delivery, _services(config), print_note)
    return finish(options, made, made.endpoint)


def _print_manifest(config: Config, delivery: DeliveryOptions, options: Namespace) -> int:
    from shardwright.pipelines.cloud.batch import predict_job
    from shardwright.pipelines.cloud.kserve import kserve_manifest

    if options.batch:
        manifest = predict_job(config, *options.batch)
    else:
        manifest = kserve_manifest(config, delivery.traffic, options.model_version)
    return finish(options, {"manifest": manifest}, manifest.removesuffix("\n"))


def _register(config: Config, options: Namespace) -> int:
    """Registers the blessed model in Kubeflow's Model Registry."""
    from shardwright.pipelines.cloud.model_registry import RegistryServer, register, registry_requests

    token = None if options.token_file is None else read_bytes(options.token_file, most=_MOST_TOKEN).decode().strip()
    server = RegistryServer(options.model_registry, token)
    if options.dry_run:
        print(registry_requests(config))
        return 0
    version = register(config, server, print_note)
    return finish(options, {"version": version}, version)


def _push_to_hub(config: Config, options: Namespace) -> int:
    """Pushes the blessed model to the repository of `push.hub`, or prints its files."""
    hub = config.push.hub
    if hub is None:
        example = "push: {hub: {repository: my-team/clouds, license: apache-2.0}}"
        raise UsageError(f"push.hub: {options.config} names no repository. Add for example {example}.")
    pushed = options.pushed or push_directory_of(config)
    from shardwright.pipelines.runs.logs import quiet_libraries

    with quiet_libraries():
        from shardwright.pipelines.hub.hub_files import hub_files
        from shardwright.pipelines.hub.push_model import push_blessed
    if options.dry_run:
        with hub_files(config, hub, pushed, trusted=options.trust_model) as files:
            sizes = files.sizes()
            rows = [(f"{size:>12,}", name) for name, size in sizes.items()]
            made = {"repository": hub.repository, "tag": files.tag, "files": sizes}
        total = f"{counted(len(sizes), 'file')}, {sum(sizes.values()):,} bytes"
        return finish(options, made, table(rows), f"{hub.repository}: would get {total}, as {made['tag']}")
    made_of_it = push_blessed(config, hub, pushed, print_note, trusted=options.trust_model)
    return finish(options, made_of_it, made_of_it.words())


def _predict_batch(config: Config, delivery: DeliveryOptions, options: Namespace) -> int:
    """Starts a batch prediction on Vertex AI."""
    from shardwright.pipelines.cloud.batch import shown_batch_request, start_batch
    from shardwright.pipelines.cloud.vertex_runs import google_errors

    images, out = options.batch
    if options.dry_run:
        print(shown_batch_request(config, images, out, delivery))
        return 0
    with google_errors():
        from google.cloud import aiplatform_v1 as vertex

        jobs = vertex.JobServiceClient(client_options=_client_options(config))
        job = start_batch(config, images, out, delivery, _services(config), jobs)
    return finish(options, {"job": job}, job)


def _client_options(config: Config) -> dict[str, Any]:
    return {"api_endpoint": f"{config.vertex.region}-aiplatform.googleapis.com"}


def _services(config: Config) -> Services:
    from google.cloud import aiplatform_v1 as vertex

    from shardwright.pipelines.cloud.deliver_model import Services

    options = _client_options(config)
    return Services(
        vertex.ModelServiceClient(client_options=options),
        vertex.EndpointServiceClient(client_options=options),
        vertex.PredictionServiceClient(client_options=options),
    )
