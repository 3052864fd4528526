"""学習: 一つの繰り返し。損失、学習率の予定、勾配の切り詰め。

B バッチ  T 長さ  V 語彙
"""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Adam, Optimizer
from tqdm.auto import tqdm

from lib.checks import require
from lib.text import PAD, batches


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """学習の設定。steps は更新の回数、warmup は学習率を上げていく割合（0 以上 1 未満）。"""

    steps: int
    batch_size: int = 64
    lr: float = 5e-3
    warmup: float = 0.15
    betas: tuple[float, float] = (0.9, 0.98)
    clip: float = 1.0
    seed: int = 0


def warmup_cosine(step: int, steps: int, warmup: float) -> float:
    """step 回目（0 から数える）の学習率の倍率。直線で 1 まで上げ、余弦で 0 の手前まで下げる。

    式: eq-warmup-cosine  出典: vaswani2017attention, 5.3 節（前半の考え）
    """
    require(0 <= step < steps, f"step は 0 以上 {steps} 未満が必要です", step)
    require(0 <= warmup < 1, "warmup は 0 以上 1 未満が必要です", warmup)
    rise = max(1, round(warmup * steps))
    if step < rise:
        return (step + 1) / rise
    return 0.5 * (1 + math.cos(math.pi * (step - rise) / (steps - rise)))


def next_token_loss(
    logits: Float[Tensor, "B T V"], targets: Int[Tensor, "B T"], label_smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """次のトークンの交差エントロピー。PAD を除いた、トークン一つあたりの平均（ナット）。

    label_smoothing は、正解の確率のうち語彙全体に均等に配る割合。すべて PAD なら ValueError。
    式: eq-shifted-loss  出典: sutskever2014sequence, 3.2 節; szegedy2016rethinking, 7 節
    """
    require((targets != PAD).any(), "PAD でない目標が一つ以上必要です", targets)
    return F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=PAD, label_smoothing=label_smoothing
    )


def update(model: nn.Module, optimizer: Optimizer, loss: Float[Tensor, ""], clip: float) -> float:
    """一回の更新。勾配を求め、全体の長さを clip 以下に縮め、パラメータを動かす。損失を返す。

    出典: pascanu2013difficulty, 3.2 節（切り詰め）
    """
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    return loss.item()


def progress(steps: int) -> tqdm:
    """0 から steps - 1 まで。ノートブックでは進み具合の棒を出す。本を組むときは出さない。"""
    return tqdm(range(steps), disable="BOOK_STATIC" in os.environ)


def fit(
    model: nn.Module,
    loss_fn: Callable[[nn.Module, object], Tensor],
    examples: Sequence,
    collate: Callable[[list], object],
    config: TrainConfig,
    *,
    on_step: Callable[[int, float], None] | None = None,
) -> list[float]:
    """決めた回数だけ更新し、各回の損失を返す。時間では止めない。

    on_step(更新の番号, 損失) を更新のたびに呼ぶ。例の順は config.seed だけで決まる。
    出典: kingma2015adam
    """
    require(examples, "学習データには、一つ以上の例が必要です", examples)
    optimizer = Adam(model.parameters(), config.lr, config.betas, fused=True)
    order = batches(len(examples), config.batch_size, torch.Generator().manual_seed(config.seed))
    losses = []
    model.train()
    for step in progress(config.steps):
        factor = warmup_cosine(step, config.steps, config.warmup)
        optimizer.param_groups[0]["lr"] = config.lr * factor
        loss = loss_fn(model, collate([examples[i] for i in next(order)]))
        losses.append(update(model, optimizer, loss, config.clip))
        if on_step is not None:
            on_step(step, losses[-1])
    model.eval()
    return losses
