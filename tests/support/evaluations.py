"""Evaluations and histories of trainings that no model made, for tests of what shows them."""

from shardwright.components.evaluator.result_files import EvaluationSummary
from shardwright.components.image_trainer.training.history import History
from shardwright.evaluation.figures import Measured

MEASURED = Measured("test", 60, (24, 40), (0.4, 0.6), (1, 12))
EPOCHS = Measured("eval", 12, (24, 40), (0.5, 0.5), (0, 0))


def evaluated(metrics, *, baseline=None, blessed=True, reasons=(), keys=(), interval=None, change=None):
    """An evaluation's summary."""
    spread = dict.fromkeys(("value", "low", "high"), 0.5) if interval is None else interval
    return EvaluationSummary(
        metrics, baseline or {}, blessed, list(reasons), MEASURED.to_dict(), list(keys), spread, change or {}
    )


def trained(loss, evaluation, best_epoch=1):
    """A training's history, of which the best epoch was chosen on `eval`."""
    return History("f" * 64, 10, 2, "eval", best_epoch, loss, evaluation, EPOCHS.to_dict())
