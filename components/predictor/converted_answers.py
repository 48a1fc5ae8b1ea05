"""Lets a converted model answer: a script for a separate process, without TensorFlow's SavedModel and our code.

    python -I converted_answers.py MODEL PIXELS.npy PROBABILITIES.npy

MODEL is a `.tflite` or an `.onnx` file. The process ends with exit code 1 if an answer is not a probability.
"""

import sys
from importlib import import_module
from typing import Any


def litert(file: str, pixels: Any) -> Any:
    """Returns the probabilities of a LiteRT model, image by image, as a phone computes them."""
    import numpy as np

    try:
        interpreter = import_module("ai_edge_litert.interpreter").Interpreter
    except ImportError:
        interpreter = import_module("tensorflow").lite.Interpreter
    serve = interpreter(model_path=file).get_signature_runner("pixels")
    return np.concatenate([serve(pixels=image[np.newaxis])["probabilities"] for image in pixels])


def onnx(file: str, pixels: Any) -> Any:
    """Returns the probabilities of an ONNX model, all images at once."""
    session = import_module("onnxruntime").InferenceSession(file, providers=["CPUExecutionProvider"])
    (found,) = session.run(["probabilities"], {"pixels": pixels})
    return found


def main(file: str, given: str, answered: str) -> str:
    """Writes the answer; returns the problem with it, empty if there is none."""
    import numpy as np

    found = (litert if file.endswith(".tflite") else onnx)(file, np.load(given))
    if not np.isfinite(found).all() or found.min() < 0 or found.max() > 1.0001:
        return f"it answers probabilities from {found.min()} to {found.max()}"
    np.save(answered, found)
    ours = sorted(name for name in sys.modules if name.partition(".")[0].startswith("shardwright"))
    return f"it needs {ours[0]}" if ours else ""


if __name__ == "__main__":
    try:
        problem = main(*sys.argv[1:])
    except Exception as error:  # Any error of a broken model is its problem.
        problem = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"
    if problem:
        print(problem, file=sys.stderr)
        sys.exit(1)
