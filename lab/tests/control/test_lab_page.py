"""lab/docs/lab.md names every option, control call, fault, event and method, and its example works."""

import inspect
import re
import sys
import types
from contextlib import nullcontext
from pathlib import Path
from typing import get_args

import pytest

from assay_lab import __main__ as command
from assay_lab import testing
from assay_lab.control import commands, events
from assay_lab.experiments import delays
from assay_lab.kernel.faults import PaymentAction, WebhookAction
from assay_lab.service.faults import ACTIONS, Fault
from assay_lab.testing import LabOrganization, LocalLab, PlacedFault

pytest_plugins = ["assay_lab.fixture"]

PAGE = (Path(__file__).parents[2] / "docs" / "lab.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"```python\n(# test_ordering\.py\n.*?)```", PAGE, re.DOTALL)


def example():
    module = types.ModuleType("test_ordering")
    sys.modules[module.__name__] = module
    try:
        exec(compile(EXAMPLE, "lab/docs/lab.md", "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]
    return {name: item for name, item in vars(module).items() if name.startswith("test_")}


def test_the_example_in_the_module_works(shared_lab):
    (code,) = re.findall(r"```python\n(.*?)```", testing.__doc__, re.DOTALL)
    before = shared_lab.clock()["now"]
    exec(compile(code, testing.__file__, "exec"), {"LocalLab": lambda: nullcontext(shared_lab)})
    assert shared_lab.clock()["now"] > before


@pytest.mark.parametrize("name", sorted(example()))
def test_the_example_works(name, request):
    test = example()[name]
    test(**{fixture: request.getfixturevalue(fixture) for fixture in inspect.signature(test).parameters})


def section(title):
    return re.search(rf"^#+ {title}\n(.*?)(?=^##)", PAGE, re.DOTALL | re.MULTILINE)[1]


def first_cells(title):
    rows = re.findall(r"^\| (`[^|]*) \|", section(title), re.MULTILINE)
    return {word for row in rows for word in re.findall(r"`([^`]+)`", row)}


def test_the_tables_of_faults_and_events_are_those_of_the_code():
    assert first_cells("Faults") == set(ACTIONS)
    assert first_cells("Events") == set(events.EVENTS)
    assert first_cells("Webhook faults") == {*get_args(WebhookAction)}
    assert first_cells("Payment faults") == {*get_args(PaymentAction)}
    for name in set(Fault.model_fields) - {"action"}:
        assert f"`{name}`" in section("Faults"), name


def test_the_fields_of_every_event_are_in_the_table():
    for event in events.EVENTS:
        for field in events.body_of(event).model_fields:
            assert re.search(rf"`[^`]*\b{field}\b[^`]*`", section("Events")), (event, field)


def test_every_method_and_fixture_is_on_the_page():
    table = section("In tests")
    for kind in (LocalLab, LabOrganization, PlacedFault):
        for name, item in inspect.getmembers(kind):
            public = callable(item) or isinstance(item, property)
            if public and not name.startswith("_") and name != "view":
                assert f"`{name}`" in table, f"{kind.__name__}.{name}"
                assert inspect.getdoc(item), f"{kind.__name__}.{name} has no docstring"
    from assay_lab import fixture  # late: pytest rewrites a plugin only before it is imported

    for name in ("local_lab", "lab_process", "shared_lab"):
        assert hasattr(fixture, name)
        assert f"| `{name}` |" in table


def test_every_option_and_variable_is_on_the_page():
    options = {option for action in command._make_parser()._actions for option in action.option_strings}
    assert options - {"-h", "--help"} == set(re.findall(r"`(--[a-z-]+)`", PAGE))
    for variable in (
        command.TOKEN_VARIABLE,
        command.VIEWER_TOKEN_VARIABLE,
        command.PARTNER_TOKEN_VARIABLE,
        command.SIM_TOKEN_VARIABLE,
    ):
        assert f"`{variable}`" in PAGE


def test_every_control_call_is_on_the_page():
    table = [entry for entry in vars(commands).values() if isinstance(entry, commands.Command)]
    calls = {f"{command.method} /_sim{command.path}" for command in table}
    assert calls == set(re.findall(r"`((?:GET|POST|DELETE) /_sim/[a-z0-9/{}_-]+)`", PAGE))


def test_the_milestones_are_on_the_page():
    for share, kind, detail in delays.MILESTONES:
        assert f"| {share:.2f} | {f'`{detail}`' if kind == 'status' else 'a progress update'}" in PAGE
