"""Characters that would break a line or do things unseen, as visible ones."""

from __future__ import annotations

__all__ = ["clean", "clean_lines"]

_VISIBLE = {
    **{code: 0x2400 + code for code in range(32)},
    **dict.fromkeys((0x0A, 0x0D, 0x85, 0x2028, 0x2029), 0x21B5),
    **dict.fromkeys(range(0x80, 0x85), 0xFFFD),
    **dict.fromkeys(range(0x86, 0xA0), 0xFFFD),
    **dict.fromkeys((0xFFFE, 0xFFFF), 0xFFFD),
    # They turn the direction of what follows, so that a label reads like another.
    **dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD),
    0x7F: 0x2421,
}
_IN_LINES = {code: shown for code, shown in _VISIBLE.items() if code != 0x0A}


def clean(text: str) -> str:
    """Return text in which every character can be written and seen, in one line.

    Examples
    --------
    >>> clean("two" + chr(10) + "lines")
    'two↵lines'
    """
    return _written(text.translate(_VISIBLE))


def clean_lines(text: str) -> str:
    """Return text in which every character can be written and seen, its lines as they are.

    Examples
    --------
    >>> clean_lines("red" + chr(27) + "[31m")
    'red␛[31m'
    """
    return _written(text.translate(_IN_LINES))


def _written(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
