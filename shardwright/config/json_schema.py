"""JSON Schema of the configuration, made of the sections: editors complete and check the YAML with it.

Types, defaults and descriptions are those of the sections. `CHOICES` and `RANGES` repeat what the sections check in
`__post_init__`; `tests/shardwright/config/test_json_schema.py` holds both equal. Conditions on several keys are checked
by `shardwright validate` only. `shardwright.schema.json` in this folder is the text of `schema_text`.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import re
import types
from collections.abc import Iterator, Mapping
from typing import Any, Union, get_args, get_origin

from shardwright import label_formats
from shardwright.checksum import ALGORITHMS
from shardwright.config import config as config_config
from shardwright.config import evaluation, images, loader, pods, split, trainer, transform
from shardwright.config import input as labels
from shardwright.config.cloud import LEAST, MOST_RETRIES
from shardwright.config.dataset import PRESETS
from shardwright.config.parsing import NUMBER, keys_of, plain_value, section_of, units_of
from shardwright.config.vertex import LARGEST_STEP
from shardwright.storage.spans import ALL, NEWEST

SCHEMA_FILE = "shardwright.schema.json"
_DRAFT = "https://json-schema.org/draft/2020-12/schema"

# Path of a key -> its values. `*` stands for any name or number.
CHOICES: dict[str, tuple[Any, ...]] = {
    "kubeflow.notify.when": pods.NOTIFY_WHEN,
    "task": config_config.TASKS,
    "input.labels.format": label_formats.NAMES,
    "input.labels.rle.encoding": ("auto", "absolute", "relative", "counts"),
    "input.labels.rle.order": ("auto", "column", "row"),
    "input.labels.rle.start": (0, 1),
    "input.labels.orientation": ("auto", "stored", "displayed"),
    "input.labels.unlisted_values": labels.OTHERS,
    "input.labels.values": labels.MASK_VALUES,
    "input.labels.polygons": labels.POLYGONS,
    "input.labels.beyond_image": labels.BEYOND_IMAGE,
    "input.unlisted_images": labels.UNLISTED,
    "input.on_conflict": labels.ON_CONFLICT,
    "images.verify": (images.HEADER, images.FULL),
    "images.orientation": (images.KEEP, "apply"),
    "images.resize": (images.KEEP, "stretch", "fill_crop", "letterbox", "longest_side"),
    "images.encoding": (images.KEEP, *transform.ENCODINGS),
    "images.chroma": transform.CHROMAS,
    "images.unsupported_formats": ("reject", "png", "jpeg"),
    "images.strip_metadata": ("none", "private", "all"),
    "images.checksum": ALGORITHMS,
    "duplicates.exact": (images.KEEP, images.FIRST, images.FAIL),
    "duplicates.pixels": (images.KEEP, images.FIRST, images.FAIL),
    "duplicates.near.action": (images.KEEP, images.FIRST, images.FAIL),
    "duplicates.near.hash": images.HASHES,
    "duplicates.near.confirm_hash": images.HASHES,
    "duplicates.conflicts": (images.REPORT, images.REJECT, images.FAIL),
    "split.method": split.METHODS,
    "shards.balance": ("none", "class"),
    "features.preset": PRESETS,
    "transform.resize": transform.RESIZE_POLICIES,
    "transform.encoding": (*transform.ENCODINGS, transform.AUTO),
    "transform.chroma": transform.CHROMAS,
    "transform.masks": (transform.RLE, transform.PNG),
    "transform.labels": (transform.INDEX, transform.ONE_HOT, transform.MULTI_HOT),
    "transform.preset": PRESETS,
    "transform.text.*.output": (transform.COUNTS, transform.IDS, transform.DENSE),
    "loader.normalize": loader.NORMALIZATIONS,
    "loader.order": loader.ORDERS,
    "trainer.class_weights": trainer.CLASS_WEIGHTS,
    "trainer.encoder": trainer.ENCODERS,
    "trainer.optimizer": trainer.OPTIMIZERS,
    "trainer.schedule": trainer.SCHEDULES,
    "trainer.precision": trainer.PRECISIONS,
    "trainer.rate_rule": trainer.RATE_RULES,
    "trainer.outputs": trainer.OUTPUTS,
    "trainer.accelerator": trainer.ACCELERATORS,
    "trainer.loss": ("auto", *dict.fromkeys((*trainer.LOSSES_OF_MASKS, *trainer.LOSSES_OF_LABELS))),
    "evaluator.flips.*": evaluation.FLIPS,
    "gate.drift.ignore.*": evaluation.MEASURES,
    "gate.skew.ignore.*": evaluation.MEASURES,
    "run.space": (config_config.CHECK, config_config.WARN),
    "kubeflow.tolerations.*.*.operator": ("Exists", "Equal"),
    "kubeflow.tolerations.*.*.effect": ("NoSchedule", "PreferNoSchedule", "NoExecute"),
}
# Path of a key -> its least and greatest value; `None` for no limit.
RANGES: dict[str, tuple[float | None, float | None]] = {
    "images.max_pixels": (1, None),
    "images.max_bytes": (1, 2**31 - 1),
    "images.quality": (1, 100),
    "duplicates.near.max_distance": (0, 16),
    "duplicates.near.confirm_distance": (0, 16),
    "split.num_folds": (2, None),
    "split.fold_index": (0, None),
    "shards.target_size": (1, None),
    "shards.count": (1, 1_000_000),
    "shards.records": (1, None),
    "shards.hosts": (1, None),
    "rejects.max_fraction": (0, 1),
    "transform.size.*": (8, 16384),
    "transform.quality": (1, 100),
    "transform.text.*.vocabulary": (1, 1_000_000),
    "transform.text.*.length": (1, None),
    "loader.shuffle_buffer": (1, None),
    "trainer.epochs": (1, None),
    "trainer.batch_size": (1, None),
    "trainer.learning_rate": (1e-8, 10),
    "trainer.base_filters": (4, 256),
    "trainer.seed": (0, None),
    "trainer.weight_decay": (0, 1),
    "trainer.warm_up": (0, 0.9),
    "trainer.label_smoothing": (0, 0.9),
    "trainer.clip_norm": (0, 1e6),
    "trainer.encoder_rate": (0, 10),
    "trainer.encoder_trainable_from": (1, None),
    "trainer.patience": (1, None),
    "trainer.ema": (0.5, 0.99999),
    "trainer.accumulate": (1, 1024),
    "trainer.evaluate_every": (1, None),
    "trainer.log_every": (1, None),
    "trainer.profile.steps.*": (1, None),
    "trainer.hosts": (1, None),
    "trainer.checkpoint.every": (1, None),
    "trainer.checkpoint.keep": (1, None),
    "evaluator.min_dice": (0, 1),
    "evaluator.min_accuracy": (0, 1),
    "evaluator.min_f1": (0, 1),
    "evaluator.min_improvement": (-1, 1),
    "evaluator.min_images": (1, None),
    "evaluator.min_per_class": (0, None),
    "evaluator.threshold": (0, 1),
    "evaluator.min_area": (0, 2**31),
    "gate.drift.images": (20, None),
    "gate.skew.images": (20, None),
    "gate.drift.alpha": (1e-6, 0.5),
    "gate.skew.alpha": (1e-6, 0.5),
    "vertex.retries": (0, MOST_RETRIES),
    "vertex.resources.*.cpu": (LEAST.cpu, LARGEST_STEP.cpu),
    "vertex.resources.*.memory": (LEAST.memory, LARGEST_STEP.memory),
    "vertex.trainer.gpus": (0, None),
    "vertex.trainer.max_hours": (0.1, None),
    "vertex.dataflow.max_workers": (1, None),
    "vertex.schedule.max_runs": (1, None),
    "vertex.schedule.max_concurrent_runs": (1, None),
    "kubeflow.retries": (0, MOST_RETRIES),
    "kubeflow.resources.*.cpu": (LEAST.cpu, None),
    "kubeflow.resources.*.memory": (LEAST.memory, None),
    "kubeflow.trainer.gpus": (0, None),
    "kubeflow.pods.*.timeout_hours": (0.01, 8760),
    "kubeflow.pods.*.shared_memory": (2**20, None),
    "kubeflow.jobset.max_restarts": (0, 100),
}
# Path of a mapping -> its keys.
_KEYS: dict[str, tuple[str, ...]] = {"input.labels.columns": labels.ROLES}
# Whole numbers that are written as a text.
_PLAIN = r"^\s*[0-9]+(\.0+)?\s*$"
_SIZE = r"^\s*[0-9]+(\.0+|\.[0-9]+(?=\s*[KMGkmg]))?\s*(([KMGkmg][Ii]?)?[Bb])?\s*$"
_PIXELS = r"^\s*[0-9]+(\.0+|\.[0-9]+(?=\s*[KMGkmg]))?\s*([KMGkmg]?[Pp])?\s*$"
_IMPORT_PATH = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"
# Key -> pattern of its texts.
_PATTERNS = {
    "loader.augment.*": f"^({'|'.join((*loader.AUTO_AUGMENT, *loader.AUGMENTATIONS))})(=[0-9.]+)?$",
    "gate.allow_anomalies.*": "^[A-Z][A-Z0-9_]*(:.+)?$",
    "trainer.callbacks": _IMPORT_PATH,
    "run.on_finish": _IMPORT_PATH,
}
_TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
# A number or a color as a text, as `input.classes` takes it for a class.
_ID = {"type": ["integer", "string"], "pattern": "^([+-]?[0-9]{1,18}|#[0-9a-fA-F]{6})$"}
_VALUE_OF_MASK = {"type": "integer", "minimum": 1, "maximum": 0xFFFF}
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_DELIVERY = {"type": ["string", "integer"], "minimum": 0, "pattern": f"^([0-9]+|{_DATE})$"}
# Forms that the loader of the file takes besides the types of the sections.
_FORMS: dict[str, list[dict[str, Any]]] = {
    "input.classes": [
        {"type": ["string", "null"]},
        {**_TEXTS, "minItems": 1, "uniqueItems": True},
        {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["id", "name"],
                "properties": {"id": _ID, "name": {"type": "string"}},
            },
        },
        {"type": "object", "minProperties": 1, "additionalProperties": _ID},
        {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": _ID["pattern"]},
            "additionalProperties": {"type": "string"},
        },
    ],
    "input.labels.path": [
        {"type": ["string", "null"]},
        {"const": False},
        {**_TEXTS, "minItems": 1},
        {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}},
    ],
    "input.labels.features": [
        {"enum": ["auto", "none"]},
        _TEXTS,
        {"type": "object", "additionalProperties": {"enum": ["auto", *labels.VALUE_TYPES]}},
    ],
    "input.labels.threshold": [
        _VALUE_OF_MASK,
        {"type": "object", "additionalProperties": _VALUE_OF_MASK},
    ],
    "input.span": [
        {"enum": [NEWEST, ALL]},
        _DELIVERY,
        {"type": "string", "pattern": "^[0-9]+-[0-9]+$"},
        {"type": "array", "items": _DELIVERY, "minItems": 2, "maxItems": 2},
    ],
    "trainer.model": [
        {"enum": ["auto", *(name for names in trainer.MODELS.values() for name in names)]},
        {"type": "string", "pattern": _IMPORT_PATH},
    ],
    "input.version": [{"enum": [NEWEST]}, _DELIVERY],
}


@functools.cache
def config_schema() -> dict[str, Any]:
    """Returns the JSON Schema of a configuration file, draft 2020-12; all callers get the same object."""
    schema = _section(config_config.Config, "")
    schema["required"] = ["input"]
    title = {"$schema": _DRAFT, "title": "Configuration of Shardwright"}
    return {**title, **schema}


def schema_text() -> str:
    """Returns the schema as the text of its file."""
    return json.dumps(config_schema(), indent=1, ensure_ascii=False) + "\n"


def schema_path() -> str:
    """Returns the absolute path of the schema in the installed package."""
    return __file__.rpartition("json_schema.py")[0] + SCHEMA_FILE


def schema_line() -> str:
    """Returns the comment that names the schema to editors with YAML support."""
    return f"# yaml-language-server: $schema={schema_path()}"


def field_docs(section: type[Any]) -> dict[str, str]:
    """Returns the description of each field in the `Attributes` of a section's docstring."""
    # From 3.13 on Python removes the indentation itself.
    _, _, attributes = inspect.cleandoc(section.__doc__ or "").partition("Attributes:\n")
    docs: dict[str, list[str]] = {}
    name = ""
    for line in attributes.splitlines():
        if found := re.match(r" {4}(\w+): (.*)", line):
            name = found[1]
            docs[name] = [found[2]]
        elif name and line.strip():
            docs[name].append(line.strip())
    return {name: " ".join(lines) for name, lines in docs.items()}


def leaves(section: type[Any] = config_config.Config, path: str = "") -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Yields every key that is not a section: its path, its schema and its default (`MISSING` if it is required)."""
    for field in dataclasses.fields(section):
        if field.name not in keys_of(section):
            continue
        here = f"{path}.{field.name}" if path else field.name
        hint = keys_of(section)[field.name]
        inner = _inner_section(hint)
        if inner is None:
            yield here, _value(hint, here), _default(field)
        else:
            yield from leaves(inner, here + _marks(hint))


def _inner_section(hint: Any) -> type[Any] | None:
    found = section_of(hint)
    for arg in () if found else get_args(hint):
        found = found or _inner_section(arg)
    return found


def _marks(hint: Any) -> str:
    """Returns `.*` for each mapping or list between a key and its section."""
    if section_of(hint) is not None:
        return ""
    return ".*" + "".join(_marks(arg) for arg in get_args(hint) if _inner_section(arg))


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default


def _section(section: type[Any], path: str) -> dict[str, Any]:
    docs, properties, required = field_docs(section), {}, []
    for field in dataclasses.fields(section):
        if field.name not in keys_of(section):
            continue
        here = f"{path}.{field.name}" if path else field.name
        found = _value(keys_of(section)[field.name], here)
        described = {"description": docs.get(field.name, "")}
        default = _default(field)
        if default is dataclasses.MISSING:
            required.append(field.name)
        elif not dataclasses.is_dataclass(default) and default is not None:
            described["default"] = plain_value(default)
        properties[field.name] = {**described, **found}
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    # A section without a value, such as one whose keys are all comments, has its defaults.
    return {**schema, "required": required} if required else {**schema, "type": ["object", "null"]}


def _value(hint: Any, path: str) -> dict[str, Any]:
    if path in _FORMS:
        return {"anyOf": _FORMS[path]}
    if get_origin(hint) in (Union, types.UnionType):
        options = [_value(option, path) for option in get_args(hint) if option is not type(None)]
        if type(None) in get_args(hint):
            # YAML reads `off` as false.
            options += [{"type": "null"}, *([] if bool in get_args(hint) else [{"const": False}])]
        return options[0] if len(options) == 1 else {"anyOf": options}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _section(hint, path)
    args = get_args(hint)
    if get_origin(hint) is tuple:
        items = {"type": "array", "items": _value(args[0], f"{path}.*")}
        if args[-1] is not Ellipsis:
            return {**items, "minItems": len(args), "maxItems": len(args)}
        return {"anyOf": [items, items["items"]]} if args[0] is str else items
    if isinstance(get_origin(hint), type) and issubclass(get_origin(hint), Mapping):
        known = {"propertyNames": {"enum": list(_KEYS[path])}} if path in _KEYS else {}
        return {"type": "object", **known, "additionalProperties": _value(args[1], f"{path}.*")}
    return _scalar(hint, path)


def _scalar(hint: Any, path: str) -> dict[str, Any]:
    if path in CHOICES:
        return {"enum": list(CHOICES[path])}
    if hint is str:
        if path in ("evaluator.threshold", "evaluator.min_area"):
            return {"enum": [evaluation.TUNED]}
        if path == "evaluator.min_images":
            return {"enum": [evaluation.AUTO]}
        return {"type": "string", **({"pattern": _PATTERNS[path]} if path in _PATTERNS else {})}
    if hint is bool:
        return {"type": "boolean"}
    low, high = RANGES.get(path, (None, None))
    limits = {name: limit for name, limit in (("minimum", low), ("maximum", high)) if limit is not None}
    number = {"type": "integer" if hint is int else "number", **limits}
    whole = {"MP": _PIXELS, "MB": _SIZE}
    found = next((pattern for unit, pattern in whole.items() if unit in units_of(path.replace("*", "x"))), _PLAIN)
    return {"anyOf": [number, {"type": "string", "pattern": NUMBER if hint is float else found}]}
