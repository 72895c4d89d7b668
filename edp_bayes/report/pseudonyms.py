"""Names of individuals in a report: replaced, unless asked otherwise.

A plain hash of a customer number is undone by hashing all numbers, so pseudonyms are a keyed hash:
the first 50 bits of HMAC-SHA256(key, label), written in Crockford's base 32. The key is the one
given, or is derived by scrypt from the data that the audit holds and the report does not.
"""

from __future__ import annotations

import ast
import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils import labels

if TYPE_CHECKING:
    import pandas as pd

    from edp_bayes.results.query import Audit

__all__ = ["Namer", "Names", "Pseudonyms", "namer", "pseudonym_table", "redacted"]

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
DIGITS = 10
SHORTEST_KEY = 16
WITHHELD = "(name withheld)"

QUOTED = r"b?(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
COMPOUND = rf"\((?:{QUOTED}|[^()'\"]|\([^()]*\))*\)"
CALLED = rf"[\w.]+\((?:{QUOTED}|[^()'\"])*\)|<[^>]*>"
DATE = r"\d{4}-\d\d-\d\d \d\d:\d\d(?:[\w.:+-]*\w)?"
NUMBER = r"-?\d(?:[\w.:+-]*\w)?|True\b|False\b"
# What `labels.show` wrote after these words: a quoted text, a tuple, a date or a number.
MENTION = re.compile(
    rf"(\b[Ii]ndividual |of the next, )({QUOTED}|{COMPOUND}|{CALLED}|{DATE}|{NUMBER})", re.DOTALL
)
# A label may be quoted without these words.
QUOTATION = re.compile(rf"()({QUOTED}|{COMPOUND})", re.DOTALL)


class Namer(Protocol):
    """Turns the label of an individual into what the report shows."""

    @property
    def described(self) -> str | None:
        """How names are replaced, None where they are not."""
        ...

    def __call__(self, label: object) -> str:
        """Return what stands for the label."""
        ...


@dataclass(frozen=True)
class Names:
    """Shows labels as they are."""

    described: str | None = None

    def __call__(self, label: object) -> str:
        """Return the label as text.

        Examples
        --------
        >>> Names()(17)
        '17'
        """
        return str(label)


@dataclass(frozen=True)
class Pseudonyms:
    """Keyed hashes of labels.

    Parameters
    ----------
    key : bytes
        Secret; whoever has it can try out all labels.
    origin : str
        Where the key comes from, for the report.
    """

    key: bytes
    origin: str

    @property
    def described(self) -> str:
        """How names are replaced, with a check value that tells keys apart."""
        check = hmac.digest(self.key, b"edp_bayes report key check", "sha256").hex()[:8]
        return (
            "Names are replaced by pseudonyms: the first 50 bits of HMAC-SHA256(key, label) in "
            f"base 32. {self.origin} Reports made with the same key have the same key check "
            f"value, {check}, and the same pseudonyms. Whoever holds the result can list them "
            "with edp_bayes.report.pseudonym_table."
        )

    def __call__(self, label: object) -> str:
        """Return the pseudonym of a label.

        Examples
        --------
        >>> Pseudonyms(b"a key of sixteen", "")("customer 17")
        'P-S1KFG-65AKN'
        """
        digest = hmac.digest(self.key, str(label).encode("utf-8", "surrogatepass"), "sha256")
        number = int.from_bytes(digest[:8]) >> (64 - 5 * DIGITS)
        text = "".join(ALPHABET[number >> 5 * k & 31] for k in reversed(range(DIGITS)))
        return f"P-{text[:5]}-{text[5:]}"


def namer(result: Audit, *, names: bool, key: bytes | str | None) -> Namer:
    """Return what turns labels into what the report shows.

    Parameters
    ----------
    result : Audit
        Whose individuals are meant.
    names : bool
        Show the names themselves.
    key : bytes or str, optional
        Secret of at least 16 bytes; derived from the data if not given.

    Raises
    ------
    InputTypeError, InvalidInputError
        If the key is neither bytes nor text, is too short, or is given beside ``names=True``.
    """
    if names:
        if key is not None:
            raise InvalidInputError("a key is for pseudonyms: leave it out, or names=True")
        return Names()
    if key is None:
        return Pseudonyms(
            _derived(result),
            "The key is derived by scrypt from the labels, contributions and responses that the "
            "audit was made from, so it is the same for every audit of the same data. It is as "
            "secret as these: a reader who knows them all can list the pseudonyms, and one who "
            "knows nearly all can try out the rest. For a key of your own, give key=.",
        )
    if not isinstance(key, bytes | str):
        raise InputTypeError(f"key must be bytes or text, found {type(key).__name__}")
    secret = key.encode("utf-8", "surrogatepass") if isinstance(key, str) else key
    if len(secret) < SHORTEST_KEY:
        raise InvalidInputError(
            f"key must have at least {SHORTEST_KEY} bytes, found {len(secret)}: "
            "secrets.token_bytes(32) makes one"
        )
    return Pseudonyms(secret, "The key was given.")


def pseudonym_table(result: Audit, *, key: bytes | str | None = None) -> pd.DataFrame:
    """Return every individual's pseudonym, for whoever has to act on a report.

    Parameters
    ----------
    result : Audit
        The result that the report was written from.
    key : bytes or str, optional
        As given to `write_report`.

    Returns
    -------
    DataFrame
        Column individual, indexed by pseudonym, in the order of the audit.

    Raises
    ------
    InputTypeError, InvalidInputError
        If the result has no individuals or the key cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> part = rng.gamma(2.0, 0.1, (40, 2))
    >>> y = rng.normal(10.0, 1.0, 40) + part.sum(axis=1)
    >>> audit = edp.audit(
    ...     edp.Responses.from_arrays(y, contribution=part, individual=["Ann", "Bob"]),
    ...     epsilon=[0.1], model=edp.SmoothedBootstrap(), random_seed=1, progressbar=False,
    ... )
    >>> table = pseudonym_table(audit, key="a key of sixteen bytes")
    >>> table.loc["P-EAH1Z-5ZF5G", "individual"]
    'Ann'
    """
    import pandas as pd

    if "individuals" not in getattr(getattr(result, "tree", None), "children", ()):
        raise InputTypeError(f"an audit with individuals is needed, found {type(result).__name__}")
    named = namer(result, names=False, key=key)
    individuals = labels.plain_list(result.tree["individuals"]["individual"].to_numpy())
    index = pd.Index([named(label) for label in individuals], name="pseudonym")
    # As objects: a column of text could not hold every label that an audit can.
    column = pd.Series(individuals, index=index, dtype=object, name="individual")
    return column.to_frame()


def redacted(sentence: str, named: Namer, known: Iterable[str] | frozenset[str]) -> str:
    """Return a sentence in which individuals are called what the report calls them.

    Whatever is said to be an individual but is none of the known labels is withheld.

    Examples
    --------
    >>> named = Pseudonyms(b"a key of sixteen", "")
    >>> redacted("Individual 'Ann' makes up 40% of it", named, {"Ann"})
    'Individual P-EEH82-037RA makes up 40% of it'
    """
    if named.described is None:
        return sentence
    labelled = known if isinstance(known, frozenset) else frozenset(known)

    def replaced(match: re.Match[str]) -> str:
        label = _label_text(match[2])
        return match[1] + (named(label) if label in labelled else WITHHELD)

    def found(match: re.Match[str]) -> str:
        label = _label_text(match[2])
        return named(label) if label in labelled else match[2]

    return QUOTATION.sub(found, MENTION.sub(replaced, sentence))


def _label_text(shown: str) -> str:
    """Return a label as the audit holds it, from how a message shows it."""
    try:
        value = ast.literal_eval(shown)
    except (ValueError, SyntaxError):
        return shown
    return labels.as_text(value)


def _derived(result: Audit) -> bytes:
    """Return a key that takes the data to know; scrypt makes each guess at them slow."""
    people = result.tree["individuals"].to_dataset()
    secret = hashlib.sha256(labels.encode(people["individual"].to_numpy().astype(str)))
    for values in (
        people["presence"].to_numpy(),
        people["largest_contribution"].to_numpy(),
        result.tree["observed_data"]["response"].to_numpy(),
    ):
        secret.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
    return hashlib.scrypt(
        secret.digest(), salt=b"edp_bayes report pseudonyms 1", n=2**14, r=8, p=1, dklen=32
    )
