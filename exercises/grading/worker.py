"""学生のコードが動く側。ここには種も正解も成績簿もない。

main は torch を一度だけ読み込んで待ち、提出物ごとに子を一つ作る。isolated なら、その子は自分だけの
名前空間と空の /tmp を持つ（箱そのものは sandbox.py）。子はすべてのセルを一度実行し、問いごとに、
また子を作る。その子が、答えのセルをもう一度実行し、関数を頼まれた引数で呼び、返り値を返す。
"""

import contextlib
import ctypes
import functools
import gc
import io
import os
import platform
import re
import resource
import select
import signal
import socket
import traceback
import types
from collections.abc import Iterator
from typing import Any

from exercises.grading import magics, wire

CPU_SECONDS = 120
MEMORY = 2 << 30
PROCESSES = 64
FILES = 256
FILE_BYTES = 64 << 20
MAX_OUTPUT = 20_000
WATCH_SECONDS = 0.2
CLONE = {"x86_64": 56, "aarch64": 220}
# mount, uts, ipc, user, pid, net
NAMESPACES = 0x00020000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
PRIVATE, DEATH_SIGNAL, NO_NEW_PRIVS, DROP_BOUND = 0x4000 | 0x40000, 1, 38, 24
COLLAPSE = 25


class _Tail(io.StringIO):
    """長い出力は頭だけを残す。"""

    def write(self, text: str) -> int:
        room = MAX_OUTPUT - self.tell()
        super().write(text[: max(room, 0)])
        return len(text)


def execute(cells: list, namespace: dict) -> list:
    """セルを順に実行する。失敗しても次へ進む。返り値は [名前, 出力, 例外] の並び。"""
    return [execute_one(name, source, namespace) for name, source in cells]


def execute_one(name: str, source: str, namespace: dict) -> list:
    """セルを一つ実行する。"""
    out, error = _Tail(), None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            exec(compile(magics.plain(source), f"<{name}>", "exec"), namespace)
        except BaseException as raised:
            error = _error(raised)
    return [name, out.getvalue(), error]


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
    """関数を一度（repeat なら二度）呼び、返り値と、呼んだあとの引数の指紋を返す。"""
    with _given(namespace, request["given"]):
        return _answer(namespace, request)


@contextlib.contextmanager
def _given(namespace: dict, given: dict | None) -> Iterator[None]:
    """given の関数を、その間だけ差しかえる。"""
    if given is None:
        yield
        return
    ours: dict = {"__name__": "given"}
    exec(_compiled(given["source"]), ours)
    before = {name: namespace[name] for name in given["names"] if name in namespace}
    namespace.update({name: ours[name] for name in given["names"]})
    try:
        yield
    finally:
        for name in given["names"]:
            namespace.pop(name, None)
        namespace.update(before)


@functools.cache
def _compiled(source: str) -> types.CodeType:
    return compile(source, "given", "exec")


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
    reply["after"] = [wire.mark(value) for value in (*args, *kwargs.values())]
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
    """一人分：最初にセルを実行し（一つずつ報告し）、あとは頼まれるたびに、子に答えさせる。

    セルがスレッドを残していたら、fork した子は動けないことがあるので、ここで答える。
    """
    namespace = {"__name__": "__main__"}
    magics.install(namespace)
    for name, source in wire.receive(read)["cells"]:
        wire.send(write, {"cell": execute_one(name, source, namespace)})
    forks = _threads() == 1
    wire.send(write, {"forks": forks})
    while True:
        message = wire.receive(read)
        if "cells" not in message:  # 早く終わった子に、届かなかったもの
            continue
        pid = os.fork() if forks else 0
        if pid == 0:
            try:
                _question(namespace, message["cells"], read, write)
            finally:
                if forks:
                    os._exit(0)
        else:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        wire.send(write, {"end": True})


def _threads() -> int:
    """このプロセスのスレッドの数。数えられなければ 0。"""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 0


def _question(namespace: dict, cells: list, read: int, write: int) -> None:
    """一つの問い：その答えのセルをもう一度実行し、終わりと言われるまで、呼び出しに順に答える。"""
    for name, source in cells:
        wire.send(write, {"cell": execute_one(name, source, namespace)})
    while count := wire.receive(read)["requests"]:
        for request in [wire.receive(read) for _ in range(count)]:
            wire.send(write, answer(namespace, request))


# ── 子を一つ、閉じこめて始める ──


def _clone() -> int:
    """fork と同じだが、子は新しい名前空間で生まれる（子の pid は、そこでは 1）。"""
    call = ctypes.PyDLL(None).syscall
    call.restype = ctypes.c_long
    ctypes.pythonapi.PyOS_BeforeFork()
    number, flags = CLONE[platform.machine()], NAMESPACES | signal.SIGCHLD
    pid = call(*map(ctypes.c_long, (number, flags, 0, 0, 0, 0)))
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError("名前空間を作れません")
    return pid


def _enter() -> None:
    """子の中：nobody のまま、/proc と /tmp と /dev/shm を自分のものにし、権限をすべて捨てる。"""
    libc = ctypes.CDLL(None, use_errno=True)

    def must(result: int) -> None:
        if result != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    must(libc.prctl(DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0))
    for name, text in (("setgroups", "deny"), ("uid_map", None), ("gid_map", None)):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text or "65534 65534 1")
    must(libc.mount(b"none", b"/", None, PRIVATE, None))
    must(libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 6, b"size=64m,nr_inodes=4096,mode=700"))
    must(libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 6, b"size=16m,nr_inodes=256,mode=700"))
    must(libc.mount(b"proc", b"/proc", b"proc", 14, None))
    with open("/proc/sys/user/max_user_namespaces", "w") as file:
        file.write("0")
    os.mkdir("/tmp/answer-box")
    os.chdir("/tmp/answer-box")
    must(libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0))
    for capability in range(64):
        libc.prctl(DROP_BOUND, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    must(libc.capset(header, (ctypes.c_uint32 * 6)()))


def _mapped() -> int:
    """いま取っている番地の広さ。torch（とくに CUDA 版）は、読み込むだけで数 GB を取る。"""
    with contextlib.suppress(OSError), open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
    return 0


def _limit(isolated: bool) -> None:
    limits = [
        (resource.RLIMIT_AS, _mapped() + MEMORY),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_NOFILE, FILES),
        (resource.RLIMIT_CORE, 0),
    ]
    if isolated:  # 箱なしでは、この人のほかのプロセスまで数えてしまう
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")  # 機械のメモリが足りなくなったら、まずこの子が止まる
        limits.append((resource.RLIMIT_NPROC, PROCESSES))
    for what, limit in limits:
        resource.setrlimit(what, (limit, limit))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def _child(read: int, write: int, isolated: bool) -> None:
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if isolated:
        _enter()
    _limit(isolated)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    wire.send(write, {"pid": os.getpid()})
    with contextlib.suppress(EOFError, BrokenPipeError):
        session(read, write)


def single() -> None:
    """一人分だけのプロセス（入れ物の中）。標準入出力で話す。"""
    import torch

    torch.set_num_threads(1)
    read, write = os.dup(0), os.dup(1)
    _child(read, write, isolated=False)


def probe() -> None:
    """箱の中で、名前空間を持つ子が生まれるかを試す。"""
    pid = _clone()
    if pid == 0:
        try:
            _enter()
            os._exit(0)
        except OSError as error:
            os.write(2, str(error).encode())
            os._exit(1)
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _memory(outside: set[str]) -> int:
    """子とその子孫の、メモリの大きさ。大まかな上限が大きいときだけ、正確に数える。"""
    rough = exact = 0
    inside = [p for p in os.listdir("/proc") if p.isdigit() and p not in outside]
    for pid in inside:
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/statm") as f:
            rough += int(f.read().split()[1]) * resource.getpagesize()
    if rough <= MEMORY:
        return rough
    for pid in inside:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as f:
            found = re.search(r"^Pss: +(\d+) kB", f.read(), re.MULTILINE)
            exact += int(found[1]) << 10 if found else 0
    return exact


def _watch(control: socket.socket, pid: int, outside: set[str]) -> None:
    """「終わり」の知らせを待つ。その間、メモリを使いすぎた子を止める。"""
    while not select.select([control], [], [], WATCH_SECONDS)[0]:
        if outside and _memory(outside) > MEMORY:
            os.kill(pid, signal.SIGKILL)
            break


def _large_pages() -> None:
    """データを大きなページに集め、fork が写す表を小さくする。できないカーネルでは何もしない。"""
    madvise = ctypes.CDLL(None).madvise
    with open("/proc/self/maps") as maps:
        lines = [line.split() for line in maps]
    for place, access, *_, name in lines:
        if access == "rw-p" and name in ("[heap]", "0"):  # 名前のない所は、i ノードの 0 で終わる
            start, end = (int(side, 16) for side in place.split("-"))
            madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), COLLAPSE)


def main(isolated: bool = False) -> None:
    """標準入力のソケットで待つ。届いた二つの口（読む・書く）を持つ子を、一度に一つ作る。"""
    import torch

    torch.set_num_threads(1)
    for dtype in (torch.float32, torch.float64):  # 最初の一回だけ遅い計算を、済ませておく
        (torch.ones(2, 2, dtype=dtype) @ torch.ones(2, 2, dtype=dtype)).softmax(-1)
    gc.freeze()  # 子のごみ集めが、親と分け合っているページを写さないように
    if isolated:
        _large_pages()
    control = socket.socket(fileno=os.dup(0))
    outside = {p for p in os.listdir("/proc") if p.isdigit()} if isolated else set()
    control.send(b"ready")
    while True:
        message, fds, _, _ = socket.recv_fds(control, 4096, 2)
        if not message:
            return
        pid = _clone() if isolated else os.fork()
        if pid == 0:
            try:
                control.close()
                if not isolated:
                    os.chdir(message.decode())
                _child(*fds, isolated)
            finally:
                os._exit(0)
        for fd in fds:
            os.close(fd)
        _watch(control, pid, outside)
        closing = control.recv(64)
        for kill in (os.kill, os.killpg):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        if not closing:
            return
        control.send(b"gone")


if __name__ == "__main__":
    main()
