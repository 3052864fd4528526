"""判定：集めた結果から、点と、学生に見せる説明を決める。学生のコードはここでは動かない。"""

import ast
import functools
import time
from dataclasses import dataclass
from typing import Any

import torch

from exercises.grading.callers import InProcess
from exercises.grading.check import (
    PUBLIC_SEED,
    Band,
    Caller,
    Check,
    Outcome,
    Probe,
    Question,
    Wrong,
)
from exercises.grading.compare import ERRORS, alike, failure

STOPPED = ("Timeout", "Died", "Unreadable")
torch.set_num_threads(1)  # 小さな行列ばかりなので、スレッドを増やすと待ち合わせで遅くなる


@dataclass(frozen=True)
class Result:
    """一つの検査の結果。学生に見せてよいことだけを持つ。"""

    name: str
    passed: bool
    asked: str = ""
    came: str = ""
    cause: str = ""
    cause_id: str = ""
    example: str = ""
    section: str = ""


@dataclass(frozen=True)
class PartResult:
    """まとまり一つの点と、検査ごとの結果。"""

    name: str
    points: int
    max_points: int
    results: tuple[Result, ...]


@dataclass(frozen=True)
class Report:
    """一つの問いの判定。"""

    question: str
    points: int
    max_points: int
    parts: tuple[PartResult, ...]
    seed: int
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def results(self) -> list[Result]:
        return [result for part in self.parts for result in part.results]

    @property
    def causes(self) -> list[str]:
        """言い当てた誤答の id（重なりなし、出た順）。"""
        return list(dict.fromkeys(r.cause_id for r in self.results if r.cause_id))

    def text(self) -> str:
        """学生に見せる説明。種、隠れた入力、期待した値は入らない。"""
        lines = [f"{self.question}：{self.max_points} 点のうち {self.points} 点"]
        told: set[str] = set()
        for part in self.parts:
            lines.append(f"\n【{part.name}】{part.max_points} 点のうち {part.points} 点")
            for result in part.results:
                lines += _result_lines(result, told)
        return "\n".join([*lines, *(f"\n※ {note}" for note in self.notes)])


def _result_lines(result: Result, told: set[str]) -> list[str]:
    if result.passed:
        return [f"  ○ {result.name}"]
    lines = [f"  × {result.name}"]
    cause = "" if result.cause in told else result.cause
    told.add(result.cause)
    rows = (
        ("聞いたこと", result.asked),
        ("起きたこと", result.came),
        ("考えられる原因", cause),
        ("公開の例", result.example),
        ("読み直す所", result.section),
    )
    return lines + [f"      {head}：{text}" for head, text in rows if text]


@dataclass(frozen=True)
class _Row:
    """一つの呼び出しについて、期待と、答えの結果と、不合格の説明。"""

    check: Check
    probe: Probe
    want: Outcome | Band | None
    got: Outcome
    problem: str


@functools.lru_cache(maxsize=64)
def plan(question: Question, seed: int, public: bool = False) -> list[tuple[Check, Probe, Any]]:
    return [
        (check, probe, check.expected(probe))
        for check in question.checks
        for probe in check.calls(seed, public=public)
    ]


def outcomes(question: Question, caller: Caller, seed: int, public: bool = False) -> list[Outcome]:
    """問いのすべての呼び出しを行う。"""
    return caller.calls([probe for _, probe, _ in plan(question, seed, public)])


@functools.lru_cache(maxsize=64)
def bank(question: Question, seed: int, public: bool = False) -> dict[str, list[Outcome]]:
    """誤答の見本のそれぞれについて、同じ呼び出しの結果。"""
    model = question.model()
    right = outcomes(question, InProcess(model), seed, public)
    probes = [probe for _, probe, _ in plan(question, seed, public)]
    found = {}
    for wrong in question.wrong:
        code = wrong.source(model)
        caller, kept = InProcess(code), _functions(model) & _functions(code)
        found[wrong.id] = [
            known if probe.given and probe.function in dict(kept) else caller.call(probe)
            for probe, known in zip(probes, right, strict=True)
        ]
    return found


@functools.lru_cache(maxsize=256)
def _functions(code: str) -> frozenset[tuple[str, str]]:
    """関数の名前と中身。ほかの関数が given で差しかわる呼び出しでは、中身が同じなら結果も同じ。"""
    tree = ast.parse(code)
    return frozenset((f.name, ast.dump(f)) for f in tree.body if isinstance(f, ast.FunctionDef))


def _rows(question: Question, got: list[Outcome], seed: int, public: bool) -> list[_Row]:
    return [
        _Row(check, probe, want, g, failure(probe, want, g, check.outputs))
        for (check, probe, want), g in zip(plan(question, seed, public), got, strict=True)
    ]


def _law(check: Check, rows: list[_Row]) -> str:
    if check.law is None or any(r.got.error for r in rows):
        return ""
    try:
        return check.law([r.probe for r in rows], [r.got for r in rows])
    except (TypeError, ValueError, AttributeError, IndexError, KeyError):
        return "返り値の型や形が違います"


def diagnose(question: Question, rows: list[_Row], failing: set[int], seed: int) -> Wrong | None:
    """不合格の呼び出し（rows の番号）を、いちばんよく説明する誤答の見本。"""
    if all(rows[i].got.error in ERRORS for i in failing):
        return None
    theirs = bank(question, seed)

    def hits(wrong: Wrong, among: list[int], least: int = 0) -> int:
        """同じ結果の数。least に届かないと分かれば、そこまでの数。"""
        told, found = theirs[wrong.id], 0
        for left, i in zip(range(len(among), 0, -1), among, strict=True):
            if found + left < least:
                break
            found += alike(rows[i].probe, rows[i].want, rows[i].got, told[i])
        return found

    most, best, missed = len(failing) // 2 + 1, [], sorted(failing)  # 半分より多く
    for wrong in question.wrong:
        found = hits(wrong, missed, most)
        best = [*best, wrong] if found == most else [wrong] if found > most else best
        most = max(most, found)
    everywhere = list(range(len(rows)))
    return max(best, key=lambda w: hits(w, everywhere)) if len(best) > 1 else next(iter(best), None)


def verdict(
    question: Question, got: list[Outcome], seed: int, public: list[Outcome] | None = None
) -> Report:
    """集めた結果から合否を決める。public は公開の例での結果（あれば、そこでも違うかを言う）。"""
    start = time.monotonic()
    rows = _rows(question, got, seed, False)
    shown = _rows(question, public, PUBLIC_SEED, True) if public is not None else []
    parts = []
    for part in question.parts:
        results = tuple(_judge(question, check, rows, shown, seed) for check in part.checks)
        points = part.points if all(r.passed for r in results) else 0
        parts.append(PartResult(part.name, points, part.points, results))
    total = sum(part.points for part in parts)
    seconds = time.monotonic() - start
    return Report(question.id, total, question.points, tuple(parts), seed, seconds)


def _judge(
    question: Question, check: Check, rows: list[_Row], shown: list[_Row], seed: int
) -> Result:
    mine = [i for i, row in enumerate(rows) if row.check is check]
    failing = {i for i in mine if rows[i].problem}
    law = _law(check, [rows[i] for i in mine])
    if not failing and not law:
        return Result(check.name, True)
    first = min(failing, default=mine[0])
    wrong = diagnose(question, rows, failing or set(mine), seed)
    public = [row for row in shown if row.check is check]
    return Result(
        check.name,
        False,
        asked=f"{rows[first].probe.function}、{rows[first].probe.label}" if failing else "",
        came=rows[first].problem or law,
        cause=wrong.hint if wrong else "",
        cause_id=wrong.id if wrong else "",
        example=_example(question, public) if public else "",
        section=check.section,
    )


def _example(question: Question, public: list[_Row]) -> str:
    probe = next((row.probe for row in public if row.problem), None)
    if probe is None:
        return "公開の例では合っています。大きさや、先頭の次元や、dtype を変えて試してください"
    return f'check("{question.id}") の「{probe.label}」でも違います（正しい値と見比べられます）'


def judge(question: Question, caller: Caller, seed: int) -> Report:
    """学生の関数を呼び、合否を決める。公開の例は、不合格のときだけ試す。"""
    got = outcomes(question, caller, seed)
    report = verdict(question, got, seed)
    if report.points == report.max_points or any(g.error in STOPPED for g in got):
        return report
    return verdict(question, got, seed, outcomes(question, caller, PUBLIC_SEED, public=True))
