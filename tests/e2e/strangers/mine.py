"""Functions that a TFX author writes for stock components: Trainer, Tuner, and those that ImageTrainer calls."""

import keras
import keras_tuner
import tensorflow as tf
import tensorflow_transform as tft
from tfx import v1 as tfx
from tfx_bsl.public import tfxio

from shardwright import loader

SIDE, CLASSES, BATCH = 16, 2, 4
LABEL, PIXELS = "image/class/label", "image/encoded"


def _pixels(encoded):
    def one(data):
        image = tf.io.decode_image(data, channels=3, expand_animations=False)
        return tf.image.resize(image, (SIDE, SIDE)) / 255.0

    return tf.map_fn(one, tf.reshape(encoded, [-1]), fn_output_signature=tf.TensorSpec((SIDE, SIDE, 3), tf.float32))


def _batches(fn_args, files):
    """Batches of ImageExampleGen's shards, as TFX's DataAccessor reads them."""
    schema = tfx.utils.parse_pbtxt_file(fn_args.schema_path, tfx_schema())
    options = tfxio.TensorFlowDatasetOptions(batch_size=BATCH, label_key=LABEL, num_epochs=1)
    read = fn_args.data_accessor.tf_dataset_factory(files, options, schema)
    return read.map(lambda features, label: (_pixels(features[PIXELS]), tf.reshape(label, [-1])))


def tfx_schema():
    from tensorflow_metadata.proto.v0 import schema_pb2

    return schema_pb2.Schema()


def _model(width=4):
    layers = [keras.Input((SIDE, SIDE, 3)), keras.layers.Conv2D(width, 3), keras.layers.GlobalAveragePooling2D()]
    model = keras.Sequential([*layers, keras.layers.Dense(CLASSES, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def masks(height, width, classes, **others):
    """A segmenter that is traced at once."""
    inputs = keras.Input((height, width, 3))
    return keras.Model(inputs, keras.layers.Conv2D(classes, 3, padding="same", activation="sigmoid")(inputs))


def tuner_fn(fn_args):
    tuner = keras_tuner.RandomSearch(
        lambda parameters: _model(parameters.Choice("width", [2, 6])),
        objective="val_accuracy",
        max_trials=1,
        directory=fn_args.working_dir,
        project_name="tuned",
    )
    batches, held_out = (_batches(fn_args, files) for files in (fn_args.train_files, fn_args.eval_files))
    return tfx.components.TunerFnResult(tuner=tuner, fit_kwargs={"x": batches, "validation_data": held_out})


class _Served(tf.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "examples")])
    def serve(self, examples):
        parsed = tf.io.parse_example(examples, {PIXELS: tf.io.FixedLenFeature([], tf.string)})
        return {"probabilities": self.model(_pixels(parsed[PIXELS]))}


def run_fn(fn_args):
    """Trains on the examples themselves, with the width that the Tuner found."""
    model = _model(fn_args.hyperparameters["values"]["width"])
    model.fit(_batches(fn_args, fn_args.train_files), validation_data=_batches(fn_args, fn_args.eval_files), verbose=0)
    served = _Served(model)
    tf.saved_model.save(served, fn_args.serving_model_dir, signatures={"serving_default": served.serve})


def run_on_batches(fn_args):
    """For `ImageTrainer(run_fn=...)`: trains on the loader's batches of ImageTransform's dataset."""
    epochs = fn_args.custom_config["recipe"]["trainer"]["epochs"]
    dataset = fn_args.train_files[0].rpartition("/Split-")[0]
    graph = tft.TFTransformOutput(fn_args.transform_output)
    assert "image" in graph.transformed_feature_spec()
    model = _model()
    model.fit(loader.load(dataset, "train", BATCH).map(_small), epochs=epochs, verbose=0)
    served = _Served(model)
    tf.saved_model.save(served, fn_args.serving_model_dir, signatures={"serving_default": served.serve})


def _small(images, labels):
    return tf.image.resize(images, (SIDE, SIDE)), labels


def callbacks(folder):
    return [keras.callbacks.CSVLogger(f"{folder}/epochs.csv")]
