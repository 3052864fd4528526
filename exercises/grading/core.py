"""一つの提出物を採点する。バイト列を受け取り、成績の行と、学生に見せる説明を JSON の形で返す。

学生のコードは Workers の向こうで動き、ここでは合否だけを決める。問いごとに、新しい子に聞く。
"""

import contextlib
import dataclasses
import functools
import hashlib
import importlib
import importlib.metadata
import pathlib
import time
from typing import TYPE_CHECKING

from exercises.grading import callers, canonical, intake, remarks, source
from exercises.grading.callers import Session, Workers
from exercises.grading.check import Outcome, Probe, Question

if TYPE_CHECKING:  # torch は、採点するプロセスだけが読み込む
    from exercises.grading.judge import Report

PARTS = ("check", "compare", "judge", "wire", "worker", "callers", "core", "magics")
PARTS += ("notebook", "canonical", "intake", "remarks")


def questions(assignment: str) -> tuple[Question, ...]:
    """課題の検査。"""
    return importlib.import_module(f"exercises.checks.{assignment}").QUESTIONS


def seed_number(seed: str, assignment: str) -> int:
    """種の文字列と課題の名前から、乱数の種を作る。"""
    return int.from_bytes(hashlib.sha256(f"{seed}/{assignment}".encode()).digest()[:8], "big")


@functools.cache
def versions(assignment: str) -> dict[str, str]:
    """同じ採点をやり直すのに要る版：配布物、検査、採点の部品、torch と numpy。"""
    here = pathlib.Path(__file__).resolve().parent
    checks = here.parent / "checks"
    release = canonical.COURSE / "release" / assignment / f"{assignment}.ipynb"
    return {
        "release": _digest(release),
        "checks": _digest(
            checks / "common.py",
            *sorted(checks.glob(f"{assignment}*.py")),
            source.ROOT / f"{assignment}.md",
        ),
        "grader": _digest(*(here / f"{name}.py" for name in PARTS)),
        "torch": importlib.metadata.version("torch"),
        "numpy": importlib.metadata.version("numpy"),
    }


def _digest(*paths: pathlib.Path) -> str:
    return hashlib.sha256(b"\0".join(p.read_bytes() for p in paths)).hexdigest()[:16]


class _Seen:
    """呼び出しを通すだけで、引数が書きかえられたことを覚えておく。"""

    def __init__(self, session: Session):
        self.session, self.changed = session, False

    def calls(self, probes: list[Probe]) -> list[Outcome]:
        got = self.session.calls(probes)
        self.changed |= any(outcome.changed for outcome in got)
        return got


class _Dead:
    """答えのセルの実行が終わらなかったときの口。"""

    def __init__(self, how: str):
        self.how = how

    def calls(self, probes: list[Probe]) -> list[Outcome]:
        return [Outcome(error=self.how)] * len(probes)


class _Run:
    """一人分の実行。止まったセルは除いて、はじめから実行し直す。"""

    def __init__(self, cells: list[tuple[str, str, str]], workers: Workers):
        self.cells, self.workers = cells, workers
        self.end = time.monotonic() + callers.SESSION_SECONDS
        self.stuck: dict[str, str] = {}
        self.log: list = []
        self.session: Session | None = None
        self.stack = contextlib.ExitStack()

    def close(self) -> None:
        self.stack.close()

    def judge(self, question: Question, number: int) -> tuple["Report", bool, list]:
        """(判定, 引数が書きかわったか, 答えのセルを実行し直した記録)。"""
        from exercises.grading.judge import judge

        while True:
            dead = self._dead(question.id)
            if dead:
                return judge(question, _Dead(dead), number), False, []
            with self.session.question(self._living(_own(self.cells, question.id))) as session:
                seen = _Seen(session)
                report = judge(question, seen, number)
            if not self._stopped():
                return report, seen.changed, session.rerun

    def _dead(self, question: str) -> str:
        """聞ける子を用意する。答えのセルが止まったか、時間が尽きたら、止まり方を返す。"""
        while self.session is None or self.session.spent:
            if time.monotonic() >= self.end:
                return "Timeout"
            self._start()
            if not self._stopped():
                break
        own = (self.stuck[n] for n, _, q in self.cells if q == question and n in self.stuck)
        return next(own, "")

    def _start(self) -> None:
        self.stack.close()
        run = self._living(self.cells)
        self.session = self.stack.enter_context(self.workers.session(run, self.end))
        self.log = max(self.log, self.session.log, key=len)

    def _stopped(self) -> bool:
        """セルの実行が止まったら、それを覚える。"""
        if self.session.stuck:
            self.stuck[self.session.stuck] = self.session.dead
        return bool(self.session.stuck)

    def _living(self, cells: list) -> list:
        return [[name, code] for name, code, _ in cells if name not in self.stuck]


@dataclasses.dataclass
class Graded:
    """一つの問いの判定と、言うことと、人が見る理由。"""

    report: "Report"
    remarks: list[str]
    person: list[str]


def _own(cells: list, question: str) -> list:
    """この問いのところ（前の答えの次から、この答えまで）。すべてを実行したあとで、もう一度実行する。

    同じ名前の補助の関数が後の問いにあっても、この問いでは、この問いのものが使われる。
    """
    own = [i for i, cell in enumerate(cells) if cell[2] == question]
    if not own:
        return []
    before = [i for i, cell in enumerate(cells[: own[0]]) if cell[2]]
    return cells[max(before, default=-1) + 1 : own[-1] + 1]


def grade_cells(
    cells: list[tuple[str, str, str]], asked: tuple[Question, ...], number: int, workers: Workers
) -> tuple[list[Graded], list]:
    """(名前, コード, 問い) のセルを実行し、問いごとに判定する。返り値は判定と、実行の記録。

    止まったセルは、次からは除いて実行する。止まったのが答えのセルなら、その問いは 0 点になる。
    """
    out = []
    with contextlib.closing(_Run(cells, workers)) as run:
        for question in asked:
            start = time.monotonic()
            report, changed, rerun = run.judge(question, number)
            report = dataclasses.replace(report, seconds=round(time.monotonic() - start, 4))
            ran = list({row[0]: row for row in [*run.log, *rerun]}.values())
            told, person = remarks.about(question, cells, ran, run.stuck)
            if changed:
                person.append("渡した引数が書きかえられています。")
            out.append(Graded(report, told, person))
        return out, run.log


def grade(files: list, assignment: str, seed: str, workers: Workers) -> dict:
    """一人分の (名前, 中身, 困った点) から、成績の記録（JSON）を作る。種は入らない。"""
    start = time.monotonic()
    asked = questions(assignment)
    received = intake.read(files, assignment)
    if received.refused:
        return refused(assignment, received.refused, workers.level)
    number = seed_number(seed, assignment)
    graded, log = grade_cells(received.code, asked, number, workers)
    return {
        "assignment": assignment,
        "sandbox": workers.level,
        "refused": "",
        "remarks": received.remarks,
        "person": received.person,
        "versions": versions(assignment),
        "questions": [_row(g) for g in graded],
        "notebook": received.notebook,
        "log": log,
        "seconds": round(time.monotonic() - start, 4),
    }


def refused(assignment: str, why: str, level: str) -> dict:
    """採点できなかった提出物の記録。"""
    facts = {
        "assignment": assignment,
        "sandbox": level,
        "refused": why,
        "remarks": [],
        "person": [],
    }
    facts |= {"versions": versions(assignment), "notebook": None, "log": [], "seconds": 0.0}
    return facts | {"questions": [_refused(q) for q in questions(assignment)]}


def _refused(question: Question) -> dict:
    row = {"question": question.id, "points": 0, "max_points": question.points}
    return row | {
        "parts": [],
        "causes": [],
        "text": "",
        "remarks": [],
        "person": [],
        "seconds": 0.0,
    }


def _row(graded: Graded) -> dict:
    report = graded.report
    return {
        "question": report.question,
        "points": max(0, min(report.points, report.max_points)),
        "max_points": report.max_points,
        "parts": [dataclasses.asdict(part) for part in report.parts],
        "causes": report.causes,
        "text": report.text(),
        "remarks": graded.remarks,
        "person": graded.person,
        "seconds": report.seconds,
    }
