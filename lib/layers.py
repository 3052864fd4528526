"""深く積むための部品: 位置ごとの変換（FFN）と、近道（残差接続）と層正規化。

どちらも、位置ごとのベクトル（`lib.attention.Hidden`）を受け取り、同じ形を返す。
"""

from torch import nn
from torch.nn import functional as F

from lib.attention import Hidden, Trace, note
from lib.checks import require

GATES = {"relu": F.relu, "gelu": F.gelu, "swiglu": F.silu}


class FeedForward(nn.Module):
    """位置ごとに同じ二層、W_2 φ(W_1 x + b_1) + b_2。ほかの位置は見ない。

    kind は φ を選ぶ。swiglu では、φ の出口をもう一つの変換 W_3 x + b_3 で開け閉めする。
    式: eq-ffn, eq-swiglu  出典: vaswani2017attention, 式 (2); shazeer2020glu, 式 (6)
    """

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0, kind: str = "relu"):
        super().__init__()
        require(kind in GATES, f"FFN は {', '.join(GATES)} です", kind)
        self.gate = GATES[kind]
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.w_3 = nn.Linear(d_model, d_ff) if kind == "swiglu" else None
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Hidden, trace: Trace = None) -> Hidden:
        """どの位置も別々に変換する。"""
        hidden = self.gate(self.w_1(x))  # (B, T, d_ff)
        if self.w_3 is not None:
            hidden = hidden * self.w_3(x)
        output = self.w_2(self.dropout(hidden))
        note(trace, input=x, hidden=hidden, output=output)
        return output


class Residual(nn.Module):
    """部品 f を囲む近道と層正規化。Pre-LN は x + f(LN(x))、Post-LN は LN(x + f(x))。

    式: eq-layer-norm, eq-pre-ln, eq-post-ln  出典: he2016deep; ba2016layer; xiong2020layer
    """

    def __init__(self, d_model: int, dropout: float, norm_first: bool):
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def enter(self, x: Hidden) -> Hidden:
        """部品に入れるもの。"""
        return self.norm(x) if self.norm_first else x  # Pre-LN は入口で正規化する

    def leave(self, x: Hidden, y: Hidden) -> Hidden:
        """近道を通った x に、部品の出力 y を足す。"""
        x = x + self.dropout(y)
        return x if self.norm_first else self.norm(x)  # Post-LN は出口で正規化する
