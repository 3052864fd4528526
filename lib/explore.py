"""動かせる図と、代替テキスト付きの図、本文へ渡す数。

本を組むとき（環境変数 BOOK_STATIC があるとき）は Python なしで動く HTML に、
ノートブックでは ipywidgets（7.7.1 と 8）のスライダーになる。使う側のコードは同じ。
"""

import base64
import io
import itertools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import display
from PIL import Image

FRAMES = 60  # 一つの図に入れる絵の枚数の上限


def _show(image: Image.Image, width: int, alt: str, page: str) -> None:
    """画像と代替テキストを表示する。本を組むときは HTML の page も加える。"""
    data = {"image/png": _encode(image, "png"), "text/plain": alt}
    data |= {"text/html": page} if os.environ.get("BOOK_STATIC") else {}
    display(data, raw=True, metadata={"image/png": {"width": width}})


def _draw(fig: Any, dpi: int, scale: float, colors: int) -> tuple[Image.Image, int]:
    """図（または軸）を閉じて、画像と、画面での幅（ピクセル）にする。

    scale: 画面の 1 ピクセルあたりに描く点の数（一辺）。大きいほど細かく、重い。
    """
    fig.figure.set_dpi(dpi * scale)
    fig.figure.canvas.draw()  # savefig は同じ絵を二度描く
    image = Image.fromarray(np.asarray(fig.figure.canvas.buffer_rgba())).convert("RGB")
    plt.close(fig.figure)
    return image.quantize(colors), round(image.width / scale)


def _encode(image: Image.Image, kind: str) -> str:
    """画像を base64 にする。ページでは webp（可逆）、ノートブックの出力と PDF では png。"""
    data = io.BytesIO()
    image.save(data, kind, lossless=True, quality=50)  # 可逆なら、quality は縮める手間の大きさ
    return base64.b64encode(data.getvalue()).decode()


def _picture(webp: str, width: int, alt: str) -> str:
    return f'<img alt="{escape(alt)}" width="{width}" src="data:image/webp;base64,{webp}">'


def figure(fig: Any, alt: str, *, dpi: int = 90) -> None:
    """図（または軸）を表示する。alt は何が見えるかを言う文で、空なら ValueError。"""
    if not alt.strip():
        raise ValueError("alt には、図に何が見えるかを言う文が要りますが、空です")
    image, width = _draw(fig, dpi, 2.0, 256)
    picture = _picture(_encode(image, "webp"), width, alt)
    _show(image, width, alt, f'<div class="plot">{picture}</div>')


def explore(
    draw: Callable[..., Any], *, alt: str, labels: Mapping = {}, dpi: int = 80, **controls: Sequence
) -> None:
    """スライダーで動かせる図を表示する。draw(名前=値, …) は図（または軸）を作って返す関数。

    alt: 何が見えるかを言う文。controls: 名前=選べる値の列（始めは中央の値）。
    labels: 名前 → 画面に出す名前（書かなければ名前のまま）。
    組み合わせは 60 通りまで（本では、すべてを先に描いておく）。超えれば ValueError。
    """
    combinations = list(itertools.product(*controls.values()))
    if not alt.strip() or not controls or not 0 < len(combinations) <= FRAMES:
        got = f"alt={alt!r}、{len(combinations)} 通り"
        raise ValueError(f"alt と、合わせて 1〜{FRAMES} 通りの値が要りますが、{got}です")

    def frame(values: Sequence) -> tuple[Image.Image, int]:
        """値の組の図と、画面での幅。"""
        return _draw(draw(**dict(zip(controls, values, strict=True))), dpi, 1.4, 64)

    show = _static if os.environ.get("BOOK_STATIC") else _widgets
    show(frame, alt, {labels.get(name, name): values for name, values in controls.items()})


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _static(frame: Callable, alt: str, controls: dict[str, Sequence]) -> None:
    """すべてを先に描いてページに入れる。スライダーを作って動かすのは _static/explore.js。"""
    drawn = [frame(values) for values in itertools.product(*controls.values())]
    pictures = [_encode(image, "webp") for image, _ in drawn]
    sizes = [len(values) for values in controls.values()]
    start = np.ravel_multi_index([size // 2 for size in sizes], sizes)  # どの列も中央
    (image, width), first = drawn[start], pictures[start]
    frames = list(dict.fromkeys([first, *pictures]))
    texts = [[name, [_text(v) for v in values]] for name, values in controls.items()]
    data = {"controls": texts, "index": [frames.index(p) for p in pictures], "frames": frames[1:]}
    script = json.dumps(data).replace("<", r"\u003c")  # frames の 0 番は <img> にある
    page = f"""<div class="explore">{_picture(first, width, alt)}
<noscript>この図を動かすには JavaScript が必要です。</noscript>
<script type="application/json">{script}</script></div>"""
    _show(image, width, alt, page)


def _widgets(frame: Callable, alt: str, controls: dict[str, Sequence]) -> None:
    """ipywidgets のスライダー。一つの場所を描き替えるので、図は積み重ならない。"""
    import ipywidgets as widgets

    picture, sliders = widgets.HTML(), []
    for name, values in controls.items():
        choice = {"options": [(_text(v), v) for v in values], "value": values[len(values) // 2]}
        sliders.append(widgets.SelectionSlider(description=name, **choice))

    def redraw(change: Any = None) -> None:
        """いまのスライダーの値で描き直す。"""
        image, width = frame([s.value for s in sliders])
        picture.value = _picture(_encode(image, "webp"), width, alt)

    for slider in sliders:
        slider.observe(redraw, names="value")
    redraw()
    display(widgets.VBox([picture, *sliders]))


def glue(name: str, value: Any) -> None:
    """本文の中の数として使えるように、値に名前を付ける。ノートブックでは何もしない。"""
    if os.environ.get("BOOK_STATIC"):  # myst_nb.glue と同じ記録（あちらは読み込みに 2 秒かかる）
        kind = "application/papermill.record/"
        data = {f"{kind}text/plain": repr(value.item() if hasattr(value, "item") else value)}
        display(data, raw=True, metadata={"scrapbook": {"name": name, "mime_prefix": kind}})


def recorded(name: str) -> dict:
    """長い実験の記録 experiments/name.json を読む。作り方は、その中の command にある。"""
    path = Path(__file__).resolve().parents[1] / "experiments" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))
