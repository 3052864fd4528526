"""返ってきた値を正解と比べ、違いを日本語で言う。期待した値そのものは言わない。"""

from typing import Any

import numpy as np

from exercises.grading import wire
from exercises.grading.check import Band, Outcome, Probe
from exercises.grading.wire import Item

TOLERANCE = {"<f4": (1e-4, 1e-5), "<f8": (1e-7, 1e-9)}


def scalar(item: Item | None) -> float | None:
    """数（一つだけの要素を持つ配列も可）なら float、でなければ None。真偽値は数としない。"""
    if item is None:
        return None
    if isinstance(item.data, np.ndarray) and item.data.size == 1 and item.data.dtype.kind in "iuf":
        return float(item.data.reshape(()))
    return float(item.data) if item.kind in ("int", "float") else None


def _close(want: np.ndarray, got: np.ndarray, tolerance: tuple[float, float] | None) -> np.ndarray:
    if want.dtype.kind != "f":
        return np.asarray(want == got)
    rtol, atol = tolerance or TOLERANCE.get(want.dtype.str, (0, 0))
    with np.errstate(all="ignore"):
        near = np.isfinite(want) & (np.abs(got - want) <= atol + rtol * np.abs(want))
        return near | (got == want) | ((got != got) & (want != want))


def _said(item: Item) -> str:
    """返ってきたものを、値を言わずに説明する。"""
    if isinstance(item.data, np.ndarray):
        kind = "torch.Tensor" if item.kind == "Tensor" else "numpy.ndarray"
        return f"{kind}、形 {item.data.shape}、{item.data.dtype}"
    if item.kind in ("tuple", "list"):
        return f"{item.kind}（{len(item.data)} 個）"
    return {"NoneType": "None"}.get(item.kind, item.data if item.kind == "other" else item.kind)


def difference(want: Item, got: Item, tolerance: Any = None, names: tuple = ("返り値",)) -> str:
    """want と got の最初の違いを日本語で言う。同じなら空文字列。"""
    if want.kind in ("tuple", "list"):
        if got.kind not in ("tuple", "list") or len(got.data) != len(want.data):
            return f"返り値は {len(want.data)} 個の組のはずですが、{_said(got)} が返りました"
        if len(names) != len(want.data):
            names = tuple(f"{i + 1} 番目の返り値" for i in range(len(want.data)))
        pairs = zip(want.data, got.data, names, strict=True)
        return next(filter(None, (difference(w, g, tolerance, (n,)) for w, g, n in pairs)), "")
    if want.kind == "float":
        return _scalar_difference(want.data, got, tolerance, names[0])
    if not isinstance(want.data, np.ndarray):
        same = want == got
        return "" if same else f"{names[0]}が違います（返ってきたもの：{_said(got)}）"
    return _array_difference(want, got, tolerance, names[0])


def _scalar_difference(want: float, got: Item, tolerance: Any, name: str) -> str:
    value = scalar(got)
    if value is None:
        return f"{name}は一つの数（float）のはずですが、{_said(got)} が返りました"
    tolerance = tolerance or TOLERANCE["<f8"]
    same = bool(_close(np.float64(want), np.float64(value), tolerance))
    return "" if same else f"{name}の値が違います"


def _array_difference(want: Item, got: Item, tolerance: Any, name: str) -> str:
    if got.kind != "Tensor":
        return f"{name}は torch.Tensor のはずですが、{_said(got)} が返りました"
    a, b = want.data, got.data
    if a.shape != b.shape:
        return f"{name}の形は {a.shape} のはずですが、{b.shape} でした"
    if a.dtype != b.dtype:
        return f"{name}の dtype は {a.dtype} のはずですが、{b.dtype} でした"
    close = _close(a, b, tolerance)
    if close.all():
        return ""
    bad = np.argwhere(~close)
    nans = int(np.isnan(b).sum() - np.isnan(a).sum())
    text = f"{name}の値が、{b.size} 個のうち {len(bad)} 個で違います（最初は添字 {_index(bad[0])}）"
    return text + (f"。NaN が {nans} 個あります" if nans > 0 else "")


def _index(index: np.ndarray) -> str:
    return "(" + ", ".join(map(str, index)) + ("," if len(index) == 1 else "") + ")"


ERRORS = {
    "Missing": "関数 {function} が見つかりません。名前を変えたり、消したりしていませんか",
    "NotImplementedError": "まだ書かれていません（NotImplementedError）",
    "Timeout": "時間切れです。終わらないループか、とても遅い計算があります",
    "Died": "計算の途中でプロセスが終わりました（メモリの使いすぎ、exit など）",
    "Unreadable": "返り値が読めません。Tensor か数を返してください",
}


def failure(probe: Probe, want: Outcome | Band | None, got: Outcome, names: tuple) -> str:
    """一つの呼び出しの不合格の説明。合格なら空文字列。"""
    wanted_error = isinstance(want, Outcome) and want.error
    if got.error:
        return "" if wanted_error == got.error else _error_text(probe, got, wanted_error)
    if wanted_error:
        return f"{wanted_error} を出すはずの入力ですが、{_said(got.value)} が返りました"
    if got.changed:
        return f"渡した引数が書きかわりました（{'、'.join(got.changed)}）"
    if not got.again:
        return "同じ引数で二度呼ぶと、違う値が返りました"
    if isinstance(want, Band):
        return _scalar_difference(want.value, got.value, (0, want.width), names[0])
    return "" if want is None else difference(want.value, got.value, probe.tolerance, names)


def _error_text(probe: Probe, got: Outcome, wanted: str) -> str:
    if got.error in ERRORS:
        return ERRORS[got.error].format(function=probe.function)
    where = f"（答えのセルの {got.line} 行目）" if got.line else ""
    text = f"{got.error} が出ました{where}：{got.message}"
    return text + (f"。ここでは {wanted} を出すはずです" if wanted else "")


def alike(probe: Probe, want: Outcome | Band | None, a: Outcome, b: Outcome) -> bool:
    """二つの答えが、この呼び出しで同じ結果になったか（例外は型だけを比べる）。"""
    if a.error or b.error:
        return a.error == b.error
    if bool(a.changed) != bool(b.changed) or a.again != b.again:
        return False
    if want is None or not a.again:  # 正しい値がないか、呼ぶたびに違うので、値は比べられない
        return True
    if isinstance(want, Band):
        x, y = scalar(a.value), scalar(b.value)
        return None not in (x, y) and bool(abs(x - y) <= want.width)
    return _match(a.value, b.value, probe.tolerance)


def _match(a: Item, b: Item, tolerance: Any) -> bool:
    if isinstance(a.data, tuple) and isinstance(b.data, tuple):
        pairs = zip(a.data, b.data, strict=False)
        return len(a.data) == len(b.data) and all(_match(x, y, tolerance) for x, y in pairs)
    x, y = scalar(a), scalar(b)
    if x is not None and y is not None:
        return bool(_close(np.float64(x), np.float64(y), tolerance))
    if a.kind != b.kind or not isinstance(a.data, np.ndarray):
        return wire.same(a, b)
    if a.data.shape != b.data.shape or a.data.dtype != b.data.dtype:
        return False
    return bool(_close(a.data, b.data, tolerance).all())
