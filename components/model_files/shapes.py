"""The shapes of a model's images and answers: whether they fit, and how a message says them. Needs no Keras."""

from __future__ import annotations

from collections.abc import Sequence

_SHOWN = 8


def shape_fits(shape: Sequence[int | None], wanted: Sequence[int | None]) -> bool:
    """Returns whether a shape is the wanted one after the batch; its sides may be open (`None`), its depth not."""
    pairs = zip(shape[1:-1], wanted[1:-1], strict=False)
    return len(shape) == len(wanted) and shape[-1] == wanted[-1] and all(one in (None, other) for one, other in pairs)


def shape_text(shape: Sequence[int | None]) -> str:
    """Returns a shape for messages, such as `[batch, any, any, 3]`."""
    sides = ("any" if side is None else str(side) for side in shape[1:])
    return f"[{', '.join(['batch' if shape[0] is None else str(shape[0]), *sides])}]" if shape else "[]"


def last_number(classes: Sequence[str], masks: bool) -> str:
    """Returns what the last number of an answer's shape must be, in words."""
    names = ", ".join(classes[:_SHOWN]) + (", …" if len(classes) > _SHOWN else "")
    of_masks = "; the background is none of them" if masks else ""
    return f"the last number is that of the classes, {len(classes)} ({names}){of_masks}"
