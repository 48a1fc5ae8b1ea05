"""Models and weights that do not fit are reported before any work, with the message of the Trainer."""

import pytest

from shardwright.components.image_trainer.models import check as models_check
from shardwright.components.image_trainer.models.check import check_model
from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.config import parse_config
from shardwright.errors import UsageError

CLASSES = ("Disc", "Bar")
SMALL = {"size": [32, 32]}


def config_of(base, **trainer):
    value = {"task": "segmentation", "input": {"images": "photos"}, "transform": SMALL, "trainer": trainer}
    return parse_config(value, base=str(base))


@pytest.fixture
def asked(monkeypatch):
    """The workers that were started."""
    found = []

    def run_worker(module, spec_file, log_file, *, environment):
        found.append((module[-1], TrainSpec.read(spec_file), environment))

    monkeypatch.setattr(models_check, "run_worker", run_worker)
    return found


def test_nothing_is_tried_where_there_is_nothing_to_fit(tmp_path, asked):
    (tmp_path / "mine.py").write_text("def build(**others): ...\n")
    for trainer in ({}, {"warm_start": "blessed"}, {"encoder": "efficientnetv2-b0"}):
        check_model(config_of(tmp_path, **trainer), CLASSES, multi=False)
    check_model(config_of(tmp_path, model="mine:build"), CLASSES, multi=False, own=False)
    assert asked == []


def test_the_worker_gets_the_model_and_the_files(tmp_path, asked):
    for name in ("earlier.keras", "encoder.h5"):
        (tmp_path / name).write_bytes(b"weights")
    config = config_of(tmp_path, warm_start="earlier.keras", encoder="efficientnetv2-b0", weights="encoder.h5")
    check_model(config, CLASSES, multi=False)
    ((worker, spec, environment),) = asked
    assert (worker, environment) == ("check", {"KERAS_BACKEND": "tensorflow"})
    assert (spec.classes, spec.height, spec.width, spec.recipe.trainer.encoder) == (
        CLASSES,
        32,
        32,
        "efficientnetv2-b0",
    )
    assert (spec.warm_from, spec.weights_from) == (str(tmp_path / "earlier.keras"), str(tmp_path / "encoder.h5"))


@pytest.mark.slow
def test_an_earlier_model_of_another_width_is_refused_with_both(tmp_path):
    from shardwright.components.image_trainer.models.build import build_model

    file = tmp_path / "earlier.keras"
    build_model("unet", height=32, width=32, classes=2, filters=4, seed=1).save(file)
    with pytest.raises(
        UsageError,
        match=r"warm_start: .*another architecture, unet of [\d,]+ weights and 2 outputs, and the configuration asks "
        r"for unet of [\d,]+ weights and 3 outputs: stem/kernel \[4, 4, 3, 8\] here, stem/kernel \[4, 4, 3, 4\] there",
    ):
        check_model(config_of(tmp_path, warm_start=str(file), base_filters=8), (*CLASSES, "Ring"), multi=False)


@pytest.mark.slow
def test_what_fits_passes(tmp_path, asked):
    from shardwright.components.image_trainer.models.build import build_model
    from shardwright.components.image_trainer.worker import check

    file = tmp_path / "earlier.keras"
    build_model("unet", height=48, width=48, classes=2, filters=4, seed=1).save(file)
    check_model(config_of(tmp_path, warm_start=str(file), base_filters=4), CLASSES, multi=False)
    check(asked[0][1])


@pytest.mark.slow
def test_weights_of_another_encoder_are_refused_with_the_name_of_both(tmp_path, asked):
    from shardwright.components.image_trainer.models.encoders import build_encoder
    from shardwright.components.image_trainer.worker import check

    file = tmp_path / "b1_notop.weights.h5"
    build_encoder("efficientnetv2-b1", 32, 32).save_weights(file)
    check_model(config_of(tmp_path, encoder="efficientnetv2-b0", weights=str(file)), CLASSES, multi=False)
    with pytest.raises(
        UsageError,
        match=r"weights: b1_notop.weights.h5 has weights of efficientnetv2-b1, not of efficientnetv2-b0: .* here, "
        r".* there.*set trainer.encoder: efficientnetv2-b1",
    ):
        check(asked[0][1])
