"""All bombs, at least one for every format: see `bombing`."""

import bombs_in_annotations  # noqa: F401 -- each adds its own
import bombs_in_containers  # noqa: F401
import bombs_in_images  # noqa: F401
from bombing import BOMBS, write

__all__ = ["BOMBS", "write"]
