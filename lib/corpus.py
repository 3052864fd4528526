"""箱庭コーパス: 小さな文法から作る日英の対訳。正解の対応と、文の正確な確率が付いている。

規則の左の数は割合。導出は文ごとに一通りしかないので、文の確率は導出の確率に等しい。
"""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lib.english import sentence
from lib.grammar import Grammar, Symbol, Tree, draw, entropy, expected_length, inside, make_grammar
from lib.lexicon import ALLOWED, DETERMINERS, NAMES, NOUNS, OBJECT, PRESETS, PRONOUNS, ROLES, VERBS

__all__ = ["HELD_OUT", "PRESETS", "Pair", "Split", "entropy", "expected_length", "hakoniwa"]

LOC, PLACE, LIKE = ("LOC",), ("PLACE",), ("LIKING",)


def _by_rank(words: Sequence[str], s: dict) -> list:
    """順位が下がるほど 1/順位^zipf で出にくい語の規則。"""
    return [(1 / (i + 1) ** s["zipf"], (word,)) for i, word in enumerate(words[: s["n_words"]])]


def _maybe(p: float, yes: tuple, no: tuple) -> list:
    return [(p, yes), (1 - p, no)]


def _sentence(depth: int, s: dict) -> list:
    predicate = ("PRED", depth)
    pronouns = [(s["pronoun"] / 2, (word, "は", predicate)) for word in PRONOUNS]
    return [(1 - s["pronoun"], (("NP", "anim", depth), "は", predicate)), *pronouns]


def _predicate(depth: int, s: dict) -> list:
    """場所は必ず自分の動詞のすぐ前に立つ。だから係り先は一通りに決まる。"""
    rules = [
        (0.22, (("NP", "any", depth), "が", LIKE)),
        (0.14, (LOC, ("INTRANSITIVE",))),
        (0.12, (("NP", "gift", depth), "を", ("NP", "person", 0), "に", ("GIVING",))),
        (0.08, (PLACE, "に", ("MOTION",))),
        (0.08, (("IS",),)),
    ]
    verbs = s["verbs"]
    for v in verbs:
        thing = ("NP", OBJECT[v], depth)
        rules.append((0.36 / len(verbs), (thing, "を", LOC, ("TRANSITIVE", v))))
    return rules


def _relative(noun: str, depth: int, s: dict) -> list:
    """関係節と、それが飾る名詞。最後の形だけは、名詞が節の目的語になる。"""
    core, verbs, rules = ("CORE", noun), s["verbs"], []
    if noun in ("human", "animal"):
        for v in verbs:
            thing = ("NP", OBJECT[v], depth - 1)
            rules.append((0.5 / len(verbs), (thing, "を", LOC, ("TRANSITIVE", v), core)))
        rules.append((0.12, (LOC, ("INTRANSITIVE",), core)))
        rules.append((0.13, (("NP", "any", depth - 1), "が", LIKE, "な", core)))
    fitting = [v for v in verbs if noun in ROLES[OBJECT[v]]]
    for v in fitting:
        actor = ("NP", "anim", 0)  # 節の主語に関係節は付かない
        rules.append((0.25 / len(fitting), (actor, "が", LOC, ("TRANSITIVE", v), core)))
    return rules


def _kind(noun: str, depth: int, s: dict) -> list:
    """一つの名詞、A と B、関係節の付いた名詞。深さが尽きたら関係節は付かない。"""
    if noun == "name":
        return _by_rank(list(NAMES), s)
    core = ("CORE", noun)
    rc = s["rc"] if depth > 0 else 0
    alone = 1 - s["rc"] - s["conj"]
    return [(alone, (core,)), (s["conj"], (core, "と", core)), (rc, (("RC", noun, depth),))]


def _core(noun: str, s: dict) -> list:
    d, a = s["det"], s["adj"]
    det, adj, word = ("DET",), ("ADJ", noun), ("NOUN", noun)
    singular = [(d * a, (det, adj, word)), (d * (1 - a), (det, word))]
    return [*singular, ((1 - d) * a, (adj, word)), ((1 - d) * (1 - a), (word,))]


def _verb(kind: str, words: Sequence[str], s: dict) -> list:
    rules = []
    for weight, (word,) in _by_rank(words, s):
        past = VERBS[kind][word][0]
        rules += [(weight * s["past"], (past,)), (weight * (1 - s["past"]), (word,))]
    return rules


def _rules(symbol: Symbol, s: dict) -> list:
    """記号ごとの規則。"""
    match symbol:
        case ("NP", role, depth):
            return [(weight, (("KIND", noun, depth),)) for noun, weight in ROLES[role].items()]
        case ("DET",):
            return [(1, (word,)) for word in DETERMINERS]
        case ("ADJ", noun):
            return _by_rank(ALLOWED[noun], s)
        case ("IS",):
            return _by_rank(ALLOWED["predicate"], s)
        case ("NOUN", noun):
            return _by_rank(list(NOUNS[noun]), s)
        case ("LOC",):
            return _maybe(s["place"], (PLACE, "で"), ())
        case ("PLACE",):
            return _maybe(s["adj"] / 2, (("ADJ", "place"), ("NOUN", "place")), (("NOUN", "place"),))
        case ("LIKING",):
            return _maybe(0.75, ("好き",), ("嫌い",))
        case ("TRANSITIVE", word):
            return _verb("TRANSITIVE", [word], s)
        case ("INTRANSITIVE" | "MOTION" | "GIVING" as kind,):
            return _verb(kind, list(VERBS[kind]), s)
    forms = {"S": _sentence, "PRED": _predicate, "RC": _relative, "KIND": _kind, "CORE": _core}
    return forms[symbol[0]](*symbol[1:], s)


def hakoniwa(preset: str = "default", **overrides) -> Grammar:
    """箱庭コーパスの文法。preset は short、default、long。長さは主に rc と depth が決める。

    overrides で設定を一つずつ変えられる。知らない名前は ValueError。
    """
    defaults = PRESETS["default"] | {"verbs": tuple(VERBS["TRANSITIVE"])}
    if preset not in PRESETS or overrides.keys() - defaults.keys():
        raise ValueError(
            f"preset は {', '.join(PRESETS)}、設定は {', '.join(defaults)} のどれかです。"
            f"受け取った値: {preset!r} {sorted(overrides)}"
        )
    settings = defaults | PRESETS[preset] | overrides
    return make_grammar(("S", settings["depth"]), lambda symbol: _rules(symbol, settings))


Link = tuple[int, int]


@dataclass(frozen=True)
class Pair:
    """対訳の一組。組 (英語の位置, 日本語の位置) は 0 から数え、sure は possible に含まれる。

    log_prob は、文法が日本語の文を作る確率の対数（ナット）。
    """

    ja: tuple[str, ...]
    en: tuple[str, ...]
    sure: frozenset[Link]
    possible: frozenset[Link]
    log_prob: float


def _pair(ja: Sequence[str], tree: Tree, log_prob: float) -> Pair:
    words = sentence(tree, ja)
    sure = {(i, j) for i, word in enumerate(words) for j in word.sure}
    possible = sure | {(i, j) for i, word in enumerate(words) for j in word.possible}
    for j, word in enumerate(ja):  # 助詞は、すぐ前の語の英語に対応してもよい
        if word in ("は", "が", "を", "で", "に", "な"):
            possible |= {(i, j) for i, k in sure if k == j - 1}
    english = tuple(word.text for word in words)
    return Pair(tuple(ja), english, frozenset(sure), frozenset(possible), log_prob)


def _stream(grammar: Grammar, seed: int) -> Iterator[Pair]:
    rng = random.Random(seed)
    while True:
        yield _pair(*draw(grammar, rng))


def sample_pairs(
    grammar: Grammar, n: int, seed: int, *, min_len: int = 1, max_len: int = 10**6
) -> list[Pair]:
    """独立に n 組を引く。日本語の長さが min_len 以上 max_len 以下のものだけを残せる。

    長さで選んだ組の log_prob は、選ぶ前の文法での対数確率のまま（選んだ後の分布の確率ではない）。
    """
    if n < 1 or not 1 <= min_len <= max_len:
        raise ValueError(f"n は 1 以上、長さは 1 以上の範囲です: {n}, {min_len}, {max_len}")
    kept: list[Pair] = []
    for tried, pair in enumerate(_stream(grammar, seed)):
        if min_len <= len(pair.ja) <= max_len:
            kept.append(pair)
        if len(kept) == n:
            return kept
        if tried > 10_000 * (len(kept) + 1):
            raise ValueError(
                f"この文法は、長さ {min_len} から {max_len} の文をほとんど作りません。"
            )
    return kept


def sentence_log_prob(grammar: Grammar, tokens: Sequence[str]) -> float:
    """文法が日本語の文を作る確率の対数（ナット）。作らない文では −∞。"""
    prob, _ = inside(grammar, tokens)
    return math.log(prob) if prob > 0 else -math.inf


@dataclass(frozen=True)
class Split:
    """学習、開発（設定を選ぶ）、試験（最後に一度だけ測る）の三つ。"""

    train: list[Pair]
    dev: list[Pair]
    test: list[Pair]


def lm_split(
    n_train: int, *, n_dev: int = 1000, n_test: int = 5000, seed: int = 0, preset: str = "default"
) -> Split:
    """言語モデル用。三つとも文法から独立に引き、同じ文が重なってもよい（下限と比べるため）。

    試験と開発は n_train によらず同じ文になる。
    """
    grammar = hakoniwa(preset)
    sizes = (n_train, n_dev, n_test)
    return Split(*(sample_pairs(grammar, n, 3 * seed + i) for i, n in enumerate(sizes)))


def mt_split(
    n_train: int = 20_000,
    *,
    n_dev: int = 500,
    n_test: int = 1000,
    seed: int = 0,
    preset: str = "default",
) -> Split:
    """翻訳用。同じ文は一度しか現れず、三つは互いに重ならず、HELD_OUT も含まない。"""
    if min(n_train, n_dev, n_test) < 1:
        raise ValueError(f"文の数は 1 以上が必要です: {n_train}, {n_dev}, {n_test}")
    total, distinct = n_train + n_dev + n_test, {}
    for pair in _stream(hakoniwa(preset), seed):
        if pair.ja != HELD_OUT.ja:
            distinct.setdefault(pair.ja, pair)
        if len(distinct) == total:
            break
    pairs = list(distinct.values())
    random.Random(seed).shuffle(pairs)  # 先に出た、ありふれた文が学習に偏らないように
    return Split(pairs[:n_train], pairs[n_train : n_train + n_dev], pairs[n_train + n_dev :])


HELD_OUT = next(p for p in _stream(hakoniwa(), 0) if p.ja == ("猫", "は", "魚", "が", "好き"))


def capitalize(tokens: Sequence[str]) -> str:
    """表示のための英文。先頭だけ大文字にする。"""
    text = " ".join(tokens)
    return text[:1].upper() + text[1:]
