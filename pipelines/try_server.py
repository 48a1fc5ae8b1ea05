"""The page of `shardwright try`: a server of the standard library on the loopback, for one person and one model.

In a container it listens on all addresses (`0.0.0.0`), because the loopback of a container is its own; the machine then
publishes the port on its loopback.

It has three addresses, below a path that nobody can guess: the page, `predict`, which gets the bytes of a photograph,
and `example`, which takes an image of the dataset with its annotation. It reads no file by a name from a request. Pages
of other sites cannot use it: the header `Host` must be its own, and a request must have a header that a browser sends
to another origin only where the server agrees, which this one never does.
"""

from __future__ import annotations

import base64
import dataclasses
import ipaddress
import json
import random
import secrets
import sys
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from PIL import Image

from shardwright.components.predictor.exported_model import ExportedModel
from shardwright.components.predictor.sources import DatasetSource, servable
from shardwright.config.images import images_config
from shardwright.dataset.example_view import ExampleReader, ExampleView
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.source import stored_file
from shardwright.display.html import PageScript, document, isolate, section
from shardwright.display.thumbnails import data_url
from shardwright.errors import UsageError
from shardwright.evaluation.thresholds import DEFAULT_THRESHOLD, LEVELS
from shardwright.images.colors import class_color
from shardwright.images.geometry import plan_geometry
from shardwright.images.header import ImageError
from shardwright.masks.rle import draw, resample
from shardwright.pipelines.reviewing.answers import check_fits

HOST, ALL_ADDRESSES = "127.0.0.1", "0.0.0.0"  # noqa: S104 -- for containers, where somebody asks for it
# Of an upload: bytes, and pixels that are decoded, of which each needs a few bytes.
MOST_BYTES, MOST_PIXELS = 32 << 20, 1 << 26
# Requests that are read at once, and seconds for one.
_AT_ONCE, _SECONDS = 8, 30
_HEADER = "X-Shardwright"
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_MOST_SLIDERS = 12


class Refused(Exception):
    """A request that is answered with a status and a sentence."""

    def __init__(self, status: HTTPStatus, problem: str) -> None:
        super().__init__(problem)
        self.status = status


class TriedModel:
    """A model, and perhaps a dataset, that answers the requests of the page.

    Args:
        model: the model.
        dataset: its images are shown with their annotations.

    Raises:
        UsageError: the dataset has other classes, or no image.
    """

    def __init__(self, model: ExportedModel, dataset: ImageDataset | None = None) -> None:
        self._model, self._dataset = model, dataset
        self._masks = model.task == "segmentation"
        self._lock = threading.Lock()
        self._keys: list[str] = []
        # An upload is what the ingest would get, but within the limits of a page.
        ingested = images_config(model.ingested)
        self._options = dataclasses.replace(ingested, max_pixels=min(ingested.max_pixels, MOST_PIXELS))
        if dataset is not None:
            self._source = DatasetSource(dataset, dataset.splits)
            check_fits(model, self._source)
            self._reader = ExampleReader(dataset.manifest)
            # Those that the model has not learned from, if there are any.
            for split in ("test", "eval", *dataset.splits):
                self._keys = self._keys or (dataset.keys(split) if split in dataset.splits else [])
            if not self._keys:
                raise UsageError(f"{dataset.root}: has no image. Omit --dataset.")

    def page(self) -> str:
        """Returns the page as HTML."""
        model = self._model
        exclusive = not self._masks and not model.multi
        count = len(model.classes)
        chosen = (DEFAULT_THRESHOLD,) * count if exclusive else model.thresholds.thresholds
        # Where one slider would do for all, because nothing sets the classes apart, there is one.
        alone = exclusive or (count > _MOST_SLIDERS and len(set(chosen)) == 1)
        named = [("", chosen[0])] if alone else list(zip(model.classes, chosen, strict=True))
        slider = Markup(
            "<label><span>threshold {}</span><output>{:.2f}</output>"
            '<input type="range" min="0.01" max="0.99" step="0.01" value="{:.2f}"></label>'
        )
        sliders = Markup("").join(
            slider.format(isolate(name, 40) if name else "", value, value) for name, value in named
        )
        drop = Markup(
            '<label class="drop" id="drop"><b>Drop photographs here</b>, paste them, or choose: '
            '<input type="file" id="file" accept="image/*" multiple></label>'
        )
        example = Markup('<div class="bar-of-tools"><button id="example">Show an image of the dataset</button></div>')
        parts = [
            drop,
            example if self._keys else "",
            Markup('<p id="status" role="status"></p>'),
            Markup('<div class="sliders" id="sliders">{}</div>').format(sliders),
            Markup('<div class="items" id="results"></div>'),
        ]
        data = {
            "classes": list(model.classes),
            "colors": [list(class_color(label)) for label in range(count)] if self._masks else [],
            "thresholds": list(chosen),
            "smallest": list(model.thresholds.min_areas) if self._masks else [],
            "masks": self._masks,
            "multi": model.multi,
            "most": MOST_BYTES,
        }
        lead = f"{model.task}, {model.height} × {model.width} pixels, {count} classes"
        return document(
            "Try the model",
            "Shardwright",
            lead,
            "",
            section("photographs", "Photographs", *parts),
            links=[("photographs", "Photographs")],
            script=PageScript("try.js", data, served=True),
            ending="Photographs stay on this machine.",
        )

    def predict(self, data: bytes) -> dict[str, Any]:
        """Returns the answer for an uploaded photograph.

        Raises:
            Refused: it is not an image, or too large.
        """
        return self._answer(data, self._options, stored=False)

    def example(self, data: bytes) -> dict[str, Any]:
        """Returns the answer for an image of the dataset, chosen at random, with its annotation.

        Raises:
            Refused: there is no dataset.
        """
        if self._dataset is None:
            raise Refused(HTTPStatus.NOT_FOUND, "there is no dataset; start with --dataset DIR.")
        del data
        key = random.choice(self._keys)  # noqa: S311 -- an example, no secret
        view = self._reader.read(key, self._dataset.fetch(key).payload)
        stored = self._source.is_stored(self._model)
        options = images_config({}) if stored else self._options
        try:
            found = self._answer(stored_file(view, key), options, stored=stored)
        except ValueError as error:
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None
        return {
            **found,
            "key": key,
            "labels": list(view.labels),
            **({"truth": self._truth(view)} if self._masks else {}),
        }

    def _truth(self, view: ExampleView) -> str:
        plan = plan_geometry(self._model.resize, *view.size, self._model.height, self._model.width)
        masks = [resample(view.runs(label), plan) for label in range(len(self._model.classes))]
        return _packed(np.stack([draw(runs, self._model.height, self._model.width) for runs in masks]))

    def _answer(self, data: bytes, options: Any, *, stored: bool) -> dict[str, Any]:
        import tensorflow as tf

        begun = time.perf_counter()
        try:
            served, frames = servable(data, options)
            with self._lock:  # A photograph after the other: memory for one is known to be enough.
                answer = self._model.answer([served], stored=stored)
                milliseconds = 1000 * (time.perf_counter() - begun)
                pixels = self._model.pixels([served], stored=stored)[0]
        except ImageError as error:
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, error.reason) from None
        except tf.errors.InvalidArgumentError:
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, "it cannot be decoded.") from None
        found: dict[str, Any] = {
            "milliseconds": milliseconds,
            "picture": data_url("png", Image.fromarray(np.asarray(pixels, np.uint8))),
            "size": [self._model.height, self._model.width],
            "shape": [frames.height, frames.width] if self._model.resize == "stretch" else list(pixels.shape[:2]),
        }
        given = np.asarray(answer["probabilities"][0], np.float64)
        if not self._masks:
            return {**found, "probabilities": given.tolist()}
        return {
            **found,
            "probabilities": given.max((0, 1)).tolist(),
            "levels": _packed(self._levels(answer["probabilities"][0]).transpose(2, 0, 1)),
        }

    def _levels(self, probabilities: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
        """Returns how many positions of a slider each pixel reaches, compared in float32, as the model does.

        The position that the model's own threshold is rounded to stands for that threshold itself.
        """
        levels = np.empty(probabilities.shape, np.uint8)
        for label, threshold in enumerate(self._model.thresholds.thresholds):
            reached = LEVELS.copy()
            reached[min(max(round(float(f"{threshold:.2f}") * 100), 1), len(reached)) - 1] = threshold
            levels[..., label] = np.searchsorted(reached, probabilities[..., label], side="right")
        return levels


def _packed(values: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(values, np.uint8).tobytes()).decode("ascii")


def check_host(host: str, port: int) -> None:
    """Refuses an address that a server cannot listen on, and one that needs a fixed port.

    Raises:
        UsageError: it is none, or beyond the loopback and without a port.
    """
    try:
        address = ipaddress.IPv4Address(host)
    except ValueError:
        fix = f"Use {HOST}, or in a container {ALL_ADDRESSES}."
        raise UsageError(f"--host: {host!r} is not an IPv4 address. {fix}") from None
    if not (address.is_loopback or port):
        raise UsageError(f"--host {host}: needs a port that can be published. Add for example --port 8080.")


class TryServer(ThreadingHTTPServer):
    """The server.

    Args:
        tried: answers.
        port: 0 for any free one.
        host: IPv4 address to listen on. Whatever it is, names of other machines are refused.

    Attributes:
        address: of the page.
    """

    daemon_threads = True

    def __init__(self, tried: TriedModel, port: int = 0, host: str = HOST) -> None:
        self.path = f"/{secrets.token_urlsafe(16)}/"
        self.page = tried.page().encode("utf-8")
        self.routes: dict[str, Callable[[bytes], dict[str, Any]]] = {"predict": tried.predict, "example": tried.example}
        self.free = threading.BoundedSemaphore(_AT_ONCE)
        super().__init__((host, port), _Handler)
        # Of a container, whose port the machine publishes on its own loopback under the same number.
        own = HOST if host == ALL_ADDRESSES else host
        self.hosts = {f"{name}:{self.server_port}" for name in (own, HOST, "localhost")}
        self.address = f"http://{own}:{self.server_port}{self.path}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: a browser that closes its connection is no error of ours."""


class _Handler(BaseHTTPRequestHandler):
    server: TryServer
    timeout = _SECONDS

    def do_GET(self) -> None:
        self._reply(lambda path: (b"text/html", self.server.page) if path == "" else None)

    def do_POST(self) -> None:
        self._reply(self._asked)

    def _asked(self, path: str) -> tuple[bytes, bytes] | None:
        route = self.server.routes.get(path)
        if route is None:
            return None
        origin = self.headers.get("Origin")
        if self.headers.get(_HEADER) != "1" or (
            origin is not None and origin.removeprefix("http://") not in self.server.hosts
        ):
            raise Refused(HTTPStatus.FORBIDDEN, "only the page of this server may ask.")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "the length is missing.")
        if int(length) > MOST_BYTES:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"has more than {MOST_BYTES} bytes. Make it smaller.")
        if not self.server.free.acquire(blocking=False):
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "other photographs are waiting. Try again.")
        try:
            body = self.rfile.read(int(length))
            return b"application/json", json.dumps(route(body)).encode("ascii")
        finally:
            self.server.free.release()

    def _reply(self, answer: Callable[[str], tuple[bytes, bytes] | None]) -> None:
        status, kind, body = HTTPStatus.OK, b"application/json", b""
        try:
            if self.headers.get("Host") not in self.server.hosts:
                raise Refused(HTTPStatus.MISDIRECTED_REQUEST, "is not the name of this server.")
            inside = secrets.compare_digest(self.path[: len(self.server.path)].encode(), self.server.path.encode())
            found = answer(self.path[len(self.server.path) :]) if inside else None
            if found is None:
                raise Refused(HTTPStatus.NOT_FOUND, "there is no such page.")
            kind, body = found
        except Refused as refused:
            status, body = refused.status, json.dumps({"problem": str(refused)}).encode("ascii")
        except Exception as error:
            print(f"shardwright: {type(error).__name__}: {error}", file=sys.stderr)
            problem = "the model failed; the terminal says more."
            status, body = HTTPStatus.INTERNAL_SERVER_ERROR, json.dumps({"problem": problem}).encode("ascii")
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind.decode()}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        # What is left of a refused upload is not read.
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def version_string(self) -> str:
        return "shardwright"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the name of the base class
        """Writes nothing: the page shows what happens."""
