"""Emulators of both object stores, to measure and to test against with the real clients.

They come with the development tools, and run in this process or in one of their own. To what they know is added what
the stores do and they do not: listings by pages and the conditions on an object's generation (Google's); entity tags
of encrypted objects that are not their MD5 (Amazon's); and, on request, time that every request takes and troubles.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import re
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from http.server import ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from gcp_storage_emulator.exceptions import NotFound
from gcp_storage_emulator.handlers.objects import _checksums, _make_object_resource
from gcp_storage_emulator.server import RequestHandler
from gcp_storage_emulator.storage import Storage
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from moto.s3.models import FakeKey, s3_backends
from werkzeug.serving import make_server

_HOST = "127.0.0.1"
_PAGE = 1000
# The `fields` that a listing asks for of each object, and the end of all names that begin alike.
_ITEM_FIELDS = re.compile(r"items\(([^)]*)\)")
_LAST = "\U0010ffff"
_GONE = 404
_PRECONDITION_FAILED = 412


class Trouble(NamedTuple):
    """A fault of an emulator, in place of an answer.

    Attributes:
        status: HTTP status to answer with, 0 to answer as it should.
        cut: break off in the middle of the answer's body.
        flip: send the body with a bit flipped.
    """

    status: int = 0
    cut: bool = False
    flip: bool = False

    def body(self, data: bytes) -> bytes:
        """The text that is sent in place of an answer's body."""
        if self.cut:
            return data[: len(data) // 2]
        return bytes([data[0] ^ 1]) + data[1:] if self.flip and data else data


# Is asked before each request, with its method and path; may take its time.
Meddle = Callable[[str, str], Trouble | None]


@contextmanager
def emulator(scheme: str, meddle: Meddle = lambda method, path: None) -> Iterator[str]:
    """Runs an emulator in threads of this process; gives its URL.

    Args:
        scheme: `gs` or `s3`.
        meddle: makes trouble.
    """
    storage = _GcsStorage(use_memory_fs=True)
    server = _gcs_server(storage, meddle) if scheme == "gs" else _s3_server(meddle)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = f"http://{_HOST}:{server.server_address[1]}"
    _gcs_storages[url] = storage
    try:
        yield url
    finally:
        del _gcs_storages[url]
        server.shutdown()
        server.server_close()
        thread.join()


def client_variables(scheme: str, url: str) -> dict[str, str]:
    """The environment that leads the clients to an emulator."""
    if scheme == "gs":
        return {"STORAGE_EMULATOR_HOST": url}
    keys = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    return {"AWS_ENDPOINT_URL": url, "AWS_DEFAULT_REGION": "us-east-1", **dict.fromkeys(keys, "emulator")}


def make_bucket(scheme: str, url: str, name: str) -> None:
    """Makes a bucket in the emulator at a URL."""
    connection = HTTPConnection(urlsplit(url).netloc)
    if scheme == "gs":
        body = json.dumps({"name": name})
        connection.request("POST", "/storage/v1/b?project=emulator", body, {"Content-Type": "application/json"})
    else:
        connection.request("PUT", f"/{name}")
    connection.getresponse().read()
    connection.close()


def put_objects(scheme: str, url: str, bucket: str, files: Mapping[str, bytes]) -> None:
    """Puts objects into a bucket of an emulator in this process, without the requests of a client.

    Args:
        scheme: `gs` or `s3`.
        url: of the emulator.
        bucket: which exists.
        files: contents by name.
    """
    for name, data in files.items():
        if scheme == "s3":
            s3_backend(bucket).put_object(bucket, name, data)
            continue
        made = _make_object_resource(url, bucket, name, "application/octet-stream", str(len(data)))
        _gcs_storages[url].create_file(bucket, name, data, _checksums(data, made))


def objects_in(scheme: str, url: str, bucket: str) -> dict[str, bytes]:
    """Returns the contents of all objects by name, as `put_objects` puts them."""
    if scheme == "s3":
        keys = s3_backend(bucket).buckets[bucket].keys
        return {name: keys[name].value for name in sorted(keys)}
    storage = _gcs_storages[url]
    return {name: storage.get_file(bucket, name) for name in storage.names(bucket)}


def s3_backend(bucket: str) -> Any:
    """Returns what holds a bucket in Amazon's emulator."""
    return next(made for region in s3_backends.values() for made in region.values() if bucket in made.buckets)


def _gcs_server(storage: _GcsStorage, meddle: Meddle) -> Any:
    return _ThreadingServer((_HOST, 0), partial(_GcsHandler, storage, meddle))


class _ThreadingServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


class _NotThatGeneration(Exception):
    pass


class _GcsStorage(Storage):
    """Heeds `ifGenerationMatch`, which the handler leaves here for its thread; takes any name; keeps all in memory."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.wanted = threading.local()
        self._writing = threading.Lock()
        # The names in a bucket, sorted, until an object comes or goes: a page of a listing costs what is on it, as it
        # should.
        self._sorted: dict[str, list[str]] = {}

    def names(self, bucket: str) -> list[str]:
        """The names in a bucket, sorted.

        Raises:
            NotFound: there is no such bucket.
        """
        if bucket not in self.buckets:
            raise NotFound
        with self._writing:
            names = self._sorted.get(bucket)
            if names is None:
                names = self._sorted[bucket] = sorted(self.objects.get(bucket, {}))
            return names

    def delete_file(self, bucket_name: str, file_name: str) -> None:
        with self._writing:
            super().delete_file(bucket_name, file_name)
            self._sorted.pop(bucket_name, None)

    def generation(self, bucket: str, name: str) -> str:
        try:
            return str(self.get_file_obj(bucket, name)["generation"])
        except NotFound:
            return "0"

    def _object_path(self, bucket_name: str, file_name: str) -> str:
        return f"{bucket_name}/{hashlib.sha256(file_name.encode()).hexdigest()}"

    def _write_config_to_file(self) -> None:
        return  # All of it after every write: a second each when there are thousands of objects.

    def create_file(self, bucket_name: str, file_name: str, *rest: Any) -> None:
        with self._writing:
            wanted = getattr(self.wanted, "generation", None)
            if wanted not in (None, self.generation(bucket_name, file_name)):
                raise _NotThatGeneration
            super().create_file(bucket_name, file_name, *rest)
            self._sorted.pop(bucket_name, None)


_gcs_storages: dict[str, _GcsStorage] = {}
"""What Google's emulators hold, by URL."""


class _GcsHandler(RequestHandler):
    wfile: Any

    def __init__(self, storage: _GcsStorage, meddle: Meddle, *rest: Any) -> None:
        self._meddle = meddle
        super().__init__(storage, *rest)

    def do_GET(self) -> None:
        self._serve(self._get)

    def do_POST(self) -> None:
        self._serve(super().do_POST)

    def do_PUT(self) -> None:
        self._serve(super().do_PUT)

    def do_DELETE(self) -> None:
        self._serve(super().do_DELETE)

    def _serve(self, answer: Callable[[], None]) -> None:
        trouble = self._meddle(self.command, self.path) or Trouble()
        query = parse_qs(urlsplit(self.path).query)
        self.storage.wanted.generation = query.get("ifGenerationMatch", [None])[0]
        if trouble.status:
            # Read before it is refused, else the client sees a reset connection instead of the status.
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self._say(trouble.status, {"error": {"code": trouble.status, "message": "made by the test"}})
            return
        self.wfile = _Troubled(self.wfile, trouble)
        try:
            answer()
        except _NotThatGeneration:
            self._say(_PRECONDITION_FAILED, {"error": {"code": _PRECONDITION_FAILED, "message": "conditionNotMet"}})

    def _get(self) -> None:
        parts = urlsplit(self.path)
        _, _, inside = parts.path.partition("/b/")
        bucket, _, name = inside.partition("/o")
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if inside.endswith("/o"):
            self._list(bucket, query)
        elif "generation" in query and query["generation"] != self.storage.generation(bucket, unquote(name[1:])):
            self._say(_GONE, {"error": {"code": _GONE, "message": "No such object"}})
        else:
            super().do_GET()

    def _list(self, bucket: str, query: Mapping[str, str]) -> None:
        prefix, delimiter, after = query.get("prefix", ""), query.get("delimiter"), query.get("pageToken", "")
        try:
            names = self.storage.names(bucket)
        except NotFound:
            self._say(_GONE, {"error": {"code": _GONE, "message": "The specified bucket does not exist."}})
            return
        wanted = _ITEM_FIELDS.search(query.get("fields", ""))
        items: list[dict[str, Any]] = []
        prefixes: list[str] = []
        at = bisect_left(names, max(prefix, after, query.get("startOffset", "")))
        while at < len(names) and names[at].startswith(prefix) and len(items) + len(prefixes) < _PAGE:
            name = names[at]
            inside = name.find(delimiter, len(prefix)) if delimiter else -1
            if inside < 0:
                at += 1
                # It may have gone meanwhile.
                item = self.storage.objects[bucket].get(name)
                items += [] if item is None else [_chosen(item, wanted)]
                continue
            prefixes.append(name[: inside + 1])
            at = bisect_left(names, prefixes[-1] + _LAST)
        token = {"nextPageToken": names[at]} if at < len(names) and names[at].startswith(prefix) else {}
        self._say(200, {"kind": "storage#objects", "items": items, "prefixes": prefixes, **token})

    def _say(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _chosen(item: Mapping[str, Any], wanted: re.Match[str] | None) -> dict[str, Any]:
    """The fields of an object that a listing asks for."""
    return {name: item[name] for name in wanted[1].split(",") if name in item} if wanted else dict(item)


class _Troubled:
    """A connection on which the second thing written is an answer's body, to which the trouble happens."""

    def __init__(self, connection: Any, trouble: Trouble) -> None:
        self._connection = connection
        self._trouble = trouble
        self._writes = 0

    def write(self, data: bytes) -> None:
        self._writes += 1
        self._connection.write(data if self._writes == 1 else self._trouble.body(data))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


_object: Any = FakeKey
_md5_tag = _object.etag.fget


def _tag(key: Any) -> str:
    tag: str = _md5_tag(key)
    return f'"{hashlib.md5(tag.encode()).hexdigest()}"' if key.encryption == "aws:kms" else tag


def _s3_server(meddle: Meddle) -> Any:
    _object.etag = property(_tag)
    moto = DomainDispatcherApplication(create_backend_app)

    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ["PATH_INFO"] + "?" + environ.get("QUERY_STRING", "")
        trouble = meddle(environ["REQUEST_METHOD"], path) or Trouble()
        if trouble.status:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            body = b"<Error><Code>MadeByTheTest</Code><Message>made by the test</Message></Error>"
            start_response(f"{trouble.status} Trouble", [("Content-Length", str(len(body)))])
            return [body]
        answer: Iterable[bytes] = moto(environ, start_response)
        return [trouble.body(b"".join(answer))] if trouble.cut or trouble.flip else answer

    return make_server(_HOST, 0, app, threaded=True, request_handler=_QuietS3Handler)


class _QuietS3Handler(MotoRequestHandler):
    def log_request(self, *_: Any) -> None:
        return


def main() -> None:
    """`python -m tests.support.emulators gs 0.03` prints the URL and serves until it is ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("scheme", choices=("gs", "s3"))
    parser.add_argument("delay", type=float, help="seconds added to each request")
    chosen = parser.parse_args()
    logging.disable(logging.CRITICAL)
    with emulator(chosen.scheme, lambda method, path: time.sleep(chosen.delay)) as url:
        print(url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
