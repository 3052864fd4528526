"""The whole way through nbgrader: release, autograde, feedback, export."""

import html
import json

import pytest

from exercises.checks import week13
from exercises.grading import sandbox, source

PERMUTATION, SATURATION, *_ = week13.QUESTIONS
FULL = sum(question.points for question in week13.QUESTIONS)
PAIRS = 8
SCRIPT = '<script>document.title="owned"</script><img src=x onerror="document.title=1">'
CLASS = {
    "honest": "",
    "printing": "import sys, warnings\nwarnings.warn('x')\nprint('y' * 10**6, file=sys.stderr)\n",
    "magic": "!pip install torch\n%matplotlib inline\n",
}
TRICKS = {
    "exits": "import os\nos._exit(0)",
    "equal": (
        "class Same(float):\n    def __eq__(self, other): return True\n"
        "def attention(*a, **k): return Same(), Same()\n"
        "def equivariance_gap(*a, **k): return Same()\n"
        "softmax_jacobian = saturation = gradient_ratio = attention"
    ),
    "patches": (
        "import numpy as np, torch\nnp.allclose = torch.allclose = lambda *a, **k: True\n"
        "def attention(x, *a, **k): return x, x\nequivariance_gap = attention\n"
        "softmax_jacobian = saturation = gradient_ratio = lambda *a: 0.0"
    ),
    "peeks": (
        "import gc, os\nprint('seed', os.environ.get('GRADING_SEED'), dict(os.environ))\n"
        "for o in gc.get_objects():\n    if type(o) is dict and 'GRADING_SEED' in o: print(o)"
    ),
}


@pytest.fixture(scope="module")
def graded(course):
    models = {q.id: q.model() for q in week13.QUESTIONS}
    course.submit("right", course.answered(models, "行列の行が並べ替わります。"))
    course.submit("empty", course.answered({}))
    for i, (a, b) in enumerate(
        zip(PERMUTATION.wrong[:PAIRS], SATURATION.wrong[-PAIRS:], strict=True)
    ):
        code = {"13-1": a.source(models["13-1"]), "13-2": b.source(models["13-2"])}
        course.submit(f"wrong-{i}", course.answered(code, "わかりません。"))
    for name, before in CLASS.items():
        course.submit(name, course.answered({q: before + m for q, m in models.items()}, SCRIPT))
    for name, code in TRICKS.items():
        course.submit(name, course.answered(dict.fromkeys(models, code)))
    course.submit("half", course.answered({"13-1": models["13-1"], "13-2": TRICKS["exits"]}))
    wide = models["13-1"].replace("(dim=-1)", "（dim=-1）")
    course.submit("wide", course.answered({"13-1": wide, "13-2": models["13-2"]}))
    made = next(r.source(models["13-1"]) for r in PERMUTATION.right if r.id == "sdpa")
    course.submit("ready-made", course.answered({"13-1": made, "13-2": models["13-2"]}))
    ready = source.load("week13").find("answer", "13-2")
    stopped = course.answered({"13-1": models["13-1"], "13-2": source.starting(ready)})
    stopped.cells = [c for c in stopped.cells if not c.id.endswith("-code")]
    course.submit("deleted", stopped)
    course.grade()
    return course


def test_right_answer_gets_full_marks(graded):
    assert graded.score("right") == FULL
    assert "8 点のうち 8 点" in graded.shown("right")
    assert not [
        o
        for c in graded.graded("right").cells
        for o in c.get("outputs", [])
        if o.output_type == "error"
    ]


def test_empty_answer_gets_nothing(graded):
    assert graded.score("empty") == 0
    assert "まだ書かれていません" in graded.shown("empty")


@pytest.mark.parametrize("i", range(PAIRS))
def test_wrong_answers_are_told_their_own_hint(graded, i):
    assert graded.score(f"wrong-{i}") < 16
    page = html.unescape(graded.shown(f"wrong-{i}"))
    for question, wrong in (
        (PERMUTATION, PERMUTATION.wrong[i]),
        (SATURATION, SATURATION.wrong[i - PAIRS]),
    ):
        assert wrong.hint in page
        others = [w.hint for w in question.wrong if w.id != wrong.id and w.hint in page]
        assert not others


@pytest.mark.parametrize("student", CLASS)
def test_honest_oddities_keep_their_points(graded, student):
    assert graded.score(student) == FULL


@pytest.mark.parametrize("student", TRICKS)
def test_tricks_gain_nothing(graded, student):
    assert graded.score(student) == 0


def test_one_answer_does_not_take_the_other_down(graded):
    assert graded.score("half") == 8
    assert graded.score("wide") == 8
    assert "全角の文字（「（」、「）」）があります" in html.unescape(graded.shown("wide"))


def test_ready_made_parts_keep_their_points_and_go_to_a_person(graded):
    assert graded.score("ready-made") == 16
    assert "scaled_dot_product_attention を使っているので、人が目を通します" in graded.shown(
        "ready-made"
    )
    path = graded.root / "verdicts" / "ready-made" / "week13.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["questions"]
    assert [row["question"] for row in rows if row["needs_person"]] == ["13-1"]


def test_deleted_test_cells_come_back(graded):
    assert graded.score("deleted") == 8


def test_feedback_runs_nothing(graded):
    for student in ("honest", "right", "wrong-0"):
        page = graded.feedback(student)
        assert "default-src 'none'" in page.split("<body>")[0]
        body = page.split("<body>", 1)[1]
        assert "<script" not in body and "<img" not in body
    assert "&lt;script&gt;" in graded.feedback("honest") or "&lt;script>" in graded.feedback(
        "honest"
    )


def test_no_secret_reaches_a_student(graded):
    """The seed, hidden text, answers: in no byte of what is handed back."""
    secrets = [
        graded.seed,
        "HIDDEN TESTS",
        "BEGIN SOLUTION",
        "SystemError",
        "採点基準",
        "moved_first",
    ]
    for path in (p for p in (graded.root / "feedback").rglob("*") if p.is_file()):
        text = path.read_text(encoding="utf-8")
        assert path.suffix == ".html"
        own = path.parts[-3] not in ("empty", *TRICKS)  # holds its own answer
        found = [s for s in secrets if s in text and not (own and s == "moved_first")]
        assert not found, (path, found)
    assert "seed None" in graded.feedback("peeks")


def test_written_answers_wait_for_a_person(graded):
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{graded.root}/gradebook.db") as book:
        grades = {g.name: g for g in book.find_submission("week13", "right").notebooks[0].grades}
        assert grades["13-1-text"].needs_manual_grade and grades["13-1-text"].max_score == 6
        assert not grades["13-1-code"].needs_manual_grade and grades["13-1-code"].auto_score == 8
        assert book.find_assignment("week13").max_score == 100


def test_the_record_is_enough_to_grade_again(graded):
    path = graded.root / "verdicts" / "wrong-0" / "week13.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["seed"] == graded.seed and record["sandbox"] == sandbox.choose()
    rows = {row["question"]: row for row in record["questions"]}
    assert rows["13-1"]["causes"] == [PERMUTATION.wrong[0].id]
    assert sum(row["points"] for row in rows.values()) == graded.score("wrong-0")
    assert {"release", "checks", "grader", "torch"} <= set(record["versions"])


def test_export_is_a_table(graded):
    text = (graded.root / "grades.csv").read_text(encoding="utf-8")
    assert "student_id" in text.splitlines()[0]
    assert len(text.splitlines()) == 1 + len(list((graded.root / "submitted").iterdir()))
