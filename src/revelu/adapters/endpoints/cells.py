"""Numbers in texts: "12.5 EUR", "$1,234.5", "0,8312", "83.12%".

What stands around a number, and which sign is that of decimals, is the same in every answer; the
first answers show it.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from revelu.adapters.credentials import shown
from revelu.errors import ReveluError
from revelu.types import FloatArray

# A number as JSON writes it; what is written so and is not finite is for the oracle to refuse.
_PLAIN = re.compile(
    r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf(?:inity)?)", re.IGNORECASE | re.ASCII
)
# A space is within a number only before three digits.
_NUMERAL = re.compile(
    r"(?:(?<!\d)[-+]\s?)?[.,]?\d(?:\d|[.,'](?=\d)|[ ](?=\d{3}(?!\d)))*(?:[eE][-+]?\d+)?", re.ASCII
)
_FRACTION = re.compile(r"\d[.,]\d")
_DIGITS = re.compile(r"\d+")
# All digits of a text in parentheses, without a sign of their own and without a word.
_ACCOUNTED = re.compile(r"([^\w()+-]*)\(([^\w()+-]*\d[\d.,' ]*[^\w()+-]*)\)([^\d()]*)")
# Signs of other scripts, each as the one that reads alike.
_ALIKE = str.maketrans(
    {"\u2212": "-", "\u2019": "'", "\u066b": ".", "\u066c": "'"}
    | dict.fromkeys("\u00a0\u2009\u202f", " ")
)
_BOTH = frozenset(".,")


class CellError(ReveluError):
    """Texts that are no numbers of one form."""


def is_plain(text: str) -> bool:
    """Whether a text is a number as JSON writes it, or one that is not finite."""
    return _PLAIN.fullmatch(text.strip()) is not None


def is_word(text: str) -> bool:
    """Whether a text is no number, whatever the others are: a name, or one that is numbered."""
    if is_plain(text) or not any(char.isdecimal() for char in text):
        return not is_plain(text)
    form = Form.of([text])
    return form is not None and form.is_numbered and _is_whole(form, text)


@dataclass(frozen=True)
class Form:
    """What stands around the number of a text.

    Attributes
    ----------
    around : tuple of str
        What is between numerals, and before the first and after the last one.
    place : int
        Of the numeral that differs from answer to answer.
    others : tuple of str
        The other numerals, which do not.
    accounts : bool
        Whether a number in parentheses is less than 0.
    """

    around: tuple[str, ...] = ("", "")
    place: int = 0
    others: tuple[str, ...] = ()
    accounts: bool = False

    @classmethod
    def of(cls, texts: Sequence[str], *, accounts: bool = False) -> "Form | None":
        """The form of texts, where one numeral in constant text is all that differs.

        Where some are in parentheses, those are less than 0.
        """
        read = [_taken_apart(text, accounts=accounts) for text in texts]
        if len({around for around, _ in read}) != 1:
            some = not accounts and any(map(_is_accounted, texts))
            return cls.of(texts, accounts=True) if some else None
        numerals = list(zip(*(found for _, found in read), strict=True))
        differ = [i for i, column in enumerate(numerals) if len(set(column)) > 1]
        if len(differ) > 1 or (not differ and len(numerals) != 1):
            return None
        place = differ[0] if differ else 0
        others = tuple(column[0] for i, column in enumerate(numerals) if i != place)
        return cls(read[0][0], place, others, accounts)

    def numeral(self, text: str) -> str | None:
        """The number in a text, as it is written; None of texts of another form."""
        # The first one less than 0 may come late.
        for accounts in dict.fromkeys((self.accounts, True)):
            around, found = _taken_apart(text, accounts=accounts)
            others = (*found[: self.place], *found[self.place + 1 :])
            if (around, others) == (self.around, self.others):
                return found[self.place]
        return None

    @property
    def exponent(self) -> int:
        """The power of ten that a number is in: 83.12% is the share 0.8312."""
        after = self.around[self.place + 1].strip()[:1]
        return {"%": -2, "\u066a": -2, "\u2030": -3}.get(after, 0)

    @property
    def is_numbered(self) -> bool:
        """Whether a word stands before the number, as in names of classes that are numbered."""
        return any(char.isalpha() for char in self.around[self.place])


class Cells:
    """Reads the cells of answers: numbers, numbers in constant text, or names of classes.

    Parameters
    ----------
    enough : int
        Numbers of three places without trailing zeros: that none of ``enough`` has fewer places
        happens less than once in twenty times, 0.9^29 < 0.05.
    most_bins : int
        Different texts with fractions that may be names, as "0.5 to 1.5" is of a class.

    Attributes
    ----------
    are_names : bool or None
        Whether they are names; None before the first answer.
    are_texts : bool
        Whether the first answers were texts.
    origin : {"", "csv", "plain"}
        What they are from: lines of CSV, where a comma parts cells, or of plain text.
    """

    def __init__(self, enough: int = 29, *, most_bins: int = 12) -> None:
        self._enough, self._most_bins = enough, most_bins
        self.are_names: bool | None = None
        self.are_texts, self.origin = False, ""
        # What a comma between digits is for, where it says more than which decimals there are.
        self._commas: str | None = None
        self._forms: list[Form] = []
        self._shown: Sequence[Any] = ()
        # What the sign of decimals may be.
        self._signs = _BOTH

    def numbers(self, rows: Sequence[Sequence[Any]]) -> "FloatArray | np.ndarray[Any, Any]":
        """Return rows of cells as numbers (n, k), or names as texts (n, 1).

        Raises
        ------
        CellError
            If they are neither, differ from those before, or leave open what they are.
        """
        columns = list(zip(*rows, strict=True))
        if self._commas is None:
            self._commas = self._purpose(columns)
        if self._commas == "decimals" and len(columns) % 2 == 0:
            pairs = zip(columns[::2], columns[1::2], strict=True)
            columns = [tuple(map(",".join, zip(*both, strict=True))) for both in pairs]
        elif self._commas == "list" and len(columns) == 1:
            columns = list(zip(*(text.split(",") for text in columns[0]), strict=True))
        if self.are_names is None:
            self._learn(columns)
        if self.are_names:
            if len(columns) != 1 or any(type(cell) is not str for cell in columns[0]):
                raise CellError(f"answers numbers after class names: {_quoted(rows[0])}; {_GIVE}")
            return np.array(rows)
        if len(columns) != len(self._forms):
            is_named = any(type(cell) is str and is_word(cell) for cell in rows[0])
            kinds = ("class names", "numbers") if is_named else (len(columns), len(self._forms))
            raise CellError(f"answers {kinds[0]} after {kinds[1]}: {_quoted(rows[0])}; {_GIVE}")
        numerals = [self._numerals(*both) for both in zip(columns, self._forms, strict=True)]
        self._look([one for column in numerals for one in column if type(one) is str])
        return np.array(
            [
                [self._number(one, form.exponent) for one in column]
                for column, form in zip(numerals, self._forms, strict=True)
            ]
        ).T

    def _purpose(self, columns: Sequence[Sequence[Any]]) -> str:
        """What commas are for: "list", "decimals" that CSV has taken for two cells, or neither.

        Raises
        ------
        CellError
            If that is open.
        """
        cells = [cell for column in columns for cell in column]
        if not cells or any(type(cell) is not str for cell in cells):
            return ""
        if len(columns) > 1:
            second = [cell for column in columns[1::2] for cell in column]
            is_list = len(columns) % 2 > 0 or any(cell[:1] in {"-", "+"} for cell in second)
            if self.origin != "csv" or is_list:
                return ""
            if any(map(_LEADING_ZERO.match, cells)):
                return "decimals"
            if all(len(cell) == 1 for cell in second):
                return ""
            raise CellError(_unclear(",".join(column[0] for column in columns)))
        parts = [text.split(",") for text in cells]
        is_list = len(set(map(len, parts))) == 1 and len(parts[0]) > 1
        if not is_list or not all(is_plain(one) for some in parts for one in some):
            return ""
        form = Form.of(cells)
        numerals = [] if form is None else [form.numeral(text) or "" for text in cells]
        if not numerals or not frozenset.intersection(*map(_signs_of, numerals)):
            return "list"
        if self.origin == "plain" and all(len(one) == 1 for some in parts for one in some[1:]):
            raise CellError(_unclear(cells[0]))
        return ""

    def take_numbers(self, k: int) -> None:
        """Know that cells are numbers of JSON, k of a row."""
        if self.are_names is None:
            self._forms, self._shown = [Form()] * k, [0.0]
            self.are_names, self._commas = False, "list"

    def _learn(self, columns: Sequence[Sequence[Any]]) -> None:
        """See what the cells are."""
        texts = [[cell for cell in column if type(cell) is str] for column in columns]
        forms = [Form.of(some) if not all(map(is_plain, some)) else Form() for some in texts]
        named = [
            form is None or (form.is_numbered and all(_is_whole(form, text) for text in some))
            for form, some in zip(forms, texts, strict=True)
        ]
        # Of classes that are named by the numbers that they lie between there are few.
        if any(
            form is None and len(set(some)) > self._most_bins and all(map(_FRACTION.search, some))
            for form, some in zip(forms, texts, strict=True)
        ):
            raise CellError(
                f"answers {_quoted(columns[0][:2])}: numbers in texts that are not alike; if they "
                f"are names of classes, {_GIVE}"
            )
        if any(named) and (len(columns) > 1 or len(texts[0]) < len(columns[0])):
            row = [column[0] for column in columns]
            raise CellError(
                f"answers numbers and text together: {_quoted(row)}; name one by answer"
            )
        cells = [text for some in texts for text in some]
        if cells and not any(named) and all(map(_is_accounted, cells)):
            raise CellError(
                f"answers {_quoted(cells[0])}: whether parentheses make a number less than 0 no "
                "other answer shows; more rows a request may (--batch)"
            )
        # Of a column that is always less than 0 the others tell.
        if any(form.accounts for form in forms if form is not None):
            forms = [Form.of(some, accounts=True) for some in texts]
        self._forms = [form for form in forms if form is not None]
        self._shown = [column[0] for column in columns]
        # Other threads read cells once it is known what they are.
        self.are_texts, self.are_names = any(texts), any(named)

    def _numerals(self, column: Sequence[Any], form: Form) -> list[Any]:
        """The cells of a column: numbers, and numerals where they are texts."""
        found = []
        for cell in column:
            numeral = form.numeral(cell) if type(cell) is str else cell
            if numeral is None and form == Form() and is_plain(cell):
                numeral = float(cell)  # it is not finite, or ends with a point
            if numeral is None:
                raise CellError(
                    f"answers {_quoted(cell)} where numbers were such as {_quoted(self._shown)}; "
                    f"if they are names of classes, {_GIVE}"
                )
            found.append(numeral)
        return found

    def _look(self, numerals: Sequence[str]) -> None:
        """See which sign is that of decimals."""
        left = self._signs
        for numeral in numerals:
            left &= _signs_of(numeral)
            if not left:
                said = f"{numeral} where numbers were such as {_quoted(self._shown)}"
                raise CellError(f"answers {shown(said)}: of which sign decimals follow is unclear")
        unclear = [one for one in numerals if len(_decimals_of(one, left)) > 1]
        if unclear and len(left) > 1:
            sign = next(char for char in unclear[0] if char in _BOTH)
            # Where zeros are cut off, so that numbers are whole, some have one or two places.
            is_cut = any(not set(one) & _BOTH for one in numerals)
            if is_cut and len(unclear) >= self._enough:
                left -= {sign}
            elif all(form == Form() for form in self._forms) and sign == ".":
                left = frozenset(".")
            else:
                raise CellError(
                    f"answers {_quoted(unclear[0])}: whether thousands or decimals follow the "
                    f"sign {sign} no other answer shows; more rows a request may (--batch)"
                )
        self._signs = left

    def _number(self, one: Any, exponent: int) -> float:
        if type(one) is not str:
            return float(one)
        (decimals,) = _decimals_of(one, self._signs)
        return float(f"{decimals[0]}e{decimals[1] + exponent}")


_GIVE = "give --classes"

# Digits that no number begins with, but decimals do.
_LEADING_ZERO = re.compile(r"[+-]?0\d")


def _unclear(text: str) -> str:
    return (
        f"answers {_quoted(text)}: whether a comma parts numbers or comes before decimals no other "
        "answer shows; more rows a request may (--batch)"
    )


def _taken_apart(text: str, *, accounts: bool = False) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is around the numerals of a text, and these; of accounts with a sign for parentheses."""
    text = "".join(
        f"{unicodedata.decimal(char)}" if char.isdecimal() else char
        for char in text.strip().translate(_ALIKE)
    )
    sign = ""
    if accounts and (found_in := _ACCOUNTED.fullmatch(text)) is not None:
        sign, text = "-", "".join(found_in.groups())
    if text[:1] == "-" and not _NUMERAL.match(text):
        sign, text = "-", text[1:]  # -$12.5
    around, found, end = [], [], 0
    for numeral in _NUMERAL.finditer(text):
        around.append(text[end : numeral.start()].strip())
        found.append(numeral[0])
        end = numeral.end()
    around.append(text[end:].strip())
    if found:
        found[0] = sign + found[0]
    else:
        around[0] = sign + around[0]
    return tuple(around), tuple(found)


def _is_accounted(text: str) -> bool:
    return _ACCOUNTED.fullmatch(text.strip().translate(_ALIKE)) is not None


def _is_whole(form: Form, text: str) -> bool:
    numeral = form.numeral(text) or ""
    return numeral.lstrip("-+ ").isdecimal()


def _signs_of(numeral: str) -> frozenset[str]:
    """What may be the sign of decimals where a number is written so."""
    return frozenset(sign for sign in _BOTH if _read(numeral, sign) is not None)


def _decimals_of(numeral: str, signs: frozenset[str]) -> set[tuple[str, int]]:
    """What a numeral may be, by what may be the sign of decimals."""
    read = (_read(numeral, sign) for sign in signs)
    return {one for one in read if one is not None}


def _read(numeral: str, sign: str) -> tuple[str, int] | None:
    """A numeral as digits and an exponent, if decimals follow this sign; None where they cannot."""
    mantissa, _, exponent = numeral.replace(" ", "").lower().partition("e")
    if mantissa.count(sign) > 1:
        return None
    whole, point, places = mantissa.partition(sign)
    if _DIGITS.fullmatch(places or "0") is None:
        return None
    body = whole.lstrip("-+")
    first, *groups = re.split(r"[.,']", body)
    # Thousands are marked by one sign, in groups of three digits; in India of two before those.
    marks = set(re.findall(r"[.,']", body))
    is_grouped = not groups or (
        len(marks) == 1
        and 0 < len(first) <= 3
        and first.lstrip("0") == first
        and len(groups[-1]) == 3
        and len({len(group) for group in groups[:-1]} | {3}) <= 2
        and all(len(group) in {2, 3} for group in groups)
    )
    if not is_grouped:
        return None
    digits = "-" * whole.startswith("-") + "".join([first, *groups]) + point.replace(sign, ".")
    return f"{digits}{places}", int(exponent or 0)


def _quoted(value: Any) -> str:
    if isinstance(value, str):
        return f'"{shown(value)}"'
    cells = ", ".join(_quoted(cell) if isinstance(cell, str) else f"{cell}" for cell in value)
    return f"[{cells}]" if len(value) != 1 else cells
