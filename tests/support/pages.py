"""The Python on a page of the documentation, run as a reader would: all of it, in one process, in an empty folder."""

import re
import subprocess
import sys


def printed_by(page, folder):
    """Returns what the Python blocks of a page print, run in a folder; fails with their error otherwise."""
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
