"""What the user's code reads while it is called: a part of the fingerprint, or refused by name."""

import sys
import tempfile

import pytest

from shardwright.components.runtime.call_user_code import call_function
from shardwright.components.runtime.user_code import code_files, forget_modules
from shardwright.errors import UsageError

FILES = {
    "words.txt": "a",
    "more/words.txt": "b",
    "helper.py": "",
    "net/__init__.py": "from .parts import WIDTH\n\ndef build(): return WIDTH\n",
    "net/parts.py": "from pathlib import Path\nWIDTH = [f.read_text() for f in Path(__file__).parent.glob('*.txt')]\n",
    "net/words.txt": "c",
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    root = tmp_path / "project"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    monkeypatch.chdir(root)
    yield root
    for name in ("mine", "helper", "net", "net.parts"):
        sys.modules.pop(name, None)


def call(project, source="", path="mine:build", **options):
    if source:
        (project / "mine.py").write_text(
            f"import os\nfrom pathlib import Path\nHERE = Path(__file__).parent\n{source}\n"
        )
    code = code_files(path, str(project), option="trainer.model")
    forget_modules(code)
    return call_function(path, code, option="trainer.model", **options)


BUILD = "def build(): return {}"
READS = [
    ("text = [f.read_text() for f in HERE.glob('*.txt')]\ndef build(): pass", "words.txt"),
    (BUILD.format("[f.read_text() for f in (HERE / 'more').iterdir()]"), "more/words.txt"),
    (BUILD.format("open('%s/words.txt' % HERE).read()"), "words.txt"),
    (BUILD.format("open('{}/{}.txt'.format(HERE, 'words'), 'rb').read()"), "words.txt"),
    (BUILD.format("os.read(os.open('wor' + 'ds.txt', os.O_RDONLY), 9)"), "words.txt"),
    ("import importlib.util as u\nu.find_spec('hel' + 'per').loader.load_module()\ndef build(): pass", "helper.py"),
]


@pytest.mark.parametrize(("source", "file"), READS)
def test_a_file_that_no_literal_names_is_refused_with_the_line_to_write(project, source, file):
    way = "import helper" if file == "helper.py" else f'Path(__file__).parent / "{file}"'
    with pytest.raises(UsageError, match=rf"^trainer.model: mine:build reads {file}, which is not part of") as refused:
        call(project, source)
    assert way in str(refused.value)
    # What the message says to write works, also on a second import, from the cache.
    for _ in range(2):
        call(project, f"{way}\n{source}")


@pytest.mark.parametrize("place", ["inside", "outside"])
def test_a_file_elsewhere_is_refused_unless_it_is_a_result_or_of_the_system(project, place):
    folder = (project if place == "inside" else project.parent) / "results"
    folder.mkdir()
    (folder / "state.txt").write_text("x")
    source = "def build(folder): return (Path(folder) / 'state.txt').read_text()"
    with pytest.raises(UsageError, match=r"reads .*results/state\.txt"):
        call(project, source, folder=folder)
    assert call(project, source, folder=folder, own=[str(folder)]) == "x"
    told = []
    assert call(project, source, folder=folder, tell=told.append) == "x"
    assert len(told) == 1
    assert "results/state.txt, which is not part of the fingerprint" in told[0]
    assert call(project, BUILD.format("open('/etc/hostname').read() and os.listdir('/proc')"))


def test_everyday_code_is_taken(project, tmp_path):
    """Packages, caches, what the code has written itself, and the files of its own package."""
    (project / ".cache").mkdir()
    (project / ".cache/words.txt").write_text("d")
    assert call(project, "import wsgiref.util, yaml\n" + BUILD.format("open('.cache/words.txt').read()")) == "d"
    written = tempfile.mktemp(dir=tmp_path)
    assert call(project, f"def build(): Path({written!r}).write_text('e'); return Path({written!r}).read_text()") == "e"
    assert call(project, path="net:build") == ["c"]
    # The keywords that the function does not take are left out.
    assert call(project, "def build(width): return width", width=3, height=4) == 3
