"""The named settings of a fit.

``"calibrated"`` is what the options' own defaults say. It is scale-free: everything that depends
on the data is ``"auto"``. ``"stonet"`` is the paper's method with nothing to tune either: one
network on all covariates, pruned by its prior. ``"paper"`` is Algorithm A1 with the settings
published for the paper's second simulation; those of the other experiments carry their names:
``"paper:simulation1"``, ``"paper:acic"``, ``"paper:twins"``, ``"paper:tcga"``. Their rates belong
to those data sets and seldom suit another. What they do and what they do differently from the
paper is in docs/decisions/0045.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cstonet.errors import OptionError
from cstonet.settings.checks import is_choice
from cstonet.settings.options import (
    FitOptions,
    OptimizerOptions,
    PriorOptions,
    SamplerOptions,
    StageOptions,
    TrainingOptions,
)
from cstonet.shown import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The numbers of one experiment, from the paper's appendix "Parameters setting".

    Parameters
    ----------
    hidden, treatment_layer
        Units of the hidden layers, and the one that holds the treatment.
    treatment_weight
        Factor on the treatment's log-likelihood.
    latent_variance, outcome_variance
        σ_i² of the latent layers and of the outcome; of a binary outcome, its temperature.
    spike, slab
        σ0² and σ1² of the prior.
    epochs
        Of pretraining, of training (once or twice) and of refining.
    friction
        α of the sampler.
    step, step_exponent
        ε_i of the latent layers, and the exponent of its decay.
    rate, refine_rate, rate_exponent
        γ_i of the layers in training and in refining, and the exponent of its decay.
    batch_size
        Rows per minibatch.
    """

    hidden: tuple[int, ...]
    treatment_layer: int
    treatment_weight: float
    latent_variance: tuple[float, ...]
    outcome_variance: float
    spike: float
    slab: float
    epochs: tuple[int, ...]
    friction: float
    step: tuple[float, ...]
    step_exponent: float
    rate: tuple[float, ...]
    refine_rate: tuple[float, ...]
    rate_exponent: float
    batch_size: int = 100

    def options(self) -> FitOptions:
        """Algorithm A1 with these numbers, each start on all covariates, the best by BIC.

        Momentum, clipping, batch sizes and the weight on the treatment's likelihood are those of
        the published computations; the paper's text does not state them.
        """
        return FitOptions(
            training=self._training(),
            hidden=self.hidden,
            treatment_layer=self.treatment_layer,
            treatment_weight=self.treatment_weight,
            outcome_temperature=self.outcome_variance,
            search=None,
            starts=10,
            ensemble=1,
            folds=3,
            repeats=1,
            validation_fraction=0.0,
            outlier_limit=1e6,
        )

    def _training(self) -> TrainingOptions:
        return TrainingOptions(
            stages=self._stages(),
            batch_size=self.batch_size,
            initializer="uniform",
            initial_bias=1.0,
            estimate_variance=False,
            initial_variance=self.outcome_variance,
            sampler=SamplerOptions(
                sweeps=1,
                friction=self.friction,
                temperature=1.0,
                coupled=False,
                variance=self.latent_variance,
            ),
            prior=PriorOptions(
                inclusion=1e-6,
                slab_variance=self.slab,
                spike_start=self.spike,
                spike_end=self.spike,
                anneal_share=0.0,
                penalize_bias=True,
            ),
            optimizer=OptimizerOptions(rule="momentum", momentum=0.9, clip_norm=1.0),
        )

    def _stages(self) -> tuple[StageOptions, ...]:
        """Pretrain, then train and prune (maybe twice), then refine: all with the prior."""
        pretrain, *train, refine = self.epochs
        first = StageOptions(epochs=pretrain, prior="mixture", rate=self.rate, step=self.step)
        decaying = replace(
            first,
            rate_decay="polynomial",
            rate_exponent=self.rate_exponent,
            step_decay="polynomial",
            step_exponent=self.step_exponent,
        )
        return (
            first,
            *(replace(decaying, epochs=e, prune=True) for e in train),
            replace(decaying, epochs=refine, rate=self.refine_rate),
        )


PUBLISHED = {
    "simulation1": Published(
        hidden=(32, 16, 8),
        treatment_layer=2,
        treatment_weight=1000.0,
        latent_variance=(1e-3, 1e-5, 1e-7),
        outcome_variance=1e-9,
        spike=1e-5,
        slab=1e-2,
        epochs=(50, 200, 200),
        friction=0.1,
        step=(3e-3, 3e-4, 5e-7),
        step_exponent=1.2,
        rate=(1e-3, 1e-6, 1e-8, 5e-13),
        refine_rate=(1e-4, 1e-7, 1e-9, 5e-14),
        rate_exponent=1.4,
        batch_size=50,
    ),
    "simulation2": Published(
        hidden=(8, 6, 5),
        treatment_layer=2,
        treatment_weight=1000.0,
        latent_variance=(1e-3, 1e-5, 1e-7),
        outcome_variance=1e-9,
        spike=3e-3,
        slab=0.3,
        epochs=(100, 1500, 200),
        friction=0.1,
        step=(3e-3, 3e-4, 1e-6),
        step_exponent=1.2,
        rate=(1e-3, 3e-6, 1e-7, 1e-12),
        refine_rate=(1e-4, 3e-7, 1e-8, 1e-13),
        rate_exponent=1.2,
    ),
    "acic": Published(
        hidden=(64, 32),
        treatment_layer=1,
        treatment_weight=2000.0,
        latent_variance=(1e-5, 1e-7),
        outcome_variance=1e-9,
        spike=2e-4,
        slab=0.1,
        epochs=(100, 500, 1000, 200),
        friction=1.0,
        step=(3e-4, 1e-6),
        step_exponent=1.0,
        rate=(5e-6, 5e-8, 5e-13),
        refine_rate=(5e-7, 5e-9, 1e-13),
        rate_exponent=2.0,
    ),
    "twins": Published(
        hidden=(16, 8, 4),
        treatment_layer=2,
        # None is published; weight times rate of this layer is 10⁻³ to 10⁻² in the others.
        treatment_weight=100.0,
        latent_variance=(1e-3, 1e-4, 1e-5),
        outcome_variance=1e-6,
        spike=5e-4,
        slab=0.1,
        epochs=(100, 1500, 200),
        friction=1.0,
        step=(1e-2, 9e-3, 9e-5),
        step_exponent=1.0,
        rate=(1e-3, 1e-4, 1e-5, 1e-9),
        refine_rate=(1e-4, 1e-5, 1e-6, 1e-10),
        rate_exponent=1.2,
    ),
    "tcga": Published(
        hidden=(64, 16, 4),
        treatment_layer=2,
        treatment_weight=200.0,
        latent_variance=(1e-3, 1e-5, 1e-7),
        outcome_variance=1e-9,
        spike=1e-5,
        slab=1e-2,
        epochs=(100, 1500, 200),
        friction=1.0,
        step=(3e-3, 3e-4, 1e-6),
        step_exponent=1.0,
        rate=(1e-3, 5e-5, 5e-7, 1e-12),
        refine_rate=(1e-4, 1e-6, 1e-8, 1e-13),
        rate_exponent=1.2,
    ),
}
EXPERIMENTS = tuple(PUBLISHED)
PRESETS = ("calibrated", "stonet", "paper", *(f"paper:{name}" for name in EXPERIMENTS))


def stonet() -> FitOptions:
    """The paper's method with constants from the data.

    One network models treatment and outcome on all covariates, under the mixture prior. Its spike
    narrows while the network trains, the weights below the prior's threshold are pruned, and those
    that remain are refined under the slab. The best of the starts by BIC is used. Rates are those
    of standardised data with noise measured on held-out rows, and fall to zero in both stages, so
    that what is pruned does not depend on the last minibatches.
    """
    train = StageOptions(epochs="auto", prior="mixture", prune=True, rate_decay="cosine")
    return FitOptions(
        training=TrainingOptions(
            stages=(train, replace(train, prior="slab", prune=False)),
            prior=PriorOptions(
                inclusion="auto", spike_start="auto", spike_end="auto", anneal_share=0.8
            ),
        ),
        hidden=(12, 8, 4),
        search=None,
        updates=4500,
        starts=2,
        ensemble=1,
        folds=5,
        repeats=1,
    )


def preset(name: str) -> FitOptions:
    """The options of a preset.

    Parameters
    ----------
    name
        ``"calibrated"``, ``"stonet"``, ``"paper"`` (the same as ``"paper:simulation2"``), or one of
        ``"paper:simulation1"``, ``"paper:simulation2"``, ``"paper:acic"``, ``"paper:twins"``,
        ``"paper:tcga"``.
    """
    if not is_choice(name, PRESETS):
        raise OptionError(f"Unknown preset {shown(name)}. Choose one of {', '.join(PRESETS)}.")
    if name == "calibrated":
        return FitOptions()
    if name == "stonet":
        return stonet()
    return PUBLISHED[name.partition(":")[2] or "simulation2"].options()
