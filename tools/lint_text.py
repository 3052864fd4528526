"""Every check on the prose: terms, style, Markdown traps, numbers, labels, cells, figures.

Prints file:line: message and exits 1 when something is wrong. --warnings also lists what is only
worth a look. Two escapes, each with its reason, at the end of a line (or on a line beside a table):
<!-- given: 理由 --> for a number that is given and not measured, <!-- term: 理由 --> for a word.
"""

import argparse
import ast
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools import myst  # noqa: E402
from tools.myst import Block, Page, SourceError  # noqa: E402

MAX_LINES, MAX_COLUMNS = 25, 79
STATIC_DIRECTIVES = myst.DIRECTIVES | {"bibliography", "tableofcontents", "grid", "grid-item-card"}
LABEL = re.compile(r"[a-z0-9]+(?:[-_.][a-z0-9]+)*")
JAPANESE = re.compile(r"[぀-ヿ一-鿿]")
ESCAPE = re.compile(r"<!--\s*(given|term)\s*:?\s*(.*?)\s*-->")


@dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    message: str
    warning: bool = False

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {'注意: ' if self.warning else ''}{self.message}"


@dataclass(frozen=True)
class Term:
    ja: str
    en: str
    forbidden: tuple[tuple[str, re.Pattern], ...]


@dataclass
class Text:
    """A piece of prose with the place where it stands."""

    block: Block
    line: int
    raw: str
    where: str  # para item heading table title

    def escaped(self, kind: str) -> bool:
        return any(m[1] == kind and m[2] for m in ESCAPE.finditer(self.raw))

    def bare(self, roles: str = "") -> str:
        """Without code, math, roles, URLs and comments; link texts stay."""

        def handle(kind: str, match: re.Match) -> str:
            if kind == "target":
                return f" {match['text']} "
            if kind == "role" and match["role"] == "index":
                return re.sub(r"\s*<[^<>]*>$", "", match["content"])
            return roles if kind == "role" else match[0][1:] if kind == "escape" else ""

        return myst.substitute(self.raw, handle)


@dataclass
class Linter:
    root: Path
    findings: list[Finding] = field(default_factory=list)
    given: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)  # terms whose English has been given

    def __post_init__(self):
        path = self.root / "chapters" / "terms.yml"
        entries = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else []
        self.terms = [Term(e["ja"], e["en"], patterns(e.get("forbid") or [])) for e in entries]

    def report(self, page: Page, line: int, message: str, warning: bool = False) -> None:
        self.findings.append(Finding(self.shown(page.path), line, message, warning))

    def shown(self, path: Path) -> str:
        return str(path.relative_to(self.root) if path.is_relative_to(self.root) else path)

    def page(self, path: Path) -> None:
        try:
            page = myst.read(path)
        except (SourceError, yaml.YAMLError) as error:
            self.findings.append(Finding(self.shown(path), 1, f"読めません: {error}"))
            return
        texts = list(pieces(page.blocks))
        for check in CHECKS:
            check(self, page, texts)

    def plain_file(self, path: Path) -> None:
        """Only the terms, for Japanese that is no page of the book."""
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if ESCAPE.search(line):
                continue
            for term, variant in misused(self.terms, line, prose=False):
                message = f"「{variant}」ではなく「{term.ja}」と書きます"
                self.findings.append(Finding(self.shown(path), number, message))


Check = Callable[[Linter, Page, list[Text]], None]
CHECKS: list[Check] = []


def check(function: Check) -> Check:
    CHECKS.append(function)
    return function


def patterns(forbidden: list[str]) -> tuple[tuple[str, re.Pattern], ...]:
    plain = [x for x in forbidden if not x.startswith("re:")]
    regular = [x.removeprefix("re:") for x in forbidden if x.startswith("re:")]
    made = [re.compile(word_pattern(x)) for x in plain] + [re.compile(x) for x in regular]
    return tuple(zip(plain + regular, made, strict=True))


def word_pattern(word: str) -> str:
    """A Latin word stands alone; a katakana word does not end inside a longer one."""
    escaped = re.escape(word)
    if word.isascii():
        return rf"(?<![A-Za-z0-9_]){escaped}(?![A-Za-z0-9_])"
    return escaped


def misused(terms: list[Term], text: str, prose: bool) -> Iterator[tuple[Term, str]]:
    for term in terms:
        for written, pattern in term.forbidden:
            match = pattern.search(text)
            if match and (prose or not match[0].isascii()):
                yield term, match[0].strip() or written


def pieces(blocks: list[Block], inside: str = "") -> Iterator[Text]:
    """All prose of a page, one entry a paragraph, list item, heading, title or table row."""
    for block in blocks:
        if block.kind in ("para", "item"):
            yield Text(block, block.line, "\n".join(block.lines), block.kind)
        elif block.kind == "heading":
            yield Text(block, block.line, block.argument, "heading")
        elif block.kind == "table":
            for offset, row in enumerate(block.lines):
                yield Text(block, block.line + offset, row, "table")
        elif block.kind == "directive" and block.name not in ("figure", "math", "bibliography"):
            yield Text(block, block.line, block.argument, "title")
        yield from pieces(block.children, block.name)


# words and sentences


@check
def terms(linter: Linter, page: Page, texts: list[Text]) -> None:
    said = [(text.line, text.bare(), True, text.escaped("term")) for text in texts]
    for block in page.walk():
        if block.kind == "cell":
            lines = enumerate(block.lines, block.body_line)
            said += [(n, line, False, bool(ESCAPE.search(line))) for n, line in lines]
        if alt := block.options.get("alt"):
            said.append((block.line, alt, True, False))
    for line, text, prose, excused in said:
        for term, variant in misused(linter.terms, text, prose):
            if not excused:
                linter.report(page, line, f"「{variant}」ではなく「{term.ja}」と書きます")


@check
def english_at_first_use(linter: Linter, page: Page, texts: list[Text]) -> None:
    if not re.match(r"\d\d_", page.path.name):
        return
    prose = [text for text in texts if text.where in ("para", "item")]
    for term in linter.terms:
        if term.ja in linter.told or term.ja.casefold() == term.en.casefold():
            continue
        used = next((text for text in prose if term.ja in text.bare()), None)
        if used is None:
            continue
        linter.told.add(term.ja)
        if term.en.casefold() not in used.raw.casefold():
            message = f"「{term.ja}」が初めて出るところに（{term.en}）がありません"
            linter.report(page, used.line, message, warning=True)


POLITE = re.compile(
    r"(です|ます|ました|でした|ません|ませんでした|でしょう|ましょう|ください|くださいね"
    r"|ですか|ますか|でしょうか|ましょうか|ませんか|ですね|ますね|ですよ|ますよ|か)$"
)
PLAIN = re.compile(
    r"(だ|である|であった|だった|ではない|でない|だろう|であろう|[うくすつぬむるぐぶ]|い|た|[ぁ-ん]ん"
    r"|よ|ね|な|せよ|ろ)$"
)
NOUN_END = re.compile(r"(違い|つながり|ため|もの|こと|とき|ところ|ほう|くらい|ぐらい|よう|わけ)$")


def sentences(text: str) -> list[str]:
    """Sentences that end in 。; what stands in brackets or quotes belongs to none."""
    previous = None
    while previous != text:
        previous = text
        text = re.sub(r"「[^「」]*」|『[^『』]*』", "◇", text)
        text = re.sub(r"（[^（）]*）|\([^()]*\)", "", text)
    return [re.sub(r"[*_\s]", "", s) for s in re.split(r"(?<=[。！？])", text) if "。" in s]


@check
def polite_style(linter: Linter, page: Page, texts: list[Text]) -> None:
    for text in texts:
        if text.where != "para":
            continue
        for sentence in sentences(text.bare(roles="◇")):
            body = sentence.rstrip("。")
            if PLAIN.search(body) and not POLITE.search(body) and not NOUN_END.search(body):
                end = body[-12:]
                linter.report(page, text.line, f"です・ます で結びます：…{end}。")


# Markdown

COMMONMARK = MarkdownIt("commonmark")
GLANCE = re.compile(r"\*\*[「『（(][^*\n]*\*\*[ぁ-んァ-ヶ一-龠]|[ぁ-んァ-ヶ一-龠]\*\*[「『（(]")


def neutral_inline(raw: str) -> str:
    """Math and roles replaced by code spans: Markdown sees them as punctuation, too."""

    def handle(kind: str, match: re.Match) -> str:
        if kind == "role":
            return "`x`"
        return "$x$" if kind in ("math", "display") else match[0]

    return myst.substitute(raw, handle)


@check
def visible_asterisks(linter: Linter, page: Page, texts: list[Text]) -> None:
    for text in texts:
        cells = text.raw.strip().strip("|").split("|") if text.where == "table" else [text.raw]
        for cell in cells:
            source = neutral_inline(cell.strip())
            if shown_asterisks(source):
                linter.report(
                    page, text.line, "太字の ** が文字のまま出ます（括弧や句読点に接する）"
                )
            elif GLANCE.search(re.sub(r"`[^`]*`", "", source)):
                linter.report(
                    page, text.line, "太字が括弧に接しています。括弧の外か、空白を置きます"
                )


def shown_asterisks(source: str) -> bool:
    tokens = [child for token in COMMONMARK.parse(source) for child in token.children or []]
    return any(token.type == "text" and "**" in token.content for token in tokens)


@check
def doubled_nouns(linter: Linter, page: Page, texts: list[Text]) -> None:
    for text in texts:
        pattern = r"(図|表|式|練習|定理|Figure|Eq\.)\s?\{(numref|ref|eq|prf:ref)\}(`[^`<]*`)"
        for match in re.finditer(pattern, text.raw):
            message = f"「{match[1]}」は {{{match[2]}}} が書くので要りません"
            linter.report(page, text.line, message)


@check
def one_paragraph_one_line(linter: Linter, page: Page, texts: list[Text]) -> None:
    for text in texts:
        lines = text.raw.split("\n")
        soft = [i for i, line in enumerate(lines[:-1]) if not line.endswith(("\\", "  "))]
        if text.where in ("para", "item") and soft:
            linter.report(
                page, text.line + soft[0] + 1, "段落の途中で改行しています（一段落は一行）"
            )


@check
def bare_urls_and_html(linter: Linter, page: Page, texts: list[Text]) -> None:
    for text in texts:
        for kind, match in myst.spans(text.raw):
            if kind == "tag" and not re.match(r"</?br\b", match[0]):
                linter.report(page, text.line, f"生の HTML {match[0]} は使えません")
            if kind == "image":
                linter.report(page, text.line, "画像は :::{figure} で置きます")
        if "http" in re.sub(r"<[^>]*>", "", text.bare()) and "://" in text.bare():
            linter.report(page, text.line, "URL は <…> で囲みます")
    for block in page.walk():
        if block.kind == "html":
            linter.report(page, block.line, "生の HTML は使えません")
        if block.kind == "para" and block.lines[0].startswith("\\begin{"):
            linter.report(page, block.line, "式は $$ … $$ で書きます")


# numbers

NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.,/])(?<![A-Za-z0-9]-)(?P<whole>\d{1,3}(?:,\d{3})+|\d+)(?P<fraction>\.\d+)?\s*(?P<percent>%|％|パーセント)?"
)
ALLOWED = [
    re.compile(r"(?<!\d)(?:1[6-9]|20)\d\d\s*年"),  # years
    re.compile(r"[（(][^（()）]*?(?:1[6-9]|20)\d\d[）)]"),  # (Author, 2017)
    re.compile(r"約\s*\d[\d,]*\s*(?:時間|分|秒)(?:\s*\d+\s*秒)?"),
    re.compile(r"[A-Za-z][A-Za-z-]*\s+v?\d+(?:\.\d+)+"),  # Python 3.11, CC BY 4.0
    re.compile(r"(?:arXiv|ISBN)[:\s]*[\d.-]+X?"),
    re.compile(r"(?:第|Week|Chapter)\s*\d+(?:\.\d+)?\s*(?:章|回|節|週)?"),
]


def measured(text: str) -> str | None:
    """The first number in a text that looks measured: a decimal, a percentage, three digits."""
    text = unicodedata.normalize("NFKC", text)
    for pattern in ALLOWED:
        text = pattern.sub(" ", text)
    for match in NUMBER.finditer(text):
        big = len(match["whole"].replace(",", "")) >= 3
        if match["fraction"] or match["percent"] or big:
            return match[0].strip()
    return None


@check
def measured_numbers(linter: Linter, page: Page, texts: list[Text]) -> None:
    excused = tables_given(linter, page)
    for text in texts:
        excuse = text.escaped("given") or (text.where == "table" and text.block.line in excused)
        found = next((n for part in number_parts(text) if (n := measured(part))), None)
        if found and excuse:
            linter.given += 1
        elif found:
            message = f"{found}：測った数は glue か引用で。与えた数なら $…$ か given の印を付けます"
            linter.report(page, text.line, message)
        reasonless = [m for m in ESCAPE.finditer(text.raw) if not m[2]]
        for match in reasonless:
            linter.report(page, text.line, f"<!-- {match[1]}: --> には理由が要ります")


def number_parts(text: Text) -> Iterator[str]:
    """Sentences (rows of a table) that cite nothing."""
    whole = text.where == "table"
    parts = [text.raw] if whole else re.split(r"(?<=[。！？])(?!\s*\{cite)", text.raw)
    for part in parts:
        if "{cite" not in part:
            yield Text(text.block, text.line, part, text.where).bare()


def tables_given(linter: Linter, page: Page) -> set[int]:
    """Tables beside a line <!-- given: reason -->, by their first line."""
    lines = page.text.splitlines()
    found = set()
    for block in page.walk():
        if block.kind != "table":
            continue
        before = next((x for x in reversed(lines[: block.line - 1]) if x.strip()), "")
        after = next((x for x in lines[block.line - 1 + len(block.lines) :] if x.strip()), "")
        marks = [ESCAPE.fullmatch(line.strip()) for line in (before, after)]
        if any(mark and mark[1] == "given" and mark[2] for mark in marks):
            found.add(block.line)
    return found


# structure


@check
def labels(linter: Linter, page: Page, texts: list[Text]) -> None:
    waiting: list[Block] = []
    for block in page.walk():
        if block.kind == "label":
            waiting.append(block)
            register(linter, page, block.line, block.name)
            continue
        if block.kind == "heading":
            heading_label(linter, page, block, [x.name for x in waiting])
        waiting = []
        own = block.name if block.kind == "math" else block.options.get("label")
        own = own or (block.options.get("name") if block.name == "figure" else None)
        if own:
            register(linter, page, block.line, own)


def register(linter: Linter, page: Page, line: int, label: str) -> None:
    if not LABEL.fullmatch(label):
        linter.report(page, line, f"ラベル {label} は英小文字、数字、- で書きます")
    if label in linter.labels:
        linter.report(page, line, f"ラベル {label} は {linter.labels[label]} にもあります")
    linter.labels.setdefault(label, f"{linter.shown(page.path)}:{line}")


def heading_label(linter: Linter, page: Page, block: Block, names: list[str]) -> None:
    prefix = "ch-" if block.level == 1 else "sec-"
    if not names:
        linter.report(page, block.line, f"見出しの前に ({prefix}…)= がありません")
    elif not any(name.startswith(prefix) for name in names):
        linter.report(page, block.line, f"この見出しのラベルは {prefix} で始めます")


@check
def known_directives_and_roles(linter: Linter, page: Page, texts: list[Text]) -> None:
    known = myst.DIRECTIVES if page.executable else STATIC_DIRECTIVES
    for block in page.walk():
        if block.kind == "directive" and block.name not in known:
            linter.report(page, block.line, f"ディレクティブ {{{block.name}}} は使えません")
        elif block.kind == "directive" and block.fence.startswith("`"):
            linter.report(page, block.line, f"{{{block.name}}} はコロン三つ（:::）で書きます")
    for text in texts:
        for kind, match in myst.spans(text.raw):
            if kind == "role" and match["role"] not in myst.ROLES:
                linter.report(page, text.line, f"ロール {{{match['role']}}} は使えません")


@check
def front_matter(linter: Linter, page: Page, texts: list[Text]) -> None:
    has_cells = any(block.kind == "cell" for block in page.walk())
    header = (page.front.get("jupytext") or {}).get("text_representation") or {}
    ready = page.front.get("kernelspec", {}).get("name") and header.get("format_name") == "myst"
    if has_cells and not ready:
        linter.report(page, 1, "セルがあるのに、先頭に jupytext と kernelspec がそろっていません")
    if page.executable and not has_cells:
        linter.report(page, 1, "kernelspec があるのに、セルがありません")


@check
def frame(linter: Linter, page: Page, texts: list[Text]) -> None:
    """What every chapter has at its top and its end."""
    if not re.match(r"\d\d_", page.path.name) or "week" not in page.path.parent.name:
        return
    wanted = {
        "この章でできるようになること": r"\{admonition\}\s*この章でできるようになること",
        "読む時間の目安：約 N 分、実行：約 M 秒": r"時間の目安：約 \d+ 分、実行：約 \d+ [秒分]",
        "まだ解けていないこと": r"(?m)^#+ .*まだ解けていないこと",
    }
    for name, pattern in wanted.items():
        if not re.search(pattern, page.text):
            linter.report(page, 1, f"「{name}」がありません")


# cells and figures


def width(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


@check
def cells(linter: Linter, page: Page, texts: list[Text]) -> None:
    for block in page.walk():
        if block.kind != "cell":
            continue
        code = [x for x in block.lines if x.strip() and not x.strip().startswith("#")]
        if len(code) > MAX_LINES:
            linter.report(page, block.line, f"セルが {len(code)} 行あります（{MAX_LINES} 行まで）")
        for number, line in enumerate(block.lines, block.body_line):
            if width(line) > MAX_COLUMNS:
                linter.report(page, number, f"{width(line)} 桁あります（{MAX_COLUMNS} 桁まで）")
        figures_in_cell(linter, page, block)


def figures_in_cell(linter: Linter, page: Page, block: Block) -> None:
    try:
        tree = ast.parse("\n".join(block.lines))
    except SyntaxError as error:
        line = block.body_line + (error.lineno or 1) - 1
        linter.report(page, line, "セルが Python として読めません")
        return
    for call in calls(ast.walk(tree)):
        here = block.body_line + call.lineno - 1
        name = called(call)
        if name in ("explore", "figure") and not alt_text(call, name):
            linter.report(page, here, f"{name}() に日本語の alt がありません")
        if name in ("plt.show", "pyplot.show"):
            linter.report(page, here, "plt.show() ではなく figure(fig, alt) で出します")
        if name.startswith("sys.path."):
            linter.report(page, here, "sys.path は書きません")
    if draws(tree) and not shows(tree):
        linter.report(page, block.line, "図を描くセルは figure(…) か explore(…) で終えます")


def calls(nodes) -> list[ast.Call]:
    return [node for node in nodes if isinstance(node, ast.Call)]


def called(call: ast.Call) -> str:
    return ast.unparse(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else ""


def outside_functions(tree: ast.Module) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def draws(tree: ast.Module) -> bool:
    makers = {"plt.subplots", "plt.figure", "plots.heatmap", "plots.curves", "plots.bars"}
    return any(called(call) in makers for call in calls(outside_functions(tree)))


def shows(tree: ast.Module) -> bool:
    names = {called(call).split(".")[-1] for call in calls(outside_functions(tree))}
    return bool(names & {"figure", "explore"} - {"plt.figure"})


def alt_text(call: ast.Call, name: str) -> bool:
    given = next((k.value for k in call.keywords if k.arg == "alt"), None)
    if given is None and name == "figure" and len(call.args) > 1:
        given = call.args[1]
    if given is None:
        return False
    strings = [n.value for n in ast.walk(given) if isinstance(n, ast.Constant)]
    written = "".join(s for s in strings if isinstance(s, str))
    return isinstance(given, ast.Name | ast.Call) or bool(JAPANESE.search(written))


@check
def alt_of_figures(linter: Linter, page: Page, texts: list[Text]) -> None:
    for block in page.walk():
        if block.name == "figure" and not JAPANESE.search(block.options.get("alt", "")):
            linter.report(page, block.line, "figure に日本語の :alt: がありません")


# files


def other_files(root: Path) -> list[Path]:
    """Japanese outside the pages, where only the terms are checked."""
    found = [*root.glob("lib/*.py"), *root.glob("exercises/week*.md")]
    return sorted([*found, *root.glob("exercises/checks/*.py"), *root.glob("README.ja.md")])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warnings", action="store_true")
    parser.add_argument("--check", action="store_true", help="does nothing more; for symmetry")
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args(arguments)
    linter = Linter(options.root.resolve())
    for path in options.files or myst.pages(linter.root):
        linter.page(path.resolve())
    for path in [] if options.files else other_files(linter.root):
        linter.plain_file(path)
    errors = sorted(f for f in set(linter.findings) if not f.warning)
    warnings = sorted(f for f in set(linter.findings) if f.warning)
    for finding in errors + (warnings if options.warnings else []):
        print(finding)
    print(f"誤り {len(errors)} 件、注意 {len(warnings)} 件、given の印 {linter.given} 行")
    return int(bool(errors))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
