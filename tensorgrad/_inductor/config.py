"""Settings of PyTorch's code generator, which writes Triton and C++: kept, read back, and without effect here.

tensorgrad's compiler generates no code (docs/guide/compiling.md). Any further name can be set.
"""
import sys

from ..utils._config_module import Group, install_config_module

allow_buffer_reuse = inplace_buffers = epilogue_fusion = pattern_matcher = layout_optimization = shape_padding = True
fx_graph_cache = autotune_local_cache = split_reductions = comprehensive_padding = True
debug = verbose_progress = cpp_wrapper = max_autotune = max_autotune_pointwise = max_autotune_gemm = False
coordinate_descent_tuning = freezing = fallback_random = force_disable_caches = conv_1x1_as_mm = False
fx_graph_remote_cache = memory_planning = benchmark_kernel = profile_bandwidth = False
max_autotune_gemm_backends, max_fusion_size, compile_threads = "ATEN,TRITON,CPP", 64, 1
triton = Group(cudagraphs=False, cudagraph_trees=True, unique_kernel_names=True, autotune_pointwise=True,
               cudagraph_skip_dynamic_graphs=False, cudagraph_support_input_mutation=True)
cpp, cuda, aot_inductor = Group(threads=-1, simdlen=None, weight_prepack=True), Group(), Group()
trace = Group(enabled=False)

install_config_module(sys.modules[__name__])
