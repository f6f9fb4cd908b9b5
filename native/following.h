/* The activations that kernels of products apply to their results (following.inc), by number; their names reach Python as `native.following`, for
   compiler/packed.py. */
#pragma once

/* EACH(name of the op, formula of x and of p, q, r, the parameters of its map in activations.inc). kernels.rows has their number. */
#define FOLLOWING(EACH) \
    EACH(nothing, x) \
    EACH(relu, x < 0 ? 0 : x) \
    EACH(leaky_relu, x > 0 ? x : x * p) \
    EACH(hardtanh, WITHIN(x, p, q)) \
    EACH(hardsigmoid, WITHIN(x + 3, (T)0, (T)6) * (T)(1 / 6.0)) \
    EACH(hardswish, x * WITHIN(x + 3, (T)0, (T)6) * (T)(1 / 6.0)) \
    EACH(sigmoid, F(sigmoid)(x)) \
    EACH(tanh, F(tanh)(x)) \
    EACH(silu, x * F(sigmoid)(x)) \
    EACH(gelu, x * F(normal_roughly)(x)) \
    EACH(gelu_tanh, x * F(sigmoid)(TWICE_SLOPE * x * (1 + BEND * x * x))) \
    EACH(elu, x > 0 ? q * x : p * F(expm1)(r * x)) \
    EACH(softplus, F(softplus_within)(x, p, q, r)) \
    EACH(mish, F(mish_of)(x))

#define FOLLOWING_NAME(name, formula) #name " "
