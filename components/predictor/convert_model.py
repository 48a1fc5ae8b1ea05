"""Converts an exported model to LiteRT or ONNX, and compares its answers with those of the SavedModel.

The result is a folder: the model, the assets of the SavedModel that a program needs (classes, thresholds, preparation),
and `check.json`. Neither format can decode image files, so the input is `pixels`: uint8 [N, height, width, 3], RGB,
of images that were brought to the model's size as `preparation.json` states. The output is `probabilities`.

The converted model answers in a separate process without TensorFlow's SavedModel and without our code, for real images
that the caller names. The folder appears only if the answers agree.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shardwright.components.predictor.exported_model import ExportedModel, open_model
from shardwright.components.predictor.sources import find_source
from shardwright.components.runtime.isolated import run_isolated
from shardwright.errors import CheckFailed, UsageError
from shardwright.evaluation.thresholds import THRESHOLDS_FILE
from shardwright.storage import is_remote
from shardwright.storage.fingerprint import fingerprint
from shardwright.storage.paths import check_utf8
from shardwright.storage.whole_files import appear, assembling

LITERT, ONNX = "litert", "onnx"
FORMATS = (LITERT, ONNX)
CHECK_FILE = "check.json"
_FILES = {LITERT: "model.tflite", ONNX: "model.onnx"}
_ASSETS = ("classes.json", "preparation.json", THRESHOLDS_FILE)
_PIXELS, _PROBABILITIES = "pixels", "probabilities"
_SCRIPT = Path(__file__).with_name("converted_answers.py")
# The two compute in other orders, in float32; wrong kernels are off by far more.
_TOLERANCE = 1e-3
# The newest set of operators that the converter knows on both stacks.
_OPERATORS = 17

Array = npt.NDArray[Any]


def convert(model: str, images: str, out: str, to: str, *, count: int = 16, trusted: bool = False) -> dict[str, Any]:
    """Converts a model.

    Args:
        model: the folder of a run, the folder that models are pushed to, or a SavedModel exported by a pipeline.
        images: folder or glob of images, or a dataset, to compare the answers for.
        out: folder to make, on this machine.
        to: of `FORMATS`.
        count: the number of images to compare, at most.
        trusted: see `check_saved_model`.

    Returns:
        The content of `check.json`: `format`, `file`, `bytes`, `images`, `largest_difference` of a probability, and
        `decisions`, of which `other_decisions` are on the other side of their threshold.

    Raises:
        UsageError: a package is missing, `out` exists, or the model cannot be converted.
        CheckFailed: the converted model does not answer, or its answers differ.
    """
    for place, name in ((model, "model"), (out, "--out")):
        check_utf8(place, name)
    target = Path(os.path.realpath(out))
    if is_remote(out):
        raise UsageError(f"--out: {out} is on a bucket; models are converted on this machine. Name a folder here.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"--out: {out} exists already. Name another folder, or delete that one.")
    if count < 1:
        raise UsageError(f"--count: {count} is too small. Compare at least one image.")
    _check_packages(to)
    opened = open_model(model, trusted=trusted)
    if opened.texts:
        raise UsageError(f"{opened.folder}: reads texts, too. Only models that read images alone can be converted.")
    _ = opened.of_pixels
    source = find_source(images)
    # The first images that can be read, in a format that the model reads.
    read = (one for number in range(source.parts) for one in source.read(number, opened) if not one.failure)
    data, stored = [one.data for one in itertools.islice(read, count)], source.is_stored(opened)
    if not data:
        raise CheckFailed(f"{images}: contains no image that can be read. Name images to compare the answers for.")
    expected = np.concatenate([opened.answer([one], stored=stored)[_PROBABILITIES] for one in data])
    with assembling(target, fingerprint([opened.fingerprint, to, target.name])) as partial:
        file = partial / _FILES[to]
        file.write_bytes(_converted(opened, to))
        for name in _ASSETS:
            shutil.copyfile(Path(opened.folder, "assets", name), partial / name)
        found = answers_of(file, opened.pixels(data, stored=stored))
        result = {"format": to, "file": file.name, "bytes": file.stat().st_size, **_compared(opened, expected, found)}
        (partial / CHECK_FILE).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        appear(partial, target)
    return result


def _check_packages(to: str) -> None:
    import tensorflow as tf

    missing = [name for name in ("tf2onnx", "onnxruntime") if to == ONNX and find_spec(name) is None]
    # TensorFlow still has an interpreter, which its developers have announced to remove.
    if to == LITERT and find_spec("ai_edge_litert") is None and not hasattr(tf.lite, "Interpreter"):
        missing = ["ai-edge-litert"]
    if missing:
        raise UsageError(f"--to: {to} needs packages that are not installed. Run `pip install {' '.join(missing)}`.")


def _converted(model: ExportedModel, to: str) -> bytes:
    import tensorflow as tf

    try:
        if to == LITERT:
            converter = tf.lite.TFLiteConverter.from_saved_model(model.folder, signature_keys=[_PIXELS])
            return bytes(converter.convert())
        serve = tf.function(lambda pixels: model.of_pixels(pixels=pixels))
        signature = [tf.TensorSpec([None, model.height, model.width, 3], tf.uint8, _PIXELS)]
        made, _ = import_module("tf2onnx.convert").from_function(serve, input_signature=signature, opset=_OPERATORS)
        return bytes(made.SerializeToString())
    except Exception as error:
        # The converters raise private errors for operations that a format does not have.
        lines = str(error).strip().splitlines()
        problem = lines[0][:200] if lines else type(error).__name__
        name = "LiteRT" if to == LITERT else "ONNX"
        raise UsageError(f"{model.folder}: {name} cannot hold it ({problem}).") from None


def answers_of(file: Path, pixels: Array) -> Array:
    """Returns the probabilities of a converted model, which answers in a separate process without our code.

    Args:
        file: `.tflite` or `.onnx`.
        pixels: uint8 [N, height, width, 3].

    Raises:
        CheckFailed: it does not answer.
    """
    with tempfile.TemporaryDirectory(prefix="shardwright-") as folder:
        given, answered = Path(folder, "pixels.npy"), Path(folder, "probabilities.npy")
        np.save(given, pixels)
        arguments = (str(file), str(given), str(answered))
        run_isolated(_SCRIPT, *arguments, what=f"{file.name}:", ending="Nothing was written.")
        found: Array = np.load(answered)
        return found


def _compared(model: ExportedModel, expected: Array, found: Array) -> dict[str, Any]:
    """Compares probabilities.

    Raises:
        CheckFailed: they differ.
    """
    if found.shape != expected.shape:
        raise CheckFailed(
            f"the converted model answers {list(found.shape)}, and the SavedModel {list(expected.shape)}. "
            "Nothing was written."
        )
    largest = float(np.abs(found - expected).max())
    if not largest <= _TOLERANCE:  # Also false for NaN.
        raise CheckFailed(
            f"the converted model's probabilities differ by up to {largest:.2g} from those of the SavedModel, more "
            f"than {_TOLERANCE}. Nothing was written."
        )
    if model.task == "classification" and not model.multi:
        sides = [array.argmax(axis=-1) for array in (expected, found)]
    else:
        sides = [array >= np.asarray(model.thresholds.thresholds, np.float32) for array in (expected, found)]
    return {
        "images": len(expected),
        "largest_difference": largest,
        "decisions": int(sides[0].size),
        "other_decisions": int((sides[0] != sides[1]).sum()),
    }
