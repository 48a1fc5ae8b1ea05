"""Which deliveries of an input are read, and what becomes of an image that several of them hold.

Keys are the paths below the folder that a delivery is, so an image that is delivered again keeps its key. What several
deliveries hold counts once: with equal bytes it is the same image, and with others `input.on_conflict` decides. Either
way every file that is passed over has its row in the ledger, under the name of its delivery's folder and its key.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from shardwright.config.input import CONFLICT_FAILS, WITH_SPAN
from shardwright.dataset.ledger import DUPLICATE, LedgerRow
from shardwright.errors import CheckFailed, UsageError
from shardwright.formats.tables import ONE_FILE, Spans, TablePart
from shardwright.ingest.recipe import InputLocation
from shardwright.storage import EmptyListing, Listing, hash_file, list_inputs, list_names, map_threads, readers
from shardwright.storage.listing import StringArray
from shardwright.storage.spans import NEWEST, Choice, Span, SpanPath, candidates

DELIVERED_AGAIN, SUPERSEDED = "delivered_again", "superseded"
_SHOWN = 3


@dataclass(frozen=True)
class MergedSpans:
    """An input whose spans and versions are decided.

    Attributes:
        listing: files, by key.
        labels: annotations, from old to new; none where there are no such files.
        passed_over: ledger rows of files that another delivery's file stands for.
        notes: what is read, for the user.
        newest: the newest span that is read, `None` where the paths name none.
    """

    listing: Listing
    labels: tuple[TablePart, ...]
    passed_over: tuple[LedgerRow, ...] = ()
    notes: tuple[str, ...] = ()
    newest: int | None = None

    def spans(self, on_conflict: str) -> Spans:
        """The annotations where they are not simply one file."""
        plain = len(self.labels) <= 1 and not any(part.folder for part in self.labels)
        return ONE_FILE if plain else Spans(self.labels, on_conflict == CONFLICT_FAILS)


class _Listed(NamedTuple):
    """A delivery of images that holds some, and its files."""

    delivery: Span
    called: str
    listing: Listing


def read_spans(location: InputLocation, on_conflict: str) -> MergedSpans:
    """Lists what an input delivers.

    Args:
        location: where it lies, and which spans of it are meant.
        on_conflict: `input.on_conflict`.

    Raises:
        UsageError: there is nothing, or not the span, or no annotations for it.
        CheckFailed: an image has several contents, which is to fail.
    """
    images = SpanPath.parse("input.images", location.images)
    labels = None if location.labels is None else SpanPath.parse("input.labels.path", location.labels)
    fixed: tuple[TablePart, ...] = ()
    if location.labels is not None and labels is None:
        fixed = (TablePart(location.labels),)
    if images is None:
        if labels is None:
            return MergedSpans(list_inputs(location.images, leave_out=location.labels), fixed)
        found = labels.find(list_names)
        chosen = _chosen_tables(labels, found, location)
        listing = list_inputs(location.images, leave_out=chosen[-1].path)
        told = tuple(f"input.labels.path: {part.called}" for part in chosen)
        newest = next(delivery.span for delivery in found if delivery.path == chosen[-1].path)
        return MergedSpans(listing, tuple(chosen), (), told, newest)
    notes: list[str] = []
    tables = [] if labels is None else labels.find(list_names)
    listed = _list_spans(images, location, tables, notes)
    parts = fixed
    if labels is not None:
        spans = [entry.delivery.span for entry in listed]
        parts = tuple(_table_of(labels, tables, span, location) for span in spans)
        parts = tuple(
            part._replace(folder=entry.delivery.folder if on_conflict == WITH_SPAN else "")
            for part, entry in zip(parts, listed, strict=True)
        )
        notes += [f"input.labels.path: {part.called}" for part in parts if labels.versioned]
    listing, rows = _merge(images.root, listed, on_conflict)
    if rows:
        again = sum(row.code == DELIVERED_AGAIN for row in rows)
        notes.append(f"input: {again} files were delivered again, {len(rows) - again} were replaced by a later span")
    return MergedSpans(listing, parts, tuple(rows), tuple(notes), listed[-1].delivery.span)


def _list_spans(images: SpanPath, location: InputLocation, tables: Sequence[Span], notes: list[str]) -> list[_Listed]:
    """The newest version of each span that holds anything; with `newest` only of the last such span."""
    found = images.find(list_names)
    span = Choice.parse("input.span", location.span)
    spans = candidates(found, span, Choice.parse("input.version", location.version))
    listed: list[_Listed] = []
    for versions in reversed(spans) if span.text == NEWEST else spans:
        for delivery in versions:
            try:
                listing = list_inputs(delivery.path, leave_out=_left_out(location, tables, delivery))
            except EmptyListing:
                notes.append(f"input.images: {images.called(delivery)} holds no file yet and is passed over")
                continue
            listed.append(_Listed(delivery, images.called(delivery), listing))
            notes.append(f"input.images: {images.called(delivery)}")
            break
        if listed and span.text == NEWEST:
            break
    if not listed:
        raise UsageError(_nothing(images, found, location))
    return listed


def _left_out(location: InputLocation, tables: Sequence[Span], delivery: Span) -> str | None:
    """The annotations, which are no input though they may lie among the images."""
    if not tables:
        return location.labels
    return next((table.path for table in reversed(tables) if table.span == delivery.span), None)


def _chosen_tables(labels: SpanPath, tables: Sequence[Span], location: InputLocation) -> list[TablePart]:
    span = Choice.parse("input.span", location.span)
    spans = candidates(tables, span, Choice.parse("input.version", location.version))
    if not spans:
        raise UsageError(_nothing(labels, tables, location))
    chosen = [versions[0] for versions in (spans[-1:] if span.text == NEWEST else spans)]
    return [TablePart(delivery.path, "", labels.called(delivery)) for delivery in chosen]


def _table_of(labels: SpanPath, tables: Sequence[Span], span: int, location: InputLocation) -> TablePart:
    return _chosen_tables(labels, tables, replace(location, span=str(span)))[0]


def _nothing(path: SpanPath, found: Sequence[Span], location: InputLocation) -> str:
    there = ", ".join(path.called(delivery) for delivery in found[-_SHOWN:]) or "none"
    version = f" and input.version {location.version}" if path.versioned else ""
    return (
        f"{path.option}: nothing at {path.path} for input.span {location.span}{version}; there are: {there}. "
        "Check the path and input.span."
    )


def _merge(root: str, listed: Sequence[_Listed], on_conflict: str) -> tuple[Listing, list[LedgerRow]]:
    """One listing of several deliveries.

    Raises:
        CheckFailed: an image has several contents, which is to fail.
    """
    if len(listed) == 1 and on_conflict != WITH_SPAN:
        return listed[0].listing, []
    places: dict[str, list[tuple[int, int]]] = {}
    for number, entry in enumerate(listed):
        for i, key in enumerate(entry.listing.keys):
            places.setdefault(key, []).append((number, i))
    contents = _contents(listed, (held for held in places.values() if len(held) > 1))
    kept: list[tuple[str, int, int]] = []
    rows: list[LedgerRow] = []
    conflicts: list[str] = []
    for key, held in places.items():
        first: dict[bytes, tuple[int, int]] = {}
        for place in held:
            number, i = place
            own = f"{listed[number].delivery.folder}/{key}"
            content = contents.get(place)
            # With its span in its key an image must not lose that key when it is delivered again: the oldest stands.
            main = held[-1]
            if on_conflict == WITH_SPAN:
                main = place if content is None else first.setdefault(content, place)
            called = listed[main[0]].called
            if place == main:
                kept.append((own if on_conflict == WITH_SPAN else key, number, i))
            elif content is not None and content == contents[main]:
                rows.append(LedgerRow(own, DUPLICATE, DELIVERED_AGAIN, f"the same bytes as in {called}"))
            else:
                conflicts.append(f"{key} in {listed[number].called} and {called}")
                rows.append(LedgerRow(own, DUPLICATE, SUPERSEDED, f"{called} has other bytes for this key"))
    if conflicts and on_conflict == CONFLICT_FAILS:
        shown = "; ".join(conflicts[:_SHOWN]) + ("; …" if len(conflicts) > _SHOWN else "")
        raise CheckFailed(
            f"input.on_conflict: {len(conflicts)} images have other bytes in another span: {shown}. "
            "Set it to newest or with_span, or mend the deliveries."
        )
    return _joined(root, listed, sorted(kept)), sorted(rows, key=lambda row: row.key)


def _contents(
    listed: Sequence[_Listed], places: Iterable[Sequence[tuple[int, int]]]
) -> dict[tuple[int, int], bytes | None]:
    """What tells the contents of the files of one key apart; a file that cannot be read has none."""
    contents: dict[tuple[int, int], bytes | None] = {}
    flat: list[tuple[int, int]] = []
    for held in places:
        listed_there = {(listed[n].listing.checksum(i), listed[n].listing.sizes[i]) for n, i in held}
        (checksum, _), *others = listed_there
        # Equal MD5 say that the bytes are equal; others, of objects that are encrypted, need not say that they differ.
        if checksum.startswith("md5:") and not others:
            contents.update(dict.fromkeys(held, checksum.encode()))
        else:
            flat += held

    def read(place: tuple[int, int]) -> bytes | None:
        listing = listed[place[0]].listing
        found = hash_file(listing.path(place[1]), listing.pin(place[1]))
        return None if found is None else found.sha256

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
            refusal._replace(key=f"{entry.delivery.folder}/{refusal.key}")
            for entry in listed
            for refusal in entry.listing.refused
        ),
        tuple(listed[number].listing.pin(i) for _, number, i in kept) if pinned else (),
        StringArray(listed[number].listing.checksum(i) for _, number, i in kept) if summed else (),
    )
