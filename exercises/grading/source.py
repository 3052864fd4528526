"""問題の文 exercises/weekNN.md を読む。ノートブックもページも模範解答も、ここから取り出す。"""

import dataclasses
import functools
import pathlib
import re
from collections.abc import Callable, Iterable

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[1]
MARKER = re.compile(r"^# === (\d+-\d+) ([a-z_]+) ===$", re.MULTILINE)
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
RUBRIC = "**採点基準** （返却のページには入りません）"
STUB = ("# ここに書く", "raise NotImplementedError()")


@dataclasses.dataclass(frozen=True)
class Block:
    """kind は text、answer、check、try（コード）、written、rubric（文章の答えと採点基準）。"""

    kind: str
    body: str
    question: str = ""


@dataclasses.dataclass(frozen=True)
class Info:
    """問いの表題、配点、目安の分。"""

    id: str
    name: str
    title: str
    code: int
    text: int
    minutes: int


@dataclasses.dataclass(frozen=True)
class Week:
    """一週の問題。"""

    number: int
    questions: dict[str, Info]
    blocks: tuple[Block, ...]

    @property
    def name(self) -> str:
        return f"week{self.number}"

    def find(self, kind: str, question: str) -> str:
        """その問いの、その種類のブロックの本文。ちょうど一つのはず。"""
        (body,) = (b.body for b in self.blocks if (b.kind, b.question) == (kind, question))
        return body


def weeks() -> list[str]:
    return sorted(p.stem for p in ROOT.glob("week[0-9]*.md"))


@functools.cache
def load(name: str) -> Week:
    """exercises/NAME.md を読む。形が約束と違えば ValueError。"""
    text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
    _, front, body = text.split("---\n", 2)
    meta = yaml.safe_load(front)["exercises"]
    questions = {q: Info(q, **facts) for q, facts in meta["questions"].items()}
    week = Week(meta["week"], questions, tuple(_blocks(body)))
    for question in questions:
        for kind in ("answer", "check", "written", "rubric"):
            if sum((b.kind, b.question) == (kind, question) for b in week.blocks) != 1:
                raise ValueError(f"{name}：{question} の {kind} がちょうど一つではありません")
    return week


def _blocks(body: str) -> list[Block]:
    blocks, text, question = [], [], ""
    lines = iter(body.split("\n"))
    for line in lines:
        heading = re.match(r"## (\d+-\d+) ", line)
        if heading:
            label = text.pop() if text and text[-1].startswith("(sec-") else ""
            _flush(blocks, text, question)
            text.append(label)
            question = heading[1]
        special = re.match(r":::\{(written|rubric)\} (\d+-\d+)$", line)
        if not special and not line.startswith("```{code-cell}"):
            text.append(line)
            continue
        _flush(blocks, text, question)
        inside = "\n".join(_until(lines, ":::" if special else "```"))
        blocks.append(Block(special[1], inside, special[2]) if special else _code(inside, question))
    _flush(blocks, text, question)
    return blocks


def _until(lines, fence: str) -> list[str]:
    inside = []
    for line in lines:
        if line == fence:
            return inside
        inside.append(line)
    raise ValueError(f"{fence} が閉じていません")


def _flush(blocks: list[Block], text: list[str], question: str) -> None:
    body = "\n".join(text).strip("\n")
    if body:
        blocks.append(Block("text", body, question))
    text.clear()


def _code(inside: str, question: str) -> Block:
    tags, _, code = inside.partition("\n")
    kind = re.fullmatch(r":tags: \[(answer|check|try)\]", tags)
    if not kind:
        raise ValueError(f"コードのセルに :tags: がありません：{tags!r}")
    code = code.strip("\n")
    marker = MARKER.match(code)
    if kind[1] == "answer" and (not marker or marker[1] != question):
        raise ValueError(f"{question} の答えのセルの一行目が目印ではありません")
    return Block(kind[1], code, question)


def solved(code: str) -> str:
    """模範解答：目印の行だけを除く。"""
    return "\n".join(line for line in code.split("\n") if line.strip() not in (BEGIN, END))


def starting(code: str) -> str:
    """学生に渡す形：答えの部分を、書く場所の目印に置きかえる。"""
    out, inside = [], False
    for line in code.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        if line.strip() == BEGIN:
            inside = True
            out += [indent + stub for stub in STUB]
        elif line.strip() == END:
            inside = False
        elif not inside:
            out.append(line)
    return "\n".join(out)


def model(question: str) -> str:
    """問いの模範解答のコード。"""
    return solved(load(f"week{question.split('-')[0]}").find("answer", question))


def with_rubrics(cells: Iterable, assignment: str, name: Callable, made: Callable) -> list:
    """文章の答えの欄の下に、採点基準のセルを入れた並び。name は欄の名前、made はセルの作り方。"""
    week, out = load(assignment), []
    texts = {f"{q}-text": f"{RUBRIC}\n\n{week.find('rubric', q)}" for q in week.questions}
    for cell in cells:
        out.append(cell)
        if name(cell) in texts:
            out.append(made(name(cell), texts[name(cell)]))
    return out
