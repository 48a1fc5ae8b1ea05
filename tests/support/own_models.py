"""Models as users write them, right and wrong; named by `trainer.model: own_models:<function>`."""

import os

import keras
from keras import layers, ops


@keras.saving.register_keras_serializable(package="own")
class Mean(layers.Layer):
    def call(self, x):
        return ops.mean(x, axis=-1, keepdims=True)


class Unknown(layers.Layer):
    """Not registered, so nothing finds it again."""

    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def call(self, x):
        return x * self.scale


def right(height, width, classes, **others):
    inputs = keras.Input((height, width, 3))
    x = layers.Concatenate()([layers.Conv2D(4, 3, padding="same", activation="relu")(inputs), Mean()(inputs)])
    return keras.Model(inputs, layers.Conv2D(classes, 1, activation="sigmoid")(x))


def normed(height, width, classes, **others):
    """A model that a backend compiles at once, with weights that no gradient moves: means and variances."""
    inputs = keras.Input((height, width, 3))
    x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(4, 3, padding="same")(inputs)))
    return keras.Model(inputs, layers.Conv2D(classes, 1, activation="sigmoid", dtype="float32")(x))


def in_container(**others):
    """As `normed`, but only as the user and on the read-only root of a task's container."""
    user, writable_root = os.getuid(), not os.statvfs("/").f_flag & os.ST_RDONLY
    if user != 1000 or writable_root:
        raise RuntimeError(f"the worker is not in the sandbox: {user=}, {writable_root=}")
    return normed(**others)


def label(height, width, classes, multi, **others):
    inputs = keras.Input((height, width, 3))
    x = layers.Dense(classes, activation="sigmoid" if multi else "softmax")(layers.GlobalAveragePooling2D()(inputs))
    return keras.Model(inputs, x)


def half(height, width, classes, **others):
    inputs = keras.Input((height, width, 3))
    return keras.Model(inputs, layers.Conv2D(classes, 1, strides=2, activation="sigmoid")(inputs))


def logits(height, width, classes, **others):
    inputs = keras.Input((height, width, 3))
    return keras.Model(inputs, layers.Conv2D(classes, 1)(inputs))


def scores(height, width, classes, **others):
    inputs = keras.Input((height, width, 3))
    return keras.Model(inputs, layers.Conv2D(classes, 1)(inputs) * 9)


def sixteen(height, width, classes, **others):
    inputs = keras.Input((height, width, 3))
    return keras.Model(inputs, layers.Conv2D(classes, 1, activation="sigmoid", dtype="float16")(inputs))


def lost(height, width, classes, **others):
    inputs = keras.Input((height, width, 3))
    return keras.Model(inputs, Unknown(0.5)(layers.Conv2D(classes, 1, activation="sigmoid")(inputs)))


def gray(height, width, classes, **others):
    inputs = keras.Input((height, width, 1))
    return keras.Model(inputs, layers.Conv2D(classes, 1, activation="sigmoid")(inputs))


def two(height, width, classes, **others):
    inputs = [keras.Input((height, width, 3)), keras.Input((4,))]
    scale = layers.Reshape((1, 1, 1))(layers.Dense(1, activation="sigmoid")(inputs[1]))
    return keras.Model(inputs, layers.Multiply()([layers.Conv2D(classes, 1, activation="sigmoid")(inputs[0]), scale]))


def nothing(**others):
    return None


def broken(**others):
    raise RuntimeError("no such layer")


NUMBER = 3
