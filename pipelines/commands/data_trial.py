"""`shardwright validate --data`: what an ingest would make of the data, from the annotations and some images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardwright.config import Config
from shardwright.config.trainer import BLESSED
from shardwright.dataset.ledger import UNLISTED
from shardwright.drift.monitor import open_reference
from shardwright.errors import ShardwrightError
from shardwright.ingest import IngestRecipe, locate, survey_input
from shardwright.ingest.baseline import run_root, without_baseline
from shardwright.ingest.select_spans import becomes_input
from shardwright.ingest.trial import try_images
from shardwright.running.progress import counted
from shardwright.staging.commit import allowed_rejects
from shardwright.text.escaping import escape

# Images that are read, and rejects that are printed.
_TRIED, _SHOWN = 100, 5


def try_data(config: Config) -> tuple[dict[str, Any], list[str], bool]:
    """Reads the annotations and some images.

    Returns:
        Images, classes and rejects as plain values and as lines, and whether an ingest would end for too many rejects.
    """
    config = without_baseline(config)
    surveyed = survey_input(IngestRecipe.of(config), locate(config))
    listing, survey = surveyed.listing, surveyed.survey
    tried = [image.refusal for image in try_images(surveyed, _TRIED)]
    unread = [refusal for refusal in tried if refusal is not None]
    known = [*surveyed.rejected.values(), *listing.refused, *survey.refused]
    inputs, share = len(listing.keys) + len(listing.refused) + len(survey.refused), config.rejects.max_fraction
    unwanted = sum(refusal.code != UNLISTED for refusal in known)
    ends = unwanted > allowed_rejects(share, inputs) or len(unread) > allowed_rejects(share, len(tried))
    rejected = [*known, *unread]
    lines = [
        f"images       {len(listing.keys):,}, {sum(listing.sizes) / 1e6:,.1f} MB",
        f"classes      {', '.join(survey.classes) or 'none'}",
        f"rejected     {len(known):,}",
        f"tried        {counted(len(tried), 'image')}, of which {len(unread):,} would be rejected",
        *(f"  {escape(refusal.key)}: {refusal.code}: {escape(refusal.reason)}" for refusal in rejected[:_SHOWN]),
        *(f"note         {escape(note)}" for note in (*config.notes, *survey.notes, *_notes_on_run(config))),
    ]
    if ends:
        limit = f"rejects.max_fraction is {share:g}"
        lines.append(f"An ingest would end with too many rejects: {limit}. Fix or remove these files, or raise it.")
    row = {"images": len(listing.keys), "classes": survey.classes, "tried": len(tried)}
    return {**row, "rejected": [refusal._asdict() for refusal in rejected]}, lines, ends


def _notes_on_run(config: Config) -> Iterator[str]:
    """Yields what `shardwright run` would refuse: its folder, and the dataset that images are compared with."""
    if becomes_input(run_root(config), locate(config).images):
        yield f"run.root: {run_root(config)} is inside the input folder, which `run` refuses; see --root"
    drift = config.gate.drift
    if drift is not None and drift.reference != BLESSED:
        try:
            open_reference(config.resolve(drift.reference))
        except ShardwrightError as error:
            yield f"{error} `run` refuses it"
