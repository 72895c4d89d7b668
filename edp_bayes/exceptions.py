"""What bad or doubtful input gets: every exception and warning of the library."""

from edp_bayes.characters import clean_lines


class EdpBayesError(Exception):
    """Base class of every exception raised on purpose by edp_bayes.

    See Also
    --------
    InvalidInputError : the right type with the wrong value
    InputTypeError : the wrong type
    SamplingError : a sampler that failed
    EdpBayesWarning : doubtful input or a failed check

    Examples
    --------
    >>> issubclass(InvalidInputError, EdpBayesError)
    True
    """

    def __str__(self) -> str:
        """Return the message; what a file says in it does not steer the terminal."""
        return clean_lines(super().__str__())


class InvalidInputError(EdpBayesError, ValueError):
    """An argument, table or file has the right type but a value that cannot be used.

    See Also
    --------
    InputTypeError : the wrong type
    EdpBayesError : the base class of all errors

    Examples
    --------
    >>> from edp_bayes import LaplaceNoise
    >>> try:
    ...     LaplaceNoise(-1.0)
    ... except ValueError as error:
    ...     print(type(error).__name__)
    InvalidInputError
    """


class InputTypeError(EdpBayesError, TypeError):
    """An argument has a type that cannot be used.

    See Also
    --------
    InvalidInputError : the right type with the wrong value
    EdpBayesError : the base class of all errors

    Examples
    --------
    >>> from edp_bayes import queries
    >>> try:
    ...     queries.Sum(3)
    ... except InputTypeError as error:
    ...     print(error)
    column must be the name of a column, found 3
    """


class SamplingError(EdpBayesError, RuntimeError):
    """A sampler was interrupted or returned draws that are not finite.

    See Also
    --------
    edp_bayes.models.SamplerSettings : draws, chains and sampler
    EdpBayesError : the base class of all errors

    Examples
    --------
    >>> issubclass(SamplingError, RuntimeError)
    True
    """


class ExecutorError(EdpBayesError, RuntimeError):
    """Workers that evaluate individuals elsewhere were lost, or lack this version of the library.

    See Also
    --------
    EdpBayesError : the base class of all errors
    audit : audit a query

    Examples
    --------
    >>> issubclass(ExecutorError, RuntimeError)
    True
    """


class EdpBayesWarning(UserWarning):
    """Legal but doubtful input or a failed diagnostic; it also stands in the result.

    See Also
    --------
    EdpBayesError : the base class of all errors
    edp_bayes.diagnostics.withheld : why there is no verdict

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", EdpBayesWarning)
    """

    def __str__(self) -> str:
        """Return the message; what a file says in it does not steer the terminal."""
        return clean_lines(super().__str__())
