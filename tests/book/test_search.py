"""Search in the browser finds Japanese compounds, and only what is there."""

import re
from urllib.parse import quote

import book_search
import pytest
from book_support import page_names
from bs4 import BeautifulSoup

QUERIES = [
    "系列変換",
    "注意機構",
    "注意の重み",
    "文脈ベクトル",
    "交差エントロピー",
    "パープレキシティ",
]
QUERIES += [
    "隠れ状態",
    "位置エンコーディング",
    "箱庭コーパス",
    "正解アラインメント",
    "語順",
    "Transformer",
]


def text_of(book, name: str) -> str:
    page = BeautifulSoup((book / f"{name}.html").read_text("utf-8"), "lxml")
    return re.sub(r"\s", "", page.article.get_text())


def found(page) -> list[str]:
    """Names of the pages that the search lists, best first."""
    page.wait_for_function("Search.status?.textContent")
    links = page.locator("#search-results li a").all()
    return [re.sub(r"\.html.*", "", link.get_attribute("href")) for link in links]


@pytest.mark.parametrize("query", QUERIES)
def test_search_lists_every_page_that_has_the_words(visit, book, query):
    having = {name for name in page_names() if query in text_of(book, name)}
    listed = found(visit(f"search.html?q={quote(query)}"))
    assert having and having <= set(listed)
    assert query in text_of(book, listed[0]), "the first one has the very words"


def test_words_that_are_nowhere_find_nothing(visit):
    assert found(visit(f"search.html?q={quote('電気冷蔵庫の修理')}")) == []


def test_spellings_with_and_without_the_long_vowel_find_the_same(visit):
    with_mark, without = (
        found(visit(f"search.html?q={quote(q)}")) for q in ("エンコーダー", "エンコーダ")
    )
    assert with_mark and set(with_mark) == set(without)


def test_every_word_of_a_query_must_be_on_the_page(visit, book):
    listed = found(visit(f"search.html?q={quote('Attention 箱庭コーパス')}"))
    assert listed
    assert all("箱庭コーパス" in text_of(book, name) for name in listed)


def test_search_works_from_disk(visit):
    assert found(visit(f"search.html?q={quote('注意の重み')}", disk=True))


def test_preview_and_page_highlight_the_words_as_typed(visit):
    page = visit(f"search.html?q={quote('注意の重み')}")
    page.wait_for_selector("#search-results .highlighted")
    page.locator("#search-results li a").first.click()
    page.wait_for_selector("article .highlighted")
    assert set(page.locator("article .highlighted").all_inner_texts()) == {"注意の重み"}


def test_query_from_the_sidebar_of_a_chapter(visit):
    page = visit(f"{page_names()[1]}.html")
    page.keyboard.press("Control+k")
    field = page.locator("#pst-search-dialog input[name=q]")
    assert field.get_attribute("placeholder") == "この本を検索"
    field.fill("パープレキシティ")
    field.press("Enter")
    page.wait_for_url("**/search.html?q=*")
    assert found(page)


@pytest.mark.parametrize(
    "text",
    ["系列変換とAttention", "ｴﾝｺｰﾀﾞーの隠れ状態", "n-gram、k=3", "猫", "エンコーダー", "α_{t,s}"],
)
def test_browser_splits_a_query_as_python_splits_the_index(visit, text):
    page = visit("search.html")
    split = page.evaluate("text => splitQuery(text)", text)
    index = set(book_search.split(text))
    assert set(split) <= index, "a term of the query could never be in the index"
    longer = [run for run, _ in book_search.TOKEN.findall(book_search.fold(text)) if len(run) > 1]
    assert all(term in split for run in longer for term in (run[:2], run[-2:]))
