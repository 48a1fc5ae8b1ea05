"""The page about other programs: its Python runs, as far as these programs are installed."""

import importlib
import re
from pathlib import Path

from pages import printed_by

PAGE = Path(__file__).parents[2] / "docs/how-to/other-programs.md"
PRINTED = {
    "shardwright": "",
    "": "12 ['image', 'key', 'labels', 'masks'] (64, 96, 3) (64, 96, 4)\n",
    "tensorflow_datasets": "tfds (64, 96, 3) (1, 2)\n",
    "grain.python": "grain (2, 64, 96, 3)\n",
    "torch.utils.data": "torch (2, 64, 96, 3)\n",
}


def installed(block):
    """The module that a block imports, if it can be imported; `None` if it cannot."""
    found = re.match(r"(?:import|from) (\S+)", block)
    name = found[1] if found else ""
    try:
        return name if not name or importlib.import_module(name) else None
    except ImportError:
        return None


def test_the_python_on_the_page(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    chosen = {name: block for block in blocks if (name := installed(block)) is not None}
    assert {"", "shardwright"} <= set(chosen) <= set(PRINTED)
    page = tmp_path / "page.md"
    page.write_text("".join(f"```python\n{block}```\n" for block in chosen.values()))
    printed = re.sub(
        r"(?m)^tfds .*$", lambda line: re.sub(r"\(\d+, 2\)", "(1, 2)", line[0]), printed_by(page, tmp_path)
    )
    assert sorted(set(printed.splitlines())) == sorted({PRINTED[name].strip() for name in chosen} - {""})
