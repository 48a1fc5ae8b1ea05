"""What an executor has written survives a power failure before the pipeline records that the component is done.

The metadata store flushes its own records: without this, a cached artifact may be a folder of empty files.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tfx.types import Artifact

from shardwright.storage import durable, is_remote

_Do = Callable[[Any, dict[str, list[Artifact]], dict[str, list[Artifact]], dict[str, Any]], None]


def flushed_outputs(do: _Do) -> _Do:
    """Wraps an executor's `Do`: when it returns, its outputs on this machine are on stable storage."""

    @functools.wraps(do)
    def flushing(
        self: Any,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        do(self, input_dict, output_dict, exec_properties)
        for artifact in (one for artifacts in output_dict.values() for one in artifacts):
            flush_artifact(artifact.uri)

    return flushing


def flush_artifact(uri: str) -> None:
    """Flushes an artifact on this machine, a folder or a file, and the folders above it on the same device."""
    if not uri or is_remote(uri) or not os.path.exists(uri):
        return
    durable.flush_tree(uri) if os.path.isdir(uri) else durable.flush([uri])
    device = os.stat(uri).st_dev
    durable.flush(above for above in Path(uri).absolute().parents if os.stat(above).st_dev == device)
