"""A transform outside a pipeline: what ImageTransform makes of a dataset, as four folders in one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tfx.types import Artifact, standard_artifacts

from shardwright.components.image_transform import executor
from shardwright.components.image_transform import plan as planning
from shardwright.components.image_transform.recipe import read_recipe
from shardwright.components.runtime.beam import beam_args, in_process_beam
from shardwright.dataset.manifest import Manifest
from shardwright.dataset.reader import ImageDataset
from shardwright.errors import ShardwrightError, UsageError
from shardwright.pipelines.runs.logs import last_line, ours
from shardwright.staging.commit import open_if_committed
from shardwright.staging.staging import STAGING_VARIABLE
from shardwright.storage import is_remote
from shardwright.storage.durable import rename_folder
from shardwright.storage.paths import check_not_inside

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
        dataset: folder or URL of what `shardwright ingest` made.
        recipe: what `transform_recipe` made of a configuration.
        out: folder to appear, with a folder for each output of the component. When it holds this very transform,
            nothing is done.
        staging: folder or bucket of finished shards, which the next attempt uses again; by default beside `out`.
        beam: options of Beam.

    Returns:
        The manifest of the transformed dataset.

    Raises:
        UsageError: `out` is on a bucket, inside of the dataset, or holds something else.
        ShardwrightError: the dataset or the recipe is not what it should be, or too much of it was rejected.
    """
    if is_remote(os.fspath(out)):
        raise UsageError(f"{out}: what a transform makes goes to a folder of this machine. Name one, and copy it then.")
    out = Path(out).absolute()
    source = ImageDataset.open(dataset)
    check_not_inside(out, source.root)
    plan = planning.plan_transform(source, *read_recipe(recipe))
    if out.exists():
        found = open_if_committed(out / EXAMPLES, plan.dataset.fingerprint) if (out / EXAMPLES).is_dir() else None
        if found is None:
            raise UsageError(f"{out}: is there already and holds something else. Name another folder, or remove it.")
        return found
    out.parent.mkdir(parents=True, exist_ok=True)
    # A folder for each attempt, so that nothing half-made is taken up; finished shards are in staging.
    folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        own = out.with_name(f".{out.name}.staging")
        _run(dataset, recipe, folder, staging or str(own), list(beam))
        # The commit has taken away what was in it.
        shutil.rmtree(own, ignore_errors=True)
        found = ImageDataset.open(folder / EXAMPLES).manifest
        folder.chmod(0o755)
        rename_folder(folder, out)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
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
        # A worker's error comes as a whole traceback.
        told = ShardwrightError(f"the transform failed with {type(error).__name__}: {last_line(error)}")
        raise ours(error) or told from error
    finally:
        if before is None:
            del os.environ[STAGING_VARIABLE]
        else:
            os.environ[STAGING_VARIABLE] = before
