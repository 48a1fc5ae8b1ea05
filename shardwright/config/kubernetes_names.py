"""Names and paths that Kubernetes takes: others are refused before a cluster does, or before a pod cannot start.

Source: kubernetes/apimachinery, pkg/util/validation/validation.go. For paths: `mountPath` of `VolumeMount` in the API.
"""

from __future__ import annotations

import posixpath
import re

from shardwright.config.options import Pattern
from shardwright.errors import ConfigError

# The folder of a pod's shared memory.
SHARED_MEMORY = "/dev/shm"  # noqa: S108 -- a path in a pod
_SUBDOMAIN_FIX = "Use a-z, 0-9 and -, and dots between them; at most 253 characters."
_LABEL = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_NAME = r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?"
_MOST_LABEL = 63
# A name of DNS (RFC 1123), such as that of a Secret or of a service account.
_SUBDOMAIN = re.compile(rf"(?=[^/]{{1,253}}(/|$)){_LABEL}(\.{_LABEL})*")
NAME = Pattern(_SUBDOMAIN, _SUBDOMAIN_FIX, "is not a name")
SECRET_NAME = Pattern(_SUBDOMAIN, _SUBDOMAIN_FIX, "is not the name of a Secret")
# A key of a Secret or of a ConfigMap.
KEY_REFERENCE = Pattern(
    re.compile(rf"{_SUBDOMAIN.pattern}/(?!\.\.)(?!\.$)[A-Za-z0-9._-]{{1,253}}"),
    "Write e.g. wandb/token.",
    "is not NAME/KEY",
)
# Kubeflow names the volume of a pod like its claim, and volumes are labels of DNS, which have no dots.
CLAIM = Pattern(
    re.compile(rf"(?=.{{1,{_MOST_LABEL}}}$){_LABEL}"),
    "Use a-z, 0-9 and -, at most 63.",
    "is not the name of a volume",
)


def is_qualified(text: str, *, prefixed: bool = False) -> bool:
    """Returns whether a text is the name of a label, an annotation or a taint; `prefixed`, of a resource of a node."""
    prefix, slash, name = text.rpartition("/")
    if slash and not _SUBDOMAIN.fullmatch(prefix):
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
