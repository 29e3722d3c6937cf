"""Wheels of the two distributions, and environments with one of them and nothing that it does not declare."""

import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def list_tracked(folder: str = ".") -> list[str]:
    """The tracked files below a folder of the repository that exist, by their names in the repository."""
    command = ["git", "ls-files", folder]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.splitlines() if (ROOT / name).is_file()]


def build_wheel(folder: str, temporary: Path) -> Path:
    """Build from a copy of the tracked files, so that nothing untracked helps."""
    copy, out = temporary / "tree", temporary / "wheel"
    for name in list_tracked(folder):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(out)]
    subprocess.run([*command, str(copy / folder)], check=True, capture_output=True, timeout=110)
    return next(out.glob("*.whl"))


def install_alone(wheel: Path, folder: Path, requirements: Iterable[str] = ()) -> Path:
    """A fresh environment's interpreter: the wheel, what it declares, and `requirements`, linked from this environment."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
    python = folder / "bin" / "python"
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*command, str(wheel)], check=True, capture_output=True, timeout=60)
    (packages,) = folder.glob("lib/python*/site-packages")
    name = wheel.name.partition("-")[0].replace("_", "-")
    metadata = next(packages.glob(f"{name.replace('-', '_')}-*.dist-info"))
    declared = Distribution.at(metadata).requires or []
    for dependency in _close([*declared, *requirements]):
        for part in _top_level(dependency):
            if not (packages / part.name).exists():
                (packages / part.name).symlink_to(part)
    return python


def _close(requirements: Iterable[str]) -> list[Distribution]:
    """All distributions that these requirements lead to, here and now."""
    distributions: dict[tuple[str, frozenset[str]], Distribution] = {}
    waiting = [(Requirement(text), frozenset[str]()) for text in requirements]
    while waiting:
        requirement, extras = waiting.pop()
        marker = requirement.marker
        if marker and not any(marker.evaluate({"extra": extra}) for extra in extras or {""}):
            continue
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key not in distributions:
            distributions[key] = distribution(requirement.name)
            waiting += [(Requirement(text), key[1]) for text in distributions[key].requires or ()]
    return list(distributions.values())


def _top_level(dependency: Distribution) -> set[Path]:
    """What a distribution has put beside others: packages, modules, metadata."""
    site = Path(str(dependency.locate_file("")))
    names = {
        file.parts[0]
        for file in dependency.files or ()
        if not file.parts[0].startswith(("..", "__pycache__"))
    }
    return {site / name for name in names}
