"""Labels that look like damage, or like another one: a rounded number, no name, a total, twins."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edp_bayes.utils import labels
from edp_bayes.utils.sentences import Sentence, name_of

if TYPE_CHECKING:
    from edp_bayes.records.ownership import Ownership
    from edp_bayes.utils.arrays import Array, Index

__all__ = ["doubtful_labels", "sums_of_others"]

SHOWN, SHOWN_TWINS, JUDGED = 5, 2, 200
EMPTY, ROUNDED, TOTAL = range(3)
WORDS = (
    "stand for no {}",
    "are long numbers that a spreadsheet rounded",
    "are sums of other records",
)
NOBODY = (
    *("", "-", "--", "?", ".", "nan", "null", "none", "nil", "n/a", "#n/a", "nat", "<na>"),
    *("unknown", "missing", "undefined", "(blank)", "(empty)", "#ref!", "#value!", "#name?"),
)
SUMS = (
    *("total", "totals", "grand total", "subtotal", "sub-total", "sum total"),
    *("summe", "gesamt", "gesamtsumme", "insgesamt"),
)
SUSPECT = dict.fromkeys(NOBODY, EMPTY) | dict.fromkeys(SUMS, TOTAL)
# The same as they are usually written, so that most labels need not be brought to a form.
WRITTEN = frozenset(way(text) for text in SUSPECT for way in (str, str.upper, str.title)) | {"NaN"}
BY_SPREADSHEET = re.compile(r"\d[.,]\d{1,6}E\+\d{2,3}", re.IGNORECASE)
# Spreadsheets write numbers of more than 11 digits with six of them.
LONG, DIGITS = 1e11, 6

CASE, BLANKS, UNSEEN, UNICODE = range(4)
DIFFERENCES = (
    "by case",
    "by blanks at an end",
    "by characters of no width",
    "by the Unicode form of a character",
)
OF_NO_WIDTH = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad"
_WITHOUT = str.maketrans("", "", OF_NO_WIDTH)
_BLANKS = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85"
_MARK = "\0"

# How near a contribution is to half the answer, relative to it, and in how many databases.
NEAR, FEWEST = 1e-3, 3


class _Judged(NamedTuple):
    """What is found in texts.

    Attributes
    ----------
    damaged : dict
        Place and kind of every text that looks like damage.
    forms : list of str or None
        What all are called where case and the like are no matter; None where these differ, too.
    """

    damaged: dict[int, int]
    forms: list[Any] | None


def doubtful_labels(
    held: NDArray[Any], size: Index, *, of: str = "individual"
) -> tuple[Sentence, ...]:
    """Return one warning of labels that look like damage, or like each other.

    Parameters
    ----------
    held : ndarray
        Distinct labels.
    size : ndarray of int
        Records of each.
    of : {"individual", "database"}
        Whose they are; names of individuals stand apart in the sentence.

    Examples
    --------
    >>> doubtful_labels(np.array(["ann", "bob", "nan"], dtype=object), np.array([5, 3, 2]))[0][:54]
    "labels of individuals look like damage: 'nan' (20.0% o"
    """
    judged = _judged(held)
    damaged = {} if judged is None else judged.damaged
    groups = [] if judged is None or judged.forms is None else _groups(judged.forms)
    if not damaged and not groups:
        return ()
    told = _of_damage(held, size, damaged, of) if damaged else []
    if groups:
        told += [*([". "] if told else []), *_of_twins(held, size, groups, of)]
    return (Sentence(*told),)


def sums_of_others(owners: Ownership, response: Array, contribution: Array) -> tuple[Sentence, ...]:
    """Return a warning of who contributes half of every sum, as a row of totals does.

    Parameters
    ----------
    owners : Ownership
        Whose the pairs are.
    response, contribution : ndarray
        Sums of the databases, shape (n,), and what is contributed to them, shape (pair,).
    """
    y = response[owners.pair_database]
    near = (np.abs(2.0 * contribution - y) <= NEAR * np.abs(y)) & (contribution != 0.0)
    if not near.any():
        return ()
    people = np.bincount(owners.pair_database, minlength=owners.databases.size)
    near &= people[owners.pair_database] > 2
    count = np.bincount(owners.pair_individual[near], minlength=owners.individuals.size)
    least = max(FEWEST, owners.databases.size // 2)
    found = np.flatnonzero((count == owners.presence) & (count >= least))
    if not found.size:
        return ()
    who = int(found[0])
    return (
        Sentence(
            "individual ",
            name_of(owners.individuals, who),
            f" contributes as much as all others together to each of {count[who]:,} databases: it "
            "may be a row of totals, which doubles the answer and hides the others in it; leave "
            "such records out",
        ),
    )


def _judged(held: NDArray[Any]) -> _Judged | None:
    """Return what is found in labels; None for those of a type in which nothing can be."""
    if held.dtype != object:
        return _Judged(dict.fromkeys(_of_numbers(held), ROUNDED), None)
    items = held.tolist()
    if isinstance(items[0], tuple):
        return _of_compound(items)
    try:
        return _of_texts(items)
    except TypeError:  # Not all of them are text.
        return None


def _of_numbers(held: NDArray[Any]) -> list[int]:
    """Return the places of long numbers of which few digits are left."""
    if held.dtype.kind != "f":
        return []
    long = np.flatnonzero(np.abs(held) >= LONG)
    size = np.abs(held[long]).astype(np.float64)
    unit = 10.0 ** (np.floor(np.log10(size)) + 1 - DIGITS)
    return [int(place) for place in long[np.fmod(size, unit) == 0.0]]


def _of_texts(texts: list[str]) -> _Judged:
    joined = _MARK.join(texts)
    forms, stripped = _forms(texts, joined)
    damaged: dict[int, int] = {}
    if not WRITTEN.isdisjoint(texts):
        damaged |= {k: SUSPECT[text.lower()] for k, text in enumerate(texts) if text in WRITTEN}
    if stripped and forms is not None and not SUSPECT.keys().isdisjoint(forms):
        damaged |= {k: SUSPECT[form] for k, form in enumerate(forms) if form in SUSPECT}
    if "E+" in joined or "e+" in joined:
        damaged |= {
            k: ROUNDED for k, text in enumerate(texts) if BY_SPREADSHEET.fullmatch(text.strip())
        }
    return _Judged(damaged, forms)


def _of_compound(items: list[tuple[Any, ...]]) -> _Judged:
    """Return what is found in compound labels, by their parts of text."""
    kinds: list[dict[Any, int]] = []
    forms: list[dict[Any, str]] = []
    columns = list(zip(*items, strict=True))
    texts = [set(map(type, column)) == {str} for column in columns]
    for column, is_text in zip(columns, texts, strict=True):
        distinct = list(set(column)) if is_text else []
        judged = _of_texts(distinct)
        kinds.append({distinct[k]: kind for k, kind in judged.damaged.items()})
        forms.append({} if judged.forms is None else dict(zip(distinct, judged.forms, strict=True)))
    damaged: dict[int, int] = {}
    if any(kinds):
        for k, item in enumerate(items):
            found = [kind.get(part) for kind, part in zip(kinds, item, strict=True)]
            worse = [kind for kind in found if kind in (ROUNDED, TOTAL)]
            # One part may well be empty, such as a second name.
            if worse or found.count(EMPTY) == sum(texts) > 0:
                damaged[k] = worse[0] if worse else EMPTY
    if not any(forms):
        return _Judged(damaged, None)
    return _Judged(
        damaged,
        [tuple(f.get(p, p) for f, p in zip(forms, item, strict=True)) for item in items],
    )


def _forms(texts: list[str], joined: str) -> tuple[list[str] | None, bool]:
    """Return texts in one form of case, blanks and Unicode, and whether more than case changed.

    None where it is plain that distinct texts have distinct forms. All are brought to it at once,
    as one text with marks between: a million take a few hundredths of a second.
    """
    if joined.count(_MARK) != len(texts) - 1:
        return [_form(text) for text in texts], True
    changed = joined
    if not joined.isascii():
        if any(mark in joined for mark in OF_NO_WIDTH):
            changed = joined.translate(_WITHOUT)
        changed = unicodedata.normalize("NFKC", changed)
    ended = f"{_MARK}{changed}{_MARK}"
    blank = any(
        mark in changed and (mark + _MARK in ended or _MARK + mark in ended) for mark in _BLANKS
    )
    lower = changed.casefold()
    same = changed == joined and not blank
    if same and lower == joined:
        return None, False
    if same and joined.isascii() and joined == joined.upper():
        return None, False
    forms = lower.split(_MARK)
    return [form.strip() for form in forms] if blank else forms, not same


def _form(text: str, *but: int) -> str:
    """Return one text in the form of `_forms`, leaving out some differences."""
    if UNSEEN not in but:
        text = text.translate(_WITHOUT)
    if UNICODE not in but:
        text = unicodedata.normalize("NFKC", text)
    if CASE not in but:
        text = text.casefold()
    return text if BLANKS in but else text.strip()


def _groups(forms: list[Any]) -> list[list[int]]:
    """Return the places of labels of one form, where there are several."""
    hashed = np.sort(np.fromiter(map(hash, forms), dtype=np.int64, count=len(forms)))
    if not (hashed[1:] == hashed[:-1]).any():
        return []
    alike: dict[Any, list[int]] = {}
    for k, form in enumerate(forms):
        alike.setdefault(form, []).append(k)
    return [places for places in alike.values() if len(places) > 1]


def _of_damage(held: NDArray[Any], size: Index, damaged: dict[int, int], of: str) -> list[Any]:
    """Return in words which labels look like damage."""
    told: list[Any] = [f"labels of {of}s look like damage: "]
    by_size = sorted(damaged, key=lambda place: (-size[place], place))
    for k, place in enumerate(by_size[:SHOWN]):
        told += [", " if k else "", _called(held, place, of), f" ({_share(size[place], size)})"]
    if len(by_size) > SHOWN:
        others = _share(size[by_size[SHOWN:]].sum(), size)
        told.append(f" and {len(by_size) - SHOWN:,} more ({others})")
    what = {"individual": "person", "database": "period or group"}[of]
    kinds = [WORDS[kind].format(what) for kind in sorted(set(damaged.values()))]
    told.append(f". Perhaps they {' or '.join(kinds)}. ")
    told.append(
        "Many people may share such a label: repair these keys, leave such records out, or make "
        "them missing"
        if of == "individual"
        else "Repair these keys, or leave such records out"
    )
    return told


def _of_twins(
    held: NDArray[Any], size: Index, groups: Sequence[Sequence[int]], of: str
) -> list[Any]:
    """Return in words which labels are alike but for case and the like."""
    places = [place for group in groups for place in group]
    told: list[Any] = [f"{len(places):,} {of}s may be {len(groups):,}: "]
    for k, group in enumerate(groups[:SHOWN_TWINS]):
        first, second = (_called(held, place, of) for place in group[:2])
        told += [", " if k else "", first, " and ", second]
    told.append(
        f" ({_share(size[places].sum(), size)}) differ {_differences(held, groups)} alone. "
        + (
            "The risk of people who are counted as several is understated"
            if of == "individual"
            else "Each has only some of the records of the whole"
        )
        + ": bring such keys to one case, without blanks at the ends and characters of no width, "
        "in the form NFKC"
    )
    return told


def _differences(held: NDArray[Any], groups: Sequence[Sequence[int]]) -> str:
    """Return in words by what labels of one form differ."""
    found = set()
    for group in groups[:JUDGED]:
        items = [held[place] for place in group]
        for kind in range(len(DIFFERENCES)):
            if len({_form_of(item, kind) for item in items}) > 1:
                found.add(kind)
    return " or ".join(DIFFERENCES[kind] for kind in sorted(found) or range(len(DIFFERENCES)))


def _form_of(item: Any, but: int) -> Any:
    if isinstance(item, tuple):
        return tuple(_form_of(part, but) for part in item)
    return _form(item, but) if isinstance(item, str) else item


def _called(held: NDArray[Any], place: int, of: str) -> Any:
    return name_of(held, place) if of == "individual" else labels.show(held[place])


def _share(part: Any, size: Index) -> str:
    share = float(part) / max(float(size.sum()), 1.0)
    return f"{share:.1%} of the records" if share >= 1e-3 else "less than 0.1% of the records"
