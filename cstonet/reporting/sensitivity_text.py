"""What a sensitivity analysis says: its tables, its sentences, and its methods in full."""

from __future__ import annotations

import numpy as np

from cstonet.reporting.numbers import level, with_errors
from cstonet.reporting.sensitivity import Sensitivity
from cstonet.reporting.tables import WIDTH, CausalSummary, Table, table_with_headers

_EFFECT_WIDTHS = (14, 11, 9, 11, 11, 8, 8)
_BENCHMARK_WIDTHS = (6, 6, 10, 10, 10, 10)
_SHOWN = 12  # benchmarks in the printed table


def sensitivity_summary(answer: Sensitivity) -> CausalSummary:
    """The effect with its robustness values, the strongest benchmarks, and what they mean."""
    effect, alpha = answer.effect, answer.effect.alpha
    values = np.array([[effect.estimate, effect.se, effect.lower, effect.upper]])
    numbers = with_errors(values, values[:, 1], _EFFECT_WIDTHS[1:5])[0]
    strengths = [f"{answer.robustness_value:.3f}", f"{answer.robustness_value_ci:.3f}"]
    limits = [f"[{alpha / 2:g}", f"{1 - alpha / 2:g}]"]
    first = table_with_headers(
        [[effect.name, *numbers, *strengths]],
        ["", "coef", "std err", *limits, "RV", "RV(ci)"],
        _EFFECT_WIDTHS,
    )
    first.title = "Sensitivity to Omitted Confounders"
    tables = [first]
    if len(answer.strengths):
        tables.append(_benchmarks_table(answer, limits))
    return CausalSummary(tables, _sentences(answer))


def _benchmarks_table(answer: Sensitivity, limits: list[str]) -> Table:
    """Bounds under confounders as strong as the strongest covariates."""
    benchmarks = answer.benchmarks.iloc[:_SHOWN]
    width = WIDTH - sum(_BENCHMARK_WIDTHS) - len(_BENCHMARK_WIDTHS)
    columns = ["lower", "upper", "lower_ci", "upper_ci"]
    errors = np.full(len(benchmarks), answer.effect.se)
    cells = with_errors(benchmarks[columns].to_numpy(), errors, _BENCHMARK_WIDTHS[2:])
    shares = benchmarks[["r2_outcome", "r2_treatment"]].to_numpy()
    rows = [
        [str(name), *(f"{value:.3f}" for value in own), *row]
        for name, own, row in zip(benchmarks.index, shares, cells, strict=True)
    ]
    headers = ["As strong as", "R2(Y)", "R2(A)", "lower", "upper", *limits]
    return table_with_headers(rows, headers, (width, *_BENCHMARK_WIDTHS))


def sensitivity_methods(answer: Sensitivity) -> str:
    """How the bounds were found, in full: text for a paper's methods section."""
    text = (
        f"Sensitivity of the {answer.effect.name} to omitted confounders was assessed by the "
        "bounds of Chernozhukov, Cinelli, Newey, Sharma and Syrgkanis (2022): an omitted "
        "confounder moves the estimate by at most S sqrt(R_Y R_D / (1 - R_D)), with S² the "
        "product of the residual variance of the outcome and the variance of the effect's "
        "Riesz representer, R_Y the share of the outcome's residual variance that the "
        "confounder explains, and R_D the share of the long Riesz representer's variance that "
        "only it explains. The robustness value is the strength R_Y = R_D at which the bound "
        f"reaches zero, RV(ci) that at which the {level(answer.effect.alpha)} confidence bound "
        "does, in which the error of S counts."
    )
    if answer.benchmarks_by == "refits":
        text += (
            " Benchmarks are the gains of each selected covariate: the growth of the residual "
            "variance, and the shrinkage of the representer's, in a repetition of the whole "
            "fit without it."
        )
    elif answer.benchmarks_by == "regressions":
        text += (
            " Benchmarks are the gains of each selected covariate in penalised regressions "
            "(linear, or logistic where the response is binary) of outcome and treatment on "
            "the selected covariates, their squares and products, for the outcome also "
            "products with the treatment, with and without the covariate, predicted for rows "
            "that were held out."
        )
    if answer.risk_ratio is not None:
        text += " E-values follow VanderWeele and Ding (2017)."
    return text


def _sentences(answer: Sensitivity) -> list[str]:
    """What the numbers say, in words."""
    effect = answer.effect
    rv, significance = answer.robustness_value, f"{100 * effect.alpha:g} %"
    first = (
        f"To bring the {effect.name} to zero, an omitted confounder would have to explain "
        f"{100 * rv:.1f} % of what treatment and covariates leave of {answer.outcome} (R2(Y)) "
        f"and as much of {answer.treatment} (R2(A), in the variance of the Riesz representer)"
    )
    if answer.robustness_value_ci > 0:
        first += f"; {100 * answer.robustness_value_ci:.1f} % would take its significance at "
        first += f"the {significance} level."
    else:
        first += f"; it is not significant at the {significance} level to begin with."
    sentences = [first, _about_benchmarks(answer)]
    if answer.risk_ratio is not None:
        sentences.append(
            f"E-value {answer.evalue:.2f}, of the confidence limit {answer.evalue_ci:.2f}: risk "
            "ratios with treatment and with outcome that a confounder would need, above and "
            "beyond the covariates, to explain the risk ratio of "
            f"{answer.risk_ratio.estimate:.2f}."
        )
    return sentences


def _about_benchmarks(answer: Sensitivity) -> str:
    """What a confounder as strong as the strongest covariate would leave."""
    benchmarks = answer.benchmarks
    if benchmarks.empty:
        return "No covariate serves as a benchmark: none was selected, or none was asked for."
    name, row = benchmarks.index[0], benchmarks.iloc[0]
    positive = answer.effect.estimate >= 0
    left = float(row["lower" if positive else "upper"])
    limit = float(row["lower_ci" if positive else "upper_ci"])
    text = f"One as strong as {name}, the strongest covariate, could leave {left:.4g} of it"
    if (left > 0) != positive or left == 0:
        return f"{text}: confounding like that could explain the estimate away."
    if (limit > 0) != positive:
        return f"{text}: the sign would stay, its significance would not."
    return f"{text}, with a confidence limit of {limit:.4g}: sign and significance would stay."
