"""TF Serving's two services over gRPC, answered by TensorFlow in this process: what a test has where TF Serving is not.

A model is a folder of numbered versions, of which the newest is served; requests and answers are TF Serving's own
messages. It is not TF Serving: neither its own build of TensorFlow nor its batching and loading are tried.
"""

from concurrent import futures
from pathlib import Path

import grpc
import tensorflow as tf
from tensorflow_serving.apis import (
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

AVAILABLE = get_model_status_pb2.ModelVersionStatus.State.AVAILABLE


class ModelServer(prediction_service_pb2_grpc.PredictionServiceServicer, model_service_pb2_grpc.ModelServiceServicer):
    """One model on a port of this machine; a context.

    Attributes:
        endpoint: address, once it is entered.
        requests: the requests that were answered.
    """

    def __init__(self, name, folder):
        self._name = name
        versions = [path for path in Path(folder).iterdir() if path.name.isdecimal()]
        self._version = max(versions, key=lambda path: int(path.name))
        self._model = tf.saved_model.load(str(self._version))
        self.requests = []

    def __enter__(self):
        self._server = grpc.server(futures.ThreadPoolExecutor(2))
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(self, self._server)
        model_service_pb2_grpc.add_ModelServiceServicer_to_server(self, self._server)
        self.endpoint = f"localhost:{self._server.add_insecure_port('localhost:0')}"
        self._server.start()
        return self

    def __exit__(self, *_):
        self._server.stop(grace=None).wait(10)

    def GetModelStatus(self, request, context):
        """The state of the model's newest version."""
        self._check_name(request.model_spec.name, context)
        answer = get_model_status_pb2.GetModelStatusResponse()
        answer.model_version_status.add(version=int(self._version.name), state=AVAILABLE)
        return answer

    def Predict(self, request, context):
        """The outputs of a signature."""
        self._check_name(request.model_spec.name, context)
        signature = request.model_spec.signature_name or "serving_default"
        if signature not in self._model.signatures:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"there is no signature {signature!r}")
        call = self._model.signatures[signature]
        wanted = call.structured_input_signature[1]
        if set(request.inputs) != set(wanted):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"the inputs are {sorted(wanted)}")
        given = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
        try:
            made = call(**{name: tf.constant(value, wanted[name].dtype) for name, value in given.items()})
        except (tf.errors.InvalidArgumentError, ValueError) as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        self.requests.append(request)
        answer = predict_pb2.PredictResponse()
        for name, value in made.items():
            answer.outputs[name].CopyFrom(tf.make_tensor_proto(value))
        return answer

    def _check_name(self, name, context):
        if name != self._name:
            context.abort(grpc.StatusCode.NOT_FOUND, f"there is no model {name!r}")


class Runner:
    """InfraValidator's model server runner (`BaseModelServerRunner`), around this server."""

    def __init__(self, model_path, name):
        # InfraValidator copies the model to FOLDER/NAME/VERSION.
        self._server = ModelServer(name, Path(model_path).parent)
        self.requests = self._server.requests

    def Start(self):
        self._server.__enter__()

    def WaitUntilRunning(self, deadline):
        del deadline  # It answers from the start.

    def GetEndpoint(self):
        return self._server.endpoint

    def GetLogs(self):
        return None

    def Stop(self):
        self._server.__exit__()
