"""答えのコードを読んで（動かさずに）、学生と成績を付ける人に言うこと。"""

import ast
import contextlib
import re
import unicodedata

from exercises.grading.check import Question

MAX_SOURCE = 100_000
STOPPED = {
    "Timeout": "終わらないので止めました（終わらないループか、とても長い計算があります）",
    "Died": "プロセスごと終わりました（メモリの使いすぎ、exit など）",
    "Unreadable": "結果が読めませんでした",
}


def about(
    question: Question, cells: list[tuple[str, str, str]], log: list, stuck: dict[str, str]
) -> tuple[list[str], list[str]]:
    """(学生に言うこと, 人が見る理由)。答えのセルの例外、全角の文字、出来合いの部品について。"""
    told, person = [], []
    errors = {name: error for name, _, error in log}
    for name, source, owner in cells:
        if owner != question.id:
            continue
        if name in stuck:
            told.append(f"答えのセルの実行が、{STOPPED.get(stuck[name], '止まりました')}。")
        if errors.get(name):
            told += [_error(errors[name]), *full_width(source)]
        used = ready_made(source, question.shortcuts)
        person += [f"出来合いの {s} を使っています。" for s in used]
        told += [
            f"出来合いの {s} を使っているので、人が目を通します（点は変わりません）。" for s in used
        ]
    others = [name for name in stuck if name not in {n for n, _, q in cells if q == question.id}]
    if others:
        told.append("ほかのセルの実行が止まったので、そのセルを除いて採点しました。")
    return told, person


def _error(error: dict) -> str:
    line = f"{error['line']} 行目で " if error.get("line") else ""
    return f"答えのセルを実行すると、{line}{error['type']} が出ます：{error['message']}"


def full_width(source: str) -> list[str]:
    """構文の誤りの原因になりやすい、全角の空白と記号。"""
    code = re.sub(r"#.*|\"[^\"\n]*\"|'[^'\n]*'", "", source[:MAX_SOURCE])
    found = [
        c for c in dict.fromkeys(code) if unicodedata.east_asian_width(c) == "F" or c == "\u3000"
    ]
    shown = "、".join("全角の空白" if c == "\u3000" else f"「{c}」" for c in found[:10])
    return [f"コードの中に全角の文字（{shown}）があります。半角にしてください。"] if found else []


def ready_made(source: str, shortcuts: tuple[str, ...]) -> list[str]:
    """コードに現れる出来合いの名前（最後の名前だけでも、a.b.c の形でもよい）。"""
    ends = {name.split(".")[-1] for name in shortcuts}
    found: set[str] = set()
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        likely = re.search(rf"\b({'|'.join(map(re.escape, ends))})\b", source) if ends else None
        for node in ast.walk(ast.parse(source[:MAX_SOURCE] if likely else "")):
            if isinstance(node, ast.Attribute | ast.Name):
                end = node.attr if isinstance(node, ast.Attribute) else node.id
                found |= {end, ast.unparse(node)} if end in ends else set()
            elif isinstance(node, ast.Import | ast.ImportFrom):
                found |= {getattr(node, "module", None), *(alias.name for alias in node.names)}
    return [name for name in shortcuts if name in found]
