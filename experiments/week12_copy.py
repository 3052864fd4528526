"""最初の一語を覚えておく課題で、遅れごとの正解率を RNN と LSTM で測って記録する。

    python experiments/week12_copy.py              # 一本のスレッドで 10 分前後

列は「覚える語、関係のない語 × 遅れ、問いの印」で、問いの印を読んだときに覚える語を答える。
遅れごとに別々のモデルを、同じ回数だけ学習させる。種（SEEDS）ごとに、正解率をすべて残す。
"""

import json
import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from lib.rnn import make_cell, unroll  # noqa: E402
from lib.train import TrainConfig, fit  # noqa: E402

RECORD = Path(__file__).with_suffix(".json")
LAGS = [5, 10, 20, 40, 80]
SEEDS = [0]
SYMBOLS, FILLERS = 8, 4  # 覚える語の種類、関係のない語の種類
D_EMB, D_HIDDEN, STEPS, BATCH, LR = 8, 32, 400, 64, 5e-3
MODELS = {  # 名前 → (セル、初期値)。初期値は RNN なら W_h、LSTM なら忘却ゲートのバイアス
    "rnn": ("rnn", None),
    "rnn_orthogonal": ("rnn", "orthogonal"),
    "lstm_0": ("lstm", 0.0),
    "lstm_2": ("lstm", 2.0),
    "lstm_4": ("lstm", 4.0),
}


class Recall(nn.Module):
    """列を読み終えたときの h から、最初の語を当てる。"""

    def __init__(self, kind, start):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS + FILLERS + 1, D_EMB)
        self.cell = make_cell(kind, D_EMB, D_HIDDEN)
        self.output = nn.Linear(D_HIDDEN, SYMBOLS)
        with torch.no_grad():
            if start == "orthogonal":
                nn.init.orthogonal_(self.cell.w_h.weight)
            elif start is not None:
                self.cell.w_x.bias[D_HIDDEN : 2 * D_HIDDEN] = start

    def forward(self, ids):
        h = torch.zeros(len(ids), D_HIDDEN)
        hidden, _ = unroll(self.cell, self.embedding(ids), self.cell.start(h))
        return self.output(hidden[:, -1])


def examples(n, lag, seed):
    generator = torch.Generator().manual_seed(seed)
    first = torch.randint(SYMBOLS, (n, 1), generator=generator)
    filler = SYMBOLS + torch.randint(FILLERS, (n, lag), generator=generator)
    return torch.cat([first, filler, torch.full((n, 1), SYMBOLS + FILLERS)], 1)


def accuracy(name, lag, seed):
    torch.manual_seed(seed)
    model = Recall(*MODELS[name])
    ids = examples(STEPS * BATCH, lag, seed)
    config = TrainConfig(steps=STEPS, batch_size=BATCH, lr=LR, seed=seed)
    fit(model, lambda m, x: F.cross_entropy(m(x), x[:, 0]), list(ids), torch.stack, config)
    test = examples(2000, lag, 1000 + seed)
    with torch.no_grad():
        return (model(test).argmax(-1) == test[:, 0]).double().mean().item()


def main():
    torch.set_num_threads(1)
    start = time.time()
    found = {name: {lag: [] for lag in LAGS} for name in MODELS}
    for seed in SEEDS:
        for name in MODELS:
            for lag in LAGS:
                found[name][lag].append(accuracy(name, lag, seed))
                print(seed, name, lag, found[name][lag][-1], flush=True)
        record = {
            "command": "python experiments/week12_copy.py",
            "date": datetime.now(UTC).date().isoformat(),
            "versions": {
                "python": platform.python_version(),
                "torch": torch.__version__.split("+")[0],
            },
            "threads": 1,
            "seconds": round(time.time() - start),
            "seeds": SEEDS[: seed + 1],
            "symbols": SYMBOLS,
            "model": {"d_emb": D_EMB, "d_hidden": D_HIDDEN},
            "training": {"steps": STEPS, "batch_size": BATCH, "lr": LR, "clip": 1.0},
            "lags": LAGS,
            "accuracy": found,
        }
        RECORD.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
