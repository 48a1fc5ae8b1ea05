"""The page of a review: each image with its annotation and the prediction, and buttons that say which one is right.

Marks stay in the browser. The page writes them as CSV and JSON, and as corrections: the annotations of the marked
images in the form that `shardwright relabel` reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from shardwright.display.html import (
    PageScript,
    document,
    dot,
    figure,
    isolate,
    join,
    left_out,
    marked,
    section,
    thumbnail,
)
from shardwright.display.thumbnails import StoredImage, picture_of
from shardwright.masks.rle import Runs, to_pairs

# Bytes of the page; pictures beyond are left out.
_MOST_BYTES = 25_000_000
_ANNOTATION, _PREDICTION, _NEITHER = "annotation", "prediction", "neither"
_NAMED, _IN_LEGEND = 6, 20


@dataclass(frozen=True)
class ReviewItem:
    """An image of a review.

    Attributes:
        key: its key.
        split: its split; empty for a new image.
        reason: why it is shown.
        stored: the image, with its annotation.
        predicted: numbers of the predicted classes.
        scores: probability of each class.
        masks: the predicted mask of each class in the stored frame; `None` of a classification.
    """

    key: str
    split: str
    reason: str
    stored: StoredImage
    predicted: Sequence[int]
    scores: Sequence[float]
    masks: Sequence[Runs] | None


@dataclass(frozen=True)
class ReviewPage:
    """A page of images to review.

    Attributes:
        title: its heading.
        lead: a line below the heading.
        identity: of the review, under which the browser keeps its marks.
        classes: names of the classes.
        multi: whether an image may have several classes.
        annotated: whether the images have annotations.
        command: what to do with the corrections.
    """

    title: str
    lead: str
    identity: str
    classes: Sequence[str]
    multi: bool
    annotated: bool
    command: str

    def render(self, items: Sequence[ReviewItem]) -> str:
        """Returns the page as HTML."""
        masked = any(item.masks is not None for item in items)
        more = self.classes if not masked and not self.multi else ()
        choices = [(_PREDICTION, "prediction right"), (_NEITHER, "wrong")]
        if self.annotated:
            choices = [(_ANNOTATION, "annotation right"), (_PREDICTION, "prediction right"), (_NEITHER, "neither")]
        parts, size = [], 0
        for number, item in enumerate(items):
            panels = join(self._panels(item)) if size < _MOST_BYTES else left_out()
            size += len(panels)
            below = join([*([isolate(item.split, 30)] if item.split else []), item.reason], " · ")
            parts.append(marked(number, item.key, below, panels, choices, more))
        tools = Markup(
            '<div class="bar-of-tools"><button data-save="corrections">Save corrections (CSV)</button>'
            '<button data-save="marks">Save marks (CSV)</button><button data-save="json">Save marks (JSON)</button>'
            '<span id="count" role="status"></span></div><p class="note"><kbd>j</kbd> <kbd>k</kbd> next and previous '
            "image, <kbd>1</kbd> <kbd>2</kbd> <kbd>3</kbd> mark, <kbd>0</kbd> unmark. Marks stay in this browser.</p>"
        )
        then = Markup("<p>Save the corrections, then: <code>{}</code></p>").format(self.command) if self.command else ""
        body = section("images", "Images", tools, then, Markup('<div class="items">{}</div>').format(join(parts)))
        data = {
            "id": self.identity,
            "keys": [item.key for item in items],
            "classes": list(more),
            "header": self.header(masked),
            "rows": [self._rows(item) for item in items],
        }
        legend = (
            join((join((dot(k), isolate(name, 40))) for k, name in enumerate(self.classes[:_IN_LEGEND])), " ")
            if masked
            else ""
        )
        return document(
            self.title,
            "Review",
            self.lead,
            legend,
            body,
            links=[("images", "Images")],
            script=PageScript("review.js", data),
        )

    def header(self, masked: bool) -> list[str]:
        """Returns the header of the table of corrections."""
        if masked:
            return ["ImageId", "ClassId", "EncodedPixels"]
        return ["image", *(self.classes if self.multi else ["label"])]

    def _panels(self, item: ReviewItem) -> Iterator[Markup]:
        yield figure(thumbnail(picture_of(item.stored), item.key), "image", "")
        own = list(item.stored.labels)
        if item.masks is not None:
            if self.annotated:
                yield figure(
                    thumbnail(picture_of(item.stored, own), f"annotation of {item.key}"), _ANNOTATION, self._names(own)
                )
            shown = picture_of(item.stored, list(item.predicted), item.masks)
            yield figure(thumbnail(shown, f"prediction of {item.key}"), _PREDICTION, self._names(item.predicted))
            return
        if self.annotated:
            yield figure("", _ANNOTATION, self._names(own, item.scores))
        yield figure("", _PREDICTION, self._names(item.predicted, item.scores))

    def _names(self, labels: Sequence[int], scores: Sequence[float] = ()) -> Markup:
        names = [isolate(self.classes[label], 40) for label in labels[:_NAMED]]
        told = [
            join([name, f"{scores[k]:.2f}"], " ") if scores else name for name, k in zip(names, labels, strict=False)
        ]
        return join([*told, *(["…"] if len(labels) > _NAMED else [])], ", ") or Markup("nothing")

    def _rows(self, item: ReviewItem) -> Mapping[str, list[list[str]]]:
        """Returns the rows of the table of corrections by mark."""
        found = {_PREDICTION: self._table(item.key, item.predicted, item.masks)}
        if self.annotated:
            masks = None if item.masks is None else [item.stored.runs(label) for label in range(len(self.classes))]
            found[_ANNOTATION] = self._table(item.key, item.stored.labels, masks)
        return found

    def _table(self, key: str, labels: Sequence[int], masks: Sequence[Runs] | None) -> list[list[str]]:
        if masks is not None:
            return [[key, name, to_pairs(runs)] for name, runs in zip(self.classes, masks, strict=True)]
        if self.multi:
            return [[key, *("1" if label in labels else "0" for label in range(len(self.classes)))]]
        return [[key, self.classes[label]] for label in labels[:1]]
