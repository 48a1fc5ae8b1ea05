"""The command `shardwright`. The code of a command is imported when it is called, so that `--help` is fast."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress

from shardwright.errors import NO_ROOM, ShardwrightError, describe_os_error
from shardwright.pipelines.commands.documentation import address, page_of_error
from shardwright.pipelines.commands.parsers import build_parser, parse
from shardwright.running.extras import missing_extra
from shardwright.running.progress import quiet_output
from shardwright.text.escaping import escape_message, escaped_streams

__all__ = ["build_parser", "main"]

_EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        arguments: the command line without the program's name; by default that of this process.

    Returns:
        The exit code: 0 done; 1 the data or the run failed a check; 2 the call or the configuration is wrong; 143 a
        signal stopped a training, which can be continued.
    """
    # Streams that the caller has closed are opened: otherwise libraries print to a dataset's file of that number.
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # It gets the lowest number that is free.
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))
    with escaped_streams():
        return _run_command(arguments)


def _run_command(arguments: Sequence[str] | None) -> int:
    options = argparse.Namespace(invoked=None, target=None)
    try:
        try:
            parse(sys.argv[1:] if arguments is None else arguments, options)
            if not getattr(options, "verbose", False):
                # Read when TensorFlow is loaded: it tells of CUDA plugins, as of errors, also where there is no GPU.
                os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
            module, _, function = options.call.partition(":")
            # Notes would be in the middle of what a script reads.
            with warnings.catch_warnings(), quiet_output(options.quiet or getattr(options, "json", False)):
                if not sys.warnoptions:
                    # Google's clients write a screen of their plans on Python 3.10.
                    warnings.simplefilter("ignore", FutureWarning)
                command = getattr(importlib.import_module(f"shardwright.pipelines.commands.{module}"), function)
                return int(command(options))
        finally:
            # A failure to write is reported here, before Python reports it at exit.
            sys.stdout.flush()
    except ShardwrightError as error:
        _print_error(str(error), error, options)
        return error.exit_code
    except ModuleNotFoundError as error:
        missing = missing_extra(error, options.target or options.invoked)
        if missing is None:
            raise
        _print_error(str(missing), missing, options)
        return missing.exit_code
    except KeyboardInterrupt:
        print("shardwright: interrupted; run the same command again to go on.", file=sys.stderr)
        return _EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) has gone.
        _drop_output()
        return 1
    except OSError as error:
        # A path that nothing checked before: too long a name, a file in place of a folder, no permission.
        _print_error(describe_os_error(error), error, options)
        if error.filename is None:
            _drop_output()
        return 1 if error.errno in NO_ROOM else 2


def _print_error(message: str, error: Exception, options: argparse.Namespace) -> None:
    page = address(page_of_error(error, options))
    print(f"shardwright: {escape_message(message)} ({page})", file=sys.stderr)


def _drop_output() -> None:
    """Discards the rest of the output: Python would otherwise fail again when it flushes at exit."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
