"""One call, two front ends: HTML without Python in the book, ipywidgets in a notebook."""

import base64
import io
import json
import math
import re

import matplotlib.pyplot as plt
import pytest
import torch
from myst_nb import glue as myst_glue
from PIL import Image

from lib import explore as module
from lib.explore import explore, figure, glue

ALT = "横棒の図。x が大きいほど長い。"


def draw(x, y=1):
    fig, ax = plt.subplots(figsize=(3, 2))
    ax.barh([0, 1], [x, y])
    ax.set_xlim(0, 5)
    return fig


@pytest.fixture
def shown(monkeypatch):
    """What display() is given."""
    objects = []
    monkeypatch.setattr(module, "display", lambda x, **keywords: objects.append(x))
    return objects


@pytest.fixture
def book(monkeypatch):
    monkeypatch.setenv("BOOK_STATIC", "1")


@pytest.fixture
def notebook(monkeypatch):
    monkeypatch.delenv("BOOK_STATIC", raising=False)


def read_page(html):
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', html)[1])
    first = re.search(r'src="data:image/webp;base64,([^"]+)"', html)[1]
    return data, [first, *data["frames"]]


def pixels(png):
    return Image.open(io.BytesIO(base64.b64decode(png)))


def test_page_holds_the_frame_of_every_combination_in_order(shown, book):
    explore(draw, alt=ALT, x=[1, 2, 3], y=[1.0, 2.0])
    data, frames = read_page(shown[0]["text/html"])
    assert data["controls"] == [["x", ["1", "2", "3"]], ["y", ["1", "2"]]]
    drawn = [module._draw(draw(x, y), 80, 1.4, 64)[0] for x in (1, 2, 3) for y in (1.0, 2.0)]
    for i, image in zip(data["index"], drawn, strict=True):
        assert pixels(frames[i]).convert("RGB").tobytes() == image.convert("RGB").tobytes()
    assert data["index"][3] == 0, "the first picture is of the middle values"


def test_equal_frames_are_stored_once(shown, book):
    explore(lambda x: draw(x // 2), alt=ALT, x=[0, 1, 2, 3])
    data, frames = read_page(shown[0]["text/html"])
    assert len(frames) == 2 and data["index"] == [1, 1, 0, 0]


def test_frames_are_small_and_of_one_size(shown, book):
    explore(draw, alt=ALT, x=[1, 2, 3, 4])
    _, frames = read_page(shown[0]["text/html"])
    images = [pixels(png) for png in frames]
    assert len({image.size for image in images}) == 1
    assert all(image.format == "WEBP" and len(image.getcolors()) <= 64 for image in images)
    assert max(map(len, frames)) < 12_000


def test_page_has_alternative_text_a_note_without_javascript_and_a_picture_for_print(shown, book):
    explore(draw, alt='a < b と "c"', x=[1, 2])
    html = shown[0]["text/html"]
    assert 'alt="a &lt; b と &quot;c&quot;"' in html and "<noscript>" in html
    assert pixels(shown[0]["image/png"]).format == "PNG"
    assert shown[0]["text/plain"] == 'a < b と "c"'


def test_names_and_values_cannot_close_the_script(shown, book):
    explore(lambda t: draw(1), alt=ALT, t=["</s>", "</script>"])
    data, _ = read_page(shown[0]["text/html"])
    assert data["controls"] == [["t", ["</s>", "</script>"]]]


def test_labels_are_shown_instead_of_the_names_of_the_arguments(shown, monkeypatch):
    for static in (True, False):
        monkeypatch.setenv("BOOK_STATIC", "1") if static else monkeypatch.delenv("BOOK_STATIC")
        explore(draw, alt=ALT, x=[1, 2], y=[1.0, 2.0], labels={"y": "温度"})
    data, _ = read_page(shown[0]["text/html"])
    assert [name for name, _ in data["controls"]] == ["x", "温度"]
    assert [slider.description for slider in shown[1].children[1:]] == ["x", "温度"]


def test_two_runs_give_the_same_page(shown, book):
    for _ in range(2):
        explore(draw, alt=ALT, x=[1, 2, 3])
    assert shown[0] == shown[1]


def test_notebook_sliders_redraw_one_picture(shown, notebook):
    explore(draw, alt=ALT, x=[1, 2, 3], y=[0.5, 1.5])
    (box,) = shown
    picture, x, y = box.children
    assert (x.value, y.value) == (2, 1.5)
    assert [label for label, _ in y.options] == ["0.5", "1.5"]
    before = picture.value
    x.value = 3
    assert picture.value != before and box.children[0] is picture
    image, width = module._draw(draw(3, 1.5), 80, 1.4, 64)
    assert picture.value == module._picture(module._encode(image, "webp"), width, ALT)
    assert f'alt="{ALT}"' in picture.value


def test_no_figure_stays_open(shown, book):
    plt.close("all")
    explore(draw, alt=ALT, x=[1, 2, 3])
    figure(draw(1), ALT)
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"alt": " ", "x": [1]},
        {"alt": ALT},
        {"alt": ALT, "x": []},
        {"alt": ALT, "x": range(8), "y": range(8)},
    ],
)
def test_what_cannot_be_shown_is_refused_before_drawing(arguments):
    with pytest.raises(ValueError, match="1〜60"):
        explore(lambda **values: pytest.fail("drawn"), **arguments)


def test_figure_takes_a_figure_or_axes_and_needs_alternative_text(shown, book):
    figure(draw(2), ALT)
    figure(draw(2).axes[0], ALT)
    assert shown[0] == shown[1] and f'alt="{ALT}"' in shown[0]["text/html"]
    with pytest.raises(ValueError, match="alt"):
        figure(draw(1), "")


def test_figure_in_a_notebook_is_a_plain_picture(shown, notebook):
    figure(draw(2), ALT)
    assert set(shown[0]) == {"image/png", "text/plain"}


@pytest.mark.parametrize("value", [torch.tensor(0.25), 3, 0.1, -math.inf, "0.98 / 0.7"])
def test_glue_records_what_myst_nb_would_in_a_book_only(monkeypatch, value, book):
    ours, theirs = [], []
    monkeypatch.setattr(module, "display", lambda data, **more: ours.append((data, more)))
    monkeypatch.setattr(
        "myst_nb.ext.glue.ipy_display", lambda data, **more: theirs.append((data, more))
    )
    glue("number", value)
    myst_glue("number", getattr(value, "item", lambda: value)(), False)
    assert ours == theirs
    monkeypatch.delenv("BOOK_STATIC")
    glue("number", value)
    assert len(ours) == 1
