"""The whole command on every odd and hostile submission: verdicts, secrets, and what is left."""

import csv
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from exercises.grading import sandbox
from tests.exercises import odd

ROOT = Path(__file__).resolve().parents[2]
SEED = "canary-seed-5e1f"
OTHER = "canary-other-student"
pytestmark = pytest.mark.slow


def outside() -> dict[str, str]:
    """Files a submission might reach for: temporary folder, home, the course."""
    seen = {}
    for place in (
        tempfile.gettempdir(),
        Path.home(),
        ROOT,
        ROOT / "exercises",
        "/var/tmp",
        "/dev/shm",
    ):
        for entry in os.scandir(place):
            if entry.is_file(follow_symlinks=False) and "ODD" in entry.name:
                seen[entry.path] = entry.name
    return seen


def processes() -> list[str]:
    """What of a sandbox is still alive."""
    run = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True)
    return [line for line in run.stdout.splitlines() if "/grader" in line and "bwrap" in line]


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    reason = sandbox.bwrap_problem()
    if reason:
        pytest.skip(f"THE SANDBOX IS NOT TESTED ON THIS MACHINE: {reason}")
    place = tmp_path_factory.mktemp("odd")
    handed, out = place / "submitted", place / "out"
    handed.mkdir()
    verdicts = odd.write(handed)
    other = handed / OTHER / "week13"
    other.mkdir(parents=True)
    (other / "week13.ipynb").write_bytes(odd.packed(odd.kit("week13").right()))
    before = outside(), processes()
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "exercises.grading",
            "week13",
            handed,
            out,
            "--seed",
            SEED,
            "--quiet",
        ],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    with open(out / "grades.csv", encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        "verdicts": verdicts,
        "run": run,
        "out": out,
        "handed": handed,
        "rows": rows,
        "before": before,
    }


def test_the_batch_ends_well(graded):
    assert graded["run"].returncode == 0, graded["run"].stderr[-3000:]
    students = {row["student"] for row in graded["rows"]}
    assert students == {*graded["verdicts"], OTHER}
    assert "人が見る提出物" in graded["run"].stdout
    for name in ("report.html", "grades.csv", "gradebook.db"):
        assert (graded["out"] / name).is_file()


@pytest.mark.parametrize("name", odd.CASES)
def test_the_verdict_is_the_stated_one(graded, name):
    rows = [row for row in graded["rows"] if row["student"] == name]
    points, most = (sum(int(row[k]) for row in rows) for k in ("points", "max_points"))
    person = any(row["needs_person"] == "1" for row in rows)
    first = int(rows[0]["max_points"])
    expect = odd.CASES[name].expect
    said = (name, points, person, [row["reason"] for row in rows])
    if expect == "person":
        assert person, said
    else:
        assert points == {"full": most, "part": first, "zero": 0, "refuse": 0}[expect], said
    assert person or expect != "refuse", said
    assert all(row["reason"] for row in rows if row["needs_person"] == "1")


def test_no_secret_reaches_a_student(graded):
    """The seed, other students and the gradebook: in no byte of a page that is handed back."""
    pages = list((graded["out"] / "feedback").iterdir())
    assert len(pages) == len(graded["verdicts"]) + 1
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert SEED not in text
        assert (OTHER in text) == path.name.startswith(OTHER)
        assert "SQLite format" not in text and "gradebook.db" not in text
        for word in ("NET-CONNECTED", "WROTE /usr", "WROTE ..", "HIDDEN TESTS"):
            assert word not in text.replace("link-gradebook", ""), (path.name, word)
        assert "Content-Security-Policy" in text and "prefers-color-scheme" in text
        assert ("<script" not in text and "<img" not in text and "&lt;script" in text) or (
            "<script" not in text
        )


def test_nothing_is_left_behind(graded):
    files, alive = graded["before"]
    assert outside() == files
    assert processes() == alive


def test_what_was_received_is_kept(graded):
    place = graded["out"] / "received" / "html"
    (listed,) = json.loads((place / "files.json").read_text(encoding="utf-8"))
    data = (place / listed["kept"]).read_bytes()
    assert data == (graded["handed"] / "html" / "week13" / "week13.ipynb").read_bytes()
    assert listed["sha256"] == hashlib.sha256(data).hexdigest()
    (link,) = json.loads((graded["out"] / "received/link-gradebook/files.json").read_text())
    assert link["problem"] == "link" and not link["kept"]


def test_the_own_kinds_cover_the_shared_ones():
    assert len(odd.CASES) >= 130
    assert {case.expect for case in odd.CASES.values()} == {
        "full",
        "part",
        "zero",
        "refuse",
        "person",
    }
