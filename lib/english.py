"""箱庭コーパスの英語: 導出の木から英文を作り、どの語がどの語に対応するかを記録する。

日本語では飾る語が前、動詞が最後。英語では関係節が後ろ、動詞が主語の次。数の一致もここで決まる。
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lib.grammar import Tree
from lib.lexicon import ADJECTIVES, DETERMINERS, FORMS, NAMES, NOUNS, PRONOUNS, VERB_KINDS


@dataclass(frozen=True)
class Word:
    """英語の一語と、対応する日本語の位置（sure は必ず、possible は対応してもよい）。"""

    text: str
    sure: tuple[int, ...] = ()
    possible: tuple[int, ...] = ()


Phrase = tuple[list[Word], bool]  # (英語の語, 単数かどうか)


def sentence(tree: Tree, ja: Sequence[str]) -> list[Word]:
    """文全体。主語、動詞、残り、の順に並べ替える。"""
    topic, wa, predicate = tree.children
    if isinstance(topic, Tree):
        subject, singular = noun_phrase(topic, ja)
    else:
        subject, singular = [Word(PRONOUNS[ja[topic]][0], (topic,))], ja[topic] == "彼女"
    *parts, last = predicate.children
    if last.symbol[0] == "IS":
        i = last.leaf()
        be = "am" if ja[0] == "私" else ("are", "is")[singular]
        return [*subject, Word(be, possible=(i, wa)), Word(ADJECTIVES[ja[i]][0], (i,))]
    return [*subject, verb(last, ja, singular), *complement(parts, last.symbol[0], ja)]


def complement(parts: Sequence, kind: str, ja: Sequence[str]) -> list[Word]:
    """動詞の後に来る語。目的語、相手（to …）、場所（in …、to …）。"""
    first, *rest = parts
    if kind == "INTRANSITIVE":
        return location(first, ja)
    if kind == "MOTION":
        return place(first, ja, "to", rest[0])
    words = noun_phrase(first, ja)[0]
    if kind == "TRANSITIVE":
        words = [*words, *location(rest[1], ja)]
    if kind == "GIVING":
        words = [*words, Word("to", possible=(rest[2],)), *noun_phrase(rest[1], ja)[0]]
    return words


def verb(tree: Tree, ja: Sequence[str], singular: bool) -> Word:
    """主語の数に合わせた動詞。"""
    i = tree.leaf()
    return Word(FORMS[ja[i]][singular], (i,))


def location(tree: Tree, ja: Sequence[str]) -> list[Word]:
    """公園 で → in the park。場所がなければ空。"""
    return place(tree.children[0], ja, "in", tree.children[1]) if tree.children else []


def place(tree: Tree, ja: Sequence[str], preposition: str, particle: int) -> list[Word]:
    """静かな 公園 → in the quiet park。前置詞は助詞に、the は名詞に対応してもよい。"""
    *adjective, noun = (child.leaf() for child in tree.children)
    words = [Word(preposition, possible=(particle,)), Word("the", possible=(noun,))]
    words += [Word(ADJECTIVES[ja[i]][0], (i,)) for i in adjective]
    return [*words, Word(NOUNS["place"][ja[noun]][0], (noun,))]


def noun_phrase(tree: Tree, ja: Sequence[str]) -> Phrase:
    """名前、一つの名詞、A と B、関係節の付いた名詞のどれか。"""
    if tree.symbol[0] == "NP":
        return noun_phrase(tree.children[0], ja)
    if tree.symbol[1] == "name":
        i = tree.leaf()
        return [Word(NAMES[ja[i]][0], (i,))], True
    first, *rest = tree.children
    if rest:
        to, other = rest
        return [*core(first, ja)[0], Word("and", (to,)), *core(other, ja)[0]], False
    return core(first, ja) if first.symbol[0] == "CORE" else relative(first, ja)


def core(tree: Tree, ja: Sequence[str]) -> Phrase:
    """この 白い 猫 → this white cat。この・その があれば単数、なければ複数。"""
    at = {child.symbol[0]: child.leaf() for child in tree.children}
    singular = "DET" in at
    words = [Word(DETERMINERS[ja[at["DET"]]][0], (at["DET"],))] if singular else []
    if "ADJ" in at:
        words.append(Word(ADJECTIVES[ja[at["ADJ"]]][0], (at["ADJ"],)))
    forms = NOUNS[tree.symbol[1]][ja[at["NOUN"]]]
    return [*words, Word(forms[0 if singular else 1], (at["NOUN"],))], singular


def relative(tree: Tree, ja: Sequence[str]) -> Phrase:
    """魚 を 追う 猫 → cats that chase fish。猫 が 追う 魚 → fish that cats chase。"""
    *clause, head = tree.children
    words, singular = core(head, ja)
    at = next(
        i for i, x in enumerate(clause) if not isinstance(x, int) and x.symbol[0] in VERB_KINDS
    )
    action, parts, after = clause[at], clause[:at], clause[at + 1 :]
    links = (words[-1].sure[0], action.leaf(), *after)  # 先行詞、動詞、な
    if action.symbol[0] == "TRANSITIVE" and tree.rhs[1] == "が":
        actor, number = noun_phrase(parts[0], ja)
        tail = [*actor, verb(action, ja, number), *location(parts[2], ja)]
    else:
        tail = [verb(action, ja, singular), *complement(parts, action.symbol[0], ja)]
    return [*words, Word("that", possible=links), *tail], singular
