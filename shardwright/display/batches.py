"""Shows a batch of a loader in a notebook: shapes, value ranges, and the pictures with their targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from PIL import Image

from shardwright.display.html import box, class_names, gallery, line, rows, tile
from shardwright.display.overlays import overlay
from shardwright.display.thumbnails import data_url, fitted
from shardwright.errors import UsageError
from shardwright.masks.regions import IGNORE_VALUE

Array = npt.NDArray[Any]

_ROLES = ("images", "targets", "weights or positions", "positions")
# A pixel with a higher probability belongs to the mask.
_HALF = 0.5


@dataclass(frozen=True)
class Batch:
    """A batch on its way into a model, or out of it; a notebook shows its pictures.

    Attributes:
        images: [B, H, W, 3], as the model gets them.
        targets: masks [B, H, W, C], labels [B], several classes [B, C], or predictions of any of these.
        further: the other arrays of the batch.
        classes: names of the classes.
        count: how many images are shown.
    """

    images: Array
    targets: Array | None
    further: tuple[Array, ...] = ()
    classes: tuple[str, ...] = ()
    count: int = 8

    def __repr__(self) -> str:
        parts = [f"{role} {_form(values)}" for role, values in self._parts()]
        return f"Batch({'; '.join(parts)})"

    def _parts(self) -> Iterator[tuple[str, Array]]:
        there = [values for values in (self.images, self.targets, *self.further) if values is not None]
        yield from zip(_ROLES, there, strict=False)

    def _repr_html_(self) -> str:
        body = [(role, _form(values), _range(values)) for role, values in self._parts()]
        pictures = pixels(self.images[: self.count])
        tiles = gallery(self._tile(number, picture) for number, picture in enumerate(pictures))
        legend = [line(class_names(range(len(self.classes)), self.classes))] if self.classes else []
        return box("Batch", rows(("", "shape and type", "range"), body), *legend, tiles)

    def _tile(self, number: int, picture: npt.NDArray[np.uint8]) -> Markup:
        caption = ""
        if self.targets is not None and self.targets.ndim == 4:
            picture = overlay(picture, covered(self.targets[number]))
        elif self.targets is not None:
            target = self.targets[number]
            labels = [int(target)] if target.ndim == 0 else np.flatnonzero(target > _HALF).tolist()
            known = all(0 <= label < len(self.classes) for label in labels)
            caption = class_names(labels, self.classes) if known else ", ".join(map(str, labels))
        small = Image.fromarray(picture)
        small = small.resize(fitted(*picture.shape[:2])[::-1])
        return tile(data_url("jpeg", small), f"image {number} of the batch", caption)


def show_batch(batches: Any, classes: Sequence[str] = (), *, count: int = 8) -> Batch:
    """Shows a batch as a model gets it, or the predictions of a model for it.

    Args:
        batches: the result of `load`, whose first batch is shown; or a batch, such as `(images, predictions)`. Masks
            are bytes or probabilities; those of `load(..., masks="bits")` need `unpack_masks` first.
        classes: their names, mostly `dataset.manifest.classes`.
        count: how many images are shown.

    Returns:
        An object that a notebook shows: normalized pixels stretched back to a picture, masks laid over.

    Raises:
        UsageError: `batches` is not a batch, or does not fit the classes.
    """
    batch = batches if isinstance(batches, (tuple, list)) else next(iter(batches), None)
    if batch is None:
        raise UsageError("show_batch: there is no batch. Give what `load` returns, or (images, targets).")
    parts = batch if isinstance(batch, (tuple, list)) else (batch,)
    if not parts:
        raise UsageError("show_batch: an empty batch. Give (images, targets).")
    images, *others = (_array(part) for part in parts)
    if images.ndim != 4 or images.shape[-1] not in (1, 3):
        raise UsageError(f"show_batch: images of shape {images.shape}. Give [batch, height, width, 1 or 3].")
    targets = others[0] if others else None
    if targets is not None and len(targets) != len(images):
        raise UsageError(f"show_batch: {len(images)} images and {len(targets)} targets. Give one for each.")
    if targets is not None and targets.ndim == 4:
        if targets.shape[:3] != images.shape[:3]:
            raise UsageError(f"show_batch: masks of shape {targets.shape} for images of {images.shape}. Resize one.")
        if classes and targets.shape[-1] != len(classes):
            raise UsageError(
                f"show_batch: {targets.shape[-1]} masks an image and {len(classes)} classes. Give one name for each "
                "mask; unpack_masks makes masks of bits."
            )
    return Batch(images, targets, tuple(others[1:]), tuple(classes), count)


def covered(masks: Array) -> npt.NDArray[np.bool_]:
    """Returns the pixels that masks [H, W, C] cover: 1 in whole numbers, above a half in probabilities.

    Ignored pixels are not covered.
    """
    if np.issubdtype(masks.dtype, np.floating):
        return np.asarray((masks > _HALF) & (masks != IGNORE_VALUE), np.bool_)
    return np.asarray(masks == 1, np.bool_)


def pixels(images: Array) -> npt.NDArray[np.uint8]:
    """Converts images [B, H, W, 1 or 3] to pictures: bytes stay, 0 to 1 is scaled, other ranges are stretched.

    Returns:
        uint8 [B, H, W, 3].
    """
    if images.dtype != np.uint8:
        values = images.astype(np.float64)
        low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
        if low < 0 or high > 1:
            values = (values - low) / max(high - low, 1e-9)
        images = np.floor(np.clip(values, 0, 1) * 255 + 0.5).astype(np.uint8)
    return np.broadcast_to(images, (*images.shape[:3], 3)).astype(np.uint8)


def _array(values: Any) -> Array:
    """Converts a tensor of any framework; of targets with masks and labels it takes the masks."""
    if isinstance(values, Mapping):
        values = values["masks"] if "masks" in values else next(iter(values.values()))
    return np.asarray(values)


def _form(values: Array) -> str:
    return f"{list(values.shape)} {values.dtype}"


def _range(values: Array) -> str:
    if not values.size:
        return "–"
    return f"{float(values.min()):.4g} to {float(values.max()):.4g}"
