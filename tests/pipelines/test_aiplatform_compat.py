"""The name of `google-cloud-aiplatform` that is not public, checked with the locked version."""

import json

from compat import checked_with
from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform

from shardwright.pipelines.cloud.aiplatform_compat import reserve_ranges


def test_a_schedule_copies_the_ranges_of_its_job(tmp_path):
    spec = {"pipelineInfo": {"name": "p"}, "root": {"dag": {"tasks": {}}}, "schemaVersion": "2.1.0"}
    (tmp_path / "p.json").write_text(json.dumps(spec))
    job = aiplatform.PipelineJob(
        display_name="p",
        template_path=str(tmp_path / "p.json"),
        pipeline_root="gs://bucket/p",
        project="my-project",
        location="europe-west4",
        credentials=AnonymousCredentials(),
    )
    reserve_ranges(job, ["one", "two"])
    schedule = aiplatform.PipelineJobSchedule(
        pipeline_job=job, display_name="p", credentials=AnonymousCredentials()
    ).to_dict()
    assert schedule["createPipelineJobRequest"]["pipelineJob"]["reservedIpRanges"] == ["one", "two"]


def test_the_versions_that_were_checked():
    checked_with("google-cloud-aiplatform", ">=1.165.1,<1.166")
