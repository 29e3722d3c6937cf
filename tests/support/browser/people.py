"""A person with a browser: each thing to do in a tab of its own, and everything that went wrong in the tabs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Page, Request, Response, sync_playwright

from support.browser.pages import V1, V2, Interface

INTERFACES: dict[str, Interface] = {"v1": V1(), "v2": V2()}
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # V2 wants a statistics service
]
# A page that is short of a processor takes its time; what does not come at all is an error.
PATIENCE_MS = 180_000
TOASTS = """new MutationObserver(() => document
  .querySelectorAll('[data-sonner-toast][data-type="error"]:not([data-told]), .p-toast__icon--error:not([data-told])')
  .forEach(toast => { toast.dataset.told = 1
    let said = toast  // of V1 an icon is found, within the notice
    while (/toast/.test(said.parentElement?.className)) said = said.parentElement
    setTimeout(() => errorToast(said.textContent), 100) })
).observe(document, {childList: true, subtree: true})"""

# A run's page draws its timeline at every frame, here with the processor alone: as on a slow screen.
SLOW_SCREEN = """window.requestAnimationFrame = draw => setTimeout(() => draw(performance.now()), 300)
window.cancelAnimationFrame = clearTimeout"""


class Person:
    """Somebody with a browser, who uses one of the interfaces."""

    def __init__(self, chromium: str, ui_url: str, interface: Interface) -> None:
        self.interface = interface
        self.wrong: list[str] = []
        self.expected: list[str] = []  # parts of what a test provokes
        self._api = f"{ui_url}/api/"
        self._own = ui_url
        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        self._context = self._browser.new_context(
            base_url=ui_url, reduced_motion="reduce", viewport={"width": 1000, "height": 800}
        )
        self._context.set_default_timeout(PATIENCE_MS)
        self._context.set_default_navigation_timeout(PATIENCE_MS)
        self._context.expose_binding("errorToast", lambda _, text: self.wrong.append(f"error toast: {text}"))
        self._context.add_init_script(TOASTS)
        self._context.add_init_script(SLOW_SCREEN)
        self._context.on("response", self._answered)
        self._context.on("requestfailed", self._failed)

    def approve(self, run: str) -> dict[str, Any]:
        """Approve what a run asks, in a new tab; what the API said to it."""
        with self._tab() as page:
            body: dict[str, Any] = self.interface.approve(page, run).json()
            return body

    def close(self) -> None:
        """Close the browser."""
        self._browser.close()
        self._playwright.stop()

    @contextmanager
    def _tab(self) -> Iterator[Page]:
        page = self._context.new_page()
        try:
            yield page
        finally:
            page.close()

    def _answered(self, response: Response) -> None:
        if response.url.startswith(self._api):
            bad = response.status >= 400
        else:  # the interfaces ask for icons that are not there
            bad = response.url.startswith(self._own) and response.status >= 500
        if bad:
            self.wrong.append(f"{response.status} {response.request.method} {response.url}")

    def _failed(self, request: Request) -> None:
        # aborted: by the page itself, when it shows another view or is closed
        if request.url.startswith(self._own) and request.failure != "net::ERR_ABORTED":
            self.wrong.append(f"{request.failure} {request.method} {request.url}")
