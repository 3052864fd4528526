"""The built book: made once if it is not fresh, served from this machine, seen in Chromium."""

import functools
import os
import shutil
import sys
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from book_support import HTML, ROOT, Quiet, SmallBook, Visitor, page_names, pages_with_sliders

from tools import build

BROWSERS = ("chromium", "google-chrome", "chromium-browser")
sys.path.insert(0, str(ROOT / "_ext"))


def pytest_generate_tests(metafunc):
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", page_names())
    if "moving" in metafunc.fixturenames:
        metafunc.parametrize("moving", pages_with_sliders())


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.book)


@pytest.fixture(scope="session")
def book() -> Path:
    if not build.is_fresh():
        assert build.build() == 0, "the book does not build; see the output above"
    return HTML


@pytest.fixture(scope="session")
def site(book):
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(book)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        message = "no Chromium here: install it, or set ALLOW_NO_BROWSER=1"
        (pytest.skip if os.environ.get("ALLOW_NO_BROWSER") == "1" else pytest.fail)(message)
    flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    return {**browser_type_launch_args, "executable_path": path, "args": flags}


@pytest.fixture
def visit(browser, site, book):
    """visit(address, theme=…, width=…, disk=…) -> page; at the end nothing may have gone wrong."""
    visitor = Visitor(browser, site, book)
    yield visitor.open
    visitor.close()


@pytest.fixture
def small_book(tmp_path) -> SmallBook:
    return SmallBook(tmp_path / "book")


@pytest.fixture(scope="session")
def built_book(tmp_path_factory) -> SmallBook:
    """Built as it is; only to be looked at."""
    made = SmallBook(tmp_path_factory.mktemp("built") / "book")
    assert made.build() == 0
    return made
