"""Prefect's two user interfaces, as a person uses them: where the buttons are."""

import re
from typing import Protocol

from playwright.sync_api import Locator, Page, Response

_BEFORE = "Nothing is ordered before you approve"
_FADED_IN = """element => { for (let one = element; one; one = one.parentElement)
  if (getComputedStyle(one).opacity !== "1") return false
  return true }"""


class Interface(Protocol):
    """What both interfaces can do."""

    root: str

    def field(self, page: Page, title: str) -> Locator: ...
    def error(self, page: Page, title: str) -> Locator: ...
    def approve(self, page: Page, run: str) -> Response: ...
    def asked(self, page: Page) -> Locator: ...
    def submit(self, page: Page) -> Locator: ...


class V1:
    """Prefect's older interface."""

    root = ""

    def field(self, page: Page, title: str) -> Locator:
        # By its own title: the help of other fields may have the word. The last, because a form is within a field.
        label = page.get_by_text(re.compile(rf"^\s*{re.escape(title)}(\s*\(Optional\))?\s*$"))
        return page.locator(".p-label").filter(has=label).last.locator("textarea")

    def error(self, page: Page, title: str) -> Locator:
        # Rules between fields do not reach its own check: the server refuses the run, and a notice says why.
        return page.get_by_text(f"'{title.lower()}' is a required property").first

    def approve(self, page: Page, run: str) -> Response:
        page.goto(f"{self.root}/runs/flow-run/{run}", wait_until="commit")
        page.get_by_role("button", name="Resume").first.click()
        page.get_by_text(_BEFORE).wait_for()
        decision = page.locator(".p-modal .p-select-button__control")
        decision.focus()
        decision.press("ArrowDown")
        page.get_by_role("option", name="approve", exact=True).click()
        return _resumed(page, self.submit(page), page.locator(".p-modal"))

    def asked(self, page: Page) -> Locator:
        """The field of the decision, in the form that a suspended run's page opens."""
        if page.viewport_size["width"] < 640:  # the button is in the run's menu
            page.locator(".p-icon-button-menu").first.click()
            page.locator(".p-overflow-menu-item").get_by_text("Resume").click()
        else:
            page.get_by_role("button", name="Resume").first.click()
        page.get_by_text(_BEFORE).wait_for()
        decision = page.locator(".p-modal .p-select-button").first
        page.wait_for_function(_FADED_IN, arg=decision.element_handle())
        return decision

    def submit(self, page: Page) -> Locator:
        """The button that sends the form."""
        return page.locator(".p-modal").get_by_role("button", name="Submit")


class V2:
    """Prefect's newer interface, the default."""

    root = "/v2"

    def field(self, page: Page, title: str) -> Locator:
        # The first: a field of the options may have the word in its title, too.
        return page.get_by_role("textbox", name=title).first

    def error(self, page: Page, title: str) -> Locator:
        return page.locator("p.text-destructive", has_text=f"'{title.lower()}' is a required property")

    def approve(self, page: Page, run: str) -> Response:
        page.goto(f"{self.root}/runs/flow-run/{run}", wait_until="commit")
        self.asked(page).click()
        page.get_by_role("option", name="approve", exact=True).click()
        return _resumed(page, self.submit(page), self._dialog(page))

    def asked(self, page: Page) -> Locator:
        """The field of the decision, in the form that a suspended run's page opens."""
        page.locator("button[aria-haspopup=menu]").first.click()
        page.get_by_role("menuitem", name="Resume").click()
        page.get_by_text(_BEFORE).wait_for()  # comes later than the form
        return page.get_by_role("dialog").get_by_role("button", name="Select")

    def submit(self, page: Page) -> Locator:
        """The button that sends the form."""
        return self._dialog(page).get_by_role("button", name="Resume")

    def _dialog(self, page: Page) -> Locator:
        # The first: a list of choices that is closing is a dialog, too.
        return page.get_by_role("dialog").or_(page.get_by_role("alertdialog")).first


def _resumed(page: Page, button: Locator, dialog: Locator) -> Response:
    """Click, and wait for the answer of the API and for the dialog to close."""
    with page.expect_response(lambda r: r.url.endswith("/resume") and r.request.method == "POST") as got:
        button.click()
    dialog.wait_for(state="hidden")
    return got.value
