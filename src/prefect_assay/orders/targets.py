"""The catalog target of an assay. Exact matches only: a similar target would be a wrong order."""

import re
from collections.abc import Iterable
from typing import Final

from prefect_assay.errors import AssayError, InvalidSpec, is_absent
from prefect_assay.service.assays import ASSAY_TYPES
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.identifiers import is_uuid
from prefect_assay.service.models.spec import Assay, Target
from prefect_assay.service.words import in_words

_WORD: Final = re.compile(r"\w+")


def resolve_target(client: AssayClient, assay: Assay) -> Target | None:
    """The target that `assay.target` names by its id, catalog number or exact name; None for an assay without one.

    Raises:
        InvalidSpec: the target is missing, not allowed, unknown, or ambiguous.
    """
    if not ASSAY_TYPES[assay.experiment_type].takes_target:
        # contract 2.2: the other types reject a target
        InvalidSpec.check(
            [f"target: {in_words(assay.experiment_type)} takes no target; leave it empty"]
            if assay.target
            else []
        )
        return None
    if not assay.target:
        raise InvalidSpec([f"target: {in_words(assay.experiment_type)} needs one; name a catalog target"])
    return _find_target(client, assay.target.strip())


def _find_target(client: AssayClient, query: str) -> Target:
    if is_uuid(query):
        try:
            return client.targets.get(query)
        except AssayError as error:
            if not is_absent(error):  # the contract has the list only
                raise
    near = list(client.targets.iterate(search=query, detailed=True))
    named = [t for t in near if _is_named(t, query)]
    # The search covers names; a catalog number may need the whole list. Conjugated forms are listed on request only.
    listed: dict[str, Target] = {}
    for conjugated in (None, True):
        if not named:
            page = list(client.targets.iterate(show_conjugated=conjugated, detailed=True))
            named = [t for t in page if _is_named(t, query)]
            listed |= {t.id: t for t in page}
    if len(named) == 1:
        return named[0]
    if named:
        raise InvalidSpec([f"target: {query!r} names {len(named)} targets: {_list_names(named)}; use the id"])
    near = near or _find_alike(listed.values(), query)
    hint = (
        f"did you mean {_list_names(near)}?"
        if near
        else "look it up in the portal or with prefect-assay targets"
    )
    raise InvalidSpec([f"target: {query!r} is not in the service's catalog; {hint}"])


def _find_alike(targets: Iterable[Target], query: str) -> list[Target]:
    """The targets whose names share most words with what was written, in any order, and more than half of them."""
    words = set(_WORD.findall(query.casefold()))
    shared = [(len(words & set(_WORD.findall((t.name or "").casefold()))), t) for t in targets]
    most = max((count for count, _ in shared), default=0)
    return [t for count, t in shared if count == most] if 2 * most > len(words) else []


def _list_names(targets: list[Target]) -> str:
    return "; ".join(f"{t.name!r} ({t.id})" if t.name else t.id for t in targets[:5])


def _is_named(target: Target, query: str) -> bool:
    names = (target.id, target.catalog_number, target.name)
    return query.casefold() in {n.casefold() for n in names if n}
