"""One command: stopped and started again, gradebook, feedback, table, several machines."""

import csv
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest
from nbgrader.api import Gradebook

from exercises.grading import batch as batches
from exercises.grading import page, sandbox, source
from exercises.grading.__main__ import main
from tests.exercises import odd

ROOT = pathlib.Path(__file__).resolve().parents[2]
FEW = {"right", "empty", "first-question", "zero-bytes", "written-script", "name-copy"}
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def command(handed, out, *more):
    return [sys.executable, "-m", "exercises.grading", "week13", handed, out, "--quiet", *more]


def table(out) -> list[dict]:
    with open(out / "grades.csv", encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def points(out) -> dict[str, int]:
    sums: dict[str, int] = {}
    for row in table(out):
        sums[row["student"]] = sums.get(row["student"], 0) + int(row["points"])
    return sums


EXPECTED = {"right": 56, "empty": 0, "first-question": 8, "zero-bytes": 0}
EXPECTED |= {"written-script": 56, "name-copy": 56}


@pytest.fixture(scope="module", autouse=True)
def box():
    if sandbox.bwrap_problem():
        pytest.skip(f"THE SANDBOX IS NOT TESTED ON THIS MACHINE: {sandbox.bwrap_problem()}")


@pytest.fixture(scope="module")
def handed(tmp_path_factory):
    place = tmp_path_factory.mktemp("handed")
    odd.write(place, only=FEW)
    (place / "right/week13/timestamp.txt").write_text("2026-01-01 00:00:00 UTC")
    return place


@pytest.fixture(scope="module")
def graded(handed, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "o"
    assert main(["week13", str(handed), str(out), "--seed", "canary-9", "--quiet"]) == 0
    return out


def test_the_table(graded):
    raw = (graded / "grades.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbfstudent,assignment,question,points,max_points,")
    assert points(graded) == EXPECTED
    rows = {(r["student"], r["question"]): r for r in table(graded)}
    assert rows["right", "13-1"]["reason"] == "" and rows["right", "13-1"]["needs_person"] == "0"
    assert "まだ書かれていません" in rows["empty", "13-2"]["reason"]
    assert rows["zero-bytes", "13-1"]["reason"] == "ファイルが空です。"
    assert "ファイル名" in rows["name-copy", "13-1"]["reason"]


def test_the_gradebook_and_nbgraders_own_commands(graded):
    with Gradebook(f"sqlite:///{graded}/gradebook.db") as book:
        for student, score in EXPECTED.items():
            theirs = book.find_submission("week13", student)
            assert theirs.score == score and theirs.max_score == 100
            grades = {g.name: g for g in theirs.notebooks[0].grades}
            assert grades["13-1-code"].auto_score <= grades["13-1-code"].max_score
        waiting = {g.name for g in grades.values() if g.needs_manual_grade}
        assert "13-1-code" not in waiting or theirs.student.id == "zero-bytes"
        right = book.find_submission("week13", "right")
        assert right.timestamp.year == 2026
        script = {
            g.name: g for g in book.find_submission("week13", "written-script").notebooks[0].grades
        }
        assert script["13-1-text"].needs_manual_grade and script["13-1-text"].auto_score is None
        grades = {g.name: g for g in right.notebooks[0].grades}
        assert not grades["13-1-text"].needs_manual_grade and grades["13-1-text"].auto_score == 0
    for arguments in (
        ("export", "--to", f"{graded}/nbgrader.csv"),
        ("generate_feedback", "week13"),
    ):
        run = subprocess.run(
            [
                *(sys.executable, "-m", "nbgrader", *arguments),
                f"--CourseDirectory.root={graded}",
                f"--CourseDirectory.feedback_directory={graded}/nbgrader-feedback",
            ],
            cwd=ROOT / "exercises",
            env=ENVIRONMENT | {"JUPYTER_PLATFORM_DIRS": "1"},
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stderr[-3000:]
    text = (graded / "nbgrader.csv").read_text(encoding="utf-8")
    assert text.count("week13") == len(EXPECTED)
    html = (graded / "nbgrader-feedback/written-script/week13/week13.html").read_text()
    assert "<script>document" not in html and "8 点のうち 8 点" in html
    assert "採点基準" not in html


def test_the_executed_notebook_is_there_for_the_written_part(graded):
    path = graded / "autograded/written-script/week13/week13.ipynb"
    cells = {c["id"]: c for c in json.loads(path.read_text(encoding="utf-8"))["cells"]}
    assert "8 点のうち 8 点" in cells["13-1-code"]["outputs"][0]["text"]
    assert "&lt;script>" in cells["13-1-text"]["source"]
    rubric = source.load("week13").find("rubric", "13-1")
    assert rubric in cells["13-1-text-rubric"]["source"], "on the screen of who grades by hand"


def test_marks_by_hand_survive_a_regrade(graded, handed):
    with Gradebook(f"sqlite:///{graded}/gradebook.db") as book:
        grade = book.find_grade("13-1-text", "week13", "week13", "written-script")
        grade.manual_score = 5
        book.db.commit()
    assert main(["week13", str(handed), str(graded), "--quiet", "--regrade"]) == 0
    with Gradebook(f"sqlite:///{graded}/gradebook.db") as book:
        assert book.find_submission("week13", "written-script").score == 61
    assert points(graded) == EXPECTED


def test_a_second_run_grades_nothing_again(graded, handed, capsys):
    before = {p.name: p.stat().st_mtime_ns for p in (graded / "results").iterdir()}
    assert main(["week13", str(handed), str(graded), "--quiet"]) == 0
    assert f"前の結果を使ったもの：{len(FEW)}" in capsys.readouterr().out
    assert {p.name: p.stat().st_mtime_ns for p in (graded / "results").iterdir()} == before
    assert json.loads((graded / "run.json").read_text())["seed"] == "canary-9"
    assert (graded / "run.json").stat().st_mode & 0o077 == 0


def test_each_result_says_how_to_get_it_again(graded):
    for path in (graded / "results").iterdir():
        result = json.loads(path.read_text(encoding="utf-8"))
        assert result["sandbox"] == "bwrap" and "canary-9" not in path.read_text()
        assert {"release", "checks", "grader", "torch"} <= set(result["versions"])
        assert all("seconds" in q for q in result["questions"])


def test_the_pages(graded):
    for path in [*(graded / "feedback").iterdir(), graded / "report.html"]:
        text = path.read_text(encoding="utf-8")
        assert "default-src 'none'" in text and "color-scheme: light dark" in text
        assert "<script" not in text and "canary-9" not in text
    report = (graded / "report.html").read_text(encoding="utf-8")
    assert "人が見る提出物（2 件）" in report and "feedback/right.html" in report


def test_everything_on_a_page_is_escaped():
    evil = '"><script>x</script>\x00\ud800'
    check = {"name": evil, "passed": False, "asked": evil, "came": evil, "cause": evil}
    check |= {"cause_id": evil, "example": evil, "section": evil}
    part = {"name": evil, "points": 0, "max_points": 8, "results": [check]}
    row = {"question": "13-1", "points": 0, "max_points": 8, "parts": [part], "remarks": [evil]}
    result = {"assignment": evil, "questions": [row], "refused": evil, "remarks": [evil]}
    result |= {"person": [evil], "log": [["13-1", evil, None]]}
    for refused in (evil, ""):
        text = page.feedback(evil, result | {"refused": refused}, [evil])
        assert "<script" not in text and "\x00" not in text
        text.encode()
    rows = [{"student": evil, "question": evil, "points": 0, "max_points": 1}]
    text = page.report(
        "x", [rows[0] | {"needs_person": 1, "reason": evil}], {evil: evil}, {evil: evil}
    )
    assert "<script" not in text


def test_cells_of_the_table_are_no_formulas(tmp_path):
    row = dict.fromkeys(batches.COLUMNS, "=HYPERLINK(1)") | {"points": 3, "reason": 'a\nb,"c"'}
    batches.grades(tmp_path / "g.csv", [row])
    with open(tmp_path / "g.csv", encoding="utf-8-sig", newline="") as file:
        (back,) = csv.DictReader(file)
    assert back["student"] == "'=HYPERLINK(1)" and back["reason"] == 'a b,"c"'


@pytest.mark.slow
def test_killed_and_started_again(handed, tmp_path):
    """kill -9 in the middle: nothing is lost, nothing is graded twice, nothing stays alive."""
    place, out = tmp_path / "in", tmp_path / "out"
    for i in range(12):
        shutil.copytree(handed / "right", place / f"s{i:02d}")
    run = subprocess.Popen(command(place, out, "--jobs", "2"), cwd=ROOT, env=ENVIRONMENT)
    while run.poll() is None and len(list((out / "results").glob("*.json"))) < 3:
        time.sleep(0.05)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    done = {p.name: p.stat().st_mtime_ns for p in (out / "results").glob("*.json")}
    assert 3 <= len(done) < 12
    time.sleep(3)
    alive = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert str(out) not in alive
    run = subprocess.run(
        command(place, out), cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    after = {p.name: p.stat().st_mtime_ns for p in (out / "results").glob("*.json")}
    assert len(after) == 12 and {k: after[k] for k in done} == done
    assert points(out) == {f"s{i:02d}": 56 for i in range(12)}


@pytest.mark.slow
def test_two_dask_workers_one_killed(handed, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="distributed is in requirements.lock")
    monkeypatch.setattr(batches, "SHARD", 3)
    place, out = tmp_path / "in", tmp_path / "out"
    for i in range(12):
        shutil.copytree(handed / ("right" if i % 2 else "empty"), place / f"s{i:02d}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        batch = batches.Batch("week13", out, "bwrap", "s")
        batch.read(place)
        seen: list[str] = []

        def done(job, result):
            batch.save(job, result)
            seen.append(job.folder)
            if len(seen) == 3:
                pid = next(iter(cluster.workers.values())).pid
                os.kill(pid, signal.SIGKILL)

        batches.run_dask(batch, batch.todo(False), cluster.scheduler_address, done)
    assert sorted(seen) == [f"s{i:02d}" for i in range(12)]
    batches.finish(batch, {})
    assert points(out) == {f"s{i:02d}": 56 * (i % 2) for i in range(12)}


def test_a_lane_that_dies_costs_only_its_own(handed, tmp_path, monkeypatch):
    """Even a grading process that is killed three times by one submission ends the batch well."""
    batch = batches.Batch("week13", tmp_path / "out", "none", "s")
    batch.read(handed)
    dead = next(job for job in batch.jobs if job.folder == "right")
    monkeypatch.setattr(
        batch, "arguments", lambda job: ([(3, None, "kill")] if job is dead else [], *_rest(batch))
    )
    monkeypatch.setattr(batches, "grade_one", _stand_in)
    found: dict = {}
    batches.run_local(
        batch, batch.jobs, 2, lambda job, result: found.setdefault(job.folder, result)
    )
    assert set(found) == {job.folder for job in batch.jobs}
    assert "3 回止まりました" in found["right"]["refused"]
    assert found["empty"] == "fine"


def _rest(batch):
    return batch.assignment, batch.seed, batch.level


def _stand_in(files, *rest):
    if files:
        os.kill(os.getpid(), signal.SIGKILL)
    return "fine"


def test_postgresql(handed, tmp_path):
    pytest.importorskip("psycopg2")
    with postgres(tmp_path) as url:
        for _ in range(2):
            out = tmp_path / "out"
            assert main(["week13", str(handed), str(out), "--quiet", "--db-url", url]) == 0
            assert not (out / "gradebook.db").exists()
            with Gradebook(url) as book:
                scores = {s.student.id: s.score for s in book.assignment_submissions("week13")}
            assert scores == EXPECTED


class postgres:
    """A server of our own in a temporary folder, reached by a socket."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        found = shutil.which("initdb") or next(
            map(str, pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb")), None
        )
        if found is None:
            pytest.skip("POSTGRESQL IS NOT TESTED: no server on this machine")
        self.bin = pathlib.Path(found).resolve().parent
        self.user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        self.user = self.user if os.geteuid() == 0 else []

    def run(self, name: str, *arguments: str) -> None:
        run = [*self.user, str(self.bin / name), *arguments]
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL, cwd="/")

    def __enter__(self) -> str:
        import tempfile

        self.place = tempfile.mkdtemp(prefix="pg")
        if self.user:
            shutil.chown(self.place, "postgres", "postgres")
        self.run("initdb", "-D", f"{self.place}/data", "-A", "trust", "-U", "me", "--no-sync")
        options = f"-c listen_addresses= -c unix_socket_directories={self.place}"
        self.run("pg_ctl", "-D", f"{self.place}/data", "-o", options, "-w", "start")
        return f"postgresql+psycopg2://me@/postgres?host={self.place}"

    def __exit__(self, *_) -> None:
        self.run("pg_ctl", "-D", f"{self.place}/data", "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.place, ignore_errors=True)


def test_both_ways_of_calling_it(tmp_path):
    for folder, name in ((ROOT, "exercises.grading"), (ROOT / "exercises", "grading")):
        run = subprocess.run(
            [sys.executable, "-m", name, "week99", tmp_path, tmp_path / "out"],
            cwd=folder,
            capture_output=True,
            text=True,
        )
        assert run.returncode == 2 and "課題 week99 はありません" in run.stderr
    (tmp_path / "in").mkdir()
    assert main(["week13", str(tmp_path / "in"), str(tmp_path / "out"), "--quiet"]) == 0
    assert (tmp_path / "out/grades.csv").read_text("utf-8-sig").count("\n") == 1
    assert "提出物" in (tmp_path / "out/report.html").read_text("utf-8")
