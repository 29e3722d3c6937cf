"""Names every difference between two interfaces, and which of them break the client.

A change breaks the client if the service no longer takes what the client sends, requires what it does not send, or no
longer answers with what it reads.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from prefect_assay.client.drift.document import Facts, above
from prefect_assay.client.drift.usage import Usage

# Described to partners' tokens only (contract 1): their absence is no change.
_PARTNERS: Final = re.compile(r" /partners/")
_ANSWER: Final = re.compile(r"^answer (\d+|\dXX|default)(\[\])? ?")
_UNUSED: Final = Usage(sent=frozenset(), always=frozenset(), read={})


@dataclass(frozen=True, slots=True)
class Change:
    """One difference; `breaks` if it affects what the client uses."""

    kind: Literal["new", "gone", "changed"]
    operation: str
    place: str
    detail: str
    breaks: bool

    def __str__(self) -> str:
        where = f"{self.operation}: {self.place}" if self.place else self.operation
        text = f"{self.kind}: {where}"
        return f"{text}: {self.detail}" if self.detail else text

    def as_json(self) -> dict[str, Any]:
        """The change as a JSON object."""
        return asdict(self)


def compare(
    known: Mapping[str, Facts], now: Mapping[str, Facts], usage: Mapping[str, Usage]
) -> tuple[Change, ...]:
    """Every difference between the `known` interface and today's, those that break first."""
    partners = any(_PARTNERS.search(operation) for operation in now)
    found: list[Change] = []
    for operation in sorted(known.keys() | now.keys()):
        if operation not in now:
            if partners or not _PARTNERS.search(operation):
                found.append(Change("gone", operation, "", "", breaks=operation in usage))
        elif operation not in known:
            found.append(Change("new", operation, "", "", breaks=False))
        else:
            one = _Operation(operation, known[operation], now[operation], usage.get(operation, _UNUSED))
            found += one.changes()
    return tuple(sorted(found, key=lambda change: not change.breaks))


class _Operation:
    def __init__(self, name: str, known: Facts, now: Facts, used: Usage) -> None:
        self._name, self._known, self._now, self._used = name, known, now, used
        self._read_names = {name for names, _ in used.read.values() for name in names}
        self._needed = {name for names, needed in used.read.values() if needed for name in names}

    def changes(self) -> Iterator[Change]:
        for place in sorted(self._known.keys() | self._now.keys()):
            if place not in self._now:
                if above(place) not in self._known.keys() - self._now.keys():
                    yield Change("gone", self._name, place, "", breaks=self._breaks_without(place))
            elif place not in self._known:
                if above(place) not in self._now.keys() - self._known.keys():
                    yield self._new(place)
            elif self._known[place] != self._now[place]:
                yield from self._changed(place, self._known[place], self._now[place])

    def _new(self, place: str) -> Change:
        fact = self._now[place]
        required = fact.get("required") is True and not place.startswith("answer")
        detail = "required" if required else "/".join(fact.get("type", ()))
        return Change("new", self._name, place, detail, breaks=required and self._lacks(place))

    def _breaks_without(self, place: str) -> bool:
        field = field_of(place)
        if field is None:
            return place in self._used.sent
        if not field:
            return bool(self._used.read) or not self._used.sent
        here = {field_of(other) for other in self._now if other.startswith("answer")}
        below = {
            name for name in self._read_names if name == field or name.startswith((f"{field}.", f"{field}["))
        }
        return any(
            any(name in below for name in names) and not any(name in here for name in names)
            for names, _ in self._used.read.values()
        )

    def _changed(self, place: str, known: dict[str, Any], now: dict[str, Any]) -> Iterator[Change]:
        field = field_of(place)
        aspects = self._sent_aspects if field is None else self._read_aspects
        for aspect in sorted(known.keys() | now.keys()):
            before, after = known.get(aspect), now.get(aspect)
            if before != after:
                breaks = aspects(place if field is None else field, aspect, before, after)
                yield Change(
                    "changed",
                    self._name,
                    place,
                    f"{aspect} was {_text(before)}, is {_text(after)}",
                    breaks=breaks,
                )

    def _sent_aspects(self, place: str, aspect: str, before: Any, after: Any) -> bool:
        if aspect == "required":
            return after is True and self._lacks(place)
        if place not in self._used.sent:
            return False
        if aspect == "type":
            return not _covered(_words(before) - {"null"}, _words(after))
        if aspect == "enum":
            return after is not None and (before is None or bool(_words(before) - _words(after)))
        return aspect == "limits" and _narrower(before or {}, after or {})

    def _read_aspects(self, field: str, aspect: str, before: Any, after: Any) -> bool:
        if field and field not in self._read_names:
            return False
        if aspect == "type":
            fresh = _words(after) - _words(before)
            if not field and "items" in self._read_names:  # a list is read with and without paging words
                return not _covered(fresh, {"array", "object"})
            return not _covered(fresh - {"null"}, _words(before)) or (
                "null" in fresh and field in self._needed
            )
        if aspect == "required":
            return after is not True and field in self._needed
        return aspect == "media"

    def _lacks(self, place: str) -> bool:
        """Return True if a request of the client may lack the place."""
        if place in self._used.always:
            return False
        holder = above(place)
        return holder is None or holder in self._used.sent


def field_of(place: str) -> str | None:
    """An answer's field as the client names it; empty for the answer itself, None for what is sent."""
    match = _ANSWER.match(place)
    if match is None:
        return None if place != "refusals" else ""
    rest = place[match.end() :]
    return f"items[].{rest}" if match[2] and rest else rest


def _words(value: Any) -> set[str]:
    return {str(item) for item in value or ()}


def _covered(types: set[str], by: set[str]) -> bool:
    """Return True if every type is accepted: `any` accepts all, a number accepts integers."""
    return "any" in by or all(kind in by or (kind == "integer" and "number" in by) for kind in types)


def _narrower(before: Mapping[str, float], after: Mapping[str, float]) -> bool:
    for name, limit in after.items():
        old = before.get(name)
        upper = "max" in name.lower()
        if old is None or (limit < old if upper else limit > old):
            return True
    return False


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "empty"
    if isinstance(value, dict):
        return ", ".join(f"{name} {limit}" for name, limit in value.items()) or "none"
    return {None: "open", True: "true", False: "false"}.get(value, str(value))
