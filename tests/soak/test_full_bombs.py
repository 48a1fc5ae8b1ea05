"""Bombs of megabytes, through every command that reads them: each ends within 20 seconds and a gigabyte."""

import pytest
from bombs import BOMBS
from costs import check_bomb

pytestmark = pytest.mark.soak
MEMORY, SECONDS = 1 << 30, 20


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends_in_a_message(tmp_path, name):
    check_bomb(name, BOMBS[name].full, tmp_path / "b", MEMORY, SECONDS)
