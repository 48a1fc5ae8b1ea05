"""InputResolver: the input of ImageExampleGen, listed and hashed when the pipeline runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tfx.dsl.components.base import base_component, executor_spec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import Channel, component_spec, standard_artifacts

from shardwright.components.input_resolver import executor
from shardwright.components.runtime.component_arguments import check_arguments
from shardwright.config import Config, as_config
from shardwright.config.inline import inline_config, read_span
from shardwright.config.input import LabelsConfig
from shardwright.config.trainer import BLESSED
from shardwright.errors import ConfigError, UsageError
from shardwright.ingest import IngestRecipe, ingest_recipe, locate, survey_input
from shardwright.ingest.baseline import SPLITS, BaselineRequest, refuse_baseline, uses_baseline
from shardwright.ingest.recipe import absolute_places, location_json, relative_places
from shardwright.storage import is_remote
from shardwright.storage.spans import NEWEST


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
            "train_images", data_root="gs://bucket/clouds", labels=RleCsv("train.csv"), classes=["Fish", "Sugar"]
        )
        example_gen = ImageExampleGen.at_run(resolver)
        ```

    Args:
        images: folder or glob of images below `data_root`.
        data_root: folder or URL that relative paths start from, or a RuntimeParameter with a default.
        span: the span of paths with `{SPAN}` or a date, as ImageExampleGen takes it; may be a RuntimeParameter.
        labels: see ImageExampleGen.
        task: see ImageExampleGen.
        classes: see ImageExampleGen. Without them the input is listed now, to find their names.
        request: a complete request, instead of images, labels and options; see `ResolverRequest`.
        **sections: `split`, `shards`, `duplicates`, `features`, `verify`, `image_options` and `rejects`, as
            ImageExampleGen takes them.

    Raises:
        ConfigError: a value is wrong; the message names it as a key of the YAML file.
    """

    SPEC_CLASS = InputResolverSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    @partial(check_arguments, whole="request", allowed=("data_root", "span"))
    def __init__(
        self,
        images: str | None = None,
        *,
        data_root: str | RuntimeParameter,
        span: str | int | Sequence[Any] | RuntimeParameter = NEWEST,
        labels: LabelsConfig | None = None,
        task: str = "segmentation",
        classes: Sequence[str] | Mapping[str, int] | str | None = None,
        request: ResolverRequest | None = None,
        **sections: Any,
    ) -> None:
        _check_runtime("data_root", data_root)
        _check_runtime("span", span)
        if not isinstance(span, RuntimeParameter):
            span = read_span("InputResolver: span", span)
        if request is None:
            if images is None:
                raise UsageError("InputResolver: images is missing. Give a folder of images below data_root.")
            base = _folder_of(data_root)
            options = {"images" if name == "image_options" else name: value for name, value in sections.items()}
            config = inline_config(images, task=task, labels=labels, classes=classes, base=base, **options)
            refuse_baseline(SPLITS, config.split.keep_from)
            request = ResolverRequest.of(config)
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
        channels = {name: Channel(type=standard_artifacts.String) for name in outputs}
        super().__init__(InputResolverSpec(**values, **channels))

    @classmethod
    def from_config(cls, config: str | Config, *, data_root: Any, span: Any = NEWEST) -> InputResolver:
        """Takes the input and its options from a configuration, or from its YAML file; paths start from `data_root`.

        Raises:
            ConfigError: an option is `blessed`, which only `shardwright compile` resolves.
        """
        loaded = replace(as_config(config), base=_folder_of(data_root))
        for path in uses_baseline(loaded):
            refuse_baseline(path, BLESSED)
        return cls(data_root=data_root, span=span, request=ResolverRequest.of(loaded))


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
