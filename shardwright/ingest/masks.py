"""The masks of one image, in the frame of the stored pixels."""

from __future__ import annotations

from shardwright.images import ImageHeader
from shardwright.ingest.plan import IngestPlan
from shardwright.manifest import IGNORED
from shardwright.rle import RleError, Runs, union
from shardwright.sources.base import IGNORE, NO_LABEL, NO_ROW, Sample


class BadMask(ValueError):
    """A row's mask is broken or does not fit the image: `code` and `reason` are for the ledger."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


def read_masks(plan: IngestPlan, sample: Sample, header: ImageHeader) -> dict[int, Runs]:
    """Reads the masks of an image; several rows of a class are joined.

    Returns:
        Index of every class, and `IGNORE` where the plan has it -> runs, int64 (n, 2), in the stored frame.

    Raises:
        BadMask: a mask is broken or does not fit the image.
    """
    classes = plan.dataset.classes
    parts: dict[int, list[Runs]] = {label: [] for label in range(len(classes))}
    if plan.ignore:
        parts[IGNORE] = []
    for label, text, row in sample.masks:
        try:
            for drawn, runs in plan.dialect.masks(label, text, height=header.height, width=header.width):
                parts[drawn].append(runs)
        except RleError as error:
            raise BadMask(error.code, f"{_place(plan, label, row)}: {error}") from None
    return {label: union(runs) for label, runs in parts.items()}


def _place(plan: IngestPlan, label: int, row: int) -> str:
    """Where a mask stands, for messages."""
    place = [plan.table]
    if row != NO_ROW:
        # Only tables have columns.
        place.append(f"row {row}, column {plan.mask_column}" if plan.mask_column else f"annotations[{row}]")
    if label != NO_LABEL:
        place.append(f"class {IGNORED if label == IGNORE else plan.dataset.classes[label]}")
    return ", ".join(place)
