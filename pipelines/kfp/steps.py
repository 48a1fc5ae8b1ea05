"""What each step takes and gives, and the command of its container.

The first two parameters of every step are not the user's: the image, and `place`, which says how an artifact is handed
on (see `factory`).
"""

# No `from __future__ import annotations`: KFP reads the types themselves.

from collections.abc import Callable
from typing import Any

from kfp import dsl

_Place = Callable[[Any], Any]
_Step = Callable[..., dsl.ContainerSpec]


def _writes(name: str, kind: type) -> Callable[[_Step], _Step]:
    """Makes a parameter of a step the file that a value goes to; as an annotation KFP's call is no type."""

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
    """Images and annotations into a sharded dataset."""
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
    """Reads a dataset to the last byte and names what is damaged."""
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
    """A dataset into one of images of one size, with the TransformGraph that serving needs."""
    given = ["--config", config, "--dataset", place(dataset)]
    return _container(image, "transform", [*given, "--transformed", place(transformed), "--graph", place(graph)])


def report(
    image: str, place: _Place, dataset: dsl.Input[dsl.Dataset], page: dsl.Output[dsl.HTML], seed: int = 0
) -> dsl.ContainerSpec:
    """A dataset as one HTML page."""
    return _container(image, "report", ["--dataset", place(dataset), "--seed", seed, "--page", place(page)])


STEPS = (ingest, verify, transform, report)


def _container(image: str, step: str, options: list[Any]) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(
        # As text: of a parameter KFP takes only its placeholder.
        image=str(image),
        command=["python", "-m", "shardwright.pipelines.kfp.task", step],
        args=options,
    )
