"""An exit handler of a TFX author, in a module of its own: the container imports it by name."""

from tfx import v1 as tfx
from tfx.orchestration.kubeflow import decorators


@decorators.exit_handler
def Announce(status: tfx.dsl.components.Parameter[str]):
    print(f"announced: {status}", flush=True)
