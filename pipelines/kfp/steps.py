"""The inputs and outputs of each step, and the command of its container.

`factory` sets the first two parameters of every step, not the user: the image, and `place`, which returns an artifact's
path or URL.
"""

# No `from __future__ import annotations`: KFP reads the types themselves.

from collections.abc import Callable
from typing import Any

from kfp import dsl

_Place = Callable[[Any], Any]
_Step = Callable[..., dsl.ContainerSpec]


def _writes(name: str, kind: type) -> Callable[[_Step], _Step]:
    """Makes a parameter of a step the file of an output value. Type checkers refuse KFP's call as an annotation."""

    def changed(step: _Step) -> _Step:
        step.__annotations__[name] = dsl.OutputPath(kind)
        return step

    return changed


@_writes("fingerprint", str)
def ingest(
    image: str,
    place: _Place,
    config: str,
    dataset: dsl.Output[dsl.Dataset],
    fingerprint: str,
    data_root: str = "",
) -> dsl.ContainerSpec:
    """Makes a sharded dataset of images and annotations."""
    given = ["--config", config, "--data-root", data_root]
    return _container(image, "ingest", [*given, "--dataset", place(dataset), "--fingerprint", fingerprint])


@_writes("whole", bool)
def verify(
    image: str,
    place: _Place,
    dataset: dsl.Input[dsl.Dataset],
    findings: dsl.Output[dsl.Artifact],
    whole: str,
    deep: bool = False,
    strict: bool = True,
) -> dsl.ContainerSpec:
    """Reads all bytes of a dataset and lists what is damaged."""
    how = ["--dataset", place(dataset), "--deep", deep, "--strict", strict]
    return _container(image, "verify", [*how, "--findings", place(findings), "--whole", whole])


def transform(
    image: str,
    place: _Place,
    config: str,
    dataset: dsl.Input[dsl.Dataset],
    transformed: dsl.Output[dsl.Dataset],
    graph: dsl.Output[dsl.Artifact],
) -> dsl.ContainerSpec:
    """Transforms a dataset to images of one size, with the TransformGraph that serving needs."""
    given = ["--config", config, "--dataset", place(dataset)]
    return _container(image, "transform", [*given, "--transformed", place(transformed), "--graph", place(graph)])


def report(
    image: str, place: _Place, dataset: dsl.Input[dsl.Dataset], page: dsl.Output[dsl.HTML], seed: int = 0
) -> dsl.ContainerSpec:
    """Shows a dataset as one HTML page."""
    return _container(image, "report", ["--dataset", place(dataset), "--seed", seed, "--page", place(page)])


STEPS = (ingest, verify, transform, report)


def _container(image: str, step: str, options: list[Any]) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(
        # As text: KFP takes only the placeholder of a parameter.
        image=str(image),
        command=["python", "-m", "shardwright.pipelines.kfp.task", step],
        args=options,
    )
