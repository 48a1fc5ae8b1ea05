"""Steps of a small model on the backend of `KERAS_BACKEND`, whose weights can be computed by hand; prints JSON.

The model is one weight w with the loss 0.1 * w, so its gradient is 0.1 for all images. By plain SGD without momentum, w
falls by 0.1 times the rate at every update.
"""

import json
import os

RATE = 0.5


def run(backend: str, *, ema: float, accumulate: int, steps: int) -> dict:
    import keras
    import numpy as np
    from recipes import train_recipe

    from shardwright.components.image_trainer.devices.hosts import HostPlace
    from shardwright.components.image_trainer.devices.placement import Placement
    from shardwright.components.image_trainer.training.device_input import DeviceInput
    from shardwright.components.image_trainer.training.learner import Learner
    from shardwright.components.image_trainer.training.optimizers import build_optimizer
    from shardwright.components.image_trainer.training.train import build_steps, connect

    recipe = train_recipe(
        "unet", 4, 1, 1, RATE, 1, "", shuffle_buffer=1,
        optimizer="adam", schedule="constant", warm_up=0.0, ema=ema or None, accumulate=accumulate,
    )  # fmt: skip
    inputs = keras.Input((1,))
    model = keras.Model(inputs, keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")(inputs))
    optimizer = build_optimizer(recipe.trainer, steps, model=model)
    placement = Placement("cpu", backend)
    connect(placement, HostPlace())
    learner = Learner(
        model, lambda true, found, counted=None: 0.1 * keras.ops.mean(found), optimizer,
        DeviceInput("none", None, None, classes=1, ignore=False), lambda answers, true: answers,
    )  # fmt: skip
    made = build_steps(placement, HostPlace(), learner)
    ones = np.ones((1, 1), np.float32)
    weights, kept, answers, norms = [], [], [], []
    for _ in range(steps):
        _, norm = np.asarray(made.train(ones, ones)).tolist()
        norms.append(norm)
        weights.append(float(made.state()["weights/00000"][0, 0]))
        with made.evaluated():
            kept.append(float(made.state()["weights/00000"][0, 0]))
            counts, _ = made.evaluate(ones, ones, np.ones(1, bool))()
            answers.append(float(counts[0, 0]))
    after = float(made.state()["weights/00000"][0, 0])
    return {"weights": weights, "kept": kept, "answers": answers, "norms": norms, "after": after, "traces": made.traces}


def every_case(backend: str) -> dict:
    cases = {
        "plain": {"ema": 0.0, "accumulate": 1},
        "mean": {"ema": 0.75, "accumulate": 1},
        "accumulated": {"ema": 0.0, "accumulate": 3},
        "both": {"ema": 0.75, "accumulate": 3},
    }
    return {name: run(backend, steps=6, **case) for name, case in cases.items()}


if __name__ == "__main__":
    print(json.dumps(every_case(os.environ["KERAS_BACKEND"])))
