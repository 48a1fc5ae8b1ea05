"""Shared by the tests of object stores: buckets in the emulators, with troubles on request."""

import itertools
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from emulators import client_variables, emulator, make_bucket, objects_in, put_objects, s3_backend

from shardwright.storage import buckets, gcs, s3
from shardwright.storage.buckets import Retries
from shardwright.storage.paths import split_url

SCHEMES = ("gs", "s3")
_numbers = itertools.count()


class Stores:
    """Both emulators. `meddle` is asked before each request: (method, path) -> Trouble or None."""

    def __init__(self):
        self.urls = {}
        self.meddle = None
        self.requests = []
        self.pauses = []

    def asked(self, method, path):
        self.requests.append((method, path))
        return self.meddle(method, path) if self.meddle else None

    def bucket(self, scheme):
        """Makes a bucket; its URL."""
        name = f"bucket-{next(_numbers)}"
        make_bucket(scheme, self.urls[scheme], name)
        return f"{scheme}://{name}"

    def fill(self, url, files):
        """Puts objects into the emulator: name below `url` -> bytes."""
        scheme, bucket, folder = split_url(url)
        start = f"{folder}/" if folder else ""
        put_objects(scheme, self.urls[scheme], bucket, {f"{start}{name}": data for name, data in files.items()})

    def write(self, url, data):
        """Puts an object, in place of one that may exist."""
        scheme, bucket, name = split_url(url)
        put_objects(scheme, self.urls[scheme], bucket, {name: data})

    def encrypt(self, url, later=0.0):
        """Encrypts an object of S3 with SSE-KMS, as if it had been written so, some seconds later."""
        _, bucket, name = split_url(url)
        key = s3_backend(bucket).buckets[bucket].keys[name]
        key.encryption = "aws:kms"
        key.last_modified += timedelta(seconds=later)

    def copy_of(self, folder, url):
        """Puts the files of a local folder."""
        files = (file for file in Path(folder).rglob("*") if file.is_file())
        self.fill(url, {str(file.relative_to(folder)): file.read_bytes() for file in sorted(files)})

    def tree(self, url):
        """Name below `url` -> bytes."""
        scheme, bucket, folder = split_url(url)
        start = f"{folder}/" if folder else ""
        found = objects_in(scheme, self.urls[scheme], bucket)
        return {name.removeprefix(start): data for name, data in found.items() if name.startswith(start)}


@contextmanager
def running_stores():
    """Runs both emulators, and leads the clients to them with pauses that take no time."""
    stores = Stores()
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        for scheme in SCHEMES:
            url = stores.urls[scheme] = stack.enter_context(emulator(scheme, stores.asked))
            for name, value in client_variables(scheme, url).items():
                patch.setenv(name, value)
        # Other runs that worked in a staging folder were killed; nothing waits for them.
        patch.setenv("SHARDWRIGHT_SILENT_SECONDS", "0")
        patch.setattr(buckets, "_RETRIES", Retries(sleep=stores.pauses.append, chance=lambda: 1.0))
        forget_clients()
        yield stores
    forget_clients()


def forget_clients():
    for cached in (buckets._store, gcs._client, s3._client):
        cached.cache_clear()
