"""The SQLite store: one connection, write-ahead log, one transaction at a time.

It knows tables and columns, and no rules. Values are always bound; table and column names come from this
package's own code only.
"""

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from prefect_assay.lab import times
from prefect_assay.lab.tables import TABLES

Row = dict[str, Any]
Change = Mapping[str, Any]


def _value(value: Any) -> Any:
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value)
    if isinstance(value, datetime):
        return times.stamp(value)
    return value


def _dict_row(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> Row:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


def _sql_stamp(value: Any) -> str | None:
    """SQL function: any ISO text to fixed-width UTC text, else NULL (the filter's `timestamp` cast)."""
    try:
        return times.stamp(times.parse(str(value)))
    except ValueError:
        return None


class Db:
    """Statements inside a transaction. Rows are plain dicts; JSON columns stay text until `load`ed."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def one(self, sql: str, *values: Any) -> Row | None:
        """The first row, or None."""
        row: Row | None = self._connection.execute(sql, [_value(v) for v in values]).fetchone()
        return row

    def all(self, sql: str, *values: Any) -> list[Row]:
        """All rows."""
        return self._connection.execute(sql, [_value(v) for v in values]).fetchall()

    def run(self, sql: str, *values: Any) -> int:
        """Execute; the number of rows changed."""
        return self._connection.execute(sql, [_value(v) for v in values]).rowcount

    def insert(self, table: str, row: Change) -> int:
        """Insert one row; its rowid."""
        marks = ", ".join("?" * len(row))
        sql = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})"  # noqa: S608 - own names only
        cursor = self._connection.execute(sql, [_value(v) for v in row.values()])
        return int(cursor.lastrowid or 0)

    def update(self, table: str, row_id: Any, **changes: Any) -> None:
        """Change the row with this id."""
        columns = ", ".join(f"{name} = ?" for name in changes)
        sql = f"UPDATE {table} SET {columns} WHERE id = ?"  # noqa: S608 - own names only
        self._connection.execute(sql, [*(_value(v) for v in changes.values()), row_id])


def load(row: Row, *columns: str) -> Row:
    """The row with these JSON columns decoded."""
    return row | {name: json.loads(row[name]) for name in columns if row[name] is not None}


class Store:
    """The database file. Threads share it; `transaction()` serialises them."""

    def __init__(self, path: Path | None) -> None:
        self._folder = TemporaryDirectory(prefix="assay-lab-") if path is None else None
        self.path = path or Path(self._folder.name if self._folder else "") / "lab.sqlite3"
        self._lock = threading.RLock()
        self._depth = 0
        self._connection = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None)
        self._connection.row_factory = _dict_row
        self._connection.create_function("lab_stamp", 1, _sql_stamp, deterministic=True)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._connection.executescript(TABLES)

    @contextmanager
    def transaction(self) -> Iterator[Db]:
        """All or nothing. A transaction inside another one joins it."""
        with self._lock:
            outermost = self._depth == 0
            if outermost:
                self._connection.execute("BEGIN IMMEDIATE")
            self._depth += 1
            try:
                yield Db(self._connection)
            except BaseException:
                if outermost:
                    self._connection.execute("ROLLBACK")
                raise
            else:
                if outermost:
                    self._connection.execute("COMMIT")
            finally:
                self._depth -= 1

    def close(self) -> None:
        """Close the file, and remove it when it was a temporary one."""
        with self._lock:
            self._connection.close()
            if self._folder is not None:
                self._folder.cleanup()
