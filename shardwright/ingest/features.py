"""Names and kinds of the features of an ingested example, as TF Model Garden and TFDS name them."""

from __future__ import annotations

from shardwright.ingest.recipe import IngestRecipe
from shardwright.manifest import IGNORED, MASKS
from shardwright.presets import COMMON_FEATURES, StoredFeatures
from shardwright.sources.base import Survey


def mask_feature(name: str) -> str:
    """Prefix of the two features of a mask, `/rle` and `/area`; `name` is a class or `manifest.IGNORED`."""
    return f"image/segmentation/{name}"


def example_features(task: str, survey: Survey) -> dict[str, str]:
    """Name and kind (`bytes`, `int64`, `float32`) of every feature that an example may have."""
    features = dict(COMMON_FEATURES)
    if task == "segmentation":
        for name in (*survey.classes, *([IGNORED] if survey.ignore else [])):
            features[f"{mask_feature(name)}/rle"] = "int64"
            features[f"{mask_feature(name)}/area"] = "int64"
    return {**features, **survey.features}


def stored_features(recipe: IngestRecipe, survey: Survey) -> StoredFeatures:
    """How these features are stored, by `features`.

    Raises:
        ConfigError: see `StoredFeatures.of`.
    """
    return StoredFeatures.of(
        recipe.features.preset,
        recipe.features.map,
        example_features(recipe.task, survey),
        labels=labels_kind(recipe.task, survey),
        classes=len(survey.classes),
    )


def labels_kind(task: str, survey: Survey) -> str:
    """What an image is given; see `Manifest.labels`."""
    return MASKS if task == "segmentation" else survey.labels
