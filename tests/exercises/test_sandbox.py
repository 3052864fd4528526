"""Which box is used, what it says when there is none, and what can be seen from inside."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from exercises.grading import sandbox
from exercises.grading.__main__ import main
from exercises.grading.callers import Workers
from exercises.grading.check import Probe

X = np.ones((1,))
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def box():
    reason = sandbox.bwrap_problem()
    if reason:
        pytest.skip(f"THE SANDBOX IS NOT TESTED ON THIS MACHINE: {reason}")
    pool = Workers("bwrap")
    yield pool
    pool.close()


def said(box, body: str, before: str = ""):
    code = f"import os\n{before}\ndef f(x):\n" + "\n".join(f"    {b}" for b in body.split("\n"))
    with box.session([["0", code]]) as session, session.question() as question:
        got = question.calls([Probe("f", (X,))])[0]
    return got.value.data if got.value is not None else got.error


def test_the_sandbox_is_tested_here():
    """A machine without namespaces shows up in the summary of the tests."""
    reason = sandbox.bwrap_problem()
    if reason:
        pytest.xfail(f"NO SANDBOX ON THIS MACHINE: {reason}")
    assert sandbox.choose() == "bwrap"


def test_the_student_is_nobody_alone(box):
    assert said(box, "return os.getuid()") == 65534
    assert said(box, "return f'{os.getpid()} {os.getppid()}'") == "2 1"
    assert said(box, "return sum(map(str.isdigit, os.listdir('/proc')))") == 2
    assert said(box, "return sorted(os.environ)[:3] + [os.getcwd()]")[-1].data.startswith("/tmp")
    assert "GRADING_SEED" not in str(said(box, "return str(dict(os.environ))"))


@pytest.mark.parametrize(
    "path",
    [
        *(str(ROOT / name) for name in ("exercises/checks", "lib", "README.md")),
        *("/root/.ssh", "/home", "/var", "/sys", "/etc/passwd", "/run"),
    ],
)
def test_nothing_of_ours_can_be_seen(box, path):
    assert said(box, f"return os.path.exists({path!r})") is False


def test_nothing_can_be_written_but_the_own_folder(box):
    body = (
        "try:\n    open({0!r}, 'w').write('x')\n    return True\nexcept OSError:\n    return False"
    )
    for path in ("/x", "/dev/x", "/usr/x", "/grader/x", "/etc/x"):
        assert said(box, body.format(path)) is False, path
    for path in ("x", "/tmp/x", "/dev/shm/x"):
        assert said(box, body.format(path)) is True, path
        assert said(box, f"return os.path.exists({path!r})") is False, "left for the next one"


def test_there_is_no_network(box):
    assert said(box, "import socket\nreturn [n for _, n in socket.if_nameindex()]") in (
        (),
        (*said(box, "return ['lo']"),),
    )
    body = "import socket\ntry:\n    socket.create_connection(('127.0.0.1', 22), 1)\n"
    assert said(box, body + "except OSError as e:\n    return 'no'") == "no"


def test_privileges_do_not_come_back(box):
    before = "import ctypes\nc = ctypes.CDLL(None)"
    assert said(box, "return c.unshare(0x10000000)", before) == -1
    assert said(box, "return c.mount(b'x', b'/tmp', b'tmpfs', 0, None)", before) == -1
    assert said(box, "return c.setuid(0)", before) == -1
    caps = "return [l for l in open('/proc/self/status') if l.startswith('Cap')]"
    assert all(item.data.split()[1].strip("0") == "" for item in said(box, caps))


def test_memory_and_processes_are_limited(box):
    assert said(box, "b = bytearray(3 << 30)") == "MemoryError"
    body = "import time\nn = 0\ntry:\n    while n < 500:\n"
    body += "        if os.fork() == 0: time.sleep(60)\n        n += 1\n"
    assert said(box, body + "except OSError:\n    return n") < 80
    body = "try:\n    f = open('b', 'wb')\n    for _ in range(200): f.write(b'x' * (1 << 20))\n"
    assert said(box, body + "except OSError:\n    return 'full'") == "full"


def test_the_addresses_that_torch_takes_are_not_the_students(box):
    """torch with CUDA maps more than the limit by being imported."""
    mapped = said(box, "return int(open('/proc/self/statm').read().split()[0]) * 4096")
    limit = said(box, "return resource.getrlimit(resource.RLIMIT_AS)[0]", "import resource")
    assert limit - mapped > 1.9 * (1 << 30)


def test_a_dead_zygote_costs_nobody_anything(box):
    box.start()
    box.process.kill()
    assert said(box, "return 1") == 1


def test_without_a_box_it_refuses_and_says_why(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sandbox, "bwrap_problem", lambda: "名前空間が許されていません")
    monkeypatch.setattr(sandbox, "engine", lambda: "")
    (tmp_path / "in").mkdir()
    assert main(["week13", str(tmp_path / "in"), str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "名前空間が許されていません" in said and "--trust-submissions" in said
    assert "あなたの権限で" in said and not (tmp_path / "out").exists()
    assert sandbox.choose(trust=True) == "none"
    monkeypatch.setattr(sandbox, "engine", lambda: "podman")
    assert sandbox.choose() == "container"


def test_missing_bwrap_is_noticed(monkeypatch):
    sandbox.bwrap_problem.cache_clear()
    monkeypatch.setenv("PATH", "/nowhere")
    try:
        assert "bwrap" in sandbox.bwrap_problem()
    finally:
        sandbox.bwrap_problem.cache_clear()


def test_the_container_gets_the_same_limits():
    command = " ".join(sandbox.container("podman"))
    for word in ("--network=none", "--read-only", "--cap-drop=ALL", "no-new-privileges"):
        assert word in command
    for word in (f"--memory={sandbox.MEMORY}", "--pids-limit=64", "--user=65534:65534"):
        assert word in command
    assert "checks" not in command and "GRADING" not in command


def test_a_container_speaks_the_same_language(monkeypatch, tmp_path):
    """A stand-in for the engine: it runs the last words of the command, nothing is contained."""
    inside = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from exercises.grading import worker"
    fake = tmp_path / "podman"
    fake.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{inside}; worker.single()"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(sandbox, "engine", lambda: "podman")
    pool = Workers("container")
    assert said(pool, "return 7") == 7
    assert said(pool, "os._exit(0)") == "Died"
    assert not subprocess.run(["pgrep", "-f", "worker.single"], capture_output=True).stdout
