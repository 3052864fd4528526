"""The chain of questions: four colours of one thread, a knot for each question, a link each.

A link names a page of the book; _ext/bookext.py turns it into an address.
"""

import re
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]

PARTS = [
    (
        "言語モデル",
        "key",
        [
            "次の語を当てられるか",
            "どれだけ当たったかを測れるか",
            "見たことのない並びにも確率を",
            "似た語から学べないか",
        ],
    ),
    (
        "RNN",
        "query",
        [
            "過去を全部覚えられないか",
            "なぜ遠くは忘れるのか",
            "長さの違う系列へ写せるか",
            "一番よい訳をどう選ぶか",
        ],
    ),
    (
        "Attention",
        "encoder",
        [
            "一本のベクトルで足りるのか",
            "RNN は本当に要るのか",
            "語順をどう返すか",
            "系列の中を互いに見るには",
            "視点を増やすには",
        ],
    ),
    (
        "Transformer",
        "decoder",
        [
            "深く積むには",
            "翻訳機として組み上げるには",
            "ほんとうに訳せるのか",
            "大量の文で学習させると？",
        ],
    ),
]
HUES = {"key": "#00795a", "query": "#a8507f", "encoder": "#0067a3", "decoder": "#b54a00"}
WIDTH, STEP, TOP, MIDDLE, SWING = 430, 35, 24, 138, 13


def knots():
    """(x, y, hue, question) of every knot, from top to bottom; the thread swings."""
    place = 0
    for _, hue, questions in PARTS:
        for question in questions:
            yield MIDDLE + SWING * (-1) ** place, TOP + STEP * place, hue, question
            place += 1


def pages() -> dict[str, str]:
    """Title of a chapter: its page."""
    found = {}
    for path in sorted(ROOT.glob("chapters/week*/[0-9]*_*.md")):
        title = re.search("^# (.+)$", path.read_text(encoding="utf-8"), re.M)[1]
        found[title] = path.relative_to(ROOT).with_suffix("").as_posix()
    return found


def thread(points):
    """One smooth piece between each two knots, in the colour of the knot it leaves."""
    for (x, y, hue, _), (next_x, next_y, _, _) in pairwise(points):
        half = (y + next_y) // 2
        yield f'<path class="{hue}" d="M{x} {y}C{x} {half} {next_x} {half} {next_x} {next_y}"/>'


def draw() -> str:
    points = list(knots())
    height = points[-1][1] + TOP
    colours = "".join(
        f".red-thread .{hue}{{stroke:var(--book-{hue},{colour});color:var(--book-{hue},{colour})}}"
        for hue, colour in HUES.items()
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
        f' height="{height}" fill="currentColor" font-size="15">',
        f"<style>.red-thread path{{fill:none;stroke-width:3;stroke-linecap:round}}{colours}"
        ".red-thread .part{stroke:none;fill:currentColor;font-weight:700;text-anchor:end}"
        ".red-thread .knot{stroke-width:3;fill:var(--pst-color-background,#fff)}"
        ".red-thread a text{text-decoration:underline;text-underline-offset:.2em}"
        ".red-thread a:is(:hover,:focus) .knot{fill:currentColor}</style>",
        '<g class="red-thread">',
        *thread(points),
    ]
    place = 0
    for name, hue, questions in PARTS:
        y = TOP + STEP * place
        lines.append(
            f'<text class="part {hue}" x="{MIDDLE - 30}" y="{y + 5}">{escape(name)}</text>'
        )
        place += len(questions)
    page = pages()
    for x, y, hue, question in points:
        left, top = MIDDLE - 26, y - STEP // 2
        lines += [
            f'<a href="{page[question]}">',
            f'<rect x="{left}" y="{top}" width="{WIDTH - left}" height="{STEP}" fill="none"'
            ' pointer-events="all"/>',
            f'<circle class="knot {hue}" cx="{x}" cy="{y}" r="6"/>',
            f'<text x="{MIDDLE + 38}" y="{y + 5}">{escape(question)}</text></a>',
        ]
    return "\n".join([*lines, "</g>", "</svg>"]) + "\n"
