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
# # What is stochastic about it
#
# *A Causal-StoNet is a stochastic network. Where is the randomness, what is it good for, and does it
# blur the answer?* This page builds the sampler in thirty lines of NumPy, looks at the latent
# variables of a few units, shows why the obvious gradient is useless and what the package does
# instead, and ends with the same fit at temperature zero and one.

# %%
import dataclasses

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import cstonet as cs

# %% [markdown]
# ## A chain of regressions
#
# Every layer is a regression on the one below, with noise:
#
# $$Y_1 = b_1 + w_1 x + e_1, \qquad Y_2 = b_2 + w_2\,\psi(Y_1) + e_2, \qquad
#   y = b_3 + w_3\,\psi(Y_2) + e_3, \qquad e_i \sim N(0, \sigma_i^2).$$
#
# $Y_1$ and $Y_2$ are never seen: they are missing data. Training alternates two steps (Algorithm A1
# of the paper): *draw* the latent variables given the data and the parameters, layer by layer from
# the top; then *move* each layer's parameters along the gradient of its own regression, which with
# the latent variables at hand is a linear one. No error is ever propagated back through several
# layers.
#
# Two latent layers of five units for a curve of one covariate:

# %%
rng = np.random.default_rng(1)
n = 400
x = rng.uniform(-2, 2, size=(n, 1))
y = np.sin(2 * x) + 0.3 * rng.normal(size=(n, 1))
VARIANCE = np.array([1e-5, 1e-3])  # σ_1² ≪ σ_2² ≪ 1: the ladder
NOISE = 0.09  # σ_3², the outcome's


def start():
    draw = np.random.default_rng(2).normal
    sizes = [(1, 5), (5, 5), (5, 1)]
    return [(draw(size=s) / np.sqrt(s[0]), 0.5 * draw(size=s[1])) for s in sizes]


def noise_free(theta, x):
    z1 = x @ theta[0][0] + theta[0][1]
    z2 = np.tanh(z1) @ theta[1][0] + theta[1][1]
    return z1, z2


# %% [markdown]
# One backward sweep moves $Y_2$, then $Y_1$, from where the network without noise has them: a
# step towards what the layer above says, and a normal draw whose size is the temperature's. With
# `pull=False` the outcome says nothing, and the sweep draws from the model alone.


# %%
def sweep(theta, x, y, normals, *, temperature=1.0, pull=True):
    y1, y2 = noise_free(theta, x)
    (_, _), (w2, b2), (w3, b3) = theta
    s1, s2 = VARIANCE
    residual = (y - np.tanh(y2) @ w3 - b3) / NOISE if pull else np.zeros_like(y)
    y2 = y2 + s2 * (1 - np.tanh(y2) ** 2) * (residual @ w3.T)
    y2 = y2 + np.sqrt(2 * temperature * s2) * normals[1]
    innovation = (y2 - np.tanh(y1) @ w2 - b2) / s2
    y1 = y1 + s1 * (1 - np.tanh(y1) ** 2) * (innovation @ w2.T)
    y1 = y1 + np.sqrt(2 * temperature * s1) * normals[0]
    return y1, y2


def gradient(theta, x, y, y1, y2, *, pull=True):
    """Of each layer's log-likelihood, a mean over the rows."""
    (w1, b1), (w2, b2), (w3, b3) = theta
    r1 = (y1 - x @ w1 - b1) / VARIANCE[0]
    r2 = (y2 - np.tanh(y1) @ w2 - b2) / VARIANCE[1]
    r3 = (y - np.tanh(y2) @ w3 - b3) / NOISE if pull else np.zeros_like(y)
    below = (x, np.tanh(y1), np.tanh(y2))
    return [(h.T @ r / len(x), r.mean(axis=0)) for h, r in zip(below, (r1, r2, r3), strict=True)]


def draws(rows):
    return rng.normal(size=(rows, 5)), rng.normal(size=(rows, 5))


# %% [markdown]
# ## Latent variables of three units
#
# The first latent variable of the second layer, for three rows of the data, in two thousand draws:
# normal around the noise-free value (the dashed line), with standard deviation $\sqrt 2\,\sigma_2$.
# The outcome pulls their centres aside by what it knows: so little that it cannot be seen.

# %%
theta = start()
rows = np.argsort(x[:, 0])[[40, 200, 360]]
sampled = np.array([sweep(theta, x[rows], y[rows], draws(3))[1][:, 0] for _ in range(2000)])
figure, axis = plt.subplots(figsize=(7, 3))
for k, row in enumerate(rows):
    axis.hist(sampled[:, k], bins=40, alpha=0.6, label=f"row {row}")
    axis.axvline(noise_free(theta, x[[row]])[1][0, 0], color="black", linestyle="--", linewidth=1)
axis.set(xlabel="$Y_2$, first unit", ylabel="draws")
axis.legend(frameon=False)
figure.tight_layout()
plt.show()

# %% [markdown]
# ## The gradient, drowned and saved
#
# How much the outcome pulls is all there is to learn from, and in layer $i$ it stands beside noise
# of size $1/\sigma_i$. The package runs a *shadow* beside the chain: the same normals, no pull. The
# shadow's gradient is pure noise, of expectation zero because nothing was observed, and it is the
# *same* noise. The difference of the two gradients keeps the expectation and loses the noise.


# %%
def plain(theta, x, y, temperature=1.0):
    normals = draws(len(x))
    return gradient(theta, x, y, *sweep(theta, x, y, normals, temperature=temperature))


def coupled(theta, x, y):
    normals = draws(len(x))
    chain = gradient(theta, x, y, *sweep(theta, x, y, normals))
    shadow = gradient(theta, x, y, *sweep(theta, x, y, normals, pull=False), pull=False)
    return [(w - w0, b - b0) for (w, b), (w0, b0) in zip(chain, shadow, strict=True)]


exact = plain(theta, x[:50], y[:50], temperature=0.0)
table = {}
for name, rule in {"plain": plain, "coupled": coupled}.items():
    many = [rule(theta, x[:50], y[:50]) for _ in range(500)]
    for layer in range(3):
        values = np.array([g[layer][0].ravel() for g in many])
        table[name, f"layer {layer + 1}"] = {
            "size of the gradient at temperature zero": np.linalg.norm(exact[layer][0]),
            "distance of the mean draw from it": np.linalg.norm(
                values.mean(axis=0) - exact[layer][0].ravel()
            ),
            "noise (root of the total variance)": np.sqrt(values.var(axis=0).sum()),
        }
gradients = pd.DataFrame(table).T
gradients.style.format("{:.3g}")

# %% [markdown]
# In the first layer the coupled gradient has no noise at all: while a sweep goes down, no difference
# between chain and shadow depends on the normals. Above, what is left is of the order of the
# ladder's ratio $\sigma_1^2/\sigma_2^2$ and of $\sigma_2$. At the outcome nothing pulls the shadow
# and nothing is subtracted; the noise there is small already.

# %%
few = gradients.loc[("coupled", "layer 1"), "noise (root of the total variance)"]
much = gradients.loc[("plain", "layer 1"), "noise (root of the total variance)"]
assert few < 1e-6 * much

# %% [markdown]
# Training shows what that means. Three times the same network from the same start, the same number
# of updates (each parameter's step scaled as Adam does):


# %%
def train(rule, updates=3000, rate=0.01):
    theta = [[w.copy(), b.copy()] for w, b in start()]
    moments = [[np.zeros_like(p), np.zeros_like(p)] for layer in theta for p in layer]
    losses, order = [], np.random.default_rng(3)
    for k in range(1, updates + 1):
        batch = order.integers(0, n, size=50)
        flat = [g for layer in rule(theta, x[batch], y[batch]) for g in layer]
        for j, g in enumerate(flat):
            moments[j][0] += 0.1 * (g - moments[j][0])
            moments[j][1] += 0.001 * (g**2 - moments[j][1])
            first, second = moments[j][0] / (1 - 0.9**k), moments[j][1] / (1 - 0.999**k)
            theta[j // 2][j % 2] += rate * first / (np.sqrt(second) + 1e-8)
        if k % 50 == 0:
            fitted = np.tanh(noise_free(theta, x)[1]) @ theta[2][0] + theta[2][1]
            losses.append(np.mean((y - fitted) ** 2))
    return losses


runs = {
    "temperature zero": train(lambda *at: plain(*at, temperature=0.0)),
    "temperature one, coupled": train(coupled),
    "temperature one, plain": train(plain),
}
figure, axis = plt.subplots(figsize=(7, 3))
for (name, losses), style in zip(runs.items(), ("-", "--", ":"), strict=True):
    axis.plot(np.arange(1, len(losses) + 1) * 50, losses, style, label=name)
axis.axhline(0.09, color="grey", linewidth=0.8)
axis.set(xlabel="updates", ylabel="mean squared error", yscale="log")
axis.legend(frameon=False)
figure.tight_layout()
plt.show()

# %%
final = {name: losses[-1] for name, losses in runs.items()}
assert abs(final["temperature one, coupled"] - final["temperature zero"]) < 0.01
assert final["temperature one, plain"] > 1.2 * final["temperature one, coupled"]
pd.Series(final, name="mean squared error after 3000 updates").round(4)

# %% [markdown]
# ## The same fit, at temperature zero and one
#
# The default of the package samples at temperature one with coupled chains, in every network of the
# search and of the final fit. At temperature zero the same code follows the gradient without
# noise. Folds, starts and minibatches are the same in both fits below; the latent noise is not:

# %%
sim = cs.datasets.simulation1(n=1000, p=100, seed=1)
defaults = cs.options.FitOptions()


def at(temperature, training):
    sampler = dataclasses.replace(training.sampler, temperature=temperature)
    return dataclasses.replace(training, sampler=sampler)


fits = {
    temperature: cs.fit(
        sim.formula,
        sim.data,
        seed=1,
        training=at(temperature, defaults.training),
        search=dataclasses.replace(
            defaults.search, training=at(temperature, defaults.search.training)
        ),
    )
    for temperature in (0.0, 1.0)
}
comparison = pd.DataFrame(
    {
        f"temperature {t:g}": {
            "ATE": res.params["ATE"],
            "standard error": res.bse["ATE"],
            "covariates of the outcome": ", ".join(res.selection.index[res.selection["outcome"]]),
        }
        for t, res in fits.items()
    }
)
comparison

# %%
cold, warm = fits[0.0], fits[1.0]
assert abs(cold.params["ATE"] - warm.params["ATE"]) < 0.5 * warm.bse["ATE"]
assert (cold.selection["outcome"] == warm.selection["outcome"]).all()

# %% [markdown]
# `SamplerOptions(coupled=False)` switches the shadow off, as the presets named after the paper do.
# Why the difference is unbiased, where it is exact and what the ladder has to do with it is derived
# in `docs/decisions/0043`.
