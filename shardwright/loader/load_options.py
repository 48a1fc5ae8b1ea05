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
from shardwright.dataset.train_statistics import dataset_statistics
from shardwright.errors import DatasetError, UsageError
from shardwright.loader.dataset_info import image_size
from shardwright.loader.memory import MEMORY, decoded_bytes
from shardwright.loader.shard_cache import ShardCache
from shardwright.loader.text_features import StoredTexts, text_features
from shardwright.storage.paths import is_inside, real_path

_Folder: TypeAlias = "str | os.PathLike[str]"
_Keywords = ParamSpec("_Keywords")

DTYPES = ("float32", "bfloat16", "uint8")
MASKS, LABELS, BOTH = "masks", "labels", "both"
_CHOICES = {
    "normalize": NORMALIZATIONS,
    "dtype": DTYPES,
    "targets": (MASKS, LABELS, BOTH),
    "masks": ("bytes", "bits"),
}
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
        if self.shuffle_buffer is not None:
            check_whole("shuffle_buffer", self.shuffle_buffer, least=1)
        if self.seed is not None:
            check_whole("seed", self.seed, least=-_MOST_SEED, most=_MOST_SEED)
        check_whole("host", self.host, least=0)
        check_whole("start_step", self.start_step, least=0)
        for name in ("texts", "numbers", "augment"):
            check_list(name, getattr(self, name))
        read_augmentations(self.augment)
        check_flags({name: getattr(self, name) for name in ("ids", "shuffle", "deterministic")})
        if self.cache not in (None, MEMORY):
            check_local_folder("cache", self.cache)
        for name in ("mean", "std") if self.statistics is not None else ():
            try:
                values = np.asarray(self.statistics[name], np.float64)  # type: ignore[index] # may be of any type
            except (KeyError, TypeError, ValueError, IndexError):
                values = np.empty(0)
            if values.shape != (3,) or not np.isfinite(values).all():
                problem = f"statistics: {self.statistics!r} has no {name!r} of three numbers"
                raise UsageError(f"{problem}. Give a mapping with mean and std.")
        if not (self.copies is None or isinstance(self.copies, (bool, ShardCache))):
            raise UsageError(f"copies: {self.copies!r} is not known. Use True, False, or a ShardCache.")
        for name, known in _CHOICES.items():
            value = getattr(self, name)
            if value not in known and not (name == "targets" and value is None):
                raise UsageError(f"{name}: {value!r} is not known. Use one of: {', '.join(known)}.")
        self._check_combinations()

    def _check_combinations(self) -> None:
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
        if self.dtype == "uint8" and self.normalize != "none":
            raise UsageError(
                f"dtype: 'uint8' keeps the pixels as they are, and normalize={self.normalize!r} makes fractions. Use "
                "normalize='none', or another dtype."
            )

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
        if "rotate90" in self.augmentations and size[0] != size[1]:
            raise UsageError(
                f"augment 'rotate90' needs square images, these are {size[0]} x {size[1]}. Leave it out, or set a "
                "square transform.size."
            )
        targets = self._targets(dataset)
        columns = text_features(dataset, self.texts)
        self._check_fits(dataset)
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

    def _check_fits(self, dataset: ImageDataset) -> None:
        manifest, root = dataset.manifest, dataset.root
        whole = self.dtype == "uint8" or self.masks == "bits" or manifest.labels == NONE
        if self.mixing and (whole or self.texts):
            raise UsageError(
                f"augment {next(iter(self.mixing))!r} makes fractions: it needs labels, a float dtype, masks as bytes, "
                "no texts."
            )
        counts = [shard.records for shard in dataset.shards(self.split)]
        # Such a stream could not have a first element, though it may not end.
        if (self.exact or self.repeat) and not sum(counts):
            raise DatasetError(f"{root}: split {self.split!r} contains no record, so there is nothing to load.")
        if self.repeat and not self.exact and not host_ranges(counts, self.host, self.hosts):
            raise UsageError(
                f"host: {self.host} of {self.hosts} has no record, since split {self.split!r} of {root} "
                f"contains {sum(counts)}. Use fewer hosts."
            )
        if self.cache not in (None, MEMORY):
            folder = os.fspath(self.cache)
            if real_path(folder) == real_path(root) or is_inside(folder, root):
                raise UsageError(f"cache: {folder} belongs to the dataset {root}. Name another folder.")
        if self.numbers and manifest.labels != NONE:
            raise UsageError(
                f"numbers: {root} has classes or masks, which are its targets. Leave numbers out, or ingest with "
                "input.labels.format: numbers."
            )
        known = [name for name, kind in manifest.features.items() if kind in ("float32", "int64")]
        for column, name in zip(self.numbers, self.number_features, strict=True):
            if manifest.stored(name) not in known:
                there = ", ".join(sorted(name for name in known if name.startswith(PREFIX))) or "none"
                raise UsageError(f"numbers: {root} has no numbers of a column {column!r}. It has: {there}.")

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
