"""The table of allowed operations: each is registered, and none is named after files, processes or devices."""

import ast
import re
from pathlib import Path

import keras
import pytest
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session

import shardwright.components
from shardwright.components.model_files.keras_file import _KERAS_CLASSES
from shardwright.components.model_files.operations import ALLOWED, LATER, OF_ASSETS, OF_RESTORE, OF_SAVE

# Words in the name of an operation, or of its arguments and attributes, that speak of the outside world.
_WORLD = frozenset(
    """abort address barrier bigquery bigtable checkpoint checkpoints collective custom dataset debug delegate
    descriptor dir directory eager file filename filenames files func graph host hostname infeed iterator job lmdb
    logdir memory module mutex nccl numpy outfeed path paths pattern port print py python queue reader recv
    region remote restore rpc save send service session shard sharded shards sleep socket sql stage summary target task
    timestamp token tpu trt uri url worker write xla""".split()
)
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")


def words_of(name):
    return {word.lower() for word in _WORD.findall(name.replace("LMDB", "Lmdb").replace("XLA", "Xla"))}


# Those that compute all the same, each with what the word means there.
_PATTERN = "`pattern` is a regular expression"
_TENSORS = "its elements are tensors of the graph, and its functions are walked"
_HARMLESS = {
    "ApproxTopK": "`recall_target` is a number",
    "BatchDatasetV2": _TENSORS,
    "ConcatenateDataset": _TENSORS,
    "DatasetToSingleElement": _TENSORS,
    "IgnoreErrorsDataset": _TENSORS,
    "MapDataset": _TENSORS,
    "ParseSequenceExample": "`debug_name` is part of messages",
    "ParseSequenceExampleV2": "`debug_name` is part of messages",
    "RegexFullMatch": _PATTERN,
    "RegexReplace": _PATTERN,
    "StaticRegexFullMatch": _PATTERN,
    "StaticRegexReplace": _PATTERN,
    "TensorDataset": _TENSORS,
    "TensorSliceDataset": _TENSORS,
    "TensorArrayWriteV3": "writes to a list in memory",
    "VarHandleOp": "`debug_name` is part of messages",
    "Xlog1py": "x * log(1 + y)",
}


def registered():
    buffer = pywrap_tf_session.TF_GetAllOpList()
    found = op_def_pb2.OpList.FromString(pywrap_tf_session.TF_GetBuffer(buffer))
    return {op.name: op for op in found.op}


OPERATIONS = registered()


def test_every_allowed_operation_is_registered():
    missing = (ALLOWED | OF_ASSETS | OF_RESTORE | OF_SAVE) - set(OPERATIONS)
    assert missing <= LATER


def test_no_allowed_operation_is_named_after_the_outside_world():
    found = {}
    for name in sorted(ALLOWED & set(OPERATIONS)):
        op = OPERATIONS[name]
        words = [name, *(arg.name for arg in (*op.input_arg, *op.output_arg)), *(attr.name for attr in op.attr)]
        told = [word for word in words if words_of(word) & _WORLD]
        if told and name not in _HARMLESS:
            found[name] = told
    assert found == {}


def test_the_exceptions_are_needed():
    for name in _HARMLESS:
        assert name in ALLOWED


def test_what_is_not_allowed_includes_what_reaches_out():
    """By the words, in every TensorFlow: an operation of a later one is refused because it is not in the table."""
    outside = {name for name in OPERATIONS if words_of(name) & _WORLD}
    assert len(outside) > 300
    assert outside & ALLOWED <= set(_HARMLESS)
    known = """WriteFile ReadFile MatchingFiles SaveV2 RestoreV2 MergeV2Checkpoints PyFunc EagerPyFunc PyFuncStateless
        PrintV2 Print DatasetFromGraph TFRecordDatasetV2 TextLineDataset ImmutableConst WriteSummary RemoteCall
        DebugIdentityV2 XlaCallModule SqlDataset DataServiceDatasetV2 RpcCall DecodeProtoV2 GenerateVocabRemapping
        LoadAndRemapMatrix InitializeTableFromTextFileV2 TPUExecute Abort"""
    assert not set(known.split()) & ALLOWED
    assert set(known.split()) <= set(OPERATIONS)


def test_every_layer_of_keras_is_allowed_or_known_to_reach_out():
    """A layer of a later Keras is refused; this test then asks for a decision."""
    layers = {
        name
        for name, item in vars(keras.layers).items()
        if isinstance(item, type) and issubclass(item, keras.layers.Layer)
    }
    reach_out = {"Lambda", "TFSMLayer", "JaxLayer", "FlaxLayer", "TorchModuleWrapper"}
    reach_out |= {"IntegerLookup", "StringLookup", "TextVectorization"}
    assert layers - _KERAS_CLASSES - reach_out <= {"Layer", "Wrapper"}
    assert not _KERAS_CLASSES & reach_out


# Loaders of models, weights and objects, and why a module may call one by itself.
_LOADERS = {
    ("saved_model", "load"),
    ("saving", "load_model"),
    ("models", "load_model"),
    ("TFLiteConverter", "from_saved_model"),
    ("h5py", "File"),
    ("np", "load"),
    ("numpy", "load"),
    ("pickle", "load"),
    ("pickle", "loads"),
    ("joblib", "load"),
    ("dill", "loads"),
    ("cloudpickle", "loads"),
    ("marshal", "loads"),
    ("hub", "load"),
    ("hub", "KerasLayer"),
    ("tft", "TFTransformOutput"),
    ("onnx", "load"),
    ("torch", "load"),
    ("tfma", "default_eval_shared_model"),
    ("lite", "Interpreter"),
}
_NAMES = {name for _, name in _LOADERS if name not in ("load", "loads", "File")} | {"InferenceSession", "load_weights"}
_REASONS = {
    "model_files/saved_model.py": "the check itself",
    "model_files/keras_file.py": "the check itself",
    "image_trainer/models/encoders.py": "after check_hdf5",
    "evaluator/run_tfma.py": "the executor has checked both models",
    "predictor/convert_model.py": "after open_model; np.load reads what our process has written",
    "predictor/converted_answers.py": "reads what `convert` has just written",
    "pusher/clean_process.py": "check_answers checks the model before it starts this process",
}


@pytest.mark.parametrize("package", ["components", "pipelines", "."])
def test_no_other_module_opens_a_model(package):
    root = Path(shardwright.components.__path__[0]).parent
    found = {}
    for file in sorted((root / package).resolve().rglob("*.py") if package != "." else root.glob("[a-z]*/**/*.py")):
        calls = [node.func for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
        attributes = [call for call in calls if isinstance(call, ast.Attribute)]
        names = {(ast.unparse(call.value).rpartition(".")[2], call.attr) for call in attributes}
        opened = {pair for pair in names if pair in _LOADERS or pair[1] in _NAMES}
        opened |= {("", call.id) for call in calls if isinstance(call, ast.Name) and call.id in _NAMES}
        place = "/".join(file.parts[file.parts.index("components") + 1 :]) if "components" in file.parts else str(file)
        if opened and place not in _REASONS:
            found[place] = sorted(opened)
    assert found == {}
