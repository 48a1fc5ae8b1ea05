"""Importing much at once, TFX above all, without looking through it for garbage again and again."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing_much() -> Iterator[None]:
    """What is imported in the block is left out of all garbage collection, while it comes in and from then on.

    TFX makes a million objects, none of which is garbage: to go through them over and over is a third of its import's
    processor time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()
