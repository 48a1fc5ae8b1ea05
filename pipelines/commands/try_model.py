"""`shardwright try`: serves a page on this machine on which a model answers for photographs."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from contextlib import suppress

from shardwright.errors import Stopped, UsageError
from shardwright.pipelines.commands.predict import last_model, stated_of
from shardwright.pipelines.commands.results import finish
from shardwright.running.processes import sigterm_raises
from shardwright.running.progress import print_note


def run(options: Namespace) -> int:
    """Serves until it is interrupted."""
    if not 0 <= options.port < 1 << 16:
        raise UsageError(f"--port: {options.port} is not a port. Use 0 (any free one) to 65535.")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from shardwright.components.predictor.other_model import open_any_model
    from shardwright.dataset.reader import ImageDataset
    from shardwright.pipelines.runs.logs import quiet_libraries
    from shardwright.pipelines.try_server import HOST, TriedModel, TryServer, check_host

    check_host(options.host, options.port)
    model = last_model(options.model) if options.unblessed else os.path.abspath(options.model)
    with quiet_libraries():
        opened = open_any_model(model, stated_of(options), trusted=options.trust_model)
        dataset = None if options.dataset is None else ImageDataset.open(options.dataset)
        tried = TriedModel(opened, dataset)
    try:
        server = TryServer(tried, options.port, options.host)
    except OSError as error:
        place = f"--port {options.port}" if options.host == HOST else f"--host {options.host} --port {options.port}"
        raise UsageError(f"{place}: cannot be used ({error.strerror}). Use 0 for any free one.") from None
    if options.host != HOST:
        print_note(f"{options.host}: everyone who reaches port {server.server_port} and knows the address may ask")
    # Ctrl-C may come as soon as the address is printed; `docker stop` sends SIGTERM.
    with server, sigterm_raises(), suppress(KeyboardInterrupt, Stopped):
        finish(
            options, {"address": server.address}, f"{server.address}", following="open it in a browser; Ctrl-C ends it"
        )
        sys.stdout.flush()
        server.serve_forever()
    return 0
