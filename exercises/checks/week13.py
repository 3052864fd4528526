"""第 13 週の検査：入力、正解、法則、誤答の見本とその言葉、書き方の違う正答。

正解は lib を使わない：Attention は式と torch の SDPA（試験で突き合わせる）、ヤコビ行列は自動微分。
"""

import functools
import math

import numpy as np
import torch

from exercises.checks import week13_blocks
from exercises.checks.common import corrected
from exercises.grading import source
from exercises.grading.check import Band, Check, Draw, Part, Probe, Question, Right, Wrong

ATTENTION = "第 12 週「Attention」の章（スコア、重み、文脈ベクトル）"
PERMUTATION = "練習 13-1「書くもの」の equivariance_gap の約束"
SOFTMAX = "練習 13-2「書くもの」の J の定義"
SCALE = "練習 13-2「書くもの」の表と、第 12 週「Attention」の章の √d_k"
WEIGHTS = ("出力", "注意の重み")
GRADIENTS = ("x の勾配", "w_q の勾配", "w_k の勾配", "w_v の勾配")
ZERO = (0.0, 1e-12)
DRAWS = 2_000


# ── 13-1 ──


def _attention(x, w_q, w_k, w_v, mask=None):
    scores = torch.einsum("...td,...sd->...ts", x @ w_q, x @ w_k) * w_q.shape[-1] ** -0.5
    if mask is not None:
        if not mask.any(-1).all():
            raise ValueError
        scores = torch.where(mask, scores, -torch.inf)
    weights = torch.softmax(scores, -1)
    return torch.einsum("...ts,...sv->...tv", weights, x @ w_v), weights


def _gap(x, perm, w_q, w_k, w_v, positions=None, mask=None):
    def f(words):
        return _attention(words if positions is None else words + positions, w_q, w_k, w_v, mask)[0]

    shuffle = torch.eye(len(perm), dtype=x.dtype)[perm]
    return float((f(shuffle @ x) - shuffle @ f(x)).abs().max())


def _weights(draw: Draw, d: int, k: int, v: int, dtype: str = "float64", scale: float = 1.0):
    size = scale / math.sqrt(d)
    return tuple(draw.normal(d, n, dtype=dtype, scale=size) for n in (k, k, v))


def _self(draw: Draw, *lead: int, dtype: str = "float64", scale: float = 1.0, length: int = 0):
    """attention の引数 (x, w_q, w_k, w_v)。四つの大きさはすべて違う素数。"""
    t, d, k, v = draw.sizes(4)
    x = draw.normal(*lead, length or t, d, dtype=dtype)
    return (x, *_weights(draw, d, k, v, dtype, scale))


def _values(draw: Draw):
    yield Probe("attention", _self(draw), label="二次元の x", repeat=True)
    yield Probe("attention", _self(draw, dtype="float32"), label="float32 の x")
    yield Probe("attention", _self(draw, 2), label="先頭に次元が一つある x")
    if not draw.public:
        yield Probe("attention", _self(draw, 3, 2), label="先頭に次元が二つある x")
    yield Probe("attention", _self(draw, length=1), label="長さ 1 の系列")
    yield Probe("attention", _self(draw, scale=300.0), label="スコアの絶対値がとても大きい x")


def _flow(draw: Draw):
    args = _self(draw, 2)
    cotangent = draw.normal(*args[0].shape[:-1], args[3].shape[-1])
    yield Probe("attention", args, label="出力を x と三つの行列で微分する", cotangent=cotangent)


def _causal(n: int) -> np.ndarray:
    return np.tril(np.ones((n, n), dtype=bool))


def _masks(draw: Draw):
    args = _self(draw)
    t = len(args[0])
    yield Probe("attention", args, {"mask": _causal(t)}, label="因果マスク", repeat=True)
    yield Probe("attention", args, {"mask": draw.mask(t, t)}, label="行ごとに違うマスク")
    batch = _self(draw, 2)
    t = batch[0].shape[-2]
    yield Probe("attention", batch, {"mask": draw.mask(2, 1, t)}, label="PAD のマスク（…, 1, T）")
    if not draw.public:
        args = _self(draw, 2, dtype="float32", scale=300.0)
        mask = draw.mask(2, args[0].shape[-2], args[0].shape[-2])
        yield Probe("attention", args, {"mask": mask}, label="大きなスコアと、文ごとに違うマスク")
    mask = draw.mask(t, t)
    mask[draw.integer(0, t)] = False
    yield Probe("attention", batch, {"mask": mask}, label="見てよい位置が一つもない行がある")


def _shuffles(draw: Draw):
    def probe(label, *lead, positions=False, mask=None, dtype="float64", tolerance=None):
        x, *w = _self(draw, *lead, dtype=dtype)
        t, d = x.shape[-2:]
        extra = {"positions": draw.normal(t, d, dtype=dtype)} if positions else {}
        extra |= {"mask": mask(t)} if mask else {}
        args = (x, draw.permutation(t), *w)
        given = corrected(draw, "13-1", "attention")
        return Probe("equivariance_gap", args, extra, label=label, tolerance=tolerance, given=given)

    yield probe("位置もマスクもない（ずれは 0 のはず）", tolerance=ZERO)
    yield probe("位置を加える", positions=True)
    yield probe("因果マスク", mask=_causal)
    yield probe("位置と、行ごとに違うマスク", positions=True, mask=lambda t: draw.mask(t, t))
    if not draw.public:
        yield probe("位置も因果マスクもあり、先頭に次元がある", 3, positions=True, mask=_causal)
        yield probe("float32", positions=True, dtype="float32", tolerance=(1e-3, 1e-5))
        yield probe("位置もマスクもなく、先頭に次元が二つある", 2, 3, tolerance=ZERO)


def _law_probes(draw: Draw):
    x, *w = _self(draw)
    t, d = x.shape
    perm, positions = draw.permutation(t), 2 * draw.normal(t, d)
    for label, seat, extra in (
        ("並べ替えの前と後", 0, {}),
        ("位置を加えて、並べ替えの前と後", positions, {}),
        ("因果マスクで、並べ替えの前と後", 0, {"mask": _causal(t)}),
    ):
        for words in (x, x[perm]):
            yield Probe("attention", (words + seat, *w), extra, label=label, memo=perm)


def _law(probes, outcomes) -> str:
    outputs = [o.value.data[0].data for o in outcomes]
    gaps = [
        float(np.abs(after - before[probe.memo]).max())
        for before, after, probe in zip(outputs[::2], outputs[1::2], probes[::2], strict=True)
    ]
    if not gaps[0] < ZERO[1]:
        return "位置もマスクもないのに、語を並べ替えると、語ごとの出力が変わりました"
    if not gaps[1] > 1e-2:
        return "x に位置を加えてあるのに、語を並べ替えても、語ごとの出力が変わりません"
    return "" if gaps[2] > 1e-2 else "因果マスクを渡したのに、語ごとの出力が変わりません"


SCALED = "q @ k.mT / math.sqrt(q.shape[-1])"
FILLED = "scores = scores.masked_fill(~mask, -math.inf)"
REFUSE = """        if not mask.any(dim=-1).all():
            raise ValueError("見てよい位置が一つもない行があります")
"""
LAST = "return (moved_first - moved_last).abs().max().item()"

PERMUTATION_WRONG = (
    Wrong(
        "no-scale",
        ((SCALED, "q @ k.mT"),),
        hint="スコアを √d_k で割っていません。",
    ),
    Wrong(
        "scale-dk",
        ((SCALED, "q @ k.mT / q.shape[-1]"),),
        hint="スコアを √d_k ではなく d_k で割っています。平方根が抜けていませんか。",
    ),
    Wrong(
        "scale-length",
        ((SCALED, "q @ k.mT / math.sqrt(x.shape[-2])"),),
        hint="スコアを系列の長さの平方根で割っています。割るのは q と k の次元 d_k の平方根です。",
    ),
    Wrong(
        "scale-d",
        ((SCALED, "q @ k.mT / math.sqrt(x.shape[-1])"),),
        hint="スコアを x の次元 D の平方根で割っています。"
        "割るのは、射影したあとの q と k の次元 d_k の平方根です。",
    ),
    Wrong(
        "softmax-queries",
        (("scores.softmax(dim=-1)", "scores.softmax(dim=-2)"),),
        hint="softmax の向きが逆です。クエリごと（行ごと）に、"
        "キーについて足して 1 になるようにします。",
    ),
    Wrong(
        "overflow",
        (("scores.softmax(dim=-1)", "scores.exp() / scores.exp().sum(-1, keepdim=True)"),),
        hint="大きなスコアで exp があふれて NaN になっています。"
        "行ごとに最大値を引いてから exp を取るか、torch の softmax を使います。",
    ),
    Wrong(
        "value-from-key",
        (("x @ w_v", "x @ w_k"),),
        hint="値 v を w_k で作っています。v は x @ w_v です。",
    ),
    Wrong(
        "no-projection",
        (("q, k, v = x @ w_q, x @ w_k, x @ w_v", "q, k, v = x @ w_q, x @ w_k, x"),),
        hint="値を射影していません。重みで平均するのは x ではなく x @ w_v です。",
    ),
    Wrong(
        "query-as-key",
        (("x @ w_q, x @ w_k", "x @ w_q, x @ w_q"),),
        hint="キー k を w_q で作っているので、スコアが対称になっています。k は x @ w_k です。",
    ),
    Wrong(
        "swapped-outputs",
        (
            ("return weights @ v, weights", "return weights, weights @ v"),
            ("w_v, mask)[0]", "w_v, mask)[1]"),
        ),
        hint="返り値の順が逆です。出力、注意の重みの順に返します。",
    ),
    Wrong(
        "output-only",
        (("return weights @ v, weights", "return weights @ v"), ("w_v, mask)[0]", "w_v, mask)")),
        hint="出力だけを返しています。出力と注意の重みの組を返します。",
    ),
    Wrong(
        "transpose-all",
        (("k.mT", "k.transpose(0, 1)"),),
        hint="k の最初の二つの次元を入れかえています。先頭に次元があっても動くように、"
        "最後の二つ（k.mT または k.transpose(-1, -2)）を入れかえます。",
    ),
    Wrong(
        "detach",
        (("weights = scores.softmax(dim=-1)", "weights = scores.softmax(dim=-1).detach()"),),
        hint="注意の重みから勾配が切れています。detach や .data、NumPy への変換を"
        "計算の途中に入れていませんか。",
    ),
    Wrong(
        "in-place",
        (
            (
                "    q, k, v = x @ w_q",
                "    with torch.no_grad():\n"
                "        w_q /= math.sqrt(w_q.shape[-1])\n"
                "    q, k, v = x @ w_q",
            ),
            (SCALED, "q @ k.mT"),
        ),
        hint="引数をその場で書きかえています。/= や += 、名前が _ で終わる関数を"
        "引数に使わないでください。",
    ),
    Wrong(
        "float32",
        (
            (
                "q, k, v = x @ w_q, x @ w_k, x @ w_v",
                "q, k, v = (x.float() @ w.float() for w in (w_q, w_k, w_v))",
            ),
        ),
        hint="float64 の入力を float32 に変えて計算しています。dtype は x のままにします。",
    ),
    Wrong(
        "mask-ignored",
        ((FILLED, "pass"),),
        hint="mask が渡されているのに、重みに反映されていません。",
    ),
    Wrong(
        "mask-inverted",
        ((FILLED, FILLED.replace("~mask", "mask")),),
        hint="mask の意味が逆です。この本では True が「見てよい」です。",
    ),
    Wrong(
        "mask-after",
        (
            (FILLED, "pass"),
            (
                "    weights = scores.softmax(dim=-1)\n",
                "    weights = scores.softmax(dim=-1)\n"
                "    if mask is not None:\n        weights = weights * mask\n",
            ),
        ),
        hint="softmax のあとで重みを 0 にしているので、行の和が 1 になりません。"
        "softmax の前に、スコアを −∞ にします。",
    ),
    Wrong(
        "mask-zero-score",
        ((FILLED, "scores = scores.masked_fill(~mask, 0.0)"),),
        hint="見てはいけない位置のスコアを 0 にしています。スコアが 0 でも exp(0) = 1 なので、"
        "重みは 0 になりません。−∞ にします。",
    ),
    Wrong(
        "mask-soft",
        ((FILLED, "scores = scores - 10.0 * ~mask"),),
        hint="見てはいけない位置のスコアから、小さな数を引いただけです。重みが少し残ります。"
        "−∞ に置きかえます。",
    ),
    Wrong(
        "mask-last-row",
        ((FILLED, "scores = scores.masked_fill(~mask[..., -1:, :], -math.inf)"),),
        hint="マスクの最後の行だけを、すべてのクエリに使っています。行はクエリごとに違います。",
    ),
    Wrong(
        "mask-transposed",
        ((FILLED, "scores = scores.masked_fill(~mask.mT, -math.inf)"),),
        hint="マスクの行と列が入れかわっています。行がクエリ、列がキーです。",
    ),
    Wrong(
        "nan-row",
        ((REFUSE, ""),),
        hint="見てよい位置が一つもない行では、softmax が NaN になります。"
        "計算する前に調べて、ValueError を出します。",
    ),
    Wrong(
        "zero-row",
        ((REFUSE, ""), ("scores.softmax(dim=-1)", "scores.softmax(dim=-1).nan_to_num()")),
        hint="見てよい位置が一つもない行を、0 にして見のがしています。"
        "誤りに気づけるように、ValueError を出します。",
    ),
    Wrong(
        "uniform-row",
        ((REFUSE, ""), (FILLED, "scores = scores.masked_fill(~mask, -1e30)")),
        hint="見てよい位置が一つもない行で、すべての位置を同じ重みで見ています。"
        "誤りに気づけるように、ValueError を出します。",
    ),
    Wrong(
        "gap-output-not-moved",
        (("f(x)[..., perm, :]", "f(x)"),),
        hint="f(Px) を、並べ替えていない f(x) と比べています。出力の方も P で並べ替えます。",
    ),
    Wrong(
        "gap-inverse",
        (("f(x)[..., perm, :]", "f(x)[..., perm.argsort(), :]"),),
        hint="出力を、P ではなく逆の並べ替えで動かしています。入力と同じ perm を使います。",
    ),
    Wrong(
        "gap-always-zero",
        (("f(x[..., perm, :])", "f(x)[..., perm, :]"),),
        hint="どの設定でもずれが 0 です。どちらも計算したあとで並べ替えていませんか。"
        "片方は、入力を並べ替えてから f に入れます。",
    ),
    Wrong(
        "gap-positions-move",
        (
            ("words if positions is None else words + positions", "words"),
            (
                "    moved_first = ",
                "    x = x if positions is None else x + positions\n    moved_first = ",
            ),
        ),
        hint="位置のベクトルまで、語と一緒に並べ替えています。位置は席に付くので、"
        "並べ替えたあとの x に足します。",
    ),
    Wrong(
        "gap-no-positions",
        (("words if positions is None else words + positions", "words"),),
        hint="positions が渡されているのに、x に足していません。",
    ),
    Wrong(
        "gap-mask-moves",
        (
            ("def f(words):", "def f(words, mask=mask):"),
            (
                "f(x[..., perm, :])",
                "f(\n        x[..., perm, :],\n"
                "        None if mask is None else mask[perm][:, perm],\n    )",
            ),
        ),
        hint="マスクまで、語と一緒に並べ替えています。マスクは席に付くので、動かしません。",
    ),
    Wrong(
        "gap-no-mask",
        (("w_v, mask)[0]", "w_v)[0]"),),
        hint="mask が渡されているのに、attention に渡していません。",
    ),
    Wrong(
        "gap-mean",
        ((LAST, LAST.replace("max()", "mean()")),),
        hint="差の絶対値の平均を返しています。最大値を返します。",
    ),
    Wrong(
        "gap-no-abs",
        ((LAST, LAST.replace(".abs()", "")),),
        hint="差の絶対値を取らずに最大値を取っています。負の側のずれを見のがします。",
    ),
    Wrong(
        "gap-norm",
        ((LAST, "return (moved_first - moved_last).norm().item()"),),
        hint="差の二乗の和の平方根を返しています。絶対値の最大値を返します。",
    ),
    Wrong(
        "gap-bool",
        ((LAST, "return torch.allclose(moved_first, moved_last)"),),
        hint="等しいかどうか（真偽値）を返しています。ずれの大きさを一つの数で返します。",
    ),
)

PERMUTATION_RIGHT = (
    Right(
        "by-hand",
        code="""
import torch


def softmax(scores):
    e = torch.exp(scores - scores.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def attention(x, w_q, w_k, w_v, mask=None):
    scores = torch.einsum("...td,...sd->...ts", x @ w_q, x @ w_k) / w_k.shape[1] ** 0.5
    if mask is not None:
        if (~mask).all(dim=-1).any():
            raise ValueError("all masked")
        scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    a = softmax(scores)
    return torch.einsum("...ts,...sv->...tv", a, x @ w_v), a


def equivariance_gap(x, perm, w_q, w_k, w_v, positions=None, mask=None):
    P = torch.eye(len(perm), dtype=x.dtype)[perm]
    p = 0 if positions is None else positions
    y, _ = attention(x + p, w_q, w_k, w_v, mask=mask)
    z, _ = attention(P @ x + p, w_q, w_k, w_v, mask=mask)
    return float(torch.max(torch.abs(z - P @ y)))
""",
    ),
    Right(
        "loops",
        code="""
import math
import torch


def one_row(q, k, v, allowed):
    if not any(allowed):
        raise ValueError("見てよい位置がない")
    keep = [i for i, ok in enumerate(allowed) if ok]
    row = torch.stack([q @ k[i] for i in keep]) / math.sqrt(len(q))
    inside = torch.softmax(row, 0)
    weights = torch.zeros(len(k), dtype=q.dtype).index_put((torch.tensor(keep),), inside)
    return weights @ v, weights


def attention(x, w_q, w_k, w_v, mask=None):
    if x.ndim > 2:
        if mask is not None:
            mask = mask.expand(*x.shape[:-1], x.shape[-2])
        parts = [
            attention(x[i], w_q, w_k, w_v, None if mask is None else mask[i])
            for i in range(x.shape[0])
        ]
        return torch.stack([p[0] for p in parts]), torch.stack([p[1] for p in parts])
    T = x.shape[0]
    mask = torch.ones(T, T, dtype=torch.bool) if mask is None else mask.expand(T, T)
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    rows = [one_row(q[t], k, v, mask[t].tolist()) for t in range(T)]
    return torch.stack([r[0] for r in rows]), torch.stack([r[1] for r in rows])


def equivariance_gap(x, perm, w_q, w_k, w_v, positions=None, mask=None):
    outs = []
    for words in (x, x.index_select(-2, perm)):
        words = words if positions is None else words + positions
        outs.append(attention(words, w_q, w_k, w_v, mask)[0])
    worst = 0.0
    for new, old in enumerate(perm.tolist()):
        worst = max(worst, (outs[1][..., new, :] - outs[0][..., old, :]).abs().max().item())
    return worst
""",
    ),
    Right(
        "sdpa",
        code="""
import torch
import torch.nn.functional as F


def attention(x, w_q, w_k, w_v, mask=None):
    if mask is not None and not bool(mask.any(-1).all()):
        raise ValueError("空の行")
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    one_hot = torch.eye(x.shape[-2], dtype=x.dtype).expand(*x.shape[:-2], -1, -1)
    both = F.scaled_dot_product_attention(q, k, torch.cat([v, one_hot], -1), attn_mask=mask)
    return both[..., : v.shape[-1]], both[..., v.shape[-1] :]


def equivariance_gap(x, perm, w_q, w_k, w_v, positions=None, mask=None):
    if positions is None:
        positions = torch.zeros_like(x)
    before = attention(x + positions, w_q, w_k, w_v, mask)[0]
    after = attention(x[..., perm, :] + positions, w_q, w_k, w_v, mask)[0]
    back = torch.empty_like(after)
    back[..., perm, :] = after
    return (back - before).abs().max()
""",
    ),
    Right(
        "log-space",
        edits=(
            (
                "weights = scores.softmax(dim=-1)",
                "weights = (scores - scores.logsumexp(-1, keepdim=True)).exp()",
            ),
            (FILLED, "scores = scores + torch.zeros_like(scores).masked_fill(~mask, -math.inf)"),
        ),
    ),
)


# ── 13-2 ──


def _jacobian(z):
    """自動微分で一行ずつ。"""
    rows = [
        torch.autograd.functional.jacobian(lambda v: torch.softmax(v, 0), row)
        for row in z.reshape(-1, z.shape[-1])
    ]
    return torch.stack(rows).reshape(*z.shape, z.shape[-1])


def _saturation(q, k):
    table = []
    for divisor in (1.0, math.sqrt(q.shape[1])):
        draws = []
        for query, keys in zip(q.double(), k.double(), strict=True):
            z = keys @ query / divisor
            p, size = torch.softmax(z, 0), _jacobian(z).square().sum().sqrt()
            draws.append([float(p.max()), float(-torch.xlogy(p, p).sum()), float(size)])
        table.append(np.mean(draws, axis=0))
    return torch.tensor(np.array(table), dtype=q.dtype)


@functools.lru_cache(maxsize=256)
def _ratio(d_k, n_keys, n_draws, seed):
    """比の期待値と、標準誤差の 5 倍の幅。q·k は q の長さを標準偏差とする正規分布に従う。"""
    rng = np.random.default_rng([seed, d_k, n_keys])
    length = np.linalg.norm(rng.standard_normal((n_draws, d_k)), axis=1, keepdims=True)
    scores = torch.from_numpy(length * rng.standard_normal((n_draws, n_keys)))
    raw, scaled = (_size(torch.softmax(z, -1)) for z in (scores, scores / math.sqrt(d_k)))
    ratio = float(raw.mean() / scaled.mean())
    error = float((raw / raw.mean() - scaled / scaled.mean()).std()) / math.sqrt(n_draws)
    return Band(ratio, 5 * math.sqrt(2) * ratio * error)


def _size(p):
    """J のノルム。二乗の和は Σp² − 2Σp³ + (Σp²)²。"""
    square, cube = (p**2).sum(-1), (p**3).sum(-1)
    return (square - 2 * cube + square**2).clamp_min(0).sqrt()


def _logits(draw: Draw):
    n, a, b = draw.sizes(3)
    yield Probe("softmax_jacobian", (draw.normal(n),), label="一次元の z", repeat=True)
    yield Probe("softmax_jacobian", (draw.normal(n, dtype="float32"),), label="float32 の z")
    yield Probe("softmax_jacobian", (draw.normal(a, n),), label="先頭に次元が一つある z")
    if not draw.public:
        yield Probe("softmax_jacobian", (draw.normal(a, b, n),), label="先頭に次元が二つある z")
    yield Probe("softmax_jacobian", (draw.normal(a, 1),), label="成分が一つの z")
    large = 10000 + draw.normal(n, scale=3.0)
    yield Probe("softmax_jacobian", (large,), label="成分がとても大きい z")


def _pairs(draw: Draw):
    def probe(label, m=0, n=0, dtype="float64", scale=1.0, **options):
        d_k, size, keys = draw.sizes(3)
        q = draw.normal(m or size, d_k, dtype=dtype, scale=scale)
        k = draw.normal(m or size, n or keys, d_k, dtype=dtype, scale=scale)
        tolerance = (1e-3, 2e-3) if dtype == "float32" else (1e-5, 1e-6)
        given = corrected(draw, "13-2", "softmax_jacobian")
        return Probe("saturation", (q, k), label=label, tolerance=tolerance, given=given, **options)

    yield probe("ふつうの大きさの q と k", repeat=True)
    yield probe("float32 の q と k", dtype="float32")
    yield probe("組が一つだけ", m=1)
    yield probe("スコアがとても大きく、確率が 0 になる", scale=40.0)
    if not draw.public:
        yield probe("キーが一つだけ", n=1)
        yield probe("組がたくさん", m=23)


def _experiments(draw: Draw):
    given = corrected(draw, "13-2", "softmax_jacobian", "saturation")

    def probe(label, d_k, n_keys, n_draws, number):
        return Probe("gradient_ratio", (d_k, n_keys, n_draws, number), label=label, given=given)

    seed = draw.integer(1, 10**6)
    label = "キーが多く d_k が小さい（割らない方が大きくなる所）"
    yield probe(label, 3, draw.integer(13, 16), DRAWS, seed)
    label = "キーが少なく d_k が大きい（割らない方が小さくなる所）"
    yield probe(label, draw.integer(11, 18), 5, DRAWS, seed + 1)
    for i in range(2 if draw.public else 7):  # 一組のクエリの使い回しは、どれかで幅から外れる
        yield probe("小さな実験をくり返す", 2, 7, 1000, seed + 2 + i)


def _seeds(draw: Draw):
    given, seed = corrected(draw, "13-2", "softmax_jacobian", "saturation"), draw.integer(1, 10**6)
    for label, number in (("一つの seed", seed), ("別の seed", seed + 1)):
        yield Probe("gradient_ratio", (3, 5, 7, number), label=label, repeat=True, given=given)


def _seed_law(_probes, outcomes) -> str:
    a, b = (o.value.data for o in outcomes)
    return "違う seed で、まったく同じ値が返りました" if float(a) == float(b) else ""


JACOBIAN = "torch.diag_embed(p) - p.unsqueeze(-1) * p.unsqueeze(-2)"
OUTER = "p.unsqueeze(-1) * p.unsqueeze(-2)"
ENTROPY = "torch.special.entr(p).sum(dim=-1)"
SIZE = "torch.linalg.matrix_norm(softmax_jacobian(z))"
ROOT = "scores / math.sqrt(q.shape[-1])"
PER_DRAW = """        largest = p.amax(dim=-1)
        entropy = torch.special.entr(p).sum(dim=-1)
"""
DRAW_Q = "q = torch.randn(n_draws, d_k, generator=generator)"
DRAW_K = "k = torch.randn(n_draws, n_keys, d_k, generator=generator)"

SATURATION_WRONG = (
    Wrong(
        "diagonal-only",
        ((JACOBIAN, "torch.diag_embed(p * (1 - p))"),),
        hint="対角成分だけになっています。z_j を動かすと、分母を通って、ほかの p_i も動きます。",
    ),
    Wrong(
        "off-diagonal-sign",
        (
            (
                JACOBIAN,
                "torch.diag_embed(p) + p.unsqueeze(-1) * p.unsqueeze(-2)"
                " - 2 * torch.diag_embed(p * p)",
            ),
        ),
        hint="対角でない成分の符号が逆です。z_j が増えると、ほかの p_i は減ります。",
    ),
    Wrong(
        "plus",
        ((JACOBIAN, "torch.diag_embed(p) + p.unsqueeze(-1) * p.unsqueeze(-2)"),),
        hint="引くはずの p pᵀ を足しています。商の微分の符号を見直してください。",
    ),
    Wrong(
        "no-diagonal",
        ((JACOBIAN, f"-{OUTER}"),),
        hint="diag(p) の項がありません。i = j のときは、分子の微分も効きます。",
    ),
    Wrong(
        "negated",
        ((JACOBIAN, f"{OUTER} - torch.diag_embed(p)"),),
        hint="J の全体の符号が逆です。z_i を増やすと p_i は増えるので、対角は正のはずです。",
    ),
    Wrong(
        "log-softmax",
        (
            (
                JACOBIAN,
                "torch.eye(p.shape[-1], dtype=p.dtype) - p.unsqueeze(-2).expand(*p.shape, -1)",
            ),
        ),
        hint="log softmax のヤコビ行列になっています。ここで微分するのは p そのものです。",
    ),
    Wrong(
        "vector",
        ((JACOBIAN, "p * (1 - p)"), (SIZE, "softmax_jacobian(z).norm(dim=-1)")),
        hint="対角成分を並べたベクトルを返しています。J は (…, N, N) の行列です。",
    ),
    Wrong(
        "jacobian-overflow",
        (
            (
                "p = z.softmax(dim=-1)\n    return",
                "p = z.exp() / z.exp().sum(-1, keepdim=True)\n    return",
            ),
        ),
        hint="大きな z で exp があふれて NaN になっています。"
        "最大値を引いてから exp を取るか、torch の softmax を使います。",
    ),
    Wrong(
        "jacobian-axis",
        (("p = z.softmax(dim=-1)\n    return", "p = z.softmax(dim=0)\n    return"),),
        hint="softmax を先頭の次元について取っています。足して 1 になるのは最後の次元です。",
    ),
    Wrong(
        "one-sample-only",
        (
            (JACOBIAN, "torch.diag(p) - torch.outer(p, p)"),
            (SIZE, f"torch.linalg.matrix_norm({JACOBIAN})"),
        ),
        hint="一次元の z にしか使えない書き方です。先頭に次元があるときは、"
        "diag の代わりに diag_embed、外積の代わりに unsqueeze を使います。",
    ),
    Wrong(
        "divide-by-dk",
        ((ROOT, "scores / q.shape[-1]"),),
        hint="割ったスコアの行で、√d_k ではなく d_k で割っています。",
    ),
    Wrong(
        "divide-by-keys",
        ((ROOT, "scores / math.sqrt(k.shape[-2])"),),
        hint="キーの数の平方根で割っています。割るのは q と k の次元 d_k の平方根です。",
    ),
    Wrong(
        "rows-swapped",
        (
            ("return torch.stack(rows)\n", "return torch.stack(rows[::-1])\n"),
            (
                "raw, scaled = saturation(q, k)[:, 2].tolist()",
                "scaled, raw = saturation(q, k)[:, 2].tolist()",
            ),
        ),
        hint="行の順が逆です。0 行目が割らないスコア、1 行目が割ったスコアです。",
    ),
    Wrong(
        "never-scaled",
        ((f"(scores, {ROOT})", "(scores, scores)"),),
        hint="二つの行が同じです。1 行目のスコアを √d_k で割っていません。",
    ),
    Wrong(
        "entropy-bits",
        ((ENTROPY, ENTROPY + " / math.log(2)"),),
        hint="エントロピーの単位がビットです。ナット（自然対数）にします。",
    ),
    Wrong(
        "entropy-sign",
        ((ENTROPY, "-" + ENTROPY),),
        hint="エントロピーの符号が逆です。−Σ p log p で、負になることはありません。",
    ),
    Wrong(
        "entropy-nan",
        ((ENTROPY, "-(p * p.log()).sum(dim=-1)"),),
        hint="確率が 0 になったところで 0 × log 0 が NaN になっています。その項は 0 と数えます"
        "（torch.special.entr や torch.xlogy が使えます）。",
    ),
    Wrong(
        "average-first",
        (
            (
                PER_DRAW,
                PER_DRAW.replace("p.amax", "p.mean(0, keepdim=True).expand_as(p).amax").replace(
                    "entr(p)", "entr(p.mean(0, keepdim=True).expand_as(p))"
                ),
            ),
        ),
        hint="確率を組について平均してから、最大値やエントロピーを取っています。"
        "組ごとに計算してから平均します。",
    ),
    Wrong(
        "size-squared",
        ((SIZE, SIZE + " ** 2"),),
        hint="J の二乗の和を返しています。フロベニウスノルムは、その平方根です。",
    ),
    Wrong(
        "size-spectral",
        ((SIZE, SIZE.replace("(z))", "(z), 2)")),),
        hint="J の最大の特異値を返しています。フロベニウスノルムは、全成分の二乗の和の平方根です。",
    ),
    Wrong(
        "size-sum",
        ((SIZE, "softmax_jacobian(z).abs().sum(dim=(-1, -2))"),),
        hint="J の成分の絶対値の和を返しています。二乗の和の平方根を返します。",
    ),
    Wrong(
        "size-max",
        ((SIZE, "softmax_jacobian(z).abs().amax(dim=(-1, -2))"),),
        hint="J の成分の絶対値の最大値を返しています。二乗の和の平方根を返します。",
    ),
    Wrong(
        "saturation-float32",
        (('einsum("mk,mnk->mn", q, k)', 'einsum("mk,mnk->mn", q.float(), k.float())'),),
        hint="float64 の入力を float32 に変えて計算しています。dtype は q のままにします。",
    ),
    Wrong(
        "ratio-inverse",
        (("return raw / scaled", "return scaled / raw"),),
        hint="比の上下が逆です。割らないときの平均を、割ったときの平均で割ります。",
    ),
    Wrong(
        "ratio-difference",
        (("return raw / scaled", "return raw - scaled"),),
        hint="比ではなく差を返しています。",
    ),
    Wrong(
        "ratio-clamped",
        (("return raw / scaled", "return min(raw / scaled, 1.0)"),),
        hint="比が 1 を超えないように抑えています。割らない方が勾配が大きくなることもあります。"
        "測った値をそのまま返してください。",
    ),
    Wrong(
        "ratio-uniform",
        (
            (DRAW_Q, DRAW_Q.replace("randn", "rand")),
            (DRAW_K, DRAW_K.replace("randn", "rand")),
        ),
        hint="成分を 0 から 1 の一様分布（rand）で引いています。"
        "平均 0、分散 1 の正規分布（randn）から引きます。",
    ),
    Wrong(
        "ratio-one-query",
        (
            (
                DRAW_Q,
                DRAW_Q.replace(
                    "(n_draws, d_k, generator=generator)",
                    "(1, d_k, generator=generator).expand(n_draws, -1)",
                ),
            ),
        ),
        hint="一つのクエリをすべての組で使い回しています。クエリも組ごとに引き直します。",
    ),
    Wrong(
        "ratio-one-draw",
        ((DRAW_Q, DRAW_Q.replace("n_draws", "1")), (DRAW_K, DRAW_K.replace("n_draws", "1"))),
        hint="一組しか引いていないので、値が偶然に左右されます。n_draws 組の平均にします。",
    ),
    Wrong(
        "ratio-unseeded",
        (("torch.Generator().manual_seed(seed)", "None"),),
        hint="seed を使っていないので、呼ぶたびに値が変わります。"
        "torch.Generator().manual_seed(seed) を作り、randn に渡します。",
    ),
    Wrong(
        "ratio-fixed-seed",
        (("manual_seed(seed)", "manual_seed(0)"),),
        hint="どの seed でも同じ乱数を使っています。引数の seed を使ってください。",
    ),
    Wrong(
        "ratio-entropy",
        (("[:, 2].tolist()", "[:, 1].tolist()"),),
        hint="J のノルムではなくエントロピーの比になっています。使う列は 2 列目です。",
    ),
)

SATURATION_RIGHT = (
    Right(
        "vmap",
        code="""
import torch


def softmax_jacobian(z):
    one = torch.func.jacrev(lambda v: torch.softmax(v, 0))
    flat = z.reshape(-1, z.shape[-1])
    return torch.func.vmap(one)(flat).reshape(*z.shape, z.shape[-1])


def norms(p):
    s = (p ** 2).sum(-1)
    return (s - 2 * (p ** 3).sum(-1) + s ** 2).clamp(min=0).sqrt()


def row(z):
    p = torch.softmax(z, -1)
    return [p.max(-1).values.mean(), -torch.xlogy(p, p).sum(-1).mean(), norms(p).mean()]


def saturation(q, k):
    s = (k @ q[:, :, None])[..., 0]
    return torch.tensor([row(s), row(s / q.shape[1] ** 0.5)], dtype=q.dtype)


def gradient_ratio(d_k, n_keys, n_draws, seed):
    torch.manual_seed(seed)
    table = saturation(torch.randn(n_draws, d_k), torch.randn(n_draws, n_keys, d_k))
    return (table[0, 2] / table[1, 2]).item()
""",
    ),
    Right(
        "loops",
        code="""
import math
import numpy as np
import torch


def softmax_jacobian(z):
    if z.ndim > 1:
        return torch.stack([softmax_jacobian(row) for row in z])
    p = torch.exp(z - z.max())
    p = p / p.sum()
    n = len(p)
    j = torch.zeros(n, n, dtype=z.dtype)
    for a in range(n):
        for b in range(n):
            j[a, b] = p[a] * (float(a == b) - p[b])
    return j


def measure(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    safe = np.where(p > 0, p, 1.0)
    diag = np.einsum("mi,ij->mij", p, np.eye(p.shape[-1], dtype=p.dtype))
    j = diag - p[:, :, None] * p[:, None, :]
    size = np.sqrt((j ** 2).sum((-1, -2)))
    return [p.max(-1).mean(), -(p * np.log(safe)).sum(-1).mean(), size.mean()]


def saturation(q, k):
    z = (q.numpy()[:, None] * k.numpy()).sum(-1)
    return torch.tensor(np.array([measure(z), measure(z / np.sqrt(q.shape[-1]))]), dtype=q.dtype)


def gradient_ratio(d_k, n_keys, n_draws, seed):
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(n_draws, d_k))
    k = rng.normal(size=(n_draws, n_keys, d_k))
    z = np.einsum("md,mnd->mn", q, k)
    return float(measure(z)[2] / measure(z / math.sqrt(d_k))[2])
""",
    ),
    Right(
        "minus-outer",
        edits=(
            (
                JACOBIAN,
                "p[..., :, None] * (torch.eye(p.shape[-1], dtype=p.dtype) - p[..., None, :])",
            ),
            (SIZE, "softmax_jacobian(z).flatten(-2).norm(dim=-1)"),
            (ENTROPY, "torch.distributions.Categorical(probs=p).entropy()"),
            ('torch.einsum("mk,mnk->mn", q, k)', "torch.bmm(k, q.unsqueeze(-1)).squeeze(-1)"),
        ),
    ),
    Right(
        "logsumexp",
        edits=(
            ("p = z.softmax(dim=-1)\n    return", "p = torch.log_softmax(z, -1).exp()\n    return"),
            (ENTROPY, "z.logsumexp(-1) - (p * z).sum(-1)"),
        ),
    ),
)


QUESTIONS = (
    Question(
        "13-1",
        parts=(
            Part(
                "Self-Attention",
                3,
                (
                    Check(
                        "出力と重みの値", _values, _attention, outputs=WEIGHTS, section=ATTENTION
                    ),
                    Check("勾配", _flow, _attention, outputs=GRADIENTS, section=ATTENTION),
                ),
            ),
            Part(
                "マスク",
                2,
                (
                    Check("マスクの効き方", _masks, _attention, outputs=WEIGHTS, section=ATTENTION),
                    Check("並べ替えの法則", _law_probes, law=_law, section=PERMUTATION),
                ),
            ),
            Part(
                "並べ替え",
                3,
                (Check("ずれの大きさ", _shuffles, _gap, outputs=("ずれ",), section=PERMUTATION),),
            ),
        ),
        model=functools.partial(source.model, "13-1"),
        wrong=PERMUTATION_WRONG,
        right=PERMUTATION_RIGHT,
        shortcuts=("scaled_dot_product_attention", "MultiheadAttention", "lib.attention"),
    ),
    Question(
        "13-2",
        parts=(
            Part(
                "ヤコビ行列",
                3,
                (Check("J の値", _logits, _jacobian, outputs=("J",), section=SOFTMAX),),
            ),
            Part(
                "飽和の測定",
                3,
                (Check("表の値", _pairs, _saturation, outputs=("表",), section=SCALE),),
            ),
            Part(
                "勾配の比",
                2,
                (
                    Check("比の値（統計）", _experiments, _ratio, outputs=("比",), section=SCALE),
                    Check("種", _seeds, law=_seed_law, outputs=("比",), section=SCALE),
                ),
            ),
        ),
        model=functools.partial(source.model, "13-2"),
        wrong=SATURATION_WRONG,
        right=SATURATION_RIGHT,
        shortcuts=("torch.func", "torch.autograd.functional"),
    ),
    *week13_blocks.QUESTIONS,
)
