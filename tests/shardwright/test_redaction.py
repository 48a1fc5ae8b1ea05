"""Credentials and folders of a machine are removed, and everything else is left as it is."""

import os

import pytest

from shardwright.errors import UsageError
from shardwright.text.redaction import is_secret, published, redact


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://anna:pw@example.org/x", "https://…@example.org/x"),
        ("see s3://KEY@bucket/x, then", "see s3://…@bucket/x, then"),
        ("https://a/b?X-Goog-Signature=abc&x=1 is", "https://a/b?… is"),
        ("https://a/b?x=1&sig=abc", "https://a/b?…"),
        ("gs://bucket/img?.jpg", "gs://bucket/img?.jpg"),
        ("https://a/b?page=2", "https://a/b?page=2"),
        ("projects/p/models/1@blessed", "projects/p/models/1@blessed"),
        ("anna@example.org", "anna@example.org"),
    ],
)
def test_urls_lose_their_credentials(text, shown):
    assert redact(text) == shown
    assert str(UsageError(f"input.images: {text}")) == f"input.images: {shown}"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("/home/anna/project/images/*.jpg", "images/*.jpg"),
        ("/mnt/data/images/*/*.jpg", "images/*/*.jpg"),
        ("/mnt/data/labels.csv", "labels.csv"),
        ("images/*.jpg", "images/*.jpg"),
        ("gs://bucket/a/b/*.jpg", "gs://bucket/a/b/*.jpg"),
        (r"(?P<class>[^/]+)/[^/]+$", r"(?P<class>[^/]+)/[^/]+$"),
        ("3 files of /mnt/data/x.csv are left out", "3 files of …/x.csv are left out"),
        ("3 files of /home/anna/project/x.csv are left out", "3 files of x.csv are left out"),
        (3, 3),
    ],
)
def test_paths_are_relative(value, shown):
    assert published({"a": [value]}, "/home/anna/project") == {"a": [shown]}


def test_the_home_folder_is_not_shown():
    assert published(f"reads {os.path.expanduser('~')}/x y", "/base") == "reads ~/x y"


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("WANDB_API_KEY", "0123456789abcdef", True),
        ("GITHUB_TOKEN", "x-y-z-long", True),
        ("X", "ghp_0123456789abcdef0123456789abcdef0123", True),
        ("X", "eyJhbGciOiJIUzI1.eyJzdWIiOiIx.sig", True),
        ("DATABASE", "postgres://anna:pw@host/db", True),
        ("X", "f3a9c1d07b5e42f68a1c9d3e", True),
        ("TF_CPP_MIN_LOG_LEVEL", "2", False),
        ("TOKENIZERS_PARALLELISM", "false", False),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/var/secrets/key.json", False),
        ("XLA_FLAGS", "--xla_gpu_autotune_level=0 --xla_dump_to=/tmp/x", False),
        ("WANDB_PROJECT", "clouds-2026-segmentation", False),
        ("TF_XLA_FLAGS", "", False),
    ],
)
def test_secrets_are_recognized(name, value, secret):
    assert is_secret(name, value) is secret
