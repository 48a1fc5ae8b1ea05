"""Fixtures for all tests."""

import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import first_cases
import prefork
import pytest
from hypothesis import settings

from shardwright.running.processes import gc_paused

# No wall time decides a test, and every machine tries the same examples. The other stack tries the first of them again
# (`few`, tools/run_tests), and `make soak` many.
for _profile, _examples in {"few": 5, "dev": 25, "thorough": 400}.items():
    settings.register_profile(_profile, deadline=None, derandomize=True, database=None, max_examples=_examples)
settings.load_profile(os.environ.get("SHARDWRIGHT_EXAMPLES", "dev"))

# Collections find next to nothing in tests, and took a fifteenth of the time of those that parse sources.
gc.set_threshold(20_000, 20, 50)

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")


def pytest_configure(config: pytest.Config) -> None:
    """Processes that tests start are forks of one server (`tests/support/prefork.py`), shared by all test processes."""
    if prefork.FOLDER in os.environ:
        prefork.install(Path(os.environ[prefork.FOLDER]))
    else:
        folder = Path(tempfile.mkdtemp(prefix="shardwright-prefork-"))
        prefork.install(folder)
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A test process of pytest-xdist is a fork, too: nobody waits for it who would count its processor time."""
    if hasattr(session.config, "workerinput"):
        prefork.record_own_time()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Processor time of the forks, which `tools/timed` adds to that of the test processes; with `-v` by command."""
    spent = prefork.calls(Path(os.environ.get(prefork.FOLDER, os.devnull)))
    terminalreporter.write_line(
        f"forked processes: {sum(map(sum, spent.values())):.1f} s of processor time in {sum(map(len, spent.values()))}"
    )
    if terminalreporter.verbosity > 0:
        for name, seconds in sorted(spent.items(), key=lambda item: -sum(item[1])):
            terminalreporter.write_line(f"  {sum(seconds):7.1f} s in {len(seconds):3d}: {name}")
    if shown := terminalreporter.config.option.durations:
        # Wall time depends on what else the machine does, and does not contain what others wait for.
        terminalreporter.write_sep("=", f"most processor time, {shown} tests")
        tests = prefork.tests(Path(os.environ.get(prefork.FOLDER, os.devnull)))
        for name, used in sorted(tests.items(), key=lambda item: -item[1])[:shown]:
            terminalreporter.write_line(f"{used:7.1f} s {name}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Records the processor time of each test for `--durations`."""
    before = sum(os.times()[:4])
    yield
    prefork.record_test(item.nodeid, sum(os.times()[:4]) - before)


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collecting the tests imports TFX."""
    with gc_paused():
        yield


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m slow`, modules that do not contain the word are not imported: two of three."""
    if config.option.markexpr == "slow" and collection_path.suffix == ".py":
        return "slow" not in collection_path.read_text(encoding="utf-8") or None
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what takes many minutes or a cluster, if its marker is not named, and cases on the other stack."""
    if "two_stacks" in config.option.markexpr:
        items[:], rest = first_cases.split(items)
        config.hook.pytest_deselected(items=rest)
    unnamed = [marker for marker in ("soak", "cluster") if marker not in config.option.markexpr]
    left_out = [item for item in items if any(map(item.get_closest_marker, unnamed))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not any(map(item.get_closest_marker, unnamed))]


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Flushes nothing: a test's files need not survive a power failure. `power_cuts` sees what would be flushed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data; tests that need it are skipped without it."""
    root = Path(os.environ.get("SHARDWRIGHT_TEST_DATA", Path(__file__).parents[1] / "../shared/data")).resolve()
    if not root.is_dir():
        pytest.skip(f"no real data at SHARDWRIGHT_TEST_DATA ({root})")
    return root


@pytest.fixture(scope="session")
def small_dataset() -> Callable[..., Path]:
    """Writes a dataset of made-up examples, as `ImageExampleGen` would."""
    import build

    return build.dataset


@pytest.fixture(scope="session")
def image_input() -> Callable[..., dict[str, Any]]:
    """Writes images with annotations, as a user has them, and returns the configuration that reads them."""
    import build

    return build.source


@pytest.fixture
def dataset(tmp_path: Path, small_dataset: Callable[..., Path]) -> Path:
    """A small dataset that the test may change."""
    return small_dataset(tmp_path)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's Chromium; `apt-get install chromium`."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium on this machine")
    from browser import Browser

    made = Browser(program)
    yield made
    made.close()
