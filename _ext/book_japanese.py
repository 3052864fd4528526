"""Japanese text in Markdown and Japanese words in the interface."""

from __future__ import annotations

import re
from gettext import NullTranslations
from pathlib import Path

from docutils import nodes
from markdown_it.common.utils import isMdAsciiPunct, isPunctChar, isWhiteSpace
from markdown_it.rules_inline.state_inline import StateInline
from sphinx import locale
from sphinx.errors import ExtensionError

WIDE = re.compile(
    "[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uff60\uffe0-\uffe6]"
)

# catalogue -> English -> Japanese: what the themes' own catalogues lack or say oddly
STRINGS = {
    "sphinx": {
        "Link to this heading": "この見出しへのリンク",
        "Link to this equation": "この式へのリンク",
        "Link to this image": "この図へのリンク",
        "Link to this table": "この表へのリンク",
        "Link to this code": "このコードへのリンク",
        "Link to this term": "この用語へのリンク",
        "Tip": "ヒント",
        "Color mode": "明るさの切り替え",
        "Light": "明るい",
        "Dark": "暗い",
        "System Settings": "機械の設定に合わせる",
        "Collapse Sidebar": "目次を畳む",
        "Expand Sidebar": "目次を開く",
        "Site navigation": "本の目次",
        "Section Navigation": "本の目次",
        "On this page": "このページの内容",
        "Back to top": "先頭へ戻る",
        "Search": "検索",
        "Ctrl": "Ctrl",
        "previous page": "前のページ",
        "next page": "次のページ",
        "previous": "前へ",
        "next": "次へ",
        "© Copyright %(copyright)s.": "© %(copyright)s",
    },
    "booktheme": {"Contents": "このページの内容", "By": "著者", "Copyright": "©"},
}
COPY_BUTTON = """'ja': {
    'copy': 'コピー',
    'copy_to_clipboard': 'クリップボードにコピー',
    'copy_success': 'コピーしました',
    'copy_failure': 'コピーできませんでした',
  },
  """


def is_wide(char: str) -> bool:
    return bool(WIDE.match(char))


def scan_delimiters(self, start, can_split, original=StateInline.scanDelims):
    """CommonMark's flanking rule, but a full-width character beside ** is a word boundary."""
    found = original(self, start, can_split)
    end = start + found.length
    before = self.src[start - 1] if start else " "
    after = self.src[end] if end < self.posMax else " "
    if not can_split or not (is_wide(before) or is_wide(after)):
        return found

    def can_stand(inside: str, outside: str) -> bool:
        if isWhiteSpace(ord(inside)):
            return False
        return any(is_wide(c) for c in (inside, outside)) or not is_mark(inside) or is_mark(outside)

    def is_mark(char: str) -> bool:
        code = ord(char)
        return isWhiteSpace(code) or isMdAsciiPunct(code) or isPunctChar(char)

    opens = found.can_open or can_stand(after, before)
    closes = found.can_close or can_stand(before, after)
    return type(found)(opens, closes, found.length)


def join_lines(app, doctree):
    """A line break between two full-width characters is not a space."""
    kept = (nodes.literal, nodes.math, nodes.raw)
    for block in doctree.findall(nodes.TextElement):
        if isinstance(block, (nodes.FixedTextElement, nodes.Inline)):
            continue
        texts = list(block.findall(nodes.Text))
        whole, position = "".join(texts), 0
        for text in texts:
            characters = [
                c
                for i, c in enumerate(text, position)
                if c != "\n"
                or not (is_wide(whole[i - 1 : i] or " ") and is_wide(whole[i + 1 : i + 2] or " "))
            ]
            position += len(text)
            if len(characters) < len(text) and not isinstance(text.parent, kept):
                text.parent.replace(text, nodes.Text("".join(characters)))


class Catalogue(NullTranslations):
    """A few strings that come before those of an installed catalogue."""

    def __init__(self, strings: dict[str, str], rest: NullTranslations) -> None:
        super().__init__()
        self.strings = strings
        self.add_fallback(rest)

    def gettext(self, message: str) -> str:
        return self.strings.get(message) or super().gettext(message)


def translate_interface(app, config):
    for name, strings in STRINGS.items():
        rest = locale.translators.get(("general", name), NullTranslations())
        locale.translators["general", name] = Catalogue(strings, rest)
    app.translator = locale.translators["general", "sphinx"]  # the one that templates use


def translate_copy_button(app, exception):
    """sphinx-copybutton has no Japanese and no setting for it."""
    script = Path(app.outdir, "_static", "copybutton.js")
    if exception or app.builder.format != "html" or not script.exists():
        return
    text = script.read_text(encoding="utf-8")
    if "'ja'" not in text:
        if "'en': {" not in text:
            raise ExtensionError("copybutton.js has changed: its messages were not found")
        script.write_text(text.replace("'en': {", COPY_BUTTON + "'en': {", 1), encoding="utf-8")


def setup(app):
    StateInline.scanDelims = scan_delimiters
    app.connect("config-inited", translate_interface)
    app.connect("doctree-read", join_lines)
    app.connect("build-finished", translate_copy_button)
