"""確率文脈自由文法: 文を引く、文の確率を正確に求める、文法のエントロピーを閉じた式で求める。

規則の辞書にある文字列が記号で、ない文字列は語。記号を書き換えていくと、同じ記号には戻らずに
必ず語の並びになるとする。だから、文の長さにも文の数にも限りがあり、どの値も正確に求まる。
"""

import math
import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from lib.checks import require

Step = Callable[[str, Any], Any]  # (語, 今いる所) → 次にいる所。None なら、その語は読めない


class Rule(NamedTuple):
    """書き換えの規則。prob の確率で、右辺 rhs（記号と語の並び）になる。"""

    prob: float
    rhs: tuple[str, ...]
    note: tuple[str, ...] = ()  # 規則に添える覚え書き（箱庭コーパスでは英語の並び）


@dataclass(slots=True)
class Tree:
    """導出の木。children は rhs と同じ順で、記号なら木、語なら文の中の位置。"""

    symbol: str
    rule: Rule
    children: list["Tree | int"]


class Grammar:
    """始まりの記号と、記号ごとの規則。

    規則は (重み, "右辺の記号と語を空白で区切ったもの", "添え書き") の組で渡す（添え書きは省ける）。
    重みは、記号ごとに足して 1 になるように直す。負の重みや、和が 0 の記号は ValueError。
    """

    def __init__(self, start: str, rows: Mapping[str, Sequence[tuple]]):
        self.start, self.rules = start, {}
        for symbol, options in rows.items():
            weights = [weight for weight, *_ in options]
            if min(weights, default=-1) < 0 or (total := sum(weights)) == 0:
                raise ValueError(f"重みは 0 以上で、和は正が必要です。{symbol} の重み: {weights}")
            rules = [Rule(w / total, *map(_split, texts)) for w, *texts in options if w > 0]
            self.rules[symbol] = rules


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def draw(grammar: Grammar, rng: random.Random) -> tuple[list[str], Tree, float]:
    """文を一つ引く。返り値は (語の列, 導出の木, 導出の対数確率（ナット）)。"""
    words, log_probs = [], []

    def grow(x: str) -> Tree | int:
        """記号 x から下の木。語なら、words に足してその番号。"""
        if x not in grammar.rules:
            words.append(x)
            return len(words) - 1
        u = rng.random()
        for rule in grammar.rules[x]:
            u -= rule.prob
            if u < 0:
                break
        log_probs.append(math.log(rule.prob))
        return Tree(x, rule, [grow(child) for child in rule.rhs])

    return words, grow(grammar.start), math.fsum(log_probs)


def _walk(grammar: Grammar, origin: Hashable, step: Step) -> dict[Any, float]:
    """origin から、文法が作る文を一語ずつ読む。着いた所 → そこに着く導出の確率の和。

    導出の確率は、使った規則の prob の積。「所」は step が決める。文の中の位置なら
    内側アルゴリズム、読んだ語数なら長さの分布になる。
    """

    @cache
    def read(x: str, here: Hashable) -> dict:
        """here から記号 x を読み終えた所 → 確率。"""
        if x not in grammar.rules:
            there = step(x, here)
            return {} if there is None else {there: 1.0}
        arrived = defaultdict(float)
        for rule in grammar.rules[x]:
            for there, w in read_all(rule.rhs, here).items():
                arrived[there] += rule.prob * w
        return arrived

    @cache
    def read_all(items: tuple[str, ...], here: Hashable) -> dict:
        """here から記号の並びを読み終えた所 → 確率。"""
        if not items:
            return {here: 1.0}
        arrived = defaultdict(float)
        for middle, w in read(items[0], here).items():
            for there, v in read_all(items[1:], middle).items():
                arrived[there] += w * v
        return arrived

    return dict(read(grammar.start, origin))


def sentence_log_prob(grammar: Grammar, tokens: Sequence[str]) -> float:
    """文の対数確率（ナット）。導出が何通りあっても、すべて足す（内側アルゴリズム）。

    文法が作らない文では −∞。空の文は ValueError。
    出典: jurafsky2026speech, 付録（確率文脈自由文法）
    """
    require(len(tokens) > 0, "確率を求める文には、一語以上が必要です", tokens)

    def match(word: str, i: int) -> int | None:
        """文の i 番目が word なら、次の位置。"""
        return i + 1 if i < len(tokens) and tokens[i] == word else None

    prob = _walk(grammar, 0, match).get(len(tokens), 0.0)
    return math.log(prob) if prob > 0 else -math.inf


def length_distribution(grammar: Grammar, max_len: int) -> list[float]:
    """文の長さ（語の数）が 0、1、…、max_len である確率。"""
    lengths = _walk(grammar, 0, lambda word, length: length + 1 if length < max_len else None)
    return [lengths.get(length, 0.0) for length in range(max_len + 1)]


def entropy(grammar: Grammar) -> float:
    """文一つあたりのエントロピー（ナット）。どの文の導出も一通りなら、正確。

    選んだ規則の驚き −log prob を、文一つ分だけ足した期待値。
    出典: shannon1948mathematical
    """
    return _expected_sum(grammar, lambda rule: -math.log(rule.prob))


def expected_length(grammar: Grammar) -> float:
    """文の長さの期待値（語の数。文末の記号は数えない）。"""
    return _expected_sum(grammar, lambda rule: len([x for x in rule.rhs if x not in grammar.rules]))


def _expected_sum(grammar: Grammar, value: Callable[[Rule], float]) -> float:
    """文一つの導出で使う規則の value の和の、期待値。"""

    @cache
    def below(x: str) -> float:
        """記号 x から下の値の期待値。"""
        return math.fsum(
            rule.prob * (value(rule) + sum(map(below, rule.rhs)))
            for rule in grammar.rules.get(x, ())
        )

    return below(grammar.start)
