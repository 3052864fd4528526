"""What a reader can keep: the zips, the PDF, and the links to them on the landing page."""

import os
import re
import zipfile
from pathlib import Path
from urllib.parse import unquote

import book_repository
import nbformat
import pytest
from book_support import ROOT, Visitor, page_names
from bs4 import BeautifulSoup

from tools import build, figure_png, package, pdf


@pytest.fixture(scope="session")
def kept(book, tmp_path_factory) -> Path:
    """The site as a reader who unpacked the zip has it."""
    folder = tmp_path_factory.mktemp("kept")
    with zipfile.ZipFile(book / "book.zip") as z:
        assert z.testzip() is None
        z.extractall(folder)
    return folder / "book"


def test_every_notebook_is_in_the_zip_and_valid(book):
    wanted = [path for name in page_names() if (path := book_repository.notebook_of(ROOT, name))]
    with zipfile.ZipFile(book / "notebooks.zip") as z:
        assert z.testzip() is None
        notebooks = [name for name in z.namelist() if name.endswith(".ipynb")]
        assert sorted(map(os.path.basename, notebooks)) == sorted(map(os.path.basename, wanted))
        for name in notebooks:
            nbformat.validate(nbformat.reads(z.read(name).decode("utf-8"), as_version=4))
        assert "上から順に実行" in z.read("README.txt").decode("utf-8")
        assert {"week11/01_ngram.ipynb", "exercises/week11.ipynb"} <= set(notebooks)


def test_unpacked_site_opens_from_disk(browser, site, kept):
    visitor = Visitor(browser, site, kept)
    page = visitor.open("index.html", disk=True)
    page.wait_for_url("**/intro.html")
    assert page.locator("article h1").inner_text().startswith("問いから積み上げる Transformer")
    visitor.open(f"{page_names()[1]}.html", disk=True)
    visitor.close()


def test_links_of_the_unpacked_site_lead_somewhere(kept):
    for path in [*kept.glob("*.html"), *(kept / "chapters").rglob("*.html")]:
        text = path.read_text("utf-8")
        found = re.findall(r'<(?:a|img|link|script)\b[^>]*?\s(?:href|src)="([^"#?]+)', text)
        targets = {unquote(a) for a in found if not re.match("[a-z]+:", a)}
        assert {t for t in targets if not (path.parent / t).exists()} == set(), path.name


def test_the_zip_of_the_site_holds_no_downloads(kept):
    names = {p.name for p in kept.rglob("*")}
    assert not names & {*book_repository.DOWNLOADS, "objects.inv", ".buildinfo"}


def test_same_pages_give_the_same_bytes(built_book):
    html = built_book.root / "_build" / "html"
    zips = [html / "notebooks.zip", html / "book.zip"]
    before = [path.read_bytes() for path in zips]
    for path in html.rglob("*"):
        os.utime(path, (1, 1))
    package.package(built_book.root, built_book.root / "_toc.yml")
    assert [path.read_bytes() for path in zips] == before


def test_landing_page_links_to_what_is_there():
    page = '<a class="x" href="book.zip">本</a><a href="book.pdf">紙</a>'
    without = package.offer(page, {"book.zip"})
    assert without == '<a class="x" href="book.zip">本</a><a data-href="book.pdf">紙</a>'
    assert package.offer(without, {"book.zip", "book.pdf"}) == page


def test_pdf_of_other_pages_is_removed(tmp_path):
    old = tmp_path / "html" / "book.pdf"
    old.parent.mkdir()
    now = {"sources": "b", "contents": "c", "answers": True}
    for last, stays in ((now, True), (now | {"sources": "a"}, False)):
        old.write_bytes(b"%PDF")
        build.forget_stale(tmp_path, last, now)
        assert old.exists() == stays


@pytest.mark.parametrize(
    "line",
    [
        "Missing character: There is no ⊙ (U+2299) in font [HaranoAjiGothic-Medium.otf]",
        "LaTeX Warning: Reference `a:b' on page 3 undefined on input line 7.",
        "LaTeX Warning: Hyper reference `a:b' on page 3 undefined on input line 7.",
        "./book.tex:12: LaTeX Error: File `figure.png' not found.",
    ],
)
def test_what_is_missing_in_the_pdf_is_found(line):
    assert pdf.problems(f"This is LuaHBTeX\n{line}\nOverfull \\hbox\n{line}\n") == [line]


def test_without_tex_the_message_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    assert pdf.main() == 1
    assert f"apt-get install {pdf.PACKAGES}" in capsys.readouterr().out


def test_every_drawing_has_a_current_picture_for_the_pdf(name):
    text = (ROOT / f"{name}.md").read_text("utf-8")
    for path in re.findall(r"^:::\{figure\} .*?(figs/\w+\.svg)$", text, re.M):
        assert figure_png.is_current(ROOT / path), f"{path}: make notebooks"


@pytest.mark.pdf
def test_pdf_has_every_picture_of_the_pages(book):
    if not pdf.is_ready():
        pytest.skip("LuaLaTeX is not installed")
    assert pdf.build_pdf() == 0
    assert (book / "book.pdf").read_bytes().startswith(b"%PDF")
    assert ' href="book.pdf"' in (book / "intro.html").read_text("utf-8")
    pages = [BeautifulSoup((book / f"{n}.html").read_text("utf-8"), "lxml") for n in page_names()]
    pictures = sum(len(p.article.select("img, svg.drawing")) for p in pages)
    source = (ROOT / "_build" / "latex" / "book.tex").read_text("utf-8")
    assert source.count(r"\sphinxincludegraphics") == pictures > 50
