"""A model that Shardwright did not export, opened for predictions: a Keras file, or a SavedModel of TensorFlow.

Such a model says how large its images are and how many outputs it has. How pixels become numbers, which class an output
is, and whether it gives probabilities, it mostly does not say: the call states them, or a dataset that the model was
trained on. With these facts the model gets the signatures that an export of ours has, with the same code, so all else
is as for our models. The answers of every batch are checked: numbers that are no probabilities end the prediction.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from shardwright.components.image_trainer.spec import TrainRecipe, TrainSpec
from shardwright.components.image_transform.transform_recipe import ingest_image_options
from shardwright.components.model_files.keras_file import load_keras_model
from shardwright.components.model_files.saved_model import load_saved_model
from shardwright.components.model_files.shapes import last_number, shape_fits, shape_text
from shardwright.components.predictor.exported_model import ExportedModel, is_exported, model_folder, open_model
from shardwright.config import EvaluatorConfig, LoaderConfig, TrainerConfig
from shardwright.config.images import KEEP
from shardwright.config.loader import NORMALIZATIONS
from shardwright.dataset.manifest import MULTI
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.train_statistics import dataset_statistics
from shardwright.errors import CheckFailed, ConfigError, DatasetError, UsageError
from shardwright.loader.dataset_info import image_size

KERAS_SUFFIX, _OLD_SUFFIXES = ".keras", (".h5", ".hdf5")
STRETCH = "stretch"
LOGITS, ACTIVATIONS = "logits", ("sigmoid", "softmax")
# Task of a model by the number of axes of its answers.
_TASKS = {4: "segmentation", 2: "classification"}
_NEARLY = 1e-3


@dataclass(frozen=True)
class Stated:
    """What a call states about a model that Shardwright did not export.

    Attributes:
        preprocess: how its pixels become numbers: a value of `loader.normalize`.
        dataset: folder of the dataset that it was trained on; it has the classes and, if it is a transformed one, the
            size and the resize policy of the images and the figures of `preprocess: dataset`.
        classes: names in the order of the outputs, where there is no dataset.
        size: height and width of its images, where it takes any.
        outputs: `logits`, `probabilities`, or `auto`: by its last activation.
    """

    preprocess: str = ""
    dataset: str = ""
    classes: tuple[str, ...] = ()
    size: tuple[int, int] | None = None
    outputs: str = "auto"


def open_any_model(place: str, stated: Stated, *, trusted: bool = False) -> ExportedModel:
    """Opens an exported model, or with the facts that a call states any other one.

    Args:
        place: a `.keras` file, or see `model_folder`.
        stated: what the call says about a model that Shardwright did not export.
        trusted: see `check_saved_model`.

    Raises:
        UsageError: there is no model, a fact is missing, or the shapes do not fit.
        DatasetError: the model does more than compute, or is damaged.
    """
    if place.endswith(_OLD_SUFFIXES) and os.path.isfile(place):
        raise UsageError(
            f"{place}: is in Keras' old format HDF5, which is not read. Open it where it was made, and save it as a "
            f"{KERAS_SUFFIX} file: keras.models.load_model({os.path.basename(place)!r}).save('model{KERAS_SUFFIX}')."
        )
    place = place if place.endswith(KERAS_SUFFIX) else os.fspath(model_folder(place))
    if not place.endswith(KERAS_SUFFIX) and is_exported(place):
        if replace(stated, dataset="") != Stated():
            raise UsageError(
                f"{place}: Shardwright exported this model, which has its classes, size and preparation. Leave out "
                "--preprocess, --classes, --size and --outputs."
            )
        return open_model(place, trusted=trusted)
    network = _keras_network(place) if place.endswith(KERAS_SUFFIX) else _saved_network(place, trusted=trusted)
    spec = _spec_of(place, network, stated)
    import tensorflow as tf

    from shardwright.components.image_trainer.export.signatures import PIXELS, SERVING_DEFAULT, FlippedMean, ServedModel

    if stated.outputs == LOGITS and network.activation in ACTIVATIONS:
        raise UsageError(f"--outputs logits: {place} ends in a {network.activation}. Leave the option out.")
    if stated.outputs == LOGITS or (stated.outputs == "auto" and network.activation == "linear"):
        network.last = tf.sigmoid if spec.task == "segmentation" or spec.multi else tf.nn.softmax
    served = ServedModel(FlippedMean(network, spec), spec)
    signatures = served.signatures()
    return ExportedModel(
        folder=place,
        task=spec.task,
        multi=spec.multi,
        classes=spec.classes,
        height=spec.height,
        width=spec.width,
        resize=spec.resize,
        fingerprint="",
        ingested=spec.ingested,
        submission="",
        loaded=SimpleNamespace(
            signatures={name: _checked(place, signatures[name]) for name in (SERVING_DEFAULT, PIXELS)},
            kept=(served, network),
        ),
    )


@dataclass
class _Network:
    """What is known of a model by itself.

    Attributes:
        function: float32 [batch, height, width, 3] to [batch, height, width, classes] or [batch, classes].
        takes: shape of its images; None for any number.
        gives: shape of its answers.
        activation: the last one: `sigmoid`, `softmax`, `linear`, or empty if unknown.
        owner: has the variables, which TensorFlow's functions do not keep.
        last: what is done to its answers; None: nothing.
    """

    function: Callable[[Any], Any]
    takes: Sequence[int | None]
    gives: Sequence[int | None]
    activation: str
    owner: Any
    last: Callable[[Any], Any] | None = None

    def __call__(self, images: Any, *, training: bool) -> Any:
        import tensorflow as tf

        del training
        answers = tf.cast(self.function(images), tf.float32)
        return self.last(answers) if self.last else answers


def _keras_network(place: str) -> _Network:
    if not os.path.isfile(place):
        raise UsageError(f"{place}: there is no such file. Give a .keras file, or the folder of a SavedModel.")
    # Where nothing else has chosen: the signatures are TensorFlow's.
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    import keras

    if keras.backend.backend() != "tensorflow":
        raise UsageError(
            f"{place}: Keras runs on {keras.backend.backend()} here, and predictions need TensorFlow. Set "
            "KERAS_BACKEND=tensorflow, or save the model by model.export(FOLDER) and give that folder."
        )
    from shardwright.components.image_trainer.models.logits import last_activation

    try:
        model = load_keras_model(place)
    except DatasetError:
        raise
    except Exception as error:
        # Keras raises errors of many kinds for a damaged file, and for one of another version.
        problem = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise DatasetError(f"{place}: Keras {keras.__version__} cannot open it ({problem}). Save it again.") from None
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        raise UsageError(f"{place}: has {len(model.inputs)} inputs and {len(model.outputs)} outputs. One of each fits.")
    takes, gives = model.inputs[0].shape, model.outputs[0].shape
    # What a file does not tell, such as the activation of a model within the model, stays unknown.
    return _Network(lambda images: model(images, training=False), takes, gives, last_activation(model), model)


def _saved_network(place: str, *, trusted: bool) -> _Network:
    import tensorflow as tf

    try:
        loaded = load_saved_model(place, trusted=trusted)
    except (OSError, ValueError, tf.errors.OpError) as error:
        raise DatasetError(
            f"{place}: cannot be opened ({str(error).splitlines()[0][:200]}). Export it again."
        ) from None
    signature = loaded.signatures.get("serving_default")
    if signature is None:
        names = ", ".join(sorted(loaded.signatures)) or "none"
        raise UsageError(f"{place}: has no signature 'serving_default'; it has: {names}. Export it by model.export().")
    inputs, outputs = signature.structured_input_signature[1], signature.structured_outputs
    if len(inputs) != 1 or len(outputs) != 1:
        raise UsageError(
            f"{place}: its signature takes {', '.join(sorted(inputs))} and gives {', '.join(sorted(outputs))}. One of "
            "each fits."
        )
    ((taken, spec),), ((given, answer),) = inputs.items(), outputs.items()
    if spec.dtype not in (tf.float32, tf.float16, tf.bfloat16) or spec.shape.rank is None or answer.shape.rank is None:
        raise UsageError(
            f"{place}: takes {spec.dtype.name} {spec.shape} and gives {answer.shape}; it must take float32 [batch, "
            "height, width, 3], and give [batch, height, width, classes] or [batch, classes]."
        )

    def call(images: Any) -> Any:
        return signature(**{taken: tf.cast(images, spec.dtype)})[given]

    return _Network(call, spec.shape.as_list(), answer.shape.as_list(), "", loaded)


def _spec_of(place: str, network: _Network, stated: Stated) -> TrainSpec:
    """Returns what a training of ours would have exported the model with.

    Raises:
        UsageError: a fact is missing, or the shapes do not fit each other; the message has both.
    """
    takes, gives = network.takes, network.gives
    if len(takes) != 4 or takes[0] is not None or takes[3] != 3:
        raise UsageError(f"{place}: takes {shape_text(takes)}; images are given as [batch, height, width, 3].")
    if len(gives) not in _TASKS or gives[-1] is None:
        raise UsageError(
            f"{place}: gives {shape_text(gives)}; for masks that must be [batch, height, width, classes], for labels "
            "[batch, classes]."
        )
    task = _TASKS[len(gives)]
    dataset = ImageDataset.open(stated.dataset) if stated.dataset else None
    transformed = dataset is not None and dataset.manifest.kind == "transform"
    classes = stated.classes or (dataset.manifest.classes if dataset else ())
    sizes = {"the model": tuple(takes[1:3])}
    if stated.size is not None:
        sizes["--size"] = stated.size
    if dataset is not None and transformed:
        sizes[stated.dataset] = image_size(dataset)
    known = [(height, width) for height, width in sizes.values() if height is not None and width is not None]
    _check_stated(place, network, stated, classes=classes, sized=bool(known))
    height, width = known[0]
    if len(set(known)) > 1:
        shapes = "; ".join(
            f"{name}: {shape_text((None, *size, 3))}" for name, size in sizes.items() if None not in size
        )
        raise UsageError(f"{place}: the sizes of its images differ: {shapes}.")
    masks = task == "segmentation"
    _check_answers(place, network, stated, classes, (height, width), dataset.manifest.task if dataset else task)
    mean = std = None
    if stated.preprocess == "dataset":
        if not transformed:
            raise UsageError("--preprocess dataset: needs --dataset, a transformed one, which has mean and deviation.")
        figures = dataset_statistics(stated.dataset)
        mean, std = tuple(figures["mean"]), tuple(figures["std"])
    resize = dataset.manifest.recipe["resize"] if dataset is not None and transformed else STRETCH
    return TrainSpec(
        recipe=TrainRecipe(TrainerConfig(), LoaderConfig(normalize=stated.preprocess), EvaluatorConfig()),
        dataset="",
        dataset_fingerprint="",
        task=task,
        classes=tuple(classes),
        height=height,
        width=width,
        resize=STRETCH if resize == KEEP else resize,
        mean=mean,
        std=std,
        output="",
        export="",
        ingested=_ingested(dataset) if dataset is not None else {},
        multi=not masks and (dataset.manifest.labels == MULTI if dataset else network.activation == "sigmoid"),
    )


def _check_answers(
    place: str, network: _Network, stated: Stated, classes: Sequence[str], size: tuple[int, int], task: str
) -> None:
    """Refuses a model whose answers to images of a size have not the shape that a task and its classes ask for."""
    import tensorflow as tf

    gives, masks = network.gives, task == "segmentation"
    wanted = (None, *size, len(classes)) if masks else (None, len(classes))
    if None in gives[1:]:  # Open, as the images' sides are: what it gives for these.
        try:
            gives = (None, *network.function(tf.zeros((1, *size, 3))).shape[1:])
        except (ValueError, tf.errors.OpError) as error:
            problem = str(error).strip().splitlines()[0][:200]
            raise UsageError(f"{place}: takes no images of {size[0]}x{size[1]} pixels ({problem}).") from None
    if not (gives[0] is None and shape_fits(gives, wanted)):
        words = last_number(classes, masks)
        if any("," in name for name in stated.classes):
            words += ". A name holds a comma; --classes takes names with spaces between them: --classes cat dog"
        raise UsageError(f"{place}: gives {shape_text(gives)}, not {shape_text(wanted)}: {words}.")


def _ingested(dataset: ImageDataset) -> dict[str, Any]:
    """Returns the ingest's image options of the dataset that a model was trained on, where serving can repeat them."""
    with suppress(ConfigError, DatasetError):  # A subset has no statistics.
        if dataset.manifest.kind == "transform":
            return dict(dataset_statistics(dataset.root).get("ingested", {}))
        return ingest_image_options(dataset.manifest.recipe)
    return {}


def _check_stated(place: str, network: _Network, stated: Stated, *, classes: Sequence[str], sized: bool) -> None:
    """Refuses a call that leaves out what the model does not say; the message has all of it."""
    missing = []
    if stated.preprocess not in NORMALIZATIONS:
        missing.append(f"--preprocess, how pixels become numbers: {', '.join(NORMALIZATIONS)}")
    if not classes:
        missing.append("--classes, their names in the order of the outputs, or --dataset, which it was trained on")
    if not sized:
        missing.append(f"--size HEIGHT WIDTH, since it takes {shape_text(network.takes)}")
    if len(network.gives) == 2 and not stated.dataset and network.activation not in ACTIVATIONS:
        missing.append("--dataset, which says whether an image has one class or several")
    if missing:
        raise UsageError(f"{place}: Shardwright did not export this model. State {'; and '.join(missing)}.")


def _checked(place: str, signature: Any) -> Callable[..., Any]:
    """Returns a signature that refuses answers that are no probabilities."""

    def call(**inputs: Any) -> Any:
        answers = signature(**inputs)
        values = np.asarray(answers["probabilities"])
        if not np.isfinite(values).all() or values.min() < -_NEARLY or values.max() > 1 + _NEARLY:
            raise CheckFailed(
                f"{place}: answers from {values.min():.3g} to {values.max():.3g}, which are no probabilities. State "
                "--outputs logits if they are logits; otherwise --preprocess may be wrong."
            )
        return answers

    return call
