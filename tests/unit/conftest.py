"""The shapes in lib's signatures are executed: a wrong one fails the test that meets it."""

import tests.shapes
from jaxtyping import install_import_hook

install_import_hook("lib", f"{tests.shapes.__name__}.checked")
