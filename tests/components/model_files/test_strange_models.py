"""A model of others does nothing but compute: what does more is refused by name before any of it runs."""

import json
import shutil
from types import SimpleNamespace

import pytest
from PIL import Image
from strange_models import STRANGE, make

from shardwright.components.model_files.saved_model import TRUST_VARIABLE, check_saved_model, load_saved_model
from shardwright.components.predictor.model import open_model
from shardwright.components.pusher.executor import check_answers
from shardwright.errors import DatasetError
from shardwright.pipelines.cli import main


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
