"""The forks that stand for processes of tests (`tests/support/prefork.py`): they behave as real processes do."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import prefork
import pytest

pytestmark = pytest.mark.skipif(os.environ.get(prefork.SWITCH) == "0", reason="processes are started for real")

# The name of the package makes it a program that is forked; TFX being there without an import shows that it was.
PROGRAM = """# shardwright.components
import os, sys
given = sys.argv[1:], os.getcwd(), os.environ.get("COLOR"), sys.stdin.readline().strip()
print("tfx" in sys.modules, *given, flush=True)
print("an error", file=sys.stderr)
"""


def started(program: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env={**os.environ, **environment})


def test_arguments_streams_folder_environment_and_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    process = started(PROGRAM + "sys.exit(7)", "a", "b c", COLOR="blue")
    out, errors = process.communicate("a line\n")
    assert out == f"True ['a', 'b c'] {tmp_path} blue a line\n"
    assert errors == "an error\n"
    assert process.returncode == 7


def test_an_exception_and_a_message_as_exit_code_end_as_python_ends_them() -> None:
    failed = started("# shardwright.components\nraise ValueError('why')")
    assert failed.communicate()[1].splitlines()[-1] == "ValueError: why"
    assert failed.returncode == 1
    left = started("# shardwright.components\nimport sys; sys.exit('a message')")
    assert left.communicate()[1] == "a message\n"
    assert left.returncode == 1


def test_signals_reach_the_fork_and_its_end_by_one_is_seen() -> None:
    handled = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
    waits = "# shardwright.components\nimport signal, sys\n{}print('ready', flush=True)\nsignal.pause()"
    for handler, ended in ((handled, 5), ("", -signal.SIGTERM)):
        process = started(waits.format(handler))
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        process.communicate()
        assert process.returncode == ended


def test_a_fork_ends_with_the_program_that_asked_for_it() -> None:
    process = started("# shardwright.components\nimport os, signal\nprint(os.getpid(), flush=True)\nsignal.pause()")
    assert process.stdout is not None
    fork = os.pidfd_open(int(process.stdout.readline()))
    process.kill()
    process.communicate()
    # The descriptor of a process can be read once the process has ended.
    poll = select.poll()
    poll.register(fork, select.POLLIN)
    assert poll.poll(60_000)
    os.close(fork)


def test_another_start_of_python_is_real() -> None:
    process = started(PROGRAM, PYTHONHASHSEED="3")
    assert process.communicate("\n")[0].startswith("False []")
    assert process.returncode == 0


def test_a_script_with_our_components_is_forked_with_its_folder_to_import_from(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("color = 'green'")
    lines = (
        "# shardwright.components",
        "import sys, beside",
        "print('tfx' in sys.modules, sys.argv[1:], beside.color)",
    )
    (tmp_path / "script.py").write_text("\n".join(lines))
    command = [sys.executable, "script.py", "a"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "True ['a'] green\n"


def test_an_isolated_program_has_tensorflow_and_nothing_of_ours(tmp_path: Path) -> None:
    shown = "import sys\nif 0: import tensorflow\nprint(*({'tensorflow', 'shardwright', 'tfx'} & set(sys.modules)))"
    command = [sys.executable, "-I", "-c", shown]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    assert subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout == "tensorflow\n"


def test_beam_looks_at_a_method_once_and_finds_the_same() -> None:
    """A fork has `quick_beam`; a changed name in Beam or dill would make it do nothing, or do harm."""
    program = """# shardwright.components
import bz2, inspect, logging, sys
import apache_beam as beam, quick_beam
from apache_beam.internal import pickler
from apache_beam.transforms import core, userstate

class Count(beam.DoFn):
    STATE = userstate.CombiningValueStateSpec("count", sum)

    def process(self, element, count=beam.DoFn.StateParam(STATE), *, other=3):
        yield element

assert core.get_signature is quick_beam.get_signature
calls = []
signature = inspect.signature
inspect.signature = lambda *args, **options: calls.append(args) or signature(*args, **options)
for one in (Count(), Count()):
    assert userstate.get_dofn_specs(one) == ({Count.STATE}, set())
    assert core.get_signature(one.process) == signature(one.process)
assert 0 < len(calls) == len({function for (function,) in calls}), calls
if "dill" in sys.modules:
    logging.Manager._clear_cache = lambda manager: sys.exit("the caches of all loggers were cleared")
levels = []
compress = bz2.compress
bz2.compress = lambda data, level=9: levels.append(level) or compress(data, level)
assert pickler.loads(pickler.dumps(len)) is len
assert levels == [1]
"""
    process = started(program)
    assert process.communicate()[1] == ""
    assert process.returncode == 0


def test_beams_options_and_states_are_those_without_the_caches() -> None:
    """Views share their values, as Beam's do, and no list of one pipeline is seen by the next."""
    program = """# shardwright.components
import apache_beam as beam, quick_beam
from apache_beam.options import pipeline_options as known
from apache_beam.runners.direct import transform_evaluator
from apache_beam.transforms import core, userstate

class Options(known.PipelineOptions):
    @classmethod
    def _add_argparse_args(cls, parser):
        made.append(cls)
        parser.add_argument("--hint", action="append", default=[])

made = []
for given in ([], ["a", "b"], ["a", "b"]):
    options = known.PipelineOptions([f"--hint={hint}" for hint in given])
    first, second = options.view_as(Options), options.view_as(Options)
    assert first.hint == second.hint == given
    assert first.hint is second.hint
    first.hint.append("c")
    first.view_as(known.StandardOptions).runner = "own"
    assert (second.hint, second.view_as(known.StandardOptions).runner) == ([*given, "c"], "own")
assert len(made) == 2, made
assert sorted(dir(first._visible_options)) == sorted([*dir(known.argparse.Namespace()), "hint"])

class Count(beam.DoFn):
    STATE = userstate.CombiningValueStateSpec("count", sum)

    def process(self, element, count=beam.DoFn.StateParam(STATE)):
        yield element

assert userstate.get_dofn_specs is transform_evaluator.get_dofn_specs is quick_beam.get_dofn_specs
wrapped = core.CallableWrapperDoFn
for _ in range(2):
    for one in (Count(), wrapped(Count().process), wrapped(lambda element: [element]), wrapped(set), Count()):
        specs = userstate.get_dofn_specs(one)
        assert specs == quick_beam._get_dofn_specs(one) == ({Count.STATE} if "Count" in repr(one) else set(), set())
        specs[0].clear()
quick_beam._get_dofn_specs = None
assert userstate.get_dofn_specs(Count()) == ({Count.STATE}, set())
assert userstate.get_dofn_specs(wrapped(len)) == (set(), set())
"""
    process = started(program)
    assert process.communicate()[1] == ""
    assert process.returncode == 0


def test_a_function_that_one_fork_converts_for_graphs_is_there_in_the_next() -> None:
    program = """# shardwright.components
import tensorflow as tf
from tensorflow.python.autograph.pyct import transpiler
from shardwright.images import tf_ops

class Counted(transpiler.GenericTranspiler):
    def transform_function(self, function, context):
        print(function.__name__)
        return transform(self, function, context)

transform = transpiler.GenericTranspiler.transform_function
transpiler.GenericTranspiler.transform_function = Counted.transform_function
number = tf.TensorSpec([], tf.int64)
tf.function(tf_ops.plan_geometry).get_concrete_function("letterbox", number, number, number, number)
"""
    (_, errors), second = (started(program).communicate() for _ in range(2))
    assert errors == ""
    # In the first or in an earlier one: all tests share the server.
    assert '"plan_geometry"' in Path(os.environ[prefork.FOLDER], "converted").read_text(encoding="utf-8")
    assert second == ("", "")
