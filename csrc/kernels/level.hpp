// Declarations of one level's functions. CSTONET_LEVEL is set on the compiler's command line.
#pragma once

#include "kernels/kernels.hpp"

#ifndef CSTONET_LEVEL
#error "kernels are compiled once per level: pass -DCSTONET_LEVEL=<name>"
#endif

namespace cstonet {
namespace CSTONET_LEVEL {

void multiply(const Strided& a, const float* b, const float* bias, float* c, long rows, long depth,
              long columns);
void multiply_add(const Strided& a, const float* b, float* c, long rows, long depth, long columns);
void column_sums(const float* r, long rows, long columns, float* out);
void activate(Activation kind, const float* z, long n, float* out);
void activate_shifted(Activation kind, const float* z, const float* d, long n, float* h,
                      float* change);
void sghmc(Activation kind, const SghmcPass& pass, const LatentInputs& in, long rows, long columns,
           float* velocity, float* d);
float sghmc_coupled(Activation kind, const SghmcPass& pass, const CoupledInputs& in, long rows,
                    long columns, const CoupledLatents& out, bool first);
void activate_coupled(Activation kind, const CoupledActivation& at, long n, bool near, bool first);
void innovation(const float* d, const float* s, const float* mask, float scale, long rows,
                long columns, float* out);
double sum_squares(const float* x, const float* mask, long n);
void adam(const AdamPass& pass, const PriorPass& prior, const float* gradient, const float* mask,
          long n, float* w, float* first, float* second);
void momentum(const MomentumPass& pass, const PriorPass& prior, const float* gradient,
              const float* mask, long n, float* w, float* velocity);
void prior_gradient(const PriorPass& prior, const float* w, long n, float* out);
void random_bits(const std::uint32_t key[2], const std::uint32_t counter[3], long n,
                 std::uint32_t* out);
void random_normal(const std::uint32_t key[2], const std::uint32_t counter[3], long n, float* out);

const KernelTable& table();

}  // namespace CSTONET_LEVEL
}  // namespace cstonet
