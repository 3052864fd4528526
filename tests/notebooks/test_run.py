"""Every notebook runs from top to bottom in an empty folder, under Colab's versions.

The environment is requirements-colab.txt in COLAB_VENV (made here when it is not there). Over it
lies a fresh one for each session, so that jaxtyping and matplotlib-fontja are absent at the start
and a notebook's own first cell has to bring them.
"""

import copy
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tools import make_notebooks

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "tests" / "notebooks" / "sample.md"
CHAPTERS = sorted(
    p for p in ROOT.glob("chapters/**/*.ipynb") if ".ipynb_checkpoints" not in p.parts
)
EXERCISES = sorted(ROOT.glob("exercises/release/*/*.ipynb"))
NOTEBOOKS = [*CHAPTERS, *EXERCISES]
ABSENT = ("lib", "jaxtyping", "matplotlib_fontja")
TIMEOUT = 600


def pip(python: Path, *arguments: str) -> None:
    subprocess.run([python, "-m", "pip", "install", "-q", *arguments], check=True)


def site_packages(python: Path) -> Path:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(subprocess.check_output([python, "-c", code], text=True).strip())


def importable(python: Path, folder: Path) -> set[str]:
    code = f"import importlib.util as u; print(*[m for m in {ABSENT!r} if u.find_spec(m)])"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.check_output([python, "-c", code], text=True, cwd=folder, env=environment)
    return set(done.split())


@pytest.fixture(scope="session")
def colab() -> Path:
    """Python of the environment with Colab's versions."""
    venv = ROOT / os.environ.get("COLAB_VENV", ".venv-colab")
    python = venv / "bin" / "python"
    if not (venv / "bin" / ".installed").exists():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        pip(python, "-r", str(ROOT / "requirements-colab.txt"))
        (venv / "bin" / ".installed").touch()
    return python


@pytest.fixture(scope="session")
def kernel(colab: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Name of a kernel in a fresh environment over the Colab one."""
    home = tmp_path_factory.mktemp("colab")
    venv = home / "venv"
    subprocess.run([colab, "-m", "venv", "--without-pip", venv], check=True)
    python = venv / "bin" / "python"
    (site_packages(python) / "colab.pth").write_text(f"{site_packages(colab)}\n")
    assert importable(python, home) == set(), "a learner's machine has none of these at the start"
    environment = {"PYTHONPATH": "", "BOOK_STATIC": "", "MPLBACKEND": "", "OMP_NUM_THREADS": "1"}
    environment |= {name: str(home / name) for name in ("IPYTHONDIR", "MPLCONFIGDIR")}
    spec = {
        "argv": [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "colab",
        "language": "python",
        "env": environment,
    }
    folder = home / "jupyter" / "kernels" / "colab"
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(json.dumps(spec))
    os.environ["JUPYTER_PATH"] = str(home / "jupyter")
    return "colab"


def run(nb: nbformat.NotebookNode, kernel: str, folder: Path) -> nbformat.NotebookNode:
    nb = copy.deepcopy(nb)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(nb, kernel_name=kernel, timeout=TIMEOUT, resources=resources).execute()
    return nb


def printed(nb: nbformat.NotebookNode) -> str:
    outputs = [o for c in nb.cells if c.cell_type == "code" for o in c.outputs]
    return "\n".join(o.get("text", "") for o in outputs)


def complaints(text: str) -> list[str]:
    return re.findall(r".*(?:Glyph \d+|findfont|Traceback|DeprecationWarning).*", text)


@pytest.fixture(scope="session")
def sample() -> nbformat.NotebookNode:
    return make_notebooks.Book(ROOT).convert(SAMPLE)


def faults(nb: dict) -> list[str]:
    """What must not be in a notebook that is to be handed out."""
    found = []
    ids = [cell.get("id") for cell in nb["cells"]]
    if None in ids or len(set(ids)) != len(ids):
        found.append("an id is missing or repeated")
    for cell in nb["cells"]:
        source = "".join(cell["source"])
        if cell.get("outputs") or cell.get("execution_count") or cell.get("attachments"):
            found.append(f"{cell.get('id')}: output, number or attachment")
        if cell["cell_type"] == "markdown":
            prose = re.sub(r"```.*?```|`[^`]*`(?!\})", "", re.sub(r"\}`", "}", source), flags=re.S)
            for pattern in (
                r"^\s*:::",
                r"^\([\w-]+\)=",
                r"\{(?:glue|numref|cite|eq|doc|ref|index|math)[:\w]*\}",
                r"attachment:",
                r"!\[[^\]]*\]\((?!https://|data:)",
                r"<img(?![^>]*src=\"(?:https://|data:image/png;base64,))",
                r"\]\((?!https?://|data:|#)[^)]*\.(?:md|ipynb|png|svg)\)",
                r"<!--",
            ):
                found += [f"{cell['id']}: {m[0]}" for m in re.finditer(pattern, prose, re.M)]
    return found


PLANTED = [
    ":::{note}\nx\n:::",
    "(sec-a)=\n## 節",
    "{ref}`x <y>` です",
    "値は {glue:text}`a:.2f`",
    "![図](../figs/a.png)",
    "![図](attachment:a.png)",
    '<img alt="a" src="../figs/a.png">',
    '<img alt="a" src="data:image/svg+xml;base64,AAAA">',
    "[隣](02_two.ipynb)",
    "<!-- 内緒 -->",
]


@pytest.mark.parametrize("source", PLANTED)
def test_a_planted_left_over_is_found(source: str):
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(source)])
    assert faults(nb)


def test_planted_output_and_repeated_id_are_found():
    cell = {"cell_type": "code", "id": "a", "source": "1", "outputs": []}
    assert faults({"cells": [cell]}) == []
    assert faults({"cells": [cell, cell]}) == ["an id is missing or repeated"]
    cell = nbformat.v4.new_code_cell("1", outputs=[nbformat.v4.new_output("stream", text="1")])
    assert faults(nbformat.v4.new_notebook(cells=[cell]))


def test_planted_glyph_warning_is_found():
    assert complaints("UserWarning: Glyph 35486 (\\N{CJK}) missing from font(s) DejaVu Sans.")
    assert not complaints("Epoch 1: loss 0.5\n")


def test_sample_is_clean(sample: nbformat.NotebookNode):
    assert faults(sample) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_is_clean(path: Path):
    assert faults(json.loads(path.read_text(encoding="utf-8"))) == []


@pytest.mark.slow
def test_sample_runs_and_its_first_cell_may_run_again(sample, kernel: str, tmp_path: Path):
    nb = copy.deepcopy(sample)
    at = next(i for i, cell in enumerate(nb.cells) if cell.id == "setup")
    again = copy.deepcopy(nb.cells[at])
    again.id = "setup-again"
    nb.cells.insert(at + 1, again)
    done = run(nb, kernel, tmp_path)
    assert complaints(printed(done)) == []
    assert [p.name for p in tmp_path.iterdir()] == ["toi_transformer"]
    kinds = [set(o.get("data", {})) for c in done.cells for o in c.get("outputs", [])]
    assert any("application/vnd.jupyter.widget-view+json" in kind for kind in kinds)
    assert any("image/png" in kind for kind in kinds)
    assert not any("text/html" in kind and "image/png" in kind for kind in kinds)


@pytest.fixture(scope="session")
def finished(request, kernel: str, tmp_path_factory):
    """Path -> the run notebook. The chosen ones start together, one for each processor."""

    def begin(path: Path) -> nbformat.NotebookNode:
        folder = tmp_path_factory.mktemp(path.stem)
        return run(nbformat.read(path, as_version=4), kernel, folder)

    name = test_notebook_runs_in_an_empty_folder.__name__
    chosen = [i.callspec.params["path"] for i in request.session.items if i.originalname == name]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {path: pool.submit(begin, path) for path in chosen}


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_runs_in_an_empty_folder(path: Path, finished):
    done = finished[path].result()
    assert complaints(printed(done)) == []
    code = [cell for cell in done.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
