"""The command line as a user sees it, for the tests of its commands."""

from edp_bayes.cli import main


def printed(capsys, *arguments):
    """Run, and return what is printed."""
    code = main([str(word) for word in arguments])
    captured = capsys.readouterr()
    assert (code, captured.err) == (0, "")
    assert all(len(line) <= 80 for line in captured.out.splitlines())
    return captured.out


def refused(capsys, *arguments):
    """Run, and return the one line that a user gets to see."""
    code = main([str(word) for word in arguments])
    captured = capsys.readouterr()
    assert code == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("edp-bayes: ")
    return captured.err
