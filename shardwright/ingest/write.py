"""Writing one shard: a pure function of its number, for Beam and for the command line's processes alike."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from shardwright.errors import CheckFailed
from shardwright.images import ImageError, ImageHeader, read_header
from shardwright.ingest.plan import IngestPlan
from shardwright.ingest.tasks import read_tasks
from shardwright.manifest import REJECTED
from shardwright.records import FeatureValue, byte_strings, encode_example, ints
from shardwright.rle import RleError, Runs, area, union
from shardwright.sources.base import Sample
from shardwright.staging import Outcome, PlannedShard, ShardResult, Staging
from shardwright.storage import in_parallel, read_bytes


def write_shard(number: int, plan: IngestPlan, staging: Staging) -> ShardResult:
    """Writes a shard of a plan into staging, unless it is finished already.

    Args:
        number: position in `plan.dataset.shards`.
        plan: the plan.
        staging: its staging folder, where its task files are.

    Raises:
        CheckFailed: an image has changed since it was hashed.
    """
    planned = plan.dataset.shards[number]
    return staging.write_shard(planned, _outcomes(plan, staging, planned))


def _outcomes(plan: IngestPlan, staging: Staging, planned: PlannedShard) -> Iterator[Outcome]:
    tasks = read_tasks(staging.root, planned, plan.root, plan.dataset.task)
    for sample, digest, data in in_parallel(_load, tasks):
        if hashlib.sha256(data).hexdigest() != digest:
            raise _changed(sample)
        try:
            header = read_header(data, max_pixels=plan.max_pixels)
            yield Outcome(sample.key, encode_sample(plan, sample, data, digest, header))
        except ImageError as error:
            yield Outcome(sample.key, None, REJECTED, error.code, error.reason)
        except _BadMask as error:
            yield Outcome(sample.key, None, REJECTED, error.code, error.reason)


def encode_sample(plan: IngestPlan, sample: Sample, data: bytes, digest: str, header: ImageHeader) -> bytes:
    """Serializes one image with its annotations as a `tf.train.Example`.

    Args:
        plan: task, classes and what errors call the table.
        sample: the image's annotations.
        data: the file's bytes, stored as they are.
        digest: their SHA-256, hex.
        header: what the bytes say.
    """
    features: dict[str, FeatureValue] = {
        "image/encoded": data,
        "image/format": header.format.encode(),
        "image/height": header.height,
        "image/width": header.width,
        "image/channels": header.channels,
        "image/orientation": header.orientation,
        "image/filename": sample.key.rpartition("/")[2].encode("utf-8"),
        "image/key": sample.key.encode("utf-8"),
        "image/sha256": digest.encode(),
    }
    classes = plan.dataset.classes
    if plan.dataset.task == "segmentation":
        masks = _parse_masks(plan, sample, header)
        labels = [label for label in range(len(classes)) if len(masks[label])]
        for name, runs in zip(classes, masks, strict=True):
            features[f"image/segmentation/{name}/rle"] = ints(runs.reshape(-1))
            features[f"image/segmentation/{name}/area"] = area(runs)
    else:
        assert sample.labels is not None
        labels = list(sample.labels)
    features["image/class/label"] = ints(labels)
    features["image/class/text"] = byte_strings([classes[label].encode("utf-8") for label in labels])
    return encode_example(features)


class _BadMask(ValueError):
    """A row's mask is broken or does not fit the image: `code` and `reason` are for the ledger."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


def _parse_masks(plan: IngestPlan, sample: Sample, header: ImageHeader) -> list[Runs]:
    """Runs per class, in the stored frame; several rows of a class are joined."""
    parts: list[list[Runs]] = [[] for _ in plan.dataset.classes]
    for label, text, row in sample.masks:
        try:
            parts[label].append(plan.dialect.parse(text, height=header.height, width=header.width))
        except RleError as error:
            name = plan.dataset.classes[label]
            # Only tables have columns.
            place = f"row {row}, column {plan.mask_column}" if plan.mask_column else f"annotations[{row}]"
            raise _BadMask(error.code, f"{plan.table}, {place}, class {name}: {error}") from None
    return [union(runs) for runs in parts]


def _load(task: tuple[Sample, str]) -> tuple[Sample, str, bytes]:
    sample, digest = task
    try:
        return sample, digest, read_bytes(sample.path)
    except OSError:
        raise _changed(sample) from None


def _changed(sample: Sample) -> CheckFailed:
    return CheckFailed(f"{sample.path}: the file has changed while the run was reading the input. Run it again.")
