"""Ask a designer that is a Python function: find `module:function`, call it, and check what it proposes.

The contract is `propose(history, n, budget_cents, round) -> candidates`; docs/loops.md describes it.
"""

import importlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from prefect import task

from prefect_assay.analysis.results import DesignSummary
from prefect_assay.designs.candidate import PARENT_COLUMNS, Candidate
from prefect_assay.designs.proposed import pool_of
from prefect_assay.errors import ConfigurationError, DesignerFailed
from prefect_assay.tasks.retry_policies import ONCE

Proposer = Callable[..., Iterable[Any]]

_FUNCTION: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_OWN: Final = frozenset({"name", "sequence", "control", "metadata", *PARENT_COLUMNS})
_CANDIDATES_MAX: Final = 1_000_000


def is_function(designer: str) -> bool:
    """Return True for `module:function`; a deployment is `flow/name`."""
    return _FUNCTION.fullmatch(designer) is not None


def check_designer(designer: str) -> None:
    """Raise ConfigurationError unless the designer is written as a function or as a deployment."""
    flow, slash, name = designer.partition("/")
    if not is_function(designer) and not (slash and flow.strip() and name.strip()):
        raise ConfigurationError(
            f"designer: {designer!r} is neither a function, `module:function`, nor a deployment, `flow/name`; "
            "nothing was ordered"
        )


def load_proposer(designer: str) -> Proposer:
    """Import the function of `module:function`.

    Raises:
        ConfigurationError: the module cannot be imported where this runs, or has no such function.
    """
    module_name, _, path = designer.partition(":")
    try:
        proposer: Any = importlib.import_module(module_name)
        for name in path.split("."):
            proposer = getattr(proposer, name)
    except Exception as error:
        raise ConfigurationError(
            f"designer: {designer} cannot be imported here ({type(error).__name__}: {error}); nothing was ordered. "
            "Install its package where the flow runs, on every worker"
        ) from error
    if not callable(proposer):
        raise ConfigurationError(f"designer: {designer} is not a function; nothing was ordered")
    return proposer  # type: ignore[no-any-return]  # an attribute of any module; callable, as checked


@task(name="propose-designs", **ONCE)
def propose_designs(
    designer: str, history: Sequence[DesignSummary], n: int, budget_cents: int | None, number: int
) -> tuple[Candidate, ...]:
    """Call the designer for one round, and check its candidates.

    Raises:
        ConfigurationError: the function cannot be imported.
        DesignerFailed: it raised an error, or proposed nothing.
        InvalidSequences: what it proposed cannot be ordered, with every finding.
    """
    propose = load_proposer(designer)
    where = f"{designer}, round {number}"
    try:
        proposed = list(propose(history=history, n=n, budget_cents=budget_cents, round=number))
    except Exception as error:
        raise DesignerFailed(
            f"{where}: the designer raised {type(error).__name__}: {error}; nothing was ordered. Correct it, then "
            "press Retry or start the loop again"
        ) from error
    if not proposed:
        raise DesignerFailed(
            f"{where}: the designer proposed nothing, and nothing was ordered. Press Retry or start the loop again "
            "when it can"
        )
    if len(proposed) > _CANDIDATES_MAX:
        raise DesignerFailed(f"{where}: {len(proposed):,} candidates; at most {_CANDIDATES_MAX:,} are read")
    candidates = [_read_candidate(value, position, where) for position, value in enumerate(proposed, 1)]
    return tuple(map(Candidate.of, pool_of(candidates, where)))


def _read_candidate(value: Any, position: int, where: str) -> Candidate:
    if isinstance(value, Candidate):
        return value
    if not isinstance(value, Mapping) or not isinstance(value.get("sequence"), str):
        raise DesignerFailed(
            f"{where}, candidate {position}: a {type(value).__name__} is not a candidate; propose "
            "prefect_assay.designs.candidate.Candidate, or mappings with `name` and `sequence`. Nothing was ordered"
        )
    parents = value.get("parents", value.get("parent")) or ()
    return Candidate(
        name=str(value.get("name") or ""),
        sequence=value["sequence"],
        parents=tuple(p.strip() for p in parents.split(";")) if isinstance(parents, str) else tuple(parents),
        columns={
            str(title): str(cell) for title, cell in value.items() if title not in _OWN and cell is not None
        },
        control=bool(value.get("control", False)),
        metadata=dict(value.get("metadata") or {}),
    )
