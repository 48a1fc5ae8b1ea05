"""The reference page of the configuration's keys, written from the sections: `docs/reference/configuration.md`."""

import dataclasses
import json
import typing
from collections.abc import Iterator
from typing import Any

import yaml

from shardwright.config import Config
from shardwright.config.json_schema import config_schema

_HEAD = """# Configuration

All keys of the YAML file, each with an example. Only `input.images` is required. `shardwright init FOLDER` writes a
file to start with, `shardwright validate CONFIG` finds everything that is wrong with one, and
`shardwright validate CONFIG --show` prints all values.

Relative paths start from the folder that the command is called in. Sizes may have a unit (`150MB`, `1GiB`, `200MP`),
shares a percent sign (`1%`). Where a list is expected, a single value works too. `off` or `null` unsets an option that
has no default.

Editors with a YAML language server check and complete the file by its JSON Schema: `shardwright validate CONFIG
--editor` writes the schema next to the file and names it in the first line.

This page is generated from the code.
"""
# What a user wants -> the sections, in the order of the page.
_GOALS: dict[str, tuple[str, ...]] = {
    "name images and annotations": ("input",),
    "process images, find duplicates, allow rejects": ("images", "duplicates", "rejects"),
    "divide into splits and shards, name the features": ("split", "shards", "features"),
    "bring images to one size, augment them": ("transform", "loader"),
    "train": ("trainer",),
    "stop bad data, decide which model is pushed": ("gate", "evaluator"),
    "choose folders, disks and Beam's options": ("run", "beam"),
    "push to a model hub": ("push",),
    "run on Vertex AI": ("vertex",),
    "run on Kubeflow": ("kubeflow",),
}
_MACHINE, _IMAGE = "ct5lp-hightpu-4t", "europe-docker.pkg.dev/my-project/ml/shardwright:0.1.0"
_NUMBERS = {
    "cpu": 8,
    "max_pixels": "50MP",
    "max_bytes": "100MB",
    "memory": "32GB",
    "quality": 92,
    "target_size": "500MB",
}
# An example for each key without choices; that of other keys is another choice than the default.
_EXAMPLES: dict[str, Any] = {
    "name": "clouds",
    "reuse_from": "datasets/october",
    "input.images": "photos",
    "input.exclude": ["assets"],
    "input.classes": {"road": 7, "sidewalk": 8},
    "input.labels.path": "train.csv",
    "input.labels.files": {"a_masks.csv": "train"},
    "input.labels.columns": {"image": "picture", "label": "kind"},
    "input.labels.regex": r"(?P<image>.+)_mask",
    "input.labels.multi_label": True,
    "input.labels.separator": "|",
    "input.labels.features": {"age": "int", "camera": "text"},
    "input.labels.key_regex": r"photo (\d+)",
    "input.labels.threshold": 128,
    "input.labels.confirmed": ["no_objects"],
    "input.labels.rle.start": 0,
    "input.span": [7, 9],
    "input.version": 2,
    "images.size": [512, 512],
    "duplicates.near.max_distance": 4,
    "duplicates.near.confirm_distance": 8,
    "split.ratios": {"train": 0.7, "eval": 0.15, "test": 0.15},
    "split.salt": "2",
    "split.group.column": "patient_id",
    "split.group.regex": r"patient(\d+)",
    "split.num_folds": 5,
    "split.fold_index": 0,
    "split.from_column": "split",
    "split.from_lists": {"train": "train.txt", "test": "test.txt"},
    "split.unlisted_images": "train",
    "split.keep_from": "blessed",
    "shards.count": 10,
    "shards.records": 1000,
    "shards.hosts": 4,
    "shards.filename_template": "flowers{index:02d}-{count}.tfrec",
    "features.map": {"image/encoded": "image"},
    "rejects.max_fraction": "2%",
    "transform.size": [256, 256],
    "transform.text": {"caption": {"vocabulary": 2000, "output": "ids"}},
    "transform.text.*.length": 32,
    "loader.augment": ["flip_left_right", "crop=0.6"],
    "trainer.model": "mine:build",
    "trainer.epochs": 20,
    "trainer.learning_rate": 0.001,
    "trainer.label_smoothing": 0.1,
    "trainer.weights": "weights/efficientnetv2-b0_notop.h5",
    "trainer.encoder_rate": 0.1,
    "trainer.encoder_trainable_from": 3,
    "trainer.steps_per_epoch": 2000,
    "trainer.steps_per_launch": 4,
    "trainer.compilation_cache": "gs://photos/compiled",
    "trainer.shard_weights": 4,
    "trainer.weight_decay": 0.001,
    "trainer.decayed": ["*kernel"],
    "trainer.clip_norm": 0.5,
    "trainer.warm_up": 0.1,
    "trainer.patience": 5,
    "trainer.warm_start": "blessed",
    "trainer.text": ["caption"],
    "trainer.ema": 0.999,
    "trainer.callbacks": "mine:callbacks",
    "trainer.profile.steps": [100, 110],
    "gate.allow_anomalies": ["DRIFT"],
    "gate.drift.reference": "blessed",
    "gate.drift.alpha": 0.001,
    "gate.drift.ignore": ["size"],
    "gate.skew.alpha": 0.001,
    "gate.skew.ignore": ["size"],
    "evaluator.split": "eval",
    "evaluator.min_dice": 0.7,
    "evaluator.min_accuracy": 0.9,
    "evaluator.min_f1": 0.7,
    "evaluator.min_improvement": -0.02,
    "evaluator.min_images": 30,
    "evaluator.threshold": 0.4,
    "evaluator.min_area": 50,
    "evaluator.flips": ["left_right"],
    "push.hub.repository": "my-team/clouds",
    "push.hub.license": "apache-2.0",
    "push.hub.token_env": "CLOUDS_TOKEN",
    "push.hub.about": "about.md",
    "run.root": "/data/runs/clouds",
    "run.staging": "/data/staging",
    "run.on_finish": "mine:log",
    "beam.options": ["--direct_num_workers=8"],
    "beam.per_component": {"StatisticsGen": ["--direct_num_workers=2"]},
    "vertex.project": "my-project",
    "vertex.region": "europe-west4",
    "vertex.service_account": "trainer@my-project.iam.gserviceaccount.com",
    "vertex.pipeline_root": "gs://my-bucket/runs/clouds",
    "vertex.data_root": "gs://my-bucket/clouds",
    "vertex.push_directory": "gs://my-bucket/pushed/clouds",
    "vertex.image": _IMAGE,
    "vertex.network": "projects/123/global/networks/ml",
    "vertex.reserved_ip_ranges": ["ml-range"],
    "vertex.network_attachment": "projects/my-project/regions/europe-west4/networkAttachments/ml",
    "vertex.kms_key": "projects/my-project/locations/europe-west4/keyRings/ml/cryptoKeys/runs",
    "vertex.experiment": "clouds",
    "vertex.labels": {"team": "clouds"},
    "vertex.resources": {"ImageTransform": {"cpu": 8, "memory": "32GB"}},
    "vertex.trainer.machine": _MACHINE,
    "vertex.trainer.topology": "2x2",
    "vertex.trainer.gpu": "NVIDIA_L4",
    "vertex.trainer.gpus": 1,
    "vertex.trainer.max_hours": 48,
    "vertex.trainer.max_wait_hours": 12,
    "vertex.trainer.reservation": "projects/my-project/zones/europe-west4-b/reservations/tpus",
    "vertex.trainer.disk.size": "300GB",
    "vertex.trainer.env": {"TF_CPP_MIN_LOG_LEVEL": "2"},
    "vertex.trainer.persistent_resource": "trainers",
    "vertex.dataflow.components": ["ImageExampleGen", "ImageTransform"],
    "vertex.dataflow.machine": "n2-standard-8",
    "vertex.dataflow.subnetwork": "regions/europe-west4/subnetworks/ml",
    "vertex.schedule.cron": "TZ=Europe/Paris 0 3 1 * *",
    "vertex.schedule.max_runs": 12,
    "vertex.notify.emails": ["team@example.com"],
    "kubeflow.image": _IMAGE,
    "kubeflow.version": "2.5",
    "kubeflow.pipeline_root": "gs://my-bucket/kfp/clouds",
    "kubeflow.data_root": "gs://my-bucket/clouds",
    "kubeflow.push_directory": "/models/clouds",
    "kubeflow.resources": {"Trainer": {"cpu": 24, "memory": "96GB"}},
    "kubeflow.node_selectors": {"ImageTransform": {"cloud.google.com/gke-nodepool": "cpu"}},
    "kubeflow.tolerations": {"Trainer": [{"key": "dedicated", "operator": "Equal", "value": "ml"}]},
    "kubeflow.volumes": [{"claim": "models", "path": "/models"}],
    "kubeflow.pods": {"all": {"timeout_hours": 24}},
    "kubeflow.pods.*.env": {"TF_CPP_MIN_LOG_LEVEL": "2"},
    "kubeflow.pods.*.secret_env": {"WANDB_API_KEY": "wandb/token"},
    "kubeflow.pods.*.config_map_env": {"WANDB_ENTITY": "people/entity"},
    "kubeflow.pods.*.labels": {"team": "clouds"},
    "kubeflow.pods.*.annotations": {"sidecar.istio.io/inject": "false"},
    "kubeflow.pods.*.timeout_hours": 24,
    "kubeflow.pods.*.shared_memory": "8GB",
    "kubeflow.pods.*.scratch": [{"path": "/gcs", "size": "500GB"}],
    "kubeflow.image_pull_secrets": ["registry"],
    "kubeflow.trainer.machine": _MACHINE,
    "kubeflow.trainer.topology": "2x2",
    "kubeflow.trainer.gpu": "nvidia.com/gpu",
    "kubeflow.trainer.gpus": 1,
    "kubeflow.jobset.queue": "tpus",
    "kubeflow.jobset.service_account": "trainer",
    "kubeflow.notify.webhook": "chat/url",
}


def page() -> str:
    """Returns the page."""
    schema = config_schema()["properties"]
    top = {name: value for name, value in schema.items() if _object(value) is None}
    named = {name for names in _GOALS.values() for name in names}
    others = tuple(name for name in schema if name not in top and name not in named)
    goals = {**_GOALS, **({"more": others} if others else {})}
    wanted = [
        f"| {goal} | {', '.join(f'[`{path}`](#{_anchor(path)})' for name in names for path, _ in _sections_of(name))} |"
        for goal, names in goals.items()
    ]
    lines = [_HEAD, "| to | sections |", "|---|---|", *wanted, "", "## Top level", "", *_table("", top)]
    described = {section.PATH: section for section in _classes(Config)}
    for path, section in (one for names in goals.values() for name in names for one in _sections_of(name)):
        lines += ["", f"## `{path}`", ""]
        kind = described.get(path.replace(".*", ""))
        if kind is not None:
            lines += [(kind.__doc__ or "").partition("\n")[0], ""]
        plain = {key: value for key, value in section["properties"].items() if _object(value) is None}
        lines += _table(f"{path}.", plain) if plain else []
    return "\n".join(lines) + "\n"


def examples() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yields the path of each key, its example (`None` without one) and its JSON Schema."""
    schema = config_schema()["properties"]
    for name, value in schema.items():
        if _object(value) is None:
            yield name, _example(name, value), value
        for path, section in _sections_of(name):
            for key, inner in section["properties"].items():
                if _object(inner) is None:
                    yield f"{path}.{key}", _example(f"{path}.{key}", inner), inner


def _example(path: str, value: dict[str, Any]) -> Any:
    key = path.rpartition(".")[2]
    if path in _EXAMPLES or key in _NUMBERS:
        return _EXAMPLES.get(path, _NUMBERS.get(key))
    default = value.get("default")
    kinds = [value, *value.get("anyOf", [])]
    for choices in (one["enum"] for one in kinds if "enum" in one):
        return next((choice for choice in choices if choice not in (default, "auto")), choices[0])
    if any(one.get("type") == "boolean" for one in kinds):
        return not default
    return default * 2 if isinstance(default, (int, float)) else None


def _anchor(path: str) -> str:
    return path.replace(".", "").replace("*", "")


def _sections_of(name: str) -> list[tuple[str, dict[str, Any]]]:
    inner = _object(config_schema()["properties"].get(name, {}))
    return _sections(name, inner) if inner is not None else []


def _object(value: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the section that a value is, or that it is optionally."""
    for option in [value, *value.get("anyOf", [])]:
        if "properties" in option:
            return dict(option)
    return None


def _sections(path: str, section: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    found = [(path, section)]
    for key, value in section["properties"].items():
        if (inner := _object(value)) is not None:
            found += _sections(f"{path}.{key}", inner)
        elif (rows := _object(value.get("additionalProperties") or {})) is not None:
            found += _sections(f"{path}.{key}.*", rows)
    return found


def _classes(section: Any) -> list[Any]:
    found = []
    for hint in typing.get_type_hints(section).values():
        for option in (hint, *typing.get_args(hint)):
            if dataclasses.is_dataclass(option):
                found += [option, *_classes(option)]
    return [kind for kind in found if hasattr(kind, "PATH")]


def _table(path: str, properties: dict[str, dict[str, Any]]) -> list[str]:
    rows = ["| key, with an example | type | default | what it does |", "|---|---|---|---|"]
    for key, value in properties.items():
        default = f"`{_short(value['default'])}`" if "default" in value else ""
        written = yaml.safe_dump(
            {key: _example(path + key, value)}, default_flow_style=True, width=999, sort_keys=False
        )
        shown = written.strip()[1:-1].replace("|", "\\|")
        rows.append(f"| `{shown}` | {_type(value)} | {default} | {value.get('description', '')} |")
    return rows


def _short(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def _type(value: dict[str, Any]) -> str:
    """Returns the types as Python writes them, with the choices or limits."""
    types = list(dict.fromkeys(_types(value)))
    # A number may also be written as a text, and a list of one text as the text.
    shown = [kind for kind in types if kind != "`str`" or len(types) == 1]
    listed = {kind.removeprefix("list of ") for kind in shown if kind.startswith("list of ")}
    return " or ".join(kind for kind in shown if kind not in listed)


def _types(value: dict[str, Any]) -> list[str]:
    if "anyOf" in value:
        # `off` is how people write that there is none.
        options = [one for one in value["anyOf"] if one.get("type") != "null" and "const" not in one]
        return [kind for one in options for kind in _types(one)]
    if "enum" in value:
        return [", ".join(f"`{choice}`" for choice in value["enum"])]
    kind = value.get("type")
    if isinstance(kind, list):
        return [inner for one in kind if one != "null" for inner in _types({"type": one})]
    if kind == "array":
        items = _type(value["items"]) if "items" in value else "`Any`"
        plain, _, limits = items.partition(" ")
        if "enum" in value.get("items", {}):
            return [f"list of {items}"]
        return [f"`list[{plain.strip('`')}]` {limits}".strip()]
    if kind == "object":
        inner = value.get("additionalProperties")
        if not isinstance(inner, dict) or "properties" in inner:
            return ["`dict`"]
        values = "str" if "enum" in inner or "enum" in str(inner.get("anyOf")) else _type(inner).replace("`", "")
        return [f"`dict[str, {values.partition(' ')[0]}]`"]
    if kind in ("integer", "number"):
        name = "`int`" if kind == "integer" else "`float`"
        low, high = value.get("minimum"), value.get("maximum")
        if low is None:
            return [name]
        return [f"{name} ≥ {_number(low)}" if high is None else f"{name} {_number(low)} to {_number(high)}"]
    return [{"string": "`str`", "boolean": "`bool`"}.get(str(kind), "`Any`")]


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
