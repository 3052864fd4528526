"""評価: 交差エントロピーとパープレキシティ、訳文の一致（完全一致、BLEU）、対応づけ（AER）。

N 予測したトークンの数  T 訳文の長さ  S 原文の長さ
"""

import math
from collections import Counter
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from lib.checks import require

Tokens = Sequence[str]
Sentences = Sequence[Tokens]
Links = set[tuple[int, int]] | frozenset[tuple[int, int]]  # (訳文の位置, 原文の位置)


def cross_entropy(log_probs: Sequence[float] | Float[Tensor, "N"], base: float = math.e) -> float:
    """予測したトークンの対数確率（自然対数）から、トークン一つあたりの交差エントロピー。

    単位は base が e ならナット、2 ならビット。確率 0（−∞）が一つでもあれば ∞。
    空、NaN、正の対数確率は ValueError。
    式: eq-cross-entropy  出典: shannon1948mathematical
    """
    values = torch.as_tensor(log_probs, dtype=torch.float64).flatten()
    require(len(values) > 0, "一つ以上のトークンの対数確率が必要です", log_probs)
    wrong = values[values.isnan() | (values > 1e-9)]  # 丸め誤差の分だけは許す
    require(len(wrong) == 0, "対数確率は 0 以下の数が必要です", *wrong[:5].tolist())
    return abs(values.mean().item()) / math.log(base)  # 対数確率は 0 以下なので、−log p の平均


def perplexity(log_probs: Sequence[float] | Float[Tensor, "N"]) -> float:
    """パープレキシティ。交差エントロピー（ナット）の指数で、実質的な選択肢の数にあたる。

    式: eq-perplexity  出典: jelinek1977perplexity
    """
    return math.exp(cross_entropy(log_probs))


def bits_per_char(log_probs: Sequence[float] | Float[Tensor, "N"], n_chars: int) -> float:
    """一文字あたりのビット数。トークンの切り方が違うモデルでも比べられる。

    式: eq-bits-per-char  出典: shannon1948mathematical
    """
    require(n_chars >= 1, "文字数は 1 以上が必要です", n_chars)
    return cross_entropy(log_probs, base=2) * len(log_probs) / n_chars


def mean_difference(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """対になった値の差 a − b の平均と、その標準誤差（差の標準偏差を √個数 で割ったもの）。"""
    require(len(a) == len(b) >= 2, "値の数は、同じで 2 以上が必要です", len(a), len(b))
    difference = torch.as_tensor(a, dtype=torch.float64) - torch.as_tensor(b, dtype=torch.float64)
    return difference.mean().item(), difference.std().item() / math.sqrt(len(a))


def _check_pairs(hyps: Sequence, refs: Sequence) -> None:
    require(len(hyps) == len(refs) > 0, "文の数は、同じで 1 以上が必要です", len(hyps), len(refs))


def exact_match(hyps: Sentences, refs: Sentences) -> float:
    """出力が参照とすべて一致した文の割合（0 から 1）。"""
    _check_pairs(hyps, refs)
    return sum(list(h) == list(r) for h, r in zip(hyps, refs, strict=True)) / len(hyps)


def _grams(tokens: Tokens, n: int) -> Counter:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def bleu_parts(hyps: Sentences, refs: Sentences, max_n: int = 4) -> tuple[list[float], float]:
    """BLEU の部品 (n = 1 から max_n の上限付き適合率, 短さの罰)。数は全文で足してから割る。

    式: eq-bleu  出典: papineni2002bleu, 2.1–2.3 節
    """
    _check_pairs(hyps, refs)
    precisions = []
    for n in range(1, max_n + 1):
        pairs = [(_grams(h, n), _grams(r, n)) for h, r in zip(hyps, refs, strict=True)]
        matched = sum((h & r).total() for h, r in pairs)  # & は少ない方の回数を取る
        total = sum(h.total() for h, _ in pairs)
        precisions.append(matched / total if total else 0.0)
    c, r = sum(map(len, hyps)), sum(map(len, refs))
    penalty = 1.0 if c >= r else (math.exp(1 - r / c) if c else 0.0)
    return precisions, penalty


def bleu(hyps: Sentences, refs: Sentences, max_n: int = 4) -> float:
    """コーパス BLEU（0 から 100、平滑化なし）。どれかの適合率が 0 なら 0。

    式: eq-bleu  出典: papineni2002bleu, 2.3 節; post2018call
    """
    precisions, penalty = bleu_parts(hyps, refs, max_n)
    if min(precisions) == 0:
        return 0.0
    return 100 * penalty * math.exp(sum(map(math.log, precisions)) / max_n)


def argmax_links(weights: Float[Tensor, "T S"]) -> set[tuple[int, int]]:
    """行ごとに最も重い列を選び、(訳文の位置, 原文の位置) の組にする。"""
    return set(enumerate(weights.argmax(dim=-1).tolist()))


def aer(links: Sequence[Links], sure: Sequence[Links], possible: Sequence[Links]) -> float:
    """アラインメント誤り率（0 が最良）。links は出力、sure と possible は正解で、文ごとに並べる。

    sure は必ず当てるべき組、possible は当てても誤りでない組。数は全文で足してから割る。
    式: eq-aer  出典: och2003systematic, 5 節
    """
    _check_pairs(links, sure)
    _check_pairs(links, possible)
    hits, size = 0, 0
    for a, s, p in zip(links, sure, possible, strict=True):
        hits += len(a & s) + len(a & (p | s))
        size += len(a) + len(s)
    require(size > 0, "出力と正解を合わせて、一つ以上の組が必要です", size)
    return 1 - hits / size
