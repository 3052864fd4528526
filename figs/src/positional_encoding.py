"""Positional Encoding: a word says what, two pairs of hands say where, and the sum is the input."""

import math

WORDS = ("猫", "が", "走る")
COLORS = {
    "word": ("value", "#56b4e9"),
    "pos": ("encoder", "#0067a3"),
    "neg": ("decoder", "#b54a00"),
}
WIDE, CELL, LEFT, GAP = 4, 38, 118, 30
WIDTH = LEFT + 3 * (WIDE * CELL + GAP)
ROWS = {"word": 64, "place": 122, "sum": 216}


def encoding(position: int) -> list[float]:
    """PE(t) of four components: one fast pair, one slow pair."""
    angles = (position, position / 100)
    return [f(angle) for angle in angles for f in (math.sin, math.cos)]


def box(x: int, y: int, kind: str, opacity: float, text: str = "") -> str:
    """One component of a vector."""
    cell = f'<rect class="{kind}" x="{x}" y="{y}" width="{CELL}" height="30"'
    cell += f' fill-opacity="{opacity:.2f}"/>'
    if text:
        cell += f'<text class="number" x="{x + CELL // 2}" y="{y + 20}">{text}</text>'
    return cell


def clock(x: int, y: int, angle: float) -> str:
    """A hand that has turned by an angle from twelve o'clock: (sin, cos) is its tip."""
    tip = f"{x + 17 * math.sin(angle):.1f} {y - 17 * math.cos(angle):.1f}"
    return f'<circle class="face" cx="{x}" cy="{y}" r="20"/><path class="hand" d="M{x} {y}L{tip}"/>'


def column(place: int, word: str):
    left = LEFT + place * (WIDE * CELL + GAP)
    middle = left + WIDE * CELL // 2
    yield f'<text class="middle" x="{middle}" y="22">{word}</text>'
    yield f'<text class="small" x="{middle}" y="44">位置 {place}</text>'
    values = encoding(place)
    for i, value in enumerate(values):
        x = left + CELL * i
        yield box(x, ROWS["word"], "word", 0.55)
        sign = "pos" if value >= 0 else "neg"
        shown = f"{value:.2f}".replace("-", "−")
        yield box(x, ROWS["place"], sign, 0.10 + 0.25 * abs(value), shown)
        yield box(x, ROWS["sum"], "word", 0.30) + box(x, ROWS["sum"], sign, 0.25 * abs(value))
    yield f'<text class="middle" x="{middle}" y="114">＋</text>'
    yield f'<path class="arrow" d="M{middle} 196V212m-5 -7l5 7l5 -7"/>'
    for pair, angle in enumerate((place, place / 100)):
        yield clock(left + CELL + 2 * CELL * pair, 174, angle)


def style() -> str:
    rules = "".join(
        f".positions .{kind}{{fill:var(--book-{role},{color})}}"
        for kind, (role, color) in COLORS.items()
    )
    return (
        f"<style>.positions rect{{stroke:currentColor;stroke-width:1}}{rules}"
        ".positions text{fill:currentColor}.positions .number{font-size:12px}"
        ".positions .number,.positions .middle,.positions .small{text-anchor:middle}"
        ".positions .small{font-size:13px}.positions .label{text-anchor:end;font-weight:700}"
        ".positions .face{fill:none;stroke:currentColor;stroke-width:1}"
        ".positions .hand,.positions .arrow{fill:none;stroke:currentColor;stroke-width:2;"
        "stroke-linecap:round}</style>"
    )


def draw() -> str:
    labels = {"埋め込み": 84, "PE(t)": 142, "針": 179, "入力": 236}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} 258" width="{WIDTH}"'
        ' height="258" fill="currentColor" font-size="16">',
        style(),
        '<g class="positions">',
    ]
    lines += [
        f'<text class="label" x="{LEFT - 18}" y="{y}">{text}</text>' for text, y in labels.items()
    ]
    for place, word in enumerate(WORDS):
        lines += column(place, word)
    return "\n".join([*lines, "</g>", "</svg>"]) + "\n"
