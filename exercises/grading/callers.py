"""学生の関数を呼ぶ口。どちらも calls(probes) が Outcome の並びを返す。

InProcess はこのプロセスの中で呼ぶ（正解と誤答の見本、つまり自分たちのコードだけに使う）。
Workers は箱の中の別のプロセスで呼ぶ（学生のコード）。箱は sandbox.py、中は worker.py。
"""

import contextlib
import dataclasses
import functools
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence

from exercises.grading import sandbox, wire, worker
from exercises.grading.check import Outcome, Probe

ROOT = pathlib.Path(__file__).resolve().parents[2]
CALL_SECONDS = float(os.environ.get("GRADING_CALL_SECONDS", "10"))
CELLS_SECONDS = float(os.environ.get("GRADING_CELLS_SECONDS", "20"))
SESSION_SECONDS = float(os.environ.get("GRADING_SUBMISSION_SECONDS", "60"))
START_SECONDS = 120.0
MAX_LOG = 100_000


@functools.lru_cache(maxsize=4096)
def request(probe: Probe) -> dict:
    """Probe を、境を渡る JSON にする。"""
    cotangent = None if probe.cotangent is None else _pack(probe.cotangent)
    return {
        "function": probe.function,
        "args": [_pack(a) for a in probe.args],
        "kwargs": {k: _pack(v) for k, v in probe.kwargs.items()},
        "cotangent": cotangent,
        "repeat": probe.repeat,
        "given": None if probe.given is None else dataclasses.asdict(probe.given),
    }


@functools.lru_cache(maxsize=4096)
def _frame(probe: Probe) -> bytes:
    return wire.frame(request(probe))


def _pack(value: object) -> dict:
    packed = wire.encode(value)
    return packed | {"k": "Tensor"} if packed["k"] == "ndarray" else packed


def outcome(probe: Probe, reply: dict) -> Outcome:
    """返事を読む。引数が変わったか、二度目も同じかは、ここ（信用できる側）で比べる。"""
    error = reply.get("error")
    if error is not None:
        kind, message = str(error.get("type"))[:80], str(error.get("message"))[:500]
        line = error.get("line")
        return Outcome(error=kind, message=message, line=line if isinstance(line, int) else None)
    value = wire.decode(reply["value"])
    again = "again" not in reply or wire.same(wire.decode(reply["again"]), value)
    return Outcome(value=value, changed=_changed(probe, reply), again=again)


def _changed(probe: Probe, reply: dict) -> tuple[str, ...]:
    if probe.cotangent is not None:
        return ()
    names = (*(f"{i + 1} 番目の引数" for i in range(len(probe.args))), *probe.kwargs)
    triples = zip(names, _marks(probe), reply["after"], strict=True)
    return tuple(name for name, before, after in triples if before != after)


@functools.lru_cache(maxsize=4096)
def _marks(probe: Probe) -> list[str]:
    """学生の側に届いたときの、引数の指紋。"""
    sent = request(probe)
    trees = (*sent["args"], *sent["kwargs"].values())
    return [wire.mark(wire.restore(wire.decode(tree))) for tree in trees]


class InProcess:
    """答えの文字列を、このプロセスの中で実行して呼ぶ。"""

    def __init__(self, source: str):
        self.namespace: dict = {"__name__": "__main__"}
        self.log = worker.execute([["answer", source]], self.namespace)

    def calls(self, probes: list[Probe]) -> list[Outcome]:
        return [self.call(probe) for probe in probes]

    def call(self, probe: Probe) -> Outcome:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return outcome(probe, worker.answer(self.namespace, request(probe)))


def _row(reply: dict, name: str) -> tuple[str, str, dict | None]:
    """セルの実行の記録を、決まった形で取り出す。"""
    if "end" in reply:
        raise EOFError
    row = reply.get("cell")
    if not (isinstance(row, list) and len(row) == 3 and row[0] == name):
        raise wire.WireError("セルの記録の形が違う")
    text, error = str(row[1])[: worker.MAX_OUTPUT], None
    if isinstance(row[2], dict):
        line = row[2].get("line")
        error = {
            "type": str(row[2].get("type"))[:80],
            "message": str(row[2].get("message"))[: wire.MAX_TEXT],
            "line": line if isinstance(line, int) else None,
        }
    return name, text, error


class Session:
    """一人分の実行：すべてのセルを一度実行した子との会話。応えがなければ、あとはすべて失敗になる。

    dead は止まり方（Timeout、Died、Unreadable）、stuck は止まったときに実行していたセルの名前。
    spent なら、次の問いには使えない。log はセルの記録、rerun は最後の問いで実行し直したセルの記録。
    """

    def __init__(self, read: int, write: int, cells: list, deadline: float):
        self.read, self.write, self.dead, self.stuck = read, write, "", ""
        self.deadline = deadline
        os.set_blocking(write, False)
        self._receive(START_SECONDS)  # 子が生まれた知らせ
        self._send([wire.frame({"cells": cells})])
        self.log = self._run(cells)
        forks = None if self.dead else self._receive(START_SECONDS)
        self.forks = forks is not None and forks.get("forks") is True
        self.rerun: list = []
        self.used = self.ended = False

    @property
    def spent(self) -> bool:
        return bool(self.dead) or (self.used and not self.forks)

    def _run(self, cells: list) -> list:
        """セルの実行を見とどける。表示は、全体でも上限まで残す。"""
        rows: list = []
        room, until = MAX_LOG, time.monotonic() + CELLS_SECONDS
        for name, _ in cells:
            reply = self._receive(until - time.monotonic())
            try:
                row = None if reply is None else _row(reply, name)
            except wire.WireError:
                self.dead = "Unreadable"
            except EOFError:
                self.dead = "Died"
            if self.dead:
                self.stuck = name
                break
            rows.append((name, row[1][:room], row[2]))
            room -= len(rows[-1][1])
        return rows

    def _send(self, frames: list[bytes]) -> None:
        if self.dead:
            return
        try:
            wire.write(self.write, b"".join(frames), self.deadline)
        except TimeoutError:
            self.dead = "Timeout"
        except OSError:
            self.dead = "Died"

    def _receive(self, seconds: float) -> dict | None:
        if self.dead:
            return None
        try:
            return wire.receive(self.read, min(self.deadline, time.monotonic() + seconds))
        except TimeoutError:
            self.dead = "Timeout"
        except (EOFError, OSError):
            self.dead = "Died"
        except wire.WireError:
            self.dead = "Unreadable"
        return None

    @contextlib.contextmanager
    def question(self, cells: Sequence = ()) -> Iterator["Session"]:
        """一つの問い：cells をもう一度実行した子に、calls で聞く。"""
        self._send([wire.frame({"cells": list(cells)})])
        self.used, self.ended = True, False
        self.rerun = self._run(cells)
        yield self
        self._send([] if self.ended else [wire.frame({"requests": 0})])
        if not self.ended and "end" not in (self._receive(CALL_SECONDS) or {"end": self.dead}):
            self.dead = "Unreadable"

    def calls(self, probes: list[Probe]) -> list[Outcome]:
        """関数を順に呼ぶ。時間切れ・異常終了・読めない返事は、それぞれの名の失敗になる。"""
        if not self.ended:
            self._send([wire.frame({"requests": len(probes)}), *map(_frame, probes)])
        return [self._outcome(probe, self._reply()) for probe in probes]

    def _reply(self) -> dict | None:
        """次の返事。子が途中で終わったら、そのあとは None。"""
        reply = None if self.ended else self._receive(CALL_SECONDS)
        self.ended |= reply is not None and "end" in reply
        return None if self.ended else reply

    def _outcome(self, probe: Probe, reply: dict | None) -> Outcome:
        if reply is None:
            return Outcome(error=self.dead or "Died")
        try:
            return outcome(probe, reply)
        except (wire.WireError, KeyError, TypeError, ValueError, AttributeError):
            return Outcome(error="Unreadable")

    def close(self) -> None:
        for fd in (self.read, self.write):
            with contextlib.suppress(OSError):
                os.close(fd)


class Workers:
    """torch を読み込んで待つプロセスを一つ持ち、提出物ごとに子を作る。level は箱の種類。"""

    def __init__(self, level: str = "") -> None:
        self.level = level or sandbox.choose()
        self.process: subprocess.Popen | None = None
        self.control: socket.socket | None = None
        self.ready = False

    def launch(self) -> None:
        """待つプロセスを起こす（用意ができるのは待たない）。環境変数は渡さない（種があるため）。"""
        if self.level == "container":
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        keep = {k: os.environ[k] for k in ("PATH", "LD_LIBRARY_PATH", "LANG") if k in os.environ}
        command = [sys.executable, "-m", "exercises.grading.worker"]
        self.process = subprocess.Popen(
            sandbox.bwrap() if self.level == "bwrap" else command,
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            cwd=ROOT,
            env=keep | sandbox.ENVIRONMENT | {"PATH": keep.get("PATH", "")},
            start_new_session=True,
        )
        theirs.close()
        ours.settimeout(START_SECONDS)
        self.control, self.ready = ours, False

    def start(self) -> None:
        """待つプロセスを起こし、用意ができるのを待つ。"""
        if self.process is None or self.process.poll() is not None:
            self.close()
            self.launch()
        if not self.ready and self.control.recv(16) != b"ready":
            raise RuntimeError("採点のプロセスを始められません")
        self.ready = True

    def close(self) -> None:
        if self.control is not None:
            self.control.close()
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.process = self.control = None

    @contextlib.contextmanager
    def session(self, cells: list, deadline: float | None = None) -> Iterator[Session]:
        """cells（[名前, コード] の並び）を実行した子との会話。終われば子もその子孫も止める。"""
        end = time.monotonic() + SESSION_SECONDS
        end = end if deadline is None else min(end, deadline)
        start = self._contained if self.level == "container" else self._forked
        with start() as (read, write):
            talk = Session(read, write, cells, end)
            try:
                yield talk
            finally:
                talk.close()

    @contextlib.contextmanager
    def _forked(self) -> Iterator[tuple[int, int]]:
        folder = tempfile.mkdtemp(prefix="answer-") if self.level == "none" else ""
        try:
            yield self._born(folder.encode() or b"-")
        finally:
            self._stop()
            if folder:
                shutil.rmtree(folder, ignore_errors=True)

    def _born(self, folder: bytes) -> tuple[int, int]:
        """子を一つ作る。待つプロセスが死んでいたら、一度だけ起こし直す。"""
        for last in (False, True):
            self.start()
            down, up = os.pipe(), os.pipe()
            try:
                socket.send_fds(self.control, [folder], [down[0], up[1]])
                return up[0], down[1]
            except OSError:
                os.close(up[0])
                os.close(down[1])
                self.close()
                if last:
                    raise
            finally:
                os.close(down[0])
                os.close(up[1])
        raise AssertionError

    def _stop(self) -> None:
        """子と子孫がすべて消えるまで待つ。応えがなければ、待つプロセスごと止める。"""
        try:
            self.control.send(b"stop")
            if self.control.recv(16) == b"gone":
                return
        except (OSError, AttributeError):
            pass
        self.close()

    @contextlib.contextmanager
    def _contained(self) -> Iterator[tuple[int, int]]:
        command = sandbox.container(sandbox.engine())
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        try:
            yield os.dup(process.stdout.fileno()), os.dup(process.stdin.fileno())
        finally:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()
