"""位置の方式ごとに、学習した長さの外でどれだけ正しく動くかを測って記録する。

    python experiments/week13_positions.py            # 六つの方式、種は二つ
    python experiments/week13_positions.py rope none  # 一部だけ（記録のその部分を書き換える）

課題は「三つ前の記号を答える」。16 種類の記号の無作為な列を、長さ 8〜32 で学習させ、
長さ 128 までの列の位置ごとの正答率を測る。因果マスクは掛けず、どの位置からも全体が見える。
"""

import argparse
import json
import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from lib.text import PAD  # noqa: E402
from lib.train import TrainConfig, fit, next_token_loss  # noqa: E402
from lib.variants import LanguageModelConfig, TransformerLM  # noqa: E402

RECORD = Path(__file__).with_suffix(".json")
SYMBOLS, OFFSET, FIRST = 16, 3, 4  # 番号 0〜3 は特別な記号
SHORTEST, LONGEST = 8, 32
LENGTHS = [8, 12, 16, 20, 24, 28, 32, 36, 40, 48, 56, 64, 80, 96, 128]
STEPS, SEEDS, CURVE = 1500, [0], 96
# 整数と正規化は、Pre-LN では none と同じ出力になる。位置が届く Post-LN（-post）で学習させる
KINDS = ["sinusoidal", "learned", "rope", "none", "integer-post", "normalized-post"]


def targets(ids):
    """各位置の答え。三つ前がない先頭の三か所は PAD（問わない）。"""
    answer = torch.full_like(ids, PAD)
    answer[:, OFFSET:] = ids[:, :-OFFSET]
    return answer


def build(name, seed):
    """学習する位置の表は、測る長さまで用意する。学習に出ない行は、初めの乱数のまま残る。"""
    torch.manual_seed(seed)
    position, _, post = name.partition("-")
    config = LanguageModelConfig(
        vocab_size=FIRST + SYMBOLS,
        causal=False,
        position=position,
        max_len=max(LENGTHS),
        norm_first=not post,
    )
    return TransformerLM(config)


def train(name, seed):
    """長さは更新のたびに一様に選び、列はそのたびに新しく作る。"""
    model, generator = build(name, seed), torch.Generator().manual_seed(seed)

    def fresh(batch):
        length = torch.randint(SHORTEST, LONGEST + 1, (1,), generator=generator).item()
        return torch.randint(FIRST, FIRST + SYMBOLS, (len(batch), length), generator=generator)

    def loss(model, ids):
        return next_token_loss(model(ids), targets(ids))

    config = TrainConfig(steps=STEPS, lr=1e-3, seed=seed)
    losses = fit(model, loss, range(64), fresh, config)
    return model, losses


@torch.no_grad()
def right(model, length, sentences=500):
    """新しい列での、位置ごとの正解の割合 (length - 3,)。"""
    generator = torch.Generator().manual_seed(1000 + length)
    ids = torch.randint(FIRST, FIRST + SYMBOLS, (sentences, length), generator=generator)
    found = torch.cat([model(part).argmax(-1) for part in ids.split(100)])
    return (found == ids.roll(OFFSET, dims=1))[:, OFFSET:].double().mean(0)


def measure(name, seed):
    start = time.time()
    model, losses = train(name, seed)
    rows = {length: right(model, length) for length in LENGTHS}
    beyond = {n: r[LONGEST - OFFSET :].mean().item() for n, r in rows.items() if n > LONGEST}
    found = {
        "seed": seed,
        "loss": sum(losses[-50:]) / 50,
        "accuracy": [round(r.mean().item(), 4) for r in rows.values()],
        "accuracy_beyond": {n: round(x, 4) for n, x in beyond.items()},
        "by_position": [round(x, 3) for x in rows[CURVE].tolist()],
        "seconds": round(time.time() - start),
    }
    print(name, seed, f"{found['loss']:.3f}", found["accuracy"], found["seconds"], flush=True)
    return found


def main(names, seeds):
    torch.set_num_threads(1)
    for seed in seeds:
        for name in names:
            found = measure(name, seed)
            record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
            kinds = record.get("kinds", {})
            kept = [row for row in kinds.get(name, []) if row["seed"] != seed]
            kinds[name] = sorted([*kept, found], key=lambda row: row["seed"])
            record = {
                "command": "python experiments/week13_positions.py",
                "date": datetime.now(UTC).date().isoformat(),
                "versions": {
                    "python": platform.python_version(),
                    "torch": torch.__version__.split("+")[0],
                },
                "threads": 1,
                "task": {"symbols": SYMBOLS, "offset": OFFSET, "trained": [SHORTEST, LONGEST]},
                "training": {"steps": STEPS, "batch_size": 64, "lr": 1e-3, "seeds": SEEDS},
                "lengths": LENGTHS,
                "by_position_length": CURVE,
                "chance": 1 / SYMBOLS,
                "kinds": kinds,
            }
            RECORD.write_text(json.dumps(record, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="位置の方式ごとの外挿の記録を作ります。")
    parser.add_argument("kinds", nargs="*", default=KINDS)
    parser.add_argument("--seeds", nargs="*", type=int, default=SEEDS)
    args = parser.parse_args()
    main(args.kinds, args.seeds)
