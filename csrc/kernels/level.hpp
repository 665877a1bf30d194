// Declarations of one level's functions. CSTONET_LEVEL is set on the compiler's command line.
#pragma once

#include "kernels/kernels.hpp"

#ifndef CSTONET_LEVEL
#error "kernels are compiled once per level: pass -DCSTONET_LEVEL=<name>"
#endif

namespace cstonet {
namespace CSTONET_LEVEL {

void multiply(const Left& a, const float* b, const float* bias, float* c,
              const ProductShape& shape);
void multiply_add(const Left& a, const float* b, float* c, const ProductShape& shape);
void forward(Activation kind, const Left& a, const float* b, const float* bias, float* z, float* h,
             const ProductShape& shape);
void column_sums(const float* r, long rows, long columns, float* out);
void activate(Activation kind, const float* z, long n, float* out);
void activate_shifted(Activation kind, const float* z, const float* d, long n, float* h,
                      float* change);
void sghmc(Activation kind, const SghmcPass& pass, const LatentInputs& in, long rows, long columns,
           float* velocity, float* d);
float sghmc_coupled(Activation kind, const SghmcPass& pass, const CoupledInputs& in,
                    const PanelShape& shape, const CoupledLatents& out, bool first);
void activate_coupled(Activation kind, const CoupledActivation& at, const PanelShape& shape,
                      Distance distance, bool first);
void innovation(const float* d, const float* s, const float* mask, float scale,
                const PanelShape& shape, float* out);
double squared_norm(const float* a, const float* b, const float* mask, const PanelShape& shape);
void logistic(const float* eta, long n, float* out);
void softplus(const float* eta, long n, double* out);
double sum_squares(const float* x, const float* mask, long n);
void adam(const AdamPass& pass, const PriorPass& prior, const float* gradient, const float* mask,
          long n, float* w, float* first, float* second);
void momentum(const MomentumPass& pass, const PriorPass& prior, const float* gradient,
              const float* mask, long n, float* w, float* velocity);
void prior_gradient(const PriorPass& prior, const float* w, long n, float* out);
void random_bits(const std::uint32_t key[2], const std::uint32_t counter[3], long n,
                 std::uint32_t* out);
void random_normal(const std::uint32_t key[2], const std::uint32_t counter[3], long n, float* out);
void random_normal_rows(const std::uint32_t key[2], const std::uint32_t counter[3],
                        const PanelShape& shape, float* out);
void standardise_floats(const void* from, const double* center, const double* inverse_scale,
                        double limit, long n, float* to);
void standardise_doubles(const void* from, const double* center, const double* inverse_scale,
                         double limit, long n, float* to);
void standardise_float_column(const void* from, double center, double inverse_scale, double limit,
                              long n, float* to);
void standardise_double_column(const void* from, double center, double inverse_scale, double limit,
                               long n, float* to);
void square_centred(const float* x, const float* mean, long rows, long columns, float* linear_sq,
                    float* square, float* square_sq);
float multiply_adds(long steps);
long flops_per_step();

const KernelTable& table();

}  // namespace CSTONET_LEVEL
}  // namespace cstonet
