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
# # Twins: a known effect
#
# *How near to the truth does an observational study come, and how near could it come at best?* Real
# data rarely tell, because each unit is seen under one treatment only. Twins come close to an
# exception. Of two twins, one is heavier at birth. Take the pair as the unit, being the heavier one as
# the treatment, and death within the first year as the outcome: then both outcomes are on record, and
# the effect is known. We hide one twin of each pair, in a way that depends on the covariates, and
# ask the fit for the effect.

# %%
import os
import warnings
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import expit

import cstonet as cs
from cstonet.errors import LostSupportWarning

# %% [markdown]
# ## The pairs
#
# Twins of the same sex, born in the United States from 1989 to 1991, both lighter than two
# kilograms. The environment variable `CSTONET_DATA` names the folder that holds the data.

# %%
file = Path(os.environ.get("CSTONET_DATA", "data"), "twins", "twins_lt2kg_complete_4821.csv.gz")
if not file.exists():
    raise SystemExit(
        f"This page needs {file.name} in a folder twins of the folder that CSTONET_DATA names: a "
        "table of the pairs in datasets/TWINS of github.com/AMLab-Amsterdam/CEVAE in which both "
        "twins weigh less than 2 kg and no covariate is missing, with dbirwt_0 and dbirwt_1 "
        "(grams; 0 is the lighter twin), mort_0 and mort_1 (death within a year), and the columns "
        "of the file X."
    )
pairs = pd.read_csv(file)
y0, y1 = pairs["mort_0"].to_numpy(float), pairs["mort_1"].to_numpy(float)
truth = np.mean(y1 - y0)
pd.DataFrame(
    {
        "mean weight (g)": [pairs["dbirwt_0"].mean(), pairs["dbirwt_1"].mean()],
        "deaths": [y0.sum(), y1.sum()],
        "risk (%)": [100 * y0.mean(), 100 * y1.mean()],
    },
    index=["lighter twin", "heavier twin"],
).round(2)

# %%
print(f"{len(pairs)} pairs; true effect of being the heavier twin: {100 * truth:.2f} points")

# %% [markdown]
# In most pairs both twins live, or both die. The effect is the balance of the few pairs in which
# only one of them died:

# %%
pd.crosstab(pairs["mort_0"], pairs["mort_1"])

# %% [markdown]
# ## A study is drawn
#
# There are 46 covariates: of the pregnancy, of the parents, of the birth. The paper lets them decide
# which twin is seen. The heavier one is, with a probability whose log-odds are a weighted sum of the
# covariates. The weight of `gestat10`, the length of the pregnancy in ten categories, is large; those
# of the other 45 are drawn at random and are moderate. So longer pregnancies, whose children die
# less often, show their heavier twin more often. States and places of birth are left out, because
# their regions are there.
#
# Every number below is another study of the same pairs, with other weights.

# %%
not_covariates = [
    *("cevae_row", "dbirwt_0", "dbirwt_1", "mort_0", "mort_1", "infant_id_0", "infant_id_1"),
    *("brstate", "stoccfipb", "mplbir", "bord_0", "bord_1"),
]
covariates = pairs.drop(columns=not_covariates, errors="ignore").astype(float)
covariates["bord"] = pairs["bord_1"].astype(float)  # birth order of the heavier twin


def draw_study(number):
    """The rows that one study sees, and what it does not see: the probabilities behind them."""
    rng = np.random.default_rng(np.random.SeedSequence([77, number]))
    others = covariates.drop(columns="gestat10")
    spread = others.std(ddof=0)
    standard = (others - others.mean()) / spread.where(spread > 0, 1.0)
    weights = rng.normal(0.0, np.sqrt(0.1), others.shape[1])
    weight_of_gestation = rng.normal(5.0, np.sqrt(0.1))
    gestation = weight_of_gestation * (covariates["gestat10"].to_numpy() / 10 - 0.1)
    propensity = expit(standard.to_numpy() @ weights + gestation)
    heavier = (rng.random(len(pairs)) < propensity).astype(int)
    seen = pd.DataFrame({"death": np.where(heavier == 1, y1, y0), "heavier": heavier})
    # In standard deviations of each covariate, like the weights of the others.
    per_sd = pd.Series(weights, index=others.columns)
    per_sd["gestat10"] = weight_of_gestation / 10 * covariates["gestat10"].std(ddof=0)
    return SimpleNamespace(
        data=pd.concat([seen, covariates], axis=1), propensity=propensity, weights=per_sd
    )


study = draw_study(301)
study.data.iloc[:5, :10]

# %% [markdown]
# Comparing the arms as they are does not give the effect:


# %%
def naive(data):
    """Difference of the arms' risks, and its standard error."""
    arms = [data.loc[data["heavier"] == arm, "death"] for arm in (0, 1)]
    variance = sum(arm.var(ddof=0) / len(arm) for arm in arms)
    return arms[1].mean() - arms[0].mean(), np.sqrt(variance)


difference, error = naive(study.data)
print(f"{study.data['heavier'].sum()} heavier twins are seen, {len(pairs)} twins in all")
print(f"difference of the arms {100 * difference:.2f} ± {100 * error:.2f} points")
print(f"true effect            {100 * truth:.2f} points")

# %% [markdown]
# The pictures show why. Early births are dangerous for both twins (left), and the study sees their
# lighter twin more often than that of later births (right). A category with fewer than twenty
# pairs is not shown.

# %%
category = covariates["gestat10"].astype(int)
sizes = category.value_counts().sort_index()
large = sizes.index[sizes >= 20]
fig, axes = plt.subplots(1, 2, figsize=(9, 3.2))
axes[0].plot(100 * pairs["mort_0"].groupby(category).mean()[large], "o-", label="lighter twin")
axes[0].plot(100 * pairs["mort_1"].groupby(category).mean()[large], "s-", label="heavier twin")
axes[0].set(xlabel="gestat10, short to long pregnancy", ylabel="risk of death (%)")
axes[0].legend(frameon=False)
axes[1].bar(large, 100 * study.data["heavier"].groupby(category).mean()[large], color="0.7")
axes[1].set(xlabel="gestat10, short to long pregnancy", ylabel="heavier twin is seen (%)")
for ax in axes:
    ax.set_xticks(large)
fig.tight_layout()
plt.show()

# %% [markdown]
# ## The fit
#
# One call, with all 46 covariates and all options at their defaults.

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore", LostSupportWarning)  # the summary repeats it
    res = cs.fit("death ~ heavier | .", data=study.data, seed=1)
print(res.summary())

# %%
low, high = res.conf_int().loc["ATE"]
pd.DataFrame(
    {
        "estimate": [difference, res.params["ATE"], truth],
        "std err": [error, res.bse["ATE"], np.nan],
        "low": [difference - 1.96 * error, low, np.nan],
        "high": [difference + 1.96 * error, high, np.nan],
    },
    index=["difference of the arms", "cstonet", "truth"],
).mul(100).round(2)

# %% [markdown]
# ## What was found
#
# We know what the treatment was drawn from: all 46 covariates, each with its weight. Here are
# those with the largest weights, in log-odds per standard deviation, beside what the search found, in
# how many of the supports.

# %%
table = res.selection[["treatment", "outcome", "treatment_count", "outcome_count"]].copy()
table.insert(0, "weight", study.weights)
table.sort_values("weight", key=abs, ascending=False).head(12).round(2)

# %%
found = table["treatment"].to_numpy()
size = table["weight"].abs()
print("for the treatment:", ", ".join(table.index[found]) or "none")
print("for the outcome:  ", ", ".join(table.index[table["outcome"]]) or "none")
print(f"mean |weight|, found for the treatment: {size[found].mean():.2f}")
print(f"                             not found: {size[~found].mean():.2f}")
print(table.loc["gestat10", ["treatment", "outcome"]].to_string())

# %% [markdown]
# The length of the pregnancy is the confounder that matters: it decides who is seen and who dies.
# Most of the others decide who is seen, and have little to do with death. To leave those out of the
# weights costs hardly any bias and saves precision. So the list for the treatment need not be
# complete, and the fit does not put everything on it into the weights.
# A rare diagnosis concerns few births, and may not be found even if its weight is large.
#
# ## Can the arms be compared?
#
# The true probabilities are known here. Some pairs had hardly a chance to show one of their
# twins. The fit asks the same from the outside, and counts the units without counterparts: those
# whose probability of the other arm, given all covariates, is below a twentieth of that arm's share.

# %%
share = study.data["heavier"].mean()
chance = np.minimum(study.propensity / share, (1 - study.propensity) / (1 - share))
print(f"without counterparts, by the true probabilities: {100 * np.mean(chance < 0.05):.1f} %")
print(f"                      by the fit:                {100 * res.lost_share:.1f} %")
print(f"the effect is called estimable: {res.estimable}")

# %%
fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True)
bins = np.linspace(0, 1, 41)
kinds = {"true probability": study.propensity, "the fit's, for the weights": res.propensity()}
for ax, (name, values) in zip(axes, kinds.items(), strict=True):
    for arm, color in ((0, "tab:orange"), (1, "tab:blue")):
        of_arm = np.asarray(values)[study.data["heavier"] == arm]
        label = "heavier twin seen" if arm else "lighter twin seen"
        ax.hist(of_arm, bins=bins, density=True, alpha=0.5, color=color, label=label)
    ax.set(xlabel="probability that the heavier twin is seen", title=name)
axes[0].set_ylabel("density")
axes[1].legend(frameon=False)
fig.tight_layout()
plt.show()

# %% [markdown]
# The right picture is narrower on purpose. It holds what is needed for the weights: covariates of
# the outcome, and those of the treatment that may matter to it. Nobody wants weights of twenty
# because of a covariate that has nothing to do with death.
#
# What is left of the differences between the arms, in standard deviations, for each covariate. With
# rows as many as here, covariates have slopes in the estimator, which are made to remove differences:
# the picture shows that the adjustment was made, not that the arms overlap.

# %%
balance = res.balance()
fig, ax = plt.subplots(figsize=(6, 3.4))
limit = 1.1 * balance["smd_before"].abs().max()
ax.axhspan(-0.1, 0.1, color="0.9", zorder=0)
ax.scatter(balance["smd_before"], balance["smd_after"], s=16, color="tab:blue")
point = balance.loc["gestat10"]
ax.plot([point["smd_before"]] * 2, [point["smd_after"], 0.15], color="0.4", lw=1)
ax.text(point["smd_before"], 0.16, "gestat10", ha="center")
ax.set(xlim=(-limit, limit), ylim=(-0.3, 0.3))
ax.set(xlabel="difference before weighting", ylabel="after weighting")
fig.tight_layout()
plt.show()

# %% [markdown]
# ## What would someone say who knew the probabilities?
#
# A study with a known design, such as a stratified experiment, knows every unit's probability of
# treatment. Two estimators that use the true ones, beside the fit:
#
# * *weights*: each arm's risk, weighted by one over the probability of what was seen;
# * *weights and risks*: the same doubly robust formula as in the fit, with the true probabilities, and
#   with the risks of both twins in each category of `gestat10`, counted over all pairs. No study
#   could know them.

# %%
risk0, risk1 = (
    pairs.groupby("gestat10")[name].transform("mean").to_numpy() for name in ("mort_0", "mort_1")
)


def known_propensity(study):
    """Estimates and standard errors by weights alone, and by weights and risks."""
    treated, y = study.data["heavier"].to_numpy(), study.data["death"].to_numpy()
    inverse = [(1 - treated) / (1 - study.propensity), treated / study.propensity]
    means = [np.average(y, weights=w) for w in inverse]
    by_weights = [w * (y - m) / w.mean() + m for w, m in zip(inverse, means, strict=True)]
    by_both = [w * (y - r) + r for w, r in zip(inverse, (risk0, risk1), strict=True)]
    values = {"weights": by_weights[1] - by_weights[0], "both": by_both[1] - by_both[0]}
    return {name: (np.mean(v), np.std(v) / np.sqrt(len(v))) for name, v in values.items()}


known = known_propensity(study)
pd.DataFrame(
    [known["weights"], known["both"], (res.params["ATE"], res.bse["ATE"])],
    index=["true probabilities: weights", "true probabilities: weights and risks", "cstonet"],
    columns=["estimate", "std err"],
).mul(100).round(2)

# %% [markdown]
# Knowing the probabilities does not make the answer precise. Weights from the true probabilities
# even suffer from covariates that have nothing to do with death.
#
# ## The error that no method can beat
#
# Suppose a coin had chosen the twin. Nothing would have to be adjusted for, and the difference of the
# arms would be unbiased. How far from the truth would it be? Two thousand such trials with the same
# pairs, and the same trials analysed by someone who knows every category's risks beforehand:

# %%
rng = np.random.default_rng(0)
trials = []
for _ in range(2000):
    heads = rng.random(len(pairs)) < 0.5
    corrections = np.where(heads, 2 * (y1 - risk1), -2 * (y0 - risk0))
    trials.append((y1[heads].mean() - y0[~heads].mean(), np.mean(risk1 - risk0 + corrections)))
# Variance of one unit's contribution, of which the standard error is the root over √n.
plain = 2 * (y0.var() + y1.var())
informed = np.var(risk1 - risk0) + 2 * (np.mean((y0 - risk0) ** 2) + np.mean((y1 - risk1) ** 2))
claimed = np.sqrt(np.array([plain, informed]) / len(pairs))
# 2.8 standard errors: 1.96 of them reach significance, 0.84 more do so in 80 % of trials.
needed = np.array([plain, informed]) * (2.8 / truth) ** 2
pd.DataFrame(
    [
        100 * np.std(trials, axis=0),
        100 * claimed,
        100 * np.mean(np.abs(trials) > 1.96 * claimed, axis=0),
        needed,
    ],
    index=[
        "spread of the estimates around the truth (points)",
        "standard error that a trial reports (points)",
        "trials that find the effect at the 5 % level (%)",
        "pairs needed to find it in 80 % of trials",
    ],
    columns=["difference of the arms", "with the risks known"],
).round(2)

# %% [markdown]
# This is the lesson of the data. The effect is two and a half points; a perfect trial of this size has
# a standard error of about one. An observational study must also undo the selection, and has a
# larger one. An estimate of -1 or of -4 is what sampling does. A standard error far below one point
# would be wrong, whoever reports it.
#
# The estimates spread a little less than the standard errors say. A standard error is about all
# the births that these pairs stand for; the truth at hand is that of these pairs, and it does not
# vary. So intervals should hold it a little more often than they promise.
#
# ## Ten other studies
#
# The same pairs, ten other draws of weights and of who is seen, each fitted with the defaults.

# %%
rows = []
for number in range(302, 312):
    other = draw_study(number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LostSupportWarning)  # lost_share is in the table
        fit = cs.fit("death ~ heavier | .", data=other.data, seed=1)
    low, high = fit.conf_int().loc["ATE"]
    by_weights, by_both = known_propensity(other).values()
    found = fit.selection.loc["gestat10", ["treatment", "outcome"]]
    rows.append(
        {
            "study": number,
            "naive": naive(other.data)[0],
            "weights": by_weights[0],
            "both": by_both[0],
            "cstonet": fit.params["ATE"],
            "std err": fit.bse["ATE"],
            "low": low,
            "high": high,
            "lost share": fit.lost_share,
            "gestat10 found": ", ".join(found.index[found.astype(bool)]),
        }
    )
studies = pd.DataFrame(rows).set_index("study")
numbers = studies.drop(columns="gestat10 found").mul(100).round(2)
numbers.assign(**{"gestat10 found": studies["gestat10 found"]})

# %%
fig, ax = plt.subplots(figsize=(7, 4.4))
place = np.arange(len(studies))
middle = 100 * studies["cstonet"]
reach = [middle - 100 * studies["low"], 100 * studies["high"] - middle]
ax.errorbar(middle, place, xerr=reach, fmt="o", capsize=3, label="cstonet, 95 % interval")
known = "true probabilities and risks"
ax.scatter(100 * studies["both"], place + 0.25, marker="D", s=18, color="0.4", label=known)
ax.scatter(100 * studies["naive"], place, marker="x", color="tab:red", label="arms as they are")
ax.axvline(100 * truth, color="black", lw=1, label="truth")
ax.axvline(0, color="0.8", lw=1, zorder=0)
ax.set_yticks(place, studies.index)
ax.set(xlabel="effect of being the heavier twin (points)", ylabel="study")
ax.legend(frameon=False, ncols=2, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0))
fig.tight_layout()
plt.show()

# %%
estimates = studies[["naive", "weights", "both", "cstonet"]]
errors = 100 * (estimates - truth)
pd.DataFrame(
    {
        "mean error": errors.mean(),
        "root mean squared error": np.sqrt((errors**2).mean()),
        "largest": errors.abs().max(),
    }
).rename(index={"naive": "arms as they are", "both": "weights and risks"}).round(2)

# %%
covered = ((studies["low"] <= truth) & (truth <= studies["high"])).sum()
excludes_zero = (studies["high"] < 0) | (studies["low"] > 0)
print(
    f"{covered} of {len(studies)} intervals hold the truth; mean standard error "
    f"{100 * studies['std err'].mean():.2f} points"
)
print(f"{excludes_zero.sum()} of {len(studies)} intervals exclude zero")

# %% [markdown]
# Comparing the arms as they are is off by several points, nearly always in the same direction. The
# fit's errors go both ways. Their size is in the table, beside that of somebody who knows the
# probabilities. To know them is less than it seems: weights made of all 46 covariates cost more
# precision than those made of the few that matter to death.
#
# Part of the error is shared. Who happens to be seen moves every method alike; how much so, the
# correlation of the fit's errors with those of the others tells:

# %%
errors.corr()["cstonet"].drop("cstonet").rename("correlation with the fit's error").round(2)

# %% [markdown]
# Few of the intervals exclude zero, although the effect is real. That is no failure of the interval.
# An effect of about two standard errors is one that a single study easily misses.
#
# ## What is not known
#
# * **Whether 95 % are 95 %.** Ten intervals cannot tell 95 from 85 %. `benchmarks/field.py` has
#   other draws of the same pairs, and other methods.
# * **What another study would say.** A researcher has one row of the table above, not ten. Its
#   standard error is all that tells how far another row might be. Cross-validation folds do not
#   replace it: they share the same births, and the same draw of who was seen. For one such draw the
#   paper reports -2.32 points with 0.42 in brackets, the spread of the average over three folds. That
#   is less than half of what a coin-tossing trial of this size could claim.
# * **Whether nothing is missing.** Here the selection was made from the 46 covariates, so that
#   adjusting for them is enough. In a real study this is an assumption, and no figure on this page
#   would have warned of its failure.
# * **What the effect means.** Nobody can make a twin the heavier one. The effect of weight, mixed
#   with that of birth order and whatever else makes twins differ, is what these pairs show; it is known
#   exactly, and it is the effect in twins lighter than two kilograms only.
