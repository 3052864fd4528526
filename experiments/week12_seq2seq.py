"""系列変換の長い学習。教師強制、自分の出力、少しずつ切り替え、Attention つきを比べて記録する。

    python experiments/week12_seq2seq.py               # 種 0, 1, 2（一本のスレッドで 10 分前後）
    python experiments/week12_seq2seq.py --seeds 0     # 種を選ぶ（ほかの種の記録は残る）

コーパス、モデルの大きさ、学習率、バッチは 12/03 のページと同じで、更新の回数だけが多い。
四つの条件のあいだで違うのは、学習の入力（正解を使う確率）か、Attention の有無だけである。
"""

import argparse
import json
import platform
import sys
from datetime import date
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from lib import corpus, decode, metrics, text  # noqa: E402
from lib.attention import AdditiveAttention  # noqa: E402
from lib.seq2seq import Seq2Seq, Seq2SeqConfig  # noqa: E402
from lib.train import TrainConfig, fit, next_token_loss  # noqa: E402

RECORD = Path(__file__).with_suffix(".json")
STEPS, LR, BATCH, D = 600, 1e-2, 64, 128
WINDOWS = {"3–5": (3, 5), "6–8": (6, 8), "9–12": (9, 12), "13+": (13, 99)}
CONDITIONS = {  # 更新 k 回目に、正解を入力に使う確率
    "forced": lambda k: 1.0,
    "scheduled": lambda k: 1 - k / STEPS,
    "free": lambda k: 0.0,
    "attention": lambda k: 1.0,
}

SPLIT = corpus.mt_split(8000, n_dev=300, n_test=1000, preset="short")
JA = text.Vocab.build(p.ja for p in SPLIT.train)
EN = text.Vocab.build(p.en for p in SPLIT.train)


def make_model(condition):
    config = Seq2SeqConfig(
        src_vocab=len(JA), tgt_vocab=len(EN), d_hidden=D, bidirectional=False, score_first=True
    )
    return Seq2Seq(config, AdditiveAttention(D, D, D) if condition == "attention" else None)


@torch.no_grad()
def token_accuracy(model, pairs):
    """語の正解率。（正解の前置き、自分の前置き）。"""
    src, tgt = text.collate(text.encode_pairs(pairs, JA, EN))
    targets = tgt[:, 1:]
    counted = targets != text.PAD
    rates = []
    for gold in (1.0, 0.0):
        right = model(src, tgt[:, :-1], gold=gold).argmax(dim=-1) == targets
        rates.append((right & counted).sum().item() / counted.sum().item())
    return rates


@torch.no_grad()
def translate(model, pairs):
    src, _ = text.collate(text.encode_pairs(pairs, JA, EN))
    found = decode.greedy(model.step, model.start(src), [2 * len(p.ja) + 4 for p in pairs])
    return [EN.decode(ids) for ids in found]


def scores(model, pairs):
    hyps, refs = translate(model, pairs), [list(p.en) for p in pairs]
    gold, own = token_accuracy(model, pairs)
    return {
        "n": len(pairs),
        "exact": metrics.exact_match(hyps, refs),
        "bleu": metrics.bleu(hyps, refs),
        "token_gold": gold,
        "token_own": own,
    }


def run(condition, seed):
    torch.manual_seed(seed)
    model, generator = make_model(condition), torch.Generator().manual_seed(seed)
    curve, done = [], [0]

    def loss_fn(model, batch):
        src, tgt = batch
        gold = CONDITIONS[condition](done[0])
        logits = model(src, tgt[:, :-1], gold=gold, generator=generator)
        return next_token_loss(logits, tgt[:, 1:])

    def on_step(step, loss):
        done[0] = step + 1
        if done[0] % 100 == 0:
            curve.append([done[0], loss, *token_accuracy(model, SPLIT.dev)])

    config = TrainConfig(steps=STEPS, lr=LR, batch_size=BATCH, seed=seed)
    fit(
        model,
        loss_fn,
        text.encode_pairs(SPLIT.train, JA, EN),
        text.collate,
        config,
        on_step=on_step,
    )
    lengths = {}
    for name, (low, high) in WINDOWS.items():
        lengths[name] = scores(model, [p for p in SPLIT.test if low <= len(p.ja) <= high])
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "curve": curve,  # 更新の回数、損失、開発データの語の正解率（正解、自分の前置き）
        "test": scores(model, SPLIT.test),
        "lengths": lengths,
        "held_out": translate(model, [corpus.HELD_OUT])[0],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1])
    parser.add_argument("--conditions", nargs="*", default=list(CONDITIONS))
    args = parser.parse_args()
    torch.set_num_threads(1)
    runs = json.loads(RECORD.read_text(encoding="utf-8"))["runs"] if RECORD.exists() else {}
    settings = {
        "steps": STEPS, "lr": LR, "batch_size": BATCH, "d_emb": 64, "d_hidden": D,
        "cell": "lstm", "train": len(SPLIT.train), "test": len(SPLIT.test), "preset": "short",
        "torch": torch.__version__.split("+")[0], "python": platform.python_version(),
    }  # fmt: skip
    for seed in args.seeds:
        for condition in args.conditions:
            result = run(condition, seed)
            runs.setdefault(condition, {})[str(seed)] = result
            record = {
                "command": "python experiments/week12_seq2seq.py",
                "date": date.today().isoformat(),
                "settings": settings,
                "runs": runs,
            }
            RECORD.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", "utf-8")
            print(condition, seed, result["test"], flush=True)


if __name__ == "__main__":
    main()
