"""トークンと番号: 語彙、特別な記号、詰めもの、バッチ。

B バッチ  T 長さ  S 原文の長さ
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lib.checks import require

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIALS = ("<pad>", "<s>", "</s>", "<unk>")

Example = tuple[list[int], list[int]]  # (原文の番号, 訳文の番号)


@dataclass(frozen=True)
class Vocab:
    """語と番号の対応。先頭の四つは特別な記号（詰めもの、文の始まり、文の終わり、未知語）。"""

    words: tuple[str, ...]

    def __post_init__(self):
        if self.words[:4] != SPECIALS or len(set(self.words)) < len(self.words):
            raise ValueError(f"先頭は {SPECIALS}、語に重なりなし、が必要です: {self.words[:9]}")

    @classmethod
    def build(cls, sentences: Iterable[Sequence[str]], min_count: int = 1) -> "Vocab":
        """文の集まりから語彙を作る。min_count 回より少ない語は入れない。多い順、同数なら文字順。"""
        counts = Counter(word for sentence in sentences for word in sentence)
        if clash := counts.keys() & set(SPECIALS):
            raise ValueError(f"文に特別な記号を入れないでください。受け取った記号: {sorted(clash)}")
        kept = [w for w, c in sorted(counts.items(), key=lambda x: (-x[1], x[0])) if c >= min_count]
        require(kept, f"{min_count} 回以上現れる語が必要です", counts.most_common(3))
        return cls((*SPECIALS, *kept))

    @cached_property
    def _index(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def id(self, word: str) -> int:
        """語の番号。語彙にない語は UNK の番号。"""
        return self._index.get(word, UNK)

    def encode(
        self, tokens: Sequence[str], *, bos: bool = False, eos: bool = False, unknown="replace"
    ) -> list[int]:
        """語の列を番号の列に直す。bos と eos は、文の始まりと終わりの記号を付けるかどうか。

        未知語は UNK の番号にする。unknown="error" なら ValueError。空の列も ValueError。
        """
        require(unknown in ("replace", "error"), 'unknown は "replace" か "error" です', unknown)
        require(len(tokens) > 0, "番号に直す列には、一語以上が必要です", tokens)
        missing = [word for word in tokens if word not in self._index]
        require(not missing or unknown == "replace", "語彙にある語が必要です", *missing[:5])
        return [BOS] * bos + [self.id(word) for word in tokens] + [EOS] * eos

    def decode(self, ids: Iterable[int]) -> list[str]:
        """番号の列を語の列に戻す。最初の </s> で止まり、<pad> と <s> は落とす。"""
        ids = list(takewhile(lambda i: i != EOS, ids))
        require(all(0 <= i < len(self) for i in ids), f"番号は 0 以上 {len(self)} 未満です", *ids)
        return [self.words[i] for i in ids if i not in (PAD, BOS)]


def pad(sequences: Sequence[Sequence[int]], length: int | None = None) -> Int[Tensor, "B T"]:
    """長さの違う列の右に PAD を詰めて一つの表にする。空の列や短すぎる length は ValueError。"""
    lengths = [len(ids) for ids in sequences]
    require(lengths and min(lengths) > 0, "列は一つ以上、長さはどれも 1 以上が必要です", lengths)
    width = max(lengths) if length is None else length
    require(width >= max(lengths), f"length は最も長い列の {max(lengths)} 以上が必要です", width)
    return torch.tensor([[*ids, *[PAD] * (width - len(ids))] for ids in sequences])


def padding_mask(ids: Int[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    """True は本物のトークン（見てよい）、False は詰めもの。"""
    return ids != PAD


def encode_pairs(pairs: Iterable, src_vocab: Vocab, tgt_vocab: Vocab) -> list[Example]:
    """対訳（.ja と .en）を番号に直す。原文は </s> で終わり、訳文は <s> と </s> で挟む。"""
    return [
        (src_vocab.encode(p.ja, eos=True), tgt_vocab.encode(p.en, bos=True, eos=True))
        for p in pairs
    ]


def collate(batch: Sequence[Example]) -> tuple[Int[Tensor, "B S"], Int[Tensor, "B T"]]:
    """番号に直した対訳を集めて、原文の表と訳文の表にする。空のバッチは ValueError。"""
    return pad([source for source, _ in batch]), pad([target for _, target in batch])


def batches(n: int, batch_size: int, generator: torch.Generator) -> Iterator[list[int]]:
    """0 から n−1 の番号を混ぜて、batch_size 個ずつ、終わりなく返す。一巡するごとに混ぜ直す。

    割り切れなければ、一巡の最後だけ少ない。
    """
    require(n >= 1 and batch_size >= 1, "n と batch_size は 1 以上が必要です", n, batch_size)
    while True:
        for chunk in torch.randperm(n, generator=generator).split(batch_size):
            yield chunk.tolist()
