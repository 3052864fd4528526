"""The page's icon: two knots on the thread."""

ICON = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" width="96" height="96">
<path d="M21 7C21 16 11 16 11 25" fill="none" stroke="#0067a3" stroke-width="3.5"/>
<circle cx="21" cy="7" r="4.5" fill="#fff" stroke="#0067a3" stroke-width="3.5"/>
<circle cx="11" cy="25" r="4.5" fill="#fff" stroke="#b54a00" stroke-width="3.5"/>
</svg>
"""


def draw() -> str:
    return ICON
