"""Warm-up requests of an exported model: TF Serving sends them to a model before any client may.

The first answer of a graph takes seconds. TF Serving reads `assets.extra/tf_serving_warmup_requests`, TFRecords of
`PredictionLog` (tensorflow/serving, servables/tensorflow/saved_model_warmup_util.h), and calls the model with each.
"""

from __future__ import annotations

from pathlib import Path

from shardwright.tfrecords.records import RecordWriter

WARM_UP_FILE = "assets.extra/tf_serving_warmup_requests"


def write_warm_up(export: str, signatures: tuple[str, ...], height: int, width: int, columns: int) -> None:
    """Writes a request for each signature into an exported model.

    Args:
        export: folder of the SavedModel.
        signatures: the signatures that take encoded images.
        height: of the image, which is gray.
        width: of the image.
        columns: how many texts an image has; 0 for a model without texts.
    """
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

    image = tf.io.encode_jpeg(tf.fill([height, width, 3], tf.constant(128, tf.uint8))).numpy()
    file = Path(export, WARM_UP_FILE)
    file.parent.mkdir(exist_ok=True)
    with file.open("wb") as records:
        writer = RecordWriter(records)
        for signature in signatures:
            request = predict_pb2.PredictRequest()
            # The server has a name of its choice for the model, and ignores this one.
            request.model_spec.name = "default"
            request.model_spec.signature_name = signature
            request.inputs["image_bytes"].CopyFrom(tf.make_tensor_proto([image]))
            if columns:
                request.inputs["texts"].CopyFrom(tf.make_tensor_proto([[""] * columns]))
            log = prediction_log_pb2.PredictionLog(predict_log=prediction_log_pb2.PredictLog(request=request))
            writer.write(log.SerializeToString(deterministic=True))
