"""`make browser`: what a person has to read fits the window, in both of Prefect's user interfaces and at two sizes.

The form, the question about money and its details, the sleeping run, the results, what remains after a cancellation, and the report. With
ASSAY_BROWSER_LOOK=folder the window of each is kept, to be looked at; with ASSAY_BROWSER_PICTURES=docs/images the pictures
of docs/quickstart.md that other tests do not take are made again.
"""

import os
import re
from pathlib import Path

import pytest

from prefect_assay.campaigns.stop import find_log, stop_log
from prefect_assay.deployments.presets import fill_account_into_forms
from support.accounts import flow_parameters, save_account
from support.browser.steps import asks, in_production
from support.runs.world import eventually

BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"  # measured: K_D 9e-8 M
WINDOWS = {"wide": {"width": 1280, "height": 900}, "narrow": {"width": 400, "height": 800}}
SECONDS = 180
LONG_NAME = "egfr-binders-second-round"
FORM = (
    "Designs",
    "What to measure",
    "Account",
    "Spend without asking up to (USD)",
    "Campaign name",
    "More options",
)
AT_ITS_PLACE = """element => [...element.getClientRects()].every(box =>  // one for each line of a text
  [box.top + 1, box.bottom - 2].every(y => element.contains(document.elementFromPoint(box.x + box.width / 2, y))))"""
DOCUMENTED = {"form", "approval", "canceled", "results", "report"}

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", autouse=True)
def account(world):
    """The account that `init` saves, in the forms. Saved before a browser is there: within its loop Prefect would save nothing."""
    made = flow_parameters(world.shared())["account"]
    saved = save_account(made.model_copy(update={"owner": "Structural Biology"}), "main")
    fill_account_into_forms(world.api)
    return saved


@pytest.fixture(scope="module")
def asking(world):
    """A campaign of a table with a design twice, which asks for its price because nobody has said an amount."""
    table = world.folder / "designs.csv"
    rows = [f"egf_{n},{BINDER[: len(BINDER) - n]},0.{9 - n}" for n in range(4)]
    table.write_text("\n".join(["name,sequence,ipTM", *rows, f"again,{BINDER},0.1"]) + "\n")
    run = world.campaign(table, campaign_id=LONG_NAME, spend_up_to_usd=None)
    return eventually(lambda: (r := world.run(run)) and asks(r) and r, seconds=SECONDS, what="the question")


@pytest.fixture(scope="module")
def measured(world):
    """A campaign with results."""
    run = world.campaign(world.designs("egfr-done", BINDER), campaign_id="egfr-done")
    world.asleep(run, seconds=SECONDS)
    in_production(world, run, seconds=SECONDS)
    world.advance(days=16)
    return world.until(run, "Completed", seconds=SECONDS)


@pytest.fixture(scope="module")
def canceled(world, account):
    """A canceled campaign whose experiment is still running in the laboratory, and what is known of it."""
    run = world.experiment("egfr-canceled", BINDER)
    world.asleep(run, seconds=SECONDS)
    stop_log(account, find_log(world.archive, "egfr-canceled"), person="Ada", how="a test")
    return run


@pytest.fixture(params=WINDOWS)
def window(request):
    return request.param


@pytest.fixture
def opened(person, window):
    """A page of the interface in this window, kept to be looked at when the test ends."""
    with person._tab() as page:
        page.set_viewport_size(WINDOWS[window])

        def go(path, text):
            page.goto(path if "://" in path else f"{person.interface.root}{path}", wait_until="commit")
            page.get_by_text(text).first.wait_for()
            page.wait_for_load_state("networkidle")
            return page

        yield go


def kept(page, name, person, window):
    if folder := os.environ.get("ASSAY_BROWSER_LOOK"):
        page.screenshot(path=Path(folder) / f"{name}-{person.name}-{window}.png")
    if (folder := os.environ.get("ASSAY_BROWSER_PICTURES")) and window == "wide" and name in DOCUMENTED:
        page.screenshot(path=Path(folder) / f"ui-{name}-{person.name}.png")


def in_window(page, locator):
    """Whether all of an element is seen without scrolling, the page or a part of it."""
    box, size = locator.bounding_box(), page.viewport_size
    return (
        box is not None
        and box["x"] >= 0
        and box["y"] >= 0
        and box["x"] + box["width"] <= size["width"]
        and box["y"] + box["height"] <= size["height"]
        and locator.evaluate(AT_ITS_PLACE)
    )


def test_the_form_begins_with_what_a_person_has_to_say(world, person, window, opened):
    served = world.api.read_deployment_by_name("campaign/assay-campaign")
    page = opened(f"/deployments/deployment/{served.id}/run", "Designs")
    kept(page, "form", person, window)
    assert in_window(page, person.interface.field(page, "Designs"))
    titles = [page.get_by_text(re.compile(rf"^\s*{re.escape(t)}(\s*\(Optional\))?\s*$")).first for t in FORM]
    tops = [title.bounding_box()["y"] for title in titles]
    assert tops == sorted(tops)
    page.get_by_text("main", exact=True).first.wait_for()  # the account is filled in


def test_price_account_and_decision_are_seen_without_scrolling(asking, person, window, opened):
    page = opened(f"/runs/flow-run/{asking.id}", "Suspended")
    decision = person.interface.asked(page)
    kept(page, "approval", person, window)
    assert in_window(page, decision)
    assert in_window(page, page.get_by_text(re.compile(r"costs [\d,.]+ USD without VAT")).last)
    assert in_window(page, page.get_by_text("(simulated)").last)
    assert in_window(page, person.interface.submit(page))


def test_an_answer_without_a_decision_is_refused_and_the_question_stays_open(world, asking, person, opened):
    person.expected = ["'decision'"]  # V2 says it in a notice
    page = opened(f"/runs/flow-run/{asking.id}", "Suspended")
    person.interface.asked(page)
    person.interface.submit(page).click()
    page.get_by_text("'decision' is a required property").first.wait_for()
    assert asks(world.run(asking))


def test_all_details_of_a_question_begin_with_the_decision(world, asking, person, window, opened):
    (artifact,) = world.artifacts(asking, "assay-question-")
    page = opened(f"/artifacts/artifact/{artifact.id}", "What it is about")
    page.get_by_text("without VAT.").first.scroll_into_view_if_needed()
    kept(page, "question", person, window)
    for decision in ("approve", "reject"):
        assert in_window(page, page.locator("li").get_by_text(decision, exact=True).first)


def test_a_sleeping_run_is_seen_to_sleep(asking, person, window, opened):
    page = opened(f"/runs/flow-run/{asking.id}", "Suspended")
    kept(page, "suspended", person, window)
    assert in_window(page, page.get_by_text("Suspended").first)


def test_the_results_are_within_the_window(world, measured, person, window, opened):
    artifact = max(world.artifacts(measured, "assay-campaign-report-"), key=lambda one: one.created)
    page = opened(f"/artifacts/artifact/{artifact.id}", "Results of 1 of 1 experiment")
    table = page.locator("table").first
    table.wait_for()
    table.scroll_into_view_if_needed()
    kept(page, "results", person, window)
    cells = table.locator("td, th")
    edges = cells.evaluate_all("cells => cells.map(cell => cell.getBoundingClientRect().right)")
    assert len(edges) >= 8
    if window == "wide":  # elsewhere the table is scrolled
        assert max(edges) <= page.viewport_size["width"]


def test_what_remains_after_a_cancellation_is_read_at_once(world, canceled, person, window, opened):
    (artifact,) = world.artifacts(canceled, "assay-canceled-")
    page = opened(f"/artifacts/artifact/{artifact.id}", "Ordered")
    kept(page, "canceled", person, window)
    notice = page.get_by_text("is billed").first
    notice.scroll_into_view_if_needed()
    assert in_window(page, notice)


def test_the_report_has_no_text_beside_the_window(world, measured, person, window, opened):
    (report,) = Path(world.archive.root).glob("**/egfr-done/REPORT/v*/report.html")
    page = opened(report.as_uri(), "Campaign egfr-done")
    kept(page, "report", person, window)
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    sizes = page.locator(".figures svg text").evaluate_all(
        "texts => texts.map(text => text.getBoundingClientRect().height)"
    )
    assert min(sizes) >= 9, "legible"
