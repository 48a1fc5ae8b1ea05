"""Imported by the server that workers are forked from: it imports their module, without what C++ prints meanwhile.

TensorFlow 2.21 writes lines of information before it has read its log level, and each server would. The process that
asked for silence has set `TF_CPP_MIN_LOG_LEVEL`; with `--verbose` nothing is dropped. A worker repeats an import that
fails here, so that its error reaches the caller.
"""

import importlib
import os
from contextlib import suppress

from shardwright.running.processes import PRELOADED, gc_paused

# From here on, TensorFlow prints warnings no more.
_QUIET = "2"

_error_output = os.dup(2)
if os.environ.get("TF_CPP_MIN_LOG_LEVEL", "") >= _QUIET:
    _nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(_nothing, 2)
    os.close(_nothing)
try:
    with suppress(ImportError), gc_paused():
        importlib.import_module(os.environ[PRELOADED])
finally:
    os.dup2(_error_output, 2)
    os.close(_error_output)
