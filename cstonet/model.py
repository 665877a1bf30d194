"""The model: data that can be fitted. Thin: read, plan, train, estimate, results."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, get_args

import pandas as pd
from numpy.typing import ArrayLike

from cstonet.analyses.base import Request
from cstonet.analyses.recipe import Call, Recipe
from cstonet.analyses.registry import choose_analysis, treatment_kinds
from cstonet.analyses.results import CausalResults
from cstonet.crossfit.backends import choose_engine
from cstonet.crossfit.progress import Standing, progress_reporter
from cstonet.crossfit.stopping import StopSign, heed
from cstonet.crossfit.workforce import Workforce, thread_count
from cstonet.data.columns import listing
from cstonet.data.matrix import is_partitioned
from cstonet.data.raw import Missing, RawData
from cstonet.data.variables import Family
from cstonet.errors import OptionError
from cstonet.memory import explained, sizes
from cstonet.settings.checks import is_choice
from cstonet.settings.options import FitOptions, check_seed
from cstonet.settings.plan import Plan
from cstonet.settings.presets import preset as preset_options
from cstonet.shown import shown


class CausalStoNet:
    """Causal effects by a sparse stochastic neural network (Causal-StoNet).

    Parameters
    ----------
    y : array_like, (n,)
        Outcome.
    treat : array_like, (n,)
        Treatment with two or more levels, or a dose.
    X : array_like, sparse matrix or DataFrame, (n, p)
        Covariates. Arrays of float32 or float64 are not copied, memory maps (``np.memmap``)
        included; matrices of ``scipy.sparse`` stay sparse.
    names : sequence of str, optional
        Names of the covariates; by default the frame's columns, or x1, x2, ….
    family : {"gaussian", "binomial", "poisson"}, optional
        Distribution of the outcome; by default "binomial" for 0/1 and "gaussian" for the rest.
        "poisson" is for counts, and other amounts that are never negative: their means have a log
        link, their variances are proportional to the means by a factor that is estimated
        (quasi-likelihood), so they may be overdispersed.
    treatment : {"binary", "multilevel", "continuous"}, optional
        Kind of treatment; inferred by default.
    reference : level of the treatment, optional
        What the other levels are compared with; by default the first.
    missing : {"raise", "drop", "mar", "mnar"}
        What to do with missing values: refuse them, leave out the rows, or impute covariates that
        are missing at random given everything observed ("mar") or not at random ("mnar").
    weights : array_like, (n,), optional
        Sampling weights of the rows.
    cluster : array_like, (n,), optional
        Labels of the clusters that rows belong to: villages, schools, persons seen repeatedly. Rows
        of a cluster may depend on each other; they stay in one fold, and standard errors, tests and
        bands are cluster-robust.
    mediators : array_like (n,) or (n, J), or DataFrame, optional
        What lies between a binary treatment and the outcome, numbers or two levels each. The fit
        then estimates total, natural direct and natural indirect effects.

    See Also
    --------
    CausalStoNet.from_formula : the same from a formula and a data frame.

    Examples
    --------
    >>> import cstonet as cs
    >>> simulation = cs.datasets.simulation2(n=500, p=10, seed=1)
    >>> model = cs.CausalStoNet.from_formula("y ~ treat | .", simulation.data)
    >>> results = model.fit(seed=1)  # doctest: +SKIP
    """

    def __init__(
        self,
        y: ArrayLike,
        treat: ArrayLike,
        X: Any,
        *,
        names: Sequence[str] | None = None,
        family: Family | None = None,
        treatment: str | None = None,
        reference: Any = None,
        missing: Missing = "raise",
        weights: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
        mediators: ArrayLike | pd.DataFrame | pd.Series | None = None,
    ) -> None:
        _check_choices(family, treatment, missing)
        with explained("reading the data", sizes(X)):
            raw = RawData.from_arrays(
                y, treat, X, names=names, weights=weights, cluster=cluster, mediators=mediators
            )
            self._read(raw, Request(family, treatment, reference, missing))

    @classmethod
    def from_formula(
        cls,
        formula: str,
        data: Any,
        *,
        family: Family | None = None,
        treatment: str | None = None,
        reference: Any = None,
        missing: Missing = "raise",
        weights: ArrayLike | str | None = None,
        cluster: ArrayLike | str | None = None,
        safe: bool = False,
    ) -> CausalStoNet:
        """A model from ``outcome ~ treatment | covariates [| mediators]`` and a data frame.

        Parameters
        ----------
        formula
            ``.`` stands for every column not yet named; patsy terms such as ``C(g)``,
            ``np.log(x)`` or ``bs(x, 4)`` may be used in the covariates. Mediators, if any, make
            the fit a mediation analysis.
        data
            One row per unit: a frame; or a pyarrow Table or Dataset, or the path of a Parquet or
            Arrow (Feather) file, of which only the columns named are read, batch by batch. What is
            too large for memory goes to a temporary file.
        family, treatment, reference, missing, weights, cluster
            As for the class; ``weights`` and ``cluster`` may also name columns.
        safe
            Whether the formula is from somebody you would not let run programs here. All else
            but names of columns is Python code, which is run with your rights; a safe formula is
            limited to plain computations, which are not: interactions, ``C()``, ``I()`` of
            arithmetic and comparisons, NumPy's functions of single numbers, and the transforms
            center, standardize, scale, bs, cr, cc and te. What else it holds is named by
            :class:`~cstonet.errors.UnsafeFormulaError`.
        """
        _check_choices(family, treatment, missing)
        model = cls.__new__(cls)
        with explained("reading the data", sizes(data)):
            raw = RawData.from_formula(formula, data, weights, cluster, safe=safe)
            model._read(raw, Request(family, treatment, reference, missing))
        return model

    def _read(self, raw: RawData, request: Request) -> None:
        """Choose the analysis that the variables are for, and let it read them."""
        self._said = _arguments(raw, request)
        raw = raw.without_gaps() if request.missing == "drop" else raw
        self.analysis = choose_analysis(raw, request.kind)
        self.design = self.analysis.read(raw, request)

    def plan(
        self,
        preset: str = "calibrated",
        *,
        options: FitOptions | None = None,
        seed: int = 0,
        **changes: Any,
    ) -> Plan:
        """What :meth:`fit` would do with the same arguments, in numbers."""
        return self._recipe(preset, options, changes).plan(self.design, check_seed(seed))

    def _recipe(self, preset: str, options: FitOptions | None, changes: dict[str, Any]) -> Recipe:
        """The options of a preset, or those given, with some of them changed."""
        base = preset_options(preset) if options is None else options
        if not isinstance(base, FitOptions):
            raise OptionError(f"options must be a FitOptions; got {shown(base)}.")
        # None leaves the preset's numbers alone; for an option such as search it is a value.
        given = {
            name: value
            for name, value in changes.items()
            if value is not None or name not in ("starts", "folds")
        }
        label = preset if options is None else "custom"
        asked = self._said | ({} if label == "calibrated" else {"preset": label}) | given
        call = Call(self.design.formula, asked)
        return Recipe(self.analysis, base.replace(**given), label, call)

    def fit(
        self,
        preset: str = "calibrated",
        *,
        starts: int | None = None,
        folds: int | None = None,
        seed: int = 0,
        n_jobs: int = -1,
        backend: str | None = None,
        progress: object = None,
        checkpoint: str | PathLike[str] | None = None,
        stop: StopSign | None = None,
        options: FitOptions | None = None,
        **changes: Any,
    ) -> CausalResults:
        """Train the networks and estimate the effects.

        Parameters
        ----------
        preset
            ``"calibrated"`` (default), ``"stonet"`` or ``"paper"``; see
            :func:`cstonet.settings.presets.preset`.
        starts
            Random starts per fold.
        folds
            Folds of the cross-fitting; 1 trains and estimates on the same rows.
        seed
            Governs everything random. The same seed gives the same bits for any ``n_jobs`` and
            any ``backend``.
        n_jobs
            Threads, or workers of the backend; -1 is every core.
        backend
            Where the folds are trained: ``"threads"`` of this process, ``"dask"``, ``"ray"`` or
            another backend of joblib. By default that of a ``joblib.parallel_config`` around the
            fit, and threads without one.
        progress
            By default a fit of more than five seconds shows a bar in a terminal or notebook, and
            nothing elsewhere. ``True``: a bar at once, anywhere; ``False``: none; or a function of
            (steps done, steps in all).
        checkpoint
            A folder in which finished folds are kept, and starts that take long: whoever is
            interrupted, or killed, makes the same call again, which goes on from there and ends
            with the same bits. It is made if it is not there; it can be deleted once the fit is
            done. A folder with folds of other data, options or versions is refused.
        stop
            A ``threading.Event``, or anything with ``is_set()``: the fit ends with
            :class:`~cstonet.errors.StoppedError` soon after it is set. For fits in other threads
            than the main one, where Ctrl-C is not heard.
        options
            Complete options instead of a preset.
        **changes
            Single options of :class:`cstonet.settings.options.FitOptions` to change, such as
            ``estimand="ATT"``, ``keep=["age", "sex"]`` or ``clip=0.02``.

        Returns
        -------
        CausalResults
            Those of the analysis: :class:`~cstonet.ArmsResults`, :class:`~cstonet.DoseResults` or
            :class:`~cstonet.MediationResults`.
        """
        recipe = self._recipe(preset, options, {"starts": starts, "folds": folds, **changes})
        threads, seed, heeded = thread_count(n_jobs), check_seed(seed), heed(stop)
        engine = choose_engine(backend, n_jobs)
        if is_partitioned(self.design.X):
            engine = None  # the data are on workers: folds stay here and ask them
        with progress_reporter(progress) as report:
            workforce = Workforce(threads, report, engine, heed=heeded)
            return recipe.fit(self.design, seed, workforce, checkpoint)


def _arguments(raw: RawData, request: Request) -> dict[str, Any]:
    """What was said about the data, by the names of the arguments; defaults are left out."""
    said = {
        "family": request.family,
        "treatment": request.kind,
        "reference": request.reference,
        "missing": None if request.missing == "raise" else request.missing,
        "safe": raw.safe or None,
    }
    for name, vector in (("weights", raw.weights), ("cluster", raw.cluster)):
        # Of an array there is nothing to write down but its name.
        said[name] = vector.name if vector is not None and vector.columns else vector
    return {name: value for name, value in said.items() if value is not None}


def _check_choices(family: object, treatment: object, missing: object) -> None:
    """Raise OptionError unless each is one of its choices."""
    for name, value, choices in (
        ("family", family, (*get_args(Family), None)),
        ("treatment", treatment, (*treatment_kinds(), None)),
        ("missing", missing, get_args(Missing)),
    ):
        if not is_choice(value, choices):
            raise OptionError(
                f"{name}={shown(value)} is not available; choose from {listing(choices)}."
            )


def fit(
    formula: str,
    data: Any,
    *,
    preset: str = "calibrated",
    family: Family | None = None,
    treatment: str | None = None,
    reference: Any = None,
    missing: Missing = "raise",
    weights: ArrayLike | str | None = None,
    cluster: ArrayLike | str | None = None,
    safe: bool = False,
    seed: int = 0,
    n_jobs: int = -1,
    backend: str | None = None,
    progress: object = None,
    checkpoint: str | PathLike[str] | None = None,
    stop: StopSign | None = None,
    **options: Any,
) -> CausalResults:
    """Fit a Causal-StoNet by formula: ``CausalStoNet.from_formula(...).fit(...)`` in one call.

    Parameters
    ----------
    formula
        ``"outcome ~ treatment | covariates"``, or with mediators
        ``"outcome ~ treatment | covariates | mediators"``.
    data
        One row per unit, see :meth:`CausalStoNet.from_formula`.
    preset, seed, n_jobs, backend, progress, checkpoint, stop, **options
        See :meth:`CausalStoNet.fit`.
    family, treatment, reference, missing, weights, cluster, safe
        See :meth:`CausalStoNet.from_formula`.
    """
    with progress_reporter(progress) as report:
        report(Standing("reading"))
        model = CausalStoNet.from_formula(
            formula,
            data,
            family=family,
            treatment=treatment,
            reference=reference,
            missing=missing,
            weights=weights,
            cluster=cluster,
            safe=safe,
        )
        return model.fit(
            preset,
            seed=seed,
            n_jobs=n_jobs,
            backend=backend,
            progress=report,
            checkpoint=checkpoint,
            stop=stop,
            **options,
        )


def load(path: str | PathLike[str]) -> CausalResults:
    """Load a fit that ``res.save(path)`` wrote.

    It predicts and prints as before, to the last bit. If the file holds no rows, what needs them
    raises `RowsNotSavedError`. Nothing in a file is run, and classes are made from a list: a file
    of unknown origin can be wrong, but not harmful.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    ArmsResults, DoseResults or MediationResults

    Raises
    ------
    FilePathError
        If there is no such file.
    FileFormatError
        If it is no saved fit, or damaged.
    NewerFileError
        If a newer version of cstonet saved it.
    NotEnoughMemoryError
        If there is no room for it.
    """
    from cstonet.files.saved import read_results  # not at the top: only files need it

    results: CausalResults = read_results(path)
    return results
