"""確率文脈自由文法: 文を作る、文の確率を正確に求める、文法そのもののエントロピーを求める。

書き換える記号は組（例 ("NP", "animal", 2)）、語は文字列。規則は (確率, 右辺)。
"""

import math
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

Symbol = tuple
Rule = tuple[float, tuple["Symbol | str", ...]]


@dataclass(frozen=True, eq=False)
class Grammar:
    """始まりの記号と、記号ごとの規則。規則の確率は記号ごとに足して 1。"""

    start: Symbol
    rules: dict[Symbol, tuple[Rule, ...]]


@dataclass(frozen=True)
class Tree:
    """導出の木。children の整数は、文の中の語の位置。"""

    symbol: Symbol
    rhs: tuple
    children: "tuple[Tree | int, ...]"

    def leaf(self) -> int:
        """左端の語の位置。"""
        first = self.children[0]
        return first if isinstance(first, int) else first.leaf()


def make_grammar(start: Symbol, expand: Callable[[Symbol], Sequence[Rule]]) -> Grammar:
    """start から届くすべての記号を展開する。重み 0 の規則は捨て、残りを足して 1 に直す。"""
    rules: dict[Symbol, tuple[Rule, ...]] = {}
    waiting = [start]
    while waiting:
        symbol = waiting.pop()
        if symbol in rules:
            continue
        kept = [(weight, tuple(rhs)) for weight, rhs in expand(symbol) if weight > 0]
        total = sum(weight for weight, _ in kept)
        if not kept:
            raise ValueError(f"記号 {symbol} に使える規則がありません。一つ以上が必要です。")
        rules[symbol] = tuple((weight / total, rhs) for weight, rhs in kept)
        waiting += [x for _, rhs in kept for x in rhs if isinstance(x, tuple)]
    return Grammar(start, rules)


def draw(grammar: Grammar, rng: random.Random) -> tuple[list[str], Tree, float]:
    """文を一つ引く。(語の列, 導出の木, 対数確率（ナット）)。"""
    words: list[str] = []
    log_prob = 0.0

    def grow(symbol: Symbol) -> Tree:
        nonlocal log_prob
        options = grammar.rules[symbol]
        u, i = rng.random(), 0
        while i < len(options) - 1 and u >= options[i][0]:
            u -= options[i][0]
            i += 1
        prob, rhs = options[i]
        log_prob += math.log(prob)
        children: list[Tree | int] = []
        for x in rhs:
            if isinstance(x, tuple):
                children.append(grow(x))
            else:
                children.append(len(words))
                words.append(x)
        return Tree(symbol, rhs, tuple(children))

    return words, grow(grammar.start), log_prob


def inside(grammar: Grammar, tokens: Sequence[str]) -> tuple[float, int]:
    """文の確率と、導出の数。文法が作らない文では (0.0, 0)。空の文は ValueError。

    式: eq-inside  出典: jurafsky2026speech, 付録 C
    """
    if len(tokens) == 0:
        raise ValueError("空の文には確率を付けられません。一語以上が必要です。")

    @cache
    def spans(symbol: Symbol, begin: int) -> dict[int, tuple[float, int]]:
        """symbol が begin から覆える終わりの位置 → (確率, 導出の数)。"""
        found = defaultdict(lambda: (0.0, 0))
        for prob, rhs in grammar.rules[symbol]:
            partial = {begin: (prob, 1)}
            for x in rhs:
                partial = extend(partial, x)
            for end, (p, n) in partial.items():
                found[end] = (found[end][0] + p, found[end][1] + n)
        return dict(found)

    def extend(partial: dict, x: "Symbol | str") -> dict:
        longer = defaultdict(lambda: (0.0, 0))
        for end, (p, n) in partial.items():
            if isinstance(x, str):
                steps = {end + 1: (1.0, 1)} if tokens[end : end + 1] == (x,) else {}
            else:
                steps = spans(x, end)
            for stop, (q, m) in steps.items():
                longer[stop] = (longer[stop][0] + p * q, longer[stop][1] + n * m)
        return longer

    tokens = tuple(tokens)
    return spans(grammar.start, 0).get(len(tokens), (0.0, 0))


def _expected(grammar: Grammar, own: Callable[[Rule], float]) -> float:
    """一つの文が含む規則の own(規則) の合計の期待値。文法は有限なので、下から足せば求まる。"""

    @cache
    def total(symbol: Symbol) -> float:
        return sum(
            rule[0] * (own(rule) + sum(total(x) for x in rule[1] if isinstance(x, tuple)))
            for rule in grammar.rules[symbol]
        )

    return total(grammar.start)


def entropy(grammar: Grammar) -> float:
    """文一つあたりのエントロピー（ナット）。導出が一通りの文法で正確。

    式: eq-grammar-entropy  出典: shannon1948mathematical
    """
    return _expected(grammar, lambda rule: -math.log(rule[0]))


def expected_length(grammar: Grammar) -> float:
    """文の長さの期待値（語の数。文末の記号は数えない）。"""
    return _expected(grammar, lambda rule: sum(isinstance(x, str) for x in rule[1]))


def length_distribution(grammar: Grammar, max_len: int) -> list[float]:
    """長さ 0 から max_len までの確率。"""

    def convolve(a: list[float], b: list[float]) -> list[float]:
        return [sum(a[i] * b[k - i] for i in range(k + 1)) for k in range(max_len + 1)]

    one_word = [float(k == 1) for k in range(max_len + 1)]

    @cache
    def lengths(symbol: Symbol) -> tuple[float, ...]:
        mixture = [0.0] * (max_len + 1)
        for prob, rhs in grammar.rules[symbol]:
            row = [prob] + [0.0] * max_len
            for x in rhs:
                row = convolve(row, lengths(x) if isinstance(x, tuple) else one_word)
            mixture = [a + b for a, b in zip(mixture, row, strict=True)]
        return tuple(mixture)

    return list(lengths(grammar.start))


def enumerate_sentences(grammar: Grammar) -> list[tuple[tuple[str, ...], float]]:
    """すべての文とその確率。小さな文法でだけ使える。"""

    @cache
    def every(symbol: Symbol) -> list[tuple[tuple[str, ...], float]]:
        sentences = []
        for prob, rhs in grammar.rules[symbol]:
            partial = [((), prob)]
            for x in rhs:
                tails = every(x) if isinstance(x, tuple) else [((x,), 1.0)]
                partial = [(a + b, p * q) for a, p in partial for b, q in tails]
            sentences += partial
        return sentences

    return every(grammar.start)
