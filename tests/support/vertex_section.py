"""Shared by the tests of Vertex AI: a section `vertex` that is taken."""

IMAGE = "europe-docker.pkg.dev/my-project/ml/shardwright:1.0"
VERTEX = {
    "project": "my-project",
    "region": "europe-west4",
    "service_account": "trainer@my-project.iam.gserviceaccount.com",
    "pipeline_root": "gs://bucket/runs",
    "image": IMAGE,
    "labels": {"team": "clouds"},
}
