"""Names every difference between two interfaces, and what it does to the client.

A change breaks the client if the service refuses what it sends, requires what it does not send, or answers in a way
that it cannot read. Where the client reads the answer without a field that it knows, the value
is empty.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from prefect_assay.service.drift.document import Facts, above
from prefect_assay.service.drift.usage import Read, Usage

# Described to partners' tokens only (contract 1): their absence is not a change.
_PARTNERS: Final = re.compile(r" /partners/")
_ANSWER: Final = re.compile(r"^answer (\d+|\dXX|default)(\[\])? ?")
_UNUSED: Final = Usage()


Effect = Literal["breaks", "empty", "none"]
_WORST_FIRST: Final[tuple[Effect, ...]] = ("breaks", "empty", "none")


@dataclass(frozen=True, slots=True)
class Change:
    """One difference, and what it does to the client."""

    kind: Literal["new", "gone", "changed"]
    operation: str
    place: str
    detail: str
    effect: Effect

    @property
    def breaks(self) -> bool:
        """Whether a call of the client would fail."""
        return self.effect == "breaks"

    @property
    def what(self) -> str:
        """The difference within its operation."""
        text = f"{self.kind}: {self.place}" if self.place else self.kind
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        where = f"{self.operation}: {self.place}" if self.place else self.operation
        text = f"{self.kind}: {where}"
        return f"{text}: {self.detail}" if self.detail else text

    def as_json(self) -> dict[str, Any]:
        """The change as a JSON object."""
        return {**asdict(self), "breaks": self.breaks}


def compare(
    known: Mapping[str, Facts], now: Mapping[str, Facts], usage: Mapping[str, Usage]
) -> tuple[Change, ...]:
    """Every difference between the `known` interface and today's, those that break first, by operation."""
    partners = any(_PARTNERS.search(operation) for operation in now)
    changes: list[Change] = []
    for operation in sorted(known.keys() | now.keys()):
        if operation not in now:
            if partners or not _PARTNERS.search(operation):
                changes.append(Change("gone", operation, "", "", _broken(operation in usage)))
        elif operation not in known:
            changes.append(Change("new", operation, "", "", "none"))
        else:
            one = _Operation(operation, known[operation], now[operation], usage.get(operation, _UNUSED))
            changes += one.changes()
    return tuple(sorted(changes, key=lambda change: _WORST_FIRST.index(change.effect)))


class _Operation:
    def __init__(self, name: str, known: Facts, now: Facts, used: Usage) -> None:
        self._name, self._known, self._now, self._used = name, known, now, used
        self._answered = {field_of(place) for place in now if place.startswith("answer")}
        # Under the first of its names that the service has.
        self._read: dict[str, Read] = {
            next((name for name in read.names if name in self._answered), read.names[0]): read
            for read in used.read.values()
        }

    def changes(self) -> Iterator[Change]:
        for place in sorted(self._known.keys() | self._now.keys()):
            if place not in self._now:
                if above(place) not in self._known.keys() - self._now.keys():
                    yield Change("gone", self._name, place, "", self._effect_of_loss(place))
            elif place not in self._known:
                if above(place) not in self._now.keys() - self._known.keys():
                    yield self._new(place)
            elif self._known[place] != self._now[place]:
                yield from self._compare_aspects(place, self._known[place], self._now[place])

    def _new(self, place: str) -> Change:
        fact = self._now[place]
        required = fact.get("required") is True and not place.startswith("answer")
        detail = "required" if required else "/".join(fact.get("type", ()))
        return Change("new", self._name, place, detail, _broken(required and self._lacks(place)))

    def _effect_of_loss(self, place: str) -> Effect:
        field = field_of(place)
        if field is None:
            return _broken(place in self._used.sent)
        if not field:
            return _broken(bool(self._used.read) or not self._used.sent)
        lost = [
            read
            for read in self._used.read.values()
            if any(_within(name, field) for name in read.names) and not self._answered & set(read.names)
        ]
        # What is required below a field that may be absent is not missed without the field.
        if any(read.required and field in read.names for read in lost):
            return "breaks"
        return "empty" if lost else "none"

    def _compare_aspects(self, place: str, known: dict[str, Any], now: dict[str, Any]) -> Iterator[Change]:
        """A change for each aspect of one place that differs, with its effect on the client."""
        field = field_of(place)
        for aspect in sorted(known.keys() | now.keys()):
            before, after = known.get(aspect), now.get(aspect)
            if before != after:
                effect = (
                    _broken(self._breaks_what_is_sent(place, aspect, before, after))
                    if field is None
                    else self._read_aspect(field, aspect, before, after)
                )
                detail = f"{aspect} was {_text(before)}, is {_text(after)}"
                yield Change("changed", self._name, place, detail, effect)

    def _breaks_what_is_sent(self, place: str, aspect: str, before: Any, after: Any) -> bool:
        """Whether a changed aspect makes the service refuse what the client sends."""
        if aspect == "required":
            return after is True and self._lacks(place)
        if place not in self._used.sent:
            return False
        if aspect == "type":
            return not _covered(_words(before) - {"null"}, _words(after))
        if aspect == "enum":
            return after is not None and (before is None or bool(_words(before) - _words(after)))
        return aspect == "limits" and _narrower(before or {}, after or {})

    def _read_aspect(self, field: str, aspect: str, before: Any, after: Any) -> Effect:
        if not field:
            return _broken(self._answer_breaks(aspect, before, after))
        read = self._read.get(field)
        if read is None:
            return "none"
        if aspect == "type":
            fresh = _words(after) - _words(before)
            unread = not _covered(fresh - {"null"}, _words(before)) or (
                "null" in fresh and not read.takes_null
            )
            if unread or "null" in fresh:
                return "breaks" if unread and not read.tolerant else "empty"
        if aspect == "required" and after is not True:
            return "breaks" if read.required else "none"
        return "none"

    def _answer_breaks(self, aspect: str, before: Any, after: Any) -> bool:
        if aspect != "type":
            return aspect == "media"
        # a list is read with and without paging words
        by = {"array", "object"} if "items" in self._read else _words(before)
        return not _covered(_words(after) - _words(before), by)

    def _lacks(self, place: str) -> bool:
        """Return True if a request of the client may lack the place."""
        if place in self._used.always:
            return False
        holder = above(place)
        return holder is None or holder in self._used.sent


def _broken(breaks: bool) -> Effect:  # noqa: FBT001 - the condition
    return "breaks" if breaks else "none"


def _within(name: str, field: str) -> bool:
    return name == field or name.startswith((f"{field}.", f"{field}["))


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
