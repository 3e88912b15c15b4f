"""Where an account comes from: the command line without secrets, and what the target is."""

import hashlib
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.adapters import identity_of
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.cli.provenance import _header, _request, command_line, without_secrets
from serving import serving

TRUTH = revelu.zoo.random_network([4, 2, 1], seed=1)


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TRUTH.save(tmp_path / "truth.npz")
    return lambda *arguments: CliRunner().invoke(app, [*map(str, arguments)])


def test_the_command_line_and_the_file_are_told(invoke, tmp_path):
    arguments = ("extract", "truth.npz", "-o", "a b.npz", "--seed", "3", "--json", "--polish")
    account = one_object(invoke(*arguments, "--box", "-1", "1").stdout)
    line = account["command_line"]
    assert line.startswith("revelu extract truth.npz ")
    for words in ("--output 'a b.npz'", "--seed 3", "--json", "--polish", "--box -1.0 1.0"):
        assert words in line
    assert "--checks" not in line
    digest = hashlib.sha256((tmp_path / "truth.npz").read_bytes()).hexdigest()
    assert account["identity"] == {"file": "truth.npz", "sha256": digest}
    assert len(account["date"]) == len("2000-01-01")


def ask(
    context: typer.Context,
    target: str,
    header: Annotated[list[str] | None, typer.Option()] = None,
    request: str | None = None,
    verbose: Annotated[int, typer.Option("--verbose", "-v", count=True)] = 0,
) -> None:
    """Say how this was called."""
    assert all((target, header, request, verbose))
    typer.echo(command_line(context))


def test_nothing_secret_is_in_it():
    app = typer.Typer()
    app.command()(ask)
    headers = ["--header", "X-Api-Key: s3cret", "--header", "Authorization: Bearer t0ken"]
    request = ["--request", '{"key": "k3y", "rows": $rows}', "-vv"]
    url = "https://user:w0rd@host/infer?token=qu3ry"
    said = CliRunner().invoke(app, [url, *headers, *request]).stdout
    assert "'X-Api-Key: ***'" in said
    assert "'https://***@host/infer?***'" in said
    assert said.rstrip().endswith("--verbose --verbose")
    for secret in ("s3cret", "t0ken", "k3y", "w0rd", "qu3ry"):
        assert secret not in said


def test_secrets_of_the_environment_are_named(invoke, monkeypatch, tmp_path):
    monkeypatch.setenv("API_KEY", "hush-hush")
    with serving(TRUTH) as server:
        key = ("--header", "X-Key: $API_KEY", "--key-env", "API_KEY")
        result = invoke("extract", server.url, *key, "--json", "--report", "page.html")
    assert result.exit_code == ExitCode.CERTIFIED, result.output
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "--key-env API_KEY" in one_object(result.stdout)["command_line"]
    assert "hush-hush" not in result.output + page


def test_addresses_lose_passwords_and_queries():
    assert without_secrets("https://u:p@host:8/a?key=1#f") == "https://***@host:8/a?***"
    assert without_secrets("HTTP://u:p@host/a") == "http://***@host/a"
    assert without_secrets("model.onnx") == "model.onnx"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ('{"features": $rows, "model": "iris-2"}', None),
        ('{"age": $row[0],  "text": "$row", "n": 3}', None),
        ('{"key": "k3y", "rows": $rows}', '{"key": "***", "rows": $rows}'),
        ('{"a": {"auth": [{"x": 7}]}, "b": $row}', '{"a": {"auth": [{"x": "***"}]}, "b": $row}'),
        (
            '[{"name": "token", "value": "abc"}, $rows]',
            '[{"name": "***", "value": "***"}, $rows]',
        ),
        ('{"x": "sk-a1b2c3d4e5f6g7h8i9j0k1", "y": $row}', '{"x": "***", "y": $row}'),
        ('{"t": "no JSON', "***"),
        ('{"rows": $objects(age=40, "income (k)")}', None),
        (
            '{"key": "k3y", "rows": $objects(a, token="t0ken", b = 2)}',
            '{"key": "***", "rows": $objects(a, token="***", b = 2)}',
        ),
        ('{"rows": $objects(a, api_key=t0ken)}', '{"rows": $objects(a, api_key="***")}'),
    ],
)
def test_requests_are_shown_but_for_what_is_secret(given, told):
    assert _request(given) == (given if told is None else told)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("Accept: application/json", "Accept: application/json"),
        ("Authorization: Bearer $TOKEN", "Authorization: Bearer $TOKEN"),
        ("Authorization: Bearer t0ken", "Authorization: Bearer ***"),
        ("Authorization: t0ken", "Authorization: ***"),
        ("X-Api-Key: ${KEY}", "X-Api-Key: ${KEY}"),
        ("X-Api-Key: s3cret", "X-Api-Key: ***"),
        ("X-Trace: a1b2c3d4e5f6a1b2c3d4e5f6", "X-Trace: ***"),
        ("s3cret", "***"),
    ],
)
def test_headers_are_shown_but_for_what_is_secret(given, told):
    assert _header(given) == told


def test_served_models_tell_name_and_version(invoke):
    with serving(TRUTH) as server:
        account = one_object(invoke("extract", server.url, "--json").stdout)
        versioned = one_object(invoke("extract", f"{server.url}/versions/7", "--json").stdout)
    assert account["identity"]["model"]
    assert versioned.get("identity", {"version": "7"})["version"] == "7"


def test_a_target_without_a_file_tells_what_it_can():
    assert identity_of("http://host/x", None) == {}
    assert identity_of("module:f", lambda X: X) == {}
