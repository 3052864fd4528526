"""PNG copies of figs/*.svg for the notebooks (Colab shows no SVG in Markdown), drawn by Chromium.

figs/NAME.png carries the SHA-256 of the figs/NAME.svg it was drawn from, so a stale one is found
without drawing anything, and on a machine without a browser.
"""

import hashlib
import io
import os
import shutil
import sys
from pathlib import Path

from PIL import Image, PngImagePlugin

KEY = "svg-sha256"
PAGE = """<!doctype html><meta charset="utf-8"><style>
:root {{ --pst-color-text-base: #222832; --pst-color-text-muted: #48566b;
  --pst-color-background: #fff; --pst-color-surface: #f3f4f5; --pst-color-border: #c9c9c9; }}
body {{ margin: 0; background: #fff; color: #222832; font-family: "Noto Sans CJK JP", sans-serif }}
#figure {{ display: inline-block; padding: 8px; background: #fff }}
#figure a, #figure a * {{ text-decoration: none !important }}
</style><div id="figure">{svg}</div>"""


def digest(svg: Path) -> str:
    return hashlib.sha256(svg.read_bytes()).hexdigest()


def is_current(svg: Path) -> bool:
    png = svg.with_suffix(".png")
    if not png.exists():
        return False
    with Image.open(png) as image:
        return image.info.get(KEY) == digest(svg)


def browser_path() -> str:
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not found:
        raise SystemExit("figs/*.png を描くには chromium が要ります（apt-get install chromium）")
    return found


def draw(svg: Path) -> Path:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        page = browser.new_page(device_scale_factor=2, viewport={"width": 900, "height": 900})
        page.set_content(PAGE.format(svg=svg.read_text(encoding="utf-8")))
        shot = page.locator("#figure").screenshot()
        browser.close()
    note = PngImagePlugin.PngInfo()
    note.add_text(KEY, digest(svg))
    image = Image.open(io.BytesIO(shot)).convert("RGB").quantize(64)
    target = svg.with_suffix(".png")
    image.save(target, "PNG", optimize=True, pnginfo=note)
    return target


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(draw(Path(name)))
