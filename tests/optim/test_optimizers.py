"""Optimizers: against PyTorch where it is installed, against its recorded numbers, and against their documentation."""
import copy
import importlib
import pickle
from collections import OrderedDict

import numpy as np
import pytest
from side_by_side import same

import tensorgrad as tg
from tensorgrad import optim

START = [[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]]
TARGET = [[1.0, 0.5, -0.5], [-1.0, 2.0, 0.125]]
STEPS = 5

# name, options, the first row of START after STEPS steps (by PyTorch)
CASES = [
    ('SGD', {'lr': 0.1}, [0.93098, -0.420245, 0.8631124]),
    ('SGD', {'lr': 0.1, 'momentum': 0.9}, [1.43138, 0.7594301, -0.7812999]),
    ('SGD', {'lr': 0.1, 'momentum': 0.9, 'dampening': 0.5, 'weight_decay': 0.1}, [1.0500145, 0.23953, -0.0967915]),
    ('SGD', {'lr': 0.1, 'momentum': 0.9, 'nesterov': True, 'weight_decay': 0.1}, [1.5134909, 1.0016189, -1.1240557]),
    ('SGD', {'lr': {'tensor': 0.1}, 'maximize': True}, [-0.08153, -2.4565301, 3.6644123]),
    ('Adam', {'lr': 0.1}, [1.0001513, -0.7494366, 1.4995943]),
    ('Adam', {'lr': 0.1, 'amsgrad': True, 'weight_decay': 0.1}, [0.9999334, -0.7496715, 1.499768]),
    ('Adam', {'lr': {'tensor': 0.1}, 'betas': ({'tensor': 0.8}, {'tensor': 0.9})},
     [1.0013045, -0.7493756, 1.4995511]),
    ('Adam', {'lr': 0.1, 'weight_decay': 0.5, 'decoupled_weight_decay': True, 'maximize': True},
     [-0.0567238, -1.4217037, 2.0014963]),
    ('AdamW', {'lr': 0.1, 'weight_decay': 0.5}, [0.8384102, -0.5155391, 1.0963748]),
    ('AdamW', {'lr': 0.1, 'amsgrad': True, 'eps': 0.1}, [0.9304269, -0.770702, 1.5095966]),
    ('Adamax', {'lr': 0.1}, [0.9222673, -0.7564653, 1.5045381]),
    ('Adamax', {'lr': 0.1, 'weight_decay': 0.1, 'betas': (0.8, 0.5)}, [0.9282956, -0.7532992, 1.5022849]),
    ('NAdam', {'lr': 0.1}, [0.9622449, -0.838401, 1.5903145]),
    ('NAdam', {'lr': 0.1, 'weight_decay': 0.1, 'momentum_decay': 0.1}, [0.9622676, -0.8410302, 1.5925008]),
    ('NAdam', {'lr': 0.1, 'weight_decay': 0.1, 'decoupled_weight_decay': True}, [0.9296694, -0.7875846, 1.5030786]),
    ('RAdam', {'lr': 0.1}, [0.8547285, -0.4011821, 0.8154552]),
    ('RAdam', {'lr': 0.1, 'betas': (0.9, 0.9), 'weight_decay': 0.1}, [0.8295937, -0.3548852, 0.7397261]),
    ('RAdam', {'lr': 0.1, 'betas': (0.9, 0.8), 'weight_decay': 0.1, 'decoupled_weight_decay': True},
     [0.8270042, -0.3627687, 0.750904]),
    ('Adagrad', {'lr': 0.1}, [0.8764701, -0.9196911, 1.6717383]),
    ('Adagrad', {'lr': 0.1, 'lr_decay': 0.1, 'weight_decay': 0.1, 'initial_accumulator_value': 0.5},
     [0.7489648, -0.97258, 1.7189163]),
    ('Adadelta', {}, [0.5220075, -1.2323219, 1.9826702]),
    ('Adadelta', {'lr': 10.0, 'rho': 0.5, 'eps': 0.01, 'weight_decay': 0.1}, [2.9790146, 0.4878227, -0.9973612]),
    ('RMSprop', {'lr': 0.1}, [2.0766997, 0.8296143, -0.4434648]),
    ('RMSprop', {'lr': 0.1, 'centered': True, 'momentum': 0.9}, [1.9330728, 2.3318882, -3.1622386]),
    ('RMSprop', {'lr': 0.1, 'alpha': 0.5, 'weight_decay': 0.1, 'eps': 0.01}, [1.0969689, -0.6852418, 1.4340731]),
    ('Rprop', {'lr': 0.1}, [1.2441601, -0.5058399, 1.2558398]),
    ('Rprop', {'lr': 0.5, 'etas': (0.25, 3.0), 'step_sizes': (0.01, 1.0)}, [1.75, 1.0, -1.5]),
    ('ASGD', {'lr': 0.1}, [0.9309461, -0.4202202, 0.8630666]),
    ('ASGD', {'lr': 0.1, 't0': 2, 'lambd': 0.01, 'weight_decay': 0.1}, [0.9013827, -0.3830006, 0.7998466]),
    ('Adafactor', {'lr': 0.1}, [0.7427815, -0.7706268, 1.2931285]),
    ('Adafactor', {'lr': 0.1, 'weight_decay': 0.1, 'd': 2.0, 'eps': (0.001, 0.1), 'beta2_decay': -0.5},
     [0.7219245, -0.7236992, 1.1900128]),
    ('Muon', {'lr': 0.1}, [0.5907465, -0.9016766, 1.5101693]),
    ('Muon', {'lr': 0.1, 'nesterov': False, 'weight_decay': 0.5, 'adjust_lr_fn': 'match_rms_adamw'},
     [0.4253706, -0.8724191, 1.4181919]),
    ('LBFGS', {}, [2.0000005, 1.0000011, -1.0000039]),
    ('LBFGS', {'lr': 0.125, 'max_iter': 3, 'history_size': 2}, [2.0376868, 1.8756157, -2.3040104]),
    ('LBFGS', {'line_search_fn': 'strong_wolfe'}, [2.0000026, 1.0000011, -1.0000006]),
    ('LBFGS', {'line_search_fn': 'strong_wolfe', 'max_iter': 2, 'max_eval': 3}, [2.0000005, 0.9999993, -0.9999989]),
]


def label(case):
    name, options, _ = case
    return f'{name}({", ".join(f"{key}={value}" for key, value in options.items())})'


def with_tensors(torch, value):
    """Convert options for a library: ``{'tensor': x}`` becomes a tensor."""
    if isinstance(value, dict):
        return torch.tensor(value['tensor']) if 'tensor' in value else {
            key: with_tensors(torch, part) for key, part in value.items()}
    return tuple(with_tensors(torch, part) for part in value) if isinstance(value, tuple) else value


def build(torch, name, options, dtype='float32'):
    start = torch.tensor(START, dtype=getattr(torch, dtype))
    weight = torch.nn.Parameter(start * (1 + 0.5j) if dtype == 'complex64' else start)
    return getattr(torch.optim, name)([weight], **with_tensors(torch, options)), weight


def train(torch, optimizer, weight, steps=range(STEPS)):
    """Descend from |weight - target|² / 2, for a target that grows."""
    for step in steps:
        def closure(step=step):
            optimizer.zero_grad()
            target = torch.tensor(TARGET, dtype=weight.dtype) * (1 + step / 4)
            loss = ((weight - target).abs() ** 2).sum() / 2
            loss.backward()
            return loss
        if isinstance(optimizer, torch.optim.LBFGS):
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()


@pytest.mark.parametrize('case', CASES, ids=label)
def test_numbers(case, device):
    name, options, expected = case
    optimizer, weight = build(tg, name, options)
    train(tg, optimizer, weight)
    tolerance = 2e-2 if name == 'Muon' else 1e-5  # Muon computes in bfloat16
    assert weight.device.type == device.type
    np.testing.assert_allclose(weight.detach().cpu().numpy()[0], expected, rtol=tolerance, atol=1e-6)


def kinds(case):
    name, *_ = case
    if name == 'LBFGS':  # which amplifies every rounding of float32
        return ['float64']
    return ['float32', 'float64'] + ['complex64'] * (name not in ('Muon', 'Adafactor'))


@pytest.mark.parametrize('case, dtype', [(case, dtype) for case in CASES for dtype in kinds(case)],
                         ids=lambda part: part if isinstance(part, str) else label(part))
def test_like_pytorch(case, dtype):
    """Parameters, state and options after some steps, after saving and loading, and the printed form."""
    name, options, _ = case

    def program(torch):
        optimizer, weight = build(torch, name, options, dtype)
        train(torch, optimizer, weight)
        saved = copy.deepcopy(optimizer.state_dict())
        after = weight.detach().clone()
        optimizer, _ = build(torch, name, options, dtype)
        optimizer.param_groups[0]['params'][0].data.copy_(weight.data)
        optimizer.load_state_dict(saved)
        weight = optimizer.param_groups[0]['params'][0]
        train(torch, optimizer, weight, range(STEPS, STEPS + 2))
        if name == 'LBFGS':  # of the search, what is saved as a tensor, and what as a number
            saved['state'] = {k: [(key, type(value).__name__) for key, value in sorted(state.items()) if key != 't']
                              for k, state in saved['state'].items()}
        return after, saved, weight, repr(optimizer)

    precise = dtype == 'float64' and not any('tensor' in str(value) for value in options.values())
    tolerance = 2e-2 if name == 'Muon' else 1e-9 if precise else 5e-6
    same(program, rtol=tolerance, atol=tolerance / 10)


# ── what every optimizer promises ─────────────────────────────────────────────────────────────

@pytest.mark.parametrize('case', CASES, ids=label)
def test_resuming_changes_nothing(case, device):
    name, options, _ = case
    optimizer, weight = build(tg, name, options)
    train(tg, optimizer, weight)
    twins = [copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))]
    train(tg, optimizer, weight, range(STEPS, 2 * STEPS))
    for twin in twins:
        twin_weight = twin.param_groups[0]['params'][0]
        assert twin_weight is not weight
        train(tg, twin, twin_weight, range(STEPS, 2 * STEPS))
        assert tg.equal(twin_weight, weight)


@pytest.mark.parametrize('name', ['SGD', 'Adam', 'RMSprop', 'Adagrad', 'NAdam'])
def test_maximize_is_descent_on_the_negative(name):
    up, one = build(tg, name, {'maximize': True})
    down, other = build(tg, name, {})
    for step in range(3):
        one.grad = tg.tensor(TARGET) * (step + 1)
        other.grad = -one.grad
        up.step()
        down.step()
    assert tg.equal(one, other)


def test_sgd_takes_no_momentum_for_none():
    optimizer, _ = build(tg, 'SGD', {'momentum': None})
    assert optimizer.param_groups[0]['momentum'] == 0


def test_parameters_without_gradients_stay():
    used, unused = (tg.nn.Parameter(tg.ones(2)) for _ in range(2))
    optimizer = optim.Adam([used, unused])
    used.grad = tg.ones(2)
    optimizer.step()
    assert unused.tolist() == [1, 1] and unused not in optimizer.state and used in optimizer.state


@pytest.mark.parametrize('name, options', [('SGD', {'momentum': 0.9}), ('Adam', {}), ('Adam', {'amsgrad': True}),
                                           ('RMSprop', {'centered': True, 'momentum': 0.5}), ('Adadelta', {}),
                                           ('Adagrad', {}), ('Adamax', {}), ('NAdam', {}), ('RAdam', {}), ('ASGD', {})])
def test_differentiable_steps(name, options):
    """The gradient of what comes of three steps, by the start and by the gradients, is that of central differences."""
    def after(start, gradients):
        weight = start.clone()
        optimizer = getattr(optim, name)([weight], lr=0.1, differentiable=True, **options)
        for gradient in gradients:
            weight.grad = gradient
            optimizer.step()
        return (weight ** 2).sum()

    start = tg.tensor([1.0, -2.0], dtype=tg.float64, requires_grad=True)
    gradients = [tg.tensor([0.5 * step, -0.75], dtype=tg.float64, requires_grad=True) for step in (1, 3, 2)]
    after(start, gradients).backward()
    for leaf in start, *gradients[1:]:
        for index in range(2):
            change = tg.zeros(2, dtype=tg.float64)
            change[index] = 1e-6
            with tg.no_grad():
                moved = [[other + sign * change if other is leaf else other for other in (start, *gradients)]
                         for sign in (1, -1)]
                up, down = (after(first, rest).item() for first, *rest in moved)
            assert leaf.grad[index].item() == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize('name', ['SGD', 'Adam', 'AdamW', 'RMSprop'])
def test_learning_the_learning_rate(name):
    def after(lr):
        weight = tg.tensor([1.0, -2.0], dtype=tg.float64).clone()
        optimizer = getattr(optim, name)([weight], lr=lr, weight_decay=0.1, differentiable=True)
        for step in range(3):
            weight.grad = tg.tensor([0.5 * step, -0.75], dtype=tg.float64)
            optimizer.step()
        return (weight ** 2).sum()

    lr = tg.tensor(0.1, dtype=tg.float64, requires_grad=True)
    after(lr).backward()
    expected = (after(0.1 + 1e-6).item() - after(0.1 - 1e-6).item()) / 2e-6
    assert lr.grad.item() == pytest.approx(expected, rel=1e-6)


# ── groups, hooks, checkpoints ────────────────────────────────────────────────────────────────

def parameters(torch, number=2):
    return [torch.nn.Parameter(torch.ones(index + 1)) for index in range(number)]


def groups_of_names(torch):
    optimizer = torch.optim.SGD([{'params': [('w', parameters(torch)[0])], 'lr': 0.5}], lr=0.25)
    optimizer.add_param_group({'params': [('v', parameters(torch)[1])]})
    return optimizer.state_dict(), repr(optimizer)


def a_generator(torch):
    return torch.optim.Adam(p for p in parameters(torch)).state_dict()


def named_parameters(torch):
    return torch.optim.Adam(torch.nn.Linear(2, 1).named_parameters()).state_dict()


def a_model_without_names_loads_one_with(torch):
    named, plain = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(plain.parameters())
    optimizer.load_state_dict(torch.optim.SGD(named.named_parameters(), lr=0.125).state_dict())
    return optimizer.state_dict()


def an_old_checkpoint(torch):
    """Before some options existed, and with step counters that are numbers."""
    [weight] = parameters(torch, 1)
    optimizer = torch.optim.Adam([weight])
    state = {'step': 3, 'exp_avg': torch.ones(1), 'exp_avg_sq': torch.ones(1)}
    group = {'lr': 0.1, 'betas': (0.9, 0.999), 'eps': 1e-8, 'weight_decay': 0, 'params': [0]}
    optimizer.load_state_dict({'state': {0: state}, 'param_groups': [group]})
    weight.grad = torch.ones(1)
    optimizer.step()
    return weight, optimizer.state_dict()['state'], sorted(optimizer.param_groups[0])


def zero_grad(torch):
    weight, _ = parameters(torch)
    optimizer = torch.optim.SGD([weight])
    weight.grad = torch.ones(1, requires_grad=True) * 2
    optimizer.zero_grad(set_to_none=False)
    kept = weight.grad.clone(), weight.grad.requires_grad
    optimizer.zero_grad()
    return kept, weight.grad


def a_closure(torch):
    weight, _ = parameters(torch)
    optimizer = torch.optim.SGD([weight])

    def closure():
        optimizer.zero_grad()
        loss = (weight ** 2).sum()
        loss.backward()
        return loss
    with torch.no_grad():
        return optimizer.step(closure), weight


def base_module(torch):
    return importlib.import_module(f'{torch.__name__}.optim.optimizer')


def all_hooks(torch):
    calls = []

    def note(name, result=None):
        def hook(optimizer, *arguments):
            calls.append((name, type(optimizer).__name__, len(arguments)))
            return result
        return hook

    weight, _ = parameters(torch)
    weight.grad = torch.ones(1)
    optimizer = torch.optim.SGD([weight])
    module = base_module(torch)
    handles = [module.register_optimizer_step_pre_hook(note('global pre')),
               module.register_optimizer_step_post_hook(note('global post')),
               optimizer.register_step_pre_hook(note('pre')), optimizer.register_step_post_hook(note('post')),
               optimizer.register_step_pre_hook(note('pre', ((optimizer,), {}))),
               optimizer.register_state_dict_pre_hook(note('save')),
               optimizer.register_state_dict_pre_hook(note('save first'), prepend=True),
               optimizer.register_state_dict_post_hook(note('saved', {'state': {}, 'param_groups': []})),
               optimizer.register_load_state_dict_pre_hook(note('load')),
               optimizer.register_load_state_dict_post_hook(note('loaded'), prepend=True)]
    state = optimizer.state_dict()
    optimizer.step()
    handles[3].remove()
    handles[7].remove()
    optimizer.load_state_dict(optimizer.state_dict())
    for handle in handles:
        handle.remove()
    optimizer.step()
    return state, calls


def a_wrapper_without_the_base_constructor(torch):
    """Wrappers of other packages make hooks for steps by hand."""
    calls = []

    class Wrapper(torch.optim.Optimizer):
        def __init__(self, optimizer):
            self.optimizer, self.defaults, self.param_groups = optimizer, optimizer.defaults, optimizer.param_groups
            self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks = OrderedDict(), OrderedDict()
            self._patch_step_function()

        def step(self, closure=None):
            return self.optimizer.step(closure)

    weight, _ = parameters(torch)
    weight.grad = torch.ones(1)
    wrapper = Wrapper(torch.optim.SGD([weight], lr=0.5))
    handles = [wrapper.register_step_pre_hook(lambda *_: calls.append('pre')),
               wrapper.register_step_post_hook(lambda *_: calls.append('post'))]
    wrapper.step()
    handles[0].remove()
    wrapper.step()
    wrapper.zero_grad()
    return calls, weight, weight.grad


def a_hook_that_returns_nonsense(torch):
    optimizer = torch.optim.SGD(parameters(torch))
    optimizer.register_step_pre_hook(lambda *_: 3)
    try:
        optimizer.step()
    except RuntimeError as error:
        return str(error)[-63:]


def state_of_no_parameter(torch):
    optimizer = torch.optim.SGD(parameters(torch))
    optimizer.state['epoch'] = 3
    saved = optimizer.state_dict()
    optimizer.load_state_dict(saved)
    return saved, dict(optimizer.state)


@pytest.mark.parametrize('program', [
    groups_of_names, a_generator, named_parameters, a_model_without_names_loads_one_with, an_old_checkpoint, zero_grad,
    a_closure, all_hooks, a_wrapper_without_the_base_constructor, a_hook_that_returns_nonsense,
    state_of_no_parameter,
], ids=lambda program: program.__name__)
def test_program(program):
    same(program)


def test_hooks_are_called_once_for_a_step_that_calls_its_base_class():
    class Twice(optim.SGD):
        def step(self, closure=None):
            super().step()
            return super().step(closure)

    calls = []
    weight, _ = parameters(tg)
    weight.grad = tg.ones(1)
    optimizer = Twice([weight], lr=0.25)
    optimizer.register_step_pre_hook(lambda *_: calls.append('step'))
    optimizer.step()
    assert weight.tolist() == [0.5] and calls == ['step']


def test_loading_casts_to_the_parameter():
    weight = tg.nn.Parameter(tg.ones(2, dtype=tg.float64))
    optimizer = optim.Adam([weight])
    state = {'step': tg.tensor(2.0), 'exp_avg': tg.ones(2), 'exp_avg_sq': np.ones(2, np.float32)}
    optimizer.load_state_dict({'state': {0: state}, 'param_groups': optimizer.state_dict()['param_groups']})
    dtypes = {key: value.dtype for key, value in optimizer.state[weight].items()}
    assert dtypes == {'step': tg.float32, 'exp_avg': tg.float64, 'exp_avg_sq': tg.float64}


# ── errors ────────────────────────────────────────────────────────────────────────────────────

def make(name, *args, **options):
    return lambda torch: repr(getattr(torch.optim, name)(
        *(args or (parameters(torch),)), **with_tensors(torch, options)))


def duplicates(torch):
    weight, _ = parameters(torch)
    torch.optim.SGD([weight, weight])


def the_same_in_two_groups(torch):
    weight, _ = parameters(torch)
    torch.optim.SGD([{'params': weight}, {'params': [weight]}])


def a_group_that_is_no_dict(torch):
    torch.optim.SGD(parameters(torch)).add_param_group([1])


def a_required_option(torch):
    torch.optim.Optimizer(parameters(torch), {'lr': base_module(torch).required})


def names_missing(torch):
    weight, other = parameters(torch)
    torch.optim.SGD([('w', weight), other])


def names_in_one_group(torch):
    weight, other = parameters(torch)
    torch.optim.SGD([{'params': [('w', weight)]}, {'params': [other]}])


def other_groups(torch):
    torch.optim.SGD(parameters(torch)).load_state_dict(
        torch.optim.SGD([{'params': p} for p in parameters(torch)]).state_dict())


def groups_of_other_sizes(torch):
    torch.optim.SGD(parameters(torch)).load_state_dict(torch.optim.SGD(parameters(torch, 3)).state_dict())


def no_line_search_of_this_name(torch):
    weight, _ = parameters(torch)
    optimizer = torch.optim.LBFGS([weight], line_search_fn='golden')

    def closure():
        weight.grad = torch.ones(1)
        return torch.tensor(1.0)
    optimizer.step(closure)


def complex_step(name):
    def program(torch):
        weight = torch.nn.Parameter(torch.ones((2, 2), dtype=torch.complex64))
        weight.grad = torch.ones((2, 2), dtype=torch.complex64)
        getattr(torch.optim, name)([weight]).step()
    return program


ERRORS = [
    make('SGD', []), make('SGD', [3]), make('SGD', [[1]]), make('SGD', 3), make('SGD', lr=-1.0),
    make('SGD', momentum=-0.5), make('SGD', weight_decay=-1), make('SGD', nesterov=True),
    make('SGD', nesterov=True, momentum=0.9, dampening=0.1), make('SGD', fused=True, differentiable=True),
    make('SGD', fused=True, foreach=True), make('SGD', lr={'tensor': [0.1, 0.1]}),
    lambda torch: torch.optim.SGD(torch.ones(2)),
    lambda torch: torch.optim.SGD([torch.ones(2, requires_grad=True) * 2]),
    lambda torch: repr(torch.optim.SGD({torch.ones(2), torch.zeros(2)})),
    lambda torch: torch.optim.SGD([{'params': {torch.ones(2)}}]),
    *(make(name, lr=-0.5) for name in ('Adam', 'AdamW', 'Adamax', 'NAdam', 'RAdam', 'Adagrad', 'Adadelta', 'RMSprop',
                                       'Rprop', 'ASGD', 'Adafactor', 'LBFGS', 'Muon')),
    make('Adam', eps=-1.0), make('Adam', betas=(1.0, 0.9)), make('Adam', betas=(0.9, -0.1)),
    make('Adam', weight_decay=-1), make('Adam', betas=({'tensor': 0.9}, 0.99)), make('Adam', betas=(0, 0.99)),
    make('Adam', betas=({'tensor': 0.9}, {'tensor': 0.9}), foreach=True),
    make('Adam', lr={'tensor': 0.1}, foreach=True), make('Adam', fused=True, differentiable=True),
    make('Adamax', eps=-1.0), make('Adamax', betas=(0.9, 1.0)), make('Adamax', weight_decay=-1),
    make('NAdam', eps=-1.0), make('NAdam', betas=(0.9, 1.0)), make('NAdam', weight_decay=-1),
    make('NAdam', momentum_decay=-1.0), make('RAdam', eps=-1.0), make('RAdam', betas=(0.9, 1.0)),
    make('RAdam', weight_decay=-1), make('Adagrad', lr_decay=-1), make('Adagrad', weight_decay=-1),
    make('Adagrad', initial_accumulator_value=-1), make('Adagrad', eps=-1), make('Adadelta', rho=1.5),
    make('Adadelta', eps=-1), make('Adadelta', weight_decay=-1), make('RMSprop', alpha=-1), make('RMSprop', eps=-1),
    make('RMSprop', momentum=-1), make('RMSprop', weight_decay=-1), make('Rprop', etas=(1.2, 0.5)),
    make('ASGD', weight_decay=-1), make('Adafactor', beta2_decay=0.5), make('Adafactor', eps=(-1, 0.1)),
    make('Adafactor', eps=(None, -1)), make('Adafactor', d=0.5), make('Adafactor', weight_decay=-1), make('Muon'),
    make('Muon', momentum=-1), make('Muon', weight_decay=-1), make('Muon', adjust_lr_fn='other'),
    lambda torch: torch.optim.LBFGS([{'params': p} for p in parameters(torch)]),
    duplicates, the_same_in_two_groups, a_group_that_is_no_dict, a_required_option, names_missing, names_in_one_group,
    other_groups, groups_of_other_sizes, no_line_search_of_this_name, complex_step('Muon'), complex_step('Adafactor'),
    lambda torch: torch.optim.Optimizer(parameters(torch), {}).zero_grad(),
]


@pytest.mark.parametrize('program', ERRORS)
def test_error(program):
    same(program)


@pytest.mark.parametrize('call, error, text', [
    (lambda: optim.SGD([]), ValueError, 'optimizer got an empty parameter list'),
    (lambda: optim.SGD([tg.ones(1)], lr=-1), ValueError, 'Invalid learning rate: -1'),
    (lambda: optim.SGD(tg.ones(1)), TypeError, 'params argument given to the optimizer should be an iterable'),
    (lambda: optim.Adam([tg.ones(1)], betas=(0.9, 1.0)), ValueError, 'Invalid beta parameter at index 1: 1.0'),
])
def test_error_text(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize('name', ['Adam', 'NAdam', 'ASGD', 'RMSprop'])
def test_graphs_of_a_gpu_are_not_for_the_cpu(name):
    def program(torch):
        weight = torch.nn.Parameter(torch.ones(2))
        optimizer = getattr(torch.optim, name)([weight], capturable=True)
        optimizer.step()
        weight.grad = torch.ones(2)
        optimizer.step()
    same(program)


def test_a_parameter_twice_in_a_group():
    def program(torch):
        weight = torch.nn.Parameter(torch.ones(2))
        return len(torch.optim.SGD([weight, weight]).param_groups)
    same(program)


# many parameters in one call of a kernel

PARAMETERS = [((3,), 'float32'), ((40, 50), 'float32'), ((7,), 'float64'), ((), 'float32'), ((0, 4), 'float32'),
              ((17,), 'float16'),
              ((300, 210), 'float32'), ((1001,), 'float64')]


def stepped(make, several_times=3, together=True):
    """Parameters after some steps of an optimizer that has all of them, or of one for each."""
    tg.manual_seed(0)
    parameters = [tg.randn(shape).to(getattr(tg, dtype)) for shape, dtype in PARAMETERS]
    parameters.append(tg.randn(30, 20).t())                                    # not in one piece
    parameters.append(tg.randn(6, 6, dtype=tg.complex64))
    parameters = [tg.nn.Parameter(value) for value in parameters]
    optimizers = [make(parameters)] if together else [make([parameter]) for parameter in parameters]
    for _ in range(several_times):
        for i, parameter in enumerate(parameters):
            parameter.grad = tg.randn_like(parameter)
            if i == 1:                                                         # one that misses a step has taken fewer
                parameter.grad = None if optimizers[0].state else parameter.grad
        for optimizer in optimizers:
            optimizer.step()
    return parameters, [optimizer.state_dict()['state'] for optimizer in optimizers]


@pytest.mark.parametrize('make', [
    lambda p: tg.optim.SGD(p, 0.1), lambda p: tg.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.1),
    lambda p: tg.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, maximize=True), lambda p: tg.optim.Adam(p, 0.1),
    lambda p: tg.optim.Adam(p, 0.1, amsgrad=True, weight_decay=0.1), lambda p: tg.optim.AdamW(p, 0.1)])
def test_many_parameters_at_once_as_one_by_one(make):
    together, (state,) = stepped(make)
    apart, states = stepped(make, together=False)
    for a, b in zip(together, apart, strict=True):
        assert tg.equal(a, b)
    for i, own in state.items():
        for key, value in own.items():
            assert tg.equal(value, states[i][0][key]) if isinstance(value, tg.Tensor) else value is states[i][0][key]


@pytest.mark.parametrize('name, options', [('SGD', {'momentum': 0.9}), ('Adam', {'amsgrad': True})])
def test_kernels_for_many_parameters_do_what_the_formulas_say(name, options, monkeypatch):
    def make(parameters):
        return getattr(tg.optim, name)(parameters, 0.1, weight_decay=0.1, **options)
    by_kernels, (state,) = stepped(make)
    monkeypatch.setattr('tensorgrad.core.optimizer_kernels.KERNELS', {})
    by_formulas, (expected,) = stepped(make)
    for a, b in zip(by_kernels, by_formulas, strict=True):
        tg.testing.assert_close(a, b)
    for i, own in expected.items():
        for key, value in own.items():
            tg.testing.assert_close(state[i][key], value)


def test_parameters_that_share_memory_are_updated_one_after_the_other():
    whole, grad = tg.ones(100_000), tg.ones(100_000)
    a, b = (tg.nn.Parameter(whole[part]) for part in (slice(0, 60_000), slice(40_000, 100_000)))
    a.grad, b.grad = grad[:60_000], grad[:60_000]                              # gradients may
    tg.optim.SGD([a, b], 0.25).step()
    assert whole[::20_000].tolist() == [0.75, 0.75, 0.5, 0.75, 0.75] and whole[59_999] == 0.5 and whole[60_000] == 0.75


def test_steps_at_once_count_as_writes():
    weight, other = tg.nn.Parameter(tg.ones(3)), tg.nn.Parameter(tg.ones(3))
    loss = (weight * other).sum()
    weight.grad = other.grad = tg.ones(3)
    tg.optim.Adam([weight, other]).step()
    with pytest.raises(RuntimeError, match='modified by an inplace operation'):
        loss.backward()


# ── state from a file that does not fit ───────────────────────────────────────────────────────────────────────────────

RULES = {'Adam': {'amsgrad': True}, 'AdamW': {}, 'SGD': {'momentum': 0.9},
         'RMSprop': {'momentum': 0.9, 'centered': True}, 'Adagrad': {}, 'Adadelta': {},
         'Adamax': {}, 'ASGD': {}, 'NAdam': {}, 'RAdam': {}, 'Rprop': {}, 'Adafactor': {}}
UNFIT = {'None': lambda v: None, 'short': lambda v: tg.ones(2), 'long': lambda v: tg.ones(70, 90),
         'a number': lambda v: 0.5, 'a word': lambda v: 'x',
         'a list': lambda v: [1.0, 2.0], 'missing': None}


@pytest.mark.parametrize('name', RULES)
def test_loaded_state_that_does_not_fit(name):
    """An error, and parameters and state as before; or a step, where the rule does without."""
    first, second = tg.nn.Parameter(tg.ones(300, 40)), tg.nn.Parameter(tg.ones(40, 300))
    optimizer = getattr(optim, name)([first, second], **RULES[name])

    def gradients():
        first.grad, second.grad = tg.ones(300, 40), tg.ones(40, 300)
    gradients()
    optimizer.step()
    good, errors = copy.deepcopy(optimizer.state_dict()), 0
    for key in good['state'][1]:
        for change in UNFIT.values():
            bad = copy.deepcopy(good)
            if change is None:
                del bad['state'][1][key]
            else:
                bad['state'][1][key] = change(bad['state'][1][key])
            before = first.tolist(), second.tolist()
            gradients()
            try:
                optimizer.load_state_dict(bad)
                optimizer.step()
            except (AttributeError, KeyError, RuntimeError, TypeError, ValueError):
                errors += 1
                assert (first.tolist(), second.tolist()) == before
            optimizer.load_state_dict(good)
    assert errors
    optimizer.step()


def test_state_that_a_program_takes_away():
    weight = tg.nn.Parameter(tg.ones(3))
    optimizer = optim.Adam([weight])
    weight.grad = tg.ones(3)
    optimizer.step()
    optimizer.state[weight]['exp_avg'] = None
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'lerp_'"):
        optimizer.step()


def test_shared_containers_of_a_state_are_copied_once():
    many = [tg.ones(1)]
    for _ in range(60):
        many = [many, many]
    parameter = tg.nn.Parameter(tg.ones(1))
    optimizer = optim.SGD([parameter])
    state = {'many': many, 'text': 'momentum', 'own': [tg.ones(1, dtype=tg.float64)]}
    optimizer.load_state_dict({**optimizer.state_dict(), 'state': {0: state}})
    found = optimizer.state[parameter]
    assert found['many'] is not many and found['many'][0] is found['many'][1]
    assert found['text'] == 'momentum' and found['own'][0].dtype == tg.float32
