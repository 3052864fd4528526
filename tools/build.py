"""Builds the book into _build/html: every page executed, every warning an error.

ANSWERS=0 leaves the answers to the exercises out (for a class that is graded).

Sphinx alone would show old pages in three cases; they are met here and in _ext/bookext.py:
a page whose cells are unchanged but whose lib/ is not (the execution cache has a key of its own),
the other pages' contents after _toc.yml changed, and warnings that a second run no longer repeats.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import yaml
from jupyter_cache import get_cache
from jupyter_cache.executors import load_executor

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "_ext")]

import bookext  # noqa: E402

from tools import package  # noqa: E402

SOURCES = [
    "_config.yml",
    "_toc.yml",
    "CHANGELOG.md",
    "intro.md",
    "references.bib",
    "requirements.lock",
    "_ext/**/*",
    "_static/**/*",
    "chapters/**/*",
    "exercises/release/**/*.ipynb",
    "experiments/**/*.json",
    "figs/*",
    "lib/**/*",
]


def with_answers() -> bool:
    return os.environ.get("ANSWERS", "1") != "0"


def fingerprint(root: Path = ROOT, patterns: list[str] = SOURCES) -> str:
    """Hash of every file that the built pages depend on."""
    digest = hashlib.sha256()
    paths = {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}
    for path in sorted(paths):
        if "__pycache__" not in path.parts and ".ipynb_checkpoints" not in path.parts:
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def read_stamp(root: Path = ROOT) -> dict:
    """What the last successful build was made from; empty if there was none."""
    stamp = root / "_build" / "book.json"
    return json.loads(stamp.read_text(encoding="utf-8")) if stamp.exists() else {}


def state(root: Path = ROOT) -> dict:
    return {
        "sources": fingerprint(root),
        "contents": fingerprint(root, ["_toc.yml"]),
        "answers": with_answers(),
    }


def is_fresh(root: Path = ROOT) -> bool:
    return (root / "_build" / "html" / "index.html").exists() and read_stamp(root) == state(root)


def contents(root: Path) -> Path:
    """The table of contents to use: without the answer pages where they are left out."""
    path = root / "_toc.yml"
    if with_answers():
        return path
    toc = yaml.safe_load(path.read_text(encoding="utf-8"))
    for part in toc["parts"]:
        part["chapters"] = [c for c in part["chapters"] if not c["file"].endswith("/answers")]
    shorter = root / "_build" / "_toc.yml"
    shorter.write_text(yaml.safe_dump(toc, allow_unicode=True), encoding="utf-8")
    return shorter


def forget_stale(build: Path, last: dict, now: dict) -> None:
    """Removes pages made with other contents; the executed cells stay in their cache."""
    if any(last.get(key) != now[key] for key in ("contents", "answers")):
        for folder in ("html", ".doctrees", "jupyter_execute"):
            shutil.rmtree(build / folder, ignore_errors=True)
    if last.get("sources") != now["sources"]:
        (build / "html" / "book.pdf").unlink(missing_ok=True)


def keep_newest_caches(build: Path, keep: int = 2) -> None:
    caches = sorted((build / "cache").glob("*"), key=lambda p: p.stat().st_mtime, reverse=True)
    for old in caches[keep:]:
        shutil.rmtree(old)


@contextmanager
def alone(folder: Path):
    """Waits for another build in the same folder; where files cannot be locked, nobody waits."""
    with open(folder / ".lock", "w") as file:
        if fcntl:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("別の make book が終わるのを待っています。", flush=True)
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def page_paths(root: Path, toc: Path) -> list[Path]:
    """The pages with cells, in the order of the table of contents."""
    parts = yaml.safe_load(toc.read_text(encoding="utf-8"))["parts"]
    paths = [root / f"{page['file']}.md" for part in parts for page in part["chapters"]]
    paths = [path for path in paths if path.exists()]
    return [p for p in paths if re.search("^kernelspec:", p.read_text(encoding="utf-8"), re.M)]


def execute_pages(root: Path, toc: Path) -> None:
    """Executes the pages that the cache lacks, one process for each processor.

    Sphinx alone would execute them one after the other. A page that raises is left to Sphinx, which
    executes it again and shows where it failed.
    """
    bookext.prepare_kernels(root)
    cache = get_cache(root / "_build" / "cache" / bookext.cache_key(root))
    for path in page_paths(root, toc):
        cache.add_nb_to_project(path, read_data={"name": "myst_nb_md", "type": "plugin"})
    executor = load_executor("local-parallel", cache, logging.getLogger("pages"))
    executor.logger.setLevel(logging.WARNING)
    with mock.patch.dict(os.environ, OMP_NUM_THREADS="1"):
        executor.run_and_cache(timeout=600)


def build(root: Path = ROOT) -> int:
    """Runs jupyter-book; 0 if every page was built without a warning."""
    (root / "_build").mkdir(exist_ok=True)
    with alone(root / "_build"):
        return build_alone(root)


def build_alone(root: Path) -> int:
    folder, now = root / "_build", state(root)
    forget_stale(folder, read_stamp(root), now)
    (folder / "book.json").unlink(missing_ok=True)
    execute_pages(root, contents(root))
    code = run_sphinx(root)
    if code:
        # The next run must read every page again, or it would not see the same warnings.
        shutil.rmtree(folder / ".doctrees", ignore_errors=True)
        return code
    package.package(root, contents(root))
    keep_newest_caches(folder)
    (folder / "book.json").write_text(json.dumps(now), encoding="utf-8")
    return 0


def run_sphinx(root: Path, builder: str = "html") -> int:
    """Every warning is an error."""
    command = [
        sys.executable,
        "-c",
        "from jupyter_book.cli.main import main; main()",
        "build",
        str(root),
        "-W",
        "-n",
        "--keep-going",
        "--builder",
        builder,
    ]
    command += ["--toc", str(contents(root)), "--config", str(root / "_config.yml")]
    environment = {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "2")}
    return subprocess.run(command, cwd=root, env=environment).returncode


def main() -> int:
    start = time.monotonic()
    code = build()
    seconds = time.monotonic() - start
    if code:
        print(
            f"\n本を作れませんでした（{seconds:.0f} 秒）。上の WARNING か ERROR を直してください。"
        )
        return code
    page = ROOT / "_build" / "html" / "index.html"
    print(f"\n本ができました（{seconds:.0f} 秒）。ブラウザで開いてください：")
    print(f"  {page.as_uri()}")
    print("  make serve とすると http://localhost:8000 で見られます（検索の抜粋も出ます）。")
    return 0


if __name__ == "__main__":
    sys.exit(main())
