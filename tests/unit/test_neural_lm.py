"""NPLM and CBOW: parameter count, gradients, order, windows."""

import pytest
import torch
from torch import nn

from lib.neural_lm import CBOW, NPLM, centre_word_windows, nearest, next_word_windows
from lib.text import BOS, EOS, PAD


@pytest.mark.parametrize(("direct", "expected"), [(True, 3_522_050), (False, 1_122_050)])
def test_parameter_count_of_the_worked_case(direct, expected):
    with torch.device("meta"):
        model = NPLM(10_000, n=5, d_emb=60, d_hidden=50, direct=direct)
    assert sum(p.numel() for p in model.parameters()) == expected


@pytest.mark.parametrize("direct", [True, False])
def test_nplm_is_the_formula(direct):
    torch.manual_seed(0)
    model = NPLM(11, n=4, d_emb=3, d_hidden=5, direct=direct).double()
    context = torch.tensor([[1, 7, 4], [10, 0, 2]])
    for row, logits in zip(context, model(context), strict=True):
        x = torch.cat([model.embedding.weight[i] for i in row])
        y = model.output.bias + model.output.weight @ torch.tanh(
            model.hidden.bias + model.hidden.weight @ x
        )
        if direct:
            y = y + model.direct.weight @ x
        torch.testing.assert_close(logits, y)


def test_gradient_at_the_logits_is_p_minus_onehot():
    torch.manual_seed(1)
    model = NPLM(7, n=3, d_emb=2, d_hidden=5).double()
    logits = model(torch.tensor([[1, 2]]))
    logits.retain_grad()
    nn.functional.cross_entropy(logits, torch.tensor([3])).backward()
    expected = logits.softmax(-1) - nn.functional.one_hot(torch.tensor([3]), 7)
    torch.testing.assert_close(logits.grad, expected.detach())
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


def test_gradients_by_finite_differences():
    torch.manual_seed(2)
    model = NPLM(5, n=3, d_emb=2, d_hidden=3).double()
    context, target = torch.tensor([[1, 4], [2, 0]]), torch.tensor([3, 1])
    weight = model.embedding.weight.detach().clone().requires_grad_()

    def loss(w):
        logits = torch.func.functional_call(model, {"embedding.weight": w}, (context,))
        return nn.functional.cross_entropy(logits, target)

    assert torch.autograd.gradcheck(loss, (weight,), atol=1e-6)


def test_order_matters_to_nplm_and_not_to_cbow():
    torch.manual_seed(3)
    a, b = torch.tensor([[4, 5, 6, 7]]), torch.tensor([[7, 5, 6, 4]])
    nplm, cbow = NPLM(11, n=5, d_emb=3, d_hidden=7), CBOW(11, 3)
    assert (nplm(a) - nplm(b)).abs().max() > 1e-3
    torch.testing.assert_close(cbow(a), cbow(b))


def test_cbow_is_the_mean_without_padding():
    torch.manual_seed(4)
    cbow = CBOW(11, 3)
    mean = cbow.embedding.weight[[4, 6]].mean(0)
    expected = cbow.output.weight @ mean
    torch.testing.assert_close(cbow(torch.tensor([[PAD, 4, 6, PAD]]))[0], expected)
    assert torch.isfinite(cbow(torch.tensor([[PAD, PAD]]))).all()


def test_windows_of_a_sentence():
    context, target = next_word_windows([[4, 5]], 3)
    assert context.tolist() == [[BOS, BOS], [BOS, 4], [4, 5]]
    assert target.tolist() == [4, 5, EOS]
    context, target = centre_word_windows([[4, 5, 6], [7]], 2)
    assert context.tolist() == [[PAD, PAD, 5, 6], [PAD, 4, 6, PAD], [4, 5, PAD, PAD]]
    assert target.tolist() == [4, 5, 6]


def test_nearest_is_cosine():
    points = torch.tensor([[1.0, 0.0], [10.0, 1.0], [0.0, 1.0], [-1.0, 0.0]])
    (first, similarity), *_, (last, _) = nearest(points, 0, 5)
    assert (first, last) == (1, 3)
    expected = nn.functional.cosine_similarity(points[0], points[1], dim=0).item()
    assert similarity == pytest.approx(expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: NPLM(5, n=1, d_emb=2, d_hidden=2), "2 以上"),
        (lambda: NPLM(5, n=3, d_emb=2, d_hidden=2)(torch.ones(1, 3, dtype=torch.long)), "2 語"),
        (lambda: next_word_windows([], 2), "文が一つ以上"),
        (lambda: centre_word_windows([[4]], 2), "二語以上"),
    ],
)
def test_bad_input_is_refused_in_japanese(call, message):
    with pytest.raises(ValueError, match=message):
        call()
