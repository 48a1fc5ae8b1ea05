"""Corrections of documents that TFX's KubeflowV2DagRunner writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# Components that read what changes while their parameters stay the same.
_NEVER_CACHED = ("shardwright.components.input_resolver.", "shardwright.components.baseline_resolver.")


def correct_document(document: dict[str, Any]) -> None:
    """Corrects a compiled pipeline that contains InputResolver or BaselineResolver.

    TFX (1.16 and 1.21, `step_builder.py`) names the producers of dynamic values with the suffix `_task`, which no name
    of a task has: here they get the right names, and their readers wait for them. The tasks of InputResolver and
    BaselineResolver are no longer cached, since they read what changes while their parameters stay the same.

    Example:
        ```python
        document = json.loads(Path("pipeline.json").read_text())
        correct_document(document)
        Path("pipeline.json").write_text(json.dumps(document))
        ```

    Args:
        document: the compiled pipeline as plain values; changed in place. Either form: that of the JSON file, with
            `pipelineSpec`, or the content of that key.
    """
    spec = document.get("pipelineSpec", document)
    executors = spec["deploymentSpec"]["executors"]
    for tasks in _dags(spec):
        for task in tasks.values():
            component = spec["components"][task["componentRef"]["name"]]
            container = executors.get(component.get("executorLabel"), {}).get("container", {})
            if any(str(argument).startswith(_NEVER_CACHED) for argument in container.get("args", ())):
                task["cachingOptions"] = {}
            for parameter in task.get("inputs", {}).get("parameters", {}).values():
                produced = parameter.get("taskOutputParameter")
                if produced is not None and produced["producerTask"] not in tasks:
                    produced["producerTask"] = produced["producerTask"].removesuffix("_task")
                    task["dependentTasks"] = sorted({*task.get("dependentTasks", ()), produced["producerTask"]})


def _dags(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the tasks of the pipeline, and of the pipelines in it: with an exit handler there is one."""
    yield spec["root"]["dag"]["tasks"]
    for component in spec["components"].values():
        if "dag" in component:
            yield component["dag"]["tasks"]
