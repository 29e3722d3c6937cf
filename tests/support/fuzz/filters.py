"""Fuzzes filter, sort, search and the per-field query forms against a lab that holds two organizations.

The words are run on the lab's own SQLite under an authorizer: a statement that touches a table which is not the list's,
or that does anything but read, is an injection, whatever it returns.
"""

import re
import sqlite3
from contextlib import contextmanager
from datetime import timedelta

from assay_lab.billing import invoices, quotes
from assay_lab.experiments import experiments, results, sequences, targets
from assay_lab.kernel.refusals import Refusal
from assay_lab.requests import lists
from assay_lab.requests.core import Call
from assay_lab.requests.lists import Listing
from assay_lab.service import seeding
from assay_lab.service.core import LabCore
from assay_lab.webhooks import updates
from lab_support.core import lab_core, order, spec
from support.fuzz.mutations import Mutator

LISTINGS: dict[str, Listing] = {
    "experiments": experiments.LISTING,
    "quotes": quotes.LISTING,
    "invoices": invoices.LISTING,
    "sequences": sequences.LISTING,
    "results": results.LISTING,
    "updates": updates.LISTING,
    "targets": targets.LISTING,
}
_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_TRANSACTION}

CORPUS = (
    "eq(status,draft)",
    "neq(state,QuoteSent)",
    'contains(name,"100%_\\"x")',
    "between(created_at,2026-03-01,2026-03-03T10:00:00+01:00)",
    "in(experiment_type,affinity,screening,thermostability)",
    "and(eq(status,draft),or(gt(created_at,2026-01-01),not(is_null(name))))",
    'eq(at(experiment_spec,method),"bli")',
    'gt(float(at(at(experiment_spec,parameters),"temperature")),1e-9)',
    "eq(int(text(at(experiment_spec,n_replicates))),3)",
    "eq(date(created_at),2026-03-02)",
    "lt(timestamp(text(created_at)),2026-03-02T00:00:00Z)",
    "is_not_null(at(metadata,type))",
    "eq(is_control,true)",
    "gte(amount_cents,100)",
    "desc(created_at),asc(name)",
    "-created_at,+name,code:desc",
    "asc(float(at(experiment_spec,x))),desc(text(name))",
    "x' OR 1=1; DROP TABLE experiments --",
    'eq(name,"x\') OR 1=1 UNION SELECT * FROM tokens --")',
)
PIECES = (
    "eq(", "neq(", "gt(", "lt(", "gte(", "lte(", "contains(", "between(", "in(", "and(", "or(", "not(", "is_null(",
    "is_not_null(", "at(", "float(", "int(", "text(", "timestamp(", "date(", "asc(", "desc(", "name", "status", "state",
    "code", "id", "created_at", "experiment_spec", "metadata", "experiment_id", "length", "amount_cents", "draft", ")", "))",
    ",", '"', '\\"', "\\\\", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "1e309", "nan", "inf",
    "null", "true", "0x10", "1_000", "2026-02-30", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "' OR 1=1 --",
    "; DROP TABLE experiments", "UNION SELECT", '$."', ":asc", ":desc", "-", "+", "rowid", "org_id", "experiments.id",
)  # fmt: skip
_FORMS = ("equ", "geq", "gtr", "leq", "lss")


def _stocked() -> tuple[LabCore, Call]:
    """A lab with the same things in two organizations, and a call of the first."""
    core = lab_core()
    other = seeding.add_organization(core.lab, "other", "Other")
    for token in (core.seeded.member_token, other.member_token):
        for name in ("alpha", 'be"ta 100%_\\x', "Ω null"):
            body = {
                "experiment_spec": _stocked_spec(name),
                "name": name,
                "auto_accept_quote": name == "alpha",
            }
            core.request("POST", "/experiments", token=token, json_body=body)
    order(core)
    for org_id in (core.seeded.organization_id, other.organization_id):
        core.clock_driver.advance(org_id, core.lab.clock.now(org_id) + timedelta(days=16))
    who = core.lab.tokens.authenticate(f"Bearer {core.seeded.member_token}")
    return core, Call(core.lab, who)


def _stocked_spec(name: str) -> dict:
    return spec(
        parameters={"temperature": 25.5, "note": '{"a": 1}', "deep": {"er": [1, None]}},
        sequences={"a": {"aa_string": "MKV", "metadata": {"type": "IgG"}}, name: "GHI"},
    )


class FilterFuzz:
    """`one()` tries one query; `close()` says that nothing was written."""

    def __init__(self, seed: int) -> None:
        self.core, self._call = _stocked()
        self._words = Mutator(seed, CORPUS, PIECES)
        self._chance = self._words.chance
        self.accepted = 0
        self._touched: list[str] = []
        self._connection = self.core.lab.store._connection
        self._before = self._connection.total_changes
        self._own = {name: self._page(listing, {})["total"] for name, listing in LISTINGS.items()}

    def one(self) -> None:
        name = self._chance.choice(list(LISTINGS))
        listing = LISTINGS[name]
        query = self._query(listing)
        try:
            page = self._page(listing, query)
        except Refusal as refusal:
            if refusal.status != 400:
                raise
            return
        assert not self._touched, (name, query, self._touched)
        assert page["total"] <= self._own[name], (name, query)
        # The catalog belongs to nobody.
        foreign = [row for row in page["items"] if row.get("org_id") not in (None, self._call.who.org_id)]
        assert not foreign, (name, query)
        self.accepted += 1

    def close(self) -> None:
        assert self._connection.total_changes == self._before
        self.core.close()

    def _query(self, listing: Listing) -> dict[str, str]:
        chance, text = self._chance, self._text
        kind = chance.randrange(10)
        if kind < 5:
            return {"filter": self._built(listing) if kind == 0 else text()}
        if kind < 7:
            return {"sort": text()}
        if kind == 7:
            return {"search": text(), "filter": self._built(listing)}
        if kind == 8:
            return {f"{chance.choice(_FORMS)}({chance.choice(list(listing.columns))})": text()}
        return {chance.choice(("limit", "offset", *listing.plain)): text()}

    def _text(self) -> str:
        # Query strings arrive as UTF-8, broken places replaced: half a surrogate pair never does.
        return self._words.text().encode("utf-8", "replace").decode()

    def _built(self, listing: Listing) -> str:
        """A well-formed condition on the list's own columns, with foreign values."""
        chance = self._chance
        column = chance.choice(list(listing.columns))
        for _ in range(chance.choice((0, 0, 1, 1, 2, 14))):
            wrap = chance.choice(
                ("text({})", "float({})", "int({})", "timestamp({})", "date({})", "at({},a)")
            )
            column = wrap.format(column)
        value = chance.choice((self._text(), chance.choice(PIECES), "1", "draft", "2026-01-01"))
        value = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        test = chance.choice(
            ("eq({0},{1})", "contains({0},{1})", "between({0},{1},1)", "in({0},{1},2)", "is_null({0})")
        )
        condition = test.format(column, value)
        for _ in range(chance.choice((0, 0, 0, 1, 2, 12))):
            condition = chance.choice(("not({})", "and({0},{0})", "or({0},eq(name,b))")).format(condition)
        return condition

    def _page(self, listing: Listing, query: dict[str, str]) -> dict:
        known = [listing.source, *(column.sql for column in listing.columns.values())]
        tables = {listing.table, *re.findall(r"\b(?:FROM|JOIN)\s+(\w+)", " ".join(known))}
        call = Call(self._call.lab, self._call.who, query=query)
        conditions = (
            (lists.Sql("e.org_id = ?", (call.who.org_id,)),)
            if " e " in f"{listing.source} " and not listing.by_org
            else ()
        )
        self._touched.clear()
        with self._watched(tables):
            return lists.make_page(call, listing, lambda row: row, only=conditions).body

    @contextmanager
    def _watched(self, tables: set[str]):
        def judge(action: int, first: str | None, *_: str | None) -> int:
            if action not in _READING or (
                action == sqlite3.SQLITE_READ and first not in tables | {"e", "", "json_each"}
            ):
                self._touched.append(f"{action} {first}")
                return sqlite3.SQLITE_DENY
            return sqlite3.SQLITE_OK

        # A page finds its rows by number through json_each, which enters itself into the schema when first used.
        self._connection.execute("SELECT value FROM json_each('[]')").fetchall()
        self._connection.set_authorizer(judge)
        try:
            yield
        finally:
            self._connection.set_authorizer(None)
