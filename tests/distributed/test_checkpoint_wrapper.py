"""Modules that compute their activations again, beside PyTorch."""
import importlib
import warnings

from support import Programs, cpu_only

pytestmark = cpu_only
program = Programs()


def module_of(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")             # PyTorch's, of what it imports
        return importlib.import_module(torch.__name__ + ".distributed.algorithms._checkpoint.checkpoint_wrapper")


@program
def wrapped_modules(torch):
    w, found = module_of(torch), []

    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.calls, self.note = torch.nn.Parameter(torch.ones(2)), 0, "mine"

        def forward(self, x, scale=1.):
            self.calls += 1
            return (x * self.weight * scale).sin()
    kinds = [w.checkpoint_wrapper, w.offload_wrapper, lambda m: w.checkpoint_wrapper(m, w.CheckpointImpl.REENTRANT),
             lambda m: w.checkpoint_wrapper(m, checkpoint_fn=lambda f, *args, factor=1., **others: factor
                                            * f(*args, **others), factor=3.)]
    for wrap in kinds:
        plain = Scaled()
        module, x = wrap(plain), torch.arange(1., 3.).requires_grad_()
        module(module(x), scale=torch.tensor(2.)).sum().backward()
        found += [x.grad, plain.weight.grad, plain.calls, module.note, list(module.state_dict()),
                  [name for name, _ in module.named_parameters()],
                  str(module.load_state_dict({"weight": torch.zeros(2)})), plain.weight.detach().clone(),
                  type(module).__name__]
    return found


@program
def parts_of_a_model(torch):
    w = module_of(torch)
    nn = torch.nn

    def model():
        return nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.ReLU()), nn.Linear(2, 1))
    chosen, all_of_it, large = model(), model(), model()
    w.apply_activation_checkpointing(chosen, check_fn=lambda m: isinstance(m, nn.Linear))
    w.apply_activation_checkpointing(all_of_it, w.offload_wrapper)
    w.apply_activation_checkpointing(large, auto_wrap_policy=lambda module, recurse, nonwrapped_numel: True if recurse
                                     else nonwrapped_numel > 5)
    chosen.load_state_dict(all_of_it.state_dict())
    x = torch.ones(3, 2)
    return (str(chosen), str(all_of_it), str(large), list(chosen.state_dict()), torch.equal(chosen(x), all_of_it(x)),
            type(all_of_it[1][0]).__name__)


test_programs = program.test(rtol=1e-5)
