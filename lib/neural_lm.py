"""ニューラル言語モデル: 固定の窓を埋め込んで読む NPLM と、両側の窓から中央を当てる CBOW。

B バッチ  C 文脈の語数（NPLM では n-1、CBOW では窓 × 2）  V 語彙  E 埋め込み  N 位置の数
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lib.text import BOS, EOS, PAD


class NPLM(nn.Module):
    """直前 n-1 語の埋め込みを横に並べ、隠れ層を一つ通して次の語のスコアを出す。

    式: eq-nplm  出典: bengio2003neural, 式 (1)
    パラメータの数は V(1+nE+h) + h(1+(n-1)E)。direct=False は埋め込みから出力への直結を省く。
    """

    def __init__(self, vocab_size: int, n: int, d_emb: int, d_hidden: int, direct: bool = True):
        super().__init__()
        if n < 2:
            raise ValueError(f"NPLM には一語以上の文脈が要ります（n は 2 以上）。受け取った n: {n}")
        self.n = n
        self.embedding = nn.Embedding(vocab_size, d_emb)  # C
        self.hidden = nn.Linear((n - 1) * d_emb, d_hidden)  # H, d
        self.output = nn.Linear(d_hidden, vocab_size)  # U, b
        self.direct = nn.Linear((n - 1) * d_emb, vocab_size, bias=False) if direct else None  # W

    def forward(self, context: Int[Tensor, "B C"]) -> Float[Tensor, "B V"]:
        """文脈の語番号から、次の語の logits。文脈の長さが n-1 でなければ ValueError。"""
        if context.shape[1] != self.n - 1:
            raise ValueError(
                f"文脈は {self.n - 1} 語が必要です。受け取った語数: {context.shape[1]}"
            )
        x = self.embedding(context).flatten(1)  # (B, C·E)
        logits = self.output(torch.tanh(self.hidden(x)))
        return logits if self.direct is None else logits + self.direct(x)


class CBOW(nn.Module):
    """周りの語の埋め込みの平均から、中央の語のスコアを出す。並べ替えても答えは同じ。

    式: eq-cbow  出典: mikolov2013efficient, 3.1 節
    """

    def __init__(self, vocab_size: int, d_emb: int):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_emb)
        self.output = nn.Linear(d_emb, vocab_size, bias=False)

    def forward(self, context: Int[Tensor, "B C"]) -> Float[Tensor, "B V"]:
        """周りの語番号から、中央の語の logits。PAD（文の外）は平均に入れない。"""
        inside = (context != PAD)[..., None]  # (B, C, 1)
        total = (self.embedding(context) * inside).sum(1)
        return self.output(total / inside.sum(1).clamp(min=1))


def next_word_windows(
    sentences: list[list[int]], n: int
) -> tuple[Int[Tensor, "N C"], Int[Tensor, "N"]]:
    """各位置の (直前 n-1 語, 次の語)。<s> は n-1 個前に置くだけで予測せず、</s> は予測する。

    式: eq-markov  出典: bengio2003neural, 2 節
    """
    contexts, targets = [], []
    for ids in sentences:
        padded = [BOS] * (n - 1) + list(ids) + [EOS]
        for t in range(n - 1, len(padded)):
            contexts.append(padded[t - n + 1 : t])
            targets.append(padded[t])
    if not targets:
        raise ValueError("文が一つもありません。一つ以上の文が必要です。")
    return torch.tensor(contexts), torch.tensor(targets)


def centre_word_windows(
    sentences: list[list[int]], window: int
) -> tuple[Int[Tensor, "N C"], Int[Tensor, "N"]]:
    """各位置の (両側 window 語ずつ, 中央の語)。文の外は PAD。一語の文からは何も作らない。

    式: eq-cbow  出典: mikolov2013efficient, 3.1 節
    """
    contexts, targets = [], []
    for ids in (list(ids) for ids in sentences if len(ids) > 1):
        padded = [PAD] * window + ids + [PAD] * window
        for t, centre in enumerate(ids):
            contexts.append(padded[t : t + window] + padded[t + window + 1 : t + 2 * window + 1])
            targets.append(centre)
    if not targets:
        raise ValueError("二語以上の文がありません。中央と周りの両方が必要です。")
    return torch.tensor(contexts), torch.tensor(targets)


def nearest(embedding: Float[Tensor, "V E"], index: int, k: int) -> list[tuple[int, float]]:
    """コサイン類似度の高い順に k 語の (番号, 類似度)。自分自身は除く。

    式: eq-cosine  出典: mikolov2013efficient, 4 節
    """
    unit = embedding / embedding.norm(dim=1, keepdim=True)
    similarity = unit @ unit[index]  # (V,)
    similarity[index] = -torch.inf
    top = similarity.topk(min(k, len(embedding) - 1))
    return list(zip(top.indices.tolist(), top.values.tolist(), strict=True))
