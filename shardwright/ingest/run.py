"""The whole ingest on this machine: plan, write shards in processes of their own, commit.

What `import shardwright` offers beside `ImageDataset` and `load`: a dataset of a configuration, in one call.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from shardwright.config import Config, load_config, parse_config
from shardwright.config.images import FULL
from shardwright.dataset.manifest import DISPLAYED, LOCATED, Manifest
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import UsageError
from shardwright.ingest.plan import IngestPlan, plan_ingest, planned_fingerprint
from shardwright.ingest.recipe import IngestRecipe, locate
from shardwright.ingest.survey import survey_input
from shardwright.ingest.write import write_shard
from shardwright.processes import map_processes, warm_up
from shardwright.progress import progress
from shardwright.staging.commit import check_output, commit, discard_assembly, is_committed, open_if_committed
from shardwright.staging.damaged import damage
from shardwright.staging.staging import ShardResult, Staging
from shardwright.storage import is_remote
from shardwright.storage.locks import locked_folder
from shardwright.storage.mirror import local_folder
from shardwright.storage.paths import check_not_inside, is_inside, staging_next_to

# Below this, starting processes takes longer than the work.
_BYTES_WORTH_PROCESSES = 64 << 20
_LOST = (
    "A process that was writing a shard has died; out of memory? Finished shards are kept: run it again, perhaps with "
    "fewer --workers."
)


def ingest(
    config: Config,
    out: str | os.PathLike[str],
    workers: int | None = None,
    quiet: bool = False,
    tell: Callable[[str], None] | None = None,
) -> Manifest:
    """Makes a dataset of a configuration's input.

    Args:
        config: the configuration.
        out: folder to write; it appears whole, when all is done. When it holds this very dataset, nothing is done.
        workers: processes that probe images and write shards; by default one per processor, and none of its own for
            small inputs. The result is the same.
        quiet: show no progress.
        tell: is called with each note on what was told from the data.

    Returns:
        The manifest of the dataset.

    Raises:
        UsageError: the input, the annotations or `out` are not what they should be.
        CheckFailed: too many rejects, nothing matched, nothing written.
    """
    if workers is not None and workers < 1:
        raise UsageError(f"--workers: {workers} is too few. Give 1 or more.")
    check_output(out)
    for earlier in (config.previous, config.split.previous):
        if earlier is not None:
            check_not_inside(out, earlier)
    location = locate(config)
    recipe = IngestRecipe.of(config)
    staging_root = _staging_root(config, out)
    surveyed = survey_input(recipe, location)
    if recipe.images.verify == FULL and is_committed(out):
        # Whether it is this very dataset the hashes tell, at a tenth of the cost of looking at the pixels again.
        there = open_if_committed(out, planned_fingerprint(recipe, surveyed))
        if there is not None:
            _remove_leftovers(staging_root, config, out, there.fingerprint)
            return there
    if _processes(sum(surveyed.listing.sizes), workers) > 1:
        warm_up(write_shard)  # Their imports take as long as hashing a thousand photographs, which comes first.
    prepared = plan_ingest(recipe, location, surveyed=surveyed, quiet=quiet, staging_root=staging_root, workers=workers)
    del surveyed
    plan = prepared.plan
    if is_inside(out, plan.root):
        _remove_leftovers(staging_root, config, out, plan.dataset.fingerprint)
        raise UsageError(f"{out}: lies inside the input folder {plan.root} and would become input. Name another --out.")
    if tell is not None:
        for note in plan.notes:
            tell(note)
    found = open_if_committed(out, plan.dataset.fingerprint)
    if found is not None:
        _remove_leftovers(staging_root, config, out, plan.dataset.fingerprint)
        _log_marks(found, config, tell)
        return found
    prepared.check_rejects()
    if tell is not None and (damaged := damage(out, plan.dataset.fingerprint)):
        tell(f"{damaged} It is replaced now, since what remains of it belongs to this dataset.")
    try:
        staging = Staging.open(staging_root, plan.dataset.fingerprint, plan.tools)
    except OSError as error:
        raise UsageError(
            f"{staging_root}: cannot be made ({error.strerror}). Set run.staging or another --out."
        ) from None
    with staging.locked():
        prepared.stage(staging)
        del prepared
        todo = [number for number, result in enumerate(staging.results(plan.dataset.shards)) if result is None]
        with progress(len(todo), "writing shards", quiet=quiet) as shown:
            for _ in _write_all(plan, staging, todo, workers):
                shown.advance()
        copied = reuse_notes(plan, staging.results(plan.dataset.shards))
        manifest = commit(staging, plan.dataset, out, {"config": config.to_dict(), "runner": "ingest"})
    _remove_leftovers(staging_root, config, out, plan.dataset.fingerprint)
    if tell is not None:
        for note in copied:
            tell(note)
    _log_marks(manifest, config, tell)
    return manifest


def reuse_notes(plan: IngestPlan, results: Sequence[ShardResult | None]) -> list[str]:
    """What was copied from the earlier dataset, for the user; nothing where there is none."""
    if plan.source is None:
        return []
    there = [result for result in results if result is not None]
    copied, damaged = sum(result.copied for result in there), sum(result.damaged for result in there)
    total = sum(result.inputs for result in there)
    notes = [f"{copied:,} of {total:,} images copied from {plan.source.root}, {total - copied:,} read"]
    if damaged:
        notes.append(
            f"{damaged:,} of these because their records in {plan.source.root} are damaged; `shardwright verify` names "
            "them"
        )
    return notes


def _log_marks(manifest: Manifest, config: Config, tell: Callable[[str], None] | None) -> None:
    if tell is None:
        return
    located, displayed = (manifest.totals.get(name, 0) for name in (LOCATED, DISPLAYED))
    if located:
        kept = config.images.strip_metadata == "none"
        what = "and are stored so; images.strip_metadata: private leaves that out" if kept else "stored without it"
        tell(f"{located} images say where they were taken (GPS): {what}")
    if displayed:
        tell(
            f"{displayed} images are turned by Exif: their masks and boxes are taken as drawn on the displayed picture "
            "(input.labels.frame says otherwise)"
        )


def _staging_root(config: Config, out: str | os.PathLike[str]) -> str:
    if config.run.staging is not None:
        return config.resolve(config.run.staging)
    return staging_next_to(out)


def _remove_leftovers(staging_root: str, config: Config, out: str | os.PathLike[str], fingerprint: str) -> None:
    """Clears what killed runs have left, once the output is there; the folder of a run that lives is let alone.

    In the staging folder beside an output that is all there is, also of other configurations: they cannot be published
    there any more. In one that the configuration names, where others may keep theirs, it is what is ours.
    """
    if is_remote(str(out)):
        discard_assembly(out, fingerprint)
    if is_remote(staging_root):
        staging = Staging.open(staging_root, fingerprint)
        # Another run of this machine may be making the same dataset for another output.
        with suppress(UsageError), locked_folder(Path(staging.root)):
            staging.remove()
        if config.run.staging is None:
            shutil.rmtree(local_folder(staging_root), ignore_errors=True)
        return
    for folder in sorted(Path(staging_root).glob("*" if config.run.staging is None else fingerprint)):
        if not folder.is_dir():
            continue
        staging = Staging(str(folder), folder.name)
        with suppress(UsageError), staging.locked():
            discard_assembly(out, folder.name)
            staging.remove()
    with suppress(OSError):  # It goes when no other dataset is being made in it.
        Path(staging_root).rmdir()


def _write_all(plan: IngestPlan, staging: Staging, todo: list[int], workers: int | None) -> Iterator[ShardResult]:
    """Writes the shards that are not finished yet; yields each as it is done."""
    workers = min(_processes(plan.total_bytes, workers), len(todo))
    if workers <= 1:
        for number in todo:
            yield write_shard(number, plan, staging)
        return
    yield from map_processes(partial(write_shard, plan=plan, staging=staging), todo, workers, _LOST)


def _processes(total: int, workers: int | None) -> int:
    """How many processes are used for so many bytes of images where `workers` are asked for."""
    if workers is None:
        return (os.cpu_count() or 1) if total > _BYTES_WORTH_PROCESSES else 1
    return workers


def make_dataset(
    config: Config | Mapping[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    quiet: bool = True,
) -> ImageDataset:
    """Makes a dataset, as `shardwright ingest` does.

    Workers are processes that import the main module: a script that calls this needs the usual
    `if __name__ == "__main__"`.

    Args:
        config: a YAML file, or what would stand in one: `{"input": {"images": "photos"}}`; relative paths start from
            the current folder.
        out: folder to write, or a URL; where it holds this very dataset, nothing is done.
        workers: processes; the result is the same.
        quiet: show no progress.

    Returns:
        The dataset.

    Raises:
        UsageError: the configuration, the input or `out` are not what they should be.
        CheckFailed: too many rejects, nothing matched, nothing written.
    """
    if isinstance(config, Mapping):
        config = parse_config(dict(config), base=os.getcwd())
    elif not isinstance(config, Config):
        config = load_config(config)
    ingest(config, out, workers=workers, quiet=quiet)
    return ImageDataset.open(out)
