"""A dataset for people and notebooks: single images with pixels, masks, classes and pictures, and the whole as HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from shardwright.dataset.example_view import ExampleView
from shardwright.dataset.manifest import Manifest, manifest_html
from shardwright.display.html import box, class_names, gallery, isolate, join, line, tile
from shardwright.display.thumbnails import displayed, overlaid
from shardwright.errors import DatasetError, ShardwrightError
from shardwright.images.orientation import displayed_size
from shardwright.masks.coordinate_frame import orient_runs
from shardwright.masks.rle import draw

_LARGE = 512


@dataclass(frozen=True)
class Example:
    """An image of a dataset; a notebook shows it with its masks laid over.

    Attributes:
        view: a view of the record.
        split: its split.
    """

    view: ExampleView
    split: str

    @property
    def key(self) -> str:
        """Its key."""
        return self.view.key

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes that it has."""
        return tuple(self.view.reader.classes[label] for label in self.view.labels)

    @property
    def encoded(self) -> bytes:
        """The stored bytes of the image."""
        return self.view.encoded

    @cached_property
    def image(self) -> npt.NDArray[np.uint8]:
        """The pixels as they are displayed (Exif's orientation applied), uint8 [H, W, 3].

        Raises:
            DatasetError: they cannot be decoded.
        """
        picture = displayed(self.view, *displayed_size(*self.view.size, self.view.orientation))
        if picture is None:
            stored = self.view.format or "an unknown form"
            raise DatasetError(f"{self.key}: cannot be shown as a picture, since it is stored as {stored}.")
        return np.asarray(picture, np.uint8)

    @cached_property
    def masks(self) -> npt.NDArray[np.uint8]:
        """The masks as they are displayed, uint8 [H, W, C] of 0 and 1; all 0 where none are stored as runs."""
        size, orientation = self.view.size, self.view.orientation
        shape = displayed_size(*size, orientation)
        drawn = [
            draw(orient_runs(self.view.runs(label), *size, orientation), *shape)
            for label in range(len(self.view.reader.classes))
        ]
        return np.stack(drawn, axis=-1) if drawn else np.zeros((*shape, 0), np.uint8)

    def __repr__(self) -> str:
        height, width = self.view.size
        return f"Example({self.key!r}, split={self.split!r}, {height}x{width}, classes={list(self.classes)})"

    def _repr_html_(self) -> str:
        height, width = self.view.size
        details = f"{height} × {width} {self.view.format}, {self.view.bytes / 1000:.1f} kB, split {self.split}"
        picture = tile(overlaid(self.view, _LARGE, _LARGE), f"{self.key} with its masks")
        return box("Example", line(isolate(self.key)), line(self._named()), picture, soft=details)

    def small_html(self) -> str:
        """Returns a small picture with its key and classes."""
        url = overlaid(self.view)
        return tile(url, f"{self.key}, split {self.split}", isolate(self.key, 60), self._named())

    def _named(self) -> str:
        return class_names(self.view.labels, self.view.reader.classes)


class Examples(tuple[Example, ...]):
    """Several examples; a notebook shows them side by side."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return gallery(example.small_html() for example in self)


def dataset_html(manifest: Manifest, read: Callable[[], Iterable[Example]]) -> str:
    """Returns a manifest and the images that `read` returns as HTML; of a damaged dataset, what is wrong with it."""
    try:
        pictures = gallery(example.small_html() for example in read())
    except ShardwrightError as error:
        pictures = line(Markup("<b>Its images cannot be shown:</b>"), isolate(str(error), 400))
    return join([manifest_html(manifest), pictures])
