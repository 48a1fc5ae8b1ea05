"""Compiled pipelines of authors: the defaults of their own runtime parameters."""

import pytest

from shardwright.components.runtime.documents import correct_document
from shardwright.errors import UsageError


def with_parameter(**parameter):
    root = {"inputDefinitions": {"parameters": {"my_bucket": parameter}}, "dag": {"tasks": {}}}
    return {"pipelineSpec": {"root": root, "components": {}, "deploymentSpec": {"executors": {}}}}


def test_defaults_of_runtime_parameters_are_set_since_tfx_leaves_them_out():
    document = with_parameter(parameterType="STRING")
    correct_document(document, {"my_bucket": "gs://bucket"})
    assert document == with_parameter(parameterType="STRING", defaultValue="gs://bucket")
    with pytest.raises(UsageError, match="no task reads a parameter 'other'. There are: my_bucket"):
        correct_document(document, {"other": 1})
    by_default = with_parameter(type="STRING")
    correct_document(by_default)
    assert by_default == with_parameter(type="STRING")
    with pytest.raises(UsageError, match="use_pipeline_spec_2_1"):
        correct_document(with_parameter(type="STRING"), {"my_bucket": "gs://bucket"})
