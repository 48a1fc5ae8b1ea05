"""Whatever the exporter writes passes the check of models: every task, encoder and preparation."""

import dataclasses
import itertools

import pytest
from recipes import train_recipe

from shardwright.components.image_trainer.export.export_model import save_model
from shardwright.components.image_trainer.export.signatures import FlippedMean
from shardwright.components.image_trainer.models.build import load_trained, model_of
from shardwright.components.image_trainer.spec import TextColumn, TrainSpec
from shardwright.components.image_transform.transform_recipe import ingest_image_options
from shardwright.components.model_files.saved_model import check_saved_model
from shardwright.config.loader import NORMALIZATIONS
from shardwright.config.trainer import ENCODERS, MODELS
from shardwright.evaluation.thresholds import Thresholds
from shardwright.images.geometry import POLICIES

pytestmark = pytest.mark.slow

# The encoders differ in depth and width; one of them stands for all where the decoder is another.
CASES = [("unet", encoder) for encoder in ENCODERS]
CASES += [(model, encoder) for model in ("deeplab", "cnn") for encoder in ENCODERS[:2]]
TURNED = ingest_image_options(
    {"images": {"orientation": "apply", "unsupported_formats": "png", "resize": "letterbox", "size": [40, 50]}}
)


def spec_of(folder, task, multi, model="", encoder=ENCODERS[0], **options):
    recipe = train_recipe(model or MODELS[task][0], 4, 1, 4, 1e-3, 1, "eval", encoder=encoder)
    spec = TrainSpec(
        recipe,
        "d",
        "d",
        task,
        ("a", "b"),
        32,
        32,
        "stretch",
        None,
        None,
        str(folder),
        str(folder / "export"),
        multi=multi,
    )
    return dataclasses.replace(spec, **options)


def check(spec, folder):
    """Writes the model as a training does, opens it as the export does, and checks what is exported."""
    model_of(spec).save(folder / "model.keras")
    model = load_trained(folder / "model.keras", spec)
    save_model(FlippedMean(model, spec), spec, Thresholds((0.4, 0.6), (0, 3)))
    check_saved_model(spec.export)


@pytest.mark.parametrize(("model", "encoder"), CASES)
def test_models_and_encoders(tmp_path, model, encoder):
    task = next(task for task, models in MODELS.items() if model in models)
    check(spec_of(tmp_path, task, False, model, encoder), tmp_path)


@pytest.mark.parametrize(("normalize", "policy"), zip(NORMALIZATIONS, itertools.cycle(POLICIES)))
def test_preparations(tmp_path, normalize, policy):
    spec = spec_of(tmp_path, "segmentation", False, resize=policy, ingested=TURNED, ignore=True)
    recipe = spec.recipe
    flips = dataclasses.replace(recipe.evaluator, flips=("left_right", "up_down"))
    recipe = dataclasses.replace(
        recipe, loader=dataclasses.replace(recipe.loader, normalize=normalize), evaluator=flips
    )
    numbers = (1.0, 2.0, 3.0) if normalize == "dataset" else None
    check(dataclasses.replace(spec, recipe=recipe, mean=numbers, std=numbers), tmp_path)


@pytest.mark.parametrize(
    ("task", "multi"), [("segmentation", False), ("classification", False), ("classification", True)]
)
def test_tasks_with_texts(tmp_path, task, multi):
    (tmp_path / "vocabulary_image_meta_caption").write_text("sea\nsky\nüben\n", encoding="utf-8")
    columns = (TextColumn("caption", "image/meta/caption", 5, "c" * 64, 3),)
    check(spec_of(tmp_path, task, multi, texts=columns, vocabularies=str(tmp_path)), tmp_path)
