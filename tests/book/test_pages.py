"""Every page of the real book, over HTTP and from disk, in both themes, wide and narrow."""

import json
import os
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from axe_playwright_python.sync_playwright import Axe
from book_support import HTML, ROOT, parse

SHOTS = ROOT / "_build" / "screenshots"
ENGLISH = "launch suggest toggle copy click copyright contents previous next search show hide link"
PAGE_BYTES, EXPLORE_BYTES = 1_000_000, 300_000
WIDE = "\u3041-\u30ff\u4e00-\u9fff"
CONTRAST = (Path(__file__).parent / "contrast.js").read_text("utf-8")
OUTPUT_LINES = 40


def soup(book, name: str):
    return parse(book / f"{name}.html")


@cache
def anchors(path: Path) -> set[str]:
    return set(re.findall(r'\sid="([^"]+)"', path.read_text("utf-8")))


def check_whole(page) -> None:
    assert page.locator("article h1").count() == 1
    assert page.locator("html").get_attribute("lang") == "ja"
    assert page.locator("mjx-merror, .MathJax_Error").count() == 0
    assert page.locator("article .math").count() == page.locator("article mjx-container").count()


@pytest.mark.parametrize("width", [390, 1280])
def test_page_fits_and_is_readable_in_both_themes(visit, name, width):
    page = visit(f"{name}.html", width=width, disk=width == 390)  # Visitor: no other host
    check_whole(page)
    if width == 1280:
        check_measures(page)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.wait_for_function(f"document.documentElement.dataset.theme === '{theme}'")
        room = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(room) <= 0, "the page is wider than the screen"
        if os.environ.get("SCREENSHOTS"):  # to be looked at; they take longer than all the rest
            SHOTS.mkdir(parents=True, exist_ok=True)
            shot = f"{name.replace('/', '_')}-{width}-{theme}.png"
            page.screenshot(path=SHOTS / shot, full_page=True)
        assert page.evaluate(CONTRAST) == []
        if (width == 390) == (theme == "dark"):  # each theme and each width once: axe is slow
            check_axe(page)


def check_axe(page) -> None:
    options = {"resultTypes": ["violations"], "preload": False}  # from disk nothing can be fetched
    found = Axe().run(page, options=options).response["violations"]
    grave = [v for v in found if v["impact"] in ("serious", "critical")]
    assert [(v["id"], n["html"][:200]) for v in grave for n in v["nodes"]] == []


def check_measures(page) -> None:
    """The measures of a book: size, line height, characters a line."""
    style = page.evaluate(
        """() => { const p = document.querySelector("article p"), s = getComputedStyle(p);
        return { size: parseFloat(s.fontSize), line: parseFloat(s.lineHeight),
                 measure: Math.max(...[...document.querySelectorAll("article p")]
                     .map(p => p.clientWidth)), strict: s.lineBreak } }"""
    )
    assert 16 <= style["size"] <= 17 and style["strict"] == "strict"
    assert style["line"] / style["size"] == pytest.approx(1.9, abs=0.05)
    assert style["measure"] / style["size"] <= 42.5, "more than 42 characters a line"


def test_page_is_japanese_outside_and_inside(book, name):
    page = soup(book, name)
    for element in page.select("[title], [aria-label], [data-bs-title], [placeholder]"):
        if "reference" in element.get("class", []):  # a cited work keeps its own language
            continue
        keys = ("title", "aria-label", "data-bs-title", "placeholder")
        words = " ".join(element.get(key, "") for key in keys).lower().split()
        assert not set(words) & set(ENGLISH.split()), element
    for code in page.select("pre, code, script, style, .math, .cell"):
        code.decompose()
    text = page.article.get_text()
    assert not re.search(r"\*\*\S|\{(glue|ref|eq|numref|cite|doc)", text), "markup shows"
    assert not re.search(rf"[{WIDE}]\n[{WIDE}]", "".join(p.get_text() for p in page.select("p")))


def test_pictures_say_what_they_show(book, name):
    page = soup(book, name)
    for picture in page.article.select("img, svg.drawing"):
        words = picture.get("alt") or picture.get("aria-label") or ""
        assert len(words) >= 4 and re.search(rf"[{WIDE}]", words), str(picture)[:200]


def test_outputs_are_short_enough_to_read(book, name):
    for output in soup(book, name).select(".cell_output pre"):
        assert output.get_text().count("\n") <= OUTPUT_LINES, output.get_text()[:200]


def test_page_is_light(book, name):
    text = (book / f"{name}.html").read_text("utf-8")
    frames = re.findall(r'<div class="explore">.*?</script></div>', text, re.S)
    assert len(text.encode()) <= PAGE_BYTES
    assert sum(map(len, frames)) <= EXPLORE_BYTES


def test_anchors_are_labels(book, name):
    page = soup(book, name)
    numbered = [s["id"] for s in page.article.select("section[id]") if s["id"].startswith("id")]
    assert not [i for i in numbered if re.fullmatch(r"id\d+", i)], "a heading has no label"
    ids = [element["id"] for element in page.select("[id]")]
    assert len(ids) == len(set(ids))


def test_links_and_files_of_the_page_exist(book, name):
    folder = (book / name).parent
    page = soup(book, name)
    addresses = [a["href"] for a in page.select("a[href], link[href]")]
    addresses += [s["src"] for s in page.select("script[src], img[src]")]
    for address in addresses:
        if re.match(r"[a-z]+:", address):
            continue
        path, anchor = urldefrag(unquote(address))
        target = (folder / path.split("?")[0]).resolve() if path else book / f"{name}.html"
        assert target.is_file(), address
        if anchor and target.suffix == ".html":
            assert anchor in anchors(target), address


def test_every_executed_chapter_shows_output_and_a_notebook(book, name):
    source = ROOT / f"{name}.md"
    if not re.search(r"^kernelspec:", source.read_text("utf-8"), re.M):
        pytest.skip("no cells on this page")
    page = soup(book, name)
    assert page.select(".cell_output") and "Traceback" not in page.get_text()
    notebook = book / "_sources" / f"{name}.ipynb"
    assert json.loads(notebook.read_text("utf-8")) == json.loads(
        source.with_suffix(".ipynb").read_text("utf-8")
    ), "the download must be the committed notebook"


def test_mathjax_is_the_part_that_is_needed(book):
    files = [p for p in (HTML / "_static" / "mathjax").rglob("*") if p.is_file()]
    assert 1e6 < sum(p.stat().st_size for p in files) < 3e6
    assert not (book / "_static" / "mathjax" / "sre").exists()
