"""The pages of `review` and `try` in a real browser: they fit a phone, obey the keyboard, and run no strange script."""

import base64
import json
import re
import threading
from itertools import pairwise
from types import MappingProxyType

import numpy as np
import pytest
from PIL import Image

from shardwright.display.html import PageScript, document
from shardwright.evaluation.thresholds import Thresholds, threshold_masks
from shardwright.pipelines.try_server import TriedModel, TryServer
from shardwright.review.review_page import ReviewItem, ReviewPage

pytestmark = pytest.mark.slow

EVIL = "<img src=x onerror=\"document.title='evil'\"></script><script>document.title='evil'</script>"


class Stored:
    """A red image of one class."""

    size, orientation, format, header, labels = (8, 8), 1, "raw", None, (0,)
    encoded = np.full((8, 8, 3), (200, 30, 30), np.uint8).tobytes()

    def runs(self, label):
        return np.array([[0, 8]]) if label == 0 else np.empty((0, 2), np.int64)


@pytest.fixture(scope="module")
def page():
    made = ReviewPage("Doubtful", "lead", "id", ('=a,"b', EVIL), False, True, "shardwright relabel x")
    items = [
        ReviewItem(f"{EVIL}{number}.jpg", "eval", "reason", Stored(), [1], [0.3, 0.7], None) for number in range(3)
    ]
    return made.render(items)


# What a person does, in a frame of a phone's width. The frame's page keeps its policy: this script is outside of it.
PLAY = """<iframe src="%s" width="%d" height="2000" style="border:0"></iframe><script>
addEventListener("load", () => {
  const inside = frames[0], page = inside.document;
  const press = (key) => (page.activeElement || page.body).dispatchEvent(
    new inside.KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
  const saved = [];
  inside.URL.createObjectURL = (blob) => { saved.push(blob); return "#"; };
  for (const key of ["j", "2", "1"]) press(key);
  const select = page.querySelectorAll("select")[2];
  select.value = "1"; select.dispatchEvent(new inside.Event("change", {bubbles: true}));
  for (const button of page.querySelectorAll("[data-save]")) button.click();
  Promise.all(saved.map((blob) => blob.text())).then((texts) => tell({texts,
    width: inside.innerWidth, overflow: page.documentElement.scrollWidth - inside.innerWidth, title: page.title,
    count: page.getElementById("count").textContent, kept: inside.localStorage.length,
    broken: [...page.images].filter((image) => !image.naturalWidth).length, images: page.images.length,
    dark: inside.matchMedia("(prefers-color-scheme: dark)").matches}));
});</script>"""


def opened(browser, scratch, text, *, dark=False):
    (scratch / "frame.html").write_text(browser.tell + text, encoding="utf-8")
    return browser.open((scratch / "frame.html").as_uri(), scratch, dark=dark)


@pytest.mark.parametrize(("width", "dark"), [(390, True), (1280, False)])
def test_marks_are_set_by_keys_and_saved(browser, page, tmp_path, width, dark):
    (tmp_path / "review.html").write_text(page, encoding="utf-8")
    found = opened(browser, tmp_path, PLAY % ((tmp_path / "review.html").as_uri(), width), dark=dark)
    assert (found["width"], found["dark"], found["broken"], found["title"]) == (width, dark, 0, "Doubtful")
    assert found["overflow"] <= 0
    assert found["images"] == 3
    assert (found["count"], found["kept"]) == ("3 of 3 marked", 1)
    corrections, marks, as_json = found["texts"]
    quoted = '"' + EVIL.replace('"', '""') + '"'
    keys = [f'"{EVIL}{number}.jpg"'.replace(EVIL, EVIL.replace('"', '""')) for number in range(3)]
    first = '"=a,""b"'
    assert corrections.splitlines() == [
        "image,label",
        f"{keys[0]},{quoted}",
        f"{keys[1]},{first}",
        f"{keys[2]},{quoted}",
    ]
    assert marks.splitlines()[0] == "image,mark"
    assert [row["mark"] for row in json.loads(as_json)] == ["prediction", "annotation", EVIL]


def test_a_script_that_is_not_ours_does_not_run(browser, tmp_path):
    """Should a name ever get past the templates, the policy of the page is still there."""
    text = document("n", "k", "l", "", "", script=PageScript("review.js", {"keys": [], "rows": [], "classes": []}))
    assert "script-src 'sha256-" in text
    planted = text.replace("</main>", "<script>document.title='evil'</script></main>")
    (tmp_path / "planted.html").write_text(planted, encoding="utf-8")
    told = 'addEventListener("load", () => tell(frames[0].document.title))'
    place = (tmp_path / "planted.html").as_uri()
    found = opened(browser, tmp_path, f'<iframe src="{place}"></iframe><script>{told}</script>')
    assert found == "n"


# Drops a photograph, and then moves the slider of the first class. In a copy of the page without its policy.
DROP = """<script>addEventListener("load", async () => {
  const blob = await (await fetch("data:image/png;base64,%s")).blob(), dropped = new DataTransfer();
  dropped.items.add(new File([blob], "<b>photo</b>.png"));
  document.dispatchEvent(new DragEvent("drop", {dataTransfer: dropped, bubbles: true, cancelable: true}));
  const wait = setInterval(() => {
    if (!document.querySelector("#results article")) return;
    clearInterval(wait);
    const cells = () => [...document.querySelectorAll("#results tbody tr")].map((row) => row.lastChild.textContent);
    const color = () => [...document.querySelector("canvas").getContext("2d").getImageData(4, 1, 1, 1).data];
    const before = cells(), painted = color(), slider = document.querySelector("#sliders input");
    slider.value = "0.7"; slider.dispatchEvent(new Event("input"));
    const [name, note] = ["h3", ".note"].map((what) => document.querySelector("#results " + what).textContent);
    const bold = document.querySelector("h3 b");
    tell({before, painted, after: cells(), plain: color(), bold, name, note});
  }, 50);
});</script>"""


def dropped(browser, scratch, model, play):
    """What a script tells that is given a photograph as base64, and drops it on the page of the real server."""
    Image.fromarray(np.full((8, 16, 3), 90, np.uint8)).save(scratch / "photo.png")
    photo = base64.b64encode((scratch / "photo.png").read_bytes()).decode("ascii")
    with TryServer(TriedModel(model)) as server:
        page = re.sub(r"<meta http-equiv=[^>]*>", "", server.page.decode("utf-8"))
        server.page = page.replace("</body>", f"{browser.tell}{play % photo}</body>").encode("utf-8")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            return browser.open(server.address, scratch)
        finally:
            server.shutdown()
            thread.join()


def test_a_photograph_is_dropped_and_the_slider_moves_its_masks(browser, tmp_path):
    """The real server, with a model whose answer is known."""

    class Model:
        folder, task, multi, classes = str(tmp_path), "segmentation", False, ("red", EVIL)
        height, width, resize, ingested, texts = 8, 8, "stretch", MappingProxyType({}), ()
        thresholds = Thresholds.fixed(2)

        def answer(self, images, texts=None, *, stored=False):
            scores = np.zeros((1, 8, 8, 2), np.float32)
            scores[0, :4, :, 0] = 0.6
            return {"probabilities": scores}

        def pixels(self, images, *, stored=False):
            return np.full((1, 8, 8, 3), 90, np.uint8)

    found = dropped(browser, tmp_path, Model(), DROP)
    assert (found["before"], found["after"]) == (["50.0 %", "0.0 %"], ["0.0 %", "0.0 %"])
    assert found["plain"] == [90, 90, 90, 255] != found["painted"]
    assert found["name"] == "<b>photo</b>.png"
    assert found["bold"] is None
    assert found["note"].endswith("16 × 8 pixels")


# Moves all sliders to each of the settings, and at the end to where they were.
MOVE = (
    DROP[: DROP.index("    const before")]
    + """
    const sliders = [...document.querySelectorAll("#sliders input")], own = sliders.map((slider) => slider.value);
    const to = (values) => {
      sliders.forEach((slider, k) => { slider.value = values[k]; slider.dispatchEvent(new Event("input")); });
      return cells();
    };
    const loaded = cells(), settings = [%s].map((value) => to(sliders.map(() => value)));
    tell({own, loaded, settings, back: to(own)});
  }, 50);
});</script>"""
)


def test_no_mask_grows_with_the_threshold(browser, tmp_path):
    """The smallest region counts at every setting, so the page shows what the model would answer with that threshold.

    It counted at the model's own threshold alone: a higher one brought regions back.
    """
    height, width = 24, 31  # Of 744 pixels no share ends in a 5 that two languages round in two ways.
    noise = np.random.default_rng(4).random((1, height, width, 3), np.float32)
    noise[0, 4:16, 5:20, 1] = 0.93
    # The float32 of a setting itself, and what float64 and rounding to 8 bits take for it.
    noise[0, ::2, :, 2] = np.resize(np.float32([0.3, 0.505, 0.51, 0.6]), width)
    own = Thresholds((0.51, 0.735, 0.51), (60, 40, 0))
    settings = [0.05, 0.3, 0.49, 0.51, 0.52, 0.6, 0.7, 0.8, 0.9]

    class Model:
        folder, task, multi, classes = str(tmp_path), "segmentation", False, ("a", "b", "c")
        resize, ingested, texts, thresholds = "stretch", MappingProxyType({}), (), own

        def answer(self, images, texts=None, *, stored=False):
            return {"probabilities": noise, "masks": threshold_masks(noise, own)}

        def pixels(self, images, *, stored=False):
            return np.full((1, height, width, 3), 90, np.uint8)

    Model.height, Model.width = height, width
    found = dropped(browser, tmp_path, Model(), MOVE.replace("[%s]", str(settings)))

    def areas(chosen):
        return [float(f"{100 * part:.1f}") for part in threshold_masks(noise, chosen)[0].mean((0, 1))]

    shown = [[float(cell.partition(" ")[0]) for cell in cells] for cells in found["settings"]]
    assert found["loaded"] == found["back"]
    assert [float(cell.partition(" ")[0]) for cell in found["loaded"]] == areas(own)
    for setting, row in zip(settings, shown, strict=True):
        assert row == areas(Thresholds((setting,) * 3, own.min_areas)), setting
    assert all(a >= b for lower, higher in pairwise(shown) for a, b in zip(lower, higher, strict=True))
    # What was left out is said.
    removed = (noise[0, ..., 0] >= np.float32(0.51)).mean() - threshold_masks(noise, own)[0, ..., 0].mean()
    assert found["loaded"][0].endswith(f" %, and {100 * removed:.1f} % in regions below 60 pixels, left out")
    assert "left out" not in found["loaded"][2]
