"""Optional dependencies: which extra of the installation brings a package that is not there."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NoReturn

from shardwright.errors import UsageError

# Extra -> the modules it brings, by the first names of what is imported.
EXTRAS: dict[str, tuple[str, ...]] = {
    "gcs": ("google.api_core", "google.auth", "google.cloud.storage", "google.resumable_media", "requests", "urllib3"),
    "s3": ("boto3", "botocore"),
    "parquet": ("pyarrow",),
    "hub": ("huggingface_hub",),
    "tf": ("absl", "tensorflow"),
    "tfx": (
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
        "tfx",
        "tfx_bsl",
    ),
    "kubeflow": ("kfp", "kubernetes"),
    "vertex": ("google.cloud.aiplatform", "google.cloud.aiplatform_v1"),
}


# Extra -> the module that users know it by. The others come with it.
_MAIN = {
    "gcs": "google.cloud.storage",
    "s3": "boto3",
    "parquet": "pyarrow",
    "hub": "huggingface_hub",
    "tf": "tensorflow",
    "tfx": "tfx",
    "kubeflow": "kfp",
    "vertex": "google.cloud.aiplatform",
}

# Extra -> the extras that it contains.
CONTAINS: dict[str, tuple[str, ...]] = {
    "tfx": ("parquet", "tf"),
    "kubeflow": ("gcs", "parquet", "tf", "tfx"),
    "vertex": ("gcs", "kubeflow", "parquet", "tf", "tfx"),
}

# Command -> the extra that it always needs. `compile` needs that of its target; the commands not named here need none.
COMMANDS: dict[str, str] = {
    "bench": "tf",
    "cancel": "vertex",
    "clean": "tfx",
    "convert": "tf",
    "deliver": "vertex",
    "predict": "tf",
    "preflight": "tf",
    "review": "tf",
    "run": "tfx",
    "schedule": "vertex",
    "schema": "tfx",
    "status": "vertex",
    "submit": "vertex",
    "transform": "tf",
    "try": "tf",
}


class MissingExtra(UsageError, ImportError):
    """A package that an extra brings is not installed."""


def missing_extra(error: ModuleNotFoundError, command: str | None = None) -> MissingExtra | None:
    """Returns an error that names the command to install a missing package; `None` where no extra brings it.

    Args:
        error: what the import raised.
        command: the command that is running, or the target of `compile`: where its own extra contains the package, that
            extra is named. A user who installs less only meets the next missing package.
    """
    name = error.name or ""
    bringing = extras_of(name)
    if not bringing:
        return None
    wanted = command if command in EXTRAS else COMMANDS.get(command or "")
    fits = wanted is not None and {wanted, *CONTAINS.get(wanted, ())} & set(bringing)
    extra = wanted if wanted is not None and fits else bringing[0]
    if not _is_installed(_MAIN[extra]):
        name = _MAIN[extra]
    # `google` itself is missing if none of Google's packages is there.
    missing = next((module for module in EXTRAS[extra] if module.startswith(f"{name}.")), name)
    return MissingExtra(f"{missing} is not installed. Install it: pip install 'shardwright[{extra}]'.")


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):  # A package around it is missing; or a test hides the module.
        return False


def stand_in(name: str, missing: MissingExtra) -> Callable[..., NoReturn]:
    """Returns a function that stands for one whose package is missing, and raises the error when it is called.

    An error while the name is looked up would end `from shardwright import *`, `hasattr` and `help`, too.

    Args:
        name: of the function.
        missing: the error.
    """

    def call(*_values: Any, **_options: Any) -> NoReturn:
        raise MissingExtra(str(missing))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Cannot be called here: {missing}"
    return call


def extras_of(name: str) -> list[str]:
    """Returns the extras that bring a module, in the order of `EXTRAS`."""
    return [extra for extra, modules in EXTRAS.items() if any(_is_part(name, module) for module in modules)]


def _is_part(name: str, module: str) -> bool:
    """Returns whether a missing module is one of an extra's, or a package around it.

    `google.cloud` itself is missing when none of its packages is there.
    """
    return f"{name}.".startswith(f"{module}.") or f"{module}.".startswith(f"{name}.")
