"""InputResolver: the input of ImageExampleGen, listed and hashed when the pipeline runs."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict

from tfx.dsl.components.base import base_component, executor_spec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import Channel, component_spec, standard_artifacts

from shardwright.components.input_resolver import executor
from shardwright.components.runtime.component_arguments import (
    FromConfig,
    Options,
    check_arguments,
    component_of,
    required,
)
from shardwright.config import (
    Config,
    DuplicatesConfig,
    FeaturesConfig,
    ImagesConfig,
    InputConfig,
    RejectsConfig,
    ShardsConfig,
    SplitConfig,
)
from shardwright.config.constructors import config_of
from shardwright.errors import ConfigError, UsageError
from shardwright.ingest import IngestRecipe, ingest_recipe, locate, survey_input
from shardwright.ingest.baseline import COPIED, SPLITS, BaselineRequest, refuse_baseline
from shardwright.ingest.recipe import absolute_places, location_json, relative_places
from shardwright.storage import is_remote
from shardwright.storage.spans import NEWEST

if TYPE_CHECKING:
    from typing_extensions import Unpack


class IngestSections(TypedDict, total=False):
    """The sections of the configuration that decide about the dataset, besides `input`."""

    images: Options[ImagesConfig]
    split: Options[SplitConfig]
    shards: Options[ShardsConfig]
    duplicates: Options[DuplicatesConfig]
    features: Options[FeaturesConfig]
    rejects: Options[RejectsConfig]
    reuse_from: str | None


def ingest_config(
    component: str,
    input: Options[InputConfig],  # noqa: A002 -- the name of the section
    task: str,
    base: str | None,
    sections: IngestSections,
) -> Config:
    """Returns the configuration of an ingest, which must not depend on the model that is blessed.

    Raises:
        ConfigError: a value is wrong; the message names it as a key of the YAML file.
        UsageError: the input is missing, or an option says `blessed`.
    """
    required(component, "input", input, 'Input("images")')
    config = config_of(input, task=task, base=base, **sections)
    for path, dataset in ((SPLITS, config.split.keep_from), (COPIED, config.reuse_from)):
        refuse_baseline(path, dataset)
    return config


class InputResolverSpec(component_spec.ComponentSpec):
    """Channels and parameters of InputResolver."""

    PARAMETERS = {
        name: component_spec.ExecutionParameter(type=str)
        for name in (executor.RECIPE, executor.PLACES, executor.DATA_ROOT, executor.SPAN)
    } | {executor.BLESSED: component_spec.ExecutionParameter(type=str, optional=True)}
    INPUTS: dict[str, component_spec.ChannelParameter] = {}
    OUTPUTS = {
        name: component_spec.ChannelParameter(type=standard_artifacts.String, optional=name in executor.SETTLED)
        for name in (executor.FINGERPRINT, executor.LOCATION, *executor.SETTLED)
    }


@dataclass(frozen=True)
class ResolverRequest:
    """The input to resolve.

    Attributes:
        recipe: ImageExampleGen's options as canonical JSON; they decide which files belong to the input.
        places: paths of the input below `data_root`, as JSON (`shardwright.ingest.recipe`).
        blessed: request for the dataset of the baseline model, if the configuration names `blessed`; adds the outputs
            `settled_recipe` and `settled_drift`.
    """

    recipe: str
    places: str
    blessed: BaselineRequest | None = None

    @staticmethod
    def of(config: Config) -> ResolverRequest:
        """Returns the request of a configuration, whose base is the root of the data; lists the input for its classes.

        Raises:
            UsageError: the input cannot be listed, or is not below the root.
        """
        location, root = locate(config), config.base.rstrip("/")
        shared, places = relative_places(location)
        if shared != root:
            if not shared.startswith(f"{root}/"):
                raise UsageError(f"InputResolver: {shared} is not below data_root, {root}. Give a folder above both.")
            places = absolute_places(shared.removeprefix(f"{root}/"), places)
        classes = list(config.input.classes or ()) or survey_input(IngestRecipe.of(config), location).survey.classes
        return ResolverRequest(ingest_recipe(config, classes), location_json(replace(places, span=NEWEST)))


class InputResolver(base_component.BaseComponent):
    """Lists the input when the pipeline runs, so that a compiled, scheduled pipeline reads new data.

    Its outputs are parameters of `ImageExampleGen.at_run(resolver)`, so cache keys depend on the input's content. It
    must not be cached itself. Local runs do not need it: ImageExampleGen lists its input when it is constructed.

    TFX's KubeflowV2DagRunner names the producer of a dynamic value wrongly, and caches every task: pass its document to
    `shardwright.components.correct_document`.

    Example:
        ```python
        resolver = InputResolver(
            Input("train_images", labels=RleCsv("train.csv"), classes=["Fish", "Sugar"]),
            data_root="gs://bucket/clouds",
        )
        example_gen = ImageExampleGen.at_run(resolver)
        ```

    Args:
        input: the images and their annotations, with paths below `data_root`. Without `classes` the input is listed
            now, to find their names.
        data_root: folder or URL that relative paths start from, or a RuntimeParameter with a default.
        span: a RuntimeParameter in place of `input.span`.
        task: as in ImageExampleGen, like the following.
        images: size, encoding and checks of the stored images.
        split: how images are divided.
        shards: number or size of the shards.
        duplicates: what is done with duplicates.
        features: names and forms of the features.
        rejects: how many inputs may be rejected.
        reuse_from: dataset of an earlier ingest.

    Raises:
        ConfigError: a value is wrong; the message names it as a key of the YAML file.
    """

    SPEC_CLASS = InputResolverSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    @check_arguments
    def __init__(
        self,
        input: Options[InputConfig] = None,  # noqa: A002 -- the name of the section
        *,
        data_root: str | RuntimeParameter,
        span: RuntimeParameter | None = None,
        task: str = "segmentation",
        **sections: Unpack[IngestSections],
    ) -> None:
        _check_runtime("span", span)
        config = ingest_config("InputResolver", input, task, _folder_of(data_root), sections)
        super().__init__(_spec(ResolverRequest.of(config), data_root, span or config.input.span))

    # Only `shardwright compile` resolves `blessed` when the pipeline runs.
    from_config = FromConfig(__init__)

    @classmethod
    def of_request(cls, request: ResolverRequest, data_root: RuntimeParameter, span: RuntimeParameter) -> InputResolver:
        """Takes a complete request."""
        return component_of(cls, _spec(request, data_root, span))


def _spec(request: ResolverRequest, data_root: Any, span: Any) -> InputResolverSpec:
    values = {
        executor.RECIPE: request.recipe,
        executor.PLACES: request.places,
        executor.DATA_ROOT: data_root,
        executor.SPAN: span,
    }
    outputs: tuple[str, ...] = (executor.FINGERPRINT, executor.LOCATION)
    if request.blessed is not None:
        values[executor.BLESSED] = request.blessed.to_json()
        outputs += executor.SETTLED
    return InputResolverSpec(**values, **{name: Channel(type=standard_artifacts.String) for name in outputs})


def _check_runtime(name: str, value: Any) -> None:
    """Refuses a RuntimeParameter that is not a text: the executor reads texts."""
    if isinstance(value, RuntimeParameter) and value.ptype is not str:
        problem = f"the RuntimeParameter {value.name!r} has the type {value.ptype.__name__}"
        raise ConfigError(f"InputResolver: {name}", problem, f"Write RuntimeParameter({value.name!r}, str, default=…).")


def _folder_of(data_root: Any) -> str:
    _check_runtime("data_root", data_root)
    if isinstance(data_root, RuntimeParameter) and not data_root.default:
        problem = f"the RuntimeParameter {data_root.name!r} has no default"
        fix = f"Write RuntimeParameter({data_root.name!r}, str, default=…): the input is listed there now."
        raise ConfigError("InputResolver: data_root", problem, fix)
    folder = str(data_root.default if isinstance(data_root, RuntimeParameter) else data_root)
    return folder if is_remote(folder) else os.path.abspath(folder)
