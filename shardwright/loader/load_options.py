"""The options of `load`: checked once, then completed from the dataset, so that no later step decides on a default."""

from __future__ import annotations

import functools
import inspect
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property
from typing import Any, Concatenate, ParamSpec, TypeAlias

import numpy as np

from shardwright.config.check_arguments import check_call, check_flags, check_list, check_local_folder, check_whole
from shardwright.config.loader import MIXING, NORMALIZATIONS, Augmentation, check_epoch, read_augmentations
from shardwright.dataset.feature_presets import PREFIX, feature_name
from shardwright.dataset.host_sharding import host_ranges
from shardwright.dataset.manifest import NONE
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import DatasetError, UsageError
from shardwright.loader.augment import check_augment
from shardwright.loader.dataset_info import dataset_statistics, image_size
from shardwright.loader.memory import MEMORY, decoded_bytes
from shardwright.loader.shard_cache import ShardCache
from shardwright.loader.text_features import StoredTexts, text_features
from shardwright.storage.paths import is_inside, real_path

_Folder: TypeAlias = "str | os.PathLike[str]"
_Keywords = ParamSpec("_Keywords")

DTYPES = ("float32", "bfloat16", "uint8")
MASKS, LABELS, BOTH = "masks", "labels", "both"
# The shuffle buffer by default: records, and the most bytes that they take.
_SHUFFLED, _SHUFFLED_BYTES = 1024, 256 << 20
# TensorFlow's seeds are int64.
_MOST_SEED = 2**63 - 1


@dataclass(frozen=True)
class LoaderOptions:
    """The options of `load`, whose documentation explains each of them: its keywords are those of this constructor.

    The constructor makes all checks that need no dataset; `resolved` makes the others.

    Raises:
        UsageError: an option has an unknown value, or two options contradict each other.
    """

    split: str
    batch_size: int
    _: KW_ONLY
    normalize: str = "unit"
    dtype: str = "float32"
    targets: str | None = None
    masks: str = "bytes"
    ids: bool = False
    texts: Sequence[str] = ()
    numbers: Sequence[str] = ()
    augment: Sequence[str] = ()
    shuffle: bool = False
    seed: int | None = None
    repeat: bool = False
    drop_remainder: bool = False
    pad: bool = False
    deterministic: bool = True
    shuffle_buffer: int | None = None
    host: int = 0
    hosts: int = 1
    statistics: Mapping[str, Any] | None = None
    order: str = "fast"
    start_step: int = 0
    cache: str | os.PathLike[str] | None = None
    copies: ShardCache | bool | None = None

    def __post_init__(self) -> None:
        check_epoch(
            self.batch_size,
            hosts=self.hosts,
            order=self.order,
            drop_remainder=self.drop_remainder,
            pad=self.pad,
            repeat=self.repeat,
        )
        self._check_types()
        self._check_order()
        self._check_values()

    def _check_types(self) -> None:
        if self.shuffle_buffer is not None:
            check_whole("shuffle_buffer", self.shuffle_buffer, least=1)
        if self.seed is not None:
            check_whole("seed", self.seed, least=-_MOST_SEED, most=_MOST_SEED)
        check_whole("host", self.host, least=0)
        check_whole("start_step", self.start_step, least=0)
        for name in ("texts", "numbers", "augment"):
            check_list(name, getattr(self, name))
        check_flags({name: getattr(self, name) for name in ("ids", "shuffle", "deterministic")})
        if self.cache not in (None, MEMORY):
            check_local_folder("cache", self.cache)
        if self.statistics is not None:
            _check_statistics(self.statistics)
        if not (self.copies is None or isinstance(self.copies, (bool, ShardCache))):
            raise UsageError(f"copies: {self.copies!r} is not known. Use True, False, or a ShardCache.")

    def _check_order(self) -> None:
        if self.start_step and not self.exact:
            raise UsageError(
                f"start_step: {self.start_step} needs order='exact', since 'fast' starts at the beginning. Set "
                "order='exact'."
            )
        if self.exact and self.shuffle and self.seed is None and (self.hosts > 1 or self.start_step):
            option = f"hosts={self.hosts}" if self.hosts > 1 else f"start_step={self.start_step}"
            raise UsageError(
                f"seed: None draws another order in each call, and order='exact' with shuffle and {option} needs the "
                "same one. Give every host and every call the same seed."
            )
        if self.cache is not None and self.exact:
            raise UsageError(
                "cache: needs order='fast', since 'exact' reads by the index. Set order='fast', or leave cache out."
            )
        if self.host >= self.hosts:
            raise UsageError(f"host: {self.host} is not below hosts, {self.hosts}. Count hosts from 0.")

    def _check_values(self) -> None:
        if self.normalize not in NORMALIZATIONS:
            raise UsageError(f"normalize: {self.normalize!r} is not known. Use one of: {', '.join(NORMALIZATIONS)}.")
        if self.dtype not in DTYPES:
            raise UsageError(f"dtype: {self.dtype!r} is not known. Use one of: {', '.join(DTYPES)}.")
        if self.dtype == "uint8" and self.normalize != "none":
            raise UsageError(
                f"dtype: 'uint8' keeps the pixels as they are, and normalize={self.normalize!r} makes fractions. Use "
                "normalize='none', or another dtype."
            )
        if self.masks not in ("bytes", "bits"):
            raise UsageError(f"masks: {self.masks!r} is not known. Use bytes or bits.")
        if self.targets not in (None, MASKS, LABELS, BOTH):
            raise UsageError(f"targets: {self.targets!r} is not known. Use {MASKS}, {LABELS} or {BOTH}.")
        read_augmentations(self.augment)

    @property
    def exact(self) -> bool:
        """True if all hosts share one order."""
        return self.order == "exact"

    @property
    def fixed(self) -> bool:
        """True if all batches have one size."""
        return self.drop_remainder or self.repeat or self.pad or self.exact

    @cached_property
    def augmentations(self) -> Mapping[str, Augmentation]:
        """Augmentations by name."""
        return read_augmentations(self.augment)

    @property
    def mixing(self) -> Mapping[str, float]:
        """The alpha of each of `MIXING` that is wanted."""
        return {name: self.augmentations[name].strength for name in MIXING if name in self.augmentations}

    def resolved(self, dataset: ImageDataset) -> ResolvedOptions:
        """Completes the options from a dataset.

        Raises:
            DatasetError: the dataset has no such split or no record, or its images have several sizes.
            UsageError: an option does not fit the dataset.
        """
        size = image_size(dataset)
        check_augment(self.augmentations, size)
        targets = self._targets(dataset)
        self._check_mixing(dataset)
        self._check_records(dataset)
        self._check_cache(dataset)
        columns = text_features(dataset, self.texts)
        self._check_numbers(dataset)
        example_bytes = decoded_bytes(size, len(dataset.manifest.classes), sum(text.vocabulary for text in columns))
        statistics = self.statistics
        if self.normalize == "dataset" and statistics is None:
            statistics = dataset_statistics(dataset.root)
        values = {field.name: getattr(self, field.name) for field in fields(LoaderOptions)}
        values |= {
            "targets": targets,
            "seed": secrets.randbits(31) if self.seed is None else self.seed,
            "shuffle_buffer": self._shuffle_buffer(dataset, example_bytes),
            "statistics": statistics,
        }
        return ResolvedOptions(**values, size=size, columns=columns, example_bytes=example_bytes)

    def _check_records(self, dataset: ImageDataset) -> None:
        """Refuses a stream that could not have a first element, though it may not end."""
        if not (self.exact or self.repeat):
            return
        counts = [shard.records for shard in dataset.shards(self.split)]
        if not sum(counts):
            raise DatasetError(f"{dataset.root}: split {self.split!r} contains no record, so there is nothing to load.")
        if not self.exact and not host_ranges(counts, self.host, self.hosts):
            raise UsageError(
                f"host: {self.host} of {self.hosts} has no record, since split {self.split!r} of {dataset.root} "
                f"contains {sum(counts)}. Use fewer hosts."
            )

    def _check_cache(self, dataset: ImageDataset) -> None:
        if self.cache in (None, MEMORY):
            return
        folder = os.fspath(self.cache)
        if real_path(folder) == real_path(dataset.root) or is_inside(folder, dataset.root):
            raise UsageError(f"cache: {folder} belongs to the dataset {dataset.root}. Name another folder.")

    def _targets(self, dataset: ImageDataset) -> str:
        has_masks = dataset.manifest.task == "segmentation"
        targets = self.targets or (MASKS if has_masks else LABELS)
        if targets != LABELS and not has_masks:
            raise UsageError(f"targets: {targets!r} needs masks, and {dataset.root} has none. Leave targets out.")
        if targets == LABELS and self.masks == "bits":
            raise UsageError(f"masks: 'bits' needs masks, and none are loaded from {dataset.root}. Leave masks out.")
        return targets

    @property
    def number_features(self) -> tuple[str, ...]:
        """Names of the features of `numbers`."""
        return tuple(feature_name(column) for column in self.numbers)

    def _check_numbers(self, dataset: ImageDataset) -> None:
        if self.numbers and dataset.manifest.labels != NONE:
            raise UsageError(
                f"numbers: {dataset.root} has classes or masks, which are its targets. Leave numbers out, or ingest "
                "with input.labels.format: numbers."
            )
        known = [name for name, kind in dataset.manifest.features.items() if kind in ("float32", "int64")]
        for column, name in zip(self.numbers, self.number_features, strict=True):
            if dataset.manifest.stored(name) not in known:
                there = ", ".join(sorted(name for name in known if name.startswith(PREFIX))) or "none"
                raise UsageError(f"numbers: {dataset.root} has no numbers of a column {column!r}. It has: {there}.")

    def _check_mixing(self, dataset: ImageDataset) -> None:
        whole = self.dtype == "uint8" or self.masks == "bits" or dataset.manifest.labels == NONE
        if self.mixing and (whole or self.texts):
            raise UsageError(
                f"augment {next(iter(self.mixing))!r} makes fractions: it needs labels, a float dtype, masks as bytes, "
                "no texts."
            )

    def _shuffle_buffer(self, dataset: ImageDataset, example_bytes: int) -> int:
        """Returns the given size, or a default that bounds the memory."""
        buffer = self.shuffle_buffer or _SHUFFLED
        if self.exact:
            return buffer
        if self.shuffle_buffer is None:
            shards = dataset.shards(self.split)
            record = sum(shard.bytes for shard in shards) // max(1, sum(shard.records for shard in shards))
            buffer = min(buffer, max(1, _SHUFFLED_BYTES // max(1, record)))
        if self.cache not in (None, MEMORY):
            # Examples from a disk are decoded, and are in memory a second time while they are mixed.
            buffer = min(buffer, max(1, _SHUFFLED_BYTES // example_bytes))
        return buffer


@dataclass(frozen=True, kw_only=True)
class ResolvedOptions(LoaderOptions):
    """Options that are completed from a dataset.

    Attributes:
        targets: `masks`, `labels` or `both`.
        seed: the given or the drawn one.
        shuffle_buffer: records in the shuffle buffer (`fast`) or the window (`exact`).
        size: height and width of the images.
        columns: how the columns of `texts` are stored.
        example_bytes: bytes of a decoded example.
    """

    targets: str
    seed: int
    shuffle_buffer: int
    size: tuple[int, int]
    columns: tuple[StoredTexts, ...]
    example_bytes: int

    @property
    def with_masks(self) -> bool:
        """True if masks are read."""
        return self.targets in (MASKS, BOTH)

    @property
    def with_labels(self) -> bool:
        """True if labels are read."""
        return self.targets in (LABELS, BOTH)

    @property
    def shuffle_seed(self) -> int | None:
        """The seed of the order; `None` keeps the order of the disk."""
        return self.seed if self.shuffle else None


def _check_statistics(statistics: Any) -> None:
    for name in ("mean", "std"):
        try:
            values = np.asarray(statistics[name], np.float64)
        except (KeyError, TypeError, ValueError, IndexError):
            values = np.empty(0)
        if values.shape != (3,) or not np.isfinite(values).all():
            raise UsageError(
                f"statistics: {statistics!r} has no {name!r} of three numbers. Give a mapping with mean and std."
            )


def with_keywords_of(
    options: Callable[_Keywords, LoaderOptions],
) -> Callable[[Callable[[_Folder, LoaderOptions], Any]], Callable[Concatenate[_Folder, _Keywords], Any]]:
    """Gives a function the keywords of the options, which are declared only there, in place of its second argument."""

    def decorate(read: Callable[[_Folder, LoaderOptions], Any]) -> Callable[Concatenate[_Folder, _Keywords], Any]:
        @functools.wraps(read)
        def call(dataset_dir: _Folder, *values: _Keywords.args, **named: _Keywords.kwargs) -> Any:
            return read(dataset_dir, options(*values, **named))

        folder, _ = inspect.signature(read).parameters.values()
        signature = inspect.signature(options)
        keywords = [folder, *signature.parameters.values()]
        call.__signature__ = signature.replace(parameters=keywords, return_annotation=Any)  # type: ignore[attr-defined]
        return check_call(call)  # type: ignore[return-value] # `dataset_dir` may also be values by its name

    return decorate
