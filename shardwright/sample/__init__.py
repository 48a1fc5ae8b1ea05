"""A procedural data set to start with: satellite pictures of trade-wind clouds, with masks, drawn from a seed.

`regions` draws the outline of each kind of cloud (integers only). `fields` has the fractal noise and the bumps, and
`textures` the look of the four kinds. `scene` draws the picture, and `write` writes the folder with its images and
`train.csv`.
"""

from shardwright.sample.cloud_outlines import KINDS
from shardwright.sample.sample_files import SampleReport, write_sample

__all__ = ["KINDS", "SampleReport", "write_sample"]
