"""A model of others does nothing but compute: what does more is refused by name before any of it runs."""

import os
import shutil

import pytest
import tensorflow as tf
from PIL import Image
from strange_models import STRANGE, make

from shardwright.components.model_files.saved_model import check_saved_model, load_saved_model
from shardwright.components.predictor.exported_model import open_model
from shardwright.components.pusher.executor import check_answers
from shardwright.errors import DatasetError
from shardwright.pipelines.cli import main
from shardwright.untrusted.json_text import TRUST_VARIABLE


@pytest.fixture
def marker(tmp_path):
    return tmp_path / "outside" / "marker"


@pytest.fixture
def images(tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    Image.new("RGB", (9, 7)).save(folder / "1.png")
    return folder


@pytest.mark.parametrize("name", STRANGE)
def test_it_is_refused_and_nothing_happens(tmp_path, marker, capfd, name):
    marker.parent.mkdir()
    attack = STRANGE[name]
    model = make(tmp_path / "model", attack, marker)
    shutil.rmtree(marker.parent)
    marker.parent.mkdir()
    capfd.readouterr()
    for opens in (check_saved_model, load_saved_model, lambda folder: open_model(str(folder)), check_answers):
        with pytest.raises(DatasetError) as caught:
            opens(model)
        assert attack.operation in str(caught.value)
        assert str(model) in str(caught.value)
    assert list(marker.parent.iterdir()) == []
    assert "printed" not in "".join(capfd.readouterr())


def test_every_command_that_loads_a_model_refuses_it(tmp_path, marker, images, capsys):
    """The exit code is 1 or 2, and nothing is written, neither by the model nor by the command."""
    model = make(tmp_path / "model", STRANGE["write in a signature"], marker)
    calls = {
        "predict": ["predict", str(model), str(images), "--out", str(tmp_path / "out.csv")],
        "predict as records": ["predict", str(model), str(images), "--out", str(tmp_path / "out"), "--format=tfrecord"],
        "convert": ["convert", str(model), str(images), "--to", "litert", "--out", str(tmp_path / "out")],
    }
    before = sorted(tmp_path.rglob("*"))
    for name, call in calls.items():
        assert main(call) in (1, 2), name
        shown = capsys.readouterr().err
        assert "WriteFile" in shown, name
        assert "--trust-model" in shown, name
        assert sorted(tmp_path.rglob("*")) == before, name


@pytest.mark.parametrize("switch", ["option", "variable"])
def test_ones_own_model_runs_by_the_switch(tmp_path, marker, images, monkeypatch, switch):
    marker.parent.mkdir()
    model = make(tmp_path / "model", STRANGE["write in a signature"], marker)
    marker.unlink(missing_ok=True)
    call = ["predict", str(model), str(images), "--out", str(tmp_path / "out.csv")]
    if switch == "variable":
        monkeypatch.setenv(TRUST_VARIABLE, "1")
    else:
        call.append("--trust-model")
    assert main(call) == 0
    assert marker.read_text() == "written"


def test_a_model_that_only_computes_is_opened(tmp_path, marker, images):
    model = make(tmp_path / "model", None, marker)
    assert main(["predict", str(model), str(images), "--out", str(tmp_path / "out.csv")]) == 0


@pytest.mark.parametrize("name", ["saved_model.pbtxt", "saved_model.cpb", "keras_metadata.pb"])
def test_other_forms_of_a_model_are_refused(tmp_path, marker, name):
    model = make(tmp_path / "model", None, marker)
    (model / name).write_bytes(b"")
    with pytest.raises(DatasetError, match=name):
        check_saved_model(model)


@pytest.mark.parametrize("kind", ["link to a file", "link to a folder", "dangling link", "fifo"])
def test_a_model_with_links_is_refused(tmp_path, marker, kind):
    model = make(tmp_path / "model", None, marker)
    place = model / "assets" / "further"
    if kind == "fifo":
        os.mkfifo(place)
    else:
        target = {"link to a file": images_file(tmp_path), "link to a folder": tmp_path, "dangling link": "nothing"}
        place.symlink_to(target[kind])
    with pytest.raises(DatasetError, match="further: is (a link|not a file)"):
        check_saved_model(model)


def images_file(folder):
    file = folder / "file"
    file.write_text("x")
    return file


def test_a_table_of_the_models_own_assets_is_allowed(tmp_path):
    """The vocabulary of a TransformGraph, and of a model of the user's, is a file of the model."""
    words = tmp_path / "words.txt"
    words.write_text("a\nb\n")

    class Looked(tf.Module):
        def __init__(self):
            super().__init__()
            line = tf.lookup.TextFileIndex.WHOLE_LINE
            number = tf.lookup.TextFileIndex.LINE_NUMBER
            initializer = tf.lookup.TextFileInitializer(str(words), tf.string, line, tf.int64, number)
            self.table = tf.lookup.StaticHashTable(initializer, -1)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def serve(self, texts):
            return {"places": self.table.lookup(texts)}

    made = Looked()
    tf.saved_model.save(made, str(tmp_path / "model"), made.serve)
    words.unlink()
    loaded = load_saved_model(tmp_path / "model")
    assert loaded.signatures["serving_default"](tf.constant(["b", "c"]))["places"].numpy().tolist() == [1, -1]


def test_a_file_that_the_caller_names_is_no_asset(tmp_path):
    class Looked(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
        def serve(self, file):
            table = tf.raw_ops.AnonymousHashTable(key_dtype=tf.string, value_dtype=tf.int64)
            tf.raw_ops.InitializeTableFromTextFileV2(table_handle=table, filename=file, key_index=-2, value_index=-1)
            return {"size": tf.raw_ops.LookupTableSizeV2(table_handle=table)}

    made = Looked()
    tf.saved_model.save(made, str(tmp_path / "model"), made.serve)
    with pytest.raises(DatasetError, match="InitializeTableFromTextFileV2"):
        check_saved_model(tmp_path / "model")
