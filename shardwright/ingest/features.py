"""Names and kinds of the features of an ingested example, as in TF Model Garden and TFDS."""

from __future__ import annotations

from shardwright.config.images import FULL, HEADER
from shardwright.dataset.features import COMMON_FEATURES, StoredFeatures
from shardwright.dataset.manifest import IGNORED, MASKS
from shardwright.duplicates.hashes import ImageHashes
from shardwright.formats.base import Survey
from shardwright.images.quality import Quality
from shardwright.ingest.recipe import IngestRecipe

# Features of every image with `images.verify: full`. An int64 contains the 64 bits of a hash.
PROBE_FEATURES = {
    **{f"image/hash/{name}": "int64" for name in ImageHashes._fields},
    **{f"image/quality/{name}": "float32" for name in Quality._fields},
}


def mask_feature(name: str) -> str:
    """Returns the prefix of the two features of a mask, `/rle` and `/area`; `name` is a class or `manifest.IGNORED`."""
    return f"image/segmentation/{name}"


def example_features(task: str, survey: Survey, verify: str = HEADER) -> dict[str, str]:
    """Returns name and kind (`bytes`, `int64`, `float32`) of every feature that an example may have.

    Args:
        task: `segmentation` or `classification`.
        survey: of the input.
        verify: `images.verify`.
    """
    features = dict(COMMON_FEATURES)
    if task == "segmentation":
        for name in (*survey.classes, *([IGNORED] if survey.ignore else [])):
            features[f"{mask_feature(name)}/rle"] = "int64"
            features[f"{mask_feature(name)}/area"] = "int64"
    return {**features, **further_features(survey, verify)}


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
        example_features(recipe.task, survey, recipe.images.verify),
        labels=labels_kind(recipe.task, survey),
        classes=len(survey.classes),
    )


def labels_kind(task: str, survey: Survey) -> str:
    """Returns the kind of an image's labels; see `Manifest.labels`."""
    return MASKS if task == "segmentation" else survey.labels
