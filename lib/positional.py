"""位置エンコーディング: 何番目かを、ベクトルで表す。

T 長さ  D モデルの次元（偶数）
"""

import torch
from jaxtyping import Float
from torch import Tensor


def sinusoidal(
    length: int, d_model: int, *, start: int = 0, base: float = 10000.0
) -> Float[Tensor, "T D"]:
    """正弦波の位置エンコーディング。位置 start から length 個分。位置は 0 から数える。

    偶数の成分が sin、奇数の成分が cos。奇数の d_model は組にできないので ValueError。
    式: eq-positional-encoding  出典: vaswani2017attention, 3.5 節
    """
    if d_model < 2 or d_model % 2:
        raise ValueError(f"d_model は 2 以上の偶数が必要です。受け取った値: {d_model}")
    if length < 1 or start < 0:
        raise ValueError(f"length は 1 以上、start は 0 以上が必要です: {length}, {start}")
    position = torch.arange(start, start + length, dtype=torch.float64)[:, None]
    wavelength = base ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angle = position / wavelength  # (T, D/2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()
