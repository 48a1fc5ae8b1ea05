"""A name of Google's client that is not public. Checked with google-cloud-aiplatform 1.165.1 to 1.165.1.

`tests/pipelines/test_aiplatform_compat.py` fails when a release changes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.cloud import aiplatform


def reserve_ranges(job: aiplatform.PipelineJob, names: Sequence[str]) -> None:
    """Sets the reserved address ranges of a job, which a schedule copies: a schedule has no argument for them."""
    job._gca_resource.reserved_ip_ranges = list(names)
