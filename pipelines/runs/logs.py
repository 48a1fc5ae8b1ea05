"""Log files of runs, and short messages from errors of TFX and Beam.

`log_to_file` keeps the messages of TFX, Beam and TensorFlow off the terminal. They write through `logging`, through
`warnings`, and from C++ directly to file descriptor 2. So descriptor 2 itself is redirected to the log file, and
`sys.stderr`, which has our own lines and progress bars, keeps the terminal.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shardwright.errors import ShardwrightError
from shardwright.storage.own_names import make_own_folder, open_own_file
from shardwright.text.escaping import EscapingFormatter, escaping

# Beam's addition to the message of a worker's error.
_WHERE = re.compile(r"\s*\[while running '.*'\]\Z", re.DOTALL)


def shardwright_error(error: BaseException) -> ShardwrightError | None:
    """Returns the ShardwrightError that Beam has wrapped in another error; `None` without one."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ShardwrightError):
            seen.args = tuple(_WHERE.sub("", one) if isinstance(one, str) else one for one in seen.args)
            return seen
        seen = seen.__cause__ or seen.__context__
    return None


def last_line(error: BaseException) -> str:
    """Returns the last line of an error's message: Beam's messages are whole tracebacks that end with the error."""
    lines = [line for line in str(error).strip().splitlines() if not line.startswith("[while running")]
    return lines[-1].strip()[:300] if lines else "(no message)"


@contextmanager
def log_to_file(log_file: str | os.PathLike[str], *, verbose: bool = False) -> Iterator[None]:
    """Sends the messages of libraries to `log_file` while the block runs; with `verbose`, to the terminal."""
    if verbose:
        shown = logging.StreamHandler()
        shown.setFormatter(EscapingFormatter(logging.BASIC_FORMAT))
        logging.basicConfig(level=logging.INFO, handlers=[shown])
        yield
        return
    make_own_folder(Path(log_file).parent)
    sys.stderr.flush()
    terminal = os.dup(2)
    log = open_own_file(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 2)
    os.close(log)
    before = sys.stderr
    sys.stderr = escaping(os.fdopen(terminal, "w", encoding="utf-8", errors="replace", buffering=1, closefd=False))
    logging.captureWarnings(True)
    handler = logging.StreamHandler(os.fdopen(os.dup(2), "w", encoding="utf-8", errors="replace", buffering=1))
    handler.setFormatter(EscapingFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    from absl import logging as absl_logging

    logger = absl_logging.get_absl_logger()
    logger.handlers = [handler]
    logger.propagate = False
    absl_logging.use_python_logging(quiet=True)
    absl_logging.set_verbosity(absl_logging.INFO)
    try:
        yield
    finally:
        sys.stderr.flush()
        sys.stderr = before
        os.dup2(terminal, 2)
        os.close(terminal)
        root.handlers, root.level = handlers, level
        logging.captureWarnings(False)


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Drops what libraries print while the block imports or calls them; an unexpected error shows all of it."""
    with tempfile.TemporaryDirectory(prefix="shardwright-libraries-") as folder:
        log_file = Path(folder, "libraries.log")
        try:
            with log_to_file(log_file):
                yield
        except (ShardwrightError, ModuleNotFoundError):
            raise
        except Exception:
            sys.stderr.write(log_file.read_text(encoding="utf-8", errors="replace"))
            raise
