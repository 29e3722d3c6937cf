"""Persons with browsers: each thing to do in a tab of its own, and everything that the tabs were answered."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Self

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
        self.answers: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.expected: list[str] = []  # parts of what a test provokes
        self.page_errors: Counter[str] = Counter()
        self.seconds: list[float] = []
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
        self._context.on("weberror", lambda error: self.page_errors.update([str(error.error)[:120]]))

    def click(self, action: str, *what: str) -> dict[str, Any]:
        """Do one thing in a new tab; what the API said to it."""
        began = time.monotonic()
        with self._tab() as page:
            answer = getattr(self.interface, action)(page, *what)
            body: dict[str, Any] = answer.json()
        self.seconds.append(time.monotonic() - began)
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
            self.answers[str(response.status)] += 1
            bad = response.status >= 400
        else:  # the interfaces ask for icons that are not there
            bad = response.url.startswith(self._own) and response.status >= 500
        if bad:
            self.wrong.append(f"{response.status} {response.request.method} {response.url}")

    def _failed(self, request: Request) -> None:
        # aborted: by the page itself, when it shows another view or is closed
        if request.url.startswith(self._own) and request.failure != "net::ERR_ABORTED":
            self.wrong.append(f"{request.failure} {request.method} {request.url}")


class Crowd:
    """Persons at work at once, named by their interface; a browser must stay in one thread."""

    def __init__(self, chromium: str, ui_url: str, names: Iterable[str]) -> None:
        self.people: dict[str, Person] = {}
        self._chromium, self._ui_url = chromium, ui_url
        self._threads = {name: ThreadPoolExecutor(1) for name in names}

    def __enter__(self) -> Self:
        self._everybody(self._arrive)
        return self

    def __exit__(self, *_: object) -> None:
        self._everybody(lambda name: self.people[name].close())
        for thread in self._threads.values():
            thread.shutdown()

    def click(self, action: str, items: dict[str, list[tuple[str, ...]]]) -> dict[str, list[dict[str, Any]]]:
        """Everybody does one thing to each of their items; what was answered, in the same order."""
        return self._everybody(lambda name: [self.people[name].click(action, *item) for item in items[name]])

    def _arrive(self, name: str) -> None:
        self.people[name] = Person(self._chromium, self._ui_url, INTERFACES[name.partition("-")[0]])

    def _everybody(self, do: Callable[[str], Any]) -> dict[str, Any]:
        going = {name: thread.submit(do, name) for name, thread in self._threads.items()}
        return {name: one.result() for name, one in going.items()}
