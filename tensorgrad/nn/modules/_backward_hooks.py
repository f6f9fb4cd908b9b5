"""Backward hooks of modules.

Gates, identities through which a module's inputs and outputs pass, report gradients to them.

        inputs ──▶ input gate ──▶ forward ──▶ output gate ──▶ outputs
    grad_input ◀── input gate ◀────────────── output gate ◀── grad_output

Backward reaches the output gate first: it runs the pre-hooks and remembers `grad_output`. The input gate then has
both, and runs the hooks.
"""
import warnings

from ... import api as tg
from ...advice import advised
from ...autograd.function import Function

_NO_INPUT_NEEDS_GRADIENTS = (
    "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require "
    "gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
    "#torch.nn.Module.register_full_backward_hook for more details.")


class BackwardHookFunction(Function):
    """An identity on several tensors at once whose gradients pass through a callback."""

    @staticmethod
    def forward(ctx, callback, missing_as_zeros, *tensors):
        ctx.callback = callback
        ctx.set_materialize_grads(missing_as_zeros)
        ctx.mark_non_differentiable(*(tensor for tensor in tensors if not tensor.requires_grad))
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        return None, None, *ctx.callback(grads)


class Gate:
    """The positions of the tensors, which have gradients, among a tuple's elements."""

    def __init__(self, values):
        self.values = values
        self.places = [i for i, value in enumerate(values) if isinstance(value, tg.Tensor)]
        self.is_needed = tg.is_grad_enabled() and any(values[i].requires_grad for i in self.places)

    def pass_through(self, callback, missing_as_zeros):
        """Return the tuple with its tensors replaced by identities that report their gradients."""
        twins = BackwardHookFunction.apply(callback, missing_as_zeros, *(self.values[i] for i in self.places))
        passed = list(self.values)
        for i, twin in zip(self.places, twins, strict=True):
            passed[i] = twin
        return tuple(passed) if type(self.values) is tuple else type(self.values)(*passed)

    def spread(self, grads):
        """Expand gradients of the tensors to gradients of all elements, None for those that are no tensors."""
        everywhere = [None] * len(self.values)
        for i, grad in zip(self.places, grads, strict=True):
            everywhere[i] = grad
        return tuple(everywhere)

    def select(self, grads):
        return tuple(grads[i] for i in self.places)

    def forget_values(self):
        """Drop the tensors, so that the gate does not keep them alive; only their positions are needed from here on."""
        self.values = (None,) * len(self.values)


class BackwardHook:
    """The full backward hooks of one call of a module."""

    def __init__(self, module, hooks, pre_hooks):
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.inputs = self.outputs = None
        self.grad_output = None

    def setup_input_hook(self, args):
        self.inputs = Gate(args)
        if self.inputs.is_needed:
            args = self.inputs.pass_through(self.at_inputs, missing_as_zeros=True)
        self.inputs.forget_values()
        return args

    def setup_output_hook(self, result):
        if not isinstance(result, (tg.Tensor, tuple)):
            warnings.warn("For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
                          f"but received {type(result)}", stacklevel=5)
            return result
        self.outputs = Gate(result if isinstance(result, tuple) else (result,))
        if not self.outputs.is_needed:
            return result
        passed = self.outputs.pass_through(self.at_outputs, missing_as_zeros=False)
        self.outputs.forget_values()
        return passed if isinstance(result, tuple) else passed[0]

    def at_outputs(self, grads):
        grad_output = self.outputs.spread(grads)
        for hook in self.pre_hooks:
            if (answer := hook(self.module, grad_output)) is not None:
                _check_answer("Backward pre hook", "grad_output", hook, answer, grad_output)
                grad_output = answer
        if self.inputs.is_needed:
            self.grad_output = grad_output
        else:
            self.run_without_inputs(grad_output)
        return self.outputs.select(grad_output)

    def at_inputs(self, grads):
        if self.grad_output is None:                # double backward: the gradient did not pass the output gate
            return grads
        grad_output, self.grad_output = self.grad_output, None
        grad_input = self.inputs.spread(grads)
        for hook in self.hooks:
            if (answer := hook(self.module, grad_input, grad_output)) is not None:
                _check_answer("Backward hook", "grad_input", hook, answer, grad_input)
                grad_input = answer
        return self.inputs.select(grad_input)

    def run_without_inputs(self, grad_output):
        """Run the hooks at the output of a call without input gate; they cannot change the gradients."""
        warnings.warn(_NO_INPUT_NEEDS_GRADIENTS, stacklevel=6)
        grad_input = (None,) * len(self.inputs.values)
        for hook in self.hooks:
            answer = hook(self.module, grad_input, grad_output)
            if answer is not None and not (isinstance(answer, tuple) and all(grad is None for grad in answer)):
                raise RuntimeError("Backward hook for Modules where no input requires gradient should always return "
                                   "None or None for all gradients.")


def _check_answer(kind, what, hook, answer, expected):
    """Raise PyTorch's error unless a hook gave as many gradients as it got, of the same dtypes and shapes."""
    if len(answer) != len(expected):
        raise advised(RuntimeError(
            f"{kind} returned an invalid number of {what}, got {len(answer)}, but expected {len(expected)}"), "of_hook",
                      hook, None)
    for given, got in zip(answer, expected, strict=True):
        if (isinstance(given, tg.Tensor) and isinstance(got, tg.Tensor)
                and (given.dtype != got.dtype or given.shape != got.shape)):
            changed = (f"type of value (was {got.type()} got {given.type()})" if given.dtype != got.dtype
                       else "size of value")
            # as PyTorch's own is called
            raise advised(RuntimeError(f"hook 'hook' has changed the {changed}"), "of_hook", hook, None)


# ── the deprecated kind: hooks on the module's last node only ─────────────────────────────────
def watch_output_node(hooks, args, result):
    """Register the hooks on the `grad_fn` of the (first) output, and warn if it misses gradients."""
    output = result
    while not isinstance(output, tg.Tensor):
        if isinstance(output, dict):
            output = next(value for value in output.values() if isinstance(value, tg.Tensor))
        else:
            output = output[0]
    if (node := output.grad_fn) is not None:
        for hook in hooks:
            node.register_hook(hook)
        if problem := _what_is_missed(args, result, node):
            warnings.warn(problem, FutureWarning, stacklevel=5)


def _what_is_missed(args, result, node):
    """Return the warning about gradients of the module that a hook on `node` misses; None if it sees all."""
    outputs, inputs = _as_tensors(result), _as_tensors(args)
    if outputs is None:
        return ("Using non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors "
                "is deprecated and will be removed in future versions. This hook will be missing some of the "
                "grad_output. Please use register_full_backward_hook to get the documented behavior.")
    if inputs is None:
        return ("Using non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of "
                "Tensors is deprecated and will be removed in future versions. This hook will be missing some of the "
                "grad_input. Please use register_full_backward_hook to get the documented behavior.")
    if len(_nodes(outputs)) > 1:
        return ("Using a non-full backward hook when outputs are generated by different autograd Nodes is deprecated "
                "and will be removed in future versions. This hook will be missing some grad_output. "
                "Please use register_full_backward_hook to get the documented behavior.")
    if _nodes(inputs) != {edge[0] for edge in node.next_functions}:
        return ("Using a non-full backward hook when the forward contains multiple autograd Nodes is deprecated and "
                "will be removed in future versions. This hook will be missing some grad_input. "
                "Please use register_full_backward_hook to get the documented behavior.")
    return None


def _as_tensors(value):
    values = value if isinstance(value, tuple) else (value,)
    return values if all(isinstance(one, tg.Tensor) for one in values) else None


def _nodes(tensors):
    return {tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None}
