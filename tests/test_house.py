"""The house: architecture, style, types, the public surface, a bare import."""

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest

import revelu

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))

PUBLIC = {
    "METHODS",
    "Alignment",
    "Audit",
    "AuditRow",
    "Certificate",
    "Comparison",
    "Domain",
    "Endpoint",
    "FormatError",
    "HalfspaceRecovery",
    "HermiteRegressor",
    "InputError",
    "LayerRecovery",
    "Ledger",
    "LimitReachedError",
    "MissingExtraError",
    "Network",
    "NullCertificate",
    "Oracle",
    "Recovery",
    "ReveluError",
    "Span",
    "SpanRecovery",
    "Status",
    "TargetError",
    "UntrustedError",
    "__version__",
    "align",
    "audit",
    "compare",
    "diagnose",
    "extract",
    "learn",
    "load",
    "obfuscate",
    "open_oracle",
    "recover_halfspaces",
    "recover_lowest_layer",
    "recover_span",
    "select_methods",
    "verify",
    "zoo",
}

OPTIONAL = {
    "dask",
    "distributed",
    "httpx",
    "jinja2",
    "joblib",
    "jsonpath",
    "matplotlib",
    "mlxtend",
    "orjson",
    "pandas",
    "pyarrow",
    "pyfive",
    "safetensors",
    "skl2onnx",
    "sklearn",
    "skops",
    "stamina",
    "torch",
    "xxhash",
}
HARD = {"numpy", "onnx", "onnxruntime", "rich", "scipy", "typer"}

# Files below the command line that still read what is for reports.
READS_DETAILS: set[str] = set()

# What tunes an algorithm is a field or an argument with its reason; these numbers only fall.
MOST_CONSTANTS = 59
MOST = {
    "numbers in recover": 1358,
    "numbers in src": 2259,
    "lines in recover": 35_366,
    "files in recover": 186,
    "files over 400 lines": 28,
    "classes over 250 lines": 27,
    "functions over 60 lines of body": 12,
    "class names used twice": 0,
    "modules in import circles": 5,
    "sentences that say so many": 0,
}

# Modules of the standard library, and names in those that run everywhere, that
# only POSIX has.
POSIX_MODULES = {"curses", "fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios"}
POSIX_NAMES = {
    "os": {"chown", "fork", "getpgid", "getuid", "killpg", "mkfifo", "setsid", "sysconf", "uname"},
    "signal": {"SIGALRM", "SIGHUP", "SIGKILL", "SIGUSR1", "SIGUSR2", "alarm", "setitimer"},
}


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def run_tool(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def loaded_after(code: str) -> set[str]:
    """Top-level modules in a fresh interpreter that has run ``code``."""
    done = run_python(f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))")
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def test_rooms_import_only_downwards():
    done = run_python("from importlinter.cli import lint_imports_command as go; go()")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_ruff_has_nothing_to_say():
    run_tool("ruff", "check")


def test_format_is_ruffs():
    run_tool("ruff", "format", "--check")


def test_types_are_strict():
    run_tool("mypy")


def test_public_surface_is_this_list():
    assert set(revelu.__all__) == PUBLIC
    assert len(revelu.__all__) == len(PUBLIC)
    assert set(dir(revelu)) >= PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_name_loads(name):
    value = getattr(revelu, name)
    assert inspect.ismodule(value) == (name == "zoo")
    assert value is getattr(revelu, name)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        revelu.nothing  # noqa: B018


def test_every_exception_derives_from_revelu_error():
    errors = {name for name in PUBLIC if name.endswith("Error")}
    assert errors
    assert all(issubclass(getattr(revelu, name), revelu.ReveluError) for name in errors)


def test_import_loads_no_other_package():
    assert not loaded_after("import revelu") & (OPTIONAL | HARD)


def test_every_public_name_loads_without_optional_packages():
    # A scikit-learn estimator is one, and needs it.
    names = sorted(PUBLIC - {"HermiteRegressor"})
    code = f"import revelu\nfor name in {names}: getattr(revelu, name)"
    loaded = loaded_after(code)
    assert "numpy" in loaded
    assert not loaded & OPTIONAL


def test_extraction_loads_no_optional_package():
    code = "import revelu\nrevelu.extract(revelu.zoo.random_network([3, 2, 1], seed=1), checks=50)"
    loaded = loaded_after(code)
    assert "numpy" in loaded
    assert not loaded & OPTIONAL


def test_library_is_silent_unless_asked():
    code = "import logging, revelu\nlogging.getLogger('revelu.probe').warning('heard')"
    done = run_python(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_nothing_is_posix_only(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules = {alias.name.partition(".")[0] for alias in node.names}
            assert not modules & POSIX_MODULES
        elif isinstance(node, ast.ImportFrom):
            assert node.module not in POSIX_MODULES
            assert not {a.name for a in node.names} & POSIX_NAMES.get(node.module or "", set())
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert node.attr not in POSIX_NAMES.get(node.value.id, set())
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert not node.value.startswith(("/dev/", "/proc/", "/tmp/"))  # noqa: S108


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tests/listings").glob("*.py")), ids=lambda p: p.stem
)
def test_listings_share_no_code_with_what_they_check(path):
    assert not any(name.partition(".")[0] == "revelu" for name in imported(path))


def test_every_module_has_an_importer():
    # What a guide tells users to import.
    for_others = {"revelu.tasks.rules.upper_part"}
    modules = {
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        for path in SOURCES
        if path.stem not in {"__init__", "__main__"}
    }
    used = {name for path in SOURCES for name in imported(path)}
    assert modules - used - for_others == set()


def imported(path: Path) -> set[str]:
    """Modules that a file may import: of ``from a import b``, ``a`` and ``a.b``; and by name."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)
    return names


def steered_by_details(tree: ast.AST) -> bool:
    """Whether code reads ``details`` for more than to pass them on, ``{**result.details}``."""
    passed_on = {
        id(value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if key is None
    }
    return any(
        isinstance(node, ast.Attribute) and node.attr == "details" and id(node) not in passed_on
        for node in ast.walk(tree)
    )


def test_details_steer_nothing():
    package = ROOT / "src" / "revelu"
    found = {
        path.relative_to(package).as_posix()
        for path in SOURCES
        if steered_by_details(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert {name for name in found if not name.startswith(("cli/", "report/"))} <= READS_DETAILS


def is_number(node: ast.expr) -> bool:
    """Whether an expression is a number, or a tuple or list of numbers."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    return (
        isinstance(node, ast.Tuple | ast.List)
        and bool(node.elts)
        and all(is_number(element) for element in node.elts)
    )


def test_few_numbers_are_bound_at_the_top_of_a_module():
    named = [
        f"{path.name}: {ast.unparse(node)}"
        for path in SOURCES
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and is_number(node.value)
    ]
    assert len(named) <= MOST_CONSTANTS, "\n".join(named)


def tuning_numbers(tree: ast.Module) -> int:
    """Count the numbers of a file that tune it, in every form.

    Constants of the module, defaults of fields and of keywords, and decimals inside functions.
    Those that are part of a formula, 0, 1/2, 1 and 2, are left out of the last.
    """
    bound = [n.value for n in tree.body if isinstance(n, ast.Assign | ast.AnnAssign)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            bound += [field.value for field in node.body if isinstance(field, ast.AnnAssign)]
        elif isinstance(node, ast.FunctionDef):
            bound += [*node.args.defaults, *node.args.kw_defaults]
    single = [v for v in bound if v is not None and not isinstance(v, ast.Tuple | ast.List)]
    inside = {
        id(node): node.value
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for statement in function.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Constant) and isinstance(node.value, float)
    }
    decimals = [value for value in inside.values() if value not in {0.0, 0.5, 1.0, 2.0}]
    return sum(map(is_number, single)) + len(decimals)


def body_length(node: ast.FunctionDef) -> int:
    """Lines of a function without its docstring."""
    first, n = node.body[0], (node.end_lineno or 0) - node.lineno + 1
    has_docstring = ast.get_docstring(node) is not None
    return n - ((first.end_lineno or 0) - first.lineno + 1 if has_docstring else 0)


def modules_in_circles() -> int:
    """Count modules that import each other, be it for types alone."""
    paths = {".".join(p.relative_to(ROOT / "src").with_suffix("").parts): p for p in SOURCES}
    graph = nx.DiGraph(
        (name, other)
        for name, path in paths.items()
        if path.stem != "__init__"
        for other in imports_of(path) & paths.keys()
    )
    return sum(len(c) for c in nx.strongly_connected_components(graph) if len(c) > 1)


def imports_of(path: Path) -> set[str]:
    """Modules that a file imports."""
    return {
        module
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module
        for module in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
    }


def test_figures_of_the_house_only_fall():
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCES}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    lines = {path: text.count("\n") for path, text in texts.items()}
    numbers = {path: tuning_numbers(tree) for path, tree in trees.items()}
    recover = [path for path in SOURCES if "recover" in path.relative_to(ROOT / "src").parts]
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    lengths = [(node.end_lineno or 0) - node.lineno + 1 for node in classes]
    bodies = [body_length(node) for node in nodes if isinstance(node, ast.FunctionDef)]
    figures = {
        "numbers in recover": sum(numbers[path] for path in recover),
        "numbers in src": sum(numbers.values()),
        "lines in recover": sum(lines[path] for path in recover),
        "files in recover": len(recover),
        "files over 400 lines": sum(n > 400 for n in lines.values()),
        "classes over 250 lines": sum(n > 250 for n in lengths),
        "functions over 60 lines of body": sum(n > 60 for n in bodies),
        "class names used twice": len(classes) - len({node.name for node in classes}),
        "modules in import circles": modules_in_circles(),
        "sentences that say so many": sum(text.count("so many") for text in texts.values()),
    }
    assert figures.keys() == MOST.keys()
    assert {name: n for name, n in figures.items() if n > MOST[name]} == {}, figures
