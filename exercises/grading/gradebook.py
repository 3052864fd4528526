"""nbgrader へ戻す：成績簿（SQLite か PostgreSQL）と、formgrader が開くノートブックを書く。

点は自動採点の点（auto_score）として入る。人が付けた点（manual_score）には触れない。
何度書いても同じになる。遅れの減点は nbgrader の設定のとおりに行う。
"""

import copy
import json
import os
import pathlib
import sys
import warnings

import nbformat
from nbgrader.api import Gradebook
from nbgrader.preprocessors import AssignLatePenalties, SaveCells
from sqlalchemy.exc import SAWarning
from traitlets.config import Config
from traitlets.config.loader import ConfigFileNotFound, PyFileConfigLoader

from exercises.grading import canonical, source

CONFIG = "nbgrader_config.py"
# nbgrader は alembic を PATH から探す
os.environ["PATH"] = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])


class Book:
    """一つの課題の成績簿。root は nbgrader の授業のフォルダになる。"""

    def __init__(self, root: pathlib.Path, assignment: str, db_url: str = ""):
        self.root, self.assignment = root, assignment
        self.db_url = db_url or f"sqlite:///{root.resolve()}/gradebook.db"
        self.name = f"{assignment}.ipynb"
        self.release = canonical.release(assignment)
        self._register()
        self.book = Gradebook(self.db_url)

    def _register(self) -> None:
        with Gradebook(self.db_url) as book:
            book.update_or_create_assignment(self.assignment)
        # formgrader は source/ にある課題を一覧に出す
        save(self.root / "source" / self.assignment / self.name, self.release.notebook)
        nb = nbformat.from_dict(copy.deepcopy(self.release.notebook))
        SaveCells().preprocess(nb, self._resources(""))

    def _resources(self, student: str) -> dict:
        names = {"notebook": self.assignment, "assignment": self.assignment, "student": student}
        return {"nbgrader": names | {"db_url": self.db_url}}

    def write(self, student: str, result: dict, timestamp: str = "") -> None:
        """一人分の点とノートブックを書く。"""
        notebook = result["notebook"] or self.release.notebook
        self._files(student, notebook, result)
        warnings.filterwarnings("ignore", category=SAWarning)  # nbgrader 0.9.6 と SQLAlchemy 2.1
        self.book.update_or_create_student(student)
        extra = {"timestamp": timestamp} if timestamp else {}
        handed = self.book.update_or_create_submission(self.assignment, student, **extra)
        points = {f"{q['question']}-code": q for q in result["questions"]}
        unchanged = self._unchanged(notebook)
        (theirs,) = [n for n in handed.notebooks if n.name == self.assignment]
        for grade in theirs.grades:
            row = points.get(grade.name)
            grade.auto_score = self._auto(row, grade, unchanged)
            by_hand = grade.auto_score is None or grade.manual_score is not None
            grade.needs_manual_grade = by_hand or bool(result["refused"])
        for comment in theirs.comments:
            comment.auto_comment = "No response." if comment.name in unchanged else None
        late = handed.total_seconds_late > 0
        self.book.db.commit()
        self.book.db.expunge_all()
        if late:
            empty = nbformat.from_dict({"cells": [], "metadata": {}})
            penalties = AssignLatePenalties(config=_config())
            penalties.preprocess(empty, self._resources(student))

    @staticmethod
    def _auto(row: dict | None, grade, unchanged: set[str]) -> float | None:
        if row is None:
            return 0.0 if grade.name in unchanged else None
        return float(max(0, min(row["points"], grade.max_score_gradecell)))

    def _unchanged(self, notebook: dict) -> set[str]:
        """手の付いていない答えの欄。"""
        ours = {c["id"]: c["source"] for c in self.release.notebook["cells"]}
        return {
            c["metadata"]["nbgrader"]["grade_id"]
            for c in notebook["cells"]
            if c["metadata"].get("nbgrader", {}).get("solution")
            and ours.get(c["id"]) == c["source"]
        }

    def _files(self, student: str, notebook: dict, result: dict) -> None:
        for place, made in (("submitted", notebook), ("autograded", executed(notebook, result))):
            save(self.root / place / student / self.assignment / self.name, made)

    def close(self) -> None:
        self.book.close()


def _config() -> Config:
    try:
        return PyFileConfigLoader(CONFIG, path=str(canonical.COURSE)).load_config()
    except ConfigFileNotFound:
        return Config()


def executed(notebook: dict, result: dict) -> dict:
    """実行の記録と判定をセルの出力として、採点基準を欄の下に入れたもの。出力は文字だけ。"""

    def rubric(name: str, text: str) -> dict:
        bare = {"cell_type": "markdown", "metadata": {}, "source": text}
        return bare | {"id": f"{name}-rubric"}

    cells = map(dict, notebook["cells"])
    cells = source.with_rubrics(cells, result["assignment"], lambda cell: cell["id"], rubric)
    done = {**notebook, "cells": cells}
    log = {name: (text, error) for name, text, error in result["log"]}
    verdicts = {f"{q['question']}-code": q for q in result["questions"]}
    for cell in done["cells"]:
        if cell["cell_type"] != "code":
            continue
        cell["outputs"] = []
        text, error = log.get(cell["id"], ("", None))
        if cell["id"] in verdicts:
            row = verdicts[cell["id"]]
            text = "\n".join([row["text"], *row["remarks"]]) or result["refused"]
        if text:
            cell["outputs"].append({"output_type": "stream", "name": "stdout", "text": text})
        if error:
            trace = [f"{error['type']}: {error['message']}"]
            names = {"ename": error["type"], "evalue": error["message"]}
            cell["outputs"].append({"output_type": "error", "traceback": trace} | names)
    return done


def save(path: pathlib.Path, notebook: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
