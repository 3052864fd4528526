"""nbgrader への戻し口。

Verdict は、別のプロセスで答えを呼び、判定をテストのセルの出力にする（Execute の代わり）。
成績簿、遅れの減点、formgrader、書き出しは、ふつうの nbgrader のままである。
SafeFeedback は、返却するページに学生の HTML が入らないようにする。
"""

from __future__ import annotations

import ast
import atexit
import hashlib
import importlib
import importlib.metadata
import json
import os
import pathlib
import re
import secrets
import unicodedata
from typing import TYPE_CHECKING

import nbgrader.utils
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.preprocessors import NbGraderPreprocessor

if TYPE_CHECKING:  # torch の読み込みは、採点のときだけにする
    from exercises.grading.callers import Workers
    from exercises.grading.check import Question
    from exercises.grading.judge import Report

SKIPPED = {"check", "try"}
SETUP = "#@title 準備："
HIDDEN = re.compile(r"### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS\n?", re.DOTALL)
_workers: list[Workers] = []
_seed: list[str] = []


def grading_seed() -> str:
    """採点の種。環境変数 GRADING_SEED がなければ、このプロセスで一度だけ引く。"""
    if not _seed:
        _seed.append(os.environ.get("GRADING_SEED") or secrets.token_hex(8))
    return _seed[0]


def seed_number(seed: str, assignment: str) -> int:
    """種の文字列と課題の名前から、乱数の種を作る。"""
    return int.from_bytes(hashlib.sha256(f"{seed}/{assignment}".encode()).digest()[:8], "big")


def questions(assignment: str) -> tuple[Question, ...]:
    """課題の検査。"""
    return importlib.import_module(f"exercises.checks.{assignment}").QUESTIONS


def code_cells(nb: NotebookNode, without: set[str] = frozenset()) -> list[list]:
    """実行するセルの [番号, コード]。採点の欄と公開の検査のセルと、without の答えは除く。"""
    cells = []
    for i, cell in enumerate(nb.cells):
        tags, name = set(cell.metadata.get("tags", [])), grade_id(cell)
        test = nbgrader.utils.is_grade(cell) and not nbgrader.utils.is_solution(cell)
        if cell.cell_type == "code" and not test and not tags & SKIPPED and name not in without:
            cells.append([str(i), cell.source])
    return cells


def grade_id(cell: NotebookNode) -> str:
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")


def workers() -> Workers:
    """このプロセスで使い回す、呼び出しの口。"""
    from exercises.grading.callers import Workers

    if not _workers:
        _workers.append(Workers())
        atexit.register(_workers[0].close)
    return _workers[0]


def grade(
    nb: NotebookNode, assignment: str, seed: str
) -> tuple[dict[str, tuple[Report, list[str]]], list]:
    """問いごとの判定と注意書き、セルの実行の記録。問いごとに、新しいプロセスで実行し直す。"""
    from exercises.grading.judge import judge

    reports, log = {}, []
    number = seed_number(seed, assignment)
    everything = questions(assignment)
    for question in everything:
        others = {q.id for q in everything if q is not question}
        for without in (set(), others):  # ほかの答えのせいで止まったら、それを除いてやり直す
            with workers().session(code_cells(nb, without)) as caller:
                died = bool(caller.dead)
                if not died or without:
                    report = judge(question, caller, number)
            if not died:
                break
        log = log or caller.log
        reports[question.id] = (report, notes(nb, question, caller.log))
    return reports, log


def notes(nb: NotebookNode, question: Question, log: list) -> list[str]:
    """答えのセルの例外、全角の文字、出来合いの部品について、学生に言うこと。"""
    out = []
    for name, _, error in log:
        cell = nb.cells[int(name)]
        if grade_id(cell) != question.id:
            continue
        if error:
            line = f"{error['line']} 行目で " if error.get("line") else ""
            out.append(
                f"答えのセルを実行すると、{line}{error['type']} が出ます：{error['message']}"
            )
            out += full_width(cell.source)
        used = [s for s in question.shortcuts if s in names(cell.source)]
        out += [
            f"出来合いの {s} を使っているので、人が目を通します（点は変わりません）。" for s in used
        ]
    return out


def full_width(source: str) -> list[str]:
    """構文の誤りの原因になりやすい、全角の空白と記号。"""
    code = re.sub(r"#.*|\"[^\"\n]*\"|'[^'\n]*'", "", source)
    found = [
        c for c in dict.fromkeys(code) if unicodedata.east_asian_width(c) == "F" or c == "\u3000"
    ]
    shown = "、".join("全角の空白" if c == "\u3000" else f"「{c}」" for c in found)
    return [f"コードの中に全角の文字（{shown}）があります。半角にしてください。"] if found else []


def names(source: str) -> set[str]:
    """コードに現れる名前（a.b.c は、途中までの形と、最後の名前も）。"""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return set()
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            text = ast.unparse(node)
            found |= {text, text.split(".")[-1]}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module or "", *(alias.name for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def outputs(report: Report, remarks: list[str]) -> list[NotebookNode]:
    """nbgrader が点を読み取る形：満点は文字だけ、途中の点は数、0 点は誤り。"""
    text = "\n".join([report.text(), *(f"\n※ {remark}" for remark in remarks)])
    if report.points == 0:
        return [new_output("error", ename="0 点", evalue="", traceback=[text])]
    shown = [new_output("stream", name="stdout", text=text + "\n")]
    if report.points < report.max_points:
        number = {"text/plain": str(report.points)}
        shown.append(new_output("execute_result", data=number, execution_count=None))
    return shown


def record(reports: dict, assignment: str, student: str, seed: str) -> str:
    """あとで同じ採点をやり直すための控え（成績を付ける人だけが持つ）。"""
    versions = {p: importlib.metadata.version(p) for p in ("torch", "numpy", "nbgrader")}
    rows = [
        {
            "question": r.question,
            "points": r.points,
            "max_points": r.max_points,
            "causes": r.causes,
            "needs_person": any("人が目を通します" in remark for remark in remarks),
            "seconds": round(r.seconds, 3),
        }
        for r, remarks in reports.values()
    ]
    facts = {"assignment": assignment, "student": student, "seed": seed, "sandbox": "none"}
    return json.dumps(
        facts | {"versions": versions, "questions": rows}, ensure_ascii=False, indent=1
    )


class Verdict(NbGraderPreprocessor):
    """Execute の代わり：判定を、テストのセルの出力として入れる。"""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        facts, seed = resources["nbgrader"], grading_seed()
        self.log.info("採点の種（GRADING_SEED）：%s", seed)
        reports, log = grade(nb, facts["assignment"], seed)
        self._show_log(nb, log)
        for cell in nb.cells:
            question = grade_id(cell).removesuffix("-code")
            if cell.cell_type == "code" and question in reports and nbgrader.utils.is_grade(cell):
                cell.outputs = outputs(*reports[question])
        text = record(reports, facts["assignment"], facts["student"], seed)
        # 返却されるフォルダの外に置く（autograded/ の中のファイルは、すべて学生に返る）
        course = pathlib.Path(resources["metadata"]["path"]).parents[2]
        folder = course / "verdicts" / facts["student"]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{facts['assignment']}.json").write_text(text + "\n", encoding="utf-8")
        return nb, resources

    @staticmethod
    def _show_log(nb: NotebookNode, log: list) -> None:
        for name, text, error in log:
            shown = [new_output("stream", name="stdout", text=text)] if text else []
            if error:
                message = f"{error['type']}: {error['message']}"
                trace = [f"{message}（{error['line']} 行目）" if error.get("line") else message]
                shown.append(new_output("error", ename=error["type"], evalue="", traceback=trace))
            nb.cells[int(name)].outputs = shown


class SafeFeedback(NbGraderPreprocessor):
    """返却のページに、学生の HTML も添付も、自己確認の部品も入れない。"""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        nb.cells = [c for c in nb.cells if not c.source.startswith(SETUP)]
        return super().preprocess(nb, resources)

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict, index: int
    ) -> tuple[NotebookNode, dict]:
        cell.pop("attachments", None)
        cell.source = HIDDEN.sub("", cell.source)
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"<(?=[A-Za-z/!?])", "&lt;", cell.source)
        elif cell.cell_type == "raw":
            cell.source = ""
        for output in cell.get("outputs", []):
            if "data" in output:
                output.data = {k: v for k, v in output.data.items() if k == "text/plain"}
        return cell, resources
