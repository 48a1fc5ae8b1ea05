"""`shardwright.train`: a training without TFX gives what the pipeline's components give."""

import csv
import filecmp
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import build
import numpy as np
import pytest
from recipes import changed, train_recipe

import shardwright
from shardwright.components.image_trainer import run_fn, train_dataset
from shardwright.components.image_trainer.spec import TrainSpec
from shardwright.components.image_transform.transform_images import transform_images
from shardwright.components.image_transform.transform_plan import plan_of_config
from shardwright.config.constructors import config_of
from shardwright.config.transform import size_of_images
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ConfigError, DatasetError, UsageError
from shardwright.loader.dataset_info import median_size
from shardwright.pipelines.standalone_transform import transform_dataset

COUNTS = {"train": [5, 4], "eval": [4], "test": [5]}
TRANSFORM = {"size": (16, 24)}
TRAINER = {"epochs": 1, "batch_size": 3, "base_filters": 4, "model": "own_models:normed"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return build.dataset(tmp_path / "source", counts=COUNTS)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_transform_writes_the_bytes_of_the_component(source: Path, tmp_path: Path, workers: int) -> None:
    config, opened = config_of(transform=TRANSFORM), ImageDataset.open(source)
    plan = plan_of_config(opened, config)
    manifest = transform_images(opened, plan, tmp_path / "own", workers=workers, quiet=True)
    assert transform_dataset(str(source), config, tmp_path / "tfx", beam=()).digest == manifest.digest
    files = {p.relative_to(tmp_path / "own") for p in (tmp_path / "own").rglob("*") if p.is_file()}
    assert len(files) > 10
    for file in files - {Path("build.json")}:
        assert filecmp.cmp(tmp_path / "own" / file, tmp_path / "tfx/transformed_examples" / file, shallow=False), file
    assert not list(tmp_path.glob("*staging*"))


def test_a_finished_transform_is_found_and_another_one_is_refused(source: Path, tmp_path: Path) -> None:
    opened = ImageDataset.open(source)
    plan = plan_of_config(opened, config_of(transform=TRANSFORM))
    first = transform_images(opened, plan, tmp_path / "out", workers=1, quiet=True)
    assert transform_images(opened, plan, tmp_path / "out", workers=1, quiet=True) == first
    other = plan_of_config(opened, config_of(transform={"size": (8, 8)}))
    with pytest.raises(UsageError, match="contains another dataset"):
        transform_images(opened, other, tmp_path / "out", workers=1, quiet=True)
    (tmp_path / "other").mkdir()
    with pytest.raises(UsageError, match="exists already, and is no dataset"):
        transform_images(opened, plan, tmp_path / "other", workers=1, quiet=True)


BLOCKED = """
import sys
for name in ("tfx", "tfx_bsl", "apache_beam", "tensorflow_transform", "tensorflow_model_analysis", "ml_metadata",
             "tensorflow_data_validation", "jax"):
    sys.modules[name] = None
"""
SCRIPT = """
import json, sys
import shardwright
if __name__ == "__main__":
    model = shardwright.train(sys.argv[1], sys.argv[2], transform={transform}, trainer={trainer})
    model.predict(sys.argv[1], "predicted.csv", dialect="clouds")
    print(json.dumps([model.best_epoch, model.figures.measured.split, model.figures.measured.images]))
"""


@pytest.mark.slow
def test_a_training_needs_neither_tfx_nor_beam_nor_jax(source: Path, tmp_path: Path) -> None:
    """The workers, too: each finds `sitecustomize` where this process does."""
    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked/sitecustomize.py").write_text(BLOCKED)
    own = Path(__file__).parents[2] / "support"
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(transform=TRANSFORM, trainer=TRAINER))
    paths = [str(tmp_path / "blocked"), str(own), *filter(None, sys.path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "SHARDWRIGHT_TEST_PREFORK": "0"}
    (tmp_path / "own_models.py").write_bytes((own / "own_models.py").read_bytes())
    done = subprocess.run(
        [sys.executable, str(script), str(source), str(tmp_path / "out")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [1, "test", 5]
    assert len((tmp_path / "predicted.csv").read_text().splitlines()) == 18 * 2 + 1


@pytest.mark.slow
def test_more_epochs_continue_a_finished_training_where_the_schedule_allows(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    support = Path(__file__).parents[2] / "support"
    monkeypatch.syspath_prepend(str(support))
    monkeypatch.chdir(support)

    def trained(out: str, epochs: int, **options: object) -> Any:
        trainer = {**TRAINER, "epochs": epochs, "schedule": "constant", "warm_up": 0, **options}
        return shardwright.train(source, tmp_path / out, transform=TRANSFORM, trainer=trainer, workers=1)

    def weights(out: str) -> object:
        return json.loads((tmp_path / out / "training/training.json").read_text())["weights"]

    trained("two", 1)
    model, whole = trained("two", 2), trained("whole", 2)
    assert weights("two") == weights("whole")
    assert model.history == whole.history
    summary = json.loads((tmp_path / "two/training/training.json").read_text())
    assert len(summary["resumed"]) == 1
    assert model.figures == whole.figures
    # Fewer, and anything else, is another training.
    with pytest.raises(UsageError, match="has the model of another training"):
        trained("two", 1)
    with pytest.raises(UsageError, match="has the model of another training"):
        trained("two", 3, learning_rate=0.5)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"schedule": "cosine"}, "its learning rate has fallen to the end of trainer.schedule: cosine"),
        ({"schedule": "linear", "warm_up": 0.0}, "its learning rate has fallen to the end of trainer.schedule: linear"),
        ({"schedule": "constant", "warm_up": 0.1}, "trainer.warm_up: 0.1 of the steps would be more of them"),
        ({"schedule": "constant", "warm_up": 0.0}, "its last checkpoint is gone"),
    ],
)
def test_more_epochs_are_refused_where_the_schedule_has_ended(
    tmp_path: Path, options: dict[str, Any], problem: str
) -> None:
    recipe = train_recipe("cnn", 4, 10, 4, 1e-2, 3, "eval", **options)
    given = ("", "d", "classification", ("a", "b"), 8, 8, "stretch", None, None, "", "")
    TrainSpec(recipe, *given).write(tmp_path / "spec.json")
    with pytest.raises(UsageError) as caught:
        run_fn._continue(TrainSpec(changed(recipe, epochs=20), *given), tmp_path, Path("model"))
    assert str(caught.value).startswith(
        f"model: has the model of the same training with 10 epochs, which cannot go on to 20: {problem}. Give another"
    )


@pytest.mark.slow
def test_it_trains_measures_and_predicts_and_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "support"))
    monkeypatch.chdir(Path(__file__).parents[2] / "support")
    source = build.dataset(tmp_path / "source", counts=COUNTS, task="classification")
    trainer = {**TRAINER, "model": "auto", "epochs": 2}
    model = shardwright.train(source, tmp_path / "out", transform=TRANSFORM, trainer=trainer, workers=1)
    assert model.keras_file.is_file()
    assert len(model.history) == 2
    assert model.figures is not None
    assert model.figures.measured.split == "test"
    # The figures are those of the labels that the model predicts.
    model.predict(source, tmp_path / "labels.csv", split="test")
    with (tmp_path / "labels.csv").open(newline="") as file:
        predicted = {row["image"]: row["label"] for row in csv.DictReader(file)}
    dataset = ImageDataset.open(source)
    true = {key: dataset.example(key).classes[0] for key in dataset.keys("test")}
    assert predicted.keys() == true.keys()
    assert model.figures.values["accuracy"] == np.mean([predicted[key] == true[key] for key in true])
    assert "accuracy" in repr(model)
    capfd.readouterr()
    again = shardwright.train(source, tmp_path / "out", transform=TRANSFORM, trainer=trainer, workers=1)
    assert again == model
    assert "epoch 1" not in capfd.readouterr().err
    with pytest.raises(UsageError, match="cannot go on to 3: its learning rate has fallen"):
        shardwright.train(source, tmp_path / "out", transform=TRANSFORM, trainer={**trainer, "epochs": 3}, workers=1)


def test_wrong_calls_are_refused_before_anything_is_written(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(ConfigError, match=r"trainer\.epochs"):
        shardwright.train(source, out, trainer={"epochs": 0})
    with pytest.raises(UsageError, match=r"trainer\.warm_start: blessed is for pipelines"):
        shardwright.train(source, out, trainer={"warm_start": "blessed"})
    with pytest.raises(UsageError, match="its task is classification"):
        shardwright.train(source, out, config={"task": "classification", "input": {"images": "x"}})
    with pytest.raises(DatasetError):
        shardwright.train(tmp_path / "missing", out)
    with pytest.raises(UsageError, match="writes to this machine"):
        shardwright.train(source, "gs://bucket/out")
    assert not out.exists()


@pytest.mark.parametrize("name", ["images", "training", "model"])
def test_no_link_is_followed_below_the_folder_of_the_results(source: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).symlink_to(tmp_path / "theirs")
    with pytest.raises(UsageError, match=name):
        shardwright.train(source, tmp_path / "out", transform=TRANSFORM, trainer=TRAINER)
    assert not list((tmp_path / "theirs").iterdir())


class Planned(Exception):
    """Carries the recipe, or the options, of a training that does not begin."""


@pytest.mark.parametrize(("counts", "expected"), [({"train": [4]}, ""), ({"train": [4], "eval": [2]}, "eval")])
def test_the_dataset_not_the_configuration_states_the_splits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counts: dict[str, list[int]], expected: str
) -> None:
    def plan(recipe: object, **others: object) -> None:
        raise Planned(recipe)

    monkeypatch.setattr("shardwright.components.image_trainer.train_dataset.train_and_export", plan)
    ratios = {"train": 0.5, "test": 0.5} if expected else {"train": 0.5, "eval": 0.25, "test": 0.25}
    config = {"input": {"images": "x"}, "split": {"ratios": ratios}, "transform": {"size": [16, 24]}}
    with pytest.raises(Planned) as planned:
        shardwright.train(build.dataset(tmp_path, counts=counts), tmp_path / "out", config=config, workers=1)
    assert planned.value.args[0].eval_split == expected


def test_texts_need_the_pipeline(tmp_path: Path, source: Path) -> None:
    with pytest.raises((UsageError, ConfigError), match="text"):
        shardwright.train(source, tmp_path / "out", transform={**TRANSFORM, "text": {"note": {"vocabulary": 5}}})


@pytest.mark.parametrize(
    ("task", "image", "given", "wanted"),
    [
        ("segmentation", (200, 200), {}, ((192, 192), "stretch")),
        ("segmentation", (400, 1000), {}, ((192, 512), "stretch")),
        ("classification", (300, 260), {}, ((224, 224), "fill_crop")),
        ("classification", (100, 70), {"resize": "letterbox"}, ((64, 64), "letterbox")),
        ("segmentation", (200, 200), {"resize": "keep"}, (None, "keep")),
        ("segmentation", (200, 200), {"size": (40, 48)}, ((40, 48), "stretch")),
        ("segmentation", (200, 200), {"quality": 80}, ((192, 192), "stretch")),
    ],
)
def test_without_a_size_the_images_decide_by_the_rule_of_init(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    task: str,
    image: tuple[int, int],
    given: dict[str, Any],
    wanted: tuple[tuple[int, int] | None, str],
) -> None:
    """They became 352x544, whatever they were, and no line said so."""

    def transformed(opened: ImageDataset, config: Any, folder: Path, workers: int | None) -> Any:
        raise Planned(config.transform.size, config.transform.resize)

    # One image of another size does not decide.
    source = build.dataset(
        tmp_path / "source", task=task, counts={"train": [4, 1]}, size=lambda number: (64, 64) if number == 4 else image
    )
    monkeypatch.setattr(train_dataset, "transformed", transformed)
    with pytest.raises(Planned) as chosen:
        shardwright.train(source, tmp_path / "out", transform=given or None)
    assert chosen.value.args == wanted
    said = capsys.readouterr().out
    if "size" in given or given.get("resize") == "keep":
        assert not said
    else:
        assert f"brought to {wanted[0][0]}x{wanted[0][1]} (height x width; {wanted[1]})" in said
        assert f"median is {image[0]}x{image[1]}" in said
        assert size_of_images(task, *image)[0] == wanted[0]


def test_the_median_is_of_images_as_they_are_displayed(tmp_path: Path) -> None:
    def turned(number: int, example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "image/orientation": 6}

    source = build.dataset(tmp_path / "source", counts={"train": [3]}, size=lambda number: (40, 80), change=turned)
    assert median_size(ImageDataset.open(source)) == (80, 40)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "predicted.csv': exists already. Name another file, or give force=True."),
        ({"batch_size": 0}, "batch_size: 0 is too small"),
        ({"form": "xml"}, "form xml: is not known"),
        ({"form": "tfrecord", "dialect": "kaggle"}, "dialect kaggle: TFRecord files"),
    ],
)
def test_a_prediction_replaces_no_file_and_names_keywords(
    tmp_path: Path, options: dict[str, Any], problem: str
) -> None:
    """Messages named options of the command, and a file was replaced that the command refuses to replace."""
    out = tmp_path / "predicted.csv"
    out.write_text("mine")
    model = train_dataset.TrainedModel(tmp_path, "segmentation", ("a",), 1, (), None)
    with pytest.raises(UsageError, match=re.escape(problem)) as refused:
        model.predict(tmp_path, out, **options)
    assert "--" not in str(refused.value)
    assert out.read_text() == "mine"
