"""Greedy, sampling, beam: against loops and exhaustive search over all sentences."""

import itertools
import math

import pytest
import torch

from lib.decode import Hypothesis, beam_search, greedy, sample, select, shape_logits
from lib.text import BOS, EOS, PAD
from lib.transformer import Transformer, TransformerConfig

V = 7
SRC = torch.tensor([[5, 6, 4, EOS], [4, EOS, PAD, PAD], [6, 6, EOS, PAD]])


def transformer(seed):
    torch.manual_seed(seed)
    config = TransformerConfig(src_vocab=V, tgt_vocab=V, d_model=6, n_heads=2, d_ff=11)
    model = Transformer(config).double().eval()
    with torch.no_grad():
        model.output.weight.mul_(3)  # distinct choices
    return model


class Table:
    """A model of a tiny vocabulary as a table: p(next | whole prefix), drawn at random."""

    def __init__(self, seed, size):
        self.generator, self.size, self.rows = torch.Generator().manual_seed(seed), size, {}

    def log_probs(self, prefix):
        if prefix not in self.rows:
            logits = torch.randn(self.size, generator=self.generator, dtype=torch.float64)
            self.rows[prefix] = logits.mul(1.5).log_softmax(0)
        return self.rows[prefix]

    def step(self, tokens, state):
        prefixes = [[*p[p >= 0].tolist(), t] for p, t in zip(state, tokens.tolist(), strict=True)]
        logits = torch.stack([self.log_probs(tuple(p)) for p in prefixes])
        width = max(map(len, prefixes))
        rows = [p + [-1] * (width - len(p)) for p in prefixes]
        return logits, torch.tensor(rows)

    def start(self):
        return torch.empty(1, 0, dtype=torch.long)

    def exhaustive(self, max_len):
        """Every sentence that ends, or is cut at max_len, with its log-probability."""
        found = {}
        for length in range(1, max_len + 1):
            for tokens in itertools.product(range(self.size), repeat=length):
                if EOS in tokens[:-1] or (tokens[-1] != EOS and length < max_len):
                    continue
                prefixes = [(BOS, *tokens[:i]) for i in range(length)]
                pairs = zip(prefixes, tokens, strict=True)
                found[tokens] = sum(self.log_probs(p)[t].item() for p, t in pairs)
        return found


@torch.no_grad()
@pytest.mark.parametrize("seed", range(5))
def test_greedy_is_a_loop_over_whole_forward_passes(seed):
    model, bounds = transformer(seed), [9, 4, 6]
    outputs = greedy(model.step, model.start(SRC), bounds)
    for row, bound, output in zip(SRC, bounds, outputs, strict=True):
        prefix = [BOS]
        while len(prefix) <= bound and prefix[-1] != EOS:
            prefix.append(model(row[None], torch.tensor([prefix]))[0, -1].argmax().item())
        assert output == prefix[1:]
        assert EOS not in output[:-1] and len(output) <= bound


@torch.no_grad()
def test_greedy_of_a_batch_is_greedy_of_each():
    model = transformer(7)
    together = greedy(model.step, model.start(SRC), [8, 8, 8])
    alone = [greedy(model.step, model.start(row[None]), [8])[0] for row in SRC]
    assert together == alone


def test_greedy_keeps_padding_that_a_model_emits_and_no_graph():
    model = transformer(0)
    with torch.no_grad():
        model.output.weight.zero_()
        model.tgt_embedding.weight.zero_()  # all logits equal: argmax is PAD, for ever
    assert greedy(model.step, model.start(SRC), [3, 1, 5]) == [[PAD] * 3, [PAD], [PAD] * 5]
    grads = []

    def step(tokens, state):
        logits, state = model.step(tokens, state)
        grads.append(logits.requires_grad)
        return logits, state

    greedy(step, model.start(SRC), [2, 2, 2])
    assert grads == [False, False]


def test_finished_rows_leave_the_batch():
    sizes = []

    def step(tokens, state):
        sizes.append(len(tokens))
        logits = torch.zeros(len(tokens), V)
        logits[torch.arange(len(tokens)), torch.where(state == len(sizes), EOS, 4)] = 1
        return logits, state

    ends = torch.tensor([2, 5, 3])  # the step at which each row says </s>
    assert greedy(step, ends, [7, 4, 7]) == [[4, EOS], [4] * 4, [4, 4, EOS]]
    assert sizes == [3, 3, 2, 1]


def test_select_walks_nested_states():
    a, b = torch.arange(3), torch.arange(6).reshape(3, 2)
    state = {"a": a, "deep": [(b, 5), None]}
    got = select(state, torch.tensor([2, 0]))
    assert got["a"].tolist() == [2, 0]
    assert got["deep"][0][0].tolist() == [[4, 5], [0, 1]]
    assert got["deep"][0][1] == 5 and got["deep"][1] is None


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_beam_of_one_is_greedy_and_of_all_is_exhaustive(seed, alpha):
    table = Table(seed, 4)
    (one,) = beam_search(table.step, table.start(), 4, width=1, alpha=alpha)
    assert list(one.tokens) == greedy(table.step, table.start(), [4])[0]
    found = table.exhaustive(4)
    hypotheses = beam_search(table.step, table.start(), 4, width=4**4, alpha=alpha)
    assert {h.tokens: pytest.approx(h.log_prob) for h in hypotheses} == found
    assert sum(math.exp(h.log_prob) for h in hypotheses) == pytest.approx(1)
    best = max(found, key=lambda t: Hypothesis(t, found[t]).score(alpha))
    assert hypotheses[0].tokens == best


@torch.no_grad()
@pytest.mark.parametrize("seed", range(4))
def test_beam_scores_are_the_models_and_nothing_follows_the_end(seed):
    model = transformer(seed)
    hypotheses = beam_search(model.step, model.start(SRC[:1]), 6, width=5)
    assert len(hypotheses) == 5
    spoken = [h for h in hypotheses if PAD not in h.tokens]  # in a target, PAD is not a word
    assert spoken
    for h in spoken:
        prefix = torch.tensor([[BOS, *h.tokens[:-1]]])
        log_probs = model(SRC[:1], prefix)[0].log_softmax(-1)
        total = log_probs[torch.arange(len(h.tokens)), torch.tensor(h.tokens)].sum()
        assert h.log_prob == pytest.approx(total.item())
        assert EOS not in h.tokens[:-1]


def lookup(rows):
    """A model from a dictionary: prefix -> probabilities of (x, y, </s>)."""
    words = [3, 4, EOS]

    class Given(Table):
        def log_probs(self, prefix):
            row = torch.full((5,), -math.inf, dtype=torch.float64)
            for word, p in zip(words, rows.get(prefix[1:], (0, 0, 1)), strict=True):
                row[word] = math.log(p) if p else -math.inf
            return row

    return Given(0, 5)


def test_the_case_where_greedy_loses():
    model = lookup({(): (0.6, 0.4, 0), (3,): (0.4, 0.3, 0.3), (4,): (0.9, 0.1, 0)})
    (one,) = beam_search(model.step, model.start(), 3, width=1)
    two = beam_search(model.step, model.start(), 3, width=2)[0]
    assert math.exp(one.log_prob) == pytest.approx(0.24)
    assert math.exp(two.log_prob) == pytest.approx(0.36)


def test_length_penalty_by_hand():
    assert Hypothesis((4, 5, 2), -2.0).score(0.6) == pytest.approx(-1.6829, abs=1e-4)
    assert Hypothesis((4, 5, 6, 7, 2), -2.4).score(0.6) == pytest.approx(-1.7665, abs=1e-4)
    assert Hypothesis((4,), -2.0).score(0.0) == -2.0


def test_trace_of_a_beam_holds_every_step():
    table, trace = Table(1, 5), []
    beam_search(table.step, table.start(), 3, width=2, trace=trace)
    assert [len(step) <= 2 for step in trace] == [True] * len(trace)
    assert all(len(h.tokens) == i for i, step in enumerate(trace, 1) for h in step)


def test_shaping_logits():
    logits = torch.tensor([[4.0, 1.0, 3.0, 2.0]])
    assert (shape_logits(logits, top_k=2) > -math.inf).tolist() == [[True, False, True, False]]
    probs = logits.softmax(-1)[0]
    share = (probs[0] + probs[2]).item()
    for top_p, kept in ((share - 1e-4, 2), (share + 1e-4, 3), (1e-6, 1), (1.0, 4)):
        assert (shape_logits(logits, top_p=top_p) > -math.inf).sum() == kept
    torch.testing.assert_close(shape_logits(logits, temperature=2.0), logits / 2)
    even = torch.zeros(1, 2)  # the first half is just enough
    assert (shape_logits(even, top_p=0.5) > -math.inf).sum() == 1


def test_samples_follow_the_distribution():
    model = lookup({(): (0.7, 0.2, 0.1)})
    n, generator = 700, torch.Generator().manual_seed(0)
    state = model.start().expand(n, 0)
    drawn = sample(model.step, state, [2] * n, generator)
    share = sum(s[0] == 3 for s in drawn) / n
    assert share == pytest.approx(0.7, abs=5 * math.sqrt(0.21 / n))
    assert {tuple(s) for s in drawn} == {(3, EOS), (4, EOS), (EOS,)}
    cold = sample(model.step, state, [2] * n, generator, temperature=0.01)
    assert cold == [[3, EOS]] * n


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: greedy(lambda t, s: (t, s), None, []), "文ごとに 1 以上"),
        (lambda: greedy(lambda t, s: (t, s), None, [3, 0]), "文ごとに 1 以上"),
        (lambda: beam_search(lambda t, s: (t, s), None, 3, width=0), "幅と上限は 1 以上"),
        (lambda: shape_logits(torch.zeros(1, 2), temperature=0), "温度は正"),
        (lambda: shape_logits(torch.zeros(1, 2), top_p=1.5), "top_p"),
        (lambda: shape_logits(torch.zeros(1, 2), top_k=0), "top_k"),
    ],
)
def test_bad_input_is_refused_in_japanese(call, message):
    with pytest.raises(ValueError, match=message):
        call()
