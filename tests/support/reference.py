"""The tables of docs/reference.md: made of fields, docstrings and classes, so that the page follows the code.

`make description` writes them anew, between the comments that name them.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from prefect.utilities.callables import parameter_docstrings
from pydantic import BaseModel

from prefect_assay import blocks, errors, flows, tasks
from prefect_assay.campaigns.events import KINDS
from prefect_assay.campaigns.events.kinds import Fact
from prefect_assay.campaigns.problems.problem import AlertLimits
from prefect_assay.designs.options import CampaignOptions, LoopOptions
from prefect_assay.service.client import AssayClient, filters, parameters
from prefect_assay.service.models.spec import Assay
from support.client_calls import list_methods

_REGION: Final = re.compile(r"(<!-- made: (\w+)(?: (\w+))? -->\n).*?(<!-- end -->)", re.DOTALL)
_OPTIONS: Final = {kind.__name__: kind for kind in (AlertLimits, Assay, CampaignOptions, LoopOptions)}
_SOURCE: Final = re.compile(r",? \(?(?:published with )?contract [^)]*\)")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?]) (?=[A-Z`])")


def fill(page: str) -> str:
    """The page with each region made anew."""

    def make(region: re.Match[str]) -> str:
        name = [region[3]] if region[3] else []
        return f"{region[1]}\n{_MAKERS[region[2]](*name)}\n{region[4]}"

    return _REGION.sub(make, page)


def _describe_block(name: str) -> str:
    return _tabulate(("field", "meaning"), _list_fields(getattr(blocks, name)))


def _describe_options(name: str) -> str:
    return _tabulate(("field", "meaning"), _list_fields(_OPTIONS[name]))


def _list_fields(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if prefix or model not in _OPTIONS.values() or not _is_model(kind):
            required = " Required." if field.is_required() else ""
            yield f"`{prefix}{name}`", (field.description or "") + required + _default(field.default)
        else:
            yield from _list_fields(kind, f"{name}.")


def _is_model(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _default(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        return ""
    shown = f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else value
    return f" Default: `{shown}`."


def _describe_flow(name: str) -> str:
    return _tabulate(("parameter", "meaning"), _list_arguments(getattr(flows, name).fn))


def _describe_client() -> str:
    return _tabulate(
        ("setting", "meaning"), _list_arguments(AssayClient.__init__, inspect.getdoc(AssayClient))
    )


def _list_arguments(function: Callable[..., Any], text: str | None = None) -> Iterator[tuple[str, str]]:
    meanings = parameter_docstrings(text or inspect.getdoc(function))
    for name, parameter in inspect.signature(function).parameters.items():
        if name != "self":
            yield f"`{name}`", _sentence(_SOURCE.sub("", meanings[name])) + _default(parameter.default)


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return f"{text[0].upper()}{text[1:]}"


def _list_tasks() -> str:
    rows = ((name, getattr(tasks, name)) for name in tasks.__all__)
    return _tabulate(
        ("task", "does"), ((f"`{name}`", _first(getattr(task, "fn", task))) for name, task in rows)
    )


def _list_calls() -> str:
    with AssayClient("https://localhost", None) as client:
        methods = sorted(list_methods(client).items())
    return _tabulate(("method", "does"), ((f"`{name}`", _first(method)) for name, method in methods))


def _list_filters() -> str:
    rows = (
        (f"`{module.__name__.rpartition('.')[2]}.{name}`", _first(getattr(module, name)))
        for module in (filters, parameters)
        for name in module.__all__
        if name[0].islower() and name != "encode_tests"
    )
    return _tabulate(("builder", "condition"), rows)


def _first(documented: object) -> str:
    """The first sentence of a docstring, without the section of the contract, and with its call in code."""
    text = _SOURCE.sub("", " ".join((inspect.getdoc(documented) or "").split("\n\n")[0].split()))
    text = _SENTENCE_END.split(text)[0]
    return re.sub(r"((?:GET|POST|PATCH|DELETE) [\w/{}.-]*[\w}])", r"`\1`", text)


def _list_events() -> str:
    rows = ((f"`{kind.event}`", f"`{kind.resource}`", _first(kind), _list_payload(kind)) for kind in KINDS)
    return _tabulate(("event", "resource", "when", "payload"), rows)


def _list_payload(kind: type[Fact]) -> str:
    names = kind.model_fields.keys() - Fact.model_fields.keys()
    return ", ".join(
        f"`{name}`*" if name in kind.labels else f"`{name}`" for name in kind.model_fields if name in names
    )


def _draw_errors() -> str:
    branches = [("AssayError", errors.AssayError), *_draw_below(errors.AssayError, "")]
    width = max(len(branch) for branch, _ in branches) + 2
    lines = (f"{branch:<{width}}{_first(kind)}" for branch, kind in branches)
    return "\n".join(["```text", *lines, "```", ""])


def _draw_below(parent: type[Exception], indent: str) -> Iterator[tuple[str, type[Exception]]]:
    kinds = list(_list_kinds(parent))
    for kind in kinds:
        branch, below = ("└─ ", "   ") if kind is kinds[-1] else ("├─ ", "│  ")
        yield indent + branch + kind.__name__, kind
        yield from _draw_below(kind, indent + below)


def _list_kinds(parent: type[Exception]) -> Iterator[type[Exception]]:
    """The errors directly below one, in the order of the module; one with two parents is below its first."""
    for kind in parent.__subclasses__():
        if kind.__module__ != errors.__name__ or kind.__bases__[0] is not parent:
            continue
        if kind.__name__.startswith("_"):
            yield from _list_kinds(kind)
        else:
            yield kind


def _tabulate(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [titles, ("---",) * len(titles), *(map(_escape, row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _escape(cell: str) -> str:
    """A cell without what Markdown reads as a column, or outside of code as a tag."""
    texts = cell.replace("|", r"\|").split("`")
    texts[::2] = [text.replace("<", r"\<") for text in texts[::2]]
    return "`".join(texts)


_MAKERS: Final[dict[str, Callable[..., str]]] = {
    "block": _describe_block,
    "calls": _list_calls,
    "client": _describe_client,
    "errors": _draw_errors,
    "events": _list_events,
    "filters": _list_filters,
    "flow": _describe_flow,
    "options": _describe_options,
    "tasks": _list_tasks,
}


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(fill(path.read_text(encoding="utf-8")), encoding="utf-8")
