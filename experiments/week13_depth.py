"""近道と層正規化の置き方ごとに、深さを変えて学習させ、損失を記録する。

    python experiments/week13_depth.py              # 全部（一本のスレッドで 20 分前後）
    python experiments/week13_depth.py pre post     # 置き方を選ぶ（記録のその部分を書き換える）

課題は、16 種類の記号の乱数列で、三つ前の記号を当てること。何も学ばなければ損失は ln 16 になる。
置き方のほかは、幅、ヘッド、初期値の作り方、学習率、バッチ、更新の回数をすべてそろえる。
"""

import argparse
import json
import math
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

from lib.attention import MultiHeadAttention  # noqa: E402
from lib.layers import FeedForward  # noqa: E402
from lib.positional import sinusoidal  # noqa: E402

RECORD = Path(__file__).with_suffix(".json")
DEPTHS = [2, 6, 12, 24]
SEEDS = [0]
D, HEADS, D_FF, SYMBOLS, LENGTH, BATCH, BACK = 64, 4, 256, 16, 16, 32, 3
STEPS, LR, WARMUP = 400, 1e-3, 200
KINDS = {
    "plain": "近道も層正規化もない",
    "norm": "層正規化だけ",
    "residual": "近道だけ",
    "post": "Post-LN",
    "pre": "Pre-LN（最後の層正規化あり）",
    "post_warmup": "Post-LN、はじめの 200 回をウォームアップ",
}


class Around(nn.Module):
    """部品 f を、決まった置き方の近道と層正規化で囲む。"""

    def __init__(self, part, kind, d):
        super().__init__()
        self.part, self.kind, self.norm = part, kind, nn.LayerNorm(d)

    def f(self, x):
        if isinstance(self.part, MultiHeadAttention):
            return self.part(x, x)[0]
        return self.part(x)

    def forward(self, x):
        if self.kind == "plain":
            return self.f(x)
        if self.kind == "residual":
            return x + self.f(x)
        if self.kind == "norm":
            return self.norm(self.f(x))
        if self.kind == "pre":
            return x + self.f(self.norm(x))
        return self.norm(x + self.f(x))


class Model(nn.Module):
    """埋め込みと位置、depth 個のブロック、出口。Pre-LN は最後に一度だけ正規化する。"""

    def __init__(self, kind, depth):
        super().__init__()
        self.embedding, self.output = nn.Embedding(SYMBOLS, D), nn.Linear(D, SYMBOLS)
        parts = []
        for _ in range(depth):
            parts.append(Around(MultiHeadAttention(D, HEADS), kind, D))
            parts.append(Around(FeedForward(D, D_FF), kind, D))
        self.blocks = nn.Sequential(*parts)
        self.last = nn.LayerNorm(D) if kind == "pre" else nn.Identity()
        for name, p in self.named_parameters():
            if p.dim() == 2 and "embedding" not in name:
                nn.init.xavier_uniform_(p)
        nn.init.normal_(self.embedding.weight, std=D**-0.5)

    def forward(self, ids):
        x = self.embedding(ids) * math.sqrt(D) + sinusoidal(ids.shape[1], D)
        return self.output(self.last(self.blocks(x)))


def train(kind, depth, seed):
    """損失の列。数でなくなったら、そこで止める。"""
    torch.manual_seed(seed)
    model = Model(kind.removesuffix("_warmup"), depth)
    optimizer = torch.optim.Adam(model.parameters(), lr=LR, fused=True)
    losses = []
    for step in range(STEPS):
        if kind.endswith("_warmup"):
            optimizer.param_groups[0]["lr"] = LR * min(1, (step + 1) / WARMUP)
        ids = torch.randint(SYMBOLS, (BATCH, LENGTH))
        logits = model(ids)[:, BACK:]
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, :-BACK].flatten())
        if not loss.isfinite():
            break
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


def summary(losses):
    """最後の 20 回の平均と、10 回ごとの平均。途中で数でなくなったら、最後の値はない。"""
    done = len(losses) == STEPS
    tens = [sum(losses[i : i + 10]) / 10 for i in range(0, len(losses) - 9, 10)]
    return {
        "loss": sum(losses[-20:]) / 20 if done else None,
        "stopped_at": None if done else len(losses),
        "curve": [round(x, 4) for x in tens],
    }


def write(kind, depth, seed, found):
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    record |= {
        "command": "python experiments/week13_depth.py",
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {"python": platform.python_version(), "torch": torch.__version__.split("+")[0]},
        "threads": 1,
        "task": f"{SYMBOLS} symbols, length {LENGTH}, the symbol {BACK} positions back",
        "model": {"d_model": D, "n_heads": HEADS, "d_ff": D_FF, "init": "xavier_uniform"},
        "training": {"optimizer": "Adam", "lr": LR, "batch": BATCH, "steps": STEPS},
        "floor_without_learning": math.log(SYMBOLS),
        "depths": DEPTHS,
        "seeds": SEEDS,
        "kinds": KINDS,
    }
    runs = record.setdefault("runs", {}).setdefault(kind, {}).setdefault(str(depth), {})
    runs[str(seed)] = found
    record["runs"][kind] = dict(sorted(record["runs"][kind].items(), key=lambda x: int(x[0])))
    RECORD.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", "utf-8")


def main(kinds):
    torch.set_num_threads(1)
    for seed in SEEDS:
        for depth in DEPTHS:
            for kind in kinds:
                start = time.time()
                found = summary(train(kind, depth, seed))
                found["seconds"] = round(time.time() - start)
                write(kind, depth, seed, found)
                shown = {k: v for k, v in found.items() if k != "curve"}
                print(kind, depth, seed, shown, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="深さごとの学習の記録を作ります。")
    parser.add_argument("kinds", nargs="*", default=list(KINDS))
    main(parser.parse_args().kinds)
