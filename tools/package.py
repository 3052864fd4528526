"""What a reader can keep, beside the pages: notebooks.zip, book.zip (the site), links to them.

The same pages give the same bytes.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "_ext")]

import book_repository  # noqa: E402

from tools.make_notebooks import zipped  # noqa: E402

LANDING = "intro.html"
README = """\
問いから積み上げる Transformer：ノートブック

week11、week12、week13 に章、exercises に練習、appendix に付録のノートブックがあります。
Jupyter か VS Code で開くか、Colab にアップロードして、上から順に実行してください。
一つ一つのファイルだけで動きます。必要な部品は、最初のセルが用意します。
Python 3.11 以降と torch、numpy、matplotlib、ipywidgets、tqdm を使います。
はじめの一度は、日本語の文字を描く部品などを取りに行くので、通信が必要です。
"""


def notebooks(root: Path, toc: Path) -> dict[str, bytes]:
    """Name in the zip -> content, for every page that has a notebook."""
    parts = yaml.safe_load(toc.read_text(encoding="utf-8"))["parts"]
    pages = [page["file"] for part in parts for page in part["chapters"]]
    files = {"README.txt": README.encode()}
    for path in filter(None, (book_repository.notebook_of(root, page) for page in pages)):
        name = re.sub(r"^(chapters|exercises/release/week\d+)/", "", path)
        name = name if "/" in name else f"exercises/{name}"
        files[name] = (root / path).read_bytes()
    return files


def offer(page: str, there: set[str]) -> str:
    """Links to the downloads that are there; to the others only the words remain."""
    names = "|".join(map(re.escape, book_repository.DOWNLOADS))

    def mark(found: re.Match) -> str:
        return f'{"href" if found[1] in there else "data-href"}="{found[1]}"'

    return re.sub(rf'\b(?:data-)?href="({names})"', mark, page)


def site(html: Path) -> dict[str, bytes]:
    """The pages and what they need and link to, not the downloads."""
    unused = {".buildinfo", "objects.inv", *book_repository.DOWNLOADS}
    files = {}
    for path in sorted(html.rglob("*")):
        name = path.relative_to(html).as_posix()
        if path.is_file() and name not in unused:
            files[f"book/{name}"] = path.read_bytes()
    landing = files[f"book/{LANDING}"].decode()
    return files | {f"book/{LANDING}": offer(landing, set()).encode()}


def link(html: Path) -> None:
    page = html / LANDING
    there = {name for name in book_repository.DOWNLOADS if (html / name).exists()}
    page.write_text(offer(page.read_text(encoding="utf-8"), there), encoding="utf-8")


def package(root: Path, toc: Path) -> None:
    html = root / "_build" / "html"
    (html / "notebooks.zip").write_bytes(zipped(notebooks(root, toc)))
    (html / "book.zip").write_bytes(zipped(site(html)))
    link(html)
