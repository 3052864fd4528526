"""Loss, schedule, loop: torch's values, values by hand, determinism."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from lib.decode import greedy
from lib.text import BOS, EOS, PAD, collate
from lib.train import TrainConfig, fit, next_token_loss, warmup_cosine
from lib.transformer import Transformer, TransformerConfig


def test_loss_is_torchs_and_padding_never_counts():
    torch.manual_seed(0)
    logits = torch.randn(3, 5, 7, dtype=torch.float64)
    targets = torch.randint(1, 7, (3, 5))
    targets[1, 2:] = PAD
    for smoothing in (0.0, 0.1):
        expected = F.cross_entropy(
            logits[targets != PAD], targets[targets != PAD], label_smoothing=smoothing
        )
        torch.testing.assert_close(next_token_loss(logits, targets, smoothing), expected)
    changed = logits.clone()
    changed[targets == PAD] = 100.0
    torch.testing.assert_close(next_token_loss(changed, targets), next_token_loss(logits, targets))
    assert next_token_loss(torch.zeros(1, 2, 7), torch.ones(1, 2).long()).item() == pytest.approx(
        math.log(7)
    )


def test_worked_example_of_five_words():
    logits = torch.tensor([[[-math.inf, 3.2, 1.1, 0.5, -0.8, 0.2]]], dtype=torch.float64)
    logits.requires_grad_()
    loss = next_token_loss(logits, torch.tensor([[1]]))
    loss.backward()
    assert loss.item() == pytest.approx(0.229336, abs=1e-6)
    expected = [0, -0.204939, 0.097360, 0.053433, 0.014562, 0.039584]
    assert logits.grad[0, 0].tolist() == pytest.approx(expected, abs=1e-6)


def test_smoothing_mixes_in_the_mean_over_the_vocabulary():
    logits = torch.randn(2, 3, 7, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    targets = torch.tensor([[4, 2, PAD], [6, PAD, PAD]])
    log_probs = logits.log_softmax(-1)[targets != PAD]  # three tokens
    told = -log_probs[torch.arange(3), torch.tensor([4, 2, 6])].mean()
    mixed = 0.8 * told - 0.2 * log_probs.mean()
    torch.testing.assert_close(next_token_loss(logits, targets, 0.2), mixed)


def test_a_transformer_learns_a_small_task_by_heart():
    torch.manual_seed(0)
    words = [[5, 6], [6, 7, 8], [4], [8, 8, 4, 5], [7, 4, 6], [5, 8, 7], [6, 4]]
    pairs = [([*w, EOS], [BOS, *reversed(w), EOS]) for w in words]
    sizes = {"src_vocab": 9, "tgt_vocab": 9, "d_model": 22, "n_heads": 2, "d_ff": 31}
    model = Transformer(TransformerConfig(**sizes))

    def loss(model, batch):
        src, tgt = batch
        return next_token_loss(model(src, tgt[:, :-1]), tgt[:, 1:])

    losses = fit(model, loss, pairs, collate, TrainConfig(steps=97, batch_size=5, lr=1e-2))
    assert losses[-1] < 0.02 * losses[0]
    src, tgt = collate(pairs)
    outputs = greedy(model.step, model.start(src), [7] * len(pairs))
    assert outputs == [[i for i in row[1:] if i != PAD] for row in tgt.tolist()]


def test_schedule_by_hand():
    factors = [warmup_cosine(i, 10, 0.4) for i in range(10)]
    assert factors[:4] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert factors[4] == pytest.approx(1.0)
    assert factors[7] == pytest.approx(0.5)
    assert all(0 < f <= 1 for f in factors)
    assert factors[4:] == sorted(factors[4:], reverse=True)
    assert warmup_cosine(0, 1, 0.0) == 1


def toy(seed, steps=60):
    torch.manual_seed(3)
    model = nn.Linear(5, 2)
    examples = [(x, x[:2] * 2) for x in torch.randn(37, 5)]

    def collate(batch):
        return tuple(map(torch.stack, zip(*batch, strict=True)))

    def loss(model, batch):
        return F.mse_loss(model(batch[0]), batch[1])

    seen = []
    losses = fit(
        model,
        loss,
        examples,
        collate,
        TrainConfig(steps=steps, batch_size=11, lr=0.1, seed=seed),
        on_step=lambda i, value: seen.append((i, value)),
    )
    assert seen == list(enumerate(losses))
    return model, losses


def test_fit_learns_and_is_decided_by_its_seed():
    model, losses = toy(0)
    assert losses[-1] < 0.01 * losses[0]
    assert len(losses) == 60
    assert not model.training
    again, same = toy(0)
    assert same == losses
    torch.testing.assert_close(again.weight, model.weight, rtol=0, atol=0)
    assert toy(1)[1] != losses


def test_the_gradient_is_clipped():
    model = nn.Linear(1, 1, bias=False)
    norms = []

    def loss(model, batch):
        if model.weight.grad is not None:
            norms.append(model.weight.grad.norm().item())
        return 1e6 * model(batch).sum()

    fit(model, loss, [torch.ones(1)] * 3, torch.stack, TrainConfig(steps=3, clip=0.5))
    assert norms == pytest.approx([0.5, 0.5], rel=1e-3)


def test_the_bar_is_quiet_in_a_book_build(monkeypatch, capsys):
    monkeypatch.setenv("BOOK_STATIC", "1")
    toy(0, steps=2)
    assert capsys.readouterr().err == ""
    monkeypatch.delenv("BOOK_STATIC")
    toy(0, steps=2)
    assert "2/2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: next_token_loss(torch.zeros(1, 2, 3), torch.zeros(1, 2).long()), "PAD でない目標"),
        (lambda: warmup_cosine(5, 5, 0.1), "5 未満"),
        (lambda: warmup_cosine(0, 5, 1.0), "warmup は 0 以上 1 未満"),
        (
            lambda: fit(nn.Linear(1, 1), lambda m, b: b, [], list, TrainConfig(steps=1)),
            "一つ以上の例",
        ),
    ],
)
def test_bad_input_is_refused_in_japanese(call, message):
    with pytest.raises(ValueError, match=message):
        call()
