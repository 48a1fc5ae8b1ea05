"""Names and paths that Kubernetes takes: others are refused before a cluster does, or before a pod cannot start.

Source: kubernetes/apimachinery, pkg/util/validation/validation.go. For paths: `mountPath` of `VolumeMount` in the API.
"""

from __future__ import annotations

import posixpath
import re

from shardwright.errors import ConfigError

# The folder of a pod's shared memory.
SHARED_MEMORY = "/dev/shm"  # noqa: S108 -- a path in a pod
SUBDOMAIN_FIX = "Use a-z, 0-9 and -, and dots between them; at most 253 characters."
_LABEL = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_NAME = r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_MOST_LABEL, _MOST_SUBDOMAIN = 63, 253


def is_label(text: str) -> bool:
    """Returns whether a text is a label of DNS (RFC 1123), such as the name of a volume."""
    return len(text) <= _MOST_LABEL and re.fullmatch(_LABEL, text) is not None


def is_subdomain(text: str) -> bool:
    """Returns whether a text is a name of DNS (RFC 1123), such as that of a Secret or of a service account."""
    return len(text) <= _MOST_SUBDOMAIN and re.fullmatch(_SUBDOMAIN, text) is not None


def is_key(text: str) -> bool:
    """Returns whether a text is a key of a Secret or of a ConfigMap."""
    return re.fullmatch(r"(?!\.\.)(?!\.$)[A-Za-z0-9._-]{1,253}", text) is not None


def is_qualified(text: str, *, prefixed: bool = False) -> bool:
    """Returns whether a text is the name of a label, an annotation or a taint; `prefixed`, of a resource of a node."""
    prefix, slash, name = text.rpartition("/")
    if slash and not is_subdomain(prefix):
        return False
    return bool(slash or not prefixed) and bool(name) and is_label_value(name)


def is_label_value(text: str) -> bool:
    """Returns whether a text is the value of a label, which may be empty."""
    return len(text) <= _MOST_LABEL and re.fullmatch(f"({_NAME})?", text) is not None


def mount_point(folder: str) -> str:
    """Returns the folder that a mount path means, without repeated and trailing slashes."""
    return posixpath.normpath(f"/{folder.strip('/')}")


def check_mount(path: str, folder: str) -> None:
    """Refuses a folder that no volume can be mounted at."""
    strange = ":" in folder or not folder.isprintable()
    if not folder.startswith("/") or ".." in folder.split("/") or mount_point(folder) == "/" or strange:
        fix = "Write an absolute path without : and .., such as /data."
        raise ConfigError(path, f"{folder!r} is not a folder to mount at", fix)
