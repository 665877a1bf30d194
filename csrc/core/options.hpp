// What a training run is told. No defaults and no checks here: both live in Python, in
// cstonet/settings/training_options.py.
// Each struct lists its fields once in `fields`, which the bindings use to copy from Python.
#pragma once

#include <vector>

namespace cstonet {

// Python has words for these; bindings/names.hpp lists them.
enum class Initializer { normal, uniform };  // both of scale 1/sqrt(inputs)
enum class UpdateRule { adam, momentum };
enum class PriorKind { none, slab, mixture };   // slab: a ridge
enum class Decay { none, polynomial, cosine };  // polynomial: γ / (1 + γ k^exponent), k the epoch

// Imputation of the latent variables by SGHMC.
struct SamplerOptions {
  int sweeps;                    // t_MC
  double friction;               // α = ε η
  double temperature;            // 1 samples the posterior, 0 follows its gradient
  bool coupled;                  // subtract the gradient of a shadow chain that sees no data?
  std::vector<double> variance;  // σ_i², i = 1..h

  template <class Visitor>
  void fields(Visitor&& visit) {
    visit("sweeps", sweeps);
    visit("friction", friction);
    visit("temperature", temperature);
    visit("coupled", coupled);
    visit("variance", variance);
  }
};

struct PriorOptions {
  double inclusion;      // λ_n
  double slab_variance;  // σ²_{1,n}
  double spike_start;    // σ²_{0,n} when a stage with the prior begins
  double spike_end;      // σ²_{0,n} when its annealing ends
  double anneal_share;   // share of the stage's epochs spent annealing
  bool penalize_bias;

  template <class Visitor>
  void fields(Visitor&& visit) {
    visit("inclusion", inclusion);
    visit("slab_variance", slab_variance);
    visit("spike_start", spike_start);
    visit("spike_end", spike_end);
    visit("anneal_share", anneal_share);
    visit("penalize_bias", penalize_bias);
  }
};

struct OptimizerOptions {
  UpdateRule rule;
  double momentum;      // decay of the first moment
  double second_decay;  // decay of the second moment (adam)
  double epsilon;       // added to its root (adam)
  double clip_norm;     // largest norm of a layer's gradient in units of 1/σ_i²; 0 = no clipping

  template <class Visitor>
  void fields(Visitor&& visit) {
    visit("rule", rule);
    visit("momentum", momentum);
    visit("second_decay", second_decay);
    visit("epsilon", epsilon);
    visit("clip_norm", clip_norm);
  }
};

struct StageOptions {
  int epochs;
  PriorKind prior;
  bool prune;                // prune at the end of the stage?
  std::vector<double> rate;  // γ_i, i = 1..h+1
  std::vector<double> step;  // ε_i, i = 1..h
  Decay rate_decay;
  double rate_exponent;
  Decay step_decay;
  double step_exponent;

  template <class Visitor>
  void fields(Visitor&& visit) {
    visit("epochs", epochs);
    visit("prior", prior);
    visit("prune", prune);
    visit("rate", rate);
    visit("step", step);
    visit("rate_decay", rate_decay);
    visit("rate_exponent", rate_exponent);
    visit("step_decay", step_decay);
    visit("step_exponent", step_exponent);
  }
};

struct TrainingOptions {
  int batch_size;
  long epoch_rows;  // rows visited in an epoch, about: the rows are cut into equal parts
  Initializer initializer;
  double initial_bias;      // sd of the initial biases of hidden layers
  bool estimate_variance;   // visible blocks that have one: variance from held-out rows
  double initial_variance;  // of outcomes that have one; that of other visible blocks starts at one
  SamplerOptions sampler;
  PriorOptions prior;
  OptimizerOptions optimizer;
  std::vector<StageOptions> stages;

  template <class Visitor>
  void fields(Visitor&& visit) {
    visit("batch_size", batch_size);
    visit("epoch_rows", epoch_rows);
    visit("initializer", initializer);
    visit("initial_bias", initial_bias);
    visit("estimate_variance", estimate_variance);
    visit("initial_variance", initial_variance);
    visit("sampler", sampler);
    visit("prior", prior);
    visit("optimizer", optimizer);
    visit("stages", stages);
  }
};

}  // namespace cstonet
