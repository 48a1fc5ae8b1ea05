"""Pusher: copies a blessed model to where it is served, and makes it the baseline."""

from __future__ import annotations

from tfx import v1 as tfx
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import BaseChannel, Channel, component_spec, standard_artifacts, standard_component_specs

from shardwright.components.pusher import executor
from shardwright.components.runtime.component_arguments import FromConfig, check_arguments, required


class PusherSpec(component_spec.ComponentSpec):
    """Channels and parameters of TFX's Pusher, and the evaluation that belongs to the blessing."""

    PARAMETERS = standard_component_specs.PusherSpec.PARAMETERS
    INPUTS = {
        **standard_component_specs.PusherSpec.INPUTS,
        executor.EVALUATION: component_spec.ChannelParameter(type=standard_artifacts.ModelEvaluation),
    }
    OUTPUTS = standard_component_specs.PusherSpec.OUTPUTS


class Pusher(base_component.BaseComponent):
    """Copies a blessed model into the push folder and makes it the baseline; changes nothing otherwise.

    Before the push, a separate process without our code checks that the model answers. The same model is not pushed a
    second time. The output `pushed_model` is that of TFX's Pusher.

    Example:
        ```python
        pusher = Pusher(
            trainer.outputs["model"],
            evaluator.outputs["blessing"],
            evaluator.outputs["evaluation"],
            push_directory="pushed",
        )
        ```

    Args:
        model: the `model` of ImageTrainer.
        model_blessing: the `blessing` of ImageEvaluator.
        evaluation: the `evaluation` of ImageEvaluator; its metrics are written to `BLESSED.json`.
        infra_blessing: the `blessing` of TFX's InfraValidator; without it only the Evaluator decides.
        push_directory: folder with a subfolder per pushed model, as in TensorFlow Serving; a relative one starts from
            the working directory of the run.
    """

    SPEC_CLASS = PusherSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    @check_arguments
    def __init__(
        self,
        model: BaseChannel,
        model_blessing: BaseChannel,
        evaluation: BaseChannel,
        infra_blessing: BaseChannel | None = None,
        *,
        push_directory: str | None = None,
    ) -> None:
        push_directory = required("Pusher", "push_directory", push_directory, 'push_directory="pushed"')
        destination = tfx.proto.PushDestination(
            filesystem=tfx.proto.PushDestination.Filesystem(base_directory=push_directory)
        )
        spec = PusherSpec(
            model=model,
            model_blessing=model_blessing,
            infra_blessing=infra_blessing,
            evaluation=evaluation,
            push_destination=destination,
            custom_config="null",
            pushed_model=Channel(type=standard_artifacts.PushedModel),
        )
        super().__init__(spec=spec)

    from_config = FromConfig(__init__)
