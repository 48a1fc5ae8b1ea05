"""The interface of object stores, and their errors.

An object's *pin* names one version of it: the generation on Google's storage, the entity tag on S3. A read with a pin
returns that version or raises `Changed`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class ObjectInfo(NamedTuple):
    """An object as a store lists it.

    Attributes:
        name: its name in the bucket.
        size: its bytes.
        pin: its version.
        checksum: of its bytes, `md5:<hex>` or `crc32c:<hex>`; empty where the store lists no hash of the bytes. In a
            listing it may be unsure (`Scheme.lists_unsure_checksums`).
        updated: when it was written, in seconds since 1970; 0 in a listing that leaves it out.
    """

    name: str
    size: int
    pin: str
    checksum: str = ""
    updated: float = 0.0


class Transient(Exception):
    """The store may do it when asked again: overload, a lost connection, an answer that broke off."""


class Missing(Exception):
    """There is no such object."""


class Changed(Exception):
    """The object is not the requested version, or an object to be created exists already."""


class Unreadable(OSError):
    """The store refuses this one object, e.g. because it is archived."""


class ObjectStore(Protocol):
    """One bucket. Every call is one attempt; `shardwright.storage.buckets` makes the further ones.

    Each may raise `Transient`, and `UsageError` where only the user can help: no such bucket, no permission, no
    credentials.
    """

    def list_page(self, prefix: str, page: str | None, start: str = "") -> tuple[list[ObjectInfo], str | None]:
        """Returns a page of the objects whose names begin with `prefix`, and the token of the next page or `None`.

        The listing begins at the name `start` or directly after it.
        """

    def names_page(self, prefix: str, page: str | None) -> tuple[list[str], str | None]:
        """Returns a page of names, with the common part up to the next slash instead of all names that continue."""

    def stat(self, name: str) -> ObjectInfo:
        """Returns an object's size, pin, sure checksum and time. Raises `Missing`, and `Unreadable`."""

    def read(self, name: str, pin: str, start: int, stop: int | None) -> bytes:
        """Returns the bytes from `start` to `stop` (the end where `None`), fewer where the object ends before.

        The store's checksum is verified where it sends one. An empty pin takes any version. Raises `Missing`, `Changed`
        and `Unreadable`.
        """

    def create(self, name: str, data: bytes) -> None:
        """Writes a new object. Raises `Changed` when there is one of that name."""

    def upload(self, name: str, path: str) -> None:
        """Writes an object from a local file, in place of one of that name."""

    def copy(self, bucket: str, source: str, name: str) -> None:
        """Copies an object of this or another bucket inside the store. Raises `Missing`."""

    def delete(self, name: str) -> None:
        """Deletes an object; a missing one is ignored."""
