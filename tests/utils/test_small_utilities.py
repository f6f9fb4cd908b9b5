"""Devices as decorators, tracebacks as values, workers that ended, processes that are terminated."""
import importlib
import logging
import os
import threading
import time
from datetime import datetime, timedelta

import pytest
from side_by_side import attempt
from support import Programs

import tensorgrad
from tensorgrad import multiprocessing
from tensorgrad.utils import _traceback
from tensorgrad.utils._device import DeviceContext, set_device

program = Programs()


@program
def devices_decorate(torch):
    set_device = importlib.import_module(f"{torch.__name__}.utils._device").set_device

    @set_device("meta")
    def places():
        yield torch.empty(1).device.type
        try:
            yield torch.zeros(2).device.type
        finally:
            seen.append(torch.ones(2).device.type)
    seen = []
    generator = places()
    first = next(generator)
    between = torch.empty(1).device.type
    return first, between, list(generator), seen, set_device("meta")(lambda: torch.empty(1).device.type)()


def test_a_device_is_set():
    assert set_device("meta")(lambda: tensorgrad.empty(2).device.type)() == "meta"
    with DeviceContext("meta"):
        assert tensorgrad.empty(2).is_meta
    assert tensorgrad.empty(2).is_cpu


def test_tracebacks_are_values():
    def here(skip=0):
        return _traceback.CapturedTraceback.extract(skip=skip)
    captured = here()
    assert "in here" in captured.format()[-1] and "in test_tracebacks_are_values" in here(1).format()[-1]
    assert _traceback.CapturedTraceback.format_all([captured, None]) == [captured.format(), []]
    assert captured.summary()[-1].name == "here"
    with pytest.raises(ZeroDivisionError) as raised, _traceback.report_compile_source_on_error():
        exec(compile("1 / 0  # HERE", "<made>", "exec"), {"__compile_source__": "1 / 0  # HERE"})
    assert "# HERE" in "".join(_traceback.traceback.format_tb(raised.value.__traceback__))
    try:
        1 / 0
    except ZeroDivisionError as error:
        assert _traceback.format_traceback_short(error.__traceback__).endswith("in test_tracebacks_are_values")
    assert _traceback.shorten_filename("/a/b/c.py", base="/a/x") == "b/c.py"


def test_workers_can_be_looked_at_after_they_ended():
    iterator = iter(tensorgrad.utils.data.DataLoader([1, 2], num_workers=1))
    workers = list(iterator._workers)
    assert [batch.item() for batch in iterator] == [1, 2] and workers
    workers[0].join(5)
    assert not workers[0].is_alive() and workers[0].exitcode == 0


@pytest.mark.skipif(not os.path.exists("/proc/thread-self/comm"), reason="Linux shows names of threads in /proc")
def test_threads_have_names():
    before, found = multiprocessing._get_thread_name(), []

    def run():
        multiprocessing._set_thread_name("a name that is longer")
        found.append(multiprocessing._get_thread_name())
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == ["a name that is "] and multiprocessing._get_thread_name() == before
    with pytest.raises(TypeError):
        multiprocessing._set_thread_name(3)


def fail_first(i):
    if not i:
        raise ValueError("first")
    time.sleep(30)


def test_terminated_processes_are_logged(caplog, monkeypatch):
    monkeypatch.setenv(multiprocessing.ENV_VAR_PARALLEL_START, "1")
    with caplog.at_level(logging.WARNING), pytest.raises(multiprocessing.ProcessRaisedException, match="first"):
        multiprocessing.start_processes(fail_first, nprocs=2, start_method="fork")
    assert "Terminating process" in caplog.text and "via signal SIGTERM" in caplog.text


@program
def counters_and_events(torch):
    monitor = importlib.import_module(f"{torch.__name__}.monitor")
    Aggregation, hour = monitor.Aggregation, timedelta(hours=1)
    events = []
    handle = monitor.register_event_handler(lambda e: events.append((e.name, dict(sorted(e.data.items())))))
    stat = monitor.Stat("loss", [getattr(Aggregation, name) for name in "MEAN COUNT SUM MAX MIN".split()], hour, 3)
    before = stat.get()
    for value in (1.0, 5.0, 3.0, 7.0):
        stat.add(value)
    after = sorted((aggregation.name, value) for aggregation, value in stat.get().items())
    event = monitor.Event("step", datetime(2020, 1, 1), {"a": 1, "b": "c", "d": 2.5})
    monitor.log_event(event)
    result = (sorted(before.values()), stat.count, stat.name, after, event.name, event.timestamp,
              sorted(event.data.items(), key=str),
              [attempt(call)[0] for call in (lambda: stat.add("x"), lambda: monitor.Stat("x", [], 3),
                                             lambda: monitor.Event("x", datetime(2020, 1, 1), {"a": []}))])
    monitor.unregister_event_handler(handle)
    monitor.log_event(event)
    return result, [name for name, _ in events], [data for _, data in events[1:]]


@program
def spellings_of_devices(torch):
    return [attempt(lambda text=text: str(torch.device(text))) for text in (
        "not a real device", "nope", "nope:x", "cpu:x", "cuda:01", "", "1", ":1", "a1b", "cuda:0")]


test_programs = program.test()


def test_a_window_of_time_ends():
    events = []
    handle = tensorgrad.monitor.register_event_handler(events.append)
    stat = tensorgrad.monitor.Stat("n", [tensorgrad.monitor.Aggregation.SUM], timedelta(milliseconds=5))
    stat.add(2)
    time.sleep(0.02)
    assert stat.get() == {tensorgrad.monitor.Aggregation.SUM: 2} and stat.count == 0
    stat.add(3)
    del stat            # what is left is logged as well
    tensorgrad.monitor.unregister_event_handler(handle)
    assert [event.data for event in events] == [{"n.sum": 2}, {"n.sum": 3}]
    with pytest.raises(ValueError, match="not registered"):
        tensorgrad.monitor.unregister_event_handler(handle)
