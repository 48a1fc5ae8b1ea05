"""Which format the files are of, by their signs (`signs`), and which class reads it.

The modules of formats are imported when a format is chosen: a run with a CSV does not load the readers of JSON.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import NamedTuple

from shardwright.errors import UsageError
from shardwright.formats.base import AnnotationFormat
from shardwright.formats.head import Head
from shardwright.formats.signs import SIGNS
from shardwright.label_formats import AUTO, BY_NAME, LabelFormat


class Decision(NamedTuple):
    """The format of annotations.

    Attributes:
        row: the format; `None` for a table whose columns decide, and for files that are not read.
        reason: why, for the user.
        called: the name of the format or the tool that the files were recognized by, or empty.
        fix: what to do with files that are not read.
    """

    row: LabelFormat | None
    reason: str = ""
    called: str = ""
    fix: str = ""


def decide(label_format: str, head: Head) -> Decision:
    """Decides on a format.

    Raises:
        UsageError: the files are known, and not read.
    """
    if label_format != AUTO:
        signs = (sign.called for sign in SIGNS if sign.format == label_format and not head.folder and sign.fits(head))
        return Decision(BY_NAME[label_format], "input.labels.format is set", next(signs, ""))
    found = recognize(head)
    if found is not None and found.row is None:
        problem = f"{head.path}: holds {found.called}, which is not read. {found.fix}"
        raise UsageError(f"input.labels.path: {problem}")
    if found is not None and found.row is not None:
        folder = f"{head.name} is a folder that holds " if found.row.name == "pascal_voc" else f"{head.name} holds "
        return found._replace(reason=folder + found.called)
    if head.folder:
        return Decision(BY_NAME["mask_images"], f"{head.name} is a folder")
    if lines := head.why_lines(several=True):
        return Decision(None, lines)
    if head.ending == ".json" or head.text[:1] == "{":
        why = "ends with .json" if head.ending == ".json" else "begins with a brace"
        return Decision(BY_NAME["coco_json"], f"{head.name} {why}")
    return Decision(None)


def recognize(head: Head) -> Decision | None:
    """Returns what a file, or most files of a folder, can only be; `None` where the content or the options decide."""
    sign = next((sign for sign in SIGNS if sign.fits(head)), None)
    if sign is not None:
        return Decision(BY_NAME.get(sign.format), called=sign.called, fix=sign.fix)
    inside = [recognize(one) for one in head.inside] if head.folder else []
    best = max(inside, key=inside.count, default=None)
    return best if 2 * inside.count(best) > len(inside) else None


@cache
def reader(place: str) -> type[AnnotationFormat]:
    """Returns a class by its module and its name, such as `LabelFormat.reader`; the module is imported now."""
    module, _, name = place.partition(":")
    found: type[AnnotationFormat] = getattr(import_module(f"shardwright.formats.{module}"), name)
    return found
