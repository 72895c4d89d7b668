"""What bad or doubtful input gets: every exception and warning of the library."""


class EdpBayesError(Exception):
    """Base class of every exception raised on purpose by edp_bayes."""


class InvalidInputError(EdpBayesError, ValueError):
    """An argument, table or file has the right type but a value that cannot be used."""


class InputTypeError(EdpBayesError, TypeError):
    """An argument has a type that cannot be used."""


class SamplingError(EdpBayesError, RuntimeError):
    """A sampler was interrupted or returned draws that are not finite."""


class EdpBayesWarning(UserWarning):
    """Legal but doubtful input or a failed diagnostic; it also stands in the result."""
