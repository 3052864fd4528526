"""chapters/weekNN/NN_name.md -> NN_name.ipynb beside it, for Colab and download.

A notebook works by itself: its first code cell carries lib/, MyST becomes plain Markdown, figures
become data URIs. --check writes nothing and exits 1, naming each file that differs.
"""

import argparse
import base64
import html
import io
import json
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools import citations, figure_png, myst  # noqa: E402
from tools.myst import Block, Page, SourceError  # noqa: E402

TITLES = {"note": "注釈", "tip": "ヒント", "important": "重要"}
GLUE = "「上のセルの出力」"
BRING = {"matplotlib_fontja": "matplotlib-fontja", "jaxtyping": "jaxtyping"}
START, END = "\x01", "\x02"  # around what a role became, until close_up
HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}

PREPARE = """\
#@title 準備：部品を読み込みます（最初に一度、実行してください） { display-mode: "form" }
import base64
import importlib
import importlib.util
import io
import pathlib
import subprocess
import sys
import zipfile


def prepare(archive, bring):
    here = pathlib.Path.cwd()
    book = [p for p in (here, *here.parents) if (p / "_toc.yml").is_file()]
    root = book[0] if book else here / "toi_transformer"
    if not book:  # Colab や、このファイルだけを置いたフォルダ
        with zipfile.ZipFile(io.BytesIO(base64.b64decode(archive))) as z:
            z.extractall(root)  # 実行し直すと、はじめの内容に戻る
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    find = importlib.util.find_spec
    base = ["torch", "numpy", "matplotlib", "ipywidgets", "tqdm"]
    absent = [name for name in base if find(name) is None]
    if absent:
        raise ModuleNotFoundError(
            f"先に pip install {' '.join(absent)} を実行してください"
        )
    absent = [package for module, package in bring.items() if find(module) is None]
    if absent:
        pip = [sys.executable, "-m", "pip", "install", "-q", *absent]
        done = subprocess.run(pip, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(
                f"{'、'.join(absent)} を入れられませんでした。インターネットへの"
                f"接続を確かめて、もう一度実行してください\\n{done.stderr[-500:]}"
            )
        importlib.invalidate_caches()
    print("準備ができました。部品の場所：", root / "lib")


# 長い文字列は、この本の lib/ をまとめたもの（zip を base64 で書いたもの）です
prepare("@archive@", bring=@bring@)
"""
LIB_FILES = {".py", ".toml", ".json", ".csv", ".tsv", ".txt", ".mplstyle"}
RECORDED = re.compile(r'\brecorded\("(\w+)"\)')
PAYLOAD = re.compile(r'^prepare\("([A-Za-z0-9+/=]*)"', re.M)


def pack(root: Path, records: Iterable[str] = ()) -> str:
    """lib/ and the recorded results of that name as a zip in base64, the same on every run."""
    paths = {p for p in (root / "lib").rglob("*") if p.suffix in LIB_FILES}
    paths |= {root / "experiments" / f"{name}.json" for name in records}
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(paths)}
    return base64.b64encode(zipped(files)).decode()


def zipped(files: dict[str, bytes]) -> bytes:
    """A zip, the same bytes for the same files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as z:
        for name, content in files.items():
            info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            z.writestr(info, content, compresslevel=9)
    return buffer.getvalue()


def unpack(archive: str) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(archive))) as z:
        return {name: z.read(name).decode("utf-8") for name in z.namelist()}


def locked(root: Path) -> dict[str, str]:
    path = root / "requirements.lock"
    lines = path.read_text(encoding="utf-8").split() if path.exists() else []
    return {line.split("==")[0]: line for line in lines}


@dataclass
class Target:
    """What a label names. Figures and equations have a number, headings a title."""

    page: Page
    kind: str
    title: str = ""
    number: str = ""


@dataclass
class Book:
    """What a page needs to know of the others: titles, numbers, bibliography, macros."""

    root: Path
    pages: dict[Path, Page] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    chapter: dict[Path, int] = field(default_factory=dict)
    counts: Counter = field(default_factory=Counter)

    def __post_init__(self):
        config = self.settings("_config.yml")
        self.sphinx = (config.get("sphinx") or {}).get("config") or {}
        mathjax = self.sphinx.get("mathjax3_config") or {}
        self.macros = (mathjax.get("tex") or {}).get("macros") or {}
        self.bib = citations.load(self.root / "references.bib")
        self.number_chapters(self.settings("_toc.yml"))
        for path in myst.pages(self.root):
            self.add(path)

    def settings(self, name: str) -> dict:
        path = self.root / name
        return yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}

    def number_chapters(self, toc: dict) -> None:
        """As Sphinx numbers them: one number a chapter, running on from part to part."""
        everywhere = (toc.get("options") or toc.get("defaults") or {}).get("numbered")
        number = 0
        for part in toc.get("parts") or [toc]:
            for entry in part.get("chapters") or []:
                if part.get("numbered", everywhere):
                    number += 1
                    self.number_chapter(entry, number)

    def number_chapter(self, entry: dict, number: int) -> None:
        if "file" in entry:
            self.chapter[self.root / (entry["file"].removesuffix(".md") + ".md")] = number
        for section in entry.get("sections") or []:
            self.number_chapter(section, number)

    def add(self, path: Path) -> Page:
        if path in self.pages:
            return self.pages[path]
        page = self.pages[path] = myst.read(path)
        labels: list[str] = []
        for block in page.walk():
            if block.kind == "label":
                labels.append(block.name)
                continue
            if block.kind == "heading":
                self.targets |= {x: Target(page, "heading", block.argument) for x in labels}
            labels = []
            self.enumerate(page, block)
        return page

    def enumerate(self, page: Page, block: Block) -> None:
        """Numbers labelled equations, and figures that have a caption, as Sphinx does."""
        if block.kind == "math" or block.name == "math":
            kind, label = "equation", equation_label(block)
            counted = bool(label)
        else:
            kind, label = "figure", block.options.get("name", "")
            counted = block.name == "figure" and bool(block.children)
        if counted:
            chapter = self.chapter.get(page.path)
            self.counts[kind, chapter] += 1
            number = str(self.counts[kind, chapter])
            full = f"{chapter}.{number}" if chapter else number
            self.targets[label or f"figure-{page.path}-{block.line}"] = Target(
                page, kind, number=full
            )

    def convert(self, path: Path) -> nbformat.NotebookNode:
        return Notebook(self, self.add(path.resolve())).build()

    def shown(self, path: Path) -> Path:
        return path.relative_to(self.root) if path.is_relative_to(self.root) else path


def equation_label(block: Block) -> str:
    return block.name if block.kind == "math" else block.options.get("label", "")


class Notebook:
    """One page on its way to a notebook."""

    def __init__(self, book: Book, page: Page):
        self.book, self.page = book, page
        self.cells: list[nbformat.NotebookNode] = []
        self.waiting: list[Block] = []  # Markdown that is not in a cell yet
        self.section = "top"  # label of the last heading, from which cell ids are made
        self.used: Counter = Counter()
        self.cited: list[str] = []

    def fail(self, line: int, message: str):
        raise SourceError(f"{self.book.shown(self.page.path)}:{line}: {message}")

    # cells

    def build(self) -> nbformat.NotebookNode:
        label = ""
        for block in self.page.blocks:
            if block.kind in ("heading", "cell", "break"):
                self.flush()
            if block.kind == "label":
                label = block.name
            elif block.kind == "heading":
                self.section, label = label or self.section, ""
            if block.kind == "cell":
                self.code(block)
            else:
                self.waiting.append(block)
        self.flush()
        self.references()
        first_is_text = bool(self.cells) and self.cells[0].cell_type == "markdown"
        self.cells.insert(int(first_is_text), self.preparation())
        return self.notebook()

    def notebook(self) -> nbformat.NotebookNode:
        meta = {
            "colab": {"provenance": [], "toc_visible": True},
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
        nb = nbformat.v4.new_notebook(cells=self.cells, metadata=meta)
        nb.nbformat, nb.nbformat_minor = 4, 5
        nbformat.validate(nb)
        return nb

    def cell_id(self) -> str:
        stem = re.sub(r"[^A-Za-z0-9_-]", "-", self.section)[:56]
        self.used[stem] += 1
        return f"{stem}-{self.used[stem]}"

    def flush(self) -> None:
        self.text("\n".join(self.render_all(self.waiting)))
        self.waiting = []

    def text(self, text: str) -> None:
        if text.strip():
            self.cells.append(nbformat.v4.new_markdown_cell(text.strip(), id=self.cell_id()))

    def code(self, block: Block) -> None:
        meta: dict = {"tags": block.tags} if block.tags else {}
        if HIDDEN & set(block.tags):
            meta["jupyter"] = {"source_hidden": True}
        source = "\n".join(block.lines).strip("\n")
        self.cells.append(nbformat.v4.new_code_cell(source, id=self.cell_id(), metadata=meta))

    def preparation(self) -> nbformat.NotebookNode:
        versions = locked(self.book.root)
        bring = {module: versions.get(name, name) for module, name in BRING.items()}
        records = RECORDED.findall(self.page.path.read_text(encoding="utf-8"))
        source = PREPARE.replace("@archive@", pack(self.book.root, records))
        source = source.replace("@bring@", json.dumps(bring)).strip()
        meta = {"cellView": "form", "jupyter": {"source_hidden": True}}
        return nbformat.v4.new_code_cell(source, id="setup", metadata=meta)

    def references(self) -> None:
        if self.cited:
            self.section = "references"
            entries = sorted((self.book.bib[key] for key in self.cited), key=citations.order)
            listed = "\n".join(f"- {citations.full(entry)}" for entry in entries)
            self.text(f"## 参考文献\n\n{listed}")

    # blocks: each method gives the lines of one block, without blank lines around them

    def render_all(self, blocks: list[Block]) -> list[str]:
        lines: list[str] = []
        before = ""
        for block in blocks:
            rendered = self.render(block)
            if rendered and lines and not before == block.kind == "item":
                lines.append("")
            before = block.kind if rendered else before
            lines += rendered
        return lines

    def render(self, block: Block) -> list[str]:
        return getattr(self, "render_" + block.kind)(block)

    def render_comment(self, block: Block) -> list[str]:
        return []

    render_label = render_break = render_comment

    def render_html(self, block: Block) -> list[str]:
        self.fail(block.line, "生の HTML は使えません")

    def render_cell(self, block: Block) -> list[str]:
        self.fail(block.line, "code-cell は囲みの中に置けません")

    def render_heading(self, block: Block) -> list[str]:
        return [f"{'#' * block.level} {self.inline(block.argument, block.line)}"]

    def render_para(self, block: Block) -> list[str]:
        return [block.indent + self.inline(join(block.lines), block.line)]

    def render_item(self, block: Block) -> list[str]:
        return [block.indent + block.name + self.inline(join(block.lines), block.line)]

    def render_table(self, block: Block) -> list[str]:
        return [self.inline(row, block.line + i) for i, row in enumerate(block.lines)]

    def render_quote(self, block: Block) -> list[str]:
        return quoted(self.render_all(block.children))

    def render_code(self, block: Block) -> list[str]:
        return indented(block.indent, [block.fence + block.name, *block.lines, block.fence])

    def render_math(self, block: Block) -> list[str]:
        body = self.expand("\n".join(block.lines)).strip()
        if "\\\\" in body and "\\begin" not in body:  # Sphinx aligns such lines by itself
            body = "\\begin{aligned}\n" + body + "\n\\end{aligned}"
        label = equation_label(block)
        tag = [f"\\tag{{{self.book.targets[label].number}}}"] if label else []
        return indented(block.indent, ["$$", *body.splitlines(), *tag, "$$"])

    def render_directive(self, block: Block) -> list[str]:
        if block.name not in myst.DIRECTIVES:
            self.fail(block.line, f"知らないディレクティブ {{{block.name}}} です")
        if block.name == "math":
            return self.render_math(block)
        lines = getattr(self, block.name, self.admonition)(block)
        return indented(block.indent, lines)

    def admonition(self, block: Block) -> list[str]:
        body = self.render_all(block.children)
        title = TITLES.get(block.name)
        if title is None:
            title = self.inline(block.argument, block.line)
        elif block.argument:  # :::{note} and the text on the same line
            body = [self.inline(block.argument, block.line), "", *body]
        return quoted([f"**{title}**", "", *body])

    def dropdown(self, block: Block) -> list[str]:
        title = as_html(self.inline(block.argument or "答え", block.line))
        body = self.render_all(block.children)
        return ["<details>", f"<summary>{title}</summary>", "", *body, "", "</details>"]

    def figure(self, block: Block) -> list[str]:
        alt = block.options.get("alt") or self.fail(block.line, "figure に :alt: がありません")
        path = self.picture(block)
        with figure_png.Image.open(path) as image:
            width = min(image.width // 2, 760)
        data = base64.b64encode(path.read_bytes()).decode()
        source = f"data:image/{'png' if path.suffix == '.png' else 'jpeg'};base64,{data}"
        lines = [f'<img alt="{html.escape(alt)}" width="{width}" src="{source}">']
        if not block.children:
            return lines
        label = block.options.get("name") or f"figure-{self.page.path}-{block.line}"
        caption = f"図 {self.book.targets[label].number}"
        return [*lines, "", f"**{caption}** " + " ".join(self.render_all(block.children))]

    def picture(self, block: Block) -> Path:
        path = (self.page.path.parent / block.argument).resolve()
        if not path.is_file():
            self.fail(block.line, f"図 {block.argument} がありません")
        if path.suffix == ".svg":
            if not figure_png.is_current(path):
                self.fail(block.line, f"{path.stem}.png が古いか、ありません（make notebooks）")
            path = path.with_suffix(".png")
        return path

    # inline

    def inline(self, text: str, line: int) -> str:
        def handle(kind: str, match: re.Match) -> str:
            method = getattr(self, "inline_" + kind, None)
            made = method(match, line) if method else match[0]
            return f"{START}{made}{END}" if kind == "role" else made

        return close_up(myst.substitute(text, handle)).rstrip()

    def inline_comment(self, match: re.Match, line: int) -> str:
        return ""

    def inline_math(self, match: re.Match, line: int) -> str:
        return f"${self.expand(match['math'])}$"

    def inline_display(self, match: re.Match, line: int) -> str:
        return f"$${self.expand(match['display'])}$$"

    def inline_image(self, match: re.Match, line: int) -> str:
        self.fail(line, "画像は :::{figure} で置きます")

    def inline_target(self, match: re.Match, line: int) -> str:
        if not match["target"].startswith(("https://", "http://")):
            self.fail(line, f"相対リンク {match['target']} はノートブックで切れます")
        return f"[{self.inline(match['text'], line)}]({match['target']})"

    def inline_role(self, match: re.Match, line: int) -> str:
        role, content = match["role"], match["content"].strip()
        if role not in myst.ROLES:
            self.fail(line, f"知らないロール {{{role}}} です")
        if role == "glue:text":
            return GLUE
        if role.startswith("cite"):
            return self.cite(role, content, line)
        text, target = text_and_target(content)
        if role == "index":
            return text or target
        if role == "doc":
            return text or f"「{self.document(target, line).title}」"
        return self.reference(role, text, target, line)

    def document(self, target: str, line: int) -> Page:
        base = self.book.root if target.startswith("/") else self.page.path.parent
        path = (base / (target.strip("/").removesuffix(".md") + ".md")).resolve()
        if not path.exists():
            self.fail(line, f"ページ {target} がありません")
        return self.book.add(path)

    def reference(self, role: str, text: str, label: str, line: int) -> str:
        target = self.book.targets.get(label)
        if target is None:
            self.fail(line, f"ラベル {label} がどこにもありません")
        if target.kind != {"eq": "equation", "numref": "figure", "ref": "heading"}[role]:
            self.fail(line, f"{label} は {target.kind} なので {{{role}}} では指せません")
        if role == "eq":
            form = self.book.sphinx.get("math_eqref_format") or "式 ({number})"
        elif role == "numref":
            form = (text or "図 {number}").replace("%s", "{number}")
        else:
            form = text or f"「{self.inline(target.title, line)}」"
        said = form.replace("{number}", target.number)
        where = self.inline(target.page.title, line)
        return said if target.page is self.page or where in said else f"{said}（「{where}」）"

    def cite(self, role: str, content: str, line: int) -> str:
        keys = [key.strip() for key in content.split(",")]
        for key in keys:
            if key not in self.book.bib:
                self.fail(line, f"文献 {key} が references.bib にありません")
            if key not in self.cited:
                self.cited.append(key)
        entries = [self.book.bib[key] for key in keys]
        if role == "cite:t":
            return "; ".join(f"{citations.short(e)} ({e.fields['year']})" for e in entries)
        return "(" + "; ".join(map(citations.dated, entries)) + ")"

    def expand(self, tex: str) -> str:
        """The book's own macros written out, so that any renderer can set the formula."""
        for name, macro in self.book.macros.items():
            tex = expand_macro(tex, name, macro)
        return tex


def close_up(text: str) -> str:
    """Takes away the spaces around a role where Japanese now stands on both sides of them."""
    text = re.sub(rf"(?<={myst.WIDE.pattern}) {START}(?={myst.WIDE.pattern})", "", text)
    text = re.sub(rf"(?<={myst.WIDE.pattern}){END} (?={myst.WIDE.pattern})", "", text)
    return text.replace(START, "").replace(END, "")


def join(lines: list[str]) -> str:
    """One line of several; no space where a full-width character ends or begins one."""
    text = lines[0]
    for line in lines[1:]:
        hard = text.endswith(("\\", "  "))
        wide = myst.is_wide(text[-1:]) or myst.is_wide(line[:1])
        text = text + ("\n" if hard else "" if wide else " ") + line
    return text


def indented(indent: str, lines: list[str]) -> list[str]:
    return [(indent + line).rstrip() for line in lines]


def quoted(lines: list[str]) -> list[str]:
    return [("> " + line).rstrip() for line in lines]


def as_html(text: str) -> str:
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text)
    return re.sub(r"`([^`]+)`", lambda m: f"<code>{html.escape(m[1])}</code>", text)


def text_and_target(content: str) -> tuple[str, str]:
    match = re.match(r"^(.*?)\s*<([^<>]+)>$", content, re.S)
    return (match[1], match[2]) if match else ("", content)


def expand_macro(tex: str, name: str, macro: str | list) -> str:
    body, count = (macro, 0) if isinstance(macro, str) else (macro[0], macro[1])
    pattern = re.compile(rf"\\{name}(?![A-Za-z])")
    while match := pattern.search(tex):
        end, given = match.end(), []
        for _ in range(count):
            argument, end = argument_at(tex, end)
            given.append(argument)
        filled = re.sub(r"#(\d)", lambda m, given=given: given[int(m[1]) - 1], body)
        gap = " " if filled[-1:].isalpha() and tex[end : end + 1].isalpha() else ""
        tex = tex[: match.start()] + filled + gap + tex[end:]
    return tex


def argument_at(tex: str, at: int) -> tuple[str, int]:
    """The TeX argument that starts at `at`, and where it ends."""
    at += len(tex[at:]) - len(tex[at:].lstrip())
    if tex[at : at + 1] != "{":
        single = re.match(r"\\[A-Za-z]+|.", tex[at:])[0]
        return single, at + len(single)
    depth = 0
    for end in range(at, len(tex)):
        depth += {"{": 1, "}": -1}.get(tex[end], 0)
        if depth == 0:
            return tex[at + 1 : end], end + 1
    raise ValueError(f"unbalanced braces: {tex}")


# files


def neutral(nb: dict) -> list:
    """A notebook for comparison: the files of lib/ instead of their compressed form."""
    cells = []
    for cell in nb["cells"]:
        source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
        files = {}
        if match := PAYLOAD.search(source):
            source, files = source.replace(match[1], ""), unpack(match[1])
        rest = {key: value for key, value in cell.items() if key != "source"}
        cells.append((source, files, rest))
    return [cells, nb["metadata"], nb["nbformat"], nb["nbformat_minor"]]


def is_current(nb: nbformat.NotebookNode, path: Path) -> bool:
    if not path.exists():
        return False
    try:
        committed = neutral(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, zipfile.BadZipFile):
        return False
    return committed == neutral(json.loads(nbformat.writes(nb, split_lines=False)))


def write(nb: nbformat.NotebookNode, path: Path) -> None:
    path.write_text(nbformat.writes(nb, ensure_ascii=False) + "\n", encoding="utf-8")


def sources(root: Path) -> list[Path]:
    found = sorted((root / "chapters").glob("**/*.md"))
    return [path for path in found if myst.read(path).executable]


def orphans(root: Path) -> list[str]:
    made = {path.with_suffix(".ipynb") for path in sources(root)}
    found = sorted((root / "chapters").glob("**/*.ipynb"))
    lost = [p for p in found if p not in made and ".ipynb_checkpoints" not in p.parts]
    return [f"{p.relative_to(root)}: 元になる .md がありません" for p in lost]


def draw_pictures(book: Book, path: Path) -> None:
    for block in book.add(path).walk():
        picture = (path.parent / block.argument).resolve()
        is_svg = block.name == "figure" and picture.suffix == ".svg" and picture.exists()
        if is_svg and not figure_png.is_current(picture):
            print(f"{book.shown(figure_png.draw(picture))}: 書きました")


def process(book: Book, path: Path, check: bool) -> str | None:
    """Writes one notebook, or says what is wrong."""
    target = path.with_suffix(".ipynb")
    try:
        if not check:
            draw_pictures(book, path)
        nb = book.convert(path)
    except SourceError as error:
        return str(error)
    if is_current(nb, target):
        return None
    if check:
        return f"{book.shown(target)}: {path.name} から作ったものと違います（make notebooks）"
    write(nb, target)
    print(f"{book.shown(target)}: 書きました")
    return None


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, report differences")
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    try:
        book = Book(root)
        paths = [path.resolve() for path in options.files] or sources(root)
    except SourceError as error:
        print(error)
        return 1
    landing = root / "intro.md"
    if landing.exists() and not options.check:
        draw_pictures(book, landing)  # no notebook, but the PDF shows them too
    wrong = [message for path in paths if (message := process(book, path, options.check))]
    wrong += [] if options.files else orphans(root)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
