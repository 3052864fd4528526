"""第 13 週の検査の続き：ヘッド、マスク、Cross-Attention、FFN、二つの型（13-3 から 13-7）。

正解は lib を使わない：位置とヘッドのループ、手で書いた逆伝播、道の総当たり（試験で突き合わせる）。
"""

import functools
import math

import numpy as np
import torch

from exercises.checks.common import corrected, small_answers, wrong
from exercises.grading import source
from exercises.grading.check import Check, Draw, Part, Probe, Question, Right

HEADS = "第 13 週「視点を増やすには」の章の「分ける、見る、つなぐ、混ぜる」"
ORDER = "第 13 週「視点を増やすには」の章の「つなぐ順番と W^O」"
COST = "第 13 週「視点を増やすには」の章の「ヘッドを増やしても、重くならない」"
WHOLE = "第 13 週「翻訳機として組み上げるには」の章の"
MASKS = WHOLE + "「見てよい場所を決める」"
UNMASKED = WHOLE + "「マスクを外して学習させる」"
BRIDGE = WHOLE + "「橋：第 12 週の Attention との関係」"
SCORES = "第 12 週「一本のベクトルで足りるのか」の章の「スコアの付け方は一つではない」"
ROLES = "第 12 週「一本のベクトルで足りるのか」の章の「三つの役に名前を付ける」"
EACH_PLACE = "第 13 週「深く積むには」の章の「位置ごとに考える」"
MEMO = "第 12 週「過去を全部覚えられないか」の章の「一枚のメモを、書き直しながら読む」"
VARIANTS = "第 13 週「大量の文で学習させると？」の章の"
HALF = VARIANTS + "「翻訳機を半分にする」"
HOLES = VARIANTS + "「両側を見て、穴を埋める」"


def _causal(n: int) -> np.ndarray:
    return np.tril(np.ones((n, n), dtype=bool))


def _soft(scores, mask=None):
    """行ごとの softmax。最大値を引き、見てはいけない位置を除いて割る。"""
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    mask = mask.expand(scores.shape)
    if not mask.any(-1).all():
        raise ValueError
    top = torch.where(mask, scores, -torch.inf).amax(-1, keepdim=True)
    power = torch.where(mask, (scores - top.detach()).clamp(max=0).exp(), 0)
    return power / power.sum(-1, keepdim=True)


# ── 13-3 ──


def _split(x, n_heads):
    width, rest = divmod(x.shape[-1], n_heads)
    if rest:
        raise ValueError
    return torch.stack([x[..., j * width : (j + 1) * width] for j in range(n_heads)], -3)


def _heads(x, w_q, w_k, w_v, n_heads, mask=None):
    """ヘッドを一つずつ。結果と重みの並び。"""
    width, rest = divmod(w_q.shape[-1], n_heads)
    if rest:
        raise ValueError
    found = []
    for j in range(n_heads):
        columns = slice(j * width, (j + 1) * width)
        q, k, v = x @ w_q[:, columns], x @ w_k[:, columns], x @ w_v[:, columns]
        weights = _soft(torch.einsum("...tk,...sk->...ts", q, k) / width**0.5, mask)
        found.append((torch.einsum("...ts,...sk->...tk", weights, v), weights))
    return [list(part) for part in zip(*found, strict=True)]


def _multi_head(x, w_q, w_k, w_v, w_o, n_heads, mask=None):
    heads, weights = _heads(x, w_q, w_k, w_v, n_heads, mask)
    return torch.cat(heads, -1) @ w_o, torch.stack(weights, -3)


def _parts(x, w_q, w_k, w_v, w_o, n_heads):
    heads, _ = _heads(x, w_q, w_k, w_v, n_heads)
    blocks = w_o.chunk(n_heads, dim=0)
    return torch.stack([h @ w for h, w in zip(heads, blocks, strict=True)], -3)


def _widths(draw: Draw) -> tuple[int, int, int]:
    """(T, H, D)。D = H × d_k で、T、H、d_k はすべて違う素数。"""
    if draw.public:
        return 5, 3, 6
    t, width = map(int, draw.rng.permutation((5, 7)))
    return t, 3, 3 * width


def _squares(draw: Draw, d: int, dtype: str = "float64", scale: float = 1.0) -> tuple:
    return tuple(draw.normal(d, d, dtype=dtype, scale=scale / math.sqrt(d)) for _ in range(4))


def _splits(draw: Draw):
    t, h, d = _widths(draw)
    yield Probe("split_heads", (draw.normal(t, d), h), label="二次元の x", repeat=True)
    yield Probe("split_heads", (draw.normal(2, t, d, dtype="float32"), h), label="先頭の次元がある")
    if not draw.public:
        yield Probe("split_heads", (draw.normal(3, 2, t, d), h), label="先頭の次元が二つある")
    yield Probe("split_heads", (draw.normal(t, d), 1), label="ヘッドが一つ")
    yield Probe("split_heads", (draw.normal(1, h), h), label="一つのヘッドが 1 次元、長さ 1")
    yield Probe("split_heads", (draw.normal(t, d + 1), h), label="割り切れない")


def _head_args(draw: Draw, *lead: int, dtype: str = "float64", scale: float = 1.0, length: int = 0):
    t, h, d = _widths(draw)
    return (draw.normal(*lead, length or t, d, dtype=dtype), *_squares(draw, d, dtype, scale), h)


def _head_values(draw: Draw):
    given = corrected(draw, "13-3", "split_heads")

    def probe(label, args, mask=None, **options):
        extra = {} if mask is None else {"mask": mask}
        return Probe("multi_head", args, extra, label=label, given=given, **options)

    args = _head_args(draw)
    t = len(args[0])
    yield probe("二次元の x", args, repeat=True)
    yield probe("float32 の x", _head_args(draw, dtype="float32"))
    yield probe("先頭に次元が一つある x", _head_args(draw, 2))
    yield probe("スコアの絶対値がとても大きい x", _head_args(draw, scale=300.0))
    yield probe("長さ 1 の系列", _head_args(draw, 3, length=1))
    yield probe("因果マスク", args, _causal(t))
    batch = _head_args(draw, 3)
    t = batch[0].shape[-2]
    yield probe("文ごとに違うマスク（…, T, T）", batch, draw.mask(3, t, t))
    if not draw.public:
        yield probe("パディングマスク（…, 1, T）", batch, draw.mask(3, 1, t))
        yield probe("先頭に次元が二つある x", _head_args(draw, 2, 3))
        yield probe("ヘッドが一つ", (*batch[:-1], 1))
        yield probe("割り切れないヘッドの数", (*batch[:-1], batch[0].shape[-1] + 1))
    mask = draw.mask(t, t)
    mask[draw.integer(0, t)] = False
    yield probe("見てよい位置が一つもない行がある", batch, mask)


def _head_slopes(draw: Draw):
    args = _head_args(draw, 2)
    given = corrected(draw, "13-3", "split_heads")
    label = "出力を x と四つの行列で微分する"
    cotangent = draw.normal(*args[0].shape)
    yield Probe("multi_head", args, label=label, cotangent=cotangent, given=given)


def _shares_of_heads(draw: Draw):
    given = corrected(draw, "13-3", "split_heads", "multi_head")

    def probe(label, args, **options):
        return Probe("head_parts", args, label=label, given=given, **options)

    args = _head_args(draw)
    yield probe("二次元の x", args, repeat=True)
    yield probe("先頭に次元がある x", _head_args(draw, 2))
    yield probe("ヘッドが一つ", (*args[:-1], 1))
    if not draw.public:
        yield probe("float32 の x", _head_args(draw, dtype="float32"))
        yield probe("長さ 1 の系列", _head_args(draw, length=1))


SPLIT = "x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)"
DIVIDES = """    if x.shape[-1] % n_heads:
        raise ValueError(f"{x.shape[-1]} 次元は {n_heads} 個に分けられません")
"""
PROJECT = "q, k, v = (split_heads(x @ w, n_heads) for w in (w_q, w_k, w_v))"
HEAD_SCORES = "q @ k.mT / math.sqrt(q.shape[-1])"
HEAD_REFUSE = """        if not mask.any(dim=-1).all():
            raise ValueError("見てよい位置が一つもない行があります")
"""
HEAD_FILL = "scores = scores.masked_fill(~mask.unsqueeze(-3), -math.inf)"
JOIN = "joined = (weights @ v).transpose(-3, -2).flatten(-2)"
MIXED = "return joined @ w_o, weights"
PART = "return heads @ w_o.unflatten(0, (n_heads, -1))"
THREE = "return 64, 768, 2359296"

HEADS_WRONG = (
    wrong(
        "reshape-only",
        "形だけを変えていて、違う語の成分が一つのヘッドに混ざっています。"
        "まず最後の次元を (H, D/H) に分け、それから H を T の前に出します。",
        (SPLIT, "x.reshape(*x.shape[:-2], n_heads, x.shape[-2], -1)"),
    ),
    wrong(
        "interleaved",
        "成分を一つおきに配っています。ヘッド j が受け持つのは、"
        "j·d_k 番目から続く d_k 個の成分です。",
        (SPLIT, "x.unflatten(-1, (-1, n_heads)).movedim(-1, -3)"),
    ),
    wrong(
        "heads-behind",
        "ヘッドの次元が T の後ろにあります。ヘッドごとに行列の積を取れるように、"
        "(…, H, T, D/H) の順にします。",
        (SPLIT, "x.unflatten(-1, (n_heads, -1))"),
        (PROJECT, PROJECT.replace("n_heads) for", "n_heads).transpose(-3, -2) for")),
        (
            "heads = weights @ split_heads(x @ w_v, n_heads)",
            "heads = weights @ split_heads(x @ w_v, n_heads).transpose(-3, -2)",
        ),
    ),
    wrong(
        "not-divided",
        "どのヘッドにも D 個の成分を全部渡しています。D を H 個で分け合います。",
        (SPLIT, "x.unsqueeze(-3).repeat_interleave(n_heads, -3)"),
        (
            PROJECT,
            "q, k, v = (\n        (x @ w).unflatten(-1, (n_heads, -1)).transpose(-3, -2)\n"
            "        for w in (w_q, w_k, w_v)\n    )",
        ),
        (
            "heads = weights @ split_heads(x @ w_v, n_heads)",
            "heads = weights @ (x @ w_v).unflatten(-1, (n_heads, -1)).transpose(-3, -2)",
        ),
    ),
    wrong(
        "rest-dropped",
        "割り切れないとき、余った成分を捨てています。ValueError を出します。",
        (DIVIDES, "    x = x[..., : x.shape[-1] // n_heads * n_heads]\n"),
    ),
    wrong(
        "unchecked",
        "割り切れないときに、torch の別の例外が出ています。"
        "分ける前に調べて、ValueError を出します。",
        (DIVIDES, ""),
    ),
    wrong(
        "no-scale",
        "スコアを √d_k で割っていません。",
        (HEAD_SCORES, "q @ k.mT"),
    ),
    wrong(
        "scale-model",
        "スコアを √D で割っています。内積を取るのは一つのヘッドの中なので、"
        "割るのはヘッドの次元の平方根 √(D/H) です。",
        (HEAD_SCORES, "q @ k.mT / math.sqrt(x.shape[-1])"),
    ),
    wrong(
        "own-slice-of-x",
        "x を先に分けて、ヘッド j には x の一部だけを読ませています。"
        "どのヘッドも x の全部を読みます。分けるのは、行列を掛けた後です。",
        (
            PROJECT,
            "size = x.shape[-1] // n_heads\n"
            "    parts = [[], [], []]\n"
            "    for j in range(n_heads):\n"
            "        own = slice(j * size, (j + 1) * size)\n"
            "        for part, w in zip(parts, (w_q, w_k, w_v)):\n"
            "            part.append(x[..., own] @ w[own, own])\n"
            "    if x.shape[-1] % n_heads:\n"
            '        raise ValueError("分けられません")\n'
            "    q, k, v = (torch.stack(part, dim=-3) for part in parts)",
        ),
    ),
    wrong(
        "softmax-heads",
        "softmax をヘッドの次元について取っています。"
        "ヘッドどうしは競いません。足して 1 になるのは、キーについてです。",
        ("weights = scores.softmax(dim=-1)", "weights = scores.softmax(dim=-3)"),
    ),
    wrong(
        "shared-weights",
        "注意の重みをヘッドについて平均しています。ヘッドは、それぞれの重みを使います。",
        (
            "weights = scores.softmax(dim=-1)",
            "weights = scores.softmax(dim=-1).mean(-3, keepdim=True).expand(scores.shape)",
        ),
    ),
    wrong(
        "joined-by-heads",
        "ヘッドの次元を T の前に置いたまま、形だけを戻しています。"
        "語ごとに H 個の結果が横に並ぶように、H を T の後ろに戻してからつなぎます。",
        (JOIN, "joined = (weights @ v).reshape(x.shape)"),
    ),
    wrong(
        "no-output-map",
        "W^O を掛けていません。つないだだけでは、ヘッドの結果が混ざりません。",
        (MIXED, "return joined, weights"),
    ),
    wrong(
        "output-transposed",
        "W^O を転置して掛けています。この本では、行ベクトルに右から掛けます。",
        (MIXED, "return joined @ w_o.mT, weights"),
    ),
    wrong(
        "mask-ignored",
        "mask が渡されているのに、重みに反映されていません。",
        (HEAD_FILL, "pass"),
    ),
    wrong(
        "mask-inverted",
        "mask の意味が逆です。この本では True が「見てよい」です。",
        (HEAD_FILL, HEAD_FILL.replace("~mask", "mask")),
    ),
    wrong(
        "mask-first-head",
        "マスクがヘッド 0 にしか効いていません。どのヘッドも同じマスクを使います。",
        (
            HEAD_FILL,
            "first = torch.arange(n_heads).reshape(-1, 1, 1) == 0\n"
            "        hidden = first & ~mask.unsqueeze(-3)\n"
            "        scores = scores.masked_fill(hidden, -math.inf)",
        ),
    ),
    wrong(
        "mask-on-heads",
        "文ごとのマスクの先頭の次元が、ヘッドの次元と重なっています。"
        "ヘッドの次元の分だけ、mask.unsqueeze(-3) で軸を足します。",
        (HEAD_FILL, HEAD_FILL.replace(".unsqueeze(-3)", "")),
    ),
    wrong(
        "nan-row",
        "見てよい位置が一つもない行が NaN になっています。"
        "計算する前に調べて、ValueError を出します。",
        (HEAD_REFUSE, ""),
    ),
    wrong(
        "parts-before-mixing",
        "W^O を掛ける前の、ヘッドの結果（d_k 次元）を返しています。"
        "出力への寄与は、W^O の自分の行を掛けた D 次元のベクトルです。",
        (PART, "return heads"),
    ),
    wrong(
        "parts-columns",
        "W^O を列で分けています。つないだものの j 番目の塊に掛かるのは、W^O の行の塊です。",
        (PART, "return heads @ w_o.unflatten(1, (n_heads, -1)).movedim(1, 0).mT"),
    ),
    wrong(
        "parts-averaged",
        "H で割っています。ヘッドの寄与は平均ではなく、足すと出力になります。",
        (PART, PART + " / n_heads"),
    ),
    wrong(
        "parts-same-rows",
        "どのヘッドにも W^O の最初の行の塊を掛けています。行の塊はヘッドごとに違います。",
        (PART, "return heads @ w_o[: heads.shape[-1]]"),
    ),
    wrong(
        "answer-full-width",
        "どのヘッドも D 次元を丸ごと持つと数えています。D 次元を H 個で分け合います。",
        (THREE, "return 768, 768, 28311552"),
    ),
    wrong(
        "answer-wide-output",
        "つないだものを H × D 次元と数えています。つなぐのは、d_k 次元のもの H 個です。",
        (THREE, "return 64, 9216, 2359296"),
    ),
    wrong(
        "answer-one-head-out",
        "出力を、ヘッド一つの次元のままと考えています。"
        "H 個をつなぐと D 次元に戻り、W^O はそれを D 次元に写します。",
        (THREE, "return 64, 64, 2359296"),
    ),
    wrong(
        "answer-matrices-times-heads",
        "成分の数をヘッドの数だけ倍にしています。一つのヘッドの行列は (D, d_k) で、"
        "H 個を合わせて (D, D) です。",
        (THREE, "return 64, 768, 28311552"),
    ),
    wrong(
        "answer-no-output-map",
        "W^O の成分を数えていません。行列は四つあります。",
        (THREE, "return 64, 768, 1769472"),
    ),
)

HEADS_RIGHT = (
    Right(
        "loops",
        code="""
import math
import torch


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads != 0:
        raise ValueError("heads")
    return torch.stack(x.chunk(n_heads, dim=-1), dim=-3)


def one_head(x, w_q, w_k, w_v, mask):
    scores = (x @ w_q) @ (x @ w_k).transpose(-1, -2) / w_q.shape[1] ** 0.5
    if mask is not None:
        scores = torch.where(mask, scores, torch.tensor(float("-inf"), dtype=x.dtype))
    a = torch.softmax(scores, dim=-1)
    return a @ (x @ w_v), a


def multi_head(x, w_q, w_k, w_v, w_o, n_heads, mask=None):
    size, rest = divmod(x.shape[-1], n_heads)
    if rest:
        raise ValueError("heads")
    if mask is not None and (~mask).all(-1).any():
        raise ValueError("mask")
    outs, maps = [], []
    for j in range(n_heads):
        own = slice(j * size, (j + 1) * size)
        out, a = one_head(x, w_q[:, own], w_k[:, own], w_v[:, own], mask)
        outs.append(out)
        maps.append(a)
    return torch.cat(outs, dim=-1) @ w_o, torch.stack(maps, dim=-3)


def head_parts(x, w_q, w_k, w_v, w_o, n_heads):
    size = x.shape[-1] // n_heads
    parts = []
    for j in range(n_heads):
        own = slice(j * size, (j + 1) * size)
        parts.append(one_head(x, w_q[:, own], w_k[:, own], w_v[:, own], None)[0] @ w_o[own])
    return torch.stack(parts, dim=-3)


def answer_13_3():
    D, H = 768, 12
    return (D / H, float(D), 4 * D * D)
""",
    ),
    Right(
        "einsum",
        code="""
import torch


def split_heads(x, n_heads):
    *lead, T, D = x.shape
    if D % n_heads:
        raise ValueError(D)
    return x.reshape(*lead, T, n_heads, D // n_heads).movedim(-2, -3)


def multi_head(x, w_q, w_k, w_v, w_o, n_heads, mask=None):
    D = x.shape[-1]
    if D % n_heads:
        raise ValueError(D)
    q, k, v = (
        torch.einsum("...td,dhk->...htk", x, w.reshape(D, n_heads, -1)) for w in (w_q, w_k, w_v)
    )
    s = torch.einsum("...htk,...hsk->...hts", q, k) * (D / n_heads) ** -0.5
    if mask is not None:
        if mask.sum(-1).min() == 0:
            raise ValueError("mask")
        wall = torch.zeros(mask.shape, dtype=s.dtype).masked_fill(~mask, -torch.inf)
        s = s + wall[..., None, :, :]
    s = s - s.amax(-1, keepdim=True)
    a = s.exp() / s.exp().sum(-1, keepdim=True)
    return torch.einsum("...hts,...hsk,hkd->...td", a, v, w_o.reshape(n_heads, -1, D)), a


def head_parts(x, w_q, w_k, w_v, w_o, n_heads):
    D = x.shape[-1]
    out = []
    for j in range(n_heads):
        keep = torch.zeros(D, dtype=x.dtype)
        keep[j * D // n_heads : (j + 1) * D // n_heads] = 1
        out.append(multi_head(x, w_q, w_k, w_v, keep[:, None] * w_o, n_heads)[0])
    return torch.stack(out, dim=-3)


def answer_13_3():
    return [64, 768, 4 * 768**2]
""",
    ),
    Right(
        "views",
        edits=(
            (SPLIT, "x.view(*x.shape[:-1], n_heads, -1).permute(*range(x.ndim - 2), -2, -3, -1)"),
            (JOIN, "joined = torch.cat((weights @ v).unbind(-3), dim=-1)"),
            (
                PART,
                "w = w_o.view(n_heads, -1, len(w_o))\n"
                "    return torch.einsum('...htk,hkd->...htd', heads, w)",
            ),
        ),
    ),
)


# ── 13-4 ──


def _decode(scores, table, ids, masked):
    """位置を一つずつ。見てよい入力だけを並べて softmax を取る。"""
    if ids.ndim > 1:
        return torch.stack([_decode(scores, table, row, masked) for row in ids])
    rows = []
    for t in range(len(ids)):
        last = t + 1 if masked else len(ids)
        rows.append(_soft(scores[t, :last]) @ table[ids[:last]])
    return torch.stack(rows)


def _leak(scores, table, ids, j, masked):
    before, gaps = _decode(scores, table, ids, masked)[:j], []
    for other in range(table.shape[1]):
        changed = torch.tensor([*ids[:j].tolist(), other, *ids[j + 1 :].tolist()])
        gaps.append((_decode(scores, table, changed, masked)[:j] - before).abs().max())
    return float(max(gaps))


def _pass(scores, table, inputs, targets, mask):
    """損失と、二つの表の勾配を手で。"""
    n, v = targets.shape[1], table.shape[1]
    own = np.where(mask, scores[:n, :n], -np.inf)
    alpha = np.exp(own - own.max(1, keepdims=True))
    alpha /= alpha.sum(1, keepdims=True)
    values = table[inputs]
    z = np.einsum("ts,bsv->btv", alpha, values)
    log_p = z - z.max(-1, keepdims=True)
    log_p -= np.log(np.exp(log_p).sum(-1, keepdims=True))
    truth = np.eye(v)[targets]
    at_z = (np.exp(log_p) - truth) / targets.size
    at_alpha = np.einsum("btv,bsv->ts", at_z, values)
    at_scores = np.zeros_like(scores)
    at_scores[:n, :n] = alpha * (at_alpha - (alpha * at_alpha).sum(1, keepdims=True))
    at_table = np.zeros_like(table)
    np.add.at(at_table, inputs, np.einsum("ts,btv->bsv", alpha, at_z))
    return float(-(log_p * truth).sum() / targets.size), at_scores, at_table


def _train(scores, table, targets, masked, lr, steps):
    dtype = scores.dtype
    scores, table = scores.double().numpy().copy(), table.double().numpy().copy()
    targets = targets.numpy()
    n, v = targets.shape[1], table.shape[1]
    inputs = np.concatenate([np.full((len(targets), 1), v), targets[:, :-1]], 1)
    mask = np.tril(np.ones((n, n), bool)) if masked else np.ones((n, n), bool)
    for _ in range(steps):
        _, at_scores, at_table = _pass(scores, table, inputs, targets, mask)
        scores, table = scores - lr * at_scores, table - lr * at_table
    loss = _pass(scores, table, inputs, targets, mask)[0]
    return torch.from_numpy(scores).to(dtype), torch.from_numpy(table).to(dtype), loss


def _write(scores, table, prefix, length, masked):
    ids = prefix.tolist()
    for n in range(len(ids), length):
        seen = torch.tensor([table.shape[1], *ids])
        ids.append(int((_soft(scores[n, : n + 1]) @ table[seen]).argmax()))
    return torch.tensor(ids)


def _clock(draw: Draw, n: int, length: int, kinds: int, jump: float = 0.25) -> np.ndarray:
    """一つ進む数の列。確率 jump で、でたらめな数に跳ぶ。"""
    ids = draw.rng.integers(0, kinds, (n, length))
    for t in range(1, length):
        stay = draw.rng.random(n) >= jump
        ids[stay, t] = (ids[stay, t - 1] + 1) % kinds
    return ids


def _tables(draw: Draw, dtype: str = "float64", scale: float = 1.0) -> tuple:
    """(scores, table, T, V, B)。T < L で、大きさはすべて違う。"""
    t, v, b = (5, 3, 2) if draw.public else map(int, draw.rng.permutation((3, 5, 7)))
    size = t + 1 if draw.public else t + 2
    scores = draw.normal(size, size, dtype=dtype, scale=scale)
    return scores, draw.normal(v + 1, v, dtype=dtype), t, v, b


def _inputs(draw: Draw, v: int, *shape: int) -> np.ndarray:
    """先頭が <s> の入力。"""
    ids = draw.rng.integers(0, v, shape)
    ids[..., 0] = v
    return ids


def _decoder_calls(draw: Draw):
    def probe(label, masked, *lead, length=0, dtype="float64", scale=1.0, **options):
        scores, table, t, v, _ = _tables(draw, dtype, scale)
        extra = {"ids": _inputs(draw, v, *lead, length or t), "masked": masked}
        return Probe("decoder_logits", (scores, table), extra, label=label, **options)

    yield probe("マスクあり", True, repeat=True)
    yield probe("マスクなし", False)
    yield probe("マスクあり、文が二つ", True, 2)
    yield probe("マスクなし、float32", False, dtype="float32")
    yield probe("長さ 1", True, length=1)
    yield probe("スコアの絶対値がとても大きい", True, scale=3000.0)
    if not draw.public:
        yield probe("マスクなし、先頭に次元が二つある", False, 2, 3)
        yield probe("マスクあり、float32", True, 3, dtype="float32")


def _decoder_slopes(draw: Draw):
    scores, table, t, v, b = _tables(draw)
    extra = {"ids": _inputs(draw, v, b, t), "masked": True}
    label = "logits を二つの表で微分する"
    weight = draw.normal(b, t, v)
    yield Probe("decoder_logits", (scores, table), extra, label=label, cotangent=weight)


def _leaks(draw: Draw):
    given = corrected(draw, "13-4", "decoder_logits")

    def probe(label, masked, j, change=None, **options):
        scores, table, t, v, _ = _tables(draw)
        ids = _inputs(draw, v, t)
        j = j(t)
        if change:
            change(scores, table, ids, j)
        args = (scores, table, ids, j, masked)
        return Probe("leak", args, label=label, given=given, **options)

    def far(scores, table, ids, j):
        """一つ手前には漏れず、一つ進む数に取りかえても漏れない。"""
        scores[j - 1, j] = -9
        table[(ids[j] + 1) % table.shape[1]] = table[ids[j]] + 0.01

    def after(scores, table, ids, j):
        """位置 j 自身より、後ろの位置の方が大きく変わる。"""
        scores[j, j] = -9

    exact = {"tolerance": (0.0, 1e-15)}
    yield probe("マスクあり（ちょうど 0 のはず）", True, lambda t: t // 2, after, **exact)
    yield probe("マスクなし", False, lambda t: t // 2, repeat=True)
    yield probe("マスクなし、最後の位置を取りかえる", False, lambda t: t - 1, far)
    yield probe("マスクなし、位置 1 を取りかえる", False, lambda t: 1)
    if not draw.public:
        yield probe("マスクあり、位置 1 を取りかえる", True, lambda t: 1)
        yield probe("マスクあり、最後の位置", True, lambda t: t - 1)


def _trainings(draw: Draw):
    given = corrected(draw, "13-4", "decoder_logits")

    def probe(label, masked, lr, steps, many=0, dtype="float64", **options):
        scores, table, t, v, b = _tables(draw, dtype)
        targets = _clock(draw, many or b, t, v)
        args = (scores, table, targets, masked, lr, steps)
        return Probe("train_decoder", args, label=label, given=given, **options)

    yield probe("マスクあり、2 回", True, 0.5, 2, repeat=True)
    yield probe("マスクなし、3 回", False, 0.5, 3)
    yield probe("0 回（損失を測るだけ）", True, 0.5, 0)
    yield probe("マスクなし、大きな学習率で 6 回", False, 4.0, 6, tolerance=(1e-5, 1e-7))
    if not draw.public:
        yield probe("文が一つ", True, 1.0, 2, many=1)
        loose = {"tolerance": (1e-3, 1e-4)}
        yield probe("float32", True, 0.5, 2, dtype="float32", **loose)
        for masked in (True, False):
            label = f"多くの文を、大きな学習率で 6 回（マスク{'あり' if masked else 'なし'}）"
            yield probe(label, masked, 4.0, 6, many=11, tolerance=(1e-4, 1e-6))


def _writings(draw: Draw):
    given = corrected(draw, "13-4", "decoder_logits")

    def probe(label, masked, first, trained=False, **options):
        scores, table, t, v, _ = _tables(draw)
        if trained:
            data = torch.from_numpy(_clock(draw, 30, t, v))
            pair = (torch.from_numpy(w) / 10 for w in (scores, table))
            scores, table = (w.numpy() for w in _train(*pair, data, masked, 8.0, 60)[:2])
        prefix = draw.rng.integers(0, v, first)
        args = (scores, 2 * table, prefix, t, masked)
        return Probe("write_on", args, label=label, given=given, **options)

    yield probe("学習していない表、マスクあり", True, 1, repeat=True)
    yield probe("学習していない表、マスクなし", False, 2)
    yield probe("何も書いていないところから", True, 0)
    yield probe("二つの数に続けて、マスクあり", True, 2)
    if not draw.public:
        yield probe("学習した表、マスクあり", True, 1, trained=True)
        yield probe("学習した表、マスクなし", False, 1, trained=True)
        for _ in range(4):
            yield probe("学習していない表で、もう一度", False, 1)


SOFTMAX = "return own.softmax(dim=-1) @ table[ids]"
CORNER = "own = scores[:n, :n]"
PAST = "past = torch.ones(n, n, dtype=torch.bool).tril()"
HIDE = "own = own.masked_fill(~past, -math.inf)"
WORST = "worst = max(worst, gap[:j].abs().max().item())"
FIRST = "bos = torch.full_like(targets[:, :1], table.shape[1])"
SHIFT = "inputs = torch.cat([bos, targets[:, :-1]], dim=1)"
LOSS_OF = "logits = decoder_logits(*pair, inputs, masked)"
DESCEND = "pair = [w.detach() - lr * g for w, g in zip(pair, slopes)]"
TRAINED = "return *pair, loss_of(pair).item()"
SEEN = "seen = torch.tensor(ids)"
NEXT = "ids.append(logits[-1].argmax().item())"
WRITTEN = "return torch.tensor(ids[1:])"
CHOICE = 'return "ウ"'

LEAK_WRONG = (
    wrong(
        "mask-strict",
        "自分自身まで隠しています。位置 t の入力は一つ前の数で、答えではないので、見てよいのです。"
        "位置 0 では見てよい所がなくなります。",
        (PAST, PAST.replace("tril()", "tril(-1)")),
    ),
    wrong(
        "mask-inverted",
        "マスクの向きが逆です。隠すのは、自分より後ろ（s > t）です。",
        (PAST, PAST.replace("tril()", "triu()")),
    ),
    wrong(
        "mask-never",
        "masked が真でも、後ろを隠していません。",
        ("    if masked:\n        past", "    if False:\n        past"),
    ),
    wrong(
        "mask-always",
        "masked が偽でも、後ろを隠しています。マスクなしでは全部を見ます。",
        ("    if masked:\n        past", "    if True:\n        past"),
    ),
    wrong(
        "mask-after-softmax",
        "softmax のあとで重みを 0 にしているので、見てよい所の重みの和が 1 になりません。"
        "softmax の前に、スコアを −∞ にします。",
        (HIDE, "own = own.softmax(dim=-1) * past\n        return own @ table[ids]"),
    ),
    wrong(
        "mask-zero",
        "隠す所のスコアを 0 にしています。スコアが 0 でも exp(0) = 1 なので、"
        "重みは 0 になりません。−∞ にします。",
        (HIDE, "own = own.masked_fill(~past, 0.0)"),
    ),
    wrong(
        "softmax-columns",
        "softmax の向きが逆です。位置 t ごとに、見る相手 s について足して 1 になるようにします。",
        (SOFTMAX, SOFTMAX.replace("dim=-1", "dim=-2")),
        (HIDE, "own = own.masked_fill(~past, -1e30)"),
    ),
    wrong(
        "last-corner",
        "スコアの表の右下を使っています。入力は位置 0 から始まるので、左上の (T, T) を使います。",
        (CORNER, "own = scores[len(scores) - n :, len(scores) - n :]"),
    ),
    wrong(
        "overflow",
        "大きなスコアで exp があふれて NaN になっています。"
        "行ごとに最大値を引いてから exp を取るか、torch の softmax を使います。",
        (SOFTMAX, "e = own.exp()\n    return e / e.sum(-1, keepdim=True) @ table[ids]"),
    ),
    wrong(
        "no-mixing",
        "その位置の入力のバリューだけを返しています。ほかの位置のバリューを、重みで混ぜます。",
        (SOFTMAX, "return table[ids] + 0 * own.nan_to_num(neginf=0).sum()"),
    ),
    wrong(
        "probabilities",
        "softmax を二度取って、確率を返しています。返すのは logits です。",
        (SOFTMAX, "return (own.softmax(dim=-1) @ table[ids]).softmax(dim=-1)"),
    ),
    wrong(
        "leak-own-position",
        "取りかえた位置 j 自身の変化も数えています。位置 j の出力が変わるのは当たり前で、"
        "漏れではありません。見るのは j より前だけです。",
        (WORST, WORST.replace("gap[:j]", "gap[: j + 1]")),
    ),
    wrong(
        "leak-everywhere",
        "すべての位置の変化を数えています。j から後ろが変わるのは正しい動きです。"
        "漏れは、j より前の変化です。",
        (WORST, WORST.replace("gap[:j]", "gap")),
    ),
    wrong(
        "leak-neighbour-only",
        "一つ手前の位置だけを見ています。漏れは、j より前のどの位置にも起こりえます。",
        (WORST, WORST.replace("gap[:j]", "gap[j - 1]")),
    ),
    wrong(
        "leak-mean",
        "変化の平均を返しています。最大を返します。",
        (WORST, WORST.replace("abs().max()", "abs().mean()")),
    ),
    wrong(
        "leak-one-change",
        "一通りの取りかえ方しか試していません。ほかの数のすべてに取りかえて、最大を取ります。",
        ("for other in range(table.shape[1]):", "for other in [(ids[j] + 1) % table.shape[1]]:"),
    ),
    wrong(
        "leak-overwrites",
        "渡された ids を書きかえています。写し（clone）を作ってから取りかえます。",
        ("changed = ids.clone()", "changed = ids"),
    ),
    wrong(
        "not-shifted",
        "正解を、ずらさずにそのまま入力にしています。これでは位置 t の入力が位置 t の答えです。"
        "一つ右へずらし、先頭に `<s>` を置きます。",
        (SHIFT, "inputs = targets"),
    ),
    wrong(
        "shifted-left",
        "正解を左へずらしています。入力は一つ前の数なので、右へずらします。",
        (SHIFT, "inputs = torch.cat([targets[:, 1:], bos], dim=1)"),
    ),
    wrong(
        "no-bos",
        "先頭の入力が `<s>`（番号 V）ではなく、番号 0 になっています。",
        (FIRST, "bos = torch.zeros_like(targets[:, :1])"),
    ),
    wrong(
        "trains-masked",
        "学習で masked を使わず、いつもマスクをかけています。",
        (LOSS_OF, LOSS_OF.replace("masked", "True")),
    ),
    wrong(
        "ascent",
        "勾配の向きに動かしています。損失を小さくするには、勾配を引きます。",
        (DESCEND, DESCEND.replace("- lr", "+ lr")),
    ),
    wrong(
        "scores-frozen",
        "スコアの表を動かしていません。二つの表を同時に動かします。",
        (DESCEND, "pair = [pair[0].detach(), pair[1].detach() - lr * slopes[1]]"),
    ),
    wrong(
        "table-frozen",
        "表 U を動かしていません。二つの表を同時に動かします。",
        (DESCEND, "pair = [pair[0].detach() - lr * slopes[0], pair[1].detach()]"),
    ),
    wrong(
        "sum-of-losses",
        "損失を合計しています。すべての文のすべての位置の平均にします。",
        (
            "logits.flatten(0, 1), targets.flatten()\n",
            'logits.flatten(0, 1), targets.flatten(), reduction="sum"\n',
        ),
    ),
    wrong(
        "last-position",
        "最後の位置の損失しか数えていません。すべての位置で、次の数を当てます。",
        ("logits.flatten(0, 1), targets.flatten()\n", "logits[:, -1], targets[:, -1]\n"),
    ),
    wrong(
        "loss-before-update",
        "最後の更新の前の損失を返しています。更新した表で測り直します。",
        (DESCEND, f"old, {DESCEND.replace('pair = [', 'pair = pair, [')}"),
        (TRAINED, "return *pair, loss_of(old if steps else pair).item()"),
    ),
    wrong(
        "writes-without-bos",
        "書くときの入力に `<s>` がありません。学習のときと同じに、先頭に置きます。",
        (SEEN, "seen = torch.tensor(ids[1:] or ids)"),
    ),
    wrong(
        "forgets",
        "最後の数だけを入力にしています。それまでに書いた数を全部入れます。",
        (SEEN, "seen = torch.tensor(ids[-1:])"),
    ),
    wrong(
        "writes-at-once",
        "一度の計算で全部を書いています。後の位置の入力には、前に書いた数が要るので、"
        "一つ書くたびに計算し直します。",
        (
            "ids = [table.shape[1], *prefix.tolist()]\n",
            "ids = [table.shape[1], *prefix.tolist()]\n"
            "    fixed = torch.tensor(ids + [0] * (length - len(ids) + 1))[:length]\n",
        ),
        (SEEN, "seen = fixed"),
        (NEXT, "ids.append(logits[len(ids) - 1].argmax().item())"),
    ),
    wrong(
        "reads-first-position",
        "位置 0 の logits から選んでいます。次の数を当てているのは、最後の位置です。",
        (NEXT, NEXT.replace("-1", "0")),
    ),
    wrong(
        "new-ones-only",
        "新しく書いた数だけを返しています。prefix も含めて length 個を返します。",
        (WRITTEN, "return torch.tensor(ids[1 + len(prefix) :], dtype=torch.int64)"),
    ),
    wrong(
        "answer-cannot-train",
        "損失は下がります。正解が右隣の入力にあるので、むしろ簡単すぎる問題になります。",
        (CHOICE, 'return "ア"'),
    ),
    wrong(
        "answer-only-slower",
        "遅くはなりません。書き写すことを覚えるので、別のモデルになります。"
        "比べるセルの損失と、書いたものを見てください。",
        (CHOICE, 'return "イ"'),
    ),
    wrong(
        "answer-no-difference",
        "生成のときに先の入力がないのは、そのとおりです。だからこそ、先の入力を見て当てる練習しか"
        "していないデコーダは、生成のときに困ります。",
        (CHOICE, 'return "エ"'),
    ),
    wrong(
        "answer-lower-is-better",
        "損失の小ささを、よさと取り違えています。答えの見える試験の点は、書く力を表しません。",
        (CHOICE, 'return "オ"'),
    ),
)

LEAK_RIGHT = (
    Right(
        "loops",
        code="""
import torch


def decoder_logits(scores, table, ids, masked):
    if ids.ndim > 1:
        return torch.stack([decoder_logits(scores, table, row, masked) for row in ids])
    out = []
    for t in range(len(ids)):
        seen = range(t + 1) if masked else range(len(ids))
        weights = torch.softmax(torch.stack([scores[t, s] for s in seen]), 0)
        out.append(sum(w * table[ids[s]] for w, s in zip(weights, seen)))
    return torch.stack(out)


def leak(scores, table, ids, j, masked):
    V = table.shape[1]
    old = decoder_logits(scores, table, ids, masked)[:j]
    copies = ids.repeat(V, 1)
    copies[:, j] = torch.arange(V)
    new = decoder_logits(scores, table, copies, masked)[:, :j]
    return (new - old).abs().max()


def train_decoder(scores, table, targets, masked, lr, steps):
    S = scores.clone().requires_grad_()
    U = table.clone().requires_grad_()
    opt = torch.optim.SGD([S, U], lr=lr)
    B, T = targets.shape
    x = torch.full((B, T), table.shape[1])
    x[:, 1:] = targets[:, :-1]

    def loss():
        log_p = decoder_logits(S, U, x, masked).log_softmax(-1)
        return -log_p.gather(-1, targets.unsqueeze(-1)).mean()

    for _ in range(steps):
        opt.zero_grad()
        loss().backward()
        opt.step()
    return S, U, loss()


def write_on(scores, table, prefix, length, masked):
    x = torch.cat([torch.tensor([table.shape[1]]), prefix])
    for _ in range(length - len(prefix)):
        x = torch.cat([x, decoder_logits(scores, table, x, masked)[-1:].argmax(-1)])
    return x[1:]


def answer_13_4():
    return "ウ"
""",
    ),
    Right(
        "by-hand",
        code="""
import math
import torch


def weights(scores, n, masked):
    own = scores[:n, :n]
    if masked:
        own = own + torch.full((n, n), -math.inf, dtype=own.dtype).triu(1)
    own = own - own.amax(-1, keepdim=True)
    return own.exp() / own.exp().sum(-1, keepdim=True)


def decoder_logits(scores, table, ids, masked):
    return torch.einsum("ts,...sv->...tv", weights(scores, ids.shape[-1], masked), table[ids])


def leak(scores, table, ids, j, masked):
    n = len(ids)
    a = weights(scores, n, masked)[:j, j]
    moves = (table[:-1] - table[ids[j]]).abs().max()
    return (a.max() * moves).item()


def train_decoder(scores, table, targets, masked, lr, steps):
    S, U = scores.clone(), table.clone()
    B, T = targets.shape
    V = U.shape[1]
    x = torch.cat([torch.full((B, 1), V), targets[:, :-1]], 1)
    y = torch.eye(V, dtype=U.dtype)[targets]
    hot = torch.eye(V + 1, dtype=U.dtype)[x]

    for step in range(steps + 1):
        a = weights(S, T, masked)
        z = a @ U[x]
        p = z.softmax(-1)
        loss = -(z.log_softmax(-1) * y).sum(-1).mean().item()
        if step == steps:
            return S, U, loss
        d = (p - y) / (B * T)
        da = torch.einsum("btv,bsv->ts", d, U[x])
        dS = torch.zeros_like(S)
        dS[:T, :T] = a * (da - (a * da).sum(1, keepdim=True))
        dU = torch.einsum("bsw,ts,btv->wv", hot, a, d)
        S, U = S - lr * dS, U - lr * dU


def write_on(scores, table, prefix, length, masked):
    out = prefix.tolist()
    while len(out) < length:
        x = torch.tensor([table.shape[1]] + out)
        z = weights(scores, len(x), masked)[-1] @ table[x]
        out.append(int(z.argmax()))
    return torch.tensor(out)


def answer_13_4():
    return "ウ"
""",
    ),
    Right(
        "one-hot",
        edits=(
            (PAST, "past = torch.arange(n)[:, None] >= torch.arange(n)"),
            (
                SOFTMAX,
                "hot = torch.nn.functional.one_hot(ids, len(table)).to(table.dtype)\n"
                "    return own.softmax(dim=-1) @ hot @ table",
            ),
            (SHIFT, "inputs = targets.roll(1, dims=1)\n    inputs[:, :1] = bos"),
            (WRITTEN, "return torch.as_tensor(ids[1:], dtype=torch.long)"),
        ),
    ),
)


# ── 13-5 ──


def _cross(states, memory, w_q, w_k, w_v, mask=None):
    keys = torch.einsum("...se,ek->...sk", memory, w_k)
    scores = torch.einsum("...tk,...sk->...ts", states @ w_q, keys) / w_k.shape[1] ** 0.5
    weights = _soft(scores, mask)
    return torch.einsum("...ts,...se,ev->...tv", weights, memory, w_v), weights


def _additive(states, memory, w_1, w_2, v):
    """キーを一つずつ。"""
    query, keys = states @ w_1, (memory @ w_2).unbind(-2)
    scores = torch.stack([(torch.tanh(query + k.unsqueeze(-2)) * v).sum(-1) for k in keys], -1)
    weights = _soft(scores)
    return torch.einsum("...ts,...se->...te", weights, memory), weights


def _query_weight(w):
    return w * w.shape[1] ** 0.5


def _six(draw: Draw) -> tuple[int, ...]:
    """(T, S, D, E, K, V)。すべて違う。"""
    return (3, 4, 5, 2, 6, 7) if draw.public else draw.sizes(6)


def _cross_args(draw: Draw, *lead: int, dtype="float64", scale=1.0, target=0, source_length=0):
    t, s, d, e, k, v = _six(draw)
    return (
        draw.normal(*lead, target or t, d, dtype=dtype),
        draw.normal(*lead, source_length or s, e, dtype=dtype),
        draw.normal(d, k, dtype=dtype, scale=scale / math.sqrt(d)),
        draw.normal(e, k, dtype=dtype, scale=1 / math.sqrt(e)),
        draw.normal(e, v, dtype=dtype),
    )


def _crossings(draw: Draw):
    def probe(label, args, mask=None, **options):
        extra = {} if mask is None else {"mask": mask}
        return Probe("cross_attention", args, extra, label=label, **options)

    args = _cross_args(draw)
    t, s = len(args[0]), len(args[1])
    yield probe("二次元の入力", args, repeat=True)
    yield probe("float32", _cross_args(draw, dtype="float32"))
    yield probe("先頭に次元が一つある", _cross_args(draw, 2))
    yield probe("スコアの絶対値がとても大きい", _cross_args(draw, scale=900.0))
    yield probe("デコーダの位置が一つ", _cross_args(draw, target=1))
    yield probe("エンコーダの位置が一つ", _cross_args(draw, source_length=1))
    yield probe("行ごとに違うマスク", args, draw.mask(t, s))
    batch = _cross_args(draw, 2)
    yield probe("パディングマスク（…, 1, S）", batch, draw.mask(2, 1, batch[1].shape[-2]))
    if not draw.public:
        yield probe("先頭に次元が二つある", _cross_args(draw, 3, 2))
    mask = draw.mask(t, s)
    mask[draw.integer(0, t)] = False
    yield probe("見てよい位置が一つもない行がある", args, mask)


def _cross_slopes(draw: Draw):
    args = _cross_args(draw, 2)
    weight = draw.normal(*args[0].shape[:-1], args[4].shape[1])
    label = "文脈ベクトルを五つの引数で微分する"
    yield Probe("cross_attention", args, label=label, cotangent=weight)


def _additions(draw: Draw):
    def probe(label, *lead, dtype="float64", scale=1.0, target=0, source_length=0, **options):
        t, s, d, e, a, _ = _six(draw)
        args = (
            draw.normal(*lead, target or t, d, dtype=dtype),
            draw.normal(*lead, source_length or s, e, dtype=dtype),
            draw.normal(d, a, dtype=dtype, scale=scale / math.sqrt(d)),
            draw.normal(e, a, dtype=dtype, scale=scale / math.sqrt(e)),
            draw.normal(a, dtype=dtype),
        )
        return Probe("additive_attention", args, label=label, **options)

    yield probe("二次元の入力", repeat=True)
    yield probe("float32", dtype="float32")
    yield probe("先頭に次元が一つある", 2)
    yield probe("デコーダの位置が一つ", target=1)
    yield probe("エンコーダの位置が一つ", source_length=1)
    if not draw.public:
        yield probe("先頭に次元が二つある", 3, 2)
        yield probe("tanh が飽和する大きさ", scale=30.0)


def _query_weights(draw: Draw):
    _, _, d, e, _, _ = _six(draw)
    yield Probe("query_weight", (draw.normal(d, e),), label="D と E が違う w", repeat=True)
    yield Probe("query_weight", (np.eye(4),), label="単位行列（内積スコア）")
    if not draw.public:
        yield Probe("query_weight", (draw.normal(e, d, dtype="float32"),), label="float32 の w")
        yield Probe("query_weight", (draw.normal(d, 1),), label="E が 1")


ROLE_LINE = "q, k, v = states @ w_q, memory @ w_k, memory @ w_v"
CROSS_SCORES = """scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:"""
CROSS_FILL = "scores = scores.masked_fill(~mask, -math.inf)"
CROSS_SOFT = """        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
"""
CROSS_BACK = "return weights @ v, weights"
ADDED = "scores = torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ v"
ADDITIVE_SOFT = f"{ADDED}\n    weights = scores.softmax(dim=-1)"
ADDITIVE_BACK = "return weights @ memory, weights"
ROOTED = "return w * math.sqrt(w.shape[1])"
ROLES_ARE = 'return "ア", "イ", "イ"'

CROSS_WRONG = (
    wrong(
        "keys-from-states",
        "キーとバリューをデコーダの状態から作っています。それは Self-Attention です。"
        "Cross-Attention のキーとバリューは、エンコーダの状態 memory から作ります。",
        (
            ROLE_LINE,
            "n = min(len(w_v), states.shape[-1])\n"
            "    v = states[..., :n] @ w_v[:n]\n"
            "    q, k = states @ w_q, states[..., :n] @ w_k[:n]",
        ),
    ),
    wrong(
        "roles-exchanged",
        "エンコーダがデコーダを見ています。問い合わせる（クエリを出す）のはデコーダです。",
        (ROLE_LINE, "q, k, v = memory @ w_k, states @ w_q, memory @ w_v"),
        (CROSS_BACK, "return weights.mT @ v, weights.mT"),
    ),
    wrong(
        "value-not-projected",
        "バリューに w_v を掛けていません。平均するのは memory @ w_v です。",
        (ROLE_LINE, ROLE_LINE.replace("memory @ w_v", "memory")),
    ),
    wrong(
        "value-is-key",
        "キーを平均しています。どこを見るかはキーで決め、取り出すのはバリューです。",
        (ROLE_LINE, ROLE_LINE.replace("memory @ w_v", "memory @ w_k")),
    ),
    wrong(
        "no-scale",
        "スコアを √d_k で割っていません。割らないのは、第 12 週の内積スコアです。",
        (CROSS_SCORES, CROSS_SCORES.replace(" / math.sqrt(q.shape[-1])", "")),
    ),
    wrong(
        "scale-states",
        "デコーダの状態の次元 D の平方根で割っています。"
        "割るのは、射影したあとの次元 d_k の平方根です。",
        (CROSS_SCORES, CROSS_SCORES.replace("q.shape[-1]", "states.shape[-1]")),
    ),
    wrong(
        "scale-memory",
        "エンコーダの長さの平方根で割っています。割るのは、クエリとキーの次元 d_k の平方根です。",
        (CROSS_SCORES, CROSS_SCORES.replace("q.shape[-1]", "k.shape[-2]")),
    ),
    wrong(
        "softmax-states",
        "softmax をデコーダの位置について取っています。"
        "デコーダの位置ごとに、エンコーダの位置について足して 1 にします。",
        (CROSS_SOFT, CROSS_SOFT.replace("dim=-1", "dim=-2")),
    ),
    wrong(
        "weights-transposed",
        "注意の重みの行と列が逆です。行がデコーダ、列がエンコーダです。",
        (CROSS_BACK, "return weights @ v, weights.mT"),
    ),
    wrong(
        "swapped-outputs",
        "返り値の順が逆です。文脈ベクトル、注意の重みの順に返します。",
        (CROSS_BACK, "return weights, weights @ v"),
    ),
    wrong(
        "mask-ignored",
        "mask が渡されているのに、重みに反映されていません。",
        (CROSS_FILL, "pass"),
    ),
    wrong(
        "mask-inverted",
        "mask の意味が逆です。この本では True が「見てよい」です。",
        (CROSS_FILL, CROSS_FILL.replace("~mask", "mask")),
    ),
    wrong(
        "mask-zero-score",
        "見てはいけない位置のスコアを 0 にしています。スコアが 0 でも exp(0) = 1 なので、"
        "重みは 0 になりません。−∞ にします。",
        (CROSS_FILL, "scores = scores.masked_fill(~mask, 0.0)"),
    ),
    wrong(
        "nan-row",
        "見てよい位置が一つもない行が NaN になっています。"
        "計算する前に調べて、ValueError を出します。",
        ("if not mask.any(dim=-1).all():", "if False:"),
    ),
    wrong(
        "additive-value",
        "射影したキー h W_2 を平均しています。第 12 週の文脈ベクトルは、h_i そのものの平均です。",
        (ADDITIVE_BACK, "return weights @ key, weights"),
    ),
    wrong(
        "additive-linear",
        "tanh がありません。tanh を外すと、クエリの項はどの i にも同じだけ足され、"
        "重みがデコーダの状態に依らなくなります。",
        (ADDED, "scores = (query.unsqueeze(-2) + key.unsqueeze(-3)) @ v"),
    ),
    wrong(
        "additive-separate",
        "二つの項に別々に tanh を掛けています。足してから tanh に通します。",
        (ADDED, "scores = (torch.tanh(query).unsqueeze(-2) + torch.tanh(key).unsqueeze(-3)) @ v"),
    ),
    wrong(
        "additive-product",
        "足さずに掛けています。加法スコアでは、二つの射影を足します。",
        (ADDED, ADDED.replace("+ key", "* key")),
    ),
    wrong(
        "additive-unweighted",
        "v を使わずに、成分を足しています。v との内積を取ります。",
        (ADDED, "scores = torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)).sum(-1)"),
    ),
    wrong(
        "additive-scaled",
        "加法スコアまで平方根で割っています。加法スコアに割り算はありません。",
        (ADDED, ADDED + " / math.sqrt(len(v))"),
    ),
    wrong(
        "additive-axes",
        "softmax をデコーダの位置について取っています。足して 1 になるのは、"
        "エンコーダの位置 i についてです。加法スコアでも同じです。",
        (ADDITIVE_SOFT, ADDITIVE_SOFT.replace("dim=-1", "dim=-2")),
    ),
    wrong(
        "root-missing",
        "√d_k の割り算を打ち消していません。"
        "そのままでは、スコアが小さくなり、重みが平らになります。",
        (ROOTED, "return w.clone()"),
    ),
    wrong(
        "root-twice",
        "打ち消すところを、もう一度割っています。割り算は cross_attention の中で一度行われます。",
        (ROOTED, ROOTED.replace("*", "/")),
    ),
    wrong(
        "root-of-states",
        "デコーダの次元 D の平方根を掛けています。W^K が単位行列なので、d_k は E です。",
        (ROOTED, ROOTED.replace("shape[1]", "shape[0]")),
    ),
    wrong(
        "root-not-taken",
        "平方根を取らずに d_k を掛けています。",
        (ROOTED, "return w * float(w.shape[1])"),
    ),
    wrong(
        "weight-transposed",
        "w を転置しています。w_q の形は (D, K) で、ここでは K = E なので、w と同じ向きです。",
        (ROOTED, "return w.mT * math.sqrt(w.shape[1])"),
    ),
    wrong(
        "answer-keys-from-decoder",
        "キーをデコーダの状態としています。クエリと照らし合わせる相手は、エンコーダの状態です。",
        (ROLES_ARE, 'return "ア", "ア", "イ"'),
    ),
    wrong(
        "answer-value-is-context",
        "バリューを c_t としています。c_t は、バリューを重みで平均した結果です。",
        (ROLES_ARE, 'return "ア", "イ", "ウ"'),
    ),
    wrong(
        "answer-exchanged",
        "向きが逆です。見に行くのはデコーダで、見られるのがエンコーダです。",
        (ROLES_ARE, 'return "イ", "ア", "ア"'),
    ),
    wrong(
        "answer-value-is-weight",
        "バリューを α としています。α は、クエリとキーから計算した重みです。",
        (ROLES_ARE, 'return "ア", "イ", "エ"'),
    ),
    wrong(
        "answer-self-attention",
        "三つともエンコーダの状態としています。それは、エンコーダの中の Self-Attention です。",
        (ROLES_ARE, 'return "イ", "イ", "イ"'),
    ),
)

CROSS_RIGHT = (
    Right(
        "loops",
        code="""
import math
import torch


def mix(scores, values):
    top = max(s.item() for s in scores)
    parts = [torch.exp(s - top) for s in scores]
    total = sum(parts)
    return sum(p * v for p, v in zip(parts, values)) / total, torch.stack(parts) / total


def apart(function, states, memory, *rest):
    made = [function(a, b, *rest) for a, b in zip(states, memory)]
    return torch.stack([m[0] for m in made]), torch.stack([m[1] for m in made])


def cross_attention(states, memory, w_q, w_k, w_v, mask=None):
    if mask is not None:
        mask = mask.expand(*states.shape[:-1], memory.shape[-2])
    if states.ndim > 2:
        made = [
            cross_attention(states[i], memory[i], w_q, w_k, w_v, None if mask is None else mask[i])
            for i in range(len(states))
        ]
        return torch.stack([m[0] for m in made]), torch.stack([m[1] for m in made])
    rows = []
    for t in range(len(states)):
        keep = [i for i in range(len(memory)) if mask is None or mask[t, i]]
        if not keep:
            raise ValueError("見てよい位置がありません")
        q = states[t] @ w_q
        scores = [q @ (memory[i] @ w_k) / math.sqrt(len(q)) for i in keep]
        context, some = mix(scores, [memory[i] @ w_v for i in keep])
        full = torch.zeros(len(memory), dtype=q.dtype).index_put((torch.tensor(keep),), some)
        rows.append((context, full))
    return torch.stack([r[0] for r in rows]), torch.stack([r[1] for r in rows])


def additive_attention(states, memory, w_1, w_2, v):
    if states.ndim > 2:
        return apart(additive_attention, states, memory, w_1, w_2, v)
    rows = [
        mix([v @ torch.tanh(h_t @ w_1 + h @ w_2) for h in memory], list(memory)) for h_t in states
    ]
    return torch.stack([r[0] for r in rows]), torch.stack([r[1] for r in rows])


def query_weight(w):
    return torch.stack([row * len(row) ** 0.5 for row in w])


def answer_13_5():
    return ["ア", "イ", "イ"]
""",
    ),
    Right(
        "one-matrix",
        code="""
import torch


def soft(e):
    return torch.exp(e - torch.logsumexp(e, dim=-1, keepdim=True))


def cross_attention(states, memory, w_q, w_k, w_v, mask=None):
    e = torch.einsum("...td,dk,ek,...se->...ts", states, w_q, w_k, memory) * w_q.shape[1] ** -0.5
    if mask is not None:
        if (mask.long().sum(-1) == 0).any():
            raise ValueError("mask")
        e = torch.where(mask, e, torch.tensor(float("-inf"), dtype=e.dtype))
    a = soft(e)
    return (a @ memory) @ w_v, a


def additive_attention(states, memory, w_1, w_2, v):
    q = (states @ w_1)[..., :, None, :]
    k = (memory @ w_2)[..., None, :, :]
    a = soft(((q + k).tanh() * v).sum(dim=-1))
    return torch.einsum("...ts,...se->...te", a, memory), a


def query_weight(w):
    D, E = w.shape
    return w / torch.tensor(1 / E, dtype=w.dtype).sqrt()


def answer_13_5():
    return ("ア", "イ", "イ")
""",
    ),
    Right(
        "small-changes",
        edits=(
            (CROSS_BACK, "return torch.einsum('...ts,...sv->...tv', weights, v), weights"),
            (CROSS_FILL, "scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)"),
            (ROOTED, "return w @ (torch.eye(w.shape[1], dtype=w.dtype) * math.sqrt(w.shape[1]))"),
        ),
    ),
)


# ── 13-6 ──


def _ffn(x, w_1, b_1, w_2, b_2):
    """位置を一つずつ。負の成分の行を落とす。"""
    if x.ndim > 1:
        return torch.stack([_ffn(row, w_1, b_1, w_2, b_2) for row in x])
    inner = b_1 + (x.unsqueeze(-1) * w_1).sum(0)
    return b_2 + (torch.where(inner > 0, inner, 0).unsqueeze(-1) * w_2).sum(0)


def _rnn(x, w_x, w_h, b):
    if x.ndim > 2:
        return torch.stack([_rnn(each, w_x, w_h, b) for each in x])
    states = [torch.zeros(w_h.shape[0], dtype=x.dtype)]
    for word in x:
        states.append(torch.tanh(w_x.mT @ word + w_h.mT @ states[-1] + b))
    return torch.stack(states[1:])


def _ffn_influence(x, w_1, b_1, w_2, b_2):
    """閉じた式：対角だけにあり、W_1 と W_2 のうち、生きている成分の積。"""
    alive = (x @ w_1 + b_1 > 0).to(x.dtype)
    return torch.diag(torch.stack([((w_1 * on) @ w_2).norm() for on in alive]))


def _rnn_influence(x, w_x, w_h, b):
    """鎖の積：∂h_t/∂x_s は、s の一歩と、s+1 から t までの一歩の積。"""
    slopes = 1 - _rnn(x, w_x, w_h, b) ** 2
    table = torch.zeros(len(x), len(x), dtype=x.dtype)
    for s in range(len(x)):
        way = w_x * slopes[s]
        table[s, s] = way.norm()
        for t in range(s + 1, len(x)):
            way = way @ w_h * slopes[t]
            table[t, s] = way.norm()
    return table


def _lengths(draw: Draw, tables: bool) -> tuple[int, ...]:
    """三つの違う大きさ。表は要素ごとに逆伝播をくり返すので、系列のほかは小さくする。"""
    if draw.public:
        return 4, 2, 3
    sizes = [5, *draw.rng.permutation((2, 3))] if tables else draw.rng.permutation((3, 5, 7))
    return tuple(map(int, sizes))


def _layer(
    draw: Draw, *lead: int, dtype: str = "float64", length: int = 0, tables: bool = False
) -> tuple:
    """(x, w_1, b_1, w_2, b_2)。T、D、F はすべて違う。"""
    t, d, f = _lengths(draw, tables)
    shapes = ((*lead, length or t, d), (d, f), (f,), (f, d), (d,))
    return tuple(draw.normal(*shape, dtype=dtype) for shape in shapes)


def _chain(
    draw: Draw, *lead: int, dtype: str = "float64", length: int = 0, tables: bool = False
) -> tuple:
    """(x, w_x, w_h, b)。T、D、H はすべて違う。"""
    t, d, h = _lengths(draw, tables)
    x = draw.normal(*lead, length or t, d, dtype=dtype)
    w_x = draw.normal(d, h, dtype=dtype, scale=0.7 / math.sqrt(d))
    w_h = draw.normal(h, h, dtype=dtype, scale=1 / math.sqrt(h))
    return x, w_x, w_h, draw.normal(h, dtype=dtype)


def _network_probes(name: str, make, long: int):
    def probes(draw: Draw):
        yield Probe(name, make(draw), label="二次元の x", repeat=True)
        yield Probe(name, make(draw, dtype="float32"), label="float32 の x")
        yield Probe(name, make(draw, 2), label="先頭に次元が一つある x")
        yield Probe(name, make(draw, length=1), label="長さ 1 の系列")
        if not draw.public:
            yield Probe(name, make(draw, 2, 3), label="先頭に次元が二つある x")
            yield Probe(name, make(draw, length=long), label="長い系列")

    return probes


def _network_slopes(name: str, make):
    def probes(draw: Draw):
        args = make(draw, 2)
        weight = draw.normal(*args[0].shape[:-1], args[-1].shape[-1])
        yield Probe(name, args, label="出力を x と重みで微分する", cotangent=weight)

    return probes


def _influence_probes(name: str, of: str, make):
    def probes(draw: Draw):
        given = corrected(draw, "13-6", of)
        yield Probe(name, make(draw, tables=True), label="二次元の x", given=given)
        short = make(draw, length=1, tables=True)
        yield Probe(name, short, label="長さ 1 の系列", repeat=True, given=given)
        if not draw.public:
            single = make(draw, dtype="float32", tables=True)
            loose = (1e-3, 1e-5)
            yield Probe(name, single, label="float32 の x", tolerance=loose, given=given)

    return probes


WIDEN = "hidden = torch.relu(x @ w_1 + b_1)"
NARROW = "return hidden @ w_2 + b_2"
STEP = "state = torch.tanh(x[..., t, :] @ w_x + state @ w_h + b)"
ONWARD = "for t in range(x.shape[-2]):"
STATES = "return torch.stack(states, dim=-2)"
EACH = "return each.norm(dim=(1, 3))"
CHAIN = "return chain.norm(dim=(1, 3))"
COUNTS = "return 6, 1, 19"


def _both(change: str) -> tuple[tuple[str, str], ...]:
    """二つの表を同じように書きかえる。{} が (T, ·, T, ·) のヤコビ行列。"""
    pairs = ((EACH, "each"), (CHAIN, "chain"))
    return tuple((old, f"return {change.format(name)}") for old, name in pairs)


SHARING_WRONG = (
    wrong(
        "no-activation",
        "ReLU がありません。それでは、二つの行列を一つにまとめられます。",
        (WIDEN, "hidden = x @ w_1 + b_1"),
    ),
    wrong(
        "activation-last",
        "ReLU を最後に掛けています。掛けるのは、広げた後（W_1 の後）です。",
        (WIDEN, "hidden = x @ w_1 + b_1"),
        (NARROW, "return torch.relu(hidden @ w_2 + b_2)"),
    ),
    wrong(
        "activation-twice",
        "出力にも ReLU を掛けています。W_2 の後には、何も掛けません。",
        (NARROW, "return torch.relu(hidden @ w_2 + b_2)"),
    ),
    wrong(
        "other-activation",
        "ReLU ではなく tanh を使っています。",
        (WIDEN, WIDEN.replace("relu", "tanh")),
    ),
    wrong(
        "inner-bias-late",
        "b_1 を ReLU の後で足しています。ReLU に入れる前に足します。",
        (WIDEN, "hidden = torch.relu(x @ w_1) + b_1"),
    ),
    wrong(
        "outer-bias-missing",
        "b_2 を足していません。",
        (NARROW, "return hidden @ w_2 + 0 * b_2"),
    ),
    wrong(
        "residual-inside",
        "入力を足し戻しています。残差接続は FFN の外側にあります。",
        (NARROW, "return x + hidden @ w_2 + b_2"),
    ),
    wrong(
        "positions-mixed",
        "位置について平均したものを使っています。FFN は、ほかの位置を一切見ません。",
        (NARROW, "return hidden.mean(-2, keepdim=True) @ w_2 + b_2 + 0 * x"),
    ),
    wrong(
        "next-position",
        "となりの位置の入力まで足しています。FFN が見るのは、自分の位置だけです。",
        (WIDEN, "hidden = torch.relu((x + x.roll(1, dims=-2)) @ w_1 + b_1)"),
    ),
    wrong(
        "no-recurrence",
        "前の状態を使っていません。それでは、位置ごとの一層のネットワークです。",
        (STEP, "state = torch.tanh(x[..., t, :] @ w_x + 0 * state @ w_h + b)"),
    ),
    wrong(
        "backwards",
        "右から左へ読んでいます。左から順に読みます。",
        (ONWARD, "for t in reversed(range(x.shape[-2])):"),
        (STATES, "return torch.stack(states[::-1], dim=-2)"),
    ),
    wrong(
        "linear-state",
        "tanh がありません。",
        (STEP, STEP.replace("torch.tanh", "")),
    ),
    wrong(
        "state-transposed",
        "W_h を転置して掛けています。この本では、行ベクトルに右から掛けます。",
        (STEP, STEP.replace("state @ w_h", "state @ w_h.mT")),
    ),
    wrong(
        "bias-outside",
        "バイアスを tanh の外で足しています。",
        (STEP, "state = torch.tanh(x[..., t, :] @ w_x + state @ w_h) + b"),
    ),
    wrong(
        "previous-state-raw",
        "前の状態を W_h に掛けずに足しています。",
        (STEP, STEP.replace("state @ w_h", "state + 0 * (state @ w_h)")),
    ),
    wrong(
        "initial-state-kept",
        "最初の一歩の前の状態（0）まで返しています。返すのは h_1 からです。",
        ("    states = []\n", "    states = [state]\n"),
    ),
    wrong(
        "last-state-only",
        "最後の隠れ状態だけを返しています。すべての時刻の隠れ状態を並べます。",
        (STATES, "return states[-1]"),
    ),
    wrong(
        "table-transposed",
        "行と列が逆です。行が出力の位置 t、列が入力の位置 s です。",
        *_both("{}.norm(dim=(1, 3)).mT"),
    ),
    wrong(
        "table-squared",
        "二乗の和を返しています。フロベニウスノルムは、その平方根です。",
        *_both("{}.square().sum(dim=(1, 3))"),
    ),
    wrong(
        "table-largest",
        "成分の絶対値の最大値を返しています。全成分の二乗の和の平方根を返します。",
        *_both("{}.abs().amax(dim=(1, 3))"),
    ),
    wrong(
        "table-absolute-sum",
        "成分の絶対値の和を返しています。全成分の二乗の和の平方根を返します。",
        *_both("{}.abs().sum(dim=(1, 3))"),
    ),
    wrong(
        "table-outputs-summed",
        "出力の成分を足してから微分しています。打ち消し合うので、小さく出ます。"
        "出力の成分ごとに微分します。",
        *_both("{}.sum(1).norm(dim=-1)"),
    ),
    wrong(
        "table-zero-one",
        "届くかどうか（0 か 1）を返しています。大きさを返します。",
        *_both("({0}.norm(dim=(1, 3)) > 0).to({0}.dtype)"),
    ),
    wrong(
        "one-step-only",
        "前の状態から先へ勾配が流れていません。一つの入力は、その後のすべての隠れ状態に届きます。",
        (CHAIN, "return chain.norm(dim=(1, 3)).diagonal().diag()"),
    ),
    wrong(
        "neighbour-only",
        "一つ前の時刻までしか数えていません。情報は、状態を通ってもっと遠くまで届きます。",
        (CHAIN, "return chain.norm(dim=(1, 3)).triu(-1)"),
    ),
    wrong(
        "answer-layers-share",
        "FFN の重みを、層のあいだでも共有すると数えています。"
        "共有するのは一つの層の中だけで、層ごとに別の組を持ちます。",
        (COUNTS, "return 1, 6, 19"),
    ),
    wrong(
        "answer-one-per-position",
        "位置ごとに別の重みがあると数えています。同じ層の中では、どの位置も同じ組を使います。",
        (COUNTS, "return 120, 1, 19"),
    ),
    wrong(
        "answer-passes-every-position",
        "FFN が位置から位置へ渡っていくと数えています。"
        "一つの位置のベクトルは、その層の FFN を一度だけ通ります。",
        (COUNTS, "return 6, 20, 19"),
    ),
    wrong(
        "answer-one-too-many",
        "一つ多く数えています。最初の語は W_x で状態に入り、"
        "そこから先の 19 歩で W_h を掛けられます。",
        (COUNTS, "return 6, 1, 20"),
    ),
    wrong(
        "answer-rnn-once",
        "RNN でも一度だけと数えています。"
        "最初の語の情報は、状態に乗って、一歩ごとに W_h を掛けられます。",
        (COUNTS, "return 6, 1, 1"),
    ),
)

SHARING_RIGHT = (
    Right(
        "loops",
        code="""
import math
import torch


def ffn(x, w_1, b_1, w_2, b_2):
    if x.ndim > 1:
        return torch.stack([ffn(row, w_1, b_1, w_2, b_2) for row in x])
    a = x @ w_1 + b_1
    return (a * (a > 0)) @ w_2 + b_2


def rnn(x, w_x, w_h, b):
    out, h = [], None
    for word in x.unbind(-2):
        a = word @ w_x + b
        h = torch.tanh(a if h is None else a + h @ w_h)
        out.append(h.unsqueeze(-2))
    return torch.cat(out, dim=-2)


def by_columns(function, x):
    T, D = x.shape
    table = torch.zeros(T, T, dtype=x.dtype)
    x = x.clone().requires_grad_()
    y = function(x)
    for t in range(T):
        total = torch.zeros(T, dtype=x.dtype)
        for c in range(y.shape[1]):
            (g,) = torch.autograd.grad(y[t, c], x, retain_graph=True)
            total = total + (g ** 2).sum(1)
        table[t] = total.sqrt()
    return table


def ffn_influence(x, *weights):
    return by_columns(lambda a: ffn(a, *weights), x)


def rnn_influence(x, *weights):
    return by_columns(lambda a: rnn(a, *weights), x)


def answer_13_6():
    return (6.0, 1.0, 20.0 - 1)
""",
    ),
    Right(
        "closed-form",
        code="""
import torch


def ffn(x, w_1, b_1, w_2, b_2):
    return (x @ w_1 + b_1).clamp(min=0) @ w_2 + b_2


def rnn(x, w_x, w_h, b):
    inputs = x @ w_x + b
    h = torch.tanh(inputs[..., :1, :])
    rows = [h]
    for t in range(1, x.shape[-2]):
        h = torch.tanh(inputs[..., t : t + 1, :] + h @ w_h)
        rows.append(h)
    return torch.cat(rows, -2)


def ffn_influence(x, w_1, b_1, w_2, b_2):
    on = ((x @ w_1 + b_1) > 0).to(x.dtype)
    j = torch.einsum("df,tf,fe->tde", w_1, on, w_2)
    return torch.diag_embed(j.flatten(1).norm(dim=1))


def rnn_influence(x, w_x, w_h, b):
    h = rnn(x, w_x, w_h, b)
    T = len(x)
    table = torch.zeros(T, T, dtype=x.dtype)
    ways = []
    for t in range(T):
        slope = torch.diag(1 - h[t] ** 2)
        ways = [way @ w_h @ slope for way in ways] + [w_x @ slope]
        for s, way in enumerate(ways):
            table[t, s] = torch.linalg.matrix_norm(way)
    return table


def answer_13_6():
    return [6, 1, 19]
""",
    ),
    Right(
        "func",
        edits=(
            (WIDEN, "hidden = torch.maximum(x @ w_1 + b_1, torch.zeros((), dtype=x.dtype))"),
            (EACH, "return torch.einsum('tasb,tasb->ts', each, each).sqrt()"),
            (CHAIN, "return torch.linalg.vector_norm(chain, dim=(1, 3))"),
        ),
    ),
)


# ── 13-7 ──


def _may_see(ids, pad, causal):
    """組を一つずつ。"""
    if ids.ndim > 1:
        return torch.stack([_may_see(row, pad, causal) for row in ids])
    n = len(ids)
    rows = [[bool(ids[s] != pad and (s <= t or not causal)) for s in range(n)] for t in range(n)]
    if not all(map(any, rows)):
        raise ValueError
    return torch.tensor(rows)


def _reach(mask, n_layers):
    """道の総当たり：出力から、見てよい所へ n_layers 歩たどる（とどまってもよい）。"""
    found = torch.zeros_like(mask)
    for t in range(len(mask)):
        places = {t}
        for _ in range(n_layers):
            places |= {s for p in places for s in range(len(mask)) if mask[p, s]}
        found[t, list(places)] = True
    return found


def _cloze(sentences, position, both):
    """文を一つずつ。見えるものが同じ文を集め、いちばん多い語の数だけ当たる。"""
    whole = [tuple(s) for s in sentences if len(s) > position]
    if not whole:
        raise ValueError

    def view(s):
        return s[:position], s[position + 1 :] if both else ()

    hits = 0.0
    for sentence in whole:
        alike = [s[position] for s in whole if view(s) == view(sentence)]
        hits += max(map(alike.count, alike)) / len(alike)
    return hits / len(whole)


def _padded(draw: Draw, *lead: int) -> np.ndarray:
    """右に詰めもの（0）のある番号の列。どの列にも一つは番号がある。"""
    (t,) = draw.sizes(1)
    t = max(t, 4)
    ids = draw.rng.integers(1, 9, (*lead, t))
    keep = draw.rng.integers(2, t, lead)
    ids[np.arange(t) >= np.asarray(keep)[..., None]] = 0
    return ids


def _mask_probes(draw: Draw):
    def probe(label, ids, causal, pad=0, **options):
        return Probe("may_see", (ids, pad, causal), label=label, **options)

    yield probe("GPT 型、詰めものあり", _padded(draw), True, repeat=True)
    yield probe("BERT 型、詰めものあり", _padded(draw), False)
    yield probe("GPT 型、文が三つ", _padded(draw, 3), True)
    yield probe("BERT 型、文が三つ", _padded(draw, 3), False)
    yield probe("詰めものの番号が 0 でない", _padded(draw, 2) + 1, True, pad=1)
    yield probe("長さ 1", np.array([3]), True)
    if not draw.public:
        yield probe("BERT 型、先頭に次元が二つある", _padded(draw, 2, 3), False)
        yield probe("詰めものがない", _padded(draw, 2) + 1, False)
    left = _padded(draw)
    left[0] = 0
    yield probe("GPT 型で、先頭が詰めもの", left, True)
    yield probe("BERT 型で、先頭が詰めもの", left, False)
    yield probe("全部が詰めものの文がある", np.stack([left, 0 * left]), False)


def _reaches(draw: Draw):
    def probe(label, mask, n_layers, **options):
        return Probe("reach", (mask, n_layers), label=label, **options)

    def sparse(n):
        """自分を見ない、長い一本道。道の順番は、でたらめ。"""
        order = draw.permutation(n)
        mask = np.zeros((n, n), dtype=bool)
        mask[order[:-1], order[1:]] = True
        return mask

    n = 5 if draw.public else max(draw.sizes(1)[0], 5)
    yield probe("一本道、1 層", sparse(n), 1, repeat=True)
    yield probe("一本道、2 層", sparse(n), 2)
    yield probe("一本道、3 層", sparse(n), 3)
    yield probe("因果マスク、4 層", _causal(n), 4)
    yield probe("0 層", _causal(n), 0)
    if not draw.public:
        yield probe("でたらめなマスク、2 層", draw.rng.random((n, n)) < 0.2, 2)
        yield probe("何も見えないマスク", np.zeros((n, n), dtype=bool), 3)
        yield probe("たくさんの層", draw.mask(n, n), 200)


def _sentences(draw: Draw, count: int, low: int, high: int) -> tuple:
    """語が四種類の、短い文。頭の語ほどよく出る。"""
    words = [str(w) for w in draw.rng.permutation(["猫", "犬", "鳥", "魚"])]
    lengths = [high, low, *draw.rng.integers(low, high + 1, count - 2)]
    pick = functools.partial(draw.rng.choice, words, p=[0.4, 0.3, 0.2, 0.1])
    return tuple(tuple(str(w) for w in pick(n)) for n in lengths)


def _clozes(draw: Draw):
    def probe(label, position, both, low, high, **options):
        text = _sentences(draw, 24 if draw.public else 60, low, high)
        return Probe("cloze_accuracy", (text, position, both), label=label, **options)

    yield probe("左だけを見る", 2, False, 1, 4, repeat=True)
    yield probe("両側を見る", 1, True, 1, 4)
    yield probe("両側を見る、左が二語", 2, True, 2, 5)
    yield probe("先頭の語を、左だけを見て当てる", 0, False, 1, 3)
    yield probe("先頭の語を、右を見て当てる", 0, True, 1, 3)
    if not draw.public:
        yield probe("左だけを見る、左が三語", 3, False, 2, 5)
        yield probe("両側を見る、長さがそろった文", 1, True, 4, 4)
    yield probe("その位置に語のある文がない", 6, True, 1, 4)


KEYS_SEEN = "seen = (ids != pad).unsqueeze(-2).expand(*ids.shape, n)"
LEFT_ONLY = "seen = seen & torch.ones(n, n, dtype=torch.bool).tril()"
SEE_REFUSE = """    if not seen.any(dim=-1).all():
        raise ValueError("見てよい位置が一つもない行があります")
"""
SEEN_BACK = "    return seen\n"
LOOP = "for _ in range(n_layers):"
STEPS = "step, found = (mask | own).float(), own"
WALK = "found = step @ found.float() > 0"
LONG_ENOUGH = "if len(sentence) > position:"
RIGHT_SIDE = "right = tuple(sentence[position + 1 :]) if both else None"
LEFT_SIDE = "left = tuple(sentence[:position])"
GROUP = "groups[left, right][sentence[position]] += 1"
NOTHING = """    if not groups:
        raise ValueError("その位置に語のある文がありません")
"""
BEST = "best = sum(max(words.values()) for words in groups.values())"
RATE = "return best / sum(words.total() for words in groups.values())"
FOUR = 'return "イ", "ア", "エ", "ウ"'

HALVES_WRONG = (
    wrong(
        "pad-rows",
        "詰めものの行を隠しています。隠すのは列（見られる側）です。行は隠しません。",
        (KEYS_SEEN, "seen = (ids != pad).unsqueeze(-1).expand(*ids.shape, n)"),
        (SEE_REFUSE, "    if (ids == pad).all(-1).any():\n        raise ValueError()\n"),
    ),
    wrong(
        "pad-both",
        "詰めものの行まで隠しています。見てよい位置が一つもない行ができてしまいます。"
        "隠すのは列だけです。",
        (KEYS_SEEN, "seen = (ids != pad).unsqueeze(-2) & (ids != pad).unsqueeze(-1)"),
    ),
    wrong(
        "pad-ignored",
        "詰めものを隠していません。",
        (KEYS_SEEN, "seen = torch.ones(*ids.shape, n, dtype=torch.bool)"),
    ),
    wrong(
        "pad-is-zero",
        "詰めものの番号を 0 と決めつけています。引数の pad を使います。",
        (KEYS_SEEN, KEYS_SEEN.replace("ids != pad", "ids != 0")),
    ),
    wrong(
        "causal-strict",
        "自分自身まで隠しています。自分は見てよいので、対角線は残します。",
        (LEFT_ONLY, LEFT_ONLY.replace("tril()", "tril(-1)")),
    ),
    wrong(
        "causal-inverted",
        "向きが逆です。隠すのは、自分より右（s > t）です。",
        (LEFT_ONLY, LEFT_ONLY.replace("tril()", "triu()")),
    ),
    wrong(
        "causal-never",
        "causal が真でも、右を隠していません。",
        ("    if causal:\n", "    if False:\n"),
    ),
    wrong(
        "causal-always",
        "causal が偽でも、右を隠しています。BERT 型は両側を見ます。",
        ("    if causal:\n", "    if True:\n"),
    ),
    wrong(
        "either",
        "二つの条件のどちらか一方で「見てよい」としています。両方を満たす所だけを見てよいのです。",
        (LEFT_ONLY, LEFT_ONLY.replace("seen &", "seen |")),
    ),
    wrong(
        "blocked",
        "True が「見ない」になっています。この本では True が「見てよい」です。",
        (SEEN_BACK, "    return ~seen\n"),
    ),
    wrong(
        "additive-mask",
        "0 と −∞ の数を返しています。返すのは真偽値です。",
        (SEEN_BACK, "    return torch.zeros(seen.shape).masked_fill(~seen, -torch.inf)\n"),
    ),
    wrong(
        "empty-rows",
        "見てよい位置が一つもない行を見のがしています。ValueError を出します。",
        (SEE_REFUSE, ""),
    ),
    wrong(
        "one-layer",
        "層の数を使わず、マスクをそのまま一回だけたどっています。",
        (LOOP, "for _ in range(1):"),
    ),
    wrong(
        "one-layer-more",
        "一層多くたどっています。0 層なら、届くのは自分だけです。",
        (LOOP, "for _ in range(n_layers + 1):"),
    ),
    wrong(
        "no-residual",
        "残差接続を忘れています。自分の情報は、マスクに関係なく次の層へ届きます。",
        (STEPS, "step, found = mask.float(), own"),
    ),
    wrong(
        "reach-transposed",
        "行と列が逆です。行が出力の位置、列が入力の位置です。",
        (WALK, "found = step.mT @ found.float() > 0"),
    ),
    wrong(
        "all-the-way",
        "層の数に関係なく、たどれる所を全部たどっています。一層では一歩しか進めません。",
        (LOOP, "for _ in range(len(mask)):"),
    ),
    wrong(
        "counts-paths",
        "道の本数を返しています。届くかどうか（真偽値）を返します。",
        (WALK, "found = step @ found.float()"),
    ),
    wrong(
        "layers-of-mask",
        "同じ要素どうしを掛けているので、何層重ねても遠くへ届きません。"
        "層を重ねることは、行列の積に当たります。",
        (WALK, "found = step * step > 0"),
    ),
    wrong(
        "right-never",
        "both が真でも、右を見ていません。",
        (RIGHT_SIDE, "right = None"),
    ),
    wrong(
        "right-always",
        "both が偽でも、右を見ています。GPT 型には、右は見えません。",
        (RIGHT_SIDE, RIGHT_SIDE.replace(" if both else None", "")),
    ),
    wrong(
        "hole-seen",
        "穴の語そのものまで見えています。それでは、いつでも全部当たります。",
        (LEFT_SIDE, "left = tuple(sentence[: position + 1])"),
    ),
    wrong(
        "left-forgotten",
        "左の語を見ていません。",
        (LEFT_SIDE, "left = None"),
    ),
    wrong(
        "bag-of-words",
        "見える語を、並びではなく、順番のない集まりとして比べています。語順も手がかりです。",
        (LEFT_SIDE, "left = tuple(sorted(sentence[:position]))"),
        (
            RIGHT_SIDE,
            "right = tuple(sorted(sentence[position + 1 :])) if both else None",
        ),
    ),
    wrong(
        "neighbours",
        "両隣の一語ずつしか見ていません。Self-Attention は、遠くの語も見ます。",
        (LEFT_SIDE, "left = tuple(sentence[:position][-1:])"),
        (RIGHT_SIDE, RIGHT_SIDE.replace("position + 1 :", "position + 1 : position + 2")),
    ),
    wrong(
        "short-sentences-count",
        "その位置に語のない文まで、分母に数えています。",
        (RATE, "return best / len(sentences)"),
    ),
    wrong(
        "mean-over-views",
        "見えるものの種類ごとの正解率を平均しています。文の数で割ります。",
        (
            RATE,
            "rates = [max(c.values()) / c.total() for c in groups.values()]\n"
            "    return sum(rates) / len(rates)",
        ),
    ),
    wrong(
        "guesses-by-chance",
        "頻度に応じてくじを引いています。最善なのは、いつもいちばん多い語を答えることです。",
        (BEST, "best = sum(n * n / c.total() for c in groups.values() for n in c.values())"),
    ),
    wrong(
        "hits-not-rate",
        "当たった文の数を返しています。割合にします。",
        (RATE, "return float(best)"),
    ),
    wrong(
        "nothing-to-count",
        "その位置に語のある文が一つもないのに、値を返しています。ValueError を出します。",
        (NOTHING, "    if not groups:\n        return 0.0\n"),
    ),
    wrong(
        "answer-gpt-has-cross",
        "GPT 型に Cross-Attention があるとしています。原文がないので、見に行く先がありません。"
        "もとの Transformer のデコーダから、それを除いたものです。",
        (FOUR, 'return "イ", "ア", "ア", "ウ"'),
    ),
    wrong(
        "answer-bert-writes",
        "BERT 型も左から書けるとしています。BERT 型は右も見て当てることを学びますが、"
        "書くときには右がまだありません。",
        (FOUR, 'return "イ", "ウ", "エ", "ウ"'),
    ),
    wrong(
        "answer-exchanged",
        "二つの型が逆です。GPT 型が左だけ、BERT 型が両側を見ます。",
        (FOUR, 'return "ア", "イ", "エ", "ウ"'),
    ),
    wrong(
        "answer-depth-opens-future",
        "GPT 型でも右が届くとしています。因果マスクの層は、いくら重ねても右からは届きません。"
        "reach で確かめてください。",
        (FOUR, 'return "ウ", "ア", "エ", "ウ"'),
    ),
    wrong(
        "answer-gpt-needs-no-order",
        "GPT 型は位置の情報を使わないとしています。因果マスクだけでも語順のことは少しわかりますが、"
        "どちらの型も、位置の情報を使います。",
        (FOUR, 'return "イ", "ア", "エ", "イ"'),
    ),
)

HALVES_RIGHT = (
    Right(
        "loops",
        code="""
import torch


def may_see(ids, pad, causal):
    if ids.ndim > 1:
        return torch.stack([may_see(row, pad, causal) for row in ids])
    T = len(ids)
    m = torch.zeros(T, T, dtype=torch.bool)
    for t in range(T):
        for s in range(T):
            m[t, s] = bool(ids[s] != pad) and (not causal or s <= t)
        if not m[t].any():
            raise ValueError("行が空です")
    return m


def reach(mask, n_layers):
    T = len(mask)
    found = [{t} for t in range(T)]
    for _ in range(n_layers):
        found = [
            set().union(found[t], *(found[s] for s in range(T) if mask[t, s])) for t in range(T)
        ]
    return torch.tensor([[s in found[t] for s in range(T)] for t in range(T)])


def cloze_accuracy(sentences, position, both):
    kept = [list(s) for s in sentences if len(s) >= position + 1]
    if len(kept) == 0:
        raise ValueError("文がありません")
    table = {}
    for s in kept:
        key = " ".join(s[:position]) + "|"
        if both:
            key += " ".join(s[position + 1 :])
        table.setdefault(key, {})
        table[key][s[position]] = table[key].get(s[position], 0) + 1
    right = 0
    for words in table.values():
        right += sorted(words.values())[-1]
    return right / len(kept)


def answer_13_7():
    return ["イ", "ア", "エ", "ウ"]
""",
    ),
    Right(
        "positions",
        code="""
from collections import Counter
import torch


def may_see(ids, pad, causal):
    place = torch.arange(ids.shape[-1])
    allowed = place[:, None] >= (place[None, :] if causal else torch.zeros_like(place)[None, :])
    m = torch.logical_and(ids.ne(pad)[..., None, :], allowed)
    if (m.sum(-1) == 0).any():
        raise ValueError("empty row")
    return m


def reach(mask, n_layers):
    step = (mask.double() + torch.eye(len(mask)).double()).clamp(max=1)
    found = torch.eye(len(mask)).double()
    for _ in range(n_layers):
        found = (found @ step).clamp(max=1)
    return found.bool()


def cloze_accuracy(sentences, position, both):
    seen = Counter()
    for s in sentences:
        if position < len(s):
            view = list(s)
            view[position] = "?"
            seen[tuple(view if both else view[:position]), s[position]] += 1
    best = {}
    for (view, _), count in seen.items():
        best[view] = max(best.get(view, 0), count)
    if not best:
        raise ValueError("nothing")
    return sum(best.values()) / sum(seen.values())


def answer_13_7():
    return tuple("イアエウ")
""",
    ),
    Right(
        "small-changes",
        edits=(
            (LEFT_ONLY, "seen = seen.tril()"),
            (STEPS, "step, found = torch.where(own, True, mask).float(), own"),
            (BEST, "best = sum(words.most_common(1)[0][1] for words in groups.values())"),
        ),
    ),
)


QUESTIONS = (
    Question(
        "13-3",
        parts=(
            Part(
                "ヘッドに分ける",
                2,
                (Check("分けた値", _splits, _split, outputs=("分けたもの",), section=HEADS),),
            ),
            Part(
                "Multi-Head Attention",
                3,
                (
                    Check(
                        "出力と重みの値",
                        _head_values,
                        _multi_head,
                        outputs=("出力", "注意の重み"),
                        section=HEADS,
                    ),
                    Check(
                        "勾配",
                        _head_slopes,
                        _multi_head,
                        outputs=tuple(f"{n} の勾配" for n in ("x", "w_q", "w_k", "w_v", "w_o")),
                        section=HEADS,
                    ),
                ),
            ),
            Part(
                "ヘッドの寄与",
                2,
                (Check("寄与の値", _shares_of_heads, _parts, outputs=("寄与",), section=ORDER),),
            ),
            Part(
                "次元を数える",
                1,
                (
                    Check(
                        "三つの数",
                        small_answers("13-3"),
                        lambda: (64.0, 768.0, 2359296.0),
                        outputs=("ヘッドの次元", "出力の次元", "成分の数"),
                        section=COST,
                    ),
                ),
            ),
        ),
        model=functools.partial(source.model, "13-3"),
        wrong=HEADS_WRONG,
        right=HEADS_RIGHT,
        shortcuts=("MultiheadAttention", "multi_head_attention_forward", "lib.attention"),
    ),
    Question(
        "13-4",
        parts=(
            Part(
                "小さなデコーダ",
                2,
                (
                    Check(
                        "logits の値", _decoder_calls, _decode, outputs=("logits",), section=MASKS
                    ),
                    Check(
                        "勾配",
                        _decoder_slopes,
                        _decode,
                        outputs=("scores の勾配", "table の勾配"),
                        section=MASKS,
                    ),
                ),
            ),
            Part(
                "未来の漏れ",
                2,
                (Check("漏れの値", _leaks, _leak, outputs=("漏れ",), section=UNMASKED),),
            ),
            Part(
                "学習",
                2,
                (
                    Check(
                        "表と損失",
                        _trainings,
                        _train,
                        outputs=("scores", "table", "損失"),
                        section=UNMASKED,
                    ),
                ),
            ),
            Part(
                "書く",
                1,
                (
                    Check(
                        "書いたもの",
                        _writings,
                        _write,
                        outputs=("書いたもの",),
                        section=UNMASKED,
                    ),
                ),
            ),
            Part(
                "マスクを外すと",
                1,
                (
                    Check(
                        "選んだ記号",
                        small_answers("13-4"),
                        lambda: "ウ",
                        outputs=("記号",),
                        section=UNMASKED,
                    ),
                ),
            ),
        ),
        model=functools.partial(source.model, "13-4"),
        wrong=LEAK_WRONG,
        right=LEAK_RIGHT,
        shortcuts=("lib.variants", "lib.train", "lib.attention"),
    ),
    Question(
        "13-5",
        parts=(
            Part(
                "Cross-Attention",
                3,
                (
                    Check(
                        "文脈と重みの値",
                        _crossings,
                        _cross,
                        outputs=("文脈ベクトル", "注意の重み"),
                        section=BRIDGE,
                    ),
                    Check(
                        "勾配",
                        _cross_slopes,
                        _cross,
                        outputs=tuple(
                            f"{n} の勾配" for n in ("states", "memory", "w_q", "w_k", "w_v")
                        ),
                        section=BRIDGE,
                    ),
                ),
            ),
            Part(
                "加法スコア",
                2,
                (
                    Check(
                        "加法の文脈と重み",
                        _additions,
                        _additive,
                        outputs=("文脈ベクトル", "注意の重み"),
                        section=SCORES,
                    ),
                ),
            ),
            Part(
                "一致させる行列",
                2,
                (
                    Check(
                        "W^Q の値",
                        _query_weights,
                        _query_weight,
                        outputs=("W^Q",),
                        section=BRIDGE,
                    ),
                ),
            ),
            Part(
                "三つの役",
                1,
                (
                    Check(
                        "選んだ三つの記号",
                        small_answers("13-5"),
                        lambda: ("ア", "イ", "イ"),
                        outputs=("Q の記号", "K の記号", "V の記号"),
                        section=ROLES,
                    ),
                ),
            ),
        ),
        model=functools.partial(source.model, "13-5"),
        wrong=CROSS_WRONG,
        right=CROSS_RIGHT,
        shortcuts=("scaled_dot_product_attention", "MultiheadAttention", "lib.attention"),
    ),
    Question(
        "13-6",
        parts=(
            Part(
                "FFN",
                2,
                (
                    Check(
                        "FFN の値",
                        _network_probes("ffn", _layer, 40),
                        _ffn,
                        outputs=("FFN の出力",),
                        section=EACH_PLACE,
                    ),
                    Check(
                        "FFN の勾配",
                        _network_slopes("ffn", _layer),
                        _ffn,
                        outputs=tuple(f"{n} の勾配" for n in ("x", "w_1", "b_1", "w_2", "b_2")),
                        section=EACH_PLACE,
                    ),
                ),
            ),
            Part(
                "RNN",
                2,
                (
                    Check(
                        "RNN の値",
                        _network_probes("rnn", _chain, 40),
                        _rnn,
                        outputs=("隠れ状態",),
                        section=MEMO,
                    ),
                    Check(
                        "RNN の勾配",
                        _network_slopes("rnn", _chain),
                        _rnn,
                        outputs=tuple(f"{n} の勾配" for n in ("x", "w_x", "w_h", "b")),
                        section=MEMO,
                    ),
                ),
            ),
            Part(
                "届き方の表",
                3,
                (
                    Check(
                        "FFN の表",
                        _influence_probes("ffn_influence", "ffn", _layer),
                        _ffn_influence,
                        outputs=("表",),
                        section=EACH_PLACE,
                    ),
                    Check(
                        "RNN の表",
                        _influence_probes("rnn_influence", "rnn", _chain),
                        _rnn_influence,
                        outputs=("表",),
                        section=MEMO,
                    ),
                ),
            ),
            Part(
                "数える",
                1,
                (
                    Check(
                        "三つの回数",
                        small_answers("13-6"),
                        lambda: (6.0, 1.0, 19.0),
                        outputs=("FFN の組の数", "一組を通る回数", "W_h を掛けられる回数"),
                        section=EACH_PLACE,
                    ),
                ),
            ),
        ),
        model=functools.partial(source.model, "13-6"),
        wrong=SHARING_WRONG,
        right=SHARING_RIGHT,
        shortcuts=("torch.nn.RNN", "nn.RNN", "lib.rnn", "lib.transformer"),
    ),
    Question(
        "13-7",
        parts=(
            Part(
                "二つの型のマスク",
                2,
                (Check("マスクの値", _mask_probes, _may_see, outputs=("マスク",), section=MASKS),),
            ),
            Part(
                "届く範囲",
                2,
                (Check("届く組", _reaches, _reach, outputs=("表",), section=HALF),),
            ),
            Part(
                "穴埋めの上限",
                2,
                (Check("正解率", _clozes, _cloze, outputs=("正解率",), section=HOLES),),
            ),
            Part(
                "二つの型を見分ける",
                2,
                (
                    Check(
                        "選んだ四つの記号",
                        small_answers("13-7"),
                        lambda: ("イ", "ア", "エ", "ウ"),
                        outputs=tuple(f"{i} 番目の文の記号" for i in (1, 2, 3, 4)),
                        section=HALF,
                    ),
                ),
            ),
        ),
        model=functools.partial(source.model, "13-7"),
        wrong=HALVES_WRONG,
        right=HALVES_RIGHT,
        shortcuts=("lib.variants", "lib.attention", "lib.text"),
    ),
)
