"""A TFX pipeline of ImageExampleGen, StatisticsGen and ImageTransform: `pipeline.py INPUT ROOT [BEAM OPTION...]`."""

import sys
from pathlib import Path

from tfx import v1 as tfx

from shardwright.components import ImageExampleGen, Images, ImageTransform, Input, RleCsv, StatisticsGen, Transform

# Enough shards that both task managers have some, and that one can be killed in between.
_SHARDS = {"count": 24}


def main(folder: str, root: str, *options: str) -> None:
    """Runs the pipeline.

    Args:
        folder: a data set as `shardwright sample` draws it.
        root: folder of the artifacts.
        options: Beam's options; without any, the default runner in this process.
    """
    example_gen = ImageExampleGen(
        Input(f"{folder}/train_images", labels=RleCsv(f"{folder}/train.csv")),
        images=Images(verify="full"),
        shards=_SHARDS,
    )
    examples = example_gen.outputs["examples"]
    components = [example_gen, StatisticsGen(examples), ImageTransform(examples, transform=Transform(size=(64, 96)))]
    pipeline = tfx.dsl.Pipeline(
        pipeline_name="flink",
        pipeline_root=root,
        components=components,
        beam_pipeline_args=list(options),
        metadata_connection_config=tfx.orchestration.metadata.sqlite_metadata_connection_config(
            str(Path(root) / "metadata.sqlite")
        ),
    )
    tfx.orchestration.LocalDagRunner().run(pipeline)


if __name__ == "__main__":
    main(*sys.argv[1:])
