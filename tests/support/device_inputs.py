"""Compares batches that a step prepares on the device with those that the loader finishes; `KERAS_BACKEND` decides.

Called with a dataset, its number of classes, whether it ignores pixels and normalizations, it prints the largest
difference of pixels for each normalization, and whether the masks are equal.
"""

import json
import os
import sys

STATISTICS = {"mean": (100.0, 120.0, 90.0), "std": (50.0, 40.0, 0.0)}


def compare(dataset: str, jit, methods, **spec) -> dict:
    import numpy as np

    from shardwright.components.image_trainer.training.device_input import DeviceInput
    from shardwright.loader import load

    def first(**options):
        return next(load(dataset, "train", 4, **options).as_numpy_iterator())

    found = {}
    few = first(normalize="none", dtype="uint8", masks="bits")
    assert (few[0].dtype, few[1].dtype) == (np.uint8, np.uint8)
    for method in methods:
        whole = first(normalize=method, statistics=STATISTICS)
        prepare = DeviceInput(method, *STATISTICS.values(), **spec)
        images, masks = jit(prepare.images)(few[0]), jit(prepare.targets)(few[1])
        texts = jit(prepare.images)({"image": few[0], "text": np.ones((4, 2), np.float32)})
        found[method] = {
            "pixels": float(np.abs(np.asarray(images) - whole[0]).max() / max(1, np.abs(whole[0]).max())),
            "masks": bool(np.array_equal(np.asarray(masks), whole[1])),
            "ignored": int((whole[1] == 255).sum()),
            "texts": bool(np.array_equal(texts["image"], images) and np.all(np.asarray(texts["text"]) == 1)),
            "type": str(np.asarray(images).dtype),
        }
    return found


if __name__ == "__main__":
    import jax

    assert os.environ["KERAS_BACKEND"] == "jax"
    spec = {"classes": int(sys.argv[2]), "ignore": sys.argv[3] == "ignore"}
    print(json.dumps(compare(sys.argv[1], jax.jit, sys.argv[4:], **spec)))
