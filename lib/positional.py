"""位置エンコーディング: 何番目かを、ベクトルで表す。位置は 0 から数える。

B バッチ  T 長さ  D モデルの次元  K クエリとキーの次元

どの方式も、位置 start から length 個分を (length, d_model) の表にして、埋め込みに足す。
RoPE だけは足さずに、クエリとキーを位置の分だけ回す。
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lib.checks import require


def integer(length: int, d_model: int, *, start: int = 0) -> Float[Tensor, "T D"]:
    """位置の番号そのもの。すべての成分に同じ値を置く（だから、直後の層正規化で消える）。

    式: eq-integer-position
    """
    return _positions(length, start)[:, None].expand(-1, d_model).float()


def normalized(length: int, d_model: int, *, start: int = 0) -> Float[Tensor, "T D"]:
    """位置の番号を、ここまでの長さで割った値。長さが変わると、同じ位置の値も変わる。

    式: eq-normalized-position
    """
    return integer(length, d_model, start=start) / (start + length)


def sinusoidal(
    length: int, d_model: int, *, start: int = 0, base: float = 10000.0
) -> Float[Tensor, "T D"]:
    """正弦波の位置エンコーディング。偶数の成分が sin、奇数の成分が cos。

    奇数の d_model は組にできないので ValueError。
    式: eq-positional-encoding  出典: vaswani2017attention, 3.5 節
    """
    angle = _angles(length, d_model, start, base)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


def rotate(
    x: Float[Tensor, "*B T K"], *, start: int = 0, base: float = 10000.0
) -> Float[Tensor, "*B T K"]:
    """RoPE。隣り合う二成分の組を、位置に比例した角度だけ回す。長さは変わらない。

    回したクエリとキーの内積は、位置の差だけで決まる。奇数の K は ValueError。
    式: eq-rope  出典: su2021roformer, 式 (34)
    """
    angle = _angles(x.shape[-2], x.shape[-1], start, base).to(x)  # (T, K/2)
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = (even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos())
    return torch.stack(turned, dim=-1).flatten(-2)


def _positions(length: int, start: int) -> Float[Tensor, "T"]:
    require(length > 0 and start >= 0, "length は 1 以上、start は 0 以上です", length, start)
    return torch.arange(start, start + length, dtype=torch.float64)


def _angles(length: int, width: int, start: int, base: float) -> Float[Tensor, "T half"]:
    """位置 × 角速度。角速度は組ごとに 1 から 1/base の近くまで、等比で遅くなる。"""
    require(width > 0 and width % 2 == 0, "次元は 2 以上の偶数が必要です", width)
    wavelength = base ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    return _positions(length, start)[:, None] / wavelength


class LearnedPositions(nn.Module):
    """学習する位置の表。max_len 個の位置しかなく、それを越えると ValueError。

    出典: devlin2019bert, 3 節
    """

    def __init__(self, max_len: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_len, d_model) * d_model**-0.5)

    def forward(self, length: int, start: int = 0) -> Float[Tensor, "T D"]:
        """位置 start から length 個分。"""
        last = len(self.table) - 1
        require(start + length - 1 <= last, f"位置は 0 から {last} までです", start + length - 1)
        return self.table[start : start + length]


TABLES = {"integer": integer, "normalized": normalized, "sinusoidal": sinusoidal}


class Positions(nn.Module):
    """位置を教える方式を、名前で選ぶ。足す方式は forward で、回す方式（rope）は rotate で働く。"""

    def __init__(self, kind: str, d_model: int, max_len: int = 64):
        super().__init__()
        names = (*TABLES, "learned", "rope", "none")
        require(kind in names, f"位置の方式は {', '.join(names)} です", kind)
        self.kind = kind
        self.learned = LearnedPositions(max_len, d_model) if kind == "learned" else None

    def forward(self, x: Float[Tensor, "B T D"], start: int = 0) -> Float[Tensor, "B T D"]:
        """埋め込み x に位置を足す。"""
        if self.learned is not None:
            return x + self.learned(x.shape[1], start)
        if self.kind not in TABLES:
            return x
        return x + TABLES[self.kind](x.shape[1], x.shape[2], start=start).to(x)

    def rotate(self, x: Float[Tensor, "*B T K"], start: int = 0) -> Float[Tensor, "*B T K"]:
        """クエリかキーを、位置の分だけ回す。"""
        return rotate(x, start=start) if self.kind == "rope" else x
