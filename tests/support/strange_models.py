"""Models that do more than compute: a name -> how to make it.

Each is a model that ImageTrainer could have exported, with the same assets and signatures, except for one operation.
It writes, or reads, `marker`, a file outside of the model.
"""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.protobuf import saved_model_pb2

HEIGHT, WIDTH, CLASSES = 8, 8, ("a", "b")
TRAINING = {"task": "classification", "multi": False, "fingerprint": "f" * 64, "submission": ""}


@dataclasses.dataclass(frozen=True)
class Strange:
    """An attack.

    Attributes:
        operation: what the message names.
        effect: gets the marker; what the model does in its signature, inside of a `tf.function`.
        change: gets the parsed model and the marker, and changes it after the export.
    """

    operation: str
    effect: Callable[[str], Any] = lambda marker: None
    change: Callable[[Any, str], None] = lambda model, marker: None
    part: str = "signature"


def write(marker: str) -> Any:
    tf.io.write_file(marker, "written")


@tf.custom_gradient
def _with_gradient(value: Any) -> Any:
    def gradient(upstream: Any) -> Any:
        tf.io.write_file(_with_gradient.marker, "written")
        return upstream

    return value, gradient


def in_gradient(marker: str) -> None:
    _with_gradient.marker = marker
    variable = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(variable)
        answer = _with_gradient(variable)
    tape.gradient(answer, variable)


def in_loop(marker: str) -> None:
    def body(number: Any) -> Any:
        tf.io.write_file(marker, "written")
        return number + 1

    tf.while_loop(lambda number: number < 2, body, [tf.constant(0)])


def in_branch(marker: str) -> None:
    tf.cond(tf.random.uniform([]) >= 0, lambda: write(marker), lambda: None)


def in_dataset(marker: str) -> None:
    def one(number: Any) -> Any:
        tf.io.write_file(marker, "written")
        return number

    tf.data.Dataset.range(2).map(one).reduce(tf.constant(0, tf.int64), lambda total, number: total + number)


def in_nested_functions(marker: str) -> None:
    @tf.function
    def inner() -> Any:
        write(marker)
        return tf.constant(1)

    @tf.function
    def outer() -> Any:
        return inner()

    outer()


def summary(marker: str) -> None:
    writer = tf.raw_ops.SummaryWriter()
    folder = str(Path(marker).parent / "summaries")
    tf.raw_ops.CreateSummaryFileWriter(writer=writer, logdir=folder, max_queue=1, flush_millis=1, filename_suffix="x")
    tf.raw_ops.WriteScalarSummary(writer=writer, step=tf.constant(0, tf.int64), tag="x", value=1.0)


def python(marker: str) -> Any:
    return tf.numpy_function(lambda: Path(marker).write_text("written") and np.float32(1), [], tf.float32)


def save(marker: str) -> None:
    tf.raw_ops.SaveV2(prefix=marker, tensor_names=["x"], shape_and_slices=[""], tensors=[tf.constant(1.0)])


def _nodes(model: Any) -> Any:
    return model.meta_graphs[0].graph_def


def text_node(name: str, text: str) -> Any:
    node = text_format.Parse(f'name: "{name}" op: "Const"', tf.compat.v1.NodeDef())
    node.attr["dtype"].type = tf.string.as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(text))
    return node


def add_write(nodes: Any, marker: str) -> None:
    """Adds a `WriteFile` to the nodes of a graph or of a function."""
    inside = ":output:0" if not hasattr(nodes, "node") else ""
    target = nodes.node if hasattr(nodes, "node") else nodes
    target.extend([text_node("evil_name", marker), text_node("evil_text", "written")])
    write_node = target.add(name="evil", op="WriteFile")
    write_node.input.extend([f"evil_name{inside}", f"evil_text{inside}"])


def in_main_op(model: Any, marker: str) -> None:
    graph = _nodes(model)
    add_write(graph, marker)
    name = model.meta_graphs[0].signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name
    next(node for node in graph.node if node.name == name.partition(":")[0]).input.append("^evil")


def in_saver(role: str, change: Callable[[Any, str], None]) -> Callable[[Any, str], None]:
    """Changes the function that saves or restores the variables."""

    def apply(model: Any, marker: str) -> None:
        meta = model.meta_graphs[0]
        saver = meta.saver_def
        name = saver.restore_op_name if role == "restore" else saver.save_tensor_name.partition(":")[0]
        node = next(one for one in meta.graph_def.node if one.name == name)
        function = next(
            one for one in meta.graph_def.library.function if one.signature.name == node.attr["f"].func.name
        )
        change(function, marker)

    return apply


def restore_elsewhere(function: Any, marker: str) -> None:
    function.node_def.append(text_node("elsewhere", marker))
    node = next(one for one in function.node_def if one.op == "RestoreV2")
    node.input[0] = "elsewhere:output:0"


def save_in_restore(function: Any, marker: str) -> None:
    function.node_def.append(text_node("elsewhere", marker))
    restored = next(one for one in function.node_def if one.op == "RestoreV2")
    node = function.node_def.add(name="again", op="SaveV2")
    node.input.extend(["elsewhere:output:0", restored.input[1], restored.input[2], f"{restored.name}:tensors:0"])


def signature_calls_saver(model: Any, marker: str) -> None:
    meta = model.meta_graphs[0]
    saver = meta.saver_def
    meta.signature_def["serving_default"].outputs["saved"].name = saver.save_tensor_name


def call_saver(model: Any, marker: str) -> None:
    meta = model.meta_graphs[0]
    name = meta.saver_def.save_tensor_name.partition(":")[0]
    saver = next(one for one in meta.graph_def.node if one.name == name)
    meta.graph_def.node.append(text_node("elsewhere", marker))
    node = meta.graph_def.node.add()
    node.CopyFrom(saver)
    node.name, node.input[0] = "called_again", "elsewhere"


def function_of_no_model(model: Any, marker: str) -> None:
    node = next(one for one in _nodes(model).node if one.op == "StatefulPartitionedCall")
    node.attr["f"].func.name = "WriteFile"


def gradient_of_library(model: Any, marker: str) -> None:
    library = _nodes(model).library
    function = library.function.add()
    function.signature.name = "evil_gradient"
    add_write(function.node_def, marker)
    library.gradient.add(function_name=library.function[0].signature.name, gradient_func="evil_gradient")


def hidden_function(model: Any, marker: str) -> None:
    function = _nodes(model).library.function.add()
    function.signature.name = "nobody_calls_it"
    add_write(function.node_def, marker)


def asset_elsewhere(model: Any, marker: str) -> None:
    model.meta_graphs[0].asset_file_def[0].filename = f"../../{Path(marker).name}"


def second_graph(model: Any, marker: str) -> None:
    second = model.meta_graphs.add()
    second.CopyFrom(model.meta_graphs[0])
    second.meta_info_def.tags[:] = ["other"]
    add_write(second.graph_def, marker)


def custom(operation: str) -> Callable[[Any, str], None]:
    def apply(model: Any, marker: str) -> None:
        _nodes(model).node.add(name="other", op=operation)

    return apply


def registered_object(model: Any, marker: str) -> None:
    node = next(o for o in model.meta_graphs[0].object_graph_def.nodes if o.WhichOneof("kind") == "user_object")
    node.registered_name = "Custom>Anything"


STRANGE = {
    "write in a signature": Strange("WriteFile", write),
    "write in a loop": Strange("WriteFile", in_loop),
    "write in a branch": Strange("WriteFile", in_branch),
    "write in a nested function": Strange("WriteFile", in_nested_functions),
    "write in a dataset": Strange("WriteFile", in_dataset),
    "write in a gradient": Strange("WriteFile", in_gradient),
    "write in an initializer": Strange("WriteFile", part="initializer", effect=write),
    "read": Strange("ReadFile", lambda marker: tf.io.read_file(marker)),
    "list": Strange("MatchingFiles", lambda marker: tf.io.matching_files(marker)),
    "print": Strange("PrintV2", lambda marker: tf.print("printed", marker)),
    "python": Strange("PyFunc", python),
    "python, eager": Strange("EagerPyFunc", lambda marker: tf.py_function(lambda: write(marker), [], [])),
    "summary": Strange("CreateSummaryFileWriter", summary),
    "save": Strange("SaveV2", save),
    "records": Strange(
        "TFRecordDataset", lambda marker: tf.data.TFRecordDataset(marker).reduce(0, lambda count, _: count + 1)
    ),
    "lines": Strange(
        "TextLineDataset", lambda marker: tf.data.TextLineDataset(marker).reduce(0, lambda count, _: count + 1)
    ),
    "mapped file": Strange(
        "ImmutableConst",
        lambda marker: tf.raw_ops.ImmutableConst(dtype=tf.uint8, shape=[1], memory_region_name=marker),
    ),
    "another table": Strange(
        "InitializeTableFromTextFileV2",
        lambda marker: tf.raw_ops.InitializeTableFromTextFileV2(
            table_handle=tf.raw_ops.AnonymousHashTable(key_dtype=tf.string, value_dtype=tf.int64),
            filename=marker,
            key_index=-2,
            value_index=-1,
        ),
    ),
    "write when loaded": Strange("WriteFile", change=in_main_op),
    "write when restored": Strange("WriteFile", change=in_saver("restore", lambda f, m: add_write(f.node_def, m))),
    "write when saved": Strange("WriteFile", change=in_saver("save", lambda f, m: add_write(f.node_def, m))),
    "restore elsewhere": Strange("RestoreV2", change=in_saver("restore", restore_elsewhere)),
    "save when restored": Strange("SaveV2", change=in_saver("restore", save_in_restore)),
    "save by a signature": Strange("SaveV2", change=signature_calls_saver),
    "save by a call": Strange("SaveV2", change=call_saver),
    "a function of another place": Strange("WriteFile", change=function_of_no_model),
    "a gradient in the library": Strange("WriteFile", change=gradient_of_library),
    "a function that nobody calls": Strange("WriteFile", change=hidden_function),
    "an asset elsewhere": Strange("asset", change=asset_elsewhere),
    "another graph": Strange("WriteFile", change=second_graph),
    "an operation of a plugin": Strange("SomebodysOwnOperation", change=custom("SomebodysOwnOperation")),
    "compiled code": Strange("XlaCallModule", change=custom("XlaCallModule")),
    "a remote call": Strange("RemoteCall", change=custom("RemoteCall")),
    "a registered object": Strange("Custom>Anything", change=registered_object),
}


def make(folder: Path, attack: Strange | None, marker: Path) -> Path:
    """Writes a model that answers for images, and does what the attack says."""
    marker_text = str(marker)
    effect = attack.effect if attack else lambda _: None
    in_initializer = attack is not None and attack.part == "initializer"

    class Model(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = tf.Variable([0.5, 0.25])
            if in_initializer:
                self.table = Written(marker_text)

        def answer(self, count: Any) -> dict[str, Any]:
            if not in_initializer:
                effect(marker_text)
            probabilities = tf.fill([count, 1], 1.0) * tf.nn.softmax(self.weight)
            return {"probabilities": probabilities, "labels": tf.fill([count], "a")}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "image_bytes")])
        def serve(self, image_bytes: Any) -> dict[str, Any]:
            return self.answer(tf.shape(image_bytes)[0])

        @tf.function(input_signature=[tf.TensorSpec([None, HEIGHT, WIDTH, 3], tf.uint8, "pixels")])
        def of_pixels(self, pixels: Any) -> dict[str, Any]:
            return {"probabilities": self.answer(tf.shape(pixels)[0])["probabilities"]}

    made = Model()
    assets = folder.parent / f"{folder.name}-assets"
    assets.mkdir(parents=True)
    texts = {
        "classes.json": list(CLASSES),
        "training.json": TRAINING,
        "preparation.json": {"height": HEIGHT, "width": WIDTH, "resize": "stretch"},
    }
    for name, value in texts.items():
        (assets / name).write_text(json.dumps(value))
    made.assets = [tf.saved_model.Asset(str(assets / name)) for name in sorted(texts)]
    tf.saved_model.save(made, str(folder), {"serving_default": made.serve, "pixels": made.of_pixels})
    if attack is not None:
        file = folder / "saved_model.pb"
        model = saved_model_pb2.SavedModel.FromString(file.read_bytes())
        attack.change(model, marker_text)
        file.write_bytes(model.SerializeToString())
    return folder


class Written(tf.saved_model.experimental.TrackableResource):
    """A resource whose initializer, which a loader runs, writes the marker."""

    def __init__(self, marker: str) -> None:
        super().__init__()
        self._marker = marker
        self._resource_handle = self._create_resource()

    def _create_resource(self) -> Any:
        return tf.raw_ops.AnonymousHashTable(key_dtype=tf.string, value_dtype=tf.int64)

    def _initialize(self) -> None:
        tf.io.write_file(self._marker, "written")

    def _destroy_resource(self) -> None:
        return
