"""One vector handed over, beside hidden states that are kept and looked at for every word."""

from itertools import pairwise
from xml.sax.saxutils import escape

SOURCE = ["猫", "は", "魚", "が", "好き"]
TARGET = ["cats", "like", "fish"]
HUES = {"key": "#00795a", "encoder": "#0067a3", "decoder": "#b54a00"}
WIDTH, HEIGHT, STEP, LOW, HIGH = 640, 270, 54, 200, 84
STRONG = [(0,), (4,), (2,)]  # where each English word looks


def box(x, y, word, hue, half=23):
    return (
        f'<rect class="{hue}" x="{x - half}" y="{y - 16}" width="{2 * half}" height="32" rx="7"/>'
        f'<text x="{x}" y="{y + 5}">{escape(word)}</text>'
    )


def line(x, y, to_x, to_y, width, hue="key"):
    half = (y + to_y) // 2
    return (
        f'<path class="look {hue}" style="stroke-width:{width}"'
        f' d="M{x} {y}C{x} {half} {to_x} {half} {to_x} {to_y}"/>'
    )


def chain(xs, y, hue):
    """The recurrence: every state waits for the one before it."""
    return [f'<path class="{hue}" d="M{a + 23} {y}H{b - 23}"/>' for a, b in pairwise(xs)]


def panel(left, title, lines):
    xs = [left + STEP * i for i in range(5)]
    out = [left + STEP * (i + 1) for i in range(3)]
    words = [box(x, LOW, f"h{i}", "encoder") for i, x in enumerate(xs, start=1)]
    words += [f'<text x="{x}" y="{LOW + 40}">{w}</text>' for x, w in zip(xs, SOURCE, strict=True)]
    words += [box(x, HIGH, w, "decoder") for x, w in zip(out, TARGET, strict=True)]
    head = f'<text class="title" x="{left + 2 * STEP}" y="26">{escape(title)}</text>'
    return [head, *lines(xs, out), *chain(xs, LOW, "encoder"), *chain(out, HIGH, "decoder"), *words]


def one_vector(xs, out):
    middle, centre = (LOW + HIGH) // 2, xs[2]
    lines = [line(xs[-1], LOW - 16, centre, middle + 15, 4, "encoder")]
    lines += [line(centre, middle - 15, x, HIGH + 16, 2.5) for x in out]
    return [*lines, box(centre, middle, "c", "key", 18)]


def look_again(xs, out):
    return [
        line(x, HIGH + 16, h, LOW - 16, 5 if s in strong else 1.2)
        for x, strong in zip(out, STRONG, strict=True)
        for s, h in enumerate(xs)
    ]


def draw() -> str:
    colours = "".join(
        f".idea .{hue}{{stroke:var(--book-{hue},{colour})}}" for hue, colour in HUES.items()
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
        f' height="{HEIGHT}" fill="currentColor" font-size="14">',
        f"<style>.idea rect{{fill:var(--pst-color-background,#fff);stroke-width:2}}{colours}"
        ".idea path{fill:none;stroke-width:2}.idea .look{opacity:.75}"
        ".idea text{text-anchor:middle}.idea .title{font-size:16px;font-weight:700}</style>",
        '<g class="idea">',
        *panel(48, "一本を渡す", one_vector),
        *panel(376, "取っておいて、毎回見直す", look_again),
    ]
    return "\n".join([*lines, "</g>", "</svg>"]) + "\n"
