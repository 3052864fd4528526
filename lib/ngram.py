"""n-gram 言語モデル: 数える、足す、混ぜる、割り引く、Kneser–Ney。

n 次数（文脈は n-1 語）。予測する語は </s> を含み、<s> を含まない。

どの平滑化も同じ形をしている。次数 n の文脈 c で、

    p_n(w | c) = 直接の分(c, w) + 残り(c) × p_{n-1}(w | c の左端を落としたもの)

見たことのない文脈では、直接の分が 0、残りが 1 になる。手法ごとに違うのは、この二つの決め方だけ。
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

from lib.checks import require
from lib.text import BOS, EOS, SPECIALS

START, END = SPECIALS[BOS], SPECIALS[EOS]

Sentence = Sequence[str]
Sentences = Sequence[Sentence]
Words = Iterable[str] | None  # 予測する語。None なら学習データの語と </s>
Context = tuple[str, ...]
Counts = dict[Context, Counter]
Level = dict[Context, tuple[dict[str, float], float]]  # 文脈 → (直接の分, 残り)


def ngrams(sentence: Sentence, n: int) -> Iterator[tuple[Context, str]]:
    """文を (文脈, 次の語) の列に直す。<s> は n-1 個前に置くだけで予測せず、</s> は予測する。

    式: eq-markov  出典: jurafsky2026speech, 3.1 節
    """
    require(n >= 1, "次数 n は 1 以上が必要です", n)
    require(not {START, END} & set(sentence), "文に <s> や </s> を入れないでください", sentence)
    padded = [START] * (n - 1) + list(sentence) + [END]
    for t in range(n - 1, len(padded)):
        yield tuple(padded[t - n + 1 : t]), padded[t]


def count(sentences: Iterable[Sentence], n: int) -> Counts:
    """文脈ごとに、次に来た語の回数を数える。文が一つもなければ ValueError。

    式: eq-mle  出典: jurafsky2026speech, 3.1 節
    """
    counts: Counts = defaultdict(Counter)
    pairs = Counter(pair for sentence in sentences for pair in ngrams(sentence, n))
    for (context, word), times in pairs.items():
        counts[context][word] = times
    require(counts, "文が一つ以上必要です", sentences)
    return dict(counts)


def continuations(counts: Counts) -> Counts:
    """左端の語を落とした n-1 語組が、何種類の語の後に現れたかを数える。回数は見ない。

    式: eq-continuation  出典: kneser1995improved, 2 節
    """
    shorter: Counts = defaultdict(Counter)
    for context, followers in counts.items():
        shorter[context[1:]].update(list(followers))  # 一種類につき 1 を足す
    return dict(shorter)


@dataclass(frozen=True)
class NgramLM:
    """次数の高い順に並べた表 levels と、最後の残りを受け取る分布 base。base の見出しが語彙 V。"""

    n: int
    levels: tuple[Level, ...]
    base: dict[str, float]

    def prob(self, word: str, context: Sentence) -> float:
        """p(word | context)。文脈は右端の n-1 語だけを使う。語彙にない語は ValueError。

        式: eq-backoff-form  出典: chen1999empirical, 2 節
        """
        if word not in self.base:
            raise ValueError(f"語彙にない語です: {word!r}。先に <unk> に置き換えてください。")
        given, left = 0.0, 1.0
        key = tuple(context[max(0, len(context) - self.n + 1) :])
        for level in self.levels:
            direct, rest = level.get(key, ({}, 1.0))
            given += left * direct.get(word, 0.0)
            left *= rest
            key = key[1:]
        return given + left * self.base[word]

    def distribution(self, context: Sentence) -> dict[str, float]:
        """次の語の分布。語彙のすべての語（</s> を含む）に確率を付ける。"""
        return {word: self.prob(word, context) for word in self.base}

    def probs(self, sentence: Sentence) -> list[float]:
        """文の各語と </s> の確率。長さは文の語数 + 1。対数は取らないので 0 もそのまま返る。"""
        return [self.prob(word, context) for context, word in ngrams(sentence, self.n)]


def _tables(counts: Counts, direct, rest) -> Level:
    """各文脈の回数を、(直接の分, 残り) に直す。"""
    level = {}
    for context, followers in counts.items():
        total = sum(followers.values())
        given = {word: direct(c, total) for word, c in followers.items()}
        level[context] = (given, rest(len(followers), total))
    return level


def _vocabulary(sentences: Sentences, words: Words) -> list[str]:
    """予測する語。"""
    seen = {word for sentence in sentences for word in sentence} | {END}
    given = seen if words is None else {*words, END}
    if missing := sorted(seen - given):
        raise ValueError(f"語彙にない語が学習データにあります: {missing[:5]}")
    return sorted(given)


def _unigram(counts: Counts, words: Iterable[str]) -> dict[str, float]:
    """文脈のない回数から、語の分布を作る。"""
    total = sum(counts[()].values())
    return {word: counts[()][word] / total for word in words}


def mle(sentences: Sentences, n: int, words: Words = None) -> NgramLM:
    """最尤推定。回数の比。見たことのない文脈ではどの語も 0（分布にならない）。

    式: eq-mle  出典: jurafsky2026speech, 3.1 節
    """
    level = _tables(count(sentences, n), lambda c, t: c / t, lambda kinds, t: 0.0)
    return NgramLM(n, (level,), dict.fromkeys(_vocabulary(sentences, words), 0.0))


def add_k(sentences: Sentences, n: int, k: float, words: Words = None) -> NgramLM:
    """加算平滑化（k = 1 が Laplace）。すべての語の回数に k を足してから比を取る。

    式: eq-add-k  出典: chen1999empirical, 2.1 節
    """
    require(k > 0, "k は正の数が必要です", k)
    base = _vocabulary(sentences, words)
    mass = k * len(base)  # 一つの文脈に足される回数
    counts = count(sentences, n)
    level = _tables(counts, lambda c, t: c / (t + mass), lambda kinds, t: mass / (t + mass))
    return NgramLM(n, (level,), dict.fromkeys(base, 1 / len(base)))


def interpolate(sentences: Sentences, lambdas: Sequence[float], words: Words = None) -> NgramLM:
    """線形補間。lambdas は次数 n から 2 までの、その次数の最尤推定に置く割合（n = 割合の数 + 1）。

    式: eq-interpolation  出典: chen1999empirical, 2.3 節
    """
    require(all(0 <= x <= 1 for x in lambdas), "割合は 0 以上 1 以下が必要です", *lambdas)
    n = len(lambdas) + 1
    levels = tuple(
        _tables(count(sentences, n - i), lambda c, t, x=x: x * c / t, lambda kinds, t, x=x: 1 - x)
        for i, x in enumerate(lambdas)
    )
    return NgramLM(n, levels, _unigram(count(sentences, 1), _vocabulary(sentences, words)))


def fit_lambdas(sentences: Sentences, held_out: Sentences, n: int, steps: int = 20) -> list:
    """EM 法で割合を決める。held_out は学習データと別の文。各回の割合の列を返す（最後が答え）。

    式: eq-em-lambda  出典: chen1999empirical, 2.3 節
    """
    model = interpolate(sentences, [1.0] * (n - 1))
    events = [pair for sentence in held_out for pair in ngrams(sentence, n)]
    history = [[0.5] * (n - 1)]
    for _ in range(steps):
        stopped, reached = [0.0] * (n - 1), [0.0] * (n - 1)
        for context, word in events:
            _expected_stops(model, history[-1], context, word, stopped, reached)
        history.append([s / r if r else 0.5 for s, r in zip(stopped, reached, strict=True)])
    return history


def _expected_stops(model, lambdas, context, word, stopped, reached) -> None:
    """その語が各次数から来た確率（事後確率）を、stopped と reached に足し込む。"""
    paths, left, orders = [], 1.0, []
    for i, (level, x) in enumerate(zip(model.levels, lambdas, strict=True)):
        if context[i:] in level:
            paths.append(left * x * level[context[i:]][0].get(word, 0.0))
            orders.append(i)
            left *= 1 - x
    paths.append(left * model.base.get(word, 0.0))
    total = sum(paths)
    for j, i in enumerate(orders):
        if total > 0:
            stopped[i] += paths[j] / total
            reached[i] += sum(paths[j:]) / total


def _discounted(counts: Counts, discount: float) -> Level:
    """現れた語の回数から D を引き、引いた分を残りにする。"""
    require(0 < discount <= 1, "割引 D は 0 より大きく 1 以下が必要です", discount)
    return _tables(counts, lambda c, t: (c - discount) / t, lambda kinds, t: discount * kinds / t)


def absolute_discount(sentences: Sentences, n: int, discount=0.75, words: Words = None) -> NgramLM:
    """絶対割引。どの次数も普通の回数から D を引き、下の次数へ回す。

    式: eq-absolute-discount  出典: chen1999empirical, 2.6 節
    """
    levels = tuple(_discounted(count(sentences, i), discount) for i in range(n, 1, -1))
    return NgramLM(n, levels, _unigram(count(sentences, 1), _vocabulary(sentences, words)))


def kneser_ney(sentences: Sentences, n: int, discount=0.75, words: Words = None) -> NgramLM:
    """補間型の Kneser–Ney。最上位だけが回数を使い、下は「何種類の語の後に来たか」を使う。

    式: eq-kneser-ney  出典: kneser1995improved; chen1999empirical, 2.7 節
    """
    counts, levels = count(sentences, n), []
    for i in range(n, 1, -1):
        levels.append(_discounted(counts, discount))
        counts = continuations(counts if i == n else count(sentences, i))
    return NgramLM(n, tuple(levels), _unigram(counts, _vocabulary(sentences, words)))


def unseen_rate(train: Sentences, test: Sentences, n: int) -> float:
    """test の n-gram のうち、train に一度も現れないものの割合（0 から 1）。

    式: eq-markov  出典: jurafsky2026speech, 3.4 節
    """
    seen = count(train, n)
    events = [pair for sentence in test for pair in ngrams(sentence, n)]
    return sum(word not in seen.get(context, {}) for context, word in events) / len(events)


def sample(model: NgramLM, generator: torch.Generator, *, temperature=1.0, max_len=40) -> list[str]:
    """一語ずつ引いて文を作る。</s> が出るか max_len 語で止まる。温度が低いほど高い確率に偏る。

    式: eq-temperature  出典: jurafsky2026speech, 3.3 節
    """
    require(temperature > 0, "温度は正の数が必要です", temperature)
    words, sentence = list(model.base), []
    while len(sentence) < max_len:
        context = [START] * (model.n - 1) + sentence
        probs = torch.tensor(list(model.distribution(context).values()), dtype=torch.float64)
        weights = (probs / probs.max()) ** (1 / temperature)
        word = words[torch.multinomial(weights, 1, generator=generator)]
        if word == END:
            break
        sentence.append(word)
    return sentence
