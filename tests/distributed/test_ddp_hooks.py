"""DistributedDataParallel with communication hooks and with uneven inputs, and averages of models."""
import copy
import pickle

import pytest
from ddp_parts import TINY, Alone, X, gradients, loss, net, ranks
from support import cpu_only

import tensorgrad as torch
from tensorgrad import distributed as dist
from tensorgrad import nn
from tensorgrad.distributed.algorithms.ddp_comm_hooks import (
    DDPCommHookType,
    default_hooks,
    post_localSGD_hook,
    powerSGD_hook,
    register_ddp_comm_hook,
)
from tensorgrad.distributed.algorithms.join import Join, Joinable, JoinHook
from tensorgrad.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from tensorgrad.nn.parallel import DistributedDataParallel as DDP
from tensorgrad.testing import assert_close

pytestmark = cpu_only

# ── communication hooks ───────────────────────────────────────────────────────────────────────────────────────────────


def test_communication_hooks():
    start = net()

    def program(rank, group):
        results = {}
        for name, register in {
            "none": lambda ddp: None,
            "allreduce": lambda ddp: ddp.register_comm_hook(group, default_hooks.allreduce_hook),
            "fp16": lambda ddp: ddp.register_comm_hook(group, default_hooks.fp16_compress_hook),
            "bf16": lambda ddp: ddp.register_comm_hook(group, default_hooks.bf16_compress_hook),
            "wrapped fp16": lambda ddp: ddp.register_comm_hook(group,
                                                               default_hooks.fp16_compress_wrapper(
                                                                   default_hooks.allreduce_hook)),
            "wrapped bf16": lambda ddp: ddp.register_comm_hook(group,
                                                               default_hooks.bf16_compress_wrapper(
                                                                   default_hooks.allreduce_hook)),
            "noop": lambda ddp: register_ddp_comm_hook(DDPCommHookType.NOOP, ddp),
        }.items():
            ddp = DDP(copy.deepcopy(start), process_group=group, bucket_cap_mb=TINY)
            register(ddp)
            loss(ddp, X[rank::2]).backward()
            results[name] = gradients(ddp)
        return results
    first, second = ranks(2, program)
    for name, tolerance in {"allreduce": 1e-7, "fp16": 1e-3, "bf16": 1e-2, "wrapped fp16": 1e-3,
                            "wrapped bf16": 1e-2}.items():
        for a, b, plain in zip(first[name], second[name], first["none"], strict=True):
            assert torch.equal(a, b) and torch.allclose(a, plain, rtol=tolerance, atol=tolerance)
    assert not torch.equal(first["bf16"][0], first["none"][0])
    assert all(torch.equal(a, b) for a, b in zip(first["fp16"], first["wrapped fp16"], strict=True))
    assert not torch.equal(first["noop"][0], second["noop"][0])


def test_a_hook_of_the_programs_own():
    seen = []

    def hook(state, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        seen.append((state, bucket.index(), bucket.is_last(), bucket.buffer().numel(),
                     [tuple(g.shape) for g in bucket.gradients()],
                     [p is q for p, q in zip(bucket.parameters(), (model.bias, model.weight), strict=True)]))
        for gradient in bucket.gradients():
            gradient.mul_(2)
        future = torch.futures.Future()
        future.set_result(bucket.buffer() + 1)
        return future
    model = nn.Linear(3, 2)
    ddp = DDP(model, process_group=Alone(1))
    ddp.register_comm_hook("state", hook)
    ddp(X).sum().backward()
    assert seen == [("state", 0, True, 8, [(2,), (2, 3)], [True, True])]
    assert model.bias.grad.tolist() == [17., 17.]
    assert_close(model.weight.grad, 2 * X.sum(0).expand(2, 3) + 1)


def test_powers_of_full_rank_are_the_means():
    """Products of as many columns as a matrix has leave nothing out, also with several buckets; of one column, errors
    travel later.
    """
    start, x = net().double(), X.double()

    def program(rank, group):
        found = []
        for hook in (powerSGD_hook.powerSGD_hook, powerSGD_hook.batched_powerSGD_hook):
            state = powerSGD_hook.PowerSGDState(group, 8, start_powerSGD_iter=2, min_compression_rate=0.01,
                                                orthogonalization_epsilon=1e-30)
            ddp, plain = (DDP(copy.deepcopy(start), process_group=group, bucket_cap_mb=TINY),
                          DDP(copy.deepcopy(start), process_group=group))
            ddp.register_comm_hook(state, hook)
            for i in range(4):
                for module in (ddp, plain):
                    module.zero_grad()
                    loss(module, x[rank::2] + i).backward()
                assert all(torch.allclose(p.grad, q.grad, rtol=1e-7, atol=1e-7)
                           for p, q in zip(ddp.parameters(), plain.parameters(), strict=True))
            assert state.iter == 4 and state.compression_stats()[1] == 2 * 28
            state = pickle.loads(pickle.dumps(state))
            assert state.process_group is None and state.iter == 4
        ddp = DDP(copy.deepcopy(start), process_group=group)
        register_ddp_comm_hook(DDPCommHookType.POWER_SGD, ddp, group)
        loss(ddp, x[rank::2]).backward()
        return found, gradients(ddp)
    (_, first), (_, second) = ranks(2, program)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    with pytest.raises(ValueError, match="Expect `start_powerSGD_iter` > 1"):
        powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=1)


def test_local_steps_and_averages_of_models():
    start = net()

    def program(rank, group):
        state = post_localSGD_hook.PostLocalSGDState(group, None, start_localSGD_iter=2,
                                                     post_local_gradient_allreduce=False)
        ddp = DDP(copy.deepcopy(start), process_group=group)
        ddp.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)
        optimizer, averager = (torch.optim.SGD(ddp.parameters(), lr=0.1),
                               PeriodicModelAverager(2, warmup_steps=2, process_group=group))
        steps = []
        for _ in range(6):
            optimizer.zero_grad()
            loss(ddp, X[rank::2]).backward()
            optimizer.step()
            averager.average_parameters(optimizer.param_groups)
            steps.append(ddp.module.first.weight.detach().clone())
        return steps
    first, second = ranks(2, program)
    assert [torch.equal(a, b) for a, b in zip(first, second, strict=True)] == [True, True, True, False, True, False]
    with pytest.raises(ValueError, match="``period`` must be a positive"):
        PeriodicModelAverager(0)
    with pytest.warns(UserWarning, match="When period is 1"):
        averager = PeriodicModelAverager(1, process_group=Alone())
    with pytest.raises(NotImplementedError, match="is not supported"):
        averager.average_parameters([torch.ones(1)])


def test_hooks_that_are_refused():
    ddp = DDP(nn.Linear(3, 2), process_group=Alone(2))
    with pytest.raises(TypeError, match="Communication hook must be callable."):
        ddp.register_comm_hook(None, 3)

    def other(state, bucket: int): ...

    def gives(state, bucket) -> int: ...
    with pytest.raises(ValueError, match="bucket annotation should be dist.GradBucket"):
        ddp.register_comm_hook(None, other)
    with pytest.raises(ValueError, match="return annotation should be torch.futures.Future"):
        ddp.register_comm_hook(None, gives)
    ddp.register_comm_hook(None, lambda state, bucket: 5)
    with pytest.raises(RuntimeError, match="register_comm_hook or register_builtin_comm_hook can only be called once."):
        ddp.register_comm_hook(None, lambda state, bucket: 5)
    with pytest.raises(RuntimeError, match="callback must return a torch.futures.Future object, but got int"):
        ddp(X).sum().backward()


# ── uneven inputs ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_uneven_inputs():
    def program(rank, group, **kwargs):
        torch_model = nn.Linear(1, 1, bias=False)
        ddp, seen = DDP(torch_model, process_group=group), []
        with ddp.join(**kwargs):
            for i in range(2 + rank):
                ddp(torch.full((1, 1), i + 1.)).sum().backward()
                seen.append(torch_model.weight.grad.item())
                with torch.no_grad():
                    torch_model.weight -= torch_model.weight.grad
                ddp.zero_grad()
        return seen, torch_model.weight.item(), torch_model.weight.grad
    (short, a, shadow), (long, b, _) = ranks(2, program)
    assert short == [1., 2.] and long == [1., 2., 1.5] and a == b
    assert shadow.item() == 1.5, "what the others had in the last step"
    (short, a, _), (long, b, _) = ranks(2, lambda rank, group: program(rank, group, divide_by_initial_world_size=False))
    assert long == [1., 2., 3.] and a == b

    def early(rank, group):
        with pytest.raises(RuntimeError) as error:
            program(rank, group, throw_on_early_termination=True)
        return str(error.value)
    assert ranks(2, early) == ["Rank 0 exhausted all inputs.",
                               "Detected at least one rank that exhausted inputs. Throwing across all ranks."]


def test_uneven_inputs_of_all_that_communicates():
    """Buffers, unused parameters, buckets in a new order, steps without synchronization, hooks: the others go on, and
    all end with one module.
    """
    torch.manual_seed(0)
    start = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))

    def program(rank, group):
        found = []
        for options in ({}, {"find_unused_parameters": True}, {"static_graph": True}, {"hook": True}):
            hook = options.pop("hook", False)
            ddp = DDP(copy.deepcopy(start), process_group=group, bucket_cap_mb=TINY, **options)
            if hook:
                ddp.register_comm_hook(None, lambda state, bucket: default_hooks.allreduce_hook(group, bucket))
            optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
            with Join([ddp]):
                for i in range(4 * rank):
                    if i == 2:
                        with ddp.no_sync():
                            loss(ddp, X * i).backward()
                        continue
                    optimizer.zero_grad()
                    loss(ddp, X * i).backward()
                    optimizer.step()
            found.append([t.clone() for t in (*ddp.parameters(), *ddp.buffers())])
        return found
    first, _, third = ranks(3, program)
    for a, b in zip(first, third, strict=True):
        assert all(torch.equal(p, q) for p, q in zip(a, b, strict=True))
        assert not torch.equal(a[0], start[0].weight)


def test_joinables_of_the_programs_own():
    class Counter(Joinable):
        def __init__(self, group):
            super().__init__()
            self.group, self.sums, self.ended = group, [], None

        def __call__(self):
            Join.notify_join_context(self)
            t = torch.ones(1)
            self.group.allreduce(t).wait()
            self.sums.append(t.item())

        def join_hook(self, **kwargs):
            counter = self

            class Hook(JoinHook):
                def main_hook(self):
                    counter.group.allreduce(torch.zeros(1)).wait()

                def post_hook(self, is_last_joiner):
                    counter.ended = is_last_joiner, kwargs
            return Hook()
        join_device = property(lambda self: torch.device("cpu"))
        join_process_group = property(lambda self: self.group)

    def program(rank, group):
        counter = Counter(group)
        with Join([counter], word=1):
            for _ in range(rank + 1):
                counter()
        return counter.sums, counter.ended
    assert ranks(3, program) == [([3.], (False, {"word": 1})), ([3., 2.], (False, {"word": 1})),
                                 ([3., 2., 1.], (True, {"word": 1}))]
    with pytest.raises(ValueError, match="requires at least one joinable"):
        Join([])
    with pytest.raises(ValueError, match="multiple process groups"):
        Join([Counter(1), Counter(2)])
    with pytest.raises(AssertionError, match="constructor calls the ``Joinable`` constructor"):
        Join.notify_join_context(object())
    assert isinstance(DDP(nn.Linear(1, 1), process_group=Alone()), Joinable)
