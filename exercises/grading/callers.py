"""学生の関数を呼ぶ口。どちらも call(probe) が Outcome を返す。

InProcess はこのプロセスの中で呼ぶ（正解と誤答の見本、つまり自分たちのコードだけに使う）。
Workers は別のプロセスで呼ぶ（学生のコード）。砂場ではない：ファイルや通信は閉じていない。
"""

import contextlib
import dataclasses
import functools
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator

from exercises.grading import wire, worker
from exercises.grading.check import Outcome, Probe

ROOT = pathlib.Path(__file__).resolve().parents[2]
CALL_SECONDS = 10.0
SESSION_SECONDS = 60.0
START_SECONDS = 120.0


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
    sent = request(probe)
    before = dict(enumerate(sent["args"])) | sent["kwargs"]
    after = dict(enumerate(reply["after"])) | reply["after_named"]
    names = {k: f"{k + 1} 番目の引数" if isinstance(k, int) else k for k in before}
    return tuple(names[k] for k in before if before[k] != after[k])


class InProcess:
    """答えの文字列を、このプロセスの中で実行して呼ぶ。"""

    def __init__(self, source: str):
        self.namespace: dict = {"__name__": "__main__"}
        self.log = worker.execute([["answer", source]], self.namespace)

    def call(self, probe: Probe) -> Outcome:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return outcome(probe, worker.answer(self.namespace, request(probe)))


def _log(reply: dict, names: list[str]) -> list[tuple[str, str, dict | None]]:
    """セルの実行の記録を、知っている名前のものだけ、決まった形で取り出す。"""
    rows = reply.get("cells")
    out = []
    for row in rows[: len(names)] if isinstance(rows, list) else []:
        if not (isinstance(row, list) and len(row) == 3 and row[0] in names):
            continue
        text, error = str(row[1])[: worker.MAX_OUTPUT], None
        if isinstance(row[2], dict):
            line = row[2].get("line")
            error = {
                "type": str(row[2].get("type"))[:80],
                "message": str(row[2].get("message"))[: wire.MAX_TEXT],
                "line": line if isinstance(line, int) else None,
            }
        out.append((row[0], text, error))
    return out


class Session:
    """一つの提出物の実行。応えがなければ止め、その後の呼び出しはすべて失敗にする。"""

    def __init__(self, read: int, write: int, cells: list):
        self.read, self.write, self.dead = read, write, ""
        self.deadline = time.monotonic() + SESSION_SECONDS
        self.pid = wire.receive(read, self.deadline)["pid"]
        self.log: list = []
        reply = self._exchange({"cells": cells}, SESSION_SECONDS)
        if reply is not None:
            self.log = _log(reply, [name for name, _ in cells])

    def _exchange(self, message: dict, seconds: float) -> dict | None:
        if self.dead:
            return None
        try:
            wire.send(self.write, message)
            return wire.receive(self.read, min(self.deadline, time.monotonic() + seconds))
        except TimeoutError:
            self.dead = "Timeout"
        except (EOFError, OSError):
            self.dead = "Died"
        except wire.WireError:
            self.dead = "Unreadable"
        return None

    def call(self, probe: Probe) -> Outcome:
        """関数を呼ぶ。時間切れ・異常終了・読めない返事は、それぞれの名の失敗になる。"""
        reply = self._exchange(request(probe), CALL_SECONDS)
        if reply is None:
            return Outcome(error=self.dead)
        try:
            return outcome(probe, reply)
        except (wire.WireError, KeyError, TypeError, AttributeError):
            return Outcome(error="Unreadable")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        for fd in (self.read, self.write):
            with contextlib.suppress(OSError):
                os.close(fd)


class Workers:
    """torch を読み込んで待つプロセスを一つ持ち、提出物ごとに子を作る。"""

    def __init__(self) -> None:
        self.process: subprocess.Popen | None = None
        self.control: socket.socket | None = None

    def start(self) -> None:
        """待つプロセスを起こす。環境変数は渡さない（種がそこにあるため）。"""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        keep = {k: os.environ[k] for k in ("PATH", "LD_LIBRARY_PATH", "LANG") if k in os.environ}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "exercises.grading.worker"],
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            cwd=ROOT,
            env=keep | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        )
        theirs.close()
        ours.settimeout(START_SECONDS)
        if ours.recv(16) != b"ready":
            raise RuntimeError("採点のプロセスを始められません")
        self.control = ours

    def close(self) -> None:
        if self.control is not None:
            self.control.close()
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.process = self.control = None

    @contextlib.contextmanager
    def session(self, cells: list) -> Iterator[Session]:
        """cells（[id, コード] の並び）を実行した子との会話。終われば子もその子孫も止める。"""
        if self.process is None or self.process.poll() is not None:
            self.close()
            self.start()
        folder = tempfile.mkdtemp(prefix="answer-")
        down, up = os.pipe(), os.pipe()
        socket.send_fds(self.control, [folder.encode()], [down[0], up[1]])
        os.close(down[0])
        os.close(up[1])
        talk = Session(up[0], down[1], cells)
        try:
            yield talk
        finally:
            talk.close()
            shutil.rmtree(folder, ignore_errors=True)
