"""第 12 週の検査（12-5 から 12-8）：言語モデルと seq2seq、√d_k、重みと介入。

正解は lib を使わない：総当たり、数のループ、閉じた式（試験で lib や torch と突き合わせる）。
"""

import functools
import itertools
import math

import numpy as np
import torch

from exercises.checks.common import corrected, small_answers, wrong
from exercises.grading import source
from exercises.grading.check import Band, Check, Draw, Part, Probe, Question, Right

SEQ2SEQ = "第 12 週「長さの違う系列へ写せるか」の章の"
DECODING = "第 12 週「一番よい訳をどう選ぶか」の章の"
ATTENTION = "第 12 週「一本のベクトルで足りるのか」の章の"

READY_MADE = ("lib", "lib.seq2seq", "lib.decode", "lib.attention")

ONE_BY_ONE = SEQ2SEQ + "「一語読んで一語出す、では足りない」"
DECODER = SEQ2SEQ + "「書く係：デコーダ」と「正解を見せて、次を当てさせる」"
GREEDY = DECODING + "「一歩ごとの一番は、文の一番か」"
SCALE = ATTENTION + "「なぜ次元の平方根で割るのか」"
AVERAGE = ATTENTION + "「平均にできること」"
AXES = ATTENTION + "「その図の軸は正しいか」"
HIDING = ATTENTION + "「見てはいけない場所」"
OCCLUSION = ATTENTION + "「重みの大きい語は、効いている語か」"


def _closed(name: str, points: int, question: str, answer, section: str) -> Part:
    """小問のまとまり。"""
    check = Check(name, small_answers(question), lambda: answer, outputs=(name,), section=section)
    return Part(name, points, (check,))


# ── 12-5 ──

BOS, EOS = 0, 1


def _read(E, A, state, tokens):
    for token in tokens:
        state = torch.tanh(torch.mv(A, state) + E[token])
    return state


def _distribution(E, A, U, state, prefix):
    scores = torch.mv(U, _read(E, A, state, (BOS, *prefix)))
    scores = torch.exp(scores - scores.max())
    return scores / scores.sum()


def _log_prob(E, A, U, state, target):
    """すべての位置の状態を集めてから、対数の和を取る。"""
    states = [_read(E, A, state, (BOS, *target[:n])) for n in range(len(target) + 1)]
    scores = torch.stack(states) @ U.T
    picked = scores[range(len(states)), [*target, EOS]]
    return (picked - torch.logsumexp(scores, 1)).sum()


def _greedy(source_E, source_A, E, A, U, source, max_len):
    """一歩ごとに、はじめから読み直す。"""
    start = _read(source_E, source_A, torch.zeros_like(source_E[0]), source)
    out = []
    for _ in range(max_len):
        out.append(int((U @ _read(E, A, start, [BOS, *out])).argmax()))
        if out[-1] == EOS:
            break
    return tuple(map(float, out))


def _decoder(draw: Draw, dtype: str = "float64", sharp: float = 1.0) -> tuple:
    """(V, D) と (E, A, U)。V は 5 以上。"""
    v, d = (5, 3) if draw.public else draw.sizes(2)
    while v < 5:
        v, d = draw.sizes(2)
    shapes = ((v, d, 0.8), (d, d, 1.2 / math.sqrt(d)), (v, d, sharp))
    return v, d, [draw.normal(a, b, dtype=dtype, scale=s) for a, b, s in shapes]


def _tokens(draw: Draw, v: int, n: int) -> tuple[int, ...]:
    """語だけの並び。隣どうしは違う。"""
    out = []
    while len(out) < n:
        token = draw.integer(2, v)
        out += [token] if token not in out[-1:] else []
    return tuple(out)


def _lines(function: str):
    """next_distribution と sequence_log_prob に同じ種類の入力を渡す。"""

    def probes(draw: Draw):
        given = corrected(draw, "12-5", "read_tokens")

        def probe(label, n, start=True, dtype="float64", sharp=1.0, **options):
            v, d, weights = _decoder(draw, dtype, sharp)
            state = np.tanh(draw.normal(d, dtype=dtype)) if start else np.zeros(d, dtype)
            state = state.round(2).astype(dtype) if draw.public else state
            args = (*weights, state, _tokens(draw, v, n))
            return Probe(function, args, label=label, given=given, **options)

        yield probe("言語モデル（state は零ベクトル）", 4, start=False, repeat=True)
        yield probe("原文を読み終えた state", 5)
        yield probe("空の並び", 0)
        yield probe("一語の並び", 1)
        yield probe("float32", 3, dtype="float32")
        yield probe("スコアがとても大きい", 6, sharp=2000.0)
        if not draw.public:
            yield probe("長い並び", 13)
            yield probe("float32 でスコアがとても大きい", 4, dtype="float32", sharp=500.0)

    return probes


def _line_slopes(draw: Draw):
    v, d, weights = _decoder(draw)
    yield Probe(
        "sequence_log_prob",
        (*weights, np.tanh(draw.normal(d)), _tokens(draw, v, 4)),
        label="対数確率を三つの行列と state で微分する",
        cotangent=np.array(1.5),
        given=corrected(draw, "12-5", "read_tokens"),
    )


def _model(draw: Draw, dtype: str, length: int, accept) -> tuple:
    """accept(原文, 訳文) が真になる translate の引数（max_len を除く）。どの一歩にも差がある。"""
    while True:
        v, d, (E, A, U) = _decoder(draw, dtype, 2.0)
        words = v + 2 if draw.public else v + draw.integer(1, 4)
        source_E = draw.normal(words, d, dtype=dtype)
        source_A = draw.normal(d, d, dtype=dtype, scale=1.2 / math.sqrt(d))
        source = tuple(int(n) for n in draw.rng.permutation(words)[:length])
        weights = [torch.from_numpy(x) for x in (source_E, source_A, E, A, U)]
        out = _greedy(*weights, source, 12)
        if BOS in out or not accept(source, out):
            continue
        start = _read(*weights[:2], torch.zeros_like(weights[0][0]), source)
        steps = [_read(*weights[2:4], start, [BOS, *map(int, out[:n])]) for n in range(len(out))]
        top = (torch.stack(steps) @ weights[4].T).topk(2).values
        if (top[:, 0] - top[:, 1]).min() < 0.01:
            continue
        others = (source[::-1], source[-1:]) if length > 1 else ()
        if all(_greedy(*weights, other, 12) != out for other in others):
            return source_E, source_A, E, A, U, source


def _translations(draw: Draw):
    given = corrected(draw, "12-5", "read_tokens")

    def probe(label, length, accept, max_len=0, dtype="float64", **options):
        args = _model(draw, dtype, length, accept)
        if max_len == 0:  # 訳文がちょうど入る長さ
            weights = [torch.from_numpy(x) for x in args[:5]]
            max_len = len(_greedy(*weights, args[5], 12))
        args = (*args, max_len)
        return Probe("translate", args, label=label, given=given, **options)

    def ends(out, low, high):
        return out[-1] == EOS and low <= len(out) - 1 <= high and len({*out}) > 2

    yield probe("原文より短い訳文", 5, lambda _, y: ends(y, 2, 4), 12, repeat=True)
    yield probe("原文より長い訳文", 2, lambda _, y: ends(y, 3, 8), 12)
    yield probe("上限でちょうど終わる訳文", 3, lambda _, y: ends(y, 4, 8))
    yield probe("一語の原文", 1, lambda _, y: ends(y, 2, 8), 12)
    endless = lambda _, y: EOS not in y and len({*y}) > 2  # noqa: E731
    yield probe("上限まで終わらない訳文", 4, endless, 7)
    if not draw.public:
        yield probe("float32", 4, lambda _, y: ends(y, 2, 8), 12, dtype="float32")
        yield probe("訳文が空（すぐ終わる）", 3, lambda _, y: y == (EOS,), 12)


READ_ALL = "state = read_tokens(E, A, state, [BOS, *prefix])"
SOFTMAX = "return (U @ state).softmax(dim=0)"
READ_BOS = "state = read_tokens(E, A, state, [BOS])\n    for"
FACTORS = "for token in [*target, EOS]:"
ADD = "total = total + (U @ state).log_softmax(dim=0)[token]"
FEED = "state = read_tokens(E, A, state, [token])\n    return total"
TOTAL = "return total"
ENCODE = "state = read_tokens(source_E, source_A, start, source)"
WHILE = "while len(out) < max_len and token != EOS:"
STEP = "        state = read_tokens(E, A, state, [token])\n        token = (U"
OUT = "return out"
SIX = "return 6"

LENGTHS_WRONG = (
    wrong(
        "scores",
        "softmax を取る前のスコアを返しています。返すのは、和が 1 の分布です。",
        (SOFTMAX, "return U @ state"),
    ),
    wrong(
        "overflow",
        "大きなスコアで exp があふれて NaN になっています。"
        "最大値を引いてから exp を取るか、torch の softmax を使います。",
        (SOFTMAX, "return (U @ state).exp() / (U @ state).exp().sum()"),
    ),
    wrong(
        "log-distribution",
        "分布の対数を返しています。ここで返すのは、確率そのものです。",
        (SOFTMAX, "return (U @ state).log_softmax(dim=0)"),
    ),
    wrong(
        "whole-sentence",
        "読んだ位置のすべてについて分布を返しています。言語モデルを一回呼んで得るのは、"
        "全部を読んだあとの、次の一トークンの分布だけです。",
        (
            READ_ALL + "\n    " + SOFTMAX,
            "rows = []\n"
            "    for token in [BOS, *prefix]:\n"
            "        state = read_tokens(E, A, state, [token])\n"
            "        rows.append((U @ state).softmax(dim=0))\n"
            "    return torch.stack(rows)",
        ),
    ),
    wrong(
        "chosen-word",
        "確率の最も高いトークンだけを 1 にしています。返すのは一語ではなく、"
        "候補のすべての確率です。",
        (SOFTMAX, "return torch.eye(len(U), dtype=E.dtype)[(U @ state).argmax()]"),
    ),
    wrong(
        "prefix-without-bos",
        "分布を求めるとき、`<s>` を読んでいません。何も出していないときも、`<s>` は読みます。",
        (READ_ALL, READ_ALL.replace("[BOS, *prefix]", "prefix")),
    ),
    wrong(
        "last-word-only",
        "最後の一語しか読んでいません。これでは bigram と同じです。はじめから順に全部読みます。",
        (READ_ALL, READ_ALL.replace("[BOS, *prefix]", "[BOS, *prefix][-1:]")),
    ),
    wrong(
        "state-ignored",
        "渡された state を使わず、零ベクトルから読んでいます。seq2seq では、"
        "原文で得たことが state に入っています。",
        (READ_ALL, READ_ALL.replace("state, [", "0 * state, [")),
    ),
    wrong(
        "prefix-reversed",
        "prefix を逆の順に読んでいます。",
        (READ_ALL, READ_ALL.replace("*prefix", "*prefix[::-1]")),
    ),
    wrong(
        "no-end",
        "`</s>` を出す確率を掛けていません。そこで終わることも、出力の一部です。",
        (FACTORS, "for token in target:"),
        (TOTAL, "return total + 0 * (U @ state).sum()"),
    ),
    wrong(
        "mean-log-prob",
        "出したトークンの数で割っています。系列の対数確率は、平均ではなく和です。",
        (TOTAL, "return total / (len(target) + 1)"),
    ),
    wrong(
        "probability",
        "確率を返しています。長い系列では 0 になってしまうので、対数の和にします。",
        (TOTAL, "return total.exp()"),
    ),
    wrong(
        "log-of-zero",
        "小さすぎて 0 になった確率の対数を取り、−∞ になっています。"
        "確率を経由せず、スコアから対数確率を求めます（log_softmax）。",
        (ADD, ADD.replace("log_softmax(dim=0)[token]", "softmax(dim=0)[token].log()")),
    ),
    wrong(
        "bits",
        "底が 2 の対数になっています。自然対数にします。",
        (TOTAL, "return total / torch.tensor(2.0, dtype=E.dtype).log()"),
    ),
    wrong(
        "target-without-bos",
        "対数確率を求めるとき、`<s>` を読まずに最初の語を当てています。",
        (READ_BOS, "for"),
    ),
    wrong(
        "peek",
        "当てるトークンを読んだあとで、そのトークンの確率を求めています。読むのは当てたあとです。",
        (
            ADD,
            "state = read_tokens(E, A, state, [token])\n        " + ADD,
        ),
        ("        " + FEED, "    " + TOTAL),
    ),
    wrong(
        "own-prediction",
        "target ではなく、自分が最も高い確率を付けたトークンを読んでいます。"
        "測るのは、target をこのとおりに出す確率です。",
        (FEED, FEED.replace("[token]", "[(U @ state).argmax().item()]")),
    ),
    wrong(
        "independent",
        "出したトークンを読んでいないので、どの一歩も同じ分布になっています。"
        "条件は、それまでに出したすべてのトークンです。",
        ("        " + FEED, "    " + TOTAL),
    ),
    wrong(
        "scores-summed",
        "スコアをそのまま足しています。一歩ごとに、対数確率（log_softmax）に直してから足します。",
        (ADD, "total = total + (U @ state)[token]"),
    ),
    wrong(
        "detached",
        "対数確率から勾配が切れています。detach や item を計算の途中に入れていませんか。",
        (TOTAL, "return total.detach() + 0 * sum(x.sum() for x in (E, A, U, state))"),
    ),
    wrong(
        "same-length",
        "訳文を、原文と同じ長さで打ち切っています。出力の長さは、`</s>` がいつ出るかで決まります。",
        (WHILE, "while len(out) < min(len(source), max_len) and token != EOS:"),
    ),
    wrong(
        "never-ends",
        "`</s>` が出ても続けています。`</s>` が出たら、そこで終わります。",
        (WHILE, "while len(out) < max_len:"),
    ),
    wrong(
        "end-dropped",
        "終わりの `</s>` をリストに入れていません。打ち切ったのか、終わったのかが区別できません。",
        (OUT, "return [x for x in out if x != EOS]"),
    ),
    wrong(
        "limit-without-end",
        "`</s>` を上限の数に入れていないので、一つ多く出しています。",
        (WHILE, WHILE.replace("< max_len", "<= max_len")),
    ),
    wrong(
        "reads-bos-again",
        "いつも `<s>` を読んでいます。次に読むのは、直前に出したトークンです。",
        (STEP, STEP.replace("[token]", "[BOS]")),
    ),
    wrong(
        "source-reversed",
        "原文を逆の順に読んでいます。",
        (ENCODE, ENCODE.replace("start, source)", "start, source[::-1])")),
    ),
    wrong(
        "source-last-word",
        "原文の最後の語しか読んでいません。原文は、全体を読み終えてから訳し始めます。",
        (ENCODE, ENCODE.replace("start, source)", "start, source[-1:])")),
    ),
    wrong(
        "source-ignored",
        "原文を読まずに、零ベクトルから書き始めています。これでは、原文のない言語モデルです。",
        (ENCODE, "state = start"),
    ),
    wrong(
        "memory-lost",
        "一歩ごとに原文の状態に戻っています。状態は、デコーダが読むたびに進めます。",
        (
            ENCODE,
            ENCODE.replace("state =", "first ="),
        ),
        (STEP, STEP.replace("A, state,", "A, first,")),
    ),
    wrong(
        "keeps-bos",
        "リストに `<s>` が入っています。`<s>` は読むだけで、出力ではありません。",
        (OUT, "return [BOS, *out]"),
    ),
    wrong(
        "factors-without-end",
        "小問では、最後に `</s>` を出す確率を数え忘れています。そこで文が終わることも、"
        "モデルが決めることの一つです。",
        (SIX, "return 5"),
    ),
    wrong(
        "factors-with-start",
        "小問で、`<s>` を出す確率まで数えています。`<s>` は読むだけで、予測しません。",
        (SIX, "return 7"),
    ),
    wrong(
        "factors-of-source",
        "小問で、原文の語を数えています。原文は条件です。確率を付けて出すのは、訳文のほうです。",
        (SIX, "return 8"),
    ),
    wrong(
        "one-factor",
        "小問で、訳文の全体に一度に確率が付くと考えています。一回に返るのは次の一トークンの分布で、"
        "文の確率はその積です。",
        (SIX, "return 1"),
    ),
    wrong(
        "factors-pairs",
        "小問で、原文の語と訳文の語の組を数えています。一歩ごとに、原文の全体を条件にして一つです。",
        (SIX, "return 40"),
    ),
)

LENGTHS_RIGHT = (
    Right(
        "by-hand",
        code="""
import math
import torch


def cell(E, A, h, token):
    return (E[token] + (A * h).sum(1)).tanh()


def next_distribution(E, A, U, state, prefix):
    h = cell(E, A, state, 0)
    for token in prefix:
        h = cell(E, A, h, token)
    z = (U * h).sum(1)
    e = torch.exp(z - z.max())
    return e / e.sum()


def sequence_log_prob(E, A, U, state, target):
    h, terms = cell(E, A, state, 0), []
    for token in list(target) + [1]:
        z = U @ h
        terms.append(z[token] - torch.logsumexp(z, 0))
        h = cell(E, A, h, token)
    return torch.stack(terms).sum()


def translate(source_E, source_A, E, A, U, source, max_len):
    h = torch.zeros_like(source_E[0])
    for token in source:
        h = cell(source_E, source_A, h, token)
    answer = []
    last = 0
    for _ in range(max_len):
        h = cell(E, A, h, last)
        last = int(torch.argmax(U @ h))
        answer.append(last)
        if last == 1:
            return answer
    return answer


def answer_12_5():
    return 5 + 1
""",
    ),
    Right(
        "reread",
        edits=(
            (
                FACTORS,
                "words = [*target, EOS]\n    start = state\n    for t, token in enumerate(words):",
            ),
            (
                ADD,
                "state = read_tokens(E, A, start, words[:t])\n"
                "        loss = torch.nn.functional.cross_entropy(\n"
                "            (U @ state)[None], torch.tensor([token])\n        )\n"
                "        total = total - loss",
            ),
            ("        " + FEED, "    " + TOTAL),
            (
                STEP,
                "        seen = read_tokens(E, A, state, [BOS, *out])\n        token = (U",
            ),
            ("(U @ state).argmax()", "(U @ seen).argmax()"),
            (SIX, "return 6.0"),
        ),
    ),
    Right(
        "from-distribution",
        edits=(
            (
                STEP,
                "        p = next_distribution(E, A, U, state, out)\n        token = (U",
            ),
            ("(U @ state).argmax().item()", "int(p.argmax())"),
            (SOFTMAX, "return (U @ state).log_softmax(-1).exp()"),
            (SIX, "return torch.tensor(6)"),
        ),
    ),
)


# ── 12-6 ──


def _moments(q, k, power):
    """一組ずつの内積。平均を引いてから二乗する。"""
    d = q.shape[1]
    scores = [float(np.dot(a, b)) / float(d) ** power for a, b in zip(q, k, strict=True)]
    mean = math.fsum(scores) / len(scores)
    return mean, math.fsum((s - mean) ** 2 for s in scores) / len(scores)


def _score_moments(q, k, power):
    return _moments(q.double().numpy(), k.double().numpy(), power)


def _distribution_of_sum(q_table, k_table, d):
    """積の分布を d 回たたみこむ。値は整数。"""
    low = min(int(a * b) for a, _ in q_table for b, _ in k_table)
    high = max(int(a * b) for a, _ in q_table for b, _ in k_table)
    one = np.zeros(high - low + 1)
    for (a, p), (b, r) in itertools.product(q_table, k_table):
        one[int(a * b) - low] += p * r
    total = np.ones(1)
    for _ in range(d):
        total = np.convolve(total, one)
    return np.arange(len(total)) + d * low, total


def _exact(q_table, k_table, d):
    values, p = _distribution_of_sum(q_table, k_table, d)
    mean = float(p @ values)
    return mean, float(p @ (values - mean) ** 2)


def _variance_band(d, power, copies, n_draws, seed):
    """c 個ずつ同じなら、内積は c × (m 個の積の和)。積の和の四次の積率は 3m² + 6m。"""
    if n_draws == 1:
        return 0.0
    m = d // copies
    variance = copies**2 * m / d ** (2 * power)
    return Band(variance, 5 * variance * math.sqrt((2 + 6 / m) / n_draws))


def _power(d_small, var_small, d_large, var_large):
    """分散の比が次元の比の 2p 乗になる p を、二分法で探す。"""
    low, high = -20.0, 20.0
    for _ in range(200):
        middle = (low + high) / 2
        too_small = var_small / d_small ** (2 * middle) < var_large / d_large ** (2 * middle)
        low, high = (middle, high) if too_small else (low, middle)
    return low


def _measured(draw: Draw):
    def probe(label, power, n=0, d=0, dtype="float64", scale=1.0, offset=0.0, **options):
        rows, width = (7, 5) if draw.public else draw.sizes(2)
        shape = (n or rows, d or width)
        q, k = (draw.normal(*shape, dtype=dtype, scale=scale) + offset for _ in range(2))
        args = (q.astype(dtype), k.astype(dtype), power)
        tolerance = (1e-3, 1e-4) if dtype == "float32" else None
        return Probe("score_moments", args, label=label, tolerance=tolerance, **options)

    yield probe("割らない", 0, repeat=True)
    yield probe("√d で割る", 0.5)
    yield probe("d で割る", 1)
    yield probe("ほかの指数", 0.25 if draw.public else draw.integer(11, 49) / 100)
    yield probe("float32", 0.5, dtype="float32")
    yield probe("平均が 0 でない", 0.5, offset=1.0)
    yield probe("組が一つだけ", 0.5, n=1)
    yield probe("次元が 1", 0.5, d=1)
    n, d = (7, 3) if draw.public else (draw.integer(23, 40), 5)
    q, k = (1e6 + draw.rng.integers(-4, 5, (n, d)) for _ in range(2))
    yield Probe("score_moments", (q, k, 0), label="平均がばらつきよりずっと大きい")
    if not draw.public:
        yield probe("組も次元も多い", 0.5, n=67, d=71)


def _table(draw: Draw, values: tuple) -> tuple:
    """値と確率。平均が 0 にも、分散が 1 にもならない。"""
    while True:
        parts = draw.rng.integers(1, 8, len(values))
        p = parts / parts.sum()
        p = p.round(2) if draw.public else p
        mean = float(p @ values)
        spread = float(p @ (np.array(values) - mean) ** 2)
        if abs(p.sum() - 1) < 1e-12 and abs(mean) > 0.3 and abs(spread - 1) > 0.2:
            return tuple((float(v), float(x)) for v, x in zip(values, p, strict=True))


def _tables(draw: Draw):
    def probe(label, q_table, k_table, d, **options):
        return Probe("exact_moments", (q_table, k_table, d), label=label, **options)

    def table(*values):
        return _table(draw, values)

    coin, half = ((-1.0, 0.5), (1.0, 0.5)), ((0.0, 0.5), (1.0, 0.5))
    d = 3 if draw.public else draw.integer(5, 9)
    yield probe("クエリとキーで違う分布", table(-2, 1, 3), table(-1, 0, 2), d, repeat=True)
    yield probe("平均 0、分散 1", coin, coin, 4 * d)
    yield probe("0 と 1", half, half, d + 1)
    yield probe("平均 0 で、分散が 1 でない", ((-2.0, 0.5), (2.0, 0.5)), coin, d)
    yield probe("クエリだけ平均が 0 でない", table(0, 1, 2), coin, d + 2)
    yield probe("いつも同じ値", ((2.0, 1.0),), ((3.0, 1.0),), d)
    yield probe("次元が 1", table(1, 3), table(-3, 1), 1)
    yield probe("大きな次元", table(-1, 2), table(-2, 1, 3), 10 * d)
    if not draw.public:
        yield probe("とても大きな次元", table(-1, 1, 2), table(-1, 3), 256)


def _draws(draw: Draw):
    given = corrected(draw, "12-6", "score_moments")
    n_draws, seed = 6000, draw.integer(1, 10**6)
    small, d = (4, 16) if draw.public else (draw.integer(3, 6), 4 * draw.integer(6, 12))
    rows = (
        ("独立な成分、割らない", d, 0, 1),
        ("独立な成分、√d で割る", d, 0.5, 1),
        ("独立な成分、d で割る", small, 1, 1),
        ("四つずつ同じ成分、√d で割る", d, 0.5, 4),
        ("三つずつ同じ成分、割らない", 3 * small, 0, 3),
        ("全部同じ成分、割らない", small, 0, small),
    )
    for i, (label, width, power, copies) in enumerate(rows):
        args = (width, power, copies, n_draws, seed + i)
        yield Probe("sample_variance", args, label=label, given=given)
    args = (small, 0.5, 1, 1, seed)
    yield Probe("sample_variance", args, label="一組だけ（ばらつきはない）", given=given)


def _draw_seeds(draw: Draw):
    given, seed = corrected(draw, "12-6", "score_moments"), draw.integer(1, 10**6)
    for label, number in (("一つの seed", seed), ("別の seed", seed + 1)):
        args = (6, 0.5, 2, 11, number)
        yield Probe("sample_variance", args, label=label, repeat=True, given=given)


def _draw_law(_probes, outcomes) -> str:
    a, b = (o.value.data for o in outcomes)
    return "違う seed で、まったく同じ値が返りました" if float(a) == float(b) else ""


def _powers(draw: Draw):
    def probe(label, *args):
        return Probe("scale_power", args, label=label)

    a, b = (3, 48) if draw.public else (draw.integer(2, 6), draw.integer(30, 300))
    noise = 1.25 if draw.public else draw.integer(105, 130) / 100
    yield probe("分散が次元に比例する", a, 2.0 * a, b, 2.0 * b)
    yield probe("分散が次元の二乗に比例する", a, 3.0 * a**2, b, 3.0 * b**2)
    yield probe("分散が次元によらない", a, 1.5, b, 1.5)
    yield probe("測った値（ちょうど比例しない）", a, 1.0 * a, b, noise * b)
    yield probe("分散が減っていく", a, 4.0, b, 4.0 * a / b)


PAIRED = "scores = (q * k).sum(dim=-1) / q.shape[-1] ** power"
SPREAD = "variance = (scores - mean).square().mean()"
MEASURED = "return mean.item(), variance.item()"
EXPECT = "return sum(p * value**n for value, p in table)"
MEAN = "mean = expect(q_table, 1) * expect(k_table, 1)"
SQUARE = "square = expect(q_table, 2) * expect(k_table, 2)"
EXACT = "return d * mean, d * (square - mean**2)"
GENERATOR = "torch.Generator().manual_seed(seed)"
DRAWN = "drawn = torch.randn(size, generator=generator)"
REPEATED = "q, k = drawn.repeat_interleave(copies, dim=-1)"
VARIANCE = "return score_moments(q, k, power)[1]"
HALF = "return growth / 2"
REASON = 'return "エ"'

ROOT_WRONG = (
    wrong(
        "variance-by-divisor",
        "分散も d の p 乗で割っただけになっています。数を a で割ると、分散は a の二乗で割られます。"
        "先にスコアを割り、そのばらつきを測ります。",
        (PAIRED, "scores = (q * k).sum(dim=-1)"),
        (
            MEASURED,
            "size = q.shape[-1] ** power\n"
            "    return (mean / size).item(), (variance / size).item()",
        ),
    ),
    wrong(
        "power-ignored",
        "指数 power を使わず、割らない内積を測っています。",
        (PAIRED, "scores = (q * k).sum(dim=-1)"),
    ),
    wrong(
        "always-root",
        "指数 power によらず、いつも √d で割っています。",
        (PAIRED, PAIRED.replace("** power", "** 0.5")),
    ),
    wrong(
        "divide-by-pairs",
        "次元 d ではなく、組の数 N で割っています。d は q の最後の次元です。",
        (PAIRED, PAIRED.replace("q.shape[-1]", "q.shape[0]")),
    ),
    wrong(
        "divide-twice",
        "内積で和の代わりに平均を取っています。それだけで、もう d で割ったことになります。",
        (PAIRED, PAIRED.replace("sum(dim=-1)", "mean(dim=-1)")),
    ),
    wrong(
        "all-pairs",
        "違う番号のクエリとキーの組まで測っています。一組は、同じ番号の行どうしです。",
        (PAIRED, "scores = (q @ k.T).flatten() / q.shape[-1] ** power"),
    ),
    wrong(
        "products",
        "成分ごとの積を測っています。スコアは、積を次元について足したものです。",
        (PAIRED, PAIRED.replace(".sum(dim=-1)", "")),
    ),
    wrong(
        "cosine",
        "クエリとキーの長さで割っています（コサイン類似度です）。割るのは、次元で決まる数です。",
        (
            PAIRED,
            "scores = torch.cosine_similarity(q, k, dim=-1) / q.shape[-1] ** power",
        ),
    ),
    wrong(
        "deviation",
        "分散ではなく標準偏差（平方根）を返しています。",
        (MEASURED, "return mean.item(), variance.sqrt().item()"),
    ),
    wrong(
        "unbiased",
        "個数から 1 を引いた数で割っています。組が一つのときは 0 で割ることになります。"
        "ここでは N で割ります。",
        (SPREAD, "variance = (scores - mean).square().sum() / (len(scores) - 1)"),
    ),
    wrong(
        "second-moment",
        "平均を引かずに、二乗の平均を取っています。平均が 0 のときしか分散になりません。",
        (SPREAD, "variance = scores.square().mean()"),
    ),
    wrong(
        "cancellation",
        "二乗の平均から平均の二乗を引いているので、平均が大きいと桁が失われます。"
        "先に平均を引き、その差を二乗します。",
        (SPREAD, "variance = scores.square().mean() - mean.square()"),
    ),
    wrong(
        "moments-swapped",
        "返り値の順が逆です。平均、分散の順に返します。",
        (MEASURED, "return variance.item(), mean.item()"),
        (VARIANCE, "return score_moments(q, k, power)[0]"),
    ),
    wrong(
        "assumes-standard",
        "平均 0、分散 1 と決めつけて、(0, d) を返しています。渡された分布から計算します。",
        (EXACT, "return 0.0, float(d)"),
    ),
    wrong(
        "variances-multiplied",
        "積の分散を、分散の積としています。それが正しいのは、どちらの平均も 0 のときだけです。",
        (
            EXACT,
            "one, two = (expect(t, 2) - expect(t, 1) ** 2 for t in (q_table, k_table))\n"
            "    return d * mean, d * one * two",
        ),
    ),
    wrong(
        "mean-not-removed",
        "積の二乗の平均を、そのまま分散としています。積の平均の二乗を引きます。",
        (EXACT, EXACT.replace("(square - mean**2)", "square")),
    ),
    wrong(
        "d-squared",
        "分散を d の二乗倍しています。同じものを d 倍するのではなく、独立なものを d 個足すので、"
        "分散は d 倍です。",
        (EXACT, EXACT.replace("d * (", "d**2 * (")),
    ),
    wrong(
        "one-product",
        "一つの積の平均と分散を返しています。d 個足した内積の値にします。",
        (EXACT, "return mean, square - mean**2"),
    ),
    wrong(
        "mean-not-summed",
        "平均に d が掛かっていません。平均も、足した個数だけ増えます。",
        (EXACT, EXACT.replace("d * mean,", "mean,")),
    ),
    wrong(
        "already-scaled",
        "√d で割ったあとの値を返しています。ここでは、割らない内積の平均と分散を求めます。",
        (EXACT, "return d**0.5 * mean, square - mean**2"),
    ),
    wrong(
        "same-variable",
        "クエリの分布だけを使っています。キーの分布は、クエリと違うことがあります。",
        (MEAN, MEAN.replace("k_table", "q_table")),
        (SQUARE, SQUARE.replace("k_table", "q_table")),
    ),
    wrong(
        "unweighted",
        "確率を使わず、値をただ平均しています。",
        (EXPECT, "return sum(value**n for value, _ in table) / len(table)"),
    ),
    wrong(
        "exact-deviation",
        "計算した分散の平方根を返しています。返すのは分散です。",
        (EXACT, "return d * mean, math.sqrt(d * (square - mean**2))"),
    ),
    wrong(
        "uniform",
        "成分を 0 から 1 の一様分布（rand）で引いています。標準正規分布（randn）から引きます。",
        (DRAWN, DRAWN.replace("randn", "rand")),
    ),
    wrong(
        "copies-ignored",
        "copies を使わず、いつも独立な成分にしています。",
        ("d // copies)", "d)"),
        (REPEATED, "q, k = drawn"),
    ),
    wrong(
        "key-is-query",
        "キーにクエリと同じ値を使っています。クエリとキーは、別々に引きます。",
        (REPEATED, REPEATED + "\n    k = q"),
    ),
    wrong(
        "one-query",
        "一つのクエリをすべての組で使い回しています。クエリも組ごとに引き直します。",
        (REPEATED, REPEATED + "\n    q = q[:1].expand_as(k)"),
    ),
    wrong(
        "fewer-dimensions",
        "くり返したあとの次元が d になっていません。d / copies 個を、copies 個ずつ並べます。",
        (REPEATED, "q, k = drawn"),
    ),
    wrong(
        "theory",
        "乱数を引かずに、計算した値を返しています。seed を変えても同じ値になります。",
        (VARIANCE, "return d * copies / d ** (2 * power)"),
    ),
    wrong(
        "unseeded",
        "seed を使っていないので、呼ぶたびに値が変わります。"
        "`torch.Generator().manual_seed(seed)` を作り、randn に渡します。",
        (GENERATOR, "None"),
    ),
    wrong(
        "fixed-seed",
        "どの seed でも同じ乱数を使っています。引数の seed を使ってください。",
        (GENERATOR, GENERATOR.replace("(seed)", "(0)")),
    ),
    wrong(
        "power-of-variance",
        "分散の増え方を、そのまま指数にしています。割った数の二乗で分散が割られるので、"
        "指数はその半分です。だから d ではなく √d で割ります。",
        (HALF, "return growth"),
    ),
    wrong(
        "always-half",
        "いつも 1/2 を返しています。1/2 になるのは、分散が次元に比例するときだけです。",
        (HALF, "return 0.5"),
    ),
    wrong(
        "power-sign",
        "指数の符号が逆です。分散が次元とともに増えるなら、正の指数で割ります。",
        (HALF, "return -growth / 2"),
    ),
    wrong(
        "power-of-difference",
        "分散の差を次元の差で割っています。何倍になったかを比べるので、対数を取ってから比べます。",
        (HALF, "return (var_large - var_small) / (d_large - d_small) / 2"),
    ),
    wrong(
        "to-one",
        "大きいほうの分散を 1 にする指数を求めています。ここで求めるのは、"
        "二つの分散を等しくする指数です。",
        (HALF, "return math.log(var_large) / math.log(d_large) / 2"),
    ),
    wrong(
        "reason-sum",
        "小問で、重みの和のために割ると考えています。和が 1 になるのは softmax の働きで、"
        "何で割っても、割らなくても同じです。",
        (REASON, 'return "ア"'),
    ),
    wrong(
        "reason-overflow",
        "小問で、exp があふれるのを防ぐために割ると考えています。それは、softmax の中で"
        "最大値を引くことの役目です。割らなくても NaN にはなりません。",
        (REASON, 'return "イ"'),
    ),
    wrong(
        "reason-mean",
        "小問で、平均を 0 にするために割ると考えています。割っても、0 でない平均は 0 になりません。"
        "それに、すべてのスコアに同じ数を足しても softmax は変わりません。",
        (REASON, 'return "ウ"'),
    ),
    wrong(
        "reason-length",
        "小問で、見る相手の数と次元を取り違えています。√d の d は一つのベクトルの成分の数で、"
        "相手が何か所あるかとは関係がありません。",
        (REASON, 'return "オ"'),
    ),
    wrong(
        "reason-sharpen",
        "小問で、向きを逆に考えています。d が 1 より大きければ、割るとスコアの差は縮まり、"
        "重みは一か所に偏りにくくなります。",
        (REASON, 'return "カ"'),
    ),
)

ROOT_RIGHT = (
    Right(
        "loops",
        code="""
import math
import torch


def score_moments(q, k, power):
    n, d = q.shape
    scores = []
    for a, b in zip(q.tolist(), k.tolist()):
        scores.append(sum(x * y for x, y in zip(a, b)) / d ** power)
    m = sum(scores) / n
    return m, sum((s - m) ** 2 for s in scores) / n


def exact_moments(q_table, k_table, d):
    products = [(a * b, p * r) for a, p in q_table for b, r in k_table]
    m = sum(v * p for v, p in products)
    v = sum((x - m) ** 2 * p for x, p in products)
    return m * d, v * d


def sample_variance(d, power, copies, n_draws, seed):
    torch.manual_seed(seed)
    q = torch.randn(n_draws, d // copies).repeat(1, copies)
    k = torch.randn(n_draws, d // copies).repeat(1, copies)
    s = torch.einsum("nd,nd->n", q, k) / d ** power
    return s.var(correction=0).item()


def scale_power(d_small, var_small, d_large, var_large):
    deviation = math.sqrt(var_large / var_small)
    return math.log(deviation, d_large / d_small)


def answer_12_6():
    return "エ"
""",
    ),
    Right(
        "total-variance",
        code="""
import math
import torch


def moments_of(table):
    values = torch.tensor([v for v, _ in table], dtype=torch.float64)
    p = torch.tensor([x for _, x in table], dtype=torch.float64)
    mean = p @ values
    return mean, p @ (values - mean) ** 2


def score_moments(q, k, power):
    a, b = q.double(), k.double()
    s = torch.linalg.vecdot(a, b) * q.shape[1] ** -power
    variance, mean = torch.var_mean(s, correction=0)
    return mean, variance


def exact_moments(q_table, k_table, d):
    (m, v), (n, w) = moments_of(q_table), moments_of(k_table)
    return float(d * m * n), float(d * (v * w + v * n**2 + w * m**2))


def sample_variance(d, power, copies, n_draws, seed):
    g = torch.Generator()
    g.manual_seed(seed)
    rows = torch.randn(n_draws, 2 * (d // copies), generator=g, dtype=torch.float64)
    q, k = rows.chunk(2, dim=1)
    s = copies * (q * k).sum(1) / d ** power
    return ((s - s.mean()) ** 2).mean().item()


def scale_power(d_small, var_small, d_large, var_large):
    a, b = math.log(var_small), math.log(var_large)
    return 0.5 * (b - a) / (math.log(d_large) - math.log(d_small))


def answer_12_6():
    return "エ"
""",
    ),
    Right(
        "centered",
        edits=(
            (SPREAD, "variance = torch.mean((scores - mean) ** 2)"),
            (PAIRED, "scores = torch.einsum('nd,nd->n', q, k) / math.pow(q.shape[1], power)"),
            (EXACT, "return mean * d, sum(square - mean**2 for _ in range(d))"),
            (
                REPEATED,
                "q, k = drawn[..., None].expand(*size, copies).flatten(2)",
            ),
        ),
    ),
)


# ── 12-7 ──


def _coverage(weights):
    return torch.stack([weights[..., t, :] for t in range(weights.shape[-2])]).sum(0)


def _shape(weights, threshold):
    """列と行を一つずつ見る。"""
    rows = weights.double().tolist()
    totals = [math.fsum(column) for column in zip(*rows, strict=True)]
    places = [math.fsum(s * w for s, w in enumerate(row)) for row in rows]
    forward = [b >= a for a, b in itertools.pairwise(places)]
    unused = sum(total < threshold for total in totals) / len(totals)
    return unused, sum(forward) / len(forward) if forward else 1.0


def _drop(scores, values, U, targets, mask=None):
    """隠す語の列を、取り除いてから計算する。"""
    keep = [s for s in range(scores.shape[1]) if mask is None or mask[s]]

    def log_p(columns):
        if not columns:
            raise ValueError
        inside = scores[:, columns]
        weights = torch.exp(inside - inside.amax(1, keepdim=True))
        weights = weights / weights.sum(1, keepdim=True)
        logits = torch.einsum("ts,sd,vd->tv", weights, values[columns], U)
        return (logits - logits.logsumexp(1, keepdim=True)).gather(1, targets[:, None])[:, 0]

    whole = log_p(keep)
    drops = [whole - log_p([x for x in keep if x != s]) for s in range(scores.shape[1])]
    return torch.stack(drops, 1)


def _alpha(draw: Draw, *shape: int, dtype: str = "float64", sharp: float = 2.0) -> np.ndarray:
    """注意の重み。列によって目立ち方が違う。"""
    tilt = np.linspace(-1, 1, shape[-1])[draw.rng.permutation(shape[-1])]
    z = sharp * (draw.rng.standard_normal(shape) + tilt)
    p = np.exp(z - z.max(-1, keepdims=True))
    return (p / p.sum(-1, keepdims=True)).astype(dtype)


def _coverages(draw: Draw):
    t, s, a, b = draw.sizes(4)

    def probe(label, *shape, dtype="float64", **options):
        return Probe("coverage", (_alpha(draw, *shape, dtype=dtype),), label=label, **options)

    yield probe("一枚の重み", t, s, repeat=True)
    yield probe("float32", s, t, dtype="float32")
    yield probe("先頭に次元が一つある", a, t, s)
    yield probe("出力が一つ", 1, s)
    yield probe("原文が一語", t, 1)
    if not draw.public:
        yield probe("先頭に次元が二つある", a, b, t, s)


def _coverage_slopes(draw: Draw):
    t, s = draw.sizes(2)
    yield Probe(
        "coverage",
        (_alpha(draw, t, s),),
        label="合計を重みで微分する",
        cotangent=draw.normal(s),
    )


def _clear(draw: Draw, t: int, s: int, threshold: float) -> np.ndarray:
    """使われない列もある列もあり、戻る組も戻らない組もあり、どれも境目から離れた重み。"""
    while True:
        p = _alpha(draw, t, s, sharp=2.5)
        total, place, steps = p.sum(0), p @ np.arange(s), p.argmax(1)
        move = np.diff(place)
        few = 0 < (total < threshold).sum() < s and (total < threshold).sum() * 2 != s
        peaks = (p.max(0) < threshold).sum() != (total < threshold).sum()
        both = 0 < (move > 0).sum() < t - 1 and (move > 0).sum() * 2 != t - 1
        hard = (np.diff(steps) >= 0).sum() != (move > 0).sum()
        near = min(np.abs(total - threshold).min(), np.abs(move).min())
        if few and peaks and both and hard and near > 0.01:
            return p


def _shapes(draw: Draw):
    given = corrected(draw, "12-7", "coverage")

    def probe(label, weights, threshold, **options):
        args = (weights, threshold)
        return Probe("heatmap_shape", args, label=label, given=given, **options)

    t, s = (6, 5) if draw.public else (draw.integer(6, 12), draw.integer(5, 14))
    s += s == t
    yield probe("縦長や正方形に近い重み", _clear(draw, t, s, 0.6), 0.6, repeat=True)
    t, s = (4, 9) if draw.public else (draw.integer(4, 7), draw.integer(15, 24))
    yield probe("横長の重み（要約）", _clear(draw, t, s, 0.3), 0.3)
    weights = np.array([[0.5, 0.5, 0, 0], [0, 0.25, 0.5, 0.25], [0.25, 0, 0.75, 0]])
    yield probe("coverage が境目にちょうど等しい列がある", weights, 0.75)
    one = np.array([[0.125, 0.5, 0.375]])
    yield probe("出力が一つ", one, 0.25)
    yield probe("float32", _clear(draw, 5, 7, 0.4).astype("float32"), 0.4)


def _seen(draw: Draw, n: int) -> np.ndarray:
    """見てよい語が二つ以上、見てはいけない語が一つ以上。"""
    while True:
        mask = draw.rng.random(n) < 0.6
        if 2 <= mask.sum() < n:
            return mask


def _drops(draw: Draw):
    def args(s=0, dtype="float64", scale=1.5):
        t, n, d, v = (3, 5, 2, 4) if draw.public else draw.sizes(4)
        n = s or n
        shapes = ((t, n, scale), (n, d, 1.0), (v, d, 1.5))
        floats = [draw.normal(a, b, dtype=dtype, scale=x) for a, b, x in shapes]
        return (*floats, draw.rng.integers(0, v, t))

    def probe(label, arguments, mask=None, **options):
        extra = {} if mask is None else {"mask": mask}
        return Probe("occlusion_drop", arguments, extra, label=label, **options)

    yield probe("ふつうのスコア", args(), repeat=True)
    yield probe("float32", args(dtype="float32"), tolerance=(1e-3, 1e-4))
    one = args()
    yield probe("パディングのある原文", one, _seen(draw, one[0].shape[1]))
    yield probe("原文が二語", args(s=2))
    yield probe("スコアがとても大きい", args(scale=3000.0))
    yield probe("原文が一語（隠すと何も残らない）", args(s=1))
    two = args()
    only = np.eye(two[0].shape[1], dtype=bool)[1]
    yield probe("見てよい語が一つだけ", two, only)


COVER = "return weights.sum(dim=-2)"
UNUSED = "unused = (coverage(weights) < threshold).double().mean().item()"
PLACE = "place = weights @ columns"
ALONE = "        return unused, 1.0\n"
FORWARD = "forward = (place[1:] >= place[:-1]).double().mean().item()"
BOTH = "return unused, forward"
EMPTY = """        if not allowed.any():
            raise ValueError("見てよい語が一つもありません")
"""
HIDE = "hidden = scores.masked_fill(~allowed, -math.inf)"
CONTEXT = "context = hidden.softmax(dim=-1) @ values"
LOGITS = "logits = (context @ U.T).log_softmax(dim=-1)"
PICK = "return logits[torch.arange(len(targets)), targets]"
ALLOWED = "allowed = torch.ones(n_source, dtype=torch.bool) if mask is None else mask"
WITHOUT = "        without = allowed.clone()\n        without[s] = False\n"
LOSS = "drops.append(whole - log_p(without))"
STACK = "return torch.stack(drops, dim=1)"
LEAST = "return 18"

SUMMARY_WRONG = (
    wrong(
        "rows-summed",
        "行ごとに足しています。それはいつも 1 です。列ごとに、すべての行について足します。",
        (COVER, "return weights.sum(dim=-1)"),
    ),
    wrong(
        "column-mean",
        "列の平均になっています。coverage は、受け取った重みの合計です。",
        (COVER, "return weights.mean(dim=-2)"),
    ),
    wrong(
        "column-max",
        "列の最大値になっています。coverage は、受け取った重みの合計です。",
        (COVER, "return weights.amax(dim=-2)"),
    ),
    wrong(
        "argmax-count",
        "行ごとに、いちばん重い列だけを数えています。重みをそのまま足します。",
        (
            COVER,
            "hot = torch.nn.functional.one_hot(weights.argmax(-1), weights.shape[-1])\n"
            "    return hot.sum(dim=-2).to(weights) + 0 * weights.sum(dim=-2)",
        ),
    ),
    wrong(
        "first-dimension",
        "先頭の次元について足しています。先頭に次元があっても動くように、"
        "後ろから二番目（dim=-2）で足します。",
        (COVER, "return weights.sum(dim=0)"),
    ),
    wrong(
        "coverage-detached",
        "合計から勾配が切れています。detach や numpy への変換を入れていませんか。",
        (COVER, "return weights.sum(dim=-2).detach() + 0 * weights.sum()"),
    ),
    wrong(
        "threshold-included",
        "境目にちょうど等しい列まで数えています。数えるのは、threshold より小さい列です。",
        (UNUSED, UNUSED.replace("< threshold", "<= threshold")),
    ),
    wrong(
        "used-share",
        "使われた列の割合を返しています。",
        (UNUSED, UNUSED.replace("< threshold", ">= threshold")),
    ),
    wrong(
        "unused-count",
        "割合ではなく個数を返しています。原文の語数 S で割ります。",
        (UNUSED, UNUSED.replace("mean()", "sum()")),
    ),
    wrong(
        "by-largest-weight",
        "列の最大の重みで判断しています。少しずつ何度も見られた語を見のがします。合計で判断します。",
        (UNUSED, UNUSED.replace("coverage(weights)", "weights.amax(dim=0)")),
    ),
    wrong(
        "by-cells",
        "列ではなく、セルを一つずつ数えています。列ごとに合計してから比べます。",
        (UNUSED, UNUSED.replace("coverage(weights)", "weights")),
    ),
    wrong(
        "by-argmax",
        "いちばん重い列を位置としています。ここでは、重みで平均した列の番号を使います。",
        (PLACE, "place = weights.argmax(dim=1)"),
    ),
    wrong(
        "backward-share",
        "戻った組の割合を返しています。",
        (FORWARD, FORWARD.replace(">=", "<")),
    ),
    wrong(
        "over-rows",
        "行の数 T で割っています。隣り合う組は T−1 個です。",
        (FORWARD, FORWARD.replace("mean().item()", "sum().item() / len(place)")),
    ),
    wrong(
        "from-the-first",
        "どの行も、最初の行と比べています。比べるのは、一つ前の行です。",
        (FORWARD, FORWARD.replace("place[:-1]", "place[0]")),
    ),
    wrong(
        "on-the-diagonal",
        "対角線より右にあるかを数えています。見るのは、一つ前の行より左へ戻ったかどうかです。",
        (FORWARD, FORWARD.replace("place[:-1]", "torch.arange(1, len(place))")),
    ),
    wrong(
        "one-row-nan",
        "出力が一つのとき、比べる組がなく NaN になっています。そのときは 1 とします。",
        (ALONE, "        pass\n"),
    ),
    wrong(
        "shape-swapped",
        "返り値の順が逆です。使われない列、戻らない割合の順に返します。",
        (ALONE, "        return 1.0, unused\n"),
        (BOTH, "return forward, unused"),
    ),
    wrong(
        "weights-as-effect",
        "注意の重みを、そのまま困り方として返しています。重みは、使ったことの証拠になりません。"
        "隠したときの対数確率を計算します。",
        (
            STACK,
            "return torch.stack(drops, dim=1) * 0 + scores.masked_fill(\n"
            "        ~allowed, -math.inf\n    ).softmax(dim=-1)",
        ),
    ),
    wrong(
        "not-renormalized",
        "隠した語の重みを 0 にしただけで、残りの重みの和が 1 になっていません。"
        "softmax の前に、スコアを −∞ にします。",
        (CONTEXT, "context = (scores.softmax(dim=-1) * allowed) @ values"),
    ),
    wrong(
        "score-zero",
        "隠す語のスコアを 0 にしています。exp(0) = 1 なので、まだ見えています。−∞ にします。",
        (HIDE, "hidden = scores.masked_fill(~allowed, 0.0)"),
    ),
    wrong(
        "only-one-left",
        "隠す語と見せる語が逆です。一語だけを残すのではなく、一語だけを隠します。",
        (
            WITHOUT,
            "        without = torch.zeros_like(allowed)\n        without[s] = True\n",
        ),
    ),
    wrong(
        "drop-sign",
        "符号が逆です。隠さないときの値から、隠したときの値を引きます。",
        (LOSS, "drops.append(log_p(without) - whole)"),
    ),
    wrong(
        "hidden-only",
        "隠したときの対数確率だけを返しています。隠さないときとの差にします。",
        (LOSS, "drops.append(log_p(without))"),
    ),
    wrong(
        "in-probability",
        "確率の差を返しています。対数確率の差にします。",
        (LOGITS, LOGITS.replace("log_softmax", "softmax")),
    ),
    wrong(
        "in-scores",
        "softmax を取る前のスコアの差を返しています。"
        "ほかの候補のスコアも一緒に上がっているかもしれません。",
        (LOGITS, "logits = context @ U.T"),
    ),
    wrong(
        "softmax-queries",
        "注意の softmax の向きが逆です。行ごとに、原文の語について足して 1 になるようにします。",
        (CONTEXT, "context = hidden.softmax(dim=0).nan_to_num() @ values"),
    ),
    wrong(
        "best-instead",
        "出すべき語ではなく、そのとき確率が最も高い語を見ています。",
        (PICK, "return logits.amax(dim=-1)"),
    ),
    wrong(
        "drop-transposed",
        "行と列が入れかわっています。行が出力、列が原文です。",
        (STACK, "return torch.stack(drops)"),
    ),
    wrong(
        "drop-summed",
        "出力について足しています。行ごとの困り方を、形 (T, S) で返します。",
        (STACK, "return torch.stack(drops, dim=1).sum(dim=0)"),
    ),
    wrong(
        "padding-seen",
        "mask を使っていないので、`<pad>` を見ています。",
        (ALLOWED, "allowed = torch.ones(n_source, dtype=torch.bool)"),
    ),
    wrong(
        "mask-inverted",
        "mask の意味が逆です。この本では True が「見てよい」です。",
        (ALLOWED, ALLOWED.replace("else mask", "else ~mask")),
    ),
    wrong(
        "hidden-for-good",
        "一度隠した語を、元に戻していません。隠すのは一語ずつです。"
        "渡された mask も書きかえません。",
        ("without = allowed.clone()", "without = allowed"),
    ),
    wrong(
        "nothing-left",
        "見てよい語が一つもないときに、NaN を返しています。"
        "計算する前に調べて、ValueError を出します。",
        (EMPTY, ""),
    ),
    wrong(
        "drop-overflow",
        "大きなスコアで exp があふれて NaN になっています。"
        "行ごとに最大値を引いてから exp を取るか、torch の softmax を使います。",
        (
            CONTEXT,
            "context = hidden.exp() / hidden.exp().sum(dim=1, keepdim=True) @ values",
        ),
    ),
    wrong(
        "most-that-can",
        "小問で、`coverage` が境目に届きうる語の数を答えています。"
        "聞いているのは、届かない語の数です。",
        (LEAST, "return 12"),
    ),
    wrong(
        "one-word-each",
        "小問で、出力一つが原文の一語を使うと考えています。重みは分けられるので、"
        "出力一つで二語を境目まで届かせることもできます。",
        (LEAST, "return 24"),
    ),
    wrong(
        "nothing-can-be-said",
        "小問で、モデルによるので何も言えないと考えています。どんなモデルでも行の和は 1 なので、"
        "配れる重みの合計は決まっています。",
        (LEAST, "return 0"),
    ),
    wrong(
        "half-word-each",
        "小問で、重みの合計に境目を掛けています。合計を境目で割ると、境目に届きうる語の数になります。",
        (LEAST, "return 27"),
    ),
    wrong(
        "as-in-translation",
        "小問で、どの語も一度は見られると考えています。原文の語より出力が少なければ、"
        "行き渡るだけの重みがありません。",
        (LEAST, "return 30"),
    ),
)

SUMMARY_RIGHT = (
    Right(
        "loops",
        code="""
import torch


def coverage(weights):
    total = torch.zeros_like(weights[..., 0, :])
    for t in range(weights.shape[-2]):
        total = total + weights[..., t, :]
    return total


def heatmap_shape(weights, threshold):
    T, S = weights.shape
    c = coverage(weights).tolist()
    dark = len([x for x in c if x < threshold])
    where = [sum(s * float(w) for s, w in enumerate(row)) for row in weights]
    steps = list(zip(where[:-1], where[1:]))
    if not steps:
        return dark / S, 1
    return dark / S, sum(1 for a, b in steps if b >= a) / len(steps)


def occlusion_drop(scores, values, U, targets, mask=None):
    T, S = scores.shape
    shown = [s for s in range(S) if mask is None or bool(mask[s])]
    if len(shown) < 2:
        raise ValueError("隠せません")

    def log_p(t, columns):
        weights = torch.softmax(scores[t, columns], 0)
        context = (weights[:, None] * values[columns]).sum(0)
        return torch.log_softmax(U @ context, 0)[targets[t]]

    out = torch.zeros(T, S, dtype=scores.dtype)
    for t in range(T):
        for s in shown:
            out[t, s] = log_p(t, shown) - log_p(t, [x for x in shown if x != s])
    return out


def answer_12_7():
    return 30 - 12
""",
    ),
    Right(
        "all-at-once",
        code="""
import torch


def coverage(weights):
    return torch.einsum("...ts->...s", weights)


def heatmap_shape(weights, threshold):
    unused = torch.lt(coverage(weights), threshold).sum().item() / weights.shape[1]
    place = (weights * torch.arange(weights.shape[1])).sum(1)
    back = torch.diff(place) < 0
    return unused, 1 - back.sum().item() / max(len(back), 1)


def occlusion_drop(scores, values, U, targets, mask=None):
    S = scores.shape[1]
    seen = torch.ones(S, dtype=torch.bool) if mask is None else mask
    keep = torch.cat([seen[None], seen & ~torch.eye(S, dtype=torch.bool)])
    if (keep.sum(1) == 0).any():
        raise ValueError("empty")
    weights = torch.where(keep[:, None], scores, float("-inf")).softmax(-1)
    logits = weights @ (values @ U.T)
    log_p = logits.log_softmax(-1)[:, torch.arange(len(targets)), targets]
    return (log_p[0] - log_p[1:]).T


def answer_12_7():
    return 18.0
""",
    ),
    Right(
        "renormalize",
        edits=(
            (COVER, "return torch.ones(weights.shape[-2]).to(weights) @ weights"),
            (
                CONTEXT,
                "top = hidden.amax(dim=1, keepdim=True)\n"
                "        e = (hidden - top).exp()\n"
                "        context = (e / e.sum(dim=1, keepdim=True)) @ values",
            ),
            (PICK, "return -torch.nn.functional.nll_loss(logits, targets, reduction='none')"),
            (WITHOUT, "        without = allowed & (torch.arange(n_source) != s)\n"),
        ),
    ),
)


# ── 12-8 ──


def _most(weights, row, exclude_self):
    """行を一つずつ、列を一つずつ見る。"""
    rows = weights[..., row, :].reshape(-1, weights.shape[-1]).tolist()
    columns = [c for c in range(weights.shape[-1]) if not (exclude_self and c == row)]
    best = [max(columns, key=seen.__getitem__) for seen in rows]
    return torch.tensor(best).reshape(weights.shape[:-2])


def _without(x, w_q, w_k, w_v, row=None, col=None):
    """行ごとに、見てよい列だけを取り出して平均する。"""
    q, k, v = (torch.einsum("...td,dk->...tk", x, w) for w in (w_q, w_k, w_v))
    length, out = x.shape[-2], []
    for t in range(length):
        columns = [s for s in range(length) if not (col is not None and (t, s) == (row, col))]
        if not columns:
            raise ValueError
        scores = (q[..., t, None, :] * k[..., columns, :]).sum(-1) / w_k.shape[1] ** 0.5
        weights = torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True))
        out.append((weights[..., None] * v[..., columns, :]).sum(-2))
    return torch.stack(out, -2)


def _logits(x, w_q, w_k, w_v, U, rows, cols=None):
    picked = []
    for b, row in enumerate(rows):
        row, col = int(row), None if cols is None else int(cols[b])
        picked.append(U @ (x[b] + _without(x[b], w_q, w_k, w_v, row, col))[row])
    return torch.stack(picked)


def _accuracy(x, w_q, w_k, w_v, U, rows, answers, cols=None):
    return float((_logits(x, w_q, w_k, w_v, U, rows, cols).argmax(-1) == answers).double().mean())


def _heads(draw: Draw):
    def probe(label, *lead, t=0, exclude=True, dtype="float64", own=False, **options):
        n = t or (draw.sizes(1)[0] if not draw.public else 4)
        while True:
            p, row = _alpha(draw, *lead, n, n, dtype=dtype), draw.integer(0, n)
            if own:  # 自分がいちばん重いヘッドがある
                p[..., row, row] += 1.0
                p /= p.sum(-1, keepdims=True)
            top = np.sort(p[..., row, :], -1)
            best = p[..., row, :].argmax(-1)
            column = p[..., :, row].argmax(-1)
            if (best != column).any() and (top[..., -1] - top[..., -2]).min() > 1e-5:
                break
        return Probe("most_attended", (p, row, exclude), label=label, **options)

    a, b = (2, 3) if draw.public else (draw.integer(3, 6), 2)
    yield probe("ヘッドが一つ（形は (T, T)）", exclude=False, repeat=True)
    yield probe("先頭に層とヘッドの次元", a, b)
    yield probe("自分がいちばん重く、自分を除く", b, own=True, repeat=True)
    yield probe("自分がいちばん重く、除かない", a, own=True, exclude=False)
    yield probe("float32", 2, dtype="float32")
    last = probe("最後の語の行", 3, t=5)
    weights = _alpha(draw, 3, 5, 5)
    weights[:, 4] = np.array([[1, 2, 4, 8, 5], [8, 2, 1, 4, 5], [1, 8, 2, 4, 5]]) / 20
    yield Probe("most_attended", (weights, 4, True), label=last.label)
    weights = _alpha(draw, 2, 5, 5)
    weights[:, 1] = np.array([[1, 4, 2, 8, 5], [2, 4, 1, 5, 8]]) / 20
    yield Probe("most_attended", (weights, 1, True), label="自分より後ろの語がいちばん重い")


def _one_cell(draw: Draw):
    def args(*lead, t=0, dtype="float64", scale=1.0):
        n, d, k, j = (4, 3, 2, 5) if draw.public else draw.sizes(4)
        x = draw.normal(*lead, t or n, d, dtype=dtype)
        w = [draw.normal(d, m, dtype=dtype, scale=scale / math.sqrt(d)) for m in (k, k, j)]
        return (x, *w)

    def probe(label, values, hide=True, **options):
        n = values[0].shape[-2]
        row = draw.integer(0, n)
        col = (row + draw.integer(1, max(n, 2))) % n
        extra = {"row": row, "col": col} if hide else {}
        return Probe("attend_without", values, extra, label=label, **options)

    yield probe("何も隠さない", args(), hide=False, repeat=True)
    yield probe("一か所を隠す", args(), repeat=True)
    yield probe("float32", args(dtype="float32"))
    yield probe("先頭に次元が一つある x", args(2))
    if not draw.public:
        yield probe("先頭に次元が二つある x", args(3, 2))
    own = args()
    yield Probe("attend_without", own, {"row": 1, "col": 1}, label="自分自身を隠す")
    yield probe("二語の文", args(t=2))
    yield probe("スコアがとても大きい", args(scale=200.0))
    yield probe("一語の文（隠すと何も残らない）", args(t=1))


def _cell_slopes(draw: Draw):
    n, d, k, j = (4, 3, 2, 5) if draw.public else draw.sizes(4)
    w = [draw.normal(d, m, scale=1 / math.sqrt(d)) for m in (k, k, j)]
    yield Probe(
        "attend_without",
        (draw.normal(n, d), *w),
        {"row": 2, "col": 0},
        label="出力を x と三つの行列で微分する",
        cotangent=draw.normal(n, j),
    )


def _rotation(draw: Draw, n: int) -> np.ndarray:
    return np.linalg.qr(draw.rng.standard_normal((n, n)))[0]


def _stories(draw: Draw, size: int, length: int, per_kind: int) -> dict:
    """指す名詞だけに頼って答えるモデルと、その文。特徴の向きは、でたらめに回してある。

    特徴は、名詞（種類ごとに per_kind 個）、名詞の種類 2、it が探す種類 2、it の印、文頭の印。
    """
    nouns, kind, wanted = 2 * per_kind, 2 * per_kind, 2 * per_kind + 2
    mark, head, d = nouns + 4, nouns + 5, nouns + 6
    x = 0.03 * draw.rng.standard_normal((size, length, d))
    rows, answers = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    spots = np.zeros((size, 3), dtype=np.int64)  # 指す名詞、もう一方、文頭
    for b in range(size):
        one, two, it = draw.rng.permutation(np.arange(1, length))[:3]
        which = draw.integer(0, 2)
        pair = [draw.integer(0, per_kind) + per_kind * c for c in (which, 1 - which)]
        for place, noun, c in ((one, pair[0], which), (two, pair[1], 1 - which)):
            x[b, place] = 0
            x[b, place, [noun, kind + c]] = 1
        x[b, it] = 0
        x[b, it, :nouns] = 0.05 * draw.rng.standard_normal(nouns)
        x[b, it, [wanted + which, mark]] = 1
        x[b, 0] = 0
        x[b, 0, head] = 1
        rows[b], answers[b], spots[b] = it, pair[0], (one, two, 0)
    w_q, w_k, w_v, U = np.zeros((d, 3)), np.zeros((d, 3)), np.zeros((d, d)), np.zeros((nouns, d))
    w_q[[wanted, wanted + 1, mark], [0, 1, 2]] = (7.0, 7.0, 8.5)
    w_k[[kind, kind + 1, head], [0, 1, 2]] = 1.0
    w_v[range(nouns), range(nouns)] = 1.0
    U[range(nouns), range(nouns)] = 10.0
    U[:per_kind, wanted] = U[per_kind:, wanted + 1] = 3.0
    turn, mix = _rotation(draw, d), _rotation(draw, 3)
    tensors = (x @ turn, turn.T @ w_q @ mix, turn.T @ w_k @ mix, turn.T @ w_v @ turn, U @ turn)
    return {"args": (*tensors, rows, answers), "spots": spots}


def _referents(draw: Draw) -> dict:
    """何も隠さなければ全部正解し、指す名詞を隠すとでたらめになる文の集まり。"""
    size = (6, 5, 2) if draw.public else (draw.integer(23, 32), draw.integer(7, 10), 4)
    while True:
        story = _stories(draw, *size)
        tensors = [torch.from_numpy(a) for a in story["args"]]
        *model, answers = tensors
        whole, hidden = (
            _logits(*model, cols).topk(2) for cols in (None, torch.from_numpy(story["spots"][:, 0]))
        )
        clear = min((t.values[:, 0] - t.values[:, 1]).min() for t in (whole, hidden)) > 1e-3
        right = [(t.indices[:, 0] == answers).double().mean() for t in (whole, hidden)]
        if clear and right[0] == 1 and 0.1 < right[1] < 0.6:
            return story


def _interventions(draw: Draw):
    given = corrected(draw, "12-8", "attend_without")

    def probe(label, args, cols=None, **options):
        extra = {} if cols is None else {"cols": cols}
        return Probe("accuracy_without", args, extra, label=label, given=given, **options)

    story = _referents(draw)
    args, spots = story["args"], story["spots"]
    yield probe("何も隠さない", args, repeat=True)
    yield probe("指す名詞を隠す（でたらめになるはず）", args, spots[:, 0], repeat=True)
    if not draw.public:
        yield probe("もう一方の名詞を隠す", args, spots[:, 1])
        yield probe("いちばん重い文頭の記号を隠す", args, spots[:, 2])
        floats = tuple(a.astype("float32") for a in args[:5])
        yield probe("float32", (*floats, *args[5:]), spots[:, 0])
    yield _wild(draw, probe)
    yield _wild(draw, probe)


def _wild(draw: Draw, probe) -> Probe:
    """でたらめなモデル。半分の文では、隠したときの答えを正解とする。"""
    b, t, d, k, c = (6, 4, 3, 2, 5) if draw.public else (24, 7, 11, 3, 13)
    while True:
        x = draw.normal(b, t, d)
        w = [draw.normal(d, n, scale=1 / math.sqrt(d)) for n in (k, k, d)]
        U, rows = draw.normal(c, d), draw.rng.integers(0, t, b)
        cols = (rows + draw.rng.integers(1, t, b)) % t
        top = _logits(*map(torch.from_numpy, (x, *w, U, rows, cols))).topk(2)
        if (top.values[:, 0] - top.values[:, 1]).min() > 1e-3:
            break
    answers = top.indices[:, 0].numpy().copy()
    answers[b // 2 :] = (answers[b // 2 :] + 1 + np.arange(b - b // 2) % (c - 1)) % c
    order = draw.rng.permutation(b)
    args = (x[order], *w, U, rows[order], answers[order])
    return probe("でたらめなモデルで、文ごとに違う語を隠す", args, cols[order])


SEEN = "seen = weights[..., row, :].clone()"
SELF = "    if exclude_self:\n        seen[..., row] = -1.0\n"
TOP = "return seen.argmax(dim=-1)"
QKV = "q, k, v = x @ w_q, x @ w_k, x @ w_v"
SCORES = "scores = q @ k.mT / math.sqrt(q.shape[-1])"
REFUSE = """        if scores.shape[-1] == 1:
            raise ValueError("隠すと、見てよい語が一つもありません")
"""
CELL = "hidden[row, col] = True"
FILL = "scores = scores.masked_fill(hidden, -math.inf)"
OUTPUT = "return scores.softmax(dim=-1) @ v"
COLS = "col = None if cols is None else int(cols[b])"
ONE = "seen = attend_without(x[b], w_q, w_k, w_v, row, col)[row]"
GUESS = "guess = (U @ (x[b, row] + seen)).argmax().item()"
RATE = "return right / len(rows)"
CLAIM = 'return "ウ"'

REFERENT_WRONG = (
    wrong(
        "column",
        "行ではなく列を見ています。行が見る側なので、row 番目の行の中で比べます。",
        (SEEN, "seen = weights[..., :, row].clone()"),
    ),
    wrong(
        "self-kept",
        "exclude_self が真のときも、自分自身を選んでいます。",
        (SELF, ""),
    ),
    wrong(
        "self-never",
        "exclude_self が偽のときも、自分自身を除いています。",
        (SELF, "    seen[..., row] = -1.0\n"),
    ),
    wrong(
        "least-attended",
        "重みがいちばん小さい語を選んでいます。",
        (TOP, "return seen.argmin(dim=-1)"),
        (SELF, SELF.replace("-1.0", "2.0")),
    ),
    wrong(
        "shifted",
        "自分の列を取り除いたあとの番号を返しています。取り除く前の番号に直します。",
        (
            SELF,
            "    if exclude_self:\n"
            "        seen = torch.cat([seen[..., :row], seen[..., row + 1 :]], dim=-1)\n",
        ),
    ),
    wrong(
        "weight-itself",
        "番号ではなく、重みの値を返しています。",
        (TOP, "return seen.amax(dim=-1)"),
    ),
    wrong(
        "heads-averaged",
        "層やヘッドについて平均してから選んでいます。見る所は、層とヘッドによって違います。",
        (
            TOP,
            "n = seen.shape[-1]\n"
            "    mean = seen.reshape(-1, n).mean(dim=0)\n"
            "    return mean.argmax().expand(seen.shape[:-1])",
        ),
    ),
    wrong(
        "all-rows",
        "すべての行の中で選んでいます。見るのは row 番目の行だけです。",
        (SEEN, "seen = weights.clone().amax(dim=-2)"),
    ),
    wrong(
        "from-one",
        "番号を 1 から数えています。0 から数えます。",
        (TOP, TOP + " + 1"),
    ),
    wrong(
        "weights-changed",
        "渡された weights を書きかえています。写しを作ってから変えます。",
        (SEEN, "seen = weights[..., row, :]"),
    ),
    wrong(
        "unscaled",
        "スコアを √d_k で割っていません。",
        (SCORES, "scores = q @ k.mT"),
    ),
    wrong(
        "scaled-by-width",
        "スコアを x の次元 D の平方根で割っています。割るのは、q と k の次元 d_k の平方根です。",
        (SCORES, SCORES.replace("q.shape", "x.shape")),
    ),
    wrong(
        "hidden-from-all",
        "すべての行から col 番目の語を隠しています。隠すのは、row 番目の行からだけです。",
        (CELL, "hidden[:, col] = True"),
    ),
    wrong(
        "cell-transposed",
        "行と列が逆です。row 番目の語から col 番目の語を見えなくします。",
        (CELL, "hidden[col, row] = True"),
    ),
    wrong(
        "hidden-ignored",
        "row と col が渡されているのに、何も隠していません。",
        (CELL, "pass"),
    ),
    wrong(
        "word-erased",
        "col 番目の語のベクトルを零にしています。零のベクトルにも重みは付き、ほかの行も変わります。"
        "スコアの一か所を −∞ にします。",
        (
            QKV,
            "if col is not None:\n"
            "        keep = torch.arange(x.shape[-2]) != col\n"
            "        x = x * keep[:, None]\n    " + QKV,
        ),
        (CELL, "pass"),
    ),
    wrong(
        "weight-cut",
        "softmax のあとで重みを 0 にしただけで、残りの重みの和が 1 になっていません。"
        "softmax の前に、スコアを −∞ にします。",
        (FILL, ""),
        (
            OUTPUT,
            "weights = scores.softmax(dim=-1)\n"
            "    if col is not None:\n"
            "        weights = weights * ~hidden\n"
            "    return weights @ v",
        ),
    ),
    wrong(
        "score-zeroed",
        "隠す所のスコアを 0 にしています。exp(0) = 1 なので、まだ見えています。−∞ にします。",
        (FILL, FILL.replace("-math.inf", "0.0")),
    ),
    wrong(
        "softmax-axis",
        "softmax の向きが逆です。行ごとに、見られる側について足して 1 になるようにします。",
        (OUTPUT, OUTPUT.replace("dim=-1", "dim=-2")),
    ),
    wrong(
        "value-is-key",
        "値 v を w_k で作っています。v は x @ w_v です。",
        (QKV, QKV + "\n    v = x @ w_k"),
    ),
    wrong(
        "attention-overflow",
        "大きなスコアで exp があふれて NaN になっています。"
        "行ごとに最大値を引いてから exp を取るか、torch の softmax を使います。",
        (OUTPUT, "return scores.exp() / scores.exp().sum(dim=-1, keepdim=True) @ v"),
    ),
    wrong(
        "nothing-left-to-see",
        "一語の文でその語を隠したときに、NaN を返しています。ValueError を出します。",
        (REFUSE, ""),
    ),
    wrong(
        "two-dimensional",
        "先頭に次元がある x を扱えません。最後の二つの次元（k.mT）を入れかえます。",
        (SCORES, SCORES.replace("k.mT", "k.transpose(0, 1)")),
    ),
    wrong(
        "output-detached",
        "注意の重みから勾配が切れています。detach や numpy への変換を入れていませんか。",
        (OUTPUT, "return scores.softmax(dim=-1).detach() @ v + 0 * (q.sum() + k.sum())"),
    ),
    wrong(
        "cols-ignored",
        "cols が渡されているのに、rows[b] 番目の語からは何も隠れていません。"
        "隠す側（row）と隠される側（col）を取り違えていませんか。",
        (COLS, "col = None"),
    ),
    wrong(
        "without-own-vector",
        "it 自身のベクトルを足していません。Self-Attention の出力に、元のベクトルを足します。",
        (GUESS, GUESS.replace("x[b, row] + seen", "seen")),
    ),
    wrong(
        "error-rate",
        "誤った割合を返しています。返すのは正解率です。",
        (RATE, "return 1 - right / len(rows)"),
    ),
    wrong(
        "right-count",
        "正解した数を返しています。文の数 B で割ります。",
        (RATE, "return right"),
    ),
    wrong(
        "same-column",
        "どの文でも、最初の文と同じ番号の語を隠しています。隠す語は文ごとに違います。",
        (COLS, "col = None if cols is None else int(cols[0])"),
    ),
    wrong(
        "same-row",
        "どの文でも、最初の文と同じ番号の語の答えを見ています。it の位置は文ごとに違います。",
        (COLS, COLS + "\n        row = int(rows[0])"),
    ),
    wrong(
        "other-vector",
        "it ではなく、最後の語の所で答えています。答えるのは rows[b] 番目の語の所です。",
        (ONE, ONE.replace(")[row]", ")[-1]")),
        (GUESS, GUESS.replace("x[b, row]", "x[b, -1]")),
    ),
    wrong(
        "confidence",
        "正解に付けた確率の平均を返しています。ここで測るのは、当たった文の割合です。",
        (
            GUESS,
            "guess = (U @ (x[b, row] + seen)).softmax(dim=0)[answers[b]].item()",
        ),
        ("right += guess == int(answers[b])", "right += guess"),
    ),
    wrong(
        "claims-sink",
        "小問で、重みがいちばん大きい語を、指している語だと考えています。"
        "文頭の記号は、隠しても何も変わりませんでした。",
        (CLAIM, 'return "ア"'),
    ),
    wrong(
        "claims-weights",
        "小問で、重みの順を効き方の順だと考えています。いちばん重い語を隠しても変わらず、"
        "次の語を隠すと落ちたので、順は合っていません。",
        (CLAIM, 'return "イ"'),
    ),
    wrong(
        "claims-every-model",
        "小問で、一つのモデルで測ったことを、どんなモデルにも当てはめています。"
        "学習が違えば、使う所も違うことがあります。",
        (CLAIM, 'return "エ"'),
    ),
    wrong(
        "claims-never",
        "小問で、一つの文の答えを、ほかの文にも当てはめています。"
        "形容詞を替えた文では、答えが変わりました。",
        (CLAIM, 'return "オ"'),
    ),
    wrong(
        "claims-adjective",
        "小問で、形容詞を替えた結果を見落としています。替えると答えが変わったので、"
        "どこかで答えに関わっています。",
        (CLAIM, 'return "カ"'),
    ),
)

REFERENT_RIGHT = (
    Right(
        "loops",
        code="""
import torch


def most_attended(weights, row, exclude_self):
    if weights.ndim > 2:
        return torch.stack([most_attended(w, row, exclude_self) for w in weights])
    order = torch.argsort(weights[row], descending=True).tolist()
    if exclude_self:
        order.remove(row)
    return torch.tensor(order[0])


def attend_without(x, w_q, w_k, w_v, row=None, col=None):
    if x.ndim > 2:
        return torch.stack([attend_without(y, w_q, w_k, w_v, row, col) for y in x])
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    out = []
    for t in range(len(x)):
        keep = [s for s in range(len(x)) if col is None or t != row or s != col]
        if len(keep) == 0:
            raise ValueError("見る語がない")
        a = torch.softmax(k[keep] @ q[t] / w_k.shape[1] ** 0.5, 0)
        out.append(a @ v[keep])
    return torch.stack(out)


def accuracy_without(x, w_q, w_k, w_v, U, rows, answers, cols=None):
    n = 0
    for b in range(len(x)):
        r = rows[b].item()
        c = None if cols is None else cols[b].item()
        y = x[b] + attend_without(x[b], w_q, w_k, w_v, row=r, col=c)
        if torch.argmax(U @ y[r]) == answers[b]:
            n += 1
    return n / len(x)


def answer_12_8():
    return "ウ"
""",
    ),
    Right(
        "einsum",
        code="""
import torch


def most_attended(weights, row, exclude_self):
    own = torch.arange(weights.shape[-1]) == row
    seen = weights[..., row, :]
    return torch.where(own & exclude_self, -torch.inf, seen).max(-1).indices


def attend_without(x, w_q, w_k, w_v, row=None, col=None):
    scores = torch.einsum("...td,dk,ek,...se->...ts", x, w_q, w_k, x) * w_q.shape[1] ** -0.5
    bias = torch.zeros(scores.shape[-2:], dtype=x.dtype)
    if col is not None:
        bias[row, col] = float("-inf")
    if (bias == float("-inf")).all():
        raise ValueError("all hidden")
    return torch.einsum("...ts,...se,ej->...tj", torch.softmax(scores + bias, -1), x, w_v)


def accuracy_without(x, w_q, w_k, w_v, U, rows, answers, cols=None):
    at = torch.arange(len(x))
    outs = [
        attend_without(x[b:b + 1], w_q, w_k, w_v, int(r), c)
        for b, (r, c) in enumerate(zip(rows, [None] * len(x) if cols is None else cols.tolist()))
    ]
    y = (x + torch.cat(outs))[at, rows]
    return ((y @ U.T).argmax(1) == answers).float().mean().double().item()


def answer_12_8():
    return "ウ"
""",
    ),
    Right(
        "log-weights",
        edits=(
            (SELF, "    if exclude_self:\n        seen[..., row] = seen.amin() - 1\n"),
            (OUTPUT, "return scores.log_softmax(dim=-1).exp() @ v"),
            (SCORES, "scores = torch.einsum('...tk,...sk->...ts', q / math.sqrt(w_q.shape[1]), k)"),
            (GUESS, "guess = int((x[b, row] @ U.T + seen @ U.T).max(dim=0).indices)"),
        ),
    ),
)


QUESTIONS = (
    Question(
        "12-5",
        parts=(
            Part(
                "次の一トークンの分布",
                2,
                (
                    Check(
                        "分布の値",
                        _lines("next_distribution"),
                        _distribution,
                        outputs=("分布",),
                        section=ONE_BY_ONE,
                    ),
                ),
            ),
            Part(
                "系列の対数確率",
                2,
                (
                    Check(
                        "対数確率の値",
                        _lines("sequence_log_prob"),
                        _log_prob,
                        outputs=("対数確率",),
                        section=DECODER,
                    ),
                    Check(
                        "勾配",
                        _line_slopes,
                        _log_prob,
                        outputs=tuple(f"{name} の勾配" for name in ("E", "A", "U", "state")),
                        section=DECODER,
                    ),
                ),
            ),
            Part(
                "訳文",
                2,
                (Check("訳文", _translations, _greedy, outputs=("訳文",), section=GREEDY),),
            ),
            _closed("確率の個数", 1, "12-5", 6.0, DECODER),
        ),
        model=functools.partial(source.model, "12-5"),
        wrong=LENGTHS_WRONG,
        right=LENGTHS_RIGHT,
        shortcuts=READY_MADE,
    ),
    Question(
        "12-6",
        parts=(
            Part(
                "測る",
                2,
                (
                    Check(
                        "平均と分散",
                        _measured,
                        _score_moments,
                        outputs=("平均", "分散"),
                        section=SCALE,
                    ),
                ),
            ),
            Part(
                "計算する",
                2,
                (
                    Check(
                        "正確な平均と分散",
                        _tables,
                        _exact,
                        outputs=("平均", "分散"),
                        section=SCALE,
                    ),
                ),
            ),
            Part(
                "実験する",
                2,
                (
                    Check(
                        "分散（統計）",
                        _draws,
                        _variance_band,
                        outputs=("分散",),
                        section=SCALE,
                    ),
                    Check("種", _draw_seeds, law=_draw_law, outputs=("分散",), section=SCALE),
                ),
            ),
            Part(
                "割る指数",
                1,
                (Check("指数の値", _powers, _power, outputs=("指数",), section=SCALE),),
            ),
            _closed("割る理由", 1, "12-6", "エ", SCALE),
        ),
        model=functools.partial(source.model, "12-6"),
        wrong=ROOT_WRONG,
        right=ROOT_RIGHT,
        shortcuts=READY_MADE,
    ),
    Question(
        "12-7",
        parts=(
            Part(
                "重みの合計",
                2,
                (
                    Check(
                        "合計の値",
                        _coverages,
                        _coverage,
                        outputs=("合計",),
                        section=AXES,
                    ),
                    Check(
                        "勾配",
                        _coverage_slopes,
                        _coverage,
                        outputs=("重みの勾配",),
                        section=AXES,
                    ),
                ),
            ),
            Part(
                "形の測定",
                2,
                (
                    Check(
                        "二つの割合",
                        _shapes,
                        _shape,
                        outputs=("使われない列の割合", "戻らない割合"),
                        section=AXES,
                    ),
                ),
            ),
            Part(
                "一語ずつ隠す",
                3,
                (Check("困り方", _drops, _drop, outputs=("困り方",), section=OCCLUSION),),
            ),
            _closed("暗い列の数", 1, "12-7", 18.0, AVERAGE),
        ),
        model=functools.partial(source.model, "12-7"),
        wrong=SUMMARY_WRONG,
        right=SUMMARY_RIGHT,
        shortcuts=READY_MADE,
    ),
    Question(
        "12-8",
        parts=(
            Part(
                "重みを読む",
                2,
                (Check("いちばん重い語", _heads, _most, outputs=("番号",), section=AXES),),
            ),
            Part(
                "一か所を隠す",
                3,
                (
                    Check("出力の値", _one_cell, _without, outputs=("出力",), section=HIDING),
                    Check(
                        "勾配",
                        _cell_slopes,
                        _without,
                        outputs=("x の勾配", "w_q の勾配", "w_k の勾配", "w_v の勾配"),
                        section=HIDING,
                    ),
                ),
            ),
            Part(
                "隠したときの正解率",
                2,
                (
                    Check(
                        "正解率",
                        _interventions,
                        _accuracy,
                        outputs=("正解率",),
                        section=OCCLUSION,
                    ),
                ),
            ),
            _closed("言えること", 1, "12-8", "ウ", OCCLUSION),
        ),
        model=functools.partial(source.model, "12-8"),
        wrong=REFERENT_WRONG,
        right=REFERENT_RIGHT,
        shortcuts=(*READY_MADE, "scaled_dot_product_attention", "MultiheadAttention"),
    ),
)
