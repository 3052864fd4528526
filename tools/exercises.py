"""exercises/weekNN.md -> the student notebook (through nbgrader) and two pages of the book.

Writes exercises/release/weekNN/weekNN.ipynb, chapters/weekNN/{exercises,answers}.md and the
instructor's exercises/source/ (not committed). --check writes nothing and exits 1, naming each
committed file that differs. --gradebook registers the assignments in exercises/gradebook.db.
"""

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from exercises.grading import public, source  # noqa: E402
from exercises.grading.source import Block, Info, Week  # noqa: E402
from tools import make_notebooks, myst  # noqa: E402

COURSE = ROOT / "exercises"
TITLE = '#@title 準備：自己確認の部品（最初に実行してください） { display-mode: "form" }'
WHERE = "\n".join(
    [
        ":::{admonition} ノートブックで解きます",
        "ページの上にあるボタンで、この練習のノートブックをダウンロードするか、Colab で開きます。"
        "ノートブックには、答えを書く欄と、その場で答えを確かめる `check` が入っています。"
        "必要なものは torch だけなので、どこでも動きます。",
        ":::",
    ]
)
HAND_IN = "\n".join(
    [
        "## 提出のしかた\n",
        "1. Colab では、はじめに「ファイル」→「ドライブにコピーを保存」で自分のコピーを作ります。"
        "コピーしないと、書いたものは残りません。",
        "2. 「ランタイム」→「セッションを再起動してすべて実行する」で、"
        "上から順に動くことを確かめます。",
        "3. 「ファイル」→「ダウンロード」→「.ipynb をダウンロード」で保存し、"
        "名前を `{name}.ipynb` にして提出します。",
        "4. 答えのセル（一行目が `# === 13-1 … ===` の形の目印）と採点の欄は、"
        "消したり分けたりしないでください。下書きのセルを足すのは自由です。",
    ]
)
WRITTEN = "**{id} 文章の答え**（この下に書いてください）\n\n"
FAILSAFE = "raise SystemError('採点には exercises/nbgrader_config.py の設定が必要です')"
TEST = f"""\
# {{id}} コードの採点の欄（{{points}} 点）。採点のときに使います。このまま残してください。
### BEGIN HIDDEN TESTS
{FAILSAFE}
### END HIDDEN TESTS"""


# the notebook


@cache
def book() -> make_notebooks.Book:
    return make_notebooks.Book(ROOT)


def plain(week: Week, text: str) -> str:
    """MyST as plain Markdown, as in the notebooks of the chapters."""
    page = myst.Page(ROOT / "chapters" / week.name / "exercises.md", "", {}, [])
    blocks = myst.Reader(text.split("\n"), 1, f"{week.name}.md").blocks()
    return "\n".join(make_notebooks.Notebook(book(), page).render_all(blocks)).strip()


def facts(info: Info) -> str:
    return f"配点：コード {info.code} 点、文章 {info.text} 点。目安：約 {info.minutes} 分。"


def with_facts(week: Week, text: str) -> str:
    """The points and the time of a question below its heading."""

    def add(match: re.Match) -> str:
        return f"{match[0]}\n\n{facts(week.questions[match[1]])}"

    return re.sub(r"^## (\d+-\d+) .*$", add, text, flags=re.M)


def nbgrader(name: str, kind: str, points: int | None = None) -> dict:
    """Cell metadata: kind is solution, test or manual."""
    meta = {
        "schema_version": 3,
        "grade_id": name,
        "solution": kind != "test",
        "grade": kind != "solution",
        "locked": kind == "test",
        "task": False,
    }
    return {"nbgrader": meta | ({} if points is None else {"points": points})}


def setup(week: Week) -> str:
    """The first code cell: the self-check and its public examples."""
    module = importlib.import_module(f"exercises.checks.{week.name}")
    own = (COURSE / "grading" / "selfcheck.py").read_text(encoding="utf-8")
    body = own.split('"""', 2)[2].strip()
    rows = [TITLE, "import json", body, ""]
    for question in module.QUESTIONS:
        data = json.dumps(public.cases(question), ensure_ascii=False, separators=(",", ":"))
        rows.append(f"CASES[{question.id!r}] = json.loads(r'''{data}''')")
    return "\n".join([*rows, 'print("準備ができました")'])


def code(name: str, text: str, **meta: object) -> nbformat.NotebookNode:
    return nbformat.v4.new_code_cell(text, id=name, metadata=meta)


def cells_of(week: Week, block: Block, number: int) -> list[nbformat.NotebookNode]:
    question, info = block.question, week.questions.get(block.question)
    if block.kind == "text":
        text = plain(week, with_facts(week, block.body))
        return [nbformat.v4.new_markdown_cell(text, id=f"text-{number}")]
    if block.kind == "answer":
        return [code(question, block.body, **nbgrader(question, "solution"))]
    if block.kind == "try":
        return [code(f"{question}-try", block.body, tags=["try"])]
    if block.kind == "check":
        name, shown = f"{question}-code", TEST.format(id=question, points=info.code)
        test = code(name, shown, **nbgrader(name, "test", info.code))
        return [code(f"{question}-check", block.body, tags=["check"]), test]
    if block.kind == "written":
        name = f"{question}-text"
        answer = f"{source.BEGIN}\n{plain(week, block.body)}\n{source.END}"
        text = WRITTEN.format(id=question) + answer
        meta = nbgrader(name, "manual", info.text)
        return [nbformat.v4.new_markdown_cell(text, id=name, metadata=meta)]
    return []


def instructor(week: Week) -> nbformat.NotebookNode:
    """nbgrader's source notebook."""
    cells = [c for i, b in enumerate(week.blocks) for c in cells_of(week, b, i)]
    form = {"cellView": "form", "jupyter": {"source_hidden": True}, "tags": ["setup"]}
    cells.insert(1, code("setup", setup(week), **form))
    cells.append(nbformat.v4.new_markdown_cell(HAND_IN.format(name=week.name), id="hand-in"))
    meta = {
        "colab": {"provenance": [], "toc_visible": True},
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    nb = nbformat.v4.new_notebook(cells=cells, metadata=meta)
    nb.nbformat, nb.nbformat_minor = 4, 5
    nbformat.validate(nb)
    return nb


def written_out(nb: nbformat.NotebookNode) -> str:
    return nbformat.writes(nb, ensure_ascii=False) + "\n"


def save(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def release(week: Week, course: Path) -> str:
    """The student's notebook, made by nbgrader in `course`; what it makes random is fixed."""
    path = f"{week.name}/{week.name}.ipynb"
    save(course / "source" / path, written_out(instructor(week)))
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", week.name, "--force"]
    command.append(f"--CourseDirectory.root={course}")
    environment = os.environ | {"JUPYTER_PLATFORM_DIRS": "1"}
    run = subprocess.run(command, cwd=COURSE, env=environment, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"nbgrader generate_assignment {week.name}\n{run.stderr[-3000:]}")
    nb = nbformat.read(course / "release" / path, as_version=4)
    expected = [cell.id for cell in instructor(week).cells]
    for cell, name in zip(nb.cells, expected, strict=True):
        cell.id = name
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return written_out(nb)


# the pages


def fenced(text: str) -> str:
    return f"```python\n{text}\n```"


def folded(title: str, text: str) -> str:
    return f":::{{dropdown}} {title}\n{text}\n:::"


def exercise_page(week: Week) -> str:
    """chapters/weekNN/exercises.md: what the student sees."""
    parts = []
    for i, block in enumerate(week.blocks):
        if block.kind == "text":
            parts += [with_facts(week, block.body), *([WHERE] if i == 0 else [])]
        elif block.kind == "answer":
            parts.append(fenced(source.starting(block.body)))
        elif block.kind == "check":
            parts.append(folded("確かめるセル", fenced(block.body)))
        elif block.kind == "try":
            parts.append(folded("比べるセル", fenced(block.body)))
    return "\n\n".join(parts) + "\n"


def answer_page(week: Week) -> str:
    """chapters/weekNN/answers.md: the answers, folded."""
    name = f"w{week.number}"
    parts = [
        f"(ch-{name}-answers)=\n# 第 {week.number} 週の練習の答え",
        "自分で書いてから開いてください。コードの答えは一つの書き方にすぎません。違う書き方でも、同じ値になれば正解です。",
    ]
    module = importlib.import_module(f"exercises.checks.{week.name}")
    for question in module.QUESTIONS:
        info = week.questions[question.id]
        hints = "\n".join(f"- {wrong.hint}" for wrong in question.wrong)
        parts += [
            f"(sec-{name}-ans-{info.id})=\n## {info.id} {info.title}",
            f"問いは {{ref}}`sec-{name}-ex-{info.id}` にあります。{facts(info)}",
            folded("コードの答え", fenced(source.model(info.id))),
            folded("文章の答え", week.find("written", info.id)),
            folded("文章の採点基準", week.find("rubric", info.id)),
            folded("よくある間違いと、そのときに出る言葉", hints),
        ]
    return "\n\n".join(parts) + "\n"


# files


def committed(week: Week) -> dict[Path, str]:
    """Every committed file of a week, and what it should hold."""
    pages = ROOT / "chapters" / week.name
    with tempfile.TemporaryDirectory() as folder:
        student = release(week, Path(folder))
    return {
        COURSE / "release" / week.name / f"{week.name}.ipynb": student,
        pages / "exercises.md": exercise_page(week),
        pages / "answers.md": answer_page(week),
    }


def current(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def register(week: Week) -> None:
    """Puts the assignment into exercises/gradebook.db (nbgrader writes release/ anew, too)."""
    student = release(week, COURSE)
    save(COURSE / "release" / week.name / f"{week.name}.ipynb", student)
    print(f"exercises/gradebook.db: {week.name} を登録しました")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, report differences")
    parser.add_argument("--gradebook", action="store_true", help="only register the weeks")
    parser.add_argument("weeks", nargs="*", help="week13 ... (all by default)")
    options = parser.parse_args(arguments)
    stale = 0
    for week in map(source.load, options.weeks or source.weeks()):
        if options.gradebook:
            register(week)
            continue
        for path, text in committed(week).items():
            if current(path, text):
                continue
            stale += 1
            shown = path.relative_to(ROOT)
            if options.check:
                print(
                    f"{shown}: exercises/{week.name}.md から作ったものと違います（make exercises）"
                )
            else:
                save(path, text)
                print(f"{shown}: 書きました")
        if not options.check:
            save(
                COURSE / "source" / week.name / f"{week.name}.ipynb", written_out(instructor(week))
            )
    return int(options.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
