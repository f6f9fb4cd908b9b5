/* All kernels, for float and double, compiled once for each instruction set (native/build.py says which): ISA names the table. */
#include "kernels.h"
#include "pool.h"
#include "vector.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define T float
#define INDEX int32_t
#define IS_FLOAT 1
#define NAME(x) JOIN(f32, x)
#include "typed.inc"
#undef T
#undef INDEX
#undef IS_FLOAT
#undef NAME

#define T double
#define INDEX int64_t
#define IS_FLOAT 0
#define NAME(x) JOIN(f64, x)
#include "typed.inc"

#define KERNEL(name, signature) {#name, signature, f32_##name, f64_##name}

const Entry JOIN(kernels, ISA)[] = {
    KERNEL(matmul, "sswrrnnnnnnnnnnnnnn"),
    KERNEL(convolution, "rrrwnnnnnnnnnnnnnnnnn"),
    KERNEL(convolution_input, "rrrwnnnnnnnnnnnnnnnnn"),
    KERNEL(convolution_weight, "rrwnnnnnnnnnnnnnnnnn"),
    KERNEL(lstm, "wrwwwwwwinnnn"),
    KERNEL(lstm_back, "rrrrrwwwinnnn"),
    KERNEL(gru, "wrrwwwwinnnn"),
    KERNEL(gru_back, "rrrrrwwwinnnn"),
    KERNEL(attention, "ssssw" "ww" "nnnnnnnnnnnnnnnnnnnn" "x"),
    KERNEL(attention_back, "sssss" "rrr" "wwww" "nnnnnnnnnnnnnnnnnnnnnnn" "x"),
    KERNEL(sgd, "*wwr" "nxxxx"),
    KERNEL(adam, "*wwww+r" "nxxxxx"),
    KERNEL(softmax, "rwnnnn"),
    KERNEL(softmax_back, "rrwnnnn"),
    KERNEL(cross_entropy, "rirwwwInnn"),
    KERNEL(cross_entropy_back, "rrirwnn"),
    KERNEL(mse_loss, "rrwInnxx"), KERNEL(mse_loss_back, "rrrwnnxx"), KERNEL(smooth_l1_loss, "rrwInnxx"), KERNEL(smooth_l1_loss_back, "rrrwnnxx"), KERNEL(huber_loss, "rrwInnxx"), KERNEL(huber_loss_back, "rrrwnnxx"),
    KERNEL(binary_cross_entropy, "rrwInnxx"), KERNEL(binary_cross_entropy_back, "rrrwnnxx"),
    KERNEL(binary_cross_entropy_with_logits, "rrwInnxx"), KERNEL(binary_cross_entropy_with_logits_back, "rrrwnnxx"),
    KERNEL(row_norm, "rrrwwwnnx"),
    KERNEL(row_norm_back, "rrrrrwwwnn"),
    KERNEL(group_norm, "rrrwwwnnnnx"),
    KERNEL(group_norm_back, "rrrrrwwwnnnn"),
    KERNEL(affine_by_channel, "rrrwnnn"),
    KERNEL(normalize_by_channel, "rrrrrwwwwnnnx"),
    KERNEL(batch_norm, "rrrwwwwnnnx"),
    KERNEL(batch_norm_back, "rrrrrrrwwwnnn"),
    KERNEL(reduce, "rrwnnnnx"),
    KERNEL(extremes, "rwInnn"),
    KERNEL(map_negative, "rw"), KERNEL(map_absolute, "rw"), KERNEL(map_square, "rw"), KERNEL(map_reciprocal, "rw"), KERNEL(map_sqrt, "rw"), KERNEL(map_rsqrt, "rw"),
    KERNEL(map_exp, "rw"), KERNEL(map_expm1, "rw"), KERNEL(map_log, "rw"), KERNEL(map_log1p, "rw"), KERNEL(map_tanh, "rw"), KERNEL(map_sigmoid, "rw"), KERNEL(map_erf, "rw"),
    KERNEL(map_relu, "rw"), KERNEL(map_hardsigmoid, "rw"), KERNEL(map_hardswish, "rw"), KERNEL(map_log_sigmoid, "rw"), KERNEL(map_silu, "rw"), KERNEL(map_mish, "rw"),
    KERNEL(map_gelu, "rw"), KERNEL(map_gelu_tanh, "rw"), KERNEL(pull_relu, "rrw"), KERNEL(pull_hardsigmoid, "rrw"), KERNEL(pull_hardswish, "rrw"),
    KERNEL(pull_log_sigmoid, "rrw"), KERNEL(pull_silu, "rrw"), KERNEL(pull_mish, "rrw"), KERNEL(pull_gelu, "rrw"), KERNEL(pull_gelu_tanh, "rrw"),
    KERNEL(pull_tanh, "rrw"), KERNEL(pull_sigmoid, "rrw"), KERNEL(map_leaky_relu, "rwx"), KERNEL(pull_leaky_relu, "rrwx"), KERNEL(map_hardtanh, "rwxx"),
    KERNEL(pull_hardtanh, "rrwxx"), KERNEL(map_elu, "rwxxx"), KERNEL(pull_elu, "rrwxxx"), KERNEL(map_softplus, "rwxxx"), KERNEL(pull_softplus, "rrwxxx"),
    KERNEL(two_add, "rrwnnnnnn"), KERNEL(two_subtract, "rrwnnnnnn"), KERNEL(two_multiply, "rrwnnnnnn"),
    KERNEL(two_divide, "rrwnnnnnn"), KERNEL(two_maximum, "rrwnnnnnn"), KERNEL(two_minimum, "rrwnnnnnn"),
    KERNEL(two_add_scaled, "rrwnnnnnnx"), KERNEL(two_lerp, "rrwnnnnnnx"),
    KERNEL(max_pool, "rwUI" "nnnnnnnnnnnnn"), KERNEL(max_pool_back, "rwu" "nnnnnnnnnnnnn"),
    KERNEL(window_sum, "rw" "nnnnnnnnnnnnn" "x"), KERNEL(window_spread, "rw" "nnnnnnnnnnnnn" "x"),
    KERNEL(depthwise, "rrrw" "nnnnnnnnnnnnnn"), KERNEL(depthwise_input, "rrrw" "nnnnnnnnnnnnnn"), KERNEL(depthwise_weight, "rrw" "nnnnnnnnnnnnnn"),
    KERNEL(region_max, "riwInnnn"), KERNEL(cumsum, "rwnnn"), KERNEL(narrow, "rUn"), KERNEL(widen, "uwn"),
    KERNEL(copy, "sS" "nnnnnnnnnnnnnnnn"),
    KERNEL(take_rows, "riwInnnn"), KERNEL(add_rows, "riwInnnn"), KERNEL(gather, "riwInnnn"), KERNEL(scatter_add, "riwInnnn"),
    KERNEL(random_integers, "UInnnn"), KERNEL(permutation, "UIn"), KERNEL(random_uniform, "Uwn"), KERNEL(random_choice, "Uwnnx"),
    KERNEL(random_normal, "Uwnxx"), KERNEL(random_exponential, "Uwnx"),
    {0},
};
