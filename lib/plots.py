"""図の約束。色の役割、日本語の文字、ヒートマップ・折れ線・棒の三種類の図。

大きさの記号: T 行（クエリ、出す側）の数、S 列（キー、見られる側）の数
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence

import matplotlib.pyplot as plt
import matplotlib_fontja
import numpy as np
from cycler import cycler
from IPython.display import Markdown
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.patches import Circle
from matplotlib.ticker import MaxNLocator

COLORS = {  # Okabe–Ito の八色と灰色。役割ごとに一色、全章で変えない
    "encoder": "#0072B2",
    "decoder": "#D55E00",
    "query": "#CC79A7",
    "key": "#009E73",
    "value": "#56B4E9",
    "gold": "#E69F00",
    "loss": "#333333",
    "floor": "#767676",
    "muted": "#B4B4B4",
    "ink": "#222222",
}
# 白から青へ、明度 L* が 100 から 30 まで等間隔に下がる九色
WEIGHTS = LinearSegmentedColormap.from_list(
    "weights",
    "#ffffff #d2eaf7 #a9d3ee #84bce4 #62a4d9 #448cca #2b74b9 #175ca4 #0e458c".split(),
)
_LINES = ["encoder", "decoder", "key", "query", "value", "gold"]


def use_style() -> None:
    """日本語の文字と、この本の図の見た目を設定する。章の最初のセルで一度呼ぶ。"""
    matplotlib_fontja.japanize()
    plt.rcParams.update(
        {
            "figure.figsize": (6.4, 3.6),
            "figure.dpi": 110,
            "figure.facecolor": "white",
            "figure.constrained_layout.use": True,
            "font.size": 11,
            "axes.edgecolor": COLORS["floor"],
            "axes.labelcolor": COLORS["ink"],
            "axes.prop_cycle": cycler(color=[COLORS[k] for k in _LINES])
            + cycler(linestyle=["-", "--", "-.", ":", "-", "--"]),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.unicode_minus": False,  # この書体には U+2212 の字形がない
            "grid.color": "#E5E5E5",
            "legend.frameon": False,
            "lines.linewidth": 2.0,
            "xtick.color": COLORS["ink"],
            "ytick.color": COLORS["ink"],
        }
    )
