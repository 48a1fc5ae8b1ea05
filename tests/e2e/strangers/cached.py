"""ImageExampleGen and a stock StatisticsGen, with a cache: `python cached.py NAME ROOT`."""

import sys

from tfx import v1 as tfx

from shardwright.components import ClassFolders, ImageExampleGen, Input

name, root = sys.argv[1:]
example_gen = ImageExampleGen(Input("photographs", labels=ClassFolders()), task="classification")
statistics_gen = tfx.components.StatisticsGen(examples=example_gen.outputs["examples"])
tfx.orchestration.LocalDagRunner().run(
    tfx.dsl.Pipeline(
        pipeline_name=name,
        pipeline_root=root,
        components=[example_gen, statistics_gen],
        enable_cache=True,
        metadata_connection_config=tfx.orchestration.metadata.sqlite_metadata_connection_config("cached.db"),
    )
)
