"""たくさんの提出物を採点する。途中で止まっても、同じ命令で続きから始まる。

結果は一人分ずつ results/ に書く。名前は、届いたバイト列と、配布物・検査・採点の版と、種から決まる。
同じものを二度採点することも、古い結果を使うこともない。成績表とページは、そこから作り直す。
"""

import contextlib
import csv
import ctypes
import hashlib
import importlib
import json
import multiprocessing
import os
import pathlib
import re
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field

from tqdm import tqdm

from exercises.grading import collect, core, page, source
from exercises.grading.callers import Workers

COLUMNS = ("student", "assignment", "question", "points", "max_points", "needs_person", "reason")
SHARD = 25
ATTEMPTS = 3
LOST = "採点のプロセスが、この提出物の途中で {n} 回止まりました。"


@dataclass
class Job:
    """一人分の仕事。files は dispatch のときに読む。"""

    submission: collect.Submission
    folder: str
    key: str
    remarks: list[str] = field(default_factory=list)
    attempts: int = 0


# ── 採点するプロセスの側 ──

_lane = threading.Lock()
_workers: list[Workers] = []


def _die_with_parent(level: str) -> None:
    with contextlib.suppress(AttributeError):  # Linux のほかにはない
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _own(level).launch()
    importlib.import_module("exercises.grading.judge")


def _own(level: str) -> Workers:
    if not _workers or _workers[0].level != level:
        _workers[:] = [Workers(level)]
    return _workers[0]


def grade_one(files: list, assignment: str, seed: str, level: str) -> dict:
    """一人分。何が起きても、記録を返す。"""
    with _lane:
        try:
            return core.grade(files, assignment, seed, _own(level))
        except Exception as error:
            _workers.clear()
            why = f"採点の部品が失敗しました（{type(error).__name__}：{str(error)[:200]}）。"
            return core.refused(assignment, why, level)


def grade_shard(shard: list, assignment: str, seed: str, level: str) -> list:
    """いくつかをまとめて（dask の仕事の単位）。"""
    return [(key, grade_one(files, assignment, seed, level)) for key, files in shard]


# ── 配る側 ──


class Batch:
    """一回の採点。out のフォルダにすべてを書く。"""

    def __init__(self, assignment: str, out: pathlib.Path, level: str, seed: str = ""):
        self.assignment, self.out, self.level = assignment, out, level
        for name in ("results", "received", "feedback"):
            (out / name).mkdir(parents=True, exist_ok=True)
        self.seed = self._seed(seed)
        self.jobs: list[Job] = []
        self.strangers: list[str] = []
        self.reused = 0

    def _seed(self, given: str) -> str:
        """前の回の続きなら、そのときの種を使う。"""
        path = self.out / "run.json"
        known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        seed = given or os.environ.get("GRADING_SEED") or known.get("seed") or secrets.token_hex(8)
        facts = {"assignment": self.assignment, "seed": seed, "sandbox": self.level}
        write(path, json.dumps(facts | {"versions": core.versions(self.assignment)}, indent=1))
        path.chmod(0o600)
        return seed

    def read(self, place: pathlib.Path) -> None:
        """提出物を集め、届いたバイト列を残し、仕事の一覧を作る。"""
        found, self.strangers = collect.submissions(place, self.assignment, source.weeks())
        taken: set[str] = set()
        for one in found:
            folder = slug(one.student, taken)
            files = one.contents()
            self._keep(folder, files)
            self.jobs.append(Job(one, folder, self._key(one, files), one.remarks))

    def _key(self, one: collect.Submission, files: list) -> str:
        versions = json.dumps(core.versions(self.assignment), sort_keys=True)
        digest = hashlib.sha256()
        for text in (self.assignment, self.seed, self.level, versions, one.student):
            digest.update(text.encode() + b"\0")
        for name, data, problem in files:
            inner = hashlib.sha256(data or b"").digest()
            digest.update(name.encode("utf-8", "replace") + b"\0" + problem.encode() + inner)
        return digest.hexdigest()[:40]

    def _keep(self, folder: str, files: list) -> None:
        """届いたバイト列を、そのまま残す。リンクと大きすぎるものは、名前だけを残す。"""
        place, listing = self.out / "received" / folder, []
        place.mkdir(parents=True, exist_ok=True)
        for i, (name, data, problem) in enumerate(files):
            kept = f"{i:03d}-{slug(name.rsplit('/', 1)[-1])}"
            facts = {"name": name, "problem": problem, "kept": kept if data is not None else ""}
            if data is not None:
                facts["sha256"] = hashlib.sha256(data).hexdigest()
                path = place / kept
                if not path.is_file() or path.stat().st_size != len(data):
                    write(path, data)
            listing.append(facts)
        write(place / "files.json", json.dumps(listing, ensure_ascii=False, indent=1))

    def path(self, job: Job) -> pathlib.Path:
        return self.out / "results" / f"{job.key}.json"

    def result(self, job: Job) -> dict | None:
        """書き終えた結果。なければ None。"""
        try:
            return json.loads(self.path(job).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def save(self, job: Job, result: dict) -> None:
        write(self.path(job), json.dumps(result, ensure_ascii=False))

    def lost(self, job: Job) -> dict:
        return core.refused(self.assignment, LOST.format(n=job.attempts), self.level)

    def todo(self, regrade: bool) -> list[Job]:
        left = [job for job in self.jobs if regrade or self.result(job) is None]
        self.reused = len(self.jobs) - len(left)
        return left

    def arguments(self, job: Job) -> tuple:
        return job.submission.contents(), self.assignment, self.seed, self.level


def run_local(batch: Batch, left: list[Job], lanes: int, done: Callable[[Job, dict], None]) -> None:
    """この機械の lanes 個のプロセスで採点する。止まったプロセスの仕事は、一つずつやり直す。"""
    waiting = list(reversed(left))
    width = lanes + 2
    while waiting:
        pool = ProcessPoolExecutor(
            lanes, multiprocessing.get_context("spawn"), _die_with_parent, (batch.level,)
        )
        running: dict = {}
        try:
            while waiting or running:
                while waiting and len(running) < width:
                    job = waiting.pop()
                    running[pool.submit(grade_one, *batch.arguments(job))] = job
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    result = future.result()
                    done(running.pop(future), result)
        except BrokenProcessPool:
            width = 1
            for job in running.values():
                job.attempts += 1
                if job.attempts < ATTEMPTS:
                    waiting.append(job)
                else:
                    done(job, batch.lost(job))
        finally:
            pool.shutdown(cancel_futures=True)


def run_dask(
    batch: Batch, left: list[Job], address: str, done: Callable[[Job, dict], None]
) -> None:
    """dask.distributed の計算機の集まりで採点する。学生のコードは、その先の箱の中で動く。"""
    import distributed

    jobs = {job.key: job for job in left}
    with distributed.Client(address) as client:
        shards = [left[i : i + SHARD] for i in range(0, len(left), SHARD)]
        futures = distributed.as_completed([_submit(client, batch, shard) for shard in shards])
        for future in futures:
            if future.status == "finished":
                for key, result in future.result():
                    done(jobs.pop(key), result)
                future.release()
                continue
            keys = json.loads(future.key.split("/", 1)[1])
            for key in keys:
                job = jobs[key]
                job.attempts += 1
                if job.attempts < ATTEMPTS:
                    futures.add(_submit(client, batch, [job]))
                else:
                    done(jobs.pop(key), batch.lost(job))


def _submit(client, batch: Batch, shard: list[Job]):
    files = [(job.key, job.submission.contents()) for job in shard]
    name = f"grade-{time.monotonic_ns()}/" + json.dumps([job.key for job in shard])
    arguments = (files, batch.assignment, batch.seed, batch.level)
    return client.submit(grade_shard, *arguments, key=name, pure=False, retries=2)


# ── 書く側 ──


def rows(student: str, assignment: str, result: dict, person: list[str]) -> list[dict]:
    """成績表の行。"""
    out = []
    for question in result["questions"]:
        why = [*filter(None, [result["refused"]]), *person, *result["person"], *question["person"]]
        out.append(
            {
                "student": student,
                "assignment": assignment,
                "question": question["question"],
                "points": question["points"],
                "max_points": question["max_points"],
                "needs_person": int(bool(why)),
                "reason": " / ".join(dict.fromkeys(why)) or _why(question),
            }
        )
    return out


def _why(question: dict) -> str:
    """点を失った、最初の理由。"""
    failed = (r for part in question["parts"] for r in part["results"] if not r["passed"])
    first = next(failed, None)
    return "" if first is None else f"{first['name']}：{first['cause'] or first['came']}"


def grades(path: pathlib.Path, table: list[dict]) -> None:
    """日本語の Excel でそのまま開ける CSV（BOM 付き UTF-8）。式と読まれる文字で始めない。"""
    temporary = path.with_suffix(".tmp")
    with open(temporary, "w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for row in table:
            writer.writerow({k: _cell(v) for k, v in row.items()})
    temporary.replace(path)


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = re.sub(r"[\x00-\x1f]", " ", value).encode("utf-8", "replace").decode()
    return "'" + text if text[:1] in "=+-@" and text else text


def slug(name: str, taken: set[str] | None = None) -> str:
    """ファイルの名前に使える形。変えたとき、すでに使われているときは、印を足す。"""
    short = re.sub(r"[^\w.()\- ]", "_", name).strip(" .")[:60] or "_"
    taken = taken if taken is not None else set()
    if short != name or short.casefold() in taken:
        short += "-" + hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    taken.add(short.casefold())
    return short


def write(path: pathlib.Path, content: str | bytes) -> None:
    """途中で止まっても、半分だけのファイルは残らない。"""
    temporary = path.with_name(f".{path.name[:80]}.{os.getpid()}.tmp")
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    temporary.write_bytes(data)
    temporary.replace(path)


@contextlib.contextmanager
def progress(total: int, quiet: bool) -> Iterator[tqdm]:
    with tqdm(total=total, unit="件", disable=quiet, smoothing=0.1) as bar:
        yield bar


def finish(batch: Batch, facts: dict) -> list[dict]:
    """成績表、ページ、一覧を、結果から書く。"""
    table, links = [], {}
    for job in batch.jobs:
        result, student = batch.result(job), job.submission.student
        write(
            batch.out / "feedback" / f"{job.folder}.html",
            page.feedback(student, result, job.remarks),
        )
        table += rows(student, batch.assignment, result, job.submission.person)
        links[student] = f"feedback/{job.folder}.html"
    grades(batch.out / "grades.csv", table)
    facts = facts | {"提出物と見なさなかったもの": "、".join(batch.strangers[:50]) or "なし"}
    write(batch.out / "report.html", page.report(batch.assignment, table, facts, links))
    return table
