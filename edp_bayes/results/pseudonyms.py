"""Names of individuals in what is handed on: replaced, in a report unless asked otherwise.

A plain hash of a customer number is undone by hashing all numbers, so pseudonyms are a keyed hash:
the first 50 bits of HMAC-SHA256(key, label), written in Crockford's base 32. The key is the one
given, or is derived by scrypt from the data that the audit holds and the report does not. A result
saved under pseudonyms does hold these, apart from the labels themselves and their order:
individuals stand in the order of their pseudonyms, since that of running numbers tells them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils import checksums, labels
from edp_bayes.utils.sentences import Name, Sentence, restored

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from edp_bayes.results.base import PrivacyCurves

__all__ = [
    "Namer",
    "Names",
    "Pseudonyms",
    "Replaced",
    "hidden",
    "namer",
    "pseudonym_table",
    "worded",
]

# Attributes of a tree: which may hold names, and what tells that they are replaced.
ATTRIBUTES = ("checks", "warnings", "settings", "noise")
PSEUDONYMS = "pseudonyms"
UNPLACED = "unplaced"
# Groups of what the model drew.
OF_THE_MODEL = (
    "parameters", "prior", "constant_data", "prior_predictive", "posterior_predictive"
)  # fmt: skip
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
DIGITS = 10
SHORTEST_KEY = 16
WITHHELD = "(name withheld)"

UNCLEAR = "Withheld: this sentence may name an individual. The result itself shows it."


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
class Replaced:
    """Shows the labels of a result in which they are pseudonyms already."""

    described: str

    def __call__(self, label: object) -> str:
        """Return the label as text.

        Examples
        --------
        >>> Replaced("Replaced when saved.")("P-S1KFG-65AKN")
        'P-S1KFG-65AKN'
        """
        return str(label)


@dataclass(frozen=True)
class Pseudonyms:
    """Keyed hashes of labels.

    Parameters
    ----------
    key : bytes
        Secret; those who have it can try out all labels.
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
            f"value, {check}, and the same pseudonyms."
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


def namer(result: PrivacyCurves, *, names: bool, key: bytes | str | None) -> Namer:
    """Return what turns labels into what the report shows.

    Parameters
    ----------
    result : PrivacyCurves
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
    if PSEUDONYMS in result.tree.attrs:
        if key is not None:
            raise InvalidInputError("names are pseudonyms already in this result: leave out key=")
        return Replaced(str(result.tree.attrs[PSEUDONYMS]))
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
            "knows nearly all can try out the rest. For a key of your own, give key=. A "
            "reader of the result with its names can list them with "
            "edp_bayes.report.pseudonym_table.",
        )
    if not isinstance(key, bytes | str):
        raise InputTypeError(f"key must be bytes or text, found {type(key).__name__}")
    secret = key.encode("utf-8", "surrogatepass") if isinstance(key, str) else key
    if len(secret) < SHORTEST_KEY:
        raise InvalidInputError(
            f"key must have at least {SHORTEST_KEY} bytes, found {len(secret)}: "
            "secrets.token_bytes(32) makes one"
        )
    return Pseudonyms(
        secret,
        "The key was given: a reader of it and of the result with its names can list them with "
        "edp_bayes.report.pseudonym_table.",
    )


def pseudonym_table(result: PrivacyCurves, *, key: bytes | str | None = None) -> pd.DataFrame:
    """Return every individual's pseudonym, for those who have to act on a report.

    Parameters
    ----------
    result : PrivacyCurves
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

    See Also
    --------
    write_report : one file on a result
    edp_bayes.Audit.with_pseudonyms : a result without labels

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
    if PSEUDONYMS in result.tree.attrs:
        raise InvalidInputError("this result holds no names: take the one it was made from")
    named = namer(result, names=False, key=key)
    individuals = labels.plain_list(result.tree["individuals"]["individual"].to_numpy())
    index = pd.Index([named(label) for label in individuals], name="pseudonym")
    # As objects: a column of text could not hold every label that an audit can.
    column = pd.Series(individuals, index=index, dtype=object, name="individual")
    return column.to_frame()


def worded(sentence: str, named: Namer, known: Set[str]) -> str:
    """Return a sentence in which individuals are called what the report calls them.

    A name that is none of the known labels is withheld. So is the whole of a plain text, from a
    model of one's own, that might hold a name.

    Examples
    --------
    >>> from edp_bayes.utils.sentences import Name
    >>> named = Pseudonyms(b"a key of sixteen", "")
    >>> said = Sentence("Individual ", Name("'Ann'", "Ann"), " makes up 40% of it")
    >>> worded(said, named, {"Ann"})
    'Individual P-EEH82-037RA makes up 40% of it'
    """
    if named.described is None:
        return str(sentence)
    if isinstance(sentence, Sentence):
        return sentence.naming(lambda label: named(label) if label in known else WITHHELD)
    # Messages do not show every label as the result holds it, but call each an individual.
    unclear = "individual" in sentence.casefold() or any(label in sentence for label in known)
    return UNCLEAR if unclear else sentence


def hidden(tree: xr.DataTree, named: Namer) -> xr.DataTree:
    """Return a result's tree in which individuals are called by their pseudonyms.

    So are the coordinates of all groups and the names in sentences. A sentence that may name
    an individual without saying where is withheld, and so is every position among the labels.
    """
    import xarray as xr

    everybody = labels.plain_list(tree["individuals"]["individual"].to_numpy())
    known = frozenset(map(str, everybody))
    groups = {}
    for node in tree.subtree:
        data = node.to_dataset(inherit=False)
        if "individual" in data.coords:
            own = labels.plain_list(data["individual"].to_numpy())
            data = data.assign_coords(individual=np.array([named(label) for label in own]))
        groups[node.path] = data
    groups["/individuals"] = groups["/individuals"].sortby("individual")
    sampler = json.loads(tree.attrs["settings"]).get("sampler")
    unplaced = _without_positions(groups, named, sampler)
    found = xr.DataTree.from_dict(groups)
    found.attrs |= {UNPLACED: unplaced} if unplaced else {}

    def said(value: Any) -> Any:
        sentence = restored(value)
        if isinstance(sentence, Sentence):
            return [
                [called, called]
                if isinstance(part, Name)
                and (called := named(part.label) if part.label in known else WITHHELD)
                else part
                for part in sentence.parts
            ]
        return worded(sentence, named, known) if isinstance(sentence, str) else value

    def listed(values: list[Any]) -> list[Any]:
        return [said(value) for value in values]

    attributes = {name: json.loads(tree.attrs[name]) for name in ATTRIBUTES if name in tree.attrs}
    for row in attributes.get("checks", ()):
        row["sentence"] = said(row["sentence"])
    attributes["warnings"] = listed(attributes.get("warnings", []))
    attributes["settings"] = {
        name: named(value) if isinstance(value, str) and value in known else value
        for name, value in attributes.get("settings", {}).items()
    }
    noise = attributes.get("noise")
    if noise and "record" in noise:
        record = noise["record"]
        record |= {"message": said(record["message"])} if "message" in record else {}
        record |= {name: listed(record[name]) for name in ("audit_warnings",) if name in record}
        noise[checksums.ATTRIBUTE]["record"] = checksums.checksum(record)
    found.attrs |= {name: json.dumps(value) for name, value in attributes.items()}
    found.attrs[PSEUDONYMS] = named.described or ""
    return found


def _without_positions(groups: dict[str, xr.Dataset], named: Namer, sampler: object) -> str:
    """Take out who is meant by a position among the labels; return what it said, if anything."""
    removed = []
    # whose labels are the model's own affair; those of Gibbs sampling are of components alone
    drawn = [name for name in OF_THE_MODEL if groups.pop(f"/{name}", None) is not None]
    if "parameters" in drawn and sampler != "gibbs":
        removed.append("the parameters of the model")
    if groups.pop("/without", None) is not None:
        removed.append("who makes up most of the variance")
    known = groups.get("/known")
    if known is not None and json.loads(known.attrs["insiders"]):
        own = known.attrs.get("own")
        groups["/known"] = known.assign_attrs(insiders="[]", own=named(own) if own else "")
        removed.append("who the insiders are")
    return " and ".join(removed)


def _derived(result: PrivacyCurves) -> bytes:
    """Return a key that takes the data to know; scrypt makes each guess at them slow."""
    people = result.tree["individuals"].to_dataset()
    if "presence" not in people:
        raise InvalidInputError(
            f"there is nothing to derive a key from in a {type(result).__name__}: give key="
        )
    contribution = "largest_contribution"
    if contribution not in people:
        contribution = "adjusted_contribution"
    secret = hashlib.sha256(labels.encode(people["individual"].to_numpy().astype(str)))
    for values in (
        people["presence"].to_numpy(),
        people[contribution].to_numpy(),
        result.tree["observed_data"]["response"].to_numpy(),
    ):
        secret.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
    return hashlib.scrypt(
        secret.digest(), salt=b"edp_bayes report pseudonyms 1", n=2**14, r=8, p=1, dklen=32
    )
