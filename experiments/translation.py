"""Four translators on the same data, learning rate, batch and number of updates.

Run: python experiments/translation.py  (writes experiments/translation.json; about 10 minutes)
"""

import argparse
import json
import platform
import sys
import time
from datetime import date
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lib import corpus, decode, metrics, text
from lib.attention import AdditiveAttention, dot_attention
from lib.seq2seq import Seq2Seq, Seq2SeqConfig
from lib.train import TrainConfig, fit, next_token_loss
from lib.transformer import Transformer, TransformerConfig

OUT = Path(__file__).with_suffix(".json")
WINDOWS = {
    "3-5": (3, 5),
    "6-8": (6, 8),
    "9-12": (9, 12),
    "13-16": (13, 16),
    "17-20": (17, 20),
    "21+": (21, 60),
}
PER_WINDOW = 200
MODELS = ("transformer", "fixed", "bahdanau", "luong")


def build(name, sizes):
    if name == "transformer":
        return Transformer(TransformerConfig(**sizes))
    if name == "luong":
        return Seq2Seq(Seq2SeqConfig(**sizes, score_first=False), dot_attention)
    attend = AdditiveAttention(128, 128, 64) if name == "bahdanau" else None
    return Seq2Seq(Seq2SeqConfig(**sizes), attend)


def loss_fn(model, batch):
    src, tgt = batch
    return next_token_loss(model(src, tgt[:, :-1]), tgt[:, 1:])


@torch.no_grad()
def translate(model, pairs, ja, en):
    src = text.pad([ja.encode(p.ja, eos=True) for p in pairs])
    bounds = [2 * len(p.ja) + 4 for p in pairs]
    return [en.decode(ids) for ids in decode.greedy(model.step, model.start(src), bounds)]


@torch.no_grad()
def alignment(model, name, pairs, ja, en):
    """AER of the weights labelled by the emitted word, with the reference as prefix."""
    src, tgt = text.collate(text.encode_pairs(pairs, ja, en))
    trace = {}
    model(src, tgt[:, :-1], trace=trace)
    if name == "transformer":
        weights = trace["decoder"][1]["cross"]["weights"].mean(dim=1)  # the last layer
    else:
        weights = torch.stack(trace["weights"], dim=1)
    links = [
        metrics.argmax_links(w[: len(p.en), : len(p.ja)])
        for w, p in zip(weights, pairs, strict=True)
    ]
    return metrics.aer(links, [p.sure for p in pairs], [p.possible for p in pairs])


def windows(split):
    """At least PER_WINDOW unseen sentences of each length, drawn by length where needed."""
    used = {p.ja for p in split.train} | {p.ja for p in split.dev} | {corpus.HELD_OUT.ja}
    found = {}
    for name, (low, high) in WINDOWS.items():
        chosen = {p.ja: p for p in split.test if low <= len(p.ja) <= high}
        more = corpus.sample_pairs(corpus.hakoniwa(), 2000, 1, min_len=low, max_len=high)
        for p in more:
            if len(chosen) >= PER_WINDOW:
                break
            if p.ja not in used:
                chosen.setdefault(p.ja, p)
        found[name] = list(chosen.values())
    return found


def run(name, seed, train, split, steps):
    ja = text.Vocab.build(p.ja for p in split.train)
    en = text.Vocab.build(p.en for p in split.train)
    examples = text.encode_pairs(train, ja, en)
    torch.manual_seed(seed)
    model = build(name, {"src_vocab": len(ja), "tgt_vocab": len(en)})
    losses = fit(model, loss_fn, examples, text.collate, TrainConfig(steps=steps, seed=seed))
    score = partial(translate, model, ja=ja, en=en)
    hyps = score(split.test)
    refs = [list(p.en) for p in split.test]
    by_length = {}
    for window, pairs in windows(split).items():
        answers = [list(p.en) for p in pairs]
        ours = score(pairs)
        by_length[window] = {
            "n": len(pairs),
            "exact": metrics.exact_match(ours, answers),
            "bleu": metrics.bleu(ours, answers),
        }
    aligned = name != "fixed"
    return {
        "model": name,
        "seed": seed,
        "parameters": sum(p.numel() for p in model.parameters()),
        "loss": sum(losses[-20:]) / 20,
        "exact": metrics.exact_match(hyps, refs),
        "bleu": metrics.bleu(hyps, refs),
        "aer": alignment(model, name, split.test[:500], ja, en) if aligned else None,
        "held_out": " ".join(score([corpus.HELD_OUT])[0]),
        "by_length": by_length,
    }


def milliseconds(name, split, updates=30):
    """CPU time of one update on one thread, in milliseconds (the first ten warm up)."""
    ja = text.Vocab.build(p.ja for p in split.train)
    en = text.Vocab.build(p.en for p in split.train)
    examples = text.encode_pairs(split.train, ja, en)
    marks = []
    torch.manual_seed(0)
    model = build(name, {"src_vocab": len(ja), "tgt_vocab": len(en)})
    config = TrainConfig(steps=10 + updates)
    on_step = lambda step, loss: marks.append(time.process_time())  # noqa: E731
    fit(model, loss_fn, examples, text.collate, config, on_step=on_step)
    return 1000 * (marks[-1] - marks[9]) / updates


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--times", action="store_true", help="only measure the time of an update")
    args = parser.parse_args()
    torch.set_num_threads(1)
    split = corpus.mt_split()
    if args.times:
        result = json.loads(args.out.read_text())
        result["milliseconds"] = {name: milliseconds(name, split) for name in MODELS}
        args.out.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n")
        return
    short = [p for p in split.train if len(p.ja) <= 12]
    result = {
        "command": "python experiments/translation.py",
        "date": date.today().isoformat(),
        "versions": {"torch": torch.__version__.split("+")[0], "python": platform.python_version()},
        "settings": {"steps": args.steps, "lr": 5e-3, "batch": 64, "train": len(split.train)},
        "short_train": len(short),
        "milliseconds": {name: milliseconds(name, split) for name in MODELS},
        "runs": [],
        "short_runs": [],
    }
    plan = [(0, "runs", split.train, MODELS), (0, "short_runs", short, ("fixed", "bahdanau"))]
    for seed, kind, train, names in plan:
        for name in names:
            result[kind].append(run(name, seed, train, split, args.steps))
            args.out.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
