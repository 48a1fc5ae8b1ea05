"""The command `shardwright`. Each command imports its work when it runs, so that `--help` is fast."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn, TypeAlias

from shardwright.errors import ShardwrightError, describe_os_error
from shardwright.escaping import escape, escape_message, escaped_streams
from shardwright.extras import missing_extra
from shardwright.pipelines.commands import (
    bench,
    clean,
    derived,
    diff,
    doctor,
    drift,
    export,
    forget,
    get,
    inspect,
    lineage,
    predict,
    preflight,
    relabel,
    report,
    retry_rejects,
    schema,
    stats,
    submit,
    transform,
    validate,
    verify,
)
from shardwright.pipelines.commands import compile as compile_command
from shardwright.progress import print_note
from shardwright.version import __version__

_EXIT_INTERRUPTED = 130
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        arguments: the command line without the program's name; by default that of this process.

    Returns:
        The exit code: 0 done; 1 the data or the run failed a check; 2 the call or the configuration is wrong.
    """
    _hold_standard_streams()
    with escaped_streams():
        return _run_command(arguments)


def _run_command(arguments: Sequence[str] | None) -> int:
    try:
        try:
            options = _parser().parse_args(arguments)
            command: Callable[[argparse.Namespace], int] = options.command
            return command(options)
        finally:
            # A failure to write is reported here, before Python reports it at exit.
            sys.stdout.flush()
    except ShardwrightError as error:
        print(f"shardwright: {escape_message(str(error))}", file=sys.stderr)
        return error.exit_code
    except ModuleNotFoundError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        print(f"shardwright: {missing}", file=sys.stderr)
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
        print(f"shardwright: {escape_message(describe_os_error(error))}", file=sys.stderr)
        if error.filename is None:
            _drop_output()
        return 1 if error.errno in _NO_ROOM else 2


def _hold_standard_streams() -> None:
    """Opens streams that the caller has closed: otherwise libraries print to a dataset's file of the same number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # It gets the lowest number that is free.
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))


def _drop_output() -> None:
    """Discards the rest of the output: Python would otherwise fail again when it flushes at exit."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Parser(argparse.ArgumentParser):
    """A parser whose errors take one line, also if arguments contain line breaks; subparsers have the same class."""

    def error(self, message: str) -> NoReturn:
        super().error(escape(message))


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _Parser(
        prog="shardwright",
        description="Image folders and segmentation CSVs into sharded, checked, reproducible TFRecord datasets, "
        "and training on them.",
    )
    parser.add_argument("--version", action="version", version=f"shardwright {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_sample(commands)
    _add_run(commands)
    _add_ingest(commands)
    validate.add(commands)
    schema.add(commands)
    transform.add(commands)
    verify.add(commands)
    report.add(commands)
    drift.add(commands)
    derived.add(commands)
    forget.add(commands)
    relabel.add(commands)
    retry_rejects.add(commands)
    stats.add(commands)
    diff.add(commands)
    export.add(commands)
    inspect.add(commands)
    lineage.add(commands)
    clean.add(commands)
    get.add(commands)
    preflight.add(commands)
    bench.add(commands)
    predict.add(commands)
    compile_command.add(commands)
    submit.add(commands)
    doctor.add(commands)
    return parser


def _add_sample(commands: _Commands) -> None:
    sample = commands.add_parser("sample", help="draw a small clouds-like data set with masks")
    sample.add_argument("out", metavar="OUT", help="folder to make")
    sample.add_argument("--images", type=int, default=20, metavar="N", help="how many images (default 20)")
    sample.add_argument("--height", type=int, default=1400, metavar="H", help="in pixels (default 1400)")
    sample.add_argument("--width", type=int, default=2100, metavar="W", help="in pixels (default 2100)")
    sample.add_argument("--seed", type=int, default=0, metavar="S", help="another seed, other images (default 0)")
    sample.set_defaults(command=_sample)


def _add_run(commands: _Commands) -> None:
    run = commands.add_parser("run", help="run the whole pipeline on this machine")
    run.add_argument("config", metavar="CONFIG", help="YAML file")
    run.add_argument("--root", metavar="DIR", help="folder of the run (default: run.root of the configuration)")
    run.add_argument("-v", "--verbose", action="store_true", help="show all messages of TFX, Beam and TensorFlow")
    run.set_defaults(command=_run)


def _add_ingest(commands: _Commands) -> None:
    ingest = commands.add_parser("ingest", help="make a dataset of images and annotations, without a pipeline")
    ingest.add_argument("config", metavar="CONFIG", help="YAML file")
    ingest.add_argument("--out", required=True, metavar="DIR", help="folder to make")
    ingest.add_argument("--workers", type=int, metavar="N", help="processes (default: one a core)")
    ingest.set_defaults(command=_ingest)


def _sample(options: argparse.Namespace) -> int:
    from shardwright.sample import write_sample

    report = write_sample(
        options.out, images=options.images, height=options.height, width=options.width, seed=options.seed
    )
    kinds = ", ".join(f"{name} {count}" for name, count in report.present.items())
    print(
        f"{report.images}: {report.count} images of {report.height}x{report.width}, {report.image_bytes / 1e6:.1f} MB"
    )
    print(f"{report.labels}: images with {kinds}")
    return 0


def _run(options: argparse.Namespace) -> int:
    from shardwright.pipelines.local import run_local

    return run_local(options.config, root=options.root, verbose=options.verbose)


def _ingest(options: argparse.Namespace) -> int:
    from shardwright.config import load_config
    from shardwright.ingest import ingest
    from shardwright.ingest.baseline import resolve_baseline

    manifest = ingest(
        resolve_baseline(load_config(options.config)), options.out, workers=options.workers, log=print_note
    )
    totals = ", ".join(f"{name} {count}" for name, count in sorted(manifest.totals.items()))
    print(f"{options.out}: {len(manifest.shards)} shards; {totals}; fingerprint {manifest.fingerprint}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
