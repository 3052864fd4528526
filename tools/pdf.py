"""Builds _build/html/book.pdf from the pages that make book has executed, with LuaLaTeX.

Fails when a character, a reference or a picture is missing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools import build, package  # noqa: E402

PACKAGES = (
    "texlive-luatex texlive-lang-japanese texlive-latex-extra texlive-fonts-recommended latexmk"
)
COMMANDS = ("lualatex", "latexmk", "upmendex", "kpsewhich")
FILES = ("ltjsbook.cls", "HaranoAjiMincho-Regular.otf", "tabulary.sty", "lmroman10-regular.otf")
# The index in the order of the kana; words in kanji follow, in the order of JIS.
INDEX = "$makeindex = q/upmendex -f -s python.ist -o %D %S/"
PROBLEM = re.compile(
    r"Missing character|(Reference|Citation|reference) `[^']*'.*undefined|"
    r"File `[^']*' not found|multiply defined|^[^ :]+:\d+: "
)


def is_ready() -> bool:
    if not all(map(shutil.which, COMMANDS)):
        return False
    return subprocess.run(["kpsewhich", *FILES], capture_output=True).returncode == 0


def problems(log: str) -> list[str]:
    return list(dict.fromkeys(line for line in log.splitlines() if PROBLEM.search(line)))


def typeset(folder: Path) -> list[str]:
    """Runs LuaLaTeX until the references are settled; returns what is wrong with the result."""
    command = ["latexmk", "-lualatex", "-interaction=nonstopmode", "-file-line-error", "-e", INDEX]
    environment = {**os.environ, "max_print_line": "10000"}  # whole messages
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    run = subprocess.run([*command, "book.tex"], cwd=folder, env=environment, **quiet)
    log = (folder / "book.log").read_text(encoding="utf-8", errors="replace")
    return problems(log) or ["latexmk"] * bool(run.returncode)


def build_pdf(root: Path = ROOT) -> int:
    """0 if html/book.pdf was made, from the same state as the pages beside it."""
    if not build.is_fresh(root) and build.build(root):
        return 1
    folder, html = root / "_build" / "latex", root / "_build" / "html"
    with build.alone(root / "_build"):
        if build.run_sphinx(root, "latex"):
            return 1
        print("LuaLaTeX で組んでいます（数分かかります）。", flush=True)
        found = typeset(folder)
        if found:
            print(f"PDF に足りないものがあります。記録：{folder / 'book.log'}")
            print(*found[:20], sep="\n")
            return 1
        shutil.copyfile(folder / "book.pdf", html / "book.pdf")
        package.link(html)
    return 0


def main() -> int:
    if not is_ready():
        print("PDF を作るには LuaLaTeX が要ります。Debian と Ubuntu では次で入ります：")
        print(f"  sudo apt-get install {PACKAGES}")
        return 1
    start = time.monotonic()
    code = build_pdf()
    seconds = f"{time.monotonic() - start:.0f} 秒"
    if code:
        print(f"\nPDF を作れませんでした（{seconds}）。")
    else:
        print(f"\nPDF ができました（{seconds}）：\n  {ROOT / '_build' / 'html' / 'book.pdf'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
