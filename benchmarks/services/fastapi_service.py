"""What someone who serves a model by FastAPI writes first."""

import json
from typing import Annotated

from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel
from served_network import answers

KEY = "ff-do-not-tell"

app = FastAPI()


class Batch(BaseModel):
    """A batch of rows."""

    features: list[list[float]]


class Row(BaseModel):
    """One row."""

    x: list[float]


@app.post("/predict")
def predict(batch: Batch, x_api_key: Annotated[str, Header()]) -> dict:
    """Answer who has the key."""
    if x_api_key != KEY:
        raise HTTPException(403, "who are you?")
    return {"prediction": answers(batch.features).tolist(), "model": "digits"}


@app.post("/row")
def row(one: Row) -> dict:
    """Answer a row by class."""
    scores = answers([one.x])[0]
    return {"scores": {f"digit {i}": v for i, v in enumerate(scores.tolist())}}


@app.get("/ask")
def ask(x: str) -> dict:
    """Answer what an address asks."""
    return {"y": answers([json.loads(x)])[0].tolist()}
