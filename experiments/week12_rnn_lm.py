"""RNN 言語モデルと LSTM 言語モデルを、第 11 週の成績表と同じ条件で学習させて記録する。

    python experiments/week12_rnn_lm.py            # 全部（一本のスレッドで 10 分前後）
    python experiments/week12_rnn_lm.py rnn        # 一種類だけ（記録のその部分を書き換える）

設定は開発データだけで選ぶ。学習率は三千文で短く学習させて選び、更新の回数は大きさごとに選ぶ。
選んだ設定で種を二つ動かし、テストデータは最後に一度だけ使う。
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
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from lib import metrics, ngram  # noqa: E402
from lib.corpus import lm_split  # noqa: E402
from lib.neural_lm import NPLM, next_word_windows  # noqa: E402
from lib.rnn import RNNLM  # noqa: E402
from lib.text import PAD, Vocab, pad  # noqa: E402
from lib.train import TrainConfig, fit, next_token_loss  # noqa: E402

RECORD = Path(__file__).with_suffix(".json")
SIZES = [1000, 3000, 10_000]
RATES = [1e-2, 2e-2, 4e-2]
STEPS = [75, 150, 300, 600]  # 開発データの PPL が 1 割悪くなれば、そこで止める
SEEDS = [0, 1]
D_EMB, D_HIDDEN = 24, 64  # 第 11 週の NPLM と同じ
NPLM_STEPS = {1000: 250, 3000: 500, 10_000: 900}

SPLIT = lm_split(10_000)
TRAIN, DEV, TEST = ([p.ja for p in part] for part in SPLIT)
VOCAB = Vocab.build(TRAIN)
WORDS = [*VOCAB.words[4:], "</s>"]
FLOOR = torch.tensor([-p.log_prob for p in SPLIT.test], dtype=torch.float64)
LENGTHS = torch.tensor([len(s) + 1 for s in TEST])


def encode(sentences):
    return [VOCAB.encode(s, bos=True, eos=True) for s in sentences]


def loss_of(model, ids):
    return next_token_loss(model(ids[:, :-1]), ids[:, 1:])


def train(kind, size, steps, lr, seed):
    torch.manual_seed(seed)
    model = RNNLM(len(VOCAB), D_EMB, D_HIDDEN, kind)
    config = TrainConfig(steps=steps, lr=lr, seed=seed)
    fit(model, loss_of, encode(TRAIN[:size]), pad, config)
    return model


@torch.no_grad()
def sentence_nats(model, sentences):
    """文ごとの驚きの合計（ナット）。"""
    totals = []
    for start in range(0, len(sentences), 500):
        ids = pad(encode(sentences[start : start + 500]))
        nats = F.cross_entropy(
            model(ids[:, :-1]).transpose(1, 2), ids[:, 1:], ignore_index=PAD, reduction="none"
        )
        totals.append(nats.double().sum(1))
    return torch.cat(totals)


def ppl(nats, sentences):
    return math.exp(nats.sum().item() / sum(len(s) + 1 for s in sentences))


def gap(nats, other):
    """一文あたりの差の平均と標準誤差を、平均のトークン数で割ったもの。"""
    mean, se = metrics.mean_difference(nats.tolist(), other.tolist())
    length = LENGTHS.double().mean().item()
    return [mean / length, se / length]


def kneser_ney(size):
    """第 11 週で選ばれた n = 3 と、開発データで選ぶ D。"""
    models = [ngram.kneser_ney(TRAIN[:size], 3, d, WORDS) for d in (0.6, 0.7, 0.8)]
    nats = [[sum(-math.log(p) for p in m.probs(s)) for s in DEV] for m in models]
    best = min(range(3), key=lambda i: sum(nats[i]))
    totals = [sum(-math.log(p) for p in models[best].probs(s)) for s in TEST]
    return torch.tensor(totals, dtype=torch.float64)


def nplm(size):
    """第 11 週で選ばれた設定（n = 5、直結なし、学習率 0.02）の NPLM。"""
    torch.manual_seed(0)
    model = NPLM(len(VOCAB), 5, d_emb=D_EMB, d_hidden=D_HIDDEN, direct=False)
    contexts, targets = next_word_windows([VOCAB.encode(s) for s in TRAIN[:size]], 5)
    fit(
        model,
        lambda m, batch: F.cross_entropy(m(batch[0]), batch[1]),
        range(len(targets)),
        lambda rows: (contexts[rows], targets[rows]),
        TrainConfig(steps=NPLM_STEPS[size], batch_size=256, lr=2e-2),
    )
    with torch.no_grad():
        contexts, targets = next_word_windows([VOCAB.encode(s) for s in TEST], 5)
        nats = F.cross_entropy(model(contexts), targets, reduction="none").double()
    return torch.stack([x.sum() for x in nats.split(LENGTHS.tolist())])


def run(kind, old):
    """一種類のセルについて、設定を選び、二つの種で測る。"""
    start = time.time()
    rates = {lr: ppl(sentence_nats(train(kind, 3000, 300, lr, 0), DEV), DEV) for lr in RATES}
    lr = min(rates, key=rates.get)
    print(kind, "学習率", rates, flush=True)
    rows = {}
    for size in SIZES:
        tried, models = {}, {}
        for steps in STEPS:
            models[steps] = train(kind, size, steps, lr, SEEDS[0])
            tried[steps] = ppl(sentence_nats(models[steps], DEV), DEV)
            print(kind, size, steps, f"開発 {tried[steps]:.3f}", flush=True)
            if tried[steps] > 1.1 * min(tried.values()):
                break
        steps = min(tried, key=tried.get)
        chosen = [models[steps], *(train(kind, size, steps, lr, seed) for seed in SEEDS[1:])]
        nats = [sentence_nats(model, TEST) for model in chosen]
        rows[size] = {
            "steps": steps,
            "dev_ppl_by_steps": tried,
            "test_ppl_by_seed": [ppl(n, TEST) for n in nats],
            "test_ppl": ppl(nats[0], TEST),
            "gap_to_floor": gap(nats[0], FLOOR),
            "nplm_minus_this": gap(old[size]["nplm"], nats[0]),
        }
        print(kind, size, rows[size], flush=True)
    return {
        "lr": lr,
        "dev_ppl_by_lr": rates,
        "parameters": sum(p.numel() for p in RNNLM(len(VOCAB), D_EMB, D_HIDDEN, kind).parameters()),
        "sizes": rows,
        "seconds": round(time.time() - start),
    }


def week11():
    """並べて読むための、第 11 週の二つの行。"""
    rows = {}
    for size in SIZES:
        found = {"nplm": nplm(size), "kneser_ney": kneser_ney(size)}
        rows[size] = {
            name: {"test_ppl": ppl(nats, TEST), "gap_to_floor": gap(nats, FLOOR)}
            for name, nats in found.items()
        }
        print("第 11 週", size, rows[size], flush=True)
    return rows


def main(kinds):
    torch.set_num_threads(1)
    old = {size: {"nplm": nplm(size)} for size in SIZES}
    for kind in kinds:
        found = week11() if kind == "week11" else run(kind, old)
        record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
        record |= {
            "command": "python experiments/week12_rnn_lm.py",
            "date": datetime.now(UTC).date().isoformat(),
            "versions": {
                "python": platform.python_version(),
                "torch": torch.__version__.split("+")[0],
            },
            "threads": 1,
            "data": "lm_split(10_000), test 5,000 sentences",
            "model": {"d_emb": D_EMB, "d_hidden": D_HIDDEN, "batch_size": 64, "seeds": SEEDS},
            "floor_ppl": ppl(FLOOR, TEST),
            kind: found,
        }
        RECORD.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="第 12 週の言語モデルの記録を作ります。")
    parser.add_argument("kinds", nargs="*", default=["week11", "rnn", "lstm"])
    main(parser.parse_args().kinds)
