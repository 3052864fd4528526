"""The shapes in lib's signatures are executed: a wrong one fails the test that meets it."""

from pathlib import Path

from jaxtyping import install_import_hook

import tests.shapes

LIB = Path(__file__).resolve().parents[2] / "lib"
SHAPED = [f"lib.{p.stem}" for p in sorted(LIB.glob("*.py")) if "jaxtyping" in p.read_text("utf-8")]

install_import_hook(SHAPED, f"{tests.shapes.__name__}.checked")
