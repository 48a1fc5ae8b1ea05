"""The search of `docs`: finds sections by a word, messages included, and names the command that shows each."""

import shlex

import pytest

from shardwright.pipelines.cli import main
from shardwright.pipelines.commands.documentation import heading_anchor, page_text, search_pages


@pytest.mark.parametrize(
    ("words", "page", "anchor"),
    [
        (["retry-rejects"], "reference/command-line", "retry-rejects"),
        (["exit", "CODES"], "reference/command-line", "exit-codes"),
        (["killed", "memory"], "reference/messages", "out-of-memory"),
    ],
)
def test_a_section_has_all_words_and_can_be_shown(words, page, anchor):
    hits = search_pages(words)
    found = {(hit.page, hit.anchor) for hit in hits}
    assert (page, anchor) in found
    for hit in hits:
        text = page_text(hit.page, hit.anchor).lower()
        assert all(word.lower() in text for word in words), hit
        assert not hit.anchor or heading_anchor(hit.heading) == hit.anchor


def test_the_next_step_shows_the_first_section(capsys):
    assert main(["docs", "retry-rejects"]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    assert last.startswith("Next: shardwright docs ")
    assert main(shlex.split(last)[2:]) == 0
    assert "retry-rejects" in capsys.readouterr().out


def test_a_page_comes_before_a_search_and_a_word_of_no_page_is_an_error(capsys):
    assert main(["docs", "predict"]) == 0
    assert capsys.readouterr().out.startswith("# Predict\n")
    assert main(["docs", "xyzzyplugh"]) == 2
    assert "no page has this word" in capsys.readouterr().err
    assert main(["docs", "how-to/predct"]) == 2
    assert "Did you mean how-to/predict" in capsys.readouterr().err
