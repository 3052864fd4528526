"""The whole Transformer: two towers of blocks (Pre-LN) and the one bridge between them."""

from xml.sax.saxutils import escape

HUES = {"key": "#00795a", "query": "#a8507f", "encoder": "#0067a3", "decoder": "#b54a00"}
WIDTH, TOP, HEIGHT = 430, 32, 612
LEFT, RIGHT, BOX, STEP = 112, 312, 156, 100
FIRST = 512  # the lowest layer norm; a sub-layer takes STEP upwards
SKIP = 92  # from the middle of a tower to its skip path

STYLE = """
.transformer .box{stroke-width:2;fill:var(--pst-color-background,#fff)}
.transformer .norm{stroke:var(--pst-color-text-muted,#767676);stroke-width:1.2;
fill:var(--pst-color-surface,#f3f4f5)}
.transformer .line{fill:none;stroke-width:1.8}
.transformer .skip{fill:none;stroke-width:1.8;stroke-dasharray:1 4;stroke-linecap:round}
.transformer .frame{fill:none;stroke-width:1.2;stroke-dasharray:7 4}
.transformer .head{stroke:none;fill:currentColor}
.transformer text{text-anchor:middle;stroke:none;fill:var(--pst-color-text-base,#222832)}
.transformer .small{font-size:12px}
.transformer .name{font-weight:700;fill:currentColor}
""".replace("\n", "")


def text(x, y, words, kind=""):
    mark = f' class="{kind}"' if kind else ""
    return f'<text{mark} x="{x}" y="{y}">{escape(words)}</text>'


def box(x, y, words, below=""):
    """A part, centred on (x, y), with a second and smaller line."""
    half = 20 if below else 14
    yield (
        f'<rect class="box" x="{x - BOX // 2}" y="{y - half}" width="{BOX}"'
        f' height="{2 * half}" rx="6"/>'
    )
    yield text(x, y - 2 if below else y + 5, words)
    if below:
        yield text(x, y + 14, below, "small")


def norm(x, y):
    yield f'<rect class="norm" x="{x - 46}" y="{y - 10}" width="92" height="20" rx="4"/>'
    yield text(x, y + 4, "層正規化", "small")


def plus(x, y):
    yield f'<circle class="box" cx="{x}" cy="{y}" r="8"/>'
    yield f'<path class="line" d="M{x - 5} {y}H{x + 5}M{x} {y - 5}V{y + 5}"/>'


def up(x, low, high):
    yield f'<path class="line" d="M{x} {low}V{high + 5}"/>'
    yield f'<path class="head" d="M{x - 4} {high + 7}H{x + 4}L{x} {high}Z"/>'


def sublayer(x, y, words, below, side):
    """Layer norm, part, addition, and the skip path on the outer side."""
    edge = x + side * SKIP
    yield from up(x, y + 30, y + 10)
    yield from norm(x, y)
    yield from up(x, y - 10, y - 18)
    yield from box(x, y - 38, words, below)
    yield f'<path class="line" d="M{x} {y - 58}V{y - 62}"/>'
    yield f'<path class="skip" d="M{x} {y + 22}H{edge}V{y - 70}H{x + side * 9}"/>'
    yield from plus(x, y - 70)


def tower(x, hue, name, parts, side):
    """From the tokens to the top of the last block."""
    top = FIRST - STEP * len(parts)
    yield f'<g class="{hue}">'
    yield text(x, 632, name)
    yield from up(x, 616, 606)
    yield from box(x, 592, "埋め込み × √D")
    yield from up(x, 578, 569)
    yield from plus(x, 560)
    yield text(x + 56, 565, "位置 PE", "small")
    yield from up(x, 552, FIRST + 30)
    for i, (words, below) in enumerate(parts):
        yield from sublayer(x, FIRST - STEP * i, words, below, side)
    inner, outer = BOX // 2 + 7, SKIP + 8  # of the dashed frame
    low, high = x - (inner if side > 0 else outer), inner + outer
    yield (
        f'<rect class="frame" x="{low}" y="{top + 22}" width="{high}"'
        f' height="{FIRST + 14 - top}" rx="8"/>'
    )
    yield text(x + side * 70, top + 16, "× N", "name")
    yield from up(x, top + 22, top + 5)
    yield from norm(x, top - 5)


def draw() -> str:
    colours = "".join(
        f".transformer .{hue}{{stroke:var(--book-{hue},{colour});color:var(--book-{hue},{colour})}}"
        for hue, colour in HUES.items()
    )
    read = [("Self-Attention", "パディングマスク"), ("FFN", "位置ごと")]
    write = [
        ("Self-Attention", "因果マスク"),
        ("Cross-Attention", "クエリは下、K と V は左"),
        ("FFN", "位置ごと"),
    ]
    out, cross = FIRST - STEP * len(write), FIRST - STEP - 38
    memory = FIRST - STEP * len(read) - 5
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {TOP} {WIDTH} {HEIGHT}" '
        f' width="{WIDTH}" height="{HEIGHT}" fill="currentColor" font-size="15">',
        f"<style>{colours}{STYLE}</style>",
        '<g class="transformer">',
        *tower(LEFT, "encoder", "原文 (B, S)", read, -1),
        *up(LEFT, memory - 10, memory - 26),
        text(LEFT, memory - 34, "memory (B, S, D)"),
        text(LEFT, memory - 56, "エンコーダ", "name"),
        "</g>",
        *tower(RIGHT, "decoder", "訳文 (B, T)", write, 1),
        *up(RIGHT, out - 15, out - 28),
        *box(RIGHT, out - 48, "出力層", "D 次元 → 語彙 V"),
        *up(RIGHT, out - 68, out - 82),
        *box(RIGHT, out - 96, "softmax"),
        *up(RIGHT, out - 110, out - 126),
        text(RIGHT, out - 134, "次のトークン (B, T, V)"),
        text(RIGHT, out - 156, "デコーダ", "name"),
        "</g>",
        '<g class="key">',
        f'<path class="line" d="M{LEFT + 66} {memory - 39}H212V{cross}H{RIGHT - BOX // 2 - 6}"/>',
        f'<path class="head" d="M{RIGHT - BOX // 2 - 8} {cross - 5}V{cross + 5}L'
        f'{RIGHT - BOX // 2} {cross}Z"/>',
        "</g>",
    ]
    return "\n".join([*lines, "</g>", "</svg>"]) + "\n"
