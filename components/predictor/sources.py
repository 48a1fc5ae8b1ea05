"""The images of a prediction in parts that do not depend on the readers: files of a folder, or shards of a dataset.

A model that reads texts takes those of the images from a CSV with one or more rows per image.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from shardwright.components.image_transform.transform_recipe import ingest_image_options, same_pixels
from shardwright.components.predictor.exported_model import ExportedModel
from shardwright.config import ImagesConfig
from shardwright.config.images import KEEP, images_config
from shardwright.dataset.example_view import ExampleReader
from shardwright.dataset.manifest import MANIFEST_FILE
from shardwright.dataset.reader import ImageDataset
from shardwright.dataset.source import stored_file
from shardwright.dataset.stored_image import encode_image, frames_of, prepare
from shardwright.errors import ConfigError, UsageError
from shardwright.formats.tables import IMAGE, Table, choose_columns, shown_header
from shardwright.images.decode import convert, header_of
from shardwright.images.header import MOST_PIXELS, ImageError
from shardwright.images.orientation import UPRIGHT
from shardwright.ingest.survey import without_other_files
from shardwright.masks.coordinate_frame import CoordinateFrame
from shardwright.storage import Listing, buckets, is_remote, list_inputs, map_threads, read_bytes, readers

Texts = Mapping[str, list[bytes]]

# Images of a part of a folder: enough for many batches, few enough for many workers.
_IN_A_PART = 512


class Failure(NamedTuple):
    """An image that was left out: its key, the reason as a code and as a sentence."""

    key: str
    code: str
    reason: str


class ReadImage(NamedTuple):
    """An image that was read.

    Attributes:
        key: its key.
        data: JPEG or PNG for the model; nothing after a failure.
        frames: the steps from the pixels of the file to those that were ingested.
        failure: why it is left out.
        texts: its texts in a dataset, in the order of the model.
    """

    key: str
    data: bytes
    frames: CoordinateFrame
    failure: Failure | None = None
    texts: Sequence[bytes] = ()


@dataclass(frozen=True)
class FolderSource:
    """Files of a folder, also on a bucket. Picklable.

    Attributes:
        listing: the files.
        notes: the files of the folder that are left out, for the user.
    """

    listing: Listing
    notes: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """The folder."""
        return self.listing.root

    @property
    def parts(self) -> int:
        """Number of parts."""
        return -(-len(self.listing.keys) // _IN_A_PART)

    @property
    def images(self) -> int:
        """Number of images."""
        return len(self.listing.keys)

    @property
    def refused(self) -> list[Failure]:
        """Files that the listing refuses."""
        return [Failure(refused.key, refused.code, refused.reason) for refused in self.listing.refused]

    def keys(self) -> list[str]:
        """Returns the keys, for the texts of a model that reads texts."""
        return list(self.listing.keys)

    def is_stored(self, model: ExportedModel) -> bool:
        """Returns False: these are files, to which the model must do what the ingest did."""
        del model
        return False

    def read(self, part: int, model: ExportedModel) -> Iterator[ReadImage]:
        """Reads the images of a part, checked, and converted like the training images."""
        listing, options, nothing = self.listing, images_config(model.ingested), [b""] * len(model.texts)
        positions = range(part * _IN_A_PART, min(self.images, (part + 1) * _IN_A_PART))

        def read(position: int) -> ReadImage:
            key = listing.keys[position]
            try:
                data = read_bytes(listing.path(position), listing.pin(position))
            except OSError as error:
                return _failed(key, "unreadable", f"cannot be read ({error.strerror or error})")
            return _served(key, data, options, nothing)

        return map_threads(read, positions, readers(listing.root), lambda position: listing.sizes[position])


@dataclass(frozen=True)
class DatasetSource:
    """The records of some splits of a dataset, also on a bucket. Picklable."""

    dataset: ImageDataset
    splits: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """The folder."""
        return self.dataset.root

    @property
    def parts(self) -> int:
        """Number of parts: a shard each."""
        return sum(len(self.dataset.shards(split)) for split in self.splits)

    @property
    def images(self) -> int:
        """Number of images."""
        return sum(self.dataset.num_records(split) for split in self.splits)

    @property
    def refused(self) -> list[Failure]:
        """Nothing: the ingest has refused what is broken."""
        return []

    def keys(self) -> list[str]:
        """Returns the keys, for the texts of a model that reads texts."""
        return [key for split in self.splits for key in self.dataset.keys(split)]

    def is_stored(self, model: ExportedModel) -> bool:
        """Returns whether the images have the changes of the model's ingest: it or a transform has stored them."""
        manifest = self.dataset.manifest
        if manifest.kind == "transform":
            return True
        try:
            return same_pixels(ingest_image_options(manifest.recipe), model.ingested)
        except ConfigError:
            # Options that no model can repeat.
            return False

    def read(self, part: int, model: ExportedModel) -> Iterator[ReadImage]:
        """Reads the images of a shard.

        Raises:
            DatasetError: it is damaged, or the folder contains another dataset than the one that was opened.
        """
        dataset = self.dataset
        shards = [shard for split in self.splits for shard in dataset.shards(split)]
        reader, names = ExampleReader(dataset.manifest), [dataset.manifest.stored(name) for _, name in model.texts]
        # A stored image is its own file: masks are brought back to its pixels.
        options = ImagesConfig() if self.is_stored(model) else images_config(model.ingested)
        # The ingest of the dataset had a limit, which may be another one.
        options = replace(options, max_pixels=MOST_PIXELS)

        def read(record: tuple[str, int, bytes]) -> ReadImage:
            key, _, payload = record
            view = reader.read(key, payload)
            try:
                data = stored_file(view, key)
            except ValueError as error:
                return _failed(key, "undecodable", str(error))
            return _served(key, data, options, [" ".join(view.example.texts(name)).encode() for name in names])

        return map_threads(read, dataset.placed_records(shards[part], proven=True))


Source = FolderSource | DatasetSource


def find_source(images: str, split: str | None = None) -> Source:
    """Returns the images of a path.

    Args:
        images: folder or glob of images, or a dataset; also on a bucket.
        split: a split of a dataset; by default all of them.

    Raises:
        UsageError: there are none, or `split` is given for a folder of images.
        DatasetError: the dataset is damaged, or has no such split.
    """
    place = images if is_remote(images) else os.path.abspath(os.path.expanduser(images))
    manifest = f"{place.rstrip('/')}/{MANIFEST_FILE}"
    if (buckets.stat(manifest) is not None) if is_remote(place) else os.path.isfile(manifest):
        dataset = ImageDataset.open(place)
        if split is not None:
            dataset.shards(split)
        return DatasetSource(dataset, dataset.splits if split is None else (split,))
    if split is not None:
        raise UsageError(f"--split {split}: {images} is not a dataset. Leave it out for a folder of images.")
    try:
        return FolderSource(*without_other_files(list_inputs(place)))
    except UsageError as error:
        # The path is an argument here, and no key of a configuration.
        raise UsageError(str(error).removeprefix("input.images: ")) from None


def _served(key: str, data: bytes, options: ImagesConfig, texts: Sequence[bytes]) -> ReadImage:
    try:
        data, frames = servable(data, options)
    except ImageError as error:
        return _failed(key, error.code, error.reason)
    return ReadImage(key, data, frames, texts=texts)


def _failed(key: str, code: str, reason: str) -> ReadImage:
    return ReadImage(key, b"", CoordinateFrame(0, 0, UPRIGHT), Failure(key, code, reason))


def servable(data: bytes, options: ImagesConfig) -> tuple[bytes, CoordinateFrame]:
    """Converts a file to a format that the model reads; the model repeats the ingest's other changes.

    Args:
        data: the file.
        options: the ingest's image options.

    Returns:
        The file itself if it is JPEG or PNG, else a converted one; and the coordinate frame of the stored pixels.

    Raises:
        ImageError: the file is refused.
    """
    header = header_of(data, max_pixels=options.max_pixels, convert=options.unsupported_formats != "reject")
    if header is not None:
        return data, frames_of(header.height, header.width, header.orientation, options)
    if options.encoding == KEEP:
        # All changes are made here: the model finds the image already turned and resized.
        stored, _, frames = prepare(data, options)
        return stored, frames
    picture, header = convert(data, max_pixels=options.max_pixels)
    # Lossless, so that only the model encodes it with losses.
    stored, _ = encode_image(picture, "png", orientation=header.orientation)
    return stored, frames_of(header.height, header.width, header.orientation, options)


def read_texts(path: str, columns: Iterable[str], keys: Iterable[str]) -> Texts:
    """Reads the texts of some images.

    Args:
        path: a CSV with a column that names images, by key or by file name, and a column for each of `columns`.
        columns: headers, in the order of the model.
        keys: keys of the images to predict; rows of others are ignored.

    Returns:
        Key -> a text for each column, texts of several rows joined by a space; images without a row are missing.

    Raises:
        UsageError: the table cannot be read, or lacks a column.
    """
    wanted = list(columns)
    table = Table.open(path)
    missing = [name for name in wanted if name not in table.header]
    if missing:
        raise UsageError(
            f"--texts {path}: no column {missing[0]!r}, which the model reads. It has: {shown_header(table.header)}."
        )
    places = [table.header.index(name) for name in wanted]
    image = choose_columns(table, {}).get(IMAGE)
    if image is None:
        raise UsageError(
            f"--texts {path}: no column names the images. It has: {shown_header(table.header)}. Call one image."
        )
    by_name: dict[str, list[str]] = {}
    for key in keys:
        for name in {key, posixpath.basename(key)}:
            by_name.setdefault(name, []).append(key)
    found: dict[str, list[list[str]]] = {}
    for row in table.rows():
        fields = [*row.fields, *[""] * (len(table.header) - len(row.fields))]
        for key in by_name.get(fields[image].strip(), ()):
            parts = found.setdefault(key, [[] for _ in places])
            for part, place in zip(parts, places, strict=True):
                part.append(fields[place])
    return {key: [" ".join(part).encode() for part in parts] for key, parts in found.items()}
