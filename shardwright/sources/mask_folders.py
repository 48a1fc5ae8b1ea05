"""Annotations that are a folder of files: mask images, or a tree of Pascal VOC."""

from __future__ import annotations

import os
from collections.abc import Mapping

from shardwright.config.labels import IN_FOLDERS, LabelsConfig
from shardwright.errors import ConfigError, UsageError
from shardwright.sources.base import Images, Source
from shardwright.sources.export_record import ExportRecord
from shardwright.sources.mask_images import MaskImages
from shardwright.sources.pascal_voc import MASKS, PascalVoc
from shardwright.storage import is_folder


def tell_folder(label_format: str, labels: str) -> str:
    """Why annotations are taken for a folder of files, or nothing."""
    if label_format != "auto":
        return "input.labels.format says so" if label_format in IN_FOLDERS else ""
    return f"{os.path.basename(labels.rstrip('/'))} is a folder" if is_folder(labels) else ""


def open_folder(
    task: str,
    options: LabelsConfig,
    classes: Mapping[str, int | None] | None,
    labels: str,
    images: Images,
    reason: str,
    record: ExportRecord | None = None,
) -> Source:
    """Opens a folder of annotations; see `detect.open_source`.

    Args:
        task: `segmentation` or `classification`.
        options: `input.labels`.
        classes: `input.classes`.
        labels: absolute path of the folder.
        images: what is listed.
        reason: what `tell_folder` said.
        record: of the export of ours that the folder is a part of.

    Raises:
        UsageError: the task or an option does not fit, or there are no masks.
    """
    chosen = options.format
    if chosen == "auto":
        chosen = "pascal_voc" if is_folder(os.path.join(labels, MASKS)) else "mask_images"
        reason += f" that holds {MASKS}" if chosen == "pascal_voc" else ""
    if task == "classification":
        raise UsageError(f"{labels}: holds masks ({reason}), and task is classification. Use task: segmentation.")
    given = [*(f"columns.{role}" for role in options.columns), *options.code]
    for option in [*given, *(["pattern"] if options.pattern and chosen == "pascal_voc" else [])]:
        raise ConfigError(f"input.labels.{option}", f"not used by {chosen} ({reason})", "Remove it.")
    notes = (f"labels: {chosen}, since {reason}",) if options.format == "auto" else ()
    if chosen == "pascal_voc":
        return PascalVoc(labels, images, classes, notes, options.others)
    return MaskImages(labels, images, classes, notes, options.pattern, options.others, record)
