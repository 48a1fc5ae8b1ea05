"""Long parameters of a compiled pipeline, such as the schema of a thousand classes.

Kubeflow hands a whole graph over as one argument and in one variable, and Linux allows 131,071 bytes for each. A
document therefore has long texts compressed, and the entry point of the containers hands them to TFX as they were.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

from shardwright.components.runtime.documents import tasks_of
from shardwright.errors import UsageError

_PACKED = "packed:"
# Shorter texts stay readable on the pages of a service.
_LONG = 8192


def pack_parameters(spec: dict[str, Any]) -> None:
    """Packs the long constants of all tasks of a pipeline; changed in place."""
    for task in (task for tasks in tasks_of(spec) for task in tasks.values()):
        for one in task.get("inputs", {}).get("parameters", {}).values():
            text = one.get("runtimeValue", {}).get("constant")
            if isinstance(text, str) and len(text.encode()) > _LONG:
                packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
                one["runtimeValue"]["constant"] = f"{_PACKED}{packed}"


def unpack_parameters(invocation: dict[str, Any]) -> dict[str, Any]:
    """Returns an ExecutorInput whose parameters are as they were.

    Raises:
        UsageError: one was cut.
    """
    inputs = invocation.get("inputs", {})
    values = dict(inputs.get("parameterValues", {}))
    for name, value in values.items():
        if isinstance(value, str) and value.startswith(_PACKED):
            try:
                values[name] = zlib.decompress(base64.b64decode(value.removeprefix(_PACKED), validate=True)).decode()
            except (ValueError, zlib.error) as error:
                fix = "Compile the pipeline again"
                raise UsageError(f"{name}: its packed value is damaged ({error}). {fix}.") from None
    return {**invocation, "inputs": {**inputs, "parameterValues": values}} if values else invocation
