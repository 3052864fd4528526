"""箱庭コーパス: 小さな文法から作る日英の対訳。文の正確な確率と、語の対応の正解が付いている。

規則は (割合, 日本語の並び, 英語の並び)。英語の並びの数字は、日本語の並びの何番目を置くかを表す。
the:2 は英語だけにある the で、二番目の語に対応してもよい。たとえば
    "ACT CORE" → "2 that:2:1 1"    魚 を 追う + 猫 → cats + that + chase fish
単数か複数かは この・その の有無で決まり、動詞がそれに合わせる。導出は、どの文にも一通りしかない。
"""

import random
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple

from lib.checks import require
from lib.grammar import Grammar, Tree, draw, length_distribution
from lib.grammar import entropy as entropy
from lib.grammar import expected_length as expected_length
from lib.grammar import sentence_log_prob as sentence_log_prob

# 語、名詞の種類、設定、英語の活用。書き方は hakoniwa.toml にある
DATA = tomllib.loads(Path(__file__).with_name("hakoniwa.toml").read_text("utf-8"))
WORDS, TRANSITIVE, ROLES = DATA["words"], DATA["transitive"], DATA["roles"]
PRESETS, NUMBERS, BE = DATA["presets"], DATA["numbers"], DATA["be"]
PARTICLES = DATA["particles"]["words"].split()
ENTRIES = " ".join(WORDS.values()).replace(",", " ").split()
ENGLISH = {ja: en for ja, *en in (entry.split("/") for entry in ENTRIES)}


# fmt: off
def _sentences(s: dict) -> dict:
    """文、述語、場所の規則。場所は必ず自分の動詞のすぐ前に立つので、係り先は一通りに決まる。"""
    d, pronoun, place, adj = s["depth"], s["pronoun"], s["place"], s["adj"] / 2
    return {
        "S": [(0.92, "TOPIC は PRED", "1 3"), (0.08, "TOPIC は ADJ.topic", "1 be:2:3 3")],
        "TOPIC": [(1 - pronoun, f"ROLE.SUBJECT.{d}", "1"), (pronoun, "PRONOUN", "1")],
        "PRED": [
            (0.36, f"ACT.{d}", "1"), (0.22, f"ROLE.SEE.{d} が LIKE", "3 1"),
            (0.14, "LOC PLAY", "2 1"), (0.08, "PLACE に GO", "3 2 1"),
            (0.12, f"ROLE.GIFT.{d} を ROLE.PERSON.0 に GIVE", "5 1 4 3"),
        ],
        "LOC": [(place, "PLACE で", "2 1"), (1 - place, "", "")],
        "PLACE": [(adj, "ADJ.place NOUN.place", "the:2 1 2"), (1 - adj, "NOUN.place", "the:1 1")],
        "LIKE": [(0.75, "好き", "1"), (0.25, "嫌い", "1")],
    }


def _phrases(noun: str, d: int, s: dict) -> dict:
    """名詞句と、関係節に入る動詞句の規則。d は、あと何重まで関係節を付けられるか。"""
    rc, conj, det, adj, below = s["rc"], s["conj"], s["det"], s["adj"], max(d - 1, 0)
    core, bare, alive = f"CORE.{noun}", f"BARE.{noun}", noun in ("human", "animal")
    kind = {"fish": "animal", "food": "thing", "text": "thing"}.get(noun, noun)
    return {
        f"NP.{noun}.{d}": [(1 - rc - conj, core, "1"), (conj, f"{core} と {core}", "1 2 3"),
                           (rc if d > 0 else 0, f"RC.{noun}.{d}", "1")],
        f"RC.{noun}.{d}": [  # 名詞は節の目的語になる。生き物（alive）なら、主語にもなる
            (0.25, f"ROLE.SUBJECT.0 が DO.{noun} {core}", "4 that:4:3 1 3"),
            (0.5 * alive, f"ACT.{below} {core}", "2 that:2:1 1"),
            (0.12 * alive, f"LOC PLAY {core}", "3 that:3:2 2 1"),
            (0.13 * alive, f"ROLE.SEE.{below} が LIKE な {core}", "5 that:5:3:4 3 1"),
        ],
        f"ACT.{d}": [(n, f"ROLE.{v}.{d} を LOC {v}", "4 1 3") for v, n in TRANSITIVE.items()],
        f"DO.{noun}": [(n, f"LOC {v}", "2 1") for v, n in TRANSITIVE.items() if noun in ROLES[v]],
        core: [(det, f"DET {bare}", "1 2"), (1 - det, bare, "1")],
        bare: [(adj, f"ADJ.{kind} NOUN.{noun}", "1 2"), (1 - adj, f"NOUN.{noun}", "1")],
    }
# fmt: on


def _words(kind: str, s: dict) -> list:
    """語の規則。r 番目の語は 1/r^zipf に比例して出る（他動詞などは、どれも同じ割合）。"""
    rows = []
    for rank, group in enumerate(WORDS[kind].split(), start=1):
        share = 1 if kind in (*TRANSITIVE, "DET", "PRONOUN") else rank ** -s["zipf"]
        present, *past = [entry.split("/")[0] for entry in group.split(",")]
        rows.append((share * (1 - s["past"] * len(past)), present, "1"))
        rows += [(share * s["past"], word, "1") for word in past]
    return rows


def hakoniwa(preset: str = "default", **overrides: float) -> Grammar:
    """箱庭コーパスの文法。preset は PRESETS のどれか。長さは主に rc と depth が決める。

    overrides で設定を一つずつ変えられる。知らない名前や、範囲の外の値は ValueError。
    """
    default = PRESETS["default"]
    names = f"preset は {', '.join(PRESETS)}、設定は {', '.join(default)} から選びます"
    require(preset in PRESETS and overrides.keys() <= default.keys(), names, preset, overrides)
    s = default | PRESETS[preset] | overrides
    require(s["depth"] in range(10), "depth は 0 以上 9 以下の整数です", s["depth"])
    rows = {kind: _words(kind, s) for kind in WORDS} | _sentences(s)
    for d, (role, nouns) in product(range(s["depth"] + 1), ROLES.items()):
        phrases = {noun: f"NP.{noun}.{d}" for noun in nouns} | {"NAME": "NAME"}
        rows[f"ROLE.{role}.{d}"] = [(p, phrases[noun], "1") for noun, p in nouns.items()]
        for noun in nouns.keys() - {"NAME"}:
            rows |= _phrases(noun, d, s)
    return Grammar("S", rows)


def _head(child: Tree | int) -> int:
    """句の中心になる語の位置。日本語では最後の語。"""
    return child if isinstance(child, int) else _head(child.children[-1])


def _write(tree: Tree, number: str, words: list[tuple[str, list[int], bool]]) -> str:
    """英語の (語, 対応する日本語の位置, 必ず対応するか) を words に足す。句の数を返す。

    数は英語の左から右へ伝わる。この・その は次の名詞へ、名詞句は次の動詞へ、自分の数を渡す。
    """
    first = None
    number = "they" if tree.symbol.startswith("CORE") else number  # 名詞は、まず複数とする
    for item in tree.rule.note:
        word, *links = item.split(":")
        if links:  # 英語だけにある語
            heads = [_head(tree.children[int(i) - 1]) for i in links]
            words.append((BE[number] if word == "be" else word, heads, False))
        elif isinstance(child := tree.children[int(word) - 1], int):
            ja = tree.rule.rhs[int(word) - 1]
            number = NUMBERS.get(ja, number)
            words.append((ENGLISH[ja][0 if number == "it" else -1], [child], ja not in PARTICLES))
        else:
            number = _write(child, number, words)
            first = first or number
    return "they" if "と" in tree.rule.rhs else first or number


@dataclass(frozen=True)
class Pair:
    """対訳の一組。対応は (英語の位置, 日本語の位置) の集まりで、位置は 0 から数える。

    sure は必ず対応する組、possible は対応してもよい組（sure を含む）。
    log_prob は、文法が日本語の文を作る確率の対数（ナット。文末の記号を含めても同じ）。
    """

    ja: tuple[str, ...]
    en: tuple[str, ...]
    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]
    log_prob: float


def _pair(ja: Sequence[str], tree: Tree, log_prob: float) -> Pair:
    words = []
    _write(tree, "they", words)
    sure = {(i, j) for i, (_, links, certain) in enumerate(words) for j in links if certain}
    possible = {(i, j) for i, (_, links, _) in enumerate(words) for j in links}
    # 助詞は、すぐ前の語の英語に対応してもよい
    possible |= {(i, j + 1) for i, j in sure if j + 1 < len(ja) and ja[j + 1] in PARTICLES}
    en = tuple(word for word, _, _ in words)
    return Pair(tuple(ja), en, frozenset(sure), frozenset(possible), log_prob)


def _stream(grammar: Grammar, seed: int, lengths: range = range(1000)) -> Iterator[Pair]:
    rng = random.Random(seed)
    while True:
        ja, tree, log_prob = draw(grammar, rng)
        if len(ja) in lengths:
            yield _pair(ja, tree, log_prob)


def sample_pairs(
    grammar: Grammar, n: int, seed: int, *, min_len: int | None = None, max_len: int | None = None
) -> list[Pair]:
    """独立に n 組を引く。min_len と max_len で、日本語の長さ（語の数）を絞れる。

    絞っても log_prob は元の文法での値で、絞った後の分布の対数確率ではない。
    百万文に一つも出ない長さに絞ると ValueError。
    """
    lengths = range(min_len or 0, (max_len or 999) + 1)
    shares = length_distribution(grammar, 999) if min_len or max_len else [1]
    if n < 1 or sum(shares[lengths.start : lengths.stop]) < 1e-6:
        raise ValueError(f"n は 1 以上、長さは文法が作る範囲です: {n=}, {min_len=}, {max_len=}")
    return list(islice(_stream(grammar, seed, lengths), n))


class Split(NamedTuple):
    """学習、開発（設定を選ぶ）、テスト（最後に一度だけ測る）の三つ。"""

    train: list[Pair]
    dev: list[Pair]
    test: list[Pair]


def lm_split(n_train: int, *, n_dev=1000, n_test=5000, seed=0, preset="default") -> Split:
    """言語モデル用。三つとも文法から独立に引き、同じ文の重なりも残す（文法の値と比べるため）。

    開発とテストは n_train によらない。n_train を増やすと、前の学習データの後に文が加わる。
    """
    grammar, sizes = hakoniwa(preset), (n_train, n_dev, n_test)
    return Split(*(sample_pairs(grammar, n, 3 * seed + i) for i, n in enumerate(sizes)))


def mt_split(n_train=20_000, *, n_dev=500, n_test=1000, seed=0, preset="default") -> Split:
    """翻訳用。同じ文は一度しか現れず、三つは重ならず、HELD_OUT も含まない。"""
    require(min(n_train, n_dev, n_test) >= 1, "文の数は 1 以上が必要です", n_train, n_dev, n_test)
    stream, distinct = _stream(hakoniwa(preset), seed), {}
    while len(distinct) < n_train + n_dev + n_test:
        pair = next(stream)
        if pair.ja != HELD_OUT.ja:
            distinct[pair.ja] = pair
    pairs = random.Random(seed).sample(list(distinct.values()), len(distinct))  # 出た順を消す
    return Split(pairs[:n_train], pairs[n_train:-n_test], pairs[-n_test:])


def capitalize(tokens: Sequence[str]) -> str:
    """表示用の英文。語を空白でつなぎ、先頭だけ大文字にする。"""
    return " ".join(tokens)[:1].upper() + " ".join(tokens)[1:]


# 学習データから外しておく文。8844 は、すぐに出る種
HELD_OUT = next(p for p in _stream(hakoniwa(), 8844) if p.en == ("cats", "like", "fish"))
