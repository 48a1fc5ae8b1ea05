"""Selects the spans and versions of an input, and merges their listings into one.

Keys are paths below the folder of a span, so an image that is delivered again keeps its key. An image that is in
several spans counts once: with equal bytes it is the same image, else `input.on_conflict` decides. Every file that is
passed over has a row in the ledger, under the name of its span's folder and its key.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from shardwright.config.input import CONFLICT_FAILS, WITH_SPAN
from shardwright.dataset.ledger import DUPLICATE, LedgerRow
from shardwright.dataset.manifest import MANIFEST_FILE
from shardwright.dataset.outputs import without_excluded, without_outputs
from shardwright.errors import CheckFailed, UsageError
from shardwright.formats.tables import ONE_FILE, Spans, TablePart
from shardwright.ingest.recipe import InputLocation
from shardwright.running.progress import counted
from shardwright.storage import (
    EmptyListing,
    Listing,
    hash_file,
    is_folder,
    is_remote,
    list_inputs,
    list_names,
    map_threads,
    readers,
)
from shardwright.storage.listing import EVERYTHING, Pattern, StringArray, has_wildcard, is_hidden, split_glob
from shardwright.storage.paths import real_path
from shardwright.storage.spans import NEWEST, Choice, Span, SpanPath, candidates

DELIVERED_AGAIN, SUPERSEDED = "delivered_again", "superseded"
_SHOWN = 3


@dataclass(frozen=True)
class MergedSpans:
    """An input whose spans and versions are decided.

    Attributes:
        listing: files, by key.
        labels: annotations, from old to new; none where there are no such files.
        passed_over: ledger rows of files that a file of another span replaces.
        notes: the spans that are read, for the user.
        newest: the newest span that is read, `None` where the paths name none.
        version: its version, 0 where the paths name none.
        excluded: absolute paths of the files that `input.exclude` leaves out; they are no masks either.
    """

    listing: Listing
    labels: tuple[TablePart, ...]
    passed_over: tuple[LedgerRow, ...] = ()
    notes: tuple[str, ...] = ()
    newest: int | None = None
    version: int = 0
    excluded: frozenset[str] = frozenset()

    def spans(self, on_conflict: str) -> Spans:
        """Returns the annotations where they are not simply one file."""
        plain = len(self.labels) <= 1 and not any(part.folder for part in self.labels)
        return ONE_FILE if plain else Spans(self.labels, on_conflict == CONFLICT_FAILS)


class _Listed(NamedTuple):
    """A span that contains images, and its files."""

    span: Span
    called: str
    listing: Listing


def read_spans(location: InputLocation, on_conflict: str, exclude: Sequence[str] = ()) -> MergedSpans:
    """Lists the files of an input.

    Args:
        location: where the input is, and which of its spans are read.
        on_conflict: `input.on_conflict`.
        exclude: `input.exclude`.

    Raises:
        UsageError: there are no files, or not the span, or no annotations for it.
        CheckFailed: an image has several contents, and `input.on_conflict` is `fail`.
    """
    merged = _read_spans(location, on_conflict)
    listing, note = without_excluded(merged.listing, exclude)
    if not note:
        return merged
    kept = set(listing.keys)
    left = frozenset(merged.listing.path(i) for i, key in enumerate(merged.listing.keys) if key not in kept)
    return replace(merged, listing=listing, excluded=left, notes=(*merged.notes, note))


def _read_spans(location: InputLocation, on_conflict: str) -> MergedSpans:
    images = SpanPath.parse("input.images", location.images)
    labels = None if location.labels is None else SpanPath.parse("input.labels.path", location.labels)
    fixed: tuple[TablePart, ...] = ()
    if location.labels is not None and labels is None:
        fixed = (TablePart(location.labels),)
    if images is None:
        if labels is None:
            listing, note = without_outputs(list_inputs(location.images, leave_out=location.labels, one_file=True))
            return MergedSpans(listing, fixed, (), (note,) if note else ())
        deliveries = labels.find(list_names)
        chosen = _chosen_tables(labels, deliveries, location)
        listing, note = without_outputs(list_inputs(location.images, leave_out=chosen[-1].path))
        chosen_notes = (*(f"input.labels.path: {part.called}" for part in chosen), *((note,) if note else ()))
        newest = next(span for span in deliveries if span.path == chosen[-1].path)
        return MergedSpans(listing, tuple(chosen), (), chosen_notes, newest.span, newest.version)
    notes: list[str] = []
    tables = [] if labels is None else labels.find(list_names)
    listed = _list_spans(images, location, tables, notes)
    parts = fixed
    if labels is not None:
        numbers = [entry.span.span for entry in listed]
        parts = tuple(_chosen_tables(labels, tables, replace(location, span=str(number)))[0] for number in numbers)
        parts = tuple(
            part._replace(folder=entry.span.folder if on_conflict == WITH_SPAN else "")
            for part, entry in zip(parts, listed, strict=True)
        )
        notes += [f"input.labels.path: {part.called}" for part in parts if labels.versioned]
    listing, rows = _merge(images.root, listed, on_conflict)
    if rows:
        again = sum(row.code == DELIVERED_AGAIN for row in rows)
        delivered = counted(again, "file was", "files were")
        notes.append(f"input: {delivered} delivered again, {len(rows) - again} replaced by a later span")
    newest = listed[-1].span
    return MergedSpans(listing, parts, tuple(rows), tuple(notes), newest.span, newest.version)


def becomes_input(place: str, images: str) -> bool:
    """Returns whether the files of a dataset or of a run at a place would be listed as images.

    Args:
        place: the folder of the dataset or of the run.
        images: absolute folder or glob, which may name spans, or a URL.
    """
    if is_remote(place) != is_remote(images):
        return False
    spans = SpanPath.parse("input.images", images)
    folders = [images] if spans is None else [span.path for span in spans.find(list_names)]
    return any(_lists(folder, place) for folder in folders)


def _lists(images: str, place: str) -> bool:
    root, segments = images, EVERYTHING
    if has_wildcard(images) and not is_folder(images):
        root, segments = split_glob(images)
    root, place = (os.path.join(real_path(path or "/"), "") for path in (root, place))
    *folders, _ = place.removeprefix(root).split("/")
    # Hidden folders are not listed.
    if not place.startswith(root) or any(map(is_hidden, folders)):
        return False
    pattern = Pattern(segments)
    states = pattern.start()
    for name in folders:
        states = pattern.into_folder(states, name)
    below = pattern.into_folder(states, "Split-train")
    return pattern.takes_file(states, MANIFEST_FILE) or pattern.takes_file(below, "0.tfrecord")


def _list_spans(images: SpanPath, location: InputLocation, tables: Sequence[Span], notes: list[str]) -> list[_Listed]:
    """Lists the newest version with files of each span; with `newest` only of the last such span."""
    deliveries = images.find(list_names)
    choice = Choice.parse("input.span", location.span)
    spans = candidates(deliveries, choice, Choice.parse("input.version", location.version))
    listed: list[_Listed] = []
    for versions in reversed(spans) if choice.text == NEWEST else spans:
        for span in versions:
            # The annotations may be among the images, but are not input.
            labels = location.labels
            if tables:
                labels = next((table.path for table in reversed(tables) if table.span == span.span), None)
            try:
                listing, note = without_outputs(list_inputs(span.path, leave_out=labels))
            except EmptyListing:
                notes.append(f"input.images: {images.called(span)} contains no file yet and is passed over")
                continue
            listed.append(_Listed(span, images.called(span), listing))
            notes += [f"input.images: {images.called(span)}", *((note,) if note else ())]
            break
        if listed and choice.text == NEWEST:
            break
    if not listed:
        raise UsageError(_nothing(images, deliveries, location))
    return listed


def _chosen_tables(labels: SpanPath, tables: Sequence[Span], location: InputLocation) -> list[TablePart]:
    choice = Choice.parse("input.span", location.span)
    spans = candidates(tables, choice, Choice.parse("input.version", location.version))
    if not spans:
        raise UsageError(_nothing(labels, tables, location))
    chosen = [versions[0] for versions in (spans[-1:] if choice.text == NEWEST else spans)]
    return [TablePart(span.path, "", labels.called(span)) for span in chosen]


def _nothing(path: SpanPath, deliveries: Sequence[Span], location: InputLocation) -> str:
    there = ", ".join(path.called(span) for span in deliveries[-_SHOWN:]) or "none"
    version = f" and input.version {location.version}" if path.versioned else ""
    return (
        f"{path.option}: nothing at {path.path} for input.span {location.span}{version}; there are: {there}. "
        "Check the path and input.span."
    )


def _merge(root: str, listed: Sequence[_Listed], on_conflict: str) -> tuple[Listing, list[LedgerRow]]:
    """Merges the listings of several spans.

    Raises:
        CheckFailed: an image has several contents, and `input.on_conflict` is `fail`.
    """
    if len(listed) == 1 and on_conflict != WITH_SPAN:
        return listed[0].listing, []
    by_key: dict[str, list[tuple[int, int]]] = {}
    for number, entry in enumerate(listed):
        for i, key in enumerate(entry.listing.keys):
            by_key.setdefault(key, []).append((number, i))
    contents = _contents(listed, (files for files in by_key.values() if len(files) > 1))
    kept: list[tuple[str, int, int]] = []
    rows: list[LedgerRow] = []
    conflicts: list[str] = []
    for key, files in by_key.items():
        first: dict[bytes, tuple[int, int]] = {}
        for file in files:
            number, i = file
            own = f"{listed[number].span.folder}/{key}"
            content = contents.get(file)
            # A key with a span must not change when the image is delivered again, so the oldest span counts.
            main = files[-1]
            if on_conflict == WITH_SPAN:
                main = file if content is None else first.setdefault(content, file)
            called = listed[main[0]].called
            if file == main:
                kept.append((own if on_conflict == WITH_SPAN else key, number, i))
            elif content is not None and content == contents[main]:
                rows.append(LedgerRow(own, DUPLICATE, DELIVERED_AGAIN, f"the same bytes as in {called}"))
            else:
                conflicts.append(f"{key} in {listed[number].called} and {called}")
                rows.append(LedgerRow(own, DUPLICATE, SUPERSEDED, f"{called} has other bytes for this key"))
    if conflicts and on_conflict == CONFLICT_FAILS:
        shown = "; ".join(conflicts[:_SHOWN]) + ("; …" if len(conflicts) > _SHOWN else "")
        images = counted(len(conflicts), "image has", "images have")
        raise CheckFailed(
            f"input.on_conflict: {images} other bytes in another span: {shown}. "
            "Set it to newest or with_span, or remove one of the files."
        )
    return _joined(root, listed, sorted(kept)), sorted(rows, key=lambda row: row.key)


def _contents(
    listed: Sequence[_Listed], groups: Iterable[Sequence[tuple[int, int]]]
) -> dict[tuple[int, int], bytes | None]:
    """Returns a checksum or hash by which the files of one key are compared; `None` for a file that cannot be read."""
    contents: dict[tuple[int, int], bytes | None] = {}
    flat: list[tuple[int, int]] = []
    for group in groups:
        listed_there = {(listed[n].listing.checksum(i), listed[n].listing.sizes[i]) for n, i in group}
        (checksum, _), *others = listed_there
        # Equal MD5 prove equal bytes. Different ones do not prove different bytes: objects may be encrypted.
        if checksum.startswith("md5:") and not others:
            contents.update(dict.fromkeys(group, checksum.encode()))
        else:
            flat += group

    def read(file: tuple[int, int]) -> bytes | None:
        listing = listed[file[0]].listing
        hashes = hash_file(listing.path(file[1]), listing.pin(file[1]))
        return None if hashes is None else hashes.content_id

    hashes: Iterator[bytes | None] = map_threads(read, flat, readers(listed[0].listing.root))
    contents.update(zip(flat, hashes, strict=True))
    return contents


def _joined(root: str, listed: Sequence[_Listed], kept: Sequence[tuple[str, int, int]]) -> Listing:
    below = [entry.listing.root.removeprefix(root).strip("/") for entry in listed]
    pinned = any(entry.listing.pins for entry in listed)
    summed = any(len(entry.listing.checksums) for entry in listed)
    return Listing(
        root,
        StringArray(key for key, _, _ in kept),
        StringArray(f"{below[number]}/{listed[number].listing.names[i]}" for _, number, i in kept),
        array("q", (listed[number].listing.sizes[i] for _, number, i in kept)),
        sorted(
            refusal._replace(key=f"{entry.span.folder}/{refusal.key}")
            for entry in listed
            for refusal in entry.listing.refused
        ),
        tuple(listed[number].listing.pin(i) for _, number, i in kept) if pinned else (),
        StringArray(listed[number].listing.checksum(i) for _, number, i in kept) if summed else (),
    )
