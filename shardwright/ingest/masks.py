"""The masks of one image, in the frame of the stored pixels."""

from __future__ import annotations

from contextlib import suppress

from shardwright.frames import Frames
from shardwright.ingest.plan import IngestPlan
from shardwright.manifest import IGNORED
from shardwright.masks.rle import RleError, Runs, union
from shardwright.orientation import UPRIGHT
from shardwright.sources.base import IGNORE, NO_LABEL, NO_ROW, Sample

# Of one image: far more than any data set has, few enough to be drawn.
_MOST_MASKS = 100_000
# Runs of an image, 16 bytes each, that are held before they are joined.
_JOINED_AT = 1 << 22


class BadMask(ValueError):
    """A row's mask is broken or does not fit the image: `code` and `reason` are for the ledger."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


def read_masks(plan: IngestPlan, sample: Sample, frames: Frames) -> dict[int, Runs]:
    """Reads the masks of an image; several rows of a class are joined.

    Args:
        plan: classes, how masks are written, which frame they are in.
        sample: the image's annotations.
        frames: how they get to the stored pixels.

    Returns:
        Index of every class, and `IGNORE` where the plan has it -> runs, int64 (n, 2), of the stored pixels.

    Raises:
        BadMask: a mask is broken or does not fit the image.
    """
    classes = plan.dataset.classes
    # By class, and then by the frame that its rows turn out to be in.
    parts: dict[int, tuple[list[Runs], list[Runs]]] = {label: ([], []) for label in range(len(classes))}
    if plan.ignore:
        parts[IGNORE] = ([], [])
    if len(sample.masks) > _MOST_MASKS:
        raise BadMask(
            "too_many_masks", f"the image has {len(sample.masks):,} masks; at most {_MOST_MASKS:,} are joined"
        )
    held, most = 0, _JOINED_AT
    for label, text, row in sample.masks:
        try:
            displayed = are_displayed(plan, text, frames)
            height, width = frames.size(displayed)
            for drawn, runs in plan.dialect.masks(label, text, height=height, width=width):
                parts[drawn][displayed].append(runs)
                held += len(runs)
                if held > most:
                    held = _join(parts)
                    most = max(_JOINED_AT, 2 * held)
        except RleError as error:
            raise BadMask(error.code, f"{_place(plan, label, row)}: {error}") from None
    return {label: _joined(stored, displayed, frames) for label, (stored, displayed) in parts.items()}


def _join(parts: dict[int, tuple[list[Runs], list[Runs]]]) -> int:
    """Joins what is held of each class, so many large masks need no more memory than one; returns the runs left."""
    held = 0
    for frames in parts.values():
        for runs in frames:
            runs[:] = [union(runs)] if runs else []
            held += len(runs[0]) if runs else 0
    return held


def are_displayed(plan: IngestPlan, text: str, frames: Frames) -> bool:
    """Tells whether a mask is in the displayed frame; see `Frames.are_displayed`."""
    size = None
    if frames.orientation != UPRIGHT:  # Most images are upright: no need to look for the mask's size.
        with suppress(RleError):  # What is wrong with it, reading it says better.
            size = plan.dialect.size(text)
    return frames.are_displayed(plan.frame, size)


def _joined(stored: list[Runs], displayed: list[Runs], frames: Frames) -> Runs:
    moved = [frames.move_runs(union(runs), drawn) for drawn, runs in ((False, stored), (True, displayed)) if runs]
    return moved[0] if len(moved) == 1 else union(moved)


def _place(plan: IngestPlan, label: int, row: int) -> str:
    """Where a mask stands, for messages."""
    place = [plan.table] if plan.table else []
    if row != NO_ROW:
        # Only tables have columns.
        place.append(f"row {row}, column {plan.mask_column}" if plan.mask_column else f"annotations[{row}]")
    if label != NO_LABEL:
        place.append(f"class {IGNORED if label == IGNORE else plan.dataset.classes[label]}")
    return ", ".join(place)
