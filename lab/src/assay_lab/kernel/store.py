"""The SQLite store: one connection, one transaction at a time. Knows no rules.

Values are always bound; table and column names come from this package's own code only.
"""

import json
import math
import re
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from assay_lab.errors import ConfigurationError
from assay_lab.kernel import times
from assay_lab.kernel.refusals import Refusal

Row = dict[str, Any]
Change = Mapping[str, Any]

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
# Without comments: a database is not refused because one was reworded.
_TABLES: Final = re.sub(
    r"(?m)^--.*\n", "", (files("assay_lab.kernel") / "tables.sql").read_text(encoding="utf-8")
)
# Children first; a reset keeps the signing keys.
RESET_TABLES: Final = tuple(
    name for name in reversed(re.findall(r"TABLE IF NOT EXISTS (\w+)", _TABLES)) if name != "signing_keys"
)
# A file with other tables is refused at the start, instead of failing at a later request.
_TABLES_VERSION: Final = zlib.crc32(_TABLES.encode()) & 0x7FFFFFFF
# Bound without conversion; exact types, because this runs for every value.
_PLAIN: Final = frozenset({str, int, float, bytes, type(None)})


def _bind_values(values: Iterable[Any]) -> list[Any]:
    return [value if type(value) in _PLAIN else _bind_value(value) for value in values]


def _bind_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return times.stamp(value)
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value)
    return str(value) if isinstance(value, str) else value  # the word of an enum


@cache
def _make_insertion(table: str, *columns: str) -> str:
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - own names only


@cache
def _make_change(table: str, *columns: str) -> str:
    changes = ", ".join(f"{name} = ?" for name in columns)
    return f"UPDATE {table} SET {changes} WHERE id = ?"  # noqa: S608 - own names only


def _read_names(cursor: sqlite3.Cursor) -> list[str]:
    return [column[0] for column in cursor.description]


def _sql_stamp(value: Any) -> str | None:
    """SQL function: any ISO text to fixed-width UTC text, else NULL (the filter's `timestamp` cast)."""
    try:
        return times.stamp(times.parse(str(value)))
    except ValueError:
        return None


def _sql_float(value: Any) -> float | None:
    """SQL function: a number, or the text of one, as a finite float, else NULL (the filter's `float` cast)."""
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _sql_int(value: Any) -> int | None:
    """SQL function: a number, its fraction cut off, or the text of a whole one, else NULL (the `int` cast)."""
    if isinstance(value, str):
        text = value.strip()
        whole = int(text) if _WHOLE.fullmatch(text) else None
    else:
        number = _sql_float(value)
        whole = None if number is None else value if isinstance(value, int) else int(number)
    return whole if whole is not None and -(2**63) <= whole < 2**63 else None


class Db:
    """Statements inside a transaction. Rows are plain dicts; JSON columns stay text until `load`ed."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def one(self, sql: str, *values: Any) -> Row | None:
        """The first row, or None."""
        cursor = self._connection.execute(sql, _bind_values(values))
        row = cursor.fetchone()
        return None if row is None else dict(zip(_read_names(cursor), row, strict=True))

    def get(self, table: str, row_id: Any) -> Row | None:
        """The row with this id, or None."""
        return self.one(f"SELECT * FROM {table} WHERE id = ?", row_id)  # noqa: S608 - own names

    def known(self, table: str, row_id: Any, what: str) -> Row:
        """The row with this id; 404 for an unknown one."""
        row = self.get(table, row_id)
        if row is None:
            raise Refusal(404, f"{what} not found")
        return row

    def opened(self, table: str, key: str) -> Row:
        """The row that the key in a page's address opens; 404 for an unknown key."""
        row = self.one(f"SELECT * FROM {table} WHERE portal_key = ?", key)  # noqa: S608 - own names
        if row is None:
            raise Refusal(404, "no such page")
        return row

    def all(self, sql: str, *values: Any) -> list[Row]:
        """All rows."""
        cursor = self._connection.execute(sql, _bind_values(values))
        names = _read_names(cursor)
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def column(self, sql: str, *values: Any) -> list[Any]:
        """The first column of all rows."""
        return [row[0] for row in self._connection.execute(sql, _bind_values(values))]

    def run(self, sql: str, *values: Any) -> int:
        """Execute; the number of rows changed."""
        return self._write(sql, values).rowcount

    def _write(self, sql: str, values: Iterable[Any]) -> sqlite3.Cursor:
        self._begin()
        return self._connection.execute(sql, _bind_values(values))

    def _begin(self) -> None:
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")

    def insert(self, table: str, row: Change) -> int:
        """Insert one row; its rowid."""
        return int(self._write(_make_insertion(table, *row), row.values()).lastrowid or 0)

    def insert_all(self, table: str, rows: Sequence[Change]) -> None:
        """Insert rows that all have the same columns."""
        if rows:
            self.run_all(_make_insertion(table, *rows[0]), [row.values() for row in rows])

    def run_all(self, sql: str, many: Sequence[Iterable[Any]]) -> None:
        """Execute once with each of these values."""
        self._begin()
        self._connection.executemany(sql, map(_bind_values, many))

    def update(self, table: str, row_id: Any, **changes: Any) -> None:
        """Update the row with this id."""
        self._write(_make_change(table, *changes), (*changes.values(), row_id))


def decode_row(row: Row, *columns: str) -> Row:
    """The row with these JSON columns decoded."""
    return row | {name: json.loads(row[name]) for name in columns if row[name] is not None}


class Store:
    """The database, in a file or, without one, temporary. Threads share it; `transaction()` serialises them."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._depth = 0
        # An empty name is SQLite's temporary database: it is lost with the connection, a commit writes nothing, and only
        # what does not fit into the cache goes to an unnamed file.
        self._connection = sqlite3.connect(path or "", check_same_thread=False, isolation_level=None)
        for name, cast in (("lab_stamp", _sql_stamp), ("lab_int", _sql_int), ("lab_float", _sql_float)):
            self._connection.create_function(name, 1, cast, deterministic=True)
        if path is None:
            self._connection.execute("PRAGMA journal_mode = MEMORY")
        else:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._set_up()

    def _set_up(self) -> None:
        (known,) = self._connection.execute("PRAGMA user_version").fetchone()
        filled = self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        if filled and known != _TABLES_VERSION:
            self._connection.close()
            raise ConfigurationError(
                f"{self.path} was not written by this version of the lab; give --database another file"
            )
        self._connection.executescript(f"{_TABLES}; PRAGMA user_version = {_TABLES_VERSION}")

    @contextmanager
    def transaction(self) -> Iterator[Db]:
        """All or nothing. A transaction inside another one joins it."""
        with self._lock:
            # SQLite's begins at the first write, which spares requests that only read two statements.
            outermost = self._depth == 0
            self._depth += 1
            try:
                yield Db(self._connection)
            except BaseException:
                if outermost and self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            else:
                if outermost and self._connection.in_transaction:
                    self._connection.execute("COMMIT")
            finally:
                self._depth -= 1

    def close(self) -> None:
        """Close the database; a temporary one is lost."""
        with self._lock:
            self._connection.close()
