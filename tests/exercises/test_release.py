"""What is committed: no answer in it, the same bytes each time, and it runs anywhere."""

import json
import os
import re
import subprocess
import sys

import nbformat
import pytest

from exercises.checks import week13
from exercises.grading import source
from tools import exercises as tool
from tools import lint_text

WEEK = source.load("week13")
RELEASE = tool.COURSE / "release" / "week13" / "week13.ipynb"
PAGES = tool.ROOT / "chapters" / "week13"
RUN = """
import json, sys
cells, names = json.load(sys.stdin), {"__name__": "__main__"}
for cell in cells:
    exec(compile(cell, "<cell>", "exec"), names)
"""


@pytest.fixture(scope="module")
def release():
    return nbformat.read(RELEASE, as_version=4)


def secret_lines() -> list[str]:
    """Lines of the model answers and of the written answers that the question does not show."""
    shown = "\n".join(source.starting(b.body) for b in WEEK.blocks if b.kind in ("answer", "text"))
    secret = []
    for question in WEEK.questions:
        answer = source.solved(WEEK.find("answer", question)).split("\n")
        rest = WEEK.find("written", question).split("。") + WEEK.find("rubric", question).split(
            "\n"
        )
        secret += [x.strip() for x in answer + rest if len(x.strip()) > 12]
    return [line for line in secret if line not in shown]


@pytest.mark.parametrize("path", [RELEASE, PAGES / "exercises.md"])
def test_no_answer_and_no_hidden_text(path):
    text = path.read_text(encoding="utf-8")
    text = (
        text if path.suffix == ".md" else "\n".join(c.source for c in nbformat.reads(text, 4).cells)
    )
    lines = secret_lines()
    assert len(lines) > 30
    assert not [line for line in lines if line in text]
    for word in (
        "BEGIN SOLUTION",
        "HIDDEN",
        "SystemError",
        "採点基準",
        "GRADING_SEED",
        "week13.py",
    ):
        assert word not in text, word


def test_generated_files_are_current_and_the_same_each_time(course):
    """The committed bytes are those of the course made in another folder."""
    made = nbformat.writes(course.student, ensure_ascii=False) + "\n"
    assert made == RELEASE.read_text(encoding="utf-8"), "run make exercises"
    assert tool.exercise_page(WEEK) == (PAGES / "exercises.md").read_text(encoding="utf-8")
    assert tool.answer_page(WEEK) == (PAGES / "answers.md").read_text(encoding="utf-8")


def test_check_mode_names_what_differs(monkeypatch, tmp_path, capsys):
    stale = tmp_path / "exercises.md"
    stale.write_text("old", encoding="utf-8")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "committed", lambda week: {stale: "new"})
    assert tool.main(["--check", "week13"]) == 1
    assert "exercises.md: exercises/week13.md から" in capsys.readouterr().out
    assert stale.read_text(encoding="utf-8") == "old"


def test_cells_are_as_nbgrader_and_colab_want_them(release):
    ids = [cell.id for cell in release.cells]
    assert len(set(ids)) == len(ids)
    kinds = {
        c.metadata.nbgrader.grade_id: (
            c.metadata.nbgrader.solution,
            c.metadata.nbgrader.get("points"),
        )
        for c in release.cells
        if "nbgrader" in c.metadata
    }
    assert kinds == {
        "13-1": (True, None),
        "13-1-code": (False, 8),
        "13-1-text": (True, 6),
        "13-2": (True, None),
        "13-2-code": (False, 8),
        "13-2-text": (True, 6),
    }
    assert not [c for c in release.cells if c.get("outputs") or c.get("execution_count")]
    for name in WEEK.questions:
        cell = next(c for c in release.cells if c.id == name)
        assert source.MARKER.match(cell.source)[1] == name
        assert cell.source == source.starting(WEEK.find("answer", name))
    assert release.cells[1].id == "setup"
    imports = set(
        re.findall(r"^(?:import|from) (\w+)", "\n".join(c.source for c in release.cells), re.M)
    )
    assert imports == {"json", "math", "torch"}


def run_notebook(nb, folder):
    """Top to bottom in an empty folder, where nothing of the repository can be imported."""
    cells = [c.source for c in nb.cells if c.cell_type == "code"]
    run = subprocess.run(
        [sys.executable, "-I", "-c", RUN],
        input=json.dumps(cells),
        cwd=folder,
        env={"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return run.stdout


def test_empty_notebook_runs_to_its_end(release, tmp_path):
    out = run_notebook(release, tmp_path)
    for question in WEEK.questions:
        assert f"{question}：まだ書かれていません" in out
        assert f"{question} がまだ合格していないので飛ばします" in out
    assert not list(tmp_path.iterdir())


def test_solved_notebook_runs_to_its_end(course, tmp_path):
    out = run_notebook(course.answered({q.id: q.model() for q in week13.QUESTIONS}), tmp_path)
    assert "×" not in out
    assert out.count("検査に合格しました") == 2
    gaps = dict(
        re.findall(r"([\d.e+-]+)  (何も加えない|位置を加える|因果マスク)", out)[i][::-1]
        for i in range(3)
    )
    assert (
        float(gaps["何も加えない"])
        < 1e-12
        < 1e-2
        < min(float(gaps["位置を加える"]), float(gaps["因果マスク"]))
    )
    ratios = [float(x) for x in re.findall(r"割らない / 割る = ([\d.]+)", out)]
    assert max(ratios[:4]) < 1 < max(ratios[4:]), "few keys: always smaller; many keys: not always"


def test_wrong_notebook_is_told_why(course, tmp_path):
    wrong = {q.id: q.wrong[0] for q in week13.QUESTIONS}
    code = {q.id: wrong[q.id].source(q.model()) for q in week13.QUESTIONS}
    out = run_notebook(course.answered(code), tmp_path)
    for one in wrong.values():
        assert f"考えられる原因：{one.hint}" in out
    assert "あなたの値" in out and "正しい値" in out


def test_points_and_minutes_are_stated(release):
    text = "\n".join(c.source for c in release.cells)
    for info in WEEK.questions.values():
        assert tool.facts(info) in text and info.code in (7, 8) and info.text > 0
    assert "提出のしかた" in text and "week13.ipynb" in text


def test_pages_pass_the_rules_of_prose():
    linter = lint_text.Linter(tool.ROOT)
    for name in ("exercises.md", "answers.md"):
        linter.page(PAGES / name)
    linter.plain_file(tool.COURSE / "week13.md")
    linter.plain_file(tool.COURSE / "checks" / "week13.py")
    assert not [str(f) for f in linter.findings if not f.warning]


def test_answers_are_folded():
    text = (PAGES / "answers.md").read_text(encoding="utf-8")
    outside = re.sub(r":::\{dropdown\}.*?\n:::\n", "", text, flags=re.S)
    assert not [line for line in secret_lines() if line in outside]
    assert text.count(":::{dropdown}") == 4 * len(WEEK.questions)
    for question in week13.QUESTIONS:
        assert question.model() in text
        assert all(wrong.hint in text for wrong in question.wrong)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("## 13-1 x\n\n```{code-cell} ipython3\nx = 1\n```\n", "tags"),
        ("## 13-1 x\n\n```{code-cell} ipython3\n:tags: [answer]\n\nx = 1\n```\n", "目印"),
        ("## 13-1 x\n\n```{code-cell} ipython3\n:tags: [try]\n\nx = 1\n", "閉じて"),
    ],
)
def test_sources_that_cannot_be_read_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        source._blocks(text)


def test_edits_must_fit_exactly_once():
    from exercises.grading.check import Variant

    with pytest.raises(ValueError, match="2 個"):
        Variant("twice", (("a", "b"),)).source("a a")
    with pytest.raises(ValueError, match="0 個"):
        Variant("never", (("c", "b"),)).source("a a")
