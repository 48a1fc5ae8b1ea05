"""Shardwright's core: photographs and annotations in, sharded, checked, reproducible TFRecord datasets out.

No TFX and no Beam here, and TensorFlow only in `pixels.py` and `loader.py`: whatever is arithmetic can be read and
tested without them. The TFX components (`shardwright_components`) and the pipelines (`shardwright_pipelines`) stand
on this package, never the other way round.
"""

__version__ = "0.1.0"
