"""The masks of one image, in the frame of the stored pixels."""

from __future__ import annotations

from shardwright.images import ImageHeader
from shardwright.ingest.plan import IngestPlan
from shardwright.manifest import IGNORED
from shardwright.rle import RleError, Runs, union
from shardwright.sources.base import IGNORE, Sample


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
            name = IGNORED if label == IGNORE else classes[label]
            # Only tables have columns.
            place = f"row {row}, column {plan.mask_column}" if plan.mask_column else f"annotations[{row}]"
            raise BadMask(error.code, f"{plan.table}, {place}, class {name}: {error}") from None
    return {label: union(runs) for label, runs in parts.items()}
