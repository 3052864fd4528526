"""Kneser-Ney trigrams: lib against nltk.lm on the same data, and lib alone on a million tokens."""

import time
import tracemalloc

from nltk.lm import KneserNeyInterpolated, Vocabulary

from lib import ngram
from lib.corpus import hakoniwa, sample_pairs


def sentences(n_tokens: int, seed: int) -> list[tuple[str, ...]]:
    """Sentences of the garden corpus with about n_tokens predicted tokens (</s> included)."""
    pairs = sample_pairs(hakoniwa(), n_tokens // 9, seed)
    total, kept = 0, []
    for pair in pairs:
        if total >= n_tokens:
            break
        kept.append(pair.ja)
        total += len(pair.ja) + 1
    return kept


def measured(call):
    """(result, seconds, peak MiB)."""
    begin = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - begin
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return result, seconds, peak


def fit_nltk(train):
    words = [word for sentence in train for word in sentence]
    model = KneserNeyInterpolated(
        3, discount=0.75, vocabulary=Vocabulary(words, unk_cutoff=1, unk_label=ngram.END)
    )
    grams = [
        (*context, word)
        for sentence in train
        for n in (1, 2, 3)
        for context, word in ngram.ngrams(sentence, n)
    ]
    model.fit([grams])
    return model


def rows() -> list[dict]:
    train, test = sentences(20_000, 0), sentences(300, 1)
    events = [event for sentence in test for event in ngram.ngrams(sentence, 3)]
    ours, fit_ours, memory_ours = measured(lambda: ngram.kneser_ney(train, 3))
    theirs, fit_theirs, memory_theirs = measured(lambda: fit_nltk(train))

    begin = time.perf_counter()
    for _ in range(20):
        for context, word in events:
            ours.prob(word, context)
    score_ours = (time.perf_counter() - begin) / 20 / len(events)
    begin = time.perf_counter()
    for context, word in events:
        theirs.score(word, context)
    score_theirs = (time.perf_counter() - begin) / len(events)

    million, many = sentences(1_000_000, 2), sentences(100_000, 3)
    large, fit_large, memory_large = measured(lambda: ngram.kneser_ney(million, 3))
    begin = time.perf_counter()
    scored = sum(len(large.probs(sentence)) for sentence in many)
    score_large = time.perf_counter() - begin

    def row(name, mine, peer, unit):
        return {"name": name, "ours": mine, "peer": peer, "ratio": peer / mine, "unit": unit}

    def alone(name, mine, unit):
        return {"name": name, "ours": mine, "peer": None, "ratio": None, "unit": unit}

    return [
        row("KN trigram, score a token (nltk)", score_ours * 1e6, score_theirs * 1e6, "us"),
        row("KN trigram, count 20,000 tokens (nltk)", fit_ours, fit_theirs, "s"),
        row("KN trigram, memory for 20,000 tokens (nltk)", memory_ours, memory_theirs, "MiB"),
        alone("KN trigram, count 1,000,000 tokens", fit_large, "s"),
        alone("KN trigram, memory for 1,000,000 tokens", memory_large, "MiB"),
        alone(f"KN trigram, score {scored:,} tokens", score_large, "s"),
    ]
