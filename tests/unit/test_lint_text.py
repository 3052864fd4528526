"""Each linter can fail on planted text, stays quiet on clean text, and has no false alarm."""

import re
from pathlib import Path

import pytest
import yaml

from tools import lint_text

ROOT = Path(__file__).resolve().parents[2]
FRONT = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

"""
HEAD = "(ch-one)=\n# 題\n\n"
CELL = "\n\n```{code-cell} ipython3\nprint(1)\n```\n"
TERMS = """
- {ja: エンコーダ, en: encoder, week: 12, forbid: [エンコーダー]}
- {ja: 学習, en: training, week: 11, forbid: [訓練]}
- {ja: Transformer, en: Transformer, week: 13, forbid: ["re:(?<![A-Za-z.])transformer(?![A-Za-z])"]}
- {ja: n-gram, en: n-gram, week: 11, forbid: [N-gram]}
"""
FIRST = 9  # line of the first line of a body


class Place:
    def __init__(self, root: Path):
        self.root = root
        self.write("chapters/terms.yml", TERMS)

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def findings(self, text: str, name: str = "chapters/week11/page.md") -> list:
        linter = lint_text.Linter(self.root)
        linter.page(self.write(name, text))
        return linter.findings

    def lint(self, body: str) -> list[str]:
        """What is said of a page with this body and one cell, as line: message."""
        found = self.findings(FRONT + HEAD + body + CELL)
        return [f"{f.line}: {f.message}" for f in sorted(found) if not f.warning]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def cell(code: str) -> str:
    return f"```{{code-cell}} ipython3\n{code}\n```"


BAD = {
    # terms
    "エンコーダーを使います。": "「エンコーダー」ではなく「エンコーダ」",
    "- 訓練の回数": "「訓練」ではなく「学習」",
    "この transformer を使います。": "「transformer」ではなく「Transformer」",
    "| 訓練 | a |\n|:--|:--|\n| b | c |": "「訓練」ではなく「学習」",
    ":::{note}\n訓練です。\n:::": "「訓練」ではなく「学習」",
    ":::{dropdown} 訓練の答え\n左です。\n:::": "「訓練」ではなく「学習」",
    cell("x = 1  # 訓練の回数"): "「訓練」ではなく「学習」",
    ":::{figure} a.svg\n:alt: 訓練の図\n:::": "「訓練」ではなく「学習」",
    # style
    "これは語である。": "です・ます",
    "速いのだ。つぎです。": "です・ます",
    "値が出た。": "です・ます",
    "差は大きい。": "です・ます",
    "これを**注意**と呼ぶ。": "です・ます",
    "先に {cite}`x` が示した。": "です・ます",
    ":::{note}\nこれは覚える。\n:::": "です・ます",
    # Markdown
    "これが **「語順」**が大事です。": "太字",
    "これが**重要。**次です。": "太字の ** が文字のまま",
    "**`code`**です。": "太字の ** が文字のまま",
    "これは**$x$**です。": "太字の ** が文字のまま",
    "**注意機構**（attention）": None,
    "系列変換**（seq2seq）**はよいです。": "太字",
    "- **「A」**と**「B」**がある": "太字",
    "| **「A」**が |\n|:--|": "太字",
    "図{numref}`fig-x` を見ます。": "「図」は {numref} が書く",
    "- 式 {eq}`eq-x`": "「式」は {eq} が書く",
    "練習{ref}`ex-1` です。": "「練習」は {ref} が書く",
    "一行目で\n改行します。": "段落の途中で改行",
    "- 項目が\n  続きます": "段落の途中で改行",
    ":::{note}\n一行目で\n改行します。\n:::": "段落の途中で改行",
    "https://example.org/ を見ます。": "URL は <…>",
    "<b>太字</b>です。": "生の HTML",
    "<div>\nx\n</div>": "生の HTML",
    "![図](a.png)": "画像は :::{figure}",
    "\\begin{align}\nx\n\\end{align}": "式は $$",
    # numbers
    "正解率は 98.7 です。": "98.7：測った数",
    "約 5 %です。": "5 %：測った数",
    "差は-0.25です。": "0.25：測った数",
    "80％が当たります。": "80%：測った数",
    "語彙は 565,000 です。": "565,000：測った数",
    "パラメータは６０４個です。": "604：測った数",
    "- 誤り率 0.5": "0.5：測った数",
    "| モデル | 値 |\n|:--|:--|\n| A | 0.93 |": "0.93：測った数",
    "引用は {cite}`x` です。値は 0.93 です。": "0.93：測った数",
    ":::{figure} a.svg\n:alt: 図の説明\n\n値は 0.5 です。\n:::": "0.5：測った数",
    "値は 0.5 です。<!-- given: -->": "理由が要ります",
    # structure
    "## 見出し": "見出しの前に (sec-…)=",
    "(節)=\n## 見出し": "ラベル 節 は英小文字",
    "(one)=\n## 見出し": "sec- で始めます",
    "(sec-a)=\n## 甲\n\n(sec-a)=\n## 乙": "ラベル sec-a は",
    "$$\nx\n$$ (式)": "ラベル 式 は英小文字",
    "$$\nx\n$$ (eq-a)\n\n:::{math}\n:label: eq-a\nx\n:::": "ラベル eq-a は",
    ":::{warning}\nx\n:::": "ディレクティブ {warning} は使えません",
    "```{note}\nx\n```": "コロン三つ",
    "::: 謎\nx\n:::": "ディレクティブ {} は使えません",
    "{abbr}`x` です。": "ロール {abbr} は使えません",
    # cells and figures
    cell("\n".join(f"x{i} = {i}" for i in range(26))): "セルが 26 行",
    cell("x = 1  # " + "あ" * 40): "89 桁あります",
    cell("x = " + "1" * 80): "84 桁あります",
    cell("x = ("): "Python として読めません",
    cell("explore(draw, n=[1, 2])"): "explore() に日本語の alt",
    cell('figure(fig, "plot")'): "figure() に日本語の alt",
    cell("figure(fig)"): "figure() に日本語の alt",
    cell("fig, ax = plt.subplots()\nax.plot([1])"): "figure(…) か explore(…) で終えます",
    cell("plots.heatmap(w, a, b)"): "figure(…) か explore(…) で終えます",
    cell("plt.show()"): "plt.show()",
    cell('sys.path.insert(0, "..")'): "sys.path は書きません",
    ":::{figure} a.svg\n\n説明です。\n:::": "日本語の :alt:",
    ":::{figure} a.svg\n:alt: box\n:::": "日本語の :alt:",
}
del BAD["**注意機構**（attention）"]


@pytest.mark.parametrize(("body", "message"), BAD.items())
def test_planted_fault_is_found(place: Place, body: str, message: str):
    found = place.lint(body)
    assert any(message in text for text in found), found


GOOD = [
    "エンコーダは `エンコーダー` という名前のファイルと $\\text{訓練}$ を学習します。",
    "`transformer.py` と {ref}`訓練 <sec-transformer>` と <https://example.org/transformer> です。",
    "ここだけ訓練と書きます。<!-- term: 別の名前を教えるため -->",
    cell("from lib import transformer\nfrom lib.transformer import Transformer"),
    "当たるでしょうか。当たりません。確かめてください。",
    "次の語を当てられるか。なぜ忘れるのか。答えは下のセル。",
    "「これは本である。」と「速い。」（詳しくは後で述べる。）を比べました。",
    "- 学習する\n- 「猫が走る。」を測る。",
    "| 列 |\n|:--|\n| 値が出た。 |",
    "> 引用は書き換えないで置いてあります。",
    "速いと言えますね。見ましょう。見ませんか。",
    "これが **語順** です。**重み** と **「重み」** は別です。",
    "**語順**が大事で、これは**重要**です。",
    "「**語順**」が大事です。",
    "コードは `**kw` と `a**b` です。",
    "$a**b$ です。",
    "{numref}`fig-x` と {eq}`eq-x` の図と式です。式の {eq}`eq-x` です。",
    "行の終わりに\\\n逆斜線があれば改行です。",
    "段落です。\n\n別の段落です。\n- 箇条書き\n- 二つ目",
    "リンクは <https://example.org/> と [手引き](https://example.org/a_1000) です。",
    "確率は $0.25$ で、2 層、64 次元、3 語、$d = 512$ です。",
    "値は {glue:text}`score:.2f` で、`0.93` と書きます。",
    "論文の値は 41.8 です {cite}`vaswani2017attention`。",
    "論文の値は 41.8 です。{cite}`vaswani2017attention`",
    "2017 年に出ました（Vaswani ら、2017）。1990年代です。",
    "時間は約 120 秒、または約 3 分です。読む時間の目安：約 150 分、実行：約 200 秒",
    "GPT-2 と UTF-8 と x86_64 と A100 と 1/1000 です。",
    "Python 3.11 と PyTorch 2.13.0 と CC BY 4.0 です。",
    "確率は 0.6 と 0.4 とします。<!-- given: 説明のために決めた値 -->",
    "<!-- given: 説明のために決めた値 -->\n\n| a |\n|:--|\n| 0.93 |",
    "| a |\n|:--|\n| 0.93 |\n\n<!-- given: 説明のために決めた値 -->",
    "| a |\n|:--|\n| 0.93 {cite}`x` |",
    "```text\n0.93 である。 ![x](y) **「a」**が 訓練\n```",
    "$$\n0.93 = 訓練である。\n$$",
    "<!-- 0.93 訓練である。\n98.7 % -->",
    "(sec-a)=\n## 節\n\n(sec-a-b.c)=\n### 項",
    "| 一行目<br>二行目 |\n|:--|",
    cell('figure(fig, "折れ線。左から右へ下がる。")'),
    cell('fig, ax = plt.subplots()\nfigure(fig, alt="折れ線。" + note)'),
    cell("figure(fig, alt)"),
    cell('explore(draw, alt=f"温度 {t} の分布", t=[1, 2])'),
    cell("def draw(t):\n    fig, ax = plt.subplots()\n    return fig"),
    cell("# 注\n" * 10 + "\n" + "\n".join(f"x{i} = {i}" for i in range(25))),
    cell("x = 1  # " + "あ" * 35),
    cell('"98.7 % である。訓"'),
    ":::{figure} a.svg\n:alt: 箱から箱へ矢印が伸びる図\n:name: fig-a\n\n説明です。\n:::",
    ":::{admonition} 予想\nどちらが速いか。\n:::\n\n:::{dropdown} 予想の答え\n左です。\n:::",
]


@pytest.mark.parametrize("body", GOOD)
def test_clean_text_passes(place: Place, body: str):
    assert place.lint(body) == []


def test_line_numbers(place: Place):
    body = "よい文です。\n\n:::{note}\n一つ目です。\n\n値は 0.5 です。\n:::\n\n訓練です。"
    assert [int(x.split(":")[0]) for x in place.lint(body)] == [FIRST + 5, FIRST + 8]
    code = place.lint(cell("x = 1\ny = 2  # 訓練"))
    assert [int(x.split(":")[0]) for x in code] == [FIRST + 2]
    tagged = place.lint("```{code-cell} ipython3\n:tags: [hide-input]\n\ny = 2  # 訓練\n```")
    assert [int(x.split(":")[0]) for x in tagged] == [FIRST + 3]


def test_given_marks_are_counted(place: Place):
    linter = lint_text.Linter(place.root)
    body = "値は 0.5 です。<!-- given: 例 -->\n\n値は 3 です。<!-- given: 要らない印 -->"
    linter.page(place.write("chapters/week11/page.md", FRONT + HEAD + body + CELL))
    assert (linter.given, linter.findings) == (1, [])


def test_front_matter(place: Place):
    assert [f.message for f in place.findings(HEAD + "文です。" + CELL)] != []
    kernel = "---\nkernelspec: {name: python3}\n---\n\n"
    found = [f.message for f in place.findings(kernel + HEAD + "文です。" + CELL)]
    assert found == ["セルがあるのに、先頭に jupytext と kernelspec がそろっていません"]
    found = [f.message for f in place.findings(FRONT + HEAD + "文です。")]
    assert found == ["kernelspec があるのに、セルがありません"]
    assert place.findings(HEAD + "文です。") == []


def test_bibliography_only_where_nothing_runs(place: Place):
    body = ":::{bibliography}\n:::"
    assert place.findings(HEAD + body) == []
    assert "ディレクティブ {bibliography} は使えません" in place.lint(body)[0]


def test_a_page_that_cannot_be_read_is_one_finding(place: Place):
    found = place.findings(FRONT + HEAD + ":::{note}\n閉じません。")
    assert len(found) == 1 and "閉じていない" in found[0].message


def test_frame_of_a_chapter(place: Place):
    text = FRONT + HEAD + "文です。" + CELL
    found = {f.message for f in place.findings(text, "chapters/week11/01_one.md")}
    assert any("この章でできるようになること" in x for x in found)
    assert any("読む時間の目安" in x for x in found)
    assert any("まだ解けていないこと" in x for x in found)
    top = ":::{admonition} この章でできるようになること\n- 測れる\n:::\n\n"
    top += "読む時間の目安：約 45 分、実行：約 20 秒\n"
    end = "\n(sec-one-next)=\n## まだ解けていないこと\n\n次です。\n"
    whole = FRONT + HEAD + top + CELL + end
    assert place.findings(whole, "chapters/week11/01_one.md") == []
    assert place.findings(text, "chapters/week11/exercises.md") == []


def test_english_at_first_use_is_a_warning_once_in_the_book(place: Place):
    linter = lint_text.Linter(place.root)
    pages = {
        "01_a.md": "学習します。\n\n学習します。",
        "02_b.md": "学習します。エンコーダ（encoder）です。",
    }
    for name, body in pages.items():
        head = f"(ch-{name[:2]})=\n# 題\n\n"
        linter.page(place.write(f"chapters/week11/{name}", FRONT + head + body + CELL))
    said = [f for f in linter.findings if f.warning]
    assert [(f.path, f.line) for f in said] == [("chapters/week11/01_a.md", FIRST)]
    assert "（training）" in said[0].message


def test_duplicate_label_of_two_pages(place: Place):
    linter = lint_text.Linter(place.root)
    for name in ("a.md", "b.md"):
        linter.page(place.write(f"chapters/{name}", "(ch-same)=\n# 題\n"))
    assert [f.message for f in linter.findings] == [
        "ラベル ch-same は chapters/a.md:1 にもあります"
    ]


def test_main_prints_places_and_exits_1(place: Place, capsys):
    place.write("chapters/week11/page.md", FRONT + HEAD + "訓練です。" + CELL)
    place.write("lib/text.py", '"""訓練する。"""\n')
    assert lint_text.main(["--root", str(place.root)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "chapters/week11/page.md:9: 「訓練」ではなく「学習」と書きます"
    assert lines[1] == "lib/text.py:1: 「訓練」ではなく「学習」と書きます"
    assert lines[2] == "誤り 2 件、注意 0 件、given の印 0 行"


def test_main_passes_on_a_clean_book(place: Place):
    place.write("chapters/week11/page.md", FRONT + HEAD + "学習します。" + CELL)
    assert lint_text.main(["--root", str(place.root)]) == 0


# the term list itself

ENTRIES = yaml.safe_load((ROOT / "chapters" / "terms.yml").read_text(encoding="utf-8"))


def test_terms_are_complete_and_unique():
    assert len(ENTRIES) >= 60
    for entry in ENTRIES:
        assert set(entry) <= {"ja", "en", "week", "forbid"}, entry
        assert entry["ja"] and entry["en"] and entry["week"] in (11, 12, 13), entry
    names = [entry["ja"] for entry in ENTRIES]
    assert len(set(names)) == len(names)


def test_no_term_is_forbidden_by_another():
    terms = lint_text.Linter(ROOT).terms
    for entry in ENTRIES:
        clashes = [(t.ja, v) for t, v in lint_text.misused(terms, entry["ja"], prose=True)]
        assert clashes == [], entry["ja"]


def test_every_forbidden_pattern_matches_something_and_compiles():
    for entry in ENTRIES:
        for written in entry["forbid"]:
            pattern = written.removeprefix("re:")
            assert re.compile(pattern).search("") is None, written
