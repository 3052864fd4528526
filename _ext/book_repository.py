"""Links to GitHub and Colab, made from the checkout's own remote (a fork needs no editing), and to
files that a reader can keep."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform

DOWNLOADS = ("notebooks.zip", "book.zip", "book.pdf")


class Repository(NamedTuple):
    owner: str
    name: str

    @property
    def url(self) -> str:
        return f"https://github.com/{self.owner}/{self.name}"

    @property
    def site(self) -> str:
        host = f"{self.owner.lower()}.github.io"
        return f"https://{host}/" if self.name.lower() == host else f"https://{host}/{self.name}/"


@cache
def git(root: Path, *arguments: str) -> str:
    """Output of a git command, or an empty string where it fails or git is absent."""
    try:
        run = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)
    except OSError:
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""


def parse_remote(address: str) -> Repository | None:
    """Owner and name only: the address itself can hold a token."""
    found = re.search(r"(?:^|[/@.])github\.com[:/]+([\w.-]+)/([\w.-]+?)(?:\.git)?/?$", address)
    return Repository(*found.groups()) if found else None


def find_repository(root: Path) -> Repository | None:
    return parse_remote(git(root, "remote", "get-url", "origin"))


def ref_for(root: Path, path: str, branch: str) -> str:
    """The latest release that has the file, so that a class's notebooks stay as they are."""
    tag = git(root, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*")
    return tag if tag and git(root, "ls-tree", "--name-only", tag, path) else branch


def version(root: Path) -> str:
    """The release, or how far from it the checkout is, or the commit."""
    return git(root, "describe", "--tags", "--always", "--match", "v[0-9]*")


def notebook_of(root: Path, pagename: str) -> str | None:
    """The notebook that a page's reader runs, relative to the root."""
    exercise = re.fullmatch(r"chapters/(week\d+)/exercises", pagename)
    week = exercise and exercise[1]
    path = f"exercises/release/{week}/{week}.ipynb" if week else f"{pagename}.ipynb"
    return path if (root / path).is_file() else None


def source_of(root: Path, pagename: str, suffix: str) -> str:
    """The file to edit: exercise pages are generated."""
    generated = re.fullmatch(r"chapters/(week\d+)/(exercises|answers)", pagename)
    return f"exercises/{generated[1]}.md" if generated else pagename + suffix


def configure(app, config):
    options, repository = config.html_theme_options, find_repository(Path(app.srcdir))
    # The theme's own buttons would point to jupyter-book's repository, or to a .md file on Colab.
    options.update(launch_buttons={}, repository_url=repository.url if repository else "")
    options.update(dict.fromkeys(("use_repository_button", "use_issues_button"), False))
    options.update(use_edit_page_button=False, use_source_button=False)
    config.html_baseurl = config.ogp_site_url = repository.site if repository else ""


def links(root: Path, repository: Repository, pagename: str, title: str, suffix: str, branch: str):
    """What the header offers on GitHub and Colab."""
    issue = {
        "title": f"誤りの報告：{title}",
        "body": f"ページ：{repository.site}{pagename}.html\n版：{version(root)}\n\n"
        "節や図の名前：\n\nどこが、どう違いますか：\n\n",
    }
    found = {
        "repository_url": repository.url,
        "edit_url": f"{repository.url}/edit/{branch}/{source_of(root, pagename, suffix)}",
        "issue_url": f"{repository.url}/issues/new?{urlencode(issue, quote_via=quote)}",
    }
    notebook = notebook_of(root, pagename)
    if notebook:
        address = f"{repository.owner}/{repository.name}/blob/{ref_for(root, notebook, branch)}"
        found["colab_url"] = f"https://colab.research.google.com/github/{address}/{notebook}"
    return found


def add_links(app, pagename, templatename, context, doctree):
    """Offers the committed notebook, not the executed one, for download and on Colab."""
    root, suffix = Path(app.srcdir), context.get("page_source_suffix")
    if doctree is None or not suffix:
        return
    notebook = notebook_of(root, pagename)
    if notebook:
        context["notebook_url"] = context["pathto"](f"_sources/{pagename}.ipynb", 1)
    repository = find_repository(root)
    if repository:
        branch = app.config.html_theme_options.get("repository_branch") or "main"
        title = app.env.titles[pagename].astext()
        context.update(links(root, repository, pagename, title, suffix, branch))


class LinkDownloads(SphinxPostTransform):
    """Files that tools/ puts beside the pages: neither pages nor sources, so MyST finds none."""

    default_priority = 5

    def run(self, **kwargs):
        for link in list(self.document.findall(addnodes.pending_xref)):
            name = link.get("reftarget", "")
            if name in DOWNLOADS and self.app.builder.format == "html":
                link.replace_self(nodes.reference("", link.astext(), refuri=name))
            elif name in DOWNLOADS:
                link.replace_self(nodes.Text(link.astext()))


def copy_notebooks(app, exception):
    """Every build: a page that is not written again may still have a new notebook."""
    root = Path(app.srcdir)
    for pagename in app.env.found_docs if app.builder.format == "html" else ():
        notebook = notebook_of(root, pagename)
        if notebook:
            copy = Path(app.outdir, "_sources", pagename).with_suffix(".ipynb")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / notebook, copy)


def setup(app):
    app.add_post_transform(LinkDownloads)
    app.connect("build-finished", copy_notebooks)
    app.connect("config-inited", configure, priority=500)
    app.connect("html-page-context", add_links, priority=600)
