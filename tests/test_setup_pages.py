"""The pages: links that lead somewhere, and pictures that are drawn from the code."""

import re
import sys
from pathlib import Path

import pytest
from markdown_pages import leads_nowhere, without_code

from shardwright.version import __version__

ROOT = Path(__file__).parents[1]
# What has one name on all pages -> its names.
NAMES = {
    r"[\w-]+@my-project\.iam": {"trainer@my-project.iam"},
    r"/shardwright:[\w.-]*\w": {f"/shardwright:{__version__}{kind}" for kind in ("", "-gpu", "-tpu")},
    r'run_fn="[^"]*"': {'run_fn="mine:run_fn"'},
    r"roles/storage\.\w+": {"roles/storage.objectUser", "roles/storage.objectViewer"},
}
# Where nothing ran yet, in one sentence, which is on the page of limits and may be repeated.
NEVER = "Nothing has run on a real TPU, on Vertex AI, on Dataflow or on a whole Kubeflow."
_PLACES = r"TPUs?|Vertex AI|Kubeflow|Dataflow|GKE|cloud|cluster|service itself"
_NOT_RUN = r"(?:not|never|nothing|none|no \w+) (?:has |have |been )*(?:run|ran|tried|emulated)|only (?:been )?emulated"


def pages() -> list[Path]:
    """All pages that a reader of the repository or of the site sees."""
    top = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
    return [*top, *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [*pages(), *(ROOT / "benchmarks").glob("*.md")], ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = without_code(page.read_text(encoding="utf-8"))
    links = re.findall(r"\]\((?!https?:|mailto:)([^)#\s]*)#?([^)\s]*)\)", text)
    links += [(target, "") for target in re.findall(r'\bsrc(?:set)?="([^"]+)"', text)]
    assert not [f"{target}#{anchor}" for target, anchor in links if leads_nowhere(page, target, anchor)]


@pytest.mark.parametrize("pattern", NAMES)
def test_one_thing_has_one_name_on_all_pages(pattern: str) -> None:
    found = [(name_of(page), name) for page in pages() for name in re.findall(pattern, page.read_text("utf-8"))]
    found = [one for one in found if one[0] != "CHANGELOG.md"]
    assert found
    assert [one for one in found if one[1] not in NAMES[pattern]] == []


def test_where_nothing_ran_is_said_once() -> None:
    limits = ROOT / "docs/trust/limits.md"
    assert NEVER in limits.read_text("utf-8")
    said = []
    for page in {*pages()} - {limits, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"}:
        text = " ".join(without_code(page.read_text("utf-8")).split()).replace(NEVER, "")
        for sentence in re.split(r"(?<=[.:|]) ", text):
            if re.search(rf"\b(?:{_PLACES})\b", sentence) and re.search(rf"(?i)\b(?:{_NOT_RUN})\b", sentence):
                said.append(f"{name_of(page)}: {sentence}")
    assert said == []


def test_the_code_names_pages_that_exist() -> None:
    named = []
    for folder in ("shardwright", "components", "pipelines", "benchmarks", "tools", "tests"):
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in (".py", ".sh", ".txt", ".md", "") and file.is_file() and "__pycache__" not in file.parts:
                text = file.read_text(encoding="utf-8", errors="replace")
                named += [(file, *found) for found in re.findall(r"(?<![\w./-])docs/([\w/-]+\.md)(?:#([\w-]+))?", text)]
                shown = re.findall(r"`shardwright docs (\w[\w/-]+)(?: ([\w-]+))?`", text)
                named += [(file, f"{page}.md", anchor) for page, anchor in shown]
    assert len(named) > 20
    wrong = [
        f"{name_of(file)}: docs/{page}#{anchor}"
        for file, page, anchor in named
        if leads_nowhere(ROOT / "docs" / page, "", anchor)
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<tbody><tr><td></td>\n<td></td></tr></tbody>", "a table without rows is shown as text"),
        ("<p>| a task that fails | runs again |</p>", "a row of a table is shown as text"),
        ("<p>see [Kubeflow](kubeflow.md)</p>", "a link is shown as text"),
        ("<li>`--raw` leaves names</li>", "code or bold text is shown as text"),
        ("<pre><code>`--raw` leaves names as they are.\n</code></pre>", "text is shown as code"),
        ("<table><tbody><tr><td><code>a | `b`</code></td></tr></tbody></table><p>a</p>", ""),
    ],
)
def test_the_site_is_refused_where_markdown_failed(html: str, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import site_hooks

    assert site_hooks.unread_markup(html) == ([found] if found else [])


def test_drawings_are_those_of_the_code_and_every_picture_is_shown() -> None:
    # A program, not a package of ours: its folder is on the path only while it is imported.
    sys.path.insert(0, str(ROOT / "tools"))
    import pictures

    sys.path.remove(str(ROOT / "tools"))
    made = pictures.drawings()
    for name, drawing in made.items():
        file = pictures.FOLDER / f"{name}.svg"
        assert file.read_text(encoding="utf-8") == drawing, (
            f"{file.name}: draw it again with tools/pictures.py --drawings"
        )
    texts = "".join(page.read_text(encoding="utf-8") for page in pages())
    assert {file.stem for file in pictures.FOLDER.glob("*.svg")} == made.keys()
    for file in pictures.FOLDER.iterdir():
        # On the site, a hook shows the dark version of a picture (tools/site_hooks.py).
        shown = file.name.replace("-dark.png", ".png")
        assert re.search(rf'pictures/{re.escape(shown)}[)"]', texts), f"{file.name} is on no page"
    assert not re.findall(r"!\[\]", texts), "a picture has no description"
