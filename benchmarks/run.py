"""Runs every benchmarks/*.py that has rows() and writes benchmarks/results.json.

A row is {name, ours, peer, ratio, unit, benchmark}; ratio is peer / ours within this one run.
Given names, it runs those and keeps the rows of the others.
"""

import json
import platform
import sys
from importlib import import_module
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))


def main(names: list[str]) -> None:
    chosen = names or sorted(p.stem for p in HERE.glob("*.py") if p.stem != "run")
    rows = [
        row | {"benchmark": name}
        for name in chosen
        for row in import_module(f"benchmarks.{name}").rows()
    ]
    for row in rows:
        peer = "" if row["peer"] is None else f"  peer {row['peer']:.4g}  x{row['ratio']:.3g}"
        print(f"{row['name']}: {row['ours']:.4g} {row['unit']}{peer}")
    results = HERE / "results.json"
    old = json.loads(results.read_text(encoding="utf-8"))["rows"] if results.exists() else []
    kept = [row for row in old if names and row.get("benchmark") not in (None, *chosen)]
    about = {"python": platform.python_version(), "torch": torch.__version__.split("+")[0]}
    text = json.dumps({"versions": about, "rows": kept + rows}, ensure_ascii=False, indent=1)
    results.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
