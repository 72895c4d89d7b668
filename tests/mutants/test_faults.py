"""The list of seeded faults fits the source; ``python -m tests.mutants`` seeds them."""

import pytest

from tests.mutants.faults import FAULTS, ROOT, Fault


def test_there_are_twenty_of_different_files_and_names() -> None:
    assert len(FAULTS) == 20
    for of in ("name", "file", "harm"):
        assert len({getattr(fault, of) for fault in FAULTS}) == 20


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_changes_one_place_and_names_tests_that_exist(fault: Fault) -> None:
    assert fault.source.count(fault.text) == 1
    assert fault.text != fault.replacement
    compile(fault.source.replace(fault.text, fault.replacement), fault.file, "exec")
    assert fault.tests
    for name in fault.tests:
        assert (ROOT / "tests" / name).is_file()
