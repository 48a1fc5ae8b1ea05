"""The outputs of TFX's own components are on stable storage before TFX records them."""

from pathlib import Path

import pytest
from power_cuts import LOST, simulated_disk
from tfx import v1 as tfx
from tfx.types import channel_utils, standard_artifacts

from shardwright.pipelines.runs.stock_executors import flush_stock_outputs


@pytest.fixture
def schema(tmp_path):
    (tmp_path / "given.pbtxt").write_text('feature { name: "a" type: BYTES }')
    return tmp_path / "given.pbtxt"


def test_outputs_survive_a_power_cut(tmp_path, schema):
    node = tfx.components.ImportSchemaGen(schema_file=str(schema))
    flush_stock_outputs([node])
    made = standard_artifacts.Schema()
    made.uri = str(tmp_path / "artifacts" / "schema" / "1")
    with simulated_disk(tmp_path) as disk:
        node.executor_spec.executor_class().Do({}, {"schema": [made]}, {"schema_file": str(schema)})
        after = disk.after_cut(LOST)
    (written,) = Path(made.uri).iterdir()
    assert after[written.relative_to(tmp_path).as_posix()] == written.read_bytes() != b""


def test_all_stock_components_of_a_run_flush():
    statistics = channel_utils.as_channel([standard_artifacts.ExampleStatistics()])
    schema = channel_utils.as_channel([standard_artifacts.Schema()])
    nodes = [
        tfx.components.SchemaGen(statistics=statistics),
        tfx.components.ImportSchemaGen(schema_file="schema.pbtxt"),
        tfx.components.ExampleValidator(statistics=statistics, schema=schema),
    ]
    before = [node.executor_spec.executor_class for node in nodes]
    flush_stock_outputs(nodes)
    for node, stock in zip(nodes, before, strict=True):
        ours = node.executor_spec.executor_class
        assert issubclass(ours, stock)
        assert ours.Do is not stock.Do
        assert type(node).EXECUTOR_SPEC.executor_class is stock, "the class of the component was changed"
