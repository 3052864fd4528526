"""The notebook generator: every piece of MyST, the errors, the self-contained first cell."""

import base64
import io
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest

from tools import figure_png, make_notebooks
from tools.myst import SourceError

FRONT = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

"""
HEAD = "(ch-one)=\n# 題\n\n"
CELL = "```{code-cell} ipython3\nprint(1)\n```\n"
BIB = """@article{elman1990finding, author = {Elman, Jeffrey L.}, title = {Finding {Structure}},
journal = {Cognitive Science}, volume = {14}, pages = {179--211}, year = {1990}, doi = {10.1/x}}
@book{okazaki2022, author = {{岡﨑直観} and {荒瀬由紀}}, title = {基礎}, year = {2022}}
@misc{he2016deep, author = {He, K. and Zhang, X. and Ren, S.}, title = {Deep}, year = {2016},
archiveprefix = {arXiv}, eprint = {1512.03385}}
"""


class Place:
    """A small repository to convert pages in."""

    def __init__(self, root: Path):
        self.root = root
        self.put("lib/__init__.py", '"""部品。"""\n')
        self.put("lib/data.toml", "x = 1\n")
        self.put("references.bib", BIB)

    def put(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def page(self, body: str, name: str = "chapters/week11/01_one.md") -> Path:
        return self.put(name, FRONT + HEAD + body)

    def convert(self, body: str) -> nbformat.NotebookNode:
        return make_notebooks.Book(self.root).convert(self.page(body))

    def markdown(self, body: str) -> str:
        cells = self.convert(body + "\n\n" + CELL).cells
        return "\n\n".join(c.source for c in cells if c.cell_type == "markdown")

    def run(self, *arguments: str) -> int:
        return make_notebooks.main(["--root", str(self.root), *arguments])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (":::{note}\n本文です。\n:::", "> **注釈**\n>\n> 本文です。"),
        (":::{tip}\n本文です。\n:::", "> **ヒント**\n>\n> 本文です。"),
        (":::{important}\n本文です。\n:::", "> **重要**\n>\n> 本文です。"),
        (":::{admonition} 予想\n- 一\n- 二\n:::", "> **予想**\n>\n> - 一\n> - 二"),
        (
            ":::{dropdown} 予想の答え `a<b`\n**七** です。\n:::",
            "<details>\n<summary>予想の答え <code>a&lt;b</code></summary>\n\n"
            "**七** です。\n\n</details>",
        ),
        ("::::{note}\n:::{dropdown} 題\n内側\n:::\n::::", "> <details>\n> <summary>題</summary>"),
        ("- 項目\n\n  :::{note}\n  中\n  :::", "  > **注釈**\n  >\n  > 中"),
        ("式 $x$ の {cite}`elman1990finding` です。", "式 $x$ の (Elman, 1990) です。"),
        ("{cite:t}`he2016deep` は深い。", "He et al. (2016) は深い。"),
        ("二つ {cite}`elman1990finding,okazaki2022`。", "(Elman, 1990; 岡﨑直観ほか, 2022)。"),
        ("和は {glue:text}`total:.2f` です。", "和は「上のセルの出力」です。"),
        ("{index}`パープレキシティ`（perplexity）", "パープレキシティ（perplexity）"),
        ("{index}`重み <!weights>` と", "重みと"),
        ("{ref}`題の章 <ch-one>` と {ref}`ch-one`", "題の章と「題」"),
        ("{doc}`01_one` と {doc}`前章 <01_one>`", "「題」と前章"),
        ("一行目が終わり\n二行目と\nthe end", "一行目が終わり二行目とthe end"),
        ("one line\nand two", "one line and two"),
        ("1. 一\n2. 二\n\n段落", "1. 一\n2. 二\n\n段落"),
        ("| a | b |\n|:--|:--|\n| {eq}`eq-a` | $x$ |\n\n$$ y $$ (eq-a)", "| 式 (1) | $x$ |"),
        ("$$\na\n$$ (eq-a)", "$$\na\n\\tag{1}\n$$"),
        (":::{math}\n:label: eq-a\na\n:::", "$$\na\n\\tag{1}\n$$"),
        ("$$\na \\\\\nb\n$$", "$$\n\\begin{aligned}\na \\\\\nb\n\\end{aligned}\n$$"),
        ("<!-- 内緒 -->\n\n本文 <!-- given: 例 -->", "# 題\n\n本文"),
        ("```text\n{eq}`x` **y**\n```", "```text\n{eq}`x` **y**\n```"),
        ("値段は \\$5 で `$x {eq}` です。", "値段は \\$5 で `$x {eq}` です。"),
        (
            "[手引き](https://example.org/) と <https://example.org/>",
            "[手引き](https://example.org/) と",
        ),
        ("> 引用です。", "> 引用です。"),
    ],
)
def test_translation(place: Place, body: str, expected: str):
    assert expected in place.markdown(body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("あ\n\n:::{warning}\nx\n:::", "01_one.md:11: 知らないディレクティブ {warning}"),
        ("{abbr}`x`", "01_one.md:9: 知らないロール {abbr}"),
        ("- a\n- {math}`x`", "01_one.md:10: 知らないロール {math}"),
        (":::{note}\n\n{foo}`x`\n:::", "01_one.md:11: 知らないロール {foo}"),
        ("![図](../x.png)", "01_one.md:9: 画像は"),
        ("[隣](02_two.md)", "01_one.md:9: 相対リンク"),
        ("{ref}`題 <sec-nowhere>`", "01_one.md:9: ラベル sec-nowhere"),
        ("{eq}`ch-one`", "01_one.md:9: ch-one は heading"),
        ("{cite}`nobody2020`", "01_one.md:9: 文献 nobody2020"),
        ("{doc}`../nowhere`", "01_one.md:9: ページ"),
        (":::{note}\n```{code-cell} ipython3\n1\n```\n:::", "01_one.md:10: code-cell"),
        (":::{figure} none.svg\n:alt: 図\n:::", "01_one.md:9: 図 none.svg"),
        (":::{figure} none.svg\n:::", "01_one.md:9: figure に :alt:"),
        ("<div>x</div>", "01_one.md:9: 生の HTML"),
    ],
)
def test_what_cannot_be_translated_is_an_error_with_its_place(
    place: Place, body: str, message: str
):
    with pytest.raises(SourceError, match=re.escape(message)):
        place.markdown(body)


@pytest.mark.parametrize("body", [":::{note}\nx", "$$\nx", "```python\nx"])
def test_unclosed_block(place: Place, body: str, capsys):
    place.page(body)
    assert place.run() == 1
    assert "01_one.md:9: 閉じていない" in capsys.readouterr().out


def test_macros_are_written_out(place: Place):
    config = {"mathjax3_config": {"tex": {"macros": {"bm": [r"\boldsymbol{#1}", 1]}}}}
    config["mathjax3_config"]["tex"]["macros"]["softmax"] = r"\operatorname{softmax}"
    place.put("_config.yml", json.dumps({"sphinx": {"config": config}}))
    text = place.markdown(r"$\bm{x_{t}} = \softmax(\bm h) \bmod 2$" + "\n\n$$ \\bm{y} $$")
    assert r"$\boldsymbol{x_{t}} = \operatorname{softmax}(\boldsymbol{h}) \bmod 2$" in text
    assert "$$\n\\boldsymbol{y}\n$$" in text


def test_numbers_follow_the_table_of_contents(place: Place):
    second = place.put("chapters/week11/02_two.md", FRONT + "(ch-two)=\n# 二\n\n$$ a $$ (eq-a)\n")
    first = place.page("$$ b $$ (eq-b)\n\n{eq}`eq-b` と {eq}`eq-a`\n\n" + CELL)
    files = "".join(f"  - file: chapters/week11/{p.stem}\n" for p in (second, first))
    toc = "format: jb-book\nroot: intro\nparts:\n- caption: 十一\n  numbered: true\n"
    place.put("_toc.yml", toc + "  chapters:\n" + files)
    book = make_notebooks.Book(place.root)
    assert "\\tag{1.1}" in book.convert(second).cells[0].source
    assert "式 (2.1) と式 (1.1)（「二」）" in book.convert(first).cells[0].source


def test_figure_becomes_a_png_in_the_cell(place: Place):
    from PIL import Image, PngImagePlugin

    svg = place.put("figs/box.svg", "<svg></svg>")
    note = PngImagePlugin.PngInfo()
    note.add_text(figure_png.KEY, figure_png.digest(svg))
    Image.new("RGB", (40, 20)).save(svg.with_suffix(".png"), pnginfo=note)
    options = ':alt: "箱" の図\n:name: fig-box'
    body = f":::{{figure}} ../../figs/box.svg\n{options}\n\n説明 $x$\n:::\n\n{{numref}}`fig-box`"
    text = place.markdown(body)
    assert '<img alt="&quot;箱&quot; の図" width="20" src="data:image/png;base64,' in text
    assert "**図 1** 説明 $x$\n\n図 1" in text
    svg.write_text("<svg> </svg>")
    with pytest.raises(SourceError, match=r"box\.png が古い"):
        place.markdown(body)


def test_ids_are_stable_and_unique(place: Place):
    section = "(sec-one-b)=\n## 節\n\n文\n\n" + CELL
    before = [c.id for c in place.convert(CELL + section).cells]
    after = [c.id for c in place.convert(CELL + "文\n\n" + CELL + section).cells]
    assert before == ["ch-one-1", "setup", "ch-one-2", "sec-one-b-1", "sec-one-b-2"]
    assert len(set(after)) == len(after)
    assert after[-2:] == before[-2:]


def test_cells(place: Place):
    tagged = "```{code-cell} ipython3\n:tags: [hide-input]\nx = 1\n\ny = 2\n```\n"
    nb = place.convert(CELL + tagged)
    nbformat.validate(nb)
    code = [c for c in nb.cells if c.cell_type == "code"]
    assert [c.source for c in code[1:]] == ["print(1)", "x = 1\n\ny = 2"]
    assert code[2].metadata == {"tags": ["hide-input"], "jupyter": {"source_hidden": True}}
    assert all(c.outputs == [] and c.execution_count is None for c in code)
    assert code[0].source.startswith("#@title 準備") and code[0].metadata["cellView"] == "form"


def test_references_are_listed_once(place: Place):
    text = place.markdown("{cite}`he2016deep` {cite}`elman1990finding` {cite}`he2016deep`")
    listed = text.split("## 参考文献\n\n")[1].splitlines()
    expected = "- Jeffrey L. Elman (1990). *Finding Structure*. Cognitive Science 14, 179–211."
    assert listed[0] == expected + " <https://doi.org/10.1/x>"
    assert listed[1].endswith("*Deep*. <https://arxiv.org/abs/1512.03385>")
    assert len(listed) == 2


def test_check_names_what_differs(place: Place, capsys):
    page = place.page("本文です。\n\n" + CELL)
    place.put("chapters/week11/exercises.md", "(ch-ex)=\n# 演習\n")  # has no kernel: no notebook
    assert place.run("--check") == 1
    assert place.run() == 0
    target = page.with_suffix(".ipynb")
    written = target.read_bytes()
    assert place.run("--check") == 0
    assert place.run() == 0 and target.read_bytes() == written
    assert [p.name for p in place.root.glob("chapters/**/*.ipynb")] == ["01_one.ipynb"]

    capsys.readouterr()
    place.page("別の本文です。\n\n" + CELL)
    assert place.run("--check") == 1
    assert (
        "chapters/week11/01_one.ipynb: 01_one.md から作ったものと違います"
        in capsys.readouterr().out
    )
    assert target.read_bytes() == written  # --check writes nothing


@pytest.mark.parametrize("name", ["__init__.py", "data.toml", "new.py"])
def test_check_sees_a_change_in_lib(place: Place, name: str):
    place.page(CELL)
    assert place.run() == 0
    place.put(f"lib/{name}", "# 変えた\n")
    assert place.run("--check") == 1


def test_check_sees_an_output_and_a_lost_page(place: Place, capsys):
    page = place.page(CELL)
    assert place.run() == 0
    target = page.with_suffix(".ipynb")
    nb = nbformat.read(target, 4)
    nb.cells[-1].outputs = [nbformat.v4.new_output("stream", text="1\n")]
    nbformat.write(nb, target)
    assert place.run("--check") == 1
    page.unlink()
    assert place.run("--check") == 1
    assert "元になる .md がありません" in capsys.readouterr().out


def test_another_compression_of_lib_is_no_difference(place: Place):
    page = place.page(CELL)
    assert place.run() == 0
    target = page.with_suffix(".ipynb")
    text = target.read_text(encoding="utf-8")
    archive = re.search(r'prepare\(\\"([A-Za-z0-9+/=]+)\\"', text)[1]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as z:
        for name, content in make_notebooks.unpack(archive).items():
            z.writestr(name, content)
    other = base64.b64encode(buffer.getvalue()).decode()
    target.write_text(text.replace(archive, other), encoding="utf-8")
    assert other != archive
    assert place.run("--check") == 0


def run_first_cell(place: Place, folder: Path, times: int = 1) -> str:
    nb = place.convert(CELL)
    source = next(c.source for c in nb.cells if c.id == "setup")
    code = "\n".join([source] * times) + "\nimport lib\nprint(lib.__file__, len(sys.path))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_first_cell_works_in_an_empty_folder_and_again(place: Place, tmp_path_factory):
    empty = tmp_path_factory.mktemp("empty")
    once = run_first_cell(place, empty)
    assert once.startswith(str(empty / "toi_transformer" / "lib"))
    assert (empty / "toi_transformer/lib/data.toml").read_text() == "x = 1\n"
    assert run_first_cell(place, empty, times=2) == once


def test_first_cell_takes_the_lib_of_the_repository_it_is_in(place: Place):
    place.put("_toc.yml", "root: intro\n")
    deep = place.root / "chapters" / "week11"
    deep.mkdir(parents=True)
    assert run_first_cell(place, deep).startswith(str(place.root / "lib"))
    assert not (deep / "toi_transformer").exists()


def test_first_cell_says_in_japanese_when_something_cannot_be_brought(place: Place, tmp_path):
    place.put("requirements.lock", "jaxtyping==0.0.0.none\n")
    source = place.convert(CELL).cells[1].source
    source = source.replace('"jaxtyping": ', '"no_such_module": ')
    command = [sys.executable, "-c", source]
    environment = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert "jaxtyping==0.0.0.none を入れられませんでした。" in done.stderr


def test_first_cell_pins_what_it_brings_to_the_lock(place: Place):
    place.put("requirements.lock", "jaxtyping==0.3.11\nmatplotlib-fontja==1.1.0\n")
    source = place.convert(CELL).cells[1].source
    bring = {"matplotlib_fontja": "matplotlib-fontja==1.1.0", "jaxtyping": "jaxtyping==0.3.11"}
    assert f"bring={json.dumps(bring)})" in source


def test_python_of_the_first_cell_is_short_enough_to_read():
    lines = [line for line in make_notebooks.PREPARE.splitlines() if "archive@" not in line]
    assert max(map(len, lines)) <= 88
