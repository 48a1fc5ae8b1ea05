"""`features.json`, `dataset_info.json` and the names of the labels, by which TFDS reads a dataset.

`tfds.builder_from_directory(DATASET)` decodes images, names labels and splits, and reads slices such as `train[:10%]`.
The manifest does not contain these files, so that a later version may describe the same dataset in another way;
`build.json` has their checksums.

Features keep their stored names. One that every record has is a scalar, an image or a fixed list. One that may be
missing is a list, which TFDS then reads as an empty one.

Sources: tensorflow_datasets 4.9 (`features.json` is the message `Feature` of feature.proto in JSON, `dataset_info.json`
the message `DatasetInfo` of dataset_info.proto; names of labels are lines of `<feature>.labels.txt`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from shardwright.dataset.feature_presets import COMMON_FEATURES, SIZE
from shardwright.dataset.manifest import AREA, IGNORED, NONE, RLE, SINGLE, Manifest, ShardInfo, mask_feature
from shardwright.storage.fingerprint import canonical_json
from shardwright.untrusted.json_text import is_file_name

FEATURES_FILE, INFO_FILE = "features.json", "dataset_info.json"
_CLASSES = "tensorflow_datasets.core.features."
_NAME, _VERSION = "shardwright", "1.0.0"
_LABEL, _TEXT = "image/class/label", "image/class/text"
_BOX_LABEL = "image/object/class/label"
_SCALARS = {name for name in COMMON_FEATURES if name not in (_LABEL, _TEXT)}
_MEASURED = ("image/quality/", "image/hash/")
_PLAIN_FORMS = ("raw", "tensor")
# TFDS writes numbers of shards with five digits, or as many as the largest has.
_DIGITS = 5

_Feature = dict[str, Any]
_RUNS = (
    "The mask of a class is a list of runs (start, length): positions from 0 in the stored pixels, down the columns "
    "(column * height + row). `shardwright.masks.rle.draw` draws it."
)


def tfds_files(manifest: Manifest, *, labeled: bool) -> dict[str, str]:
    """Returns name -> text of the files that TFDS reads.

    Args:
        manifest: of the dataset, whole.
        labeled: whether every image is known to have a class, where it can have one.

    Returns:
        None where TFDS cannot name the shards: it knows their number and how many there are, not how many records
        each contains.
    """
    by_split = {split: [shard for shard in manifest.shards if shard.split == split] for split in manifest.splits}
    templates = [_template(shards) for shards in by_split.values()]
    if None in templates or not templates:
        return {}
    ours = {stored: name for name, stored in manifest.names.items()}
    masks = {mask_feature(name): f"Mask of the class {name}" for name in manifest.classes} | (
        {mask_feature(IGNORED): "Pixels that neither loss nor metric counts"} if manifest.ignores else {}
    )
    areas = {name.removesuffix(RLE) + AREA for name in masks}
    features = {
        stored: _feature(manifest, ours.get(stored, stored), stored, kind, labeled, masks, areas)
        for stored, kind in sorted(manifest.features.items())
    }
    structure = {**_typed("features_dict.FeaturesDict"), "featuresDict": {"features": features}}
    text = f"{manifest.task}, {manifest.kind}, fingerprint {manifest.fingerprint}."
    info: dict[str, Any] = {
        "name": _NAME,
        "version": _VERSION,
        "description": f"{text} {_RUNS}" if any(name.endswith(f"/{RLE}") for name in manifest.features) else text,
        "fileFormat": "tfrecord",
        "splits": [
            {
                "name": split,
                "filepathTemplate": template,
                "shardLengths": [str(shard.records) for shard in shards],
                "numBytes": str(sum(shard.bytes for shard in shards)),
            }
            for (split, shards), template in zip(by_split.items(), templates, strict=True)
        ],
    }
    label = manifest.stored(_LABEL)
    if label in features and manifest.labels != NONE:
        pair = [{"featureKey": name} for name in (manifest.stored("image/encoded"), label)]
        info["supervisedKeys"] = {"tuple": {"items": pair}}
    found = {
        name: json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        for name, value in (
            (FEATURES_FILE, structure),
            (INFO_FILE, info),
        )
    }
    names = f"{label.replace('/', '.')}.labels.txt"
    # TFDS strips the names and skips empty ones.
    plain = all(name.strip() == name and len(name.splitlines()) == 1 for name in manifest.classes)
    if label in features and plain and is_file_name(names):
        found[names] = "".join(f"{name}\n" for name in manifest.classes)
    return found


def _template(shards: Sequence[ShardInfo]) -> str | None:
    """Returns the template of the paths of a split's shards, `None` where TFDS has none for them."""
    paths, of = [shard.path for shard in shards], len(shards)
    digits = max(_DIGITS, len(str(of)))
    both = f"{0:0{digits}d}-of-{of:0{digits}d}"
    for text, name in ((both, "{SHARD_X_OF_Y}"), (f"{0:0{digits}d}", "{SHARD_INDEX}")):
        before, found, after = paths[0].rpartition(text)
        made = [f"{before}{number:0{digits}d}{text[digits:]}{after}" for number in range(of)]
        if found and made == paths and not {"{", "}"} & {*before, *after}:
            return f"{before}{name}{after}"
    return paths[0] if of == 1 and not {"{", "}"} & {*paths[0]} else None


def _feature(
    manifest: Manifest, name: str, stored: str, kind: str, labeled: bool, masks: Mapping[str, str], areas: set[str]
) -> _Feature:
    one = manifest.labels == SINGLE and labeled
    if name == "image/encoded" and manifest.encoding not in _PLAIN_FORMS:
        return _image(3, "The stored file, decoded. Exif's orientation is not applied.")
    if name == _LABEL and manifest.classes:
        classes = _typed("class_label_feature.ClassLabel", f"Classes: {canonical_json(list(manifest.classes))}")
        label = {**classes, "classLabel": {"numClasses": str(len(manifest.classes))}}
        return label if one else _list(label)
    if name in masks and kind == "int64":
        return _tensor("int64", (-1, 2), f"{masks[name]}: runs (start, length) down the columns, from 0.")
    if name in masks and not stored.endswith("_text"):
        return _image(1, f"{masks[name]}: 0 and 1.")
    if name == SIZE:
        return _tensor("int64", (2,), "Height and width.")
    always = name in _SCALARS or name in areas or name.startswith(_MEASURED) or (name == _TEXT and one)
    value = {**_typed("text_feature.Text"), "text": {}} if kind == "bytes" else _tensor(kind, ())
    if name == _BOX_LABEL:
        return _list(value, "Number of the box's class from 1: 0 is the background.")
    return value if always else _list(value)


def _typed(name: str, description: str = "") -> _Feature:
    return {"pythonClassName": _CLASSES + name, **({"description": description} if description else {})}


def _image(channels: int, description: str) -> _Feature:
    shape = {"dimensions": ["-1", "-1", str(channels)]}
    return {**_typed("image_feature.Image", description), "image": {"shape": shape, "dtype": "uint8"}}


def _tensor(dtype: str, shape: Sequence[int], description: str = "") -> _Feature:
    dimensions = {"dimensions": [str(size) for size in shape]} if shape else {}
    value = {"shape": dimensions, "dtype": dtype, "encoding": "none"}
    return {**_typed("tensor_feature.Tensor" if shape else "scalar.Scalar", description), "tensor": value}


def _list(feature: _Feature, description: str = "") -> _Feature:
    content = {"feature": feature, "length": "-1"}
    return {**_typed("sequence_feature.Sequence", description), "sequence": content}
