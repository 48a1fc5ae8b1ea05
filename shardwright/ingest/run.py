"""The whole ingest on this machine: plan, write shards in processes of their own, commit."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path

from shardwright.commit import commit, committed, refuse_foreign
from shardwright.config import Config
from shardwright.console import progress
from shardwright.errors import ShardwrightError, UsageError
from shardwright.ingest.plan import IngestPlan, plan_ingest
from shardwright.ingest.recipe import IngestRecipe, locate
from shardwright.ingest.write import write_shard
from shardwright.manifest import LOCATED, Manifest
from shardwright.staging import ShardResult, Staging

# Below this, starting processes takes longer than the work.
_BYTES_WORTH_PROCESSES = 64 << 20


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
        workers: processes that write shards; by default one per processor, and none of its own for small inputs. The
            result is the same.
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
    refuse_foreign(out)
    location = locate(config)
    prepared = plan_ingest(IngestRecipe.of(config), location, quiet=quiet)
    plan = prepared.plan
    if os.path.realpath(out).startswith(os.path.join(os.path.realpath(plan.root), "")):
        raise UsageError(f"{out}: lies inside the input folder {plan.root} and would become input. Name another --out.")
    if tell is not None:
        for note in plan.notes:
            tell(note)
    found = committed(out, plan.dataset.fingerprint)
    if found is not None:
        _tell_located(found, config, tell)
        return found
    staging_root = _staging_root(config, out)
    try:
        staging = Staging.open(staging_root, plan.dataset.fingerprint)
    except OSError as error:
        raise UsageError(
            f"{staging_root}: cannot be made ({error.strerror}). Set run.staging or another --out."
        ) from None
    with staging.locked():
        prepared.stage(staging)
        del prepared
        planned = sum(result is None for result in map(staging.result, plan.dataset.shards))
        with progress(planned, "writing shards", quiet=quiet) as shown:
            for _ in _write_all(plan, staging, workers):
                shown.advance()
        manifest = commit(staging, plan.dataset, out, {"config": config.to_dict(), "runner": "ingest"})
    with suppress(OSError):  # It goes when no other dataset is being made in it.
        Path(staging_root).rmdir()
    _tell_located(manifest, config, tell)
    return manifest


def _tell_located(manifest: Manifest, config: Config, tell: Callable[[str], None] | None) -> None:
    located = manifest.totals.get(LOCATED, 0)
    if not located or tell is None:
        return
    kept = config.images.strip_metadata == "none"
    what = "as they are stored, too; images.strip_metadata: private leaves that out" if kept else "stored without it"
    tell(f"{located} images say where they were taken (GPS): {what}")


def _staging_root(config: Config, out: str | os.PathLike[str]) -> str:
    if config.run.staging is not None:
        return config.resolve(config.run.staging)
    target = Path(os.path.realpath(out))
    return str(target.with_name(f".{target.name}.staging"))


def _write_all(plan: IngestPlan, staging: Staging, workers: int | None) -> Iterator[ShardResult]:
    """Writes the shards that are not finished yet; yields each as it is done."""
    todo = [number for number, planned in enumerate(plan.dataset.shards) if staging.result(planned) is None]
    if workers is None:
        workers = (os.cpu_count() or 1) if plan.total_bytes > _BYTES_WORTH_PROCESSES else 1
    workers = min(workers, len(todo))
    if workers <= 1:
        for number in todo:
            yield write_shard(number, plan, staging)
        return
    yield from _write_in_processes(plan, staging, todo, workers)


def _write_in_processes(plan: IngestPlan, staging: Staging, todo: list[int], workers: int) -> Iterator[ShardResult]:
    # Spawned, because a process that has started TensorFlow or threads cannot safely be forked.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        running = {pool.submit(write_shard, number, plan, staging) for number in todo}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        except BrokenProcessPool:
            raise ShardwrightError(
                "A process that was writing a shard has died; out of memory? Finished shards are kept: run it again, "
                "perhaps with fewer --workers."
            ) from None
        finally:
            for future in running:
                future.cancel()
