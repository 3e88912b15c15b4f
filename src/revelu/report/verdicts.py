"""The first line of an account: how it ended, and whether that is good."""

from collections.abc import Mapping
from typing import Any, NamedTuple

# Of a recovery, by its status: words, and how they are meant.
VERDICTS = {
    "recovered": ("recovered and certified", "good"),
    "partial": ("partly recovered; not certified", "warn"),
    "not_in_class": ("not recovered: not such a network", "bad"),
    "not_deterministic": ("not recovered: the answers follow no law", "bad"),
    "written": ("written as one network", "good"),
    "budget_exhausted": ("not finished: budget or time exhausted", "warn"),
    "unverified": ("NOT certified: fresh queries disagree", "bad"),
}

# What an owner reads: what is given away is bad.
GIVEN_AWAY = {
    "weights": ("gives away its weights", "bad"),
    "function": ("gives away its function", "bad"),
    "span": ("gives away the directions that it looks at", "warn"),
    "nothing": ("nothing was found", "good"),
}

# What answers as the target does.
NETWORK = ("function", "weights")

# Of a network that was given.
VERIFIED = {
    "recovered": ("verified: the network agrees with the target on fresh queries", "good"),
    "unverified": ("NOT verified: fresh queries disagree", "bad"),
    "not_in_class": ("NOT verified: the target is not such a network", "bad"),
    "not_deterministic": ("NOT verified: the answers follow no law", "bad"),
}


# Of work that something ended before anything was found.
ENDED = {
    "error": ("not finished: an error ended it", "bad"),
    "interrupted": ("not finished: interrupted", "warn"),
}

# What an account has of which something was found, or understood.
_FINDINGS = {"rows", "taken"}


class Verdict(NamedTuple):
    """A verdict.

    Attributes
    ----------
    words : str
    tone : {"good", "warn", "bad"}
    """

    words: str
    tone: str


def verdict(command: str, account: Mapping[str, Any]) -> Verdict:
    """Return the verdict of an account.

    Parameters
    ----------
    account : mapping
        As ``--json`` has it.
    """
    if account["status"] in {"error", "interrupted"} and not _FINDINGS & account.keys():
        words, tone = ENDED[account["status"]]
        found = account.get("architecture") is not None and account.get("certified") is False
        return Verdict(f"{words}; what was found is NOT certified" if found else words, tone)
    special = {"audit": _of_audit, "compare": _of_comparison, "diagnose": _of_diagnosis}
    special |= {"probe": _of_probe, "inspect": _of_file}
    if command in special:
        return special[command](account)
    status = f"{account['status']}"
    words, tone = VERDICTS.get(status, (status.replace("_", " "), "warn"))
    if status == "not_deterministic" and (account.get("answers") or {}).get("law") == "by batch":
        return Verdict("a row's answer depends on its batch", "bad")
    if command == "verify" and account.get("saturated"):
        return Verdict("undecided: the target is saturated where it was asked", "warn")
    if command == "verify":
        words, tone = VERIFIED.get(status, (words, tone))
        return _with_exceptions(Verdict(words, tone), account)
    if command == "obfuscate":
        return _of_obfuscation(account, tone)
    if "rank" in account:
        return _of_part(f"{account['rank']} of {account['inputs']} directions", account, tone)
    if "normals" in account:
        k, way = len(account["normals"]), {"or": "any", "and": "all"}[account["combine"]]
        return _of_part(f"{way} of {k} halfspace{'s' * (k != 1)}", account, tone)
    if account.get("method") == "read":
        if not account.get("queries"):
            return Verdict("read from the file; nothing was asked", "good")
        words = words.replace("recovered and", "read from the file, and")
    certificate = account.get("certificate")
    if status == "unverified" and certificate is None:
        words = "not recovered"
    if "samples" in account:
        words = words.replace("fresh queries", "samples kept apart")
        if status == "unverified" and certificate and certificate["fraction_within"] == 1.0:
            words = "NOT certified"
    return _with_exceptions(Verdict(words, tone), account)


def _with_exceptions(said: Verdict, account: Mapping[str, Any]) -> Verdict:
    """A verdict with what a certificate leaves out, or which inputs speak against it."""
    certificate, status = account.get("certificate") or {}, account["status"]
    fidelity = certificate.get("fidelity") or {}
    if status == "unverified" and certificate.get("fraction_within") == 1.0 and fidelity:
        n, pattern = fidelity["n_inputs"], fidelity.get("pattern")
        n_wrong = round((1.0 - fidelity["fraction_within"]) * n)
        if n_wrong:
            which = f"{n_wrong:,} of the {n:,} {fidelity['source']} disagree"
            words = said.words.replace("fresh queries disagree", which)
            return Verdict(f"{words}, {pattern}" if pattern else words, said.tone)
    shares = [certificate.get(f"{which}_within") for which in ("fraction", "structural")]
    if status == "unverified" and certificate.get("n_checks") and shares == [1.0, 1.0]:
        words = said.words.replace("fresh queries disagree", "answers err too much to tell")
        return Verdict(words, said.tone)
    if status != "recovered" or not certificate.get("passed"):
        return said
    words, tone = said
    if held := account.get("held"):
        words += f" where {_values(held)}"
    n = certificate.get("n_checks") or 0
    if n_wrong := round((1.0 - certificate.get("fraction_within", 1.0)) * n):
        words, tone = f"{words}; {n_wrong:,} of {n:,} inputs differ", "warn"
    if beyond := certificate.get("beyond"):
        words, tone = f"{words}; {_elsewhere(beyond)}", "warn"
    return Verdict(words, tone)


def _values(held: Mapping[str, float], most: int = 3) -> str:
    """Columns and the values that they were held at, or how many there are."""
    if len(held) > most:
        return f"{len(held)} columns are as in the data"
    return " and ".join(f"{name} = {value:g}" for name, value in held.items())


def _elsewhere(beyond: Mapping[str, Any]) -> str:
    """Where a certified network is known to differ."""
    n, n_wrong, distance = beyond["n_inputs"], beyond["n_wrong"], beyond["distance"]
    if not n_wrong:
        return "it differs at inputs that the search has met"
    far = f"{distance:.2g} times as far out as most and farther" if (distance or 0.0) > 1.5 else ""
    return f"{n_wrong:,} of {n:,} {far or 'that were sought'} differ"


def _of_part(words: str, account: Mapping[str, Any], tone: str) -> Verdict:
    """How much of something was found; less than all of it is no failure."""
    if account["status"] == "recovered":
        return Verdict(words, tone)
    return Verdict(f"{words} ({account['status'].replace('_', ' ')})", tone)


def _of_audit(account: Mapping[str, Any]) -> Verdict:
    rows, missing = account["rows"], account["missing"]
    if not rows:
        return Verdict("nothing was judged", "warn")
    if account.get("contradicted"):
        return Verdict("unknown: the target does not answer as one model", "bad")
    if account.get("changed"):
        return Verdict("unknown: the target changed while it was audited", "bad")
    words, tone = GIVEN_AWAY[rows[0]["recovered"]]
    if (near := account.get("near_copy")) is not None:
        words, tone = _of_near_copy(near, words, rows[0]["recovered"]), "bad"
        if rows[0]["cut"]:
            words += ", before the attack was cut"
    elif rows[0].get("saturated") and rows[0]["recovered"] == "nothing":
        words, tone = "undecided: it is saturated where it was asked", "warn"
    elif rows[0].get("not_in_class") and rows[0]["recovered"] == "nothing":
        words, tone = "the target is no such network: copies trained on it were not tried", "warn"
    elif rows[0]["cut"] and rows[0]["recovered"] == "nothing":
        words, tone = "nothing was found before the attack was cut", "warn"
    elif rows[0].get("undecided") and rows[0]["recovered"] == "nothing":
        words, tone = "the attack ended without a network, which does not show that none is", "warn"
    # Where any attack was cut, that nothing was found is no good news.
    elif tone == "good" and (missing or any(is_open(row) for row in rows)):
        words, tone = f"{words}, but not all attacks came to their end", "warn"
    if severity := account.get("severity"):
        words = f"{severity}: {words}"
    n = len(missing)
    return Verdict(f"{words}; {n} row{'s' * (n != 1)} missing" if missing else words, tone)


def _of_near_copy(near: Mapping[str, Any], words: str, recovered: str) -> str:
    """A copy that is nearly the function, and what else is given away."""
    cost = "" if near["queries"] is None else f" for {near['queries']:,} queries"
    said = f"a copy that explains {near['fidelity']:.1%} of the answers' variance{cost}"
    return said if recovered == "nothing" else f"{words}, and {said}"


def is_open(row: Mapping[str, Any]) -> bool:
    """Whether more might be given away than a row of an audit says."""
    return bool(row["cut"]) and row["recovered"] not in NETWORK


def _of_probe(account: Mapping[str, Any]) -> Verdict:
    if account["status"] == "error":
        return Verdict("nothing was understood", "bad")
    return Verdict("answers, and is understood", "good")


def _of_file(account: Mapping[str, Any]) -> Verdict:
    if account.get("certified") is None and account.get("method") == "read":
        return Verdict("a network, read from a file; no query has checked it", "good")
    if account.get("certified") is None:
        return Verdict("a network; the file does not say whether it is certified", "warn")
    if account["certified"]:
        return Verdict("a network, certified", "good")
    return Verdict("a network, NOT certified", "warn")


def _of_comparison(account: Mapping[str, Any]) -> Verdict:
    if account["status"] == "agree":
        return Verdict("they agree", "good")
    return Verdict("they differ", "bad")


def _of_diagnosis(account: Mapping[str, Any]) -> Verdict:
    status, delta = account["status"].replace("_", " "), account["delta"]
    finished = status == "finished"
    if delta is None:
        return Verdict(f"not diagnosed: {'figures are missing' if finished else status}", "bad")
    words = "not regular" if delta == 0.0 else f"regular with delta {delta:.2g}"
    if not finished:
        return Verdict(f"{words}, as far as was seen ({status})", "warn")
    return Verdict(words, "warn" if delta == 0.0 else "good")


def _of_obfuscation(account: Mapping[str, Any], tone: str) -> Verdict:
    changed = account["changed_labels"]
    if changed is None:
        return Verdict(f"nothing changed ({account['status'].replace('_', ' ')})", "bad")
    n = account["inputs_changed"]
    return Verdict(f"{n - changed:,} of {n:,} labels as before", "warn" if changed else tone)
