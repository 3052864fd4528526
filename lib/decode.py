"""復号: 確率を出すモデルから、文を一つ選ぶ。貪欲法、標本抽出、ビームサーチ。

B バッチ  V 語彙  R 選ぶ行の数

どのモデルも step(tokens, state) → (logits, state) として使う。state はテンソル（先頭の軸が B）、
その組・列・辞書を入れ子にしたもの。整数や None はバッチによらない値として、そのまま通す。
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lib.checks import require
from lib.text import BOS, EOS

State = object
Step = Callable[[Tensor, State], tuple[Tensor, State]]
Lengths = Sequence[int]  # 文ごとのトークン数の上限


def select(state: State, rows: Int[Tensor, "R"]) -> State:
    """状態の行を選び直す。終わった文を外すときと、ビームを並べ替えるときに使う。"""
    if isinstance(state, Tensor):
        return state.index_select(0, rows)
    if isinstance(state, dict):
        return {key: select(value, rows) for key, value in state.items()}
    if isinstance(state, tuple | list):
        return type(state)(select(value, rows) for value in state)
    return state


@torch.no_grad()
def _generate(step: Step, state: State, max_len: Lengths, choose: Callable) -> list[list[int]]:
    """choose(logits) が選ぶトークンを足していく。終わった文は、すぐにバッチから外す。"""
    require(max_len and min(max_len) >= 1, "上限は文ごとに 1 以上が必要です", max_len)
    sentences: list[list[int]] = [[] for _ in max_len]
    alive = list(range(len(max_len)))  # まだ終わっていない文の番号。バッチの行の順
    tokens = torch.full((len(alive),), BOS)
    while alive:
        logits, state = step(tokens, state)
        tokens = choose(logits)
        for i, token in zip(alive, tokens.tolist(), strict=True):
            sentences[i].append(token)
        ended = [sentences[i][-1] == EOS or len(sentences[i]) == max_len[i] for i in alive]
        if any(ended):
            alive = [i for i, end in zip(alive, ended, strict=True) if not end]
            rows = (~torch.tensor(ended)).nonzero()[:, 0]
            tokens, state = tokens[rows], select(state, rows)
    return sentences


def greedy(step: Step, state: State, max_len: Lengths) -> list[list[int]]:
    """貪欲法。一歩ごとに、最も確率の高いトークンを選ぶ。

    max_len は文ごとのトークン数の上限（</s> を含む）。返す列に <s> はなく、</s> は出たときだけ
    最後に付く。
    式: eq-greedy  出典: sutskever2014sequence, 3.2 節
    """
    return _generate(step, state, max_len, lambda logits: logits.argmax(dim=-1))


def sample(
    step: Step, state: State, max_len: Lengths, generator: torch.Generator, **shape: Any
) -> list[list[int]]:
    """確率に従ってトークンを引く。

    shape は `shape_logits` の引数（temperature、top_k、top_p）で、確率の低いトークンを減らせる。
    式: eq-temperature  出典: holtzman2020curious
    """

    def choose(logits: Tensor) -> Tensor:
        """文ごとに一つ引く。"""
        probs = shape_logits(logits, **shape).softmax(dim=-1)
        return torch.multinomial(probs, 1, generator=generator)[:, 0]

    return _generate(step, state, max_len, choose)


def shape_logits(
    logits: Float[Tensor, "B V"], temperature=1.0, top_k: int | None = None, top_p=1.0
) -> Float[Tensor, "B V"]:
    """温度で割り、上位 top_k 個、または確率の和が top_p に届くまでの上位だけを残す（他は −∞）。

    式: eq-temperature, eq-top-p  出典: holtzman2020curious
    """
    require(temperature > 0, "温度は正の数が必要です", temperature)
    require(top_k is None or top_k >= 1, "top_k は 1 以上が必要です", top_k)
    require(0 < top_p <= 1, "top_p は 0 より大きく 1 以下が必要です", top_p)
    logits = logits / temperature
    ordered, order = logits.sort(dim=-1, descending=True)
    before = ordered.softmax(dim=-1).cumsum(dim=-1) - ordered.softmax(dim=-1)
    cut = before >= top_p  # 自分より上だけで top_p に届いている
    if top_k is not None:
        cut[:, top_k:] = True
    return logits.masked_fill(cut.scatter(-1, order, cut), -torch.inf)


@dataclass(frozen=True)
class Hypothesis:
    """ビームの中の一つの候補。tokens に <s> は入らない。"""

    tokens: tuple[int, ...]
    log_prob: float

    def score(self, alpha: float) -> float:
        """長さで割り引いた対数確率。alpha が 0 なら対数確率そのもの。

        式: eq-length-penalty  出典: wu2016google, 式 (14)
        """
        return self.log_prob / ((5 + len(self.tokens)) / 6) ** alpha


def _extend(live: list[Hypothesis], logits: Float[Tensor, "B V"], room: int) -> list[tuple]:
    """すべての続きのうち、対数確率の高い room 個。(元の候補の行, 伸びた候補) の列。"""
    so_far = torch.tensor([h.log_prob for h in live], dtype=logits.dtype)
    total = (logits.log_softmax(dim=-1) + so_far[:, None]).flatten()
    best = total.topk(min(room, len(total)))
    grown = []
    for index, log_prob in zip(best.indices.tolist(), best.values.tolist(), strict=True):
        row, token = divmod(index, logits.shape[-1])
        if log_prob > -math.inf:
            grown.append((row, Hypothesis((*live[row].tokens, token), log_prob)))
    return grown


@torch.no_grad()
def beam_search(
    step: Step, state: State, max_len: int, *, width: int, alpha=0.0, trace: list | None = None
) -> list[Hypothesis]:
    """ビームサーチ。一つの文（B = 1）について、候補をスコアの高い順に返す。

    一歩ごとに、続きの全候補から対数確率の高い width 個を残す。</s> で終わった候補はそこで止まり、
    枠を一つ使ったままになる。trace には一歩ごとに、残した候補の列が加わる。
    式: eq-beam  出典: sutskever2014sequence, 3.2 節
    """
    require(width >= 1 and max_len >= 1, "幅と上限は 1 以上が必要です", width, max_len)
    live, done = [Hypothesis((), 0.0)], []
    while live:
        tokens = torch.tensor([(BOS, *h.tokens)[-1] for h in live])
        logits, state = step(tokens, state)
        grown = _extend(live, logits, width - len(done))
        ended = [h for _, h in grown if h.tokens[-1] == EOS or len(h.tokens) == max_len]
        going = [(row, h) for row, h in grown if h not in ended]
        live, done = [h for _, h in going], done + ended
        state = select(state, torch.tensor([row for row, _ in going], dtype=torch.long))
        if trace is not None:
            trace.append([h for _, h in grown])
    return sorted(done, key=lambda h: h.score(alpha), reverse=True)
