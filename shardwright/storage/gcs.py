"""Google Cloud Storage through its own client.

Credentials are the client's default ones (`gcloud auth application-default login`, `GOOGLE_APPLICATION_CREDENTIALS`,
the machine's service account); `STORAGE_EMULATOR_HOST` leads it to an emulator without any.
"""

from __future__ import annotations

import base64
import functools
import http
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import requests
import urllib3.exceptions

from shardwright.errors import CredentialsError, UsageError
from shardwright.storage.gcs_compat import convert_rows, keep_connections
from shardwright.storage.object_store import Changed, Missing, ObjectInfo, Transient, Unreadable

with warnings.catch_warnings():
    # The client warns every reader that this Python will be too old one day.
    warnings.simplefilter("ignore", FutureWarning)
    import google.auth.exceptions
    import google.cloud.storage
    from google.api_core import exceptions


try:
    from google.cloud.storage.exceptions import DataCorruption
except ImportError:  # Before release 3.
    from google.resumable_media import DataCorruption

# (connect, read) in seconds.
_TIMEOUT = (10, 60)
_TRANSIENT = (http.HTTPStatus.REQUEST_TIMEOUT, http.HTTPStatus.TOO_MANY_REQUESTS)
_LOST = (
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    ConnectionError,
    google.auth.exceptions.TransportError,
)
_FIELDS = "items(name,size,generation,md5Hash,crc32c),nextPageToken"
_NAME_FIELDS = "items(name),prefixes,nextPageToken"


class GcsStore:
    """A bucket of Google Cloud Storage; an object's pin is its generation.

    Args:
        bucket: name of the bucket.
        connections: concurrent readers.
    """

    def __init__(self, bucket: str, connections: int) -> None:
        self._name = bucket
        with self._errors("use"):
            self._client = _client(connections)
        self._bucket = self._client.bucket(bucket)

    def list_page(self, prefix: str, page: str | None, start: str = "") -> tuple[list[ObjectInfo], str | None]:
        """Lists objects from a name on, inclusive."""
        options = {"prefix": prefix, "page_token": page, "start_offset": start or None, "fields": _FIELDS}
        try:
            with self._errors("list"):
                found = self._client.list_blobs(self._name, **options, timeout=_TIMEOUT, retry=None)
                return list(next(convert_rows(found, _listed).pages, ())), found.next_page_token
        except Missing:
            raise self._no_bucket() from None

    def names_page(self, prefix: str, page: str | None) -> tuple[list[str], str | None]:
        """Lists names up to the next slash."""
        options = {"prefix": prefix, "delimiter": "/", "page_token": page, "fields": _NAME_FIELDS}
        try:
            with self._errors("list"):
                found = self._client.list_blobs(self._name, **options, timeout=_TIMEOUT, retry=None)
                names = [blob.name for blob in next(found.pages, ())]
                return [*names, *sorted(found.prefixes)], found.next_page_token
        except Missing:
            raise self._no_bucket() from None

    def stat(self, name: str) -> ObjectInfo:
        """Reads an object's metadata."""
        with self._errors("read"):
            blob = self._bucket.blob(name)
            blob.reload(timeout=_TIMEOUT, retry=None)
            checksum = _checksum(blob.md5_hash, blob.crc32c)
            updated = blob.updated.timestamp() if blob.updated else 0.0
            return ObjectInfo(blob.name, blob.size, str(blob.generation), checksum, updated)

    def read(self, name: str, pin: str, start: int, stop: int | None) -> bytes:
        """Reads a version of an object; the checksum of a whole object is verified."""
        whole = start == 0 and stop is None
        try:
            with self._errors("read"):
                data: bytes = self._bucket.blob(name, generation=int(pin) if pin else None).download_as_bytes(
                    start=None if whole else start,
                    end=None if stop is None else stop - 1,
                    # As it is stored: an object that is marked as gzip-compressed has the listed size only then.
                    raw_download=True,
                    checksum="crc32c" if whole else None,
                    timeout=_TIMEOUT,
                    retry=None,
                )
        except exceptions.RequestRangeNotSatisfiable:
            return b""
        except Missing:
            # The store has one answer for a version that is gone and for an object that is gone.
            raise Changed if pin else Missing from None
        return data

    def create(self, name: str, data: bytes) -> None:
        """Creates an object on the condition that there is no generation of it."""
        with self._errors("write"):
            self._bucket.blob(name).upload_from_string(
                data, if_generation_match=0, checksum="crc32c", timeout=_TIMEOUT, retry=None
            )

    def upload(self, name: str, path: str) -> None:
        """Uploads a file with its checksum."""
        try:
            with self._errors("write"):
                self._bucket.blob(name).upload_from_filename(path, checksum="crc32c", timeout=_TIMEOUT, retry=None)
        except Missing:
            raise self._no_bucket() from None

    def copy(self, bucket: str, source: str, name: str) -> None:
        """Copies by rewriting, which large objects need several calls for."""
        with self._errors("write"):
            origin = self._client.bucket(bucket).blob(source)
            target = self._bucket.blob(name)
            token, _, _ = target.rewrite(origin, timeout=_TIMEOUT, retry=None)
            while token is not None:
                token, _, _ = target.rewrite(origin, token=token, timeout=_TIMEOUT, retry=None)

    def delete(self, name: str) -> None:
        """Deletes an object; a missing one is ignored."""
        try:
            with self._errors("delete"):
                self._bucket.blob(name).delete(timeout=_TIMEOUT, retry=None)
        except Missing:
            return

    @contextmanager
    def _errors(self, verb: str) -> Iterator[None]:
        """Turns the client's errors into those of `objects`."""
        try:
            yield
        except exceptions.NotFound as error:
            raise Missing from error
        except exceptions.PreconditionFailed as error:
            raise Changed from error
        except exceptions.RequestRangeNotSatisfiable:
            raise
        except exceptions.Forbidden as error:
            raise UsageError(
                f"gs://{self._name}: no permission to {verb} objects ({error.message.strip() or error.code}). Ask for "
                "the role roles/storage.objectViewer on the bucket, or roles/storage.objectUser to write."
            ) from None
        except (exceptions.Unauthorized, google.auth.exceptions.DefaultCredentialsError) as error:
            raise self._no_credentials(error) from None
        except google.auth.exceptions.RefreshError as error:
            if error.retryable:
                raise Transient(str(error)) from error
            raise self._no_credentials(error) from None
        except exceptions.GoogleAPICallError as error:
            code = error.code or http.HTTPStatus.INTERNAL_SERVER_ERROR
            if code >= http.HTTPStatus.INTERNAL_SERVER_ERROR or code in _TRANSIENT:
                raise Transient(f"HTTP {int(code)}") from error
            raise Unreadable(f"gs://{self._name}: HTTP {int(code)}, {error.message}") from None
        except DataCorruption as error:
            raise Transient("the bytes do not match the store's checksum") from error
        except _LOST as error:
            raise Transient(f"{type(error).__name__}") from error

    def _no_bucket(self) -> UsageError:
        return UsageError(f"gs://{self._name}: there is no such bucket. Check the name.")

    def _no_credentials(self, error: Exception) -> CredentialsError:
        return CredentialsError(
            f"gs://{self._name}: no valid Google credentials ({str(error).splitlines()[0]}). Run `gcloud auth "
            "application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account's key."
        )


@functools.cache
def _client(connections: int) -> Any:
    """Returns one client for all buckets and threads, with as many connections kept open as there are readers."""
    client = google.cloud.storage.Client()
    keep_connections(client, connections)
    return client


os.register_at_fork(after_in_child=_client.cache_clear)


def _listed(item: Mapping[str, str]) -> ObjectInfo:
    """Returns an object as the JSON API lists it."""
    checksum = _checksum(item.get("md5Hash"), item.get("crc32c"))
    return ObjectInfo(item["name"], int(item["size"]), str(item["generation"]), checksum)


def _checksum(md5: str | None, crc32c: str | None) -> str:
    """Returns the listed checksum of an object's bytes; one that was composed of others has no MD5."""
    kind, value = ("md5", md5) if md5 else ("crc32c", crc32c)
    return f"{kind}:{base64.b64decode(value).hex()}" if value else ""
