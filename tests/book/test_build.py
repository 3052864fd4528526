"""What the build promises, shown on a small book with this book's own configuration."""

import json
import re
from urllib.parse import parse_qs

import pytest

from tools import build

pytestmark = pytest.mark.slow
TOKEN = "ghp_notARealToken0123456789"


def test_a_cell_that_raises_fails_the_build_and_goes_on_failing(small_book):
    small_book.cell("1 / 0")
    assert small_book.build() != 0
    assert not build.is_fresh(small_book.root)
    assert small_book.build() != 0, "the second run must not forget the error"


def test_a_reference_to_nowhere_fails_the_build(small_book):
    small_book.write("intro.md", "(ch-intro)=\n# はじめに\n\n{ref}`行き先なし <sec-nowhere>`\n")
    assert small_book.build() != 0


def test_changed_lib_is_executed_again_and_unchanged_cells_are_not(small_book):
    assert small_book.build() == 0 and build.is_fresh(small_book.root)
    assert "first value" in small_book.html()
    small_book.write("lib/value.py", "VALUE = 'second value'\n")
    assert not build.is_fresh(small_book.root)
    assert small_book.build() == 0
    assert "second value" in small_book.html() and "first value" not in small_book.html()
    caches = list((small_book.root / "_build" / "cache").iterdir())
    assert len(caches) == 2, "one cache for each state of lib"


def test_answers_are_left_out_on_request_even_after_a_full_build(small_book, monkeypatch):
    assert small_book.build() == 0
    assert "四十二" in small_book.html("chapters/week13/answers")
    monkeypatch.setenv("ANSWERS", "0")
    assert not build.is_fresh(small_book.root)
    assert small_book.build() == 0
    site = small_book.root / "_build" / "html"
    assert not (site / "chapters/week13/answers.html").exists()
    texts = [p.read_text("utf-8") for s in (".html", ".md", ".js") for p in site.rglob(f"*{s}")]
    assert not any("四十二" in text for text in texts)
    assert "<p>答え と answers を見ます。</p>" in small_book.html("chapters/week13/exercises")


def test_links_come_from_the_remote_and_the_release(small_book):
    small_book.git("init", "-b", "main")
    remote = f"https://user:{TOKEN}@github.com/Some-School/toi.git"
    small_book.git("remote", "add", "origin", remote)
    small_book.git("add", "--force", "chapters/week13/page.ipynb")
    small_book.git("commit", "-m", "x")
    small_book.git("tag", "v1.2.0")
    assert small_book.build() == 0
    page, exercises = small_book.html(), small_book.html("chapters/week13/exercises")
    colab = "https://colab.research.google.com/github/Some-School/toi/blob"
    assert f'href="{colab}/v1.2.0/chapters/week13/page.ipynb"' in page
    assert f'href="{colab}/main/exercises/release/week13/week13.ipynb"' in exercises, (
        "what the release lacks is taken from main"
    )
    edit = "https://github.com/Some-School/toi/edit/main"
    assert f'href="{edit}/chapters/week13/page.md"' in page
    assert f'href="{edit}/exercises/week13.md"' in exercises, "the page itself is generated"
    site = "https://some-school.github.io/toi/"
    report = parse_qs(re.search(r'href="[^"]*/issues/new\?([^"]+)"', page)[1].replace("&amp;", "&"))
    assert report["title"] == ["誤りの報告：小さなページ"]
    assert f"{site}chapters/week13/page.html\n版：v1.2.0\n" in report["body"][0]
    assert f'rel="canonical" href="{site}chapters/week13/page.html"' in page
    assert f'property="og:url" content="{site}chapters/week13/page.html"' in page
    build_files = [p for p in (small_book.root / "_build").rglob("*") if p.is_file()]
    assert not [p for p in build_files if TOKEN.encode() in p.read_bytes()]


def test_without_a_remote_nothing_points_to_github(built_book):
    page = built_book.html()
    assert "github.com" not in page and "colab" not in page and "canonical" not in page
    assert 'href="../../_sources/chapters/week13/page.ipynb" download' in page


def test_japanese_text_is_joined_and_emphasised_and_anchors_are_labels(built_book):
    page = built_book.html()
    assert "一行目の続きと、<strong>「語順」</strong>が太字です。" in page
    assert 'id="ch-page"' in page and '<section id="sec-page-part">' in page


def test_another_clean_build_gives_the_same_pages(built_book, small_book):
    assert small_book.build() == 0
    pages = [
        {path.name: path.read_bytes() for path in (book.root / "_build/html").rglob("*.html")}
        for book in (built_book, small_book)
    ]
    assert len(pages[0]) >= 6 and pages[0] == pages[1]
    small_book.write("intro.md", "(ch-intro)=\n# はじめに\n\n直した表紙です。\n")
    assert small_book.build() == 0
    index = (small_book.root / "_build/html/searchindex.js").read_text("utf-8")
    found = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))
    assert list(found["indexentries"]) == ["注意機構"], "a page not written again is forgotten"
