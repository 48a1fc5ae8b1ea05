"""Optional dependencies: which extra of the installation brings a package that is not there."""

from __future__ import annotations

from shardwright.errors import UsageError

# Extra -> the modules it brings, by the first names of what is imported.
EXTRAS: dict[str, tuple[str, ...]] = {
    "gcs": ("google.api_core", "google.auth", "google.cloud.storage", "google.resumable_media", "requests", "urllib3"),
    "s3": ("boto3", "botocore"),
    "tf": ("tensorflow",),
    "tfx": (
        "absl",
        "apache_beam",
        "google.protobuf",
        "h5py",
        "jax",
        "keras",
        "ml_metadata",
        "pyarrow",
        "tensorboard",
        "tensorflow_data_validation",
        "tensorflow_metadata",
        "tensorflow_model_analysis",
        "tensorflow_transform",
        "tfx",
        "tfx_bsl",
    ),
    "kubeflow": ("kfp", "kubernetes"),
    "vertex": ("google.cloud.aiplatform",),
}


class MissingExtra(UsageError, ImportError):
    """A package that an extra brings is not installed."""


def missing_extra(error: ModuleNotFoundError) -> MissingExtra | None:
    """Returns an error that names the command to install a missing package; `None` where no extra brings it."""
    name = error.name or ""
    for extra, modules in EXTRAS.items():
        # `google.cloud` itself is missing when none of its packages is there.
        if any(f"{name}.".startswith(f"{module}.") or f"{module}.".startswith(f"{name}.") for module in modules):
            return MissingExtra(f"{name} is not installed. Install it: pip install 'shardwright[{extra}]'.")
    return None
