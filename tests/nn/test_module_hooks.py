"""Hooks of modules, forward and backward, compared with PyTorch program by program."""
from nn_oracle import agree, cases, net, raising


# ── forward hooks ─────────────────────────────────────────────────────────────────────────────
def affine(torch):
    class Affine(torch.nn.Module):
        def forward(self, x, *, shift=0):
            return x * 2 + shift
    return Affine()


def test_forward_hooks_in_order():
    def program(torch):
        module, seen = affine(torch), []
        module.register_forward_pre_hook(lambda m, args: seen.append(("pre", args)))
        module.register_forward_pre_hook(lambda m, args: args[0] + 1)
        module.register_forward_pre_hook(lambda m, args: seen.append(("first", args)), prepend=True)
        module.register_forward_pre_hook(lambda m, args, kwargs: ((args[0],), {"shift": 5}), with_kwargs=True)
        module.register_forward_hook(lambda m, args, out: seen.append(("out", args, out)))
        module.register_forward_hook(lambda m, args, out: out * 10)
        module.register_forward_hook(lambda m, args, kwargs, out: out + kwargs["shift"], with_kwargs=True)
        module.register_forward_hook(lambda m, args, out: seen.append(("first out", out)), prepend=True)
        return module(torch.ones(1)), seen
    agree(program)


@cases(
    lambda torch, m: m.register_forward_pre_hook(lambda m, args, kwargs: args, with_kwargs=True),
    lambda torch, m: m.register_forward_pre_hook(lambda m, args: (args[0], 3)),
    lambda torch, m: m.register_forward_hook(lambda m, args, out: 1 / 0),
)
def test_hooks_that_fail(program):
    def call(torch):
        module = affine(torch)
        program(torch, module)
        return raising(lambda: module(torch.ones(1)))
    agree(call)


def test_handles():
    def program(torch):
        module = affine(torch)
        with module.register_forward_hook(lambda m, args, out: 1) as handle:
            inside = module(3)
        handle.remove()
        pre = module.register_forward_pre_hook(lambda m, args, kwargs: ((4,), {}), with_kwargs=True)
        changed = module(3)
        pre.remove()
        return inside, changed, module(3), len(module._forward_pre_hooks_with_kwargs)
    agree(program)


def test_a_hook_may_remove_itself():
    def program(torch):
        module, seen = affine(torch), []
        handle = module.register_forward_hook(lambda m, args, out: (seen.append(1), handle.remove())[0])
        module(1), module(1)
        return seen
    agree(program)


def test_hooks_that_are_always_called():
    def program(torch):
        class Failing(torch.nn.Module):
            def forward(self, x):
                raise ValueError("in forward")
        module, seen = Failing(), []
        module.register_forward_hook(lambda m, args, out: seen.append("never"))
        module.register_forward_hook(lambda m, args, out: seen.append(("always", out)), always_call=True)
        module.register_forward_hook(
            lambda m, args, kwargs, out: seen.append(kwargs), always_call=True, with_kwargs=True)
        module.register_forward_hook(lambda m, args, out: 1 / 0, always_call=True)
        return raising(lambda: module(torch.ones(1))), seen
    agree(program)


def test_a_failing_hook_lets_the_rest_be_called():
    def program(torch):
        module, seen = affine(torch), []
        module.register_forward_hook(lambda m, args, out: seen.append("ran") or out + 1, always_call=True)
        module.register_forward_hook(lambda m, args, out: 1 / 0)
        module.register_forward_hook(lambda m, args, out: seen.append(("last", out)), always_call=True)
        return raising(lambda: module(torch.ones(1))), seen
    agree(program)


def test_hooks_on_all_modules():
    def program(torch):
        everywhere, module, seen = torch.nn.modules.module, torch.nn.Sequential(torch.nn.Identity()), []
        handles = [
            everywhere.register_module_forward_pre_hook(lambda m, args: seen.append(("pre", type(m).__name__))),
            everywhere.register_module_forward_hook(lambda m, args, out: seen.append(("post", type(m).__name__))),
            everywhere.register_module_forward_hook(lambda m, args, kwargs, out: seen.append(kwargs), with_kwargs=True)]
        try:
            module(torch.ones(1))
        finally:
            for handle in handles:
                handle.remove()
        module(torch.ones(1))
        return seen
    agree(program)


def test_registration_hooks():
    def program(torch):
        everywhere, seen = torch.nn.modules.module, []

        def note(kind):
            return lambda module, name, value: seen.append((kind, name, type(value).__name__))
        handles = [everywhere.register_module_buffer_registration_hook(note("buffer")),
                   everywhere.register_module_module_registration_hook(note("module")),
                   everywhere.register_module_parameter_registration_hook(note("parameter")),
                   everywhere.register_module_parameter_registration_hook(
                       lambda module, name, value: torch.nn.Parameter(value.data + 1))]
        try:
            module = net(torch)
        finally:
            for handle in handles:
                handle.remove()
        return seen, module.scale
    agree(program)


# ── backward hooks ────────────────────────────────────────────────────────────────────────────
def two(torch):
    class Two(torch.nn.Module):
        def forward(self, a, b, label=None):
            return a * 2, b * 3
    return Two()


def noting(seen):
    return lambda module, *gradients: seen.append(gradients)


def test_full_backward_hooks():
    def program(torch):
        module, seen = two(torch), []
        module.register_full_backward_hook(noting(seen))
        module.register_full_backward_pre_hook(noting(seen))
        a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        x, y = module(a, b, label="text")
        (x * torch.tensor([1.0, 2.0])).sum().backward()
        return seen, a.grad, b.grad, x.grad_fn.name()
    agree(program)


def test_backward_hooks_change_gradients():
    def program(torch):
        module, seen = two(torch), []
        module.register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 10, None))
        module.register_full_backward_hook(lambda m, grad_input, grad_output: (grad_input[0] + 1, grad_input[1]))
        module.register_full_backward_hook(noting(seen))
        module.register_full_backward_hook(lambda m, *grads: seen.append("first"), prepend=True)
        a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        x, y = module(a, b)
        (x.sum() + y.sum()).backward()
        return seen, a.grad, b.grad
    agree(program)


def test_backward_hook_with_an_input_without_gradient():
    def program(torch):
        module, seen = two(torch), []
        module.register_full_backward_hook(noting(seen))
        a = torch.ones(2, requires_grad=True)
        x, y = module(a, torch.ones(2))
        x.sum().backward()
        return y.requires_grad, seen[0][1], seen[0][0][0], a.grad
    agree(program)


@cases(
    lambda torch, m: m.register_full_backward_hook(lambda m, gi, go: gi[:1]),
    lambda torch, m: m.register_full_backward_pre_hook(lambda m, go: go[:1]),
    lambda torch, m: m.register_full_backward_hook(lambda m, gi, go: 1 / 0),
)
def test_backward_hooks_that_fail(program):
    def call(torch):
        module = two(torch)
        program(torch, module)
        x, _ = module(torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True))
        x.sum().backward()
    agree(call)


def test_backward_hook_without_input_gradients():
    def program(torch):
        module, seen = torch.nn.Linear(2, 1), []
        module.register_full_backward_hook(noting(seen))
        module(torch.ones(1, 2)).sum().backward()
        module.register_full_backward_hook(lambda m, gi, go: (torch.ones(1),))
        return seen, raising(lambda: module(torch.ones(1, 2)).sum().backward())
    agree(program)


@cases(
    lambda torch: (lambda x: {"a": x}),
    lambda torch: (lambda x: [x * 2]),
    lambda torch: (lambda x: None),
)
def test_backward_hook_of_odd_outputs(program):
    def call(torch):
        module, seen = torch.nn.Module(), []
        module.forward = program(torch)
        module.register_full_backward_hook(noting(seen))
        module(torch.ones(2, requires_grad=True))
        return seen
    agree(call)


def test_backward_hook_under_no_grad_and_of_a_named_tuple():
    def program(torch):
        from collections import namedtuple
        Pair = namedtuple("Pair", "u v")
        module, seen = torch.nn.Module(), []
        module.forward = lambda x: Pair(x * 1, x * 2)
        module.register_full_backward_hook(noting(seen))
        x = torch.ones(2, requires_grad=True)
        with torch.no_grad():
            quiet = module(x).u.requires_grad
        out = module(x)
        out.v.sum().backward()
        return quiet, type(out).__name__, seen
    agree(program)


def test_backward_hook_and_double_backward():
    def program(torch):
        module, seen = torch.nn.Linear(2, 1), []
        module.register_full_backward_hook(noting(seen))
        x = torch.ones(1, 2, requires_grad=True)
        with torch.no_grad():
            module.weight.copy_(torch.tensor([[2.0, 3.0]]))
            module.bias.zero_()
        grad, = torch.autograd.grad((module(x) ** 2).sum(), x, create_graph=True)
        grad.sum().backward()
        return grad, x.grad, module.weight.grad, len(seen)
    agree(program)


def test_backward_hook_of_a_module_used_twice():
    def program(torch):
        module, seen = torch.nn.Linear(2, 2), []
        module.register_full_backward_hook(lambda m, gi, go: seen.append(1))
        y = module(module(torch.ones(1, 2, requires_grad=True)))
        y.sum().backward(retain_graph=True)
        y.sum().backward()
        return len(seen)
    agree(program)


def test_kinds_of_backward_hooks_exclude_each_other():
    def program(torch):
        first, second = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
        first.register_full_backward_hook(lambda *args: None)
        second.register_backward_hook(lambda *args: None)
        return (raising(lambda: first.register_backward_hook(lambda *args: None)),
                raising(lambda: second.register_full_backward_hook(lambda *args: None)))
    agree(program)


def test_full_backward_hooks_on_all_modules():
    def program(torch):
        everywhere, seen = torch.nn.modules.module, []
        handles = [everywhere.register_module_full_backward_hook(lambda m, gi, go: seen.append(type(m).__name__)),
                   everywhere.register_module_full_backward_pre_hook(lambda m, go: seen.append("pre"))]
        try:
            module = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU())
            module(torch.ones(1, 1, requires_grad=True)).sum().backward()
            refused = raising(lambda: everywhere.register_module_backward_hook(lambda *args: None))
        finally:
            for handle in handles:
                handle.remove()
        return seen, refused
    agree(program)


@cases(
    lambda torch: (lambda x: x.exp()),
    lambda torch: (lambda x: x.exp().sin()),
    lambda torch: (lambda x: (x.exp(), x.sin())),
    lambda torch: (lambda x: {"a": x.exp()}),
    lambda torch: (lambda x: [x.exp()]),
)
def test_hooks_on_the_last_node(program):
    def call(torch):
        module, seen = torch.nn.Module(), []
        module.forward = program(torch)
        module.register_backward_hook(lambda m, gi, go: seen.append((m is module, gi, go)))
        x = torch.ones(2, requires_grad=True) * 1
        out = module(x)
        while not isinstance(out, torch.Tensor):
            out = out["a"] if isinstance(out, dict) else out[0]
        out.sum().backward()
        return seen
    agree(call)


def test_hook_on_the_last_node_of_a_call_by_keyword():
    def program(torch):
        module = torch.nn.Module()
        module.forward = lambda x: x.exp()
        module.register_backward_hook(lambda m, gi, go: None)
        module(x=torch.ones(2, requires_grad=True))
        module(torch.ones(2))
    agree(program)


def test_handles_of_several_tables():
    def program(torch):
        import copy
        import pickle
        from collections import OrderedDict
        hooks, marks, others = OrderedDict(), OrderedDict(), OrderedDict()
        first = torch.utils.hooks.RemovableHandle(hooks)
        second = torch.utils.hooks.RemovableHandle(hooks, extra_dict=[marks, others])
        for handle in first, second:
            hooks[handle.id] = marks[handle.id] = others[handle.id] = 1
        with first:
            before = len(hooks)
        second.remove()
        second.remove()
        module = torch.nn.Linear(2, 2)
        module.handle = module.register_forward_hook(raising, always_call=True)
        counts = []
        for copied in copy.deepcopy(module), pickle.loads(pickle.dumps(module)):
            copied.handle.remove()
            counts.append((len(copied._forward_hooks), len(copied._forward_hooks_always_called),
                           len(module._forward_hooks)))
        return before, len(hooks), len(marks), len(others), second.id - first.id, counts
    agree(program)


def test_handles_and_tables_that_programs_read_and_replace():
    def program(torch):
        from collections import OrderedDict
        module, seen = torch.nn.Identity(), []
        handle = module.register_forward_hook(lambda m, args, out: None, always_call=True)
        facts = [handle.id in handle.hooks_dict_ref(), type(handle.extra_dict_ref), len(handle.__getstate__())]
        tables = torch.nn.modules.module
        before = tables._global_forward_hooks, tables._global_forward_pre_hooks, tables._global_backward_hooks
        try:
            tables._global_forward_hooks, tables._global_forward_pre_hooks = OrderedDict(), OrderedDict()
            tables._global_backward_hooks = OrderedDict()
            tables.register_module_forward_pre_hook(lambda m, args: seen.append("pre"))
            tables.register_module_forward_hook(lambda m, args, out: out + 1)
            tables.register_module_full_backward_hook(lambda m, gi, go: (gi[0] * 3,))
            x = torch.tensor([2.0], requires_grad=True)
            module(x).backward()
            facts += [x.grad, module(x), len(tables._global_forward_hooks)]
        finally:
            tables._global_forward_hooks, tables._global_forward_pre_hooks, tables._global_backward_hooks = before
            tables._global_is_full_backward_hook = None
        return facts, seen, module(torch.zeros(1))
    agree(program)


def test_names_in_errors_of_writes_to_what_a_hook_watches():
    def program(torch):
        module = torch.nn.Linear(2, 2)
        module.register_full_backward_hook(lambda m, gi, go: None)
        module(torch.ones(1, 2, requires_grad=True)).add_(1)
    agree(program)
