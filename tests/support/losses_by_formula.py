"""The losses written down in numpy, and the cases they are tried on; run as a script, the losses of Keras's backend.

    KERAS_BACKEND=jax python losses_by_formula.py

prints them as JSON, so that a test can compare backends, each of which needs a process of its own.
"""

import json

import numpy as np

UNCOUNTED = 255


def cases():
    """Name -> (arguments of `build_loss`, truth, probabilities)."""
    random = np.random.default_rng(7)
    masks = (random.random((2, 5, 4, 3)) < 0.4).astype(np.uint8)
    guess = random.uniform(0.02, 0.98, masks.shape).astype(np.float32)
    marked = np.where(random.random((2, 5, 4, 1)) < 0.3, np.uint8(UNCOUNTED), masks)
    labels = np.array([2, 0, 1, 1], np.int32)
    shares = random.dirichlet(np.ones(3), 4).astype(np.float32)
    several = (random.random((4, 3)) < 0.5).astype(np.float32)
    loose = random.uniform(0.02, 0.98, several.shape).astype(np.float32)
    weights = [1.0, 2.0, 5.0]
    made = {}
    for kind in ("bce_dice", "bce", "dice", "focal", "tversky"):
        for name, truth in (("plain", masks), ("ignore", marked), ("all ignored", np.full_like(masks, UNCOUNTED))):
            for w in (None, weights):
                options = {"task": "segmentation", "kind": kind, "ignore": name != "plain", "weights": w}
                made[f"{kind}, {name}, {'weighted' if w else 'alike'}"] = (options, truth, guess)
    for kind in ("cross_entropy", "focal"):
        for w in (None, weights):
            options = {"task": "classification", "kind": kind, "weights": w}
            made[f"label {kind}, {'weighted' if w else 'alike'}"] = (options, labels, shares)
    for kind in ("bce", "focal"):
        options = {"task": "classification", "multi": True, "kind": kind, "weights": weights}
        made[f"classes {kind}"] = (options, several, loose)
    return made


def by_formula(options, truth, probabilities):
    """The loss in float64."""
    p, kind = probabilities.astype(np.float64), options["kind"]
    classes = p.shape[-1]
    weights = np.array(options["weights"] or [1.0] * classes)
    if options["task"] == "classification" and not options.get("multi"):
        hit = p[np.arange(len(p)), truth]
        losses = -np.log(hit) * ((1 - hit) ** 2 if kind == "focal" else 1)
        return float((losses * weights[truth]).mean())
    weights = weights / weights.mean()
    flat_truth, flat = truth.reshape(-1, classes), p.reshape(-1, classes)
    total = 0.0
    for c in range(classes):
        kept = flat_truth[:, c] != UNCOUNTED
        t, q = flat_truth[kept, c].astype(np.float64), flat[kept, c]
        right = np.where(t == 1, q, 1 - q)
        entropy = -np.log(right)
        parts = {
            "bce": entropy.mean() if len(t) else 0.0,
            "focal": ((1 - right) ** 2 * entropy).mean() if len(t) else 0.0,
            "dice": 1 - (2 * (t * q).sum() + 1) / (t.sum() + q.sum() + 1),
            "tversky": 1
            - ((t * q).sum() + 1) / ((t * q).sum() + 0.3 * ((1 - t) * q).sum() + 0.7 * (t * (1 - q)).sum() + 1),
        }
        total += weights[c] * sum(parts[part] for part in kind.split("_"))
    return total / classes


def by_keras():
    """Name -> loss, on the backend of this process."""
    from shardwright.components.image_trainer.training.losses import build_loss

    return {n: float(build_loss(o.pop("task"), **o)(t, p)) for n, (o, t, p) in cases().items()}


if __name__ == "__main__":
    print(json.dumps(by_keras()))
