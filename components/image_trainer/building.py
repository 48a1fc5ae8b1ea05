"""The model of a training: one of ours, one with a pretrained encoder, or one of the user's."""

from __future__ import annotations

from typing import Any

import keras

from shardwright.components.image_trainer.encoder_weights import load_encoder_weights
from shardwright.components.image_trainer.encoders import build_encoder, classifier, other_encoders, padded, segmenter
from shardwright.components.image_trainer.models import build_model
from shardwright.components.image_trainer.own_models import build_own_model, import_function
from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.components.image_trainer.texts import Words
from shardwright.config.learning import COMPACT, is_import_path


def model_of(spec: TrainSpec) -> keras.Model:
    """Builds the model of a training, with the weights of its encoder where there are some.

    Raises:
        UsageError: a model of the user's is not as asked for, or the weights are of another architecture.
    """
    recipe, classes, words = spec.recipe, len(spec.classes), Words.of(spec.texts)
    if is_import_path(recipe.model):
        keras.utils.set_random_seed(recipe.seed)
        return build_own_model(
            recipe.model,
            height=spec.height,
            width=spec.width,
            classes=classes,
            task=spec.task,
            multi=spec.multi,
            filters=recipe.filters,
            seed=recipe.seed,
        )
    if recipe.encoder == COMPACT:
        return build_model(
            recipe.model,
            height=spec.height,
            width=spec.width,
            classes=classes,
            filters=recipe.filters,
            seed=recipe.seed,
            multi=spec.multi,
            words=words,
        )
    keras.utils.set_random_seed(recipe.seed)
    encoder = build_encoder(recipe.encoder, padded(spec.height), padded(spec.width))
    if spec.weights_from:
        load_encoder_weights(encoder, spec.weights_from, recipe.encoder, other_encoders(recipe.encoder))
    if spec.task == "segmentation":
        return segmenter(
            encoder, spec.height, spec.width, classes, recipe.filters, words, deeplab=recipe.model == "deeplab"
        )
    activation = "sigmoid" if spec.multi else "softmax"
    return classifier(encoder, spec.height, spec.width, classes, activation, recipe.filters, words)


def load_trained(file: Any, spec: TrainSpec) -> keras.Model:
    """Opens what a training saved; layers of the user's are known once their module was imported."""
    if is_import_path(spec.recipe.model):
        import_function(spec.recipe.model)
    return keras.saving.load_model(file, compile=False)
