"""Decisions where an older spelling and PyTorch's differ. The ids are those of the project's initial features."""

DECISIONS = [
    ("A1, A12 to A17", "`tensor` was a class with methods that make tensors",
     "`torch.tensor` is PyTorch's function, and `torch.Tensor` the class; both have `zeros`, `ones`, `empty`, "
     "`arange`, `rand`, `randn` (with `mu=` and `sigma=`) and `randint` as attributes, the function `bernoulli(p, "
     "shape)` as well. `x.bernoulli(p)` is PyTorch's method"),
    ("A2, A3", "strings and enumerations for dtypes and devices",
     "`const.DTYPE` and `const.DEVICE` name the objects themselves, and these equal their spellings: `DTYPE.FLOAT32 is "
     "torch.float32`, `DEVICE.CPU == 'cpu'`. An unknown dtype is a TypeError"),
    ("A5", "27 ops by their first names",
     "`const.OP` has every op of the table; the 27 names are members of it, and their values are the names that the "
     "ops have in the table: `OP.SUB.value == 'subtract'`"),
    ("A8", "`is_cuda_available()` was always true",
     "`torch.cuda.is_available()`: whether CuPy finds a device, or one is simulated"),
    ("A11, A23, A52", "gradients on by default; `.grad` of zeros; raw arrays in `.data` and `.grad`",
     "PyTorch's: off, None, tensors. `name=` and `.name` label a tensor for drawings"),
    ("A25, A26", "`to`, `cpu` and `cuda` worked in place",
     "they give new tensors, or the same one if nothing changes; with `inplace=True` these, and `float`, `long`, "
     "`bool` and the like, change a leaf and its gradient themselves. A tensor with a `grad_fn` refuses that"),
    ("A27", "`numpy()` of tensors that require gradients", "PyTorch's RuntimeError"),
    ("A29, A39, A42, A43", "`item()` of many elements, `max(dim)` without indices, `transpose` of all axes, `squeeze` "
                           "of longer axes",
     "PyTorch's: a RuntimeError, a pair of values and indices, two axes (`permute` takes all), and nothing happens"),
    ("A30", "numbers took the dtype of the tensor", "PyTorch's promotion: `int64 + 1.5` is float32"),
    ("A32, A63", "assertions and bare exceptions", "PyTorch's exception types and first lines"),
    ("A44, A47 to A50", "joining, looking up, convolution and pooling as methods",
     "`x.concat`, `x.cat`, `x.lookup`, `x.conv2d`, `x.max_pool2d` and `x.avg_pool2d` are there beside PyTorch's "
     "functions, and give their results"),
    ("A51, A84", "`backward(upstream, destroy_graph)` from any shape",
     "PyTorch's `backward(gradient, retain_graph)`; `retain_grad()` for gradients in between"),
    ("A53, A54", "a storage had fifteen class methods, and no way to register it",
     "a subclass of `storage.stubs.Storage` that names its `device` is registered by that, and refused with a "
     "TypeError unless it has `asarray`, `host` and `array_type`; its `module`, a namespace like NumPy's, does the "
     "rest, or kernels do. There is no `StorageDispatch`"),
    ("A55, A58", "an op was an object that held tensors, with `forward()` and `backward()`",
     "an op is a class of formulas, `forward(xp, x)` and `grad_x(xp, g, x)`, which serve every device and every order "
     "of derivative; `ops.stubs` has `BaseOp` (also `Op`), `UnaryOp`, `BinaryOp` and `ReduceOp`. Objects that hold "
     "tensors are what `autograd.Function` is for"),
    ("A56, A60", "a key could be registered once",
     "`OpDispatch.register(op, device)` goes before what was registered earlier, and `unregister` and `override` bring "
     "that back: there is no KeyError for duplicates and no `override=`. `tensorgrad.ops.dispatch` is a path to it"),
    ("A62, A79", "`training` was False at first; `parameters()` were lists; biases drawn from their own length",
     "PyTorch's modules and initial values"),
    ("A64", "`init_from_torch(module)` made new parameters",
     "copied in place from anything with such attributes, containers and buffers included; torch is never imported"),
    ("A68", "attention with four weights",
     "PyTorch's `MultiheadAttention`; `batch_first=True` where the batch comes first"),
    ("A86", "`python -m docs.generate`, `MD_PATH`, `PRINT_COUNTS`",
     "`python -m tensorgrad.docs [--check] [folder]` writes the reference, its index and the type stubs; `--check` "
     "compares"),
    ("A88, A89", "`python -m benchmark.run`, `NUM_RUNS`, `RUN_ON_CUDA`, `MD_PATH`",
     "`python -m benchmarks.run`, with options that `--help` lists"),
    ("A96", "tests for unittest", "pytest runs all of them; `python -m unittest discover tests` runs those that "
                                  "compare with PyTorch step by step"),
    ("E1", "a second class under a name replaced the first",
     "a ValueError, unless `replace=True`, or in `__main__`, where a notebook runs a cell again"),
    ("E13", "a loader had as many workers as there are processors",
     "`num_workers=0`: MNIST is in memory, and processes would cost more than they give"),
    ("E20", "`.cuda()` always", "the CPU where there is no GPU, and for `--gpu cpu`, `-1` or an empty text"),
    ("E21", "a run whose name begins with _ was deleted; others were asked about",
     "nothing is removed without `--overwrite`, and never when resuming"),
    ("E31", "resuming failed without `load_optimizer` or a scheduler",
     "both may be missing; `--resume` without a path goes on exactly, whatever they say"),
    ("E34", "`ddp2`", "is taken for `ddp`"),
    ("E38", "`logger=`", "runs have their own log; the argument says whether to write one"),
    ("S1, S2", "`Input` was a class, then a function", "one `Input` with the keywords of both"),
    ("S7, S27", "an unknown batch was shown as 1 or as None; `numel` was a property",
     "None in `shape`, `input_shape` and `output_shape`, numbers in the other properties of shapes; `numel()` is a "
     "method"),
    ("S11", "operands of operators had to have equal shapes",
     "they broadcast; the merge layers of `layers` keep the strict check"),
    ("S18, S24", "functions of torch did not take symbols",
     "all do; an output that the inputs do not lead to is an error when the model is made"),
    ("S21, S42", "names changed between versions",
     "today's names, and those of the guide: `add_to_model`, `ConcatOpLayer`, `AnyOpLayer`, and a class of layers for "
     "a layer, as in `x(ConcatLayer, y)`, which joins along the axis after the batch"),
    ("S23", "what a model with a list of one output returns", "the value; several outputs are a tuple"),
    ("S38", "CUDA graphs", "`enable_cuda_graphs=True` is refused, with the reason"),
    ("S41", "calls of modules were patched",
     "modules know symbols by themselves; `optimize_module_calls` has nothing to undo"),
    ("X17", "`LayerNorm(n)` counts axes in `layers`, and is a shape in `nn`",
     "`nn`, `layers` and `symbolic` keep classes of their own under equal names, on one graph: each takes the "
     "placeholders and models of the others"),
    ("X33", "`flatten()` of a placeholder",
     "keeps the batch, as `layers.Flatten` does; `flatten(0)` is what `flatten()` of a tensor is"),
    ("X46", "combinators of a tuple",
     "a function that needs one argument gets a tuple of the values, any other gets them one by one"),
    ("X50, X61, X63", "modules moved to the scope they were called in",
     "`device_scope` is the default device and dtype of one thread, as `with torch.device` is; `layers.Module` alone "
     "moves itself"),
    ("X51", "a module without `super().__init__()`", "works with `layers.Module`; PyTorch's error with `nn.Module`"),
    ("X62", "devices that are not there",
     "`id_to_device` and `ids_to_devices` name them; `device_scope` takes the CPU, with a warning, where there is no "
     "CUDA device at all, and is a RuntimeError for one that is missing among others"),
    ("X64", "`DataParallel` was a function",
     "`layers.DataParallel` is; `nn.DataParallel` and `nn.parallel` are PyTorch's"),
    ("X67", "backends tcp, gloo, nccl and mpi", "gloo, for processes on one machine"),
    ("T3", "`torch.add(a, a, b)` wrote to its first argument", "PyTorch's error"),
    ("T8, T9", "where `cuda()` moves to",
     "to the current device unless one is named, as in PyTorch; what is there stays itself"),
    ("T18", "variables that were overwritten were dirty",
     "version counters: `backward` refuses values that were overwritten after they were saved"),
]
