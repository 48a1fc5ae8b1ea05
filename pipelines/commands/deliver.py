"""`shardwright deliver`: the blessed model to Vertex AI's Model Registry and endpoints, or as a KServe manifest."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from shardwright.pipelines.commands.parsers import Commands
from shardwright.pipelines.commands.results import print_json
from shardwright.progress import print_note

if TYPE_CHECKING:
    from shardwright.config import Config
    from shardwright.pipelines.cloud.deliver import Services


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
    deliver.add_argument("--roll-back", action="store_true", help="undeploy the model that was deployed last")
    deliver.add_argument("--kserve", action="store_true", help="print a KServe manifest, and send nothing")
    deliver.add_argument("--dry-run", action="store_true", help="print the requests, and send nothing")
    deliver.add_argument("--json", action="store_true", help="print what was delivered as JSON")
    deliver.set_defaults(command=_deliver)


def _deliver(options: argparse.Namespace) -> int:
    from shardwright.config import load_config
    from shardwright.pipelines.cloud.deliver import (
        SERVING_IMAGE,
        DeliveryOptions,
        deliver,
        delivery_requests,
        roll_back,
    )
    from shardwright.pipelines.cloud.runs import google_errors

    config = load_config(options.config)
    wanted = DeliveryOptions(
        alias=options.alias,
        serving_image=options.serving_image or SERVING_IMAGE,
        endpoint=options.endpoint,
        machine=options.machine,
        replicas=options.replicas,
        traffic=options.traffic,
    )
    if options.kserve:
        from shardwright.pipelines.cloud.kserve import kserve_manifest

        print(kserve_manifest(config, wanted.traffic), end="")
        return 0
    if options.dry_run:
        print(delivery_requests(config, wanted))
        return 0
    with google_errors():
        if options.roll_back:
            undeployed = roll_back(config, wanted, _services(config))
            if options.json:
                print_json({"undeployed": undeployed})
            else:
                print(f"undeployed {undeployed}")
            return 0
        made = deliver(config, wanted, _services(config), print_note)
    if options.json:
        print_json(made)
    else:
        print(made.endpoint)
    return 0


def _services(config: Config) -> Services:
    from google.cloud import aiplatform_v1 as vertex

    from shardwright.pipelines.cloud.deliver import Services

    options = {"api_endpoint": f"{config.vertex.region}-aiplatform.googleapis.com"}
    return Services(
        vertex.ModelServiceClient(client_options=options),
        vertex.EndpointServiceClient(client_options=options),
        vertex.PredictionServiceClient(client_options=options),
    )
