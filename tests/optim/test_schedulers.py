"""Learning rate schedules and weight averaging: like PyTorch's, like their closed forms, resumable."""
import copy
import math

import pytest
from side_by_side import same

import tensorgrad as tg
from tensorgrad.optim import lr_scheduler, swa_utils

LENGTH = 24


class Halving:
    """A factor that is an object, whose attributes are saved."""

    def __init__(self, base):
        self.base = base

    def __call__(self, epoch):
        return self.base ** epoch


# name, how to make it from the namespace and an optimizer with two groups
SCHEDULES = [
    ('lambda', lambda S, o: S.LambdaLR(o, lambda epoch: 0.95 ** epoch)),
    ('lambdas', lambda S, o: S.LambdaLR(o, [Halving(0.75), lambda epoch: 1 / (1 + epoch)])),
    ('multiplicative', lambda S, o: S.MultiplicativeLR(o, lambda epoch: 0.9 + 0.01 * (epoch % 3))),
    ('step', lambda S, o: S.StepLR(o, 4, gamma=0.5)),
    ('multistep', lambda S, o: S.MultiStepLR(o, [3, 7, 7, 11], gamma=0.5)),
    ('constant', lambda S, o: S.ConstantLR(o, factor=0.3, total_iters=6)),
    ('linear', lambda S, o: S.LinearLR(o, 0.2, 0.9, 8)),
    ('exponential', lambda S, o: S.ExponentialLR(o, 0.9)),
    ('polynomial', lambda S, o: S.PolynomialLR(o, 9, 2.0)),
    ('cosine', lambda S, o: S.CosineAnnealingLR(o, 6, eta_min=0.01)),
    ('restarts', lambda S, o: S.CosineAnnealingWarmRestarts(o, 5)),
    ('longer restarts', lambda S, o: S.CosineAnnealingWarmRestarts(o, 3, 2, 0.01)),
    ('sequential', lambda S, o: S.SequentialLR(o, [S.ConstantLR(o, 0.1, 3), S.ExponentialLR(o, 0.9),
                                                   S.StepLR(o, 2)], [4, 9])),
    ('chained', lambda S, o: S.ChainedScheduler([S.ConstantLR(o, 0.1, 3), S.ExponentialLR(o, 0.9)])),
    ('plateau', lambda S, o: S.ReduceLROnPlateau(o, patience=1)),
    ('plateau up', lambda S, o: S.ReduceLROnPlateau(o, 'max', 0.5, 0, threshold=0.1, threshold_mode='abs', cooldown=2,
                                                    min_lr=[0.01, 0.2])),
    ('plateau abs', lambda S, o: S.ReduceLROnPlateau(o, 'min', 0.5, 1, threshold=0.1, threshold_mode='abs', eps=0.05)),
    ('plateau rel', lambda S, o: S.ReduceLROnPlateau(o, 'max', 0.5, 1, threshold=0.5)),
    ('cyclic', lambda S, o: S.CyclicLR(o, 0.01, 0.1, step_size_up=4)),
    ('cyclic 2', lambda S, o: S.CyclicLR(o, [0.01, 0.02], [0.1, 0.3], 3, 5, 'triangular2', base_momentum=[0.5, 0.6])),
    ('cyclic range', lambda S, o: S.CyclicLR(o, 0.01, 0.1, 4, mode='exp_range', gamma=0.9, cycle_momentum=False)),
    ('cyclic scale', lambda S, o: S.CyclicLR(o, 0.01, 0.1, 4, scale_fn=Halving(0.5), scale_mode='iterations')),
    ('one cycle', lambda S, o: S.OneCycleLR(o, 0.1, total_steps=30)),
    ('one cycle, linear', lambda S, o: S.OneCycleLR(o, 0.1, epochs=5, steps_per_epoch=6, anneal_strategy='linear')),
    ('one cycle, three phases', lambda S, o: S.OneCycleLR(o, [0.1, 0.2], 30, three_phase=True, pct_start=0.25,
                                                          max_momentum=[0.9, 0.8], div_factor=10)),
    ('swa', lambda S, o: swa(S).SWALR(o, 0.05, anneal_epochs=7)),
    ('swa, linear', lambda S, o: swa(S).SWALR(o, [0.05, 0.5], 4, 'linear')),
    ('swa, at once', lambda S, o: swa(S).SWALR(o, 0.05, 0)),
]
each_schedule = pytest.mark.parametrize('make', [make for _, make in SCHEDULES], ids=[name for name, _ in SCHEDULES])


def swa(namespace):
    return swa_utils if namespace is lr_scheduler else pytest.importorskip('torch.optim.swa_utils')


def optimizer_of(torch, kind='SGD', lr=0.1):
    groups = [{'params': [torch.nn.Parameter(torch.ones(1))]},
              {'params': [torch.nn.Parameter(torch.ones(2))], 'lr': 0.5}]
    return getattr(torch.optim, kind)(groups, lr=lr, **{'momentum': 0.9} if kind == 'SGD' else {})


def metric(number):
    return [1 / (1 + number // 4)]


def rates(optimizer, scheduler, numbers):
    """Learning rates and momenta over some epochs."""
    seen = []
    for number in numbers:
        optimizer.step()
        scheduler.step(*metric(number) if type(scheduler).__name__ == 'ReduceLROnPlateau' else [])
        seen.append([[float(group['lr']), group['momentum'] if 'momentum' in group else group['betas']]
                     for group in optimizer.param_groups])
        assert seen[-1][0][0] == float(scheduler.get_last_lr()[0])
    return seen


@each_schedule
def test_like_pytorch(make):
    def program(torch):
        optimizer = optimizer_of(torch)
        scheduler = make(torch.optim.lr_scheduler, optimizer)
        seen = rates(optimizer, scheduler, range(LENGTH))
        return seen, copy.deepcopy(optimizer.state_dict()), copy.deepcopy(scheduler.state_dict())
    same(program, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize('make', [make for name, make in SCHEDULES if name in ('cyclic', 'one cycle', 'cosine')])
def test_like_pytorch_with_adam(make):
    def program(torch):
        optimizer = optimizer_of(torch, 'Adam')
        return rates(optimizer, make(torch.optim.lr_scheduler, optimizer), range(LENGTH))
    same(program, rtol=1e-12)


@each_schedule
def test_resuming_changes_nothing(make):
    optimizer = optimizer_of(tg)
    scheduler = make(lr_scheduler, optimizer)
    rates(optimizer, scheduler, range(LENGTH // 2))
    states = copy.deepcopy((optimizer.state_dict(), scheduler.state_dict()))
    twin = optimizer_of(tg)
    twin_scheduler = make(lr_scheduler, twin)
    twin.load_state_dict(states[0])
    twin_scheduler.load_state_dict(states[1])
    expected = rates(optimizer, scheduler, range(LENGTH // 2, LENGTH))
    assert rates(twin, twin_scheduler, range(LENGTH // 2, LENGTH)) == expected


@pytest.mark.parametrize('name', ['step', 'multistep', 'constant', 'linear', 'exponential', 'polynomial', 'cosine'])
def test_closed_form(name):
    """Single steps reach the rates that the closed form gives for the epoch."""
    make = dict(SCHEDULES)[name]
    optimizer, other = optimizer_of(tg), optimizer_of(tg)
    scheduler, jumping = make(lr_scheduler, optimizer), make(lr_scheduler, other)
    other.step()
    for epoch in range(1, 9):
        optimizer.step()
        scheduler.step()
        with pytest.warns(UserWarning, match='The epoch parameter'):
            jumping.step(epoch)
        assert jumping.get_last_lr() == pytest.approx(scheduler.get_last_lr(), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize('name, formula', [
    ('step', lambda t: 0.5 ** (t // 4)),
    ('linear', lambda t: 0.2 + 0.7 * min(t, 8) / 8),
    ('cosine', lambda t: 0.1 + 0.45 * (1 + math.cos(math.pi * t / 6))),
    ('restarts', lambda t: 0.5 * (1 + math.cos(math.pi * (t % 5) / 5))),
    ('polynomial', lambda t: (1 - min(t, 9) / 9) ** 2),
    ('one cycle, linear', lambda t: 0.04 + 0.96 * t / 8 if t <= 8 else 1 - (1 - 4e-6) * (t - 8) / 21),
])
def test_formula(name, formula):
    optimizer = optimizer_of(tg)
    scheduler = dict(SCHEDULES)[name](lr_scheduler, optimizer)
    for epoch in range(LENGTH):
        assert scheduler.get_last_lr()[0] == pytest.approx(0.1 * formula(epoch), abs=1e-12)
        optimizer.step()
        scheduler.step()


def test_one_cycle_ends():
    optimizer = optimizer_of(tg)
    scheduler = lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=2)
    rates(optimizer, scheduler, range(2))
    with pytest.raises(ValueError, match='Tried to step 3 times. The specified number of total steps is 2'):
        scheduler.step()


@pytest.mark.parametrize('name', ['step', 'cosine', 'linear', 'cyclic', 'one cycle', 'restarts', 'plateau',
                                  'sequential', 'swa'])
def test_a_tensor_is_changed_in_place(name):
    weight = tg.nn.Parameter(tg.ones(1))
    lr = tg.tensor(0.5, dtype=tg.float64)
    plain = tg.optim.SGD([{'params': weight}, {'params': []}], lr=0.5, momentum=0.9)
    optimizer = tg.optim.SGD([{'params': weight, 'lr': lr}, {'params': []}], lr=0.5, momentum=0.9)
    make = dict(SCHEDULES)[name]
    expected = rates(plain, make(lr_scheduler, plain), range(8))
    assert rates(optimizer, make(lr_scheduler, optimizer), range(8)) == [
        [pytest.approx(group) for group in groups] for groups in expected]
    assert optimizer.param_groups[0]['lr'] is lr


def fractions_of_epochs(torch):
    optimizer = optimizer_of(torch)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3, 2)
    seen = []
    for epoch in 0.5, 2.9, 3.0, 8.75, 9, 20.5, 1.25:
        scheduler.step(epoch)
        seen.append((scheduler.get_last_lr(), scheduler.T_cur, scheduler.T_i, scheduler.last_epoch))
    scheduler.step()
    return seen, scheduler.state_dict()


def resumed_at_an_epoch(torch):
    optimizer = optimizer_of(torch)
    for group in optimizer.param_groups:
        group['initial_lr'] = 0.7
    S = torch.optim.lr_scheduler
    kinds = [S.StepLR(optimizer, 3, last_epoch=5), S.CosineAnnealingLR(optimizer, 9, last_epoch=4),
             S.ExponentialLR(optimizer, 0.9, last_epoch=2), S.LinearLR(optimizer, last_epoch=1),
             S.MultiStepLR(optimizer, [2], last_epoch=1), S.ConstantLR(optimizer, last_epoch=4)]
    return [kind.state_dict() for kind in kinds], optimizer.state_dict()


def too_early(torch):
    torch.optim.lr_scheduler.StepLR(optimizer_of(torch), 3).step()


def in_right_order(torch):
    optimizer = optimizer_of(torch)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    optimizer.step()
    scheduler.step()


def a_step_that_is_overridden(torch):
    optimizer = optimizer_of(torch)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    optimizer.step = lambda: None
    scheduler.step()


def get_lr_from_outside(torch):
    return torch.optim.lr_scheduler.StepLR(optimizer_of(torch), 3).get_lr()


def plateau_with_an_epoch(torch):
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer_of(torch))
    scheduler.step(torch.tensor(3.0), epoch=7)
    return scheduler.state_dict()


def plateau_with_another_group(torch):
    optimizer = optimizer_of(torch)
    one = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    other = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.1, 0.1])
    optimizer.add_param_group({'params': [torch.nn.Parameter(torch.ones(1))]})
    for _ in range(2):
        one.step(1.0)
    for _ in range(2):
        other.step(1.0)


def sequences_in_a_sequence(torch):
    optimizer = optimizer_of(torch)
    S = torch.optim.lr_scheduler
    first = S.SequentialLR(optimizer, [S.ConstantLR(optimizer, 0.5, 2), S.ExponentialLR(optimizer, 0.5)], [3])
    return rates(optimizer, S.SequentialLR(optimizer, [first, S.LinearLR(optimizer, 0.5, 1.0, 3)], [5]), range(12))


def schedules(make, kind='SGD'):
    def program(torch):
        make(torch.optim.lr_scheduler, optimizer_of(torch, kind))
    return program


PROGRAMS = [
    fractions_of_epochs, resumed_at_an_epoch, too_early, in_right_order, a_step_that_is_overridden, get_lr_from_outside,
    plateau_with_an_epoch, plateau_with_another_group, sequences_in_a_sequence,
]
ERRORS = [schedules(make) for make in (
    lambda S, o: S.StepLR(3, 1), lambda S, o: S.StepLR(o, 3, last_epoch=2), lambda S, o: S.LambdaLR(o, [abs]),
    lambda S, o: S.MultiplicativeLR(o, [abs]), lambda S, o: S.MultiplicativeLR(o, 3),
    lambda S, o: S.ConstantLR(o, 1.5), lambda S, o: S.LinearLR(o, 0), lambda S, o: S.LinearLR(o, 0.5, 1.5),
    lambda S, o: S.CosineAnnealingWarmRestarts(o, 0), lambda S, o: S.CosineAnnealingWarmRestarts(o, 5, 0),
    lambda S, o: S.CosineAnnealingWarmRestarts(o, 5, 1.5), lambda S, o: S.CosineAnnealingWarmRestarts(o, 5, 1, 'a'),
    lambda S, o: S.CosineAnnealingWarmRestarts(o, 5).step(-1), lambda S, o: S.SequentialLR(o, [], []),
    lambda S, o: S.SequentialLR(o, [S.StepLR(o, 2)], [1]), lambda S, o: S.SequentialLR(o, [3], []),
    lambda S, o: S.SequentialLR(o, [S.ReduceLROnPlateau(o)], []), lambda S, o: S.ChainedScheduler([]),
    lambda S, o: S.ChainedScheduler([S.StepLR(o, 2), S.ReduceLROnPlateau(o)]),
    lambda S, o: S.ReduceLROnPlateau(o, factor=1.0), lambda S, o: S.ReduceLROnPlateau(3),
    lambda S, o: S.ReduceLROnPlateau(o, 'both'), lambda S, o: S.ReduceLROnPlateau(o, threshold_mode='none'),
    lambda S, o: S.ReduceLROnPlateau(o, min_lr=[0.1]), lambda S, o: S.CyclicLR(o, [0.1], 0.2),
    lambda S, o: S.CyclicLR(3, 0.1, 0.2), lambda S, o: S.CyclicLR(o, 0.1, 0.2, mode='square'),
    lambda S, o: S.OneCycleLR(o, 0.1), lambda S, o: S.OneCycleLR(o, 0.1, total_steps=0),
    lambda S, o: S.OneCycleLR(o, 0.1, epochs=0, steps_per_epoch=2),
    lambda S, o: S.OneCycleLR(o, 0.1, epochs=2, steps_per_epoch=0.5),
    lambda S, o: S.OneCycleLR(o, 0.1, 5, pct_start=2.0), lambda S, o: S.OneCycleLR(o, 0.1, 5, anneal_strategy='log'),
    lambda S, o: swa(S).SWALR(o, 0.1, anneal_strategy='log'), lambda S, o: swa(S).SWALR(o, 0.1, -1),
    lambda S, o: swa(S).SWALR(o, [0.1]), lambda S, o: swa(S).get_ema_avg_fn(1.5),
    lambda S, o: swa(S).get_ema_multi_avg_fn(-1),
)] + [schedules(make, 'Adagrad') for make in (
    lambda S, o: S.CyclicLR(o, 0.1, 0.2), lambda S, o: S.OneCycleLR(o, 0.1, 5))]


@pytest.mark.parametrize('program', PROGRAMS, ids=lambda program: program.__name__)
def test_program(program):
    same(program, rtol=1e-12)


@pytest.mark.parametrize('program', ERRORS)
def test_error(program):
    same(program)


def test_schedules_of_another_optimizer():
    one, other = optimizer_of(tg), optimizer_of(tg)
    with pytest.raises(ValueError, match='expects all schedulers to belong to the same optimizer, but got scheduler '
                                         'StepLR at index 0'):
        lr_scheduler.SequentialLR(one, [lr_scheduler.StepLR(other, 2)], [])


def test_a_schedule_does_not_keep_the_optimizer_alive():
    import weakref
    optimizer = optimizer_of(tg)
    scheduler = lr_scheduler.StepLR(optimizer, 2)
    optimizer.step()
    reference = weakref.ref(optimizer)
    del scheduler, optimizer
    assert reference() is None


# ── averaging ─────────────────────────────────────────────────────────────────────────────────

def averaged(options, buffers=False):
    def program(torch):
        module = torch.optim.swa_utils
        model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
        model.load_state_dict({key: torch.arange(value.numel()).reshape(value.shape).to(value.dtype)
                               for key, value in model.state_dict().items()})
        average = module.AveragedModel(model, use_buffers=buffers, **options(module))
        for step in range(3):
            with torch.no_grad():
                for value in [*model.parameters(), *model.buffers()]:
                    value.add_(step + 1)
            average.update_parameters(model)
        module.update_bn([torch.arange(8.0).reshape(4, 2), (torch.ones(2, 2), 'label')], average)
        return average.state_dict(), average(torch.arange(6.0).reshape(3, 2)), average.module[1].momentum
    return program


@pytest.mark.parametrize('program', [
    averaged(lambda module: {}), averaged(lambda module: {}, buffers=True),
    averaged(lambda module: {'avg_fn': module.get_ema_avg_fn(0.75)}),
    averaged(lambda module: {'avg_fn': module.get_swa_avg_fn()}, buffers=True),
    averaged(lambda module: {'multi_avg_fn': module.get_ema_multi_avg_fn(0.75)}, buffers=True),
    averaged(lambda module: {'multi_avg_fn': module.get_swa_multi_avg_fn()}),
    averaged(lambda module: {'multi_avg_fn': abs, 'avg_fn': abs}),
])
def test_averaging(program):
    same(program, rtol=1e-5, atol=1e-5)


def test_the_average_of_parameters():
    model = tg.nn.Linear(1, 1)
    average = swa_utils.AveragedModel(model)
    for value in 1.0, 2.0, 6.0:
        model.weight.data.fill_(value)
        average.update_parameters(model)
    assert average.module.weight.item() == 3 and average.n_averaged == 3
