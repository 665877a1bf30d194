# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # Covariates with holes
#
# *What to do when some covariates are missing for some units?* Four answers are compared: leave
# these units out, put the mean into the gaps, impute while the network learns (`missing="mar"`),
# and do so allowing that a value is missing because of what it is (`missing="mnar"`). The data are
# simulated, so every answer can be held against the truth and against the fit to complete data.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import cstonet as cs

# %% [markdown]
# ## Holes that depend on what was lost
#
# The paper's second simulation, and the holes of its experiment with values missing *not* at
# random: a treated unit loses x1 and x4 far more often than a control, and x1 most often where it
# is small.

# %%
sim = cs.datasets.simulation2(n=2000, p=20, seed=4)
holes = cs.datasets.paper_holes(sim)
gaps = holes.data[["x1", "x4"]].isna()
lost = gaps["x1"].to_numpy()
pd.DataFrame(
    {
        "gaps in x1": gaps["x1"].groupby(sim.data["treat"]).mean(),
        "gaps in x4": gaps["x4"].groupby(sim.data["treat"]).mean(),
    }
).round(3)

# %%
print(
    f"mean of x1 where it was lost {sim.data['x1'][lost].mean():.2f}, "
    f"where it is known {sim.data['x1'][~lost].mean():.2f}"
)

# %% [markdown]
# ## Four answers
#
# `missing=` is all there is to choose. One repetition of the cross-fitting is enough here.


# %%
def estimate(data, missing="raise"):
    """The fit that everything below uses."""
    return cs.fit("y ~ treat | .", data, missing=missing, seed=1, repeats=1)


means = holes.data.fillna(holes.data.mean())
fits = {
    "complete data": estimate(sim.data),
    "complete cases": estimate(holes.data, "drop"),
    "means in the gaps": estimate(means),
    "missing at random": estimate(holes.data, "mar"),
    "missing not at random": estimate(holes.data, "mnar"),
}
table = pd.DataFrame(
    {
        "ATE": {name: fit.params["ATE"] for name, fit in fits.items()},
        "std err": {name: fit.bse["ATE"] for name, fit in fits.items()},
        "rows": {name: fit.nobs for name, fit in fits.items()},
    }
)
table["minus complete data"] = table["ATE"] - table.loc["complete data", "ATE"]
print(f"mean effect over these rows: {sim.sample_ate:.3f}")
table.round(3)

# %% [markdown]
# Complete cases answer for other people: those who are easily observed. Means in the gaps hide who
# was confounded. Imputation at random repairs what treatment, outcome and neighbouring covariates
# can tell about a lost value, and the last line also uses that it was lost.
#
# The notes of the summary say how much was imputed; `res.methods()` also says what that rests on:

# %%
print(fits["missing not at random"].summary())
print()
print(fits["missing not at random"].methods())

# %% [markdown]
# No data can tell whether values are missing at random; the two assumptions are stated so that
# they can be judged. `"mar"` needs that, among units with the same observed covariates, treatment
# and outcome, those with a gap are like those without. `"mnar"` lets the gap depend on the lost
# value, and needs instead that the outcome has no part in it beyond treatment and covariates.
#
# What is known about a lost value shows in its imputations. Each point below is a unit that lost
# x1: the value that was removed, and the mean and spread of its imputations.

# %%
fit = fits["missing not at random"]
entries, scaling = fit.networks.gaps.entries, fit.networks.x_scaling
of_x1 = entries.column == fit.design.covariates.index("x1")
column = entries.column[of_x1][0]
drawn = fit.imputations.values[of_x1] / scaling.inverse_scale[column] + scaling.center[column]
truth = sim.data["x1"].to_numpy()[entries.rows[entries.row[of_x1]]]

figure, axes = plt.subplots(figsize=(5.5, 4))
axes.errorbar(truth, drawn.mean(axis=1), yerr=drawn.std(axis=1), fmt="o", ms=3, lw=0.6, alpha=0.6)
axes.axline((0, 0), slope=1, color="black", lw=0.8)
axes.set(xlabel="value that was removed", ylabel="imputations: mean and spread", title="x1")
figure.tight_layout()
plt.show()

# %% [markdown]
# ## How many gaps are too many?
#
# From 5 to 40 % of x1, a confounder, are removed, more often among treated units and large
# outcomes: at random given what is observed. The points are means over three data sets of the
# difference to the fit on complete data.

# %%
shares = [0.05, 0.1, 0.2, 0.4]
differences = {"complete cases": [], "means in the gaps": [], "missing at random": []}
for share in shares:
    errors = {name: [] for name in differences}
    for seed in (1, 2, 3):
        whole = cs.datasets.simulation2(n=1000, p=8, seed=seed)
        data = cs.datasets.punch_holes(whole, ["x1"], share=share, mechanism="mar").data
        reference = estimate(whole.data).params["ATE"]
        errors["complete cases"].append(estimate(data, "drop").params["ATE"] - reference)
        filled = data.fillna(data.mean())
        errors["means in the gaps"].append(estimate(filled).params["ATE"] - reference)
        errors["missing at random"].append(estimate(data, "mar").params["ATE"] - reference)
    for name, values in errors.items():
        differences[name].append(values)

figure, axes = plt.subplots(figsize=(6, 4))
for name, marker in zip(differences, "s^o", strict=True):
    values = np.array(differences[name])
    spread = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
    axes.errorbar(
        100 * np.array(shares), values.mean(axis=1), yerr=spread, marker=marker, label=name
    )
axes.axhline(0, color="black", lw=0.8)
axes.set(xlabel="values of x1 that are missing (%)", ylabel="ATE minus that of complete data")
axes.legend(frameon=False)
figure.tight_layout()
plt.show()

# %% [markdown]
# ## What it cannot do
#
# - Outcome, treatment and weights must be there; rows without them have to go.
# - Only plain columns are imputed. Where the formula computes with a column that has gaps, such as
#   `np.log(income)`, put the logarithm into the data first.
# - New rows may have gaps in the columns that had some at the fit. `cate`, `propensity` and
#   `predict` then average over draws of what is missing.
# - A number is imputed as normal given its neighbours. A skewed column is imputed better after a
#   transformation; columns of two values and categories keep their levels.
# - Of two columns that say the same and are missing together, leave one out: each would be imputed
#   from the other, and neither would learn from treatment and outcome.

# %%
fits["missing at random"].cate(holes.data[gaps.any(axis=1)].head())
