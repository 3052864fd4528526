"""Inference with an RNN language model: one cell used again and again, each word fed back."""

from xml.sax.saxutils import escape

WORDS = ["&lt;s&gt;", "今朝", "は", "パン"]
CANDIDATES = [
    [("今朝", 34), ("彼女", 24), ("猫", 15)],
    [("は", 42), ("の", 20), ("、", 9)],
    [("パン", 30), ("雨", 22), ("空", 12)],
    [("を", 38), ("が", 25), ("と", 14)],
]
HUES = {"key": "#00795a", "query": "#a04876", "encoder": "#0067a3", "decoder": "#b04800"}
LEFT, STEP, CELL, HALF = 96, 146, 178, 34
WIDTH, HEIGHT = 656, 332


def box(hue: str, x: int, y: int, text: str, half: int = HALF) -> str:
    return (
        f'<rect class="{hue}" x="{x - half}" y="{y - 16}" width="{2 * half}" height="32" rx="7"/>'
        f'<text class="{hue} label" x="{x}" y="{y + 5}">{text}</text>'
    )


def arrow(path: str, hue: str = "plain") -> str:
    return f'<path class="{hue}" d="{path}" marker-end="url(#rnn-tip-{hue})"/>'


def tip(hue: str, colour: str) -> str:
    return (
        f'<marker id="rnn-tip-{hue}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
        f' markerHeight="7" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" style="fill:{colour};stroke:none"/></marker>'
    )


def distribution(x: int, candidates: list[tuple[str, int]]) -> list[str]:
    """Three bars above the output layer; the chosen word is the longest."""
    lines = []
    for row, (word, length) in enumerate(candidates):
        y, weight = 22 + 19 * row, "decoder" if row == 0 else "rest"
        lines.append(
            f'<text class="word" x="{x - 12}" y="{y + 9}">{escape(word)}</text>'
            f'<rect class="bar {weight}" x="{x - 7}" y="{y}" width="{length}" height="10"/>'
        )
    return lines


def step(t: int) -> list[str]:
    """One time step: the word read, the cell, the output layer, the distribution, the feedback."""
    x = LEFT + 24 + STEP * t
    lines = [
        box("key", x, CELL + 76, WORDS[t]),
        arrow(f"M{x} {CELL + 59}V{CELL + 18}"),
        box("encoder", x, CELL, "RNN"),
        arrow(f"M{x} {CELL - 17}V{CELL - 41}"),
        box("query", x, CELL - 58, "softmax"),
        arrow(f"M{x} {CELL - 75}V{CELL - 93}"),
        *distribution(x, CANDIDATES[t]),
        arrow(f"M{x + HALF + 1} {CELL}H{min(x + STEP - HALF - 2, WIDTH - 8)}"),
        f'<text x="{x + 78}" y="{CELL - 8}" text-anchor="middle">h<tspan dy="4"'
        f' font-size="11">{t + 1}</tspan></text>',
    ]
    if t + 1 < len(CANDIDATES):
        turn = x + STEP // 2 - 16
        lines.append(
            arrow(
                f"M{x + 38} 27C{turn} 27 {turn} 60 {turn} 110V{CELL + 56}"
                f"C{turn} {CELL + 76} {turn} {CELL + 76} {x + STEP - HALF - 2} {CELL + 76}",
                "decoder",
            )
        )
    return lines


def draw() -> str:
    colours = "".join(
        f".rnn-inference .{hue}{{stroke:{colour};color:{colour}}}"
        for hue, colour in ((hue, f"var(--book-{hue},{plain})") for hue, plain in HUES.items())
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
        f' height="{HEIGHT}" fill="currentColor" font-size="14">',
        "<style>.rnn-inference path,.rnn-inference rect{fill:none;stroke-width:2}"
        ".rnn-inference .plain{stroke:currentColor}"
        ".rnn-inference path.decoder{stroke-dasharray:5 4}"
        f"{colours}.rnn-inference text{{stroke:none;fill:currentColor}}"
        ".rnn-inference text.label{stroke:none;text-anchor:middle;font-weight:700}"
        ".rnn-inference .word{text-anchor:end;font-size:13px}"
        ".rnn-inference rect.bar{stroke:none;fill:currentColor}"
        ".rnn-inference rect.rest{opacity:.45}</style>",
        "<defs>"
        + tip("plain", "currentColor")
        + tip("decoder", f"var(--book-decoder,{HUES['decoder']})")
        + "</defs>",
        '<g class="rnn-inference">',
        f'<text x="{LEFT - 74}" y="{CELL + 5}">h<tspan dy="4" font-size="11">0</tspan>'
        '<tspan dy="-4"> = 0</tspan></text>',
        arrow(f"M{LEFT - 30} {CELL}H{LEFT - 12}"),
    ]
    for t in range(len(CANDIDATES)):
        lines += step(t)
    notes = [
        "RNN の箱は、どれも同じ一つのセル。同じ重みを、時刻ごとに使い回す。",
        "破線：選んだ語を、次の時刻の入力にする。",
    ]
    for row, note in enumerate(notes):
        lines.append(f'<text x="{LEFT - 74}" y="{HEIGHT - 30 + 22 * row}">{note}</text>')
    return "\n".join([*lines, "</g>", "</svg>"]) + "\n"
