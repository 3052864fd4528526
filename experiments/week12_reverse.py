"""列を逆順に写す課題で、固定の一本と Attention を、列の長さごとに比べて記録する。

    python experiments/week12_reverse.py        # 一本のスレッドで 10 分前後

20 種類の記号を並べた、長さ 3 から 20 の列で学習させる。学習率、バッチ、更新の回数は同じ。
学習より長い列（25 と 30）でも測る。
"""

import json
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from lib.attention import dot_attention  # noqa: E402
from lib.decode import greedy  # noqa: E402
from lib.seq2seq import Seq2Seq, Seq2SeqConfig  # noqa: E402
from lib.text import BOS, EOS, collate, pad  # noqa: E402
from lib.train import TrainConfig, fit, next_token_loss  # noqa: E402

RECORD = Path(__file__).with_suffix(".json")
SYMBOLS, FIRST = 20, 4  # 記号の番号は FIRST から
LENGTHS = [4, 8, 12, 16, 20, 25, 30]
STEPS, BATCH, LR, SEED = 1200, 64, 5e-3, 0
D_EMB, D_HIDDEN = 32, 64


def sequence(length, generator):
    return (FIRST + torch.randint(SYMBOLS, (length,), generator=generator)).tolist()


def example(length, generator):
    ids = sequence(length, generator)
    return [*ids, EOS], [BOS, *ids[::-1], EOS]


def examples(n, seed):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(3, 21, (n,), generator=generator).tolist()
    return [example(length, generator) for length in lengths]


def loss_fn(model, batch):
    src, tgt = batch
    return next_token_loss(model(src, tgt[:, :-1]), tgt[:, 1:])


@torch.no_grad()
def exact(model, length, n=500):
    generator = torch.Generator().manual_seed(10_000 + length)
    pairs = [example(length, generator) for _ in range(n)]
    found = greedy(model.step, model.start(pad([s for s, _ in pairs])), [length + 1] * n)
    return sum(f == t[1:] for f, (_, t) in zip(found, pairs, strict=True)) / n


def main():
    torch.set_num_threads(1)
    data, runs = examples(20_000, SEED), {}
    for name, attend in (("fixed", None), ("attention", dot_attention)):
        torch.manual_seed(SEED)
        size = FIRST + SYMBOLS
        config = Seq2SeqConfig(src_vocab=size, tgt_vocab=size, d_emb=D_EMB, d_hidden=D_HIDDEN)
        model = Seq2Seq(config, attend)
        settings = TrainConfig(steps=STEPS, batch_size=BATCH, lr=LR, seed=SEED)
        losses = fit(model, loss_fn, data, collate, settings)
        runs[name] = {
            "parameters": sum(p.numel() for p in model.parameters()),
            "loss": sum(losses[-20:]) / 20,
            "exact": {length: exact(model, length) for length in LENGTHS},
        }
        print(name, runs[name], flush=True)
    record = {
        "command": "python experiments/week12_reverse.py",
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {"python": platform.python_version(), "torch": torch.__version__.split("+")[0]},
        "settings": {"steps": STEPS, "batch_size": BATCH, "lr": LR, "seed": SEED},
        "runs": runs,
    }
    RECORD.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
