"""Search for Japanese: the same pairs of characters in the index and in the query.

Sphinx splits the index into words and the query at spaces only, so compounds find nothing.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from pathlib import Path

from sphinx import search
from sphinx.util.index_entries import split_index_msg

JAPANESE = "々〆〇ぁ-ゟ゠-ヿ㐀-䶿一-鿿"
TOKEN = re.compile(rf"([{JAPANESE}]+)|([^\W{JAPANESE}]+)")
LONG_VOWEL = re.compile(r"(?<=[ァ-ヺー][ァ-ヺ])ー(?![ァ-ヺー])")
SCRIPT = Path(__file__).with_name("search.js")


def fold(text: str) -> str:
    """One spelling for full and half width, and for エンコーダー and エンコーダ."""
    return LONG_VOWEL.sub("", unicodedata.normalize("NFKC", text))


def split(text: str) -> list[str]:
    """Latin words; of Japanese runs each pair of characters, and each single character."""
    tokens = []
    for run, word in TOKEN.findall(fold(text)):
        tokens += [word] if word else [*run, *map("".join, itertools.pairwise(run))]
    return tokens


class Japanese(search.SearchLanguage):
    lang = "ja"
    language_name = "Japanese"
    js_splitter_code = SCRIPT.read_text(encoding="utf-8")

    def split(self, text: str) -> list[str]:
        return split(text)

    def word_filter(self, word: str) -> bool:
        return bool(word)


def load_index(self, stream, format, original=search.IndexBuilder.load):
    """Sphinx forgets the index entries of the pages that it does not write again."""
    original(self, stream, format)
    for page, entries in self.env.get_domain("index").entries.items():
        self._index_entries[page] = [
            (part, target, main)
            for kind, value, target, main, _ in entries
            for part in split_index_msg(kind, value)
        ]


def setup(app):
    search.languages["ja"] = Japanese
    search.IndexBuilder.load = load_index
