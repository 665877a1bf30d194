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
# # How the fit is calibrated
#
# *Nobody set a learning rate, a noise level or a penalty. Who did?* The published recipe for
# training a Causal-StoNet needs some twenty numbers per data set, among them learning rates from
# $10^{-3}$ down to $5\cdot 10^{-13}$. The default preset needs none: what depends on the data is set
# from the data, and what is left are constants in standardised units, the same for everybody. This
# page shows what is set, from what, and how to see it in a fit.

# %%
import dataclasses

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import cstonet as cs
from cstonet.settings.presets import preset

# %% [markdown]
# ## What is set from what
#
# | quantity | set from | why |
# |---|---|---|
# | units of X and y | means and standard deviations of the data | no number below depends on the units |
# | noise variance of the outcome | rows held out of each fold's training rows, every epoch | rows that were trained on look less noisy than they are |
# | noise ladder of the latent layers | the depth: $\sigma_i^2$ rises by 100 from layer to layer | moving a layer must not disturb the one above it by as much as it explains |
# | latent steps | $\varepsilon_i = \sigma_i$, at temperature one with coupled chains | the sampling noise leaves the parameters' gradient (see *What is stochastic about it*) |
# | learning rates | one number, for gradients scaled parameter by parameter | $1/\sigma^2$ no longer enters the rate |
# | covariates of each model | score tests against $\sqrt{2\log m}$ | sparsity comes before training: with p ≥ n a dense network overfits at once |
# | linear parts of treatment and outcome | penalties from held-out rows; their weight beside the networks from the out-of-fold likelihood | what is linear in many covariates, a network learns slowly and shrinks |
# | slopes of covariates that no model found | four effective rows per slope | what each does a little is a bias together |
# | least propensity | 0.02 times the arm's share | a weight is large in relation to its arm's |
# | width of the network | the training rows, in three steps | the slab's ridge bounds the complexity, not the width |
# | epochs and minibatch | the training rows | a budget of updates that grows with their fourth root, from 10 000 rows on |
#
# Constants: the slab's variance 0.15 (0.1 in the search), the rate 0.02 that falls to zero, 4000
# updates (1600 in the search, 600 for a network that goes on from another), margins of -0.4
# (outcome) and 0.5 (treatment) on the search's thresholds, its working network of 16-8-4 units, and the bound of 6 standard deviations on a
# covariate's values.
#
# The plan of a fit has the numbers, before anything is trained.

# %%
sim = cs.datasets.simulation1(n=800, p=1000, seed=1)
model = cs.CausalStoNet.from_formula(sim.formula, sim.data)
plan = model.plan(seed=1)
stage = plan.training.stages[0]
pd.Series(
    {
        "network": plan.network_label,
        "working network of the search": plan.search_network.label,
        "latent variances": ", ".join(f"{v:g}" for v in plan.training.sampler.variance),
        "latent steps": ", ".join(f"{s:.2g}" for s in stage.step),
        "slab variance": plan.training.prior.slab_variance,
        "rows per minibatch": plan.training.batch_size,
        "epochs": stage.epochs,
        "folds, starts, repeats": (plan.folds, plan.starts, plan.repeats),
    }
).to_frame("value")

# %% [markdown]
# ## The search for the covariates
#
# There are 1000 covariates and 640 training rows in a fold. The outcome depends on x1, …, x5: on
# x3, x4 and x5 in a curved way, on x1 and x2 only through the effect of the treatment. All
# covariates share a common factor, so each is correlated with every other.
#
# The search starts from no covariate at all. In each round a small network is fitted to the current
# support, and every covariate outside is scored by what its weights would do to the likelihood:
# directly, in interaction with the treatment, and through every hidden unit. The best are admitted
# if they exceed what the largest of so many scores would reach by chance. At the end the last
# admitted must show that they would be admitted again.

# %%
res = model.fit(seed=1)
moves = res.networks.search
moves[(moves["fold"] == 0) & (moves["model"] == "outcome")].drop(columns=["fold", "model"])

# %%
first = moves[(moves["fold"] == 0) & (moves["model"] == "outcome") & (moves["move"] == "grow")]
fig, ax = plt.subplots(figsize=(7, 3.2))
place = np.arange(len(first))
ax.bar(place, first["score"], color="tab:blue", label="score |z|")
ax.step(place, first["threshold"], where="mid", color="black", label="threshold")
ax.set_xticks(place, first["covariate"] + "\nround " + first["round"].astype(str))
ax.set_title("Covariates of the outcome in order of admission, fold 1")
ax.legend(frameon=False)
fig.tight_layout()

# %% [markdown]
# Selection over all folds, against the truth:

# %%
table = res.selection.query("treatment or outcome or outcome_count > 0 or treatment_count > 0")
table = table[["treatment", "outcome", "treatment_count", "outcome_count"]].copy()
table["truth: treatment"] = table.index.isin(sim.treatment_support)
table["truth: outcome"] = table.index.isin(sim.outcome_support)
table

# %% [markdown]
# The treatment's own signal is weak in this example, and 800 rows do not show all of it; a
# covariate that the outcome model holds needs a smaller score to enter the treatment model, because
# it is one of few candidates rather than one of a thousand.

# %% [markdown]
# ## The noise, measured on held-out rows
#
# Each epoch ends with a look at the validation rows. Their mean squared error is the variance that
# the likelihood of the next epoch uses, so that prior and data are always on the same scale.

# %%
trace = res.trace[res.trace["fold"] == 0]
truth = (0.25 / sim.data["y"].std()) ** 2
fig, axes = plt.subplots(1, 2, figsize=(9, 3.2))
for start, part in trace.groupby("start"):
    axes[0].plot(part["epoch"], part["outcome_variance"], lw=1, label=f"start {start + 1}")
    axes[1].plot(part["epoch"], part["held_out_outcome"], lw=1)
axes[0].axhline(truth, color="black", ls="--", lw=1, label="true noise")
axes[0].set(yscale="log", xlabel="epoch", title="Held-out variance of the outcome")
axes[1].set(xlabel="epoch", title="Held-out log-likelihood per row")
axes[0].legend(frameon=False, fontsize=8)
fig.tight_layout()

# %% [markdown]
# The floor is above the true noise by what 576 rows cannot teach about the outcome function.
#
# ## The annealed spike
#
# Where covariates are few and rows many, one may instead train a network on all covariates and let
# the mixture-Gaussian prior prune it, as the paper does. The prior's spike must then narrow slowly:
# a narrow spike from the start locks the weights where they happen to be. The options express this
# as stages; here the spike's variance falls from $10^{-2}$ to $10^{-4}$, then the network is pruned
# at the prior's threshold and refined.

# %%
base = preset("calibrated")
stages = (
    cs.options.StageOptions(epochs=20),
    cs.options.StageOptions(epochs=60, prior="mixture", prune=True),
    cs.options.StageOptions(epochs=30, rate_decay="cosine"),
)
prior = cs.options.PriorOptions(slab_variance=1.0, spike_start=1e-2, spike_end=1e-4)
annealing = base.replace(
    search=None,
    hidden=(8, 6, 5),
    training=dataclasses.replace(base.training, stages=stages, prior=prior),
)
large = cs.datasets.simulation2(n=8000, seed=1)
pruned = cs.CausalStoNet.from_formula(large.formula, large.data).fit(
    options=annealing, folds=1, starts=1, repeats=1, seed=1
)
epochs = pruned.trace.assign(clock=np.arange(len(pruned.trace)))
fig, axes = plt.subplots(1, 2, figsize=(9, 3.2))
spike = epochs[epochs["spike_variance"] > 0]
axes[0].plot(spike["clock"], spike["spike_variance"], color="tab:red")
axes[0].set(yscale="log", xlabel="epoch", title="Variance of the spike $\\sigma_0^2$")
axes[1].step(epochs["clock"], epochs["nonzero"], where="post")
axes[1].set(xlabel="epoch", title="Weights in the network", ylim=(0, None))
fig.tight_layout()

# %%
kept = pruned.selection.query("treatment or outcome")[["treatment", "outcome"]]
print(f"effect {pruned.params['ATE']:.3f}, true mean over the rows {large.sample_ate:.3f}")
kept

# %% [markdown]
# ## Several starts, one answer
#
# A network's training ends in one of many good places, and another dealing of the folds finds
# slightly other supports. The estimate averages several starts and two repetitions of the whole
# cross-fitting; what these two differ by tells how far another seed would move it, and the summary
# mentions it when that is more than a tenth of the standard error.

# %%
small = cs.datasets.simulation1(n=1000, p=50, seed=2)
fits = [cs.fit(small.formula, small.data, seed=seed) for seed in range(4)]
estimates = pd.Series([fit.params["ATE"] for fit in fits], name="ATE by seed")
print(estimates.round(4).to_list())
print(f"spread over seeds / standard error: {estimates.std() / fits[0].bse['ATE']:.2f}")

# %% [markdown]
# ## What the search cannot find
#
# A covariate is found when one of its scores stands out: a slope, a bend ($x^2$), an interaction
# with the treatment or with a covariate already found, or a change in the *spread* of the residuals,
# which is the only trace of a pure product $x_1 x_2$. What leaves none of these traces stays hidden:
# the sign of a product, a pure product of three, and a pure product of two covariates that have two
# values each. What is missed but has a slope, the estimator still adjusts for (*slopes* above).
# Residuals of a binary outcome or of a treatment have no spread of their own, so that
# pure products are not found there at all.

# %%
rng = np.random.default_rng(1)
x = rng.standard_normal((1000, 100))
shapes = {
    "x1 x2": 2 * x[:, 0] * x[:, 1],
    "cos(2 x1)": 2 * np.cos(2 * x[:, 0]),
    "sign(x1 x2)": 2 * np.sign(x[:, 0] * x[:, 1]),
    "x1 x2 x3": 2 * x[:, 0] * x[:, 1] * x[:, 2],
}
treat = rng.integers(0, 2, size=1000)
shapes["(treat - 1/2) (x1² - 1)"] = 3 * (treat - 0.5) * (x[:, 0] ** 2 - 1)
found = {}
for name, shape in shapes.items():
    y = shape + treat + rng.standard_normal(1000)
    fit = cs.CausalStoNet(y, treat, x).fit(seed=1, starts=1, repeats=1)
    found[name] = ", ".join(fit.selection.index[fit.selection["outcome"]]) or "nothing"
pd.Series(found, name="found for the outcome").to_frame()

# %% [markdown]
# ## Screening, if asked for
#
# Nothing is screened by default: a score costs one product with the data, so twenty thousand
# covariates are no obstacle. Who wants sure independence screening, as the paper did with its 20 531
# genes, says how many covariates may take part. Each fold ranks them by their marginal scores on its
# own training rows; the plan, the list of moves and `methods()` of the results say so. What acts only
# together with something else has no marginal score, and is lost.

# %%
screened = model.fit(seed=1, screen=100)
print(f"plan: screen = {screened.plan.screen}")
print(screened.networks.search.query("fold == 0")["move"].value_counts().to_dict())
", ".join(screened.selection.index[screened.selection["outcome"]])
