"""Checks a SavedModel before TensorFlow opens it, and opens it: what others have made may do nothing but compute.

TensorFlow runs a SavedModel as it would run a program: a loader restores its variables and runs its initializers, and
a call runs its signature, with all that these functions call. Here the protocol buffer is parsed and walked first:
every node of every graph and function, whether it looks reachable or not, must be of an operation in `operations`.

A graph that `tf.saved_model.save` wrote contains two functions with file operations. The loader restores variables by
one of them, with the path of the model's own `variables`; nothing but the saver of the graph may refer to it, and it
may read that path only. No loader calls the other one, which would save the variables again.

What is still trusted: TensorFlow's own kernels and parsers, which get the model's numbers, and the memory and time that
a computation takes.
"""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from shardwright.components.model_files.operations import ALLOWED, OF_ASSETS, OF_RESTORE, OF_SAVE
from shardwright.errors import DatasetError
from shardwright.storage import buckets, is_remote, read_bytes
from shardwright.untrusted import json_text as untrusted
from shardwright.untrusted.json_text import TRUST_VARIABLE

_FILE = "saved_model.pb"
# TensorFlow would read these instead, or beside it.
_OTHER_FORMS = ("saved_model.cpb", "saved_model.pbtxt", "keras_metadata.pb")
_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
# Python objects that TensorFlow makes of a model: all others would come from a registry of the process.
_OBJECTS = ("_generic_user_object", "trackable_list_wrapper", "trackable_dict_wrapper", "trackable_tuple_wrapper")
_IDENTIFIERS = frozenset((*_OBJECTS, "signature_map"))
_REGISTERED = frozenset(("", "tf.TrackableConstant", "tf.StaticHashTable"))
_SHOWN = 12


def load_saved_model(folder: str | os.PathLike[str], *, trusted: bool = False) -> Any:
    """Checks a SavedModel and opens it.

    Args:
        folder: folder of the SavedModel.
        trusted: see `check_saved_model`.

    Returns:
        The result of `tf.saved_model.load`.

    Raises:
        DatasetError: see `check_saved_model`.
    """
    check_saved_model(folder, trusted=trusted)
    import tensorflow as tf

    return tf.saved_model.load(os.fspath(folder))


def check_saved_model(folder: str | os.PathLike[str], *, trusted: bool = False) -> None:
    """Refuses a SavedModel that contains anything but computations.

    Args:
        folder: folder of the SavedModel.
        trusted: whether the caller states that the model is their own; then nothing is checked. The variable
            `SHARDWRIGHT_TRUST_MODELS=1` states it for all models of a process.

    Raises:
        DatasetError: it contains a file operation or another one that is not allowed, or is not a SavedModel.
    """
    if trusted or models_are_trusted():
        return
    _check_files(os.fspath(folder))
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf import saved_model_pb2

    try:
        model = saved_model_pb2.SavedModel.FromString(read_bytes(os.path.join(folder, _FILE)))
    except (OSError, DecodeError) as error:
        raise DatasetError(f"{folder}: {_FILE} cannot be read ({error}). Export the model again.") from None
    problems = list(dict.fromkeys(problem for graph in model.meta_graphs for problem in _Walk(graph).problems()))
    if problems:
        shown = "; ".join(problems[:_SHOWN])
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise DatasetError(
            f"{folder}: the model does more than compute: {shown}{more}. It was not loaded. Use a model from a source "
            f"that you trust; if it is your own, add --trust-model, or set {TRUST_VARIABLE}=1 for a pipeline."
        )


def models_are_trusted() -> bool:
    """Returns whether the user states that all models of this process are their own."""
    return os.environ.get(TRUST_VARIABLE) == "1"


def _check_files(folder: str) -> None:
    """Refuses links and special files, which lead out of the folder, and other forms of the model."""
    if is_remote(folder):
        names = [name.rpartition("/")[2] for name in buckets.list_names(f"{folder.rstrip('/')}/")]
    else:
        names = os.listdir(folder) if os.path.isdir(folder) else []
    if _FILE not in names:
        raise DatasetError(f"{folder}: contains no {_FILE}. Give the folder of a SavedModel.")
    for name in _OTHER_FORMS:
        if name in names:
            raise DatasetError(f"{folder}: contains {name}, which is not checked. Export the model without it.")
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            mode = os.lstat(Path(parent, name)).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                kind = "a link" if stat.S_ISLNK(mode) else "not a file"
                raise DatasetError(f"{Path(parent, name)}: is {kind}. A model may contain files and folders only.")


@dataclass(frozen=True)
class _Graph:
    """A graph or a function: `name` is empty for the graph; `inputs` are the names of its arguments."""

    name: str
    nodes: Sequence[Any]
    inputs: tuple[str, ...] = ()
    attributes: Sequence[Any] = ()

    @cached_property
    def by_name(self) -> dict[str, Any]:
        return {node.name: node for node in self.nodes}

    def source(self, tensor: str) -> str:
        """Returns the name of the node or argument that a tensor comes from, through `Identity`."""
        for _ in range(len(self.nodes) + 1):
            name = tensor.removeprefix("^").partition(":")[0]
            node = self.by_name.get(name)
            if node is not None and name in self.inputs:
                return ""  # TensorFlow would have to choose between a node and an argument.
            if node is None or node.op != "Identity" or not node.input:
                return name
            tensor = node.input[0]
        return ""


@dataclass
class _Walk:
    """Looks at a meta graph: its nodes, functions, saver, assets and objects."""

    meta: Any
    functions: dict[str, _Graph] = field(init=False)

    def __post_init__(self) -> None:
        library = self.meta.graph_def.library
        self.functions = {
            f.signature.name: _Graph(
                f.signature.name,
                f.node_def,
                tuple(a.name for a in f.signature.input_arg),
                [*f.attr.values(), *(value for arg in f.arg_attr.values() for value in arg.attr.values())],
            )
            for f in library.function
        }

    def problems(self) -> Iterator[str]:
        """Yields what is not allowed."""
        from tensorflow.python.framework import op_def_registry

        for asset in self.meta.asset_file_def:
            if not untrusted.is_inside(asset.filename):
                yield f"the asset {asset.filename!r} leads out of the model's folder"
        yield from self._objects()
        library = self.meta.graph_def.library
        if len(self.functions) < len(library.function):
            yield "two functions have the same name"
        for name in self.functions:
            if op_def_registry.get(name) is not None:
                yield f"a function is named like the operation {name}"
        gradients = [name for one in library.gradient for name in (one.function_name, one.gradient_func)]
        for name in self._unknown([*gradients, *(one.gradient_func for one in library.registered_gradients)]):
            yield f"a gradient names the function {name}, which is not in the model"
        found = [one for graph in self._graphs() for one in self._nodes(graph)]
        # The first place of each operation; a loop has many.
        yield from dict(reversed(found)).values()

    def _graphs(self) -> Iterator[_Graph]:
        yield _Graph("", self.meta.graph_def.node)
        yield from self.functions.values()

    def _nodes(self, graph: _Graph) -> Iterator[tuple[str, str]]:
        """Yields operations and functions with what is wrong with them."""
        where = f" in the function {graph.name}" if graph.name else ""
        for name in self._unknown(_named_functions(graph.attributes)):
            yield name, f"the function {graph.name} names the function {name}, which is not in the model"
        for node in graph.nodes:
            for name in self._unknown(_named_functions(node.attr.values())):
                yield name, f"the node {node.name}{where} names the function {name}, which is not in the model"
            if node.op in ALLOWED or node.op in self.functions or self._of_saver(graph, node):
                continue
            if node.op not in OF_ASSETS:
                yield node.op, f"the operation {node.op}, of the node {node.name}{where}"
            elif len(node.input) < 2 or not self._is_asset(graph, node.input[1], frozenset()):
                yield node.op, f"the operation {node.op}{where} reads a file that is not one of the model's assets"

    def _unknown(self, names: Sequence[str]) -> list[str]:
        """Returns functions that the model does not contain: TensorFlow may know operations of that name."""
        return [name for name in names if name not in self.functions]

    # The saver.

    def _of_saver(self, graph: _Graph, node: Any) -> bool:
        """Returns whether a node is one that reads or writes the variables at the path that a loader gives."""
        if graph.name in self._savers["save"]:
            return node.op in OF_SAVE
        if graph.name not in self._savers["restore"] or node.op not in OF_RESTORE:
            return False
        return bool(graph.inputs) and bool(node.input) and graph.source(node.input[0]) == graph.inputs[0]

    @cached_property
    def _savers(self) -> dict[str, frozenset[str]]:
        """The functions that nothing but the graph's saver refers to."""
        saver, graph = self.meta.saver_def, next(self._graphs())
        given = saver.filename_tensor_name.partition(":")[0]
        found: dict[str, frozenset[str]] = {"save": frozenset(), "restore": frozenset()}
        placeholder = graph.by_name.get(given)
        if placeholder is None or placeholder.op != "Placeholder" or given in self._mentioned:
            return found
        nodes = {"save": saver.save_tensor_name.partition(":")[0], "restore": saver.restore_op_name}
        for role, name in nodes.items():
            node = graph.by_name.get(name)
            if node is None or node.op not in _CALLS or not node.input or node.input[0].partition(":")[0] != given:
                continue
            function = node.attr["f"].func.name
            alone = name not in self._mentioned and self._references[function] == 1
            found[role] = frozenset([function]) if alone else frozenset()
        return found

    @cached_property
    def _references(self) -> Mapping[str, int]:
        """How often each function is named, by nodes, gradients and objects."""
        count: defaultdict[str, int] = defaultdict(int)
        library, objects = self.meta.graph_def.library, self.meta.object_graph_def
        names = [name for graph in self._graphs() for name in _named_functions(graph.attributes)]
        for node in (node for graph in self._graphs() for node in graph.nodes):
            names += [node.op, *_named_functions(node.attr.values())]
        names += [name for g in library.gradient for name in (g.function_name, g.gradient_func)]
        names += [g.gradient_func for g in library.registered_gradients]
        names += list(objects.concrete_functions)
        names += [node.bare_concrete_function.concrete_function_name for node in objects.nodes]
        names += [name for node in objects.nodes for name in node.function.concrete_functions]
        for name in names:
            count[name] += 1
        return count

    @cached_property
    def _mentioned(self) -> frozenset[str]:
        """The nodes that a signature, a collection, an asset or another node of the graph refers to."""
        meta = self.meta
        parts = (*meta.signature_def.values(), *meta.collection_def.values(), *meta.asset_file_def)
        found = {text.removeprefix("^").partition(":")[0] for part in parts for text in _texts(part)}
        own = (meta.saver_def.save_tensor_name.partition(":")[0], meta.saver_def.restore_op_name)
        for node in meta.graph_def.node:
            if node.name not in own:
                found.update(one.removeprefix("^").partition(":")[0] for one in node.input)
        return frozenset(found)

    # The assets.

    def _is_asset(self, graph: _Graph, tensor: str, above: frozenset[tuple[str, str]]) -> bool:
        """Returns whether a text can be nothing but the path of an asset, wherever the graph is called."""
        name = graph.source(tensor)
        if (graph.name, name) in above:
            return False
        above = above | {(graph.name, name)}
        if not graph.name:
            return self._is_fed_or_stored(graph, name)
        if name not in graph.inputs:
            return False
        place = graph.inputs.index(name)
        objects = self.meta.object_graph_def
        sources: list[bool] = []
        if graph.name in objects.concrete_functions:
            bound = objects.concrete_functions[graph.name].bound_inputs
            at = place - (len(graph.inputs) - len(bound))
            sources.append(at >= 0 and objects.nodes[bound[at]].WhichOneof("kind") == "asset")
        for caller in self._graphs():
            for node in caller.nodes:
                if graph.name not in (node.op, *_named_functions(node.attr.values())):
                    continue
                plain = node.op in (*_CALLS, graph.name) and len(node.input) > place
                sources.append(plain and self._is_asset(caller, node.input[place], above))
        return bool(sources) and all(sources)

    def _is_fed_or_stored(self, graph: _Graph, name: str) -> bool:
        """Returns whether a node of the graph is the path of an asset, which a loader feeds, or a variable of it."""
        node = graph.by_name.get(name)
        if node is None or node.op != "ReadVariableOp":
            fed = {asset.tensor_info.name.partition(":")[0] for asset in self.meta.asset_file_def}
            return node is not None and node.op == "Placeholder" and name in fed
        handle = graph.by_name.get(graph.source(node.input[0])) if node.input else None
        if handle is None or handle.op != "VarHandleOp":
            return False
        shared = handle.attr["shared_name"].s
        handles = [one for each in self._graphs() for one in each.nodes if one.op == "VarHandleOp"]
        users = [one for one in graph.nodes if handle.name in {graph.source(given) for given in one.input}]
        written = [one for one in users if one.op == "AssignVariableOp"]
        return (
            [one.attr["shared_name"].s for one in handles].count(shared) == 1
            and {one.op for one in users} <= {"AssignVariableOp", "ReadVariableOp", "VarIsInitializedOp"}
            and bool(written)
            and all(self._is_fed_or_stored(graph, graph.source(one.input[1])) for one in written)
        )

    # The objects.

    def _objects(self) -> Iterator[str]:
        """Yields Python objects that TensorFlow would take from a registry of the process."""
        for node in self.meta.object_graph_def.nodes:
            if node.registered_name not in _REGISTERED or node.registered_saver:
                yield f"an object of the registered class {node.registered_name or node.registered_saver}"
            if node.WhichOneof("kind") == "user_object" and node.user_object.identifier not in _IDENTIFIERS:
                yield f"an object of the kind {node.user_object.identifier}"


def _named_functions(attributes: Any) -> list[str]:
    """Returns the functions that attributes name, and those that attributes of these name."""
    found, left = [], list(attributes)
    while left:
        value = left.pop()
        for one in (value.func, *value.list.func):
            if one.name:
                found.append(one.name)
                left += one.attr.values()
    return found


def _texts(message: Any) -> Iterator[str]:
    """Yields all texts of a protocol buffer."""
    left = [message]
    while left:
        one = left.pop()
        if isinstance(one, str):
            yield one
        elif hasattr(one, "ListFields"):
            left += [value for _, value in one.ListFields()]
        elif isinstance(one, Mapping):
            left += one.values()
        elif isinstance(one, Iterable) and not isinstance(one, bytes):
            left += one
