"""箱庭コーパスの語彙: hakoniwa.toml を読み、日本語から英語の形を引けるようにする。"""

import tomllib
from pathlib import Path

DATA = tomllib.loads(Path(__file__).with_name("hakoniwa.toml").read_text(encoding="utf-8"))


def _table(text: str) -> dict[str, list[str]]:
    """「日本語/英語/…」の並びを、日本語から残りへの対応にする。"""
    return {row.split("/")[0]: row.split("/")[1:] for row in text.split()}


NOUNS = {kind: _table(text) for kind, text in DATA["nouns"].items()}
NAMES, PRONOUNS, DETERMINERS, ADJECTIVES = map(_table, DATA["words"].values())
VERBS = {kind.upper(): _table(text) for kind, text in DATA["verbs"].items()}
VERB_KINDS = tuple(VERBS)
ALLOWED = {kind: text.split() for kind, text in DATA["attributive"].items()}
ROLES, PRESETS = DATA["roles"], DATA["presets"]
OBJECT = {word: forms[4] for word, forms in VERBS["TRANSITIVE"].items()}  # 動詞 → 目的語の役割

FORMS = {}  # 日本語の動詞 → (複数の主語の形, 単数の主語の形)
for _verbs in VERBS.values():
    for _word, (_past, _base, _third, *_old) in _verbs.items():
        FORMS[_past] = _old[:1] * 2
        FORMS[_word] = [_base, _third]
