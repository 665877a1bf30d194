"""Networks of the paper's comparisons, as baselines; PyTorch is loaded when one is learnt."""

from __future__ import annotations

from common import Variables

from baselines.base import Baseline, Fitted


def tarnet(rows: Variables, threads: int, seed: int) -> Fitted:
    """TARNet: a shared representation and a head per treatment."""
    from baselines.networks.cfrnet import learn_cfrnet

    return learn_cfrnet(rows, threads, seed, distance=None)


def cfrnet_mmd(rows: Variables, threads: int, seed: int) -> Fitted:
    """CFRNet with the squared linear maximum mean discrepancy between the arms."""
    from baselines.networks.cfrnet import learn_cfrnet, squared_linear_mmd

    return learn_cfrnet(rows, threads, seed, distance=squared_linear_mmd)


def cfrnet_wass(rows: Variables, threads: int, seed: int) -> Fitted:
    """CFRNet with the entropic Wasserstein distance between the arms."""
    from baselines.networks.cfrnet import learn_cfrnet, sinkhorn

    return learn_cfrnet(rows, threads, seed, distance=sinkhorn)


def dragonnet(rows: Variables, threads: int, seed: int) -> Fitted:
    """DragonNet with targeted regularisation."""
    from baselines.networks.dragonnet import learn_dragonnet

    return learn_dragonnet(rows, threads, seed)


def donut(rows: Variables, threads: int, seed: int) -> Fitted:
    """Deep orthogonal networks for unconfounded treatments."""
    from baselines.networks.donut import learn_donut

    return learn_donut(rows, threads, seed)


def cevae(rows: Variables, threads: int, seed: int) -> Fitted:
    """Causal effect variational autoencoder."""
    from baselines.networks.cevae import learn_cevae

    return learn_cevae(rows, threads, seed)


def ganite(rows: Variables, threads: int, seed: int) -> Fitted:
    """Generative adversarial nets for individual treatment effects."""
    from baselines.networks.ganite import learn_ganite

    return learn_ganite(rows, threads, seed)


_SHALIT = "Shalit, Johansson and Sontag (2017), ICML"

NEURAL_BASELINES = (
    Baseline("tarnet", ("torch",), tarnet, _SHALIT),
    Baseline("cfrnet-mmd", ("torch",), cfrnet_mmd, _SHALIT),
    Baseline("cfrnet-wass", ("torch",), cfrnet_wass, _SHALIT),
    Baseline("dragonnet", ("torch",), dragonnet, "Shi, Blei and Veitch (2019), NeurIPS"),
    Baseline("donut", ("torch",), donut, "Hatt and Feuerriegel (2021), CIKM"),
    Baseline("cevae", ("torch",), cevae, "Louizos et al. (2017), NeurIPS"),
    Baseline("ganite", ("torch",), ganite, "Yoon, Jordon and van der Schaar (2018), ICLR"),
)
