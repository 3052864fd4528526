"""Search in the browser finds Japanese compounds, and only what is there."""

import re
from functools import cache
from pathlib import Path
from urllib.parse import quote

import book_search
import pytest
from book_support import page_names, parse

TERMS = {  # what a reader types: the page that must come first or second
    "n-gram": "week11/01_ngram",
    "最尤推定": "week11/01_ngram",
    "箱庭コーパス": "week11/01_ngram",
    "パープレキシティ": "week11/02_perplexity",
    "Perplexity": "week11/02_perplexity",
    "交差エントロピー": "week11/02_perplexity",
    "softmax": "week11/02_perplexity",
    "平滑化": "week11/03_smoothing",
    "Kneser-Ney": "week11/03_smoothing",
    "未知語": "week11/03_smoothing",
    "埋め込み": "week11/04_neural_lm",
    "隠れ状態": "week12/01_rnn",
    "RNN": "week12/01_rnn",
    "勾配消失": "week12/02_gradients",
    "BPTT": "week12/02_gradients",
    "LSTM": "week12/02_gradients",
    "系列変換": "week12/03_seq2seq",
    "seq2seq": "week12/03_seq2seq",
    "エンコーダ": "week12/03_seq2seq",
    "エンコーダー": "week12/03_seq2seq",
    "教師強制": "week12/03_seq2seq",
    "beam": "week12/04_decoding",
    "ビームサーチ": "week12/04_decoding",
    "BLEU": "week12/04_decoding",
    "注意機構": "week12/05_attention",
    "注意の重み": "week12/05_attention",
    "文脈ベクトル": "week12/05_attention",
    "正解アラインメント": "week12/05_attention",
    "置換同変性": "week13/01_without_rnn",
    "位置エンコーディング": "week13/02_positional_encoding",
    "RoPE": "week13/02_positional_encoding",
    "因果マスク": "week13/03_self_attention",
    "Self-Attention": "week13/03_self_attention",
    "Multi-Head Attention": "week13/04_multi_head",
    "残差接続": "week13/05_deep",
    "層正規化": "week13/05_deep",
    "LayerNorm": "week13/05_deep",
    "Transformer": "week13/06_transformer",
    "KV キャッシュ": "week13/07_translation",
    "GPT": "week13/08_variants",
}
RANK = """queries => queries.map(query =>
    Search._performSearch(...Search._parseQuery(query)).map(result => result[0]).reverse())"""


@cache
def text_of(path: Path) -> str:
    return re.sub(r"\s", "", parse(path).article.get_text())


def ranked(page, queries) -> dict[str, list[str]]:
    """The pages that the search finds for each query, best first, each once."""
    page.wait_for_function("Search._index")
    found = page.evaluate(RANK, list(queries))
    return {q: list(dict.fromkeys(names)) for q, names in zip(queries, found, strict=True)}


def found(page) -> list[str]:
    """Names of the pages that the search shows, best first."""
    page.wait_for_function("Search.status?.textContent")
    links = page.locator("#search-results li a").all()
    return [re.sub(r"\.html.*", "", link.get_attribute("href")) for link in links]


@pytest.mark.parametrize("disk", [False, True], ids=["http", "disk"])
def test_the_page_of_a_term_comes_first_or_second(visit, disk):
    listed = ranked(visit("search.html", disk=disk), TERMS)
    lost = {q: listed[q][:3] for q in TERMS if f"chapters/{TERMS[q]}" not in listed[q][:2]}
    assert not lost


def test_search_lists_every_page_that_has_the_words(visit, book):
    queries = [query for query in TERMS if not query.isascii() and " " not in query]
    listed = ranked(visit("search.html"), queries)
    for query in queries:
        word = book_search.fold(query)
        having = {n for n in page_names() if word in book_search.fold(text_of(book / f"{n}.html"))}
        assert having and having <= set(listed[query]), query


@pytest.mark.parametrize("disk", [False, True], ids=["http", "disk"])
def test_results_are_shown_in_that_order(visit, disk):
    shown = found(visit(f"search.html?q={quote('位置エンコーディング')}", disk=disk))
    assert shown[0] == "chapters/week13/02_positional_encoding"


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
    assert all("箱庭コーパス" in text_of(book / f"{name}.html") for name in listed)


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
