"""The user's own code: what is part of the fingerprint, what is refused, and that an edit is always seen."""

import importlib.metadata
import sys
import textwrap

import pytest

from shardwright.components.runtime.user_code import check_code, code_digest, code_files, forget_modules
from shardwright.errors import UsageError

PROJECT = {
    "mine.py": "def build(): pass\n",
    "helper.py": "WIDTH = 1\n",
    "models/__init__.py": "",
    "models/net.py": "from models.parts.blocks import block\n",
    "models/unused.py": "x = 1\n",
    "models/anchors.json": "[1]",
    "models/tables/words.txt": "a b",
    "models/parts/__init__.py": "",
    "models/parts/blocks.py": "def block(): pass\n",
    "loose/inner.py": "SIZE = 2\n",
    "anchors.json": "[2]",
    "mine.json": "[3]",
    "notes.txt": "not code",
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder of a configuration, which no other test has imported from."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    root = tmp_path / "project"
    write(root, PROJECT)
    monkeypatch.chdir(root)
    yield root
    for name in ("mine", "helper"):
        sys.modules.pop(name, None)


def write(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(textwrap.dedent(text))


def code(root, path="mine:build", **options):
    return code_files(path, str(root), option="trainer.model", **options)


# The source of mine.py, and the files whose edit must be seen.
IMPORTS = [
    ("import helper", ["helper.py"]),
    ("import helper as h, json", ["helper.py"]),
    ("from helper import WIDTH", ["helper.py"]),
    ("from helper import *", ["helper.py"]),
    (
        "import models.net",
        ["models/__init__.py", "models/net.py", "models/parts/__init__.py", "models/parts/blocks.py"],
    ),
    ("from models import net", ["models/net.py", "models/parts/blocks.py", "models/anchors.json"]),
    ("from models.net import block", ["models/net.py", "models/tables/words.txt"]),
    ("from models import *", ["models/net.py", "models/unused.py", "models/parts/blocks.py"]),
    ("from loose.inner import SIZE", ["loose/inner.py"]),
    ("import loose.inner", ["loose/inner.py"]),
    ("def build():\n    import helper", ["helper.py"]),
    ("try:\n    import fast_helper as helper\nexcept ImportError:\n    import helper", ["helper.py"]),
    ("if True:\n    from models import net\nelse:\n    import helper", ["helper.py", "models/net.py"]),
    ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import helper", ["helper.py"]),
    ("class A:\n    def b(self):\n        from models.parts import blocks", ["models/parts/blocks.py"]),
    ("import importlib\nh = importlib.import_module('helper')", ["helper.py"]),
    ("from importlib import import_module as get\nh = get(name='models.net')", ["models/net.py"]),
    ("h = __import__('models.net')", ["models/net.py", "models/parts/blocks.py"]),
    ("import pkgutil\nf = pkgutil.resolve_name('models.net:block')", ["models/net.py"]),
    ("import runpy\nrunpy.run_module('helper')", ["helper.py"]),
    ("exec('import helper')", ["helper.py"]),
    ("from importlib import resources\nt = resources.files('models') / 'x'", ["models/anchors.json"]),
    ("from pathlib import Path\na = Path(__file__).with_name('anchors.json')", ["anchors.json"]),
    ("from pathlib import Path\na = Path(__file__).parent / 'models' / 'anchors.json'", ["models/anchors.json"]),
    ("import os\na = os.path.join(here, 'models', 'tables', 'words.txt')", ["models/tables/words.txt"]),
    ("a = open('anchors.json')", ["anchors.json"]),
    ("a = open(f'{here}/models/anchors.json')", ["models/anchors.json"]),
    ("a = open(here + '/anchors.json')", ["anchors.json"]),
    ("from pathlib import Path\na = Path(__file__).with_suffix('.json')", ["mine.json"]),
]


@pytest.mark.parametrize(("source", "files"), IMPORTS)
def test_an_edit_of_what_is_imported_or_named_is_seen(project, source, files):
    (project / "mine.py").write_text(source + "\ndef build(): pass\n")
    before = code(project)
    for name in files:
        text = (project / name).read_text()
        (project / name).write_text(text + "# edited\n")
        assert code(project) != before, name
        with pytest.raises(UsageError, match="is not the code that the pipeline was constructed with"):
            check_code(before, option="trainer.model")
        (project / name).write_text(text)
    assert code(project) == before
    check_code(before, option="trainer.model")
    # Nothing was imported to look at it.
    assert not {"mine", "helper", "models", "loose"} & set(sys.modules)


def test_only_what_is_imported_counts(project):
    (project / "mine.py").write_text("from models.parts.blocks import block\n")
    before = code(project)
    for name, text in {
        "helper.py": "WIDTH = 9\n",
        "models/unused.py": "x = 9\n",
        "models/__pycache__/net.cpython-310.pyc": "x",
        "models/.ipynb_checkpoints/net.txt": "x",
        "models/net.py~": "x",
        "anchors.json": "[9]",
        "notes.txt": "",
        "runs/model.keras": "x",
    }.items():
        write(project, {name: text})
    assert code(project) == before
    assert set(before) == {"mine", "models", "models/*", "models.parts", "models.parts.blocks"}


RELATIVE = {
    "own/__init__.py": "from .net import build\n",
    "own/net.py": "from . import blocks\nfrom .deep.layer import Layer\n",
    "own/blocks.py": "",
    "own/deep/__init__.py": "",
    "own/deep/layer.py": "from ..blocks import x\nfrom ... import no\n",
}


def test_relative_imports_are_followed_and_one_out_of_the_package_is_refused(project):
    write(project, RELATIVE)
    with pytest.raises(UsageError, match=r"deep/layer.py:2: which code `from ... import no` runs"):
        code(project, "own:build")
    write(project, {"own/deep/layer.py": "import importlib\nm = importlib.import_module('..blocks', __package__)\n"})
    assert set(code(project, "own:build")) == {"own", "own.net", "own.blocks", "own.deep", "own.deep.layer"}


def test_the_entries_are_the_same_wherever_the_code_lies(project, tmp_path, monkeypatch):
    write(project, {"mine.py": "import helper, models.net, loose.inner\nopen('anchors.json')\n"})
    first = code(project)
    other = tmp_path / "elsewhere" / "deeper"
    project.rename(tmp_path / "gone")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "gone").rename(other)
    sys.path.remove(str(project))
    monkeypatch.chdir(other)
    assert code(other) == first
    assert str(tmp_path) not in repr(first)


UNKNOWN = [
    "import importlib\nimportlib.import_module(name)",
    "import importlib as i\ni.import_module('models.' + name)",
    "from importlib import import_module\nimport_module(f'models.{name}')",
    "from importlib import import_module\nfound = map(import_module, ['helper'])",
    "import importlib\ngetattr(importlib, 'import_module')('helper')",
    "import importlib\nimportlib.import_module('.net', package=given)",
    "__import__(name)",
    "load = __import__",
    "exec(open('helper.py').read())",
    "eval(text)",
    "exec('import importlib; importlib.import_module(name)')",
    "import sys\nsys.path.append('lib')",
    "import sys\nsys.path.insert(0, 'lib')\nimport helper",
    "import sys\nsys.path += ['lib']",
    "from sys import path\npath.append('lib')",
    "import sys as s\ns.path[:0] = ['lib']",
    "import sys\nsys.modules['helper'] = object()",
    "import sys\nsys.meta_path.insert(0, finder)",
    "from importlib import util\nutil.spec_from_file_location('h', 'helper.py')",
    "import importlib.util\nimportlib.util.spec_from_file_location('h', path)",
    "from importlib.machinery import SourceFileLoader\nSourceFileLoader('h', 'helper.py')",
    "import importlib.machinery\nimportlib.machinery.SourceFileLoader('h', 'helper.py')",
    "import runpy\nrunpy.run_path('helper.py')",
    "from runpy import run_path as go\ngo('helper.py')",
    "import imp\nimp.load_source('h', 'helper.py')",
    "import pkgutil\nfor m in pkgutil.walk_packages(): pass",
    "import site\nsite.addsitedir('lib')",
    "import builtins\nbuiltins.__import__(name)",
    "__path__ = ['lib']",
    "from pkgutil import extend_path\n__path__ = extend_path(__path__, __name__)",
    "def lazily(name):\n    import importlib\n    return importlib.import_module(name)",
]


@pytest.mark.parametrize("source", UNKNOWN)
@pytest.mark.parametrize("depth", ["mine.py", "helper.py"])
def test_what_only_the_running_program_knows_is_refused_with_the_way_out(project, source, depth):
    (project / "mine.py").write_text("import helper\n")
    (project / depth).write_text(source + "\n")
    with pytest.raises(UsageError, match=rf"^trainer.model: .*{depth}:\d+: .*module_file=…") as refused:
        code(project)
    assert "is known only when it runs" in str(refused.value)
    code(project, any_import=True)


@pytest.mark.parametrize(
    "source",
    [
        "import sys\nprint(sys.version, sys.argv, sys.modules[__name__])",
        "def f(train, eval):\n    return eval(train)",
        "class Model:\n    def eval(self): pass\nModel().eval(1)",
        "import re\nre.compile(text)\nmodel.compile(loss)",
        "import importlib.metadata\nimportlib.metadata.version(name)",
        "import importlib.util\nimportlib.util.find_spec(name)",
        "import os\nos.path.join(a, b)",
        "from pathlib import Path\nPath(path)",
    ],
)
def test_everyday_code_is_taken(project, source):
    (project / "mine.py").write_text(source + "\n")
    assert set(code(project)) == {"mine"}


def test_an_import_that_is_not_there_is_refused_unless_the_code_allows_for_it(project):
    (project / "mine.py").write_text("import no_such_package\n")
    with pytest.raises(UsageError, match=r"mine.py:1: imports no_such_package, which is not on this machine"):
        code(project)
    (project / "mine.py").write_text("from models.nets import x\n")
    with pytest.raises(UsageError, match=r"mine.py:1: imports models.nets"):
        code(project)
    for source in (
        "def f():\n    import no_such_package\n",
        "try:\n    import no_such_package\nexcept ImportError: pass\n",
    ):
        (project / "mine.py").write_text(source)
        assert set(code(project)) == {"mine"}
    write(project, {"no_such_package.py": ""})
    assert set(code(project)) == {"mine", "no_such_package"}


def site(project, monkeypatch, *, local):
    """An environment in the folder of the project, with one package."""
    packages = project / ".venv/lib/python3.10/site-packages"
    write(packages, {"their/__init__.py": "import importlib\nimportlib.import_module(x)\n", "bare.py": "exec(x)\n"})
    info = {"METADATA": "Name: their-kit\nVersion: 1.2\n", "RECORD": "their/__init__.py,sha256=abc,9\n"}
    info |= {"direct_url.json": "{}"} if local else {}
    write(packages / "their_kit-1.2.dist-info", info)
    monkeypatch.syspath_prepend(str(packages))
    return packages


def test_installed_packages_count_by_their_version(project, monkeypatch):
    packages = site(project, monkeypatch, local=False)
    (project / "mine.py").write_text("import numpy\nimport their\n")
    first = code(project)
    assert first["==numpy"] == f"numpy {importlib.metadata.version('numpy')}"
    assert first["==their"] == "their-kit 1.2"
    assert set(first) == {"mine", "==numpy", "==their"}
    (packages / "their/__init__.py").write_text("x = 2\n")
    assert code(project) == first


def test_what_no_index_has_counts_by_its_recorded_files(project, monkeypatch):
    packages = site(project, monkeypatch, local=True)
    (project / "mine.py").write_text("import their, bare\n")
    first = code(project)
    assert first["==their"].startswith("their-kit 1.2 ")
    (packages / "bare.py").write_text("x = 1\n")
    assert code(project)["==bare"] != first["==bare"]


def test_a_package_that_the_configuration_is_in_has_only_the_files_it_names(project, monkeypatch):
    """Runs, datasets and images are below it, too."""
    write(project, {"__init__.py": "", "net.py": "a = open('anchors.json')\n", "runs/1/model.bin": "x"})
    monkeypatch.syspath_prepend(str(project.parent))
    found = code(project, "project.net:build")
    assert set(found) == {"project", "project.net", "project.net/anchors.json"}
    write(project, {"runs/1/model.bin": "y"})
    assert code(project, "project.net:build") == found


def test_code_that_is_gone_or_was_never_there_is_refused_at_the_run(project):
    write(project, {"mine.py": "import helper\nopen('anchors.json')\nimport numpy\n"})
    found = code(project)
    # An image may have another version.
    check_code({**found, "==numpy": "numpy 0"}, option="trainer.model")
    for name in ("helper.py", "anchors.json"):
        (project / name).rename(project / "away")
        with pytest.raises(UsageError, match=r"^trainer.model: .* is not on this machine\. .*image with the same code"):
            check_code(found, option="trainer.model")
        (project / "away").rename(project / name)


def test_a_module_without_source_is_refused(project):
    for name, text in {"mine.py": "import blob\n", "blob.pyc": "x"}.items():
        (project / name).write_text(text)
    with pytest.raises(UsageError, match="has no source"):
        code(project)
    (project / "mine.py").write_text("def (:\n")
    with pytest.raises(UsageError, match=r"mine.py: is not Python \(SyntaxError"):
        code(project)


def test_circles_end(project):
    write(project, {"mine.py": "import helper\n", "helper.py": "import mine\n"})
    assert set(code(project)) == {"mine", "helper"}


def test_edited_modules_are_imported_again(project):
    write(project, {"mine.py": "from helper import WIDTH\n"})
    sys.path.insert(0, str(project))
    import mine

    assert mine.WIDTH == 1
    write(project, {"helper.py": "WIDTH = 22\n"})
    forget_modules(code(project))
    import mine

    assert mine.WIDTH == 22


def test_stock_components_get_a_digest(project):
    first = code_digest("models.net.block", "mine:build")
    assert code_digest("models.net.block", "mine:build") == first
    write(project, {"models/parts/blocks.py": "x = 3\n"})
    assert code_digest("models.net.block", "mine:build") != first
