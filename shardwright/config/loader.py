"""`loader`: how examples become batches. `load` takes the same augmentations, such as `flip_left_right`, `crop=0.6`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from shardwright.config.check_arguments import check_flags, check_list, check_whole
from shardwright.config.options import Section, option
from shardwright.errors import ConfigError, UsageError

# The option in messages: a parameter of `load`, and below `loader` in a configuration.
_OPTION = "augment"
NORMALIZATIONS = ("unit", "imagenet_torch", "imagenet_caffe", "dataset", "none")
ORDERS = ("fast", "exact")


@dataclass(frozen=True)
class _Kind:
    """The range of an augmentation's strength; without a default it has none."""

    default: float | None = None
    low: float = 0.0
    high: float = 1.0


_PLAIN = _Kind()
_KINDS = {
    "flip_left_right": _PLAIN,
    "flip_up_down": _PLAIN,
    "rotate90": _PLAIN,
    "crop": _Kind(0.7, 0.05, 1.0),
    "brightness": _Kind(0.2),
    "contrast": _Kind(0.2),
    "saturation": _Kind(0.3),
    "hue": _Kind(0.05, 0.0, 0.5),
    "cutout": _Kind(0.3),
    "mixup": _Kind(0.2, 0.01, 10.0),
    "rotate": _Kind(15.0, 0.0, 180.0),
    "scale": _Kind(0.2, 0.0, 0.9),
    "shift": _Kind(0.1),
    "blur": _Kind(1.5, 0.0, 10.0),
    "jpeg": _Kind(0.5),
    "randaugment": _Kind(0.5),
    "cutmix": _Kind(1.0, 0.01, 10.0),
}

AUGMENTATIONS = tuple(_KINDS)
# What fits the data: see `components.image_trainer.defaults`.
AUTO_AUGMENT = ("auto",)
_AUGMENT_TEXT = {"type": "string", "pattern": f"^({'|'.join((*AUTO_AUGMENT, *AUGMENTATIONS))})(=[0-9.]+)?$"}
_AUGMENT = {"anyOf": [{"type": "array", "items": _AUGMENT_TEXT}, _AUGMENT_TEXT]}
# They mix the images of a batch.
MIXING = ("mixup", "cutmix")


@dataclass(frozen=True)
class Augmentation:
    """One augmentation.

    Attributes:
        name: one of `AUGMENTATIONS`.
        strength: see `shardwright.loader.augment`; 0 for those that have none.
    """

    name: str
    strength: float


def read_augmentations(written: Iterable[str]) -> dict[str, Augmentation]:
    """Reads augmentations; returns them by their names.

    Raises:
        ConfigError: one is not known, is there twice, or its strength is out of range.
    """
    check_list(_OPTION, written)
    augmentations: dict[str, Augmentation] = {}
    for text in written:
        name, equals, value = text.partition("=")
        if name not in _KINDS:
            raise ConfigError(_OPTION, f"{text!r} is not known", f"Use any of {', '.join(AUGMENTATIONS)}.")
        if name in augmentations:
            raise ConfigError(_OPTION, f"{name!r} is there twice", "Leave one out.")
        augmentations[name] = Augmentation(name, _strength(text, _KINDS[name], value if equals else None))
    return augmentations


def _strength(text: str, kind: _Kind, value: str | None) -> float:
    if kind.default is None:
        if value is not None:
            raise ConfigError(_OPTION, f"{text!r}: it has no strength", "Write the name alone.")
        return 0.0
    try:
        strength = kind.default if value is None else float(value)
    except ValueError:
        strength = float("nan")
    if not kind.low <= strength <= kind.high:
        name = text.partition("=")[0]
        problem = f"{text!r}: its strength is a number from {kind.low:g} to {kind.high:g}"
        raise ConfigError(_OPTION, problem, f"{name} alone means {name}={kind.default:g}.")
    return strength


def check_epoch(
    batch_size: int, *, hosts: int, order: str, drop_remainder: bool, pad: bool, repeat: bool = False
) -> None:
    """Checks the arguments that `load` and `steps_per_epoch` share.

    Raises:
        UsageError: one has another type or is out of range, or two contradict each other.
    """
    check_whole("batch_size", batch_size, least=1)
    check_whole("hosts", hosts, least=1)
    check_flags({"drop_remainder": drop_remainder, "pad": pad, "repeat": repeat})
    if order not in ORDERS:
        raise UsageError(f"order: {order!r} is not known. Use fast or exact.")
    if pad and (repeat or drop_remainder):
        raise UsageError(
            "pad: has no effect with repeat or drop_remainder, since every batch is full then. Leave pad out."
        )


@dataclass(frozen=True)
class LoaderConfig(Section):
    """How examples become batches."""

    PATH: ClassVar[str] = "loader"

    normalize: str = option(
        "imagenet_torch",
        choices=NORMALIZATIONS,
        help="How pixels become floats: 0 to 1 (`unit`), as ImageNet models of PyTorch or Caffe expect, by the "
        "statistics of the dataset, or not at all.",
    )
    augment: tuple[str, ...] = option(
        AUTO_AUGMENT,
        schema=_AUGMENT,
        help="Augmentations of `train`, such as `[flip_left_right, crop=0.6]`. `auto`: those that suit "
        "photographs; `[]`: none.",
    )
    order: str = option(
        "fast",
        choices=ORDERS,
        help="`fast`, or `exact`: the same order on any number of hosts, which a training can continue at a step.",
    )
    shuffle_buffer: int = option(1024, least=1, help="Number of examples that `order: fast` shuffles.")

    def check(self, path: str) -> None:
        """Refuses unknown augmentations, and strengths out of range."""
        super().check(path)
        try:
            read_augmentations(() if self.augment == AUTO_AUGMENT else self.augment)
        except ConfigError as error:
            raise self.error("augment", error.problem, error.fix) from None
