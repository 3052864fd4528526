"""Odd, broken and hostile submissions of one assignment, each with the verdict it must get.

    python tests/exercises/odd.py OUT [week13]

full: honest, all automatic points. part: honest, exactly the first question's points. zero: no
points. refuse: no points and a reason for a person. person: any points, but a person must look.
Every endless thing ends by itself (SECONDS, BYTES, CHILDREN). Test input for a sandbox only.
"""

import copy
import functools
import json
import os
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from exercises.grading import canonical, source  # noqa: E402

SECONDS, BYTES, CHILDREN = 90, 3 << 30, 150
LINK = "link:"
STUB = "raise NotImplementedError()"
Files = dict[str, bytes | str]


@dataclass(frozen=True)
class Case:
    expect: str
    make: Callable[["Kit"], "dict | Files"]


CASES: dict[str, Case] = {}


class Kit:
    """The released notebook, and ways of filling it in."""

    def __init__(self, assignment: str):
        self.name = f"{assignment}.ipynb"
        self.assignment = assignment
        self.release = canonical.release(assignment)

    def cells(self, nb: dict, kind: str = "answer") -> list[dict]:
        """The answer, test, written or locked cells of nb."""
        return [c for c in nb["cells"] if self.kind(c) == kind]

    def kind(self, cell: dict) -> str:
        mark = cell["metadata"].get("nbgrader")
        if mark is None:
            return ""
        if not mark["solution"]:
            return "test"
        return "answer" if cell["cell_type"] == "code" else "written"

    def empty(self) -> dict:
        return copy.deepcopy(self.release.notebook)

    def right(self, only: int = 99) -> dict:
        nb = self.empty()
        for cell in self.cells(nb)[:only]:
            cell["source"] = source.model(cell["metadata"]["nbgrader"]["grade_id"])
        return nb

    def first(self, nb: dict, change: Callable[[str], str]) -> dict:
        cell = self.cells(nb)[0]
        cell["source"] = change(cell["source"])
        return nb


def case(name: str, expect: str):
    def keep(make):
        CASES[name] = Case(expect, make)
        return make

    return keep


def sized(code: str) -> str:
    code = textwrap.dedent(code).strip()
    for name, value in (("SECONDS", SECONDS), ("BYTES", BYTES), ("CHILDREN", CHILDREN)):
        code = code.replace(name, str(value))
    return code


def above(name: str, expect: str, code: str, base: str = "empty") -> None:
    """code stands at the top of the first answer cell."""
    text = sized(code)
    CASES[name] = Case(expect, lambda k: k.first(getattr(k, base)(), lambda old: f"{text}\n{old}"))


def below(name: str, expect: str, code: str, base: str = "empty") -> None:
    text = sized(code)
    CASES[name] = Case(expect, lambda k: k.first(getattr(k, base)(), lambda old: f"{old}\n{text}"))


def inside(name: str, expect: str, code: str) -> None:
    """code is the body of the first function; the others stay empty."""
    text = textwrap.indent(sized(code), "    ")
    CASES[name] = Case(
        expect, lambda k: k.first(k.empty(), lambda old: old.replace("    " + STUB, text, 1))
    )


def everywhere(name: str, expect: str, code: str) -> None:
    """code is the body of every function."""
    text = textwrap.indent(sized(code), "    ")

    def make(kit: Kit) -> dict:
        nb = kit.empty()
        for cell in kit.cells(nb):
            cell["source"] = cell["source"].replace("    " + STUB, text)
        return nb

    CASES[name] = Case(expect, make)


def restructured(name: str, expect: str, base: str = "right"):
    """The decorated function changes a filled-in notebook in place."""

    def keep(change):
        def make(kit: Kit) -> dict:
            nb = getattr(kit, base)()
            return change(kit, nb) or nb

        CASES[name] = Case(expect, make)
        return change

    return keep


def packed(nb: dict, **options) -> bytes:
    return json.dumps(nb, **({"ensure_ascii": False} | options)).encode("utf-8", "surrogatepass")


def code_cell(text: str) -> dict:
    return {
        "cell_type": "code",
        "id": f"own-{abs(hash(text)) % 10**8}",
        "metadata": {},
        "source": text,
        "outputs": [],
        "execution_count": None,
    }


# plain

case("right", "full")(lambda k: k.right())
case("empty", "zero")(lambda k: k.empty())
case("first-question", "part")(lambda k: k.right(1))
everywhere("none", "zero", "return None")

# time, memory, processes, output, files

LOOP = "import time\nend = time.time() + SECONDS\n"
inside("loop-call", "zero", LOOP + "while time.time() < end: pass")
above("loop-cell", "zero", LOOP + "while time.time() < end: pass")
above(
    "loop-stubborn",
    "zero",
    LOOP + "while time.time() < end:\n    try:\n        while time.time() < end: pass\n"
    "    except BaseException: pass",
)
above(
    "loop-signals",
    "zero",
    "import signal\nfor s in set(signal.Signals) - {9, 19}: signal.signal(s, signal.SIG_IGN)\n"
    + LOOP
    + "while time.time() < end: pass",
)
inside("sleep-call", "zero", "import time\ntime.sleep(25)")
above("print-much", "full", "for _ in range(60_000): print('0123456789abcdef' * 64)", "right")
above("print-one-line", "full", "print('x' * (60 << 20))", "right")
inside("print-forever", "zero", LOOP + "while time.time() < end: print('x' * 1000)")
above(
    "memory",
    "zero",
    "held = []\nfor _ in range(BYTES >> 26): held.append(bytearray(b'x') * (1 << 26))",
)
above(
    "memory-in-children",
    "zero",
    "import os, time\nfor _ in range(12):\n    if os.fork() == 0:\n"
    "        held = bytearray(b'x') * (1 << 28)\n        time.sleep(SECONDS); os._exit(0)\n"
    "time.sleep(SECONDS)",
)
above(
    "children",
    "zero",
    "import os, time\nfor _ in range(CHILDREN):\n    if os.fork() == 0:\n"
    "        time.sleep(SECONDS); os._exit(0)",
)
above(
    "orphan",
    "full",
    "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
    "        [os.close(f) for f in (0, 1, 2)]\n        time.sleep(SECONDS)\n    os._exit(0)",
    "right",
)
above(
    "thread",
    "full",
    "import threading, time\nend = time.time() + 5\ndef spin():\n"
    "    while time.time() < end: time.sleep(0)\n"
    "threading.Thread(target=spin, daemon=True).start()",
    "right",
)
above("disk", "zero", "f = open('big', 'wb')\nfor _ in range(300): f.write(b'x' * (1 << 20))")
above("inodes", "zero", "for i in range(50_000): open(f'f{i}', 'w').close()")
above("descriptors", "zero", "held = [open('/dev/null') for _ in range(100_000)]")
above("crash", "zero", "import ctypes\nctypes.string_at(0)")
above("stack", "zero", "import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()")

# leaving

inside("exit-call", "zero", "import sys\nsys.exit(0)")
inside("os-exit-call", "zero", "import os\nos._exit(0)")
above("os-exit-cell", "zero", "import os\nos._exit(0)")
above("kill-self", "zero", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
above("kill-group", "zero", "import os, signal\nos.kill(0, signal.SIGTERM)")
above("kill-all", "zero", "import os, signal\nos.kill(-1, signal.SIGKILL)")
above("kill-parent", "zero", "import os, signal\nos.kill(os.getppid(), signal.SIGTERM)")
above("shutdown", "zero", "get_ipython().kernel.do_shutdown(False)\nquit()")
above("input", "zero", "name = input('名前は？')")
above(
    "closes-output", "full", "import os, sys\nos.close(1), os.close(2)\nsys.stdout = None", "right"
)
inside("base-exception", "zero", "class Bye(BaseException): pass\nraise Bye('bye')")
inside(
    "exit-in-str",
    "zero",
    "class Bad(Exception):\n    def __str__(self):\n        import os; os._exit(0)\nraise Bad",
)

# the notebook's structure


@restructured("helper-of-one-name-twice", "full")
def _(kit, nb):
    """Two answers have a helper of their own under the same name, as two notebooks would."""
    first, second = kit.cells(nb)[:2]
    first["source"] += (
        "\n\ndef helper(x): return x\n\nplain = attention\n\n"
        "def attention(*x, **more): return helper(plain(*x, **more))\n"
    )
    second["source"] += "\n\ndef helper(w): raise ZeroDivisionError\n"


@restructured("locked-deleted", "full")
def _(kit, nb):
    nb["cells"] = [c for c in nb["cells"] if kit.kind(c) in ("answer", "written")]


@restructured("metadata-lost", "person")
def _(kit, nb):
    for cell in nb["cells"]:
        cell["metadata"] = {}


@restructured("metadata-and-marker-lost", "person")
def _(kit, nb):
    for cell in nb["cells"]:
        cell["metadata"] = {}
        cell["source"] = cell["source"].replace("# ===", "#")


@restructured("crlf", "full")
def _(kit, nb):
    for cell in nb["cells"]:
        cell["source"] = cell["source"].replace("\n", "\r\n") + " \r\n"


@restructured("tests-deleted", "zero", "empty")
def _(kit, nb):
    nb["cells"] = [c for c in nb["cells"] if kit.kind(c) != "test"]


@restructured("tests-raw", "zero", "empty")
def _(kit, nb):
    for cell in kit.cells(nb, "test"):
        cell["cell_type"] = "raw"
        del cell["outputs"], cell["execution_count"]


@restructured("tests-renamed", "zero", "empty")
def _(kit, nb):
    for cell in kit.cells(nb, "test"):
        cell["metadata"]["nbgrader"]["grade_id"] += "-x"


@restructured("tests-not-graded", "zero", "empty")
def _(kit, nb):
    for cell in kit.cells(nb, "test"):
        cell["metadata"]["nbgrader"] |= {"grade": False, "solution": True, "locked": False}
        cell["source"] = "pass"


@restructured("tests-blank-copy", "zero", "empty")
def _(kit, nb):
    nb["cells"] += [copy.deepcopy(c) | {"source": ""} for c in kit.cells(nb, "test")]


@restructured("more-points", "part")
def _(kit, nb):
    for cell in nb["cells"]:
        if "points" in cell["metadata"].get("nbgrader", {}):
            cell["metadata"]["nbgrader"]["points"] = 100
    for cell in kit.cells(nb)[1:]:
        cell["source"] = "pass"


@restructured("schema-future", "person")
def _(kit, nb):
    for cell in nb["cells"]:
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"]["schema_version"] = 99


@restructured("schema-old", "full")
def _(kit, nb):
    for cell in nb["cells"]:
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"]["schema_version"] = 1
            cell["metadata"]["nbgrader"].pop("task")


@restructured("unknown-key", "full")
def _(kit, nb):
    for cell in kit.cells(nb):
        cell["metadata"]["nbgrader"]["unknown"] = {"x": 1}


@restructured("answer-twice-right-last", "full")
def _(kit, nb):
    at = nb["cells"].index(kit.cells(nb)[0])
    nb["cells"].insert(at, copy.deepcopy(kit.cells(kit.empty())[0]))


@restructured("answer-twice-right-first", "full")
def _(kit, nb):
    at = nb["cells"].index(kit.cells(nb)[0])
    nb["cells"].insert(at + 1, copy.deepcopy(kit.cells(kit.empty())[0]))


@restructured("answer-split", "full")
def _(kit, nb):
    at = nb["cells"].index(kit.cells(nb)[0])
    half = copy.deepcopy(nb["cells"][at])
    half["source"] = "# メモ\nmemo = 1"
    nb["cells"].insert(at + 1, half)


@restructured("helper-in-own-cell", "full")
def _(kit, nb):
    cell = kit.cells(nb)[0]
    at = nb["cells"].index(cell)
    nb["cells"].insert(at, code_cell("import math\nimport torch\nhelper = 1"))
    cell["source"] = cell["source"].replace("import math\n", "").replace("import torch\n", "")


@restructured("own-failing-cells", "full")
def _(kit, nb):
    nb["cells"].insert(1, code_cell("1 / 0"))
    nb["cells"].append(code_cell("これは日本語の文です"))


@restructured("own-endless-cell", "full")
def _(kit, nb):
    nb["cells"].append(code_cell(sized(LOOP + "while time.time() < end: pass")))


@restructured("many-cells", "full")
def _(kit, nb):
    nb["cells"] += [code_cell(f"x{i} = {i}") for i in range(3000)]


@restructured("answer-is-markdown", "person")
def _(kit, nb):
    cell = kit.cells(nb)[0]
    cell["cell_type"] = "markdown"
    del cell["outputs"], cell["execution_count"]


@restructured("written-is-code", "person")
def _(kit, nb):
    for cell in kit.cells(nb, "written"):
        cell |= {"cell_type": "code", "outputs": [], "execution_count": None, "source": "わかった"}


@restructured("written-script", "full")
def _(kit, nb):
    for cell in kit.cells(nb, "written"):
        cell["source"] = '<script>document.title="ODD-XSS"</script><img src=x onerror="alert(1)">'


@restructured("printed-script", "full")
def _(kit, nb):
    cell = kit.cells(nb)[0]
    cell["source"] = 'print("<script>ODD-XSS</script>")\n' + cell["source"]


# editors


def colab(kit: Kit, nb: dict) -> None:
    nb |= {"nbformat": 4, "nbformat_minor": 0}
    nb["metadata"] = {
        "colab": {"provenance": [], "gpuType": "T4"},
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "accelerator": "GPU",
    }
    for i, cell in enumerate(nb["cells"]):
        del cell["id"]
        cell["metadata"] |= {"id": f"Xy{i:010d}"}
        cell["source"] = cell["source"].splitlines(keepends=True)
        if cell["cell_type"] == "code":
            cell["metadata"] |= {"outputId": f"out-{i}", "colab": {"height": 35}}
            cell["execution_count"] = i + 1
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["ok\n"]}]


restructured("colab", "full")(colab)


@restructured("colab-magics", "full")
def _(kit, nb):
    first = kit.cells(nb)[0]
    first["source"] = "%%time\n!pip install -q nothing\n" + first["source"] + "\n%matplotlib inline"
    drive = "from google.colab import drive\ndrive.mount('/content/drive')\n%cd /content"
    nb["cells"].insert(0, code_cell(drive))
    colab(kit, nb)


@restructured("colab-widgets", "full")
def _(kit, nb):
    colab(kit, nb)
    nb["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"a": {}}}


@restructured("vscode-old", "full")
def _(kit, nb):
    nb["nbformat_minor"] = 2
    for cell in nb["cells"]:
        del cell["id"]


@restructured("lab", "full")
def _(kit, nb):
    for i, cell in enumerate(nb["cells"]):
        cell["id"] = f"lab-{i}"
        if cell["cell_type"] == "code":
            cell["metadata"] |= {"scrolled": True, "trusted": True, "execution": {"iopub": "x"}}
            data = {"text/html": ["<script>ODD-XSS</script>"], "text/plain": ["1"]}
            cell["outputs"] = [
                {
                    "output_type": "execute_result",
                    "execution_count": 1,
                    "metadata": {},
                    "data": data,
                }
            ]


for _name, _meta in (
    ("kernel-unknown", {"kernelspec": {"name": "conda-x", "display_name": "x"}}),
    ("kernel-missing", {}),
):
    CASES[_name] = Case("full", lambda k, meta=_meta: k.right() | {"metadata": meta})
for _minor in (2, 4, 99):
    CASES[f"minor-{_minor}"] = Case("full", lambda k, m=_minor: k.right() | {"nbformat_minor": m})


@restructured("ids-equal-and-long", "full")
def _(kit, nb):
    for i, cell in enumerate(nb["cells"]):
        cell["id"] = "同" * 100 if i % 2 else "a"


@restructured("nbformat-3", "full")
def _(kit, nb):
    cells = []
    for c in nb["cells"]:
        d = {"cell_type": c["cell_type"], "metadata": c["metadata"]}
        text = {"input": c["source"], "language": "python", "outputs": []}
        cells.append(d | (text if c["cell_type"] == "code" else {"source": c["source"]}))
    return {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]}


# files and bytes


def files(name: str, expect: str):
    def keep(make):
        CASES[name] = Case(expect, make)
        return make

    return keep


files("name-copy", "person")(lambda k: {f"Copy of {k.name}": packed(k.right())})
files("name-ja", "person")(lambda k: {f"{k.name} のコピー.ipynb": packed(k.right())})
files("name-text", "person")(lambda k: {f"{k.name}.txt": packed(k.right())})
files("name-odd", "person")(lambda k: {"=HYPERLINK(“x”)'<b>.ipynb": packed(k.right())})
files("two-files", "person")(
    lambda k: {k.name: packed(k.empty()), k.name.replace(".", " (1)."): packed(k.right())}
)
files("no-notebook", "refuse")(lambda k: {"answer.py": b"print(1)"})
files("other-notebook", "refuse")(
    lambda k: {k.name: packed({"nbformat": 4, "cells": [code_cell("x = 1")], "metadata": {}})}
)
files("pdf", "refuse")(lambda k: {k.name: b"%PDF-1.7\n\x00\xff\xfe"})
files("zero-bytes", "refuse")(lambda k: {k.name: b""})
files("truncated", "refuse")(lambda k: {k.name: packed(k.right())[:20_000]})
files("html", "refuse")(lambda k: {k.name: b"<!doctype html><title>Sign in</title>"})
files("json-list", "refuse")(lambda k: {k.name: b"[1, 2, 3]"})
files("brackets", "refuse")(lambda k: {k.name: b"[" * 10**6})
files("large", "refuse")(lambda k: {k.name: b" " * (21 << 20)})
files("cells-null", "refuse")(lambda k: {k.name: packed(k.right() | {"cells": None})})
files("cells-strange", "refuse")(
    lambda k: {k.name: packed(k.right() | {"cells": [1, {"cell_type": 3, "source": {}}]})}
)
files("bom", "full")(lambda k: {k.name: b"\xef\xbb\xbf" + packed(k.right())})
files("utf-16", "full")(lambda k: {k.name: packed(k.right()).decode().encode("utf-16")})
files("cp932", "person")(lambda k: {k.name: packed(k.right()).decode().encode("cp932", "replace")})
files("escaped", "full")(lambda k: {k.name: packed(k.right(), ensure_ascii=True, indent=2)})


@files("nan", "full")
def _(kit):
    nb = kit.right()
    nb["cells"][0]["metadata"]["score"] = float("nan")
    return {kit.name: packed(nb)}


@files("surrogate", "full")
def _(kit):
    nb = kit.right()
    kit.cells(nb)[0]["source"] += "\n# \ud800"
    return {kit.name: packed(nb, ensure_ascii=True)}


files("link-gradebook", "refuse")(lambda k: {k.name: LINK + "../../../gradebook.db"})
files("link-folder", "refuse")(lambda k: {k.name: packed(k.empty()), "all": LINK + "../.."})


@files("link-source", "refuse")
def _(kit):
    nb = kit.first(kit.empty(), lambda old: "print(open('hint.txt').read())\n" + old)
    path = f"../../../source/{kit.assignment}/{kit.name}"
    return {kit.name: packed(nb), "hint.txt": LINK + path}


for _module in ("numpy", "torch", "json", "ipykernel_launcher", "sitecustomize"):
    CASES[f"shadow-{_module}"] = Case(
        "zero",
        lambda k, m=_module: {
            k.name: packed(k.empty()),
            f"{m}.py": b"def __getattr__(name): return lambda *a, **k: True",
        },
    )

# honest code

above(
    "warns", "full", "import warnings, sys\nwarnings.warn('x')\nprint(1, file=sys.stderr)", "right"
)
above("japanese-names", "full", "重み = 1.0\nδ = 2", "right")
above("changes-folder", "full", "import os\nos.chdir('/')", "right")
above(
    "print-options",
    "full",
    "import numpy, torch\ntorch.set_printoptions(precision=1)\nnumpy.seterr(all='raise')\n"
    "torch.manual_seed(1)",
    "right",
)
above(
    "plots", "full", "try:\n    import matplotlib.pyplot as plt\nexcept ImportError: pass", "right"
)
below("reset", "zero", "get_ipython().run_line_magic('reset', '-f')")
everywhere(
    "in-place",
    "person",
    "for a in list(locals().values()):\n    try: a *= 0\n    except Exception: pass\nreturn None",
)
CASES["full-width-space"] = Case(
    "part",
    lambda k: (lambda nb: (k.cells(nb)[1].update(source="\u3000x（1）"), nb)[1])(k.right(1)),
)

# forging

EQUAL = (
    "class Same(float):\n    def __eq__(self, o): return True\n"
    "    __lt__ = __le__ = __gt__ = __eq__\n"
    "    __hash__ = float.__hash__\n"
)
everywhere("equal-to-all", "zero", EQUAL + "return Same(), Same()")
everywhere(
    "subclass",
    "zero",
    "import torch\nclass T(torch.Tensor):\n"
    "    def __torch_function__(self, *a, **k): return True\nreturn torch.zeros(3).as_subclass(T)",
)
above("ast", "zero", "import ast\nget_ipython().ast_transformers.append(ast.NodeTransformer())")
above("transformer", "zero", "get_ipython().input_transformers_post.append(lambda l: ['pass'])")
above("run-cell", "zero", "type(get_ipython()).run_cell = lambda *a, **k: None")
above("hook", "zero", "get_ipython().events.register('pre_run_cell', lambda i: print(i.raw_cell))")
above("excepthook", "zero", "import sys\nsys.excepthook = lambda *a: None\n2\n")
below(
    "builtins",
    "zero",
    "import builtins\nbuiltins.isinstance = lambda *a: True\n"
    "builtins.all = builtins.any = lambda *a: True\nbuiltins.len = lambda *a: 1",
)
below(
    "patches",
    "zero",
    "import numpy as np, torch\nnp.allclose = torch.allclose = lambda *a, **k: True\n"
    "torch.testing.assert_close = lambda *a, **k: None",
)
below("seeds", "zero", "import torch\ntorch.randn = torch.rand = torch.zeros")
below(
    "wire",
    "zero",
    "import sys\nw = sys.modules['exercises.grading.wire']\n"
    "w.encode = lambda *a: {'k': 'bool', 'v': True}\nw.same = lambda *a: True",
)
below(
    "worker",
    "zero",
    "import sys\nw = sys.modules['exercises.grading.worker']\n"
    "w.answer = w._answer = lambda *a: {'value': {'k': 'float', 'v': '0.0'}, 'points': 8}",
)
above(
    "frames",
    "zero",
    "import os, json, struct\nm = json.dumps({'cell': ['x', '', None], 'points': 99}).encode()\n"
    "for fd in range(3, 64):\n    try: os.write(fd, struct.pack('>I', len(m)) + m)\n"
    "    except OSError: pass",
)
above(
    "garbage",
    "zero",
    "import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'\\xff' * 4096)\n"
    "    except OSError: pass",
)
above(
    "oracle-in-frames",
    "zero",
    "import gc, sys\nfound = [o for o in gc.get_objects() if type(o).__name__ in "
    "('Check', 'Question', 'Report')]\nprint('FOUND', len(found))\nassert found",
)
below(
    "source-notebook",
    "zero",
    "import glob, json\nfor p in glob.glob('/**/source/*/*.ipynb', recursive=True):\n"
    "    for c in json.load(open(p))['cells']:\n        if c['cell_type'] == 'code':\n"
    "            exec(''.join(c['source']), globals())",
)
below(
    "model-in-repository",
    "zero",
    "from exercises.grading import source\n"
    "for q in ('13-1', '13-2'): exec(source.model(q), globals())",
)

# reading and writing what is not theirs

above(
    "reads-all",
    "zero",
    "import glob, os\nfor p in ('../../*/*/*.ipynb', '/**/submitted/**', '/root/*', '/home/*'):\n"
    "    print('READ', glob.glob(p, recursive=True)[:50])\nprint(dict(os.environ))",
)
above(
    "reads-processes",
    "zero",
    "import os\nfor p in filter(str.isdigit, os.listdir('/proc')):\n"
    "    for n in ('cmdline', 'environ', 'maps'):\n"
    "        try: print(p, open(f'/proc/{p}/{n}', 'rb').read()[:3000])\n"
    "        except OSError as e: print(e)",
)
above(
    "writes-all",
    "zero",
    "import glob, os, tempfile\n"
    "places = ['/', '/tmp', '/var/tmp', '/dev/shm', '/usr', '/grader', '..', tempfile.gettempdir()]"
    "\n"
    "for d in [*places, os.path.expanduser('~')]:\n"
    "    try:\n        open(os.path.join(d, 'ODD-WRITTEN'), 'w').write('x'); print('WROTE', d)\n"
    "    except OSError as e: print(e)\n"
    "for p in glob.glob('/**/gradebook.db', recursive=True): open(p, 'w').write('')",
)
above(
    "network",
    "zero",
    "import socket\nprint(socket.if_nameindex())\n"
    "for host in ('127.0.0.1', '1.1.1.1'):\n"
    "    s = socket.socket(); s.settimeout(1)\n"
    "    try: s.connect((host, 80)); print('NET-CONNECTED')\n    except OSError as e: print(e)",
)
above(
    "escapes",
    "zero",
    "import ctypes, os\nc = ctypes.CDLL(None, use_errno=True)\n"
    "print([c.unshare(1 << b) for b in (17, 26, 27, 28, 29, 30)])\n"
    "print(c.mount(b'none', b'/tmp', b'tmpfs', 0, None), c.ptrace(16, 1, 0, 0), c.chroot(b'/'))\n"
    "for n in ('setuid', 'setgid'): print(getattr(c, n)(0))\n"
    "assert os.getuid() == 0",
)

# odd values

inside("value-huge", "zero", "import torch\nreturn torch.zeros(1 << 28), torch.zeros(1 << 28)")
inside("value-view", "zero", "import torch\nreturn torch.zeros(1).expand(1 << 40), torch.zeros(1)")
inside("value-nested", "zero", "x = []\nfor _ in range(100_000): x = [x]\nreturn x")
inside("value-cyclic", "zero", "x = []\nx.append(x)\nreturn x, x")
inside("value-endless", "zero", "import itertools\nreturn itertools.count()")
inside("value-lambda", "zero", "return lambda: 1, type")
inside(
    "value-nan", "zero", "import torch\nreturn torch.full((3, 2), torch.nan), x.mT @ x * torch.nan"
)
inside("value-int", "zero", "return 10 ** 5000, 1")
inside("value-text", "zero", "return 'x' * 10**8, b'x'")
inside(
    "value-objects",
    "zero",
    "import numpy as np\nclass E:\n    def __float__(self): raise SystemExit\n"
    "return np.array([E()], dtype=object), np.array([1j])",
)
inside(
    "value-lying",
    "zero",
    "import torch\nclass L(list):\n    def __len__(self): return 2\n"
    "    def __iter__(self): raise SystemExit\nreturn L()",
)
inside(
    "value-sparse", "zero", "import torch\nreturn torch.eye(3).to_sparse(), torch.eye(3).to('meta')"
)


@functools.cache
def kit(assignment: str) -> Kit:
    return Kit(assignment)


def write(out: Path, assignment: str = "week13", only: set[str] | None = None) -> dict[str, str]:
    """OUT/<name>/<assignment>/<files>, as in nbgrader's submitted/; the verdicts by name."""
    made = kit(assignment)
    for name, one in CASES.items():
        if only is not None and name not in only:
            continue
        content = one.make(made)
        content = (
            {made.name: packed(content)}
            if "cells" in content or "worksheets" in content
            else content
        )
        folder = out / name / assignment
        folder.mkdir(parents=True, exist_ok=True)
        for file, data in content.items():
            if isinstance(data, str):
                os.symlink(data.removeprefix(LINK), folder / file)
            else:
                (folder / file).write_bytes(data)
    return {n: c.expect for n, c in CASES.items() if only is None or n in only}


if __name__ == "__main__":
    verdicts = write(Path(sys.argv[1]), *sys.argv[2:3])
    text = json.dumps(verdicts, ensure_ascii=False, indent=1)
    (Path(sys.argv[1]) / "odd.json").write_text(text + "\n", encoding="utf-8")
    print(f"{len(verdicts)} submissions in {sys.argv[1]}")
