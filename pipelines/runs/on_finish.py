"""`run.on_finish`: a function of the user that gets a summary of every run, for a tracking server or a message.

`run.on_finish: package.module:function` is called with one mapping when a run on this machine has ended, also with an
error. All values are plain: texts, numbers, lists, mappings. The module must be installed, or in the folder of the
configuration file.

| key | value |
|---|---|
| `name`, `task` | of the configuration |
| `state` | `blessed`, `not_blessed` or `failed` |
| `reasons` | why the model was not blessed, or the error of a run that failed |
| `seconds` | wall time of the run |
| `root` | absolute path of the run's folder |
| `config` | the configuration with all defaults |
| `metrics` | the model's metrics on `evaluator.split`: `mean_dice`, `accuracy`, … |
| `measured` | what these are of: `split`, `images`, `size`, `thresholds`, `min_areas` |
| `interval` | `value`, `low` and `high` of the task's metric, with 95 % confidence |
| `baseline` | metrics of the last blessed model on the same images; empty without one |
| `change` | the difference from it, as `interval`; empty without one |
| `keys` | keys of the configuration that decided against the model |
| `epochs` | for each epoch `epoch`, `loss`, `metrics` and what they are of, `images_per_second`, `seconds`, … |
| `best_epoch` | the epoch whose weights were kept, from 1 |
| `corrections` | where annotations differ from those of `reuse_from`: `images`, `labels`, `masks`, `earlier` |
| `dataset` | `digest`, `classes`, and `records` for each split |
| `paths` | absolute: `dataset`, `transformed`, `report`, `evaluation`, `model_run`; `pushed_model`, or `model` |

A run that failed has the keys to `config` only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from shardwright.components.runtime.user_code import add_folder, import_function
from shardwright.config import Config
from shardwright.errors import UsageError

BLESSED_RUN, NOT_BLESSED_RUN, FAILED_RUN = "blessed", "not_blessed", "failed"
_OPTION = "run.on_finish"


class FinishHook:
    """Calls the function of `run.on_finish`; does nothing where there is none.

    It is imported at once, so that a missing package is found before the run.

    Args:
        config: the configuration.
        root: absolute path of the run's folder.

    Raises:
        UsageError: the function cannot be imported.
    """

    def __init__(self, config: Config, root: str) -> None:
        self._path = config.run.on_finish or ""
        self._function: Callable[[dict[str, Any]], object] | None = None
        if not self._path:
            return
        add_folder(config.base)
        self._function = import_function(self._path, option=_OPTION)
        self._common = {"name": config.name, "task": config.task, "root": root, "config": config.to_dict()}

    def finished(self, facts: Mapping[str, Any], *, blessed: bool, reasons: list[str], seconds: float) -> None:
        """Calls the function after a run that came to its end.

        Args:
            facts: the other values.
            blessed: whether the model was blessed.
            reasons: why not.
            seconds: wall time.

        Raises:
            UsageError: the function failed.
        """
        self._call(
            {"state": BLESSED_RUN if blessed else NOT_BLESSED_RUN, "reasons": reasons, "seconds": seconds, **facts}
        )

    def failed(self, error: Exception, seconds: float) -> None:
        """Calls the function after a run that failed; an error of the function itself is only logged."""
        try:
            self._call({"state": FAILED_RUN, "reasons": [str(error)], "seconds": seconds})
        except UsageError as second:
            logging.getLogger(__name__).error("%s", second)

    def _call(self, facts: Mapping[str, Any]) -> None:
        if self._function is None:
            return
        try:
            self._function({**self._common, **facts})
        except Exception as error:
            # The user's code may raise any error.
            raise UsageError(
                f"{_OPTION}: {self._path} failed ({type(error).__name__}: {error}). Correct it. The results of the run "
                f"are complete, in {self._common['root']}; run again to call it again."
            ) from error
