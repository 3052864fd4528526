"""The bibliography: identifiers are well formed, entries complete, every cited key exists."""

import re
from pathlib import Path

import pytest

from tools import citations, myst

ROOT = Path(__file__).resolve().parents[2]
BIB = citations.load(ROOT / "references.bib")
KEYS = """
vaswani2017attention bahdanau2015neural luong2015effective sutskever2014sequence cho2014learning
bengio2003neural mikolov2010recurrent mikolov2012statistical mikolov2013efficient
chen1999empirical kneser1995improved papineni2002bleu post2018call och2003systematic
elman1990finding hochreiter1997long gers2000learning he2016deep ba2016layer xiong2020layer
jain2019attention koehn2017six su2021roformer shannon1948mathematical jurafsky2026speech
devlin2019bert radford2018improving radford2019language press2017using kingma2015adam
szegedy2016rethinking jelinek1977perplexity okazaki2022foundations takamura2010introduction
"""
ARXIV = {  # the ids that are easy to mistake
    "vaswani2017attention": "1706.03762",
    "bahdanau2015neural": "1409.0473",
    "sutskever2014sequence": "1409.3215",
    "luong2015effective": "1508.04025",
    "he2016deep": "1512.03385",
    "ba2016layer": "1607.06450",
    "su2021roformer": "2104.09864",
}


def isbn_is_valid(isbn: str) -> bool:
    digits = isbn.replace("-", "")
    if not re.fullmatch(r"97[89]\d{10}", digits):
        return False
    return sum(int(d) * (3 if i % 2 else 1) for i, d in enumerate(digits)) % 10 == 0


def cited() -> set[tuple[str, str]]:
    found = set()
    for path in myst.pages(ROOT):
        for match in re.finditer(r"\{cite(?::\w+)?\}`([^`]+)`", path.read_text(encoding="utf-8")):
            found |= {(key.strip(), path.name) for key in match[1].split(",")}
    for path in [*ROOT.glob("lib/*.py"), *ROOT.glob("exercises/**/*.py")]:
        for match in re.finditer(
            r"出典[:：]\s*([a-z]+\d{4}[a-z]+)", path.read_text(encoding="utf-8")
        ):
            found.add((match[1], path.name))
    return found


def test_isbn_check_can_fail():
    assert isbn_is_valid("978-4-274-22900-8")
    assert not isbn_is_valid("9784274229400")  # the number printed in the lectures
    assert not isbn_is_valid("4274229009")


def test_all_agreed_keys_exist():
    assert set(BIB) >= set(KEYS.split())


def test_every_cited_key_exists():
    lost = {(key, page) for key, page in cited() if key not in BIB}
    assert not lost, lost


@pytest.mark.parametrize("key", BIB)
def test_entry_is_complete_and_well_formed(key: str):
    entry = BIB[key]
    field = entry.fields
    assert re.fullmatch(r"[a-z]+\d{4}[a-z]+", key)
    assert citations.people(entry) and field["title"] and re.fullmatch(r"\d{4}", field["year"])
    assert key.endswith(field["year"], 0, re.search(r"\d{4}", key).end())
    surname = citations.surname(citations.people(entry)[0])
    latin = re.sub(r"[^a-z]", "", surname.lower())
    assert not latin or key.startswith(latin.split()[0]), surname
    if "eprint" in field:
        assert (
            re.fullmatch(r"\d{4}\.\d{4,5}", field["eprint"]) and field["archiveprefix"] == "arXiv"
        )
        month = int(field["eprint"][2:4])
        assert 1 <= month <= 12 and 2000 + int(field["eprint"][:2]) <= int(field["year"])
        assert len(field["eprint"]) == (9 if field["eprint"] < "1501" else 10)
    if "isbn" in field:
        assert isbn_is_valid(field["isbn"])
    if "doi" in field:
        assert re.fullmatch(r"10\.\d{4,9}/\S+", field["doi"])
    if "pages" in field:
        assert re.fullmatch(r"S?\d+(--\d+)?", field["pages"])
        first, *last = [int(re.sub(r"\D", "", p)) for p in field["pages"].split("--")]
        assert not last or first <= last[0]
    if "url" in field:
        assert field["url"].startswith("https://")


@pytest.mark.parametrize(("key", "eprint"), ARXIV.items())
def test_arxiv_ids_that_are_easy_to_mistake(key: str, eprint: str):
    assert BIB[key].fields["eprint"] == eprint


def test_names_that_the_lectures_shorten():
    assert citations.whole_name(citations.people(BIB["luong2015effective"])[0]) == (
        "Minh-Thang Luong"
    )
    assert BIB["okazaki2022foundations"].fields["isbn"] == "9784274229008"


def test_japanese_names_are_not_turned_round():
    entry = BIB["okazaki2022foundations"]
    assert citations.short(entry) == "岡﨑直観ほか"
    assert citations.full(entry).startswith("岡﨑直観、荒瀬由紀、")
    text = (ROOT / "references.bib").read_text(encoding="utf-8")
    for names in re.findall(r"author\s*=\s*\{(.*)\},?$", text, re.M):
        wide = [name for name in names.split(" and ") if myst.WIDE.search(name)]
        assert all(re.fullmatch(r"\{[^{},]+\}", name) for name in wide), wide


def test_short_and_full_forms():
    assert citations.dated(BIB["vaswani2017attention"]) == "Vaswani et al., 2017"
    assert citations.dated(BIB["kneser1995improved"]) == "Kneser and Ney, 1995"
    assert citations.dated(BIB["elman1990finding"]) == "Elman, 1990"
    assert citations.full(BIB["elman1990finding"]) == (
        "Jeffrey L. Elman (1990). *Finding Structure in Time*. Cognitive Science 14(2), 179–211. "
        "<https://doi.org/10.1207/s15516709cog1402_1>"
    )
