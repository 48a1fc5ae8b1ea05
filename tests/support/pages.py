"""The Python on a page of the documentation, run as a reader would: all of it, in one process, in an empty folder.

The name of the package in a comment makes it a fork that has TensorFlow already (`prefork`).
"""

import re
import subprocess
import sys


def printed_by(page, folder):
    """Returns what the Python blocks of a page print, run in a folder; fails with their error otherwise."""
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    program = "\n".join(["# shardwright.components", *blocks])
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
