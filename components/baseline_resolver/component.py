"""BaselineResolver: the last blessed model, to compare a new one with or to begin with."""

from __future__ import annotations

import re

from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import Channel, component_spec, standard_artifacts

from shardwright.components.baseline_resolver import executor
from shardwright.components.runtime.component_arguments import FromConfig, check_arguments, required
from shardwright.errors import ConfigError
from shardwright.lineage import blessing

# The digest is empty while no model was blessed.
_DIGEST = re.compile("([0-9a-f]{64})?")


class BaselineResolverSpec(component_spec.ComponentSpec):
    """Channels and parameters of BaselineResolver."""

    PARAMETERS = {
        executor.PUSH_DIRECTORY: component_spec.ExecutionParameter(type=str),
        executor.BASELINE_DIGEST: component_spec.ExecutionParameter(type=str),
    }
    INPUTS: dict[str, component_spec.ChannelParameter] = {}
    OUTPUTS = {executor.MODEL: component_spec.ChannelParameter(type=standard_artifacts.Model)}


class BaselineResolver(base_component.BaseComponent):
    """Copies the model that Pusher pushed last, which `BLESSED.json` names.

    Its output `model` has the custom property `has_baseline`: 1 with a model, 0 (and empty) if none was ever blessed.
    TFX's Resolver with LatestBlessedModelStrategy looks models up in the metadata store; this component needs only the
    push folder, so it also works where the metadata are another store's, and in compiled pipelines on Kubeflow.

    Example:
        ```python
        baseline = BaselineResolver("pushed")
        evaluator = ImageEvaluator(example_gen.outputs["examples"], trainer.outputs["model"], baseline.outputs["model"])
        ```

    Args:
        push_directory: the folder that Pusher pushes to; a relative one starts from the working directory of the run.
        baseline_digest: digest of the model that was blessed last, part of the cache key. By default it is read from
            the folder now. `AT_RUN` stands for the model when the pipeline runs, in compiled pipelines; a task with it
            must not be cached. Import it from `shardwright.components`.

    Raises:
        ConfigError: `baseline_digest` is neither a digest nor `AT_RUN`.
    """

    SPEC_CLASS = BaselineResolverSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    @check_arguments
    def __init__(self, push_directory: str | None = None, baseline_digest: str | None = None) -> None:
        push_directory = required("BaselineResolver", "push_directory", push_directory, 'BaselineResolver("pushed")')
        if baseline_digest is None:
            baseline_digest = blessing.baseline_digest(push_directory)
        if baseline_digest != executor.AT_RUN and not _DIGEST.fullmatch(baseline_digest):
            fix = "Leave it out, or give AT_RUN of shardwright.components."
            raise ConfigError("BaselineResolver: baseline_digest", f"{baseline_digest!r} is not a digest", fix)
        spec = BaselineResolverSpec(
            **{
                executor.PUSH_DIRECTORY: push_directory,
                executor.BASELINE_DIGEST: baseline_digest,
                executor.MODEL: Channel(type=standard_artifacts.Model),
            }
        )
        super().__init__(spec=spec)

    from_config = FromConfig(__init__)
