"""Transformer の片側だけを使う言語モデル: 左だけを見る GPT 型と、両側を見る BERT 型。

B バッチ  T 長さ  V 語彙

部品はエンコーダのブロックだけ。二つの型の違いは、マスク（causal）と、学習の問いだけにある。
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lib.attention import Trace, branch, causal_mask, note
from lib.checks import require
from lib.positional import Positions
from lib.transformer import EncoderBlock, visible


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig:
    """言語モデルの大きさと形。

    causal は、左だけを見る（True、GPT 型）か、両側を見る（False、BERT 型）か。
    position は `lib.positional.Positions` の方式、max_len は learned の位置の数。
    """

    vocab_size: int
    d_model: int = 64
    n_heads: int = 4
    n_layers: int = 2
    d_ff: int = 256
    norm_first: bool = True
    causal: bool = True
    position: str = "sinusoidal"
    max_len: int = 64
    ffn: str = "relu"


class TransformerLM(nn.Module):
    """ブロックを積み、各位置で語彙の logits を出す。

    causal なら次のトークンの、そうでなければその位置のトークンの logits として学習する。
    式: eq-causal-lm, eq-masked-lm  出典: radford2018improving; devlin2019bert
    """

    def __init__(self, config: LanguageModelConfig):
        super().__init__()
        self.config, d = config, config.d_model
        self.embedding = nn.Embedding(config.vocab_size, d)
        self.positions = Positions(config.position, d, config.max_len)
        sizes = (d, config.n_heads, config.d_ff, 0.0, config.norm_first, config.ffn)
        self.blocks = nn.ModuleList(EncoderBlock(*sizes) for _ in range(config.n_layers))
        for block in self.blocks:
            block.self_attention.rotate = self.positions.rotate
        self.norm = nn.LayerNorm(d) if config.norm_first else nn.Identity()
        self.output = nn.Linear(d, config.vocab_size, bias=False)
        self.output.weight = self.embedding.weight  # 入口と出口で同じ表を使う
        nn.init.normal_(self.embedding.weight, std=d**-0.5)

    def forward(self, ids: Int[Tensor, "B T"], trace: Trace = None) -> Float[Tensor, "B T V"]:
        """番号の列から、位置ごとの logits。すべて PAD の列は ValueError。"""
        x = self.embedding(ids) * math.sqrt(self.config.d_model)
        x, mask = self.positions(x), visible(ids)
        if self.config.causal:
            mask = mask & causal_mask(ids.shape[1], ids.device)  # 右を見せない
        for i, block in enumerate(self.blocks):
            x = block(x, mask, branch(branch(trace, "blocks"), i))
        logits = self.output(self.norm(x))
        note(trace, logits=logits)
        return logits

    def start(self, batch_size: int) -> Int[Tensor, "B 0"]:
        """まだ一つも読んでいない状態。状態は、読んだトークンの列そのもの。"""
        return torch.zeros(batch_size, 0, dtype=torch.long, device=self.output.weight.device)

    def step(
        self, tokens: Int[Tensor, "B"], state: Int[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B V"], Int[Tensor, "B T1"]]:
        """トークンを一つ読み、次のトークンの logits を返す。GPT 型でなければ ValueError。"""
        require(self.config.causal, "左から順に生成できるのは causal=True のモデルです", False)
        ids = torch.cat([state, tokens[:, None]], dim=1)
        return self(ids)[:, -1], ids
