"""`make browser`: the reports of every assay type are read without scrolling the page sideways, in light and in dark.

A table or figure that is wider than the window scrolls in a box of its own, whose scrollbar is always seen.

The pages are those of the golden archive. With ASSAY_BROWSER_LOOK=folder a picture of each is kept, to be looked at.
"""

import os
from pathlib import Path

import pytest

from assay_lab.portal.pages import render
from support.browser.screenshots import CHROMIUM

PAGES = sorted((Path(__file__).parent.parent / "golden" / "archive").glob("*/REPORT/v001/report.html"))
WINDOWS = {"wide": {"width": 1280, "height": 900}, "narrow": {"width": 400, "height": 800}}
LEGIBLE = 4.5  # WCAG 2.2, 1.4.3: the contrast of text
# Of each text that is seen: its contrast with the nearest background that is not transparent.
CONTRASTS = """() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true})
  const rgb = color => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1)
    return [...canvas.getImageData(0, 0, 1, 1).data] }
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0)
  const behind = one => { for (; one; one = one.parentElement) { const color = getComputedStyle(one).backgroundColor
    if (rgb(color)[3] === 255) return color } return getComputedStyle(document.documentElement).colorScheme === "dark" ? "black" : "white" }
  const found = []
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walk.nextNode()) {
    const said = walk.currentNode.textContent.trim(), one = walk.currentNode.parentElement
    if (!said || one.closest("svg, script, style") || !one.checkVisibility()) continue
    const pair = [light(rgb(getComputedStyle(one).color)), light(rgb(behind(one)))].sort((a, b) => b - a)
    found.push([(pair[0] + 0.05) / (pair[1] + 0.05), said.slice(0, 60)])
  }
  return found
}"""

# Texts that nobody can bring into view, and boxes with more in them than a scrollbar says.
UNREACHABLE = """width => {
  const found = [], scrolls = one => /auto|scroll/.test(getComputedStyle(one).overflowX)
  document.querySelectorAll("details").forEach(one => { one.open = true })
  for (const one of document.querySelectorAll("table, .figures svg")) {
    let box = one.parentElement
    while (box && !scrolls(box)) box = box.parentElement
    const wide = box && box.scrollWidth > box.clientWidth + 1
    if (wide && box.offsetHeight - box.clientHeight < 8) found.push(["no scrollbar", box.className, box.scrollWidth])
    const left = box ? box.getBoundingClientRect().left - box.scrollLeft : 0
    const end = box ? left + box.scrollWidth : width
    const drawing = one.matches("svg") ? one.getBoundingClientRect() : null
    for (const text of one.querySelectorAll("text, th, td")) {
      const place = text.getBoundingClientRect(), said = text.textContent.trim()
      if (!said || !place.width) continue
      const inside = place.left >= left - 1 && place.right <= end + 1
        && (!drawing || place.left >= drawing.left - 1 && place.right <= drawing.right + 1)
      if (!inside) found.push(["cut off", said, Math.round(place.left), Math.round(place.right)])
    }
    if (box && (box.getBoundingClientRect().right > width + 1)) found.push(["box beyond the window", box.className, width])
  }
  return found
}"""
# Texts on one line of a figure that run into each other.
OVERLAPS = """() => [...document.querySelectorAll(".figures svg")].flatMap(drawing => {
  const texts = [...drawing.querySelectorAll("text")].filter(text => !/rotate/.test(text.getAttribute("transform") || ""))
    .map(text => [text.getBoundingClientRect(), text.textContent])
  return texts.flatMap(([a, first], at) => texts.slice(at + 1).filter(([b]) => Math.abs(a.bottom - b.bottom) < 2
    && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1).map(([, second]) => [first, second]))
})"""

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def chromium(browser):
    from playwright.sync_api import sync_playwright

    from support.browser.people import ARGUMENTS

    with sync_playwright() as started:
        opened = started.chromium.launch(
            executable_path=CHROMIUM, args=ARGUMENTS, ignore_default_args=["--hide-scrollbars"]
        )
        yield opened
        opened.close()


@pytest.fixture(params=["light", "dark"])
def scheme(request):
    return request.param


@pytest.fixture(params=WINDOWS)
def window(request):
    return request.param


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.parts[-4])
def test_a_report_fits_and_is_legible(chromium, page, window, scheme):
    context = chromium.new_context(viewport=WINDOWS[window], color_scheme=scheme)
    tab = context.new_page()
    tab.goto(page.as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") <= WINDOWS[window]["width"]
    contrasts = tab.evaluate(CONTRASTS)
    assert len(contrasts) > 50
    assert [text for text in contrasts if text[0] < LEGIBLE] == []
    heights = tab.locator(".figures svg text").evaluate_all(
        "texts => texts.map(text => text.getBoundingClientRect().height)"
    )
    assert min(heights) >= 10, "legible"
    assert tab.evaluate(UNREACHABLE, WINDOWS[window]["width"]) == []
    assert tab.evaluate(OVERLAPS) == []
    if folder := os.environ.get("ASSAY_BROWSER_LOOK"):  # last: a picture hides scrollbars
        tab.screenshot(path=Path(folder) / f"{page.parts[-4]}-{window}-{scheme}.png", full_page=True)
    context.close()


def test_a_page_of_the_lab_fits_a_narrow_window(chromium):
    quote = {
        "line_items": [
            {"description": f"item {n}", "quantity": 10, "unit_price_cents": 179_00, "total_cents": 1_790_00}
            for n in range(3)
        ]
    }
    invoice = {"amount_cents": 2_628_00, "paid_at": None}
    heads = ["Call", "K_D, M", "k_on, 1/(M s)", "k_off, 1/s", "Expression", "Source"]
    results = [
        {
            "title": "Affinity",
            "heads": heads,
            "package_url": "/",
            "rows": [("EGF_M21R_A30F", True, ["9.28e-08"] * 6)],
        }
    ]
    facts = ["prefect-assay egf-binders-second-round 0b4a0fc4", "LAB-001-001"]
    title = "Invoice in_00000000000000000000000000000000000000"
    pages = [
        render(
            "invoice.html",
            title=title,
            status="open",
            facts=facts,
            invoice=invoice,
            quote=quote,
            payable=True,
        ),
        render(
            "experiment.html",
            title="LAB-001-001",
            status="done",
            facts=facts,
            results=results,
            updates=[],
            refresh=False,
        ),
    ]
    context = chromium.new_context(viewport=WINDOWS["narrow"])
    tab = context.new_page()
    for number, text in enumerate(pages):
        tab.set_content(text)
        assert tab.evaluate("document.documentElement.scrollWidth") <= WINDOWS["narrow"]["width"]
        assert tab.evaluate(UNREACHABLE, WINDOWS["narrow"]["width"]) == []
        if folder := os.environ.get("ASSAY_BROWSER_LOOK"):
            tab.screenshot(path=Path(folder) / f"lab-{number}-narrow.png", full_page=True)
    context.close()
