"""The landing page keeps up with the chapters."""

import re

import pytest
from book_support import ROOT, page_names


def test_landing_page_lists_every_chapter_in_order_with_the_times_it_states():
    expected = []
    for name in page_names():
        text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
        if re.fullmatch(r"chapters/week\d+/\d+_\w+", name):
            label, title = re.search(r"^\((ch-[\w-]+)\)=\n# (.+)$", text, re.M).groups()
            times = re.search(r"読む時間の目安：(約 \d+ 分)、実行：(約 \d+ 秒)", text).groups()
            expected.append((title, label, *times))
    row = r"^\| \{ref\}`(.+?) <(ch-[\w-]+)>` \|[^|]+\| (約 \d+ 分) \| (約 \d+ 秒) \|$"
    rows = re.findall(row, (ROOT / "intro.md").read_text(encoding="utf-8"), re.M)
    assert rows == expected


@pytest.mark.parametrize("width", [390, 1280])
def test_map_of_questions_leads_to_every_chapter(visit, width):
    page = visit("intro.html", width=width)
    links = page.locator("svg.drawing[role=group] a")
    chapters = [name for name in page_names() if re.fullmatch(r"chapters/week\d+/\d+_\w+", name)]
    assert links.evaluate_all("all => all.map(a => a.getAttribute('href'))") == [
        f"{name}.html" for name in chapters
    ]
    question, last = links.last.text_content().strip(), links.last
    assert last.bounding_box()["height"] >= 24, "too small for a finger"
    last.click()
    page.wait_for_url(f"**/{chapters[-1]}.html")
    assert page.locator("article h1").inner_text().startswith(question)
