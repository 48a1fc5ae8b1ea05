"""The progress of a training, as a checkpoint stores it, and the signals that stop a training.

Kubernetes and Vertex AI send SIGTERM some seconds before they remove a machine; a terminal sends SIGINT. The training
then saves its state first.
"""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from shardwright.components.image_trainer.training.checkpoints import pause
from shardwright.errors import Stopped

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class Rate:
    """How fast an epoch went, on this machine and since the training was last begun.

    Attributes:
        images_per_second: of all hosts, in training steps; those that were compiled are left out.
        input_bound: share of that time in which the devices waited for images, at most.
        seconds: of the epoch, evaluation included, and copying the state for checkpoints.
        training_seconds: of its steps alone, and copying the state between them.
        idle: share of the time of the steps in which the devices had nothing to do, for any reason.
    """

    images_per_second: float
    input_bound: float
    seconds: float
    training_seconds: float
    idle: float = 0.0


@dataclass
class Progress:
    """The state of a training, without the model's numbers.

    Attributes:
        step: steps done.
        epoch_loss: sum of the losses of the steps of the epoch that is going on.
        losses: mean loss of every whole epoch.
        evaluations: metrics of every whole epoch; empty without a split for them.
        rates: how fast every whole epoch went.
        best_epoch: the one whose weights are kept, from 1; 0: none yet.
        best_step: steps done when it ended.
        peak_epoch: the one with the best metrics; later ones that are worse by no more than chance are kept for it.
        resumed: steps at which the training was resumed.
        stopped: whether a callback has ended the training.
    """

    step: int = 0
    epoch_loss: float = 0.0
    losses: list[float] = field(default_factory=list)
    evaluations: list[dict[str, float]] = field(default_factory=list)
    rates: list[Rate] = field(default_factory=list)
    best_epoch: int = 0
    best_step: int = 0
    peak_epoch: int = 0
    resumed: list[int] = field(default_factory=list)
    stopped: bool = False

    @property
    def epochs(self) -> int:
        """Whole epochs done."""
        return len(self.losses)

    @property
    def peak(self) -> dict[str, float] | None:
        """The best metrics of an epoch."""
        return self.evaluations[self.peak_epoch - 1] if self.peak_epoch and self.evaluations else None

    def ended(self, epochs: int, patience: int | None) -> bool:
        """Returns whether all epochs are done, the last `patience` of them were not better, or a callback ended it."""
        late = patience is not None and self.epochs - self.peak_epoch >= patience
        return self.stopped or self.epochs >= epochs or late

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Progress:
        """Reads the form that `to_dict` returns."""
        return cls(**{**value, "rates": [Rate(**rate) for rate in value["rates"]]})


class Preemption:
    """Notes the signals to stop.

    Attributes:
        signal: name of the first signal received; empty before.
    """

    def __init__(self) -> None:
        self.signal = ""

    def listen(self) -> None:
        """Installs the signal handlers; call it in the main thread."""

        def note(number: int, _: FrameType | None) -> None:
            self.signal = self.signal or signal.Signals(number).name

        for number in _SIGNALS:
            signal.signal(number, note)


def waiting(preemption: Preemption, send: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
    """Returns a function to call repeatedly while another process runs the same training.

    Args:
        preemption: notes signals to stop; the function then raises `Stopped`.
        send: gets one message about the wait.
    """
    announced = False

    def wait() -> None:
        nonlocal announced
        if preemption.signal:
            raise Stopped(
                f"the training received {preemption.signal} while it waited for another process that runs the same "
                "training. Run it again."
            )
        if not announced:
            announced = True
            send({"note": "another process runs the same training: this one waits until it ends"})
        pause()

    return wait
