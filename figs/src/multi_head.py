"""Multi-head attention: split into heads, attend in each, concatenate, mix with W^O."""

HUES = {"key": "#00795a", "query": "#a04876", "encoder": "#0067a3", "decoder": "#b54a00"}
HEADS = ["key", "query", "encoder", "decoder"]
WIDTH, HEIGHT, STEP, LEFT, CELL = 560, 380, 120, 100, 26
OUTPUT = 'W<tspan dy="-5" font-size="10">O</tspan>'


def box(x, y, width, text, hue="plain"):
    return (
        f'<rect class="{hue}" x="{x - width / 2:g}" y="{y - 18}" width="{width}" height="36"'
        f' rx="7"/><text x="{x}" y="{y + 5}">{text}</text>'
    )


def arrow(x, y, to_x, to_y, hue="plain"):
    half = (y + to_y) // 2
    path = f"M{x:g} {y}C{x:g} {half} {to_x:g} {half} {to_x:g} {to_y}"
    return f'<path class="{hue}" d="{path}" marker-end="url(#multi-head-tip)"/>'


def strip(x, y):
    """The contexts of the four heads, side by side."""
    cells = []
    for i, hue in enumerate(HEADS):
        left = x + (i - 2) * CELL * 2
        cells.append(
            f'<rect class="{hue} full" x="{left}" y="{y - 13}" width="{2 * CELL}" height="26"/>'
            f'<text x="{left + CELL}" y="{y + 5}">K</text>'
        )
    return cells


def draw() -> str:
    centre = LEFT + STEP * 3 // 2
    colours = "".join(
        f".multi-head .{hue}{{stroke:var(--book-{hue},{colour})}}"
        f".multi-head .full.{hue}{{fill:var(--book-{hue},{colour});fill-opacity:.18}}"
        for hue, colour in HUES.items()
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
        f' height="{HEIGHT}" fill="currentColor" font-size="14">',
        '<defs><marker id="multi-head-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6"'
        ' markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" fill="currentColor"'
        ' stroke="none"/></marker></defs>',
        "<style>.multi-head rect{fill:var(--pst-color-background,#fff);stroke-width:2}"
        ".multi-head path{fill:none;stroke-width:1.6}.multi-head .plain{stroke:currentColor}"
        f"{colours}.multi-head text{{text-anchor:middle}}.multi-head .side{{text-anchor:start}}"
        "</style>",
        '<g class="multi-head">',
        box(centre, 350, 170, "x　(T, D)"),
    ]
    for i, hue in enumerate(HEADS):
        x = LEFT + STEP * i
        lines += [
            arrow(centre + (i - 1.5) * 30, 331, x, 287, hue),
            box(x, 268, 106, "q　k　v　(T, K)", hue),
            arrow(x, 249, x, 219, hue),
            box(x, 200, 106, "Attention", hue),
            arrow(x, 181, centre + (i - 1.5) * CELL * 2, 146, hue),
        ]
    lines += [
        *strip(centre, 130),
        f'<text class="side" x="{centre + 4 * CELL + 14}" y="135">つなぐ　(T, D)</text>',
        arrow(centre, 116, centre, 90),
        box(centre, 71, 106, OUTPUT),
        arrow(centre, 52, centre, 34),
        f'<text x="{centre}" y="22">出力　(T, D)</text>',
    ]
    return "\n".join([*lines, "</g>", "</svg>"]) + "\n"
