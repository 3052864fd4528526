"""What crosses between the processes, and what happens when the other side misbehaves."""

import json
import math
import subprocess
import time

import numpy as np
import pytest
import torch

from exercises.grading import callers, core, sandbox, wire
from exercises.grading.callers import InProcess, Workers
from exercises.grading.check import Probe

X = np.arange(6.0).reshape(2, 3)
ROUND = """
import torch
def give(x):
    return x * 2, [1, 2.5, True, None, "語"], torch.arange(3)
"""


@pytest.fixture(scope="module", params=["bwrap", "none"])
def workers(request):
    reason = sandbox.bwrap_problem() if request.param == "bwrap" else ""
    if reason:
        pytest.skip(f"THE SANDBOX IS NOT TESTED ON THIS MACHINE: {reason}")
    pool = Workers(request.param)
    yield pool
    pool.close()


def ask(session, *probes, cells=()):
    with session.question(cells) as question:
        return question.calls(list(probes))


@pytest.fixture
def call(workers):
    def run(source, probe):
        with workers.session([["0", source]]) as session:
            return ask(session, probe)[0]

    return run


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "uint8", "float16"])
def test_arrays_survive_the_way(dtype):
    for shape in ((), (0,), (1,), (2, 3, 5)):
        array = np.ones(shape, dtype)
        item = wire.decode(json.loads(json.dumps(wire.encode(torch.from_numpy(array)))))
        assert item.kind == "Tensor" and item.data.dtype == dtype and item.data.shape == shape
    special = np.array([np.nan, np.inf, -np.inf])
    assert wire.same(wire.decode(wire.encode(special)), wire.Item("ndarray", special))


@pytest.mark.parametrize(
    "value", [object(), {1: 2}, 1j, np.array(["a"]), np.array([object()]), np.ones(2**21), len]
)
def test_other_types_are_only_named(value):
    assert wire.decode(wire.encode(value)).kind == "other"


@pytest.mark.parametrize(
    "tree",
    [
        None,
        [],
        {"k": "Tensor"},
        {"k": "Tensor", "dtype": "O", "shape": [1], "v": ""},
        {"k": "Tensor", "dtype": "<f8", "shape": [2], "v": "AAAA"},
        {"k": "Tensor", "dtype": "<f8", "shape": [-1], "v": ""},
        {"k": "Tensor", "dtype": "<f8", "shape": [10**9] * 8, "v": ""},
        {"k": "float", "v": "x"},
        {"k": "int", "v": [1]},
        {"k": "code", "v": "x"},
        {"k": "tuple", "v": 3},
    ],
)
def test_forged_values_are_refused(tree):
    with pytest.raises(wire.WireError):
        wire.decode(tree)


def test_both_callers_say_the_same(call):
    probe = Probe("give", (X,), repeat=True)
    near, far = InProcess(ROUND).call(probe), call(ROUND, probe)
    assert wire.same(near.value, far.value)
    assert [item.kind for item in far.value.data] == ["Tensor", "list", "Tensor"]
    assert not far.changed and far.again


def test_gradients_cross_too(call):
    probe = Probe("f", (X,), cotangent=np.ones((2, 3)))
    got = call("def f(x): return (x ** 2,)", probe)
    np.testing.assert_allclose(got.value.data[0].data, 2 * X)
    assert call("def f(x): return x.detach()", probe).error == "RuntimeError"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("raise KeyError('k')", "KeyError"),
        ("raise SystemExit", "SystemExit"),
        ("import os; os._exit(3)", "Died"),
        ("import os; os.kill(os.getpid(), 9)", "Died"),
        ("import os; os.write(9, b'x')", "OSError"),
        ("return f", ""),
    ],
)
def test_failures_have_a_name(call, body, error):
    assert call(f"def f(x): {body}", Probe("f", (X,))).error == error


def test_questions_share_the_cells_and_nothing_else(workers):
    code = "n = 0\nprint('once')\ndef f(x):\n    global n\n    n += 1\n    return n"
    end = "import os\ndef g(x): os._exit(1)"
    count, leave = Probe("f", (X,)), Probe("g", (X,))
    with workers.session([["0", code], ["1", end]]) as session:
        assert [got.value.data for got in ask(session, count, count)] == [1, 2]
        assert [got.error for got in ask(session, count, leave, count)] == ["", "Died", "Died"]
        assert not session.dead and not session.spent
        with session.question() as question:
            assert [question.calls([count])[0].value.data for _ in range(2)] == [1, 2]
        again = ask(session, count, cells=[["0", "n = 6"]])
        assert again[0].value.data == 7 and [row[0] for row in session.rerun] == ["0"]
        assert ask(session, count)[0].value.data == 1
        assert [row[1] for row in session.log] == ["once\n", ""]


def test_an_answer_that_ends_later_costs_only_its_question(workers):
    leave = "import os, threading\ndef f(x): threading.Timer(0.05, os._exit, [0]).start()"
    late, stay = Probe("f", (X,)), Probe("g", (X,))
    with workers.session([["0", leave], ["1", "def g(x): return x"]]) as session:
        for more in (0, 1):
            with session.question() as question:
                assert question.calls([late])[0].error == ""
                time.sleep(0.3)
                assert [got.error for got in question.calls([stay] * more)] == ["Died"] * more
            assert not session.dead
        assert ask(session, stay)[0].error == ""


@pytest.mark.parametrize(
    "start",
    [
        "torch.set_num_threads(2)\ny = torch.ones(999, 999) @ torch.ones(999, 999)",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(99,)).start()",
    ],
)
def test_threads_that_a_cell_leaves_do_no_harm(workers, start):
    """A fork of a process with threads can hang: such a child answers itself, and only once."""
    code = (
        f"import torch\n{start}\ndef f(x): return (torch.ones(999, 999) @ torch.ones(999, 999))[0]"
    )
    with workers.session([["0", code]]) as session:
        assert not session.spent
        for got in ask(session, *[Probe("f", (X,))] * 2):
            assert (got.value.data == 999).all()
        assert session.spent and not session.dead


def test_a_loop_in_one_question_costs_the_others_nothing(workers, monkeypatch):
    monkeypatch.setattr(callers, "CALL_SECONDS", 0.5)
    cells = [("0", "def f(x):\n    while True: pass", "a"), ("1", "def g(x): return x", "b")]
    run = core._Run(cells, workers)
    assert run._dead("a") == run._dead("b") == ""
    first = ask(run.session, *[Probe("f", (X,))] * 2)
    assert [got.error for got in first] == ["Timeout", "Timeout"]
    assert run._dead("b") == ""
    assert ask(run.session, Probe("g", (X,)))[0].error == ""
    run.close()


def test_missing_functions_and_broken_cells(call):
    assert call("def f(:", Probe("f", (X,))).error == "Missing"
    assert call("f = 3", Probe("f", (X,))).error == "Missing"


def test_what_was_changed_or_differs_is_seen(call):
    assert call("def f(x): x += 1", Probe("f", (X,))).changed == ("1 番目の引数",)
    named = call("def f(x, m=None): m[0] = 9", Probe("f", (X,), {"m": X}))
    assert named.changed == ("m",)
    code = "n = 0\ndef f(x):\n    global n\n    n += 1\n    return n"
    assert not call(code, Probe("f", (X,), repeat=True)).again


def test_endless_answers_cost_the_limit(workers, monkeypatch):
    monkeypatch.setattr(callers, "CALL_SECONDS", 0.5)
    start = time.monotonic()
    with workers.session([["0", "def f(x):\n    while True: pass"]]) as session:
        assert ask(session, Probe("f", (X,)))[0].error == "Timeout"
        assert ask(session, Probe("f", (X,)))[0].error == "Timeout"
    monkeypatch.setattr(callers, "SESSION_SECONDS", 1.0)
    with workers.session(
        [["0", "while True:\n    try:\n        while True: pass\n    except: pass"]]
    ) as s:
        assert ask(s, Probe("f", (X,)))[0].error == "Timeout"
    assert time.monotonic() - start < 10


def test_garbage_on_the_wire_only_costs_its_sender(workers):
    loud = (
        "import contextlib, os\nfor fd in range(3, 40):\n"
        "    with contextlib.suppress(OSError): os.write(fd, b'\\xff' * 99)"
    )
    with workers.session([["0", loud]]) as session:
        assert ask(session, Probe("f", (X,)))[0].error in ("Unreadable", "Died", "Timeout")
    with workers.session([["0", "def f(x): return x"]]) as session:
        assert ask(session, Probe("f", (X,)))[0].error == ""


@pytest.mark.parametrize("after", [[], ["x", "y"], [3], None, "x", {"0": 1}])
def test_a_reply_of_another_shape_is_unreadable_or_says_changed(after):
    reply = {"value": wire.encode(1.0), "after": after}
    session = callers.Session.__new__(callers.Session)
    got = session._outcome(Probe("f", (X,)), reply)
    assert got.error == "Unreadable" or got.changed == ("1 番目の引数",)


def test_marks_tell_values_types_and_shapes_apart():
    x = torch.arange(6.0)
    marks = [x, x.double(), x.reshape(2, 3), -x, x.numpy(), (x,), 1, True, 1.0, "1", None]
    assert len({wire.mark(value) for value in marks}) == len(marks)
    assert wire.mark(x.reshape(2, 3).mT) == wire.mark(x.reshape(2, 3).mT.contiguous())
    assert wire.mark(torch.tensor([math.nan])) == wire.mark(torch.tensor([math.nan]))


def test_nothing_of_ours_is_in_reach(workers, monkeypatch):
    monkeypatch.setenv("GRADING_SEED", "canary")
    pool = Workers()
    code = "import os\ndef f(x): return str(dict(os.environ)) + os.getcwd()"
    with pool.session([["0", code]]) as session:
        text = ask(session, Probe("f", (X,)))[0].value.data
    pool.close()
    assert "canary" not in text and "answer-" in text


def test_children_do_not_stay(workers):
    code = "import subprocess\np = subprocess.Popen(['sleep', '77.7'], start_new_session=False)"
    with workers.session([["0", code + "\ndef f(x): return p.pid"]]) as session:
        assert ask(session, Probe("f", (X,)))[0].error == ""
        assert "sleep 77.7" in processes()
    assert "sleep 77.7" not in processes()


def processes() -> str:
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout


def test_long_output_is_cut(workers):
    with workers.session([["0", "print('x' * 10**7)\nraise ValueError('no')"]]) as session:
        ((name, text, error),) = session.log
    assert (
        name == "0" and len(text) <= 20_001 and error["type"] == "ValueError" and error["line"] == 2
    )


def test_a_dead_pool_starts_again(workers):
    with workers.session([["0", "f = len"]]):
        pass
    workers.process.kill()
    workers.process.wait()
    with workers.session([["0", "def f(x): return x"]]) as session:
        assert ask(session, Probe("f", (X,)))[0].error == ""
