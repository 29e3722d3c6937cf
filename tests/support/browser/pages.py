"""Prefect's two user interfaces, as a person uses them: where the buttons are.

Each thing to do ends when the page shows that it is done, and gives the API's answer to its last click.
"""

import re
from collections.abc import Callable
from typing import Protocol

from playwright.sync_api import Locator, Page, Response

_BEFORE = "Nothing is ordered before you approve"
_FADED_IN = """element => { for (let one = element; one; one = one.parentElement)
  if (getComputedStyle(one).opacity !== "1") return false
  return true }"""


class Interface(Protocol):
    """What both interfaces can do; each gives the answer to its last click."""

    def start(self, page: Page, deployment: str, campaign_id: str) -> Response: ...
    def field(self, page: Page, title: str) -> Locator: ...
    def error(self, page: Page, title: str) -> Locator: ...
    def retry(self, page: Page, run: str) -> Response: ...
    def approve(self, page: Page, run: str) -> Response: ...
    def resume(self, page: Page, run: str) -> Response: ...
    def asked(self, page: Page) -> Locator: ...
    def submit(self, page: Page) -> Locator: ...


class V1:
    """Prefect's older interface."""

    root = ""

    def start(self, page: Page, deployment: str, campaign_id: str) -> Response:
        page.goto(f"{self.root}/deployments/deployment/{deployment}/run", wait_until="commit")
        self.field(page, "Campaign name").fill(campaign_id)
        answer = _answer(page, "create_flow_run", page.get_by_role("button", name="Submit"))
        page.wait_for_url(lambda url: not url.endswith("/run"), wait_until="commit")
        return answer

    def field(self, page: Page, title: str) -> Locator:
        # By its own title: the help of other fields may have the word. The last, because a form is within a field.
        label = page.get_by_text(re.compile(rf"^\s*{re.escape(title)}(\s*\(Optional\))?\s*$"))
        return page.locator(".p-label").filter(has=label).last.locator("textarea")

    def error(self, page: Page, title: str) -> Locator:
        # Rules between fields do not reach its own check: the server refuses the run, and a notice says why.
        return page.get_by_text(f"'{title.lower()}' is a required property").first

    def retry(self, page: Page, run: str) -> Response:
        return self._in_dialog(page, run, "Retry", "Retry", "set_state")

    def approve(self, page: Page, run: str) -> Response:
        return self._in_dialog(page, run, "Resume", "Submit", "resume", self._choose)

    def resume(self, page: Page, run: str) -> Response:
        return self._in_dialog(page, run, "Resume", "Submit", "resume")

    def _in_dialog(
        self,
        page: Page,
        run: str,
        first: str,
        last: str,
        call: str,
        fill: Callable[[Page], None] | None = None,
    ) -> Response:
        page.goto(f"{self.root}/runs/flow-run/{run}", wait_until="commit")
        page.get_by_role("button", name=first).first.click()
        dialog = page.locator(".p-modal")
        if fill:
            fill(page)
        answer = _answer(page, call, dialog.get_by_role("button", name=last))
        dialog.wait_for(state="hidden")
        return answer

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

    def _choose(self, page: Page) -> None:
        page.get_by_text(_BEFORE).wait_for()
        decision = page.locator(".p-modal .p-select-button__control")
        decision.focus()
        decision.press("ArrowDown")
        page.get_by_role("option", name="approve", exact=True).click()


class V2:
    """Prefect's newer interface, the default."""

    root = "/v2"

    def start(self, page: Page, deployment: str, campaign_id: str) -> Response:
        page.goto(f"{self.root}/deployments/deployment/{deployment}/run", wait_until="commit")
        page.get_by_role("textbox", name="Campaign name").fill(campaign_id)
        answer = _answer(page, "create_flow_run", page.get_by_role("button", name="Submit"))
        page.wait_for_url(lambda url: not url.endswith("/run"), wait_until="commit")
        return answer

    def field(self, page: Page, title: str) -> Locator:
        # The first: a field of the options may have the word in its title, too.
        return page.get_by_role("textbox", name=title).first

    def error(self, page: Page, title: str) -> Locator:
        return page.locator("p.text-destructive", has_text=f"'{title.lower()}' is a required property")

    def retry(self, page: Page, run: str) -> Response:
        return self._in_dialog(page, run, "Retry", "set_state")

    def approve(self, page: Page, run: str) -> Response:
        return self._in_dialog(page, run, "Resume", "resume", self._choose)

    def resume(self, page: Page, run: str) -> Response:
        return self._in_dialog(page, run, "Resume", "resume")

    def _in_dialog(
        self, page: Page, run: str, name: str, call: str, fill: Callable[[Page], None] | None = None
    ) -> Response:
        page.goto(f"{self.root}/runs/flow-run/{run}", wait_until="commit")
        page.locator("button[aria-haspopup=menu]").first.click()
        page.get_by_role("menuitem", name=name).click()
        # The first: a list of choices that is closing is a dialog, too.
        dialog = page.get_by_role("dialog").or_(page.get_by_role("alertdialog")).first
        if fill:
            fill(page)
        answer = _answer(page, call, dialog.get_by_role("button", name=name))
        dialog.wait_for(state="hidden")
        return answer

    def asked(self, page: Page) -> Locator:
        """The field of the decision, in the form that a suspended run's page opens."""
        page.locator("button[aria-haspopup=menu]").first.click()
        page.get_by_role("menuitem", name="Resume").click()
        page.get_by_text(_BEFORE).wait_for()  # comes later than the form
        return page.get_by_role("dialog").get_by_role("button", name="Select")

    def submit(self, page: Page) -> Locator:
        """The button that sends the form."""
        return (
            page.get_by_role("dialog")
            .or_(page.get_by_role("alertdialog"))
            .first.get_by_role("button", name="Resume")
        )

    def _choose(self, page: Page) -> None:
        page.get_by_text(_BEFORE).wait_for()  # comes later than the form
        page.get_by_role("dialog").get_by_role("button", name="Select").click()
        page.get_by_role("option", name="approve", exact=True).click()


def _answer(page: Page, call: str, button: Locator) -> Response:
    """Click, and wait for the answer to the call that the click is for."""
    with page.expect_response(lambda r: r.url.endswith(f"/{call}") and r.request.method == "POST") as got:
        button.click()
    return got.value
