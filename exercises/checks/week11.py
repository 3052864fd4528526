"""第 11 週の検査：入力、正解、法則、誤答の見本とその言葉、書き方の違う正答。

正解は lib を使わない：並びの総当たり、閉じた式、手で書いた逆伝播（試験で lib と突き合わせる）。
"""

import functools
import itertools
import math

import numpy as np
import torch

from exercises.checks.common import corrected, wrong
from exercises.grading import source
from exercises.grading.check import Check, Draw, Part, Probe, Question, Right

WORDS = (
    *("猫", "犬", "鳥", "魚", "馬", "が", "は", "を", "へ", "に", "走る", "眠る", "追う", "読む"),
    *("好き", "大きい", "この", "町", "行く", "来る"),
)
STRANGER = "象"  # どのコーパスにも現れない語
READY_MADE = ("lib", "lib.ngram", "lib.metrics", "nltk", "nltk.lm")
INFINITE = (0.0, 1e-8)  # 相対の幅があると、無限大との差が許されてしまう

NGRAM = "第 11 週「次の語を当てられるか」の章の"
PERPLEXITY = "第 11 週「どれだけ当たったかを測れるか」の章の"
SMOOTHING = "第 11 週「見たことのない並びにも確率を」の章の"
NEURAL = "第 11 週「似た語から学べないか」の章の"

COUNT_AND_DIVIDE = NGRAM + "「数えて割る」"
MORE_N = NGRAM + "「n を増やせばよいのか」"
ZERO = PERPLEXITY + "「文の始まりと終わりをどう数えるか」と「確率 0 の語が来たら」"
AVERAGE = PERPLEXITY + "「驚きを平均する」と「底を変えても同じ」"
POOL_ALL = PERPLEXITY + "「平均するのは驚きのほう」"
SEGMENTS = PERPLEXITY + "「切り方が違えば比べられない」"
MERGING = PERPLEXITY + "「`<unk>` にまとめると下がる」"
ADDING = SMOOTHING + "「どの語も、k 回ずつ余分に見たことにする」"
MIXING = SMOOTHING + "「長い文脈と短い文脈を混ぜる」"
EM = SMOOTHING + "「割合を EM で決める」"
BY_KINDS = SMOOTHING + "「よく出る語は、どこにでも出るか」"
DISCOUNT = SMOOTHING + "「見た回数から、同じだけ引く」と「Kneser–Ney」"
VECTORS = NEURAL + "「語をベクトルに直す」"
TRAINING = NEURAL + "「三つの段で書く」と「学習させる」"


def _strict(draw: Draw) -> tuple[float, float] | None:
    return None if draw.public else INFINITE


# ── 文と、その中の並び ──


def _words(draw: Draw, count: int) -> list[str]:
    return [str(w) for w in draw.rng.permutation(WORDS)[:count]]


def _text(draw: Draw, words: list[str], sentences: int, longest: int) -> tuple:
    """語の頻度が順位に反比例する文の並び。文の長さは 1 から longest。"""
    share = 1 / np.arange(1, len(words) + 1)
    lengths = [1, longest, *draw.rng.integers(1, longest + 1, sentences - 2)]
    picked = (draw.rng.choice(words, int(n), p=share / share.sum()) for n in lengths)
    return tuple(tuple(str(w) for w in sentence) for sentence in picked)


def _grams(corpus, n: int) -> list[tuple]:
    """すべての (文脈, 次の語)。位置を一つずつ数える。"""
    found = []
    for sentence in corpus:
        row = ("<s>",) * (n - 1) + tuple(sentence) + ("</s>",)
        found += [(row[i : i + n - 1], row[i + n - 1]) for i in range(len(sentence) + 1)]
    return found


def _followers(corpus, context) -> list[str]:
    return [w for c, w in _grams(corpus, len(context) + 1) if c == tuple(context)]


def _busy(draw: Draw, words: list[str], sentences: int, longest: int, n: int = 2) -> tuple:
    """(文の並び, 三回以上現れて二種類以上が続く文脈)。文脈は <s> で始まらない。"""
    while True:
        corpus = _text(draw, words, sentences, longest)
        contexts = sorted({c for c, _ in _grams(corpus, n) if "<s>" not in c})
        for context in contexts:
            row = _followers(corpus, context)
            kinds = len(set(row))
            shorter = _followers(corpus, context[1:])
            if 2 <= kinds < len(row) < len(shorter) and kinds < len({w for s in corpus for w in s}):
                return corpus, context


def _train(draw: Draw, n: int = 2) -> tuple:
    """(語, 学習データ, にぎやかな文脈)。大きさは種ごとに違う。"""
    if draw.public:
        words = _words(draw, 4)
        return words, *_busy(draw, words, 4 if n == 2 else 6, 4, n)
    words = _words(draw, draw.integer(5, 8))
    return words, *_busy(draw, words, draw.integer(7, 10), draw.integer(4, 6), n)


def _unseen_word(corpus, context) -> str:
    """context の後に来たことのない語。"""
    row = _followers(corpus, context)
    return next(w for w in sorted({w for s in corpus for w in s}) if w not in row)


def _geometric(probs) -> float:
    """パープレキシティ：積の逆数の、個数乗根。"""
    return math.inf if 0 in probs else math.prod(probs) ** (-1 / len(probs))


# ── 11-1 ──


def _mle(corpus, previous, word):
    row = _followers(corpus, (previous,))
    return row.count(word) / len(row) if row else 0.0


def _mle_perplexity(train, test):
    return _geometric([_mle(train, c[0], w) for c, w in _grams(test, 2)])


def _increase(corpus, previous, row):
    """文脈の割合 × KL ダイバージェンス。"""
    followers, new = _followers(corpus, (previous,)), dict(row)
    divergence = 0.0
    for word in set(followers):
        p = followers.count(word) / len(followers)
        divergence += p * math.log(p / new[word]) if new.get(word, 0) > 0 else math.inf
    return len(followers) / len(_grams(corpus, 2)) * divergence


def _bigrams(draw: Draw):
    words, corpus, (busy,) = _train(draw)

    def probe(label, previous, word, text=corpus, **options):
        return Probe("mle_prob", (text, previous, word), label=label, **options)

    for word in sorted(set(_followers(corpus, (busy,)))):
        yield probe("何度も現れた文脈", busy, word, repeat=True)
    yield probe("文の先頭", "<s>", corpus[1][0])
    yield probe("文の先頭（ほかの語）", "<s>", corpus[-1][0])
    for sentence in corpus[:2]:
        yield probe("文の終わり", sentence[-1], "</s>")
    yield probe("現れない並び", busy, _unseen_word(corpus, (busy,)))
    yield probe("見たことのない文脈", STRANGER, corpus[0][0])
    yield probe("</s> の後", "</s>", corpus[1][0])
    if not draw.public:
        for left, word in zip(corpus[1], corpus[1][1:], strict=False):
            yield probe("文の途中", left, word)
        yield probe("一文だけのコーパス", "<s>", words[0], ((words[0],),))
        yield probe("空の文", "<s>", "</s>", ((), (words[0],), ()))


def _seen_sentences(draw: Draw, corpus, count: int) -> tuple:
    """学習データの並びだけで作れる文。"""
    out = []
    while len(out) < count:
        sentence, left = [], "<s>"
        while left != "</s>" and len(sentence) < 6:
            row = _followers(corpus, (left,))
            left = row[draw.integer(0, len(row))]
            sentence.append(left)
        if left == "</s>" and len(sentence) > 1:
            out.append(tuple(sentence[:-1]))
    return tuple(out)


def _mle_tests(draw: Draw):
    _, corpus, _ = _train(draw)
    given = corrected(draw, "11-1", "mle_prob")

    def probe(label, test, train=corpus, **options):
        options = {"given": given, "tolerance": _strict(draw)} | options
        return Probe("mle_perplexity", (train, test), label=label, **options)

    yield probe("長さの違う文", _seen_sentences(draw, corpus, 3), repeat=True)
    yield probe("学習データそのもの", corpus)
    yield probe("一文だけ", _seen_sentences(draw, corpus, 1))
    if not draw.public:
        test = (*_seen_sentences(draw, corpus, 2), (STRANGER,))
        yield probe("確率 0 の並びがある", test)
        yield probe("最後だけ確率 0", ((*corpus[1], corpus[1][0], STRANGER),))


def _rows(draw: Draw, corpus, busy: str, extra: str) -> tuple:
    """busy の後に来た語と、もう一語に配った分布。"""
    words = [*sorted(set(_followers(corpus, (busy,)))), extra]
    draw.rng.shuffle(words)
    shares = draw.rng.integers(1, 9, len(words))
    return tuple((w, float(s / shares.sum())) for w, s in zip(words, shares, strict=True))


def _replacements(draw: Draw):
    _, corpus, (busy,) = _train(draw)
    given = corrected(draw, "11-1", "mle_prob")
    row = _rows(draw, corpus, busy, _unseen_word(corpus, (busy,)))

    def probe(label, previous, new, text=corpus):
        options = {"given": given, "tolerance": _strict(draw)}
        return Probe("nll_increase", (text, previous, new), label=label, **options)

    yield probe("にぎやかな文脈を取りかえる", busy, row)
    yield probe("別の分布に取りかえる", busy, _rows(draw, corpus, busy, STRANGER))
    starts = sorted({s[0] for s in corpus})
    yield probe("文の先頭を取りかえる", "<s>", tuple((w, 1 / len(starts)) for w in starts))
    same = [(w, _mle(corpus, busy, w)) for w in sorted(set(_followers(corpus, (busy,))))]
    yield probe("最尤推定と同じ分布", busy, tuple(same))
    yield probe("見たことのない文脈を取りかえる", STRANGER, row)
    if not draw.public:
        _, other, (left,) = _train(draw)
        yield probe("別のコーパス", left, _rows(draw, other, left, STRANGER), other)
        gone = _followers(corpus, (busy,))[0]
        yield probe("現れた語の確率が 0 になる", busy, tuple(r for r in row if r[0] != gone))


PADDED = 'padded = ["<s>", *sentence, "</s>"]'
ROW_TOTAL = "total = sum(c for (left, _), c in pairs.items() if left == previous)"
RATIO = "return pairs[previous, word] / total if total else 0.0"
TEST_TOKENS = 'tokens = ["<s>", *sentence, "</s>"]'
ADD_SURPRISE = "total += -math.log(p) if p > 0 else math.inf"
MLE_PPL = "return math.exp(total / n_tokens)"
INCREASE = "increase += math.log(p / q) if q > 0 else math.inf"
TEST_LOOP = """    total, n_tokens = 0.0, 0
    for sentence in test:
"""

MLE_WRONG = (
    wrong(
        "divide-by-all",
        "文脈の回数ではなく、予測の総数で割っています。これは二語が並ぶ確率です。"
        "「previous の後で」の割合にします。",
        (RATIO, RATIO.replace("/ total", "/ pairs.total()")),
    ),
    wrong(
        "divide-by-word",
        "次の語の回数で割っています。これは「word の前が previous である」割合です。"
        "文脈の回数で割ります。",
        (ROW_TOTAL, "total = sum(c for (_, right), c in pairs.items() if right == word)"),
    ),
    wrong(
        "divide-by-kinds",
        "文脈の回数ではなく、次に来た語の種類の数で割っています。",
        (ROW_TOTAL, "total = sum(left == previous for left, _ in pairs)"),
    ),
    wrong(
        "no-context",
        "文脈を見ていません（unigram の割合になっています）。",
        (RATIO, "return sum(c for (_, w), c in pairs.items() if w == word) / pairs.total()"),
    ),
    wrong(
        "no-eos",
        "文の終わりの `</s>` を数えていません。`</s>` も予測する語です。",
        (PADDED, 'padded = ["<s>", *sentence]'),
    ),
    wrong(
        "no-bos",
        "文の始まりの `<s>` を置いていません。先頭の語も、`<s>` を見て予測します。",
        (PADDED, 'padded = [*sentence, "</s>"]'),
    ),
    wrong(
        "crossing",
        "文の切れ目をまたいで数えています。前の文の `</s>` の次に、次の文の語は来ません。",
        (
            "    for sentence in corpus:\n        padded",
            "    for sentence in (joined,):\n        padded",
        ),
        (
            "    pairs = Counter()\n",
            '    pairs = Counter()\n    joined = [w for s in corpus for w in (*s, "</s>")][:-1]\n',
        ),
    ),
    wrong(
        "backwards",
        "並びの向きが逆です。previous が前、word が次です。",
        ("zip(padded[:-1], padded[1:])", "zip(padded[1:], padded[:-1])"),
    ),
    wrong(
        "unseen-crash",
        "見たことのない文脈で、0 で割っています。`0.0` を返します。",
        (RATIO, RATIO.replace(" if total else 0.0", "")),
    ),
    wrong(
        "add-one",
        "回数に 1 を足しています。これは加算平滑化です。最尤推定は、数えたままの比です。",
        (RATIO, RATIO.replace("pairs[previous, word]", "(pairs[previous, word] + 1)")),
    ),
    wrong(
        "skip-zero",
        "確率 0 のトークンを読み飛ばしています。予測に失敗したことが、なかったことになります。",
        (ADD_SURPRISE, ADD_SURPRISE.replace("math.inf", "0.0")),
    ),
    wrong(
        "mean-of-sentences",
        "文ごとのパープレキシティを平均しています。"
        "全トークンの驚きの合計を、トークンの総数で割ってから、一度だけ指数を取ります。",
        (
            TEST_LOOP,
            "    if len(test) > 1:\n"
            "        each = [mle_perplexity(train, [s]) for s in test]\n"
            "        return sum(each) / len(each)\n" + TEST_LOOP,
        ),
    ),
    wrong(
        "words-only",
        "`</s>` の驚きは足しているのに、割る数には語しか数えていません。",
        (MLE_PPL, MLE_PPL.replace("n_tokens", "(n_tokens - len(test))")),
    ),
    wrong(
        "drop-eos",
        "パープレキシティに `</s>` の予測が入っていません。`</s>` も予測して数えます。",
        (TEST_TOKENS, 'tokens = ["<s>", *sentence]'),
    ),
    wrong(
        "count-bos",
        "割る数に `<s>` を数えています。`<s>` は見るだけで、予測していません。",
        (MLE_PPL, MLE_PPL.replace("n_tokens", "(n_tokens + len(test))")),
    ),
    wrong(
        "base-mixed",
        "底が混ざっています。自然対数で測った驚きは、2 の何乗ではなく e の何乗で戻します。",
        (MLE_PPL, "return 2 ** (total / n_tokens)"),
    ),
    wrong(
        "cross-entropy",
        "驚きの平均（交差エントロピー）を返しています。指数を取るとパープレキシティになります。",
        (MLE_PPL, "return total / n_tokens"),
    ),
    wrong(
        "sentence-inverse",
        "トークンの数で割っていません。確率の積の逆数になっています。",
        (MLE_PPL, "return math.exp(total)"),
    ),
    wrong(
        "mean-of-inverses",
        "1/p の算術平均になっています。パープレキシティは 1/p の幾何平均です。",
        (ADD_SURPRISE, "total += 1 / p if p > 0 else math.inf"),
        (MLE_PPL, "return total / n_tokens"),
    ),
    wrong(
        "trained-on-test",
        "test の文を数えて確率を作っています。確率は train だけから作ります。",
        ("p = mle_prob(train, previous, word)", "p = mle_prob(test, previous, word)"),
    ),
    wrong(
        "increase-total",
        "増えた驚きの合計を返しています。予測したトークンの総数で割ります。",
        ("return increase / n_events", "return increase"),
    ),
    wrong(
        "increase-per-context",
        "文脈 previous の回数で割っています。コーパス全体のトークンの数で割ります。",
        (
            "            n_events += 1\n            if left == previous:\n",
            "            if left == previous:\n                n_events += 1\n",
        ),
        ("return increase / n_events", "return increase / max(n_events, 1)"),
    ),
    wrong(
        "increase-reversed",
        "KL ダイバージェンスの向きが逆です。重みは、実際に現れた回数の方です。",
        (INCREASE, "increase += q / p * math.log(q / p) if q > 0 else 0.0"),
    ),
    wrong(
        "increase-sign",
        "増え方の符号が逆です。（取りかえた後）−（最尤推定）です。",
        (INCREASE, "increase -= math.log(p / q) if q > 0 else math.inf"),
    ),
    wrong(
        "increase-bits",
        "単位がビットです。ナット（自然対数）にします。",
        (INCREASE, INCREASE.replace("math.log(", "math.log2(")),
    ),
    wrong(
        "increase-new-only",
        "取りかえた後の驚きだけで、最尤推定の驚きを引いていません。",
        (INCREASE, INCREASE.replace("math.log(p / q)", "-math.log(q)")),
    ),
    wrong(
        "increase-crash",
        "確率 0 になった語で、0 で割っています。驚きは無限大です。",
        (INCREASE, "increase += math.log(p / q)"),
    ),
)

MLE_RIGHT = (
    Right(
        "strings",
        code="""
import math


def pairs_of(sentence):
    row = ["<s>"] + list(sentence) + ["</s>"]
    return [(row[i], row[i + 1]) for i in range(len(row) - 1)]


def mle_prob(corpus, previous, word):
    both = left = 0
    for sentence in corpus:
        for a, b in pairs_of(sentence):
            left += a == previous
            both += a == previous and b == word
    return both / max(left, 1)


def mle_perplexity(train, test):
    ps = [mle_prob(train, a, b) for s in test for a, b in pairs_of(s)]
    if min(ps) == 0:
        return float("inf")
    return 2 ** (-sum(math.log2(p) for p in ps) / len(ps))


def nll_increase(corpus, previous, row):
    row = {w: p for w, p in row}
    old = new = 0.0
    everything = [pair for s in corpus for pair in pairs_of(s)]
    for a, b in everything:
        p = mle_prob(corpus, a, b)
        q = row.get(b, 0) if a == previous else p
        if q == 0:
            return math.inf
        old -= math.log(p)
        new -= math.log(q)
    return (new - old) / len(everything)
""",
    ),
    Right(
        "tables",
        code="""
from collections import defaultdict
import torch


def table(corpus):
    rows = defaultdict(lambda: defaultdict(int))
    for s in corpus:
        left = "<s>"
        for word in tuple(s) + ("</s>",):
            rows[left][word] += 1
            left = word
    return rows


def mle_prob(corpus, previous, word):
    rows = table(corpus)
    if previous not in rows or word not in rows[previous]:
        return 0.0
    return rows[previous][word] / sum(rows[previous].values())


def mle_perplexity(train, test):
    ps = []
    for s in test:
        left = "<s>"
        for word in tuple(s) + ("</s>",):
            ps.append(mle_prob(train, left, word))
            left = word
    return torch.tensor(ps, dtype=torch.float64).log().mean().neg().exp()


def nll_increase(corpus, previous, row):
    rows = table(corpus)
    n = sum(sum(r.values()) for r in rows.values())
    counts = rows[previous]
    total = sum(counts.values())
    words = list(counts)
    p = torch.tensor([counts[w] / total for w in words], dtype=torch.float64)
    q = torch.tensor([dict(row).get(w, 0.0) for w in words], dtype=torch.float64)
    return total / n * (p * (p.log() - q.log())).sum()
""",
    ),
    Right(
        "logs",
        edits=(
            (INCREASE, "increase += math.log(p) - math.log(q) if q else math.inf"),
            (MLE_PPL, "return math.e ** (total / n_tokens)"),
            (ROW_TOTAL, "total = sum(pairs[pair] for pair in pairs if pair[0] == previous)"),
        ),
    ),
)


# ── 11-2 ──


def _vocabulary(corpus) -> list[str]:
    return sorted({w for s in corpus for w in s} | {"</s>"})


def _add_k(train, context, word, k):
    if word not in _vocabulary(train):
        raise ValueError
    row = _followers(train, context)
    total = len(row) + k * len(_vocabulary(train))
    return (row.count(word) + k) / total if total else 0.0


def _add_k_perplexity(train, test, n, k):
    return _geometric([_add_k(train, c, w, k) for c, w in _grams(test, n)])


def _unseen_mass(train, context, k):
    row, size = _followers(train, context), len(_vocabulary(train))
    total = len(row) + k * size
    return k * (size - len(set(row))) / total if total else 0.0


def _k_probs(draw: Draw):
    words, train, busy = _train(draw)
    _, longer, context = _train(draw, 3)

    def probe(label, context, word, k, corpus=train, **options):
        return Probe("add_k_prob", (corpus, context, word, k), label=label, **options)

    small, large = (0.25, 3.5) if draw.public else (draw.integer(1, 90) / 100, 2.75)
    for word in sorted(set(_followers(train, busy))):
        yield probe("現れた並び", busy, word, small, repeat=True)
    yield probe("現れない並び", busy, _unseen_word(train, busy), small)
    yield probe("文の終わり", (train[0][-1],), "</s>", large)
    yield probe("trigram", context, _followers(longer, context)[0], small, longer)
    yield probe("trigram で現れない並び", context, _unseen_word(longer, context), 1, longer)
    yield probe("文脈なし（unigram）", (), train[1][0], small)
    yield probe("見たことのない文脈", (STRANGER,), train[1][0], small)
    yield probe("k = 0", busy, _followers(train, busy)[0], 0)
    yield probe("k = 0 で、見たことのない文脈", (STRANGER,), train[1][0], 0)
    yield probe("語彙にない語", busy, STRANGER, small)
    yield probe("<s> を予測させる", busy, "<s>", small)
    if not draw.public:
        yield probe("大きな k", busy, words[0] if words[0] in train[1] else train[1][0], 1e6)
        yield probe("文の先頭", ("<s>",), train[1][0], large)
        yield probe("trigram の文の先頭", ("<s>", "<s>"), longer[1][0], large, longer)


def _k_tests(draw: Draw):
    words, train, _ = _train(draw)
    known = [w for w in words if any(w in s for s in train)]
    given = corrected(draw, "11-2", "windows", "add_k_prob")

    def probe(label, n, k, test, **options):
        options = {"given": given, "tolerance": _strict(draw)} | options
        return Probe("add_k_perplexity", (train, test, n, k), label=label, **options)

    test = _text(draw, known, 3 if draw.public else draw.integer(4, 7), 4)
    yield probe("bigram", 2, 0.5, test, repeat=True)
    yield probe("trigram", 3, 0.1, test)
    yield probe("unigram", 1, 1, test)
    yield probe("一文だけ", 2, 0.25, test[1:2])
    if not draw.public:
        yield probe("4-gram", 4, 0.02, test)
        yield probe("k = 0 で、確率 0 の並びがある", 2, 0, (*train, tuple(known[::-1]) * 3))
        yield probe("k = 0 で、学習データそのもの", 2, 0, train)


def _masses(draw: Draw):
    _, train, busy = _train(draw)
    _, longer, context = _train(draw, 3)
    given = corrected(draw, "11-2", "windows", "add_k_prob")

    def probe(label, context, k, corpus=train, **options):
        args = (corpus, context, k)
        return Probe("unseen_mass", args, label=label, given=given, **options)

    yield probe("何度も現れた文脈", busy, 0.5, repeat=True)
    yield probe("何度も現れた文脈で、別の k", busy, 2)
    yield probe("文の終わりの語", (train[0][-1],), 1)
    yield probe("trigram", context, 0.25, longer)
    yield probe("見たことのない文脈", (STRANGER,), 0.5)
    yield probe("k = 0", busy, 0)
    yield probe("文脈なし（どの語も見ている）", (), 1)
    if not draw.public:
        yield probe("文の先頭", ("<s>",), 0.5)


KINDS = 'vocabulary = {w for s in train for w in s} | {"</s>"}'
K_TOTAL = "total = row.total() + k * len(vocabulary)"
K_RATIO = "return (row[word] + k) / total if total else 0.0"
K_SURPRISE = "surprise += -math.log(p) if p > 0 else math.inf"
K_PPL = "return math.exp(surprise / n_tokens)"
K_LOOP = """    surprise, n_tokens = 0.0, 0
    for sentence in test:
"""
MASS = "return sum(add_k_prob(train, context, w, k) for w in words - followers)"

ADD_K_WRONG = (
    wrong(
        "one-k",
        "分母に k を一つしか足していません。分子に足した k は語彙の数だけあるので、"
        "分母には k|V| を足します。",
        (K_TOTAL, "total = row.total() + k"),
    ),
    wrong(
        "no-k-below",
        "分母に何も足していないので、確率の和が 1 を超えます。",
        (K_TOTAL, "total = row.total()"),
    ),
    wrong(
        "v-without-k",
        "分母に |V| を足していますが、k を掛けていません。",
        (K_TOTAL, "total = row.total() + len(vocabulary)"),
    ),
    wrong(
        "numerator-v",
        "分子に k|V| を足しています。一つの語に足すのは k です。",
        (K_RATIO, K_RATIO.replace("+ k)", "+ k * len(vocabulary))")),
    ),
    wrong(
        "v-without-eos",
        "|V| に `</s>` が入っていません。`</s>` も予測する語の一種類です。",
        (K_TOTAL, K_TOTAL.replace("len(vocabulary)", "(len(vocabulary) - 1)")),
    ),
    wrong(
        "v-with-bos",
        "|V| に `<s>` が入っています。`<s>` は予測しないので、数えません。",
        (K_TOTAL, K_TOTAL.replace("len(vocabulary)", "(len(vocabulary) + 1)")),
    ),
    wrong(
        "v-tokens",
        "|V| が語の種類ではなく、トークンの総数になっています。",
        (K_TOTAL, K_TOTAL.replace("len(vocabulary)", "sum(len(s) + 1 for s in train)")),
    ),
    wrong(
        "v-followers",
        "|V| が、その文脈の後に来た語の種類になっています。語彙の全部の数にします。",
        (K_TOTAL, K_TOTAL.replace("len(vocabulary)", "len(row)")),
    ),
    wrong(
        "only-unseen",
        "見たことのない語にだけ k を配っています。どの語の回数にも k を足します。",
        (K_RATIO, K_RATIO.replace("row[word] + k", "row[word] or k")),
    ),
    wrong(
        "only-last-word",
        "文脈の最後の一語だけを見ています。n−1 語のすべてが一致する所を数えます。",
        ("if c == tuple(context):", "if c[-1:] == tuple(context)[-1:]:"),
    ),
    wrong(
        "k-is-one",
        "引数の k を使わず、いつも 1 を足しています。",
        ("    row = Counter()\n", "    k = 1\n    row = Counter()\n"),
    ),
    wrong(
        "joint",
        "文脈の回数ではなく、予測の総数で割っています。",
        (K_TOTAL, K_TOTAL.replace("row.total()", "sum(len(s) + 1 for s in train)")),
    ),
    wrong(
        "unknown-word",
        "語彙にない語にも確率を付けています。和が 1 を超えるので、ValueError を出します。",
        ('raise ValueError(f"語彙にない語です：{word}")', "pass"),
    ),
    wrong(
        "zero-division",
        "k が 0 で文脈も見たことがないときに、0 で割っています。`0.0` を返します。",
        (K_RATIO, K_RATIO.replace(" if total else 0.0", "")),
    ),
    wrong(
        "ppl-skip-zero",
        "確率 0 のトークンを読み飛ばしています。読み飛ばすと、外したモデルほど良く見えます。",
        (K_SURPRISE, K_SURPRISE.replace("math.inf", "0.0")),
    ),
    wrong(
        "ppl-crash",
        "確率 0 で math.log がエラーになっています。驚きは無限大なので、math.inf を足します。",
        (K_SURPRISE, "surprise += -math.log(p)"),
    ),
    wrong(
        "ppl-mean-of-sentences",
        "文ごとのパープレキシティを平均しています。"
        "全トークンの驚きを合計してから、総数で一度だけ割ります。",
        (
            K_LOOP,
            "    if len(test) > 1:\n"
            "        each = [add_k_perplexity(train, [s], n, k) for s in test]\n"
            "        return sum(each) / len(each)\n" + K_LOOP,
        ),
    ),
    wrong(
        "ppl-words-only",
        "割る数に `</s>` を数えていません。`</s>` の予測も一つのトークンです。",
        (K_PPL, K_PPL.replace("n_tokens", "(n_tokens - len(test))")),
    ),
    wrong(
        "ppl-count-bos",
        "割る数に、予測していない `<s>` を数えています。",
        (K_PPL, K_PPL.replace("n_tokens", "(n_tokens + (n - 1) * len(test))")),
    ),
    wrong(
        "ppl-base-mixed",
        "自然対数の驚きを 2 の何乗かで戻しています。底をそろえます。",
        (K_PPL, "return 2 ** (surprise / n_tokens)"),
    ),
    wrong(
        "ppl-nats",
        "驚きの平均を返しています。指数を取ります。",
        (K_PPL, "return surprise / n_tokens"),
    ),
    wrong(
        "ppl-on-train",
        "test ではなく train を測っています。",
        (K_LOOP, K_LOOP.replace("in test", "in train")),
    ),
    wrong(
        "ppl-trained-on-test",
        "test の文も数えて確率を作っています。見たことのない並びが、見たことになってしまいます。",
        ("p = add_k_prob(train, context", "p = add_k_prob([*train, *test], context"),
    ),
    wrong(
        "ppl-bigram-only",
        "引数の n を使わず、いつも bigram で測っています。",
        (
            "for context, word in windows(sentence, n):",
            "for context, word in windows(sentence, 2):",
        ),
    ),
    wrong(
        "mass-seen",
        "来たことのある語の確率を足しています。足すのは、一度も来ていない語です。",
        (MASS, MASS.replace("words - followers", "followers")),
    ),
    wrong(
        "mass-one",
        "一度も来ていない語の一つ分だけを返しています。全部を足します。",
        (
            MASS,
            "return max((add_k_prob(train, context, w, k) for w in words - followers), default=0)",
        ),
    ),
    wrong(
        "mass-number",
        "一度も来ていない語の種類の数を返しています。確率の合計を返します。",
        (MASS, "return len(words - followers)"),
    ),
    wrong(
        "mass-all-added",
        "足した分の全部（k|V| の割合）を返しています。その一部は、見たことのある語にも配られます。",
        (
            MASS,
            "added = k * len(words)\n"
            "    seen = sum(c == tuple(context) for s in train"
            " for c, _ in windows(s, len(context) + 1))\n"
            "    return added / (added + seen) if added else 0.0",
        ),
    ),
    wrong(
        "mass-no-eos",
        "一度も来ていない語の中に `</s>` を数えていません。",
        (
            'words = {w for s in train for w in s} | {"</s>"}',
            "words = {w for s in train for w in s}",
        ),
    ),
    wrong(
        "mass-any-context",
        "どこかの文脈で見た語を、この文脈でも見たことにしています。",
        ("        if c == tuple(context)\n    }", "    }"),
    ),
)

ADD_K_RIGHT = (
    Right(
        "plain",
        code="""
import math


def windows(sentence, n):
    row = ("<s>",) * (n - 1) + tuple(sentence) + ("</s>",)
    return [(row[i:i + n - 1], row[i + n - 1]) for i in range(len(row) - n + 1)]


def words_of(train):
    out = ["</s>"]
    for s in train:
        out += [w for w in s if w not in out]
    return list(dict.fromkeys(out))


def add_k_prob(train, context, word, k):
    V = words_of(train)
    if V.count(word) == 0:
        raise ValueError(word)
    context = tuple(context)
    n = len(context) + 1
    all_grams = [g for s in train for g in windows(s, n)]
    top = all_grams.count((context, word)) + k
    bottom = sum(1 for c, _ in all_grams if c == context) + k * len(V)
    return 0.0 if bottom == 0 else top / bottom


def add_k_perplexity(train, test, n, k):
    ps = [add_k_prob(train, c, w, k) for s in test for c, w in windows(s, n)]
    if 0 in ps:
        return math.inf
    return math.exp(-sum(math.log(p) for p in ps) / len(ps))


def unseen_mass(train, context, k):
    n = len(context) + 1
    row = {w for s in train for c, w in windows(s, n) if c == tuple(context)}
    if k == 0:
        return 0.0
    return 1.0 - sum(add_k_prob(train, context, w, k) for w in row)
""",
    ),
    Right(
        "tensors",
        code="""
import torch
from collections import Counter


def windows(sentence, n):
    padded = ["<s>"] * (n - 1) + list(sentence) + ["</s>"]
    return [(tuple(padded[t - n + 1:t]), padded[t]) for t in range(n - 1, len(padded))]


def row_of(train, context, k):
    V = sorted({w for s in train for w in s}) + ["</s>"]
    n = len(context) + 1
    seen = Counter(w for s in train for c, w in windows(s, n) if c == tuple(context))
    counts = torch.tensor([seen[w] for w in V], dtype=torch.float64)
    return V, counts, torch.nan_to_num((counts + k) / (counts + k).sum())


def add_k_prob(train, context, word, k):
    V, _, p = row_of(train, context, k)
    return p[V.index(word)].item()


def add_k_perplexity(train, test, n, k):
    logs = [
        torch.tensor(add_k_prob(train, c, w, k), dtype=torch.float64).log()
        for s in test for c, w in windows(s, n)
    ]
    return torch.stack(logs).mean().neg().exp().item()


def unseen_mass(train, context, k):
    _, counts, p = row_of(train, context, k)
    return p[counts == 0].sum().item()
""",
    ),
    Right(
        "mixture",
        edits=(
            (
                K_RATIO,
                "if total == 0:\n        return 0.0\n"
                "    share = row.total() / total\n"
                "    mle = row[word] / row.total() if row else 0.0\n"
                "    return share * mle + (1 - share) / len(vocabulary)",
            ),
            (K_SURPRISE, "surprise -= math.log(p) if p else -math.inf"),
            (
                MASS,
                "return math.fsum(add_k_prob(train, context, w, k) for w in words - followers)",
            ),
        ),
    ),
)


# ── 11-3 ──


def _surprise(probs, base):
    p = probs.numpy().astype(np.float64)
    if not len(p) or p.min() < 0 or p.max() > 1:
        raise ValueError
    with np.errstate(divide="ignore"):
        return float(-(np.log2(p).sum() / np.log2(base)) / len(p))


def _pooled(sentences):
    probs = [p for s in sentences for p in s]
    if not probs:
        raise ValueError
    if 0 in probs:
        return math.inf
    return math.prod(p ** (-1 / len(probs)) for p in probs)


def _even(n_short, n_long, p_long, q):
    """比だけで書く：長い文で得た分を、短い文で吐き出す。"""
    return q * (q / p_long) ** (n_long / n_short)


def _probs(draw: Draw, *shape: int, dtype: str = "float64") -> np.ndarray:
    values = draw.rng.uniform(0.02, 0.98, shape)
    return (values.round(2) if draw.public else values).astype(dtype)


def _surprises(draw: Draw):
    def probe(label, probs, base, **options):
        options = {"tolerance": _strict(draw)} | options
        return Probe("mean_surprise", (probs, base), label=label, **options)

    n, m, base = draw.sizes(3)
    yield probe("底が 10", _probs(draw, n), 10.0, repeat=True)
    yield probe("底が e", _probs(draw, m), math.e)
    yield probe("底が整数", _probs(draw, n), base)
    yield probe("トークンが一つ", _probs(draw, 1), 2.0)
    tiny = _probs(draw, n) * 1e-4
    yield probe("とても小さい確率", tiny, 2.0)
    yield probe("長い文章", np.full(1500 if draw.public else 4001, 0.25), 4.0)
    yield probe("float32", _probs(draw, m, dtype="float32"), 2.0, tolerance=(1e-4, 1e-5))
    yield probe("どれも確率 1", np.ones(n), 2.0)
    yield probe("長さ 0", np.zeros(0), 2.0)
    yield probe("1 を超える値がある", np.array([0.5, 1.25, 0.5]), 2.0)
    yield probe("負の値がある", np.array([0.5, -0.25, 0.75]), 2.0)
    if not draw.public:
        yield probe("確率 0 がある", np.append(_probs(draw, n), 0.0), 10.0)
        yield probe("1 より小さくない底", _probs(draw, m), 1.5)


def _lists(draw: Draw, *lengths: int, scale: float = 1.0) -> tuple:
    return tuple(tuple(float(p * scale) for p in _probs(draw, n)) for n in lengths)


def _sentence_sets(draw: Draw):
    def probe(label, sentences, **options):
        options = {"tolerance": _strict(draw)} | options
        return Probe("pooled_perplexity", (sentences,), label=label, **options)

    a, b, c = draw.sizes(3)
    yield probe("長さの違う文", _lists(draw, a, b, c), repeat=True)
    yield probe("長さの違う二文", _lists(draw, 2, 13))
    yield probe("一文だけ", _lists(draw, c))
    yield probe("一トークンの文", _lists(draw, 1, 1, 1, 1))
    yield probe("空の文がある", ((), *_lists(draw, b, a), ()))
    long = tuple((2.0**-25,) * 60 for _ in range(2))
    loose = None if draw.public else (0.0, 1e-2)  # 値が 10^7 くらいになる
    yield probe("長い文（確率の積がとても小さい）", (*long, *_lists(draw, a)), tolerance=loose)
    yield probe("トークンが一つもない", ((), ()))
    if not draw.public:
        yield probe("一つもない", ())
        yield probe("確率 0 がある", (*_lists(draw, a, b), (0.5, 0.0, 0.25)))


def _draws_of_even(draw: Draw):
    def probe(label, short, long, q, ratio):
        args = (short, long, q * ratio, q)
        return Probe("break_even", args, label=label)

    q = 0.2 if draw.public else draw.integer(10, 30) / 100
    short, long = (2, 5) if draw.public else (draw.integer(2, 6), draw.integer(7, 12))
    yield probe("長い文で A が勝つ", short, long, q, 1.25)
    yield probe("長い文で A が少しだけ勝つ", short, long, q, 1.1)
    yield probe("長い文で A が負ける", short, long, q, 0.9)
    yield probe("長い文が、短い文の 2 倍", short, 2 * short, q, 1.3)
    if not draw.public:
        yield probe("長い文が、とても長い", short, 40, q, 1.05)


SURPRISE = "return (-probs.double().log().mean() / math.log(base)).item()"
POOL_ADD = "total += -math.log(p) if p > 0 else math.inf"
POOL = "return math.exp(total / n_tokens)"
POOL_START = "    total, n_tokens = 0.0, 0\n"
EVEN_WHOLE = "whole = (n_short + n_long) * math.log(q)"
EVEN_REST = "rest = whole - n_long * math.log(p_long)"
EVEN = "return math.exp(rest / n_short)"


def _each(combine: str) -> tuple[str, str]:
    """文ごとに測ってから、まとめる。"""
    return (
        POOL_START,
        "    full = [s for s in sentences if len(s)]\n"
        "    if len(full) > 1:\n"
        "        each = [pooled_perplexity([s]) for s in full]\n"
        f"        return {combine}\n" + POOL_START,
    )


PERPLEXITY_WRONG = (
    wrong(
        "log-of-mean",
        "確率を平均してから対数を取っています。一つずつ対数を取ってから平均します。",
        (SURPRISE, SURPRISE.replace(".log().mean()", ".mean().log()")),
    ),
    wrong(
        "base-ignored",
        "base を使わず、自然対数のままです。",
        (SURPRISE, SURPRISE.replace(" / math.log(base)", "")),
    ),
    wrong(
        "base-multiplied",
        "log(base) を掛けています。底を変えるときは割ります。",
        (SURPRISE, SURPRISE.replace("/ math", "* math")),
    ),
    wrong(
        "always-bits",
        "いつも底 2 で測っています。引数の base を使います。",
        (SURPRISE, SURPRISE.replace("(base)", "(2)")),
    ),
    wrong(
        "surprise-total",
        "驚きの合計を返しています。トークンの数で割って、平均にします。",
        (SURPRISE, SURPRISE.replace("mean", "sum")),
    ),
    wrong(
        "surprise-sign",
        "符号が逆です。確率は 1 以下なので、驚きは負になりません。",
        (SURPRISE, SURPRISE.replace("(-probs", "(probs")),
    ),
    wrong(
        "surprise-product",
        "確率を掛けてから対数を取っています。長い文章では、積が 0 につぶれます。",
        (SURPRISE, "return -math.log(probs.double().prod()) / len(probs) / math.log(base)"),
    ),
    wrong(
        "surprise-epsilon",
        "確率に小さな数を足してから対数を取っています。小さい確率ほど値がずれ、"
        "確率 0 も無限大になりません。",
        (SURPRISE, SURPRISE.replace("probs.double()", "(probs.double() + 1e-6)")),
    ),
    wrong(
        "surprise-exponential",
        "驚きの平均ではなく、パープレキシティを返しています。",
        (SURPRISE, "return base ** " + SURPRISE.removeprefix("return ")),
    ),
    wrong(
        "surprise-skip-zero",
        "確率 0 のトークンを除いて平均しています。予測に失敗したトークンこそ数えます。",
        (SURPRISE, SURPRISE.replace("probs.double()", "probs[probs > 0].double()")),
    ),
    wrong(
        "range-unchecked",
        "1 を超える値を確率として受け取っています。ValueError を出します。",
        ("inside = (probs >= 0) & (probs <= 1)", "inside = probs >= 0"),
    ),
    wrong(
        "empty-nan",
        "長さ 0 のとき、平均が NaN になっています。ValueError を出します。",
        ("if len(probs) == 0 or not inside.all():", "if not inside.all():"),
    ),
    wrong(
        "mean-of-perplexities",
        "文ごとのパープレキシティを平均しています。短い文が、長い文と同じ重みになります。",
        _each("sum(each) / len(each)"),
    ),
    wrong(
        "mean-of-sentence-means",
        "文ごとの驚きの平均を、さらに平均しています。文の長さが無視されています。",
        _each("math.exp(sum(map(math.log, each)) / len(each))"),
    ),
    wrong(
        "arithmetic",
        "1/p の算術平均になっています。確率は掛け合わせるものなので、幾何平均を取ります。",
        (POOL_ADD, "total += 1 / p if p > 0 else math.inf"),
        (POOL, "return total / n_tokens"),
    ),
    wrong(
        "inverse-of-mean",
        "確率の平均の逆数になっています。対数を取ってから平均します。",
        (POOL_ADD, "total += p"),
        (POOL, "return n_tokens / total"),
    ),
    wrong(
        "pool-base-mixed",
        "自然対数の驚きを 2 の何乗かで戻しています。",
        (POOL, "return 2 ** (total / n_tokens)"),
    ),
    wrong(
        "pool-nats",
        "驚きの平均を返しています。指数を取ります。",
        (POOL, "return total / n_tokens"),
    ),
    wrong(
        "pool-product",
        "確率を全部掛けています。長い文では積が 0 につぶれ、逆数が取れません。",
        (POOL_START, POOL_START.replace("0.0", "1.0")),
        (POOL_ADD, "total *= p"),
        (POOL, "return total ** (-1 / n_tokens)"),
    ),
    wrong(
        "pool-per-sentence",
        "トークンの数ではなく、文の数で割っています。",
        (POOL, "return math.exp(total / sum(len(s) > 0 for s in sentences))"),
    ),
    wrong(
        "pool-skip-zero",
        "確率 0 のトークンを読み飛ばしています。パープレキシティは無限大です。",
        (POOL_ADD, POOL_ADD.replace("math.inf", "0.0")),
    ),
    wrong(
        "pool-empty-one",
        "トークンが一つもないのに、値を返しています。ValueError を出します。",
        ('raise ValueError("トークンが一つ以上必要です")', "return 1.0"),
    ),
    wrong(
        "even-mean",
        "文ごとのパープレキシティの平均が等しくなる値を返しています。",
        (EVEN, "return 1 / (2 / q - 1 / p_long)"),
    ),
    wrong(
        "even-unweighted",
        "二つの文を同じ重みで数えています。文の長さ（トークンの数）で重み付けします。",
        (EVEN, "return q**2 / p_long"),
    ),
    wrong(
        "even-arithmetic",
        "確率の算術平均が等しくなる値を返しています。等しくするのは、確率の積です。",
        (EVEN, "return ((n_short + n_long) * q - n_long * p_long) / n_short"),
    ),
    wrong(
        "even-swapped",
        "短い文と長い文の長さが入れかわっています。",
        (EVEN_REST, EVEN_REST.replace("n_long", "n_short")),
        (EVEN, EVEN.replace("n_short", "n_long")),
    ),
    wrong(
        "even-sentence",
        "短い文の全体の確率を返しています。トークン一つあたりの確率にします。",
        (EVEN, "return math.exp(rest)"),
    ),
    wrong(
        "even-whole-root",
        "全体のトークンの数で割っています。x が付くのは、短い文のトークンだけです。",
        (EVEN, EVEN.replace("n_short", "(n_short + n_long)")),
    ),
    wrong(
        "even-log",
        "確率ではなく、確率の対数を返しています。",
        (EVEN, "return rest / n_short"),
    ),
    wrong(
        "even-forgets-b",
        "モデル B の、長い文での驚きを数えていません。",
        (EVEN_WHOLE, "whole = n_short * math.log(q)"),
    ),
)

PERPLEXITY_RIGHT = (
    Right(
        "plain",
        code="""
import math


def mean_surprise(probs, base):
    values = probs.tolist()
    if not values or any(p < 0 or p > 1 for p in values):
        raise ValueError("probs")
    if 0 in values:
        return float("inf")
    return -sum(math.log(p, base) for p in values) / len(values)


def pooled_perplexity(sentences):
    flat = []
    for s in sentences:
        flat.extend(s)
    if not flat:
        raise ValueError("empty")
    if min(flat) == 0:
        return math.inf
    bits = sum(math.log2(1 / p) for p in flat)
    return 2 ** (bits / len(flat))


def break_even(n_short, n_long, p_long, q):
    return (q ** (n_short + n_long) / p_long ** n_long) ** (1 / n_short)
""",
    ),
    Right(
        "torch",
        code="""
import torch


def mean_surprise(probs, base):
    if probs.numel() == 0 or probs.min() < 0 or probs.max() > 1:
        raise ValueError("範囲の外")
    logs = torch.log(probs.to(torch.float64))
    return float(-(logs / torch.log(torch.tensor(base, dtype=torch.float64))).mean())


def pooled_perplexity(sentences):
    parts = [torch.tensor(list(s), dtype=torch.float64) for s in sentences]
    p = torch.cat(parts) if parts else torch.zeros(0)
    if len(p) == 0:
        raise ValueError("トークンがない")
    return torch.exp(-torch.log(p).mean())


def break_even(n_short, n_long, p_long, q):
    low, high = 0.0, 5.0
    target = pooled_perplexity([[q] * (n_short + n_long)])
    for _ in range(200):
        x = (low + high) / 2
        if pooled_perplexity([[x] * n_short, [p_long] * n_long]) > target:
            low = x
        else:
            high = x
    return x
""",
    ),
    Right(
        "weights",
        edits=(
            (EVEN, "return q * math.exp(n_long / n_short * math.log(q / p_long))"),
            (
                SURPRISE,
                "return sum(-p.double().log() for p in probs) / len(probs) / math.log(base)",
            ),
            (POOL_ADD, "total += math.log(1 / p) if p > 0 else math.inf"),
        ),
    ),
)


# ── 11-4 ──


def _table(corpus, n):
    return len(_vocabulary(corpus)) ** n, len(set(_grams(corpus, n)))


def _unseen(train, test, n):
    seen, asked = set(_grams(train, n)), _grams(test, n)
    return sum(1 for gram in asked if gram not in seen) / len(asked)


def _missing(weights, n_draws):
    """一種類ずつ、対数で計算する。"""
    total = math.fsum(weights.tolist())
    out = 0.0
    for p in (w / total for w in weights.tolist() if w > 0):
        miss = float(n_draws == 0) if p == 1 else math.exp(n_draws * math.log1p(-p))
        out += p * miss
    return out


def _tables(draw: Draw):
    _, corpus, _ = _train(draw)

    def probe(label, n, text=corpus, **options):
        return Probe("table_size", (text, n), label=label, **options)

    yield probe("unigram", 1)
    yield probe("bigram", 2, repeat=True)
    yield probe("trigram", 3)
    yield probe("5-gram", 5)
    yield probe("一語だけの文がある", 2, ((corpus[1][0],), corpus[1], (corpus[1][0],)))
    if not draw.public:
        _, other, _ = _train(draw)
        yield probe("別のコーパス", 4, other)
        yield probe("文より長い n", 9)
        yield probe("空の文だけ", 2, ((), ()))


def _shares(draw: Draw):
    words, train, _ = _train(draw)
    tests = _text(draw, [*words, STRANGER], 4 if draw.public else draw.integer(5, 9), 5)

    def probe(label, n, test=tests, **options):
        return Probe("unseen_share", (train, test, n), label=label, **options)

    yield probe("bigram", 2, repeat=True)
    for n in (1, 3, 4):
        yield probe(f"{n}-gram", n)
    yield probe("学習データそのもの", 3, train)
    yield probe("短い文だけ", 4, ((train[1][0],), (STRANGER,), (train[1][0], STRANGER)))
    yield probe("同じ文のくり返し", 3, (train[1], (STRANGER, train[1][0]), train[1], train[1]))
    if not draw.public:
        yield probe("空の文がある", 2, ((), *tests[:3]))


def _share_law_probes(draw: Draw):
    words, train, _ = _train(draw)
    test = _text(draw, [*words, STRANGER], 5, 4)
    for n in (1, 2, 3, 4):
        yield Probe("unseen_share", (train, test, n), label=f"{n}-gram の割合")


def _share_law(_probes, outcomes) -> str:
    shares = [float(o.value.data) for o in outcomes]
    if any(b < a - 1e-12 for a, b in itertools.pairwise(shares)):
        return "n を増やしたら、見たことのない割合が減りました"
    return "" if all(0 <= s <= 1 for s in shares) else "割合が 0 から 1 の範囲にありません"


def _missings(draw: Draw):
    def probe(label, weights, n_draws, **options):
        return Probe("missing_mass", (weights, n_draws), label=label, **options)

    n, m, draws = draw.sizes(3)
    weights = _probs(draw, n)
    yield probe("和が 1 でない重み", weights, draws, repeat=True)
    yield probe("一度も引いていない", weights, 0)
    yield probe("一度だけ引いた", _probs(draw, m), 1)
    yield probe("順位に反比例する重み", 1 / np.arange(1.0, 30.0), 50)
    share = weights / weights.sum()
    if draw.public:  # 丸めても和が 1 のままの重み
        share = np.array([0.5, 0.25, 0.125, 0.125])
    yield probe("和が 1 の重み", share, draws + 1)
    yield probe("一種類だけ", np.array([3.0]), draws)
    if not draw.public:
        yield probe("出ない種類がある", np.append(_probs(draw, m), [0.0, 0.0]), draws)
        yield probe("とても多く引いた", 1 / np.arange(1.0, 5000.0) ** 2, 10**7)


TABLE_KINDS = 'vocabulary = {w for s in corpus for w in s} | {"</s>"}'
TABLE_SEEN = "kinds = {gram for s in corpus for gram in windows(s, n)}"
TABLE = "return len(vocabulary) ** n, len(kinds)"
SEEN = "seen = {event for s in train for event in windows(s, n)}"
ASKED = "asked = [event for s in test for event in windows(s, n)]"
SHARE = "return sum(event not in seen for event in asked) / len(asked)"
WEIGHTS = "p = weights.double() / weights.double().sum()"
MISSING = "return (p * (1 - p) ** n_draws).sum().item()"
INNER = "[(tuple(s[i : i + n - 1]), s[i + n - 1]) for s in {} for i in range(len(s) - n + 1)]"

SPARSITY_WRONG = (
    wrong(
        "v-without-eos",
        "語彙に `</s>` が入っていません。`</s>` も予測する語の一種類です。",
        (TABLE_KINDS, "vocabulary = {w for s in corpus for w in s}"),
    ),
    wrong(
        "v-with-bos",
        "語彙に `<s>` が入っています。`<s>` は予測しません。",
        (TABLE_KINDS, TABLE_KINDS.replace('{"</s>"}', '{"<s>", "</s>"}')),
    ),
    wrong(
        "v-times-n",
        "|V| に n を掛けています。位置ごとに |V| 通りあるので、|V| の n 乗です。",
        (TABLE, TABLE.replace("** n", "* n")),
    ),
    wrong(
        "n-power-v",
        "底と指数が逆です。|V| の n 乗です。",
        (TABLE, TABLE.replace("len(vocabulary) ** n", "n ** len(vocabulary)")),
    ),
    wrong(
        "combinations",
        "語の組み合わせの数になっています。n-gram では、順番も、同じ語のくり返しも区別します。",
        (TABLE, "import math\n\n    return math.comb(len(vocabulary), n), len(kinds)"),
    ),
    wrong(
        "tokens",
        "現れた n-gram の延べ数を数えています。重なりを除いた種類を数えます。",
        (TABLE_SEEN, "kinds = [gram for s in corpus for gram in windows(s, n)]"),
    ),
    wrong(
        "no-padding",
        "文の始まりと終わりの n-gram を数えていません。`<s>` と `</s>` を置いた並びで数えます。",
        (TABLE_SEEN, "kinds = set(" + INNER.format("corpus") + ")"),
    ),
    wrong(
        "contexts",
        "文脈の種類だけを数えています。n-gram は、文脈と次の語の組です。",
        (TABLE_SEEN, TABLE_SEEN.replace("{gram for", "{gram[0] for")),
    ),
    wrong(
        "stream",
        "文をつないでから数えています。文の切れ目をまたぐ n-gram が混ざります。",
        (TABLE_SEEN, "kinds = set(windows([w for s in corpus for w in s], n))"),
    ),
    wrong(
        "one-sentence-at-a-time",
        "文ごとの種類を足しています。二つの文に現れた n-gram を二度数えています。",
        (TABLE, "return len(vocabulary) ** n, sum(len(set(windows(s, n))) for s in corpus)"),
    ),
    wrong(
        "table-swapped",
        "返り値の順が逆です。（ありうる種類, 現れた種類）の順にします。",
        (TABLE, "return len(kinds), len(vocabulary) ** n"),
    ),
    wrong(
        "share-of-types",
        "test の n-gram の種類で数えています。二度現れたものは二度数えます。",
        (ASKED, "asked = {event for s in test for event in windows(s, n)}"),
    ),
    wrong(
        "share-seen",
        "見たことのある割合を返しています。",
        (SHARE, SHARE.replace("not in", "in")),
    ),
    wrong(
        "share-backwards",
        "train と test が逆です。test の n-gram が train にあるかを調べます。",
        (SEEN, SEEN.replace("train", "test")),
        (ASKED, ASKED.replace("in test", "in train")),
    ),
    wrong(
        "share-contexts",
        "文脈を見たことがあるかどうかだけを調べています。次の語まで含めた組で調べます。",
        (SEEN, SEEN.replace("{event for", "{event[0] for")),
        (SHARE, SHARE.replace("event not", "event[0] not")),
    ),
    wrong(
        "share-words",
        "次の語を見たことがあるかどうかだけを調べています。文脈まで含めた組で調べます。",
        (SEEN, SEEN.replace("{event for", "{event[1] for")),
        (SHARE, SHARE.replace("event not", "event[1] not")),
    ),
    wrong(
        "share-no-padding",
        "test の文の始まりと終わりの n-gram を数えていません。",
        (ASKED, "asked = " + INNER.format("test")),
        (SHARE, SHARE.replace("len(asked)", "max(len(asked), 1)")),
    ),
    wrong(
        "share-count",
        "割合ではなく、個数を返しています。",
        (SHARE, SHARE.replace(" / len(asked)", "")),
    ),
    wrong(
        "share-of-train",
        "train の種類の数で割っています。test の n-gram の数で割ります。",
        (SHARE, SHARE.replace("len(asked)", "len(seen)")),
    ),
    wrong(
        "share-mean-of-sentences",
        "文ごとの割合を平均しています。短い文が、長い文と同じ重みになります。",
        (
            SHARE,
            "parts = [windows(s, n) for s in test]\n"
            "    return sum(sum(g not in seen for g in x) / len(x) for x in parts) / len(parts)",
        ),
    ),
    wrong(
        "share-always-bigram",
        "引数の n を使わず、いつも bigram で調べています。",
        (SEEN, SEEN.replace("(s, n)", "(s, 2)")),
        (ASKED, ASKED.replace("(s, n)", "(s, 2)")),
    ),
    wrong(
        "missing-kinds",
        "まだ出ていない種類の数の期待値になっています。次にそれが出る確率を掛けます。",
        (MISSING, MISSING.replace("(p * (1 - p) ** n_draws)", "((1 - p) ** n_draws)")),
    ),
    wrong(
        "missing-share-of-kinds",
        "まだ出ていない種類の割合になっています。種類によって、次に出る確率は違います。",
        (MISSING, "return ((1 - p) ** n_draws).mean().item()"),
    ),
    wrong(
        "missing-seen",
        "もう見た種類が出る確率を返しています。",
        (MISSING, "return (p * (1 - (1 - p) ** n_draws)).sum().item()"),
    ),
    wrong(
        "missing-one-more",
        "一回多く引いています。n_draws 回の後の、次の一回を考えます。",
        (MISSING, MISSING.replace("n_draws", "(n_draws + 1)")),
    ),
    wrong(
        "missing-one-less",
        "一回少なく引いています。n_draws 回のどれにも出なかった確率を使います。",
        (MISSING, MISSING.replace("n_draws", "max(n_draws - 1, 0)")),
    ),
    wrong(
        "missing-unnormalised",
        "重みを、和が 1 になるように直していません。",
        (WEIGHTS, "p = weights.double()"),
    ),
    wrong(
        "missing-approximate",
        "(1 − p) の n 乗を指数関数で近似しています。式のまま計算します。",
        (MISSING, "return (p * (-n_draws * p).exp()).sum().item()"),
    ),
    wrong(
        "missing-average-p",
        "どの種類も同じ確率で出ることにしています。種類ごとに計算してから足します。",
        (MISSING, "return (1 - 1 / len(p)) ** n_draws"),
    ),
)

SPARSITY_RIGHT = (
    Right(
        "strings",
        code="""
import math


def grams(sentence, n):
    row = ["<s>"] * (n - 1) + list(sentence) + ["</s>"]
    return [" ".join(row[i:i + n]) for i in range(len(row) - n + 1)]


def table_size(corpus, n):
    words = {"</s>"}
    kinds = set()
    for s in corpus:
        words.update(s)
        kinds.update(grams(s, n))
    return [len(words) ** n, len(kinds)]


def unseen_share(train, test, n):
    known = set()
    for s in train:
        known.update(grams(s, n))
    new = total = 0
    for s in test:
        for g in grams(s, n):
            total += 1
            if g not in known:
                new += 1
    return new / total


def missing_mass(weights, n_draws):
    values = weights.tolist()
    total = sum(values)
    return sum(w / total * (1 - w / total) ** n_draws for w in values)
""",
    ),
    Right(
        "counters",
        code="""
from collections import Counter
import torch


def all_grams(corpus, n):
    out = Counter()
    for s in corpus:
        s = ("<s>",) * (n - 1) + tuple(s) + ("</s>",)
        out.update(zip(*(s[i:] for i in range(n))))
    return out


def table_size(corpus, n):
    v = len({gram[-1] for gram in all_grams(corpus, n)} | {"</s>"})
    possible = 1
    for _ in range(n):
        possible *= v
    return float(possible), float(len(all_grams(corpus, n)))


def unseen_share(train, test, n):
    known, asked = all_grams(train, n), all_grams(test, n)
    hit = sum(c for g, c in asked.items() if g in known)
    return 1 - hit / asked.total()


def missing_mass(weights, n_draws):
    p = weights / weights.sum()
    return torch.dot(p, torch.exp(n_draws * torch.log1p(-p.clamp(max=1 - 1e-15))))
""",
    ),
    Right(
        "complement",
        edits=(
            (SHARE, "return 1 - sum(map(seen.__contains__, asked)) / len(asked)"),
            (MISSING, "return 1 - (p * (1 - (1 - p) ** n_draws)).sum().item()"),
            (TABLE, "return pow(len(vocabulary), n), len(kinds)"),
        ),
    ),
)


# ── 11-5 ──


def _pairs(corpus) -> list[tuple[str, str]]:
    return [(c[0], w) for c, w in _grams(corpus, 2)]


def _continuation(corpus, word):
    types = set(_pairs(corpus))
    return len({v for v, w in types if w == word}) / len(types)


def _discounted(corpus, previous, word, discount, lower):
    row = _followers(corpus, (previous,))
    if not row:
        return float(lower)
    taken = sum(min(discount, row.count(w)) for w in set(row))
    return (max(row.count(word) - discount, 0) + taken * lower) / len(row)


def _overshoot(corpus, word, discount):
    """閉じた式：戻した分 − 引いた分。"""
    pairs = _pairs(corpus)
    types, count = set(pairs), sum(w == word for _, w in pairs)
    left = sum(w == word for _, w in types)
    by_count = discount * (len(types) * count / len(pairs) - left)
    return by_count, 0.0


def _kinds(draw: Draw):
    words, corpus, _ = _train(draw)

    def probe(label, word, text=corpus, **options):
        return Probe("continuation_prob", (text, word), label=label, **options)

    known = [w for w in words if any(w in s for s in corpus)]
    for word in known[:2]:
        yield probe("よく出る語", word, repeat=word == known[0])
    yield probe("あまり出ない語", known[-1])
    yield probe("文の終わり", "</s>")
    yield probe("現れない語", STRANGER)
    twins = (*corpus, *((known[0], known[1]),) * (3 if draw.public else 9))
    yield probe("いつも同じ語の後に来る語", known[1], twins)
    yield probe("文の先頭に来る語", corpus[0][0])
    if not draw.public:
        yield probe("<s> は後に来ない", "<s>")
        yield probe("一語の文だけ", known[0], ((known[0],), (known[1],), (known[0],)))


def _discounts(draw: Draw):
    _, corpus, (busy,) = _train(draw)

    def probe(label, previous, word, discount, lower, text=corpus, **options):
        args = (text, previous, word, discount, lower)
        return Probe("discounted_prob", args, label=label, **options)

    d = 0.75 if draw.public else draw.integer(20, 90) / 100
    for word in sorted(set(_followers(corpus, (busy,)))):
        yield probe("現れた並び", busy, word, d, 0.25, repeat=True)
    yield probe("現れた並びで、別の割引", busy, _followers(corpus, (busy,))[0], 0.4, 0.3)
    yield probe("現れない並び", busy, _unseen_word(corpus, (busy,)), d, 0.2)
    yield probe("文の終わり", corpus[0][-1], "</s>", d, 0.15)
    yield probe("文の先頭", "<s>", corpus[1][0], d, 0.35)
    yield probe("見たことのない文脈", STRANGER, corpus[1][0], d, 0.45)
    yield probe("割引 1", busy, _followers(corpus, (busy,))[0], 1, 0.25)
    yield probe("割引 0", busy, _followers(corpus, (busy,))[0], 0, 0.25)
    if not draw.public:
        _, other, (left,) = _train(draw)
        for word in sorted(set(_followers(other, (left,)))):
            yield probe("別のコーパス", left, word, d, 0.6, other)


def _overshoots(draw: Draw):
    _, corpus, _ = _train(draw)
    given = corrected(draw, "11-5", "windows", "continuation_prob", "discounted_prob")

    def probe(label, word, discount, text=corpus, **options):
        args = (text, word, discount)
        return Probe("overshoot", args, label=label, given=given, **options)

    words = sorted({w for s in corpus for w in s}, key=lambda w: -sum(s.count(w) for s in corpus))
    yield probe("いちばんよく出る語", words[0], 0.75, repeat=True)
    yield probe("あまり出ない語", words[-1], 0.5)
    yield probe("文の終わり", "</s>", 0.6)
    yield probe("割引 1", words[1], 1)
    twins = (*corpus, *((words[0], STRANGER),) * (4 if draw.public else 12))
    yield probe("いつも同じ語の後に来る語", STRANGER, 0.75, twins)
    scattered = (*corpus, *corpus, *((word, STRANGER) for word in words[:3]))
    yield probe("いつも違う語の後に来る語", STRANGER, 0.75, scattered)
    if not draw.public:
        yield probe("現れない語", "竜", 0.75)
        yield probe("小さな割引", words[0], 0.05)


TYPES = "types = {(c[0], w) for s in corpus for c, w in windows(s, 2)}"
CONTINUE = "return sum(w == word for _, w in types) / len(types)"
DIRECT = "direct = max(row[word] - discount, 0) / total"
REST = "rest = discount * len(row) / total"
LOWER = "    if total == 0:\n        return lower\n"
MIXED = "return direct + rest * lower"
LOWERS = "for lower in (actual / len(pairs), continuation_prob(corpus, word)):"
READ = "for left, _ in pairs:"
OVER = "out.append(expected - actual)"
GIVE = "return tuple(out)"

KN_WRONG = (
    wrong(
        "frequency",
        "回数で数えています（unigram の割合です）。同じ並びは、何度現れても一種類です。",
        (TYPES, "types = [(c[0], w) for s in corpus for c, w in windows(s, 2)]"),
    ),
    wrong(
        "right-kinds",
        "word の後に来た語の種類を数えています。数えるのは、word の前に来た語の種類です。",
        (CONTINUE, CONTINUE.replace("w == word for _, w", "v == word for v, _")),
    ),
    wrong(
        "over-vocabulary",
        "語彙の数で割っています。bigram の種類の総数で割ると、全部の語の和が 1 になります。",
        (CONTINUE, CONTINUE.replace("len(types)", "len({w for _, w in types})")),
    ),
    wrong(
        "over-tokens",
        "トークンの総数で割っています。分子が種類なら、分母も種類です。",
        (CONTINUE, CONTINUE.replace("len(types)", "sum(len(s) + 1 for s in corpus)")),
    ),
    wrong(
        "kinds-only",
        "種類の数をそのまま返しています。bigram の種類の総数で割ります。",
        (CONTINUE, CONTINUE.replace(" / len(types)", "")),
    ),
    wrong(
        "kinds-no-bos",
        "前に来た語に `<s>` を数えていません。文の先頭に来たことも、一種類です。",
        (TYPES, TYPES.replace("windows(s, 2)}", 'windows(s, 2) if c != ("<s>",)}')),
    ),
    wrong(
        "kinds-no-eos",
        "後に来る語に `</s>` を数えていません。",
        (TYPES, TYPES.replace("windows(s, 2)}", 'windows(s, 2) if w != "</s>"}')),
    ),
    wrong(
        "no-followers",
        "残りに N(v) が掛かっていません。v の次に来た語の種類ごとに D を引くので、"
        "戻す分も種類の数だけあります。",
        (REST, "rest = discount / total"),
    ),
    wrong(
        "left-kinds",
        "N(v) に、v の前に来た語の種類を使っています。v の次に来た語の種類です。",
        (REST, REST.replace("len(row)", "len({c for c, w in events if w == previous})")),
    ),
    wrong(
        "no-discount",
        "見た並びから D を引かずに、残りを足しています。確率の和が 1 を超えます。",
        (DIRECT, "direct = row[word] / total"),
    ),
    wrong(
        "no-rest",
        "引いた D を、短い文脈に戻していません。確率の和が 1 より小さくなります。",
        (MIXED, "return direct"),
    ),
    wrong(
        "negative",
        "見ていない並びからも D を引いています。回数から D を引いて負になるときは 0 です。",
        (DIRECT, "direct = (row[word] - discount) / total"),
    ),
    wrong(
        "unseen-zero",
        "見たことのない文脈で 0 を返しています。短い文脈の確率をそのまま使います。",
        (LOWER, "    if total == 0:\n        return 0.0\n"),
    ),
    wrong(
        "unseen-crash",
        "見たことのない文脈で、0 で割っています。短い文脈の確率をそのまま使います。",
        (LOWER, ""),
    ),
    wrong(
        "proportional",
        "回数から同じ割合で引いています（線形補間です）。絶対割引は、どの種類からも同じ数を引きます。",
        (DIRECT, "direct = row[word] * (1 - discount) / total"),
        (REST, "rest = discount"),
    ),
    wrong(
        "rest-of-this-word",
        "残りを 1 −（この語の直接の分）にしています。残りは、文脈ごとに決まる値です。",
        (REST, "rest = 1 - direct"),
    ),
    wrong(
        "over-kinds",
        "回数の合計ではなく、次に来た語の種類の数で割っています。",
        ("total = row.total()", "total = len(row)"),
    ),
    wrong(
        "backoff",
        "見た並びに、短い文脈の分を足していません。この式では、どの語にも足します。",
        (MIXED, "return direct if row[word] else rest * lower"),
    ),
    wrong(
        "fixed-discount",
        "引数の discount を使わず、いつも `0.75` を引いています。",
        (LOWER, LOWER + "    discount = 0.75\n"),
    ),
    wrong(
        "each-context-once",
        "文脈を一種類につき一度しか数えていません。予測する位置のすべてで足します。",
        (READ, "for left in {v for v, _ in pairs}:"),
    ),
    wrong(
        "over-swapped",
        "返り値の順が逆です。unigram、種類の順に返します。",
        (GIVE, "return tuple(out[::-1])"),
    ),
    wrong(
        "over-expected",
        "実際の回数を引いていません。",
        (OVER, "out.append(expected)"),
    ),
    wrong(
        "over-sign",
        "符号が逆です。（予測した回数）−（実際の回数）です。",
        (OVER, "out.append(actual - expected)"),
    ),
    wrong(
        "over-mean",
        "予測する位置の数で割っています。回数のままで比べます。",
        (OVER, "out.append((expected - actual) / len(pairs))"),
    ),
    wrong(
        "over-no-bos",
        "文の先頭の予測を足していません。`<s>` の後も、予測する位置です。",
        (READ, 'for left in (v for v, _ in pairs if v != "<s>"):'),
    ),
    wrong(
        "over-same",
        "二つとも unigram で配っています。二つ目は continuation_prob で配ります。",
        (LOWERS, "for lower in [actual / len(pairs)] * 2:"),
    ),
    wrong(
        "over-unigram-words",
        "unigram の分母に `</s>` を数えていません。`</s>` も予測したトークンです。",
        (LOWERS, LOWERS.replace("len(pairs)", "(len(pairs) - len(corpus))")),
    ),
    wrong(
        "over-clipped",
        "負のずれを 0 にしています。予測しすぎと予測不足の両方があります。",
        (OVER, "out.append(max(expected - actual, 0.0))"),
    ),
)

KN_RIGHT = (
    Right(
        "lists",
        code="""
def bigrams(corpus):
    out = []
    for s in corpus:
        left = "<s>"
        for w in list(s) + ["</s>"]:
            out.append((left, w))
            left = w
    return out


def continuation_prob(corpus, word):
    kinds = sorted(set(bigrams(corpus)))
    before = [a for a, b in kinds if b == word]
    return len(before) / len(kinds)


def discounted_prob(corpus, previous, word, discount, lower):
    after = [b for a, b in bigrams(corpus) if a == previous]
    if len(after) == 0:
        return lower
    n = len(after)
    count = after.count(word)
    p = discount * len(set(after)) / n * lower
    if count > 0:
        p += (count - discount) / n
    return p


def overshoot(corpus, word, discount):
    everything = bigrams(corpus)
    count = [b for _, b in everything].count(word)
    uni = count / len(everything)
    kn = continuation_prob(corpus, word)
    a = sum(discounted_prob(corpus, left, word, discount, uni) for left, _ in everything)
    b = sum(discounted_prob(corpus, left, word, discount, kn) for left, _ in everything)
    return [a - count, b - count]
""",
    ),
    Right(
        "matrix",
        code="""
import torch


def matrix(corpus):
    words = sorted({w for s in corpus for w in s} | {"<s>", "</s>"})
    m = torch.zeros(len(words), len(words), dtype=torch.float64)
    for s in corpus:
        row = ["<s>", *s, "</s>"]
        for a, b in zip(row, row[1:]):
            m[words.index(a), words.index(b)] += 1
    return words, m


def continuation_prob(corpus, word):
    words, m = matrix(corpus)
    if word not in words:
        return 0.0
    return ((m[:, words.index(word)] > 0).sum() / (m > 0).sum().double()).item()


def discounted_prob(corpus, previous, word, discount, lower):
    words, m = matrix(corpus)
    if previous not in words or m[words.index(previous)].sum() == 0:
        return lower
    row = m[words.index(previous)]
    taken = torch.minimum(row, torch.tensor(float(discount), dtype=torch.float64)).sum()
    kept = (row - discount).clamp(min=0)[words.index(word)] if word in words else 0.0
    return float((kept + taken * lower) / row.sum())


def overshoot(corpus, word, discount):
    words, m = matrix(corpus)
    if word not in words:
        return 0.0, 0.0
    column = m[:, words.index(word)]
    count = column.sum()
    out = []
    for lower in (float(count / m.sum()), continuation_prob(corpus, word)):
        total = 0.0
        for i, w in enumerate(words):
            if m[i].sum() > 0:
                total += float(m[i].sum()) * discounted_prob(corpus, w, word, discount, lower)
        out.append(total - float(count))
    return tuple(out)
""",
    ),
    Right(
        "per-context",
        edits=(
            (
                "        expected = 0.0\n        for left, _ in pairs:\n"
                "            expected += discounted_prob(corpus, left, word, discount, lower)\n",
                "        lefts = Counter(v for v, _ in pairs)\n"
                "        expected = sum(\n"
                "            n * discounted_prob(corpus, v, word, discount, lower)\n"
                "            for v, n in lefts.items()\n        )\n",
            ),
            (REST, "rest = 1 - sum(max(n - discount, 0) for n in row.values()) / total"),
            (CONTINUE, "return [w for _, w in types].count(word) / len(types)"),
        ),
    ),
)


# ── 11-6 ──


def _evidence(train, data):
    words = [w for _, w in _pairs(train)]
    short = [words.count(w) / len(words) for _, w in _pairs(data)]
    long = []
    for (left, word), unigram in zip(_pairs(data), short, strict=True):
        seen = _followers(train, (left,))
        long.append(seen.count(word) / len(seen) if seen else unigram)
    return long, short


def _em(long, short, lam):
    odds = [lam * a / (lam * a + (1 - lam) * b) for a, b in zip(long, short, strict=True)]
    return float(sum(odds) / len(odds))


def _best(long, short) -> float:
    """対数尤度の傾きが 0 になる割合。傾きは減る一方なので、二分法で求まる。"""
    a, b = np.array(long), np.array(short)
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        up = ((a - b) / (middle * a + (1 - middle) * b)).sum() > 0
        low, high = (middle, high) if up else (low, middle)
    return (low + high) / 2


def _tuned(train, held_out, test):
    lam = _best(*_evidence(train, held_out))
    a, b = map(np.array, _evidence(train, test))
    return lam, float(-np.log(lam * a + (1 - lam) * b).mean())


def _evidences(draw: Draw):
    words, train, _ = _train(draw)
    known = [w for w in words if any(w in s for s in train)]

    def probe(label, data, text=train, **options):
        return Probe("evidence", (text, data), label=label, **options)

    data = _text(draw, known, 3 if draw.public else 5, 4)
    yield probe("ほかの文", data, repeat=True)
    yield probe("学習データそのもの", train)
    yield probe("一語だけの文", ((known[0],),))
    yield probe("見たことのない文脈がある", ((STRANGER, known[0]), (known[1],), (STRANGER,)))
    yield probe("文の終わりで続きがある", ((*train[1], known[0]), train[0]))


def _em_steps(draw: Draw):
    def probe(label, n, lam, scale=1.0, **options):
        long, short = _probs(draw, n), _probs(draw, n) * scale
        if n > 2:
            long[draw.integer(0, n)] = 0.0
        return Probe("em_step", (long, short, lam), label=label, **options)

    n, m, k = draw.sizes(3)
    lam = 0.3 if draw.public else draw.integer(20, 45) / 100
    yield probe("確率 0 の並びがある", n, lam, repeat=True)
    yield probe("大きな割合", m, 0.9)
    yield probe("小さな割合", k, 0.1)
    yield probe("トークンが一つ", 1, lam)
    yield probe("短い方がとても小さい", n, lam, 0.01)


def _splits(draw: Draw):
    """学習データと、選ぶデータと、測るデータ。選んだ割合は 0 と 1 から離れ、ほかと区別できる。"""
    while True:
        words, train, _ = _train(draw)
        known = [w for w in words if any(w in s for s in train)]
        held = _text(draw, known, 3, 4) + _seen_sentences(draw, train, 2)
        test = _seen_sentences(draw, train, 3)
        test += () if draw.public else _text(draw, known, 4, 4)
        long, short = map(np.array, _evidence(train, held))
        lam, other = _best(long, short), _best(*_evidence(train, test))
        more = _best(*_evidence(train + held, held))
        slow = 0.5
        for _ in range(100):
            slow = _em(long, short, slow)
        apart = min(abs(lam - x) for x in (0.5, 1 - lam, other, more, _em(long, short, 0.5)))
        if 0.15 < lam < 0.85 and abs(slow - lam) < 1e-3 and apart > 0.03 and other < 0.97:
            return train, held, test


def _tunings(draw: Draw):
    given = corrected(draw, "11-6", "windows", "evidence", "em_step")
    for label in ("三つのデータ", "別の三つのデータ") + (() if draw.public else ("もう一組",)):
        yield Probe(
            "tuned_lambda",
            _splits(draw),
            label=label,
            repeat=label == "三つのデータ",
            tolerance=(0.0, 5e-3),
            given=given,
        )


UNIGRAM = "unigram = words[word] / words.total()"
LONG = "long.append(pairs[left, word] / lefts[left] if seen else unigram)"
COUNTED = "pairs = Counter(pair for s in train for pair in windows(s, 2))"
GIVEN_BACK = "return long, short"
POSTERIOR = "return (from_long / (from_long + from_short)).mean().item()"
PRIOR = "from_long, from_short = lam * long, (1 - lam) * short"
CHOICE = "long, short = arrays(held_out)"
REPORTED = "long, short = arrays(test)"
STEPS = "for _ in range(300):"
BLEND = "mixed = lam * long + (1 - lam) * short"
TUNED = "return lam, -mixed.log().mean().item()"
ARRAYS = "return torch.tensor(evidence(train, data), dtype=torch.float64)"

MIX_WRONG = (
    wrong(
        "evidence-swapped",
        "返り値の順が逆です。（bigram, unigram）の順に返します。",
        (GIVEN_BACK, "return short, long"),
    ),
    wrong(
        "unseen-zero",
        "見たことのない文脈の bigram を 0 にしています。短い文脈（unigram）の確率を入れます。",
        (LONG, LONG.replace("else unigram", "else 0.0")),
    ),
    wrong(
        "unseen-crash",
        "見たことのない文脈で、0 で割っています。unigram の確率を入れます。",
        (LONG, "long.append(pairs[left, word] / lefts[left])"),
    ),
    wrong(
        "joint",
        "bigram の回数を、文脈の回数ではなく、予測の総数で割っています。",
        (LONG, LONG.replace("/ lefts[left]", "/ words.total()")),
    ),
    wrong(
        "inverse-conditional",
        "bigram の回数を、次の語の回数で割っています。文脈の回数で割ります。",
        (LONG, LONG.replace("/ lefts[left]", "/ max(words[word], 1)")),
    ),
    wrong(
        "uniform",
        "短い方が一様分布になっています。unigram は、語ごとの頻度の割合です。",
        (UNIGRAM, "unigram = 1 / len(words)"),
    ),
    wrong(
        "unigram-no-eos",
        "unigram の分母に `</s>` を数えていません。`</s>` も予測したトークンです。",
        (UNIGRAM, UNIGRAM.replace("words.total()", '(words.total() - words["</s>"])')),
    ),
    wrong(
        "unigram-with-bos",
        "unigram の分母に `<s>` を数えています。`<s>` は予測していません。",
        (UNIGRAM, UNIGRAM.replace("words.total()", "(words.total() + len(train))")),
    ),
    wrong(
        "counts-data",
        "data の文も数えて確率を作っています。確率は train だけから作ります。",
        (COUNTED, COUNTED.replace("in train", "in [*train, *data]")),
    ),
    wrong(
        "add-one",
        "bigram に加算平滑化をしています。ここで混ぜるのは最尤推定です。",
        (
            LONG,
            LONG.replace(
                "pairs[left, word] / lefts[left]",
                "(pairs[left, word] + 1) / (lefts[left] + len(words))",
            ),
        ),
    ),
    wrong(
        "em-sum",
        "事後確率を足しただけで、トークンの数で割っていません。",
        (POSTERIOR, POSTERIOR.replace("mean", "sum")),
    ),
    wrong(
        "em-other-side",
        "短い方から来た確率を平均しています。λ は、長い方に置く割合です。",
        (POSTERIOR, POSTERIOR.replace("(from_long / ", "(from_short / ")),
    ),
    wrong(
        "em-no-prior",
        "事後確率に、いまの λ が入っていません。λ と 1 − λ を掛けてから比べます。",
        (PRIOR, "from_long, from_short = long, short"),
    ),
    wrong(
        "em-ratio-of-sums",
        "足してから割っています。トークンごとに割ってから平均します。",
        (POSTERIOR, "return (from_long.sum() / (from_long + from_short).sum()).item()"),
    ),
    wrong(
        "em-hard",
        "大きい方から来たと決めつけて、個数を数えています。確率のまま平均します。",
        (POSTERIOR, "return (from_long > from_short).double().mean().item()"),
    ),
    wrong(
        "em-not-normalised",
        "混ぜた確率で割っていません。長い方から来た「割合」を求めます。",
        (POSTERIOR, "return from_long.mean().item()"),
    ),
    wrong(
        "em-half-way",
        "新しい λ と古い λ の中間を返しています。",
        (POSTERIOR, "return 0.5 * (lam + " + POSTERIOR.removeprefix("return ") + ")"),
    ),
    wrong(
        "em-in-place",
        "渡された Tensor をその場で書きかえています。",
        (PRIOR, "from_long, from_short = long.mul_(lam), (1 - lam) * short"),
    ),
    wrong(
        "em-log",
        "対数を取った値で比べています。確率のまま、割合を求めます。",
        (
            POSTERIOR,
            "return (from_long.log1p() / (from_long.log1p() + from_short.log1p())).mean().item()",
        ),
    ),
    wrong(
        "tuned-on-train",
        "学習データで λ を選んでいます。学習データでは、いつも 1 が選ばれます。"
        "取り分けておいたデータで選びます。",
        (CHOICE, "long, short = arrays(train)"),
    ),
    wrong(
        "tuned-on-test",
        "テストデータで λ を選んでいます。成績を測るデータを、選ぶのに使ってはいけません。",
        (REPORTED, "pass"),
        (CHOICE, "long, short = arrays(test)"),
    ),
    wrong(
        "reported-on-held-out",
        "λ を選んだデータで成績を測っています。成績は test で測ります。",
        (REPORTED, "pass"),
    ),
    wrong(
        "one-step",
        "EM 法を一回しか更新していません。値が動かなくなるまで続けます。",
        (STEPS, "for _ in range(1):"),
    ),
    wrong(
        "never-tuned",
        "λ を選ばず、`0.5` のままです。",
        (STEPS, "for _ in range(0):"),
    ),
    wrong(
        "counts-held-out",
        "held_out も数えて確率を作っています。見たことのある並びばかりになり、"
        "λ が大きくなりすぎます。",
        (ARRAYS, ARRAYS.replace("(train, data)", "([*train, *held_out], data)")),
    ),
    wrong(
        "mixed-backwards",
        "テストデータで混ぜるときに、λ と 1 − λ が逆です。",
        (BLEND, "mixed = (1 - lam) * long + lam * short"),
    ),
    wrong(
        "tuned-perplexity",
        "平均の驚きではなく、パープレキシティを返しています。",
        (TUNED, "return lam, (-mixed.log().mean()).exp().item()"),
    ),
    wrong(
        "tuned-bits",
        "驚きの単位がビットです。ナット（自然対数）にします。",
        (TUNED, TUNED.replace("log()", "log2()")),
    ),
    wrong(
        "tuned-total",
        "驚きの合計を返しています。予測したトークン一つあたりの平均にします。",
        (TUNED, TUNED.replace("mean()", "sum()")),
    ),
    wrong(
        "log-of-mean",
        "混ぜた確率を平均してから対数を取っています。一つずつ対数を取ります。",
        (TUNED, TUNED.replace("log().mean()", "mean().log()")),
    ),
    wrong(
        "tuned-swapped",
        "返り値の順が逆です。（λ, 平均の驚き）の順に返します。",
        (TUNED, "return -mixed.log().mean().item(), lam"),
    ),
)

MIX_RIGHT = (
    Right(
        "grid",
        code="""
import math
import torch


def pairs_of(corpus):
    out = []
    for s in corpus:
        row = ["<s>"] + list(s) + ["</s>"]
        out += [(row[i], row[i + 1]) for i in range(len(row) - 1)]
    return out


def evidence(train, data):
    known = pairs_of(train)
    lefts = [a for a, _ in known]
    words = [b for _, b in known]
    long, short = [], []
    for a, b in pairs_of(data):
        u = words.count(b) / len(words)
        short.append(u)
        long.append(known.count((a, b)) / lefts.count(a) if a in lefts else u)
    return tuple(long), tuple(short)


def em_step(long, short, lam):
    total = 0.0
    for a, b in zip(long.tolist(), short.tolist()):
        total += lam * a / (lam * a + (1 - lam) * b)
    return total / len(long)


def nats(pair, lam):
    return -sum(math.log(lam * a + (1 - lam) * b) for a, b in zip(*pair)) / len(pair[0])


def tuned_lambda(train, held_out, test):
    held = evidence(train, held_out)
    lam = min((i / 1000 for i in range(1, 1000)), key=lambda x: nats(held, x))
    return lam, nats(evidence(train, test), lam)
""",
    ),
    Right(
        "ternary",
        code="""
from collections import Counter, defaultdict
import torch


def evidence(train, data):
    rows, unigram = defaultdict(Counter), Counter()
    for s in train:
        for a, b in zip(("<s>", *s), (*s, "</s>")):
            rows[a][b] += 1
            unigram[b] += 1
    out = []
    for s in data:
        for a, b in zip(("<s>", *s), (*s, "</s>")):
            u = unigram[b] / sum(unigram.values())
            out.append((rows[a][b] / sum(rows[a].values()) if rows.get(a) else u, u))
    return [x for x, _ in out], [x for _, x in out]


def em_step(long, short, lam):
    odds = lam / (1 - lam) * long / short
    return (odds / (1 + odds)).mean()


def tuned_lambda(train, held_out, test):
    def loss(data, lam):
        long, short = map(torch.tensor, evidence(train, data))
        return -torch.log(lam * long.double() + (1 - lam) * short.double()).mean().item()

    low, high = 0.0, 1.0 - 1e-9
    for _ in range(60):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        if loss(held_out, a) < loss(held_out, b):
            high = b
        else:
            low = a
    return torch.tensor(low), torch.tensor(loss(test, low))
""",
    ),
    Right(
        "sigmoid",
        edits=(
            (
                POSTERIOR,
                "return torch.sigmoid(from_long.log() - from_short.log()).mean().item()",
            ),
            (BLEND, "mixed = torch.lerp(short, long, lam)"),
            (STEPS, "lam = 0.3\n    for _ in range(400):"),
        ),
    ),
)


# ── 11-7 ──


def _parameters(vocab_size, n, m, h, direct):
    """形を並べて数える。"""
    shapes = [(vocab_size, m), (h, (n - 1) * m), (h,), (vocab_size, h), (vocab_size,)]
    shapes += [(vocab_size, (n - 1) * m)] if direct else []
    return float(sum(math.prod(shape) for shape in shapes))


def _scores(C, H, d, U, b, context, W=None):
    """文脈を一つずつ。行列を、位置ごとの塊に分けて掛ける。"""
    m, rows = C.shape[1], []
    for ids in context.tolist():
        inside, direct = d, 0
        for i, word in enumerate(ids):
            block = slice(i * m, (i + 1) * m)
            inside = inside + H[:, block] @ C[word]
            direct = direct + (0 if W is None else W[:, block] @ C[word])
        rows.append(b + U @ torch.tanh(inside) + direct)
    return torch.stack(rows)


def _log_softmax(y):
    return y - y.max() - np.log(np.exp(y - y.max()).sum())


def _transfer(C, H, d, U, b, first, target, second, lr):
    """逆伝播を手で書く：スコアの勾配は「予測 − 正解」。"""
    C, H, d, U, b = (x.double().numpy().copy() for x in (C, H, d, U, b))
    first, second, m = first.tolist(), second.tolist(), C.shape[1]

    def forward(ids):
        x = np.concatenate([C[i] for i in ids])
        a = np.tanh(d + H @ x)
        return x, a, b + U @ a

    before = _log_softmax(forward(second)[2])[target]
    x, a, y = forward(first)
    at_y = np.exp(_log_softmax(y))
    at_y[target] -= 1
    at_inside = (U.T @ at_y) * (1 - a**2)
    at_x = H.T @ at_inside
    U -= lr * np.outer(at_y, a)
    b -= lr * at_y
    H -= lr * np.outer(at_inside, x)
    d -= lr * at_inside
    for i, word in enumerate(first):
        C[word] -= lr * at_x[i * m : (i + 1) * m]
    return float(_log_softmax(forward(second)[2])[target] - before)


def _sizes(draw: Draw) -> tuple[int, int, int, int, int]:
    """(|V|, n, m, h, B)。すべて違う。"""
    if draw.public:
        return 5, 3, 2, 4, 6
    vocab, m, h, batch = draw.sizes(4)
    return vocab, int(draw.rng.choice([x for x in (4, 6) if x not in (m, h)])), m, h, batch


def _net(draw: Draw, v: int, n: int, m: int, h: int, dtype: str = "float64") -> tuple:
    shapes = ((v, m), (h, (n - 1) * m), (h,), (v, h), (v,))
    return tuple(draw.normal(*shape, dtype=dtype, scale=0.7) for shape in shapes)


def _ids(draw: Draw, vocab: int, *shape: int) -> np.ndarray:
    """同じ語ばかりでない文脈。"""
    while True:
        ids = draw.rng.integers(0, vocab, shape)
        if shape[-1] == 1 or len({*ids.reshape(-1).tolist()}) > 1:
            return ids


def _counts(draw: Draw):
    def probe(label, *args):
        return Probe("parameter_count", args, label=label)

    v, n, m, h, _ = _sizes(draw)
    yield probe("直結あり", v, n, m, h, True)
    yield probe("直結なし", v, n, m, h, False)
    yield probe("n = 2", 1000 + v, 2, m, h, True)
    yield probe("大きな語彙", 20_000, 5, 30, 100, False)
    if not draw.public:
        yield probe("大きな語彙、直結あり", 10_000, 5, 60, 50, True)


def _contexts(draw: Draw):
    def probe(label, batch=0, n=0, dtype="float64", direct=False, **options):
        v, window, m, h, b = _sizes(draw)
        window = n or window
        extra = {"context": _ids(draw, v, batch or b, window - 1)}
        if direct:
            extra["W"] = draw.normal(v, (window - 1) * m, dtype=dtype, scale=0.5)
        return Probe(
            "nplm_scores", _net(draw, v, window, m, h, dtype), extra, label=label, **options
        )

    yield probe("直結なし", repeat=True)
    yield probe("直結あり", direct=True)
    yield probe("float32", dtype="float32")
    yield probe("文脈が一つ", batch=1)
    yield probe("n = 2（一語だけを見る）", n=2, direct=True)
    if not draw.public:
        yield probe("float32、直結あり", dtype="float32", direct=True)


def _score_slopes(draw: Draw):
    v, n, m, h, batch = _sizes(draw)
    yield Probe(
        "nplm_scores",
        _net(draw, v, n, m, h),
        {"context": _ids(draw, v, batch, n - 1)},
        label="スコアを五つの行列で微分する",
        cotangent=draw.normal(batch, v),
    )


def _transfers(draw: Draw):
    given = corrected(draw, "11-7", "nplm_scores")

    def probe(label, lr, same=False, repeats=False, dtype="float64", **options):
        v, n, m, h, _ = _sizes(draw)
        first = _ids(draw, v, n - 1)
        second = first if same else _ids(draw, v, n - 1)
        if repeats:
            first = np.full(n - 1, first[0])
        target = draw.integer(0, v)
        args = (*_net(draw, v, n, m, h, dtype), first, target, second, lr)
        return Probe("transfer", args, label=label, given=given, **options)

    yield probe("違う文脈", 0.25, repeat=True)
    yield probe("同じ文脈", 0.1, same=True)
    yield probe("大きな学習率", 1.5)
    yield probe("同じ語をくり返す文脈", 0.2, repeats=True)
    yield probe("学習率 0", 0.0)
    if not draw.public:
        yield probe("float32", 0.3, dtype="float32", tolerance=(1e-3, 1e-5))


WIDTH = "width = (n - 1) * m"
PLAIN = "tables = vocab_size * m + h * width + vocab_size * h"
BIASES = "biases = h + vocab_size"
COUNT = "return tables + biases + (vocab_size * width if direct else 0)"
SIDE = "x = C[context].flatten(1)"
HIDDEN = "y = b + torch.tanh(d + x @ H.T) @ U.T"
FINAL = "return y if W is None else y + x @ W.T"
LOG_PROB = "return scores.log_softmax(dim=-1)[0, target]"
LOSS = "loss = -log_prob(first, before)"
AFTER = "after = [p - lr * g for p, g in zip(before, slopes)]"
GAIN = "return (log_prob(second, after) - log_prob(second, before)).item()"

NEURAL_WRONG = (
    wrong(
        "window-of-n",
        "横に並べる埋め込みを n 語分と数えています。見るのは直前の n−1 語です。",
        (WIDTH, "width = n * m"),
    ),
    wrong(
        "no-biases",
        "バイアス d と b を数えていません。",
        (COUNT, COUNT.replace(" + biases", "")),
    ),
    wrong(
        "one-bias",
        "出力のバイアス b（|V| 個）を数えていません。",
        (BIASES, "biases = h"),
    ),
    wrong(
        "no-embedding",
        "埋め込みの表 C を数えていません。C も学習で決まるパラメータです。",
        (PLAIN, PLAIN.replace("vocab_size * m + ", "")),
    ),
    wrong(
        "table-per-position",
        "埋め込みの表を位置ごとに数えています。どの位置でも同じ表を使います。",
        (PLAIN, PLAIN.replace("vocab_size * m +", "vocab_size * width +")),
    ),
    wrong(
        "summed-hidden",
        "隠れ層の入力を m と数えています。埋め込みは足さずに横に並べるので、(n−1)m です。",
        (PLAIN, PLAIN.replace("h * width", "h * m")),
    ),
    wrong(
        "direct-always",
        "direct が偽でも、直結 W を数えています。",
        (COUNT, COUNT.replace(" if direct else 0", "")),
    ),
    wrong(
        "direct-never",
        "直結 W を数えていません。",
        (COUNT, "return tables + biases"),
    ),
    wrong(
        "direct-bias",
        "直結 W にもバイアスを数えています。W にバイアスはありません。",
        (COUNT, COUNT.replace("vocab_size * width if", "vocab_size * (width + 1) if")),
    ),
    wrong(
        "ngram-table",
        "n-gram の表のマスの数（|V| の n 乗）を返しています。",
        (COUNT, "return vocab_size**n"),
    ),
    wrong(
        "bag-of-words",
        "埋め込みを平均しています。これでは語順が消えます（CBOW の考え方です）。横に並べます。",
        (SIDE, "x = C[context].mean(1).repeat(1, context.shape[1])"),
    ),
    wrong(
        "reversed",
        "文脈の語を、逆の順に並べています。",
        (SIDE, "x = C[context.flip(1)].flatten(1)"),
    ),
    wrong(
        "interleaved",
        "埋め込みの成分ごとに並べています。語ごとに、m 個ずつ並べます。",
        (SIDE, "x = C[context].mT.flatten(1)"),
    ),
    wrong(
        "sigmoid",
        "tanh ではなくシグモイドを使っています。",
        (HIDDEN, HIDDEN.replace("tanh", "sigmoid")),
    ),
    wrong(
        "linear",
        "tanh がありません。隠れ層が、ただの行列の積になっています。",
        (HIDDEN, HIDDEN.replace("torch.tanh", "")),
    ),
    wrong(
        "hidden-bias-late",
        "バイアス d を tanh の外で足しています。tanh に入れる前に足します。",
        (HIDDEN, "y = b + (d + torch.tanh(x @ H.T)) @ U.T"),
    ),
    wrong(
        "scores-no-output-bias",
        "出力のバイアス b を足していません。",
        (HIDDEN, HIDDEN.replace("b + ", "")),
    ),
    wrong(
        "scores-softmax",
        "softmax を取っています。返すのは、その前のスコアです。",
        (HIDDEN, HIDDEN.replace("y = ", "y = (") + ").softmax(-1)"),
    ),
    wrong(
        "scores-no-direct",
        "W が渡されているのに、直結を足していません。",
        (FINAL, "return y"),
    ),
    wrong(
        "scores-float32",
        "float32 に変えて計算しています。dtype は C のままにします。",
        (SIDE, "C, H, d, U, b = (p.float() for p in (C, H, d, U, b))\n    " + SIDE),
        (FINAL, "return y if W is None else y + x @ W.float().T"),
    ),
    wrong(
        "scores-detached",
        "埋め込みから勾配が切れています。C も学習で動かします。",
        (SIDE, "x = (C - C.detach() * 0).detach()[context].flatten(1) + 0 * C.sum()"),
    ),
    wrong(
        "ascent",
        "勾配の向きに動かしています。損失を小さくするには、勾配と逆の向きに動かします。",
        (AFTER, AFTER.replace("p - lr", "p + lr")),
    ),
    wrong(
        "frozen-embedding",
        "埋め込み C を動かしていません。C も学習で動くパラメータです。",
        (AFTER, AFTER + "\n    after[0] = before[0]"),
    ),
    wrong(
        "output-only",
        "出力の U と b だけを動かしています。五つのすべてを動かします。",
        (AFTER, AFTER + "\n    after[:3] = before[:3]"),
    ),
    wrong(
        "learns-second",
        "second の例で学習しています。学習するのは first の例です。",
        (LOSS, LOSS.replace("first", "second")),
    ),
    wrong(
        "measures-first",
        "first の確率の増え方を返しています。測るのは second です。",
        (GAIN, GAIN.replace("second", "first")),
    ),
    wrong(
        "gain-in-probability",
        "対数確率ではなく、確率の差を返しています。",
        (
            GAIN,
            GAIN.replace("second, after)", "second, after).exp()").replace(
                "second, before)", "second, before).exp()"
            ),
        ),
    ),
    wrong(
        "after-only",
        "更新した後の対数確率だけを返しています。前の値を引きます。",
        (GAIN, "return log_prob(second, after).item()"),
    ),
    wrong(
        "gain-sign",
        "増え方の符号が逆です。（後）−（前）です。",
        (GAIN, "return (log_prob(second, before) - log_prob(second, after)).item()"),
    ),
    wrong(
        "gain-of-scores",
        "スコアの差を返しています。softmax を取った確率の対数で比べます。",
        (
            GAIN,
            "gap = [nplm_scores(*w, second[None])[0, target] for w in (after, before)]\n"
            "    return (gap[0] - gap[1]).item()",
        ),
    ),
    wrong(
        "rate-ignored",
        "lr を使わず、勾配をそのまま引いています。",
        (AFTER, AFTER.replace("lr * g", "g")),
    ),
    wrong(
        "updates-caller",
        "渡された Tensor をその場で書きかえています。写しを作ってから動かします。",
        (AFTER, "after = [p.sub_(lr * g) for p, g in zip((C, H, d, U, b), slopes)]"),
    ),
    wrong(
        "one-after-another",
        "一つ動かすごとに勾配を計算し直しています。五つを同時に動かします。",
        (
            AFTER,
            "after = list(before)\n"
            "    for i in range(5):\n"
            "        slope = torch.autograd.grad(-log_prob(first, after), after[i])[0]\n"
            "        after[i] = (after[i] - lr * slope).detach().requires_grad_()",
        ),
    ),
)

NEURAL_RIGHT = (
    Right(
        "modules",
        code="""
import torch
import torch.nn.functional as F


def parameter_count(vocab_size, n, m, h, direct):
    total = vocab_size * (1 + m + h) + h * (1 + (n - 1) * m)
    if direct:
        total += vocab_size * (n - 1) * m
    return total


def nplm_scores(C, H, d, U, b, context, W=None):
    x = F.embedding(context, C).reshape(len(context), -1)
    y = F.linear(torch.tanh(F.linear(x, H, d)), U, b)
    if W is not None:
        y = y + F.linear(x, W)
    return y


def transfer(C, H, d, U, b, first, target, second, lr):
    params = [torch.nn.Parameter(p.clone()) for p in (C, H, d, U, b)]
    answer = torch.tensor([target])
    with torch.no_grad():
        before = F.cross_entropy(nplm_scores(*params, second.view(1, -1)), answer)
    optimizer = torch.optim.SGD(params, lr=lr)
    optimizer.zero_grad()
    F.cross_entropy(nplm_scores(*params, first.view(1, -1)), answer).backward()
    optimizer.step()
    with torch.no_grad():
        after = F.cross_entropy(nplm_scores(*params, second.view(1, -1)), answer)
    return (before - after).item()
""",
    ),
    Right(
        "by-hand",
        code="""
import torch


def parameter_count(vocab_size, n, m, h, direct):
    sizes = {"C": vocab_size * m, "H": h * (n - 1) * m, "d": h, "U": vocab_size * h}
    sizes["b"] = vocab_size
    if direct:
        sizes["W"] = vocab_size * m * (n - 1)
    return sum(sizes.values())


def nplm_scores(C, H, d, U, b, context, W=None):
    x = torch.cat([C[context[:, i]] for i in range(context.shape[1])], dim=1)
    a = torch.tanh(torch.einsum("hx,bx->bh", H, x) + d)
    y = torch.einsum("vh,bh->bv", U, a) + b
    return y + (0 if W is None else torch.einsum("vx,bx->bv", W, x))


def transfer(C, H, d, U, b, first, target, second, lr):
    def forward(C, H, d, U, b, ids):
        x = C[ids].reshape(-1)
        a = torch.tanh(H @ x + d)
        return x, a, torch.log_softmax(U @ a + b, 0)

    x, a, logp = forward(C, H, d, U, b, first)
    gy = logp.exp()
    gy[target] -= 1
    ga = (U.T @ gy) * (1 - a * a)
    gx = (H.T @ ga).reshape(len(first), -1)
    gC = torch.zeros_like(C).index_add(0, first, gx)
    moved = (
        C - lr * gC, H - lr * torch.outer(ga, x), d - lr * ga,
        U - lr * torch.outer(gy, a), b - lr * gy,
    )
    new, old = forward(*moved, second)[2][target], forward(C, H, d, U, b, second)[2][target]
    return float(new - old)
""",
    ),
    Right(
        "one-hot",
        edits=(
            (
                SIDE,
                "hot = torch.nn.functional.one_hot(context, len(C)).to(C)\n"
                "    x = (hot @ C).reshape(len(context), -1)",
            ),
            (LOG_PROB, "return scores[0, target] - scores[0].logsumexp(0)"),
            (COUNT, "return tables + biases + bool(direct) * vocab_size * width"),
        ),
    ),
)


# ── 11-8 ──


def _bits(tokens, probs):
    if len(probs) != len(tokens) + 1:
        raise ValueError
    return math.log2(_geometric(probs)) * len(probs) / sum(map(len, tokens))


def _convert(ppl, n_from, n_to):
    """文の確率を経て。"""
    return math.exp(n_from * math.log(ppl) / n_to)


def _unk(train, test, min_count):
    words = [w for _, w in _pairs(train)]
    rare = [w for w in set(words) if w != "</s>" and words.count(w) < min_count]
    merged = sum(words.count(w) for w in rare) / len(words)
    asked = [w for _, w in _pairs(test)]
    cheap = [merged if w in rare else words.count(w) / len(words) for w in asked]
    paid = [p / len(rare) if w in rare else p for p, w in zip(cheap, asked, strict=True)]
    return _geometric(cheap), _geometric(paid)


def _ppl_gap(vocab_a, probs_a, vocab_b, probs_b):
    if sorted(set(vocab_a)) != sorted(set(vocab_b)) or len(probs_a) != len(probs_b):
        raise ValueError
    return _geometric(probs_a) - _geometric(probs_b)


def _characters(draw: Draw):
    def probe(label, tokens, probs, **options):
        options = {"tolerance": _strict(draw)} | options
        return Probe("bits_per_character", (tokens, probs), label=label, **options)

    long = [w for w in WORDS if len(w) > 1]

    def sentence(count):
        words = [*draw.rng.permutation(long)[:2], *draw.rng.permutation(WORDS)[:count]]
        return tuple(str(w) for w in words)

    tokens = sentence(3 if draw.public else draw.integer(4, 8))
    (probs,) = _lists(draw, len(tokens) + 1)
    yield probe("長さの違う語", tokens, probs, repeat=True)
    letters = tuple("".join(tokens))
    spelled = (*probs[:-1], *(1.0,) * (len(letters) - len(tokens)), probs[-1])
    yield probe("同じ文を文字で切る", letters, spelled)
    yield probe("一語だけ", tokens[:1], (0.5, 0.125))
    yield probe("確率が一つ足りない", tokens, probs[:-1])
    yield probe("確率が一つ多い", tokens, (*probs, 0.5))
    if not draw.public:
        other = sentence(9)
        yield probe("別の文", other, _lists(draw, len(other) + 1)[0])
        yield probe("確率 0 がある", tokens, (*probs[:-1], 0.0))


def _conversions(draw: Draw):
    ppl = 1 + draw.integer(50, 900) / 100
    n, m = (3, 5) if draw.public else (draw.integer(3, 9), draw.integer(10, 20))
    for label, args in (
        ("細かく数え直す", (ppl, n, m)),
        ("粗く数え直す", (ppl, m, n)),
        ("同じ数え方", (ppl, n, n)),
        ("どれも確率 1 だった文", (1.0, n, m)),
        ("ちょうど 2 倍に数える", (ppl + 1, n, 2 * n)),
    ):
        yield Probe("convert_perplexity", args, label=label)


def _merges(draw: Draw):
    words, train, _ = _train(draw)
    known = [w for w in words if any(w in s for s in train)]
    counts = sorted(sum(s.count(w) for s in train) for w in known)

    def probe(label, min_count, test=None, **options):
        args = (train, test or _text(draw, known, 3 if draw.public else 5, 5), min_count)
        return Probe("unk_perplexity", args, label=label, **options)

    middle = counts[len(counts) // 2]
    everything = (tuple(known), *train[:2])
    yield probe("半分ほどの語をまとめる", middle + 1, everything, repeat=True)
    yield probe("ちょうど min_count 回の語がある", middle, everything)
    rarest = min(known, key=lambda w: sum(s.count(w) for s in train))
    yield probe("珍しい語ばかりの文", middle, ((rarest,) * 7, (rarest, known[0])))
    yield probe("すべての語をまとめる", counts[-1] + 1, everything)
    yield probe("何もまとめない", 1)
    yield probe("学習データそのもの", middle + 1, train)
    if not draw.public:
        yield probe("</s> より多く求める", counts[-1] + len(train) + 9)
        yield probe("多い語だけを残す", counts[-1], everything)


def _comparisons(draw: Draw):
    vocab = tuple(_words(draw, 4 if draw.public else 6))

    def probe(label, other, n, m, better="", **options):
        a, b = _lists(draw, n, m)
        while better and (_geometric(a) < _geometric(b)) != (better == "A"):
            a, b = _lists(draw, n, m)
        return Probe("perplexity_gap", (vocab, a, other, b), label=label, **options)

    n, m, _ = draw.sizes(3)
    yield probe("同じ語彙（A の方がよい）", vocab, n, n, "A", repeat=True)
    yield probe("同じ語彙（B の方がよい）", vocab, m, m, "B")
    yield probe("語彙の順だけが違う", vocab[::-1], m, m, "B")
    yield probe("同じ語が二度書いてある語彙", (*vocab, vocab[0]), n, n, "A")
    yield probe("トークンの数が違う", vocab, n, n + 1)
    yield probe("語彙が一語違う", (*vocab[:-1], STRANGER), n, n)
    yield probe("語彙が一語多い", (*vocab, STRANGER), n, n)
    yield probe("語彙が一語少ない", vocab[:-1], n, n)


MATCHED = "if len(probs) != len(tokens) + 1:"
BITS = "bits = sum(-math.log2(p) if p > 0 else math.inf for p in probs)"
PER_CHARACTER = 'return bits / len("".join(tokens))'
CONVERT = "return ppl ** (n_from / n_to)"
UNK_COUNTS = 'counts = Counter(w for s in train for w in (*s, "</s>"))'
RARE = 'rare = {w for w, c in counts.items() if c < min_count} - {"</s>"}'
MERGED = "merged = sum(counts[w] for w in rare) / counts.total()"
UNK_TEST = 'for w in (w for s in test for w in (*s, "</s>")):'
UNK_P = "p = merged if w in rare else counts[w] / counts.total()"
PAID = "paid.append(math.log(p / len(rare) if w in rare else p))"
BOTH = "return tuple(math.exp(-sum(x) / len(x)) for x in (cheap, paid))"
COMPARABLE = "if set(vocab_a) != set(vocab_b) or len(probs_a) != len(probs_b):"
GAP = "return math.exp(nats_a) - math.exp(nats_b)"

COMPARE_WRONG = (
    wrong(
        "per-token",
        "トークンの数で割っています。切り方によらない数にするには、文字数で割ります。",
        (PER_CHARACTER, "return bits / len(tokens)"),
    ),
    wrong(
        "per-prediction",
        "予測の数（確率の個数）で割っています。文字数で割ります。",
        (PER_CHARACTER, "return bits / len(probs)"),
    ),
    wrong(
        "eos-is-a-character",
        "`</s>` を 1 文字と数えています。文字数には入れません。",
        (PER_CHARACTER, 'return bits / (len("".join(tokens)) + 1)'),
    ),
    wrong(
        "spaces",
        "語の間の空白を文字に数えています。",
        (PER_CHARACTER, PER_CHARACTER.replace('""', '" "')),
    ),
    wrong(
        "bits-total",
        "合計のビット数を返しています。文字数で割ります。",
        (PER_CHARACTER, "return bits"),
    ),
    wrong(
        "bits-in-nats",
        "単位がナットです。底 2 の対数で測ります。",
        (BITS, BITS.replace("log2", "log")),
    ),
    wrong(
        "bits-drop-eos",
        "`</s>` を当てる驚きを足していません。",
        (BITS, BITS.replace("in probs)", "in probs[:-1])")),
    ),
    wrong(
        "bits-skip-zero",
        "確率 0 のトークンを読み飛ばしています。",
        (BITS, BITS.replace("math.inf", "0.0")),
    ),
    wrong(
        "bits-unchecked",
        "確率の個数を調べていません。トークンと `</s>` の分がそろっていなければ、"
        "ValueError を出します。",
        (MATCHED, "if False:"),
    ),
    wrong(
        "bits-as-perplexity",
        "2 の何乗かに戻しています。返すのは、1 文字あたりのビット数です。",
        (PER_CHARACTER, 'return 2 ** (bits / len("".join(tokens)))'),
    ),
    wrong(
        "convert-backwards",
        "指数が逆です。細かく数えるほど、一つあたりの驚きは小さくなります。",
        (CONVERT, "return ppl ** (n_to / n_from)"),
    ),
    wrong(
        "convert-linear",
        "パープレキシティに個数の比を掛けています。比例するのは驚き（対数）の方です。",
        (CONVERT, "return ppl * n_from / n_to"),
    ),
    wrong(
        "convert-root-only",
        "元の個数を使わずに、n_to 乗根を取っています。まず n_from 乗して、文の確率に戻します。",
        (CONVERT, "return ppl ** (1 / n_to)"),
    ),
    wrong(
        "convert-sentence",
        "文の確率の逆数を返しています。新しい個数の乗根を取ります。",
        (CONVERT, "return float(ppl**n_from)"),
    ),
    wrong(
        "convert-nothing",
        "数え方を変えたのに、同じ値を返しています。",
        (CONVERT, "return ppl"),
    ),
    wrong(
        "rare-inclusive",
        "ちょうど min_count 回の語までまとめています。まとめるのは、それより少ない語です。",
        (RARE, RARE.replace("c < min_count", "c <= min_count")),
    ),
    wrong(
        "rare-eos",
        "`</s>` までまとめています。`</s>` はまとめません。",
        (RARE, RARE.replace(' - {"</s>"}', "")),
    ),
    wrong(
        "rare-by-test",
        "test での回数でまとめています。train での回数で決めます。",
        (RARE, RARE.replace("c < min_count", "sum(s.count(w) for s in test) < min_count")),
    ),
    wrong(
        "unk-swapped",
        "返り値の順が逆です。（`<unk>` を正解とした値, どの語かまで当てさせた値）の順です。",
        (BOTH, BOTH.replace("(cheap, paid)", "(paid, cheap)")),
    ),
    wrong(
        "unk-own-frequency",
        "二つ目で、`<unk>` の確率を元の頻度のとおりに分けています。"
        "まとめた後は頻度が分からないので、種類に等しく分けます。",
        (PAID, "paid.append(math.log(counts[w] / counts.total()))"),
    ),
    wrong(
        "unk-free",
        "二つ目でも、どの語だったかを当てさせていません。",
        (PAID, "paid.append(math.log(p))"),
    ),
    wrong(
        "unk-over-vocabulary",
        "`<unk>` の確率を、語彙の全部の種類に分けています。まとめた語の種類だけに分けます。",
        (PAID, PAID.replace("len(rare)", "len(counts)")),
    ),
    wrong(
        "unk-mean-probability",
        "`<unk>` の確率が、まとめた語の平均になっています。確率の合計にします。",
        (MERGED, MERGED.replace("counts.total()", "counts.total() / max(len(rare), 1)")),
    ),
    wrong(
        "unk-no-eos",
        "test の `</s>` を予測していません。",
        (UNK_TEST, "for w in (w for s in test for w in s):"),
    ),
    wrong(
        "unk-words-only",
        "unigram の分母に `</s>` を数えていません。",
        (UNK_COUNTS, UNK_COUNTS.replace('(*s, "</s>"))', "s)")),
        (UNK_P, "p = merged if w in rare else (counts[w] or len(train)) / counts.total()"),
    ),
    wrong(
        "unk-one-kind",
        "`<unk>` が何回出たかを使わず、ほかの語の一回分の確率にしています。",
        (MERGED, "merged = 1 / counts.total()"),
    ),
    wrong(
        "unk-nats",
        "驚きの平均を返しています。指数を取ってパープレキシティにします。",
        (BOTH, "return tuple(-sum(x) / len(x) for x in (cheap, paid))"),
    ),
    wrong(
        "vocabulary-unchecked",
        "語彙が違うのに比べています。ValueError を出します。",
        (COMPARABLE, "if len(probs_a) != len(probs_b):"),
    ),
    wrong(
        "length-unchecked",
        "トークンの数が違うのに比べています。ValueError を出します。",
        (COMPARABLE, "if set(vocab_a) != set(vocab_b):"),
    ),
    wrong(
        "vocabulary-order",
        "語彙の書かれた順まで同じことを求めています。集合として同じなら比べられます。",
        (
            COMPARABLE,
            COMPARABLE.replace("set(vocab_a) != set(vocab_b)", "list(vocab_a) != list(vocab_b)"),
        ),
    ),
    wrong(
        "vocabulary-size",
        "語彙の大きさだけを調べています。どの語が入っているかを調べます。",
        (
            COMPARABLE,
            COMPARABLE.replace(
                "set(vocab_a) != set(vocab_b)", "len(set(vocab_a)) != len(set(vocab_b))"
            ),
        ),
    ),
    wrong(
        "vocabulary-subset",
        "片方の語彙がもう片方に含まれていればよいことにしています。同じ語彙でなければ比べられません。",
        (
            COMPARABLE,
            COMPARABLE.replace("set(vocab_a) != set(vocab_b)", "set(vocab_a) - set(vocab_b)"),
        ),
    ),
    wrong(
        "gap-sign",
        "差の向きが逆です。A から B を引きます。",
        (GAP, "return math.exp(nats_b) - math.exp(nats_a)"),
    ),
    wrong(
        "gap-of-surprise",
        "驚きの差を返しています。パープレキシティの差にします。",
        (GAP, "return nats_a - nats_b"),
    ),
    wrong(
        "gap-absolute",
        "差の絶対値を返しています。どちらが良いかが分からなくなります。",
        (GAP, "return abs(math.exp(nats_a) - math.exp(nats_b))"),
    ),
    wrong(
        "gap-ratio",
        "差ではなく比を返しています。",
        (GAP, "return math.exp(nats_a - nats_b)"),
    ),
)

COMPARE_RIGHT = (
    Right(
        "plain",
        code="""
import math


def bits_per_character(tokens, probs):
    if len(tokens) != len(probs) - 1:
        raise ValueError("数が合わない")
    n_chars = 0
    for t in tokens:
        n_chars += len(t)
    if min(probs) == 0:
        return math.inf
    return sum(math.log(1 / p) for p in probs) / math.log(2) / n_chars


def convert_perplexity(ppl, n_from, n_to):
    nats = math.log(ppl) * n_from
    return math.exp(nats / n_to)


def unk_perplexity(train, test, min_count):
    flat = []
    for s in train:
        flat += list(s) + ["</s>"]
    rare = []
    for w in flat:
        if w != "</s>" and flat.count(w) < min_count and w not in rare:
            rare.append(w)
    n_rare = sum(flat.count(w) for w in rare)
    a = b = n = 0
    for s in test:
        for w in list(s) + ["</s>"]:
            n += 1
            if w in rare:
                a -= math.log2(n_rare / len(flat))
                b -= math.log2(n_rare / len(flat) / len(rare))
            else:
                a -= math.log2(flat.count(w) / len(flat))
                b -= math.log2(flat.count(w) / len(flat))
    return [2 ** (a / n), 2 ** (b / n)]


def perplexity_gap(vocab_a, probs_a, vocab_b, probs_b):
    if not (set(vocab_a) <= set(vocab_b) <= set(vocab_a)):
        raise ValueError("語彙")
    if len(probs_a) != len(probs_b):
        raise ValueError("長さ")
    ppl = [2 ** (-sum(math.log2(p) for p in ps) / len(ps)) for ps in (probs_a, probs_b)]
    return ppl[0] - ppl[1]
""",
    ),
    Right(
        "torch",
        code="""
import torch
from collections import Counter


def ppl(probs):
    return torch.tensor(probs, dtype=torch.float64).log().mean().neg().exp().item()


def bits_per_character(tokens, probs):
    if len(probs) - len(tokens) != 1:
        raise ValueError("確率の数")
    bits = torch.tensor(probs, dtype=torch.float64).log2().neg().sum()
    return bits / sum(len(t) for t in tokens)


def convert_perplexity(ppl, n_from, n_to):
    return (ppl ** n_from) ** (1 / n_to)


def unk_perplexity(train, test, min_count):
    counts = Counter()
    for s in train:
        counts.update([*s, "</s>"])
    rare = [w for w in counts if counts[w] < min_count and w != "</s>"]
    names = {w: "<unk>" for w in rare}
    merged = Counter()
    for w, c in counts.items():
        merged[names.get(w, w)] += c
    asked = [w for s in test for w in [*s, "</s>"]]
    cheap = [merged[names.get(w, w)] / merged.total() for w in asked]
    paid = [p / (len(rare) if w in names else 1) for p, w in zip(cheap, asked)]
    return ppl(cheap), ppl(paid)


def perplexity_gap(vocab_a, probs_a, vocab_b, probs_b):
    if set(vocab_a) ^ set(vocab_b) or len(probs_a) - len(probs_b):
        raise ValueError("比べられません")
    return ppl(probs_a) - ppl(probs_b)
""",
    ),
    Right(
        "logs",
        edits=(
            (CONVERT, "return math.e ** (math.log(ppl) * n_from / n_to)"),
            (PER_CHARACTER, "return bits / sum(map(len, tokens))"),
            (BOTH, "return [math.prod(map(math.exp, x)) ** (-1 / len(x)) for x in (cheap, paid)]"),
        ),
    ),
)


QUESTIONS = (
    Question(
        "11-1",
        parts=(
            Part(
                "数えて割る",
                3,
                (Check("確率の値", _bigrams, _mle, outputs=("確率",), section=COUNT_AND_DIVIDE),),
            ),
            Part(
                "パープレキシティ",
                3,
                (
                    Check(
                        "test の値",
                        _mle_tests,
                        _mle_perplexity,
                        outputs=("パープレキシティ",),
                        section=ZERO,
                    ),
                ),
            ),
            Part(
                "分布を取りかえる",
                2,
                (
                    Check(
                        "増え方",
                        _replacements,
                        _increase,
                        outputs=("増え方",),
                        section=COUNT_AND_DIVIDE,
                    ),
                ),
            ),
        ),
        model=functools.partial(source.model, "11-1"),
        wrong=MLE_WRONG,
        right=MLE_RIGHT,
        shortcuts=READY_MADE,
    ),
    Question(
        "11-2",
        parts=(
            Part(
                "k 回ずつ足す",
                3,
                (Check("確率の値", _k_probs, _add_k, outputs=("確率",), section=ADDING),),
            ),
            Part(
                "パープレキシティ",
                3,
                (
                    Check(
                        "test の値",
                        _k_tests,
                        _add_k_perplexity,
                        outputs=("パープレキシティ",),
                        section=ZERO,
                    ),
                ),
            ),
            Part(
                "配った確率",
                2,
                (Check("確率の合計", _masses, _unseen_mass, outputs=("合計",), section=ADDING),),
            ),
        ),
        model=functools.partial(source.model, "11-2"),
        wrong=ADD_K_WRONG,
        right=ADD_K_RIGHT,
        shortcuts=READY_MADE,
    ),
    Question(
        "11-3",
        parts=(
            Part(
                "驚きの平均",
                2,
                (Check("平均の値", _surprises, _surprise, outputs=("平均",), section=AVERAGE),),
            ),
            Part(
                "コーパス全体",
                3,
                (
                    Check(
                        "全体の値",
                        _sentence_sets,
                        _pooled,
                        outputs=("パープレキシティ",),
                        section=POOL_ALL,
                    ),
                ),
            ),
            Part(
                "引き分け",
                2,
                (
                    Check(
                        "引き分けの値", _draws_of_even, _even, outputs=("確率",), section=POOL_ALL
                    ),
                ),
            ),
        ),
        model=functools.partial(source.model, "11-3"),
        wrong=PERPLEXITY_WRONG,
        right=PERPLEXITY_RIGHT,
        shortcuts=READY_MADE,
    ),
    Question(
        "11-4",
        parts=(
            Part(
                "表の大きさ",
                2,
                (
                    Check(
                        "種類の数",
                        _tables,
                        lambda corpus, n: tuple(map(float, _table(corpus, n))),
                        outputs=("ありうる種類", "現れた種類"),
                        section=MORE_N,
                    ),
                ),
            ),
            Part(
                "見たことのない割合",
                3,
                (
                    Check("割合の値", _shares, _unseen, outputs=("割合",), section=MORE_N),
                    Check("n を増やす", _share_law_probes, law=_share_law, section=MORE_N),
                ),
            ),
            Part(
                "次が初めてである確率",
                2,
                (Check("確率の値", _missings, _missing, outputs=("確率",), section=MORE_N),),
            ),
        ),
        model=functools.partial(source.model, "11-4"),
        wrong=SPARSITY_WRONG,
        right=SPARSITY_RIGHT,
        shortcuts=READY_MADE,
    ),
    Question(
        "11-5",
        parts=(
            Part(
                "種類で数える",
                2,
                (Check("種類の割合", _kinds, _continuation, outputs=("割合",), section=BY_KINDS),),
            ),
            Part(
                "絶対割引",
                3,
                (Check("確率の値", _discounts, _discounted, outputs=("確率",), section=DISCOUNT),),
            ),
            Part(
                "予測した回数",
                3,
                (
                    Check(
                        "ずれの値",
                        _overshoots,
                        _overshoot,
                        outputs=("unigram のずれ", "種類のずれ"),
                        section=BY_KINDS,
                    ),
                ),
            ),
        ),
        model=functools.partial(source.model, "11-5"),
        wrong=KN_WRONG,
        right=KN_RIGHT,
        shortcuts=READY_MADE,
    ),
    Question(
        "11-6",
        parts=(
            Part(
                "二つの確率",
                2,
                (
                    Check(
                        "確率の並び",
                        _evidences,
                        _evidence,
                        outputs=("bigram の並び", "unigram の並び"),
                        section=MIXING,
                    ),
                ),
            ),
            Part(
                "EM 法の一回",
                2,
                (Check("新しい割合", _em_steps, _em, outputs=("λ",), section=EM),),
            ),
            Part(
                "選ぶデータと測るデータ",
                3,
                (
                    Check(
                        "割合と成績",
                        _tunings,
                        _tuned,
                        outputs=("λ", "平均の驚き"),
                        section=MIXING,
                    ),
                ),
            ),
        ),
        model=functools.partial(source.model, "11-6"),
        wrong=MIX_WRONG,
        right=MIX_RIGHT,
        shortcuts=READY_MADE,
    ),
    Question(
        "11-7",
        parts=(
            Part(
                "パラメータの数",
                2,
                (Check("数", _counts, _parameters, outputs=("数",), section=VECTORS),),
            ),
            Part(
                "スコア",
                2,
                (
                    Check("スコアの値", _contexts, _scores, outputs=("スコア",), section=VECTORS),
                    Check(
                        "勾配",
                        _score_slopes,
                        _scores,
                        outputs=tuple(f"{name} の勾配" for name in ("C", "H", "d", "U", "b")),
                        section=TRAINING,
                    ),
                ),
            ),
            Part(
                "伝わり方",
                3,
                (Check("増え方", _transfers, _transfer, outputs=("増え方",), section=TRAINING),),
            ),
        ),
        model=functools.partial(source.model, "11-7"),
        wrong=NEURAL_WRONG,
        right=NEURAL_RIGHT,
        shortcuts=(*READY_MADE, "lib.neural_lm"),
    ),
    Question(
        "11-8",
        parts=(
            Part(
                "1 文字あたりのビット数",
                2,
                (Check("ビット数", _characters, _bits, outputs=("ビット数",), section=SEGMENTS),),
            ),
            Part(
                "数え直す",
                2,
                (
                    Check(
                        "数え直した値",
                        _conversions,
                        _convert,
                        outputs=("パープレキシティ",),
                        section=SEGMENTS,
                    ),
                ),
            ),
            Part(
                "まとめた語",
                2,
                (
                    Check(
                        "二つの値",
                        _merges,
                        _unk,
                        outputs=("<unk> を正解とした値", "どの語かまで当てさせた値"),
                        section=MERGING,
                    ),
                ),
            ),
            Part(
                "比べてよいか",
                2,
                (
                    Check(
                        "差と、断ること",
                        _comparisons,
                        _ppl_gap,
                        outputs=("差",),
                        section=SEGMENTS,
                    ),
                ),
            ),
        ),
        model=functools.partial(source.model, "11-8"),
        wrong=COMPARE_WRONG,
        right=COMPARE_RIGHT,
        shortcuts=READY_MADE,
    ),
)
