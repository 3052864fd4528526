"""Cross-Attention beside Self-Attention: one row looks at another sequence, or at its own."""

from xml.sax.saxutils import escape

SOURCE = ["猫", "は", "魚", "が", "好き"]
TARGET = ["Cats", "like", "fish"]
TEXT = ["猫", "が", "魚", "を", "それ"]
HUES = {"key": "#00795a", "encoder": "#0067a3", "decoder": "#b54a00"}
WIDTH, HEIGHT, STEP, TOP, BOTTOM = 640, 250, 58, 70, 190


def box(x, y, word, hue, bold=False):
    half = 24
    weight = ' font-weight="700"' if bold else ""
    return (
        f'<rect class="{hue}" x="{x - half}" y="{y - 17}" width="{2 * half}" height="34" rx="7"/>'
        f'<text class="word" x="{x}" y="{y + 5}"{weight}>{escape(word)}</text>'
    )


def look(x, y, to_x, to_y, width):
    """One line from the row that looks up to a word that is looked at."""
    half = (y + to_y) // 2
    return (
        f'<path class="look" stroke-width="{width}"'
        f' d="M{x} {y}C{x} {half} {to_x} {half} {to_x} {to_y}"/>'
    )


def half_figure(left, title, words, below, row, hue, strong):
    """Words above (looked at), words below (looking); the row looks at every word above."""
    centre = left + 2 * STEP
    above = [left + STEP * i for i in range(5)]
    start = centre - STEP * (len(below) - 1) // 2
    under = [start + STEP * i for i in range(len(below))]
    lines = [f'<text class="title" x="{centre}" y="26">{escape(title)}</text>']
    for i, x in enumerate(above):
        width = 6 if i == strong else 1.5
        lines.append(look(under[row], BOTTOM - 17, x, TOP + 17, width))
    lines += [box(x, TOP, w, "encoder") for x, w in zip(above, words, strict=True)]
    pairs = zip(under, below, strict=True)
    lines += [box(x, BOTTOM, w, hue, i == row) for i, (x, w) in enumerate(pairs)]
    return lines


def draw() -> str:
    colours = "".join(
        f".look-at .{hue}{{stroke:var(--book-{hue},{colour})}}" for hue, colour in HUES.items()
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
        f' height="{HEIGHT}" fill="currentColor" font-size="14">',
        f"<style>.look-at rect{{fill:var(--pst-color-background,#fff);stroke-width:2}}{colours}"
        ".look-at .look{fill:none;stroke:var(--book-key,#00795a);opacity:.75}"
        ".look-at text{text-anchor:middle}.look-at .title{font-size:16px;font-weight:700}</style>",
        '<g class="look-at">',
        *half_figure(40, "Cross-Attention", SOURCE, TARGET, 1, "decoder", 4),
        *half_figure(368, "Self-Attention", TEXT, TEXT, 4, "encoder", 2),
        f'<text x="156" y="{BOTTOM + 42}">訳文が、原文を見る</text>',
        f'<text x="484" y="{BOTTOM + 42}">系列が、自分自身を見る</text>',
    ]
    return "\n".join([*lines, "</g>", "</svg>"]) + "\n"
