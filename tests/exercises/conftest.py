"""A course in a temporary folder, graded by nbgrader itself."""

import copy
import csv
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import nbformat
import pytest

from exercises.grading import source
from tools import exercises as tool

ROOT = Path(__file__).resolve().parents[2]


class Course:
    """What an instructor does, by the commands of the instructor."""

    seed = "canary-7f3a"

    def __init__(self, root: Path, name: str = "week13"):
        self.root, self.name = root, name
        self.week = source.load(name)
        self.student = nbformat.reads(tool.release(self.week, root), as_version=4)

    def nbgrader(self, *arguments: str, check: bool = True) -> str:
        """Run in exercises/, so that its nbgrader_config.py counts."""
        run = subprocess.run(
            [sys.executable, "-m", "nbgrader", *arguments, f"--CourseDirectory.root={self.root}"],
            cwd=ROOT / "exercises",
            env=os.environ | {"GRADING_SEED": self.seed, "JUPYTER_PLATFORM_DIRS": "1"},
            capture_output=True,
            text=True,
        )
        assert not check or run.returncode == 0, run.stderr[-4000:]
        return run.stderr

    def answered(self, code: dict[str, str], text: str = "") -> nbformat.NotebookNode:
        """The student's notebook with answers written in."""
        nb = copy.deepcopy(self.student)
        for cell in nb.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if name in code:
                cell.source = code[name]
            elif name.endswith("-text") and text:
                cell.source += f"\n\n{text}"
        return nb

    def submit(self, student: str, nb: nbformat.NotebookNode) -> None:
        path = self.root / "submitted" / student / self.name / f"{self.name}.ipynb"
        tool.save(path, nbformat.writes(nb))

    def grade(self) -> None:
        self.nbgrader("autograde", self.name)
        self.nbgrader("generate_feedback", self.name)
        self.nbgrader("export", "--to", str(self.root / "grades.csv"))

    def score(self, student: str) -> float:
        with open(self.root / "grades.csv", encoding="utf-8") as file:
            return next(
                float(r["score"]) for r in csv.DictReader(file) if r["student_id"] == student
            )

    def feedback(self, student: str) -> str:
        path = self.root / "feedback" / student / self.name / f"{self.name}.html"
        return path.read_text(encoding="utf-8")

    def graded(self, student: str) -> nbformat.NotebookNode:
        path = self.root / "autograded" / student / self.name / f"{self.name}.ipynb"
        return nbformat.read(path, as_version=4)

    def shown(self, student: str) -> str:
        """The feedback as a reader sees it."""
        return re.sub(r"<[^>]+>", "", self.feedback(student).split("<body>", 1)[1])


@pytest.fixture(scope="session")
def courses(tmp_path_factory) -> Callable[[str], Course]:
    """The course of a week, made once."""
    return cache(lambda name: Course(tmp_path_factory.mktemp(name), name))


@pytest.fixture(scope="session")
def course(courses) -> Course:
    return courses("week13")
