"""The lists of `tools/guarantees` and `tools/mutants` fit page, sources and tests; `make soak` runs them."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# The tools are programs, not a package of ours: their folder is on the path only while they are imported.
sys.path.insert(0, str(ROOT / "tools" / "patches"))

import guarantees  # noqa: E402
import mutants  # noqa: E402
from patched import Job, Outcome, Patch, Tree, WrongList, missing_tests  # noqa: E402

sys.path.remove(str(ROOT / "tools" / "patches"))

HEADING = "## Guarantees"
PAGE = f"""
{HEADING}

| guarantee | test |
|---|---|
| one | `tests/test_one.py`, `make soak` |
| two \\| more | `tests/test_two.py` |

## More

| page | what |
|---|---|
| three | `tests/test_three.py` |
"""


@pytest.fixture
def root(tmp_path):
    (tmp_path / "tests").mkdir()
    for number in ("one", "two"):
        (tmp_path / f"tests/test_{number}.py").write_text(f"def test_{number}():\n    pass\n")
    (tmp_path / "page.md").write_text(PAGE)
    (tmp_path / "code.py").write_text("a < b\na < b\nc < d\n")
    return tmp_path


def broken(guarantee, number="one", old="c < d", test=None):
    test = test or f"tests/test_{number}.py::test_{number}"
    return guarantees.Break(guarantee, "how", Patch("code.py", old, "c <= d"), test)


def listed(*breaks):
    return guarantees.List("page.md", HEADING, breaks)


def test_every_guarantee_of_the_page_is_broken_by_a_patch_that_applies_and_has_a_test_that_exists():
    content = guarantees.read()
    assert len(content.breaks) > 40
    assert guarantees.check(content) == []


def test_every_mutant_applies_and_has_tests_that_exist():
    found = mutants.read()
    assert len(found) > 200
    assert mutants.check(found) == []


def test_a_table_is_read_to_its_end():
    found = guarantees.rows(PAGE, HEADING)
    assert found == {"one": ("tests/test_one.py", "make soak"), "two \\| more": ("tests/test_two.py",)}
    with pytest.raises(WrongList, match="the page has no such heading"):
        guarantees.rows(PAGE, "## Nothing")


def test_a_list_that_fits_has_no_messages(root):
    assert guarantees.check(listed(broken("one"), broken("two \\| more", "two")), root) == []


@pytest.mark.parametrize(
    ("breaks", "message"),
    [
        ([broken("one")], "two .* nothing breaks this guarantee"),
        ([broken("one"), broken("two \\| more", "two"), broken("3")], "3: page.md has no such row"),
        ([broken("one", old="a < b"), broken("two \\| more", "two")], "code.py: found 2 times, expected once"),
        ([broken("one", old="a > b"), broken("two \\| more", "two")], "code.py: found 0 times, expected once"),
        ([broken("one", old="c <= d"), broken("two \\| more", "two")], "found 0 times"),
        ([broken("one", "two"), broken("two \\| more", "two")], "one: page.md does not name tests/test_two.py"),
        ([broken("one", test="tests/test_one.py::test_1"), broken("two \\| more", "two")], "has no test test_1"),
    ],
)
def test_what_does_not_fit_is_named(root, breaks, message):
    (found,) = guarantees.check(listed(*breaks), root)
    assert re.search(message, found), found


def test_a_test_file_that_was_moved_is_named(root):
    (root / "tests/test_two.py").unlink()
    messages = guarantees.check(listed(broken("one"), broken("two \\| more", "two")), root)
    assert messages
    assert all("there is no tests/test_two.py. If the test was moved, correct the list." in one for one in messages)
    assert missing_tests(["tests/test_one.py::test_one[a-b]", "tests/test_one.py -k one"], root) == []


def test_mutants_of_one_name_and_of_no_place_are_named(root):
    one = mutants.Mutant("m", Patch("code.py", "c < d", "c <= d"), ("tests/test_one.py",))
    gone = mutants.Mutant("n", Patch("gone.py", "c < d", "c <= d"), ("tests/test_one.py",))
    twice, no_file = mutants.check([one, one, gone], root)
    assert twice == "code.py: m: the list has this name twice. Rename one of them."
    assert no_file == "n: gone.py: the file does not exist. Correct the path in the list."


def test_a_patch_is_undone_and_byte_code_of_it_is_never_current(root):
    tree = Tree.__new__(Tree)
    tree.root = root
    before = (root / "code.py").stat()
    with tree.with_patch(Patch("code.py", "c < d", "c <= d")):
        assert (root / "code.py").read_text() == "a < b\na < b\nc <= d\n"
        assert int((root / "code.py").stat().st_mtime) != int(before.st_mtime)
    assert (root / "code.py").read_text() == "a < b\na < b\nc < d\n"
    assert (root / "code.py").stat().st_mtime_ns == before.st_mtime_ns


FAILED = "1 failed\nFAILED tests/a.py::test_b[x y] - assert 1 == 2\n"


def test_outcomes_are_told_apart():
    passed, failed, endless, no_collection = (Outcome(code, 3.0, FAILED) for code in (0, 1, None, 2))
    assert [guarantees.verdict(passed, one) for one in (passed, failed, endless, no_collection)] == [
        "passes broken",
        "proved",
        "proved",
        "does not run",
    ]
    assert guarantees.verdict(failed, failed) == "fails unpatched"
    mutant = mutants.Mutant("m", Patch("code.py", "a", "b"), ("tests/a.py",))
    assert [mutants.verdict(mutant, one) for one in (passed, failed, endless, no_collection)] == [
        "survived",
        "killed",
        "killed",
        "broken",
    ]
    assert failed.failed_test == "tests/a.py::test_b[x y]"
    assert endless.failed_test == "no end after 3 s"
    assert Job(("tests/a.py -k 'b or c'", "tests/d.py")).arguments == ["tests/a.py", "-k", "b or c", "tests/d.py"]


def test_soak_runs_both():
    soak = (ROOT / "Makefile").read_text().partition("\nsoak:")[2].partition("\n\n")[0]
    assert "tools/mutants" in soak
    assert "tools/guarantees" in soak
