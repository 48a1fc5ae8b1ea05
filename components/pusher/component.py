"""Inputs and outputs of the Pusher: those of TFX's, and the evaluation."""

from __future__ import annotations

from tfx import v1 as tfx
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import BaseChannel, Channel, component_spec, standard_artifacts, standard_component_specs

from shardwright.components.pusher import executor


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

    Args:
        model: the Trainer's `model`.
        model_blessing: the Evaluator's `blessing`.
        evaluation: the Evaluator's `evaluation`; its metrics are written to `BLESSED.json`.
        push_directory: folder with a subfolder per pushed model, as in TensorFlow Serving; relative to the run.
    """

    SPEC_CLASS = PusherSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(
        self, *, model: BaseChannel, model_blessing: BaseChannel, evaluation: BaseChannel, push_directory: str
    ) -> None:
        destination = tfx.proto.PushDestination(
            filesystem=tfx.proto.PushDestination.Filesystem(base_directory=push_directory)
        )
        spec = PusherSpec(
            model=model,
            model_blessing=model_blessing,
            evaluation=evaluation,
            push_destination=destination,
            custom_config="null",
            pushed_model=Channel(type=standard_artifacts.PushedModel),
        )
        super().__init__(spec=spec)
