"""Mean gradients, in the dtype of the parameters or in a shorter one.

https://pytorch.org/docs/stable/ddp_comm_hooks.html#default-communication-hooks
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import api as tg
from ....futures import Future
from ....nn import processes
from ....nn.parallel.buckets import GradBucket

__all__ = ["allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook",
           "fp16_compress_wrapper"]

Hook = Callable[[Any, GradBucket], Future[Any]]


def chosen(group: Any) -> Any:
    """The process group, or the default one."""
    return processes.default_group if group is None else group


def mean(group: Any, tensor: Any) -> Future[Any]:
    """A Future of the tensor, which becomes the mean of those of all processes."""
    group = chosen(group)
    tensor.div_(group.size())
    return group.allreduce(tensor).get_future().then(lambda _: tensor)  # type: ignore[no-any-return]


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future[Any]:
    """Average gradients: what happens without a hook. https://pytorch.org/docs → allreduce_hook"""
    return mean(process_group, bucket.buffer())


def _compressed(dtype: Any, group: Any, bucket: GradBucket) -> Future[Any]:
    buffer = bucket.buffer()
    return mean(group, buffer.to(dtype)).then(lambda future: buffer.copy_(future.value()))


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Any]:
    """Average gradients as float16, which takes half the bytes of float32.

    https://pytorch.org/docs → fp16_compress_hook
    """
    return _compressed(tg.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Any]:
    """Average gradients as bfloat16, which takes half the bytes of float32, and has its range.

    https://pytorch.org/docs → bf16_compress_hook
    """
    return _compressed(tg.bfloat16, process_group, bucket)


def _wrapped(dtype: Any, hook: Hook) -> Hook:
    def wrapper(state: Any, bucket: GradBucket) -> Future[Any]:
        bucket.set_buffer(bucket.buffer().to(dtype))
        return hook(state, bucket)
    return wrapper


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that has another one work on gradients as float16. https://pytorch.org/docs → fp16_compress_wrapper"""
    return _wrapped(tg.float16, hook)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that has another one work on gradients as bfloat16. https://pytorch.org/docs → bf16_compress_wrapper"""
    return _wrapped(tg.bfloat16, hook)
