"""第 12 週の前半（12-1 から 12-4）の検査：入力、正解、誤答の見本とその言葉、書き方の違う正答。

正解は lib を使わない：一文ずつの繰り返し、手で書いた逆伝播、式（試験で lib と突き合わせる）。
"""

import functools
import math

import numpy as np
import torch

from exercises.checks.common import corrected, small_answers, wrong
from exercises.grading import source
from exercises.grading.check import Check, Draw, Part, Probe, Question, Right

READY_MADE = ("lib", "lib.rnn", "RNN", "RNNCell", "rnn_tanh", "rnn_tanh_cell")

RNN = "第 12 週「過去を全部覚えられないか」の章の"
SEQ2SEQ = "第 12 週「長さの違う系列へ写せるか」の章の"
ATTENTION = "第 12 週「一本のベクトルで足りるのか」の章の"
GRADIENTS = "第 12 週「なぜ遠くは忘れるのか」の章の"

WINDOW = RNN + "「窓の外は、ないのと同じ」"
CELL = RNN + "「一枚のメモを、書き直しながら読む」"
UNROLL = RNN + "「展開する：同じセルを何度も呼ぶ」"
SHARED = RNN + "「使い回した重みの勾配は、和になる」"
MEMORY = RNN + "「どこまで覚えているか」"
FORCING = SEQ2SEQ + "「正解を見せて、次を当てさせる」"
EXPOSURE = SEQ2SEQ + "「自分の間違いを読まされる」"
SCHEDULED = SEQ2SEQ + "「自分の出力で学習させるとどうなるか」"
IDEA = ATTENTION + "「捨てずに取っておき、毎回見直す」"
AVERAGE = ATTENTION + "「平均にできること」"
MASK = ATTENTION + "「見てはいけない場所」と「平均にできること」"
PRODUCT = GRADIENTS + "「遠くの勾配は、行列の積」"


# ── 12-1 ──


def _context(ids, t, n):
    """左端からはみ出した分を一つずつ埋める。"""
    places = range(t - n + 1, t)
    return torch.tensor([int(ids[p]) if p >= 0 else 1 for p in places], dtype=ids.dtype)


def _states(x, W_x, W_h, b):
    """一文ずつ、ベクトルで。"""
    rows = []
    for sentence in x.reshape(-1, *x.shape[-2:]):
        h = b * 0
        for word in sentence:
            h = torch.tanh(W_x @ word + W_h @ h + b)
            rows.append(h)
    return torch.stack(rows).reshape(*x.shape[:-1], len(b))


def _influence(x, W_x, W_h, b):
    """ヤコビ行列の積を、右端から順に。"""
    states, onward = _states(x, W_x, W_h, b), torch.eye(len(b), dtype=b.dtype)
    sizes = []
    for h in states.flip(0):
        here = onward * (1 - h**2)
        sizes.append((here @ W_x).square().sum().sqrt())
        onward = here @ W_h
    return torch.stack(sizes[::-1])


def _rnn(
    draw: Draw, *lead: int, length: int = 0, dtype: str = "float64", scale: float = 1.0
) -> tuple:
    """(x, W_x, W_h, b)。大きさはすべて違う素数。"""
    t, d, e = draw.sizes(3)
    x = draw.normal(*lead, length or t, e, dtype=dtype, scale=scale)
    w_x = draw.normal(d, e, dtype=dtype, scale=0.8 / math.sqrt(e))
    w_h = draw.normal(d, d, dtype=dtype, scale=1.1 / math.sqrt(d))
    return x, w_x, w_h, draw.normal(d, dtype=dtype, scale=0.3)


def _sentence(draw: Draw, length: int) -> np.ndarray:
    """どの語も違う文。"""
    return draw.rng.permutation(np.arange(4, 4 + 3 * length))[:length]


def _contexts(draw: Draw):
    (length,) = draw.sizes(1)
    length = max(length, 5)
    ids = _sentence(draw, length)

    def probe(label, t, n, **options):
        return Probe("ngram_context", (ids, t, n), label=label, **options)

    yield probe("文の途中を 3-gram で", length - 2, 3, repeat=True)
    yield probe("文の途中を bigram で", length - 1, 2)
    yield probe("文の終わり（t = T）", length, 4)
    yield probe("文の先頭", 0, 3)
    yield probe("左端から一つはみ出す", 1, 3)
    yield probe("左端から二つはみ出す", 2, 5)
    yield probe("n = 1（文脈なし）", 3, 1)
    if not draw.public:
        yield probe("文より長い窓", length, length + 4)
        yield probe("ちょうど左端まで", 4, 5)
        yield Probe("ngram_context", (ids[:1], 1, 2), label="一語の文の終わり")


def _readings(draw: Draw):
    def probe(label, *lead, repeat=False, **options):
        return Probe("hidden_states", _rnn(draw, *lead, **options), label=label, repeat=repeat)

    yield probe("一文", repeat=True)
    yield probe("float32", dtype="float32")
    yield probe("文を並べたもの", 2)
    yield probe("一語だけの文", length=1)
    yield probe("絶対値の大きい入力", scale=30.0)
    if not draw.public:
        yield probe("先頭に次元が二つ", 3, 2)
        yield probe("長い文", length=20)


def _reading_slopes(draw: Draw):
    args = _rnn(draw, 2)
    cotangent = draw.normal(*args[0].shape[:-1], len(args[3]))
    yield Probe("hidden_states", args, label="x と三つのパラメータで微分する", cotangent=cotangent)


def _reaches(draw: Draw):
    given = corrected(draw, "12-1", "hidden_states")

    def probe(label, repeat=False, tolerance=None, **options):
        return Probe(
            "influence",
            _rnn(draw, **options),
            label=label,
            repeat=repeat,
            given=given,
            tolerance=tolerance,
        )

    yield probe("ふつうの文")
    yield probe("一語だけの文", length=1, repeat=True)
    yield probe("短い文", length=4)
    if not draw.public:
        yield probe("長い文", length=13)
        yield probe("float32", dtype="float32", tolerance=(1e-3, 1e-5))


PADDED = "padded = torch.cat([ids.new_ones(n - 1), ids])"
CUT = "return padded[t : t + n - 1]"
START = "h, states = torch.zeros_like(b), []"
STEP = "h = torch.tanh(x[..., t, :] @ W_x.T + h @ W_h.T + b)"
APPEND = "states.append(h)"
STACK = "return torch.stack(states, dim=-2)"
TIMES = "for t in range(x.shape[-2]):"
LAST = "return hidden_states(inputs, W_x, W_h, b)[-1]"
JACOBIAN = "jacobian = torch.autograd.functional.jacobian(last, x)"
NORM = "return jacobian.square().sum(dim=(0, 2)).sqrt()"
REACH = "return 6, 4"


def _product(slope: str, after: str, before: str = "@ W_x") -> tuple[str, str]:
    """influence を、行列の積で書いたもの。"""
    return NORM, (
        "states, onward, out = hidden_states(x, W_x, W_h, b), torch.eye(len(b)).to(b), []\n"
        "    for h in states.flip(0):\n"
        f"        here = onward * {slope}\n"
        f"        out.append((here {before}).norm())\n"
        f"        onward = {after}\n"
        "    return torch.stack(out[::-1])"
    )


REACH_WRONG = (
    wrong(
        "n-words",
        "n 語を見ています。n-gram の n には当てる語も入るので、見るのは直前の n−1 語です。",
        (PADDED, PADDED.replace("n - 1", "n")),
        (CUT, "return padded[t : t + n]"),
    ),
    wrong(
        "with-target",
        "当てる語そのものが文脈に入っています。見るのは、位置 t より前の語だけです。",
        (CUT, "return padded[t + 1 : t + n]"),
    ),
    wrong(
        "right-side",
        "当てる語より後ろの語を見ています。言語モデルが見てよいのは、前の語だけです。",
        (CUT, "return torch.cat([ids, ids.new_ones(n)])[t + 1 : t + n]"),
    ),
    wrong(
        "whole-prefix",
        "前の語をすべて見ています。n-gram の窓は n−1 語で、その外は見えません。",
        (CUT, "return ids[:t]"),
    ),
    wrong(
        "not-padded",
        "左端からはみ出した分を埋めていません。`<s>`（番号 1）を置いて、いつも n−1 語にします。",
        (CUT, "return ids[max(0, t - n + 1) : t]"),
    ),
    wrong(
        "negative-slice",
        "左端で、スライスの始まりが負の数になっています。Python では、負の添字は後ろから数えます。",
        (CUT, "return ids[t - n + 1 : t]"),
    ),
    wrong(
        "pad-zero",
        "左端を番号 0（`<pad>`）で埋めています。文の始まりは `<s>`、番号 1 です。",
        (PADDED, PADDED.replace("new_ones", "new_zeros")),
    ),
    wrong(
        "context-reversed",
        "文脈の順が逆です。左が古い語です。",
        (CUT, CUT + ".flip(0)"),
    ),
    wrong(
        "counted-from-one",
        "位置を 1 から数えています。この週の約束では、最初の語が位置 0 です。",
        (CUT, "return torch.cat([ids.new_ones(1), padded])[t : t + n - 1]"),
    ),
    wrong(
        "last-slice",
        "n が 1 のとき、[-0:] が全体になっています。文脈は空のはずです。",
        (CUT, "return padded[: t + n - 1][-(n - 1) :]"),
    ),
    wrong(
        "linear",
        "tanh がありません。値が収まらず、行列を掛けるだけの計算になります。",
        (STEP, STEP.replace("torch.tanh", "")),
    ),
    wrong(
        "sigmoid",
        "tanh ではなくシグモイドを使っています。",
        (STEP, STEP.replace("tanh", "sigmoid")),
    ),
    wrong(
        "no-recurrence",
        "前の隠れ状態を使っていません。これでは、いまの語しか見ていません。",
        (STEP, STEP.replace(" + h @ W_h.T", "")),
    ),
    wrong(
        "one-step-memory",
        "一つ前の語までしか残していません。前の隠れ状態は、前の語だけでなく、それまでの全部を運びます。",
        (
            STEP,
            STEP + "\n        full = h\n        h = torch.tanh(x[..., t, :] @ W_x.T + b)",
        ),
        (APPEND, "states.append(full)"),
    ),
    wrong(
        "transposed-w-h",
        "W_h が転置されています。正方行列なので、形では気づけません。",
        (STEP, STEP.replace("W_h.T", "W_h")),
    ),
    wrong(
        "no-bias",
        "バイアス b を足していません。",
        (STEP, STEP.replace(" + b", "")),
    ),
    wrong(
        "bias-outside",
        "バイアス b を tanh の外で足しています。",
        (STEP, STEP.replace(" + b)", ") + b")),
    ),
    wrong(
        "added-memory",
        "前の隠れ状態に足し込んでいます。新しい隠れ状態は、tanh の値そのものです。",
        (STEP, STEP.replace("h = ", "h = h + ")),
    ),
    wrong(
        "right-to-left",
        "右から左へ読んでいます。",
        (TIMES, "for t in reversed(range(x.shape[-2])):"),
        (STACK, STACK.replace("states,", "states[::-1],")),
    ),
    wrong(
        "final-only",
        "最後の隠れ状態だけを返しています。すべての時刻の分を並べます。",
        (STACK, "return h"),
    ),
    wrong(
        "with-start",
        "何も読んでいない状態まで並べています。",
        (TIMES, "states.append((h + x[..., 0, :1] * 0).clone())\n    " + TIMES),
    ),
    wrong(
        "ones-start",
        "何も読んでいない状態を 1 から始めています。0 から始めます。",
        (START, START.replace("zeros_like", "ones_like")),
    ),
    wrong(
        "time-first",
        "時刻の次元を先頭に置いています。形は (…, T, D) です。",
        (STACK, "return torch.stack(states)"),
    ),
    wrong(
        "cut-gradient",
        "前の隠れ状態から勾配が切れています。値は同じでも、古い語に勾配が届きません。",
        (STEP, STEP.replace("h @ W_h.T", "h.detach() @ W_h.T")),
    ),
    wrong(
        "float32-states",
        "float32 に変えて計算しています。dtype は渡されたもののままにします。",
        (START, "x, W_x, W_h, b = x.float(), W_x.float(), W_h.float(), b.float()\n    " + START),
    ),
    wrong(
        "summed-output",
        "隠れ状態の成分を足してから微分しています。"
        "正の効き目と負の効き目が打ち消し合うので、成分ごとに微分した行列の大きさを測ります。",
        (NORM, "return jacobian.sum(dim=0).norm(dim=-1)"),
    ),
    wrong(
        "squared-size",
        "平方根を取っていません。",
        (NORM, NORM.replace(".sqrt()", "")),
    ),
    wrong(
        "absolute-size",
        "絶対値の和になっています。二乗の和の平方根にします。",
        (NORM, "return jacobian.abs().sum(dim=(0, 2))"),
    ),
    wrong(
        "largest-size",
        "いちばん大きな要素だけを見ています。全要素の二乗の和の平方根にします。",
        (NORM, "return jacobian.abs().amax(dim=(0, 2))"),
    ),
    wrong(
        "by-distance",
        "並びの順が逆です。最初の要素が、最初に読んだ語の分です。",
        (NORM, NORM + ".flip(0)"),
    ),
    wrong(
        "relative",
        "直前の語の効き方で割っています。割らずに、そのままの大きさを返します。",
        (NORM, "size = jacobian.square().sum(dim=(0, 2)).sqrt()\n    return size / size[-1]"),
    ),
    wrong(
        "one-step",
        "それぞれの語を読んだ直後の隠れ状態への効き方を測っています。測るのは、最後の隠れ状態への効き方です。",
        _product("(1 - h**2)[:, None]", "onward"),
    ),
    wrong(
        "to-the-state",
        "隠れ状態どうしの微分になっています。入力 x で微分するので、右端に W_x も掛かります。",
        _product("(1 - h**2)", "here @ W_h", before=""),
    ),
    wrong(
        "power-only",
        "W_h の累乗だけで、tanh の傾き 1 − h² が抜けています。",
        _product("1", "here @ W_h"),
    ),
    wrong(
        "every-state",
        "すべての時刻の隠れ状態への効き方を合わせています。測るのは、最後の隠れ状態への効き方です。",
        (LAST, "return hidden_states(inputs, W_x, W_h, b).flatten()"),
    ),
    wrong(
        "window-five",
        "一つ目の数が違います。「彼女」は「走った」の五語前ですが、"
        "n-gram の n には当てる語も入ります。",
        (REACH, "return 5, 4"),
    ),
    wrong(
        "window-seven",
        "一つ目の数が違います。文の終わりは、まだ当てていません。数えるのは、文脈の語と当てる語だけです。",
        (REACH, "return 7, 4"),
    ),
    wrong(
        "five-times",
        "二つ目の数が違います。「彼女」自身を読むときに掛かるのは W_x で、"
        "W_h が掛かるのは、その後の語を読むたびです。",
        (REACH, "return 6, 5"),
    ),
    wrong(
        "one-time",
        "二つ目の数が違います。最後の隠れ状態が見るのは一つ前の隠れ状態だけですが、"
        "その隠れ状態に「彼女」が入るまでの道も数えます。",
        (REACH, "return 6, 1"),
    ),
)

REACH_RIGHT = (
    Right(
        "lists",
        code="""
import torch


def ngram_context(ids, t, n):
    words = ids.tolist()
    words = [1] * (n - 1) + words[:t]
    return torch.tensor(words[len(words) - n + 1 :], dtype=torch.int64)


def hidden_states(x, W_x, W_h, b):
    h = torch.zeros(*x.shape[:-2], len(b), dtype=x.dtype)
    out = torch.empty(*x.shape[:-1], len(b), dtype=x.dtype)
    for t in range(x.shape[-2]):
        inside = torch.einsum("de,...e->...d", W_x, x[..., t, :])
        h = (inside + torch.einsum("dk,...k->...d", W_h, h) + b).tanh()
        out[..., t, :] = h
    return out


def influence(x, W_x, W_h, b):
    leaf = x.clone().requires_grad_()
    h = hidden_states(leaf, W_x, W_h, b)[-1]
    total = torch.zeros(len(x), dtype=x.dtype)
    for unit in h:
        (slope,) = torch.autograd.grad(unit, leaf, retain_graph=True)
        total += (slope ** 2).sum(-1)
    return total.sqrt()


def answer_12_1():
    return [6, 4]
""",
    ),
    Right(
        "products",
        code="""
import torch


def ngram_context(ids, t, n):
    places = torch.arange(t - n + 1, t)
    return torch.where(places < 0, 1, ids[places.clamp(0, len(ids) - 1)])


def hidden_states(x, W_x, W_h, b):
    inputs = x @ W_x.mT + b
    states = [inputs[..., 0, :].tanh()]
    for t in range(1, x.shape[-2]):
        states.append((inputs[..., t, :] + states[-1] @ W_h.mT).tanh())
    return torch.stack(states, -2)


def influence(x, W_x, W_h, b):
    h = hidden_states(x, W_x, W_h, b)
    sizes = []
    for s in range(len(x)):
        j = torch.diag(1 - h[s] ** 2) @ W_x
        for k in range(s + 1, len(x)):
            j = torch.diag(1 - h[k] ** 2) @ W_h @ j
        sizes.append(torch.linalg.norm(j))
    return torch.stack(sizes)


def answer_12_1():
    t = "彼女 は 昨日 公園 で 走った".split().index("走った")
    return t + 1, t - 1
""",
    ),
    Right(
        "torch-rnn",
        edits=(
            (
                STEP,
                "h = torch.rnn_tanh_cell(x[..., t, :].reshape(-1, x.shape[-1]), "
                "h.expand(x[..., 0, 0].numel(), -1), W_x, W_h, b, b * 0)",
            ),
            (APPEND, "states.append(h.reshape(*x.shape[:-2], -1))"),
            (NORM, "return torch.linalg.vector_norm(jacobian, dim=(0, 2))"),
            (JACOBIAN, JACOBIAN.replace("x)", "x, vectorize=True)")),
        ),
    ),
)


# ── 12-2 ──


def _counts(d_x, d_h, length):
    """形を並べて数える。"""
    shapes = [(d_h, d_x), (d_h, d_h), (d_h,)]
    one = sum(math.prod(shape) for shape in shapes)
    return float(one), float(one * length)


def _copies(x, W_x, W_h, b, g):
    """時間方向の逆伝播を手で書く。"""
    before = [b * 0, *_states(x, W_x, W_h, b)]
    back, slopes = g, []
    for h, previous in zip(before[:0:-1], before[-2::-1], strict=True):
        inside = (1 - h * h) * back
        slopes.append(torch.outer(inside, previous))
        back = W_h.T @ inside
    return torch.stack(slopes[::-1])


def _fits(x, y, x_new, y_new):
    """正規方程式。"""
    if x_new.shape[1] > x.shape[1]:
        raise ValueError
    x, y, x_new, y_new = (a.double().numpy() for a in (x, y, x_new, y_new))
    one = np.linalg.lstsq(x.reshape(-1, 1), y.reshape(-1), rcond=None)[0]
    each = [np.linalg.lstsq(x[:, [t]], y[:, t], rcond=None)[0][0] for t in range(x_new.shape[1])]
    return tuple(float(np.mean((a * x_new - y_new) ** 2)) for a in (one, np.array(each)))


def _sizes_of_cells(draw: Draw):
    d_x, d_h, length = draw.sizes(3)
    for label, args in (
        ("小さなセル", (d_x, d_h, length)),
        ("長さを倍にする", (d_x, d_h, 2 * length)),
        ("一語だけ", (d_h, d_x, 1)),
        ("百語を読む大きなセル", (20 + d_x, 60 + d_h, 100)),
    ):
        yield Probe("parameter_counts", args, label=label)


def _slopes(draw: Draw):
    def probe(label, repeat=False, tolerance=None, **options):
        args = _rnn(draw, **options)
        g = draw.normal(len(args[3]), dtype=str(args[3].dtype))
        return Probe("copy_gradients", (*args, g), label=label, repeat=repeat, tolerance=tolerance)

    yield probe("ふつうの文", repeat=True)
    yield probe("短い文", length=3)
    yield probe("一語だけの文", length=1)
    if not draw.public:
        yield probe("長い文", length=12)
        yield probe("float32", dtype="float32", tolerance=(1e-3, 1e-5))


def _worlds(draw: Draw):
    n, length, more = draw.sizes(3)

    def probe(label, rows, cells, repeat=False, noise=0.5, dtype="float64", tolerance=None):
        coefficients = draw.normal(length)
        args = []
        for count, width in ((rows, length), (rows + more, cells)):
            x = draw.normal(count, width) + 0.4
            y = x * np.resize(coefficients, width) + draw.normal(count, width, scale=noise)
            args += [x.astype(dtype), (y.round(2) if draw.public else y).astype(dtype)]
        options = {"label": label, "repeat": repeat, "tolerance": tolerance}
        return Probe("fit_errors", tuple(args), **options)

    yield probe("位置ごとに違う関係", n, length, repeat=True)
    yield probe("新しいデータの方が短い", n, length - 1)
    yield probe("新しいデータの方が一語長い", n, length + 1)
    yield probe("例が一つだけ", 1, length)
    if not draw.public:
        yield probe("雑音が大きい", n, length, noise=3.0)
        yield probe("一語だけの新しいデータ", n, 1)
        yield probe("float32", n, length, dtype="float32", tolerance=(1e-3, 1e-5))


ONE = "one = d_h * (d_x + d_h + 1)"
BOTH_COUNTS = "return one, length * one"
COPIES = "copies = W_h.expand(len(x), *W_h.shape).clone().requires_grad_()"
COPY_STEP = "h = torch.tanh(W_x @ x[t] + copies[t] @ h + b)"
COPY_GRADIENT = "return torch.autograd.grad(g @ h, copies)[0]"
TOO_LONG = "if x_new.shape[1] > x.shape[1]:"
SHARED_FIT = "shared = (x * y).sum() / (x * x).sum()"
OWN_FIT = "own = (x * y).sum(dim=0) / (x * x).sum(dim=0)"
OWN_CUT = "own = own[: x_new.shape[1]]"
ERRORS = "errors = [(a * x_new - y_new).square().mean() for a in (shared, own)]"
BOTH_ERRORS = "return errors[0].item(), errors[1].item()"
LOST = 'return "ウ"'


def _backward(
    slope: str = "(1 - hs[t] ** 2) * back", row: str = "hs[t - 1]", back: str = ""
) -> tuple:
    """copy_gradients を、手で書いた逆伝播にしたもの。"""
    back = back or "W_h.T @ a"
    return COPY_GRADIENT, (
        "hs, back, out = [torch.zeros_like(b)], g, []\n"
        "    for word in x:\n"
        "        hs.append(torch.tanh(W_x @ word + W_h @ hs[-1] + b))\n"
        "    for t in range(len(x), 0, -1):\n"
        f"        a = {slope}\n"
        f"        out.append(torch.outer(a, {row}))\n"
        f"        back = {back}\n"
        "    return torch.stack(out[::-1])"
    )


SHARING_WRONG = (
    wrong(
        "count-with-length",
        "共有しているのに、長さの分だけ数えています。一組の重みを、何度も使います。",
        (BOTH_COUNTS, "return length * one, length * one"),
    ),
    wrong(
        "count-once",
        "別々に持つときも、一組しか数えていません。時刻の数だけ組があります。",
        (BOTH_COUNTS, "return one, one"),
    ),
    wrong(
        "count-swapped",
        "返り値の順が逆です。（共有した数, 別々に持つ数）の順です。",
        (BOTH_COUNTS, "return length * one, one"),
    ),
    wrong(
        "count-no-bias",
        "バイアス b を数えていません。",
        (ONE, "one = d_h * (d_x + d_h)"),
    ),
    wrong(
        "count-two-biases",
        "バイアスを二つ数えています。この式のバイアスは b 一つです。",
        (ONE, "one = d_h * (d_x + d_h + 2)"),
    ),
    wrong(
        "count-no-recurrence",
        "W_h を数えていません。",
        (ONE, "one = d_h * (d_x + 1)"),
    ),
    wrong(
        "count-only-w-h",
        "別々に持つのを W_h だけにしています。W_x と b も時刻ごとに別です。",
        (BOTH_COUNTS, "return one, one + (length - 1) * d_h**2"),
    ),
    wrong(
        "gradient-total",
        "どの写しにも、合計の勾配を入れています。和を取る前の、写し一つずつの勾配を並べます。",
        (COPY_GRADIENT, COPY_GRADIENT + ".sum(0).expand(len(x), -1, -1)"),
    ),
    wrong(
        "gradient-mean",
        "時刻の数で割っています。共有した重みの勾配は、平均ではなく和です。",
        (COPY_GRADIENT, COPY_GRADIENT + " / len(x)"),
    ),
    wrong(
        "gradient-last",
        "最後の写しの勾配しか入っていません。前の時刻の写しも、隠れ状態を通して損失に効きます。",
        (COPY_STEP, COPY_STEP.replace("@ h", "@ h.detach()")),
    ),
    wrong(
        "gradient-new-state",
        "新しい隠れ状態との積になっています。W_h に掛かっているのは、一つ前の隠れ状態です。",
        _backward(row="hs[t]"),
    ),
    wrong(
        "gradient-no-slope",
        "tanh の傾き 1 − h² を掛けていません。",
        _backward(slope="back"),
    ),
    wrong(
        "gradient-not-passed",
        "どの時刻にも、同じ g が届くことにしています。"
        "時刻をさかのぼるたびに、傾きと W_h が掛かります。",
        _backward(back="back"),
    ),
    wrong(
        "gradient-no-transpose",
        "さかのぼるときの W_h が転置されていません。",
        _backward(back="W_h @ a"),
    ),
    wrong(
        "gradient-transposed",
        "勾配の行と列が逆です。W_h と同じ形の、同じ向きに並べます。",
        (COPY_GRADIENT, COPY_GRADIENT + ".mT"),
    ),
    wrong(
        "gradient-reversed",
        "並びの順が逆です。最初の要素が、最初の語を読むときの写しです。",
        (COPY_GRADIENT, COPY_GRADIENT + ".flip(0)"),
    ),
    wrong(
        "gradient-all-states",
        "すべての時刻の隠れ状態を損失に入れています。損失は、最後の隠れ状態だけで決まります。",
        (COPY_STEP, COPY_STEP + "\n        total = (total if t else 0) + g @ h"),
        (COPY_GRADIENT, COPY_GRADIENT.replace("g @ h", "total")),
    ),
    wrong(
        "fit-no-check",
        "新しいデータの方が長いことを調べていません。時刻ごとの係数は、その先の位置では決まっていません。",
        (TOO_LONG, "if False:"),
    ),
    wrong(
        "fit-last-again",
        "最後の位置の係数を、その先にも使っています。別々に持つと決めたなら、その先の係数はありません。",
        (TOO_LONG, "extra = x_new.shape[1] - x.shape[1]\n    if False:"),
        (OWN_CUT, OWN_CUT + "\n    own = torch.cat([own, own[-1:].expand(max(extra, 0))])"),
    ),
    wrong(
        "fit-same-length",
        "短い文まで断っています。位置ごとの係数は、短い文にも使えます。",
        (TOO_LONG, TOO_LONG.replace(" > ", " != ")),
    ),
    wrong(
        "fit-on-train",
        "係数を決めたデータで誤差を測っています。それでは、時刻ごとの係数がいつでも勝ちます。",
        (
            ERRORS,
            "own = (x * y).sum(dim=0) / (x * x).sum(dim=0)\n"
            "    errors = [(a * x - y).square().mean() for a in (shared, own)]",
        ),
    ),
    wrong(
        "fit-on-new",
        "新しいデータで係数を決めています。新しいデータは、測るためのものです。",
        (TOO_LONG, TOO_LONG + "\n        raise ValueError\n    x, y = x_new, y_new\n    if False:"),
    ),
    wrong(
        "fit-mean-of-own",
        "共有した係数が、時刻ごとの係数の平均になっています。全部の位置の例をまとめて、一つの係数を当てはめます。",
        (SHARED_FIT, "shared = ((x * y).sum(dim=0) / (x * x).sum(dim=0)).mean()"),
    ),
    wrong(
        "fit-ratio",
        "y の合計を x の合計で割っています。"
        "二乗誤差を最も小さくする係数は、積の和を二乗の和で割った値です。",
        (SHARED_FIT, "shared = y.sum() / x.sum()"),
        (OWN_FIT, "own = y.sum(dim=0) / x.sum(dim=0)"),
    ),
    wrong(
        "fit-mean-of-ratios",
        "例ごとの比を平均しています。0 に近い x の例に振り回されます。",
        (SHARED_FIT, "shared = (y / x).mean()"),
        (OWN_FIT, "own = (y / x).mean(dim=0)"),
    ),
    wrong(
        "fit-total",
        "誤差の合計を返しています。要素一つあたりの平均にします。",
        (ERRORS, ERRORS.replace("mean", "sum")),
    ),
    wrong(
        "fit-root",
        "平方根を取っています。返すのは、二乗誤差の平均です。",
        (ERRORS, ERRORS.replace(".mean()", ".mean().sqrt()")),
    ),
    wrong(
        "fit-swapped",
        "返り値の順が逆です。（共有した係数, 時刻ごとの係数）の順です。",
        (BOTH_ERRORS, "return errors[1].item(), errors[0].item()"),
    ),
    wrong(
        "fit-gap",
        "差を返しています。二つの誤差をそのまま返します。",
        (BOTH_ERRORS, "return (errors[0] - errors[1]).item()"),
    ),
    wrong(
        "choice-order",
        "語順は失われません。同じ重みでも、先に読んだ語ほど多くの回数 W_h と tanh を通るので、"
        "語を入れ替えると隠れ状態は変わります。",
        (LOST, 'return "ア"'),
    ),
    wrong(
        "choice-far",
        "遠い語の効き方が弱まるのは、行列と傾きを何度も掛けるからです。"
        "時刻ごとに違う行列でも、掛ける回数は同じです。",
        (LOST, 'return "イ"'),
    ),
    wrong(
        "choice-place",
        "何語目かは、隠れ状態に書いておけます。たとえば、読むたびに符号が入れ替わる成分があれば、"
        "同じ重みのまま、奇数番目と偶数番目を区別できます。",
        (LOST, 'return "エ"'),
    ),
)

SHARING_RIGHT = (
    Right(
        "by-hand",
        code="""
import torch


def parameter_counts(d_x, d_h, length):
    shared = d_h * d_x + d_h * d_h + d_h
    return [shared, sum(shared for _ in range(length))]


def copy_gradients(x, W_x, W_h, b, g):
    hs = [torch.zeros_like(b)]
    for word in x:
        hs.append((W_x @ word + W_h @ hs[-1] + b).tanh())
    out = torch.zeros(len(x), *W_h.shape, dtype=W_h.dtype)
    delta = g
    for t in reversed(range(len(x))):
        a = delta * (1 - hs[t + 1] ** 2)
        out[t] = a[:, None] * hs[t][None, :]
        delta = a @ W_h
    return out


def fit_errors(x, y, x_new, y_new):
    if x_new.shape[1] > x.shape[1]:
        raise ValueError("係数のない位置があります")
    shared = torch.linalg.lstsq(x.reshape(-1, 1), y.reshape(-1, 1)).solution.item()
    total_shared = total_own = 0.0
    for t in range(x_new.shape[1]):
        own = torch.dot(x[:, t], y[:, t]) / torch.dot(x[:, t], x[:, t])
        total_shared += ((shared * x_new[:, t] - y_new[:, t]) ** 2).sum().item()
        total_own += ((own * x_new[:, t] - y_new[:, t]) ** 2).sum().item()
    return [total_shared / x_new.numel(), total_own / x_new.numel()]


def answer_12_2():
    return "ウ"
""",
    ),
    Right(
        "separate-leaves",
        code="""
import torch


def parameter_counts(d_x, d_h, length):
    cell = torch.nn.RNNCell(d_x, d_h)
    n = sum(p.numel() for p in cell.parameters()) - d_h
    return n, n * length


def copy_gradients(x, W_x, W_h, b, g):
    copies = [W_h.detach().clone().requires_grad_() for _ in x]
    h = b * 0
    for word, copy in zip(x, copies):
        h = torch.tanh(torch.cat([W_x, copy], 1) @ torch.cat([word, h]) + b)
    torch.dot(g, h).backward()
    return torch.stack([copy.grad for copy in copies])


def fit_errors(x, y, x_new, y_new):
    steps = x_new.size(1)
    if steps > x.size(1):
        raise ValueError("長すぎます")
    a = torch.einsum("nt,nt->", x, y) / torch.einsum("nt,nt->", x, x)
    each = torch.einsum("nt,nt->t", x, y) / torch.einsum("nt,nt->t", x, x)
    loss = torch.nn.functional.mse_loss
    return loss(a * x_new, y_new), loss(each[:steps] * x_new, y_new)


def answer_12_2():
    options = {"ア": False, "イ": False, "ウ": True, "エ": False}
    return next(k for k, v in options.items() if v)
""",
    ),
    Right(
        "jacobian",
        edits=(
            (ONE, "one = d_h * d_x + d_h**2 + d_h"),
            (COPIES, "copies = torch.stack([W_h] * len(x)).requires_grad_()"),
            (COPY_GRADIENT, "(g * h).sum().backward()\n    return copies.grad"),
            (SHARED_FIT, "shared = torch.dot(x.ravel(), y.ravel()) / x.norm() ** 2"),
        ),
    ),
)


# ── 12-3 ──


def _decoded(E, W_h, W_y, h0, tgt, use_gold):
    """一文ずつ、一歩ずつ。"""
    rows = []
    for i in range(len(tgt)):
        h, steps = h0[i], []
        for t in range(tgt.shape[1] - 1):
            token = int(tgt[i, t])
            if t > 0 and not use_gold[i, t]:
                token = int(torch.argmax(steps[-1]))
            h = torch.tanh(E[token] + W_h @ h)
            steps.append(W_y @ h)
        rows.append(torch.stack(steps))
    return torch.stack(rows)


def _accuracies(E, W_h, W_y, h0, tgt, lengths):
    words, whole = [], []
    for gold in (True, False):
        said = _decoded(E, W_h, W_y, h0, tgt, torch.full((len(tgt), tgt.shape[1]), gold)).argmax(-1)
        rows = [(said[i, :n] == tgt[i, 1 : n + 1]).tolist() for i, n in enumerate(lengths.tolist())]
        words.append(sum(map(sum, rows)) / sum(map(len, rows)))
        whole.append(sum(map(all, rows)) / len(rows))
    return (*words, *whole)


def _survival(eps, length):
    """一歩ずつ掛けて、足す。"""
    alive, reached = 1.0, 0.0
    for _ in range(length):
        alive *= 1 - eps
        reached += alive
    return alive, reached


def _decoder(draw: Draw, v: int, d: int, batch: int, dtype: str = "float64") -> tuple:
    """(E, W_h, W_y, h0)。"""
    shapes = ((v, d, 1.0), (d, d, 1.2 / math.sqrt(d)), (v, d, 1.0), (batch, d, 1.0))
    return tuple(draw.normal(a, b, dtype=dtype, scale=scale) for a, b, scale in shapes)


def _decodings(draw: Draw):
    def probe(label, share, repeat=False, dtype="float64", steps=0, flip_first=False):
        t, v, d, batch = draw.sizes(4)
        t = steps or t
        weights = _decoder(draw, v, d, batch, dtype)
        gold = draw.rng.random((batch, t)) < share
        tgt = draw.rng.integers(0, v, (batch, t + 1))
        if flip_first:
            gold[:, 0] = False
        extra = {"tgt": tgt, "use_gold": gold}
        return Probe("decoder_logits", weights, extra, label=label, repeat=repeat)

    yield probe("いつも正解（教師強制）", 1.0, repeat=True)
    yield probe("いつも自分の出力", 0.0)
    yield probe("半分ずつ", 0.5)
    yield probe("一歩だけ", 0.5, steps=1)
    if not draw.public:
        yield probe("float32", 0.5, dtype="float32")
        yield probe("長い文", 0.3, steps=19)
        yield probe("一列目だけ偽", 1.0, flip_first=True)


def _decoding_slopes(draw: Draw):
    t, v, d, batch = draw.sizes(4)
    extra = {
        "tgt": draw.rng.integers(0, v, (batch, t + 1)),
        "use_gold": draw.rng.random((batch, t)) < 0.5,
    }
    yield Probe(
        "decoder_logits",
        _decoder(draw, v, d, batch),
        extra,
        label="logits を四つの引数で微分する",
        cotangent=draw.normal(batch, t, v),
    )


def _mostly_right(draw: Draw, t: int, v: int, d: int, batch: int) -> tuple:
    """ところどころで外れる正解。正解の前置きを読めば、その先は当たる。"""
    while True:
        E, W_h, W_y, h0 = weights = _decoder(draw, v, d, batch)
        tgt = draw.rng.integers(0, v, (batch, t + 1))
        lengths = draw.rng.integers(1, t, batch)
        lengths[:2] = t, 2
        for i in range(batch):
            h = h0[i]
            for k in range(t):
                h = np.tanh(E[tgt[i, k]] + W_h @ h)
                best = int((W_y @ h).argmax())
                lost = k < lengths[i] and (draw.rng.random() < 0.2 or (i == 0 and k == 1))
                tgt[i, k + 1] = (best + draw.integer(1, v)) % v if lost else best
            if lengths[i] < t:  # 数えない所は、当たらないようにする
                tgt[i, lengths[i] + 1 :] = (tgt[i, lengths[i] + 1 :] + 1) % v
        args = (*weights, tgt, lengths)
        values = _accuracies(*map(torch.from_numpy, args))
        if values[0] > values[1] and 0 < values[2] < 1:
            return args


def _prefixes(draw: Draw):
    given = corrected(draw, "12-3", "decoder_logits")

    def probe(label, repeat=False, **sizes):
        t, v, d, batch = draw.sizes(4)
        t, batch = sizes.get("t", max(t, 5)), sizes.get("batch", max(batch, 4))
        args = _mostly_right(draw, t, v, d, batch)
        return Probe("prefix_accuracy", args, label=label, repeat=repeat, given=given)

    yield probe("長さの違う文", repeat=True)
    yield probe("別のモデル")
    if not draw.public:
        yield probe("文が多い", t=6, batch=23)


def _rates(draw: Draw):
    for label, eps, length in (
        ("ふつうの誤り率", draw.integer(5, 40) / 100, draw.integer(4, 12)),
        ("小さな誤り率で長い文", draw.integer(2, 20) / 1000, draw.integer(200, 400)),
        ("一歩だけ", draw.integer(5, 95) / 100, 1),
        ("間違えない", 0.0, draw.integer(5, 30)),
        ("必ず間違える", 1.0, draw.integer(5, 30)),
        ("0 歩", 0.25, 0),
    ):
        yield Probe("error_free", (eps, length), label=label)


CHOOSE = "tokens = torch.where(use_gold[:, t], tgt[:, t], own)"
OWN = "own = steps[-1].argmax(dim=-1)"
DECODER_START = "h, tokens, steps = h0, tgt[:, 0], []"
DECODER_STEP = "h = torch.tanh(E[tokens] + h @ W_h.T)"
LOGITS = "steps.append(h @ W_y.T)"
DECODER_STACK = "return torch.stack(steps, dim=1)"
DECODER_TIMES = "for t in range(tgt.shape[1] - 1):"
COUNTED = "counted = torch.arange(n_steps) < lengths[:, None]"
GOLD = "use_gold = torch.full((len(tgt), n_steps), gold)"
RIGHT_ONES = "right = logits.argmax(dim=-1) == tgt[:, 1:]"
WORDS = "words.append(right[counted].double().mean().item())"
WHOLE = "whole.append((right | ~counted).all(dim=1).double().mean().item())"
FOUR = "return (*words, *whole)"
ALIVE = "alive = (1 - eps) ** length"
REACHED = "reached = sum((1 - eps) ** k for k in range(1, length + 1))"
BOTH_RATES = "return alive, reached"
UNFORCED = 'return "ア"'

FORCING_WRONG = (
    wrong(
        "always-gold",
        "use_gold を見ずに、いつも正解を入れています（教師強制だけになっています）。",
        (CHOOSE, "tokens = tgt[:, t]"),
    ),
    wrong(
        "always-own",
        "use_gold を見ずに、いつも自分の出力を入れています。",
        (CHOOSE, "tokens = own"),
    ),
    wrong(
        "inverted",
        "use_gold の意味が逆です。True のときに正解を入れます。",
        (CHOOSE, "tokens = torch.where(use_gold[:, t], own, tgt[:, t])"),
    ),
    wrong(
        "gold-shifted",
        "use_gold の列が一つずれています。t 歩目の入力を決めるのは、t 列目です。",
        (CHOOSE, CHOOSE.replace("use_gold[:, t]", "use_gold[:, t - 1]")),
    ),
    wrong(
        "one-for-all",
        "先頭の文の use_gold を、すべての文に使っています。文ごとに選びます。",
        (CHOOSE, CHOOSE.replace("use_gold[:, t]", "use_gold[:1, t]")),
    ),
    wrong(
        "answer-as-input",
        "t 歩目に当てる語そのものを入力にしています。入れるのは、その一つ前の語です。",
        (DECODER_START, DECODER_START.replace("tgt[:, 0]", "tgt[:, 1]")),
        (CHOOSE, CHOOSE.replace("tgt[:, t]", "tgt[:, t + 1]")),
    ),
    wrong(
        "soft-feedback",
        "確率で混ぜた埋め込みを入れています。生成のときに読むのは、選んだ一語です。",
        (OWN, "own = steps[-1].softmax(dim=-1) @ E"),
        (CHOOSE, "vectors = torch.where(use_gold[:, t, None], E[tgt[:, t]], own)"),
        (
            DECODER_STEP,
            "h = torch.tanh((vectors if t > 0 else E[tokens]) + h @ W_h.T)",
        ),
    ),
    wrong(
        "least-likely",
        "いちばん低いスコアの語を選んでいます。",
        (OWN, OWN.replace("argmax", "argmin")),
    ),
    wrong(
        "first-output-kept",
        "一歩目の出力をずっと入れています。入れるのは、直前の出力です。",
        (OWN, OWN.replace("steps[-1]", "steps[0]")),
    ),
    wrong(
        "no-source",
        "h0 を使わずに、0 から始めています。これでは、原文を読んでいません。",
        (DECODER_START, DECODER_START.replace("h0,", "h0 * 0,")),
    ),
    wrong(
        "restarted",
        "一歩ごとに h0 へ戻っています。隠れ状態は、前の歩から受け継ぎます。",
        (DECODER_STEP, DECODER_STEP.replace("h @ W_h.T", "h0 @ W_h.T")),
    ),
    wrong(
        "decoder-transposed",
        "W_h が転置されています。正方行列なので、形では気づけません。",
        (DECODER_STEP, DECODER_STEP.replace("W_h.T", "W_h")),
    ),
    wrong(
        "decoder-linear",
        "tanh がありません。",
        (DECODER_STEP, DECODER_STEP.replace("torch.tanh", "")),
    ),
    wrong(
        "decoder-softmax",
        "softmax を取っています。返すのは、その前の logits です。",
        (DECODER_STACK, DECODER_STACK + ".softmax(dim=-1)"),
    ),
    wrong(
        "one-step-more",
        "最後の語を読んだ後まで進んでいます。"
        "文の始まりの印は当てないので、歩数は tgt の列の数より一つ少なくなります。",
        (DECODER_TIMES, "for t in range(tgt.shape[1]):"),
        (CHOOSE, CHOOSE.replace("use_gold[:, t]", "use_gold[:, min(t, use_gold.shape[1] - 1)]")),
    ),
    wrong(
        "steps-first",
        "歩の次元を先頭に置いています。形は (B, T, V) です。",
        (DECODER_STACK, "return torch.stack(steps)"),
    ),
    wrong(
        "decoder-cut",
        "前の隠れ状態から勾配が切れています。",
        (DECODER_STEP, DECODER_STEP.replace("h @", "h.detach() @")),
    ),
    wrong(
        "padding-counted",
        "lengths を見ずに、すべての位置を数えています。",
        (COUNTED, "counted = torch.ones_like(tgt[:, 1:]).bool()"),
    ),
    wrong(
        "mean-of-sentences",
        "文ごとの正解率を平均しています。すべての文の語を合わせて、正しい語の数を語の総数で割ります。",
        (
            WORDS,
            "words.append(((right & counted).sum(1) / counted.sum(1)).double().mean().item())",
        ),
    ),
    wrong(
        "compared-with-input",
        "出力を、入力の語と比べています。比べる相手は、その次の語です。",
        (RIGHT_ONES, RIGHT_ONES.replace("tgt[:, 1:]", "tgt[:, :-1]")),
    ),
    wrong(
        "same-prefix",
        "どちらも正解の前置きで測っています。二つ目は、自分の出力を読ませて測ります。",
        (GOLD, GOLD.replace("gold)", "True)")),
    ),
    wrong(
        "prefixes-swapped",
        "返り値の順が違います。語の割合が先、文の割合が後で、どちらも正解の前置きが先です。",
        (FOUR, "return (*words[::-1], *whole[::-1])"),
    ),
    wrong(
        "until-first-error",
        "最初の間違いより前の語しか、正しいと数えていません。間違いの後で当たった語も数えます。",
        (WORDS, WORDS.replace("right[counted]", "right.cumprod(dim=1)[counted]")),
    ),
    wrong(
        "any-word",
        "一語でも正しければ、正しい文と数えています。全部の語が正しい文を数えます。",
        (WHOLE, "whole.append((right & counted).any(dim=1).double().mean().item())"),
    ),
    wrong(
        "whole-with-padding",
        "数えない位置まで正しいことを、文に求めています。",
        (WHOLE, WHOLE.replace("(right | ~counted)", "right")),
    ),
    wrong(
        "last-word-only",
        "文の正しさを、最後の語だけで決めています。",
        (
            WHOLE,
            "last = right.gather(1, lengths[:, None] - 1)\n"
            "        whole.append(last.double().mean().item())",
        ),
    ),
    wrong(
        "linear-decay",
        "誤り率に歩数を掛けて引いています。一歩ごとに (1 − ε) を掛けます。",
        (ALIVE, "alive = 1 - eps * length"),
    ),
    wrong(
        "always-failing",
        "ずっと間違え続ける確率になっています。一度も間違えない確率を求めます。",
        (ALIVE, "alive = eps**length"),
    ),
    wrong(
        "some-failure",
        "どこかで間違える確率になっています。",
        (ALIVE, ALIVE.replace("(1", "1 - (1")),
    ),
    wrong(
        "one-step-less",
        "掛ける回数が一つ少なくなっています。一歩目も間違えることがあります。",
        (ALIVE, "alive = (1 - eps) ** max(length - 1, 0)"),
    ),
    wrong(
        "right-anywhere",
        "間違いの後で当たった語まで数えています。数えるのは、最初の間違いより前の語です。",
        (REACHED, "reached = (1 - eps) * length"),
    ),
    wrong(
        "counts-the-error",
        "最初の間違いの語まで数えています。数えるのは、その前までです。",
        (REACHED, REACHED.replace("range(1, length + 1)", "range(length)")),
    ),
    wrong(
        "endless",
        "文の長さに限りがないときの値になっています。歩数は length で止まります。",
        (REACHED, "reached = (1 - eps) / eps if eps else float(length)"),
    ),
    wrong(
        "zero-division",
        "間違えないとき（ε = 0）に、0 で割っています。等比数列の和の式は、ε = 0 では使えません。",
        (REACHED, "reached = (1 - eps) * (1 - alive) / eps"),
    ),
    wrong(
        "rates-swapped",
        "返り値の順が逆です。（一度も間違えない確率, 語数の期待値）の順です。",
        (BOTH_RATES, "return reached, alive"),
    ),
    wrong(
        "choice-bias",
        "露出バイアスは、学習で読む前置きと生成で読む前置きの食い違いのことです。"
        "どちらでも自分の前置きを読むなら、食い違いはありません。",
        (UNFORCED, 'return "イ"'),
    ),
    wrong(
        "choice-gradient",
        "argmax の値は、logits を少し動かしても変わりません。"
        "どの語を選んだかを通しては、勾配が流れません。",
        (UNFORCED, 'return "ウ"'),
    ),
    wrong(
        "choice-inference",
        "生成のときに読むのは、いつでも自分の出力です。"
        "学習のしかたを変えても、生成の手順は変わりません。",
        (UNFORCED, 'return "エ"'),
    ),
)

FORCING_RIGHT = (
    Right(
        "loops",
        code="""
import torch


def decoder_logits(E, W_h, W_y, h0, tgt, use_gold):
    rows = []
    for i in range(len(tgt)):
        h, row, word = h0[i], [], tgt[i, 0]
        for t in range(tgt.shape[1] - 1):
            h = (E[word] + W_h @ h).tanh()
            row.append(W_y @ h)
            if t + 1 < tgt.shape[1] - 1:
                word = tgt[i, t + 1] if use_gold[i, t + 1] else row[-1].argmax()
        rows.append(torch.stack(row))
    return torch.stack(rows)


def prefix_accuracy(E, W_h, W_y, h0, tgt, lengths):
    result = []
    for gold in (True, False):
        mask = torch.full_like(tgt[:, 1:], gold, dtype=torch.bool)
        said = decoder_logits(E, W_h, W_y, h0, tgt, mask).argmax(-1)
        hits = total = perfect = 0
        for i in range(len(tgt)):
            n = int(lengths[i])
            good = (said[i, :n] == tgt[i, 1 : n + 1]).sum().item()
            hits, total, perfect = hits + good, total + n, perfect + (good == n)
        result.append((hits / total, perfect / len(tgt)))
    (a, c), (b, d) = result
    return [a, b, c, d]


def error_free(eps, length):
    alive = total = 0.0
    alive = 1.0
    for _ in range(length):
        alive = alive * (1 - eps)
        total = total + alive
    return alive, total


def answer_12_3():
    return "ア"
""",
    ),
    Right(
        "einsum",
        code="""
import torch


def decoder_logits(E, W_h, W_y, h0, tgt, use_gold):
    steps = tgt.shape[1] - 1
    h = torch.tanh(E[tgt[:, 0]] + torch.einsum("dk,bk->bd", W_h, h0))
    logits = [torch.einsum("vd,bd->bv", W_y, h)]
    for t in range(1, steps):
        own = logits[-1].max(-1).indices
        word = own * ~use_gold[:, t] + tgt[:, t] * use_gold[:, t]
        h = torch.tanh(E.index_select(0, word) + torch.einsum("dk,bk->bd", W_h, h))
        logits.append(torch.einsum("vd,bd->bv", W_y, h))
    return torch.stack(logits, 1)


def prefix_accuracy(E, W_h, W_y, h0, tgt, lengths):
    steps = tgt.shape[1] - 1
    place = torch.arange(steps).expand(len(tgt), steps)
    inside = (place < lengths.unsqueeze(1)).double()
    rates = torch.zeros(2, 2, dtype=torch.float64)
    for i, mask in enumerate((torch.ones(len(tgt), steps), torch.zeros(len(tgt), steps))):
        said = decoder_logits(E, W_h, W_y, h0, tgt, mask.bool()).argmax(-1)
        errors = (said != tgt[:, 1:]).double() * inside
        rates[0, i] = 1 - errors.sum() / inside.sum()
        rates[1, i] = (errors.sum(1) == 0).double().mean()
    return rates.flatten().tolist()


def error_free(eps, length):
    if eps == 0:
        return 1.0, length
    alive = (1 - eps) ** length
    return alive, (1 - eps) * (1 - alive) / eps


def answer_12_3():
    wrong = {"イ", "ウ", "エ"}
    return next(c for c in "アイウエ" if c not in wrong)
""",
    ),
    Right(
        "one-hot",
        edits=(
            (
                DECODER_STEP,
                "hot = torch.nn.functional.one_hot(tokens, len(E)).to(E)\n"
                "        h = torch.tanh(hot @ E + torch.nn.functional.linear(h, W_h))",
            ),
            (CHOOSE, "tokens = own.where(~use_gold[:, t], tgt[:, t])"),
            (OWN, "own = steps[-1].detach().log_softmax(dim=-1).argmax(dim=-1)"),
            (REACHED, "reached = math.fsum((1 - eps) ** (k + 1) for k in range(length))"),
        ),
    ),
)


# ── 12-4 ──


def _context_vector(alpha, H):
    return torch.einsum("...ts,...sd->...td", alpha, H)


def _entropy(alpha):
    """0 の所を先に取りかえてから、対数を取る。"""
    seen = alpha > 0
    return -(alpha * torch.where(seen, alpha, 1.0).log()).sum(-1)


def _tempered(scores, H, tau, mask=None):
    """行ごとに、見てよい所だけを取り出して。"""
    seen = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
    seen = seen.broadcast_to(scores.shape)
    rows = []
    for row, allowed in zip(
        scores.reshape(-1, scores.shape[-1]), seen.reshape(-1, scores.shape[-1]), strict=True
    ):
        if not allowed.any():
            raise ValueError
        gap = row[allowed] - row[allowed].max()
        if tau == 0:
            share = (gap == 0).to(row)
        else:
            share = torch.ones_like(gap) if math.isinf(tau) else torch.exp(gap / tau)
        out = row * 0
        out = out.masked_scatter(allowed, share / share.sum())
        rows.append(out)
    alpha = torch.stack(rows).reshape(scores.shape)
    return _context_vector(alpha, H), alpha


def _some(draw: Draw, *shape: int) -> np.ndarray:
    """どの行にも True と False がある真偽値。行ごとに、その二か所を決める。"""
    mask = draw.rng.random(shape) < 0.6
    for row in mask.reshape(-1, shape[-1]):
        row[draw.rng.permutation(shape[-1])[:2]] = True, False
    return mask


def _weights(draw: Draw, *shape: int, dtype: str = "float64", zeros: bool = False) -> np.ndarray:
    """行の和が 1 の重み。"""
    raw = draw.rng.random(shape) + 0.05
    if zeros:
        raw *= _some(draw, *shape)
    raw = raw / raw.sum(-1, keepdims=True)
    return raw.astype(dtype)


def _averages(draw: Draw):
    def probe(label, *lead, dtype="float64", kind="", repeat=False):
        t, s, d = draw.sizes(3)
        alpha = _weights(draw, *lead, t, s, dtype=dtype)
        if kind == "one-hot":
            alpha = np.eye(s, dtype=dtype)[draw.rng.integers(0, s, t)]
        if kind == "uniform":
            alpha = np.full((t, s), 1 / s, dtype=dtype)
        H = draw.normal(*lead, s, d, dtype=dtype)
        return Probe("context_vector", (alpha, H), label=label, repeat=repeat)

    yield probe("ふつうの重み", repeat=True)
    yield probe("一か所だけの重み", kind="one-hot")
    yield probe("一様な重み", kind="uniform")
    yield probe("文を並べたもの", 2)
    if not draw.public:
        yield probe("float32、先頭に次元が二つ", 3, 2, dtype="float32")


def _average_slopes(draw: Draw):
    t, s, d = draw.sizes(3)
    yield Probe(
        "context_vector",
        (_weights(draw, 2, t, s), draw.normal(2, s, d)),
        label="重みと H で微分する",
        cotangent=draw.normal(2, t, d),
    )


def _entropies(draw: Draw):
    def probe(label, alpha, **options):
        return Probe("entropy", (alpha,), label=label, **options)

    t, s, b = draw.sizes(3)
    yield probe("ふつうの重み", _weights(draw, t, s), repeat=True)
    yield probe("一か所だけの重み", np.eye(t))
    yield probe("一様な重み", np.full((b, t), 1 / t))
    yield probe("ところどころ 0 の重み", _weights(draw, t, s, zeros=True))
    yield probe("一本だけの重み", _weights(draw, s))
    yield probe("一語だけの文", np.ones((t, 1)))
    if not draw.public:
        yield probe("float32", _weights(draw, b, t, s, dtype="float32", zeros=True))


def _temperatures(draw: Draw):
    given = corrected(draw, "12-4", "context_vector")

    def probe(label, tau, *lead, dtype="float64", scale=1.0, ties=False, repeat=False):
        t, s, d = draw.sizes(3)
        scores = draw.normal(*lead, t, max(s, 3), dtype=dtype, scale=scale)
        if ties:
            top = np.abs(scores).max() + 1
            for row in scores.reshape(-1, scores.shape[-1]):
                row[draw.rng.permutation(len(row))[:2]] = top
        H = draw.normal(*lead, scores.shape[-1], d, dtype=dtype)
        return Probe("attend_at", (scores, H, tau), label=label, repeat=repeat, given=given)

    warm = draw.integer(15, 40) / 10
    yield probe("温度 1", 1.0, repeat=True)
    yield probe("高い温度", warm)
    yield probe("低い温度", 0.3, 2)
    yield probe("温度 0", 0.0)
    yield probe("温度 0、最大が二つある", 0.0, ties=True)
    yield probe("温度 ∞", math.inf)
    yield probe("スコアの絶対値がとても大きい", 0.5, scale=3000.0)
    if not draw.public:
        yield probe("float32", warm, 3, 2, dtype="float32")
        yield probe("温度 ∞、先頭に次元がある", math.inf, 2)
        yield probe("とても低い温度", 1e-3, scale=30.0)


def _temperature_masks(draw: Draw):
    given = corrected(draw, "12-4", "context_vector")

    def probe(label, tau, *lead, shape=None, blind=False, dtype="float64", scale=1.0):
        t, s, d = draw.sizes(3)
        s = max(s, 5)
        scores = draw.normal(*lead, t, s, dtype=dtype, scale=scale)
        mask = _some(draw, *(shape or (t,)), s)
        if blind:
            mask[0] = False
        H = draw.normal(*lead, s, d, dtype=dtype)
        return Probe("attend_at", (scores, H, tau), {"mask": mask}, label=label, given=given)

    yield probe("マスクのある温度 1", 1.0)
    yield probe("マスクのある温度 0", 0.0)
    yield probe("マスクのある温度 ∞", math.inf)
    yield probe("文ごとのマスク（B, 1, S）", 2.0, 2, shape=(2, 1))
    yield probe("見てよい所のない行", 1.0, blind=True)
    yield probe("見てよい所のない行、温度 ∞", math.inf, blind=True)
    if not draw.public:
        yield probe("大きなスコアとマスク", 1.0, scale=1000.0)
        yield probe("float32 とマスク", 0.7, 2, shape=(2, 1), dtype="float32")


MIX = "return alpha @ H"
ENTROPY = "return -(alpha * safe.log()).sum(dim=-1)"
SAFE = "safe = torch.where(alpha > 0, alpha, 1)"
SEEN = "seen = mask.expand_as(scores)"
BLIND = "if not seen.any(dim=-1).all():"
HIDE = "scores = scores.masked_fill(~seen, -math.inf)"
GAP = "gap = scores - scores.amax(dim=-1, keepdim=True)"
COLD = "alpha = (gap == 0).to(scores)"
HOT = "alpha = seen.to(scores)"
WARM = "alpha = (gap / tau).exp()"
SHARE = "alpha = alpha / alpha.sum(dim=-1, keepdim=True)"
BOTH = "return context_vector(alpha, H), alpha"
EXTREMES = 'return "イ", "カ"'

EXTREMES_WRONG = (
    wrong(
        "plain-sum",
        "重みを掛けずに、h を足しています。文脈ベクトルは、重みつきの平均です。",
        (MIX, "return (alpha * 0 + 1) @ H"),
    ),
    wrong(
        "plain-mean",
        "重みを使わずに、h を平均しています。これでは、どの t でも同じ一本になります。",
        (MIX, "return (alpha * 0 + 1 / H.shape[-2]) @ H"),
    ),
    wrong(
        "divided-again",
        "位置の数で割っています。重みの和はもう 1 なので、割る必要はありません。",
        (MIX, "return alpha @ H / H.shape[-2]"),
    ),
    wrong(
        "hard-choice",
        "重みがいちばん大きい位置の h だけを取り出しています。重みの割合で混ぜます。",
        (
            MIX,
            "hot = torch.nn.functional.one_hot(alpha.argmax(-1), alpha.shape[-1])\n"
            "    return (hot.to(alpha) + 0 * alpha) @ H",
        ),
    ),
    wrong(
        "softmax-again",
        "重みにもう一度 softmax を掛けています。渡されるのは、和が 1 の重みです。",
        (MIX, "return alpha.softmax(dim=-1) @ H"),
    ),
    wrong(
        "final-state",
        "最後の h をそのまま使っています。これは、Attention のない固定の一本です。",
        (MIX, "return H[..., -1:, :] * alpha.sum(dim=-1, keepdim=True)"),
    ),
    wrong(
        "weights-detached",
        "重みから勾配が切れています。どこを見るかも、学習で決まります。",
        (MIX, "return alpha.detach() @ H + 0 * alpha.sum()"),
    ),
    wrong(
        "nan-at-zero",
        "重み 0 の所で、0 掛ける −∞ が NaN になっています。0 log 0 は 0 とします。",
        (SAFE, "safe = alpha"),
    ),
    wrong(
        "small-number-added",
        "対数の中に小さな数を足しています。"
        "一か所だけの重みで、エントロピーがちょうど 0 になりません。",
        (SAFE, "safe = alpha + 1e-6"),
    ),
    wrong(
        "in-bits",
        "単位がビットになっています。自然対数で測ります。",
        (ENTROPY, ENTROPY.replace("log", "log2")),
    ),
    wrong(
        "entropy-sign",
        "符号が逆です。エントロピーは 0 以上です。",
        (ENTROPY, ENTROPY.replace("-(", "(")),
    ),
    wrong(
        "entropy-mean",
        "位置について平均しています。和を取ります。",
        (ENTROPY, ENTROPY.replace("sum", "mean")),
    ),
    wrong(
        "entropy-share",
        "最大の値（位置の数の対数）で割っています。割らずに返します。",
        (ENTROPY, ENTROPY + " / math.log(max(alpha.shape[-1], 2))"),
    ),
    wrong(
        "entropy-count",
        "指数を取って、位置の数に直しています。エントロピーのまま返します。",
        (ENTROPY, "return (-(alpha * safe.log()).sum(dim=-1)).exp()"),
    ),
    wrong(
        "entropy-total",
        "すべての行を足しています。行ごとに一つの数を返します。",
        (ENTROPY, "return -(alpha * safe.log()).sum()"),
    ),
    wrong(
        "entropy-largest",
        "いちばん大きい重みの驚きだけを見ています。すべての位置について、重みつきで平均します。",
        (ENTROPY, "return -alpha.amax(dim=-1).log()"),
    ),
    wrong(
        "no-temperature",
        "温度 τ で割っていません。",
        (WARM, "alpha = gap.exp()"),
    ),
    wrong(
        "multiplied",
        "スコアに τ を掛けています。これでは、温度を上げるほど一か所に集まります。",
        (WARM, "alpha = (gap * tau).exp()"),
    ),
    wrong(
        "root-temperature",
        "τ の平方根で割っています。割るのは τ そのものです。",
        (WARM, "alpha = (gap / math.sqrt(tau)).exp()"),
    ),
    wrong(
        "overflow",
        "指数を取る前に最大のスコアを引いていません。大きなスコアで桁があふれ、NaN になります。",
        (GAP, GAP + "\n    gap = scores if 0 < tau < math.inf else gap"),
    ),
    wrong(
        "zero-divides",
        "温度 0 で、0 で割っています。τ を 0 に近づけた極限を返します。",
        (COLD, "alpha = (gap / tau).exp()"),
    ),
    wrong(
        "first-of-ties",
        "最大が二つあるのに、片方だけを選んでいます。温度をどれだけ下げても、同じスコアの重みは等しいままです。",
        (COLD, "alpha = torch.zeros_like(gap).scatter(-1, gap.argmax(-1, keepdim=True), 1.0)"),
    ),
    wrong(
        "hot-unnormalised",
        "温度 ∞ で、重みの和が 1 になっていません。h の和ではなく、平均になります。",
        (SHARE, "alpha = alpha if math.isinf(tau) else alpha / alpha.sum(dim=-1, keepdim=True)"),
    ),
    wrong(
        "hot-everywhere",
        "温度 ∞ で、見てはいけない所にも重みを配っています。",
        (HOT, "alpha = torch.ones_like(scores)"),
    ),
    wrong(
        "hot-divides",
        "温度 ∞ で、見てはいけない所が −∞ ÷ ∞ で NaN になっています。",
        (HOT, "alpha = (gap / tau).exp()"),
    ),
    wrong(
        "mask-ignored",
        "マスクを使っていません。",
        (SEEN, "seen = torch.ones_like(scores, dtype=torch.bool)"),
    ),
    wrong(
        "mask-inverted",
        "マスクの意味が逆です。True が「見てよい」です。",
        (SEEN, "seen = ~mask.expand_as(scores)"),
    ),
    wrong(
        "mask-score-zero",
        "見てはいけない所のスコアを 0 にしています。スコア 0 にも、重みは付きます。",
        (HIDE, "scores = scores.masked_fill(~seen, 0.0)"),
    ),
    wrong(
        "mask-after",
        "softmax の後で、見てはいけない所を 0 にしただけです。残った重みの和が 1 になりません。",
        (HIDE, ""),
        (SHARE, SHARE + " * seen"),
        (HOT, "alpha = torch.ones_like(scores)"),
    ),
    wrong(
        "blind-row",
        "見てよい所が一つもない行で、ValueError を出していません。",
        (BLIND, "if False:"),
    ),
    wrong(
        "over-queries",
        "softmax の向きが違います。行（t）ごとに、原文の位置について和を 1 にします。",
        (SHARE, SHARE.replace("dim=-1", "dim=-2")),
        (GAP, "gap = scores - scores.amax(dim=(-1 if tau == 0 else -2), keepdim=True)"),
    ),
    wrong(
        "pair-swapped",
        "返り値の順が逆です。（文脈ベクトル, 重み）の順です。",
        (BOTH, "return alpha, context_vector(alpha, H)"),
    ),
    wrong(
        "scores-written",
        "渡されたスコアを書きかえています。",
        (HIDE, "scores = scores.masked_fill_(~seen, -math.inf).sub_(0.5)"),
    ),
    wrong(
        "choice-unused",
        "一つ目の記号が違います。一か所だけの重みは、Attention のいちばんはっきりした形です。"
        "その t で見る場所を、一つに決めています。",
        (EXTREMES, 'return "ア", "カ"'),
    ),
    wrong(
        "choice-fixed",
        "一つ目の記号が違います。どこに 1 を置くかは、t ごとに決められます。",
        (EXTREMES, 'return "ウ", "カ"'),
    ),
    wrong(
        "choice-sum",
        "二つ目の記号が違います。重みの和は 1 なので、文が長くなっても値は大きくなりません。",
        (EXTREMES, 'return "イ", "エ"'),
    ),
    wrong(
        "choice-last",
        "二つ目の記号が違います。一様な重みは、どの位置も同じだけ使います。"
        "最後の位置だけを使うのは、最後に 1 を置いた重みです。",
        (EXTREMES, 'return "イ", "オ"'),
    ),
)

EXTREMES_RIGHT = (
    Right(
        "loops",
        code="""
import math

import torch


def context_vector(alpha, H):
    total = 0
    for i in range(H.shape[-2]):
        total = total + alpha[..., :, i, None] * H[..., i, None, :]
    return total


def entropy(alpha):
    return torch.special.entr(alpha).sum(-1)


def attend_at(scores, H, tau, mask=None):
    mask = torch.ones_like(scores).bool() if mask is None else mask
    mask = mask | torch.zeros_like(scores).bool()
    if (mask.sum(-1) == 0).any():
        raise ValueError("見る所がありません")
    hidden = torch.where(mask, scores, torch.tensor(-math.inf, dtype=scores.dtype))
    if tau == 0:
        best = (hidden == hidden.max(-1, keepdim=True).values).to(scores.dtype)
        alpha = best / best.sum(-1, keepdim=True)
    elif tau == math.inf:
        alpha = mask / mask.sum(-1, keepdim=True).to(scores.dtype)
    else:
        alpha = torch.softmax(hidden / tau, dim=-1)
    return context_vector(alpha, H), alpha


def answer_12_4():
    return ["イ", "カ"]
""",
    ),
    Right(
        "log-space",
        code="""
import torch


def context_vector(alpha, H):
    return torch.einsum("...ts,...sd->...td", alpha, H)


def entropy(alpha):
    out = torch.zeros_like(alpha)
    inside = alpha > 0
    out[inside] = alpha[inside] * alpha[inside].log()
    return out.sum(-1).neg()


def attend_at(scores, H, tau, mask=None):
    if mask is None:
        mask = torch.tensor(True)
    seen = torch.broadcast_to(mask, scores.shape)
    if not bool((seen.max(-1).values).all()):
        raise ValueError("見てよい所のない行があります")
    low = torch.finfo(scores.dtype).min
    top = scores.masked_fill(~seen, low).amax(-1, keepdim=True)
    if tau == 0:
        raw = ((scores == top) & seen).to(scores)
    elif tau == float("inf"):
        raw = seen.to(scores)
    else:
        raw = torch.exp((scores - top).clamp(max=0) / tau) * seen
    alpha = raw / raw.sum(-1, keepdim=True)
    return context_vector(alpha, H), alpha


def answer_12_4():
    return tuple("イカ")
""",
    ),
    Right(
        "softmax",
        edits=(
            (MIX, "return (alpha.unsqueeze(-1) * H.unsqueeze(-3)).sum(dim=-2)"),
            (SAFE, "safe = alpha.clamp(min=torch.finfo(alpha.dtype).tiny)"),
            (WARM, "alpha = (scores / tau).softmax(dim=-1)"),
            (COLD, "alpha = (scores >= scores.amax(dim=-1, keepdim=True)).to(scores)"),
        ),
    ),
)


QUESTIONS = (
    Question(
        "12-1",
        parts=(
            Part(
                "n-gram の窓",
                2,
                (Check("文脈", _contexts, _context, outputs=("文脈",), section=WINDOW),),
            ),
            Part(
                "隠れ状態",
                2,
                (
                    Check("隠れ状態の値", _readings, _states, outputs=("隠れ状態",), section=CELL),
                    Check(
                        "勾配",
                        _reading_slopes,
                        _states,
                        outputs=tuple(f"{name} の勾配" for name in ("x", "W_x", "W_h", "b")),
                        section=UNROLL,
                    ),
                ),
            ),
            Part(
                "効き方",
                2,
                (
                    Check(
                        "効き方の値",
                        _reaches,
                        _influence,
                        outputs=("効き方",),
                        section=PRODUCT,
                    ),
                ),
            ),
            Part(
                "n と回数",
                1,
                (
                    Check(
                        "二つの数",
                        small_answers("12-1"),
                        lambda: (6.0, 4.0),
                        outputs=("最小の n", "W_h を掛ける回数"),
                        section=MEMORY,
                    ),
                ),
            ),
        ),
        model=functools.partial(source.model, "12-1"),
        wrong=REACH_WRONG,
        right=REACH_RIGHT,
        shortcuts=READY_MADE,
    ),
    Question(
        "12-2",
        parts=(
            Part(
                "パラメータの数",
                1,
                (
                    Check(
                        "二つの数",
                        _sizes_of_cells,
                        _counts,
                        outputs=("共有した数", "別々に持つ数"),
                        section=UNROLL,
                    ),
                ),
            ),
            Part(
                "写しの勾配",
                3,
                (Check("勾配の値", _slopes, _copies, outputs=("勾配",), section=SHARED),),
            ),
            Part(
                "位置ごとの当てはめ",
                2,
                (
                    Check(
                        "二つの誤差",
                        _worlds,
                        _fits,
                        outputs=("共有した係数の誤差", "時刻ごとの係数の誤差"),
                        section=SHARED,
                    ),
                ),
            ),
            Part(
                "失われるもの",
                1,
                (
                    Check(
                        "記号",
                        small_answers("12-2"),
                        lambda: "ウ",
                        outputs=("記号",),
                        section=SHARED,
                    ),
                ),
            ),
        ),
        model=functools.partial(source.model, "12-2"),
        wrong=SHARING_WRONG,
        right=SHARING_RIGHT,
        shortcuts=READY_MADE,
    ),
    Question(
        "12-3",
        parts=(
            Part(
                "入力を選ぶデコーダ",
                3,
                (
                    Check(
                        "logits の値", _decodings, _decoded, outputs=("logits",), section=FORCING
                    ),
                    Check(
                        "勾配",
                        _decoding_slopes,
                        _decoded,
                        outputs=tuple(f"{name} の勾配" for name in ("E", "W_h", "W_y", "h0")),
                        section=FORCING,
                    ),
                ),
            ),
            Part(
                "二つの前置き",
                2,
                (
                    Check(
                        "四つの割合",
                        _prefixes,
                        _accuracies,
                        outputs=(
                            "正解の前置きでの語の割合",
                            "自分の前置きでの語の割合",
                            "正解の前置きでの文の割合",
                            "自分の前置きでの文の割合",
                        ),
                        section=EXPOSURE,
                    ),
                ),
            ),
            Part(
                "間違えずに進む",
                2,
                (
                    Check(
                        "確率と語数",
                        _rates,
                        _survival,
                        outputs=("一度も間違えない確率", "語数の期待値"),
                        section=EXPOSURE,
                    ),
                ),
            ),
            Part(
                "教師強制をやめると",
                1,
                (
                    Check(
                        "記号",
                        small_answers("12-3"),
                        lambda: "ア",
                        outputs=("記号",),
                        section=SCHEDULED,
                    ),
                ),
            ),
        ),
        model=functools.partial(source.model, "12-3"),
        wrong=FORCING_WRONG,
        right=FORCING_RIGHT,
        shortcuts=(*READY_MADE, "lib.seq2seq"),
    ),
    Question(
        "12-4",
        parts=(
            Part(
                "文脈ベクトル",
                1,
                (
                    Check(
                        "文脈ベクトルの値",
                        _averages,
                        _context_vector,
                        outputs=("文脈ベクトル",),
                        section=IDEA,
                    ),
                    Check(
                        "勾配",
                        _average_slopes,
                        _context_vector,
                        outputs=("重みの勾配", "H の勾配"),
                        section=IDEA,
                    ),
                ),
            ),
            Part(
                "エントロピー",
                2,
                (
                    Check(
                        "エントロピーの値",
                        _entropies,
                        _entropy,
                        outputs=("エントロピー",),
                        section=AVERAGE,
                    ),
                ),
            ),
            Part(
                "温度",
                3,
                (
                    Check(
                        "温度を変えた値",
                        _temperatures,
                        _tempered,
                        outputs=("文脈ベクトル", "注意の重み"),
                        section=AVERAGE,
                    ),
                    Check(
                        "マスクの効き方",
                        _temperature_masks,
                        _tempered,
                        outputs=("文脈ベクトル", "注意の重み"),
                        section=MASK,
                    ),
                ),
            ),
            Part(
                "二つの極限の意味",
                1,
                (
                    Check(
                        "記号",
                        small_answers("12-4"),
                        lambda: ("イ", "カ"),
                        outputs=("一つ目の記号", "二つ目の記号"),
                        section=AVERAGE,
                    ),
                ),
            ),
        ),
        model=functools.partial(source.model, "12-4"),
        wrong=EXTREMES_WRONG,
        right=EXTREMES_RIGHT,
        shortcuts=("lib", "lib.attention", "scaled_dot_product_attention", "MultiheadAttention"),
    ),
)
