"""The features of a transformed example, with their names, before any is written."""

from __future__ import annotations

from collections.abc import Mapping

from shardwright.config import TransformConfig
from shardwright.config.transform import COUNTS, PNG, TextConfig
from shardwright.dataset.feature_presets import COMMON_FEATURES, StoredFeatures, feature_name
from shardwright.dataset.resampled_annotations import ADDED_FEATURES, label_features
from shardwright.errors import ConfigError


def stored_features(
    recipe: TransformConfig, features: Mapping[str, str], *, labels: str, classes: int
) -> tuple[StoredFeatures, dict[str, TextConfig]]:
    """Plans the stored features of a transformed example.

    Args:
        recipe: the options.
        features: name -> kind of the ingested features, by internal names.
        labels: kind of labels, see `Manifest.labels`.
        classes: number of classes.

    Returns:
        The stored features, and feature -> its text options.

    Raises:
        ConfigError: the input has no such texts, or its labels do not fit the preset or `transform.labels`.
    """
    texts = {_text_feature(column, features): text for column, text in recipe.text.items()}
    assets = [asset_name(name) for name in texts]
    if len(set(assets)) < len(recipe.text):
        raise ConfigError(
            "transform.text",
            f"two of {', '.join(recipe.text)} would have one vocabulary",
            "Name each feature once, and rename a column whose name differs in other signs only.",
        )
    added = {**ADDED_FEATURES, **label_features(recipe.labels, labels)}
    for name, text in texts.items():
        added |= text_features(name, text)
    taken = sorted(set(added) & set(features) - set(ADDED_FEATURES))
    if taken:
        raise ConfigError("transform", f"the input already has a feature {taken[0]!r}", "Leave it out of the input.")
    stored = StoredFeatures.of(
        recipe.preset,
        {},
        {**features, **added},
        labels=labels,
        classes=classes,
        drawn=recipe.masks == PNG,
        section="transform",
    )
    return stored, texts


def asset_name(feature: str) -> str:
    """Returns the name of a feature's vocabulary among the assets of the TransformGraph."""
    return "vocabulary_" + "".join(c if c.isascii() and c.isalnum() else "_" for c in feature)


def text_features(name: str, text: TextConfig) -> dict[str, str]:
    """Returns name -> kind of the features stored for the texts of a feature."""
    if text.output == COUNTS:
        return {f"{name}/indices": "int64", f"{name}/counts": "int64"}
    return {f"{name}/{text.output}": "int64" if text.output == "ids" else "float32"}


def _text_feature(column: str, features: Mapping[str, str]) -> str:
    """Returns the feature of a column, which may also be a full feature name."""
    found = [name for name in (column, feature_name(column)) if features.get(name) == "bytes"]
    if found and found[0] not in COMMON_FEATURES:
        return found[0]
    there = sorted(name for name, kind in features.items() if kind == "bytes" and name not in COMMON_FEATURES)
    raise ConfigError(
        f"transform.text.{column}",
        "the images have no such texts",
        f"There are: {', '.join(there)}." if there else "There are none; see input.labels.features.",
    )
