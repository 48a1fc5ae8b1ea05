"""Checks a Keras file before Keras opens it, and opens it: an architecture of known layers, and numbers.

A `.keras` file is a ZIP archive with the architecture as JSON and the weights as HDF5. Keras builds what the JSON
names: any class of its own, and classes that are registered in the process. Some of these run code (`Lambda`), load
other graphs (`TFSMLayer`) or read files that the JSON names (`StringLookup`). HDF5 files can refer to other files.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shardwright.components.model_files.saved_model import models_are_trusted
from shardwright.errors import DatasetError
from shardwright.untrusted.json_text import parse_untrusted_json

ARCHITECTURE, _WEIGHTS = "config.json", "model.weights.h5"
_MEMBERS = frozenset((ARCHITECTURE, _WEIGHTS, "metadata.json"))
# That of EfficientNetV2-B3, with 3 MB of weights a megabyte of it, has 0.3 MB.
_MOST_BYTES = 64 * 2**20
# Keras packs nothing; a packed archive of zeros could fill the memory.
_MOST_UNPACKED = 100
_SHOWN = 3
# The layers that compute on what they are given, and on their weights. Not among them: `Lambda`, `TFSMLayer`,
# `JaxLayer`, `FlaxLayer` and `TorchModuleWrapper`, which run code; `IntegerLookup`, `StringLookup` and
# `TextVectorization`, which read files.
_LAYERS = """
    Activation ActivityRegularization AdaptiveAveragePooling1D AdaptiveAveragePooling2D AdaptiveAveragePooling3D
    AdaptiveMaxPooling1D AdaptiveMaxPooling2D AdaptiveMaxPooling3D Add AdditiveAttention AlphaDropout Attention AugMix
    AutoContrast Average AveragePooling1D AveragePooling2D AveragePooling3D AvgPool1D AvgPool2D AvgPool3D
    BatchNormalization Bidirectional CategoryEncoding CenterCrop Concatenate
    ContrastLimitedAdaptiveHistogramEqualization Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D Conv3DTranspose
    ConvLSTM1D ConvLSTM2D ConvLSTM3D Convolution1D Convolution1DTranspose Convolution2D Convolution2DTranspose
    Convolution3D Convolution3DTranspose Cropping1D Cropping2D Cropping3D CutMix Dense DepthwiseConv1D DepthwiseConv2D
    Discretization Dot Dropout ELU EinsumDense Embedding Equalization Flatten GRU GRUCell GaussianDropout
    GaussianNoise GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D GlobalAvgPool1D GlobalAvgPool2D
    GlobalAvgPool3D GlobalMaxPool1D GlobalMaxPool2D GlobalMaxPool3D GlobalMaxPooling1D GlobalMaxPooling2D
    GlobalMaxPooling3D GroupNormalization GroupQueryAttention HashedCrossing Hashing Identity InputLayer LSTM LSTMCell
    LayerNormalization LeakyReLU Masking MaxNumBoundingBoxes MaxPool1D MaxPool2D MaxPool3D MaxPooling1D MaxPooling2D
    MaxPooling3D Maximum MelSpectrogram Minimum MixUp MultiHeadAttention Multiply Normalization PReLU Permute Pipeline
    RMSNormalization RNN RandAugment RandomBrightness RandomColorDegeneration RandomColorJitter RandomContrast
    RandomCrop RandomElasticTransform RandomErasing RandomFlip RandomGaussianBlur RandomGrayscale RandomHue
    RandomInvert RandomPerspective RandomPosterization RandomRotation RandomSaturation RandomSharpness RandomShear
    RandomTranslation RandomZoom ReLU RepeatVector Rescaling Reshape Resizing ReversibleEmbedding STFTSpectrogram
    SeparableConv1D SeparableConv2D SeparableConvolution1D SeparableConvolution2D SimpleRNN SimpleRNNCell Softmax
    Solarization SpatialDropout1D SpatialDropout2D SpatialDropout3D SpectralNormalization StackedRNNCells Subtract
    TimeDistributed UnitNormalization UpSampling1D UpSampling2D UpSampling3D ZeroPadding1D ZeroPadding2D ZeroPadding3D
"""
_MODELS = "Functional Model Sequential"
_PARTS = """
    Constant GlorotNormal GlorotUniform HeNormal HeUniform Identity IdentityInitializer LecunNormal LecunUniform Ones
    Orthogonal OrthogonalInitializer RandomNormal RandomUniform STFT STFTInitializer TruncatedNormal VarianceScaling
    Zeros L1 L1L2 L2 OrthogonalRegularizer MaxNorm MinMaxNorm NonNeg UnitNorm DTypePolicy FloatDTypePolicy
    DTypePolicyMap KerasTensor SeedGenerator
"""
_KERAS_CLASSES = frozenset(f"{_LAYERS} {_MODELS} {_PARTS}".split())
# Values that are written as objects and are no classes of anybody.
_VALUES = frozenset(("__bytes__", "__ellipsis__", "__keras_tensor__", "__numpy__", "__tensor__", "__tuple__"))
# Modules of Keras that have nothing but operations on tensors, such as the `+` of a functional model.
_OPERATIONS = frozenset(f"keras.src.ops.{name}" for name in ("image", "linalg", "math", "nn", "numpy"))
_FUNCTION = "function"
# Modules of Keras that have functions of tensors only; Keras looks up the names of functions in these.
_FUNCTIONS = frozenset(("builtins", "keras.activations", "keras.src.activations.activations"))


def load_keras_model(file: str | os.PathLike[str], name: str | os.PathLike[str] | None = None) -> Any:
    """Checks a `.keras` file and opens it, without its optimizer.

    Args:
        file: the file, on this machine.
        name: its name for messages, if it is a copy.

    Returns:
        The `keras.Model`. Custom classes are found if their modules were imported and have registered them.

    Raises:
        DatasetError: see `check_keras_file`.
    """
    import keras

    check_keras_file(file, name)
    return keras.saving.load_model(file, compile=False, safe_mode=True)


def check_keras_file(
    file: str | os.PathLike[str], name: str | os.PathLike[str] | None = None, *, registered: bool = True
) -> None:
    """Refuses a `.keras` file with anything but known layers and registered classes.

    What a model was compiled with is not looked at, since `load_keras_model` does not restore it; that of a model
    within the model would be restored.

    Args:
        file: the file, on this machine.
        name: its name for messages, if it is a copy.
        registered: whether classes that code of this process has registered are allowed.

    Raises:
        DatasetError: it names another class or function, or refers to other files.
        ValueError: it is not a `.keras` file.
    """
    if models_are_trusted():
        return
    shown = os.fspath(file if name is None else name)
    try:
        with zipfile.ZipFile(file) as archive:
            _check_members(archive, Path(file).stat().st_size, shown)
            architecture = parse_untrusted_json(archive.read(ARCHITECTURE))
            with archive.open(_WEIGHTS) as weights:
                check_hdf5(weights, shown)
    except DatasetError:
        raise
    # `zipfile`, its decoders and h5py raise errors of any kind for damaged bytes, a SystemError among them.
    except Exception as error:
        raise ValueError(f"not a whole .keras file: {error}") from None
    if isinstance(architecture, dict):
        architecture.pop("compile_config", None)
    found = list(dict.fromkeys(_unknown(architecture, registered=registered)))
    if found:
        more = f", and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise DatasetError(
            f"{shown}: contains {', '.join(found[:_SHOWN])}{more}, which may run code or read files. It was not "
            "loaded. Give weights (.weights.h5) or a model of Keras' plain layers; register classes of your own by "
            "@keras.saving.register_keras_serializable() in the module of trainer.model."
        )


def check_hdf5(file: Any, name: str | os.PathLike[str] | None = None) -> None:
    """Refuses an HDF5 file that refers to other files.

    Args:
        file: path or open file.
        name: its name for messages, if it is not a path.

    Raises:
        DatasetError: a link or the numbers of a data set are in another file.
        OSError: it is not an HDF5 file.
    """
    import h5py

    shown = os.fspath(file if name is None else name)

    # HDF5 calls these from C, which takes no exception: what they return ends the walk.
    def link(path: str, found: Any) -> str | None:
        return None if isinstance(found, h5py.HardLink) else f"{path} is a link"

    def elsewhere(path: str, found: Any) -> str | None:
        outside = isinstance(found, h5py.Dataset) and (found.external or found.is_virtual)
        return f"the numbers of {path} are in another file" if outside else None

    with h5py.File(file, "r") as content:
        problem = content.visititems_links(link) or content.visititems(elsewhere)
    if problem:
        raise DatasetError(f"{shown}: {problem}. Weights may not refer to other places.")


def _check_members(archive: zipfile.ZipFile, packed: int, shown: str) -> None:
    names = [member.filename for member in archive.infolist()]
    if set(names) - _MEMBERS or len(set(names)) < len(names):
        other = next((one for one in names if one not in _MEMBERS or names.count(one) > 1), "")
        raise DatasetError(f"{shown}: contains {other!r}, which is no part of a model. Give another file.")
    size = sum(member.file_size for member in archive.infolist())
    large = archive.getinfo(ARCHITECTURE).file_size > _MOST_BYTES
    if large or size > _MOST_UNPACKED * max(packed, 1):
        raise DatasetError(f"{shown}: unpacks to {size:,} bytes, too many for its size. Give another file.")


def _unknown(value: Any, *, registered: bool) -> Iterator[str]:
    """Yields the classes and functions in an architecture that are not allowed."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, Mapping):
            if "class_name" in one and not _is_allowed(one, registered=registered):
                yield f"{one.get('module') or 'an unknown module'}.{one['class_name']}"
            if isinstance(one.get("vocabulary"), str):
                yield f"a vocabulary in the file {one['vocabulary']}"
            left += one.values()
        elif isinstance(one, list):
            left += one


def _is_allowed(one: Mapping[str, Any], *, registered: bool) -> bool:
    name, module, known_as = one["class_name"], one.get("module"), one.get("registered_name")
    if not isinstance(name, str) or not isinstance(module, str | None):
        return False
    if name in _VALUES:
        return True
    if name == _FUNCTION:
        return module in _FUNCTIONS or (registered and any(map(_is_registered, (one.get("config"), known_as))))
    if registered and _is_registered(known_as):
        return True
    in_keras = module is None or module == "keras" or str(module).startswith("keras.")
    return in_keras and (name in _KERAS_CLASSES or module in _OPERATIONS)


def _is_registered(name: Any) -> bool:
    """Returns whether code of this process has registered a class or function under a name."""
    import keras

    found = isinstance(name, str) and keras.saving.get_registered_object(name)
    return bool(found) and not str(getattr(found, "__module__", "")).startswith("keras.")
