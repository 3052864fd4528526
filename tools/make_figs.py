"""Draws figs/*.svg anew: each figs/src/NAME.py has draw() -> str, the text of figs/NAME.svg.

--check changes nothing and exits 1 when a committed figure differs from what its script gives.
"""

import pathlib
import runpy
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def main(check: bool) -> int:
    stale = []
    for script in sorted((ROOT / "figs" / "src").glob("[a-z]*.py")):
        svg = runpy.run_path(str(script))["draw"]()
        target = ROOT / "figs" / f"{script.stem}.svg"
        if not target.exists() or target.read_text(encoding="utf-8") != svg:
            stale.append(target.relative_to(ROOT))
            if not check:
                target.write_text(svg, encoding="utf-8")
    for path in stale:
        print(f"{path}: " + ("differs from its script; run make figs" if check else "written"))
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
