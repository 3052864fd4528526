"""再帰するネットワーク: Elman の RNN、LSTM、時間方向の展開、RNN 言語モデル。

B バッチ  T 長さ  E 埋め込み（入力）  D 隠れ状態  V 語彙

状態は組で持つ。RNN は (h,)、LSTM は (h, m)。どちらも state[0] が隠れ状態 h。
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

State = tuple[Tensor, ...]
Cell = nn.Module  # RNNCell か LSTMCell


class RNNCell(nn.Module):
    """Elman の RNN の一歩。h_t = tanh(W_x x_t + W_h h_{t-1} + b)。

    式: eq-rnn  出典: elman1990finding
    """

    def __init__(self, d_in: int, d_hidden: int):
        super().__init__()
        self.w_x = nn.Linear(d_in, d_hidden)  # b はここに一つだけ
        self.w_h = nn.Linear(d_hidden, d_hidden, bias=False)

    def start(self, h: Float[Tensor, "B D"]) -> State:
        """隠れ状態を h として始める。"""
        return (h,)

    def forward(self, x: Float[Tensor, "B E"], state: State) -> State:
        """一つの時刻の入力を読み、次の状態を返す。"""
        return (torch.tanh(self.w_x(x) + self.w_h(state[0])),)


class LSTMCell(nn.Module):
    """LSTM の一歩。m_t = f ⊙ m_{t-1} + i ⊙ g、h_t = o ⊙ tanh(m_t)。

    式: eq-lstm  出典: hochreiter1997long; gers2000learning（忘却ゲート f）
    """

    def __init__(self, d_in: int, d_hidden: int):
        super().__init__()
        self.w_x = nn.Linear(d_in, 4 * d_hidden)
        self.w_h = nn.Linear(d_hidden, 4 * d_hidden, bias=False)

    def start(self, h: Float[Tensor, "B D"]) -> State:
        """隠れ状態を h、セル m を 0 として始める。"""
        return (h, torch.zeros_like(h))

    def forward(self, x: Float[Tensor, "B E"], state: State) -> State:
        """一つの時刻の入力を読み、次の状態を返す。"""
        h, m = state
        i, f, g, o = (self.w_x(x) + self.w_h(h)).chunk(4, dim=-1)
        m = f.sigmoid() * m + i.sigmoid() * g.tanh()  # 忘れる分と書き込む分
        return (o.sigmoid() * m.tanh(), m)


CELLS = {"rnn": RNNCell, "lstm": LSTMCell}


def make_cell(kind: str, d_in: int, d_hidden: int) -> Cell:
    """名前からセルを作る。知らない名前は ValueError。"""
    if kind not in CELLS:
        raise ValueError(f"セルは {' か '.join(CELLS)} です。受け取った名前: {kind!r}")
    return CELLS[kind](d_in, d_hidden)


def unroll(
    cell: Cell, x: Float[Tensor, "B T E"], state: State, mask: Bool[Tensor, "B T"] | None = None
) -> tuple[Float[Tensor, "B T D"], State]:
    """セルを左から右へ T 回使う。すべての時刻の h と、最後の状態を返す。

    mask が False の時刻（PAD）では、状態をそのまま次へ渡す。だから詰めものは何も変えない。
    式: eq-unroll  出典: elman1990finding
    """
    hidden = []
    for t, x_t in enumerate(x.unbind(1)):
        new = cell(x_t, state)
        if mask is not None:
            read = mask[:, t, None]
            new = tuple(torch.where(read, a, b) for a, b in zip(new, state, strict=True))
        state = new
        hidden.append(state[0])
    return torch.stack(hidden, dim=1), state


def unroll_both(
    forward_cell: Cell,
    backward_cell: Cell,
    x: Float[Tensor, "B T E"],
    h: Float[Tensor, "B D"],
    mask: Bool[Tensor, "B T"],
) -> tuple[Float[Tensor, "B T 2*D"], Float[Tensor, "B 2*D"]]:
    """左からと右からの二つの展開を並べる。各位置の [h→; h←] と、両端に着いた状態を返す。

    式: eq-bidirectional  出典: bahdanau2015neural, 3.2 節
    """
    right, right_end = unroll(forward_cell, x, forward_cell.start(h), mask)
    left, left_end = unroll(backward_cell, x.flip(1), backward_cell.start(h), mask.flip(1))
    both_ends = torch.cat([right_end[0], left_end[0]], dim=-1)
    return torch.cat([right, left.flip(1)], dim=-1), both_ends


class RNNLM(nn.Module):
    """RNN 言語モデル。これまでのトークンをすべて読んだ h から、次のトークンの logits を出す。

    式: eq-rnn-lm  出典: mikolov2010recurrent
    """

    def __init__(self, vocab_size: int, d_emb: int, d_hidden: int, kind: str = "lstm"):
        super().__init__()
        self.d_hidden = d_hidden
        self.embedding = nn.Embedding(vocab_size, d_emb)
        self.cell = make_cell(kind, d_emb, d_hidden)
        self.output = nn.Linear(d_hidden, vocab_size)

    def start(self, batch_size: int) -> State:
        """何も読んでいない状態。h_0 = 0。"""
        return self.cell.start(self.output.weight.new_zeros(batch_size, self.d_hidden))

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        """<s> で始まる番号の列から、各位置の次のトークンの logits。

        詰めものは右にあって後から読むので、マスクがなくても、前の位置の予測は変わらない。
        """
        hidden, _ = unroll(self.cell, self.embedding(ids), self.start(len(ids)))
        return self.output(hidden)

    def step(self, tokens: Int[Tensor, "B"], state: State) -> tuple[Float[Tensor, "B V"], State]:
        """トークンを一つ読み、次のトークンの logits と新しい状態を返す（生成に使う）。"""
        state = self.cell(self.embedding(tokens), state)
        return self.output(state[0]), state
