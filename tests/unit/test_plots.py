"""Figures: rows are queries, colours are fixed, every glyph exists."""

import io
import warnings
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgb

from lib import plots

PLANTED = torch.tensor([[0.1, 0.7, 0.2], [0.8, 0.1, 0.1]])
ROWS, COLS = ["cats", "run"], ["走る", "猫", "が"]


@pytest.fixture(autouse=True)
def style():
    with plt.rc_context():
        plots.use_style()
        yield
        plt.close("all")


def luminance(color) -> float:
    channels = np.array(to_rgb(color))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def labels(axis) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


def render(ax) -> int:
    """Draws with missing glyphs as errors; the size of the picture."""
    picture = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.figure.savefig(picture, format="png")
    return len(picture.getvalue())


def test_heatmap_puts_the_planted_alignment_in_the_right_cells():
    ax = plots.heatmap(PLANTED, ROWS, COLS)
    shown = ax.images[0].get_array()
    brightest = {(r, int(shown[r].argmax())) for r in range(2)}
    pairs = {(labels(ax.yaxis)[r], labels(ax.xaxis)[c]) for r, c in brightest}
    assert pairs == {("cats", "猫"), ("run", "走る")}
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the first query is not at the top"


def test_heatmap_has_one_upright_tick_per_token_and_axis_titles():
    ax = plots.heatmap(PLANTED, ROWS, COLS, row_title="出力", col_title="入力")
    assert render(ax)
    assert labels(ax.yaxis) == ROWS and labels(ax.xaxis) == COLS
    assert {label.get_rotation() for label in ax.get_xticklabels()} == {0.0}
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("出力", "入力")


def test_heatmap_colours_do_not_depend_on_the_values():
    ax = plots.heatmap(PLANTED * 0.1, ROWS, COLS)
    assert ax.images[0].get_clim() == (0, 1)


def test_heatmap_writes_every_value_readably():
    weights = np.linspace(0, 1, 20).reshape(4, 5)
    ax = plots.heatmap(weights, list("abcd"), list("いろはにほ"))
    assert [float(t.get_text()) for t in ax.texts] == pytest.approx(weights.ravel(), abs=0.0051)
    for text, weight in zip(ax.texts, weights.ravel(), strict=True):
        assert contrast(text.get_color(), plots.WEIGHTS(weight)) >= 4.4


def test_heatmap_leaves_the_numbers_out_where_they_do_not_fit():
    weights = np.full((30, 40), 1 / 40)
    _, ax = plt.subplots(figsize=(6, 4))
    assert not plots.heatmap(weights, ["a"] * 30, ["い"] * 40, ax=ax).texts
    assert not plots.heatmap(PLANTED, ROWS, COLS, numbers=False).texts


def test_heatmap_rings_sit_on_their_cells_and_do_not_move_the_axes():
    gold = SimpleNamespace(sure={(0, 1)}, possible={(0, 1), (1, 2)})
    plain = plots.heatmap(PLANTED, ROWS, COLS)
    ax = plots.heatmap(PLANTED, ROWS, COLS, gold=gold)
    rings = {tuple(r.get_offsets()[0]): r.get_linestyle()[0][1] for r in ax.collections}
    assert set(rings) == {(1, 0), (2, 1)}, "an offset is (column, row)"
    assert rings[1, 0] is None and rings[2, 1] is not None, "only what is merely possible is dashed"
    assert (ax.get_xlim(), ax.get_ylim()) == (plain.get_xlim(), plain.get_ylim())
    assert len(plots.heatmap(PLANTED, ROWS, COLS, gold={(1, 0)}).collections) == 1


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (torch.ones(3, 2) / 2, "形"),
        (torch.tensor([[0.5, 0.5, 1.5], [0, 0, 1]]), "1.5"),
        (torch.tensor([[0.5, 0.5, float("nan")], [0, 0, 1]]), "nan"),
    ],
)
def test_heatmap_refuses_what_are_not_weights_of_these_tokens(weights, words):
    with pytest.raises(ValueError, match=words):
        plots.heatmap(weights, ROWS, COLS)


def test_weights_darken_evenly_from_white():
    y = np.array([luminance(plots.WEIGHTS(w)) for w in np.linspace(0, 1, 29)])
    lightness = 116 * np.cbrt(y) - 16
    assert lightness[0] == pytest.approx(100, abs=0.1)
    assert np.diff(lightness) == pytest.approx((lightness[-1] - 100) / 28, abs=0.6)


def test_line_colours_stand_out_from_the_card():
    for role in ("encoder", "decoder", "key", "loss", "floor"):
        assert contrast(plots.COLORS[role], "white") >= 3, role


def test_curves_keep_the_colour_of_a_role_and_name_every_line():
    lines = {"学習": [3.0, 2.0, 1.0], "床": torch.full((3,), 0.5)}
    ax = plots.curves([1, 2, 3], lines, xlabel="歩", ylabel="損失", roles={"床": "floor"})
    assert ax.lines[1].get_color() == plots.COLORS["floor"]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["学習", "床"]
    assert len({line.get_linestyle() for line in ax.lines}) == 2, "told apart without colour"
    assert list(ax.lines[1].get_ydata()) == [0.5] * 3


def test_curves_need_axis_titles_and_pass_settings_on():
    with pytest.raises(ValueError, match="ylabel"):
        plots.curves([1, 2], {"a": [1, 2]}, xlabel="歩")
    ax = plots.curves([1, 2], {"a": [1, 2]}, xlabel="歩", ylabel="損失", yscale="log")
    assert ax.get_yscale() == "log" and ax.get_legend() is None


def test_bars_run_from_top_to_bottom_with_their_values():
    ax = plots.bars(["bigram", "床"], torch.tensor([12.0, 5.5]), highlight="床", xlabel="PPL")
    tops = [bar.get_y() for bar in ax.patches]
    assert labels(ax.yaxis) == ["bigram", "床"] and tops == sorted(tops)
    assert ax.yaxis_inverted()
    assert [t.get_text() for t in ax.texts] == ["12", "5.5"]
    muted, marked = (to_rgb(plots.COLORS[role]) for role in ("muted", "encoder"))
    assert [bar.get_facecolor()[:3] for bar in ax.patches] == [muted, marked]


def test_figures_with_signs_and_japanese_have_every_glyph():
    names = ["−1 ≤ α", "√d", "∞", "⟨s⟩", "注意の重み"]
    assert render(plots.bars(names, [-1, 2, 3, 4, 5], xlabel="値（ナット）"))
    assert render(plots.curves([-1, 1], {"α → β": [-2, 2]}, xlabel="k", ylabel="‖W‖"))


@settings(deadline=None, max_examples=15)
@given(st.integers(1, 7), st.integers(1, 11))
def test_heatmap_takes_any_size(n_rows, n_cols):
    weights = torch.softmax(torch.zeros(n_rows, n_cols), dim=-1)
    ax = plots.heatmap(weights, ["r"] * n_rows, ["列"] * n_cols)
    assert len(ax.get_xticks()) == n_cols and len(ax.get_yticks()) == n_rows
    plt.close(ax.figure)


def test_source_shown_is_the_source_that_runs():
    shown = plots.show_source(plots.bars).data
    assert shown.startswith("```python\ndef bars(") and "ax.bar_label(" in shown
