"""What the tests of the book share: page names, a visitor in a browser, a small book to build."""

import re
import shutil
import subprocess
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import yaml
from bs4 import BeautifulSoup

from tools import build

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"


def page_names() -> list[str]:
    """Every page of the table of contents, in its order."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    names = [toc["root"], *(c["file"] for part in toc["parts"] for c in part["chapters"])]
    return [n for n in names if build.with_answers() or not n.endswith("/answers")]


def pages_with_sliders() -> list[str]:
    sources = {name: (ROOT / f"{name}.md").read_text(encoding="utf-8") for name in page_names()}
    return [name for name, text in sources.items() if re.search(r"^explore\(", text, re.M)]


def parse(path: Path) -> BeautifulSoup:
    """The page without the pictures' data, which is most of it and slow to parse."""
    return BeautifulSoup(re.sub(r"[A-Za-z0-9+/=]{400,}", "", path.read_text("utf-8")), "lxml")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


class Visitor:
    """Opens pages and remembers what they complained of and asked other hosts for."""

    def __init__(self, browser, site: str, book: Path) -> None:
        self.browser, self.site, self.book = browser, site, book
        self.complaints: list[str] = []
        self.contexts = []

    def open(self, address: str, *, theme="light", width=1280, disk=False, **options):
        height = 844 if width < 600 else 900
        context = self.browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=theme,
            locale="ja-JP",
            reduced_motion="reduce",
            **options,
        )
        self.contexts.append(context)
        page = context.new_page()
        base = f"{self.book.as_uri()}/" if disk else self.site
        page.on("console", lambda m: m.type == "error" and self.complaints.append(m.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        if options.get("java_script_enabled", True):  # otherwise the preloaded scripts "fail"
            page.on("requestfailed", self.check_failure)
        page.on("request", lambda r: self.check_request(r.url, base))
        page.goto(base + address, wait_until="load")
        page.wait_for_function("!window.MathJax?.startup || MathJax.startup.promise")
        page.evaluate("window.MathJax?.startup?.promise")
        return page

    def check_request(self, url: str, base: str) -> None:
        if not url.startswith((base, "data:", "blob:")):
            self.complaints.append(f"external request: {url[:200]}")

    def check_failure(self, request) -> None:
        """Not of a request that the page itself gave up, as when a link is followed meanwhile."""
        if request.failure != "net::ERR_ABORTED":
            self.complaints.append(f"failed: {request.url[:200]}, {request.failure}")

    def close(self) -> None:
        for context in self.contexts:
            context.close()
        assert not self.complaints, self.complaints


SMALL_TOC = """format: jb-book
root: intro
parts:
  - caption: 第 13 週
    chapters:
      - file: chapters/week13/page
      - file: chapters/week13/exercises
      - file: chapters/week13/answers
"""
SMALL_PAGE = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

(ch-page)=
# 小さなページ

(sec-page-part)=
## 注意機構の節

一行目の
続きと、**「語順」**が太字です。{index}`注意機構`とも言います。

```{code-cell} ipython3
CELL
```
"""


class SmallBook:
    """A book of four pages with this book's configuration, extension and build tool."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("_ext", "_static", "figs"):
            shutil.copytree(ROOT / folder, root / folder)
        for file in ("_config.yml", "requirements.lock", "references.bib"):
            shutil.copy(ROOT / file, root)
        self.write("_toc.yml", SMALL_TOC)
        self.write("lib/__init__.py", "")
        self.write("lib/value.py", "VALUE = 'first value'\n")
        self.write("intro.md", "(ch-intro)=\n# はじめに\n\n表紙です。\n")
        answers = "(ch-answers)=\n# 練習の答え\n\n答えは四十二です。\n"
        self.write("chapters/week13/answers.md", answers)
        links = "{ref}`答え <ch-answers>` と {doc}`answers` を見ます。"
        self.write("chapters/week13/exercises.md", f"(ch-exercises)=\n# 練習\n\n{links}\n")
        self.write("chapters/week13/page.ipynb", "{}")
        self.write("exercises/release/week13/week13.ipynb", "{}")
        self.cell("from lib.value import VALUE\nprint(VALUE)")

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def cell(self, code: str) -> None:
        self.write("chapters/week13/page.md", SMALL_PAGE.replace("CELL", code))

    def git(self, *arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *who, *arguments], cwd=self.root, check=True, capture_output=True)

    def build(self) -> int:
        return build.build(self.root)

    def html(self, name: str = "chapters/week13/page") -> str:
        return (self.root / "_build" / "html" / f"{name}.html").read_text(encoding="utf-8")
