"""Public calls that reach compiled kernels, drawn at random: well formed ones, and the same with something wrong.

A template is a program with places in it: <N C> is a tensor of two sizes that all places share, {C} such a size as a
    number, and `number`, `axis`,
`choice` … what their names say (`Draw.place`). In some calls a place gets something else: another dtype, layout, shape,
a number far too large.
"""
import random
import re

DTYPES = ["float64"] * 3 + ["float16", "bfloat16", "bool", "uint8", "int8", "int16", "int32", "int64", "int64",
                            "complex64", "complex128"]
LAYOUTS = ["expanded", "overlapping", "sliced", "transposed", "reversed", "unaligned", "unaligned", "offset", "swapped",
           "readonly"]
NUMBERS = ["-1", "-1", "0", "0", "1", "-7", "2**31", "2**31-1", "-2**31", "2**32+1", "2**40", "2**62", "2**63-1",
           "-2**63", "2**63", "2**70", "1.5", "True", "None", "'x'", "()", "(1, 2)", "(-1, -1)", "[0]", "(0, 0)",
           "(2**62, 2**62)", "tg.tensor(2)", "float('nan')"]
REALS = ["0", "-1.0", "float('nan')", "float('inf')", "-float('inf')", "1e308", "None", "'x'", "1e-320", "True",
         "2**70", "1j", "tg.ones(2)"]

MAPS = """neg abs square reciprocal sqrt rsqrt exp expm1 log log1p tanh sigmoid erf relu sin cos floor sign exp2 log2
    isnan nan_to_num clone ravel t flip:0 nn.functional.hardsigmoid nn.functional.hardswish nn.functional.logsigmoid
    nn.functional.silu nn.functional.mish
    nn.functional.gelu
    nn.functional.leaky_relu nn.functional.hardtanh nn.functional.elu nn.functional.softplus nn.functional.selu
    nn.functional.relu6""".split()
PAIRS = "add sub mul div maximum minimum pow atan2 fmod eq lt where:a>0 lerp:0.3 hypot logaddexp".split()
REDUCTIONS = ("sum mean prod amax amin var std norm logsumexp any all argmax argmin max min median cumsum cumprod "
              "logcumsumexp softmax log_softmax".split())
LOSSES = (
    """mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div poisson_nll_loss soft_margin_loss""".split())  # noqa: E501


def lines(text):
    """Templates, one a line."""
    return [line.strip() for line in text.strip().splitlines()]


def maps():
    for name in MAPS:
        function, _, extra = name.partition(":")
        yield f"y = tg.{function}(<*>{', (' + extra + ',)' if extra else ''})"
    yield "y = F.gelu(<*>, approximate='tanh')"
    yield "y = F.leaky_relu(<*>, real)"
    yield "y = F.hardtanh(<*>, real, real)"
    yield "y = F.elu(<*>, real)"
    yield "y = F.softplus(<*>, real, real)"
    yield "y = tg.clamp(<*>, real, real)"
    yield "y = tg.clamp(<*>, <~*>, <~*>)"
    for name in ("exp", "neg", "sqrt", "sigmoid", "tanh", "relu"):
        yield f"tg.{name}(<*>, out=<out *>)" if name != "relu" else "<*>.relu_()"
        yield f"<*>[..., 1:].copy_(a[..., :-1].{name}())"


def pairs():
    for name in PAIRS:
        function, _, extra = name.partition(":")
        if function == "where":
            yield "y = tg.where(<b *>, <~*>, <~*>)"
            continue
        yield f"y = tg.{function}(<*>, <~*>{', ' + extra if extra else ''})"
        yield f"y = tg.{function}(<*>, real{', ' + extra if extra else ''})"
        yield f"tg.{function}(<*>, <~*>{', ' + extra if extra else ''}, out=<out *>)"
    yield "y = tg.add(<*>, <~*>, alpha=real)"
    yield "y = tg.sub(<*>, <~*>, alpha=real)"
    yield "y = tg.lerp(<*>, <~*>, <~*>)"
    yield "y = tg.addcmul(<*>, <~*>, <~*>, value=real)"
    yield "y = tg.addcdiv(<*>, <~*>, <~*>, value=real)"
    for op in ("+=", "-=", "*=", "/="):
        yield f"<*>; a {op} <~*>"
        yield f"<N M>; b = a[1:]; b {op} a[:-1]"
    for name in ("add_", "mul_", "sub_", "div_", "copy_"):
        yield f"<N M>[:, 1:].{name}(a[:, :-1])"
        yield f"<N N>.{name}(a.T)"
        yield f"<*>.{name}(<~*>)"


def reductions():
    for name in REDUCTIONS:
        yield f"y = tg.{name}(<*>, dim=axis)" if name != "norm" else "y = tg.norm(<*>, dim=axis, p=real)"
        if name not in ("cumsum", "cumprod", "logcumsumexp", "softmax", "log_softmax"):
            yield f"y = tg.{name}(<*>)"
            yield f"y = tg.{name}(<*>, dim=axis, keepdim=flag)"
    yield "y = tg.sum(<*>, dim=axes, keepdim=flag, dtype=dtype)"
    yield "y = tg.var(<*>, dim=axes, correction=number(0, 2), keepdim=flag)"
    yield "y = tg.mean(<*>, dim=axes)"
    yield "tg.sum(<N M>, dim=1, out=<out N>)"
    yield "tg.cumsum(<N M>, dim=axis, out=<out N M>)"
    yield "y = tg.aminmax(<*>, dim=axis)"


def products():
    yield from lines("""
        y = <N K> @ <K M>
        y = <B N K> @ <K M>
        y = <B N K> @ <B K M>
        y = <N K> @ <K>
        y = <K> @ <K M>
        y = <K> @ <K>
        y = tg.matmul(<B 1 N K>, <G K M>)
        y = tg.mm(<N K>, <K M>)
        y = tg.bmm(<B N K>, <B K M>)
        y = tg.mv(<N K>, <K>)
        y = tg.addmm(<N M>, <N K>, <K M>, beta=real, alpha=real)
        y = tg.baddbmm(<B N M>, <B N K>, <B K M>)
        y = tg.outer(<N>, <M>)
        y = F.linear(<B N>, <M N>, <M>)
        y = F.linear(<B L N>, <M N>)
        y = tg.nn.Linear({N}, {M})(<B N>)
        y = F.bilinear(<B N>, <B M>, <K N M>, <K>)
        y = tg.einsum('bnk,bkm->bnm', <B N K>, <B K M>)
        y = tg.tensordot(<N K>, <K M>, dims=1)
        tg.mm(<N K>, <K M>, out=<out N M>)
        tg.matmul(<N N>, a.T, out=a)
        y = <N K>.T @ <N M>
        y = tg.chain_matmul(<N K>, <K M>)
        y = <N M> @ <M N>[:, ::2]
        y = tg.addmv(<N>, <N K>, <K>)
        y = tg.dot(<K>, <K>)
    """)


def convolutions():
    for n, axes in ((1, "L"), (2, "H W"), (3, "D H W")):
        window = " ".join("3321"[k] for k in range(n)) if n > 1 else "3"
        for kernel in (window, " ".join("1" * n), " ".join("214"[:n])):
            about = "stride=number(1, 3), padding=number(0, 2), dilation=number(1, 2)"
            yield f"y = F.conv{n}d(<B C {axes}>, <O C {kernel}>, <O>, {about})"
            yield f"y = F.conv{n}d(<B 2*C {axes}>, <2*O C {kernel}>, <2*O>, {about}, groups=number(2, 2))"
            yield f"y = F.conv{n}d(<B C {axes}>, <C 1 {kernel}>, None, {about}, groups={{C}})"
            yield f"y = F.conv_transpose{n}d(<B C {axes}>, <C O {kernel}>, <O>, {about}, output_padding=number(0, 1))"
            yield f"y = F.conv_transpose{n}d(<B C {axes}>, <C 1 {kernel}>, <C>, {about}, groups={{C}})"
        yield f"y = F.conv{n}d(<B C {axes}>, <O C {window}>, padding=choice('same', 'valid', 'x'), dilation=number(1, 2))"  # noqa: E501
        yield f"y = tg.nn.Conv{n}d({{C}}, {{O}}, number(1, 4), stride=number(1, 2), padding=number(0, 2))(<B C {axes}>)"
        yield f"module = tg.nn.Conv{n}d({{C}}, {{O}}, 3, padding=1); module.weight.data = <O C {window}>; y = module(<B C {axes}>)"  # noqa: E501
        yield f"y = tg.nn.LazyConv{n}d({{O}}, number(1, 3))(<B C {axes}>)"
    yield "y = F.unfold(<B C H W>, number(1, 3), dilation=number(1, 2), padding=number(0, 2), stride=number(1, 2))"
    yield "y = F.fold(<B 4*C L>, (number(2, 5), number(2, 5)), 2)"
    yield "y = F.conv2d(<B C 2*H 2*W>, <O C 5 5>, padding=2)"
    yield "y = F.conv2d(<B C 4*H 4*W>, <O C 3 3>, <O>, padding=1)"
    yield "y = F.conv2d(<B C 2*H 2*W>, <O C 4 4>, stride=2, padding=1)"


def poolings():
    for n, axes in ((1, "L"), (2, "H W"), (3, "D H W")):
        about = "number(1, 3), stride=number(1, 3), padding=number(0, 1)"
        yield f"y = F.max_pool{n}d(<B C {axes}>, {about}, dilation=number(1, 2), ceil_mode=flag)"
        yield f"y, at = F.max_pool{n}d(<B C {axes}>, number(1, 3), return_indices=True, ceil_mode=flag)"
        yield (f"y, at = F.max_pool{n}d(<B C {axes}>, number(1, 2), return_indices=True)\n"
               f"y = F.max_unpool{n}d(y, at, number(1, 2), output_size=choice(None, ({'2,' * n}), ({'9,' * n}), "
               f"(-1,)))")
        yield f"y = F.max_unpool{n}d(<B C {axes}>, <i 9 : B C {axes}>, number(1, 2), output_size=choice(None, ({'2,' * n}), ({'9,' * n})))"  # noqa: E501
        yield f"y = F.avg_pool{n}d(<B C {axes}>, {about}, ceil_mode=flag, count_include_pad=flag)"
        yield f"y = F.adaptive_max_pool{n}d(<B C {axes}>, number(1, 4), return_indices=flag)"
        yield f"y = F.adaptive_avg_pool{n}d(<B C {axes}>, number(1, 4))"
        yield f"y = F.lp_pool{n}d(<B C {axes}>, real, number(1, 3))"
        yield f"module = tg.nn.MaxPool{n}d(2); module.kernel_size = number(1, 3); y = module(<B C {axes}>)"
    yield "y = F.avg_pool2d(<B C H W>, number(1, 3), divisor_override=number(1, 3))"
    yield "y = F.fractional_max_pool2d(<B C H W>, 2, output_ratio=real)"
    yield "y = F.interpolate(<B C H W>, scale_factor=number(1, 2), mode=choice('nearest', 'bilinear', 'bicubic', 'area'))"  # noqa: E501
    yield "y = F.grid_sample(<B C H W>, <B D L 2>, mode=choice('nearest', 'bilinear'), padding_mode=choice('zeros', 'border', 'reflection'))"  # noqa: E501
    yield "y = F.pad(<B C H W>, (number(0, 2), number(0, 2)), mode=choice('constant', 'reflect', 'replicate', 'circular'))"  # noqa: E501


def normalizations():
    for axes in ("", " L", " H W", " D H W"):
        yield f"y = F.batch_norm(<B C{axes}>, <stat C>, <stat C>, <C>, <C>, training=flag, momentum=real, eps=real)"
        yield f"y = F.batch_norm(<B C{axes}>, None, None, training=True)"
        yield f"y = F.group_norm(<B 2*C{axes}>, number(1, 2), <2*C>, <2*C>, eps=real)"
        yield f"y = F.instance_norm(<B C{axes}>, <stat C>, <stat C>, <C>, <C>, use_input_stats=flag)"
        sizes = " ".join("{" + letter + "}," for letter in ["C", *axes.split()])
        yield f"y = F.layer_norm(<B C{axes}>, ({sizes}), None, None)"
        yield f"y = F.local_response_norm(<B C{axes} L>, number(1, 3))"
    yield from lines("""
        y = F.layer_norm(<B L N>, ({N},), <N>, <N>, eps=real)
        y = F.rms_norm(<B L N>, ({N},), <N>, eps=real)
        y = F.layer_norm(<B N M>, ({N}, {M}), <N M>, <N M>)
        y = F.normalize(<B N>, p=real, dim=axis)
        module = tg.nn.BatchNorm2d({C}); module.running_mean = <C>; module.running_var = <C>; y = module(<B C H W>)
        module = tg.nn.BatchNorm1d({C}).eval(); module.weight.data = <C>; y = module(<B C>)
        module = tg.nn.LayerNorm({N}); module.bias.data = <N>; y = module(<B N>)
        module = tg.nn.GroupNorm(number(1, 2), 2 * {C}); y = module(<B 2*C L>)
    """)


def losses():
    for name in LOSSES:
        yield f"y = F.{name}(<N M>, <unit N M>, reduction=choice('mean', 'sum', 'none', 'x'))"
        yield f"y = F.{name}(<N M>, <unit ~N M>)"
    yield from lines("""
        y = F.binary_cross_entropy(<unit N M>, <unit N M>, <N M>)
        y = F.binary_cross_entropy_with_logits(<N M>, <unit N M>, <~N M>, pos_weight=<M>)
        y = F.smooth_l1_loss(<N M>, <N M>, beta=real)
        y = F.huber_loss(<N M>, <N M>, delta=real)
        y = F.cross_entropy(<N C>, <i C : N>, <unit C>, ignore_index=number(-100, 1), label_smoothing=choice(0.0, 0.1, 2.0))
        y = F.cross_entropy(<N C>, <i C : N>, reduction=choice('mean', 'sum', 'none'))
        y = F.cross_entropy(<N C L>, <i C : N L>)
        y = F.cross_entropy(<N C>, <unit N C>)
        y = F.nll_loss(<N C>, <i C : N>, <unit C>, ignore_index=number(-100, 1))
        y = F.nll_loss(<N C H W>, <i C : N H W>)
        y = F.gaussian_nll_loss(<N M>, <N M>, <unit N M>)
        y = F.margin_ranking_loss(<N>, <N>, <N>)
        y = F.multi_margin_loss(<N C>, <i C : N>)
        y = F.cosine_embedding_loss(<N M>, <N M>, <N>)
        y = F.triplet_margin_loss(<N M>, <N M>, <N M>, p=real)
        y = F.ctc_loss(<L N C>, <i C : N K>, <i L : N>, <i K : N>)
    """)  # noqa: E501


def attentions():
    yield from lines("""
        y = F.scaled_dot_product_attention(<B G N K>, <B G M K>, <B G M O>, choice(None, <N M>, <b N M>, <B G N M>, <b B 1 N M>), is_causal=flag)
        y = F.scaled_dot_product_attention(<B G N K>, <B G N K>, <B G N K>, is_causal=True, scale=real)
        y = F.scaled_dot_product_attention(<B N K>, <B M K>, <B M K>, dropout_p=choice(0.0, 0.5, 1.0))
        y = F.scaled_dot_product_attention(<B 2*G N K>, <B G M K>, <B G M K>, enable_gqa=flag)
        y = tg.nn.MultiheadAttention(2 * {K}, number(1, 2), batch_first=flag)(<B N 2*K>, <B M 2*K>, <B M 2*K>, key_padding_mask=choice(None, <b B M>))
        y = tg.nn.TransformerEncoderLayer(2 * {K}, number(1, 2), {M}, batch_first=True)(<B N 2*K>)
    """)  # noqa: E501


def recurrent():
    for kind, states in (("LSTM", "(<k B H>, <k B H>)"), ("GRU", "<k B H>"), ("RNN", "<k B H>")):
        for layers in (1, 2, 0, -1):
            yield f"y = tg.nn.{kind}({{I}}, {{H}}, num_layers={layers}, bidirectional=flag, bias=flag, batch_first=flag)(<L B I>)"  # noqa: E501
        yield f"y = tg.nn.{kind}({{I}}, {{H}})(<L B I>, {states.replace('k', '1')})"
        yield f"y = tg.nn.{kind}({{I}}, {{H}})(<L I>, {states.replace('k B', '1')})"
        yield f"y = tg.nn.{kind}({{I}}, {{H}})(rnn.pack_padded_sequence(<L B I>, <i L : B> + 1, enforce_sorted=flag))"
        yield f"y = tg.nn.{kind}({{I}}, {{H}})(rnn.pack_sequence([<L I>, <K I>], enforce_sorted=False), {states.replace('k B', '1 2')})"  # noqa: E501
        yield f"y = tg.nn.{kind}({{I}}, {{H}})(rnn.PackedSequence(<L I>, <i L : K>, choice(None, <i K : B>)))"
        rows = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
        for name, shape in (("weight_hh_l0", f"{rows}*H H"), ("weight_ih_l0", f"{rows}*H I"),
                            ("bias_hh_l0", f"{rows}*H")):
            yield f"module = tg.nn.{kind}({{I}}, {{H}}); module.{name}.data = <{shape}>; y = module(<L B I>)"
        yield f"module = tg.nn.{kind}({{I}}, {{H}}); module.hidden_size = number(1, 4); module.num_layers = 2; y = module(<L B I>)"  # noqa: E501
        cell = "(<B H>, <B H>)" if kind == "LSTM" else "<B H>"
        yield f"y = tg.nn.{kind}Cell({{I}}, {{H}})(<B I>, {cell})"
        yield f"y = tg.nn.{kind}Cell({{I}}, {{H}})(<I>)"
    yield "y = rnn.pad_packed_sequence(rnn.pack_padded_sequence(<L B I>, <i L : B> + 1, enforce_sorted=False), total_length=number(1, 9))"  # noqa: E501


def indexings():
    yield from lines("""
        y = tg.index_select(<N M>, axis, <i N : K>)
        y = tg.index_select(<*>, axis, <i 3 : K>)
        y = tg.take(<N M>, <i N*M : K>)
        y = tg.gather(<N M>, 0, <i N : K M>)
        y = tg.gather(<N M>, 1, <i M : N K>)
        y = tg.gather(<*>, axis, <i 2 : *>)
        y = tg.take_along_dim(<N M>, <i M : N K>, 1)
        y = tg.scatter_add(<N M>, 0, <i N : K M>, <K M>)
        y = tg.scatter_add(<N M>, axis, <i 2 : N M>, <N M>)
        y = tg.scatter(<N M>, 1, <i M : N K>, <N K>)
        y = tg.scatter(<N M>, 1, <i M : N K>, real)
        y = tg.scatter_reduce(<N M>, 0, <i N : K M>, <K M>, choice('sum', 'prod', 'mean', 'amax', 'amin'), include_self=flag)
        y = tg.index_add(<N M>, 0, <i N : K>, <K M>, alpha=real)
        y = tg.index_add(<N M>, 1, <i M : K>, <N K>)
        y = tg.index_copy(<N M>, 0, <i N : K>, <K M>)
        y = tg.index_fill(<N M>, axis, <i 2 : K>, real)
        y = tg.index_put(<N M>, (<i N : K>,), <K M>, accumulate=flag)
        y = tg.index_put(<N M>, (<i N : K>, <i M : K>), <K>, accumulate=flag)
        y = <N M>[<i N : K>]
        y = <N M>[:, <i M : K>]
        y = <N M>[<i N : K>, <i M : K>]
        y = <N M>[<b N>]
        y = <*>[<b *>]
        a = <N M>.clone(); a[<i N : K>] = <K M>; y = a
        a = <N M>.clone(); a[<b N M>] = real; y = a
        y = F.embedding(<i N : K L>, <N M>, padding_idx=choice(None, 0, -1, 99))
        y = F.embedding(<i N : K>, <N M>, max_norm=real, norm_type=real)
        y = F.embedding(<i N : K>, <N M>, scale_grad_by_freq=True)
        y = tg.nn.Embedding({N}, {M}, padding_idx=number(0, 1))(<i N : K>)
        y = F.embedding_bag(<i N : K L>, <N M>, mode=choice('sum', 'mean', 'max'))
        y = F.embedding_bag(<i N : K>, <N M>, <i K : L>, mode=choice('sum', 'mean', 'max'), include_last_offset=flag)
        y = F.embedding_bag(<i N : K>, <N M>, <i K : L>, mode='sum', per_sample_weights=<K>)
        y = tg.masked_select(<N M>, <b N M>)
        y = tg.masked_fill(<*>, <b *>, real)
        y = F.one_hot(<i 5 : N>, number(1, 6))
        y = tg.bincount(<i 5 : N>, minlength=number(0, 9))
        y = tg.searchsorted(<N>, <K>)
        y = tg.sort(<*>, dim=axis)
        y = tg.topk(<*>, number(1, 2), dim=axis)
        y = tg.unique(<N>)
        tg.gather(<N N>, 0, <i N : N N>, out=<out N N>)
        tg.index_select(<N M>, 0, <i N : N>, out=<out N M>)
        y = tg.repeat_interleave(<N M>, <i 3 : N>, 0)
        <N M>.scatter_add_(0, <i N : K M>, a[:2])
        <N M>.index_add_(0, <i N : N>, a)
        <N M>.index_copy_(0, <i N : N>, a.flip(0))
    """)  # noqa: E501


def copies():
    yield from lines("""
        y = <*>.contiguous()
        y = <N M>.T.contiguous()
        y = <B N M>.transpose(axis, axis).contiguous()
        y = <*>.flip(axes)
        y = <*>.roll(number(0, 3), axis)
        y = <*>.to(getattr(tg, choice('half', 'bfloat16', 'float', 'double', 'int', 'bool', 'cfloat')))
        y = tg.cat([<N M>, <K M>], 0)
        y = tg.cat([<N M>, <N K>], axis)
        y = tg.stack([<N M>, <N M>], axis)
        y = <B N M>.permute(2, 0, 1).reshape(-1, {N})
        y = <*>.reshape(axes)
        y = <B C H W>.contiguous(memory_format=tg.channels_last)
        y = <N M>.expand(3, -1, -1)
        y = <1 M>.expand(0, -1)
        y = <N 1>.expand(2, -1, 3)
        y = <N M>.expand(-1, 2**63)
        y = <*>.expand(-2, -1)
        y = <N M>.unfold(axis, number(1, 3), number(1, 2))
        y = tg.as_strided(<N M>, (2, 3), (choice(0, 1, 2, -1, 2**62), choice(0, 1, -1, 2**62)), number(0, 2))
        y = <N M>.repeat(number(0, 3), number(1, 2))
        y = tg.tril(<N M>, number(-2, 2))
        y = tg.rot90(<N M>, number(0, 3))
        y = tg.diagonal(<N M>, number(-1, 1))
        y = <N M>.view(dtype)
        <N N>.copy_(a.T)
        <N M>[1:].copy_(a[:-1])
        <N M>[:, 1:].copy_(a[:, :-1].flip(1))
        <*>.as_strided_((3,), (choice(0, 1, -1, 2**62),), number(0, 2)).add_(1)
        <*>.copy_(<~*>.to(dtype))
        y = tg.meshgrid(<N>, <M>, indexing='ij')
        y = <*>.split(number(1, 2), axis)
        y = tg.from_numpy(<N M>.detach().numpy()[::-1].copy())
    """)


def streams():
    yield from lines("""
        tg.manual_seed(number(0, 9)); y = tg.rand(number(0, 40), dtype=dtype)
        y = tg.randn(number(0, 40), {N}, dtype=dtype)
        y = tg.randint(number(-3, 0), number(1, 9), ({N}, {M}), dtype=dtype)
        y = tg.randperm(number(0, 40))
        <*>.normal_(real, real)
        <*>.uniform_(real, real)
        <*>.exponential_(real)
        <*>.bernoulli_(real)
        y = tg.bernoulli(<unit *>)
        y = tg.multinomial(<unit N M>, number(1, 2), replacement=flag)
        y = F.dropout(<*>, real)
        y = F.dropout2d(<B C H W>, real)
        <*>.random_(number(-5, 0), number(1, 9))
        <N M>[:, ::2].normal_()
        <N M>.T.uniform_()
        source = tg.Generator(); source.set_state(<byte>); y = tg.rand(3, generator=source)
        tg.set_rng_state(<byte>)
        <*>.cauchy_(real, real)
        <*>.log_normal_(real, real)
        y = tg.normal(<N M>, <unit N M>)
        y = tg.rrelu(<*>, real, real, training=True)
        tg.nn.init.trunc_normal_(<N M>)
        y = F.gumbel_softmax(<N M>, real)
    """)


def optimizers():
    kinds = ["SGD(ps, lr=real)", "SGD(ps, lr=0.1, momentum=real, nesterov=flag, dampening=0)",
             "Adam(ps, lr=real, amsgrad=flag)",
             "AdamW(ps, weight_decay=real)", "Adam(ps, betas=(real, 0.9))"]
    for kind in kinds:
        made = (f"ps = [w.requires_grad_() for w in (<N M>, <K>, <N>)]\noptim = tg.optim.{kind[:-1]}, "
                f"foreach=choice(None, True, False))")
        yield f"{made}\ntrained(optim, *ps)"
        yield f"{made}\ntrained(optim, *ps)\nps[0].data = <any>\ntrained(optim, *ps)"
        yield f"{made}\ntrained(optim, *ps)\nps[0].grad = <any>\noptim.step()"
        yield f"{made}\ntrained(optim, *ps)\nfor key in optim.state[ps[0]]: optim.state[ps[0]][key] = <any>\ntrained(optim, *ps)"  # noqa: E501
        yield f"{made}\ntrained(optim, *ps)\nif optim.state[ps[0]]: optim.state[ps[0]].popitem()\ntrained(optim, *ps)"
        yield (f"{made}\ntrained(optim, *ps)\nstate = optim.state_dict()\nfor key in state['state'].get(0, {{}}): "
               "state['state'][0][key] = <any>\noptim.load_state_dict(state)\ntrained(optim, *ps)")
        yield f"{made}\ntrained(optim, *ps)\noptim.param_groups[0]['lr'] = real\noptim.param_groups[0]['params'].append(ps[0])\ntrained(optim, *ps)"  # noqa: E501
        yield f"{made}\ntrained(optim, *ps)\nps[0].grad = ps[0].data; ps[1].grad = ps[1].data\noptim.step()"
        yield f"{made}\ntrained(optim, *ps)\nps[1].data = ps[0].data.view(-1)[1:]; ps[1].grad = ps[0].grad.view(-1)[1:]\noptim.step()"  # noqa: E501
        yield f"{made}\ntrained(optim, *ps)\nps[0].data.resize_({{K}}, {{N}}); optim.step()"
    yield "ps = [<N M>.requires_grad_()]; ps[0].grad = <N M>; y = tg.nn.utils.clip_grad_norm_(ps, real, norm_type=real)"


FAMILIES = [list(family()) for family in (maps, pairs, reductions, products, convolutions, poolings, normalizations,
                                          losses, attentions,
                                          recurrent, indexings, copies, streams, optimizers)]
PLACE = re.compile(r"<([^<>=]+)>|\{(\w)\}|\b(number|choice|real|flag|axis|axes|dtype)\b(?!=)(\(((?:[^()]"
                   r"|\([^()]*\))*)\))?")


class Draw:
    """Make a program from a template and a source of random numbers."""

    def __init__(self, rng, large=0.04):
        self.rng, self.lines, self.sizes, self.tensors = rng, [], {}, []
        self.large = large
        # how often a place gets what does not belong there
        self.wrong = rng.choice((0, 0, 0.1, 0.1, 0.3))
        self.base = [self.size(f"axis {k}") for k in range(rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 5)))]

    def size(self, name):
        """Return the value of a letter, or of a formula of letters."""
        if name.isdigit():
            return int(name)
        if "*" in name:
            first, second = name.split("*")
            return self.size(first) * self.size(second)
        if name not in self.sizes:
            low = self.rng.random()
            self.sizes[name] = (0 if low < 0.04 else self.rng.choice((17, 33, 64, 130)) if low > 1 - self.large
                                else self.rng.randint(1, 6))
        return self.sizes[name]

    def is_wrong(self):
        return self.rng.random() < self.wrong

    def shape(self, names):
        rng = self.rng
        if names.startswith("~"):
            shape = [1 if rng.random() < 0.3 else n for n in self.shape(names[1:])]
            return shape[rng.randint(0, len(shape)):] if shape and rng.random() < 0.3 else shape
        shape = [n for name in names.split() for n in (self.base if name == "*" else [self.size(name)])]
        while sum(n > 16 for n in shape) > 2:                           # two large sizes make enough of a tensor
            shape[next(k for k, n in enumerate(shape) if n > 16)] = 3
        return shape

    def spoilt(self, shape):
        """A shape that is not that."""
        rng, shape = self.rng, list(shape)
        for _ in range(rng.randint(1, 2)):
            k, n = rng.randint(0, max(len(shape) - 1, 0)), rng.choice((0, 1, 2, 3, 5, 8))
            change = rng.randint(0, 4)
            if change == 0 and shape: del shape[k]
            elif change == 1: shape.insert(k, n)
            elif change == 2: shape = shape[::-1]
            elif shape: shape[k] = n if change == 3 else shape[k] + rng.choice((-1, 1)) if shape[k] else 1
        return shape

    def tensor(self, text):
        rng, about = self.rng, text.strip()
        kind = (about.split()[0] if about.split() and about.split()[0] in ("i", "b", "out", "stat", "unit", "any",
                                                                           "byte") else "")
        names = about.removeprefix(kind).strip()
        dtype, values, layout, grad = "float32", "range", "plain", False
        if kind == "i":
            n, names = names.split(":")
            dtype, values = "int64", f"{'outside' if self.is_wrong() else 'index'} {self.size(n.strip())}"
        elif kind == "b": dtype = "bool"
        elif kind == "stat" and rng.random() < 0.3: return "None"
        elif kind == "unit": values = "ones"
        elif kind == "byte": return f"tg.zeros({rng.choice((0, 1, 5056, 5057, 2500, 16, 5055))}, dtype=tg.uint8)"
        elif kind == "out" and self.tensors and rng.random() < 0.4:
            return rng.choice(self.tensors) + rng.choice(("", "[1:]", ".T", "[..., ::2]", ".flatten()", "[:1]"))
        else: grad = kind not in ("out", "stat", "any") and rng.random() < 0.8
        shape = [rng.randint(0, 5) for _ in range(rng.randint(0, 3))] if kind == "any" else self.shape(names.strip())
        if self.is_wrong() or kind == "any" and rng.random() < 0.5: dtype = rng.choice(DTYPES)
        if self.is_wrong(): layout = rng.choice(LAYOUTS)
        elif rng.random() < 0.15: layout = rng.choice(("sliced", "transposed", "offset", "expanded"))
        if self.is_wrong(): shape = self.spoilt(shape)
        if self.is_wrong(): values = rng.choice(("nan", "infinite", "huge", "zeros", "wild"))
        if kind == "any" and rng.random() < 0.2: return rng.choice(("None", "3", "'x'", "[]", "-1.5"))
        name = "abcdefghijkl"[min(len(self.tensors), 11)]
        given = [f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"]
        if dtype != "float32": given.append(repr(dtype))
        if layout != "plain": given.append(f"layout={layout!r}")
        if values != "range": given.append(f"values={values!r}")
        if grad and dtype in ("float32", "float64", "float16", "bfloat16", "complex64", "complex128"):
            given.append("grad=True")
        self.lines.append(f"{name} = tensor({', '.join(given)})")
        self.tensors.append(name)
        return name

    def place(self, match):
        rng, (tensor, letter, kind, _, inside) = self.rng, match.groups()
        if tensor is not None: return self.tensor(tensor)
        if self.is_wrong(): return rng.choice(REALS if kind == "real" else NUMBERS)
        if letter is not None: return str(self.size(letter))
        if kind == "number":
            low, high = (int(n) for n in inside.split(","))
            found = [str(rng.randint(low, high)) for _ in range(rng.choice((1, 1, 1, 2)))]
            return found[0] if len(found) == 1 or low < 0 else f"({', '.join(found)})"
        if kind == "choice":
            choices = re.split(r", (?![^()<>]*[)>])", inside)
            return PLACE.sub(self.place, rng.choice(choices))
        if kind == "real": return rng.choice(("0.5", "1.0", "0.0", "1e-5", "2.0", "0.9"))
        if kind == "flag": return rng.choice(("True", "False"))
        if kind == "dtype": return f"tg.{rng.choice(['float32'] * 4 + DTYPES)}"
        n = max(len(self.base), 1)
        if kind == "axis": return str(rng.randint(-n, n - 1) if rng.random() < 0.9 else rng.randint(-5, 5))
        return (f"({''.join(f'{k}, ' for k in rng.sample(range(n), rng.randint(0, n)))})" if rng.random() < 0.8
                else "None")

    def between(self):
        """Choose what is done to a tensor between forward and backward."""
        rng, name = self.rng, self.rng.choice(self.tensors)
        shape = tuple(rng.randint(0, 4) for _ in range(rng.randint(0, 3)))
        return rng.choice((f"{name}.data = tensor({shape}, {rng.choice(DTYPES)!r})", f"{name}.data = {name}.data[:0]",
                           f"{name}.data = {name}.data.double()", f"{name}.detach().resize_({shape})",
                           f"{name}.data.set_(tensor({shape}))", f"{name}.detach().numpy()[...] = 2**20",
                           f"{name}.data.fill_(float('nan'))", f"{name}.data = {name}.data.mT",
                           f"{name}.detach().zero_()", f"{name}.data = {name}.data.flatten()",
                           f"{name}.requires_grad_(False)", f"{name}.detach_()",
                           f"{name}.data.resize_(1).resize_({shape})"))

    def text(self):
        template = self.rng.choice(self.rng.choice(FAMILIES))
        body = PLACE.sub(self.place, template)
        lines = [*self.lines, *body.split("\n")]
        if not re.search(r"\by\b.*=", template) or not self.tensors:
            return "\n".join(lines)
        if self.is_wrong() and self.rng.random() < 0.7:
            lines.append(self.between())
        return "\n".join([*lines, f"pull(y, {', '.join(self.tensors)})"])


def program(seed, large=0.04):
    """The call of that number."""
    return Draw(random.Random(seed), large).text()
