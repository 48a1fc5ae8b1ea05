"""Runs ImageTransform on a dataset outside a pipeline. Its four outputs become subfolders of one folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tfx.types import Artifact, standard_artifacts

from shardwright.components.image_transform import executor
from shardwright.components.image_transform import transform_plan as planning
from shardwright.components.image_transform.transform_recipe import read_recipe
from shardwright.components.runtime.beam import beam_args, check_staging, in_process_beam
from shardwright.dataset.manifest import Manifest
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ShardwrightError, UsageError
from shardwright.pipelines.runs.logs import last_line, shardwright_error
from shardwright.staging.commit import open_if_committed, remove_staged
from shardwright.staging.staging import STAGING_VARIABLE
from shardwright.storage import is_remote
from shardwright.storage.fingerprint import fingerprint
from shardwright.storage.own_names import staging_next_to
from shardwright.storage.paths import check_not_inside, check_utf8
from shardwright.storage.whole_files import appear, assembling

EXAMPLES = "transformed_examples"
GRAPH = "transform_graph"
_OUTPUTS: dict[str, type[Artifact]] = {
    EXAMPLES: standard_artifacts.Examples,
    GRAPH: standard_artifacts.TransformGraph,
    "post_transform_stats": standard_artifacts.ExampleStatistics,
    "post_transform_schema": standard_artifacts.Schema,
}


def transform_dataset(
    dataset: str, recipe: str, out: str | os.PathLike[str], *, staging: str | None = None, beam: Sequence[str] = ()
) -> Manifest:
    """Runs ImageTransform on a dataset.

    Args:
        dataset: folder or URL that `shardwright ingest` wrote.
        recipe: the result of `transform_recipe` for a configuration.
        out: folder to make, with a subfolder for each output. If it contains the same transform, nothing is done.
        staging: folder or bucket of finished shards, which the next attempt uses again; by default next to `out`.
        beam: options of Beam.

    Returns:
        The manifest of the transformed dataset.

    Raises:
        UsageError: `out` is on a bucket, inside the dataset, or contains something else.
        ShardwrightError: the dataset or the recipe is wrong, or too many images were rejected.
    """
    if is_remote(os.fspath(out)):
        raise UsageError(f"{out}: a transform writes to this machine only. Name a folder, and copy it later.")
    check_utf8(out, "--out")
    out = Path(os.path.realpath(out))
    own = staging_next_to(out)
    check_staging(beam, staging, own)
    source = ImageDataset.open(dataset)
    check_not_inside(out, source.root)
    plan = planning.plan_transform(source, *read_recipe(recipe))
    if out.exists():
        found = open_if_committed(out / EXAMPLES, plan.dataset.fingerprint) if (out / EXAMPLES).is_dir() else None
        if found is None:
            raise UsageError(f"{out}: exists already with other content. Name another folder, or remove this one.")
        return found
    # With the folder's name, since the same transform may be written to another folder concurrently.
    with assembling(out, fingerprint([plan.dataset.fingerprint, out.name])) as folder:
        _run(dataset, recipe, folder, staging or own, list(beam))
        remove_staged(own, out)
        found = ImageDataset.open(folder / EXAMPLES).manifest
        appear(folder, out)
    return found


def _run(dataset: str, recipe: str, folder: Path, staging: str, beam: list[str]) -> None:
    examples = standard_artifacts.Examples()
    examples.uri = dataset
    outputs: dict[str, list[Artifact]] = {}
    for name, kind in _OUTPUTS.items():
        artifact = kind()
        artifact.uri = str(folder / name)
        Path(artifact.uri).mkdir()
        outputs[name] = [artifact]
    before = os.environ.get(STAGING_VARIABLE)
    os.environ[STAGING_VARIABLE] = staging
    try:
        with in_process_beam(), tempfile.TemporaryDirectory(prefix="shardwright-") as scratch:
            context = executor.Executor.Context(
                beam_pipeline_args=beam_args(beam), tmp_dir=scratch, unique_id="transform"
            )
            executor.Executor(context).Do({"examples": [examples]}, outputs, {"recipe": recipe})
    except Exception as error:
        # The message of a worker's error is a whole traceback.
        short = ShardwrightError(f"the transform failed with {type(error).__name__}: {last_line(error)}")
        raise shardwright_error(error) or short from error
    finally:
        if before is None:
            del os.environ[STAGING_VARIABLE]
        else:
            os.environ[STAGING_VARIABLE] = before
