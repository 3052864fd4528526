"""What is committed: no answer in it, the same bytes each time, and it runs anywhere."""

import importlib
import json
import os
import re
import subprocess
import sys

import nbformat
import pytest

from exercises.grading import source
from tools import exercises as tool
from tools import lint_text

NAMES = [n for n in source.weeks() if (tool.COURSE / "checks" / f"{n}.py").exists()]
RUN = """
import json, sys
cells, names = json.load(sys.stdin), {"__name__": "__main__"}
for cell in cells:
    exec(compile(cell, "<cell>", "exec"), names)
"""


@pytest.fixture(scope="module", params=NAMES)
def week(request):
    return source.load(request.param)


@pytest.fixture(scope="module")
def course(week, courses):
    return courses(week.name)


@pytest.fixture(scope="module")
def questions(week):
    return importlib.import_module(f"exercises.checks.{week.name}").QUESTIONS


def path_of(week):
    return tool.COURSE / "release" / week.name / f"{week.name}.ipynb"


def page(week, name):
    return tool.ROOT / "chapters" / week.name / f"{name}.md"


@pytest.fixture(scope="module")
def release(week):
    return nbformat.read(path_of(week), as_version=4)


def secret_lines(week) -> list[str]:
    """Lines of the model answers and of the written answers that the question does not show."""
    shown = "\n".join(source.starting(b.body) for b in week.blocks if b.kind in ("answer", "text"))
    secret = []
    for question in week.questions:
        answer = source.solved(week.find("answer", question)).split("\n")
        rest = week.find("written", question).split("。") + week.find("rubric", question).split(
            "\n"
        )
        secret += [x.strip() for x in answer + rest if len(x.strip()) > 12]
    return [line for line in secret if line not in shown]


def test_no_answer_and_no_hidden_text(week, release):
    notebook = "\n".join(c.source for c in release.cells)
    lines = secret_lines(week)
    assert len(lines) > 30
    for text in (notebook, page(week, "exercises").read_text(encoding="utf-8")):
        assert not [line for line in lines if line in text]
        for word in (
            "BEGIN SOLUTION",
            "HIDDEN",
            "SystemError",
            "採点基準",
            "GRADING_SEED",
            f"{week.name}.py",
        ):
            assert word not in text, word


def test_generated_files_are_current_and_the_same_each_time(week, course):
    """The committed bytes are those of the course made in another folder."""
    made = nbformat.writes(course.student, ensure_ascii=False) + "\n"
    assert made == path_of(week).read_text(encoding="utf-8"), "run make exercises"
    assert tool.exercise_page(week) == page(week, "exercises").read_text(encoding="utf-8")
    assert tool.answer_page(week) == page(week, "answers").read_text(encoding="utf-8")


def test_check_mode_names_what_differs(monkeypatch, tmp_path, capsys):
    stale = tmp_path / "exercises.md"
    stale.write_text("old", encoding="utf-8")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "committed", lambda week: {stale: "new"})
    assert tool.main(["--check", "week13"]) == 1
    assert "exercises.md: exercises/week13.md から" in capsys.readouterr().out
    assert stale.read_text(encoding="utf-8") == "old"


def test_cells_are_as_nbgrader_and_colab_want_them(week, release):
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
    expected = {}
    for name, info in week.questions.items():
        expected |= {name: (True, None), f"{name}-code": (False, info.code)}
        expected |= {f"{name}-text": (True, info.text)}
    assert kinds == expected
    assert not [c for c in release.cells if c.get("outputs") or c.get("execution_count")]
    for name in week.questions:
        cell = next(c for c in release.cells if c.id == name)
        assert source.MARKER.match(cell.source)[1] == name
        assert cell.source == source.starting(week.find("answer", name))
    assert release.cells[1].id == "setup"
    imports = set(
        re.findall(r"^(?:import|from) (\w+)", "\n".join(c.source for c in release.cells), re.M)
    )
    assert imports <= {"collections", "json", "math", "torch"}


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


def test_empty_notebook_runs_to_its_end(week, release, tmp_path):
    out = run_notebook(release, tmp_path)
    for question in week.questions:
        assert f"{question}：まだ書かれていません" in out
        assert f"{question} がまだ合格していないので飛ばします" in out
    assert not list(tmp_path.iterdir())


def solved(questions, course, folder) -> str:
    return run_notebook(course.answered({q.id: q.model() for q in questions}), folder)


def test_solved_notebook_runs_to_its_end(questions, course, tmp_path):
    out = solved(questions, course, tmp_path)
    assert "×" not in out
    assert out.count("検査に合格しました") == len(questions)
    assert "飛ばします" not in out


def test_what_week_13_prints_is_what_its_text_says(courses, tmp_path):
    week13 = importlib.import_module("exercises.checks.week13")
    out = solved(week13.QUESTIONS, courses("week13"), tmp_path)
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


def test_what_week_11_prints_is_what_its_text_says(courses, tmp_path):
    week11 = importlib.import_module("exercises.checks.week11")
    out = solved(week11.QUESTIONS, courses("week11"), tmp_path)

    def column(pattern):
        return [float(x) for x in re.findall(pattern, out)]

    worse = column(r"p = 0\.\d{3}　([\d.]+) ナット")
    assert min(worse) == worse[3] == 0, "11-1: only 2/3 is no worse"
    smoothed = column(r"k = \S+ +PPL (\S+)")
    assert smoothed[0] == float("inf") and min(smoothed) < smoothed[-1], "11-2: a valley"
    whole, each = column(r"[AB]　全体 ([\d.]+)"), column(r"文ごとの平均 ([\d.]+)")
    assert whole[0] == whole[1] and abs(each[0] - each[1]) > 1, "11-3: equal, not equal"
    uniform, zipf = column(r"どれも同じ (\S+)"), column(r"順位に反比例 (\S+)")
    assert uniform[3] < 1e-4 < 1e-2 < zipf[3], "11-4: the tail stays"
    by_count, by_kind = column(r"回数で配る (\S+)"), column(r"　種類で配る (\S+)")
    assert by_count[0] > 1 and by_count[1] < 0 and max(map(abs, by_kind)) < 1e-3, "11-5"
    train, other = (
        re.search(f"^{x} .*? (\\S+)$", out, re.M)[1] for x in ("学習データ", "別のデータ")
    )
    assert float(train) > 0.99 > float(other) > 0.1, "11-6"
    same, near, far = column(r"log p の増え方 (\S+)")
    assert same > near > far and near > 0.8 * same, "11-7"
    cheap, paid = column(r"<unk> が正解 ([\d.]+)"), column(r"どの語かまで ([\d.]+)")
    assert cheap == sorted(cheap, reverse=True) and paid == sorted(paid), "11-8"


def test_wrong_notebook_is_told_why(questions, course, tmp_path):
    wrong = {q.id: q.wrong[0] for q in questions}
    code = {q.id: wrong[q.id].source(q.model()) for q in questions}
    out = run_notebook(course.answered(code), tmp_path)
    for one in wrong.values():
        assert f"考えられる原因：{one.hint}" in out
    assert "あなたの値" in out and "正しい値" in out


def test_points_and_minutes_are_stated(week, release):
    text = "\n".join(c.source for c in release.cells)
    for info in week.questions.values():
        assert tool.facts(info) in text and info.code in (7, 8) and info.text > 0
    assert "提出のしかた" in text and f"{week.name}.ipynb" in text


def test_pages_pass_the_rules_of_prose(week):
    linter = lint_text.Linter(tool.ROOT)
    for name in ("exercises", "answers"):
        linter.page(page(week, name))
    linter.plain_file(tool.COURSE / f"{week.name}.md")
    linter.plain_file(tool.COURSE / "checks" / f"{week.name}.py")
    assert not [str(f) for f in linter.findings if not f.warning]


def test_answers_are_folded(week, questions):
    text = page(week, "answers").read_text(encoding="utf-8")
    outside = re.sub(r":::\{dropdown\}.*?\n:::\n", "", text, flags=re.S)
    assert not [line for line in secret_lines(week) if line in outside]
    assert text.count(":::{dropdown}") == 4 * len(week.questions)
    for question in questions:
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
