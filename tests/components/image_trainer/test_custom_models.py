"""`trainer.model: package.module:function`: what is called, and what is refused before anything is trained."""

import sys

import keras
import numpy as np
import pytest

from shardwright.components.image_trainer.models.custom import build_own_model, checked_own_model
from shardwright.components.runtime.user_code import check_defines, code_files, import_function
from shardwright.errors import UsageError

MASKS = {"height": 12, "width": 10, "classes": 2, "task": "segmentation", "multi": False, "filters": 4, "seed": 1}
LABELS = {**MASKS, "task": "classification"}
NAMES = ("cat", "dog")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [("right", MASKS), ("label", LABELS), ("label", {**LABELS, "multi": True})],
)
def test_a_model_as_asked_for_is_taken(name, options):
    model = build_own_model(f"own_models:{name}", names=NAMES, **options)
    assert model.output_shape[-1] == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        (
            "own_models:half",
            MASKS,
            r"gives \[batch, 6, 5, 2\], not \[batch, 12, 10, 2\]: .* 2 \(cat, dog\); the background is none of them",
        ),
        ("own_models:right", LABELS, r"gives \[batch, 12, 10, 2\], not \[batch, 2\]: .* 2 \(cat, dog\)\.$"),
        ("own_models:scores", MASKS, "not probabilities; end in a sigmoid, or set trainer.outputs: logits"),
        ("own_models:sixteen", MASKS, "gives float16; make the last layer with dtype='float32'"),
        ("own_models:lost", MASKS, "cannot be saved and loaded again .*register_keras_serializable"),
        ("own_models:gray", MASKS, r"takes \[batch, 12, 10, 1\]; it is given \[batch, 12, 10, 3\]"),
        ("own_models:two", MASKS, "has 2 inputs and 1 outputs"),
        ("own_models:nothing", MASKS, "returned NoneType, not a keras.Model"),
        ("own_models:broken", MASKS, r"own_models:broken failed \(RuntimeError: no such layer\)"),
        ("own_models:none", MASKS, "own_models has no function 'none'"),
        ("own_models:NUMBER", MASKS, "own_models has no function 'NUMBER'"),
        ("no.such.module:build", MASKS, r"no.such.module cannot be imported \(ModuleNotFoundError"),
    ],
)
def test_any_other_is_refused_by_name(path, options, message):
    with pytest.raises(UsageError, match=message):
        build_own_model(path, names=NAMES, **options)


def test_a_model_may_return_logits_by_its_last_layer_or_as_stated():
    batch = np.random.default_rng(0).normal(size=(2, 12, 10, 3)).astype(np.float32)
    for path, returned in (("own_models:logits", "auto"), ("own_models:scores", "logits")):
        keras.utils.set_random_seed(1)
        plain = import_function(path)(**MASKS)
        keras.utils.set_random_seed(1)
        model = build_own_model(path, returned, names=NAMES, **MASKS)
        wanted = np.asarray(keras.ops.sigmoid(plain(batch)))
        np.testing.assert_allclose(np.asarray(model(batch)), wanted, rtol=1e-5)
    with pytest.raises(UsageError, match="ends in a sigmoid, and trainer.outputs says logits; remove one of them"):
        build_own_model("own_models:right", "logits", names=NAMES, **MASKS)


def test_labels_that_do_not_add_up_are_refused():
    model = import_function("own_models:label")(**{**LABELS, "multi": True})
    checked_own_model(model, "m", image=(12, 10), classes=NAMES, masks=False, multi=True)
    model = import_function("own_models:label")(**{**LABELS, "multi": True})
    with pytest.raises(UsageError, match="do not add up to 1; end in a softmax"):
        checked_own_model(model, "m", image=(12, 10), classes=NAMES, masks=False, multi=False)


def test_the_code_counts_and_may_be_next_to_the_configuration(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    option, folder = "trainer.model", str(tmp_path)
    (tmp_path / "beside_it.py").write_text("x = 1\n")
    first = code_files("beside_it:build", folder, option=option)
    assert sys.path[-1] == folder
    (tmp_path / "beside_it.py").write_text("x = 2\n")
    assert code_files("beside_it:build", folder, option=option) != first
    # Packages are not imported to look for what is in them.
    (tmp_path / "angry").mkdir()
    (tmp_path / "angry/__init__.py").write_text("raise RuntimeError('not today')\n")
    for path in ("no_such_thing:build", "no.such.thing:build", "sys:exit", "angry.models:build"):
        with pytest.raises(UsageError, match="trainer.model: the source of module .* was not found") as refused:
            code_files(path, folder, option=option)
        # An author of a pipeline has no configuration.
        assert f"put it into {tmp_path}." in str(refused.value)


@pytest.mark.parametrize(
    "source",
    [
        "def run_fn(args): ...",
        "from json import dumps as run_fn",
        "from json import *",
        "import functools\nrun_fn = functools.partial(print)",
        "run_fn = None\nif True:\n    run_fn = print",
        "try:\n    def run_fn(args): ...\nfinally: pass",
        "def __getattr__(name): ...",
    ],
)
def test_a_file_with_a_function_is_taken(tmp_path, source):
    (tmp_path / "mine.py").write_text(source)
    check_defines(str(tmp_path / "mine.py"), "run_fn", option="x")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def other(args): ...", "has no function 'run_fn'"),
        ("run_fn = 3", "has no function 'run_fn'"),
        ("def other():\n    run_fn = 3", "has no function 'run_fn'"),
        ("print(run_fn)", "has no function 'run_fn'"),
        ("def run_fn(", r"cannot be read \(SyntaxError"),
        ("\0", "cannot be read"),
    ],
)
def test_a_file_without_it_is_refused(tmp_path, source, message):
    (tmp_path / "mine.py").write_text(source)
    with pytest.raises(UsageError, match=f"ImageTrainer: module_file: .*mine.py {message}"):
        check_defines(str(tmp_path / "mine.py"), "run_fn", option="ImageTrainer: module_file")
