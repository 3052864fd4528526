"""Two independent looks at a grammar: how many derivations a sentence has, every sentence."""

import math
from collections import defaultdict
from copy import copy
from itertools import product

from lib.grammar import sentence_log_prob


def derivations(grammar, tokens) -> int:
    """The probability of the sentence where every rule has probability 1."""
    counting = copy(grammar)
    counting.rules = {
        symbol: [rule._replace(prob=1.0) for rule in rules]
        for symbol, rules in grammar.rules.items()
    }
    return round(math.exp(sentence_log_prob(counting, tokens)))


def enumerate_sentences(grammar) -> dict[tuple[str, ...], float]:
    """Every sentence with its probability, by expanding every rule (tiny grammars only)."""

    def expand(x: str) -> dict:
        if x not in grammar.rules:
            return {(x,): 1.0}
        found = defaultdict(float)
        for rule in grammar.rules[x]:
            for parts in product(*(expand(y).items() for y in rule.rhs)):
                words = tuple(word for piece, _ in parts for word in piece)
                found[words] += rule.prob * math.prod(p for _, p in parts)
        return found

    return dict(expand(grammar.start))
