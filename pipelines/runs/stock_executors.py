"""Executors of TFX's own components that flush their outputs, as ours do, before TFX records that they are done.

TFX would record the outputs first: after a power failure in between, the next run would reuse a schema that is empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tfx.components.example_validator import executor as example_validator
from tfx.components.schema_gen import executor as schema_gen
from tfx.components.schema_gen.import_schema_gen import executor as import_schema_gen
from tfx.dsl.components.base import base_executor, executor_spec

from shardwright.components.runtime.artifacts import flushed_outputs


class _Flushing(base_executor.BaseExecutor):
    @flushed_outputs
    def Do(self, input_dict: Any, output_dict: Any, exec_properties: Any) -> None:
        """Calls the executor that comes next among the base classes."""
        super().Do(input_dict, output_dict, exec_properties)


class SchemaGenExecutor(_Flushing, schema_gen.Executor):
    """That of SchemaGen."""


class ImportSchemaGenExecutor(_Flushing, import_schema_gen.Executor):
    """That of ImportSchemaGen."""


class ExampleValidatorExecutor(_Flushing, example_validator.Executor):
    """That of ExampleValidator."""


_OURS = {
    schema_gen.Executor: SchemaGenExecutor,
    import_schema_gen.Executor: ImportSchemaGenExecutor,
    example_validator.Executor: ExampleValidatorExecutor,
}


def flush_stock_outputs(nodes: Iterable[Any]) -> None:
    """Gives the stock components among the nodes of a pipeline an executor that flushes."""
    for node in nodes:
        ours = _OURS.get(node.executor_spec.executor_class)
        if ours is not None:
            node.executor_spec = executor_spec.ExecutorClassSpec(ours)
