"""Tries a SavedModel like a server: a script for a separate process, with TensorFlow and without our code.

    python -I clean_process.py MODEL

The input is a JPEG and a PNG of uncommon sizes. The model must return a probability, 0 to 1, for every class in
`assets/classes.json`. Otherwise the script writes the problem to standard error and ends with exit code 1.
"""

import json
import sys
from pathlib import Path


def problem_of(folder: str) -> str:
    """Returns the problem with a model's answers; empty if there is none."""
    import numpy as np
    import tensorflow as tf

    model = tf.saved_model.load(folder)
    if "serving_default" not in model.signatures:
        return f"it has no signature serving_default, only {', '.join(sorted(model.signatures)) or 'none'}"
    classes = json.loads(Path(folder, "assets", "classes.json").read_text(encoding="utf-8"))
    waves = np.arange(61 * 83 * 3, dtype=np.uint32).reshape(61, 83, 3)
    image = (waves * 2654435761 >> 8 & 255).astype(np.uint8)
    images = [tf.io.encode_jpeg(image), tf.io.encode_png(image[:40, :29])]
    serve = model.signatures["serving_default"]
    inputs = {"image_bytes": tf.stack(images)}
    texts = serve.structured_input_signature[1].get("texts")
    if texts is not None:
        inputs["texts"] = tf.fill([len(images), texts.shape[1]], "a text")
    answer = serve(**inputs)
    if "probabilities" not in answer:
        return f"it answers {', '.join(sorted(answer))}, but no probabilities"
    found = answer["probabilities"].numpy()
    if len(found) != len(images) or found.shape[-1] != len(classes):
        return (
            f"it answers probabilities of shape {list(found.shape)} for {len(images)} images and {len(classes)} classes"
        )
    if not np.isfinite(found).all() or found.min() < 0 or found.max() > 1.0001:
        return f"it answers probabilities from {found.min()} to {found.max()}"
    ours = sorted(name for name in sys.modules if name.partition(".")[0].startswith("shardwright"))
    return f"it needs {ours[0]}" if ours else ""


if __name__ == "__main__":
    try:
        problem = problem_of(sys.argv[1])
    except Exception as error:  # Any error of a broken model is its problem.
        problem = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"
    if problem:
        print(problem, file=sys.stderr)
        sys.exit(1)
