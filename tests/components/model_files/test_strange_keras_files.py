"""Keras files of others: known layers and numbers, or a refusal before Keras builds anything."""

import json
import zipfile

import h5py
import keras
import numpy as np
import pytest

from shardwright.components.image_trainer.models.encoders import load_encoder_weights
from shardwright.components.image_trainer.training.warm_start import begin_with
from shardwright.components.model_files.keras_file import check_hdf5, check_keras_file, load_keras_model
from shardwright.errors import DatasetError


@keras.saving.register_keras_serializable("own")
class Doubled(keras.layers.Layer):
    def call(self, inputs):
        return inputs * 2


def model(*layers):
    inputs = keras.Input((4,))
    outputs = inputs
    for layer in layers:
        outputs = layer(outputs)
    return keras.Model(inputs, keras.layers.Dense(2, name="scores")(outputs + 1))


@pytest.fixture
def plain(tmp_path):
    keras.utils.set_random_seed(0)
    keras.backend.clear_session()  # The numbers in names begin anew.
    made = model(keras.layers.Dense(3, activation="relu", kernel_regularizer="l2"))
    made.save(tmp_path / "plain.keras")
    return tmp_path / "plain.keras"


def settled(data):
    """Returns a description without what is different in each run: the time, and addresses of objects."""
    return json.loads(data, object_hook=lambda row: {key: row[key] for key in row if key not in VARYING})


def rewritten(file, change=lambda config: None, members=(), compression=zipfile.ZIP_STORED):
    """Returns a copy of a file with another architecture and further members."""
    target = file.with_name("changed.keras")
    with zipfile.ZipFile(file) as before, zipfile.ZipFile(target, "w", compression) as after:
        for name in before.namelist():
            data = before.read(name)
            if name.endswith(".json"):
                described = settled(data)
                if name == "config.json":
                    change(described)
                data = json.dumps(described).encode()
            after.writestr(zipfile.ZipInfo(name), data, compression)
        for name, data in members:
            after.writestr(zipfile.ZipInfo(name), data)
    return target


def named(**keys):
    """Returns a change that puts an object into the place of the first hidden layer."""

    def change(config):
        layer = next(one for one in config["config"]["layers"] if one["class_name"] == "Dense")
        layer.update(keys)

    return change


VARYING = ("date_saved", "shared_object_id")
STRANGE = {
    "Lambda": named(class_name="Lambda", module="keras.layers"),
    "TFSMLayer": named(class_name="TFSMLayer", module="keras.layers"),
    "TorchModuleWrapper": named(class_name="TorchModuleWrapper", module="keras.layers"),
    "StringLookup": named(class_name="StringLookup", module="keras.layers"),
    "os.system": named(class_name="system", module="os", registered_name="system"),
    "get_file": named(class_name="function", module="keras.utils", config="get_file", registered_name="get_file"),
    "load_model": named(class_name="load_model", module="keras.saving"),
    "vocabulary": lambda config: config["config"].update(vocabulary="/etc/passwd"),
    "__lambda__": lambda config: config["config"].update(more={"class_name": "__lambda__", "config": {"value": "x"}}),
    "a class of nobody": named(class_name="Own", module="somebody.models", registered_name="own>Nobody"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_is_no_plain_layer_is_refused(plain, name):
    changed = rewritten(plain, STRANGE[name])
    for opens in (load_keras_model, lambda file: begin_with(model(keras.layers.Dense(3)), str(file))):
        with pytest.raises(DatasetError) as caught:
            opens(changed)
        assert "may run code or read files" in str(caught.value)
        assert str(changed) in str(caught.value)


@pytest.mark.parametrize("name", ["assets/x", "../../outside", "model.weights.h5", "evil.py"])
def test_further_members_are_refused(plain, name):
    with pytest.warns(UserWarning, match="Duplicate") if name == "model.weights.h5" else _nothing():
        changed = rewritten(plain, members=[(name, b"x")])
    with pytest.raises(DatasetError, match="no part of a model"):
        load_keras_model(changed)


def test_a_packed_file_is_not_unpacked_without_a_limit(plain):
    """A megabyte of spaces in the architecture, packed to a thousandth."""
    changed = rewritten(plain, lambda config: config.update(x=" " * 4_000_000), compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(DatasetError, match="too many for its size"):
        load_keras_model(changed)


def test_plain_layers_and_registered_classes_are_opened(tmp_path, plain):
    assert load_keras_model(plain).count_params() > 0
    model(Doubled()).save(tmp_path / "own.keras")
    assert isinstance(load_keras_model(tmp_path / "own.keras").layers[1], Doubled)


def external(file):
    file.attrs["layer_names"] = [b"a"]
    file.create_dataset("a/w", (4,), "u1", external=[("/etc/hostname", 0, 4)])


def soft(file):
    file["a"] = h5py.SoftLink("/b")


def elsewhere(file):
    file["a"] = h5py.ExternalLink("other.h5", "/b")


def virtual(file):
    layout = h5py.VirtualLayout((2,), "f4")
    layout[:] = h5py.VirtualSource("other.h5", "b", (2,))
    file.create_virtual_dataset("a", layout)


@pytest.mark.parametrize("change", [external, soft, elsewhere, virtual])
def test_weights_that_refer_to_other_files_are_refused(tmp_path, plain, change):
    places = [tmp_path / "x.h5", tmp_path / "x.weights.h5"]
    for place in places:
        with h5py.File(place, "w") as file:
            change(file)
        with pytest.raises(DatasetError, match="link|another file"):
            check_hdf5(place)
        with pytest.raises(DatasetError, match="link|another file"):
            load_encoder_weights(model(), str(place), "small")
    target = tmp_path / "with.keras"
    with zipfile.ZipFile(plain) as before, zipfile.ZipFile(target, "w") as after:
        for name in before.namelist():
            after.writestr(name, places[0].read_bytes() if name.endswith(".h5") else before.read(name))
    with pytest.raises(DatasetError, match="link|another file"):
        load_keras_model(target)


def test_whole_weights_pass(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a/b"] = np.zeros(3)
    check_hdf5(tmp_path / "x.h5")


def _nothing():
    import contextlib

    return contextlib.nullcontext()


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_archive_is_refused_with_a_message(plain, compression):
    """However the members are packed, and wherever the damage is."""
    whole = rewritten(plain, compression=compression).read_bytes()
    random = np.random.default_rng(compression)
    refused = 0
    for place in random.integers(0, len(whole), 150):
        damaged = bytearray(whole)
        damaged[place : place + 8] = random.bytes(len(damaged[place : place + 8]))
        for data in (bytes(damaged), whole[:place]):
            plain.write_bytes(data)
            try:
                check_keras_file(plain)
            except (ValueError, DatasetError):
                refused += 1
            else:
                assert len(data) == len(whole), "a file that is cut is refused wherever the cut is"
    # All that are cut, and those whose damage is in what is read before Keras opens the file: of stored weights little.
    assert refused > (180 if compression == zipfile.ZIP_STORED else 200)


@pytest.mark.parametrize("keys", [{"class_name": ["Dense"]}, {"class_name": {}}, {"module": ["keras.layers"]}])
def test_a_name_that_is_no_text_is_refused(plain, keys):
    with pytest.raises(DatasetError, match="which may run code"):
        check_keras_file(rewritten(plain, named(**keys)))
