"""What a paper's methods section says of a fit: the paragraphs that all analyses have in common.

Each is made of the plan, the design and the effects alone. An analysis adds what its estimator
does, and puts them in order (`methods_text`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from cstonet.data.design import AnyDesign
from cstonet.estimators import Effects
from cstonet.reporting.numbers import count, plain
from cstonet.settings.plan import Plan

_FAMILIES = {
    "gaussian": "gaussian",
    "binomial": "binomial",
    "poisson": "quasi-Poisson: log link, variance proportional to the mean",
}
_ERRORS = {
    "paper": "the plug-in estimator of the efficient variance",
    "influence": "the empirical variance of the influence function",
}


def methods_text(paragraphs: Iterable[str]) -> str:
    """Paragraphs as one text; those that are empty do not apply."""
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def cross_fitting(plan: Plan) -> str:
    """How often the rows were dealt, in a few words."""
    if plan.folds == 1:
        return "in-sample"
    times = f"{plan.repeats} x " if plan.repeats > 1 else ""
    return f"{times}{plan.folds}-fold cross-fit"


def model_paragraph(design: AnyDesign, plan: Plan, further: str = "") -> str:
    """The data and the network.

    Parameters
    ----------
    design, plan
        The data and the plan.
    further
        What else the network models, such as ", the mediators".
    """
    network = plan.network
    weighted = (
        " Rows were weighted by sampling weights, so that effects are those of the population "
        "that the weights represent."
        if design.weights is not None
        else ""
    )
    dropped = (
        f" {count(design.n_dropped)} rows with missing values were left out."
        if design.n_dropped
        else ""
    )
    return (
        f"Model. The treatment {design.treatment_name} ({design.treatment.label}){further} and the "
        f"outcome {design.outcome_name} ({_FAMILIES[design.family]}) of {count(len(design.y))} "
        f"units were modelled jointly by a Causal-StoNet, a sparse stochastic neural network, with "
        f"{count(len(design.covariates))} covariates: layers of {network.label} units, "
        f"{network.activation} activation, and the treatment as a visible unit of hidden layer "
        f"{network.treatment_layer}, so that paths to it are the treatment model and paths around "
        f"it the outcome model.{weighted}{dropped}"
    )


def selection_paragraph(
    plan: Plan, *, kept: Iterable[str] = (), adjusted: str = "", explained: str = ""
) -> str:
    """How covariates were found, and what is made of those found.

    Parameters
    ----------
    plan
        The plan.
    kept
        Names of covariates that the analyst kept in all models.
    adjusted
        How what was found is adjusted for.
    explained
        What covariates are found to explain.
    """
    screened = (
        f"In every fold only the {count(plan.screen)} covariates with the largest scores took "
        "part. "
        if plan.screen is not None
        else ""
    )
    search = plan.search
    if search is None:
        pruned = any(stage.prune for stage in plan.training.stages)
        how = (
            "Every network was trained on all of these and pruned by its mixture prior"
            if pruned
            else "Every network was trained on all of these"
        )
        found = f"{how}; a covariate is selected for a model if a path of kept weights leads to it."
    else:
        found = (
            f"The covariates of each model were searched for in every fold, by score tests of "
            f"those outside a small network on the covariates found so far and by tests of those "
            f"inside when left out; to enter, a score had to exceed sqrt(2 log m) among m scores "
            f"by {plain(float(search.outcome_margin), 2)} for the outcome and "
            f"{plain(search.treatment_margin, 2)} for the treatment."
        )
    rule = (
        f"Covariates count as selected if they were found to explain {explained or 'a model'} in "
        "at least three quarters of the supports."
    )
    names = ", ".join(kept)
    forced = f" {names} were kept in all models by choice." if names else ""
    return f"Covariates. {screened}{found}{forced} {adjusted} {rule}".replace("  ", " ")


def training_paragraph(plan: Plan) -> str:
    """How the networks were trained and the rows dealt."""
    prior = plan.training.prior
    kinds = {stage.prior for stage in plan.training.stages}
    penalty = "a spike-and-slab prior" if "mixture" in kinds else "the slab of the prior as a ridge"
    held_out = (
        f", with the noise measured on {plan.validation_fraction:.0%} of the training rows that "
        "were held out"
        if plan.training.estimate_variance
        else ""
    )
    best = (
        "the one of smallest BIC was used"
        if plan.ensemble == 1
        else f"the {plan.ensemble} of smallest BIC were averaged"
    )
    if plan.starts == 1:
        starts = "one random start per fold"
    elif plan.ensemble == plan.starts:
        starts = f"{plan.starts} random starts per fold, which were averaged"
    else:
        starts = f"{plan.starts} random starts per fold, of which {best}"
    if plan.folds == 1:
        dealt = (
            "Models were trained and evaluated on the same rows (no cross-fitting), whose "
            "overfitting can make standard errors too small."
        )
    else:
        dealt = (
            f"Nuisances are out of fold, from {plan.folds}-fold cross-fitting: each unit is "
            "predicted by networks that did not train on it."
        )
    if plan.repeats > 1:
        dealt += (
            f" This was repeated {plan.repeats} times with other "
            f"{'starts' if plan.folds == 1 else 'folds and starts'}; estimates use nuisances "
            "averaged over the repetitions."
        )
    return (
        f"Training. Networks were trained by adaptive stochastic gradient MCMC with {penalty} "
        f"(slab variance {plain(prior.slab_variance)}), from {starts}{held_out}. {dealt}"
    )


def variance_paragraph(design: AnyDesign, effects: Effects, plan: Plan) -> str:
    """Where standard errors and intervals come from."""
    decisive = "units" if design.clusters is None else "clusters"
    source = _ERRORS[effects.variance_kind]
    errors = f"Inference. Standard errors are from {source}"
    if effects.freedom is None:
        text = f"{errors}; intervals use the normal quantiles."
    else:
        student = (
            "intervals use Student's t with at least "
            f"{math.floor(float(effects.freedom.min())):.0f} degrees of freedom"
        )
        text = f"{errors}; {student} (Satterthwaite), because few {decisive} decide the estimates."
        if effects.between is not None:
            text = (
                f"{errors} within, and the variance between, {effects.imputations} imputations "
                f"(Rubin's rules); {student} (Barnard and Rubin)."
            )
    if plan.repeats > 1:
        text += (
            f" Errors are those of a single one of the {plan.repeats} repetitions, plus what the "
            "repetitions differ by."
        )
    return text + _clusters(design, plan)


def _clusters(design: AnyDesign, plan: Plan) -> str:
    """How clusters were respected; empty without them."""
    groups = design.n_clusters
    if groups is None:
        return ""
    text = (
        f" Units of one {design.cluster_name} may depend on each other: influence values were "
        f"summed over the G = {count(groups)} clusters before their variance was taken, with the "
        f"factor G/(G-1) = {groups / (groups - 1):.3f} (cluster-robust standard errors)"
    )
    if plan.folds > 1:
        text += ", and clusters stayed whole in folds and validation rows"
    if plan.search is not None or plan.screen is not None:
        text += (
            ". Score tests of covariates took units for independent, so that more covariates than "
            "matter may have been found; that costs precision, not validity"
        )
    return f"{text}."


def missing_paragraph(design: AnyDesign) -> str:
    """What was imputed, under which assumption; empty where nothing was."""
    gaps = design.gaps
    if gaps is None:
        return ""
    outcome, treatment = design.outcome_name, design.treatment_name
    names = ", ".join(variable.name for variable in gaps.variables)
    if gaps.mechanism == "mar":
        assumed = (
            "They were assumed to be missing at random, i.e. independent of the missing values "
            f"given the observed covariates, {treatment} and {outcome}."
        )
    else:
        assumed = (
            "Whether a value is missing may depend on the value itself, but was assumed to be "
            f"independent of {outcome} given {treatment} and all covariates; its log-odds are "
            f"linear in {treatment}, the value, and other covariates that score tests find; gaps "
            "of different columns are independent given these. The data cannot tell whether this "
            "holds."
        )
    return (
        f"Missing data. {count(gaps.n_values)} values of {names}, in {count(gaps.n_rows)} rows, "
        f"were imputed from their conditional distributions while the networks learned. {assumed}"
    )


def software_paragraph(plan: Plan, version: str) -> str:
    """What computed it, and how to compute it again."""
    return (
        f"Software. cstonet {version}, preset {plan.preset!r}, seed {plan.seed}; the "
        "same version, data and seed give the same numbers."
    )
