"""The losses written down in numpy, and the cases they are tried on; run as a script, those of Keras's backend.

    KERAS_BACKEND=jax python losses_by_formula.py

prints losses and gradients as JSON, so that a test can compare backends, each of which needs a process of its own.
"""

import json

import numpy as np

UNCOUNTED = 255


def cases():
    """Name -> (arguments of `build_loss`, truth, logits from -60 to 60)."""
    random = np.random.default_rng(7)
    masks = (random.random((2, 5, 4, 3)) < 0.4).astype(np.uint8)
    guess = random.uniform(-60, 60, masks.shape).astype(np.float32)
    guess[0] /= 15
    marked = np.where(random.random((2, 5, 4, 1)) < 0.3, np.uint8(UNCOUNTED), masks)
    mixed = (masks * 0.75 + masks[:, ::-1] * 0.25).astype(np.float32)
    labels = np.array([2, 0, 1, 1], np.int32)
    shares = np.array([[0, 0.75, 0.25], [1, 0, 0], [0.5, 0.25, 0.25], [0, 0, 1]], np.float32)
    scores = np.array([[60, -60, 0], [-3, 2, 1], [0, 0, 0], [20, -20, 5]], np.float32)
    several = (random.random((4, 3)) < 0.5).astype(np.float32)
    weights = [1.0, 2.0, 5.0]
    made = {}
    for kind in ("bce_dice", "bce", "dice", "focal", "tversky"):
        for name, truth in (
            ("plain", masks), ("ignore", marked), ("all ignored", np.full_like(masks, UNCOUNTED)), ("shares", mixed)
        ):  # fmt: skip
            for w in (None, weights):
                options = {"task": "segmentation", "kind": kind, "ignore": "ignore" in name, "weights": w}
                made[f"{kind}, {name}, {'weighted' if w else 'alike'}"] = (options, truth, guess)
        options = {"task": "segmentation", "kind": kind, "smoothing": 0.1}
        made[f"{kind}, smoothed"] = (options, masks, guess)
    for kind in ("cross_entropy", "focal"):
        for w in (None, weights):
            for name, truth in (("labels", labels), ("shares", shares)):
                options = {"task": "classification", "kind": kind, "weights": w}
                made[f"{name} {kind}, {'weighted' if w else 'alike'}"] = (options, truth, scores)
        made[f"{kind}, smoothed"] = ({"task": "classification", "kind": kind, "smoothing": 0.2}, labels, scores)
    for kind in ("bce", "focal"):
        options = {"task": "classification", "multi": True, "kind": kind, "weights": weights}
        made[f"classes {kind}"] = (options, several, scores)
    return made


def by_formula(options, truth, logits):
    """The loss in float64."""
    x, kind, smoothing = logits.astype(np.float64), options["kind"], options.get("smoothing", 0.0)
    classes = x.shape[-1]
    weights = np.array(options.get("weights") or [1.0] * classes)
    if options["task"] == "classification" and not options.get("multi"):
        true = np.eye(classes)[truth] if truth.ndim == 1 else truth.astype(np.float64)
        logs = x - np.logaddexp.reduce(x, axis=-1, keepdims=True)
        of_class = -logs * ((1 - np.exp(logs)) ** 2 if kind == "focal" else 1)
        spread = true * (1 - smoothing) + smoothing / classes
        return float(((spread * of_class).sum(-1) * (true @ weights)).mean())
    weights = weights / weights.mean()
    flat_truth, flat = truth.reshape(-1, classes), x.reshape(-1, classes)
    total = 0.0
    for c in range(classes):
        kept = flat_truth[:, c] != UNCOUNTED
        t, z = flat_truth[kept, c].astype(np.float64), flat[kept, c]
        q = 1 / (1 + np.exp(-z))
        soft = t * (1 - smoothing) + smoothing / 2
        entropy = np.logaddexp(0, z) - soft * z
        missing = soft * (1 - q) + (1 - soft) * q
        parts = {
            "bce": entropy.mean() if len(t) else 0.0,
            "focal": (missing**2 * entropy).mean() if len(t) else 0.0,
            "dice": 1 - (2 * (t * q).sum() + 1) / (t.sum() + q.sum() + 1),
            "tversky": 1
            - ((t * q).sum() + 1) / ((t * q).sum() + 0.3 * ((1 - t) * q).sum() + 0.7 * (t * (1 - q)).sum() + 1),
        }
        total += weights[c] * sum(parts[part] for part in kind.split("_"))
    return total / classes


def gradient_by_formula(options, truth, logits):
    """The gradient by central differences in float64, [...] like the logits."""
    found, step = np.zeros(logits.shape), 1e-4
    for place in np.ndindex(logits.shape):
        one = np.zeros(logits.shape)
        one[place] = step
        above, below = (by_formula(options, truth, logits.astype(np.float64) + sign * one) for sign in (1, -1))
        found[place] = (above - below) / (2 * step)
    return found


def by_keras():
    """Name -> (loss, gradient as a list), on the backend of this process."""
    import keras

    from shardwright.components.image_trainer.training.losses import build_loss

    def with_gradient(loss, truth, logits):
        if keras.backend.backend() == "jax":
            import jax

            value, gradient = jax.value_and_grad(lambda x: loss(truth, x))(logits)
        else:
            import tensorflow as tf

            given = tf.constant(logits)
            with tf.GradientTape() as tape:
                tape.watch(given)
                value = loss(truth, given)
            gradient = tape.gradient(value, given)
        return float(value), np.asarray(gradient).ravel().tolist()

    return {n: with_gradient(build_loss(**o), t, x) for n, (o, t, x) in cases().items()}


if __name__ == "__main__":
    print(json.dumps(by_keras()))
