"""Reading request bodies strictly, with every violation in one answer (contract 2.2, 2.3, 7 and 8).

Schemas check the shape; rules that join several fields are here. Knows no database.
"""

import ipaddress
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from pydantic import ValidationError

from assay_lab.kernel.refusals import Body, Refusal
from assay_lab.measure.assays import ASSAY_TYPES, LIMITED_FIELDS, AssayType
from assay_lab.requests.core import uuid_or_none
from assay_lab.vocabulary import (
    AMINO_ACIDS,
    CHAIN_SEPARATOR,
    MACHINE_RAILS,
)

Schema = TypeVar("Schema", bound=Body)

# Violations of a limit, which are no "schema mismatch" (contract 4.2), as opposed to a wrong type or field.
_LIMITS: Final = frozenset(
    {"greater_than_equal", "less_than_equal", "too_short", "string_too_short", "finite_number"}
)
# Compared without upper-casing, which turns some letters outside ASCII into amino acids.
_LETTERS: Final = AMINO_ACIDS | {letter.lower() for letter in AMINO_ACIDS}
_PRIVATE_SUFFIXES: Final = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".intranet")
# The last label of an address in one of its old spellings, such as 127.1 or 0x7f000001.
_NUMERIC: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_FAB: Final = "fab"


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing wrong with a request."""

    text: str  # field and cause
    status: int = 400  # what it alone would be answered with
    schema: bool = False  # whether it is a mismatch with the schema, which a cost estimate answers with 422
    code: str | None = None  # machine-readable, where the contract has one


def refuse_violations(violations: Iterable[Violation]) -> None:
    """Raise one Refusal for all violations, if any; 400 wins over 422, 422 over 404."""
    problems = list(violations)
    if problems:
        statuses = {violation.status for violation in problems}
        status = next(status for status in (400, 422, 404) if status in statuses)
        code = next((violation.code for violation in problems if violation.code), None)
        raise Refusal.of_all(status, [violation.text for violation in problems], code=code)


def read_shape(schema: type[Schema], raw: Any) -> tuple[Schema | None, list[Violation]]:
    """The body as the schema's model, or every mismatch."""
    try:
        return schema.model_validate_json(json.dumps(raw)), []
    except ValidationError as error:
        return None, [
            Violation(
                f"{_format_place(item['loc'])}: {item['msg'].removeprefix('Value error, ')}",
                schema=item["type"] not in _LIMITS,
            )
            for item in error.errors(include_url=False, include_input=False, include_context=False)
        ]


def read_body(
    schema: type[Schema],
    raw: Any,
    more: Callable[[Schema], Iterable[Violation]] = lambda _body: (),
    *,
    also: Iterable[Violation] = (),
) -> Schema:
    """The body as the schema's model; 400 with every violation, those of `more` and `also` included."""
    body, mismatches = read_shape(schema, raw)
    refuse_violations([*also, *(mismatches if body is None else more(body))])
    if body is None:
        raise Refusal(400, "the body does not match its schema")
    return body


def _format_place(loc: tuple[int | str, ...]) -> str:
    parts = list(loc)
    # The schema's own names for the two forms of a sequence value are not part of the caller's path.
    for index in range(2, len(parts)):
        if parts[index - 2] == "sequences" and parts[index] in ("text", "object"):
            del parts[index]
            break
    return ".".join(str(part) for part in parts) or "body"


@dataclass(frozen=True, slots=True)
class Entry:
    """One sequence of any request, in one form. `place` names it in violations."""

    place: str
    name: str
    aa_string: str
    control: bool = False
    metadata: Any = None

    @property
    def kind(self) -> str:
        """The type of the molecule in lower case."""
        return str(self._metadata("type") or "").lower()

    @property
    def duplicate_key(self) -> tuple[str, str] | None:
        """Normalized residues and tag location; None for a Fab, which is exempt (contract 2.3).

        Its type says that it is one; without a type, the colon between its chains does.
        """
        if self.kind == _FAB or (not self.kind and CHAIN_SEPARATOR in self.aa_string):
            return None
        return self.aa_string.upper(), str(self._metadata("tag_location") or "").upper()

    def _metadata(self, key: str) -> Any:
        return self.metadata.get(key) if isinstance(self.metadata, dict) else None


def entries_of_spec(raw: Any) -> list[Entry]:
    """The readable sequences of a raw `sequences` object; the others are mismatches with the schema."""
    entries: list[Entry] = []
    for name, value in raw.items() if isinstance(raw, dict) else ():
        fields = {"aa_string": value} if isinstance(value, str) else value
        if isinstance(fields, dict) and isinstance(fields.get("aa_string"), str):
            place = f"experiment_spec.sequences.{name}"
            control = fields.get("control") is True
            entries.append(Entry(place, name, fields["aa_string"], control, fields.get("metadata")))
    return entries


def sequence_violations(entries: list[Entry], *, earlier: Iterable[Entry] = ()) -> list[Violation]:
    """Letters, names and duplicates, also of the sequences that the experiment has already."""
    violations = [violation for entry in entries for violation in _check_letters(entry)]
    seen: dict[tuple[str, str], str] = {}
    names: set[str] = set()
    for entry in earlier:
        names.add(entry.name)
        if entry.duplicate_key:
            seen.setdefault(entry.duplicate_key, entry.name)
    for entry in entries:
        if not entry.name.strip():
            violations.append(Violation(f"{entry.place}: a sequence needs a name"))
        if entry.name in names:
            violations.append(Violation(f"{entry.place}: duplicate sequence name {entry.name!r}"))
        names.add(entry.name)
        key = entry.duplicate_key
        if key is None:
            continue
        if key in seen:
            text = f"duplicate sequence, same residues and tag location as {seen[key]!r}"
            violations.append(Violation(f"{entry.place}: {text}"))
        seen.setdefault(key, entry.name)
    return violations


def _check_letters(entry: Entry) -> Iterator[Violation]:
    chains = entry.aa_string.split(CHAIN_SEPARATOR)
    if not all(chains):
        yield Violation(f"{entry.place}: empty sequence or chain", 422)
    if wrong := sorted(set("".join(chains)) - _LETTERS):
        letters = ", ".join(map(ascii, wrong))
        yield Violation(f"{entry.place}: invalid amino-acid letters {letters}", 422)


def spec_violations(
    raw: Mapping[str, Any], n_sequences: int | None, *, target_needed: bool = True
) -> Iterator[Violation]:
    """Which fields the experiment type needs, refuses and limits (contract 2.2 and 8).

    Without `n_sequences` their number is not checked; without `target_needed` a binding type may lack its target.
    """
    kind = raw.get("experiment_type")
    assay = ASSAY_TYPES.get(kind) if isinstance(kind, str) else None
    if assay is None:
        return
    applicable = {
        "method": assay.takes_method,
        "target_id": assay.takes_target,
        **{name: name in assay.takes for name in LIMITED_FIELDS},
    }
    needed = {"method", "target_id"} if target_needed else {"method"}
    for name, applies in applicable.items():
        is_set = raw.get(name) is not None
        if applies and name in needed and not is_set:
            yield Violation(f"experiment_spec.{name}: required for {kind}")
        if is_set and not applies:
            yield Violation(f"experiment_spec.{name}: not applicable to {kind}")
        if name == "n_replicates" and n_sequences is not None:
            yield from _check_count(assay, n_sequences)
    target = raw.get("target_id")
    if isinstance(target, str) and not uuid_or_none(target):
        yield Violation("experiment_spec.target_id: malformed, must be the uuid of a catalog target")


def _check_count(assay: AssayType, count: int) -> Iterator[Violation]:
    if assay.sequence_counts is None:
        return
    low, high, step = assay.sequence_counts
    if not low <= count <= high or count % step:
        text = f"{low} to {high} sequences in multiples of {step}, not {count}"
        yield Violation(f"experiment_spec.sequences: {assay.experiment_type} takes {text}")


def payment_header_violations(named: str | None) -> list[Violation]:
    """`X-Service-Payment-Method` names a machine rail or is absent (contract 4.2, create rule 2)."""
    if named is None or named in MACHINE_RAILS:
        return []
    return [Violation(f"unknown payment method {named!r}; known are {', '.join(sorted(MACHINE_RAILS))}")]


def webhook_violations(url: Any, *, allow_http: bool) -> list[Violation]:
    """HTTPS only (contract 4.2); plain http to private hosts where the lab was started to allow it."""
    if not isinstance(url, str):
        return []
    wrong = [Violation("webhook_url: must be an HTTPS URL")]
    if re.search(r"[\s\x00-\x1f\x7f]", url):
        return wrong
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.port != 0 else None
    except ValueError:
        return wrong
    secure = parts.scheme == "https" and host
    local = allow_http and parts.scheme == "http" and host and is_private(host.removesuffix("."))
    return [] if secure or local else wrong


def is_private(host: str) -> bool:
    """Whether a host is this machine's or a private network's, by its number or its name; no name is looked up."""
    address = read_address(host)
    if address is not None:
        return not address.is_global or address.is_multicast
    return not is_old_number(host) and ("." not in host or host.endswith(_PRIVATE_SUFFIXES))


def is_old_number(host: str) -> bool:
    """Whether a host is an IPv4 address in a spelling that `read_address` does not read."""
    return _NUMERIC.fullmatch(host.rpartition(".")[2]) is not None


def read_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The number of a host; None for a name. An IPv4 address inside an IPv6 one is unpacked."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
