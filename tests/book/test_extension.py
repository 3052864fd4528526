"""The parts of _ext that can be tried without a build."""

from pathlib import Path

import book_japanese
import book_repository
import book_search
import bookext
import pytest
from docutils import nodes
from markdown_it import MarkdownIt


@pytest.fixture
def markdown(monkeypatch):
    state = book_japanese.StateInline
    monkeypatch.setattr(state, "scanDelims", book_japanese.scan_delimiters)
    return lambda text: MarkdownIt("commonmark").render(text).strip()


@pytest.mark.parametrize(
    ("source", "html"),
    [
        ("**「語順」**が", "<strong>「語順」</strong>が"),
        ("**注意機構（attention）**は", "<strong>注意機構（attention）</strong>は"),
        ("**重要。**次", "<strong>重要。</strong>次"),
        ("**`code`**です", "<strong><code>code</code></strong>です"),
        ("系列変換**（seq2seq）**は", "系列変換<strong>（seq2seq）</strong>は"),
        ("**「A」**と**「B」**", "<strong>「A」</strong>と<strong>「B」</strong>"),
        ("これは**語順**です", "これは<strong>語順</strong>です"),
        ("a **b** c", "a <strong>b</strong> c"),
        ("2 ** 3 ** 4", "2 ** 3 ** 4"),
        ("snake_case_name", "snake_case_name"),
    ],
)
def test_bold_beside_japanese(markdown, source, html):
    assert markdown(source) == f"<p>{html}</p>"


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("語順が\n大事", "語順が大事"),
        ("終わり。\n「次」", "終わり。「次」"),
        ("word\nword", "word\nword"),
        ("語\nword", "語\nword"),
        ("語\n", "語\n"),
    ],
)
def test_only_a_break_between_full_width_characters_is_joined(text, joined):
    paragraph = nodes.paragraph("", "", nodes.Text(text))
    document = nodes.Element("", paragraph)
    book_japanese.join_lines(None, document)
    assert paragraph.astext() == joined


def test_lines_are_joined_across_markup_and_code_is_left_alone():
    strong = nodes.strong("", "", nodes.Text("太字"))
    code = nodes.literal("", "", nodes.Text("コ\nード"))
    paragraph = nodes.paragraph("", "", nodes.Text("前の\n"), strong, nodes.Text("\n後"), code)
    book_japanese.join_lines(None, nodes.Element("", paragraph))
    assert paragraph.astext() == "前の太字後コ\nード"


def test_own_strings_come_before_the_installed_ones():
    rest = book_japanese.Catalogue(
        {"Light": "ライト", "Error": "エラー"}, book_japanese.NullTranslations()
    )
    catalogue = book_japanese.Catalogue({"Light": "明るい"}, rest)
    texts = [catalogue.gettext(text) for text in ("Light", "Error", "Other")]
    assert texts == ["明るい", "エラー", "Other"]


def test_search_terms_are_pairs_and_single_characters_of_japanese():
    assert book_search.split("系列変換") == ["系", "列", "変", "換", "系列", "列変", "変換"]
    assert book_search.split("n-gram と PPL") == ["n", "gram", "と", "PPL"]
    assert book_search.split("Self-Attentionで") == ["Self", "Attention", "で"]
    assert book_search.split("、。") == []


def test_spellings_fold_to_one():
    assert book_search.fold("エンコーダー") == book_search.fold("ｴﾝｺｰﾀﾞ") == "エンコーダ"
    assert book_search.fold("データ") == "データ" and book_search.fold("キー") == "キー"
    assert book_search.fold("レイヤーを") == "レイヤを"


@pytest.mark.parametrize(
    "address",
    [
        "https://github.com/Owner/re.po-1.git",
        "https://user:ghp_secret@github.com/Owner/re.po-1",
        "git@github.com:Owner/re.po-1.git",
        "ssh://git@github.com/Owner/re.po-1.git",
    ],
)
def test_remote_gives_owner_and_name_and_nothing_else(address):
    assert book_repository.parse_remote(address) == ("Owner", "re.po-1")


@pytest.mark.parametrize(
    "address", ["", "/srv/book", "https://gitlab.com/a/b", "https://notgithub.com/a/b"]
)
def test_other_remotes_give_nothing(address):
    assert book_repository.parse_remote(address) is None


def test_pages_address_of_a_user_site_has_no_folder():
    assert book_repository.Repository("Abc", "abc.github.io").site == "https://abc.github.io/"
    assert book_repository.Repository("Abc", "book").site == "https://abc.github.io/book/"


def test_cache_key_follows_lib_the_lock_and_recorded_results_only(tmp_path):
    def change(path: str, text: str) -> str:
        target = Path(tmp_path, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return bookext.cache_key(tmp_path)

    keys = [
        change("lib/a.py", "1"),
        change("lib/a.py", "2"),
        change("lib/data.toml", "1"),
        change("requirements.lock", "torch"),
        change("experiments/run.json", "{}"),
    ]
    assert len(set(keys)) == len(keys)
    assert change("chapters/a.md", "x") == change("lib/__pycache__/a.pyc", "x") == keys[-1]
