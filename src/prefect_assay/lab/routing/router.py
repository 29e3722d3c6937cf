"""Finds the route of a request. Knows no web framework."""

import re
from collections.abc import Iterable
from typing import Final

from prefect_assay.lab.routing.route import Route

_PARAMETER: Final = re.compile(r"\{(\w+)\}")


class Router:
    """Finds the route of a method and a path.

    A path without parameters hides every pattern that fits as well, whatever the method: `cost-estimate` is no
    experiment's id.
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        self._fixed: dict[str, dict[str, Route]] = {}
        self._patterns: dict[str, list[tuple[re.Pattern[str], Route]]] = {}
        for route in routes:
            if "{" not in route.path:
                self._fixed.setdefault(route.path, {})[route.method] = route
                continue
            pattern = re.compile(_PARAMETER.sub(r"(?P<\1>[^/]+)", route.path))
            self._patterns.setdefault(route.method, []).append((pattern, route))

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        """The route and the values of its path parameters."""
        if path in self._fixed:
            fixed = self._fixed[path].get(method)
            return (fixed, {}) if fixed else None
        for pattern, route in self._patterns.get(method, ()):
            if found := pattern.fullmatch(path):
                return route, found.groupdict()
        return None

    def methods(self, path: str) -> list[str]:
        """The methods that a path knows, for the Allow header of a 405."""
        if path in self._fixed:
            return sorted(self._fixed[path])
        return sorted(method for method in self._patterns if self.find(method, path))
