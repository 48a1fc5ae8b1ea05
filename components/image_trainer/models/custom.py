"""Custom models: a function by its import path, and the requirements for the model that it builds.

`trainer.model: package.module:function` is called with the keywords `height`, `width`, `classes`, `task`,
`multi`, `filters` (`trainer.base_filters`) and `seed`, or with those of them that it takes.
It returns a built `keras.Model` of keras layers and `keras.ops` (so that it trains on every backend):

* input: one tensor, float32 [batch, height, width, 3], normalized according to `loader.normalize`;
* output: one tensor, float32: [batch, height, width, classes] for segmentation, [batch, classes] for classification.
  Probabilities, from a sigmoid, or for one class an image from a softmax; or logits, if the last layer has no
  activation or `trainer.outputs` says so. The training uses the logits, all else the probabilities;
* it can be saved and loaded again: layers of your own need `@keras.saving.register_keras_serializable()`.

The module must be installed, or in the folder of the configuration file. Its code is part of the recipe, with all that
it imports (`components/runtime/user_code.py`), so the model is trained again after an edit.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from shardwright.components.image_trainer.models.logits import ACTIVATIONS, ending_in, last_activation
from shardwright.components.model_files.keras_file import load_keras_model
from shardwright.components.model_files.shapes import last_number, shape_fits, shape_text
from shardwright.components.runtime.call_user_code import call_function
from shardwright.components.runtime.user_code import Code
from shardwright.errors import UsageError


def build_own_model(
    path: str, returned: str = "auto", *, names: Sequence[str], code: Code | None = None, **options: Any
) -> Any:
    """Calls the function of an import path and checks what it builds.

    Args:
        path: `package.module:function`.
        returned: `trainer.outputs`.
        names: of the classes.
        code: the code that the recipe has of it.
        options: see above.

    Returns:
        A model that ends in probabilities, with the weights of the function's in their order.

    Raises:
        UsageError: the call fails, reads what is not part of the code, or the model does not meet the requirements.
    """
    model = call_function(path, code or {}, option="trainer.model", **options)
    return checked_own_model(
        model,
        f"trainer.model: {path}",
        image=(options["height"], options["width"]),
        classes=names,
        masks=options["task"] == "segmentation",
        multi=options["multi"],
        returned=returned,
    )


def checked_own_model(
    model: Any,
    where: str,
    *,
    image: tuple[int, int],
    classes: Sequence[str],
    masks: bool,
    multi: bool,
    returned: str = "auto",
) -> Any:
    """Checks that a model meets the requirements, before the training; returns it with probabilities at its end.

    Args:
        model: the function's result, or a model that was given.
        where: what named it, for messages.
        image: height and width.
        classes: their names.
        masks: whether it is for segmentation.
        multi: whether an image may have several classes.
        returned: `trainer.outputs`.

    Raises:
        UsageError: the model does not meet a requirement.
    """
    import keras
    import numpy as np

    def refuse(problem: str) -> None:
        raise UsageError(f"{where}: {problem}.")

    if not isinstance(model, keras.Model):
        refuse(f"returned {type(model).__name__}, not a keras.Model")
    check_shapes(model, where, image=image, classes=classes, masks=masks)
    outputs = model.outputs
    if keras.backend.standardize_dtype(outputs[0].dtype) != "float32":
        refuse(f"gives {outputs[0].dtype}; make the last layer with dtype='float32'")
    activation = "sigmoid" if masks or multi else "softmax"
    last = last_activation(model)
    if returned == "logits" and last in ACTIVATIONS:
        refuse(f"ends in a {last}, and trainer.outputs says logits; remove one of them")
    if returned == "logits" or (returned == "auto" and last in ("linear", activation)):
        model = ending_in(model, activation)
    batch = np.random.default_rng(0).normal(size=(2, *image, 3)).astype(np.float32)
    answer = np.asarray(model(batch, training=False))
    if not np.isfinite(answer).all() or answer.min() < 0 or answer.max() > 1 + 1e-5:
        refuse(
            f"answers from {answer.min():.3g} to {answer.max():.3g}, not probabilities; end in a {activation}, or set "
            "trainer.outputs: logits"
        )
    if not masks and not multi and np.abs(answer.sum(-1) - 1).max() > 1e-3:
        refuse("its probabilities do not add up to 1; end in a softmax")
    _check_saved(model, batch, answer, refuse)
    return model


def check_shapes(model: Any, where: str, *, image: tuple[int, int], classes: Sequence[str], masks: bool) -> None:
    """Refuses a model for other images or classes; the arguments are those of `checked_own_model`."""
    wanted = (*image, len(classes)) if masks else (len(classes),)
    inputs, outputs = getattr(model, "inputs", None) or [], getattr(model, "outputs", None) or []
    if len(inputs) != 1 or len(outputs) != 1:
        numbers = f"{len(inputs)} inputs and {len(outputs)} outputs"
        raise UsageError(f"{where}: has {numbers}; build it with one of each (keras.Input).")
    given, answered = inputs[0].shape, outputs[0].shape
    if not shape_fits(given, (None, *image, 3)):
        raise UsageError(
            f"{where}: takes {shape_text(given)}; it is given {shape_text((None, *image, 3))}: the images' height and "
            "width, and 3 colors."
        )
    if None in answered[1:]:  # Open, as the images' sides are: what it gives for these.
        try:
            answered = model.compute_output_shape((None, *image, 3))
        except ValueError as error:
            problem = str(error).strip().splitlines()[0][:200]
            raise UsageError(f"{where}: takes no images of {image[0]}x{image[1]} pixels ({problem}).") from None
    if not shape_fits(answered, (None, *wanted)):
        raise UsageError(
            f"{where}: gives {shape_text(answered)}, not {shape_text((None, *wanted))}: {last_number(classes, masks)}."
        )


def _check_saved(model: Any, batch: Any, answer: Any, refuse: Callable[[str], None]) -> None:
    """Refuses a model that cannot be saved and loaded, or answers otherwise then."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.keras")
        try:
            model.save(file)
            again = np.asarray(load_keras_model(file)(batch, training=False))
        except Exception as error:
            # Keras raises errors of many kinds if a model cannot be saved or loaded.
            hint = "register layers of your own by @keras.saving.register_keras_serializable()"
            refuse(f"cannot be saved and loaded again ({str(error).splitlines()[0][:200]}); {hint}")
    if np.abs(again - answer).max() > 1e-4:
        refuse("answers differently after it was saved and loaded; keep all it learns in weights of its layers")
