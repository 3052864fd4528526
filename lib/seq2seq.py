"""系列変換: エンコーダで原文を読み、デコーダで訳文を一語ずつ出す。

B バッチ  S 原文の長さ  T 訳文の長さ  V 訳文の語彙  D 隠れ状態  M 状態と文脈（2D）

attend を渡さなければ、文脈ベクトルは文全体で一本（固定）。渡せば、一歩ごとに原文を見直す。
どちらの場合も残りの部品とパラメータは同じなので、違いは Attention だけになる。
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lib.checks import require
from lib.rnn import make_cell, unroll, unroll_both
from lib.text import padding_mask

Source, Target = Int[Tensor, "B S"], Int[Tensor, "B T"]
Tokens, Trace = Int[Tensor, "B"], dict | None
Logits, Joined = Float[Tensor, "*B V"], Float[Tensor, "*B M"]  # Joined は [s_t; c_t]
Encoded = tuple[Float[Tensor, "B S D"], Float[Tensor, "B D"]]  # (各位置の隠れ状態, c)
Attend = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig:
    """系列変換モデルの大きさと形。

    bidirectional: エンコーダを両側から読む（各方向 d_hidden / 2 次元）。
    score_first: True は Bahdanau の順（前の状態で見てから一歩進む）、False は Luong の順。
    """

    src_vocab: int
    tgt_vocab: int
    d_emb: int = 64
    d_hidden: int = 128
    cell: str = "lstm"
    bidirectional: bool = True
    score_first: bool = True


class Encoder(nn.Module):
    """原文を読み、各位置の隠れ状態と、全体をまとめた一本のベクトル c を返す。

    式: eq-encoder  出典: sutskever2014sequence; bahdanau2015neural, 3.2 節
    """

    def __init__(self, config: Seq2SeqConfig):
        super().__init__()
        sides = 2 if config.bidirectional else 1
        require(config.d_hidden % sides == 0, "両方向では d_hidden は偶数です", config.d_hidden)
        self.width = config.d_hidden // sides
        self.embedding = nn.Embedding(config.src_vocab, config.d_emb)
        self.cell = make_cell(config.cell, config.d_emb, self.width)
        self.back = make_cell(config.cell, config.d_emb, self.width) if sides == 2 else None

    def forward(self, src: Source) -> Encoded:
        """番号の列から (各位置の隠れ状態, c)。PAD は状態を変えない。"""
        x, mask = self.embedding(src), padding_mask(src)
        h = x.new_zeros(len(src), self.width)
        if self.back is not None:
            return unroll_both(self.cell, self.back, x, h, mask)
        hidden, end = unroll(self.cell, x, self.cell.start(h), mask)
        return hidden, end[0]


class Seq2Seq(nn.Module):
    """エンコーダとデコーダ。デコーダの一歩 advance を、学習でも生成でも同じように繰り返す。

    式: eq-decoder  出典: sutskever2014sequence; cho2014learning; bahdanau2015neural
    """

    def __init__(self, config: Seq2SeqConfig, attend: Attend | None = None):
        super().__init__()
        self.config, self.attend, d = config, attend, config.d_hidden
        self.encoder = Encoder(config)
        self.first = nn.Linear(d, d)  # s_0 = tanh(W c)
        self.embedding = nn.Embedding(config.tgt_vocab, config.d_emb)
        self.cell = make_cell(config.cell, config.d_emb + (d if config.score_first else 0), d)
        self.merge = nn.Linear(2 * d, d)  # 状態と文脈ベクトルを一つにする
        self.output = nn.Linear(d, config.tgt_vocab)

    def start(self, src: Source) -> dict:
        """原文を一度だけ読み、生成の始まりの状態を作る。"""
        hidden, c = self.encoder(src)
        s = self.cell.start(torch.tanh(self.first(c)))
        return {"s": s, "hidden": hidden, "c": c, "mask": padding_mask(src)}

    def context(self, s: Float[Tensor, "B D"], state: dict, trace: Trace) -> Tensor:
        """文脈ベクトル。attend がなければ、いつも同じ c。"""
        if self.attend is None:
            return state["c"]
        hidden = state["hidden"]
        context, weights = self.attend(s[:, None], hidden, hidden, state["mask"][:, None])
        if trace is not None:
            trace.setdefault("weights", []).append(weights[:, 0])  # (B, S)
        return context[:, 0]

    def advance(self, tokens: Tokens, state: dict, trace: Trace = None) -> tuple[Joined, dict]:
        """直前のトークンを読んで一歩進む。([s_t; c_t], 新しい状態) を返す。

        trace には、出したトークンごとの注意の重みが順に加わる。
        """
        x, s = self.embedding(tokens), state["s"]
        if self.config.score_first:
            context = self.context(s[0], state, trace)  # s_{t-1} で見る
            s = self.cell(torch.cat([x, context], dim=-1), s)
        else:
            s = self.cell(x, s)
            context = self.context(s[0], state, trace)  # s_t で見る
        return torch.cat([s[0], context], dim=-1), {**state, "s": s}

    def logits(self, joined: Joined) -> Logits:
        """[s_t; c_t] から、次のトークンの logits。"""
        return self.output(torch.tanh(self.merge(joined)))

    def step(self, tokens: Tokens, state: dict, trace: Trace = None) -> tuple[Logits, dict]:
        """直前のトークンから、次のトークンの logits と新しい状態。"""
        joined, state = self.advance(tokens, state, trace)
        return self.logits(joined), state

    def forward(
        self, src: Source, tgt: Target, *, gold: float = 1.0, generator=None, trace: Trace = None
    ) -> Float[Tensor, "B T V"]:
        """<s> で始まる訳文 tgt を入れ、各位置の次のトークンの logits を返す。

        gold は、入力に正解のトークンを使う確率（1 は教師強制、0 は自分の出力だけ）。
        式: eq-teacher-forcing  出典: sutskever2014sequence
        """
        require(0 <= gold <= 1, "gold は 0 以上 1 以下の確率です", gold)
        state, steps = self.start(src), []
        for tokens in tgt.unbind(1):
            if steps:
                use_gold = torch.rand(len(tgt), generator=generator) < gold
                own = tokens if use_gold.all() else self.logits(steps[-1]).argmax(dim=-1)
                tokens = torch.where(use_gold.to(tgt.device), tokens, own)
            joined, state = self.advance(tokens, state, trace)
            steps.append(joined)
        return self.logits(torch.stack(steps, dim=1))  # 全部の歩を、一度の行列の積で
