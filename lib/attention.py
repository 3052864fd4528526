"""Attention: スコアを付け、softmax で重みにし、重みで値を混ぜる。

B バッチ  T 見る側の長さ  S 見られる側の長さ  D モデルの次元  H ヘッドの数
K クエリとキー（ヘッド一つ）の次元  J 値の次元

mask は真偽値で、True が「見てよい」。スコアと同じ形に広げられれば、どんな形でもよい。
trace に辞書を渡すと、途中のテンソルが入る。
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lib.checks import require

Queries = Float[Tensor, "*B T K"]
Keys = Float[Tensor, "*B S K"]
Values = Float[Tensor, "*B S J"]
Weights = Float[Tensor, "*B T S"]  # スコアも同じ形
Attended = tuple[Float[Tensor, "*B T J"], Weights]  # (文脈ベクトル, 重み)
KeysValues = tuple[Float[Tensor, "B H _ K"], Float[Tensor, "B H _ K"]]  # ヘッドごと
Hidden = Float[Tensor, "B T D"]  # 位置ごとのベクトル
Memory = Float[Tensor, "B S D"]
Mask = Bool[Tensor, "..."]
Trace = dict | None


def branch(trace: Trace, name: str | int) -> Trace:
    """trace の中の、その名前の枝（なければ作る）。trace を取っていなければ None。"""
    return None if trace is None else trace.setdefault(name, {})


def note(trace: Trace, **tensors: Tensor) -> None:
    """途中のテンソルを trace に書き留める。trace を取っていなければ何もしない。"""
    if trace is not None:
        trace.update(tensors)


def masked_softmax(scores: Weights, mask: Mask | None = None) -> Weights:
    """スコアを、行ごとに和が 1 の重みにする。見てはいけない位置の重みは、ちょうど 0 になる。

    見てよい位置が一つもない行があれば ValueError。
    式: eq-attention-weights  出典: bahdanau2015neural, 式 (6)
    """
    if mask is not None:
        if not mask.any(dim=-1).all():
            raise ValueError(
                "マスクの各行には、見てよい位置（True）が一つ以上必要です。"
                f"一つもない行の数: {(~mask.any(dim=-1)).sum().item()}"
            )
        scores = torch.where(mask, scores, -torch.inf)
    return scores.softmax(dim=-1)  # α_{t,s}


def attend(scores: Weights, values: Values, mask: Mask | None = None) -> Attended:
    """スコアから (文脈ベクトル, 重み)。文脈ベクトルは、値を重みで平均したもの。

    式: eq-context  出典: bahdanau2015neural, 式 (5)
    """
    weights = masked_softmax(scores, mask)
    return weights @ values, weights


def dot_scores(q: Queries, k: Keys) -> Weights:
    """内積スコア q·k。

    式: eq-dot-score  出典: luong2015effective, 3.1 節
    """
    return q @ k.mT


def scaled_dot_scores(q: Queries, k: Keys) -> Weights:
    """内積を √d_k で割ったスコア。成分が独立で平均 0、分散 1 なら、スコアの分散も 1 になる。

    式: eq-attention  出典: vaswani2017attention, 3.2.1 節
    """
    return dot_scores(q / math.sqrt(q.shape[-1]), k)  # 小さい q の方を割っておく


def dot_attention(q: Queries, k: Keys, v: Values, mask: Mask | None = None) -> Attended:
    """内積スコアの Attention。(文脈ベクトル, 重み) を返す。

    式: eq-dot-score, eq-context  出典: luong2015effective, 3.1 節
    """
    return attend(dot_scores(q, k), v, mask)


def attention(q: Queries, k: Keys, v: Values, mask: Mask | None = None) -> Attended:
    """縮尺付き内積の Attention。(文脈ベクトル, 重み) を返す。

    式: eq-attention  出典: vaswani2017attention, 式 (1)
    """
    return attend(scaled_dot_scores(q, k), v, mask)


def causal_mask(
    length: int, device: torch.device | None = None, *, past: int = 0
) -> Bool[Tensor, "T S"]:
    """自分と、自分より前だけを見てよいマスク（左下が True）。形は (length, past + length)。

    past は、すでに読み終えた位置の数。どの行からも見てよい。
    式: eq-attention  出典: vaswani2017attention, 3.2.3 節
    """
    return torch.ones(length, past + length, dtype=torch.bool, device=device).tril(past)


class AdditiveAttention(nn.Module):
    """加法スコア v·tanh(W_q q + W_k k) の Attention。

    式: eq-additive-score  出典: bahdanau2015neural, 付録 A.1.2
    """

    def __init__(self, d_query: int, d_key: int, d_attn: int):
        super().__init__()
        self.w_q = nn.Linear(d_query, d_attn, bias=False)
        self.w_k = nn.Linear(d_key, d_attn, bias=False)
        self.v = nn.Linear(d_attn, 1, bias=False)

    def scores(
        self, query: Float[Tensor, "B T Dq"], keys: Float[Tensor, "B S Dk"]
    ) -> Float[Tensor, "B T S"]:
        """見る側と見られる側の、すべての組のスコア。途中の大きさは (B, T, S, d_attn)。"""
        pairs = self.w_q(query)[:, :, None] + self.w_k(keys)[:, None]
        return self.v(pairs.tanh())[..., 0]

    def forward(
        self,
        query: Float[Tensor, "B T Dq"],
        keys: Float[Tensor, "B S Dk"],
        values: Float[Tensor, "B S Dv"],
        mask: Mask | None = None,
    ) -> tuple[Float[Tensor, "B T Dv"], Float[Tensor, "B T S"]]:
        """(文脈ベクトル, 重み) を返す。"""
        return attend(self.scores(query, keys), values, mask)


class MultiHeadAttention(nn.Module):
    """H 個のヘッドが別々に見て、結果をつなぎ、W^O で混ぜる。バイアスはない。

    rotate に (x, start) → x の関数を置くと、クエリとキーを位置の分だけ回す（RoPE）。
    d_model がヘッドの数で割り切れなければ ValueError。
    式: eq-multi-head  出典: vaswani2017attention, 3.2.2 節
    """

    rotate: Callable | None = None

    def __init__(self, d_model: int, n_heads: int):
        super().__init__()
        divides = n_heads > 0 and d_model % n_heads == 0
        require(divides, "d_model はヘッドの数で割り切れる値が必要です", d_model, n_heads)
        self.n_heads = n_heads
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, d_model, bias=False)
        self.w_v = nn.Linear(d_model, d_model, bias=False)
        self.w_o = nn.Linear(d_model, d_model, bias=False)

    def split(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B {self.n_heads} S K"]:
        """最後の軸をヘッドに分け、ヘッドの軸を前に出す。"""
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def keys_values(self, memory: Memory, start: int = 0) -> KeysValues:
        """位置 start からの、見られる側のキーとバリュー。覚えておけば、計算し直さなくてよい。"""
        k, v = self.split(self.w_k(memory)), self.split(self.w_v(memory))
        return (k if self.rotate is None else self.rotate(k, start)), v

    def attend_to(
        self, x: Hidden, kv: KeysValues, mask: Mask | None = None, trace: Trace = None
    ) -> tuple[Hidden, Float[Tensor, "B H T S"]]:
        """x が、用意のできたキーとバリューを見る。(出力, ヘッドごとの重み) を返す。"""
        q, (k, v) = self.split(self.w_q(x)), kv
        if self.rotate is not None:
            q = self.rotate(q, k.shape[2] - q.shape[2])  # x は、系列の最後の T 個
        context, weights = attention(q, k, v, mask)  # ヘッドごとに (B, H, T, K)
        output = self.w_o(context.transpose(1, 2).flatten(-2))  # つないで (B, T, D)
        note(trace, input=x, q=q, k=k, v=v, weights=weights, context=context, output=output)
        return output, weights

    def forward(
        self, x: Hidden, memory: Memory, mask: Mask | None = None, trace: Trace = None
    ) -> tuple[Hidden, Float[Tensor, "B H T S"]]:
        """x が memory を見る。memory が x 自身なら Self-、別の系列なら Cross-Attention。"""
        return self.attend_to(x, self.keys_values(memory), mask, trace)
