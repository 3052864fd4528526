"""Attention, a training step and cached generation, each against a peer within one run."""

import statistics
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from lib.attention import attention, causal_mask
from lib.decode import greedy
from lib.train import next_token_loss
from lib.transformer import Transformer, TransformerConfig

V, D, H, N, D_FF, B, S, T = 97, 64, 4, 2, 256, 64, 13, 11


def seconds(ours: Callable, peer: Callable, rounds: int = 15) -> tuple[float, float]:
    """Median time of each, taken in turn, so that both meet the same machine."""
    times = {ours: [], peer: []}
    for _ in range(rounds):
        for call, taken in times.items():
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return statistics.median(times[ours][2:]), statistics.median(times[peer][2:])


def row(name: str, ours: float, peer: float) -> dict:
    return {"name": name, "ours": ours, "peer": peer, "ratio": peer / ours, "unit": "s"}


def attention_rows() -> list[dict]:
    found = []
    for length in (16, 64, 128):
        q, k, v = torch.randn(3, 32, H, length, D // H).unbind(0)
        mask = causal_mask(length)

        def peer(q=q, k=k, v=v, mask=mask):
            with sdpa_kernel(SDPBackend.MATH):
                return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

        def ours(q=q, k=k, v=v, mask=mask):
            return attention(q, k, v, mask)[0]

        torch.testing.assert_close(ours(), peer())
        times = seconds(ours, peer, 60)
        found.append(row(f"attention, T = {length}, against the math path of torch", *times))
    return found


class Peer(nn.Module):
    """nn.Transformer of the same size with the same embedding and output."""

    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(V, D), nn.Embedding(V, D)
        self.body = nn.Transformer(D, H, N, N, D_FF, 0.0, batch_first=True, norm_first=True)
        self.output = nn.Linear(D, V, bias=False)

    def forward(self, src, tgt):
        hidden = nn.Transformer.generate_square_subsequent_mask(tgt.shape[1])
        x = self.body(self.source(src), self.target(tgt), tgt_mask=hidden, tgt_is_causal=True)
        return self.output(x)


def training_row() -> dict:
    src, tgt = torch.randint(4, V, (B, S)), torch.randint(4, V, (B, T + 1))
    sizes = {"d_model": D, "n_heads": H, "n_layers": N, "d_ff": D_FF}
    models = Transformer(TransformerConfig(src_vocab=V, tgt_vocab=V, **sizes)), Peer()

    def update(model):
        optimizer = torch.optim.Adam(model.parameters(), fused=True)

        def step():
            optimizer.zero_grad()
            next_token_loss(model(src, tgt[:, :-1]), tgt[:, 1:]).backward()
            optimizer.step()

        return step

    return row("training step against nn.Transformer", *seconds(*map(update, models)))


def generation_row(length: int = 64) -> dict:
    config = TransformerConfig(src_vocab=V, tgt_vocab=V, d_model=D, n_heads=H, d_ff=D_FF)
    model = Transformer(config).eval()
    src = torch.randint(4, V, (B, S))

    def step(tokens, state):
        logits, state = model.step(tokens, state)
        return logits.index_fill(1, torch.tensor([2]), -torch.inf), state  # never </s>

    @torch.no_grad()
    def cached():
        return greedy(step, model.start(src), [length] * B)

    @torch.no_grad()
    def uncached():
        ids = torch.ones(B, 1, dtype=torch.long)
        for _ in range(length):
            logits = model(src, ids)[:, -1]
            logits[:, 2] = -torch.inf
            ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], dim=1)
        return ids[:, 1:].tolist()

    assert cached() == uncached()
    name = f"{length} tokens of {B} sentences with the cache, against none"
    return row(name, *seconds(cached, uncached, 5))


def rows() -> list[dict]:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    return [*attention_rows(), training_row(), generation_row()]
