"""図の約束。色の役割、日本語の文字、ヒートマップ・折れ線・棒の三つの図、lib の原文。

大きさの記号: T 行（クエリ、出す側）の数、S 列（キー、見られる側）の数
"""

import inspect
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import matplotlib_fontja
import numpy as np
from IPython.display import Markdown
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patheffects import withStroke

from lib.checks import require

PALETTE = tomllib.loads(Path(__file__).with_name("colors.toml").read_text("utf-8"))
COLORS = PALETTE["roles"]  # 役割 → 色
WEIGHTS = LinearSegmentedColormap.from_list("weights", PALETTE["weights"]["scale"])


def use_style() -> None:
    """日本語の文字とこの本の図の見た目を設定する。章の最初のセルで一度呼ぶ。"""
    matplotlib_fontja.japanize()
    plt.style.use(Path(__file__).with_name("book.mplstyle"))
    fonts = [*plt.rcParams["font.family"], "DejaVu Sans"]  # ≤ などは後の書体から
    colors = [COLORS[role] for role in ("encoder", "decoder", "key", "query", "value")]
    styles = ["-", "--", "-.", ":", "-"]
    cycle = plt.cycler(color=colors, linestyle=styles)
    plt.rcParams.update({"font.family": fonts, "axes.prop_cycle": cycle})


def _array(values: Any) -> np.ndarray:
    """テンソルでも数の並びでも、float の配列にする。"""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values, dtype=float)


def heatmap(
    weights: Any,
    rows: Sequence[str],
    cols: Sequence[str],
    *,
    ax: Axes | None = None,
    gold: Any = None,
    row_title: str = "出す側（クエリ）",
    col_title: str = "見られる側（キー）",
    numbers: bool = True,
) -> Axes:
    """注意の重み (T, S) のヒートマップ。行がクエリで上から下へ、色は 0 から 1 で固定。

    gold: 正解アラインメント。`sure` と `possible` を持つもの（箱庭コーパスの対など）か、
    (行, 列) の集合。確実な対応は輪、ありうるだけの対応は破線の輪になる。
    値はセルに収まるときだけ書く。
    形が行と列の数に合わないとき、0 から 1 の外の値があるときは ValueError。
    """
    weights = _array(weights)
    shape = (len(rows), len(cols))
    require(weights.shape == shape, f"重みの形は {shape} が必要です", weights.shape)
    if not np.all((weights > -1e-6) & (weights < 1 + 1e-6)):
        raise ValueError(f"重みは 0 から 1 のはずですが、{weights.min()} から {weights.max()} です")
    ax = ax or plt.subplots(figsize=(1.6 + 0.55 * len(cols), 0.9 + 0.42 * len(rows)))[1]
    ax.imshow(weights, cmap=WEIGHTS, vmin=0, vmax=1, aspect="auto")
    ax.set_xticks(range(len(cols)), cols)
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    ax.xaxis.set_label_position("top")
    ax.set(xlabel=col_title, ylabel=row_title)
    _overlay(ax, weights, gold, numbers)
    return ax


def _overlay(ax: Axes, weights: np.ndarray, gold: Any, numbers: bool) -> None:
    """枠と、セルの値と、正解アラインメントの輪を重ねる。"""
    ax.spines[:].set(visible=True, color="#CCCCCC")
    box = ax.get_window_extent()
    cell = np.array([box.height, box.width]) * 72 / ax.figure.dpi / weights.shape  # ポイント
    if numbers and (cell > (11, 20)).all():
        for (row, col), w in np.ndenumerate(weights):
            color = "white" if w > 0.7 else "black"
            ax.text(col, row, f"{w:.2f}", ha="center", va="center", size=8, color=color, zorder=4)
    sure = set(getattr(gold, "sure", gold) or ())
    for link in sorted(sure | set(getattr(gold, "possible", ()))):
        dash = "solid" if link in sure else (0, (2, 1.5))
        size = 0.7 * min(*cell, 34) ** 2  # 面積
        ring = ax.scatter(*link[::-1], size, "none", ec=COLORS["gold"], linestyle=dash, lw=2)
        ring.set_path_effects([withStroke(linewidth=3.4, foreground="black")])


def curves(
    xs: Any, lines: Mapping[str, Any], *, ax: Axes | None = None, roles: Any = None, **axes: Any
) -> Axes:
    """折れ線。lines は凡例の名前 → 値の列。一本だけなら凡例を書かない。

    roles: 名前 → `COLORS` の役割。axes: xlabel と ylabel は必須で、xscale="log" なども渡せる。
    """
    require({"xlabel", "ylabel"} <= axes.keys(), "xlabel と ylabel が必要です", axes)
    ax = ax or plt.subplots()[1]
    for name, ys in lines.items():
        color = COLORS[roles[name]] if roles and name in roles else None
        ax.plot(xs, _array(ys), label=name, color=color)
    ax.set(**axes)
    if len(lines) > 1:
        ax.legend()
    return ax


def bars(
    labels: Sequence[str], values: Any, *, ax: Axes | None = None, highlight: Any = (), **axes: Any
) -> Axes:
    """横棒。上から labels の順に並べ、棒の先に値を書く。

    highlight: 色を付ける棒の名前（一つか、集まり）。なければすべてに付ける。axes: xlabel など。
    """
    marked = [highlight] if isinstance(highlight, str) else highlight or labels
    colors = [COLORS["encoder" if label in marked else "muted"] for label in labels]
    ax = ax or plt.subplots(figsize=(6.4, 0.7 + 0.4 * len(labels)))[1]
    drawn = ax.barh(range(len(labels)), _array(values), height=0.64, color=colors)
    ax.bar_label(drawn, fmt="{:.3g}", padding=4)
    ax.set_yticks(range(len(labels)), labels)
    ax.tick_params(axis="y", length=0)
    ax.invert_yaxis()
    ax.margins(x=0.12)
    ax.set(**axes)
    return ax


def show_source(obj: Any) -> Markdown:
    """関数かクラスの原文。写しではなく、いま動いたコードそのものを表示する。"""
    return Markdown(f"```python\n{inspect.getsource(obj).rstrip()}\n```")
