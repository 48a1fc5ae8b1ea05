"""The model of a training: one of ours, one with a pretrained encoder, or one of the user's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from shardwright.components.image_trainer.models.compact import (
    ModelShape,
    compact_cnn,
    compact_deeplab,
    compact_unet,
)
from shardwright.components.image_trainer.models.custom import build_own_model, checked_own_model
from shardwright.components.image_trainer.models.encoders import (
    build_encoder,
    classifier,
    load_encoder_weights,
    other_encoders,
    padded_side,
    segmenter,
)
from shardwright.components.image_trainer.models.text_inputs import Words
from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.components.model_files.keras_file import load_keras_model
from shardwright.components.runtime.user_code import import_function
from shardwright.config.trainer import COMPACT, DIGEST, is_import_path

Builder = Callable[[ModelShape], keras.Model]


def build_model(
    name: str,
    *,
    height: int,
    width: int,
    classes: int,
    filters: int,
    seed: int,
    multi: bool = False,
    words: Words | None = None,
) -> keras.Model:
    """Builds a model for float32 images [B, height, width, 3].

    Args:
        name: `unet`, `deeplab` or `cnn`.
        height: rows of the image.
        width: columns of the image.
        classes: number of classes, C.
        filters: channels of the first level; deeper levels have up to 8 times as many.
        seed: seed of the initial weights.
        multi: whether an image may have several classes.
        words: the words it reads; it then takes a dict of `image` and `text`, float32 [B, V].

    Returns:
        `unet`, `deeplab`: one sigmoid per class, float32 [B, height, width, C], since masks may overlap. `cnn`: a
        softmax, float32 [B, C], or with `multi` one sigmoid per class.
    """
    builders: dict[str, Builder] = {"unet": compact_unet, "deeplab": compact_deeplab, "cnn": compact_cnn}
    keras.utils.set_random_seed(seed)
    activation = "softmax" if name == "cnn" and not multi else "sigmoid"
    return builders[name](ModelShape(height, width, classes, filters, activation, words))


def model_of(spec: TrainSpec) -> keras.Model:
    """Builds the model of a training, with the weights of its encoder if some are given.

    Raises:
        UsageError: a custom model does not meet the requirements, or the weights are of another architecture.
    """
    options, words = spec.recipe.trainer, Words.of(spec.texts)
    keras.utils.set_random_seed(options.seed)
    sizes = {"height": spec.height, "width": spec.width, "classes": len(spec.classes), "filters": options.base_filters}
    if is_import_path(options.model):
        own = {"task": spec.task, "multi": spec.multi, "seed": options.seed, **sizes}
        return build_own_model(options.model, options.outputs, names=spec.classes, code=spec.recipe.code, **own)
    if options.model.startswith(DIGEST):
        return checked_own_model(
            load_keras_model(spec.weights_from),
            "model",
            image=(spec.height, spec.width),
            classes=spec.classes,
            masks=spec.task == "segmentation",
            multi=spec.multi,
            returned=options.outputs,
        )
    if options.encoder == COMPACT:
        return build_model(options.model, multi=spec.multi, seed=options.seed, words=words, **sizes)
    encoder = build_encoder(options.encoder, padded_side(spec.height), padded_side(spec.width))
    if spec.weights_from:
        load_encoder_weights(encoder, spec.weights_from, options.encoder, other_encoders(options.encoder))
    segments = spec.task == "segmentation"
    shape = ModelShape(**sizes, activation="sigmoid" if segments or spec.multi else "softmax", words=words)
    return segmenter(encoder, shape, deeplab=options.model == "deeplab") if segments else classifier(encoder, shape)


def load_trained(file: Any, spec: TrainSpec) -> keras.Model:
    """Opens a saved model; custom layers are registered when their module is imported."""
    if is_import_path(spec.recipe.trainer.model):
        import_function(spec.recipe.trainer.model)
    return load_keras_model(file)
