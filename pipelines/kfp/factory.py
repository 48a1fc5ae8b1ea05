"""The steps as container components of KFP v2, for pipelines written with KFP's own decorators.

    steps = plain_components("registry.example/shardwright:1.0")
    dataset = steps.ingest(config=CONFIG, data_root="gs://bucket/clouds").outputs["dataset"]

The YAML files next to this module are the same components, for `kfp.components.load_component_from_file`; there the
image is a parameter of the run.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import yaml
from kfp import compiler, dsl

from shardwright.config.cloud import IMAGE
from shardwright.config.options import one_of
from shardwright.errors import UsageError
from shardwright.pipelines.kfp.steps import STEPS

KUBEFLOW, VERTEX = "kubeflow", "vertex"


@dataclass(frozen=True)
class PlainComponents:
    """The steps; each is called within a `dsl.pipeline`, with keywords.

    Attributes:
        ingest: `config` (the text of a configuration), `data_root` (where its relative paths begin) -> `dataset`,
            `fingerprint`.
        verify: `dataset`, `deep`, `strict` (findings fail the step) -> `findings` (JSON), `whole`.
        transform: `config`, `dataset` -> `transformed` (a dataset), `graph` (a TransformGraph).
        report: `dataset`, `seed` -> `page`.
    """

    ingest: Any
    verify: Any
    transform: Any
    report: Any


def plain_components(image: str | None = None, target: str = KUBEFLOW) -> PlainComponents:
    """Makes the components.

    Args:
        image: Shardwright's image with a tag or a digest. `None` makes it a parameter `image` of every step, which
            Kubeflow's backend takes from 2.4 on.
        target: `kubeflow`, whose launcher copies artifacts from and to folders of the pod, or `vertex`, where the steps
            read and write Cloud Storage themselves.

    Raises:
        ConfigError: the image's name has no tag, or there is no such target.
        UsageError: Vertex AI is to take an image at run time.
    """
    one_of("target", target, (KUBEFLOW, VERTEX))
    if image is not None:
        IMAGE("image", image)
    elif target == VERTEX:
        raise UsageError("plain_components: on Vertex AI the image is part of the compiled pipeline. Give image.")
    return PlainComponents(**{step.__name__: _component(step, image, target) for step in STEPS})


def component_file(name: str) -> Path:
    """Returns the YAML file of a component of `plain_components()`.

    Raises:
        ConfigError: there is no such component.
    """
    one_of("component_file", name, tuple(step.__name__ for step in STEPS))
    return Path(__file__).with_name(f"{name}.yaml")


def component_yaml(component: Any) -> str:
    """Returns a component as YAML, the same for every version of KFP."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "component.yaml")
        compiler.Compiler().compile(component, str(file))
        (spec,) = yaml.safe_load_all(file.read_text(encoding="utf-8"))
    text: str = yaml.safe_dump({**spec, "sdkVersion": "kfp-2"}, sort_keys=True, width=4096)
    return text


def _component(step: Callable[..., dsl.ContainerSpec], image: str | None, target: str) -> Any:
    """Returns KFP's component of a step's function, without the parameters that are not the user's."""
    given = {
        "place": attrgetter("path" if target == KUBEFLOW else "uri"),
        **({} if image is None else {"image": image}),
    }
    own = [parameter for name, parameter in inspect.signature(step).parameters.items() if name not in given]

    def called(*values: Any) -> dsl.ContainerSpec:
        return step(**given, **dict(zip((parameter.name for parameter in own), values, strict=True)))

    vars(called)["__signature__"] = inspect.Signature(own)
    called.__name__, called.__doc__ = step.__name__, step.__doc__
    return dsl.container_component(called)
