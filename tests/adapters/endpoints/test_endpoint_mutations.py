"""Many mutated answers and templates: no traceback, and never a wrong network."""

import json

import numpy as np
import pytest

import revelu
from revelu.adapters.endpoints.answers import AnswerError, Answers
from revelu.adapters.endpoints.target import EndpointTarget
from revelu.adapters.endpoints.template import Template
from revelu.adapters.http_client import Reply
from revelu.errors import InputError, TargetError

pytestmark = pytest.mark.slow

NETWORK = revelu.zoo.random_network([3, 2, 2], seed=1)
ROWS = '{"features": $rows}'
PIECES = ["null", "NaN", '"a"', "[", "]", "{", "}", ",", ":", "1e999", "-", "0", '"', "true", "[]"]


def mutated(rng, content):
    """A text with one to three places deleted, doubled, replaced, swapped or filled in."""
    text = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        i, j = sorted(rng.integers(0, len(text), 2)) if text else (0, 0)
        kind = rng.integers(0, 6)
        if kind == 0:
            del text[i : i + rng.integers(1, 20)]
        elif kind == 1:
            text[i:i] = text[i:j][:40]
        elif kind == 2 and text:
            text[i] = rng.integers(0, 256)
        elif kind == 3:
            text[i:i] = PIECES[rng.integers(len(PIECES))].encode()
        elif kind == 4:
            text = text[:j]
        else:
            text[i:j] = text[i:j][::-1][:200]
    return bytes(text)


def is_one_line(error, context):
    assert "\n" not in str(error), context
    assert len(str(error)) < 700, context


FORMS = [
    ("$.prediction", lambda Y: {"prediction": Y.tolist(), "model": "a", "took": 0.5}),
    (None, lambda Y: {"prediction": Y.tolist()}),
    ("$.rows[*].y", lambda Y: {"rows": [{"y": y, "i": i} for i, y in enumerate(Y.tolist())]}),
    ("$[*]", lambda Y: [{"b": f"{y[1]!r}", "a": f"{y[0]!r}"} for y in Y.tolist()]),
    ("$..label", lambda Y: {"out": [{"label": f"c{i}"} for i in Y.argmax(axis=1)]}),
]


def test_mutated_answers_are_read_or_refused():
    rng = np.random.default_rng(1)
    n_read = 0
    for i in range(100_000):
        path, write = FORMS[i % len(FORMS)]
        n = int(rng.integers(1, 4))
        content = mutated(rng, json.dumps(write(NETWORK(rng.standard_normal((n, 3))))).encode())
        try:
            Y = Answers(path).read(content, n)
        except AnswerError as error:
            is_one_line(error, content)
        else:
            n_read += 1
            assert Y.shape[0] == n, content
            assert Y.ndim == 2, content
    assert 0 < n_read < 100_000


def test_mutated_templates_are_filled_or_refused():
    rng = np.random.default_rng(2)
    texts = [ROWS, '{"a": $row[0], "b": [$row[1], 2]}', '{"csv": "$row", "n": 1}', '[[$row], "x"]']
    n_filled = 0
    for i in range(10_000):
        text = mutated(rng, texts[i % len(texts)].encode()).decode(errors="replace")
        try:
            template = Template(text, ("POST", "GET")[i // 4 % 2])
        except InputError as error:
            is_one_line(error, text)
        else:
            n_filled += 1
            X = rng.standard_normal(
                (1 if template.one_by_one else 2, template.n_columns or max(3, template.n_least))
            )
            query, content = template.filled(X)
            assert bool(query) != bool(content), text
    assert 0 < n_filled < 10_000


class Scripted:
    """Stands for the connection: answers of a network, mutated from some request on."""

    def __init__(self, rng, write):
        self.rng, self.write = rng, write
        self.n, self.first = 0, int(rng.integers(0, 14))
        self.lasts = int(rng.choice([1, 1, 3, 1000]))

    def request(self, _method, _url, content, _headers, query="", **_counts):
        assert not query
        X = np.array(json.loads(content)["features"])
        answer = json.dumps(self.write(NETWORK(X))).encode()
        if self.first <= self.n < self.first + self.lasts:
            answer = mutated(self.rng, answer)
        self.n += 1
        return Reply(200, {}, answer)


@pytest.mark.parametrize("form", range(4))
def test_no_mutated_answer_makes_a_wrong_network(form):
    path, write = FORMS[form]
    ended = {}
    for seed in range(250):
        rng = np.random.default_rng([3, form, seed])
        target = EndpointTarget(revelu.Endpoint("http://127.0.0.1:1/p", ROWS, path, dim_in=3))
        target.client = Scripted(rng, write)
        try:
            found = revelu.extract(target, seed=seed, checks=200, max_seconds=20)
        except TargetError as error:
            is_one_line(error, seed)
            ended["stop"] = ended.get("stop", 0) + 1
            continue
        ended[found.status.value] = ended.get(found.status.value, 0) + 1
        if found.status is revelu.Status.RECOVERED:
            X = np.random.default_rng(seed).standard_normal((500, 3))
            np.testing.assert_allclose(found.network(X), NETWORK(X), rtol=0, atol=1e-6)
    assert ended["stop"] > 20
    assert ended["recovered"] > 20
