"""How far a training is: what a checkpoint holds beside the numbers of the model.

Being told to end: a training then saves its state first.

Kubernetes and Vertex AI send SIGTERM some seconds before they take a machine away; a terminal sends SIGINT.
"""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from shardwright.components.image_trainer.training.checkpoints import pause
from shardwright.errors import ShardwrightError


@dataclass(frozen=True)
class Rate:
    """How fast an epoch went, on this machine and since the training was last begun.

    Attributes:
        images_per_second: of all hosts, in training steps; those that were compiled are left out.
        input_bound: share of that time in which the devices waited for images, at most.
        seconds: of the epoch, evaluation and checkpoints included.
    """

    images_per_second: float
    input_bound: float
    seconds: float


@dataclass
class Progress:
    """The course of a training so far.

    Attributes:
        step: steps done.
        epoch_loss: sum of the losses of the steps of the epoch that is going on.
        losses: mean loss of every whole epoch.
        evaluations: metrics of every whole epoch; empty without a split for them.
        rates: how fast every whole epoch went.
        best_epoch: the best one, from 1; 0: none yet.
        best_step: steps done when it ended.
        resumed: steps at which the training was taken up again.
    """

    step: int = 0
    epoch_loss: float = 0.0
    losses: list[float] = field(default_factory=list)
    evaluations: list[dict[str, float]] = field(default_factory=list)
    rates: list[Rate] = field(default_factory=list)
    best_epoch: int = 0
    best_step: int = 0
    resumed: list[int] = field(default_factory=list)

    @property
    def epochs(self) -> int:
        """Whole epochs done."""
        return len(self.losses)

    @property
    def best(self) -> dict[str, float] | None:
        """Metrics of the best epoch."""
        return self.evaluations[self.best_epoch - 1] if self.best_epoch and self.evaluations else None

    def ended(self, epochs: int, patience: int) -> bool:
        """Whether nothing is left to do: all epochs are done, or the last `patience` of them brought nothing better."""
        return self.epochs >= epochs or (patience > 0 and self.epochs - self.best_epoch >= patience)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Progress:
        """From `to_dict`'s form."""
        return cls(**{**value, "rates": [Rate(**rate) for rate in value["rates"]]})


_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Preemption:
    """Notes that the process was told to end.

    Attributes:
        signal: name of the first signal that came; empty before.
    """

    def __init__(self) -> None:
        self.signal = ""

    def listen(self) -> None:
        """Takes the signals from here on; to be called in the main thread."""
        for number in _SIGNALS:
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.signal = self.signal or signal.Signals(number).name


def waiting(preemption: Preemption, send: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
    """What is to be done again and again while another process is at the same training.

    Args:
        preemption: whether this one was told to end; then it does.
        send: is told once that, and for what, it waits.
    """
    told = False

    def wait() -> None:
        nonlocal told
        if preemption.signal:
            raise ShardwrightError(
                f"the training was told to end ({preemption.signal}) while it waited for another process that is at "
                "the same one. Run it again."
            )
        if not told:
            told = True
            send({"note": "another process is at the same training: this one waits until that has ended"})
        pause()

    return wait
