"""The types of input artifacts that Kubeflow's driver leaves empty."""

import copy
import json

import pytest
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import standard_artifacts

from shardwright.components.runtime import container

EXAMPLES = {"instanceSchema": "title: tfx.Examples\ntype: object\n"}
SPEC = {"artifacts": {"examples": {"artifactType": EXAMPLES}, "model": {"artifactType": {"schemaTitle": "tfx.Model"}}}}


class Recorder(BaseExecutor):
    """Records the inputs that TFX's entry point hands to an executor."""

    SEEN: list = []

    def Do(self, input_dict, output_dict, exec_properties):
        self.SEEN.append(input_dict)


def invocation(tmp_path, **types):
    artifacts = {
        key: {"artifacts": [{"name": "7", "uri": f"{tmp_path}/{key}", "type": kind, "metadata": {"display_name": key}}]}
        for key, kind in types.items()
    }
    return {"inputs": {"artifacts": artifacts}, "outputs": {"outputFile": str(tmp_path / "output.json")}}


def test_tfx_reads_inputs_whose_types_the_driver_leaves_empty(tmp_path):
    """TFX alone fails: it reads the title from the empty schema."""
    Recorder.SEEN.clear()
    task = invocation(tmp_path, examples={"instanceSchema": ""}, model={"instanceSchema": ""})
    code = container.main(
        [
            *("--artifacts", "local", "--executor_class_path", f"{__name__}.Recorder"),
            *("--json_serialized_invocation_args", json.dumps(task)),
            *("--json_serialized_inputs_spec_args", json.dumps(SPEC)),
        ]
    )
    assert code == 0
    (seen,) = Recorder.SEEN
    assert {key: type(one) for key, (one,) in seen.items()} == {
        "examples": standard_artifacts.Examples,
        "model": standard_artifacts.Model,
    }


@pytest.mark.parametrize(
    ("given", "filled"),
    [
        ({"instanceSchema": ""}, EXAMPLES),
        ({"schemaTitle": ""}, EXAMPLES),
        ({}, EXAMPLES),
        # Vertex AI's own type, and that of an artifact which the specification does not know, stay.
        ({"schemaTitle": "tfx.Examples", "schemaVersion": "0.0.1"}, None),
    ],
)
def test_only_empty_types_are_filled_in(tmp_path, given, filled):
    task = invocation(tmp_path, examples=given, other=given)
    before = copy.deepcopy(task)
    found = container._with_types(task, ["--json_serialized_inputs_spec_args", json.dumps(SPEC)])
    types = {key: one["artifacts"][0]["type"] for key, one in found["inputs"]["artifacts"].items()}
    assert types == {"examples": filled or given, "other": given}
    assert container._with_types(before, []) is before
