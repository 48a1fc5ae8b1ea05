"""A procedural data set to start with: satellite pictures of trade-wind clouds, with masks, drawn from a seed.

`regions` draws where each kind of cloud is (integers only), `fields` holds the fractal noise and the bumps, `textures`
what the four kinds look like, `scene` the picture, and `write` the folder with its images and `train.csv`.
"""

from shardwright.sample.regions import KINDS
from shardwright.sample.write import SampleReport, write_sample

__all__ = ["KINDS", "SampleReport", "write_sample"]
