"""Names and kinds of the features of an ingested example, as in TF Model Garden and TFDS."""

from __future__ import annotations

from shardwright.config import ImagesConfig
from shardwright.config.images import FULL
from shardwright.dataset.feature_presets import StoredFeatures, common_features
from shardwright.dataset.manifest import AREA, IGNORED, MASKS, mask_feature
from shardwright.duplicates.hashes import ImageHashes
from shardwright.formats.base import Survey
from shardwright.images.quality import Quality
from shardwright.ingest.recipe import IngestRecipe

_DEFAULT = ImagesConfig()
# Features of every image with `images.verify: full`. An int64 contains the 64 bits of a hash.
PROBE_FEATURES = {
    **{f"image/hash/{name}": "int64" for name in ImageHashes._fields},
    **{f"image/quality/{name}": "float32" for name in Quality._fields},
}


def example_features(task: str, survey: Survey, images: ImagesConfig = _DEFAULT) -> dict[str, str]:
    """Returns name and kind (`bytes`, `int64`, `float32`) of every feature that an example may have.

    Args:
        task: `segmentation` or `classification`.
        survey: of the input.
        images: `images`.
    """
    features = common_features(images.checksum)
    if task == "segmentation":
        for name in (*survey.classes, *([IGNORED] if survey.ignore else [])):
            features[mask_feature(name)] = "int64"
            features[mask_feature(name, AREA)] = "int64"
    return {**features, **further_features(survey, images.verify)}


def further_features(survey: Survey, verify: str) -> dict[str, str]:
    """Returns the features that are neither image nor labels: further annotations and probe results."""
    return {**survey.features, **(PROBE_FEATURES if verify == FULL else {})}


def stored_features(recipe: IngestRecipe, survey: Survey) -> StoredFeatures:
    """Returns how these features are stored, by the option `features`.

    Raises:
        ConfigError: see `StoredFeatures.of`.
    """
    return StoredFeatures.of(
        recipe.features.preset,
        recipe.features.map,
        example_features(recipe.task, survey, recipe.images),
        labels=labels_kind(recipe.task, survey),
        classes=len(survey.classes),
    )


def labels_kind(task: str, survey: Survey) -> str:
    """Returns the kind of an image's labels; see `Manifest.labels`."""
    return MASKS if task == "segmentation" else survey.labels
