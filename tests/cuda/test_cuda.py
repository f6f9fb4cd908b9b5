"""torch.cuda as programs use it: on simulated devices, on a stand-in for CuPy, and without any device."""
import gc
import sys
import threading
import time
import types

import numpy as np
import pytest
from support import fresh_process, skip_if_built_with_cuda

import tensorgrad as tg
from tensorgrad import cuda

pytestmark = pytest.mark.usefixtures("two_devices")


# ── which device ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_there_is():
    assert cuda.is_available() and cuda.device_count() == 2 and cuda.current_device() == 0 and cuda.is_initialized()
    assert (cuda.is_bf16_supported() and not cuda.is_bf16_supported(including_emulation=False)
            and not cuda.is_tf32_supported())
    assert cuda.init() is None and cuda.get_arch_list() == [] and cuda.get_gencode_flags() == ""


def test_blocks_nest_and_restore_the_device():
    with cuda.device(1):
        with cuda.device("cuda:0"):
            assert cuda.current_device() == 0 and tg.ones(1, device="cuda").get_device() == 0
        with cuda.device(tg.device("cuda", 1)):
            assert cuda.current_device() == 1
        assert cuda.current_device() == 1 and tg.ones(1).cuda().get_device() == 1
    assert cuda.current_device() == 0
    with pytest.raises(ZeroDivisionError), cuda.device(1):
        1 / 0
    assert cuda.current_device() == 0


def test_moving_without_a_number_is_to_the_current_device():
    """T8, T9: tensors and modules that are on another CUDA device follow it, and keep their dtype; those that are there
    stay themselves.
    """
    x, model = (tg.ones(2, dtype=tg.int64, device="cuda:0"),
                tg.nn.Sequential(tg.nn.Linear(2, 1), tg.nn.BatchNorm1d(1)).cuda(0))
    weight = model[0].weight
    with cuda.device(1):
        y = x.cuda()
        assert (y.device == "cuda:1" and y.dtype is tg.int64 and y.cuda() is y and y.cuda(1) is y and x.cuda(0) is x
                and x.device == "cuda:0")
        assert model.cuda() is model and model[0].weight is weight
        assert {str(t.device) for t in (*model.parameters(), *model.buffers())} == {"cuda:1"}
        assert (tg.LongTensor([1]).cuda().dtype is tg.int64 and x.to("cuda").device == "cuda:1"
                and x.cpu().cuda().device == "cuda:1")
        z = tg.ones(2, device="cuda:0", requires_grad=True)
        (z.cuda() * 3).sum().backward()
        assert z.grad.device == "cuda:0" and z.grad.tolist() == [3, 3]
    assert x.cuda() is x and y.cuda().device == "cuda:0" and model.cuda()[1].running_mean.device == "cuda:0"


def test_moving_to_what_is_no_cuda_device():
    """T8: `cuda` moves to CUDA devices only."""
    for wrong in "cpu", tg.device("cpu"), tg.device("mps"):
        with pytest.raises(RuntimeError, match="Invalid device, must be cuda device"):
            tg.ones(1).cuda(wrong)


def test_negative_numbers_and_tensors_on_the_cpu_change_nothing():
    with cuda.device(1):
        with cuda.device(-1):
            assert cuda.current_device() == 1
        with cuda.device_of(tg.ones(1)):
            assert cuda.current_device() == 1
        with cuda.device_of(tg.ones(1, device="cuda:0")):
            assert cuda.current_device() == 0
        assert cuda.current_device() == 1


def test_the_current_device_is_a_threads_own():
    seen = []
    with cuda.device(1):
        thread = threading.Thread(target=lambda: seen.append(cuda.current_device()))
        thread.start()
        thread.join()
    assert seen == [0]


def test_set_device():
    try:
        cuda.set_device(1)
        assert tg.ones(1, device="cuda").device == "cuda:1" and cuda.memory_allocated() == cuda.memory_allocated(1)
        cuda.set_device(-1)
        assert cuda.current_device() == 1
    finally:
        cuda.set_device("cuda:0")
    with pytest.raises(RuntimeError, match="CUDA error: invalid device ordinal"):
        cuda.set_device(2)
    for nothing in None, "cuda":
        with pytest.raises(ValueError, match="Expected a torch.device with a specified index or an integer, but got:"):
            cuda.set_device(nothing)
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        cuda.set_device("cpu")
    assert cuda.current_device() == 0


def test_cuda_keeps_the_dtype_and_stays_where_it_can():
    """`.cuda()` moves to the current device, `.cuda(n)` to that one; a tensor that is there already is itself."""
    x = tg.tensor([1, 2])
    a = x.cuda()
    assert a.dtype is tg.int64 and a.device == "cuda:0" and a.cuda() is a and a.cuda(0) is a
    b = a.cuda(1)
    assert b.device == "cuda:1" and b.dtype is tg.int64 and b is not a and b.tolist() == [1, 2]
    with cuda.device(1):
        assert x.cuda().device == "cuda:1" and a.to("cuda").device == "cuda:1"


def test_computing_follows_the_operands_and_not_the_chosen_device():
    a = tg.ones(2, device="cuda:0")
    with cuda.device(1):
        assert (a + a).device == a.exp().device == tg.zeros_like(a).device == "cuda:0"
        with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and cuda:1!"):
            a + tg.ones(2, device="cuda")


def test_properties():
    found = cuda.get_device_properties(1)
    assert (found.name == cuda.get_device_name(1) == "simulated device 1"
            and (found.major, found.minor) == cuda.get_device_capability() == (0, 0))
    assert found.total_memory == cuda.mem_get_info(1)[1] >= cuda.mem_get_info()[0] > 0
    assert repr(found).startswith("_CudaDeviceProperties(name='simulated device 1', major=0, minor=0, total_memory=")
    assert cuda.can_device_access_peer(0, 1) is False
    for ask in (lambda: cuda.get_device_properties(2), lambda: cuda.can_device_access_peer(2, 0)):
        with pytest.raises(AssertionError, match="Invalid device id"):
            ask()
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        cuda.get_device_name("cpu")


# ── streams and events ────────────────────────────────────────────────────────────────────────────────────────────────


def test_streams_of_simulated_devices():
    s, t = cuda.Stream(), cuda.Stream(device=1, priority=-1)
    assert (s.device == "cuda:0" and t.device == "cuda:1" and t.priority == -1 and s != t and s == s and s != 3
            and len({s, t, s}) == 2)
    assert s.query() is True and s.synchronize() is None and isinstance(s, tg.Stream)
    assert (repr(cuda.default_stream()) == "<torch.cuda.Stream device=cuda:0 cuda_stream=0x0>"
            and cuda.default_stream(1) != cuda.default_stream(0))
    assert cuda.current_stream() == cuda.default_stream() and cuda.current_stream(1) == cuda.default_stream(1)
    with cuda.stream(s):
        assert cuda.current_stream() == s and cuda.current_stream(1) == cuda.default_stream(1)
        with cuda.stream(t):
            assert cuda.current_stream() == t and cuda.current_device() == 1 and cuda.current_stream(0) == s
            x = tg.ones(2, device="cuda")
        with cuda.stream(None):
            assert cuda.current_stream() == s
    assert x.device == "cuda:1" and cuda.current_stream() == cuda.default_stream() and cuda.current_device() == 0
    with s as inner, t:
        assert inner is s and cuda.current_device() == 1
    s.wait_stream(t)
    assert cuda.ExternalStream(0x10, 1).cuda_stream == 16 == cuda.get_stream_from_external(16, 1).__cuda_stream__()[1]
    cuda.set_stream(None)
    cuda.set_stream(t)
    assert cuda.current_device() == 1 and cuda.current_stream() == t
    cuda.set_stream(cuda.default_stream(1))
    cuda.set_device(0)


def test_events_measure_time():
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    assert repr(start) == "<torch.cuda.Event uninitialized>" and start.query()
    first = time.perf_counter()
    start.record()
    began = time.perf_counter()
    time.sleep(0.02)
    passed = (time.perf_counter() - began) * 1000
    end.record()
    cuda.synchronize()
    end.synchronize()
    assert (passed <= start.elapsed_time(end) <= (time.perf_counter() - first) * 1000 + 1
            and repr(start).startswith("<torch.cuda.Event 0x") and end.query())
    s = cuda.Stream()
    event = s.record_event()
    assert (isinstance(event, cuda.Event) and event.wait() is None and s.record_event(event) is event
            and event.device == "cuda:0")


def test_what_events_refuse():
    plain, start, unrecorded = cuda.Event(), cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    plain.record()
    start.record()
    with pytest.raises(ValueError, match="Both events must be created with argument 'enable_timing=True'."):
        start.elapsed_time(plain)
    with pytest.raises(ValueError, match="Both events must be recorded before calculating elapsed time."):
        start.elapsed_time(unrecorded)
    with pytest.raises(RuntimeError, match="Event device 0 does not match recording stream's device 1."):
        start.record(cuda.current_stream(1))


def test_streams_and_events_of_any_device():
    assert type(tg.Stream()) is type(tg.Stream("cuda:1")) is cuda.Stream and type(tg.Event()) is cuda.Event
    cpu = tg.Stream("cpu")
    assert (repr(cpu) == "torch.Stream device_type=cpu, device_index=-1, stream_id=0" and cpu == tg.Stream("cpu")
            and cpu.query())
    assert (repr(tg.Event("cpu", enable_timing=True)) == "torch.Event device_type=cpu, device_index=-1, event_flag=1, "
                                                         "event_id=0")
    for use in (cpu.record_event, lambda: cpu.wait_stream(cpu), tg.Event("cpu").record):
        with pytest.raises(RuntimeError, match="cpu backend doesn't support events."):
            use()
    with cpu as inner:
        assert inner is cpu


# ── memory ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def counted():
    """Nothing of other tests ends meanwhile; what the test makes ends by itself, without a garbage collection."""
    cuda.init()
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def held(device=0):
    return cuda.memory_allocated(device)


def test_memory_is_counted_while_it_lives(counted):
    before = held(), held(1)
    x = tg.zeros(1000, device="cuda")
    assert held() == before[0] + 4000 and held(1) == before[1]
    y = x[10:20].view(2, 5).t()                # views need no memory, and keep it
    del x
    assert held() == before[0] + 4000
    z = y.cuda(1).double()
    assert held(1) == before[1] + 80
    del y, z
    assert (held(), held(1)) == before


def test_memory_of_a_training_step(counted):
    before = held()
    w = tg.ones(100, 100, device="cuda", requires_grad=True)
    y = ((w @ w).tanh() * 2).sum()
    assert held() == before + 2 * 40_000 + 4, "the parameter, the tanh that backward needs, the result"
    y.backward()
    del y
    assert held() == before + 2 * 40_000, "the parameter and its gradient"
    del w
    assert held() == before


def test_the_peak(counted):
    cuda.reset_peak_memory_stats()
    before = held()
    assert cuda.max_memory_allocated() == before
    x = tg.zeros(1000, device="cuda")
    del x
    y = tg.zeros(10, device="cuda")
    assert cuda.max_memory_allocated() == before + 4000 == cuda.max_memory_reserved() and held() == before + 40
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_allocated() == before + 40 and y.tolist() == [0.] * 10


def test_threads_are_counted_together(counted):
    before = held()

    def churn():
        for _ in range(300):
            x = tg.zeros(10, device="cuda")
            kept.append(x + x) if len(kept) < 8 else None
    kept = []
    threads = [threading.Thread(target=churn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert held() == before + 40 * len(kept)


def test_stats_and_their_summary():
    x = tg.zeros(512, device="cuda")
    stats = cuda.memory_stats()
    assert list(stats) == sorted(stats) and stats["allocated_bytes.all.current"] == cuda.memory_allocated() >= 2048
    assert (stats["allocated_bytes.all.allocated"] - stats["allocated_bytes.all.freed"]
            == stats["allocated_bytes.all.current"] == cuda.memory_reserved())
    assert stats["allocation.all.allocated"] - stats["allocation.all.freed"] == stats["allocation.all.current"] > 0
    assert cuda.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["peak"] == cuda.max_memory_allocated()
    text = cuda.memory_summary()
    assert (text.startswith("memory of device 0") and "Allocated memory" in text and "freed" in text
            and "freed" not in cuda.memory_summary(abbreviated=True))
    cuda.reset_accumulated_memory_stats()
    stats = cuda.memory_stats()
    assert (stats["allocated_bytes.all.freed"] == 0 and stats["allocated_bytes.all.allocated"]
            == stats["allocated_bytes.all.current"])
    assert x.sum().item() == 0 and cuda.empty_cache() is None and cuda.ipc_collect() is None


def test_old_names_warn():
    with pytest.warns(FutureWarning, match="`torch.cuda.memory_cached` has been renamed to "
                                           "`torch.cuda.memory_reserved`"):
        assert cuda.memory_cached() == cuda.memory_reserved()
    with pytest.warns(FutureWarning, match="torch.cuda.reset_max_memory_allocated now calls "
                                           "torch.cuda.reset_peak_memory_stats"):
        cuda.reset_max_memory_allocated()


def test_memory_runs_out(counted):
    assert issubclass(tg.OutOfMemoryError, RuntimeError) and cuda.OutOfMemoryError is tg.OutOfMemoryError
    before = held()
    total = cuda.mem_get_info()[1]
    try:
        cuda.set_per_process_memory_fraction((before + 1_000_000) / total)
        small = tg.zeros(1000, device="cuda")
        full = cuda.memory_stats()["num_ooms"]
        with pytest.raises(tg.OutOfMemoryError, match=r"CUDA out of memory. Tried to allocate 3.81 MiB. GPU 0 has a "
                                                      r"total capacity of .* is free."):
            tg.zeros(1_000_000, device="cuda")
        assert cuda.memory_stats()["num_ooms"] == full + 1 and tg.zeros(1_000_000, device="cuda:1").device == "cuda:1"
        assert held() == before + 4000 and small.tolist() == [0.] * 1000
    finally:
        cuda.set_per_process_memory_fraction(1.0)
    assert cuda.get_per_process_memory_fraction() == 1.0 and tg.zeros(1_000_000, device="cuda").shape == (1_000_000,)
    with pytest.raises(TypeError, match="Invalid type for fraction argument, must be `float`"):
        cuda.set_per_process_memory_fraction(1)
    with pytest.raises(ValueError, match="Invalid fraction value: 1.5. Allowed range: 0~1"):
        cuda.set_per_process_memory_fraction(1.5)


# ── random numbers ────────────────────────────────────────────────────────────────────────────────────────────────────


def drawn(device="cuda"):
    return tg.rand(3, device=device).tolist()


def test_seeds():
    tg.manual_seed(5)
    assert cuda.initial_seed() == 5
    first = drawn(), drawn("cuda:1")
    tg.manual_seed(5)
    assert (drawn(), drawn("cuda:1")) == first
    cuda.manual_seed_all(5)
    assert (drawn(), drawn("cuda:1")) == first
    cuda.manual_seed(7)
    with cuda.device(1):
        cuda.manual_seed(8)
        assert cuda.initial_seed() == 8
    assert cuda.initial_seed() == 7 and drawn() != first[0]
    cuda.seed()
    assert cuda.initial_seed() != 7
    cuda.seed_all()
    with cuda.device(1):
        assert cuda.initial_seed() != 8


def test_states():
    state = cuda.get_rng_state()
    assert state.dtype is tg.uint8 and state.device == "cpu"
    first = drawn()
    cuda.set_rng_state(state)
    assert drawn() == first
    states = cuda.get_rng_state_all()
    both = drawn(0), drawn(1)
    cuda.set_rng_state_all(states)
    assert (drawn(0), drawn(1)) == both and len(states) == len(cuda.default_generators) == 2
    cuda.default_generators[1].manual_seed(3)
    with cuda.device(1):
        assert cuda.initial_seed() == 3


# ── nvtx, comm, accelerator ───────────────────────────────────────────────────────────────────────────────────────────


def test_marks_for_profilers():
    nvtx = cuda.nvtx
    assert (nvtx.range_push("a") == 0 and nvtx.range_push("b") == 1 and nvtx.range_pop() == 1 and nvtx.range_pop() == 0
            and nvtx.range_pop() == -2)
    with nvtx.range("step {}", 3):
        assert nvtx.range_push("inner") == 1 and nvtx.range_pop() == 1
    nvtx.mark("here")
    assert nvtx.range_end(nvtx.range_start("x")) is None

    @nvtx.range("decorated")
    def double(x):
        return x * 2
    assert double(2) == 4


def test_copies_between_devices():
    x = tg.arange(5., device="cuda")
    comm = cuda.comm
    a, b = comm.broadcast(x, [0, 1])
    assert a is x and b.device == "cuda:1" and b.tolist() == x.tolist()
    assert [[t.device.index for t in row] for row in comm.broadcast_coalesced([x, x + 1], [0, 1])] == [[0, 0], [1, 1]]
    parts = comm.scatter(x, [0, 1])
    assert [(p.device.index, p.tolist()) for p in parts] == [(0, [0., 1., 2.]), (1, [3., 4.])]
    assert [p.tolist() for p in comm.scatter(x.cpu(), [1, 0], chunk_sizes=[1, 4])] == [[0.], [1., 2., 3., 4.]]
    assert comm.gather(parts).device == "cuda:0" and comm.gather(parts, destination="cpu").tolist() == x.tolist()
    assert comm.reduce_add([b, x], 1).device == "cuda:1" and comm.reduce_add([b, x]).tolist() == [0., 2., 4., 6., 8.]
    assert ([t.tolist() for t in comm.reduce_add_coalesced([[a, a], [b, b + 1]], 0)]
            == [[0., 2., 4., 6., 8.], [1., 3., 5., 7., 9.]])
    out = [tg.zeros(2, device="cuda:1"), tg.zeros(3)]
    assert (comm.scatter(x, out=out)[1] is out[1] and out[1].tolist() == [2., 3., 4.]
            and comm.gather(out, out=tg.zeros(5)).tolist() == x.tolist())
    assert ([t.tolist() for t in comm.broadcast(x[:2], out=[tg.zeros(2), tg.zeros(2, device="cuda:1")])] == [[0., 1.]]
            * 2)


def test_copies_that_are_refused():
    x, comm = tg.ones(2, device="cuda"), cuda.comm
    with pytest.raises(RuntimeError, match="Exactly one of 'devices' and 'out' must be specified, but got devices=None "
                                           "and out=None"):
        comm.broadcast(x)
    with pytest.raises(RuntimeError, match="'chunk_sizes' must not be specified when 'out' is specified, but got "
                                           "chunk_sizes="):
        comm.scatter(x, chunk_sizes=[1, 1], out=[x])
    with pytest.raises(RuntimeError, match="'destination' must not be specified when 'out' is specified, but got "
                                           "destination=cpu"):
        comm.gather([x], destination="cpu", out=x)
    with pytest.raises(AssertionError, match="reduce_add expects all inputs to be on GPUs, but input 1 is on CPU"):
        comm.reduce_add([x, x.cpu()])
    with pytest.raises(ValueError, match="input 1 has invalid size: got 1, but expected 2"):
        comm.reduce_add([x, x[:1]])
    with pytest.raises(RuntimeError, match="reduce_add expects destination to be on the same GPU with one of the "
                                           "tensors"):
        comm.reduce_add([x, x], 1)
    with pytest.warns(FutureWarning, match="Using -1 to represent CPU tensor is deprecated."):
        assert comm.gather([x], destination=-1).device == "cpu"


def test_the_accelerator_is_cuda():
    accelerator = tg.accelerator
    assert (accelerator.is_available() and accelerator.device_count() == 2
            and accelerator.current_accelerator() == "cuda")
    with accelerator.device_index(1):
        assert accelerator.current_device_index() == 1 and accelerator.current_stream().device == "cuda:1"
    assert accelerator.synchronize() is None and accelerator.get_memory_info()[1] == cuda.mem_get_info()[1]


# ── on CuPy ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Context:
    def __init__(self, *args):
        self.id = args[0] if args else 0

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


@pytest.fixture
def cupy(monkeypatch):
    """The part of CuPy that tensorgrad uses, on NumPy: a device that records its calls."""
    asked = []
    note = lambda name: lambda *args, **kwargs: asked.append((name, *args))     # noqa: E731

    class Device(Context):
        mem_info = (60 << 30, 80 << 30)
        synchronize = note("synchronize")

    class Stream:
        ptr, done = 0xAB, True
        synchronize, use, wait_event = note("stream.synchronize"), note("use"), note("wait")

        def __init__(self, non_blocking):
            assert non_blocking

    class Event:
        ptr, done = 0xCD, True
        record, synchronize = note("record"), note("event.synchronize")

        def __init__(self, block, disable_timing, interprocess):
            self.timed = not disable_timing

    class Pool:
        used_bytes, total_bytes, free_all_blocks = (lambda self: 300), (lambda self: 512), note("free_all_blocks")

        def set_limit(self, fraction):
            asked.append(("limit", fraction))

    class OutOfMemoryError(MemoryError):
        pass

    def malloc(size):
        raise OutOfMemoryError
    Stream.null = object.__new__(Stream)
    Stream.null.ptr = 0
    allocator = [malloc]
    properties = {"name": b"NVIDIA H100", "major": 9, "minor": 0, "totalGlobalMem": 80 << 30,
                  "multiProcessorCount": 132, "warpSize": 32,
                  "l2CacheSize": 50 << 20, "maxThreadsPerMultiProcessor": 2048}
    module = types.ModuleType("cupy")
    vars(module).update({name: getattr(np, name) for name in dir(np) if not name.startswith("__")})
    module.asnumpy, module.get_default_memory_pool = np.asarray, Pool
    module.cuda = types.SimpleNamespace(
        Device=Device, Stream=Stream, Event=Event, ExternalStream=lambda ptr, device: types.SimpleNamespace(ptr=ptr),
        get_elapsed_time=lambda a, b: 2.5,
        runtime=types.SimpleNamespace(getDeviceCount=lambda: 1, getDeviceProperties=lambda i: properties,
                                      deviceCanAccessPeer=lambda a, b: 1),
        nvtx=types.SimpleNamespace(RangePush=note("push"), RangePop=note("pop"), Mark=note("mark")),
        memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError), get_allocator=lambda: allocator[0],
        set_allocator=lambda new: allocator.__setitem__(0, new))
    module.asked, module.allocator = asked, allocator
    from tensorgrad.storage import Storage
    from tensorgrad.storage import cuda as storage
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.delenv("TENSORGRAD_SIMULATED_CUDA")
    for name in [name for name in Storage.by_device if name.startswith("cuda")]:
        del Storage.by_device[name]
    storage.device_count.cache_clear()
    cuda.streams._current.streams.clear()
    yield module
    cuda.streams._current.streams.clear()


def test_devices_on_cupy(cupy):
    assert (cuda.is_available() and cuda.device_count() == 1 and cuda.get_device_name() == "NVIDIA H100"
            and cuda.get_device_capability() == (9, 0))
    assert (cuda.get_arch_list() == ["sm_90"] and cuda.get_gencode_flags() == "-gencode compute=compute_90,code=sm_90"
            and cuda.is_tf32_supported())
    assert "total_memory=81920MB, multi_processor_count=132, L2_cache_size=50MB" in repr(cuda.get_device_properties())
    cuda.synchronize()
    assert cupy.asked[-1][0] == "synchronize" and cuda.can_device_access_peer(0, 0)


def test_streams_on_cupy(cupy):
    s, event, later = cuda.Stream(), cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    with cuda.stream(s):
        event.record()
        later.record(s)
        s.wait_event(event)
    assert ([name for name, *_ in cupy.asked] == ["use", "record", "record", "wait", "use"]
            and cupy.asked[0][1] is s.native)
    assert cupy.asked[-1][1] is cupy.cuda.Stream.null and s.cuda_stream == 0xAB and event.cuda_event == 0xCD
    assert (event.elapsed_time(later) == 2.5 and s.query() and event.native.timed
            and cuda.ExternalStream(7).native.ptr == 7)
    s.synchronize()
    event.synchronize()
    assert [name for name, *_ in cupy.asked[-2:]] == ["stream.synchronize", "event.synchronize"]


def test_memory_on_cupy(cupy):
    assert cuda.memory_allocated() == 0, "nothing was used yet"
    tg.ones(2, device="cuda")
    assert (cuda.memory_allocated() == cuda.max_memory_allocated() == 300 and cuda.memory_reserved() == 512
            and cuda.mem_get_info() == (60 << 30, 80 << 30))
    assert "Reserved memory   |    512 bytes |    512 bytes |              |" in cuda.memory_summary()
    cuda.empty_cache()
    cuda.set_per_process_memory_fraction(0.5)
    assert [name for name, *_ in cupy.asked] == ["free_all_blocks", "limit"]
    cuda.set_per_process_memory_fraction(1.0)
    with pytest.raises(tg.OutOfMemoryError, match="CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total "
                                                  "capacity of 80.00 GiB of which 60.00"):
        cupy.allocator[0](20 << 30)


def test_marks_on_cupy(cupy):
    with cuda.nvtx.range("a"):
        cuda.nvtx.mark("b")
    assert cupy.asked == [("push", "a"), ("mark", "b"), ("pop",)]


# ── without a device ──────────────────────────────────────────────────────────────────────────────────────────────────

ANSWERS = """is_available() device_count() is_initialized() is_bf16_supported() get_arch_list() memory_allocated()
max_memory_allocated() memory_reserved() max_memory_reserved() memory_stats() memory_stats_as_nested_dict()
manual_seed(1) manual_seed_all(1) seed() seed_all() get_rng_state_all() set_rng_state_all([]) set_stream(None)
empty_cache() stream(None).__enter__()
device(-1).__enter__() set_device(-1)
default_generators
OutOfMemoryError.__mro__[1].__name__ get_gencode_flags() device_of(torch.ones(1)).__enter__()""".split()
NEEDY = """init() current_device() synchronize() current_stream() default_stream() mem_get_info()
get_device_properties(0) get_device_name()
get_device_capability() initial_seed() get_rng_state() can_device_access_peer(0,1) ipc_collect()""".split()


def test_without_a_device_it_answers_as_pytorch_without_cuda_does():
    torch = pytest.importorskip("torch")
    skip_if_built_with_cuda(torch)
    program = "import sys; sys.modules['cupy'] = None; import tensorgrad as torch; cuda = torch.cuda\n" + "".join(
        f"print(repr(cuda.{call}))\n" for call in ANSWERS)
    theirs = [repr(eval(f"torch.cuda.{call}", {"torch": torch})) for call in ANSWERS]
    assert fresh_process(program).splitlines() == theirs


def test_without_a_device_errors_say_what_is_missing():
    calls = [*(f"cuda.{call}" for call in NEEDY), "cuda.Stream()", "cuda.Event()", "torch.accelerator.synchronize()"]
    program = "import sys; sys.modules['cupy'] = None; import tensorgrad as torch; cuda = torch.cuda\n" + "".join(
        f"try: {call}; print('no error')\nexcept Exception as error: print([c.__name__ for c in "
        f"type(error).__mro__[:3]], error)\n" for call in calls)
    *needy, stream, event, accelerator = fresh_process(program).splitlines()
    missing = ("['MissingCuda', 'ImportError', 'AssertionError'] CUDA tensors need CuPy, which is not installed: pip "
               "install")
    assert len(needy) == len(NEEDY) and all(line.startswith(missing) for line in needy), needy
    assert ("'RuntimeError'" in stream and "] torch.cuda.Stream requires CUDA support" in stream
            and "] torch.cuda.Event requires CUDA support" in event)
    assert ("'RuntimeError'" in accelerator
            and accelerator.endswith("] Cannot access accelerator device when none is available."))
