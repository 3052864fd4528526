"""The grader, sandbox on, against plain nbgrader on the same submissions in the same run.

BENCH_SUBMISSIONS (1000 by default) is the size of the large class.
"""

import contextlib
import io
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from exercises.grading import callers, core, intake, sandbox, source
from exercises.grading.callers import Workers
from tests.exercises import odd
from tools import exercises as tool

ROOT = Path(__file__).resolve().parents[1]
WEEK = "week13"
PEERS, FEW, LANES = 20, 4, 2
LARGE = int(os.environ.get("BENCH_SUBMISSIONS", "1000"))
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # alembic
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "PATH": PATH}


def handed_in(place: Path, count: int) -> None:
    """A class: right, partly right, wrong in the ways of the bank, empty."""
    kit = odd.kit(WEEK)
    asked = core.questions(WEEK)
    for i in range(count):
        nb = kit.right()
        for cell, question in zip(kit.cells(nb), asked, strict=True):
            if i % 4 == 1:
                wrong = question.wrong[i // 4 % len(question.wrong)]
                cell["source"] = wrong.source(source.model(question.id))
        nb = kit.right(i % len(asked)) if i % 4 == 3 else nb
        folder = place / f"s{i:05d}" / WEEK
        folder.mkdir(parents=True)
        (folder / f"{WEEK}.ipynb").write_bytes(odd.packed(nb))


def timed(command: list, where: Path) -> tuple[float, float]:
    """(seconds, peak MiB of the largest process)."""
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        run = subprocess.Popen(command, cwd=where, env=ENVIRONMENT, stdout=said, stderr=said)
        _, status, usage = os.wait4(run.pid, 0)  # of this command and what it started
        if status:
            said.seek(0)
            raise RuntimeError(said.read().decode()[-3000:])
    return time.perf_counter() - begin, usage.ru_maxrss / 1024


def ours(place: Path, out: Path, *more: str) -> tuple[float, float]:
    command = [sys.executable, "-m", "exercises.grading", WEEK, str(place), str(out), "--quiet"]
    return timed([*command, "--jobs", str(LANES), *more], ROOT)


def plain(place: Path, root: Path) -> tuple[float, float]:
    """Seconds of a class in nbgrader as it comes: autograde, and with generate_feedback."""
    week = source.load(WEEK)
    text = tool.written_out(tool.instructor(week))
    for question in week.questions:
        text = text.replace(tool.FAILSAFE, f"check('{question}')", 1)
    tool.save(root / "source" / WEEK / f"{WEEK}.ipynb", text)
    shutil.copytree(place, root / "submitted")
    base = [sys.executable, "-m", "nbgrader"]
    end = [WEEK, f"--CourseDirectory.root={root}"]
    timed([*base, "generate_assignment", *end], root)
    verdict = timed([*base, "autograde", *end], root)[0]
    return verdict, verdict + timed([*base, "generate_feedback", *end], root)[0]


def warm(count: int) -> float:
    """Median seconds of the first answers of one right submission, torch already loaded."""
    pool, kit = Workers("bwrap"), odd.kit(WEEK)
    files = [(kit.name, odd.packed(kit.right()), "")]
    asked = core.questions(WEEK)[:count]

    def once() -> float:
        begin = time.perf_counter()
        kept = {"", *(question.id for question in asked)}
        cells = [cell for cell in intake.read(files, WEEK).code if cell[2] in kept]
        graded, _ = core.grade_cells(cells, asked, 1, pool)
        assert all(g.report.points == g.report.max_points for g in graded)
        return time.perf_counter() - begin

    once()
    spent = [once() for _ in range(20)]
    pool.close()
    return statistics.median(spent)


def endless() -> float:
    """Seconds beyond the stated limit that an endless cell costs."""
    pool, kit = Workers("bwrap"), odd.kit(WEEK)
    nb = kit.first(kit.empty(), lambda old: "while True: pass\n" + old)
    core.grade([(kit.name, odd.packed(kit.empty()), "")], WEEK, "s", pool)
    spent = core.grade([(kit.name, odd.packed(nb), "")], WEEK, "s", pool)["seconds"]
    pool.close()
    return spent - callers.CELLS_SECONDS


def rows() -> list[dict]:
    if sandbox.bwrap_problem():
        raise SystemExit(f"no sandbox on this machine: {sandbox.bwrap_problem()}")
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        root = Path(folder)
        middle = max(PEERS, LARGE // 5)
        sizes = {"few": FEW, "peers": PEERS, "middle": middle, "large": LARGE}
        for name, count in sizes.items():
            handed_in(root / name, count)
        few, peers = (plain(root / name, root / f"course-{name}") for name in ("few", "peers"))
        # without its start, which a large class pays once; ours keep theirs
        nbgrader, nbgrader_feedback = (
            (b - a) / (PEERS - FEW) for a, b in zip(few, peers, strict=True)
        )
        verdict = ours(root / "large", root / "a", "--no-gradebook")[0] / LARGE
        whole, peak_middle = ours(root / "middle", root / "b")
        large, peak_large = ours(root / "large", root / "c")

    def row(name, mine, peer, unit):
        return {"name": name, "ours": mine, "peer": peer, "ratio": peer / mine, "unit": unit}

    def alone(name, mine, unit):
        return {"name": name, "ours": mine, "peer": None, "ratio": None, "unit": unit}

    return [
        row("grading, verdict of a submission (plain nbgrader)", verdict, nbgrader, "s"),
        row(
            "grading, verdict, gradebook and feedback (plain nbgrader)",
            whole / middle,
            nbgrader_feedback,
            "s",
        ),
        alone("grading, verdict of three answers, warm", warm(3), "s"),
        alone("grading, verdict of a whole week, warm", warm(len(core.questions(WEEK))), "s"),
        alone(f"grading, {LARGE:,} submissions with the gradebook", large, "s"),
        row(
            f"grading, peak of a process, {LARGE:,} submissions (against {middle:,})",
            peak_large,
            peak_middle,
            "MiB",
        ),
        alone("grading, an endless loop beyond its limit", endless(), "s"),
    ]
