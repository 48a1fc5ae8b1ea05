"""The versions of a dependency that a `compat` module was checked with."""

import platform
from importlib.metadata import version

from packaging.specifiers import SpecifierSet


def checked_with(package: str, versions: str) -> None:
    """Fails unless the installed version of a package is one of those that its `compat` module was checked with."""
    installed = platform.python_version() if package == "python" else version(package)
    assert installed in SpecifierSet(versions), (
        f"{package} {installed} is installed, and its compat module was checked with {versions}. Read the release "
        "notes, run this file's other tests, then widen the range here and in the module's first line."
    )
