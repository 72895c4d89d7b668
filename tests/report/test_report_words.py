"""Names that are replaced, sentences that do not give them away, numbers that read well."""

import hashlib
import hmac
import json
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_cases import HOSTILE, small_audit, small_responses

import edp_bayes as edp
from edp_bayes.characters import clean
from edp_bayes.diagnostics import check_databases, check_individuals
from edp_bayes.noise.calibration import _largest_contributions
from edp_bayes.report import pseudonym_table
from edp_bayes.report.figures import Axis
from edp_bayes.report.pseudonyms import UNCLEAR, WITHHELD, Names, Pseudonyms, namer, worded
from edp_bayes.report.sections.individuals import rounded_up
from edp_bayes.utils import labels
from edp_bayes.utils.formatting import number, risk
from edp_bayes.utils.sentences import Name, Sentence, restored, stored

KEY = b"sixteen bytes or more"


def test_a_pseudonym_is_the_documented_hash():
    digest = hmac.new(KEY, b"customer 17", hashlib.sha256).digest()
    bits = "".join(f"{byte:08b}" for byte in digest)[:50]
    alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    text = "".join(alphabet[int(bits[k : k + 5], 2)] for k in range(0, 50, 5))
    assert Pseudonyms(KEY, "")("customer 17") == f"P-{text[:5]}-{text[5:]}"


def test_the_key_decides_and_its_check_value_tells_keys_apart():
    one, other = Pseudonyms(KEY, ""), Pseudonyms(KEY[::-1], "")
    assert one("Ann") != other("Ann")
    assert one.described != other.described
    assert KEY.decode() not in one.described
    assert KEY.hex() not in one.described


@pytest.mark.full
def test_the_derived_key_is_that_of_the_data_not_of_the_run(audit, tmp_path):
    again = small_audit(small_responses(), draws=100, chains=1, random_seed=9)
    assert namer(again, names=False, key=None) == namer(audit, names=False, key=None)
    other = small_audit(small_responses((*HOSTILE[:-1], "somebody else")), draws=100, chains=1)
    assert namer(other, names=False, key=None).key != namer(audit, names=False, key=None).key
    plain = small_audit(small_responses(tuple(f"person {k}" for k in range(12))))
    plain.save(tmp_path / "audit.nc")
    loaded = edp.load(tmp_path / "audit.nc")
    assert namer(loaded, names=False, key=None) == namer(plain, names=False, key=None)


def test_the_table_of_pseudonyms_lists_everybody(audit):
    table = pseudonym_table(audit, key=KEY)
    assert table["individual"].tolist() == [str(name) for name in HOSTILE]
    assert table.index.is_unique
    assert table.index[3] == Pseudonyms(KEY, "")(HOSTILE[3])
    with pytest.raises(edp.InputTypeError, match="an audit with individuals is needed, found int"):
        pseudonym_table(3)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"key": "short", "names": False}, edp.InvalidInputError, "at least 16 bytes, found 5"),
        ({"key": 17, "names": False}, edp.InputTypeError, "bytes or text, found int"),
        ({"key": KEY, "names": True}, edp.InvalidInputError, "leave it out, or names=True"),
    ],
    ids=["short", "number", "with names"],
)
def test_a_key_that_cannot_be_used_is_refused(audit, options, error, message):
    with pytest.raises(error, match=message):
        namer(audit, **options)


LABELS = (
    st.text(max_size=30)
    | st.sampled_from(["of", "Individual", "the next", "1", "%", "P", "{}", "'"])
    | st.integers()
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.tuples(st.text(max_size=10), st.integers())
    | st.tuples(st.text(max_size=10), st.text(max_size=10))
    | st.dates()
    | st.datetimes()
)
RNG = np.random.default_rng(5)
CONTRIBUTION = RNG.gamma(2.0, 1.0, (30, 3)) * [1.0, 4.0, 30.0]
CONTRIBUTION[:12, 0] = 0.0  # comes and goes
RESPONSE = RNG.normal(40.0, 5.0, 30) + CONTRIBUTION.sum(axis=1)


class Anybody:
    """Calls everybody alike."""

    described = "hidden"

    def __call__(self, label):
        return WITHHELD


def sentences_on(names):
    """Return responses of three people, and every sentence that names one."""
    responses = edp.Responses.from_arrays(
        RESPONSE, contribution=CONTRIBUTION, individual=list(names), additive=True
    )
    checks = [
        *check_individuals(responses, epsilon=np.array([0.5]), upper=np.array([1e-3])).checks,
        *check_databases(responses).checks,
    ]
    people = SimpleNamespace(individual=responses.individual)
    largest = responses.largest_contribution
    said = [check.sentence for check in checks]
    said += [_largest_contributions(size, people) for size in (largest, np.minimum(largest, 20.0))]
    # As from a file.
    return responses, [restored(json.loads(json.dumps(stored(sentence)))) for sentence in said]


NUMBERED = sentences_on(range(3))[1]


@pytest.mark.full
@given(st.lists(LABELS, min_size=3, max_size=3, unique=True))
@settings(derandomize=True, deadline=None, max_examples=200)
def test_no_label_leaves_a_trace_in_a_report_and_all_are_shown_on_the_console(names):
    responses, said = sentences_on(names)
    known = set(map(str, labels.plain_list(labels.as_coordinate(responses.individual))))
    for sentence, numbered in zip(said, NUMBERED, strict=True):
        hidden = worded(sentence, Anybody(), known)
        assert hidden == worded(numbered, Anybody(), {"0", "1", "2"})
        assert hidden.count(WITHHELD) == sum(isinstance(part, Name) for part in sentence.parts)
        shown = numbered.naming(lambda label: labels.show(responses.individual[int(label)]))
        assert str(sentence) == shown == worded(sentence, Names(), known)
    assert sum(WITHHELD in worded(sentence, Anybody(), known) for sentence in said) == 7


def test_a_name_in_a_sentence_has_the_pseudonym_of_the_table():
    named = Pseudonyms(KEY, "")
    _, said = sentences_on([("north", 1), ("south", 2), ("east", 3)])
    shares = [sentence for sentence in said if " makes up " in sentence]
    assert [sentence.split(" makes up")[0] for sentence in shares] == ["Individual ('east', 3)"]
    hidden = worded(shares[0], named, {"north, 1", "south, 2", "east, 3"})
    assert hidden.startswith(f"Individual {named('east, 3')} makes up ")
    assert worded(shares[0], named, {"north, 1"}).startswith(f"Individual {WITHHELD} makes up ")


SENTENCES = (
    "Individual {0} makes up 34% of the response of database '2011', the largest share there is.",
    "The largest contribution, of individual {0}, is 3.1 times that of the next, {0}. Look.",
    "the noise is larger: individual {0} contributes up to 12. Noise cannot make it private",
)


@pytest.mark.full
@given(LABELS, st.sampled_from(SENTENCES))
@settings(derandomize=True, deadline=None, max_examples=100)
def test_text_of_an_older_file_that_names_an_individual_is_withheld(label, sentence):
    told = sentence.format(labels.show(label))
    assert worded(told, Pseudonyms(KEY, ""), {labels.as_text(label)}) == UNCLEAR
    assert worded(told, Names(), {labels.as_text(label)}) == told


def test_text_of_an_older_file_without_a_name_stays():
    plain = "The responses drift up: Kendall's tau 0.31, p = 0.002 (lag-1 'autocorrelation')."
    assert worded(plain, Pseudonyms(KEY, ""), {"Ann", "north, 1"}) == plain
    assert worded(plain, Pseudonyms(KEY, ""), {"Ann", "drift"}) == UNCLEAR


def test_a_sentence_is_text_that_can_be_copied_and_joined():
    said = Sentence("Individual ", Name("'Ann'", "Ann"), " is, ")
    joined = Sentence(said, "in short, ", said)
    assert joined == "Individual 'Ann' is, in short, Individual 'Ann' is, "
    assert joined.naming(str.upper) == "Individual ANN is, in short, Individual ANN is, "
    assert pickle.loads(pickle.dumps(joined)).parts == joined.parts


@pytest.mark.full
@given(st.text() | st.characters(categories=["Cs", "Cc", "Zl"]))
@settings(derandomize=True, deadline=None, max_examples=300)
def test_cleaned_text_can_be_written_and_has_one_line(text):
    cleaned = clean(text)
    cleaned.encode("utf-8")
    assert len(cleaned.splitlines()) <= 1
    assert clean(cleaned) == cleaned


@given(st.floats(min_value=1e-300, max_value=1e300), st.booleans())
@settings(derandomize=True, deadline=None)
def test_rounding_up_never_rounds_down_and_by_at_most_a_tenth(size, negative):
    value = -size if negative else size
    rounded = rounded_up(value)
    assert abs(value) * (1.0 - 1e-11) <= abs(rounded) <= 1.1 * abs(value) * (1.0 + 1e-11)
    assert (rounded < 0) == negative


def test_numbers_are_short_and_say_when_they_are_small():
    assert [risk(v) for v in (1.0, 0.5, 1e-3, 9e-4, 2e-6, 1e-7)] == [
        "1",
        "0.5",
        "0.001",
        "9.0e-4",
        "2.0e-6",
        "< 1e-6",
    ]
    assert number(-1234.5) == "-1,234"


def test_the_smallest_numbers_are_rounded_up():
    assert rounded_up(5e-324) == 5e-324
    assert rounded_up(-1e-323) == -1e-323


@pytest.mark.parametrize("low", [0.0, 1e6, 1e9, -1e9])
def test_labels_of_ticks_differ(low):
    names = [name for _, name in Axis(low, low + 5.0, 0.0, 100.0).ticks]
    assert len(set(names)) == len(names) >= 5
