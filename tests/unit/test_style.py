"""The rules of lib and of the tests, read from the source. Each rule also meets a planted bad one.

A rule is a function from source text to a list of complaints; an empty list is a pass.
"""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest
import torch
from jaxtyping import TypeCheckError

from lib.attention import MultiHeadAttention, attention

ROOT = Path(__file__).resolve().parents[2]
LIB = {path.stem: path.read_text("utf-8") for path in sorted((ROOT / "lib").glob("*.py"))}
TESTS = sorted((ROOT / "tests").glob("**/test_*.py"))
TOOLS = {"plots", "explore", "checks"}  # they import no model
STORY = ["text", "grammar", "corpus", "ngram", "metrics", "neural_lm", "rnn", "train"]
STORY += ["seq2seq", "decode", "attention", "positional", "layers", "transformer", "variants"]

TOTAL, PER_MODULE, PER_FUNCTION, LEVELS = 1400, 180, 25, 2
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
JAPANESE = re.compile(r"[ぁ-んァ-ヶ一-龠]")


# What the rules read


def code_lines(source: str) -> set[int]:
    """Numbers of the lines that hold code: no comment, no docstring, no blank line."""
    free = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in free | {tokenize.ENDMARKER}:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, *DEFINITIONS)) and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


def functions(source: str) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, FUNCTIONS)]


def levels(statements: list[ast.stmt]) -> int:
    """How deep if, for, while, with, try and match stand in one another; an elif adds nothing."""
    deepest = 0
    for node in statements:
        blocks = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
        blocks += [part.body for name in ("handlers", "cases") for part in getattr(node, name, [])]
        if isinstance(node, DEFINITIONS) or not any(blocks):
            continue  # a function inside is measured by itself
        other = blocks[1]
        if isinstance(node, ast.If) and len(other) == 1 and isinstance(other[0], ast.If):
            deepest = max(deepest, levels(blocks.pop(1)))
        deepest = max(deepest, 1 + max(map(levels, blocks)))
    return deepest


def public(node: ast.AST, inside: str = "") -> list[tuple[str, ast.AST]]:
    """Public functions, classes and methods; what stands inside a function is nobody's business."""
    found = []
    for child in node.body:
        if isinstance(child, DEFINITIONS) and not child.name.startswith("_"):
            found.append((inside + child.name, child))
            if isinstance(child, ast.ClassDef):
                found += public(child, f"{child.name}.")
    return found


def lib_imports(source: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("lib.")}
        elif isinstance(node, ast.ImportFrom) and node.module == "lib":
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lib."):
            found.add(node.module.split(".")[1])
    return found


def shape_letters(source: str) -> set[str]:
    """Single capital letters in the shapes of annotations: Float[Tensor, "*B T {self.d}"]."""
    shapes = [
        node.slice.elts[1].value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Subscript)
        and getattr(node.value, "id", "") in {"Float", "Int", "Bool"}
        and isinstance(node.slice, ast.Tuple)
    ]
    return {letter for shape in shapes for letter in re.findall(r"\b[A-Z]\b", shape)}


def named_in_map(source: str) -> list[str]:
    """The modules in the order that lib's own docstring gives."""
    story = re.search(r"\w+(?:\s*→\s*\w+)+", ast.get_docstring(ast.parse(source)))
    return re.split(r"\s*→\s*", story[0]) if story else []


def called(node: ast.AST) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


# The rules


def too_long(source: str) -> list[str]:
    lines = code_lines(source)
    wrong = [f"{len(lines)} code lines"] if len(lines) > PER_MODULE else []
    for f in functions(source):
        length = len(lines & set(range(f.lineno, f.end_lineno + 1)))
        wrong += [f"{f.name}: {length} code lines"] * (length > PER_FUNCTION)
    return wrong


def too_deep(source: str) -> list[str]:
    depths = {f.name: levels(f.body) for f in functions(source)}
    return [f"{name}: {depth} levels" for name, depth in depths.items() if depth > LEVELS]


def out_of_order(name: str, source: str, order: list[str]) -> list[str]:
    allowed = TOOLS if name in TOOLS else set(order[: order.index(name)])
    return [f"{name} imports {other}" for other in sorted(lib_imports(source) - allowed)]


def undocumented(source: str) -> list[str]:
    tree = ast.parse(source)
    nodes = [("module", tree), *public(tree)]
    return [n for n, node in nodes if not JAPANESE.search(ast.get_docstring(node) or "")]


def wrong_key(source: str) -> list[str]:
    """The letters explained in the module's docstring are those in its shapes, no more, no less."""
    docstring = ast.get_docstring(ast.parse(source)) or ""
    explained = set(re.findall(r"(?<![A-Za-z0-9_])([A-Z]) (?=[^\x00-\x7f])", docstring))
    used = shape_letters(source)
    return [f"{x} is not explained" for x in sorted(used - explained)] + [
        f"{x} is explained, not used" for x in sorted(explained - used)
    ]


def dangling(source: str, labels: set[str], keys: set[str]) -> list[str]:
    """式 names labels of chapters, 出典 names keys of the bibliography."""
    wrong = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, (ast.Module, *DEFINITIONS)):
            continue
        for line in (ast.get_docstring(node) or "").splitlines():
            equations, _, sources = line.partition("出典:")
            if "式:" in equations:
                named = re.split(r"[,、\s]+", equations.partition("式:")[2].strip())
                wrong += [f"式 {label}" for label in named if label not in labels]
            if sources:
                named = [item.split()[0].rstrip(",、（") for item in re.split("[;；]", sources)]
                named = [re.split("[,、（(]", item)[0] for item in named]
                wrong += [f"出典 {key}" for key in named if key not in keys]
    return wrong


def loud(source: str) -> list[str]:
    """No printing, no global seed, no star import, no einops."""
    wrong = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and called(node) in {"print", "manual_seed"}:
            own = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call)
            wrong += (
                [] if own else [f"line {node.lineno}: {called(node)}"]
            )  # Generator().manual_seed
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [a.name for a in node.names] + [getattr(node, "module", "") or ""]
            wrong += [f"line {node.lineno}: {name}" for name in names if name in {"*", "einops"}]
    return wrong


def without_assertion(source: str) -> list[str]:
    def asserts(node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            return re.match(r"assert_|expect|raises$|warns$|fail$", called(node)) is not None
        return isinstance(node, ast.Assert)

    tests = [f for f in functions(source) if f.name.startswith("test_")]
    return [f.name for f in tests if not any(map(asserts, ast.walk(f)))]


def chapter_labels() -> set[str]:
    text = "\n".join(p.read_text("utf-8") for p in ROOT.glob("chapters/**/*.md"))
    found = re.findall(r"\$\$ *\((eq-[a-z0-9-]+)\)|^:label: (eq-[a-z0-9-]+)", text, re.M)
    return {after or option for after, option in found}


def bibliography_keys() -> set[str]:
    return set(re.findall(r"^@\w+\{([^,\s]+),", (ROOT / "references.bib").read_text("utf-8"), re.M))


# lib and the tests keep them


def test_lib_is_small():
    sizes = {name: len(code_lines(source)) for name, source in LIB.items()}
    assert sum(sizes.values()) <= TOTAL, sizes


@pytest.mark.parametrize("name", LIB)
def test_modules_and_functions_are_short_and_flat(name):
    assert too_long(LIB[name]) + too_deep(LIB[name]) == []


def test_the_map_of_lib_names_every_module_in_story_order():
    order = named_in_map(LIB["__init__"])
    assert [name for name in order if name in STORY] == [m for m in STORY if m in LIB]
    assert set(order) | TOOLS | {"__init__"} == set(LIB)


@pytest.mark.parametrize("name", sorted(set(LIB) - {"__init__"}))
def test_a_module_imports_only_earlier_ones(name):
    assert out_of_order(name, LIB[name], named_in_map(LIB["__init__"])) == []


@pytest.mark.parametrize("name", LIB)
def test_everything_public_says_in_japanese_what_it_is(name):
    assert undocumented(LIB[name]) == []


@pytest.mark.parametrize("name", sorted(set(LIB) - TOOLS))
def test_the_dimension_key_has_the_letters_that_are_used(name):
    assert wrong_key(LIB[name]) == []


@pytest.mark.parametrize("name", LIB)
def test_equations_and_sources_exist(name):
    assert dangling(LIB[name], chapter_labels(), bibliography_keys()) == []


@pytest.mark.parametrize("name", LIB)
def test_lib_is_quiet(name):
    assert loud(LIB[name]) == []


@pytest.mark.parametrize("path", TESTS, ids=lambda p: p.stem)
def test_every_test_asserts_something(path):
    assert without_assertion(path.read_text("utf-8")) == []


def test_shapes_in_signatures_are_executed():
    q, k = torch.zeros(2, 3, 5), torch.zeros(2, 7, 5)
    assert attention(q, k, k)[0].shape == (2, 3, 5)
    with pytest.raises(TypeCheckError):
        attention(q, k, k[:, :3])
    with pytest.raises(TypeCheckError):
        MultiHeadAttention(5, 1)(k, k[0])


# Each rule can fail


def test_code_lines_are_counted_without_docstrings_comments_and_blank_lines():
    source = '"""doc\n\nstring"""\n\n# comment\ndef f(\n    x,\n):\n'
    source += '    """doc"""\n    return """a\nb"""\n'
    assert code_lines(source) == {6, 7, 8, 10, 11}


def test_long_is_found():
    body = "".join(f"    x = {i}\n" for i in range(PER_FUNCTION))
    assert too_long(f"def f():\n{body}") == [f"f: {PER_FUNCTION + 1} code lines"]
    assert too_long("x = 1\n" * PER_MODULE) == []
    assert too_long("x = 1\n" * (PER_MODULE + 1)) == [f"{PER_MODULE + 1} code lines"]


@pytest.mark.parametrize(
    ("body", "depth"),
    [
        ("return 1", 0),
        ("for a in b:\n  if a:\n   c()", 2),
        ("for a in b:\n  if a:\n   while c:\n    d()", 3),
        ("if a:\n  b()\n elif c:\n  d()\n elif e:\n  f()\n else:\n  g()", 1),
        ("if a:\n  b()\n else:\n  if c:\n   d()\n  e()", 2),
        ("try:\n  a()\n except E:\n  with b:\n   if c:\n    d()", 3),
        ("match a:\n  case 1:\n   if b:\n    c()", 2),
        ("def g():\n  for a in b:\n   if c:\n    d()\n return g", 2),
    ],
)
def test_depth_is_measured(body, depth):
    source = f"def f():\n {body}\n"
    assert max(levels(f.body) for f in functions(source)) == depth
    assert bool(too_deep(source)) == (depth > LEVELS)


@pytest.mark.parametrize(
    ("name", "source", "complaints"),
    [
        ("text", "from lib.rnn import RNN", ["text imports rnn"]),
        ("rnn", "from lib.text import PAD", []),
        ("rnn", "from lib import text, transformer", ["rnn imports transformer"]),
        ("rnn", "import lib.transformer", ["rnn imports transformer"]),
        ("rnn", "def f():\n    from lib.rnn import x", ["rnn imports rnn"]),
        ("plots", "from lib.attention import attention", ["plots imports attention"]),
        ("rnn", "from lib import plots", ["rnn imports plots"]),
        ("explore", "from lib import plots\nimport torch", []),
    ],
)
def test_an_import_of_a_later_module_is_found(name, source, complaints):
    assert out_of_order(name, source, STORY) == complaints


def test_the_map_is_read():
    assert named_in_map('"""本。\n\na → b\n→ c_d。"""') == ["a", "b", "c_d"]
    assert named_in_map('"""本。"""') == []


def test_a_missing_or_foreign_docstring_is_found():
    source = (
        '"""モジュール。"""\n\ndef f():\n    """English only."""\n\nclass A:\n    """型。"""\n\n'
    )
    source += "    def m(self):\n        pass\n\n    def _own(self):\n        pass\n\n"
    source += (
        "def _private():\n    pass\n\ndef g():\n    '''関数。'''\n    def inner():\n        pass\n"
    )
    assert undocumented(source) == ["f", "A.m"]
    assert undocumented("x = 1") == ["module"]


@pytest.mark.parametrize(
    ("docstring", "complaints"),
    [
        ("一。\n\nB バッチ  T 長さ", []),
        ("一。\n\nB バッチ", ["T is not explained"]),
        ("一。\n\nB バッチ  T 長さ  S 原文", ["S is explained, not used"]),
    ],
)
def test_a_wrong_dimension_key_is_found(docstring, complaints):
    source = f'"""{docstring}"""\ndef f(x: Float[Tensor, "*#B T 2*T {{self.d}}"]) -> int: ...\n'
    assert wrong_key(source) == complaints


@pytest.mark.parametrize(
    ("docstring", "complaints"),
    [
        ("式: eq-a  出典: one2017a, 式 (1)", []),
        ("式: eq-a, eq-b  出典: one2017a; two2018b（共有）", []),
        ("式: eq-c", ["式 eq-c"]),
        ("式: 三つ目", ["式 三つ目"]),
        ("式: eq-a, eq-c  出典: one2017a", ["式 eq-c"]),
        ("出典: three2019c, 3 節", ["出典 three2019c"]),
        ("出典: one2017a; three2019c（近道）", ["出典 three2019c"]),
    ],
)
def test_a_dangling_equation_or_source_is_found(docstring, complaints):
    source = f'def f():\n    """関数。\n\n    {docstring}\n    """\n'
    assert dangling(source, {"eq-a", "eq-b"}, {"one2017a", "two2018b"}) == complaints


def test_labels_and_keys_are_read_from_the_book():
    assert "eq-perplexity" in chapter_labels()
    assert "vaswani2017attention" in bibliography_keys()


@pytest.mark.parametrize(
    "source",
    ["print(1)", "torch.manual_seed(0)", "from torch import *", "import einops"],
)
def test_noise_is_found(source):
    assert len(loud(source)) == 1
    assert loud("g = torch.Generator().manual_seed(0)\nimport torch\n") == []


def test_a_test_without_an_assertion_is_found():
    bad = "def test_a():\n    f() == 1\n\ndef test_b():\n    torch.allclose(a, b)\n"
    good = "def test_c():\n    assert f()\n\ndef test_d():\n    torch.testing.assert_close(a, b)\n"
    good += "def test_e():\n    with pytest.raises(ValueError):\n        f()\n"
    good += "def helper():\n    f()\n"
    assert without_assertion(bad + good) == ["test_a", "test_b"]
