"""ニューラル言語モデル: 固定の窓を埋め込んで読む NPLM と、両側の窓から中央を当てる CBOW。

B バッチ  C 文脈の語数（NPLM では n-1、CBOW では窓 × 2）  V 語彙  E 埋め込み  N 位置の数
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lib.checks import require
from lib.text import BOS, EOS, PAD

Windows = tuple[Int[Tensor, "N C"], Int[Tensor, "N"]]  # (文脈, 当てる語)


class NPLM(nn.Module):
    """直前 n-1 語の埋め込みを横に並べ、隠れ層を一つ通して次の語のスコアを出す。

    式: eq-nplm  出典: bengio2003neural, 式 (1)
    パラメータの数は V(1+nE+h) + h(1+(n-1)E)。direct=False は埋め込みから出力への直結を省く。
    """

    def __init__(self, vocab_size: int, n: int, d_emb: int, d_hidden: int, direct: bool = True):
        super().__init__()
        require(n >= 2, "NPLM には一語以上の文脈が要り、n は 2 以上が必要です", n)
        self.n = n
        self.embedding = nn.Embedding(vocab_size, d_emb)  # C
        self.hidden = nn.Linear((n - 1) * d_emb, d_hidden)  # H, d
        self.output = nn.Linear(d_hidden, vocab_size)  # U, b
        self.direct = nn.Linear((n - 1) * d_emb, vocab_size, bias=False) if direct else None  # W

    def forward(self, context: Int[Tensor, "B C"]) -> Float[Tensor, "B V"]:
        """文脈の語番号から、次の語の logits。文脈の長さが n-1 でなければ ValueError。"""
        length = context.shape[1]
        require(length == self.n - 1, f"文脈は {self.n - 1} 語が必要です", length)
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


def next_word_windows(sentences: list[list[int]], n: int) -> Windows:
    """各位置の (直前 n-1 語, 次の語)。<s> は n-1 個前に置くだけで予測せず、</s> は予測する。

    式: eq-markov  出典: bengio2003neural, 2 節
    """
    require(sentences, "文が一つ以上必要です", sentences)
    rows = _windows([[BOS] * (n - 1) + list(ids) + [EOS] for ids in sentences], n)
    return rows[:, :-1], rows[:, -1]


def centre_word_windows(sentences: list[list[int]], window: int) -> Windows:
    """各位置の (両側 window 語ずつ, 中央の語)。文の外は PAD。一語の文からは何も作らない。

    式: eq-cbow  出典: mikolov2013efficient, 3.1 節
    """
    outside = [PAD] * window
    padded = [outside + list(ids) + outside for ids in sentences if len(ids) > 1]
    require(padded, "二語以上の文が一つ以上必要です", sentences[:5])
    rows = _windows(padded, 2 * window + 1)
    return torch.cat([rows[:, :window], rows[:, window + 1 :]], dim=1), rows[:, window]


def _windows(sentences: list[list[int]], width: int) -> Int[Tensor, "N width"]:
    """どの文からも、続いた width 語を、一語ずつずらしながら取り出す。"""
    starts = [(ids, t) for ids in sentences for t in range(len(ids) - width + 1)]
    return torch.tensor([ids[t : t + width] for ids, t in starts])


def nearest(embedding: Float[Tensor, "V E"], index: int, k: int) -> list[tuple[int, float]]:
    """コサイン類似度の高い順に k 語の (番号, 類似度)。自分自身は除く。

    式: eq-cosine  出典: mikolov2013efficient, 4 節
    """
    unit = embedding / embedding.norm(dim=1, keepdim=True)
    similarity = unit @ unit[index]  # (V,)
    similarity[index] = -torch.inf
    top = similarity.topk(min(k, len(embedding) - 1))
    return list(zip(top.indices.tolist(), top.values.tolist(), strict=True))
