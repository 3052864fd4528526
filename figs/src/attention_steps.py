"""One step of a decoder with attention: scores, weights, context, new state, word."""

from xml.sax.saxutils import escape

SOURCE = ["猫", "は", "魚", "が", "好き"]
WEIGHTS = [0.08, 0.04, 0.14, 0.06, 0.68]
HUES = {"key": "#00795a", "encoder": "#0067a3", "decoder": "#b54a00", "value": "#2b6f94"}
WIDTH, HEIGHT, LEFT, STEP = 640, 400, 60, 62
STATE, SCORE, WEIGHT, HIDDEN = 58, 150, 226, 330  # heights of the rows


def box(x, y, text, hue, half=24):
    return (
        f'<rect class="{hue}" x="{x - half}" y="{y - 16}" width="{2 * half}" height="32" rx="7"/>'
        f'<text x="{x}" y="{y + 5}">{escape(text)}</text>'
    )


def arrow(path, hue, label="", at=(0, 0)):
    text = f'<text class="small" x="{at[0]}" y="{at[1]}">{escape(label)}</text>' if label else ""
    return f'<path class="{hue}" marker-end="url(#step-tip)" d="{path}"/>{text}'


def column(i, x):
    """A source position: its hidden state, its score, its weight as a bar."""
    bar = round(56 * WEIGHTS[i])
    return [
        box(x, HIDDEN, f"h{i + 1}", "encoder"),
        f'<text x="{x}" y="{HIDDEN + 38}">{SOURCE[i]}</text>',
        f'<path class="encoder thin" d="M{x - 14} {HIDDEN - 16}V{SCORE + 9}"/>',
        f'<path class="value bar" d="M{x + 6} {WEIGHT + 20}v{-bar}"/>',
        f'<text class="small" x="{x + 6}" y="{WEIGHT + 40}">{WEIGHTS[i]:.2f}</text>',
        f'<circle class="key" cx="{x}" cy="{SCORE}" r="16"/>',
        f'<text class="small" x="{x}" y="{SCORE + 4}">e{i + 1}</text>',
        f'<path class="key thin" d="M{LEFT + 2 * STEP} {STATE + 16}L{x} {SCORE - 16}"/>',
    ]


def draw() -> str:
    colours = "".join(
        f".steps .{hue}{{stroke:var(--book-{hue},{colour})}}" for hue, colour in HUES.items()
    )
    xs = [LEFT + STEP * i for i in range(5)]
    state, context, new = xs[2], 440, 530
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
        f' height="{HEIGHT}" fill="currentColor" font-size="14">',
        f"<style>.steps :is(rect,circle){{fill:var(--pst-color-background,#fff);stroke-width:2}}"
        f"{colours}.steps path{{fill:none;stroke-width:2}}.steps .thin{{stroke-width:1.4}}"
        ".steps .bar{stroke-width:18}.steps text{text-anchor:middle}"
        ".steps .small{font-size:13px}.steps .side{text-anchor:start;font-size:13px}</style>",
        '<defs><marker id="step-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
        ' markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8Z" fill="currentColor"/></marker>'
        '</defs><g class="steps">',
        *(part for i, x in enumerate(xs) for part in column(i, x)),
        box(state, STATE, "前の状態", "decoder", 42),
        f'<text class="side" x="{xs[-1] + 26}" y="{SCORE + 5}">1 スコア</text>',
        f'<text class="side" x="{xs[-1] + 26}" y="{WEIGHT - 8}">2 softmax で重み</text>',
        f'<path class="value thin" d="M{LEFT - 30} {WEIGHT + 20}H{xs[-1] + 30}"/>',
        arrow(
            f"M{xs[-1] + 34} {HIDDEN}H{context}V{WEIGHT + 62}",
            "encoder",
            "3 重みつき平均",
            (context - 52, HIDDEN + 22),
        ),
        box(context, WEIGHT + 44, "文脈", "key"),
        arrow(f"M{context + 26} {WEIGHT + 44}H{new}V{SCORE + 20}", "key"),
        box(new, SCORE, "新しい状態", "decoder", 50),
        arrow(f"M{state + 44} {STATE}H{new}V{SCORE - 18}", "decoder"),
        arrow(f"M{new + 52} {SCORE}H{new + 84}V{STATE + 20}", "decoder"),
        box(new + 70, STATE, "like", "decoder"),
    ]
    return "\n".join([*lines, "</g>", "</svg>"]) + "\n"
