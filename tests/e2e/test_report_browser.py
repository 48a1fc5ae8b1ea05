"""The report in a real browser: it fits a phone and paper, shows all its pictures, and asks nobody for anything."""

import re

import pytest

from shardwright.report.page import write_report

pytestmark = pytest.mark.slow

# Runs in a copy of the page only: the page itself has no script.
MEASURE = """<script>addEventListener("load", () => {
const shown = (e) => getComputedStyle(e).display !== "none" && e.getBoundingClientRect().height > 0;
const images = [...document.images];
const level = (c) => { const [r, g, b] = c.match(/[0-9.]+/g).map((v) => { v /= 255;
  return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const behind = (e) => { while (e) { const c = getComputedStyle(e).backgroundColor;
  if (!/rgba\\(0, 0, 0, 0\\)|transparent/.test(c)) return c; e = e.parentElement; } return "rgb(255,255,255)"; };
const contrast = (e) => { const a = level(getComputedStyle(e).color), b = level(behind(e));
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); };
const texts = [...document.querySelectorAll("h1,h2,h3,p,a,th,td,li,dt,dd,figcaption,.tag,.badge,b,small,summary")];
const box = document.querySelector("#show-masks");
const before = images.filter((i) => i.className === "m" && shown(i)).length;
box.checked = false;
const after = images.filter((i) => i.className === "m" && shown(i)).length;
document.title = JSON.stringify({
  width: innerWidth, overflow: document.documentElement.scrollWidth - innerWidth,
  folded: [...document.querySelectorAll("details > :not(summary)")].filter((e) => !e.checkVisibility()).length,
  images: images.length, broken: images.filter((i) => !i.naturalWidth).length, masks: before, hidden: after,
  contrast: Math.min(...texts.filter((e) => e.textContent.trim() && e.offsetParent).map(contrast)),
  dark: matchMedia("(prefers-color-scheme: dark)").matches});
});</script>"""


@pytest.fixture(scope="module")
def page(small_dataset, tmp_path_factory):
    root = tmp_path_factory.mktemp("browser")
    dataset = small_dataset(
        root / "in", counts={"train": [6], "eval": [2]}, classes=("Fish", "<b>Sugar</b>" + "x" * 60)
    )
    text = write_report(dataset, root / "report.html", quiet=True).read_text(encoding="utf-8")
    text = re.sub(r"<meta http-equiv=[^>]*>", "", text)
    (root / "measured.html").write_text(text.replace("</body>", f"{MEASURE}</body>"), encoding="utf-8")
    return root / "measured.html"


def opened(browser, page, scratch, width, *, dark=False):
    """The page's own measurements, in a frame of that width: Chromium's window is never narrower than 500 pixels."""
    frame = scratch / "frame.html"
    frame.write_text(
        f'{browser.tell}<iframe src="{page.as_uri()}" width="{width}" height="2000" style="border:0"></iframe><script>'
        'addEventListener("load", () => tell(JSON.parse(frames[0].document.title)))</script>'
    )
    return browser.open(frame.as_uri(), scratch, dark=dark)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_and_shows_everything(browser, page, tmp_path, width, dark):
    found = opened(browser, page, tmp_path, width, dark=dark)
    assert found["width"] == width
    assert found["overflow"] <= 0
    assert found["dark"] == dark
    assert found["broken"] == 0 < found["images"]
    assert found["masks"] > 0 == found["hidden"]
    assert found["contrast"] >= 4.5


def test_it_fits_paper(browser, page, tmp_path):
    """The rules for paper, on the screen: nothing is wider than A4 between its margins, nothing is folded."""
    text = page.read_text(encoding="utf-8")
    assert text.count("@media print") == 1
    paper = tmp_path / "paper.html"
    paper.write_text(text.replace("@media print", "@media all").replace("@page{margin:14mm}", ""), encoding="utf-8")
    found = opened(browser, paper, tmp_path, 690)
    assert found["overflow"] <= 0
    assert found["broken"] == 0 < found["images"]
    assert found["folded"] == 0
    assert found["contrast"] >= 4.5
    assert opened(browser, page, tmp_path, 690)["folded"] > 0
