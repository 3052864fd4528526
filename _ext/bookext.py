"""The book's own Sphinx extension: what the theme and MyST-NB lack for this book.

book_japanese    emphasis, line joining and interface strings in Japanese
book_search      search that finds compounds
book_repository  links to GitHub and Colab, made from the remote
book_paper       the PDF
here             execution cache, MathJax from its package, drawings that take the page's colours
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
from html import escape
from pathlib import Path

import book_japanese
import book_paper
import book_repository
import book_search
from docutils import nodes
from matplotlib import font_manager
from sphinx import addnodes
from sphinx.errors import ExtensionError
from sphinx.transforms.post_transforms import SphinxPostTransform

CARD_FONT = "Noto Sans CJK JP"
TEMPLATES = Path(__file__).parent / "templates"


def cache_key(root: Path) -> str:
    """Hash of everything besides a page's own cells that its outputs depend on."""
    files = [root / "requirements.lock", *(root / "experiments").rglob("*.json")]
    files += [p for p in (root / "lib").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    digest = hashlib.sha256()
    for path in sorted(p for p in files if p.exists()):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def configure(app, config):
    """Values that depend on the checkout or the machine."""
    root = Path(app.srcdir)
    config.templates_path.insert(0, str(TEMPLATES))
    # A new key is a changed configuration: Sphinx reads every page again, and so executes it.
    config.nb_execution_cache_path = str(Path(app.outdir).parent / "cache" / cache_key(root))
    has_font = any(font.name == CARD_FONT for font in font_manager.fontManager.ttflist)
    config.ogp_social_cards = {
        "enable": bool(config.html_baseurl) and has_font,
        "font": CARD_FONT,
        "image_mini": "figs/favicon.png",
        "description_max_length": 70,
    }


def prepare_kernels(root: Path) -> None:
    """Every kernel that the build starts inherits these."""
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ.update(BOOK_STATIC="1", PYTHONPATH=os.pathsep.join(paths), PYTHONHASHSEED="0")


def copy_mathjax(app) -> None:
    """The parts of MathJax that the book uses, from a pinned package: no page needs a CDN."""
    if app.builder.format != "html":
        return
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    if spec is None:
        raise ExtensionError("sphinx-mathjax-offline is not installed (see requirements.lock)")
    source = Path(spec.origin).parent / "static" / "mathjax"
    target = Path(app.outdir) / "_static" / "mathjax"
    for part in ("tex-mml-chtml.js", "output/chtml/fonts", "input/tex/extensions"):
        copy = shutil.copytree if (source / part).is_dir() else shutil.copy
        (target / part).parent.mkdir(parents=True, exist_ok=True)
        if not (target / part).exists():
            copy(source / part, target / part)


class InlineDrawings(SphinxPostTransform):
    """figs/*.svg become part of the page, so that they take its colours; alt becomes the label.

    A link in a drawing names a page of the book.
    """

    default_priority = 200
    formats = ("html",)

    def run(self, **kwargs):
        for image in list(self.document.findall(nodes.image)):
            if not book_paper.is_drawing(image):
                continue
            path = Path(self.app.srcdir, image["uri"])
            svg = re.sub(r"^<\?xml.*?\?>\s*", "", path.read_text(encoding="utf-8"), flags=re.S)
            svg, links = re.subn('(?<=<a href=")[^"]+', self.address, svg)
            label, role = escape(image.get("alt", "")), "group" if links else "img"
            opening = f'<svg class="drawing" role="{role}" aria-label="{label}" '
            svg = svg.replace("<svg ", opening, 1)
            image.replace_self(nodes.raw("", svg, format="html"))

    def address(self, page: re.Match) -> str:
        return self.app.builder.get_relative_uri(self.env.docname, page[0])


def use_labels_as_anchors(app, doctree):
    """The label written above a heading is its anchor, not a number that moves with the text."""
    for section in doctree.findall(nodes.section):
        section["ids"].sort(key=lambda name: bool(re.fullmatch(r"id\d+", name)))


def add_changes(app, docname, source):
    """The page of changes goes on with CHANGELOG.md; each version there gets a label."""
    if docname != "chapters/appendix/changelog":
        return
    path = Path(app.srcdir) / "CHANGELOG.md"
    app.env.note_dependency(str(path))
    versions = path.read_text(encoding="utf-8").split("\n## ")[1:]
    for version in versions:
        label = re.sub(r"[^0-9a-z]+", "-", version.split("\n")[0].lower()).strip("-")
        source[0] += f"\n(sec-changelog-{label or 'unreleased'})=\n## {version}\n"


def unlink_answers(app, doctree):
    """With ANSWERS=0 the answer pages are absent; what would link to them stays as plain text."""
    if os.environ.get("ANSWERS") != "0":
        return
    for link in list(doctree.findall(addnodes.pending_xref)):
        if re.search(r"answers$|-ans-", link.get("reftarget", "")):
            link.replace_self(nodes.Text(link.astext()))


def deduplicate_scripts(app, pagename, templatename, context, doctree):
    """Sphinx 7 emits inline scripts twice (`const THEBE_JS_URL` is then a SyntaxError)."""
    seen = {}
    for script in context["script_files"]:
        name, attributes = getattr(script, "filename", script), getattr(script, "attributes", {})
        seen.setdefault((str(name or ""), str(attributes)), script)
    context["script_files"][:] = seen.values()


def mend_pages(app, exception):
    """What the theme writes: data-theme="auto" has no colours until its script has run.

    What Sphinx writes: a list of references whose children are not items of a list.
    """
    if exception or app.builder.format != "html":
        return
    system = '(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")'
    changes = [
        (' data-theme="auto"', ' data-theme="light"'),
        ('localStorage.getItem("theme") || "auto"', f'localStorage.getItem("theme") || {system}'),
    ]
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for old, new in changes:
            text = text.replace(old, new, 1)
        text = text.replace('role="doc-biblioentry"', 'role="listitem"')
        page.write_text(text, encoding="utf-8")


def setup(app):
    prepare_kernels(Path(app.srcdir))
    for part in (book_japanese, book_search, book_repository, book_paper):
        part.setup(app)
    app.add_post_transform(InlineDrawings)
    app.connect("config-inited", configure, priority=600)
    app.connect("builder-inited", copy_mathjax)
    app.connect("source-read", add_changes)
    app.connect("doctree-read", use_labels_as_anchors)
    app.connect("doctree-read", unlink_answers)
    app.connect("build-finished", mend_pages)
    app.connect("html-page-context", deduplicate_scripts, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
