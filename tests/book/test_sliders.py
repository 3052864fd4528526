"""Sliders move the picture without Python, by mouse and by keyboard."""

import pytest

PICTURE = "e => e.closest('.explore').querySelector('img').src"


def sliders(page):
    return page.locator(".explore input[type=range]").all()


def test_every_slider_moves_its_picture(visit, moving):
    page = visit(f"{moving}.html")
    assert len(sliders(page)) >= page.locator(".explore").count() > 0
    check_mouse_and_keyboard(page)
    check_names(page)


def check_mouse_and_keyboard(page):
    for slider in sliders(page):
        slider.scroll_into_view_if_needed()
        before, box = slider.evaluate(PICTURE), slider.bounding_box()
        page.mouse.click(box["x"] + 2, box["y"] + box["height"] / 2)
        assert slider.input_value() == "0"
        first = slider.evaluate(PICTURE)
        slider.press("End")
        assert slider.input_value() == slider.get_attribute("max")
        last = slider.evaluate(PICTURE)
        assert len({before, first, last}) >= 2 and first != last, "the picture does not move"
        slider.press("ArrowLeft")
        assert int(slider.input_value()) == int(slider.get_attribute("max")) - 1


def check_names(page):
    for slider in sliders(page):
        slider.press("Home")
        output = slider.locator("xpath=../output").inner_text()
        assert output and output == slider.get_attribute("aria-valuetext")
        assert slider.get_attribute("aria-label")
        assert slider.bounding_box()["height"] >= 24, "too small for a finger"


def test_pictures_of_a_slider_keep_their_size(visit, moving):
    page = visit(f"{moving}.html", width=390)
    for slider in sliders(page):
        picture = slider.locator("xpath=ancestor::div[@class='explore']//img")
        sizes = set()
        for key in ("Home", "End"):
            slider.press(key)
            page.wait_for_function(
                "document.images.length && [...document.images].every(i => i.complete)"
            )
            box = picture.bounding_box()
            sizes.add((round(box["width"]), round(box["height"])))
        assert len(sizes) == 1
        assert box["width"] <= 390


@pytest.mark.parametrize("width", [1280])
def test_without_javascript_the_picture_is_there_with_a_note(visit, moving, width):
    page = visit(f"{moving}.html", java_script_enabled=False)
    assert page.locator("html").get_attribute("data-theme") == "light"
    for figure in page.locator(".explore").all():
        assert figure.locator("img").is_visible()
        assert "JavaScript" in figure.locator("noscript").inner_text()
