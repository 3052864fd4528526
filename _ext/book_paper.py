"""The book on paper (LaTeX): parts, a preface, drawings that TeX can read, no folded answers."""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform

PREFACE, APPENDIX = "はじめに", "付録"


def is_drawing(node: nodes.Node) -> bool:
    path = Path(node.get("uri", "")) if isinstance(node, nodes.image) else Path()
    return path.suffix == ".svg" and path.parent.name == "figs"


def latex(text: str) -> nodes.raw:
    return nodes.raw("", text, format="latex")


class Paper(SphinxPostTransform):
    default_priority = 1
    formats = ("latex",)

    def run(self, **kwargs):
        for image in self.document.findall(is_drawing):
            self.print_drawing(image)
        folded = {"design_component": "dropdown"}
        for box in list(self.document.findall(nodes.container)):
            if folded.items() <= box.attributes.items():
                self.unfold(box)
        if self.env.docname == self.config.root_doc:
            self.add_preface()
            self.add_parts()

    def print_drawing(self, image: nodes.image) -> None:
        """TeX reads no SVG; figs/ has a PNG copy of each, to be shown as wide as the SVG."""
        svg = Path(self.app.srcdir, image["uri"]).read_text(encoding="utf-8")
        image["width"] = re.search(r'<svg [^>]*\bwidth="([\d.]+)"', svg)[1] + "px"
        png = str(Path(image["uri"]).with_suffix(".png"))
        image["uri"], image["candidates"] = png, {"*": png}
        self.env.images.add_file(self.env.docname, png)

    def unfold(self, box: nodes.container) -> None:
        head, *rest = box.children
        title = nodes.title("", "", *head.children)
        box.replace_self(nodes.admonition("", title, *rest, ids=box["ids"]))

    def add_preface(self) -> None:
        """What the landing page says before the first part is a chapter without a number."""
        book = next(self.document.findall(nodes.section))
        said = [n for n in book.children[1:] if not any(n.findall(addnodes.start_of_file))]
        for node in said:
            book.remove(node)
        head = [nodes.title("", PREFACE), latex(rf"\markboth{{{PREFACE}}}{{}}")]
        preface = nodes.section("", *head, *said, ids=["preface"])
        book[1:1] = [latex(r"\setcounter{secnumdepth}{-1}"), preface]

    def add_parts(self) -> None:
        trees = self.env.get_doctree(self.config.root_doc).findall(addnodes.toctree)
        parts = {tree["entries"][0][1]: tree["caption"] for tree in trees if tree.get("caption")}
        for page in list(self.document.findall(addnodes.start_of_file)):
            caption = parts.get(page["docname"])
            if caption:
                command = r"\bookappendix" if caption == APPENDIX else ""
                place = page.parent.index(page)
                page.parent.insert(place, latex(rf"\bookpart{{{caption}}}{command}"))


def setup(app):
    app.add_post_transform(Paper)
