"""`shardwright clean --target`: removes old runs of a compiled pipeline from a bucket.

The promises are those of `pipelines.runs.clean_folder`. A run is a folder that the service names: on Vertex AI
`ROOT/PROJECT_NUMBER/NAME-TIME/`, on Kubeflow `ROOT/NAME/RUN_ID/` (kubeflow/pipelines at 7b70c7b,
backend/src/v2/driver/root_dag.go). Folders of other names are not touched.

The services' caches let a run use outputs of earlier runs, and nothing on the bucket shows which. So runs are removed
and kept whole. The last runs that evaluated a model are kept, and every later run. So is every run with an ancestor of
one of their artifacts or of a blessed model. Every run that wrote anything in the last days is kept as well, since it
may still be active.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from shardwright.config import Config
from shardwright.dataset.manifest import MANIFEST_FILE
from shardwright.errors import UsageError
from shardwright.lineage.ancestry import EVALUATION, Family, find_artifacts
from shardwright.lineage.blessing import BLESSING_FILE, PLACE, read_blessing
from shardwright.lineage.record import LINEAGE_FILE
from shardwright.pipelines.runs.clean_folder import CleanResult, Removable, check_family, check_keep, pushed_models
from shardwright.staging.staged import clear, staged_objects
from shardwright.storage import buckets, is_folder, is_remote, map_threads
from shardwright.storage.object_store import ObjectInfo
from shardwright.storage.paths import GCS, SCHEMES, scheme_of, split_url

# A CustomJob runs for a week at most, unless `vertex.trainer.max_hours` is larger.
_ACTIVE_DAYS = 7.0
_DAY = 86400.0
_LEAST_AGE, _MULTIPART_AGE = 14, 7
_VERTEX_RUN = r"[0-9]+/{name}-[0-9]{{14}}/"
_KUBEFLOW_RUN = r"{name}/[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}/"
# The output of the Pusher: a copy of the model in the run's folder.
_PUSHED_MODEL = "pushed_model"
_SHARD = re.compile(r"/Split-[^/]*/")


@dataclass(frozen=True)
class BucketPlaces:
    """The places of a compiled pipeline.

    Attributes:
        root: its `pipeline_root`.
        pushed: folder or URL of the pushed models.
        staging: folder or URL of finished shards and checkpoints.
        run: regular expression of a run's folder, below the root.
        active_days: how long a run may be active without writing to the bucket.
        temporary: further folders that only active runs need.
    """

    root: str
    pushed: str
    staging: str
    run: str
    active_days: float = _ACTIVE_DAYS
    temporary: tuple[str, ...] = ()


def bucket_places(config: Config, target: str, pushed: str | None = None) -> BucketPlaces:
    """Returns the places of a configuration.

    Args:
        config: the configuration.
        target: `vertex` or `kubeflow`.
        pushed: where the pushed models can be read here; by default the configuration's place.

    Raises:
        UsageError: the artifacts are not on a bucket that can be read here, or the pushed models are not.
    """
    section = config.vertex if target == "vertex" else config.kubeflow
    root = str(section.pipeline_root or "").rstrip("/")
    if scheme_of(root) is None:
        known = " or ".join(scheme.prefix for scheme in SCHEMES)
        raise UsageError(
            f"{target}.pipeline_root: {section.pipeline_root!r} is not a bucket that can be cleaned from here. Write "
            f"{known}; a store inside of a cluster has its own lifecycle rules."
        )
    own = section.push_directory or f"{root}/pushed"
    models = str(pushed or own).rstrip("/")
    if not is_remote(models) and not is_folder(models):
        raise UsageError(
            f"{models}: there is no such folder here, so it is unknown what the blessed models descend from. Mount or "
            "copy the volume of the pushed models, and give its folder with --pushed."
        )
    name = re.escape(config.name)
    if target == "vertex":
        days = max(_ACTIVE_DAYS, config.vertex.trainer.max_hours / 24)
        staging = config.run.staging if scheme_of(str(config.run.staging)) == GCS else f"{root}/staging"
        temporary = (f"{root}/beam",)
        return BucketPlaces(root, models, str(staging).rstrip("/"), _VERTEX_RUN.format(name=name), days, temporary)
    days = max([_ACTIVE_DAYS, *((pod.timeout_hours or 0) / 24 for pod in config.kubeflow.pods.values())])
    staging = config.run.staging if scheme_of(str(config.run.staging)) is not None else ""
    return BucketPlaces(root, models, str(staging or "").rstrip("/"), _KUBEFLOW_RUN.format(name=name), days)


def clean_bucket(
    places: BucketPlaces, keep: int, *, superseded: bool = False, dry_run: bool = False, now: float | None = None
) -> CleanResult:
    """Removes old runs from a bucket.

    Args:
        places: the pipeline's places.
        keep: how many runs with an evaluation to keep, the last ones; at least 1.
        superseded: do not protect the ancestors of pushed models other than the baseline model. The models stay.
        dry_run: remove nothing.
        now: seconds since 1970; by default the time of this machine.

    Raises:
        UsageError: `keep` is less than 1, or a run has pushed a model, but not to `places.pushed`.
        DatasetError: an ancestor of a pushed model is damaged.
        StorageError: the bucket does not answer.
    """
    check_keep(keep)
    runs = _runs(places)
    artifacts = [place for run in runs.values() for place in run.artifacts]
    blessing = read_blessing(places.pushed)
    if blessing is None:
        _check_nothing_pushed(places, artifacts)
    pushed = list(find_artifacts(places.pushed))
    family = Family([*artifacts, *pushed])
    models = pushed_models(places.pushed, blessing, pushed)
    check_family(family, [*artifacts, *models], models)
    recent = _recent(runs, family, keep)
    used = _with_ancestors(runs, family, [place for name in recent for place in runs[name].artifacts]) | recent
    if superseded and blessing is not None:
        models = {f"{places.pushed}/{blessing.model}"}
    needed = _with_ancestors(runs, family, models)
    if blessing is not None:
        # The run with the dataset that the baseline model was evaluated on.
        needed |= _run_of(runs, blessing.examples.get(PLACE, ""))
    latest = (time.time() if now is None else now) - places.active_days * _DAY
    old = [name for name, run in sorted(runs.items()) if name not in used | needed and run.updated < latest]
    removable = [Removable(f"{name}/", sum(info.size for info in runs[name].objects)) for name in old]
    # A run that failed would go on from there.
    ended = bool(runs) and _has_evaluation(runs[_by_time(runs)[-1]], family)
    staged = _staged(places) if ended else []
    if not dry_run:
        for name in old:
            _delete(places.root, runs[name])
        if staged:
            clear(places.staging)
    return CleanResult(len(runs), len(runs) - len(old), (*removable, *staged), tuple(sorted(needed - used)))


def _check_nothing_pushed(places: BucketPlaces, artifacts: Iterable[str]) -> None:
    """Checks that no run has pushed a model. Only the place of the pushed models shows which one is blessed.

    Raises:
        UsageError: one has, so that place is another one.
    """
    copy = next((place for place in artifacts if f"/{_PUSHED_MODEL}/" in f"{place}/"), None)
    if copy is not None:
        raise UsageError(
            f"{places.pushed}: has no {BLESSING_FILE}, but a run has pushed a model ({copy}). Give the folder or URL "
            "of the pushed models with --pushed, or restore the file."
        )


@dataclass(frozen=True)
class _Run:
    """A run: its objects, the URLs of its artifacts with lineage, and when it was last written to."""

    objects: list[ObjectInfo]
    artifacts: list[str]
    updated: float


def _runs(places: BucketPlaces) -> dict[str, _Run]:
    """Returns the runs by their folders below the root."""
    scheme, bucket, prefix = split_url(f"{places.root}/")
    pattern = re.compile(places.run)
    found: dict[str, list[ObjectInfo]] = {}
    for info in buckets.list_objects(f"{places.root}/"):
        match = pattern.match(info.name, len(prefix))
        if match is not None:
            found.setdefault(match[0].rstrip("/"), []).append(info)
    made = {}
    for name, objects in found.items():
        # Shards are written before the artifact's other files.
        dated = [f"{scheme}://{bucket}/{info.name}" for info in objects if not _SHARD.search(info.name)]
        stats = map_threads(buckets.stat, dated or [f"{scheme}://{bucket}/{objects[0].name}"], buckets.CONNECTIONS)
        updated = max((info.updated for info in stats if info is not None), default=0.0)
        described = {url.rpartition("/")[0] for url in dated if _is_description(url)}
        made[name] = _Run(objects, sorted(described), updated)
    return made


def _is_description(name: str) -> bool:
    return name.rpartition("/")[2] in (LINEAGE_FILE, MANIFEST_FILE)


def _recent(runs: dict[str, _Run], family: Family, keep: int) -> set[str]:
    """Returns the last runs that evaluated a model, and all later ones."""
    by_time = _by_time(runs)
    evaluated = [name for name in by_time if _has_evaluation(runs[name], family)]
    first = evaluated[-keep] if len(evaluated) >= keep else by_time[0] if by_time else ""
    return set(by_time[by_time.index(first) :]) if by_time else set()


def _by_time(runs: dict[str, _Run]) -> list[str]:
    return sorted(runs, key=lambda name: (runs[name].updated, name))


def _has_evaluation(run: _Run, family: Family) -> bool:
    return any(family.artifacts[one].kind == EVALUATION for one in run.artifacts if one in family.artifacts)


def _with_ancestors(runs: dict[str, _Run], family: Family, places: Iterable[str]) -> set[str]:
    """Returns the runs that artifacts, their evaluations and all their ancestors are in."""
    needed: set[str] = set()
    for place in places:
        artifact = family.artifacts.get(place)
        for one in () if artifact is None else family.ancestors(artifact):
            needed |= _run_of(runs, one.place)
            for evaluation in family.evaluations(one):
                needed |= _run_of(runs, evaluation.place)
    return needed


def _run_of(runs: dict[str, _Run], place: str) -> set[str]:
    return {name for name in runs if f"/{name}/" in f"{place}/"}


def _staged(places: BucketPlaces) -> list[Removable]:
    if not is_remote(places.staging):
        return []
    sizes: dict[str, int] = {}
    for folder, info in staged_objects(places.staging):
        sizes[folder] = sizes.get(folder, 0) + info.size
    return [Removable(folder, size) for folder, size in sorted(sizes.items())]


def _delete(root: str, run: _Run) -> None:
    """Deletes a run. Its manifests go first, so that a kill leaves nothing that looks like a dataset or a model."""
    scheme, bucket, _ = split_url(root)
    for described in (True, False):
        names = (info.name for info in run.objects if _is_description(info.name) == described)
        list(map_threads(buckets.delete, [f"{scheme}://{bucket}/{name}" for name in names], buckets.CONNECTIONS))


def lifecycle_rules(places: BucketPlaces) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yields bucket, rules and the command that sets them, for each bucket with temporary files.

    There is no rule for artifacts: their age does not show whether a blessed model descends from them.
    """
    folders: dict[str, list[str]] = {}
    for folder in (places.staging, *places.temporary):
        if scheme_of(folder) is not None:
            scheme, bucket, name = split_url(folder)
            folders.setdefault(f"{scheme}://{bucket}", []).append(f"{name}/")
    days = max(_LEAST_AGE, round(2 * places.active_days))
    for url, prefixes in sorted(folders.items()):
        bucket = split_url(url)[1]
        if url.startswith(GCS.prefix):
            delete = {"action": {"type": "Delete"}, "condition": {"age": days, "matchesPrefix": sorted(prefixes)}}
            abort = {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": _MULTIPART_AGE}}
            command = f"gcloud storage buckets update {url} --lifecycle-file=FILE"
            yield url, {"rule": [delete, abort]}, command
        else:
            rules: list[dict[str, Any]] = [
                {
                    "ID": f"shardwright-{number}",
                    "Filter": {"Prefix": prefix},
                    "Status": "Enabled",
                    "Expiration": {"Days": days},
                    "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": _MULTIPART_AGE},
                }
                for number, prefix in enumerate(sorted(prefixes))
            ]
            command = f"aws s3api put-bucket-lifecycle-configuration --bucket {bucket}"
            yield url, {"Rules": rules}, f"{command} --lifecycle-configuration file://FILE"


def lifecycle_text(places: BucketPlaces) -> str:
    """Returns all rules as JSON: URL of a bucket -> `rules` and `command`."""
    found = {url: {"rules": rules, "command": command} for url, rules, command in lifecycle_rules(places)}
    return json.dumps(found, indent=1, sort_keys=True)
