"""Reads the small part of MyST that this book uses: blocks with line numbers, inline spans.

Shared by make_notebooks.py and lint_text.py, so that both see the same page.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

DIRECTIVES = {"note", "tip", "important", "admonition", "dropdown", "figure", "math", "code-cell"}
ROLES = {"eq", "ref", "numref", "doc", "cite", "cite:t", "glue:text", "index"}

FENCE = re.compile(r"^(\s*)(`{3,}|~{3,}|:{3,})\s*(.*)$")
DIRECTIVE = re.compile(r"^\{([\w:+.-]+)\}\s*(.*)$")
LABEL = re.compile(r"^\((.+)\)=\s*$")
HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")
ITEM = re.compile(r"^(\s*)([-*+]|\d+[.)])(\s+)(.*)$")
OPTION = re.compile(r"^\s*:([\w-]+):\s*(.*)$")
MATH_END = re.compile(r"\$\$\s*(?:\(([^)]+)\))?\s*$")
HTML = re.compile(r"^\s*</?[A-Za-z][\w-]*(?:\s|/?>|$)")

INLINE = re.compile(
    r"""
    (?P<escape>\\[!-/:-@\[-`{-~])
  | (?P<comment><!--.*?-->)
  | \{(?P<role>[A-Za-z][\w:.+-]*)\}(?P<rticks>`+)(?P<content>.+?)(?<!`)(?P=rticks)(?!`)
  | (?P<cticks>`+)(?P<code>.+?)(?<!`)(?P=cticks)(?!`)
  | \$\$(?P<display>(?:\\.|[^$\\])+)\$\$
  | (?<!\d)\$(?P<math>(?:\\.|[^$\\])+?)\$(?!\d)
  | (?P<url><https?://[^>\s]+>)
  | !\[(?P<alt>[^\]]*)\]\((?P<image>[^)\s]*)[^)]*\)
  | \[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<target>[^)\s]*)[^)]*\)
  | (?P<tag></?[A-Za-z][^<>]*>)
    """,
    re.X,
)

KINDS = ("escape", "comment", "role", "code", "display", "math", "url", "image", "target", "tag")
WIDE = re.compile(
    r"[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uff60\uffe0-\uffe6]"
)


def is_wide(char: str) -> bool:
    return bool(WIDE.match(char))


class SourceError(Exception):
    """Something in a page that no tool can handle; str() is file:line: message."""


@dataclass
class Block:
    kind: str  # label heading para item table quote code cell directive math comment html break
    line: int
    lines: list[str] = field(default_factory=list)
    name: str = ""  # directive name, label, list marker, info string of a code block
    argument: str = ""  # directive argument, heading text
    options: dict[str, str] = field(default_factory=dict)
    children: list["Block"] = field(default_factory=list)
    indent: str = ""
    fence: str = ""
    level: int = 0
    body_line: int = 0  # line number of the first line in `lines`

    @property
    def tags(self) -> list[str]:
        return yaml.safe_load(self.options.get("tags", "[]")) or []


@dataclass
class Page:
    path: Path
    text: str
    front: dict
    blocks: list[Block]

    @property
    def executable(self) -> bool:
        return "kernelspec" in self.front

    @property
    def title(self) -> str:
        return next((b.argument for b in self.blocks if b.kind == "heading"), self.path.stem)

    def walk(self) -> Iterator[Block]:
        yield from walk(self.blocks)


def walk(blocks: list[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        yield from walk(block.children)


def read(path: Path) -> Page:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    front, start = {}, 0
    if lines and lines[0].strip() == "---" and "---" in lines[1:]:
        start = lines.index("---", 1) + 1
        front = yaml.safe_load("\n".join(lines[1 : start - 1])) or {}
    return Page(path, text, front, Reader(lines[start:], start + 1, str(path)).blocks())


class Reader:
    """Turns lines into blocks. `first` is the number of the first line in its file."""

    def __init__(self, lines: list[str], first: int, name: str):
        self.lines, self.first, self.name, self.at = lines, first, name, 0

    def blocks(self) -> list[Block]:
        found = []
        while self.at < len(self.lines):
            if self.lines[self.at].strip():
                found.append(self.block())
            else:
                self.at += 1
        return found

    def number(self, at: int) -> int:
        return self.first + at

    def block(self) -> Block:
        line, here = self.lines[self.at], self.number(self.at)
        bare = line.strip()
        if match := LABEL.match(bare):
            return self.single(Block("label", here, name=match[1]))
        if match := HEADING.match(line):
            return self.single(Block("heading", here, argument=match[2], level=len(match[1])))
        if bare == "+++" or bare.startswith("+++ "):
            return self.single(Block("break", here))
        if bare.startswith("%"):
            return self.single(Block("comment", here, lines=[line]))
        if bare.startswith("<!--"):
            return self.until("comment", lambda text: "-->" in text)
        if FENCE.match(line):
            return self.fenced()
        if bare.startswith("$$"):
            return self.display()
        if bare.startswith("|"):
            return self.table()
        if bare.startswith(">"):
            return self.quote()
        if HTML.match(line):
            return self.until("html", lambda text: not text.strip())
        return self.paragraph()

    def single(self, block: Block) -> Block:
        self.at += 1
        return block

    def until(self, kind: str, last) -> Block:
        start = self.at
        while self.at < len(self.lines) and not last(self.lines[self.at]):
            self.at += 1
        self.at = min(self.at + 1, len(self.lines))
        return Block(kind, self.number(start), self.lines[start : self.at])

    def fenced(self) -> Block:
        start = self.at
        indent, fence, info = FENCE.match(self.lines[start]).groups()
        closing = re.compile(rf"^\s*{re.escape(fence[0])}{{{len(fence)},}}\s*$")
        end = start + 1
        while end < len(self.lines) and not closing.match(self.lines[end]):
            end += 1
        if end == len(self.lines):
            raise SourceError(f"{self.name}:{self.number(start)}: 閉じていない {fence} です")
        self.at = end + 1
        body = [text.removeprefix(indent) for text in self.lines[start + 1 : end]]
        block = Block("code", self.number(start), body, info, indent=indent, fence=fence)
        block.body_line = self.number(start + 1)
        directive = DIRECTIVE.match(info)
        if directive is None and fence[0] != ":":
            return block
        block.kind = "directive"
        block.name, block.argument = directive.groups() if directive else ("", info)
        return self.directive(block)

    def directive(self, block: Block) -> Block:
        body = block.lines
        while body and (match := OPTION.match(body[0])):
            block.options[match[1]] = match[2].strip()
            body = body[1:]
            block.body_line += 1
        block.lines = body
        if block.name == "code-cell":
            block.kind = "cell"
        elif block.name != "math":
            block.children = Reader(body, block.body_line, self.name).blocks()
        return block

    def display(self) -> Block:
        start = self.at
        indent = re.match(r"\s*", self.lines[start])[0]
        block = Block("math", self.number(start), indent=indent)
        collected = [self.lines[start].strip().removeprefix("$$")]
        while not (match := MATH_END.search(collected[-1])):
            self.at += 1
            if self.at == len(self.lines):
                raise SourceError(f"{self.name}:{block.line}: 閉じていない $$ です")
            collected.append(self.lines[self.at].removeprefix(indent))
        collected[-1] = collected[-1][: match.start()]
        self.at += 1
        block.name = match[1] or ""
        block.lines = [text for text in collected if text.strip()]
        return block

    def table(self) -> Block:
        start = self.at
        while self.at < len(self.lines) and self.lines[self.at].strip().startswith("|"):
            self.at += 1
        return Block("table", self.number(start), self.lines[start : self.at])

    def quote(self) -> Block:
        start = self.at
        while self.at < len(self.lines) and self.lines[self.at].strip().startswith(">"):
            self.at += 1
        inner = [re.sub(r"^\s*> ?", "", text) for text in self.lines[start : self.at]]
        block = Block("quote", self.number(start))
        block.children = Reader(inner, block.line, self.name).blocks()
        return block

    def starts_block(self, line: str) -> bool:
        bare = line.strip()
        special = bare.startswith(("|", ">", "$$", "<!--", "+++"))
        patterns = (FENCE, HEADING, ITEM, LABEL)
        return special or any(pattern.match(line) for pattern in patterns)

    def paragraph(self) -> Block:
        start, match = self.at, ITEM.match(self.lines[self.at])
        first = match[4] if match else self.lines[start].strip()
        indent = match[1] if match else re.match(r"\s*", self.lines[start])[0]
        self.at += 1
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not line.strip() or self.starts_block(line):
                break
            self.at += 1
        rest = [text.strip() for text in self.lines[start + 1 : self.at]]
        block = Block("item" if match else "para", self.number(start), [first, *rest])
        block.indent = indent
        block.name = match[2] + match[3] if match else ""
        return block


def substitute(text: str, handle) -> str:
    """Replaces every inline span by handle(kind, match); text between spans stays."""
    return INLINE.sub(lambda m: handle(_kind(m), m), text)


def spans(text: str) -> Iterator[tuple[str, re.Match]]:
    for match in INLINE.finditer(text):
        yield _kind(match), match


def _kind(match: re.Match) -> str:
    names = (
        "escape",
        "comment",
        "role",
        "code",
        "display",
        "math",
        "url",
        "image",
        "target",
        "tag",
    )
    return next(name for name in names if match[name] is not None)


def pages(root: Path) -> list[Path]:
    """Every page of the book, in the order of _toc.yml; pages it does not name come last."""
    toc = root / "_toc.yml"
    order = []
    if toc.exists():
        found = re.finditer(r"(?:file|root):\s*[\"']?([\w./-]+)", toc.read_text(encoding="utf-8"))
        order = [root / (re.sub(r"\.md$", "", m[1]) + ".md") for m in found]
    written = [*root.glob("intro.md"), *root.glob("chapters/**/*.md")]
    rest = sorted(set(written) - set(order), key=lambda p: ("appendix" in p.parts, p))
    return [p for p in order if p.exists()] + rest
