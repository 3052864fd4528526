"""学生のコードが動く側。ここには種も正解も成績簿もない。

`python -m exercises.grading.worker` は torch を一度だけ読み込んで待ち、提出物ごとに fork する。
子は答えのセルを実行し、関数を頼まれた引数で呼び、返り値を配列として返す。
"""

import contextlib
import io
import os
import re
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Iterator
from typing import Any

from exercises.grading import wire

CPU_SECONDS = 120
FILE_BYTES = 64 << 20
MAX_OUTPUT = 20_000
MAGIC = re.compile(r"^(\s*)[%!].*$", re.MULTILINE)


class _Tail(io.StringIO):
    """長い出力は頭だけを残す。"""

    def write(self, text: str) -> int:
        room = MAX_OUTPUT - self.tell()
        super().write(text[: max(room, 0)])
        return len(text)


def execute(cells: list, namespace: dict) -> list:
    """セルを順に実行する。失敗しても次へ進む。返り値は [id, 出力, 例外] の並び。"""
    log = []
    for name, source in cells:
        out, error = _Tail(), None
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                code = compile(MAGIC.sub(r"\1pass", source), f"<{name}>", "exec")
                exec(code, namespace)
            except BaseException as raised:
                error = _error(raised)
        log.append([name, out.getvalue(), error])
    return log


def _error(raised: BaseException) -> dict:
    frames = [f for f in traceback.extract_tb(raised.__traceback__) if f.filename.startswith("<")]
    line = getattr(raised, "lineno", None) if isinstance(raised, SyntaxError) else None
    if line is None and frames:
        line = frames[-1].lineno
    cell = frames[-1].filename[1:-1] if frames else getattr(raised, "filename", None)
    try:
        message = str(raised)
    except BaseException:
        message = ""
    return {
        "type": type(raised).__name__,
        "message": message[: wire.MAX_TEXT],
        "line": line,
        "cell": cell,
    }


def answer(namespace: dict, request: dict) -> dict:
    """関数を一度（repeat なら二度）呼び、返り値と、呼んだあとの引数を返す。"""
    with _given(namespace, request["given"]):
        return _answer(namespace, request)


@contextlib.contextmanager
def _given(namespace: dict, given: dict | None) -> Iterator[None]:
    """given の関数を、その間だけ差しかえる。"""
    if given is None:
        yield
        return
    ours: dict = {"__name__": "given"}
    exec(given["source"], ours)
    before = {name: namespace[name] for name in given["names"] if name in namespace}
    namespace.update({name: ours[name] for name in given["names"]})
    try:
        yield
    finally:
        for name in given["names"]:
            namespace.pop(name, None)
        namespace.update(before)


def _answer(namespace: dict, request: dict) -> dict:
    function = namespace.get(request["function"])
    if not callable(function):
        return {"error": {"type": "Missing", "message": request["function"], "line": None}}
    args = [wire.restore(wire.decode(a)) for a in request["args"]]
    kwargs = {k: wire.restore(wire.decode(v)) for k, v in request["kwargs"].items()}
    out = _Tail()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            if request["cotangent"] is not None:
                return {"value": wire.encode(_gradients(function, args, kwargs, request))}
            reply = {"value": wire.encode(function(*args, **kwargs))}
            if request["repeat"]:
                reply["again"] = wire.encode(function(*args, **kwargs))
        except BaseException as raised:
            reply = {"error": _error(raised)}
    reply["after"] = [wire.encode(a) for a in args]
    reply["after_named"] = {k: wire.encode(v) for k, v in kwargs.items()}
    return reply


def _gradients(function: Any, args: list, kwargs: dict, request: dict) -> tuple:
    """最初の返り値に余接ベクトルを掛けて足し、Tensor の引数それぞれについて微分する。"""
    import torch

    leaves = [a.requires_grad_() for a in args if isinstance(a, torch.Tensor)]
    first = function(*args, **kwargs)
    first = first[0] if isinstance(first, tuple | list) else first
    total = (first * wire.restore(wire.decode(request["cotangent"]))).sum()
    return torch.autograd.grad(total, leaves)


def session(read: int, write: int) -> None:
    """一つの提出物：最初にセルを実行し、あとは頼まれるたびに関数を呼ぶ。"""
    namespace = {"__name__": "__main__"}
    cells = wire.receive(read)["cells"]
    wire.send(write, {"cells": execute(cells, namespace)})
    while True:
        wire.send(write, answer(namespace, wire.receive(read)))


def _child(read: int, write: int) -> None:
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for what, limit in (
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (limit, limit))
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    wire.send(write, {"pid": os.getpid()})
    with contextlib.suppress(EOFError, BrokenPipeError):
        session(read, write)


def main() -> None:
    """標準入力のソケットで待つ。届いた二つの口（読む・書く）を持つ子を fork する。"""
    import torch

    torch.set_num_threads(1)
    torch.zeros(2, 2).softmax(-1)
    control = socket.socket(fileno=os.dup(0))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    control.send(b"ready")
    while True:
        message, fds, _, _ = socket.recv_fds(control, 4096, 2)
        if not message:
            return
        if os.fork() == 0:
            control.close()
            try:
                os.chdir(message.decode())
                _child(*fds)
            finally:
                os._exit(0)
        for fd in fds:
            os.close(fd)


if __name__ == "__main__":
    sys.exit(main())
