"""A bare FastAPI service that stores and returns a body, on SQLite: what `bench_lab.py` measures the lab against.

It checks the token by comparison and the body by a model, and has no rules, no prices and no clock.
"""

import json
import sqlite3
import sys
import tempfile
import threading
import uuid
from pathlib import Path
from typing import Annotated

import uvicorn
from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel

TOKEN = "bare"


class Spec(BaseModel):
    experiment_type: str
    method: str
    target_id: str
    sequences: dict[str, str]


class Create(BaseModel):
    name: str
    experiment_spec: Spec


class Experiment(BaseModel):
    id: str
    name: str
    status: str
    experiment_spec: Spec


app = FastAPI()
folder = tempfile.TemporaryDirectory()
db = sqlite3.connect(Path(folder.name) / "bare.sqlite3", check_same_thread=False, isolation_level=None)
db.execute("PRAGMA journal_mode = WAL")
db.execute("PRAGMA synchronous = NORMAL")
db.execute("CREATE TABLE experiments (id TEXT PRIMARY KEY, name TEXT, status TEXT, spec TEXT)")
lock = threading.Lock()


def _check(authorization: str) -> None:
    if authorization != f"Bearer {TOKEN}":
        raise HTTPException(401)


@app.post("/api/v1/experiments", status_code=201)
def create(body: Create, authorization: Annotated[str, Header()]) -> Experiment:
    _check(authorization)
    made = Experiment(
        id=str(uuid.uuid4()), name=body.name, status="draft", experiment_spec=body.experiment_spec
    )
    with lock:
        db.execute("BEGIN IMMEDIATE")
        db.execute(
            "INSERT INTO experiments VALUES (?, ?, ?, ?)",
            (made.id, made.name, made.status, made.experiment_spec.model_dump_json()),
        )
        db.execute("COMMIT")
    return made


@app.get("/api/v1/experiments/{experiment_id}")
def get(experiment_id: str, authorization: Annotated[str, Header()]) -> Experiment:
    _check(authorization)
    with lock:
        row = db.execute("SELECT * FROM experiments WHERE id = ?", (experiment_id,)).fetchone()
    if row is None:
        raise HTTPException(404)
    return Experiment(id=row[0], name=row[1], status=row[2], experiment_spec=json.loads(row[3]))


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), log_level="warning", access_log=False)
