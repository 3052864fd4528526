"""nbgrader への戻し口。

Verdict は、箱の中で答えを呼び、判定をテストのセルの出力にする（Execute の代わり）。
成績簿、遅れの減点、formgrader、書き出しは、ふつうの nbgrader のままである。
SafeFeedback は、返却するページに学生の HTML が入らないようにする。
"""

from __future__ import annotations

import atexit
import json
import os
import pathlib
import re
import secrets

import nbgrader.utils
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output
from nbgrader.preprocessors import NbGraderPreprocessor

from exercises.grading import core, sandbox, source
from exercises.grading.callers import Workers
from exercises.grading.canonical import SETUP, harmless
from exercises.grading.core import Graded, seed_number

__all__ = ["SafeFeedback", "Verdict", "seed_number"]

SKIPPED = {"check", "try"}
HIDDEN = re.compile(r"### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS\n?", re.DOTALL)
_workers: list[Workers] = []
_seed: list[str] = []


def grading_seed() -> str:
    """採点の種。環境変数 GRADING_SEED がなければ、このプロセスで一度だけ引く。"""
    if not _seed:
        _seed.append(os.environ.get("GRADING_SEED") or secrets.token_hex(8))
    return _seed[0]


def workers() -> Workers:
    """このプロセスで使い回す口。箱が作れなければ、TRUST_SUBMISSIONS=1 のときだけ箱なしで動く。"""
    if not _workers:
        trust = os.environ.get("TRUST_SUBMISSIONS") == "1"
        _workers.append(Workers(sandbox.choose(trust=trust)))
        atexit.register(_workers[0].close)
    return _workers[0]


def grade_id(cell: NotebookNode) -> str:
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")


def code_cells(nb: NotebookNode, asked: set[str]) -> list[tuple[str, str, str]]:
    """実行するセルの (番号, コード, 問い)。採点の欄と公開の検査のセルは除く。"""
    cells = []
    for i, cell in enumerate(nb.cells):
        tags, name = set(cell.metadata.get("tags", [])), grade_id(cell)
        test = nbgrader.utils.is_grade(cell) and not nbgrader.utils.is_solution(cell)
        if cell.cell_type == "code" and not test and not tags & SKIPPED:
            cells.append((str(i), cell.source, name if name in asked else ""))
    return cells


def outputs(graded: Graded) -> list[NotebookNode]:
    """nbgrader が点を読み取る形：満点は文字だけ、途中の点は数、0 点は誤り。"""
    report = graded.report
    text = "\n".join([report.text(), *(f"\n※ {remark}" for remark in graded.remarks)])
    if report.points == 0:
        return [new_output("error", ename="0 点", evalue="", traceback=[text])]
    shown = [new_output("stream", name="stdout", text=text + "\n")]
    if report.points < report.max_points:
        number = {"text/plain": str(report.points)}
        shown.append(new_output("execute_result", data=number, execution_count=None))
    return shown


def record(graded: list[Graded], assignment: str, student: str, seed: str, level: str) -> str:
    """あとで同じ採点をやり直すための控え（成績を付ける人だけが持つ）。"""
    rows = [
        {
            "question": g.report.question,
            "points": g.report.points,
            "max_points": g.report.max_points,
            "causes": g.report.causes,
            "needs_person": bool(g.person),
            "seconds": round(g.report.seconds, 3),
        }
        for g in graded
    ]
    facts = {"assignment": assignment, "student": student, "seed": seed, "sandbox": level}
    facts |= {"versions": core.versions(assignment), "questions": rows}
    return json.dumps(facts, ensure_ascii=False, indent=1)


class Verdict(NbGraderPreprocessor):
    """Execute の代わり：判定を、テストのセルの出力として入れる。"""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        facts, seed = resources["nbgrader"], grading_seed()
        self.log.info("採点の種（GRADING_SEED）：%s", seed)
        assignment, pool = facts["assignment"], workers()
        asked = core.questions(assignment)
        cells = code_cells(nb, {q.id for q in asked})
        graded, log = core.grade_cells(cells, asked, seed_number(seed, assignment), pool)
        self._show_log(nb, log)
        verdicts = {f"{g.report.question}-code": g for g in graded}
        for cell in nb.cells:
            if grade_id(cell) in verdicts and cell.cell_type == "code":
                cell.outputs = outputs(verdicts[grade_id(cell)])
        nb.cells = source.with_rubrics(
            nb.cells, assignment, grade_id, lambda _, text: new_markdown_cell(text)
        )
        text = record(graded, assignment, facts["student"], seed, pool.level)
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
    """返却のページに、学生の HTML も添付も、自己確認の部品も、採点基準も入れない。"""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        nb.cells = [c for c in nb.cells if not c.source.startswith((SETUP, source.RUBRIC))]
        return super().preprocess(nb, resources)

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict, index: int
    ) -> tuple[NotebookNode, dict]:
        cell.pop("attachments", None)
        cell.source = HIDDEN.sub("", cell.source)
        if cell.cell_type == "markdown":
            cell.source = harmless(cell.source)
        elif cell.cell_type == "raw":
            cell.source = ""
        for output in cell.get("outputs", []):
            if "data" in output:
                output.data = {k: v for k, v in output.data.items() if k == "text/plain"}
        return cell, resources
