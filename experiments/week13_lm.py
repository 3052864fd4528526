"""Transformer の言語モデル（GPT 型）を、第 11・12 週の成績表と同じ条件で学習させて記録する。

    python experiments/week13_lm.py        # 一本のスレッドで 10 分前後

設定は開発データだけで選ぶ。学習率は三千文で短く学習させて選び、更新の回数は大きさごとに選ぶ。
選んだ設定で種を二つ動かし、テストデータは最後に一度だけ使う。
"""

import json
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from experiments.week12_rnn_lm import (  # noqa: E402
    DEV,
    FLOOR,
    SEEDS,
    SIZES,
    TEST,
    TRAIN,
    VOCAB,
    encode,
    gap,
    loss_of,
    ppl,
    sentence_nats,
)
from lib.text import pad  # noqa: E402
from lib.train import TrainConfig, fit  # noqa: E402
from lib.variants import LanguageModelConfig, TransformerLM  # noqa: E402

RECORD = Path(__file__).with_suffix(".json")
RATES = [2e-3, 5e-3, 1e-2]
STEPS = [75, 150, 300, 600, 1200]  # 開発データの PPL が 1 割悪くなれば、そこで止める


def train(size, steps, lr, seed, **overrides):
    torch.manual_seed(seed)
    model = TransformerLM(LanguageModelConfig(vocab_size=len(VOCAB), **overrides))
    config = TrainConfig(steps=steps, lr=lr, seed=seed)
    fit(model, loss_of, encode(TRAIN[:size]), pad, config)
    return model


def measure(size, lr):
    """更新の回数を開発データで選び、二つの種をテストデータで測る。"""
    tried, models = {}, {}
    for steps in STEPS:
        models[steps] = train(size, steps, lr, SEEDS[0])
        tried[steps] = ppl(sentence_nats(models[steps], DEV), DEV)
        print(size, steps, f"開発 {tried[steps]:.3f}", flush=True)
        if tried[steps] > 1.1 * min(tried.values()):
            break
    steps = min(tried, key=tried.get)
    chosen = [models[steps], *(train(size, steps, lr, seed) for seed in SEEDS[1:])]
    nats = [sentence_nats(model, TEST) for model in chosen]
    return {
        "steps": steps,
        "dev_ppl_by_steps": tried,
        "test_ppl_by_seed": [ppl(n, TEST) for n in nats],
        "test_ppl": ppl(nats[0], TEST),
        "gap_to_floor": gap(nats[0], FLOOR),
    }


def main():
    torch.set_num_threads(1)
    rates = {lr: ppl(sentence_nats(train(3000, 300, lr, 0), DEV), DEV) for lr in RATES}
    lr = min(rates, key=rates.get)
    print("学習率", rates, flush=True)
    sizes = {size: measure(size, lr) for size in SIZES}
    modern = {"position": "rope", "ffn": "swiglu", "d_ff": 171}  # パラメータの数をそろえる
    model = train(SIZES[-1], sizes[SIZES[-1]]["steps"], lr, SEEDS[0], **modern)
    count = {
        name: sum(
            p.numel()
            for p in TransformerLM(
                LanguageModelConfig(vocab_size=len(VOCAB), **settings)
            ).parameters()
        )
        for name, settings in (("plain", {}), ("modern", modern))
    }
    record = {
        "command": "python experiments/week13_lm.py",
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {"python": platform.python_version(), "torch": torch.__version__.split("+")[0]},
        "data": "lm_split(10_000), test 5,000 sentences",
        "lr": lr,
        "dev_ppl_by_lr": rates,
        "parameters": count,
        "sizes": sizes,
        "modern_ppl": ppl(sentence_nats(model, TEST), TEST),
        "floor_ppl": ppl(FLOOR, TEST),
    }
    RECORD.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
