"""A folder that keeps what an audit has finished, so that a killed run continues where it was.

It holds the settings, the draws of NUTS and what was found of each canonical block of individuals,
by position: no labels and no records. Draws that are quick, by Gibbs sampling and of the bootstrap,
are drawn again from the seed; a checksum says whether they are the same.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.auditing.evaluation import BlockRisks
from edp_bayes.auditing.integral_errors import BlockErrors
from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils import checksums, files, leftovers
from edp_bayes.utils.arrays import Index

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.auditing.executors.base import AnyWork, Runner
    from edp_bayes.coupling.base import Coupling
    from edp_bayes.coupling.joint import JointCoupling
    from edp_bayes.models.base import DensityModel
    from edp_bayes.models.joint_regression import JointRegression
    from edp_bayes.models.regression import Regression
    from edp_bayes.models.sampling import SamplerSettings
    from edp_bayes.responses.joined import JointResponses
    from edp_bayes.responses.responses import Responses

__all__ = ["Store", "described", "opened", "remove", "seed_in"]

SETTINGS, FIT = "settings.json", "fit.json"
OWN = (SETTINGS, FIT, "draws-*.nc", "block-*.npz")
SEED = "random_seed"
ERRORS = "errors_"  # before the names of arrays that say what integrals leave open
DIGITS = 10  # of log densities that tell models apart


def described(
    responses: Responses | JointResponses,
    regression: Regression | JointRegression | None,
    model: DensityModel,
    epsilon: NDArray[np.float64],
    settings: SamplerSettings,
    exact_up_to: int,
) -> dict[str, str]:
    """Return, by name, everything that decides the fit and the risks of all individuals."""
    import numba

    from edp_bayes import __version__

    found: dict[str, Any] = {
        "version of edp_bayes": __version__,
        "version of numpy": np.__version__,
        "version of numba": numba.__version__,
        "fingerprint of the data": responses.fingerprint,
        "query": responses.query,
        "noise": [part.noise for part in responses.parts],
        "step": [part.step for part in responses.parts],
        "epsilon": epsilon.tolist(),
        "exact_up_to": exact_up_to,
        # where a function lies in memory is another matter in each run
        "model": re.sub(r" at 0x[0-9a-f]+", "", repr(model)),
        "adversary": "none",
        "sampler": settings.sampler or f"that of the model, NUTS by {settings.nuts}",
        "options of the sampler": sorted(settings.sample_kwargs.items()),
        **settings.record,
    }
    if regression is not None:
        known = regression.known
        digest = sha256(known.responses.fingerprint.encode())
        pasts = np.empty(0) if known.pasts is None else known.pasts.answers
        for part in (regression.design, regression.target, regression.position, pasts):
            digest.update(np.ascontiguousarray(part).tobytes())
        found["adversary"] = f"{regression.record}, {digest.hexdigest()[:16]}"
    return {name: str(value) for name, value in found.items()}


def seed_in(folder: object) -> int | None:
    """Return the seed of a store; None where there is none yet."""
    path = _path(folder) / SETTINGS
    return int(_read(path)[SEED]) if path.exists() else None


@contextlib.contextmanager
def opened(folder: object, description: Mapping[str, str]) -> Iterator[Store]:
    """Give a store, made if need be, that no other run uses at the same time.

    Raises
    ------
    InvalidInputError
        If it is of other data or settings, in use, no store, or cannot be written.
    """
    path = _path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise InvalidInputError(
            f"store {path} cannot be written: {error.strerror or error}"
        ) from None
    with _alone(path):
        for left in path.glob(".*"):  # of a run that was killed while it wrote
            shutil.rmtree(left, ignore_errors=True)
        if (path / SETTINGS).exists():
            _refuse_others(path, _read(path / SETTINGS), description)
        elif any(path.iterdir()):
            raise InvalidInputError(
                f"store {path} is a folder of something else: give a new or empty one"
            )
        else:
            _write(path / SETTINGS, json.dumps(dict(description), indent=1).encode())
        yield Store(path)


def remove(folder: object) -> None:
    """Remove a store, and nothing in its folder that is not its own."""
    path = _path(folder)
    for pattern in OWN:
        for own in path.glob(pattern):
            own.unlink()
    with contextlib.suppress(OSError):
        path.rmdir()


@dataclass(eq=False)
class Store:
    """What is kept of one audit.

    Attributes
    ----------
    folder : Path
        Where.
    """

    folder: Path
    _sampled: int = field(default=0, init=False)

    def draws(self, model: Any, sample: Callable[[], xr.DataTree]) -> xr.DataTree:
        """Return what NUTS drew from a PyMC model, drawn now unless it was before.

        Raises
        ------
        InvalidInputError
            If what is kept was drawn from another model.
        """
        path = self.folder / f"draws-{self._sampled}.nc"
        self._sampled += 1
        digest = _digest_of(model)
        tree = _loaded(path)
        if tree is not None:
            if tree.attrs.pop("model") != digest:
                raise InvalidInputError(
                    f"store {self.folder} has draws of another model: its log density is not that "
                    "of this one. Give another store, or remove this one"
                )
            return tree
        tree = sample()
        files.save_tree(_with_model(tree, digest), path)
        return tree

    def keeping(self, run: Runner) -> Runner:
        """Return what evaluates only those blocks that are not kept, and keeps them."""

        def evaluated(work: AnyWork, blocks: Sequence[Index]) -> Iterator[Any]:
            self._refuse_another_fit(work.coupling)
            paths = [self.folder / f"block-{k:06}.npz" for k in range(len(blocks))]
            missing = [part for path, part in zip(paths, blocks, strict=True) if not path.exists()]
            new = run(work, missing)
            waiting = {int(part[0]) for part in missing}
            for path, members in zip(paths, blocks, strict=True):
                if int(members[0]) in waiting:
                    found = next(new)
                elif (kept := _load(path, members)) is not None:
                    yield kept
                    continue
                else:  # damaged
                    found = work.evaluate(members)
                _save(path, members, found)
                yield found

        return evaluated

    def _refuse_another_fit(self, coupling: Coupling | JointCoupling) -> None:
        path, mixture = self.folder / FIT, coupling.mixture
        digest = sha256()
        names = ("covariances",) if isinstance(mixture, NormalMixture) else ("scales",)
        for part in (getattr(mixture, name) for name in ("weights", "locations", *names)):
            digest.update(np.ascontiguousarray(part).tobytes())
        if not path.exists():
            _write(path, json.dumps({"draws": digest.hexdigest()}).encode())
        elif _read(path)["draws"] != digest.hexdigest():
            raise InvalidInputError(
                f"store {self.folder} is of other draws, though the settings are the same: the "
                "model, or the machine, has changed. Give another store, or remove this one"
            )


def _loaded(path: Path) -> xr.DataTree | None:
    """Return draws that were kept; None where there are none or they are damaged."""
    try:
        return files.load_tree(path)
    except InvalidInputError:
        return None


def _with_model(tree: xr.DataTree, digest: str) -> xr.DataTree:
    tree = tree.copy()
    tree.attrs["model"] = digest
    return tree


def _digest_of(model: Any) -> str:
    """Return the log densities of a PyMC model at its initial point: another model has others."""
    found = model.point_logps(round_vals=DIGITS)
    return checksums.checksum({name: f"{value:.{DIGITS}g}" for name, value in found.items()})


def _load(path: Path, members: Index) -> BlockRisks | None:
    """Return a block that was kept; None where it is damaged."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as kept:
            found: dict[str, Any] = dict(kept)
        if not np.array_equal(found.pop("members"), members):
            return None
        names = [name for name in found if name.startswith(ERRORS)]
        errors = {name.removeprefix(ERRORS): found.pop(name) for name in names}
        return BlockRisks(**found, errors=BlockErrors(**errors) if errors else None)
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        return None


def _save(path: Path, members: Index, found: BlockRisks) -> None:
    """Keep all of a block but risks of every draw, which are evaluated again."""
    arrays: dict[str, Any] = dict(vars(found))
    del arrays["curves"]
    if (errors := arrays.pop("errors")) is not None:
        arrays |= {ERRORS + name: value for name, value in vars(errors).items()}
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, members=members, **arrays)
    _write(path, content.getvalue())


def _write(path: Path, content: bytes) -> None:
    with files.replaced(path) as temporary:
        temporary.write_bytes(content)


def _read(path: Path) -> dict[str, str]:
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"store {path.parent} cannot be read: {error}") from None


def _path(folder: object) -> Path:
    if not isinstance(folder, str | os.PathLike):
        raise InputTypeError(f"store must be the path of a folder, found {folder!r}")
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise InvalidInputError(f"store must be a folder, {path} is a file")
    return path


def _refuse_others(path: Path, kept: Mapping[str, str], asked: Mapping[str, str]) -> None:
    for name in dict.fromkeys([*asked, *kept]):
        ours, theirs = (str(part.get(name)) for part in (asked, kept))
        if ours != theirs:
            raise InvalidInputError(
                f"store {path} is of another audit: {name} is {_short(theirs)} there and "
                f"{_short(ours)} here. Give another store, or remove this one"
            )


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}..."


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Refuse a folder that another run uses; where folders cannot be locked nobody can tell."""
    handle = None
    try:
        with contextlib.suppress(OSError, AttributeError):
            handle = os.open(folder, os.O_RDONLY)
        if handle is not None and not leftovers.lock(handle):
            raise InvalidInputError(f"store {folder} is in use by another run: wait until it ends")
        yield
    finally:
        if handle is not None:
            os.close(handle)
