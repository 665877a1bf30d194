// One task: train the network of one fold from one start. Composed of the parts beside this file;
// single-threaded and a function of (problem, fold, start) alone.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/data.hpp"
#include "core/hooks.hpp"
#include "core/missing.hpp"
#include "core/network.hpp"
#include "core/optimizer.hpp"
#include "core/options.hpp"
#include "core/prior.hpp"
#include "core/rng.hpp"
#include "core/sghmc.hpp"

namespace cstonet {

struct TaskResult;

// What all tasks of a run share.
struct Problem {
  const NetworkSpec& spec;
  const TrainingOptions& options;
  const Dataset& data;
  const std::vector<Index>& inputs;     // covariates the network starts from
  Columns visible;                      // n x visible columns, standardised
  Columns offset;                       // the same shape, see Batch; no columns: none
  std::span<const float> row_weight;    // n
  const std::vector<Panel>& structure;  // per layer: 1 where a weight may be; empty: everywhere
  std::uint64_t seed;
  std::uint64_t network;         // number of the network within its fit: others draw other numbers
  const Candidates* candidates;  // for rows with missing covariates; null: none has any
  const TaskResult* previous;    // parameters and optimiser to go on from; null: random weights
  std::span<const Index> carried;  // of every input: which of the previous network's, or -1: new
  bool trace;  // whether to keep a record of every epoch, and to compute the BIC
};

struct Task {
  Index fold, start;
  std::vector<Index> fit_rows;         // the gradient sees these
  std::vector<Index> validation_rows;  // noise and the trace are measured on these; may be empty
};

struct EpochRecord {
  Index stage, epoch;
  double spike;  // σ0², 0 while the prior is off
  Index nonzero;
  std::vector<double> layer_likelihood;  // log π(Y_i | Y_{i-1}) per row, training rows
  std::vector<double> validation;        // log-likelihood per row of each visible block
  std::vector<double> variances;         // of the visible blocks
};

struct TaskResult {
  Parameters parameters;
  Optimizer::State optimizer;
  std::vector<Index> inputs;  // covariates behind the rows of the first layer
  std::vector<double> variances;
  // The next three are computed with a trace only.
  std::vector<double> log_likelihood;  // of each visible block, over all the task's rows
  double bic = std::numeric_limits<double>::quiet_NaN();
  double rows = 0.0;                       // weight of those rows
  std::vector<std::vector<bool>> reaches;  // [visible block][input]
  // [visible block][covariate of the data]: of its most probable path, just before the last
  // pruning (0 for those that were out by then); empty where nothing is pruned.
  std::vector<std::vector<double>> slab_paths;
  std::vector<EpochRecord> trace;
  std::string failure;  // empty, or why the start was given up
};

class Trainer {
 public:
  Trainer(const Problem& problem, const Task& task, Hooks& hooks);
  TaskResult run();

 private:
  void initialize();
  void initialize(LayerParameters& theta, std::uint32_t layer) const;
  // Takes over what another network on the same layers has learned. Inputs that it did not have
  // start at zero, and so do weights that it was not allowed.
  void resume(const TaskResult& previous);
  // Places of the next epoch: all of them in random order, or the next part of such an order.
  std::span<const Index> next_rows();
  PriorPass prior_pass(const StageOptions& stage, double spike) const;
  void load(std::span<const Index> places);
  // Places cut into minibatches, the last of which may be shorter.
  std::vector<std::span<const Index>> batches(std::span<const Index> places) const;
  void run_epoch(const StageOptions& stage, int epoch, EpochRecord& record);
  void train_batch(std::span<const Index> places, std::span<const double> rates,
                   std::span<const double> steps, const PriorPass& prior,
                   std::span<double> likelihood);
  void move_candidates(std::uint32_t stream);
  void measure_validation(EpochRecord& record);
  void prune_network(const StageOptions& stage, TaskResult& result);
  void measure_paths(const MixturePrior& prior, TaskResult& result) const;
  void drop_unconnected_inputs();
  void copy_inputs_if_few();
  void check_finite(const EpochRecord& record) const;
  void finish(TaskResult& result);
  // Sums over rows of: the log-likelihood of each visible block, and squared errors of gaussian
  // ones, both under `variances`.
  struct Evaluation {
    double weight = 0.0;
    std::vector<double> likelihood, squares;
  };
  // With `move`, rows with missing covariates take a step after they have been looked at.
  Evaluation evaluate(std::span<const Index> places, bool move = false);
  void judge(const Evaluation& all, TaskResult& result) const;
  void add_squares(Evaluation& total) const;  // of the batch
  // Variances of the gaussian blocks on rows that were evaluated; the others keep theirs.
  void measure(const Evaluation& seen, std::vector<double>& variances) const;
  void measure_for_candidates();
  double batch_weight() const;
  std::span<const double> layer_variances();
  Index nonzero_parameters() const;  // those the BIC counts

  const Problem& problem_;  // this and the next three outlive the trainer
  const Task& task_;
  const TrainingOptions& options_;
  Hooks& hooks_;
  RandomStream random_;
  NetworkSpec spec_;  // a copy: its inputs shrink after pruning
  std::vector<Index> inputs_;
  Panel local_;  // the connected covariates of the task's rows, once few remain
  Parameters parameters_;
  std::vector<VisibleBlock> blocks_;
  std::vector<double> variances_;            // that the network trains with
  std::vector<double> candidate_variances_;  // that missing values move with
  std::vector<double> layer_variances_;      // room for what layer_variances returns
  // The task's rows: those to fit, then those held out. Everything below counts their places here.
  std::vector<Index> rows_;
  std::vector<Index> held_out_;
  std::vector<Index> order_;  // of the rows to fit
  Index part_;                // rows of an epoch
  Index visited_;             // places of the present order that former epochs have seen
  std::uint32_t iteration_ = 0;

  Batch batch_;
  std::vector<Index> batch_rows_;
  std::vector<LayerState> states_;
  std::vector<LayerGradient> gradients_;
  BackwardSampler sampler_;
  Optimizer optimizer_;
  std::optional<Imputer> imputer_;
};

}  // namespace cstonet
