"""The signatures of the exported model: raw image bytes for serving, serialized examples for evaluation.

Both begin with the pixel operations of the transform and the loader, so a served image is prepared like a training
image. The evaluation signature takes the examples of ImageExampleGen. Their run lengths at the image's own size are the
truth; it is sampled to the model's size by the same geometry as the pixels.

With test-time flips the answer is the mean over the image and its flipped copies, flipped back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from shardwright.components.image_trainer.export.mask_ops import (
    PNG_OUTPUT,
    RLE_OUTPUT,
    encode_masks,
    remove_small,
    to_png,
    to_run_lengths,
)
from shardwright.components.image_trainer.models.text_inputs import IMAGE, TEXT, pixels_of, vocabulary_file, with_pixels
from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.components.image_transform.serving_preprocess import as_ingested
from shardwright.dataset.manifest import IGNORED, mask_feature
from shardwright.evaluation.thresholds import Thresholds
from shardwright.images import tf_ops
from shardwright.loader.text_features import tokenize, word_counts

Tensor = Any

SERVING_DEFAULT, EXAMPLES, PIXELS = "serving_default", "examples", "pixels"
EMBEDDING = "embedding"
PARTIAL = "partial"
_AXES = {"left_right": 2, "up_down": 1}
# Positions in an error.
_MOST_SHOWN = 20


class FlippedMean:
    """A model that also predicts for flipped images, traced once for all that uses it.

    Args:
        model: Keras model on the TensorFlow backend, images [B, H, W, 3], and possibly words, to probabilities: [B, H,
            W, C] of a segmentation, which are flipped back, or [B, C].
        spec: its training. Each flip of `evaluator.flips` is one more prediction.
    """

    def __init__(self, model: Any, spec: TrainSpec) -> None:
        self._model, self._masks = model, spec.task == "segmentation"
        self._axes = [_AXES[flip] for flip in spec.recipe.evaluator.flips]
        inputs: Any = tf.TensorSpec([None, spec.height, spec.width, 3], tf.float32)
        if spec.texts:
            words = sum(column.vocabulary for column in spec.texts)
            inputs = {IMAGE: inputs, TEXT: tf.TensorSpec([None, words], tf.float32)}
        # A model of a user may have conditions on tensors.
        self._traced = tf.function(self._mean, input_signature=[inputs], autograph=True)

    @property
    def variables(self) -> list[Any]:
        """The variables of the model, as TensorFlow's."""
        return [variable.value for variable in getattr(self._model, "variables", ())]

    def __call__(self, images: Any) -> Any:
        """Returns probabilities, float32, for images, float32, normalized."""
        return self._traced(images)

    def encoder(self) -> Any:
        """Returns a model from images to embeddings, float32 [B, D]; `None` where the model has no map of features.

        An embedding is the mean of the encoder's last map. A classifier ends after that. A segmenter goes on, so there
        it is the last one with the most channels at the lowest resolution. One pixel is none: networks with squeeze and
        excitation have such tensors everywhere.
        """
        maps = [tensor for layer in getattr(self._model, "layers", ()) for tensor in _maps(layer)]
        if self._masks:
            maps = [tensor for tensor in maps if tensor.shape[1] * tensor.shape[2] > 1]
            # The sort is stable.
            maps.sort(key=lambda tensor: (-tensor.shape[1] * tensor.shape[2], tensor.shape[3]))
        if not maps:
            return None
        try:
            return keras.Model(self._model.inputs, keras.ops.mean(keras.ops.cast(maps[-1], "float32"), (1, 2)))
        except ValueError:  # The layers of a model inside of the model are in no graph with its inputs.
            return None

    def _mean(self, images: Any) -> Any:
        parts = [self._model(images, training=False)]
        for axis in self._axes:
            mirrored = with_pixels(images, tf.reverse(pixels_of(images), [axis]))
            flipped = self._model(mirrored, training=False)
            parts.append(tf.reverse(flipped, [axis]) if self._masks else flipped)
        return tf.add_n(parts) / float(len(parts))


def sample_runs(runs: Sequence[Tensor], source_size: tuple[Tensor, Tensor], spec: TrainSpec) -> Tensor:
    """Samples the masks of one image at the model's size, without drawing them at the image's size.

    Every pixel of the output looks up its source pixel (nearest, half-pixel centers) in the sorted runs. The result is
    the same as drawing the runs and gathering pixels.

    Args:
        runs: per class int64 [2n] of start, length, ...: column by column, from 0, sorted and disjoint.
        source_size: rows and columns of the image, int64 scalars.
        spec: height, width and resize policy.

    Returns:
        bool [height, width, C]; False in the borders of `letterbox`.
    """
    rows_of_source, columns_of_source = source_size
    plan = tf_ops.plan_geometry(spec.resize, rows_of_source, columns_of_source, spec.height, spec.width)
    rows, inside_rows = _sampled(plan.crop_top, plan.crop_height, plan.resized_height, plan.pad_top, spec.height)
    columns, inside_columns = _sampled(plan.crop_left, plan.crop_width, plan.resized_width, plan.pad_left, spec.width)
    places = tf.reshape(columns[tf.newaxis, :] * rows_of_source + rows[:, tf.newaxis], [-1])
    inside = inside_rows[:, tf.newaxis] & inside_columns[tf.newaxis, :]
    masks = []
    for flat in runs:
        # With a run of length 0 before all others, there is always a run to the left.
        pairs = tf.concat([tf.zeros([1, 2], tf.int64), tf.reshape(flat, [-1, 2])], 0)
        starts, ends = pairs[:, 0], pairs[:, 0] + pairs[:, 1]
        last = tf.searchsorted(starts, places, side="right", out_type=tf.int64) - 1
        masks.append(tf.reshape(places < tf.gather(ends, last), [spec.height, spec.width]) & inside)
    return tf.stack(masks, axis=-1)


def _sampled(begin: Tensor, extent: Tensor, resized: Tensor, pad: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Returns the source position of every output row or column, int64 [size], and whether it exists, bool [size]."""
    places = tf.range(size, dtype=tf.int64) - pad
    inside = (places >= 0) & (places < resized)
    return begin + (2 * tf.where(inside, places, 0) + 1) * extent // (2 * resized), inside


def decode_each(image_bytes: Tensor, decode: Callable[[Tensor], Tensor], shape: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Decodes the images of a request, and passes over those that cannot be decoded.

    An operation that fails ends the call of a graph, so one damaged file would leave the others without an answer, and
    the error without its position. Only a pipeline of tf.data goes on.

    Args:
        image_bytes: string [N].
        decode: string scalar to uint8 of `shape`.
        shape: of an image.

    Returns:
        uint8 [N, *shape], 0 where the image cannot be decoded, and whether it was decoded: bool [N].
    """
    count = tf.size(image_bytes, tf.int64)
    files = tf.data.Dataset.from_tensor_slices((tf.range(count), image_bytes))
    decoded = files.map(lambda place, encoded: (place, decode(encoded))).ignore_errors()
    # A single element cannot be empty. This one also stands for every image that was not decoded.
    blank = tf.data.Dataset.from_tensors((count, tf.zeros(shape, tf.uint8)))
    places, images = decoded.concatenate(blank).batch(count + 1).get_single_element()
    last = tf.size(places, tf.int64) - 1
    rows = tf.tensor_scatter_nd_update(tf.fill([count + 1], last), places[:, tf.newaxis], tf.range(last + 1))[:count]
    return tf.ensure_shape(tf.gather(images, rows), [None, *shape]), rows < last


class ServedModel(tf.Module):
    """A trained model with its preparation of images, ready for `tf.saved_model.save`.

    Args:
        model: images to probabilities.
        spec: the training.
        chosen: the thresholds; by default those of the recipe.
    """

    def __init__(self, model: FlippedMean, spec: TrainSpec, chosen: Thresholds | None = None) -> None:
        super().__init__()
        # TensorFlow's variables are saved, not the Keras model. TF Serving and TFX's BulkInferrer load a SavedModel as
        # a graph; then Keras' own variables are restored as copies that no signature reads.
        self._weights = model.variables
        self._predict, self._spec = model, spec
        self._encoder = None if spec.texts else model.encoder()
        recipe = spec.recipe
        self._chosen = chosen or Thresholds.fixed(len(spec.classes), recipe.threshold, recipe.min_area)
        self._thresholds = tf.constant(self._chosen.thresholds, tf.float32)
        self._classes = tf.constant(list(spec.classes))
        # As attributes, so that the words are saved with the model.
        self._tables = []
        for column in spec.texts:
            words = vocabulary_file(spec.vocabularies, column).read_text(encoding="utf-8").split("\n")[:-1]
            places = tf.range(len(words), dtype=tf.int64)
            initial = tf.lookup.KeyValueTensorInitializer(tf.constant(words), places)
            self._tables.append(tf.lookup.StaticHashTable(initial, -1))  # -1 for any other word

    def signatures(self) -> dict[str, Any]:
        """Returns concrete functions by the names of the signatures."""
        inputs = [tf.TensorSpec([None], tf.string, "image_bytes")]
        if self._spec.texts:
            inputs.append(tf.TensorSpec([None, len(self._spec.texts)], tf.string, "texts"))
        segmentation = self._spec.task == "segmentation"
        found = {
            SERVING_DEFAULT: _traced(self._serve, *inputs),
            PARTIAL: _traced(self._serve_readable, *inputs),
            EXAMPLES: _traced(self._examine, tf.TensorSpec([None], tf.string, "examples")),
        }
        # For converters to other formats, which have no decoder of files, and for images that are stored in a dataset.
        pixels = tf.TensorSpec([None, self._spec.height, self._spec.width, 3], tf.uint8, "pixels")
        found[PIXELS] = _traced(self._serve_pixels, pixels, *inputs[1:])
        if self._encoder is not None:
            found[EMBEDDING] = _traced(self._embed, pixels)
        if segmentation:
            # They call the first one, so the model is traced once.
            for name, output, encode in (("png", PNG_OUTPUT, to_png), ("rle", RLE_OUTPUT, to_run_lengths)):
                answer = _encoded(found[SERVING_DEFAULT], output, encode)
                found[name] = _traced(answer, *inputs)
        return found

    def _serve(self, image_bytes: Tensor, texts: Tensor | None = None) -> dict[str, Tensor]:
        """Answers a request in which every image can be decoded, and refuses any other."""
        images, readable = self._decode(image_bytes)
        problem = (
            "image_bytes: these images, counted from 0, are not JPEG or PNG, or are damaged; the request is refused. "
            f"Leave them out, or ask for the signature {PARTIAL!r}, which answers the others:"
        )
        positions = tf.reshape(tf.where(~readable), [-1])
        some = tf.debugging.Assert(tf.reduce_all(readable), [problem, positions], summarize=_MOST_SHOWN)
        with tf.control_dependencies([some]):
            images = tf.identity(images)
        return self._decide(self._probabilities(images, texts))

    def _serve_readable(self, image_bytes: Tensor, texts: Tensor | None = None) -> dict[str, Tensor]:
        """Answers for the images that can be decoded, and says which: `readable`, uint8 of 0 and 1, [N].

        The others have NaN as probabilities, an empty text as the label, and 0 as masks and classes.
        """
        images, readable = self._decode(image_bytes)
        probabilities = self._probabilities(images, texts)
        where = tf.reshape(readable, [-1, 1, 1, 1] if self._spec.task == "segmentation" else [-1, 1])
        outputs = self._decide(tf.where(where, probabilities, float("nan")))
        if "labels" in outputs:
            outputs["labels"] = tf.where(readable, outputs["labels"], "")
        return {**outputs, "readable": tf.cast(readable, tf.uint8)}

    def _decide(self, probabilities: Tensor) -> dict[str, Tensor]:
        """Returns the probabilities, float32 [N, ..., C], and what follows from them.

        Of a segmentation, masks, uint8 of 0 and 1, [N, height, width, C] in the model's size; otherwise the names of
        the likeliest classes, string [N], or which classes an image has, uint8 of 0 and 1, [N, C].
        """
        if self._spec.task == "segmentation":
            masks = tf.map_fn(self._masks, probabilities, fn_output_signature=tf.bool)
            masks.set_shape(probabilities.shape)
            return {"probabilities": probabilities, "masks": tf.cast(masks, tf.uint8)}
        if self._spec.multi:
            return {"probabilities": probabilities, "classes": tf.cast(probabilities >= self._thresholds, tf.uint8)}
        return {"probabilities": probabilities, "labels": tf.gather(self._classes, tf.argmax(probabilities, -1))}

    def _serve_pixels(self, pixels: Tensor, texts: Tensor | None = None) -> dict[str, Tensor]:
        """Probabilities, float32, of images that have the model's size: uint8 [N, height, width, 3], RGB."""
        return {"probabilities": self._probabilities(pixels, texts)}

    def _embed(self, pixels: Tensor) -> dict[str, Tensor]:
        """Embeddings, float32 [N, D], of images that have the model's size: uint8 [N, height, width, 3], RGB."""
        images = tf_ops.normalize(pixels, self._spec.recipe.loader.normalize, self._spec.mean, self._spec.std)
        encode: Any = self._encoder
        return {EMBEDDING: encode(images, training=False)}

    def _examine(self, examples: Tensor) -> dict[str, Tensor]:
        """Returns what metrics are made of, image by image: TFMA's batches may have a thousand.

        Of masks, pixels per image and class, float32 [N, C], in `intersection`, `prediction` and `truth`, and
        `kaggle_dice`; of several classes `prediction` and `truth`, 0 or 1, float32 [N, C]; of one class its number in
        `label`, int64 [N], and `probabilities`, float32 [N, C].
        """
        of_classes = tf.TensorSpec([len(self._spec.classes)], tf.float32)
        if self._spec.task == "segmentation":
            names: tuple[str, ...] = ("intersection", "prediction", "truth", "kaggle_dice")
        else:
            names = ("prediction", "truth") if self._spec.multi else ("probabilities",)
        outputs = dict.fromkeys(names, of_classes)
        if names == ("probabilities",):
            outputs["label"] = tf.TensorSpec([], tf.int64)
        return tf.map_fn(self._example, examples, fn_output_signature=outputs, parallel_iterations=2)

    def _example(self, example: Tensor) -> dict[str, Tensor]:
        spec = self._spec
        lists = tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)
        scalar = tf.io.FixedLenFeature([], tf.int64)
        texts = tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True)
        features: dict[str, Any] = {"image/encoded": tf.io.FixedLenFeature([], tf.string)}
        features.update({column.feature: texts for column in spec.texts})
        names = [*spec.classes, *([IGNORED] if spec.ignore else [])]
        if spec.task == "segmentation":
            features.update({"image/height": scalar, "image/width": scalar})
            features.update({mask_feature(name): lists for name in names})
        else:
            features["image/class/label"] = lists if spec.multi else scalar
        parsed = tf.io.parse_single_example(example, features)
        joined = [tf.strings.reduce_join(parsed[column.feature], separator=" ") for column in spec.texts]
        pixels = self._resized(parsed["image/encoded"])[tf.newaxis]
        probabilities = self._probabilities(pixels, tf.stack(joined)[tf.newaxis] if joined else None)[0]
        if spec.task == "segmentation":
            runs = [parsed[mask_feature(name)] for name in names]
            truth = sample_runs(runs, (parsed["image/height"], parsed["image/width"]), spec)
            return _mask_sums(self._masks(probabilities), truth, ignore=spec.ignore)
        labels = parsed["image/class/label"]
        if not spec.multi:
            return {"probabilities": probabilities, "label": labels}
        # A list of classes may repeat one.
        truth = tf.minimum(tf.reduce_sum(tf.one_hot(labels, len(spec.classes)), axis=0), 1.0)
        return {"prediction": tf.cast(probabilities >= self._thresholds, tf.float32), "truth": truth}

    def _masks(self, probabilities: Tensor) -> Tensor:
        """Turns probabilities of an image, float32 [height, width, C], into masks, bool of the same shape."""
        masks = tf.ensure_shape(
            probabilities >= self._thresholds, [self._spec.height, self._spec.width, len(self._spec.classes)]
        )
        areas = self._chosen.min_areas
        return remove_small(masks, areas) if max(areas) > 1 else masks

    def _probabilities(self, pixels: Tensor, texts: Tensor | None) -> Tensor:
        """Returns probabilities for images in the model's size: uint8 [N, height, width, 3], RGB."""
        spec = self._spec
        images = tf_ops.normalize(pixels, spec.recipe.loader.normalize, spec.mean, spec.std)
        if texts is None:
            return self._predict(images)
        vectors = tf.map_fn(self._counted, texts, fn_output_signature=tf.float32)
        vectors.set_shape([None, sum(column.vocabulary for column in spec.texts)])
        return self._predict({IMAGE: images, TEXT: vectors})

    def _counted(self, texts: Tensor) -> Tensor:
        """Counts the words of the vocabularies in the texts of one image, string [columns]: float32 [V]."""
        vectors = []
        for number, (column, table) in enumerate(zip(self._spec.texts, self._tables, strict=True)):
            words = tokenize(texts[tf.newaxis, number : number + 1]).values
            places = table.lookup(words[: column.length] if column.length else words)
            vectors.append(word_counts(tf.boolean_mask(places, places >= 0), column.vocabulary))
        return tf.concat(vectors, axis=0)

    def _decode(self, image_bytes: Tensor) -> tuple[Tensor, Tensor]:
        """Decodes the files of a request; see `decode_each`."""
        some = tf.debugging.Assert(
            tf.size(image_bytes) > 0, ["image_bytes: the request has no image. Send one or more."]
        )
        with tf.control_dependencies([some]):
            image_bytes = tf.identity(image_bytes)
        shape = (self._spec.height, self._spec.width, 3)
        return decode_each(image_bytes, lambda file: self._resized(as_ingested(file, self._spec.ingested)), shape)

    def _resized(self, encoded: Tensor) -> Tensor:
        return tf_ops.decode_resized(encoded, self._spec.height, self._spec.width, self._spec.resize)


def _mask_sums(predicted: Tensor, truth: Tensor, *, ignore: bool) -> dict[str, Tensor]:
    """Counts the pixels of masks, bool [height, width, C]; with `ignore`, what is ignored comes last in the truth."""
    if ignore:
        counted = ~truth[..., -1:]
        truth, predicted = truth[..., :-1] & counted, predicted & counted
    masks = (predicted & truth, predicted, truth)
    shared, chosen, true = (tf.cast(tf.math.count_nonzero(m, axis=(0, 1)), tf.float32) for m in masks)
    kaggle = tf.where(chosen + true > 0, 2 * shared / tf.maximum(chosen + true, 1.0), 1.0)
    return {"intersection": shared, "prediction": chosen, "truth": true, "kaggle_dice": kaggle}


def _maps(layer: Any) -> list[Any]:
    """Returns the output of a layer if it is one map of features of a known size."""
    try:
        # Of a model in the model, too: not the end of its own graph, but that of the call.
        output = keras.Operation.output.fget(layer)
    except (AttributeError, ValueError):  # A layer that is called several times.
        return []
    shape: Any = getattr(output, "shape", ())
    return [output] if len(shape) == 4 and None not in shape[1:] else []


def _traced(function: Callable[..., Any], *inputs: Any) -> Any:
    # Converting our functions, which have no conditions on tensors, would take most of the time of an export.
    return tf.function(function, autograph=False).get_concrete_function(*inputs)


def _encoded(
    serve: Callable[..., dict[str, Tensor]], output: str, encode: Callable[[Tensor], Tensor]
) -> Callable[..., dict[str, Tensor]]:
    """Returns a function with the inputs of `serve` that returns its masks as texts, string [N, C]."""

    def answer(image_bytes: Tensor, texts: Tensor | None = None) -> dict[str, Tensor]:
        given = {"image_bytes": image_bytes} if texts is None else {"image_bytes": image_bytes, "texts": texts}
        return {output: encode_masks(serve(**given)["masks"], encode)}

    return answer
