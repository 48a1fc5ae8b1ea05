"""The built site in a browser: it is used by keyboard, has enough contrast, and fits on a phone."""

import functools
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from devtools import Page

pytestmark = [pytest.mark.slow, pytest.mark.one_stack]
ROOT = Path(__file__).parents[1]
PAGES = ("index", "get-started/first-dataset", "formats/index", "reference/messages", "how-to/training")
PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Texts that are seen, with the contrast of their color and of what is behind them (WCAG 2.2, 1.4.3).
LOW_CONTRAST = """(() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const over = (top, below) => {
    const alpha = top[3] ?? 1;
    return [0, 1, 2].map((at) => top[at] * alpha + below[at] * (1 - alpha));
  };
  const ground = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) layers.push(parse(getComputedStyle(one).backgroundColor));
    return layers.reverse().reduce((below, top) => (top.length > 2 ? over(top, below) : below), [255, 255, 255]);
  };
  const light = (color) => {
    const [r, g, b] = color.map((one) => (one /= 255) <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const wrong = [];
  for (const element of document.querySelectorAll("h1, h2, h3, p, td, th, li, a, code, label, span")) {
    const own = [...element.childNodes].some((node) => node.nodeType == 3 && node.textContent.trim());
    const style = getComputedStyle(element);
    if (!own || !element.checkVisibility({checkOpacity: true, checkVisibilityCSS: true})) continue;
    const below = ground(element);
    const [a, b] = [light(over(parse(style.color), below)), light(below)].sort((x, y) => y - x);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    const ratio = (a + 0.05) / (b + 0.05), text = element.textContent.trim().slice(0, 40);
    const shown = `${element.tagName}.${element.className} ${ratio.toFixed(2)} ${text}`;
    if (ratio < (large ? 3 : 4.5)) wrong.push(shown);
  }
  return [...new Set(wrong)];
})()"""
# The element that has the focus: its text, whether it is in the window, and whether one sees that it has the focus.
FOCUSED = """(() => {
  // The theme shows the label of a switch in its place.
  const active = document.activeElement;
  const element = active.matches(".md-option") ? active.nextElementSibling : active;
  const box = element.getBoundingClientRect(), style = getComputedStyle(element);
  const seen = box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0;
  const marked = style.outlineStyle != "none" && parseFloat(style.outlineWidth) > 0;
  const name = (element.textContent || element.title || element.placeholder || element.href || "").trim().slice(0, 40);
  return {tag: element.tagName, name, seen, marked, place: [...document.querySelectorAll("*")].indexOf(active)};
})()"""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of the site, built from this checkout."""
    subprocess.run([ROOT / "tools/site"], check=True, timeout=300)

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=ROOT / "build/site"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def page(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Page]:
    if PROGRAM is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    opened = Page(PROGRAM, tmp_path / "profile", **getattr(request, "param", {}))
    yield opened
    opened.close()


def test_the_first_key_leads_past_the_navigation(site: str, page: Page) -> None:
    page.open(f"{site}/how-to/training.html")
    page.press("Tab")
    assert page.ask(FOCUSED)["name"] == "Skip to content"
    page.wait("document.activeElement.getBoundingClientRect().top >= 0")
    page.press("Enter")
    page.wait("location.hash == '#train-a-model'")
    page.press("Tab")
    focused = page.ask(FOCUSED)
    assert page.ask("document.activeElement.closest('article') !== null"), focused


def test_the_focus_is_seen_and_never_trapped(site: str, page: Page) -> None:
    page.open(f"{site}/get-started/first-dataset.html")
    visited = []
    for _ in range(200):
        page.press("Tab")
        focused = page.ask(FOCUSED)
        if focused["tag"] == "BODY" or (visited and focused["place"] == visited[0]["place"]):
            break
        assert focused["place"] not in [one["place"] for one in visited], f"trapped at {focused}"
        visited.append(focused)
    else:
        pytest.fail("two hundred keys do not lead through the page")
    assert len(visited) > 20
    assert [one for one in visited if not one["marked"]] == []
    # The list of results, which is empty before a search, can be scrolled by keys.
    assert [one for one in visited if not one["seen"] and one["name"] != "Initializing search"] == []


def test_a_search_by_keyboard_opens_the_page(site: str, page: Page) -> None:
    page.open(f"{site}/index.html")
    page.press("/")
    page.wait("document.activeElement.matches('[data-md-component=search-query]')")
    page.press(*"the data gate is shut")
    page.wait("document.querySelector('.md-search-result__link')?.href.includes('reference/messages')")
    page.press("Enter")
    page.wait("location.pathname.endsWith('reference/messages.html')")


@pytest.mark.parametrize("page", [{}, {"dark": True}], ids=["light", "dark"], indirect=True)
def test_texts_have_contrast(site: str, page: Page) -> None:
    for name in PAGES:
        page.open(f"{site}/{name}.html")
        assert page.ask(LOW_CONTRAST) == [], name


@pytest.mark.parametrize("page", [{"width": 390, "height": 844}], ids=["phone"], indirect=True)
def test_pages_fit_on_a_phone(site: str, page: Page) -> None:
    for name in PAGES:
        page.open(f"{site}/{name}.html")
        assert page.ask("document.documentElement.scrollWidth") <= 390, name
        assert page.ask("document.querySelector('article h1').getBoundingClientRect().right") <= 390, name
