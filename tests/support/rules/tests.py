"""Which tests show which rules, read from the source of tests/rules without running it."""

import ast
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parents[2] / "rules"
_SIDES = {"client_holds": "client", "lab_holds": "lab"}
_POSTPONED = {"xfail", "skip", "skipif"}


@dataclass
class RuleTests:
    """Tests by rule and side, as `test_file.py::test_name`."""

    tests: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    postponed: list[str] = field(default_factory=list)

    @staticmethod
    @cache
    def read() -> "RuleTests":
        found = RuleTests()
        for path in sorted(_FOLDER.glob("test_*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                    found._note(f"{path.name}::{node.name}", node)
        return found

    def _note(self, name: str, function: ast.FunctionDef) -> None:
        for decorator in function.decorator_list:
            for call in ast.walk(decorator):
                if isinstance(call, ast.Attribute) and call.attr in _POSTPONED:
                    self.postponed.append(name)
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _SIDES:
                    for argument in call.args:
                        key = (ast.literal_eval(argument), _SIDES[call.func.id])
                        self.tests.setdefault(key, []).append(name)

    def of(self, rule: str, side: str) -> list[str]:
        """The tests of one side of a rule."""
        return self.tests.get((rule, side), [])

    def ids(self) -> set[str]:
        """Every rule that a test names."""
        return {rule for rule, _ in self.tests}
