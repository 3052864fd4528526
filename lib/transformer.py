"""Transformer: エンコーダとデコーダのブロック、その積み重ね、翻訳機。

B バッチ  S 原文の長さ  T 訳文の長さ  V 語彙  D モデルの次元

学習（forward）も生成（step）も、同じ decode を通る。trace に辞書を渡すと、途中のテンソルが
すべて入る。たとえば trace["decoder"][1]["cross"]["weights"] の軸は、文、ヘッド、訳文、原文。
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lib.attention import KeysValues, Mask, MultiHeadAttention, Trace, branch, causal_mask, note
from lib.checks import require
from lib.layers import FeedForward, Hidden, Residual
from lib.positional import sinusoidal
from lib.text import padding_mask


def visible(src: Int[Tensor, "B S"]) -> Bool[Tensor, "B 1 1 S"]:
    """原文で見てよい位置。詰めもの（PAD）は見せない。</s> も見せたくなければ、ここで外す。"""
    return padding_mask(src)[:, None, None]


def grow(past: KeysValues | None, new: KeysValues) -> KeysValues:
    """キャッシュ。これまでのキーとバリューの後ろに、新しい位置の分をつなぐ。"""
    if past is None:
        return new
    return torch.cat([past[0], new[0]], dim=2), torch.cat([past[1], new[1]], dim=2)


class EncoderBlock(nn.Module):
    """Self-Attention と FFN を、それぞれ近道で囲む。

    式: eq-multi-head, eq-ffn  出典: vaswani2017attention, 3.1 節
    """

    def __init__(
        self, d_model: int, n_heads: int, d_ff: int, dropout: float, norm_first: bool, ffn="relu"
    ):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.ffn = FeedForward(d_model, d_ff, dropout, ffn)
        self.around_self = Residual(d_model, dropout, norm_first)
        self.around_ffn = Residual(d_model, dropout, norm_first)

    def forward(self, x: Hidden, mask: Mask | None, trace: Trace = None) -> Hidden:
        """互いを見て混ぜ、位置ごとに変換する。"""
        y = self.around_self.enter(x)
        y, _ = self.self_attention(y, y, mask, branch(trace, "self"))
        x = self.around_self.leave(x, y)

        y = self.around_ffn.enter(x)
        x = self.around_ffn.leave(x, self.ffn(y, branch(trace, "ffn")))
        note(trace, output=x)
        return x


class DecoderBlock(nn.Module):
    """Self-Attention、Cross-Attention、FFN を、それぞれ近道で囲む。

    式: eq-multi-head, eq-ffn  出典: vaswani2017attention, 3.1 節
    """

    def __init__(
        self, d_model: int, n_heads: int, d_ff: int, dropout: float, norm_first: bool, ffn="relu"
    ):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.ffn = FeedForward(d_model, d_ff, dropout, ffn)
        self.around_self = Residual(d_model, dropout, norm_first)
        self.around_cross = Residual(d_model, dropout, norm_first)
        self.around_ffn = Residual(d_model, dropout, norm_first)

    def forward(
        self,
        x: Hidden,
        past: KeysValues | None,
        self_mask: Mask | None,
        source: KeysValues,
        source_mask: Mask | None,
        trace: Trace = None,
    ) -> tuple[Hidden, KeysValues]:
        """(出力, ここまでの訳文のキーとバリュー) を返す。

        past は前回までに読んだ訳文の、source は原文のキーとバリュー。
        """
        y = self.around_self.enter(x)
        past = grow(past, self.self_attention.keys_values(y))  # キャッシュはここで伸びる
        y, _ = self.self_attention.attend_to(y, past, self_mask, branch(trace, "self"))
        x = self.around_self.leave(x, y)

        y = self.around_cross.enter(x)
        y, _ = self.cross_attention.attend_to(y, source, source_mask, branch(trace, "cross"))
        x = self.around_cross.leave(x, y)

        y = self.around_ffn.enter(x)
        x = self.around_ffn.leave(x, self.ffn(y, branch(trace, "ffn")))
        note(trace, output=x)
        return x, past


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Transformer の大きさと形。

    norm_first は Pre-LN（True）か Post-LN（False）か。tie_output は、出力の行列を訳文の埋め込みと
    共有する。share_embedding は、原文と訳文で埋め込みを共有する（語彙の大きさが同じとき）。
    ffn は、位置ごとの変換の種類（relu、gelu、swiglu）。
    """

    src_vocab: int
    tgt_vocab: int
    d_model: int = 64
    n_heads: int = 4
    n_layers: int = 2
    d_ff: int = 256
    dropout: float = 0.0
    norm_first: bool = True
    tie_output: bool = True
    share_embedding: bool = False
    ffn: str = "relu"


class Transformer(nn.Module):
    """エンコーダ・デコーダ型の Transformer。src は </s> で終わり、tgt は <s> で始まる番号の列。

    式: eq-multi-head, eq-ffn  出典: vaswani2017attention; press2017using（行列の共有）
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        src, tgt, d = config.src_vocab, config.tgt_vocab, config.d_model
        same = src == tgt or not config.share_embedding
        require(same, "埋め込みを共有するには、語彙の大きさが同じでなければなりません", src, tgt)
        self.config, layers = config, range(config.n_layers)
        sizes = (d, config.n_heads, config.d_ff, config.dropout, config.norm_first, config.ffn)
        self.tgt_embedding = self.src_embedding = nn.Embedding(tgt, d)
        if not config.share_embedding:
            self.src_embedding = nn.Embedding(src, d)
        self.encoder = nn.ModuleList(EncoderBlock(*sizes) for _ in layers)
        self.decoder = nn.ModuleList(DecoderBlock(*sizes) for _ in layers)
        # Pre-LN の近道は正規化されないまま出てくるので、最後に一度だけ正規化する
        self.encoder_norm, self.decoder_norm = (
            nn.LayerNorm(d) if config.norm_first else nn.Identity() for _ in range(2)
        )
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(d, tgt, bias=False)
        if config.tie_output:
            self.output.weight = self.tgt_embedding.weight
        for table in (self.src_embedding, self.tgt_embedding):
            nn.init.normal_(table.weight, std=d**-0.5)  # √D 倍すると、成分の標準偏差が 1

    def embed(self, table: nn.Embedding, ids: Int[Tensor, "B T"], start: int = 0) -> Hidden:
        """埋め込みを √D 倍し、start 番目からの位置エンコーディングを足す。

        式: eq-positional-encoding  出典: vaswani2017attention, 3.4 節
        """
        x = table(ids) * math.sqrt(self.config.d_model)
        return self.dropout(x + sinusoidal(ids.shape[1], x.shape[-1], start=start).to(x))

    def encode(self, src: Int[Tensor, "B S"], trace: Trace = None) -> Float[Tensor, "B S D"]:
        """原文を読み、位置ごとのベクトル（memory）にする。すべて PAD の文は ValueError。"""
        x, mask = self.embed(self.src_embedding, src), visible(src)
        note(trace, src_embedding=x)
        for i, block in enumerate(self.encoder):
            x = block(x, mask, branch(branch(trace, "encoder"), i))
        memory = self.encoder_norm(x)
        note(trace, memory=memory)
        return memory

    def start(self, src: Int[Tensor, "B S"], trace: Trace = None) -> dict:
        """訳し始めの状態。エンコーダも、原文のキーとバリューも、ここで一度だけ計算する。"""
        memory = self.encode(src, trace)
        return {
            "source": [block.cross_attention.keys_values(memory) for block in self.decoder],
            "source_mask": visible(src),
            "past": [None] * len(self.decoder),
            "past_mask": padding_mask(src[:, :0]),  # まだ一語も読んでいない (B, 0)
        }

    def decode(
        self, tgt: Int[Tensor, "B T"], state: dict, trace: Trace = None
    ) -> tuple[Float[Tensor, "B T V"], dict]:
        """訳文の続き tgt を読む。(次のトークンの logits, 伸びた状態) を返す。"""
        length, read = tgt.shape[1], state["past_mask"].shape[1]
        seen = torch.cat([state["past_mask"], padding_mask(tgt)], dim=1)
        mask = causal_mask(length, tgt.device, past=read) & seen[:, None, None]  # (B, 1, T, 全長)
        x, past = self.embed(self.tgt_embedding, tgt, start=read), []
        note(trace, tgt_embedding=x)
        for i, block in enumerate(self.decoder):
            source, look = state["source"][i], branch(branch(trace, "decoder"), i)
            x, kv = block(x, state["past"][i], mask, source, state["source_mask"], look)
            past.append(kv)
        logits = self.output(self.decoder_norm(x))
        note(trace, logits=logits)
        return logits, {**state, "past": past, "past_mask": seen}

    def forward(
        self, src: Int[Tensor, "B S"], tgt: Int[Tensor, "B T"], trace: Trace = None
    ) -> Float[Tensor, "B T V"]:
        """学習。<s> から始まる訳文を一度に読み、位置ごとに、次のトークンの logits を返す。"""
        return self.decode(tgt, self.start(src, trace), trace)[0]

    def step(
        self, tokens: Int[Tensor, "B"], state: dict, trace: Trace = None
    ) -> tuple[Float[Tensor, "B V"], dict]:
        """生成。一つ前のトークンを読み、次のトークンの logits と、伸びた状態を返す。"""
        logits, state = self.decode(tokens[:, None], state, trace)
        return logits[:, 0], state
