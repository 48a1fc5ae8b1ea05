"""The transform of a dataset outside a pipeline. The outputs of ImageTransform become subfolders of one folder.

In processes of this machine it needs neither TFX nor Beam, and writes the dataset and the TransformGraph. Where Beam is
asked for, ImageTransform itself runs, which also writes what only TFX's components read: statistics and a schema.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from shardwright.components.image_transform.transform_images import transform_images
from shardwright.components.image_transform.transform_plan import plan_of_config
from shardwright.components.image_transform.transform_recipe import transform_recipe
from shardwright.config import Config
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
STATISTICS = "post_transform_stats"
SCHEMA = "post_transform_schema"


def transform_dataset(
    dataset: str,
    config: Config,
    out: str | os.PathLike[str],
    *,
    staging: str | None = None,
    workers: int | None = None,
    beam: Sequence[str] | None = None,
) -> Manifest:
    """Transforms a dataset.

    Args:
        dataset: folder or URL that `shardwright ingest` wrote.
        config: its sections `transform` and `rejects`, and the task.
        out: folder to make, with a subfolder for each output. If it contains the same transform, nothing is done.
        staging: folder or bucket of finished shards, which the next attempt uses again; by default next to `out`.
        workers: processes; by default one for each core.
        beam: options of Beam, which may be none, to run ImageTransform on it: statistics and a schema are written, too.

    Returns:
        The manifest of the transformed dataset.

    Raises:
        UsageError: `out` is on a bucket, inside the dataset, or contains something else.
        ShardwrightError: the dataset or the configuration is wrong, or too many images were rejected.
    """
    if is_remote(os.fspath(out)):
        raise UsageError(f"{out}: a transform writes to this machine only. Name a folder, and copy it later.")
    check_utf8(out, "--out")
    out = Path(os.path.realpath(out))
    own = staging_next_to(out)
    source = ImageDataset.open(dataset)
    check_not_inside(out, source.root)
    plan = plan_of_config(source, config)
    wanted = plan.dataset.fingerprint
    if out.exists():
        finished = open_if_committed(out / EXAMPLES, wanted) if (out / EXAMPLES).is_dir() else None
        if finished is not None and (beam is None or (out / SCHEMA).is_dir()):
            return finished
        if finished is not None:
            raise UsageError(f"{out}: exists already without what --tfx adds. Name another folder, or remove this one.")
        raise UsageError(f"{out}: exists already with other content. Name another folder, or remove this one.")
    # With the folder's name, since the same transform may be written to another folder concurrently.
    with assembling(out, fingerprint([wanted, out.name])) as folder:
        if beam is None:
            examples, graph = folder / EXAMPLES, folder / GRAPH
            transform_images(source, plan, examples, graph=graph, staging=staging or str(own), workers=workers)
        else:
            _run_component(dataset, transform_recipe(config), folder, staging, own, list(beam))
        remove_staged(own, out)
        manifest = ImageDataset.open(folder / EXAMPLES).manifest
        appear(folder, out)
    return manifest


def _run_component(dataset: str, recipe: str, folder: Path, staging: str | None, own: str, options: list[str]) -> None:
    from tfx.types import standard_artifacts

    from shardwright.components.image_transform import executor
    from shardwright.components.runtime.beam import beam_args, check_staging, in_process_beam

    check_staging(options, staging, own)
    outputs = {
        EXAMPLES: standard_artifacts.Examples(),
        GRAPH: standard_artifacts.TransformGraph(),
        STATISTICS: standard_artifacts.ExampleStatistics(),
        SCHEMA: standard_artifacts.Schema(),
    }
    for name, artifact in outputs.items():
        artifact.uri = str(folder / name)
        Path(artifact.uri).mkdir()
    examples = standard_artifacts.Examples()
    examples.uri = dataset
    before = os.environ.get(STAGING_VARIABLE)
    os.environ[STAGING_VARIABLE] = staging or own
    try:
        with in_process_beam(), tempfile.TemporaryDirectory(prefix="shardwright-") as scratch:
            context = executor.Executor.Context(
                beam_pipeline_args=beam_args(options), tmp_dir=scratch, unique_id="transform"
            )
            made = {name: [artifact] for name, artifact in outputs.items()}
            executor.Executor(context).Do({"examples": [examples]}, made, {"recipe": recipe})
    except Exception as error:
        # The message of a worker's error is a whole traceback.
        short = ShardwrightError(f"the transform failed with {type(error).__name__}: {last_line(error)}")
        raise shardwright_error(error) or short from error
    finally:
        if before is None:
            del os.environ[STAGING_VARIABLE]
        else:
            os.environ[STAGING_VARIABLE] = before
