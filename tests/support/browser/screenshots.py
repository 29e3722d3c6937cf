"""The pictures of a report for the README and docs/results.md: light and dark, wide and narrow.

`cd tests && python -m support.browser.screenshots REPORT.html FOLDER`. Needs Chromium only
(ASSAY_BROWSER_CHROMIUM).
"""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

CHROMIUM = os.environ.get("ASSAY_BROWSER_CHROMIUM", "/usr/bin/chromium")


def reason_not_to_click() -> str | None:
    """Why there is no browser that a test can use, or None."""
    if not find_spec("playwright"):
        return "no playwright here: pip install playwright"
    if not Path(CHROMIUM).exists():
        return f"no Chromium at {CHROMIUM}: install it, or set ASSAY_BROWSER_CHROMIUM"
    return None


@dataclass(frozen=True)
class Shot:
    """One picture: its size in CSS pixels and the colour scheme of the system."""

    name: str
    width: int
    height: int
    dark: bool


SHOTS = (
    Shot("report-light", 1400, 1500, dark=False),
    Shot("report-dark", 1400, 1500, dark=True),
    # Headless Chromium has no window below 500 pixels; a frame of 400 shows what a phone does.
    Shot("report-narrow", 400, 1200, dark=False),
    Shot("report-narrow-dark", 400, 1200, dark=True),
)


def take(report: Path, shot: Shot, folder: Path) -> None:
    """Draw the page in headless Chromium and write `<name>.png`."""
    target = folder / f"{shot.name}.png"
    with tempfile.TemporaryDirectory() as profile:
        frame = Path(profile) / "frame.html"
        frame.write_text(
            "<!doctype html><style>body{margin:0}iframe{border:0;display:block}</style>"
            f'<iframe src="{report.resolve().as_uri()}" width="{shot.width}" height="{shot.height}"></iframe>'
        )
        subprocess.run(
            [
                CHROMIUM,
                "--headless",
                "--no-sandbox",
                "--hide-scrollbars",
                f"--user-data-dir={profile}/user",
                f"--blink-settings=preferredColorScheme={0 if shot.dark else 1}",
                f"--window-size={shot.width},{shot.height}",
                f"--screenshot={target.resolve()}",
                frame.as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=60,
        )


def main(report: str, folder: str) -> None:
    """Take all pictures of a report."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for shot in SHOTS:
        take(Path(report), shot, Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
