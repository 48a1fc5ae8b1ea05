"""Names and kinds of the features of an ingested example, as TF Model Garden and TFDS name them."""

from __future__ import annotations

from shardwright.config.images import FULL, HEADER
from shardwright.dataset.features import COMMON_FEATURES, StoredFeatures
from shardwright.dataset.manifest import IGNORED, MASKS
from shardwright.duplicates.hashes import ImageHashes
from shardwright.formats.base import Survey
from shardwright.images.quality import Quality
from shardwright.ingest.recipe import IngestRecipe

# Of every image, with `images.verify: full`. An int64 has the 64 bits of its hash.
PROBE_FEATURES = {
    **{f"image/hash/{name}": "int64" for name in ImageHashes._fields},
    **{f"image/quality/{name}": "float32" for name in Quality._fields},
}


def mask_feature(name: str) -> str:
    """Prefix of the two features of a mask, `/rle` and `/area`; `name` is a class or `manifest.IGNORED`."""
    return f"image/segmentation/{name}"


def example_features(task: str, survey: Survey, verify: str = HEADER) -> dict[str, str]:
    """Name and kind (`bytes`, `int64`, `float32`) of every feature that an example may have.

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
    """Those of them that neither image nor labels make: what else the annotations say, and what the pixels tell."""
    return {**survey.features, **(PROBE_FEATURES if verify == FULL else {})}


def stored_features(recipe: IngestRecipe, survey: Survey) -> StoredFeatures:
    """How these features are stored, by `features`.

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
    """What an image is given; see `Manifest.labels`."""
    return MASKS if task == "segmentation" else survey.labels
