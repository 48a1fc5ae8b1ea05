"""Corrections of documents that TFX's KubeflowV2DagRunner writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardwright.errors import UsageError

# Components that read what changes while their parameters stay the same.
_NEVER_CACHED = ("shardwright.components.input_resolver.", "shardwright.components.baseline_resolver.")


def correct_document(document: dict[str, Any], defaults: Mapping[str, str | int | float] | None = None) -> None:
    """Corrects a compiled pipeline that contains InputResolver or BaselineResolver, or that has an exit handler.

    TFX (1.16 and 1.21, `step_builder.py`) names the producers of dynamic values with the suffix `_task`, which no
    task's name has. Here they get the right names, and their readers wait for them. The tasks of InputResolver and
    BaselineResolver are no longer cached, since they read what changes while their parameters stay the same. With an
    exit handler TFX does not pass the run's parameters to the inner pipeline, see `pass_inputs`.

    Example:
        ```python
        document = json.loads(Path("pipeline.json").read_text())
        correct_document(document)
        Path("pipeline.json").write_text(json.dumps(document))
        ```

    Args:
        document: the compiled pipeline as plain values; changed in place. Either form: that of the JSON file, with
            `pipelineSpec`, or the content of that key.
        defaults: name of a `RuntimeParameter` -> its value in a run that gives none. TFX leaves the defaults of
            runtime parameters out, and a run without a value is refused.

    Raises:
        UsageError: the pipeline has no such parameter, or its schema (2.0) has no defaults.
    """
    spec = document.get("pipelineSpec", document)
    executors = spec["deploymentSpec"]["executors"]
    for tasks in tasks_of(spec):
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
    pass_inputs(spec)
    declared = spec.get("root", {}).get("inputDefinitions", {}).get("parameters", {})
    for name, value in (defaults or {}).items():
        if name not in declared:
            there = ", ".join(sorted(declared)) or "none"
            raise UsageError(f"correct_document: defaults: no task reads a parameter {name!r}. There are: {there}.")
        if "parameterType" not in declared[name]:
            raise UsageError(
                f"correct_document: defaults: {name!r} can have a default in schema 2.1 only. Compile with "
                "use_pipeline_spec_2_1=True."
            )
        declared[name]["defaultValue"] = value


def pass_inputs(spec: dict[str, Any]) -> None:
    """Passes the run's parameters to the inner pipelines whose tasks read them, and declares them there.

    A task can read only the inputs of the pipeline that contains it. KFP's driver refuses others: "parent DAG does not
    have input parameter" (kubeflow/pipelines at 7b70c7b, backend/src/v2/driver/resolve.go:396).

    Args:
        spec: the pipeline as plain values; changed in place.
    """
    defined = spec["root"].get("inputDefinitions", {}).get("parameters", {})
    # Schema 2.0, which TFX writes by default, has another word for the type than 2.1.
    kinds = {
        name: {word: definition[word] for word in ("parameterType", "type") if word in definition}
        for name, definition in defined.items()
    }

    def read_by(tasks: dict[str, Any]) -> set[str]:
        """Returns the inputs that tasks read of their pipeline; the inner ones are completed first."""
        for task in tasks.values():
            inner = spec["components"][task["componentRef"]["name"]]
            if "dag" not in inner:
                continue
            for name in sorted(read_by(inner["dag"]["tasks"]) & kinds.keys()):
                declared = inner.setdefault("inputDefinitions", {}).setdefault("parameters", {})
                declared.setdefault(name, dict(kinds[name]))
                given = task.setdefault("inputs", {}).setdefault("parameters", {})
                given.setdefault(name, {"componentInputParameter": name})
        given = [one for task in tasks.values() for one in task.get("inputs", {}).get("parameters", {}).values()]
        return {one["componentInputParameter"] for one in given if "componentInputParameter" in one}

    read_by(spec["root"]["dag"]["tasks"])


def tasks_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the tasks of the pipeline, and of the pipelines in it: with an exit handler there is one."""
    inner = (component["dag"] for component in spec["components"].values() if "dag" in component)
    return [dag["tasks"] for dag in (spec["root"]["dag"], *inner)]
