"""What corrected annotations brought: for the report and the summary of a run on a dataset with other annotations.

The earlier dataset is the one of `reuse_from`, or the one that `shardwright relabel` was called with. Both models are
measured on the corrected images: the last blessed one, which learned from the earlier annotations, and the new one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from shardwright.components.evaluator.result_files import EvaluationSummary, read_evaluation
from shardwright.dataset.manifest import MULTI
from shardwright.dataset.reader import ImageDataset
from shardwright.display.html import card, isolate, join, link, paragraph, section, table
from shardwright.edit.diff_datasets import MASKS, RELABELED, Differences, find_differences
from shardwright.errors import ShardwrightError
from shardwright.evaluation.figures import title_of
from shardwright.evaluation.metrics import headline
from shardwright.lineage.ancestry import family_of
from shardwright.report.page import Chapter
from shardwright.running.progress import counted

_SHOWN = 40


@dataclass(frozen=True)
class Corrections:
    """The annotations that differ from those of an earlier dataset.

    Attributes:
        earlier: the earlier dataset.
        dataset: the one with the corrected annotations.
        differences: from the one to the other.
    """

    earlier: ImageDataset
    dataset: ImageDataset
    differences: Differences

    @property
    def images(self) -> int:
        """How many images have other annotations."""
        changed = self.differences.counts
        return max(changed[RELABELED], changed[MASKS])

    def facts(self) -> dict[str, Any]:
        """Returns it as plain values, for `run.on_finish`."""
        found = self.differences
        labels, masks = dict(found.labels), dict(found.masks)
        return {"images": self.images, "labels": labels, "masks": masks, "earlier": self.earlier.manifest.digest}

    def words(self) -> str:
        """Returns what changed as a line: `4 images have other masks: Fish 3, Sugar 1`."""
        found = self.differences
        what = "masks" if found.counts[MASKS] else "classes"
        rows = (found.masks if found.counts[MASKS] else found.labels).most_common(4)
        more = ", …" if len(found.masks or found.labels) > len(rows) else ""
        listed = ", ".join(f"{name} {count}" for name, count in rows)
        images = f"{counted(self.images, 'image')} {'has' if self.images == 1 else 'have'}"
        return f"{images} other {what} than in {self.earlier.manifest.digest[:12]}: {listed}{more}"

    def chapter(self, evaluation: str | None) -> Chapter:
        """Returns the chapter of a report.

        Args:
            evaluation: folder of the Evaluator's output, for the models before and after.
        """
        found = self.differences
        cards = []
        for title, rows in (("Other classes", found.labels), ("Other masks", found.masks)):
            if rows:
                cells = [(isolate(name), f"{count:,}") for name, count in rows.most_common(_SHOWN)]
                cards.append(card(title, table(("class", "images"), cells, caption=title, numbers=(1,))))
        if evaluation is not None:
            cards.append(card("The models", paragraph(self._effect(read_evaluation(evaluation)))))
        lead = f"{self.words()}. `shardwright diff` lists the images."
        finding = join([link("corrections", "Corrected annotations"), f": {counted(self.images, 'image')}."])
        body = section("corrections", "Corrections", *cards, lead=lead)
        return Chapter("corrections", "Corrections", body, (("good", finding),))

    def _effect(self, evaluation: EvaluationSummary) -> str:
        manifest = self.dataset.manifest
        name = headline(manifest.task, multi=manifest.labels == MULTI)
        after = f"{title_of(name)} of the new model: {evaluation.metrics[name]:.4f}"
        if name not in evaluation.baseline:
            return f"{after}. There is no earlier model to compare it with."
        before = f"of the last blessed one: {evaluation.baseline[name]:.4f}"
        return f"{after}; {before}. Both on {evaluation.figures.measured.words()}, with the corrected annotations."


def find_corrections(dataset: str, earlier: str | None) -> Corrections | None:
    """Compares the annotations of a dataset with those of the one that it was made of.

    Args:
        dataset: its folder.
        earlier: the dataset of `reuse_from`; by default the one that `shardwright relabel` was called with, if it is in
            the same folder.

    Returns:
        `None` where there is no such dataset, or no annotation differs.
    """
    now = ImageDataset.open(dataset)
    place = earlier or _relabeled(now)
    if place is None:
        return None
    before = ImageDataset.open(place)
    if before.manifest.digest == now.manifest.digest:
        return None
    made = Corrections(before, now, find_differences(before, now))
    return made if made.images else None


def _relabeled(dataset: ImageDataset) -> str | None:
    """Returns the place of the dataset that another one was relabeled from."""
    derived = dataset.manifest.recipe.get("derived")
    if not isinstance(derived, dict) or derived.get("operation") != "relabel":
        return None
    try:
        start, family = family_of(os.path.abspath(dataset.root))
    except ShardwrightError:
        return None
    sources = (family.find(role, value) for role, value in start.links.items() if role.startswith("source-"))
    return next((source.place for source in sources if source is not None), None)
